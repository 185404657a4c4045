"""Solutions of initial value problems: the control of steps, and derivatives of what it chose.

First the steps are found, by one ``while`` loop that knows no derivatives: their begins, lengths
and values. Derivatives are those of the accepted steps with lengths held constant (the *discrete
adjoint*): the control of steps is never differentiated, and what it chose differs from a smooth
function of the arguments only within the tolerance. Where the ends of the interval have tangents,
all steps move with the begin, and the last one changes its length.

With states ``Y[n + 1] = step(T[n], H[n], Y[n])``, tangents run forwards and cotangents backwards
along the recorded ones, each by one loop in which a step is linearized where it was made; implicit
ones are not solved again::

    dY[n + 1] = step'(dT[n], dH[n], dY[n])
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.base.pytree import tree_map
from funcgrad.base.records import dataclass
from funcgrad.base.tables import keep
from funcgrad.core.avals import aval_of
from funcgrad.core.program import Program, evaluate
from funcgrad.higher_order.custom import bind_rules
from funcgrad.higher_order.jit import Jit, scatter
from funcgrad.higher_order.linear_call import LinearCall, push_linearized, zeros
from funcgrad.higher_order.rules import Rules
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.objects import is_traced
from funcgrad.scipy.integrate.matrices import Dense
from funcgrad.scipy.integrate.stepping import Begin, Controls, Method, Piece, System, rms, row_of
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.linearize import linearize_flat
from funcgrad.transforms.programs import stage_closed

Values = Sequence[Any]

MOST_PROGRAMS = 64
"""The most programs that are cached for an equation, one for each number of output times."""

RUNNING, FAILED, STOPPED = 0, -1, 1
"""How an integration stands: it goes on or came to its end, steps became too short or too many,
an event ended it."""


@dataclass(frozen=True, eq=False)
class Equation:
    """An equation with its method.

    Args:
        slope: Program of the values that it depends on, then ``t`` and ``y``.
        method: One step.
        max_steps: The most steps that are recorded.
        matrices: How Jacobians are represented.
        jacobian: A program like that of the slope, for the Jacobian, if one was given.
        varies: Whether the Jacobian can be another one elsewhere.
        ending: From values, ``t`` and ``y`` to functions whose changes of sign end it.
        signs: For each of them the direction of changes that count, 0 for both.
        counts: For each of them the number of changes that end it.
        programs: Programs of it that were made, by what they are and the types of their inputs.
    """

    slope: Program
    method: Method
    max_steps: int
    matrices: Dense
    jacobian: Program | None = None
    varies: bool = True
    ending: Callable[..., Any] | None = None
    signs: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    programs: dict[Hashable, Program] = field(default_factory=dict)

    def run(self, what: Hashable, function: Callable[..., list[Any]], inputs: Values) -> list[Any]:
        """Results of a function of values, whose program is kept and compiled once.

        Args:
            what: Name of the function, with all that it depends on besides its arguments.
            function: From values to values.
            inputs: Its arguments.
        """
        avals = tuple(aval_of(x).strong() for x in inputs)
        key = (what, avals)
        program = self.programs.get(key)
        if program is None:
            program = stage_closed(function, avals, "solve_ivp")
            keep(self.programs, key, program, MOST_PROGRAMS)
        return Jit(program).bind(*inputs)

    def at(self, consts: Values) -> System:
        """The equation as functions of time and value."""
        given = self.jacobian

        def slope(t: Any, y: Any) -> Any:
            return evaluate(self.slope, [*consts, t, y])[0]

        if given is None:
            return System(slope, self.matrices)
        return System(
            slope, self.matrices, lambda t, y: evaluate(given, [*consts, t, y])[0], self.varies
        )

    def stepping(self, piece: Piece, consts: Values) -> Callable[..., list[Any]]:
        """The end of a step near one that was made, as a function of all that it depends on."""
        follow = self.method.following(self.at(consts), piece)
        return lambda t, h, state, *consts: [follow(self.at(consts), t, h, state)]

    def between(self, consts: Values, piece: Piece, target: Any) -> Any:
        """The value at a time within a step."""
        return self.method.between(self.at(consts), piece, (target - piece.t) / piece.h)


def first_length(
    equation: Equation, controls: Controls, f: Any, t: Any, y: Any, k: Any, tf: Any
) -> Any:
    """A length for the first step (Hairer, Norsett, Wanner, section II.4)."""
    scale = controls.atol + abs(y) * controls.rtol
    d0, d1 = rms(y / scale), rms(k / scale)
    is_small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = fnp.where(is_small, 1e-6, 0.01 * d0 / fnp.where(is_small, 1.0, d1))
    h0 = fnp.minimum(h0, tf - t)
    d2 = rms((f(t + h0, y + h0 * k) - k) / scale) / fnp.where(h0 > 0, h0, 1.0)
    largest = fnp.maximum(d1, d2)
    is_flat = largest <= 1e-15
    h1 = fnp.where(
        is_flat,
        fnp.maximum(1e-6, h0 * 1e-3),
        (0.01 / fnp.where(is_flat, 1.0, largest)) ** (-equation.method.exponent),
    )
    length = fnp.minimum(fnp.minimum(100 * h0, h1), controls.max_step)
    given = controls.first_step
    return fnp.astype(fnp.where(fnp.isnan(given), length, given), t.dtype)


@dataclass(eq=False)
class AdaptiveLoop:
    """The loop that finds steps.

    State: time, the method's state there and its memory, next length, whether the last attempt
    failed, numbers of accepted steps, of evaluations and of factorizations, status; the last
    accepted step; the ending functions there and how often they changed sign.
    """

    equation: Equation
    controls: Controls
    consts: Values
    tf: Any
    max_steps: int | None = None

    def __post_init__(self) -> None:
        self.method = self.equation.method
        self.system = self.equation.at(self.consts)

    def start(self, t: Any, y: Any) -> dict[str, Any]:
        f = self.system.slope
        k = f(t, y)
        h = first_length(self.equation, self.controls, f, t, y, k, self.tf)
        first = self.method.first(self.system, t, y, h)
        state = {
            "t": t,
            "y": first,
            "memory": self.method.remember(self.system, t, y, k, h),
            "h": h,
            "failed": np.bool_(False),
            "steps": np.int64(0),
            "work": np.array([2, 0, 0]),
            "status": np.int64(RUNNING),
            "begin": t,
            "length": fnp.ones_like(t),
            "before": first,
            "notes": self.method.no_notes(),
        }
        if self.equation.ending is not None:
            state["ending"] = self.equation.ending(self.consts, t, y)
            state["counts"] = np.zeros(len(self.equation.counts), np.int64)
        return state

    def goes_on(self, state: dict[str, Any], target: Any) -> Any:
        is_on = (state["t"] < target) & (state["status"] == RUNNING)
        return is_on if self.max_steps is None else is_on & (state["steps"] < self.max_steps)

    def last(self, state: dict[str, Any]) -> Piece:
        """The last accepted step."""
        return Piece(state["begin"], state["length"], state["before"], state["y"], state["notes"])

    def attempt(self, state: dict[str, Any]) -> dict[str, Any]:
        t, y = state["t"], state["y"]
        least = 10 * np.finfo(t.dtype).eps * abs(t)
        wanted = fnp.minimum(state["h"], self.controls.max_step)
        too_short = state["failed"] & (wanted < least)
        wanted = fnp.maximum(wanted, least)
        is_last = t + wanted >= self.tf
        h = fnp.where(is_last, self.tf - t, wanted)
        begin = Begin(t, h, y, state["memory"], h != state["h"], state["failed"])
        found = self.method.attempt(self.system, begin, self.controls)
        is_good = found.is_good & ~too_short

        def chosen(new: Any, old: Any) -> Any:
            return fnp.where(is_good, new, old)

        new = {
            "t": chosen(fnp.where(is_last, self.tf, t + h), t),
            "y": chosen(found.state, y),
            "memory": found.memory,
            "h": found.length,
            "failed": ~is_good,
            "steps": state["steps"] + is_good,
            "work": state["work"] + found.counts,
            "status": fnp.where(too_short, FAILED, state["status"]),
            "begin": chosen(t, state["begin"]),
            "length": chosen(h, state["length"]),
            "before": chosen(y, state["before"]),
            "notes": tuple(map(chosen, found.notes, state["notes"])),
        }
        if self.equation.ending is not None:
            self._look_for_end(state, new, is_good)
        return new

    def _look_for_end(self, state: Any, new: dict[str, Any], is_good: Any) -> None:
        ending = self.equation.ending
        assert ending is not None  # it is asked for only then
        y = self.method.value(new["y"])
        values = fnp.where(is_good, ending(self.consts, new["t"], y), state["ending"])
        counts = state["counts"] + crossed(state["ending"], values, np.array(self.equation.signs))
        is_over = fnp.any(counts >= np.array(self.equation.counts))
        new["ending"], new["counts"] = values, counts
        new["status"] = fnp.where(is_over & (new["status"] == RUNNING), STOPPED, new["status"])


def crossed(old: Any, new: Any, signs: Any) -> Any:
    """Mask of the functions that changed their sign, in a direction that counts."""
    up = (old <= 0) & (new >= 0) & (signs >= 0)
    down = (old >= 0) & (new <= 0) & (signs <= 0)
    return up | down


class Solution:
    """Values at given times, as a function of all that they depend on.

    Inputs: the times, begin and end of the interval, what controls steps, the first value, and what
    the slope depends on. Results: values, one row for each time, the time that was reached, numbers
    of accepted steps and of evaluations, status.
    """

    def __init__(self, equation: Equation) -> None:
        self.equation = equation
        self.rules = Rules("solve_ivp", fun=self.primal, jvp=self._jvp, jvp_title="solve_ivp")

    def __call__(self, *inputs: Any) -> list[Any]:
        return bind_rules(self.rules, inputs)

    def primal(self, *inputs: Any) -> list[Any]:
        """Without derivatives nothing is recorded."""
        return self.equation.run("solution", self._found, inputs)

    def _found(self, *inputs: Any) -> list[Any]:
        times, t0, tf, *controls, y0 = inputs[:8]
        consts = inputs[8:]
        loop = AdaptiveLoop(self.equation, Controls(*controls), consts, tf)

        def to_next(state: dict[str, Any], target: Any) -> Any:
            state = lax.while_loop(lambda s: loop.goes_on(s, target), loop.attempt, state)
            value = self.equation.between(consts, loop.last(state), target)
            return state, masked(value, target <= state["t"])

        state, values = lax.scan(to_next, loop.start(t0, y0), times)
        state = lax.while_loop(lambda s: loop.goes_on(s, tf), loop.attempt, state)
        return [values, state["t"], state["steps"], state["work"], finished(state, tf)]

    def _jvp(self, inputs: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        outs, dots = push_linearized(self._differentiable, inputs, tangents, "solve_ivp")
        return outs, [*dots[:2], None, None, None]

    def _differentiable(self, *inputs: Any) -> list[Any]:
        times, t0, tf, *controls, y0 = inputs[:8]
        consts = inputs[8:]
        steps = record(self.equation, Controls(*controls), t0, tf, y0, consts)
        return [
            values_at(self.equation, steps, consts, times),
            steps.end,
            steps.count,
            steps.work,
            steps.status,
        ]


def masked(value: Any, is_known: Any) -> Any:
    """A value, or nan where the integration did not get, and nan for its derivatives."""
    return fnp.where(is_known, value, value * value.dtype.type(np.nan))


def finished(state: dict[str, Any], tf: Any) -> Any:
    """The status at the end: an integration that did not get there failed."""
    is_short = (state["status"] == RUNNING) & (state["t"] < tf)
    return fnp.where(is_short, FAILED, state["status"])


@dataclass(frozen=True, eq=False)
class Steps:
    """Accepted steps, with derivatives.

    Args:
        times: Begins of steps; infinite after the last.
        lengths: Their lengths.
        states: States of the method at their begins, and at the end of the last.
        notes: What their attempts noted.
        end: Where the last one ends.
        count: How many there are.
        work: Numbers of evaluations of the slope, of Jacobians, and of factorizations.
        status: As it stands.
    """

    times: Any
    lengths: Any
    states: Any
    notes: tuple[Any, ...]
    end: Any
    count: Any
    work: Any
    status: Any

    def piece(self, i: Any) -> Piece:
        """One of the steps, or the first of several by indices; the begin, if there are none."""

        def row(x: Any) -> Any:
            return fnp.take(x, i, axis=0)

        after = fnp.take(self.states, fnp.minimum(i + 1, self.count), axis=0)
        notes = tuple(map(row, self.notes))
        return Piece(row(self.times), row(self.lengths), row(self.states), after, notes)


def record(
    equation: Equation, controls: Controls, t0: Any, tf: Any, y0: Any, consts: Values
) -> Steps:
    """Find the steps and attach their derivatives."""
    n = equation.max_steps
    while True:
        steps = _record(equation, controls, t0, tf, y0, consts, n)
        known = [steps.count, steps.status]
        if any(is_traced(x) for x in known) or not (known[0] == n and known[1] == FAILED):
            return steps
        n *= 4  # where numbers are known, there is room for every number of steps


def _record(
    equation: Equation, controls: Controls, t0: Any, tf: Any, y0: Any, consts: Values, n: int
) -> Steps:
    fixed = [stop_gradient.bind(x) for x in (t0, tf, y0, *consts)]
    given = [*map(stop_gradient.bind, controls.values()), *fixed]
    found = equation.run(("steps", n), partial(_find, equation, n), given)
    (times, lengths, states, t, count, work, status, h), notes = found[:8], tuple(found[8:])
    # All steps move with the begin of the interval; the last ends where the interval does.
    moved = t0 - fixed[0]
    longer = fnp.where(t >= fixed[1], (tf - fixed[1]) - moved, 0.0 * moved)
    times = times + moved
    lengths = lengths + fnp.where(np.arange(n) == count - 1, longer, 0.0 * longer)
    first = equation.method.first(equation.at(consts), t0, y0, h)
    states = _Attached(equation)(states, count, *notes, times, lengths, first, *consts)
    return Steps(times, lengths, states, notes, t + moved + longer, count, work, status)


def _find(equation: Equation, n: int, *inputs: Any) -> list[Any]:
    """The steps, at most ``n``, without derivatives."""
    controls, (t0, tf, y0, *consts) = Controls(*inputs[:4]), inputs[4:]
    loop = AdaptiveLoop(equation, controls, consts, tf, n)
    begin = loop.start(t0, y0)
    rows = {"times": begin["t"], "lengths": begin["length"], "notes": begin["notes"]}
    # After the last step there is no time to be found, and before the first one its state.
    rows["times"] = fnp.full_like(begin["t"], np.inf)
    kept = tree_map(lambda x: fnp.full(n, x), rows)
    kept["states"] = fnp.broadcast_to(begin["y"], (n + 1, *begin["y"].shape))

    def attempt(state: Any) -> Any:
        state, kept = state
        new = loop.attempt(state)
        i = state["steps"]
        # A step that is not accepted is written over by the next one.
        made = {"times": state["t"], "lengths": new["length"], "notes": new["notes"]}
        states = lax.dynamic_update_index_in_dim(kept["states"], new["y"], i + 1, 0)
        places = {name: kept[name] for name in made}
        kept = tree_map(lambda x, v: lax.dynamic_update_index_in_dim(x, v, i, 0), places, made)
        return new, kept | {"states": states}

    kept["times"] = lax.dynamic_update_index_in_dim(kept["times"], t0, 0, 0)
    state, kept = lax.while_loop(lambda s: loop.goes_on(s[0], tf), attempt, (begin, kept))
    steps = [kept["times"], kept["lengths"], kept["states"]]
    end = [state["t"], state["steps"], state["work"], finished(state, tf)]
    return [*steps, *end, begin["h"], *kept["notes"]]


def values_at(equation: Equation, steps: Steps, consts: Values, times: Any) -> Any:
    """Values at times, one row for each."""
    last = fnp.maximum(steps.count - 1, 0)
    place = fnp.searchsorted(stop_gradient.bind(steps.times), stop_gradient.bind(times)) - 1
    pieces = steps.piece(fnp.clip(place, 0, last))

    def values(end: Any, times: Any, *inputs: Any) -> list[Any]:
        parts, consts = inputs[: 4 + len(pieces.notes)], inputs[4 + len(pieces.notes) :]

        def value(row: Any) -> Any:
            target, t, h, state, after, *notes = row
            piece = Piece(t, h, state, after, tuple(notes))
            return masked(equation.between(consts, piece, target), target <= end)

        return [lax.map(value, (times, *parts))]

    parts = [pieces.t, pieces.h, pieces.state, pieces.end, *pieces.notes]
    return equation.run("values", values, [steps.end, times, *parts, *consts])[0]


class _Attached:
    """Recorded states, with the derivatives of the steps that they come from."""

    def __init__(self, equation: Equation) -> None:
        self.equation = equation
        self.n_notes = len(equation.method.no_notes())
        self.rules = Rules("steps", fun=self._fun, jvp=self._jvp, jvp_title="steps of solve_ivp")

    def __call__(self, *inputs: Any) -> Any:
        return bind_rules(self.rules, inputs)[0]

    def _fun(self, states: Any, *rest: Any) -> list[Any]:
        return [states]

    def _jvp(self, inputs: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        outs = bind_rules(self.rules, inputs)
        n = 2 + self.n_notes
        linear = inputs[n:]
        times, lengths, _, *consts = linear
        given = list(tangents[n:])
        # Derivatives in times and lengths cost next to nothing.
        is_active = [i < 3 or t is not None for i, t in enumerate(given)]
        residuals = [outs[0], *inputs[1:n], times, lengths, *consts]
        dots = [
            zeros(aval_of(x).strong()) if t is None else t
            for x, t, on in zip(linear, given, is_active, strict=True)
            if on
        ]
        along = _Along(self.equation, tuple(is_active))
        call = LinearCall(
            "steps of solve_ivp",
            along.forward,
            along.backward,
            len(residuals),
            tuple(aval_of(x).strong() for x in (*residuals, *dots)),
            (aval_of(outs[0]).strong(),),
        )
        return outs, call.bind(*residuals, *dots)


class _Along:
    """Propagation of tangents and cotangents along recorded steps.

    Args:
        equation: Whose steps.
        is_active: Which of times, lengths, first state and further values have tangents.
    """

    def __init__(self, equation: Equation, is_active: tuple[bool, ...]) -> None:
        self.equation = equation
        self.is_active = is_active
        self.n_notes = len(equation.method.no_notes())

    def _full(self, found: Values) -> list[Any]:
        """Tangents of all arguments of a step, ``None`` where there are none."""
        return scatter(found, self.is_active)

    def _split(self, residuals: Values) -> tuple[Any, Any, list[Any]]:
        """The number of steps, one of them with all that it depends on, and the values beside it.

        Functions of one step are made where it was made, so that derivatives of its derivatives
        come out right.
        """
        states, count, *rest = residuals
        notes, (times, lengths, *consts) = rest[: self.n_notes], rest[self.n_notes :]

        def at(i: Any) -> tuple[Callable[..., list[Any]], list[Any]]:
            t, h, state = (row_of(x, i) for x in (times, lengths, states))
            made = tuple(row_of(x, i) for x in notes)
            piece = Piece(t, h, state, row_of(states, i + 1), made)
            return self.equation.stepping(piece, consts), [t, h, state, *consts]

        return count, at, consts

    def forward(self, residuals: Values, linear: Values) -> list[Any]:
        n = len(residuals)
        return self.equation.run(
            ("forward", self.is_active),
            lambda *xs: self._forward(xs[:n], xs[n:]),
            [*residuals, *linear],
        )

    def _forward(self, residuals: Values, linear: Values) -> list[Any]:
        count, at, _ = self._split(residuals)
        d_times, d_lengths, d_first, *d_consts = self._full(linear)
        moved = fnp.zeros(residuals[0].shape, residuals[0].dtype)
        moved = lax.dynamic_update_index_in_dim(moved, d_first, 0, 0)

        def push(state: Any) -> Any:
            i, dot, moved = state
            step, point = at(i)
            dots = [row_of(d_times, i), row_of(d_lengths, i), dot, *d_consts]
            _, (dot,) = jvp_flat(step, point, dots, "step")
            return i + 1, dot, lax.dynamic_update_index_in_dim(moved, dot, i + 1, 0)

        start = (np.int64(0), d_first, moved)
        return [lax.while_loop(lambda s: s[0] < count, push, start)[2]]

    def backward(self, residuals: Values, cts: Values) -> list[Any]:
        if cts[0] is None:
            return [None] * sum(self.is_active)
        return self.equation.run(
            ("backward", self.is_active),
            lambda *xs: self._backward(xs[:-1], xs[-1:]),
            [*residuals, cts[0]],
        )

    def _backward(self, residuals: Values, cts: Values) -> list[Any]:
        count, at, consts = self._split(residuals)
        active = [x for x, on in zip(consts, self.is_active[3:], strict=True) if on]
        times = residuals[2 + self.n_notes]

        def pull(state: Any) -> Any:
            i, ct, ct_times, ct_lengths, sums = state
            step, point = at(i)
            _, linear = linearize_flat(step, point, list(self.is_active), "step")
            found = linear.pull([ct])
            found = [c for c, on in zip(found, self.is_active, strict=True) if on]
            ct_time, ct_length, ct, *rest = [
                fnp.zeros(x.shape, x.dtype) if c is None else c
                for c, x in zip(found, [*point[:3], *active], strict=True)
            ]
            return (
                i - 1,
                ct + row_of(cts[0], i),
                lax.dynamic_update_index_in_dim(ct_times, ct_time, i, 0),
                lax.dynamic_update_index_in_dim(ct_lengths, ct_length, i, 0),
                [s + c for s, c in zip(sums, rest, strict=True)],
            )

        nothing = fnp.zeros(times.shape, times.dtype)
        start = (
            count - 1,
            row_of(cts[0], count),
            nothing,
            nothing,
            [fnp.zeros(aval_of(x).shape, aval_of(x).dtype) for x in active],
        )
        _, ct, ct_times, ct_lengths, sums = lax.while_loop(lambda s: s[0] >= 0, pull, start)
        return [ct_times, ct_lengths, ct, *sums]
