"""Reverse mode for loops of unknown length.

The loop is run again in segments of so many steps as there are rows for residuals; the last
segment, which ends with the loop, can be pulled at once. While it advances, states at the starts of
segments are kept on a stack, at distances that double whenever there are too many. The segments
before the last one are recorded once more, one after the other backwards, each from the last state
before it; on the way there, free places of the stack keep further states (Griewank and Walther,
Evaluating Derivatives, 2008, chapter 12). All of it is loops of one program, which is compiled like
any other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from funcgrad.base.pytree import tree_flatten, tree_unflatten
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.program import Program, evaluate
from funcgrad.errors import NonFiniteError
from funcgrad.higher_order.budget import WorthSaving
from funcgrad.higher_order.checkpoint import split_program
from funcgrad.higher_order.hoisting import hoisted
from funcgrad.higher_order.jit import scatter
from funcgrad.higher_order.progress import backward
from funcgrad.higher_order.scan import Residuals, Scan, cut
from funcgrad.observers.nonfinite import add_step
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.creation import Iota, Unset
from funcgrad.primitives.families import instantiate, zeros_like_aval
from funcgrad.primitives.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from funcgrad.primitives.shape import broadcast_to, reshape, shape_of
from funcgrad.transforms.linearize import linearize_flat
from funcgrad.transforms.programs import linearize_program, stage_closed

Mask = tuple[bool, ...]
Values = list[Any]

MEMORY = 1 << 22
"""Bytes of residuals, and of states, that a pull keeps if `LEAST_ROWS` and `LEAST_STATES` do not
need more."""

LARGE = 1 << 12
"""Bytes of residuals of a step from which on fewer are looked for, of which others are computed."""

DEAR = 0.5
"""Operations for each byte of a result from which on that is kept in any case."""

LEAST_ROWS, MOST_ROWS = 8, 1 << 20
"""Steps of a segment."""

SHOWN_ROWS = 1024
"""The most steps of a segment if a bar counts segments."""

LEAST_STATES, MOST_STATES = 32, 64
"""Places of the stack."""

_NEVER = np.int64(1 << 62)
"""The number of a segment that no loop reaches."""

_ZERO, _ONE = np.int64(0), np.int64(1)
_INT64 = np.dtype(np.int64)


class _Stack(NamedTuple):
    """States at the starts of segments.

    Attributes:
        count: How many there are.
        order: By place, where the state is; one place more, of a state that nobody needs.
        starts: By place, the number of the segment.
        states: For each carried value, its states.
    """

    count: Any
    order: Any
    starts: Any
    states: Values


class _Stretch(NamedTuple):
    """Segments that are recorded one after the other, so that the last one can be pulled.

    Attributes:
        first: The number of the first one.
        last: The number of the last one; `_NEVER` for the one that ends with the loop.
        apart: Distance of the segments whose states are kept.
    """

    first: Any
    last: Any
    apart: Any


class _Recorded(NamedTuple):
    """A segment.

    Attributes:
        count: How many steps it has.
        is_active: Whether the loop goes on behind it.
        state: Carried values behind it.
        rows: For each residual of a step, memory of the steps.
    """

    count: Any
    is_active: Any
    state: Values
    rows: list[Any]


class _Cotangents(NamedTuple):
    """Cotangents of carried values, and sums of those of constants."""

    state: Values
    consts: Values


class _Consts(NamedTuple):
    """Values that the condition, a step and a step backwards read in all steps."""

    condition: Values
    forward: Values
    backward: Values


def pull_program(loop: Any, active: Mask) -> Program:
    """The program of `WhilePull`, whose loops have the class of the given one.

    Args:
        loop: A `while_loop`.
        active: Which of its arguments have tangents.
    """
    return loop.body.memo(("pull", loop, active), lambda: _Pull(loop, active).program())


class _Pull:
    """Makes the program of a pull.

    Args:
        loop: The loop.
        active: Which of its arguments have tangents.
    """

    def __init__(self, loop: Any, active: Mask) -> None:
        self.loop = loop
        _, self.const_active, self.carry_active = loop.split(active)
        mask = (*self.const_active, *self.carry_active)
        step = Scan(loop.body, loop.n_body, len(self.carry_active), 1, False)
        avals = [a.strong() for a in loop.body.in_avals]
        self.const_avals, self.state_avals = avals[: loop.n_body], avals[loop.n_body :]
        k = len(self.state_avals)
        self.residuals = Residuals(step, mask, linearize_program(loop.body, mask))
        self.row_avals = self.residuals.forward.out_avals[k:]
        if _bytes_of(self.row_avals) > LARGE:
            few = Residuals(
                step, mask, split_program(loop.body, mask, WorthSaving(DEAR)).linearized
            )
            if 2 * _bytes_of(few.forward.out_avals[k:]) <= _bytes_of(self.row_avals):
                self.residuals, self.row_avals = few, few.forward.out_avals[k:]
        most = MOST_ROWS if loop.progress is None else SHOWN_ROWS
        self.n_rows = loop.checkpoint_every or _room(self.row_avals, LEAST_ROWS, most)
        self.n_states = loop.max_checkpoints or _room(self.state_avals, LEAST_STATES, MOST_STATES)

    def program(self) -> Program:
        """From arguments and cotangents of active results to those of active arguments."""
        loop = self.loop
        cts = [a for a, on in zip(self.state_avals, self.carry_active, strict=True) if on]
        asked = [a.strong() for a in loop.condition.in_avals[: loop.n_cond]]
        avals = [*asked, *self.const_avals, *self.state_avals, *cts]
        return stage_closed(self._run, avals, f"pull_{loop.body.name}")

    def _run(self, *args: Any) -> list[Any]:
        cond_consts, consts, state, cts = cut(
            args, self.loop.n_cond, self.loop.n_body, len(self.state_avals)
        )
        plan = self.residuals
        # Residuals that are the same in all steps are computed here.
        self.forward, forward_consts = hoisted(plan.forward, consts)
        invariant = [] if plan.prelude is None else evaluate(plan.prelude, consts)
        sources = {"const": consts, "invariant": invariant}
        fixed = [sources[kind][i] for kind, i in plan.fixed]
        self.backward, backward_consts = hoisted(self._step_back(), fixed)
        sums = [
            zeros_like_aval(a)
            for a, on in zip(self.const_avals, self.const_active, strict=True)
            if on
        ]
        self.consts = _Consts(cond_consts, forward_consts, backward_consts)
        found = self._reverse(state, _Cotangents(cts, sums))
        return [*found.consts, *found.state]

    def _step_back(self) -> Program:
        """A step backwards.

        From fixed residuals, cotangents, their sums and a row of residuals to cotangents and sums.
        """
        plan = self.residuals
        n_sums, n_dots = sum(self.const_active), sum(self.carry_active)
        tangent = Scan(plan.tangent, len(plan.fixed) + n_sums, n_dots, 1, False)
        linear = [False] * len(plan.fixed) + [True] * (n_sums + n_dots)
        return tangent.transposed_body((*linear, *(False for _ in plan.scanned)), ())[0]

    def _reverse(self, state: Values, cts: _Cotangents) -> _Cotangents:
        """Record and pull the segments, the last one first."""
        states = [_unset(self.n_states + 1, a, i) for i, a in enumerate(self.state_avals)]
        states = [_put(s, _ZERO, x) for s, x in zip(states, state, strict=True)]
        # Made by operations, and no constants: of those nobody knows that all processes have them.
        order = Iota((self.n_states + 1,), 0, _INT64).bind()
        stack = _Stack(_ONE, order, broadcast_to(_ZERO, shape_of(order)), states)
        is_active = evaluate(self.loop.condition, [*self.consts.condition, *state])[0]
        first = len(states)
        rows = [_unset(self.n_rows, a, first + i) for i, a in enumerate(self.row_avals)]
        segment = _Recorded(_ZERO, is_active, state, rows)

        def holds(stretch: _Stretch, *_: Any) -> Any:
            return p.greater_equal.bind(stretch.last, _ZERO)

        def step(
            consts: _Consts, stretch: _Stretch, stack: _Stack, segment: _Recorded, cts: _Cotangents
        ) -> tuple[Any, ...]:
            number, stack, segment = self._advance(consts, stretch, stack, segment)
            cts = self._pulled(consts, segment, cts)
            stretch, stack, state = self._before(number, stack)
            return stretch, stack, segment._replace(is_active=np.True_, state=state), cts

        start = (_Stretch(_ZERO, _NEVER, _ONE), stack, segment, cts)
        label = backward(self.loop.progress)
        return self._while(holds, step, self.consts, start, label)[-1]

    def _advance(
        self, consts: _Consts, stretch: _Stretch, stack: _Stack, segment: _Recorded
    ) -> tuple[Any, _Stack, _Recorded]:
        """Record a stretch: the number of its last segment, the stack, and that segment."""
        is_first = p.equal.bind(stretch.last, _NEVER)
        # The first time, places stay free for the way back.
        half = (self.n_states + 1) // 2
        most = p.select.bind(is_first, np.int64(half), np.int64(self.n_states))

        def holds(number: Any, _apart: Any, last: Any, _stack: Any, segment: _Recorded) -> Any:
            return p.bitwise_and.bind(segment.is_active, p.less_equal.bind(number, last))

        def step(
            given: Any, number: Any, apart: Any, last: Any, stack: _Stack, segment: _Recorded
        ) -> tuple[Any, ...]:
            consts, first, most = given
            passed = number - first
            is_due = p.bitwise_and.bind(
                p.not_equal.bind(passed, _ZERO), p.equal.bind(passed % apart, _ZERO)
            )
            is_full = p.bitwise_and.bind(is_due, p.greater_equal.bind(stack.count, most))
            apart = p.select.bind(is_full, 2 * apart, apart)
            stack = _thinned(is_full, stack, half)
            is_due = p.bitwise_and.bind(is_due, p.equal.bind(passed % apart, _ZERO))
            is_due = p.bitwise_and.bind(is_due, p.less.bind(stack.count, most))
            stack = _pushed(is_due, stack, number, segment.state)
            segment = self._recorded(consts, segment)
            return number + 1, apart, last, stack, segment

        start = (stretch.first, stretch.apart, stretch.last, stack, segment)
        ended = self._while(holds, step, (consts, stretch.first, most), start)
        number, _, _, stack, segment = ended
        return number - 1, stack, segment

    def _recorded(self, consts: _Consts, segment: _Recorded) -> _Recorded:
        """The next segment."""
        n_rows, k = np.int64(self.n_rows), len(self.state_avals)

        def holds(count: Any, is_active: Any, *_: Any) -> Any:
            return p.bitwise_and.bind(is_active, p.less.bind(count, n_rows))

        def step(consts: _Consts, count: Any, _is_active: Any, state: Any, rows: Any) -> Any:
            outs = evaluate(self.forward, [*consts.forward, *state])
            state, found = outs[:k], outs[k:]
            rows = [_put(row, count, x) for row, x in zip(rows, found, strict=True)]
            is_active = evaluate(self.loop.condition, [*consts.condition, *state])[0]
            return _Recorded(count + 1, is_active, state, rows)

        return _Recorded(*self._while(holds, step, consts, segment._replace(count=_ZERO)))

    def _pulled(self, consts: _Consts, segment: _Recorded, cts: _Cotangents) -> _Cotangents:
        """Cotangents before a segment."""

        def holds(count: Any, _: Any) -> Any:
            return p.less.bind(_ZERO, count)

        def step(given: Any, count: Any, cts: _Cotangents) -> tuple[Any, ...]:
            consts, rows = given
            row = [_taken(row, count - 1) for row in rows]
            found = evaluate(self.backward, [*consts, *cts.state, *cts.consts, *row])
            n = len(cts.state)
            return count - 1, _Cotangents(found[:n], found[n:])

        given = (consts.backward, segment.rows)
        return self._while(holds, step, given, (segment.count, cts))[1]

    def _before(self, number: Any, stack: _Stack) -> tuple[_Stretch, _Stack, Values]:
        """The stretch that ends before a segment, and the state that it starts from."""
        top = _taken(stack.starts, stack.count - 1)
        count = stack.count - p.convert(p.equal.bind(top, number), _INT64)
        stack = stack._replace(count=count)
        place = p.maximum.bind(count - 1, _ZERO)
        first, where = _taken(stack.starts, place), _taken(stack.order, place)
        used = (np.int64(self.n_states) - count + 1) // 2  # places, of those that are free
        apart = p.maximum.bind((number - first + used) // (used + 1), _ONE)
        state = [_taken(x, where) for x in stack.states]
        return _Stretch(first, number - 1, apart), stack, state

    def _while(
        self,
        holds: Callable[..., Any],
        step: Callable[..., Any],
        consts: Any,
        start: tuple[Any, ...],
        progress: str | None = None,
    ) -> Any:
        """A loop whose state is a tuple, and whose step is given constants first."""
        fixed, of_fixed = tree_flatten(consts)
        carry, of_carry = tree_flatten(start)
        n = len(fixed)

        def flat_step(*xs: Any) -> list[Any]:
            state = tree_unflatten(of_carry, xs[n:])
            return tree_flatten(step(tree_unflatten(of_fixed, xs[:n]), *state))[0]

        name = self.loop.body.name
        avals = [aval_of(x).strong() for x in (*fixed, *carry)]
        loop = replace(
            self.loop,
            condition=stage_closed(
                lambda *xs: [holds(*tree_unflatten(of_carry, xs))], avals[n:], name
            ),
            body=stage_closed(flat_step, avals, name),
            n_cond=0,
            n_body=n,
            progress=progress,
        )
        return tree_unflatten(of_carry, loop.bind(*fixed, *carry))


def _room(avals: Sequence[ShapedArray], least: int, most: int) -> int:
    """How often such values are kept."""
    return min(max(MEMORY // max(_bytes_of(avals), 1), least), most)


def _bytes_of(avals: Sequence[ShapedArray]) -> int:
    return sum(a.nbytes for a in avals)


def _unset(count: int, aval: ShapedArray, number: int) -> Any:
    return Unset((count, *aval.shape), aval.dtype, number).bind()


def _put(array: Any, place: Any, row: Any) -> Any:
    """The array with another row at a place."""
    shape = shape_of(row)
    zeros = (_ZERO,) * len(shape)
    return DynamicUpdateSlice().bind(array, reshape(row, (1, *shape)), place, *zeros)


def _taken(array: Any, place: Any) -> Any:
    """The row at a place."""
    shape = shape_of(array)[1:]
    zeros = (_ZERO,) * len(shape)
    return reshape(DynamicSlice((1, *shape)).bind(array, place, *zeros), shape)


def _thinned(is_full: Any, stack: _Stack, half: int) -> _Stack:
    """Every other state, if there are too many."""
    # The even ones, then the odd ones, then those that are free.
    n_even, i = (half + 1) // 2, Iota(shape_of(stack.order), 0, _INT64).bind()
    places = p.select.bind(p.less.bind(i, np.int64(n_even)), 2 * i, 2 * (i - n_even) + 1)
    places = p.select.bind(p.less.bind(i, np.int64(half)), places, i)
    order, starts = (
        p.select.bind(is_full, Gather((0,), "clip").bind(x, places), x)
        for x in (stack.order, stack.starts)
    )
    count = p.select.bind(is_full, (stack.count + 1) // 2, stack.count)
    return stack._replace(count=count, order=order, starts=starts)


def _pushed(is_due: Any, stack: _Stack, number: Any, state: Values) -> _Stack:
    """With a further state, if it is due."""
    spare = np.int64(shape_of(stack.order)[0] - 1)
    place = p.select.bind(is_due, stack.count, spare)
    where = _taken(stack.order, place)
    states = [_put(s, where, x) for s, x in zip(stack.states, state, strict=True)]
    count = stack.count + p.convert(is_due, _INT64)
    return _Stack(count, stack.order, _put(stack.starts, place, number), states)


def pull_stepwise(loop: Any, active: Mask, primals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """The same, one operation at a time: errors tell the step of the loop."""
    cond_consts, consts, state = loop.split(primals)
    _, const_active, carry_active = loop.split(active)
    name, steps = loop.body.name, []
    is_active = (*const_active, *carry_active)
    try:
        while evaluate(loop.condition, [*cond_consts, *state])[0]:
            state, linear = linearize_flat(
                lambda *xs: evaluate(loop.body, xs), [*consts, *state], is_active, name
            )
            steps.append(linear)
    except NonFiniteError as error:
        add_step(error, len(steps), name)
        raise
    carried = scatter(cts, carry_active)
    consts = list(zip(consts, const_active, strict=True))
    sums = [instantiate(None, x) if on else None for x, on in consts]
    while steps:
        try:
            found = steps.pop().pull(carried)
        except NonFiniteError as error:
            add_step(error, len(steps), name)
            raise
        carried = [
            instantiate(c, x) if on else None
            for c, x, on in zip(found[len(sums) :], state, carry_active, strict=True)
        ]
        sums = [s if c is None else s + c for s, c in zip(sums, found, strict=False)]
    return [x for x in (*sums, *carried) if x is not None]
