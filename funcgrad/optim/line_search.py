"""Line searches: how far to go along the updates, so that the loss becomes small enough.

With ``phi(a) = f(params + a * updates)``, a step ``a`` is good if the loss decreases sufficiently,

    phi(a) <= phi(0) + c1 a phi'(0),

and, for the search of Wolfe's second condition, the slope has become small enough as well:
``|phi'(a)| <= c2 |phi'(0)|`` (Nocedal and Wright, Numerical Optimization, 2006, chapter 3). Each of
the two searches is one `while_loop` that evaluates the loss once per turn. Names, arguments and
decisions are optax's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.api.differentiation import value_and_grad
from funcgrad.base.pytree import tree_leaves, tree_map
from funcgrad.base.signatures import signature_of
from funcgrad.dtypes import real_dtype
from funcgrad.errors import ArgumentError
from funcgrad.lax import cond, while_loop
from funcgrad.numpy.promotion import to_dtype
from funcgrad.optim.transformation import (
    Array,
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    State,
    Step,
    Updates,
    dtype_of,
    first_count,
    inner,
    like,
    next_count,
    zeros_like,
)

__all__ = [
    "scale_by_backtracking_linesearch", "scale_by_zoom_linesearch", "value_and_grad_from_state",
]  # fmt: skip

ValueFunction = Callable[..., Scalar]


class ScaleByBacktrackingLinesearchState(NamedTuple):
    """The step that was found, and there the loss and, if it is stored, the gradient."""

    learning_rate: Array
    value: Array
    grad: Updates | None
    info: BacktrackingLinesearchInfo


class BacktrackingLinesearchInfo(NamedTuple):
    """How many losses were computed, and how much the last one was too large: 0 for a success."""

    num_linesearch_steps: Array
    decrease_error: Array


def scale_by_backtracking_linesearch(
    max_backtracking_steps: int,
    slope_rtol: Scalar = 1e-4,
    decrease_factor: Scalar = 0.8,
    increase_factor: Scalar = 1.5,
    max_learning_rate: Scalar = 1.0,
    atol: Scalar = 0.0,
    rtol: Scalar = 0.0,
    store_grad: bool = False,
) -> GradientTransformationExtraArgs:
    """Updates multiplied by a step that is made smaller until the loss decreases sufficiently.

    Args:
        max_backtracking_steps: How often it is made smaller at most.
        decrease_factor: By what the step is multiplied each time.
        increase_factor: By what the last step is multiplied for the first trial.
        max_learning_rate: The largest step.
        atol: How much the condition may be missed by.
        rtol: How much it may be missed by, as a share of the loss.
        store_grad: Whether the state keeps the gradient at the new point, for
            `value_and_grad_from_state`.
    Returns: A transformation for the end of a chain that gives a direction of descent. Its update
        needs ``value=`` and ``grad=``, of the loss at the parameters, and ``value_fn=``, the
        function; further keywords that this takes are passed on to it. Where not even the smallest
        step has a finite loss, the updates are zero.

    Example:
        >>> f = lambda x: np.sum(x**4)
        >>> opt = fg.optim.chain(fg.optim.sgd(1.0), fg.optim.scale_by_backtracking_linesearch(20))
        >>> x = np.array([1.0, 2.0])
        >>> value, grad = fg.value_and_grad(f)(x)
        >>> updates, _ = opt.update(grad, opt.init(x), x, value=value, grad=grad, value_fn=f)
        >>> bool(f(x + updates) < f(x))
        True
    """

    def init(params: Params) -> State:
        scalar = _scalar_type(params)
        return ScaleByBacktrackingLinesearchState(
            scalar(1.0),
            scalar(np.inf),
            zeros_like(params) if store_grad else None,
            BacktrackingLinesearchInfo(first_count(), scalar(np.inf)),
        )

    def update(
        updates: Updates,
        state: State,
        params: Params | None = None,
        *,
        value: Scalar | None = None,
        grad: Updates | None = None,
        value_fn: ValueFunction | None = None,
        **extra_args: Any,
    ) -> Step:
        name = "scale_by_backtracking_linesearch"
        loss = _loss(name, params, value, grad, value_fn, extra_args)
        scalar = _scalar_type(params)
        slope, start = scalar(inner(updates, grad)), scalar(value)

        def go_on(search: Any) -> Any:
            _, _, error, trials = search
            return ~(error <= atol) & (trials <= max_backtracking_steps)

        def trial(search: Any) -> Any:
            step, _, _, trials = search
            step = fnp.where(trials > 0, like(decrease_factor, step) * step, step)
            reached = scalar(loss(_moved(params, step, updates)))
            bound = like(1.0 + rtol, start) * start + like(slope_rtol, start) * step * slope
            return step, reached, _shortfall(reached - bound), next_count(trials)

        first = like(increase_factor, slope) * scalar(state.learning_rate)
        first = fnp.minimum(first, scalar(max_learning_rate))
        begin = (first, start, scalar(np.inf), first_count())
        step, reached, error, trials = while_loop(go_on, trial, begin)
        step = fnp.where(fnp.isinf(error), fnp.zeros_like(step), step)
        found = None
        if store_grad:
            _, found = value_and_grad(loss)(_moved(params, step, updates))
        info = BacktrackingLinesearchInfo(trials, error)
        return tree_map(lambda u: like(step, u) * u, updates), ScaleByBacktrackingLinesearchState(
            step, reached, found, info
        )

    return GradientTransformationExtraArgs(init, update)


class ScaleByZoomLinesearchState(NamedTuple):
    """The step that was found, and there the loss and the gradient."""

    learning_rate: Array
    value: Array
    grad: Updates
    info: ZoomLinesearchInfo


class ZoomLinesearchInfo(NamedTuple):
    """How many losses were computed, and how much both conditions were missed by."""

    num_linesearch_steps: Array
    decrease_error: Array
    curvature_error: Array


class Point(NamedTuple):
    """A step along the line, with the loss and its slope there."""

    step: Array
    value: Array
    slope: Array


class _Search(NamedTuple):
    trials: Array
    last: Point
    grad: Updates  # at the last point
    safe: Point  # of those with sufficient decrease, the one with the smallest loss
    safe_grad: Updates
    low: Point  # the ends of the interval that holds good points: that with the smaller loss
    high: Point
    third: Point  # a point besides, through which the cubic goes
    has_interval: Array
    decrease_error: Array
    curvature_error: Array
    is_done: Array
    is_failed: Array


def scale_by_zoom_linesearch(
    max_linesearch_steps: int,
    max_learning_rate: Scalar | None = None,
    tol: Scalar = 0.0,
    increase_factor: Scalar = 2.0,
    slope_rtol: Scalar = 1e-4,
    curv_rtol: Scalar = 0.9,
    approx_dec_rtol: Scalar | None = 1e-6,
    stepsize_precision: Scalar = 1e-5,
    initial_guess_strategy: str = "keep",
) -> GradientTransformationExtraArgs:
    """Updates multiplied by a step after which loss and slope are small enough.

    The step grows until there must be a good one below it; then the interval is made smaller, by
    the minimum of a cubic or of a parabola through its ends, or in the middle (algorithms 3.5 and
    3.6 of Nocedal and Wright).

    Args:
        max_linesearch_steps: How many losses, with their gradients, are computed at most.
        tol: How much the conditions may be missed by.
        increase_factor: By what the step grows.
        curv_rtol: ``c2`` in the condition of the slope; with infinity there is none.
        approx_dec_rtol: Near a minimum, where the loss is smaller than the first one but for so
            much of it, the slope may stand for the decrease, which rounding hides (Hager and
            Zhang, 2005). ``None`` switches this off.
        stepsize_precision: The search ends with the best step so far when the interval is smaller.
        initial_guess_strategy: ``"keep"``: the first step is the last one found; or ``"one"``.

    Returns:
        A transformation for the end of a chain that gives a direction of descent. Its update needs
        ``value=`` and ``grad=``, of the loss at the parameters, and ``value_fn=``, the function;
        further keywords that this takes are passed on to it.
    Raises: ArgumentError: If the strategy is another one.

    Example:
        >>> (
        ...     lambda o, f, p: o.update(
        ...         -fg.grad(f)(p), o.init(p), p, value=f(p), grad=fg.grad(f)(p), value_fn=f
        ...     )[0]
        ... )(fg.optim.scale_by_zoom_linesearch(10), lambda p: (p - 1.0) ** 2, np.array(3.0))
        np.float64(-2.0)
    """
    if initial_guess_strategy not in ("keep", "one"):
        raise ArgumentError(
            "optim.scale_by_zoom_linesearch: initial_guess_strategy must be 'keep' or 'one', got "
            f"{initial_guess_strategy!r}."
        )

    def init(params: Params) -> State:
        scalar = _scalar_type(params)
        info = ZoomLinesearchInfo(first_count(), scalar(np.inf), scalar(np.inf))
        return ScaleByZoomLinesearchState(scalar(1.0), scalar(np.inf), zeros_like(params), info)

    def update(
        updates: Updates,
        state: State,
        params: Params | None = None,
        *,
        value: Scalar | None = None,
        grad: Updates | None = None,
        value_fn: ValueFunction | None = None,
        **extra_args: Any,
    ) -> Step:
        loss = _loss("scale_by_zoom_linesearch", params, value, grad, value_fn, extra_args)
        scalar = _scalar_type(params)
        start = Point(scalar(0.0), scalar(value), scalar(inner(updates, grad)))
        is_kept = initial_guess_strategy == "keep"
        guess = scalar(state.learning_rate) if is_kept else scalar(1.0)

        def evaluated(step: Array) -> tuple[Point, Updates]:
            reached, gradient = value_and_grad(loss)(_moved(params, step, updates))
            gradient = tree_map(lambda g, u: to_dtype(g, dtype_of(u)), gradient, updates)
            return Point(step, scalar(reached), scalar(inner(updates, gradient))), gradient

        def decrease_error(new: Point) -> Array:
            bound = start.value + like(slope_rtol, new.step) * new.step * start.slope
            missed = new.value - bound
            if approx_dec_rtol is not None:
                flat = new.slope - like(2 * slope_rtol - 1.0, new.slope) * start.slope
                risen = new.value - start.value
                risen = risen - like(approx_dec_rtol, risen) * fnp.abs(start.value)
                missed = fnp.minimum(fnp.maximum(flat, risen), missed)
            return _shortfall(missed)

        def curvature_error(new: Point) -> Array:
            most = like(curv_rtol, new.slope) * fnp.abs(start.slope)
            return _shortfall(fnp.abs(new.slope) - most)

        def go_on(search: _Search) -> Array:
            return ~(search.is_done | search.is_failed)

        def turn(search: _Search) -> _Search:
            larger = like(increase_factor, guess) * search.last.step
            larger = fnp.where(search.trials == 0, guess, larger)
            is_largest = fnp.zeros_like(search.is_done)
            if max_learning_rate is not None:
                is_largest = (larger >= scalar(max_learning_rate)) & ~search.has_interval
                larger = fnp.minimum(larger, scalar(max_learning_rate))
            inside = _interpolated(search.low, search.high, search.third)
            new, gradient = evaluated(fnp.where(search.has_interval, inside, larger))
            decrease, curvature = decrease_error(new), curvature_error(new)
            is_good = fnp.maximum(decrease, curvature) <= tol

            is_safe = (decrease <= tol) & (~search.has_interval | (new.value < search.safe.value))
            safe, safe_grad = _choice(is_safe, (new, gradient), (search.safe, search.safe_grad))
            interval, is_found = _narrowed(search, new, decrease)
            low, high, third = interval
            trials = next_count(search.trials)
            has_interval = search.has_interval | is_found | is_good
            is_done = is_good | (is_largest & ~has_interval)
            width = fnp.abs(search.high.step - search.low.step)
            is_narrow = search.has_interval & (width <= like(stepsize_precision, width))
            is_last = (trials >= max_linesearch_steps) | (is_narrow & (safe.step > 0))
            return _Search(
                *(trials, new, gradient, safe, safe_grad, low, high, third, has_interval),
                *(decrease, curvature, is_done, is_last & ~is_done),
            )

        infinite, no = scalar(np.inf), np.array(False)
        begin = _Search(
            *(first_count(), start, grad, start, grad, start, start, start, no),
            *(infinite, infinite, no, no),
        )
        end = while_loop(go_on, turn, begin)
        # Failures keep the best step with sufficient decrease, or the last one if it is finite.
        is_back = end.is_failed & ((end.safe.step > 0) | fnp.isinf(end.decrease_error))
        point, gradient = _choice(is_back, (end.safe, end.safe_grad), (end.last, end.grad))
        info = ZoomLinesearchInfo(end.trials, end.decrease_error, end.curvature_error)
        new = ScaleByZoomLinesearchState(point.step, point.value, gradient, info)
        return tree_map(lambda u: like(point.step, u) * u, updates), new

    return GradientTransformationExtraArgs(init, update)


def _narrowed(
    search: _Search, new: Point, decrease_error: Array
) -> tuple[tuple[Point, Point, Point], Array]:
    """The interval after a trial, with the third point; and whether this trial has found it."""
    is_second = search.has_interval | (search.trials > 0)
    other = _choice(search.has_interval, search.low, search.last)
    is_too_high = (decrease_error > 0) | (is_second & (new.value >= other.value))
    # While there is no interval it ends at the new point; the low end is where the loss is smaller.
    rises = (new.slope >= 0) & ~is_too_high
    grown = _choice(rises, (new, search.last), (search.last, new))
    # Otherwise the new point replaces an end: the high one, or the low one, which may become high.
    span = search.high.step - search.low.step
    is_crossed = (new.slope * span >= 0) & ~is_too_high
    low = _choice(is_too_high, search.low, new)
    high = _choice(is_too_high, new, _choice(is_crossed, search.low, search.high))
    replaced = _choice(is_too_high | is_crossed, search.high, search.low)
    interval = _choice(search.has_interval, (low, high, replaced), (*grown, grown[0]))
    return interval, is_too_high | rises


def _choice(condition: Array, a: Any, b: Any) -> Any:
    return tree_map(lambda x, y: fnp.where(condition, x, y), a, b)


def _interpolated(low: Point, high: Point, third: Point) -> Array:
    """A step inside of an interval: the minimum of a cubic, of a parabola, or the middle."""
    width = fnp.abs(high.step - low.step)
    left, right = fnp.minimum(low.step, high.step), fnp.maximum(low.step, high.step)

    def is_inside(step: Array, margin: float) -> Array:
        return (step > left + margin * width) & (step < right - margin * width)

    cubic, parabola = _cubic_minimum(low, high, third), _parabola_minimum(low, high)
    middle = 0.5 * (low.step + high.step)
    chosen = fnp.where(is_inside(parabola, 0.1), parabola, middle)
    return fnp.where(is_inside(cubic, 0.2), cubic, chosen)


def _parabola_minimum(a: Point, b: Point) -> Array:
    """Minimum of the parabola through both points, with the slope of the first.

    ``v + s d + B d**2`` with ``B = (v_b - v - s h) / h**2``, at ``d = -s / (2 B)``. Where that
    divides by zero the result is not a number, and is not taken.
    """
    h = b.step - a.step
    bend = _ratio(b.value - a.value - a.slope * h, h * h)
    return a.step - _ratio(a.slope, 2.0 * bend)


def _cubic_minimum(a: Point, b: Point, c: Point) -> Array:
    """Minimum of the cubic through three points, with the slope of the first.

    ``A d**3 + B d**2 + s d + v``: the values at ``h`` and ``k`` are two linear equations for ``A``
    and ``B``; its derivative vanishes at ``(-B + sqrt(B**2 - 3 A s)) / (3 A)``.
    """
    h, k = b.step - a.step, c.step - a.step
    at_h, at_k = b.value - a.value - a.slope * h, c.value - a.value - a.slope * k
    divisor = (h * k) ** 2 * (h - k)
    third = _ratio(k * k * at_h - h * h * at_k, divisor)
    second = _ratio(h * h * h * at_k - k * k * k * at_h, divisor)
    under = second * second - 3.0 * third * a.slope
    root = fnp.where(under >= 0, fnp.sqrt(fnp.where(under >= 0, under, 1.0)), np.nan)
    return a.step + _ratio(root - second, 3.0 * third)


def _ratio(a: Array, b: Array) -> Array:
    """``a / b``, and NaN for a division by zero, without a warning."""
    is_zero = b == 0
    return fnp.where(is_zero, np.nan, a / fnp.where(is_zero, 1.0, b))


def _shortfall(missed: Array) -> Array:
    """Amount by which a condition is violated; infinity if it is nan."""
    return fnp.where(fnp.isnan(missed), np.inf, fnp.maximum(missed, 0.0))


def _moved(params: Params, step: Array, updates: Updates) -> Params:
    return tree_map(lambda p, u: p + to_dtype(like(step, u) * u, dtype_of(p)), params, updates)


def _scalar_type(params: Params) -> Callable[[Any], Array]:
    """The conversion of scalars to the widest real dtype of the parameters."""
    dtypes = [real_dtype(dtype_of(p)) for p in tree_leaves(params)]
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    return lambda x: fnp.asarray(x, dtype=dtype)


def _loss(
    name: str,
    params: Params | None,
    value: Scalar | None,
    grad: Updates | None,
    value_fn: ValueFunction | None,
    extra_args: dict[str, Any],
) -> Callable[[Params], Scalar]:
    """The loss as a function of the parameters alone.

    Raises: ArgumentError: If something is missing.
    """
    given = {"params": params, "value": value, "grad": grad, "value_fn": value_fn}
    missing = [key for key, x in given.items() if x is None]
    if missing or value_fn is None:
        raise ArgumentError(
            f"optim.{name} needs the loss: call update(grads, state, params, value=value, "
            f"grad=grads, value_fn=loss). Missing: {', '.join(missing)}."
        )
    return _with_keywords(value_fn, extra_args)


def _with_keywords(function: ValueFunction, given: dict[str, Any]) -> Callable[..., Scalar]:
    """The function with those of the keywords that it takes."""
    parameters = signature_of(function).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    taken = {key: x for key, x in given.items() if takes_all or key in parameters}
    return lambda *args: function(*args, **taken)


def value_and_grad_from_state(value_fn: ValueFunction) -> Callable[..., tuple[Scalar, Updates]]:
    """`value_and_grad` that takes what a line search has stored, if it has.

    Args: value_fn: The loss, a function of the parameters first.

    Returns:
        A function of the arguments of ``value_fn`` and ``state=``, the state of an optimiser that
        ends with a line search. The loss must not depend on anything that has changed since.
    Raises: ArgumentError: If the state has no line search that stores gradients.

    Example:
        >>> f = lambda x: np.sum((x - 1.0) ** 2)
        >>> opt, x = fg.optim.lbfgs(), np.zeros(3)
        >>> state = opt.init(x)
        >>> for _ in range(3):
        ...     value, grad = fg.optim.value_and_grad_from_state(f)(x, state=state)
        ...     updates, state = opt.update(grad, state, x, value=value, grad=grad, value_fn=f)
        ...     x = fg.optim.apply_updates(x, updates)
        >>> print(x)
        [1. 1. 1.]
    """

    def function(params: Params, *args: Any, state: State, **kwargs: Any) -> tuple[Scalar, Updates]:
        stored = _stored(state)

        def computed() -> tuple[Scalar, Updates]:
            value, grad = value_and_grad(value_fn)(params, *args, **kwargs)
            return to_dtype(value, dtype_of(stored.value)), tree_map(
                lambda g, p: to_dtype(g, dtype_of(p)), grad, stored.grad
            )

        return cond(fnp.isfinite(stored.value), lambda: (stored.value, stored.grad), computed)

    return function


def _stored(state: State) -> ScaleByBacktrackingLinesearchState | ScaleByZoomLinesearchState:
    """The part of a state that belongs to a line search which stores gradients."""
    kinds = (ScaleByBacktrackingLinesearchState, ScaleByZoomLinesearchState)
    pending = [state]
    while pending:
        part = pending.pop()
        if isinstance(part, kinds) and part.grad is not None:
            return part
        if isinstance(part, tuple):
            pending.extend(part)
        elif isinstance(part, dict):
            pending.extend(part.values())
    raise ArgumentError(
        "optim.value_and_grad_from_state: the state holds no gradient of a line search. Use an "
        "optimiser such as optim.lbfgs(), or scale_by_backtracking_linesearch(store_grad=True)."
    )
