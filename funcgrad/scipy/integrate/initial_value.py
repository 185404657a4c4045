"""Initial value problems: SciPy's `solve_ivp` and `odeint`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.jacobians import jacfwd
from funcgrad.api.sparse_derivatives import colors_of
from funcgrad.base.digests import digest
from funcgrad.base.pytree import register_pytree_node, tree_structure
from funcgrad.core.avals import aval_of
from funcgrad.core.program import evaluate
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.staging import arguments_tree, join_captured, name_of, stage_once
from funcgrad.numpy.promotion import as_value
from funcgrad.patterns.coloring import Coloring, coloring
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.objects import flatten_held, is_traced, unwrapped
from funcgrad.scipy.integrate.adjoint import AdjointSolution
from funcgrad.scipy.integrate.matrices import Dense, Sparse
from funcgrad.scipy.integrate.methods import METHODS
from funcgrad.scipy.integrate.stepping import Controls, Method
from funcgrad.scipy.integrate.trajectory import (
    FAILED,
    STOPPED,
    Equation,
    Solution,
    Steps,
    crossed,
    record,
    values_at,
)
from funcgrad.scipy.results import Result, register_result

Events = Callable[..., Any] | Sequence[Callable[..., Any]] | None

LEAST_UNKNOWNS = 64
"""Unknowns from which factors in a band are worth the question for the pattern."""

FEW_NUMBERS = 64
"""Elements of arrays of parameters, which change from call to call."""

MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    FAILED: "Steps became too short or too many before the end of the integration interval.",
    STOPPED: "A termination event occurred.",
}


class OdeResult(Result):
    """The result of `solve_ivp`, by SciPy's names.

    They are ``t``, ``y``, ``sol``, ``t_events``, ``y_events``, ``nfev``, ``njev``, ``nlu``,
    ``status``, ``message`` and ``success``; and ``sparsity``, a `funcgrad.sparsity.Coloring`, where
    the Jacobian was found to be sparse.
    """

    @property
    def success(self) -> Any:
        """Whether the end was reached, or an event."""
        return self["status"] >= 0

    @property
    def message(self) -> str:
        """Meaning of the status."""
        status = self["status"]
        return "" if is_traced(status) else MESSAGES[int(status)]


register_result(OdeResult)


class OdeSolution:
    """A solution between its ends, as a function of time.

    Args:
        equation: The equation, of time times the direction.
        steps: The accepted steps.
        consts: What the slope depends on.
        direction: 1, or -1 if time runs backwards.

    Example:
        >>> fg.scipy.integrate.solve_ivp(
        ...     lambda t, y: -y, (0.0, 1.0), np.ones(1), dense_output=True
        ... ).sol(0.5)
        array([0.60615459])
    """

    def __init__(self, equation: Equation, steps: Steps, consts: Any, direction: Any) -> None:
        self.equation = equation
        self.steps = steps
        self.consts = consts
        self.direction = direction

    def __call__(self, t: Any) -> Any:
        """The value at a time, or at each of several: then times are the last axis."""
        times = as_value(t, "OdeSolution")
        flat = fnp.reshape(times * self.direction, (-1,))
        found = values_at(self.equation, self.steps, self.consts, flat)
        return found[0] if fnp.ndim(times) == 0 else found.T


_PARTS = ("times", "lengths", "states", "notes", "end", "count", "work", "status")


def _flatten_solution(solution: OdeSolution) -> tuple[list[Any], Equation]:
    parts = [getattr(solution.steps, name) for name in _PARTS]
    return [parts, solution.consts, solution.direction], solution.equation


def _unflatten_solution(equation: Equation, children: Any) -> OdeSolution:
    parts, consts, direction = children
    return OdeSolution(equation, Steps(*parts), consts, direction)


register_pytree_node(OdeSolution, _flatten_solution, _unflatten_solution)


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Events = None,
    vectorized: bool = False,
    args: Any = None,
    *,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    first_step: Any = None,
    max_step: Any = np.inf,
    jac: Any = None,
    jac_sparsity: Any = None,
    max_steps: int | None = None,
    gradient: str = "discrete",
) -> Any:
    """Solve ``dy/dt = fun(t, y)`` from a first value, as `scipy.integrate.solve_ivp`.

    It is differentiable in ``y0``, in ``args`` and all else that ``fun`` depends on, in the ends of
    the interval and in ``t_eval``; and it is compiled under `jit`, as one loop. Derivatives are
    those of the accepted steps, whose lengths are held constant: the control of steps is not
    differentiated.

    Args:
        fun: ``fun(t, y, *args)``, the slope; it may return a list.
        t_span: Begin and end.
        y0: First value, a vector.
        method: ``"RK23"``, ``"RK45"``, ``"DOP853"``, or, for stiff equations, ``"BDF"`` or
            ``"Radau"``.
        t_eval: Times at which the solution is wanted, in order. Without them it is given where
            steps end, which needs values that are known: not under `jit` or `vmap`.
        dense_output: Whether the result has ``sol``, the solution as a function of time.
        events: Functions ``event(t, y, *args)`` whose zeros are looked for, with the attributes
            ``terminal`` and ``direction``. They need values that are known.
        vectorized: Accepted for SciPy's signature.
        args: Further arguments of ``fun`` and events, pytrees.
        rtol: Relative tolerance.
        atol: Absolute tolerance, a number or a vector.
        first_step: First length; by default it is chosen.
        max_step: The longest step.
        jac: For ``"BDF"`` and ``"Radau"`` the Jacobian of ``fun`` with respect to ``y``, a matrix
            or ``jac(t, y, *args)``; SciPy's sparse matrices are made dense. By default it is the
            exact derivative of ``fun``, which derivatives take in any case. From 64 unknowns on
            it is asked whether that is sparse: then its entries are computed by few products, and
            factored in a narrow band if the pattern fills one, or else in an order that keeps
            factors sparse.
        jac_sparsity: A matrix with entries where the Jacobian has some, if a smaller one is known
            than what is found from ``fun``. It is compared with the derivative at the first value.
        max_steps: Under `jit`, the most steps that derivatives have room for; beyond, results are
            nan and ``status`` is -1. By default 4096, less for long vectors.
        gradient: ``"discrete"``; or ``"adjoint"``, which solves the adjoint equation back in time
            in reverse mode: it keeps no steps and is as exact as the tolerance, and has neither
            forward mode nor derivatives of ``sol`` and events; not for stiff equations, whose
            solutions explode there.
    Returns: A result with SciPy's fields. Under `jit`, where an integration failed, ``y`` is nan
        from there on.

    Raises:
        ArgumentError: If the method is not known, values that must be known are traced, or
            ``jac_sparsity`` misses an entry.
        ShapeError: If ``y0`` is no vector, or the slope has another shape.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> from funcgrad.scipy.integrate import solve_ivp
        >>> def after(rate):
        ...     decay = lambda t, y: -rate * y
        ...     return solve_ivp(decay, (0, 1), [1.0], t_eval=[1.0], rtol=1e-9, atol=1e-12).y[0, 0]
        >>> print(f"{after(2.0):.6f} {fg.grad(after)(2.0):.6f}")
        0.135335 -0.135335
    """
    problem = _Problem(
        fun, t_span, y0, () if args is None else args, _listed(events), jac, jac_sparsity
    )
    if gradient not in ("discrete", "adjoint"):
        raise ArgumentError(
            f"solve_ivp: gradient must be 'discrete' or 'adjoint', got {gradient!r}."
        )
    stepper = _method(method)
    if gradient == "adjoint" and stepper.rows:
        raise ArgumentError(
            f"solve_ivp: gradient='adjoint' solves the equation back in time, where solutions of "
            f"stiff equations explode, so {method!r} does not have it. Take gradient='discrete'."
        )
    if max_steps is None:
        size = max(problem.y0.size, 1) * max(stepper.rows, 1)
        max_steps = int(np.clip(2**22 // size, 256, 4096))
    equation = problem.equation(stepper, max_steps)
    given = (rtol, atol, max_step, np.nan if first_step is None else first_step)
    dtype = problem.t0.dtype
    controls = Controls(*(fnp.astype(fnp.asarray(as_value(x, "solve_ivp")), dtype) for x in given))
    if t_eval is not None and not dense_output and events is None:
        return _at_times(problem, equation, controls, t_eval, gradient)
    return _at_steps(problem, equation, controls, t_eval, dense_output, _listed(events))


def _method(name: Any) -> Method:
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    advice = (
        "LSODA is SciPy's own; for stiff equations take 'BDF', which it uses for them, or 'Radau'."
        if name == "LSODA"
        else "For stiff equations take 'BDF' or 'Radau'."
    )
    raise ArgumentError(
        f"solve_ivp: the method must be one of {', '.join(map(repr, METHODS))}, got {name!r}. "
        f"{advice}"
    )


class _Problem:
    """The arguments of `solve_ivp` as programs and values.

    Time is multiplied with the direction, so that it always runs forwards.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        t_span: Any,
        y0: Any,
        args: Any,
        events: Sequence[Callable[..., Any]],
        jac: Any,
        jac_sparsity: Any,
    ) -> None:
        what = f"solve_ivp({name_of(fun)})"
        self.y0 = fnp.asarray(as_value(y0, "solve_ivp"))
        if self.y0.ndim != 1:
            raise ShapeError(
                f"{what}: y0 must be a vector, got {aval_of(self.y0)}. Let "
                "flatten_util.ravel_pytree make one, or use funcgrad.experimental.ode.odeint."
            )
        if self.y0.dtype.kind not in "fc":
            self.y0 = self.y0.astype(np.float64)
        dtype = np.finfo(self.y0.dtype).dtype
        t0, tf = (fnp.astype(fnp.asarray(as_value(t, "solve_ivp")), dtype) for t in t_span)
        self.direction = stop_gradient.bind(fnp.where(tf < t0, -1.0, 1.0).astype(dtype))
        self.t0, self.tf = t0 * self.direction, tf * self.direction
        if not isinstance(args, tuple | list):
            raise ArgumentError(
                f"{what}: args must be a tuple of further arguments, got {type(args).__name__}. "
                "Write args=(a,)."
            )
        self.leaves, tree = flatten_held(tuple(args))
        self.terminal = [i for i, e in enumerate(events) if getattr(e, "terminal", False)]
        self.events = events
        scalar = tree_structure(0)
        in_tree = arguments_tree(tree, scalar, scalar, scalar)
        avals = [aval_of(x).strong() for x in (*self.leaves, self.direction, t0, self.y0)]
        shape, y_dtype = self.y0.shape, self.y0.dtype

        def slope(args: Any, direction: Any, t: Any, y: Any) -> Any:
            found = fnp.asarray(as_value(fun(t * direction, y, *args), what))
            if found.shape != shape:
                raise ShapeError(
                    f"{what}: the slope must have the shape of y0, {shape}, got {aval_of(found)}."
                )
            return fnp.astype(found * direction, y_dtype)

        def values(args: Any, direction: Any, t: Any, y: Any) -> Any:
            return fnp.stack(
                [fnp.reshape(fnp.asarray(e(t * direction, y, *args)), ()) for e in events]
            )

        n = self.y0.size
        self.varies = jac is None or callable(jac)

        def jacobian(args: Any, direction: Any, t: Any, y: Any) -> Any:
            found = fnp.asarray(_dense(jac(t * direction, y, *args) if self.varies else jac))
            if found.shape != (n, n):
                raise ShapeError(
                    f"{what}: jac must have the shape {(n, n)}, got {aval_of(found)}. It is the "
                    "matrix of the derivatives of fun with respect to y."
                )
            return fnp.astype(found * direction, y_dtype)

        staged = [stage_once(slope, in_tree, avals, what)]
        if events:
            staged.append(stage_once(values, in_tree, avals, f"events of {what}"))
        if jac is not None:
            staged.append(stage_once(jacobian, in_tree, avals, f"jac of {what}"))
        self.programs, captured = join_captured(staged)
        self.jacobian = None if jac is None else self.programs[-1]
        self.consts = [*captured, *map(unwrapped, self.leaves), self.direction]
        self.jac_sparsity = jac_sparsity

    def matrices(self, method: Method) -> Dense:
        """How Jacobians are represented: where they are sparse by their entries."""
        program = self.programs[0]
        size = self.y0.size
        colors = None if not method.rows or self.jacobian is not None else self._colors()
        if colors is None:
            return program.memo("dense", lambda: Dense(size))
        places = colors.pattern.pattern
        key = digest(places.indptr.tobytes() + places.indices.tobytes())
        return program.memo(("sparse", key), lambda: Sparse(colors))

    def _colors(self) -> Coloring | None:
        """A colouring of the Jacobian, if it is sparse: it is the same for other few numbers."""
        is_known = [_is_known(x) for x in self.consts]

        def slope(y: Any, t: Any, *others: Any) -> Any:
            rest = iter(others)
            pairs = zip(self.consts, is_known, strict=True)
            consts = [x if known else next(rest) for x, known in pairs]
            return evaluate(self.programs[0], [*consts, t, y])[0]

        others = [x for x, known in zip(self.consts, is_known, strict=True) if not known]
        if self.jac_sparsity is not None:
            # Where values are known, it is compared with the derivative.
            jacfwd(slope, sparse=self.jac_sparsity)(self.y0, self.t0, *others)
            return coloring(self.jac_sparsity)
        known = (np.asarray(x) for x, on in zip(self.consts, is_known, strict=True) if on)
        types = [aval_of(x) for x in others]
        return self.programs[0].memo(
            ("colors", *is_known, *(digest(x.tobytes()) for x in known)),
            lambda: colors_of(slope, self.y0, self.t0, *types, least=LEAST_UNKNOWNS),
        )

    def equation(self, method: Method, max_steps: int) -> Equation:
        matrices = self.matrices(method)
        parts = (self.programs[0], method, max_steps, matrices, self.jacobian, self.varies)
        if not self.terminal:
            # The equation keeps the objects alive whose identities are in its key.
            key = ("equation", *map(id, (method, matrices, self.jacobian)), max_steps, self.varies)
            return self.programs[0].memo(key, lambda: Equation(*parts))
        chosen = np.array(self.terminal)
        found = [self.events[i] for i in self.terminal]

        def ending(consts: Any, t: Any, y: Any) -> Any:
            return self.event_values(consts, t, y)[chosen]

        return Equation(
            *parts,
            ending,
            tuple(float(getattr(e, "direction", 0)) for e in found),
            tuple(int(e.terminal) for e in found),  # type: ignore[attr-defined]
        )

    def event_values(self, consts: Any, t: Any, y: Any) -> Any:
        """The values of all events."""
        return evaluate(self.programs[1], [*consts, t, y])[0]


def _is_known(x: Any) -> bool:
    """Whether a pattern may depend on the contents of an array: not on those of a few numbers."""
    aval = aval_of(x)
    return not is_traced(x) and (aval.dtype.kind != "f" or aval.size > FEW_NUMBERS)


def _dense(matrix: Any) -> Any:
    """A Jacobian as an array: SciPy's sparse ones are accepted."""
    return matrix.toarray() if scipy.sparse.issparse(matrix) else as_value(matrix, "solve_ivp")


def _listed(events: Events) -> list[Callable[..., Any]]:
    if events is None:
        return []
    return [events] if callable(events) else list(events)


def _at_times(
    problem: _Problem, equation: Equation, controls: Controls, t_eval: Any, gradient: str
) -> OdeResult:
    """The solution at times that are given."""
    times = fnp.asarray(as_value(t_eval, "solve_ivp"))
    scaled = fnp.astype(times, problem.t0.dtype) * problem.direction
    _check_times(scaled, problem)
    solve = AdjointSolution if gradient == "adjoint" else Solution
    interval = (problem.t0, problem.tf)
    values, end, _, work, status = solve(equation)(
        scaled, *interval, *controls.values(), problem.y0, *problem.consts
    )
    if not is_traced(status) and status == FAILED and not is_traced(scaled):
        known = scaled <= stop_gradient.bind(end)
        times, values = times[known], values[known]
    return _result(equation, times, values.T, work, status)


def _check_times(times: Any, problem: _Problem) -> None:
    if times.ndim != 1:
        raise ShapeError(f"solve_ivp: t_eval must be a vector, got {aval_of(times)}.")
    known = [times, problem.t0, problem.tf]
    if any(is_traced(x) for x in known) or not times.size:
        return
    if np.any(np.diff(times) <= 0):
        raise ArgumentError("solve_ivp: t_eval must be sorted in the direction of integration.")
    if times[0] < problem.t0 or times[-1] > problem.tf:
        raise ArgumentError("solve_ivp: values in t_eval are not within t_span.")


def _at_steps(
    problem: _Problem,
    equation: Equation,
    controls: Controls,
    t_eval: Any,
    dense_output: bool,
    events: list[Callable[..., Any]],
) -> OdeResult:
    """The solution where steps end, and all that needs the steps."""
    steps = record(equation, controls, problem.t0, problem.tf, problem.y0, problem.consts)
    count = steps.count
    needs_count = t_eval is None or bool(events)
    if is_traced(count) and needs_count:
        wanted = "events" if events else "the times at which steps end"
        raise ArgumentError(
            f"solve_ivp: {wanted} are as many as the values say, which are traced here. Pass "
            "t_eval=..., the times at which the solution is wanted, and no events."
        )
    solution = OdeSolution(equation, steps, problem.consts, problem.direction)
    found: dict[str, Any] = {"t_events": None, "y_events": None}
    end, status = steps.end, steps.status
    if needs_count:
        n = int(count)
        ends = fnp.concatenate([steps.times[:n], fnp.reshape(end, (1,))])
        values = equation.method.value(steps.states[: n + 1])
        if events:
            found, end, status = _events(problem, equation, steps, ends, values, events)
            kept = int(np.sum(np.asarray(stop_gradient.bind(ends)) < stop_gradient.bind(end)))
            ends = fnp.concatenate([ends[:kept], fnp.reshape(end, (1,))])
            values = fnp.concatenate([values[:kept], solution(end * problem.direction)[None]])
    if t_eval is None:
        times = ends * problem.direction
    else:
        times = fnp.asarray(as_value(t_eval, "solve_ivp"))
        scaled = fnp.astype(times, problem.t0.dtype) * problem.direction
        _check_times(scaled, problem)
        if needs_count:
            known = np.asarray(stop_gradient.bind(scaled)) <= stop_gradient.bind(end)
            times, scaled = times[known], scaled[known]
        values = values_at(equation, steps, problem.consts, scaled)
    sol = solution if dense_output else None
    return _result(equation, times, values.T, steps.work, status, sol=sol, **found)


def _result(equation: Equation, t: Any, y: Any, work: Any, status: Any, **more: Any) -> OdeResult:
    fields = {"sol": None, "t_events": None, "y_events": None} | more
    if equation.matrices.coloring is not None:
        fields["sparsity"] = equation.matrices.coloring
    return OdeResult(t=t, y=y, **fields, nfev=work[0], njev=work[1], nlu=work[2], status=status)


def _events(
    problem: _Problem,
    equation: Equation,
    steps: Steps,
    ends: Any,
    values: Any,
    events: list[Callable[..., Any]],
) -> tuple[dict[str, Any], Any, Any]:
    """Times and values of all events, where the integration ends, and its status."""
    consts = problem.consts
    fixed = [stop_gradient.bind(x) for x in consts]
    points = zip(stop_gradient.bind(ends), stop_gradient.bind(values), strict=True)
    g = np.array([problem.event_values(fixed, t, y) for t, y in points])
    signs = np.array([float(getattr(e, "direction", 0)) for e in events])
    changes = np.asarray(crossed(g[:-1], g[1:], signs))
    roots: list[list[Any]] = [[] for _ in events]
    for i, k in zip(*np.nonzero(changes), strict=True):
        roots[k].append(_root(problem, equation, steps, ends, int(i), int(k)))
    end, status = steps.end, steps.status
    for k in problem.terminal:
        count = int(events[k].terminal)  # type: ignore[attr-defined]
        if len(roots[k]) >= count and stop_gradient.bind(roots[k][count - 1]) <= end:
            end, status = roots[k][count - 1], np.int64(STOPPED)
    t_events, y_events = [], []
    for row in roots:
        row = [t for t in row if stop_gradient.bind(t) <= stop_gradient.bind(end)]
        times = fnp.stack(row) if row else np.zeros(0, steps.times.dtype)
        t_events.append(times * problem.direction)
        found = values_at(equation, steps, consts, times)
        y_events.append(found if row else np.zeros((0, *values.shape[1:]), values.dtype))
    return {"t_events": t_events, "y_events": y_events}, end, status


def _root(problem: _Problem, equation: Equation, steps: Steps, ends: Any, i: int, k: int) -> Any:
    """The time in a step at which an event is zero, by bisection, with its derivatives."""
    piece = steps.piece(i)
    consts = problem.consts

    def g(time: Any) -> Any:
        value = equation.between(consts, piece, time)
        return problem.event_values(consts, time, value)[k]

    def bisect(g: Callable[[Any], Any], _: Any) -> Any:
        low, high = stop_gradient.bind(ends[i]), stop_gradient.bind(ends[i + 1])
        rises = g(high) > g(low)

        def halve(_: Any, state: Any) -> Any:
            low, high = state
            middle = 0.5 * (low + high)
            is_before = (g(middle) < 0) == rises
            return fnp.where(is_before, middle, low), fnp.where(is_before, high, middle)

        return lax.fori_loop(0, 60, halve, (low, high))[1]

    guess = stop_gradient.bind(ends[i + 1])
    return lax.custom_root(g, guess, bisect, lambda g, y: y / g(fnp.ones_like(y)))


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple[Any, ...] = (),
    Dfun: Any = None,
    col_deriv: Any = 0,
    full_output: Any = 0,
    ml: Any = None,
    mu: Any = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: Any = 0.0,
    hmax: Any = 0.0,
    hmin: Any = 0.0,
    ixpr: Any = 0,
    mxstep: Any = 0,
    mxhnil: Any = 0,
    mxordn: Any = 12,
    mxords: Any = 5,
    printmessg: Any = 0,
    tfirst: bool = False,
    *,
    method: str = "DOP853",
) -> Any:
    """Solution of ``dy/dt = func(y, t)`` at given times, as `scipy.integrate.odeint`.

    The method is one of `solve_ivp`'s; what tells SciPy's LSODA of Jacobians and orders is accepted
    without effect.

    Args:
        func: ``func(y, t, *args)``, the slope.
        y0: Value at the first time, a vector; a number is a vector of one.
        t: Times, ascending or descending.
        args: Further arguments of ``func``.
        Dfun: Without effect, as are ``col_deriv``, ``ml``, ``mu``, ``tcrit``, ``hmin``, ``ixpr``,
            ``mxhnil``, ``mxordn``, ``mxords`` and ``printmessg``.
        col_deriv: Without effect.
        full_output: Whether the result is a pair with a dict.
        ml: Without effect.
        mu: Without effect.
        rtol: Relative tolerance; by default 1.49e-8.
        atol: Absolute tolerance; by default 1.49e-8.
        tcrit: Without effect.
        h0: First length, 0 to have it chosen.
        hmax: Longest step, 0 for no limit.
        hmin: Without effect.
        ixpr: Without effect.
        mxstep: Under `jit`, the most steps that derivatives have room for, 0 for the default.
        mxhnil: Without effect.
        mxordn: Without effect.
        mxords: Without effect.
        printmessg: Without effect.
        tfirst: Whether ``func`` takes the time first.
        method: As in `solve_ivp`; ``"BDF"`` or ``"Radau"`` for stiff equations.
    Returns: Values, one row for each time.
    Example: print(fg.scipy.integrate.odeint(lambda y, t: -y, [1.0], np.array([0.0, 1.0])).round(6))
        -> [[1.      ]
            [0.367879]]
    """
    times = fnp.asarray(as_value(t, "odeint"))
    fun = func if tfirst else lambda t, y, *rest: func(y, t, *rest)
    found = solve_ivp(
        fun,
        (times[0], times[-1]),
        fnp.atleast_1d(y0),
        method,
        times,
        args=args,
        rtol=1.49e-8 if rtol is None else rtol,
        atol=1.49e-8 if atol is None else atol,
        first_step=h0 or None,
        max_step=hmax or np.inf,
        max_steps=mxstep or None,
    )
    return (found.y.T, {"nfe": found.nfev, "message": found.message}) if full_output else found.y.T
