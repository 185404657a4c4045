"""A loop that ends when its condition does, and its derivatives.

Forward mode carries tangents along. Reverse mode cannot be one static program, because nobody
knows how many steps there will be; so the derivative of a loop is an operation of its own, in three
forms that are closed under differentiation, transposition and batching:

* ``push : x, dx -> J(x) dx``, linear in ``dx``;
* ``pull : x, ct -> J(x)^T ct``, linear in ``ct``, the transpose of ``push``;
* ``pull' : x, ct, dx, dct -> d(pull)``, linear in ``(dx, dct)``.

With the loop that carries tangents, ``F : (x, dx) -> (f(x), J(x) dx)``, the last one is the
x-part of the pull of F at the cotangents ``(dct, ct)``, because second derivatives are symmetric;
so no order of differentiation needs anything new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress, zip_longest
from typing import Any

import numpy as np

from funcgrad.base.ranks import demand_agreement, ranks_in
from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import divided_axis
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear, mapped_length
from funcgrad.core.program import Program, Var, axis_names_of, evaluate
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.errors import NonFiniteError
from funcgrad.higher_order.checked_programs import CheckedProgram, check_program
from funcgrad.higher_order.checks import Failure, nothing
from funcgrad.higher_order.dividing import divided_while
from funcgrad.higher_order.jit import (
    Rounds,
    executable_of,
    is_jit_disabled,
    run_program,
    sampled_rounds,
    scatter,
    stepwise,
)
from funcgrad.higher_order.lanes import broadcast_lanes, choose, count_if, gate, shield
from funcgrad.higher_order.linearity import nonlinear_equation, parted, together
from funcgrad.higher_order.progress import counted_parts, progress_bar
from funcgrad.higher_order.reversal import pull_program, pull_stepwise
from funcgrad.higher_order.scan import aval_of_linear, cut, dense_tangents
from funcgrad.higher_order.series import taylor_of_while
from funcgrad.higher_order.switch import Switch
from funcgrad.higher_order.updates import update_if
from funcgrad.higher_order.while_lanes import Lanes
from funcgrad.lowering import Call, Extern, Form
from funcgrad.lowering import While as WhileForm
from funcgrad.observers.checks import REPEATED, Kinds
from funcgrad.observers.limits import check_time
from funcgrad.observers.nonfinite import add_step
from funcgrad.primitives.elementwise import add, bitwise_and, convert, less
from funcgrad.primitives.families import instantiate, zeros_like_aval
from funcgrad.primitives.reductions import ReduceAny
from funcgrad.transforms.programs import (
    LinearizedProgram,
    batch_program,
    jvp_program,
    linearize_program,
    separate_program,
    stage_closed,
)

Mask = tuple[bool, ...]


@dataclass(frozen=True)
class While(Primitive):
    """Apply ``body`` to the carry while ``condition`` holds.

    Arguments: constants of the condition, constants of the body, the initial carry.

    Attributes:
        condition: From its constants and the carry to one bool.
        body: From its constants and the carry to the carry.
        n_cond: Number of constants of the condition.
        n_body: Number of constants of the body.
        checkpoint_every: Steps per chunk when the loop is reversed, or ``None``.
        max_checkpoints: Largest number of states that are kept then, or ``None``.
        progress: Label of a bar that counts steps, or ``None``.
        lanes: The lanes that the loop was made of which has these programs.
    """

    condition: Program
    body: Program
    n_cond: int
    n_body: int
    checkpoint_every: int | None = None
    max_checkpoints: int | None = None
    progress: str | None = None
    lanes: Lanes | None = None

    multiple_results = True
    is_composite = True
    taylor = taylor_of_while
    divided = divided_while
    makes_no_nans = True
    may_run_forever = True

    @property
    def is_effectful(self) -> bool:  # type: ignore[override]
        return self.body.is_effectful or self.condition.is_effectful

    @property
    def shows_progress(self) -> bool:
        return self.progress is not None

    @property
    def own_lanes(self) -> Lanes | None:
        """The lanes that it was made of, unless it has been changed since."""
        programs = None if self.lanes is None else self.lanes.programs
        return self.lanes if programs == (self.condition, self.body) else None

    @property
    def carried(self) -> slice:
        return slice(self.n_cond + self.n_body, None)

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants of the condition, constants of the body, carry."""
        a, b = self.n_cond, self.n_cond + self.n_body
        return list(args[:a]), list(args[a:b]), list(args[b:])

    # Evaluation.

    def impl(self, *args: Any) -> Any:
        if is_jit_disabled():
            rounds = None if self.condition.is_effectful else sampled_rounds(self.body)
            with using_trace(EVAL):
                if rounds is not None:
                    return self._run_sampled(rounds, args)
                condition, body = self.condition, self.body
                return self._run(
                    lambda *xs: evaluate(condition, xs), lambda *xs: evaluate(body, xs), args
                )
        if ranks_in(axis_names_of(self)):
            with using_trace(EVAL):
                return self._run(self._agreed, self._step_of_processes(), args)
        if self.progress is not None:
            return self._run_in_parts(self.progress, args)
        program = self.body.memo(
            ("while", self),
            lambda: stage_closed(
                lambda *xs: self.bind(*xs), [aval_of(x).strong() for x in args], self.body.name
            ),
        )
        return executable_of(program)(*args)

    def _step_of_processes(self) -> Callable[..., Any]:
        """Return the body as a function, compiled if no processes meet in loops inside of it.

        Such a loop looks at its own condition. If the body were compiled, it would have to be known
        without values that conditions agree.
        """
        inner = (e.primitive for e in self.body.equations if e.primitive.is_composite)
        if any(ranks_in(axis_names_of(p)) for p in inner):
            return lambda *xs: evaluate(self.body, xs)
        return executable_of(self.body)

    def _agreed(self, *args: Any) -> list[Any]:
        """The condition, which must be equal in all processes that meet in the loop."""
        (on,) = executable_of(self.condition)(*args)
        demand_agreement(axis_names_of(self), int(on), "while_loop: the condition")
        return [on]

    def impl_inside_plan(self, *args: Any) -> Any:
        if self.progress is not None:
            return self._run_in_parts(self.progress, args)
        return self._run(executable_of(self.condition), executable_of(self.body), args)

    def _run_in_parts(self, label: str, args: Sequence[Any]) -> list[Any]:
        """The loop until so many steps have been taken, until it ends before that."""
        if self.condition.is_effectful:  # parts would ask it again
            return self._run(executable_of(self.condition), executable_of(self.body), args)
        part = self.body.memo(("while part", self), self._part)
        cond_consts, body_consts, carry = self.split(args)
        count = np.int64(0)
        with using_trace(EVAL), progress_bar(label) as bar:
            for steps in counted_parts():
                end = np.int64(count + steps)
                before = count
                *carry, count = part.impl(*cond_consts, end, *body_consts, *carry, before)
                bar.update(int(count - before))
                if count < end:
                    return carry
        raise AssertionError("there are always more parts")

    def _run_sampled(self, rounds: Rounds, args: Sequence[Any]) -> list[Any]:
        """The loop, of which rounds that nobody sees are run by a compiled one."""
        part = self.body.memo(("while part", self), self._part)
        cond_consts, body_consts, carry = self.split(args)
        while True:
            n = rounds.unseen
            if n:
                with stepwise(False):
                    end, start = np.int64(n), np.int64(0)
                    *carry, count = part.impl(*cond_consts, end, *body_consts, *carry, start)
                rounds.taken += int(count)
                if count < n:
                    return carry
            if not evaluate(self.condition, [*cond_consts, *carry])[0]:
                return [np.asarray(x).copy()[()] for x in carry]
            check_time(self.body.described)
            carry = evaluate(self.body, [*body_consts, *carry])
            rounds.seen()

    def _part(self) -> While:
        """The loop that counts its steps, and ends after a given number of them."""
        n_cond = self.n_cond

        def condition(*args: Any) -> list[Any]:
            consts, (end,), state = cut(args, n_cond, 1)
            *carry, count = state
            holds = evaluate(self.condition, [*consts, *carry])[0]
            return [bitwise_and.bind(holds, less.bind(count, end))]

        def step(*args: Any) -> list[Any]:
            *rest, count = args
            return [*evaluate(self.body, rest), add.bind(count, np.int64(1))]

        number = ShapedArray((), np.dtype(np.int64))
        avals = [a.strong() for a in self.condition.in_avals]
        asked = [*avals[:n_cond], number, *avals[n_cond:], number]
        taken = [*(a.strong() for a in self.body.in_avals), number]
        return replace(
            self,
            condition=stage_closed(condition, asked, self.condition.name),
            body=stage_closed(step, taken, self.body.name),
            n_cond=n_cond + 1,
            progress=None,
        )

    def _run(self, condition: Any, body: Any, args: Sequence[Any]) -> list[Any]:
        """The loop in Python."""
        if self.progress is None:
            return self._run_steps(condition, body, args, None)
        with progress_bar(self.progress) as bar:
            return self._run_steps(condition, body, args, bar)

    def _run_steps(self, condition: Any, body: Any, args: Sequence[Any], bar: Any) -> list[Any]:
        cond_consts, body_consts, carry = self.split(args)
        count = 0
        try:
            while condition(*cond_consts, *carry)[0]:
                check_time(self.body.described)
                carry = body(*body_consts, *carry)
                count += 1
                if bar is not None:
                    bar.update()
        except NonFiniteError as error:
            add_step(error, count, self.body.name)
            raise
        return [np.asarray(x).copy()[()] for x in carry]

    def advance_and_choose(
        self, is_active: Any, consts: Sequence[Any], carry: Sequence[Any]
    ) -> list[Any]:
        """One more step, whose results are not taken after the end of the loop."""
        outs = evaluate(self.body, [gate(is_active, x) for x in (*consts, *carry)])
        return [choose(is_active, new, old) for new, old in zip(outs, carry, strict=True)]

    def advance_if(self, is_active: Any, consts: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
        """One more step, or none after the end of the loop, where a step might never end."""
        inputs = self.body.inputs
        stay = Program(inputs, [], inputs[self.n_body :], f"stay_{self.body.name}")
        index = convert(is_active, np.dtype(np.int64))
        return list(Switch((stay, self.body)).bind(index, *consts, *carry))

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return [a.strong() for a in self.body.out_avals]

    def lower(self, *avals: ShapedArray) -> Form:
        if self.progress is not None:
            return Extern()
        lanes = self.own_lanes
        if lanes is None or lanes.has_flags:
            return WhileForm(self.n_cond, self.n_body, lanes is not None)
        return Call(self.body.memo(("with flags", self), lambda: lanes.carrying_flags(self)))

    # Differentiation.

    def active(self, given: Sequence[bool]) -> Mask:
        """Arguments that have tangents: the fixed point over the carry."""
        return (*(False,) * self.n_cond, *self._reached(given, linearize_program)[self.n_cond :])

    def _reached(
        self, given: Sequence[bool], split: Callable[[Program, Mask], LinearizedProgram]
    ) -> Mask:
        """Arguments that are marked, once those of the carry have come around."""
        cond_consts, consts, carry = self.split(given)
        while True:
            out = split(self.body, (*consts, *carry)).is_active_out
            joined = [x or y for x, y in zip(carry, out, strict=True)]
            if joined == carry:
                return (*cond_consts, *consts, *carry)
            carry = joined

    def with_tangents(self, active: Mask) -> While:
        """The loop that carries tangents too: each kind of argument followed by its tangents."""
        return self.body.memo(("while jvp", active, self), lambda: self._with_tangents(active))

    def _with_tangents(self, active: Mask) -> While:
        _, const_active, carry_active = self.split(active)
        derived = jvp_program(self.body, (*const_active, *carry_active))
        k = len(carry_active)
        counts = (self.n_body, sum(const_active), k)

        def run(*args: Any) -> list[Any]:
            consts, d_consts, carry, d_carry = cut(args, *counts)
            outs = evaluate(derived.program, [*consts, *carry, *d_consts, *d_carry])
            dots = scatter(outs[k:], derived.is_active_out)
            return [*outs[:k], *dense_tangents(carry_active, outs[:k], dots)]

        avals = [a.strong() for a in self.body.in_avals]
        consts, carry = avals[: self.n_body], avals[self.n_body :]
        d_consts = [a for a, on in zip(consts, const_active, strict=True) if on]
        d_carry = [a for a, on in zip(carry, carry_active, strict=True) if on]
        body = stage_closed(run, [*consts, *d_consts, *carry, *d_carry], f"jvp_{self.body.name}")
        c = self.condition
        unused = [Var(a) for a in d_carry]
        condition = Program([*c.inputs, *unused], c.equations, c.outputs, c.name, c.constants)
        return replace(self, condition=condition, body=body, n_body=self.n_body + len(d_consts))

    def interleaved(self, primals: Sequence[Any], dots: Sequence[Any], active: Mask) -> list[Any]:
        """Arguments of the loop with tangents."""
        cond_consts, consts, carry = self.split(primals)
        n = sum(self.split(active)[1])
        return [*cond_consts, *consts, *dots[:n], *carry, *dots[n:]]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        active = self.active([t is not None for t in tangents])
        dots = dense_tangents(active, primals, tangents)
        outs = self.with_tangents(active).bind(*self.interleaved(primals, dots, active))
        carry_active = self.split(active)[2]
        k = len(carry_active)
        return outs[:k], scatter(outs[k:], carry_active)

    def linearize(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Any, Any]:
        active = self.active([t is not None for t in tangents])
        outs = self.bind(*primals)
        carry_active = self.split(active)[2]
        if not any(carry_active):
            return outs, [None] * len(outs)
        dots = dense_tangents(active, primals, tangents)
        out_dots = WhilePush(self, active).bind(*primals, *dots)
        return outs, scatter(out_dots, carry_active)

    def separate(self, args: Sequence[Value], is_linear: Sequence[bool]) -> list[Value] | None:
        """A step that is linear in what has no values is its derivative at zero."""
        parts = self.linear_parts(tuple(is_linear))
        if parts is None or any(nonlinear_equation(*part) for part in parts):
            return None
        mask = self._reached(is_linear, separate_program)
        carry = self.split(mask)[2]
        primals, tangents = parted(args, is_linear)
        outs = self.bind(*primals)
        if not any(carry):
            return outs
        dots = WhilePush(self, mask).bind(*primals, *dense_tangents(mask, primals, tangents))
        return together(outs, scatter(dots, carry))

    def linear_parts(self, is_linear: Mask) -> list[tuple[Program, Mask]] | None:
        mask = self._reached(is_linear, separate_program)
        cond_consts, consts, carry = self.split(mask)
        asked = separate_program(self.condition, (*cond_consts, *carry))
        return None if any(asked.is_active_out) else [(self.body, (*consts, *carry))]

    # Checks.

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Failure]]:
        condition, body = (check_program(p, kinds) for p in (self.condition, self.body))
        sites = condition.sites + body.sites
        if not sites:
            loop = replace(self, condition=condition.program, body=body.program)
            return loop.bind(*args), ()
        cond_consts, consts, carry = self.split(args)
        before = nothing(sites)
        if condition.sites:
            asked = evaluate(condition.program, [*cond_consts, *carry])
            before = before.then_of(condition.failure(asked))
        key = ("while checked", kinds, self)
        loop = self.body.memo(key, lambda: self._checked_loop(condition, body))
        outs = loop.bind(*cond_consts, *cond_consts, *consts, *carry, *before.flat)
        k = len(carry)
        return outs[:k], [Failure.of_flat(sites, outs[k:])]

    def _checked_loop(self, condition: CheckedProgram, body: CheckedProgram) -> While:
        """The loop that also carries what was found wrong first.

        A condition returns nothing but whether to go on, so the body asks it too.
        """
        sites = condition.sites + body.sites
        k = body.n_outputs

        def step(*args: Any) -> list[Any]:
            cond_consts, consts, carry, found = cut(args, self.n_cond, self.n_body, k)
            outs = evaluate(body.program, [*consts, *carry])
            failure = Failure.of_flat(sites, found)
            if body.sites:
                failure = failure.then_of(body.failure(outs), len(condition.sites))
            if condition.sites:
                asked = evaluate(condition.program, [*cond_consts, *outs[:k]])
                failure = failure.then_of(condition.failure(asked))
            return [*outs[:k], *failure.flat]

        found = [aval_of(x).strong() for x in nothing(sites).flat]
        asked = [a.strong() for a in self.condition.in_avals]
        taken = [*asked[: self.n_cond], *(a.strong() for a in self.body.in_avals), *found]
        return replace(
            self,
            condition=stage_closed(
                lambda *xs: evaluate(condition.program, xs[: len(asked)])[:1],
                [*asked, *found],
                self.condition.name,
            ),
            body=stage_closed(step, taken, self.body.name),
            n_body=self.n_cond + self.n_body,
        )

    # Batching.

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = mapped_length(args, dims)
        is_mapped = tuple(d is not None for d in dims)
        lanes = self.own_lanes if divided_axis() is None else None
        both = None if lanes is None else lanes.of_both(args, is_mapped, size)
        if lanes is not None and both is not None:
            outs, at = lanes.loop.batch(both[0], [0 if on else None for on in both[1]])
            return lanes.divided(outs, at, size), at
        loop, mask = self.batched(is_mapped, size)
        wanted = broadcast_lanes(args, is_mapped, mask, size)
        outs = loop.bind(*self.batched_args(loop, wanted))
        return outs, [0 if on else None for on in self.split(mask)[2]]

    def batched_args(self, loop: While, args: Sequence[Any]) -> list[Any]:
        """Arguments of the loop over lanes, whose body may need the constants of the condition."""
        extra = loop.n_body - self.n_body
        a = self.n_cond
        return [*args[:a], *args[:extra], *args[a:]]

    def batched(self, mask: Mask, size: int) -> tuple[While, Mask]:
        """The loop over lanes, and which of its arguments have a lane axis."""
        key = ("while batch", mask, size, divided_axis(), self)
        return self.body.memo(key, lambda: self._batched(mask, size))

    def _batched(self, mask: Mask, size: int) -> tuple[While, Mask]:
        cond_mask, const_mask, carry_mask = self.split(mask)
        # Carried values that no step changes are the same whenever a lane ends.
        is_kept = [
            out is var
            for out, var in zip(self.body.outputs, self.body.inputs[self.n_body :], strict=True)
        ]
        while True:
            cond = batch_program(self.condition, (*cond_mask, *carry_mask), size)
            body = batch_program(self.body, (*const_mask, *carry_mask), size)
            by_lane = cond.is_mapped_out[0]
            if by_lane and divided_axis() is not None and not all(const_mask):
                # Processes take different numbers of steps, and would miss sums of cotangents.
                cond_mask, const_mask = ([True] * len(m) for m in (cond_mask, const_mask))
                continue
            joined = [
                x or y or (by_lane and not kept)
                for x, y, kept in zip(carry_mask, body.is_mapped_out, is_kept, strict=True)
            ]
            if joined == carry_mask:
                break
            carry_mask = joined
        full = (*cond_mask, *const_mask, *carry_mask)
        avals = [*body.program.in_avals]
        if not by_lane:

            def step(*xs: Any) -> list[Any]:
                outs = evaluate(body.program, xs)
                return broadcast_lanes(outs, body.is_mapped_out, carry_mask, size)

            program = stage_closed(step, avals, body.program.name)
            return replace(self, condition=cond.program, body=program), full
        return self._by_lane(cond, full, size), full

    def _by_lane(self, cond: Any, mask: Mask, size: int) -> While:
        """The loop that ends when every lane has ended; finished lanes keep their values."""
        n_cond, n_body = self.n_cond, self.n_body
        _, const_mask, carry_mask = self.split(mask)
        is_mapped = (*const_mask, *carry_mask)
        counted = count_if(self.body) if self.body.is_effectful else None
        flagged, keeps = (counted, []) if counted else update_if(self.body, n_body)
        lanes = (True, *is_mapped, *compress(carry_mask, keeps))
        stepping = batch_program(flagged, lanes, size)

        def condition(*xs: Any) -> list[Any]:
            return [ReduceAny((0,)).bind(evaluate(cond.program, xs)[0])]

        def advance(is_active: Any, *xs: Any) -> list[Any]:
            _, consts, carry = cut(xs, n_cond, n_body)
            given = [*consts, *carry]
            if counted is None:
                given = [is_active, *shield(self.body, is_active, given, is_mapped)]
            else:
                given = shield(counted, is_active, [is_active, *given], lanes)
            outs = evaluate(stepping.program, [*given, *compress(carry, keeps)])
            outs = broadcast_lanes(outs, stepping.is_mapped_out, carry_mask, size)
            return [
                (new if same else choose(is_active, new, old)) if on else old
                for new, old, on, same in zip_longest(outs, carry, carry_mask, keeps)
            ]

        def step(*xs: Any) -> list[Any]:
            cond_consts, _, carry = cut(xs, n_cond, n_body)
            return advance(evaluate(cond.program, [*cond_consts, *carry])[0], *xs)

        cond_avals, given = cond.program.in_avals, stepping.program.in_avals[1:]
        avals = [*cond_avals[:n_cond], *given[: n_body + len(carry_mask)]]
        ends = stage_closed(condition, cond_avals, cond.program.name)
        body = stage_closed(step, avals, self.body.name)
        loop = replace(self, condition=ends, body=body, n_body=n_cond + n_body)
        if self.is_effectful or axis_names_of(self) or self.own_lanes is not None:
            return loop
        (flag,) = cond.program.out_avals
        stepping_lanes = stage_closed(advance, [flag, *avals], self.body.name)
        made = Lanes(self, mask, size, cond.program, stepping_lanes, (ends, body))
        return replace(loop, lanes=made)

    def params(self) -> dict[str, Any]:
        shown = {} if self.progress is None else {"progress": self.progress}
        return {**shown, "condition": self.condition, "body": self.body}


def dense_all(values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Tangents or cotangents of values, zeros where there are none."""
    return [instantiate(t, x) for x, t in zip(values, tangents, strict=True)]


def instantiated(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """The values, zeros where there are none."""
    return [zeros_like_aval(a) if x is None else x for x, a in zip(values, avals, strict=True)]


def on_all_lanes(args: Sequence[Any], dims: Sequence[BatchDim]) -> tuple[list[Any], int]:
    """Arguments with a lane axis each, and its length."""
    size = mapped_length(args, dims)
    is_mapped = [d is not None for d in dims]
    return broadcast_lanes(args, is_mapped, [True] * len(args), size), size


class _Derivative(Primitive):
    """Common parts of the derivatives of a loop.

    Attributes:
        loop: The loop.
        active: Which of its arguments have tangents.
    """

    loop: While
    active: Mask

    multiple_results = True
    is_composite = True
    may_run_forever = True

    @property
    def is_effectful(self) -> bool:  # type: ignore[override]
        return bool(ranks_in(axis_names_of(self.loop)))

    @property
    def n_primals(self) -> int:
        return len(self.active)

    @property
    def carry_active(self) -> list[bool]:
        return self.loop.split(self.active)[2]

    def active_of(self, values: Sequence[Any]) -> list[Any]:
        return [x for x, on in zip(values, self.active, strict=True) if on]

    def out_avals(self) -> list[ShapedArray]:
        """Types of the active results of the loop."""
        outs = [a.strong() for a in self.loop.body.out_avals]
        return [a for a, on in zip(outs, self.carry_active, strict=True) if on]

    def batched_loop(self, size: int) -> tuple[While, Mask]:
        """The loop with a lane axis on every argument, and its active arguments.

        The loop over lanes takes the constants of the condition twice.
        """
        loop, _ = self.loop.batched((True,) * self.n_primals, size)
        extra = loop.n_body - self.loop.n_body
        a = self.loop.n_cond
        return loop, (*self.active[:a], *(False,) * extra, *self.active[a:])

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        mapped, size = on_all_lanes(args, dims)
        loop, active = self.batched_loop(size)
        x, rest = cut(mapped, self.n_primals)
        outs = replace(self, loop=loop, active=active).bind(*self.loop.batched_args(loop, x), *rest)
        return outs, [0] * len(outs)

    def widened(self, tangents: Sequence[Value | None]) -> _Widened:
        """The same with those arguments active, too, that have tangents."""
        moved = [t is not None for t in tangents]
        joined = [a or b for a, b in zip(self.active, moved, strict=True)]
        return _Widened(self.loop, self.active, self.loop.active(joined))

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Failure]]:
        # The loop itself has been checked; here it runs a second time.
        condition, body = self.loop.condition, self.loop.body
        if not (condition.is_effectful or body.is_effectful):
            return self.bind(*args), ()
        plain = [check_program(p, frozenset()).program for p in (condition, body)]
        loop = replace(self.loop, condition=plain[0], body=plain[1])
        return replace(self, loop=loop).bind(*args), ()

    def params(self) -> dict[str, Any]:
        return {"loop": self.loop}


class _Widened:
    """A derivative with respect to some arguments as one with respect to more of them.

    Values for arguments and results that are active only then are zeros or ``None``.

    Args:
        loop: The loop.
        active: Which of its arguments are active.
        wide: Which are then.
    """

    def __init__(self, loop: While, active: Mask, wide: Mask) -> None:
        self.active = wide
        self.is_wider = wide != active
        self.of_inputs = [on for on, there in zip(active, wide, strict=True) if there]
        pairs = zip(loop.split(active)[2], loop.split(wide)[2], strict=True)
        self.of_outputs = [on for on, there in pairs if there]

    def tangents(self, values: Sequence[Any]) -> list[Any]:
        """Tangents of active arguments."""
        return scatter(values, self.of_inputs)

    def cotangents(self, values: Sequence[Any]) -> list[Any]:
        """Cotangents of active results."""
        return scatter(values, self.of_outputs)

    def narrowed(self, values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
        """Select the values that were active before."""
        return [x for x, on in zip(values, mask, strict=True) if on]


class WhilePush(_Derivative):
    """``push(*x, *dx)``: tangents of the active results, for those of the active arguments."""

    @property
    def program(self) -> Program:
        """Program that runs the loop with tangents."""
        return self.loop.body.memo(("push", self), self._program)

    def _program(self) -> Program:
        loop, active = self.loop, self.active
        k = len(self.carry_active)

        def run(*args: Any) -> list[Any]:
            primals, dots = cut(args, self.n_primals)
            outs = loop.with_tangents(active).bind(*loop.interleaved(primals, dots, active))
            return list(outs[k:])

        avals = [*loop.condition.in_avals[: loop.n_cond], *loop.body.in_avals]
        avals = [a.strong() for a in avals]
        return stage_closed(run, [*avals, *self.active_of(avals)], f"push_{loop.body.name}")

    def impl(self, *args: Any) -> Any:
        if self.is_effectful:  # processes meet in the loop, which looks at the condition itself
            with using_trace(EVAL):
                return evaluate(self.program, args)
        return run_program(self.program, args)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return self.out_avals()

    def lower(self, *avals: ShapedArray) -> Form:
        return Call(self.program)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self.bind(*primals), self._moved(primals, tangents)

    def _moved(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> list[Any]:
        x, dx = cut(primals, self.n_primals)
        t, dt = cut(tangents, self.n_primals)
        dt = dense_all(dx, dt)
        if all(d is None for d in t):
            return list(self.bind(*x, *dt))
        wide = self.widened(t)
        if wide.is_wider:
            more = WhilePush(self.loop, wide.active)
            given = [*x, *dense_all(more.active_of(x), wide.tangents(dx))]
            dots = more._moved(given, [*t, *wide.tangents(dt)])
            return wide.narrowed(dots, wide.of_outputs)
        loop, active = self.loop, self.active
        inner = loop.with_tangents(active)
        inner_x = loop.interleaved(x, dx, active)
        inner_active = inner.active(loop.interleaved(active, [True] * len(dx), active))
        # The dots of the inner loop: of the values, then of their tangents.
        t_all = [instantiate(d, v) if on else d for v, d, on in zip(x, t, active, strict=True)]
        moved = loop.interleaved(t_all, dt, active)
        dots = [d for d, on in zip(moved, inner_active, strict=True) if on]
        found = WhilePush(inner, inner_active).bind(*inner_x, *dots)
        return list(found[sum(self.carry_active) :])

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        x, _ = cut(args, self.n_primals)
        cts = instantiated(ct, self.out_avals())
        found = WhilePull(self.loop, self.active).bind(*x, *cts)
        return [*(None for _ in x), *found]


class WhilePull(_Derivative):
    """``pull(*x, *ct)``: cotangents of the active arguments, for those of the active results."""

    @property
    def repeated(self) -> While:
        """The loop for a second run: effects and checks belong to the first."""
        condition, body = (
            check_program(p, frozenset({REPEATED})).program if p.is_effectful else p
            for p in (self.loop.condition, self.loop.body)
        )
        return replace(self.loop, condition=condition, body=body)

    @property
    def program(self) -> Program:
        """Program that runs the loop backwards."""
        return self.loop.body.memo(("pull", self), lambda: pull_program(self.repeated, self.active))

    def impl(self, *args: Any) -> Any:
        with using_trace(EVAL):
            if is_jit_disabled():
                return pull_stepwise(self.repeated, self.active, *cut(args, self.n_primals))
            if self.is_effectful:  # as in `WhilePush`
                return evaluate(self.program, args)
        return run_program(self.program, args)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return [a.strong() for a in self.active_of(avals[: self.n_primals])]

    def lower(self, *avals: ShapedArray) -> Form:
        return Call(self.program)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, ct = cut(primals, self.n_primals)
        t, dct = cut(tangents, self.n_primals)
        dct = dense_all(ct, dct)
        out = self.bind(*primals)
        if all(d is None for d in t):
            return out, self.bind(*x, *dct)
        wide = self.widened(t)
        more = WhilePullTangent(self.loop, wide.active)
        dx = dense_tangents(wide.active, x, t)
        cts = [instantiated(wide.cotangents(c), more.out_avals()) for c in (ct, dct)]
        found = more.bind(*x, *cts[0], *dx, *cts[1])
        return out, wide.narrowed(found, wide.of_inputs)

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        x, _ = cut(args, self.n_primals)
        dots = dense_all(self.active_of(x), ct)
        found = WhilePush(self.loop, self.active).bind(*x, *dots)
        return [*(None for _ in x), *found]


class WhilePullTangent(_Derivative):
    """``pull'(*x, *ct, *dx, *dct)``: the tangent of a pull."""

    def _parts(self, args: Sequence[Any]) -> list[list[Any]]:
        n_out = sum(self.carry_active)
        return cut(args, self.n_primals, n_out, sum(self.active))

    def _inner(self) -> tuple[While, Mask]:
        """The loop with tangents, all of them active."""
        loop, active = self.loop, self.active
        inner = loop.with_tangents(active)
        return inner, tuple(loop.interleaved(active, [True] * sum(active), active))

    def _values_of(self, interleaved: Sequence[Any]) -> list[Any]:
        """Select cotangents of values among those of the active arguments of the inner loop."""
        n_consts = sum(self.loop.split(self.active)[1])
        n_carry = sum(self.carry_active)
        consts, _, carry, _ = cut(interleaved, n_consts, n_consts, n_carry)
        return [*consts, *carry]

    @property
    def program(self) -> Program:
        """Program that pulls the loop with tangents."""
        loop, outs = self.loop, self.out_avals()
        avals = [*loop.condition.in_avals[: loop.n_cond], *loop.body.in_avals]
        x = [a.strong() for a in avals]
        return loop.body.memo(
            ("pull tangent", self),
            lambda: stage_closed(
                lambda *args: self._as_pull(args),
                [*x, *outs, *self.active_of(x), *outs],
                f"pull_{loop.body.name}",
            ),
        )

    def impl(self, *args: Any) -> Any:
        with using_trace(EVAL):
            return self._as_pull(args)

    def _as_pull(self, args: Sequence[Any]) -> list[Any]:
        x, ct, dx, dct = self._parts(args)
        inner, active = self._inner()
        found = WhilePull(inner, active).bind(*self.loop.interleaved(x, dx, self.active), *dct, *ct)
        return self._values_of(found)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return [a.strong() for a in self.active_of(avals[: self.n_primals])]

    def lower(self, *avals: ShapedArray) -> Form:
        return Call(self.program)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self.bind(*primals), self._moved(primals, tangents)

    def _moved(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> list[Any]:
        x, ct, dx, dct = self._parts(primals)
        t_x, t_ct, t_dx, t_dct = self._parts(tangents)
        if all(d is None for d in (*t_x, *t_ct)):
            return self.bind(*x, *ct, *dense_all(dx, t_dx), *dense_all(dct, t_dct))
        wide = self.widened(t_x)
        if wide.is_wider:
            more = WhilePullTangent(self.loop, wide.active)
            given = [
                *x,
                *instantiated(wide.cotangents(ct), more.out_avals()),
                *dense_all(more.active_of(x), wide.tangents(dx)),
                *instantiated(wide.cotangents(dct), more.out_avals()),
            ]
            moved = [
                *t_x, *wide.cotangents(t_ct), *wide.tangents(t_dx), *wide.cotangents(t_dct),
            ]  # fmt: skip
            return wide.narrowed(more._moved(given, moved), wide.of_inputs)
        inner, active = self._inner()
        inner_x = self.loop.interleaved(x, dx, self.active)
        moved = self.loop.interleaved(
            [d if on else None for d, on in zip(dense_all(x, t_x), self.active, strict=True)],
            dense_all(dx, t_dx),
            self.active,
        )
        dots = [d for d, on in zip(moved, active, strict=True) if on]
        found = WhilePullTangent(inner, active).bind(
            *inner_x, *dct, *ct, *dots, *dense_all(dct, t_dct), *dense_all(ct, t_ct)
        )
        return self._values_of(found)

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        x, cts, dx, dct = self._parts(args)
        u = dense_all(self.active_of(x), ct)
        zeros = [zeros_like_aval(aval_of_linear(v)) for v in dct]
        ct_dx = self.bind(*x, *cts, *u, *zeros)
        ct_dct = WhilePush(self.loop, self.active).bind(*x, *u)
        return [
            *(None for _ in (*x, *cts)),
            *(c if is_linear(v) else None for v, c in zip(dx, ct_dx, strict=True)),
            *(c if is_linear(v) else None for v, c in zip(dct, ct_dct, strict=True)),
        ]
