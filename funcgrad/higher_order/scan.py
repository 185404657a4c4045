"""A loop with a known number of steps.

``scan : (c -> x -> (c, y)) -> c -> [x] -> (c, [y])``

Linearisation gives a loop that also returns residuals, stacked, and a linear loop; transposition
gives the loop in the opposite direction. What is the same in all steps is not stacked: constants
pass as constants, and inputs of the loop that are residuals are forwarded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, ClassVar

import numpy as np

from funcgrad.base.annotations import Values
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import divided_axis
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear, mapped_length
from funcgrad.core.program import Program, Var, evaluate
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.errors import NonFiniteError
from funcgrad.higher_order import hoisting
from funcgrad.higher_order.checked_programs import CheckedProgram, check_program
from funcgrad.higher_order.checks import Failure, nothing
from funcgrad.higher_order.dividing import divided_scan
from funcgrad.higher_order.jit import (
    Rounds,
    executable_of,
    is_jit_disabled,
    run_program,
    sampled_rounds,
    scatter,
    stepwise,
)
from funcgrad.higher_order.linearity import parted, together
from funcgrad.higher_order.progress import backward, parts_of, progress_bar
from funcgrad.higher_order.series import taylor_of_scan
from funcgrad.lowering import Call, Extern, Form, Loop
from funcgrad.observers.checks import Kinds
from funcgrad.observers.limits import check_time
from funcgrad.observers.nonfinite import add_step
from funcgrad.passes.dce import without_dead
from funcgrad.primitives.families import instantiate, zeros_like_aval
from funcgrad.primitives.shape import Transpose, repeat_lanes, shape_of
from funcgrad.transforms.programs import (
    LinearizedProgram,
    batch_program,
    jvp_program,
    linearize_program,
    separate_program,
    stage_closed,
    transpose_program,
)

Mask = tuple[bool, ...]


_PART = 63
"""Rounds that nobody sees, one behind the other, which are worth a compiled loop."""


class Scan(Primitive):
    """Run ``body`` once per step.

    Arguments are constants, the initial carry, and arrays whose leading axis is scanned over;
    results are the final carry and the outputs of all steps, stacked.

    Attributes:
        body: From constants, carry and one element of every scanned array to carry and outputs.
        n_consts: Number of constants.
        n_carry: Number of values carried from step to step.
        length: Number of steps.
        reverse: Whether the last element comes first.
        progress: Label of a bar that shows how far it is, or ``None``.
    """

    body: Program
    n_consts: int
    n_carry: int
    length: int
    reverse: bool
    progress: str | None = None

    multiple_results = True
    is_composite = True
    taylor = taylor_of_scan
    divided = divided_scan
    makes_no_nans = True
    is_counted: ClassVar[bool] = False
    """Whether the first constant, which bodies do not read, says how many steps are taken."""

    @property
    def is_effectful(self) -> bool:  # type: ignore[override]
        return self.body.is_effectful

    @property
    def trip_count(self) -> int | None:
        """Number of steps, if arrays do not have as many elements."""
        has_arrays = len(self.body.inputs) > self.n_consts + self.n_carry
        is_plain = not (self.is_counted or has_arrays or self.progress)
        return self.length if is_plain and len(self.body.outputs) == self.n_carry else None

    @property
    def but_lengths(self) -> Any:
        """All that loops share which differ by their numbers of steps."""
        if self.trip_count is None:
            return None
        return self.body, self.n_consts, self.n_carry, self.reverse

    @property
    def shows_progress(self) -> bool:
        return self.progress is not None

    @property
    def carried(self) -> slice:
        return slice(self.n_consts, self.n_consts + self.n_carry)

    def split(self, args: Values) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants, carry, scanned arrays."""
        a, b = self.n_consts, self.n_consts + self.n_carry
        return list(args[:a]), list(args[a:b]), list(args[b:])

    # Evaluation.

    def impl(self, *args: Any) -> Any:
        if is_jit_disabled():
            rounds = sampled_rounds(self.body)
            if rounds is not None:
                return self._run_sampled(rounds, args)
            return self.run(lambda *xs: evaluate(self.body, xs), args)
        if self.progress is not None:
            return self._run_in_parts(self.progress, args)
        program = self.body.memo(
            ("loop", self), lambda: _as_program(self, [aval_of(x).strong() for x in args])
        )
        return executable_of(program)(*args)

    def impl_inside_plan(self, *args: Any) -> Any:
        if self.progress is not None:
            return self._run_in_parts(self.progress, args)
        return self.run(executable_of(self.body), args)

    def _run_in_parts(self, label: str, args: Values) -> list[Any]:
        """Run the loop in blocks of steps."""
        consts, carry, xs = self.split(args)
        if self.length == 0:
            return replace(self, progress=None).impl(*args)
        ys = self.empty_results()
        with using_trace(EVAL), progress_bar(label, self.length) as bar:
            for start, stop in parts_of(self.length, self.reverse):
                part = replace(self, length=stop - start, progress=None)
                outs = part.impl(*consts, *carry, *(x[start:stop] for x in xs))
                carry = outs[: self.n_carry]
                for y, out in zip(ys, outs[self.n_carry :], strict=True):
                    y[start:stop] = out
                bar.update(stop - start)
        return [*carry, *ys]

    def _run_sampled(self, rounds: Rounds, args: Values) -> list[Any]:
        """The loop, of which rounds that nobody sees are compiled, and many of them as a loop."""
        length = self.steps(args)
        if rounds.unseen >= length:
            rounds.taken += length
            with stepwise(False):
                return list(replace(self, progress=None).impl(*args))
        consts, carry, xs = self.split(args)
        ys, done = self.empty_results(), 0
        while done < length:
            n = rounds.unseen
            n = 1 if self.is_counted or not _PART <= n <= length - done else n
            start = length - done - n if self.reverse else done
            rows = slice(start, start + n) if n > 1 else start
            given = [*consts, *carry, *(x[rows] for x in xs)]
            check_time(self.body.described)
            if rounds.unseen:
                with stepwise(False):
                    part = replace(self, length=n, progress=None).impl if n > 1 else None
                    outs = part(*given) if part else run_program(self.body, given)
                rounds.taken += n
            else:
                with using_trace(EVAL):
                    outs = evaluate(self.body, given)
                rounds.seen()
            carry = list(outs[: self.n_carry])
            for y, out in zip(ys, outs[self.n_carry :], strict=True):
                y[rows] = out
            done += n
        return [*carry, *ys]

    def steps(self, args: Values) -> int:
        """Number of steps that are taken with these arguments."""
        return self.length

    def empty_results(self) -> list[Any]:
        """Memory of the outputs of all steps."""
        y_avals = self.body.out_avals[self.n_carry :]
        return [np.empty((self.length, *a.shape), a.dtype) for a in y_avals]

    def run(self, step: Callable[..., Sequence[Any]], args: Values) -> list[Any]:
        """The loop in Python."""
        if self.progress is None:
            return self._run(step, args, None)
        with progress_bar(self.progress, self.length) as bar:
            return self._run(step, args, bar)

    def _run(self, step: Callable[..., Sequence[Any]], args: Values, bar: Any) -> list[Any]:
        consts, carry, xs = self.split(args)
        with using_trace(EVAL):
            ys = self.empty_results()
            order = range(self.steps(args))
            for i in reversed(order) if self.reverse else order:
                check_time(self.body.described)
                try:
                    outs = step(*consts, *carry, *(x[i] for x in xs))
                except NonFiniteError as error:
                    if self.length > 1:
                        add_step(error, i, self.body.name, self.length)
                    raise
                carry = list(outs[: self.n_carry])
                for y, out in zip(ys, outs[self.n_carry :], strict=True):
                    y[i] = out
                if bar is not None:
                    bar.update()
        return [*carry, *ys]

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        outs = [a.strong() for a in self.body.out_avals]
        ys = [a.update(shape=(self.length, *a.shape)) for a in outs[self.n_carry :]]
        return [*outs[: self.n_carry], *ys]

    def lower(self, *avals: ShapedArray) -> Form:
        if self.progress is not None:
            return Extern()
        if not self.is_counted and self._split_ahead() is not None:
            return Call(self._ahead(avals))
        return Loop(self.n_consts, self.n_carry, self.length, self.reverse)

    def _split_ahead(self) -> hoisting.Split | None:
        """The products that can be computed before the loop, and the rest."""
        return hoisting.split_ahead(self.body, self.n_consts, self.n_carry, self.length)

    def _ahead(self, avals: Sequence[ShapedArray]) -> Program:
        """The loop behind the products of all its steps."""

        def run(*args: Any) -> list[Any]:
            return bind_scan(self.body, *self.split(args), self.length, self.reverse)

        avals = [a.strong() for a in avals]
        return self.body.memo(("ahead", self), lambda: stage_closed(run, avals, "loop"))

    def pruned(self, used: Mask) -> tuple[Scan, Mask, Mask]:
        """The loop for some of its results, which has the carried values that these need."""
        return self.body.memo(("pruned", self, used), lambda: self._pruned(used))

    def _pruned(self, used: Mask) -> tuple[Scan, Mask, Mask]:
        k, given = self.n_carry, list(used)
        while True:
            live, read = without_dead(self.body, given)
            consts, carry, xs = self.split(read)
            wanted = [a or b for a, b in zip(given[:k], carry, strict=True)]
            if wanted == given[:k]:
                break
            given[:k] = wanted
        consts[: int(self.is_counted)] = [True] * int(self.is_counted)
        taken = (*consts, *wanted, *xs)
        inputs = list(compress(self.body.inputs, taken))
        body = Program(inputs, live.equations, live.outputs, live.name, live.constants)
        loop = replace(self, body=body, n_consts=sum(consts), n_carry=sum(wanted))
        return loop, taken, tuple(given)

    # Forward mode.

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self._around_unchanged(Scan._jvp, primals, tangents)

    def _jvp(self, primals: Values, tangents: Values) -> tuple[Any, Any]:
        active = self._active_inputs(tangents, lambda m: jvp_program(self.body, m).is_active_out)
        _, carry, _ = self.split(active)
        n_ys = len(self.body.outputs) - self.n_carry
        derived = jvp_program(self.body, active)
        y_active = derived.is_active_out[self.n_carry :]
        body = self.body.memo(("scan jvp", active, self), lambda: self._jvp_body(active))
        dense = _instantiated(active, primals, tangents)
        d_consts, d_carry, d_xs = ([t for t in d if t is not None] for d in self.split(dense))
        p_consts, p_carry, p_xs = self.split(primals)
        outs = bind_scan(
            body,
            [*p_consts, *d_consts],
            [*p_carry, *d_carry],
            [*p_xs, *d_xs],
            self.length,
            self.reverse,
            self.progress,
            type(self),
        )
        k = self.n_carry
        n_dots = sum(carry)
        out_carry, dot_carry, out_ys, dot_ys = cut(outs, k, n_dots, n_ys)
        return [*out_carry, *out_ys], [*scatter(dot_carry, carry), *scatter(dot_ys, y_active)]

    def _jvp_body(self, active: Mask) -> Program:
        """The body with tangents behind the values of each kind."""
        derived = jvp_program(self.body, active)
        k, n = self.n_carry, len(self.body.outputs)
        carry_active = self.split(active)[1]
        counts = [c for part in self.split(active) for c in (len(part), sum(part))]

        def run(*args: Any) -> list[Any]:
            consts, d_consts, carry, d_carry, xs, d_xs = cut(args, *counts[:-1])
            outs = evaluate(derived.program, [*consts, *carry, *xs, *d_consts, *d_carry, *d_xs])
            dots = scatter(outs[n:], derived.is_active_out)
            moved = dense_tangents(carry_active, outs[:k], dots[:k])
            return [*outs[:k], *moved, *outs[k:n], *(t for t in dots[k:] if t is not None)]

        avals = self.split(self.body.in_avals)
        flags = self.split(active)
        kinds = [
            aval
            for part, mask in zip(avals, flags, strict=True)
            for aval in (*part, *(a for a, on in zip(part, mask, strict=True) if on))
        ]
        return stage_closed(run, [a.strong() for a in kinds], f"jvp_{self.body.name}")

    def _active_inputs(self, tangents: Values, results: Callable[[Mask], Sequence[bool]]) -> Mask:
        """Inputs of the body that have tangents: the fixed point over the carry."""
        active = [t is not None for t in tangents]
        a, b = self.n_consts, self.n_consts + self.n_carry
        while True:
            out = results(tuple(active))[: self.n_carry]
            joined = [x or y for x, y in zip(active[a:b], out, strict=True)]
            if joined == active[a:b]:
                return tuple(active)
            active[a:b] = joined

    def _around_unchanged(
        self,
        derive: Callable[[Scan, Values, Values], tuple[Any, Any]],
        primals: Values,
        tangents: Values,
    ) -> tuple[Any, Any]:
        """Derive the loop that has values as constants which it carries, but no step changes.

        So they are no residuals of every step, and it is known that steps do not depend on others
        by them.
        """
        a, k = self.n_consts, self.n_carry
        pairs = zip(hoisting.unchanged(self.body, self.carried), primals[self.carried], strict=True)
        fixed = tuple(on and not aval_of(value).weak_type for on, value in pairs)
        if not any(fixed):
            return derive(self, primals, tangents)
        rest = [i for i, on in enumerate(fixed) if not on]
        order = [*range(a), *(a + i for i in range(k) if fixed[i]), *(a + i for i in rest)]
        order += range(a + k, len(primals))
        kept = [*rest, *range(k, len(self.body.outputs))]
        key = ("scan with constants", fixed, self)
        loop = self.body.memo(key, lambda: self._rearranged(order, kept, a + k - len(rest)))
        found = derive(loop, [primals[i] for i in order], [tangents[i] for i in order])
        results = []
        for given, each in zip((primals, tangents), found, strict=True):
            whole = [*given[a : a + k], *([None] * (len(self.body.outputs) - k))]
            for i, value in zip(kept, each, strict=True):
                whole[i] = value
            results.append(whole)
        return results[0], results[1]

    def _rearranged(self, order: Sequence[int], kept: Sequence[int], n_consts: int) -> Scan:
        """The loop with its inputs in another order, and some of its outputs."""
        body = self.body
        inputs, outputs = [body.inputs[i] for i in order], [body.outputs[i] for i in kept]
        body = Program(inputs, body.equations, outputs, body.name, body.constants)
        n_carry = self.n_consts + self.n_carry - n_consts
        return replace(self, body=body, n_consts=n_consts, n_carry=n_carry)

    # Reverse mode.

    def linearize(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Any, Any]:
        derive = lambda loop, *args: loop._apply(linearize_program, *args)  # noqa: E731
        return self._around_unchanged(derive, primals, tangents)

    def separate(self, args: Sequence[Value], is_linear: Sequence[bool]) -> list[Value]:
        return together(*self._apply(separate_program, *parted(args, is_linear)))

    def _apply(
        self,
        split: Callable[[Program, Mask], LinearizedProgram],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> tuple[Any, Any]:
        active = self._active_inputs(tangents, lambda m: split(self.body, m).is_active_out)
        plan = self.body.memo(
            ("scan", split, active, self), lambda: Residuals(self, active, split(self.body, active))
        )
        consts, carry, xs = self.split(primals)
        body, all_consts = hoisting.hoisted(plan.forward, consts)
        forward = self.recording(body, len(all_consts), plan.n_stacked)
        results = forward.bind(*all_consts, *carry, *xs)
        n = len(self.body.outputs)
        outs, stacked = results[:n], results[n:]
        invariant = evaluate(plan.prelude, consts) if plan.prelude is not None else []
        sources = {"const": consts, "x": xs, "y": outs[self.n_carry :], "stacked": stacked}
        sources["invariant"] = invariant
        fixed = [sources[kind][i] for kind, i in plan.fixed]
        scanned = [sources[kind][i] for kind, i in plan.scanned]
        dense = _instantiated(active, primals, tangents)
        d_consts, d_carry, d_xs = ([t for t in d if t is not None] for d in self.split(dense))
        if not d_consts and not d_carry and not d_xs:
            return outs, [None] * n
        dots = bind_scan(
            plan.tangent,
            [*fixed, *d_consts],
            d_carry,
            [*scanned, *d_xs],
            self.length,
            self.reverse,
            self.progress,
            type(self),
        )
        n_dots = len(d_carry)
        carry_active = self.split(active)[1]
        return outs, [*scatter(dots[:n_dots], carry_active), *scatter(dots[n_dots:], plan.y_active)]

    def recording(self, body: Program, n_consts: int, n_residuals: int) -> Scan:
        """The loop whose body returns residuals behind its outputs."""
        return replace(self, body=body, n_consts=n_consts)

    def linear_parts(self, is_linear: Mask) -> list[tuple[Program, Mask]]:
        consts, carry, xs = self.split(is_linear)
        return [(self.body, (*consts, *(True for _ in carry), *xs))]

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        consts, carry, xs = self.split(args)
        # Carried values that start without a tangent start with a known zero.
        linear = (
            *(is_linear(a) for a in consts),
            *(True for _ in carry),
            *(is_linear(a) for a in xs),
        )
        k = self.n_carry
        y_active = tuple(c is not None for c in ct[k:])
        key = ("scan transpose", linear, y_active, self)
        body, x_given = self.body.memo(key, lambda: self.transposed_body(linear, y_active))
        ct_carry = [
            zeros_like_aval(aval_of_linear(a)) if c is None else c
            for c, a in zip(ct[:k], carry, strict=True)
        ]
        sums = [zeros_like_aval(a.aval) for a in consts if is_linear(a)]
        results = bind_scan(
            body,
            [a for a in consts if not is_linear(a)],
            [*ct_carry, *sums],
            [*(a for a in xs if not is_linear(a)), *(c for c in ct[k:] if c is not None)],
            self.length,
            not self.reverse,
            backward(self.progress),
            type(self),
        )
        in_carry, in_consts, in_xs = cut(results, k, len(sums))
        ct_xs = scatter(in_xs, x_given)
        ct_consts = scatter(in_consts, [is_linear(a) for a in consts])
        ct_init = [c if is_linear(a) else None for c, a in zip(in_carry, carry, strict=True)]
        return [*ct_consts, *ct_init, *ct_xs]

    def transposed_body(self, linear: Mask, y_active: Mask) -> tuple[Program, Mask]:
        """One step backwards, and which scanned arrays get cotangents."""
        k = self.n_carry
        derived = transpose_program(self.body, linear, ((True,) * k + y_active))
        lin_consts, _, lin_xs = self.split(linear)
        avals = [a.strong() for a in self.body.in_avals]
        const_avals, carry_avals, x_avals = self.split(avals)
        y_avals = [a.strong() for a in self.body.out_avals[k:]]
        known_consts = [a for a, lin in zip(const_avals, lin_consts, strict=True) if not lin]
        sum_avals = [a for a, lin in zip(const_avals, lin_consts, strict=True) if lin]
        known_xs = [a for a, lin in zip(x_avals, lin_xs, strict=True) if not lin]
        ct_ys = [a for a, on in zip(y_avals, y_active, strict=True) if on]
        x_given = tuple(self.split(derived.is_active_in)[2])

        def run(*args: Any) -> list[Any]:
            known, cts, sums, xs, ys = cut(
                args, len(known_consts), k, len(sum_avals), len(known_xs)
            )
            found = evaluate(derived.program, [*known, *xs, *cts, *ys])
            all_cts = scatter(found, derived.is_active_in)
            ct_consts, ct_carry, ct_xs = self.split(all_cts)
            new_carry = [
                zeros_like_aval(a) if c is None else c
                for c, a in zip(ct_carry, carry_avals, strict=True)
            ]
            added = [c for c, lin in zip(ct_consts, lin_consts, strict=True) if lin]
            new_sums = [s if c is None else s + c for s, c in zip(sums, added, strict=True)]
            return [*new_carry, *new_sums, *(c for c, on in zip(ct_xs, x_given, strict=True) if on)]

        in_avals = [*known_consts, *carry_avals, *sum_avals, *known_xs, *ct_ys]
        return stage_closed(run, in_avals, f"transpose_{self.body.name}"), x_given

    # Checks.

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Failure]]:
        inner = check_program(self.body, kinds)
        if not inner.sites:
            return replace(self, body=inner.program).bind(*args), ()
        start = nothing(inner.sites).flat
        key = ("scan checked", kinds, self)
        body = self.body.memo(key, lambda: self._checked_body(inner, len(start)))
        consts, carry, xs = self.split(args)
        call = replace(self, body=body, n_carry=self.n_carry + len(start))
        carry, found, ys = cut(call.bind(*consts, *carry, *start, *xs), self.n_carry, len(start))
        return [*carry, *ys], [Failure.of_flat(inner.sites, found)]

    def _checked_body(self, inner: CheckedProgram, n_found: int) -> Program:
        """The body that also carries what was found wrong first."""
        k, n = self.n_carry, inner.n_outputs

        def run(*args: Any) -> list[Any]:
            consts, carry, found, xs = cut(args, self.n_consts, k, n_found)
            outs = evaluate(inner.program, [*consts, *carry, *xs])
            failure = Failure.of_flat(inner.sites, found).then_of(inner.failure(outs))
            return [*outs[:k], *failure.flat, *outs[k:n]]

        avals = [a.strong() for a in self.body.in_avals]
        found = [a.strong() for a in inner.program.out_avals[n:]]
        split = self.n_consts + k
        return stage_closed(run, [*avals[:split], *found, *avals[split:]], self.body.name)

    # Batching.

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = mapped_length(args, dims)
        mapped = [d is not None for d in dims]
        a, b = self.n_consts, self.n_consts + self.n_carry
        while True:
            out = batch_program(self.body, tuple(mapped), size).is_mapped_out[: self.n_carry]
            joined = [x or y for x, y in zip(mapped[a:b], out, strict=True)]
            if joined == mapped[a:b]:
                break
            mapped[a:b] = joined
        mask = tuple(mapped)
        body = self.body.memo(
            ("scan batch", mask, size, divided_axis(), self), lambda: self._batched_body(mask, size)
        )
        y_mapped = batch_program(self.body, mask, size).is_mapped_out[self.n_carry :]
        consts, carry, xs = self.split(args)
        carry = [
            x if d is not None or not on else repeat_lanes(x, size)
            for x, d, on in zip(carry, self.split(dims)[1], mask[a:b], strict=True)
        ]
        scanned = [x if d is None else exchange_front(x) for x, d in zip(xs, dims[b:], strict=True)]
        outs = bind_scan(
            body, consts, carry, scanned, self.length, self.reverse, self.progress, type(self)
        )
        k = self.n_carry
        ys = [exchange_front(y) if on else y for y, on in zip(outs[k:], y_mapped, strict=True)]
        out_mapped = (*mask[a:b], *y_mapped)
        return [*outs[:k], *ys], [0 if on else None for on in out_mapped]

    def _batched_body(self, mask: Mask, size: int) -> Program:
        derived = batch_program(self.body, mask, size)
        k = self.n_carry
        carry_mask = self.split(mask)[1]

        def run(*args: Any) -> list[Any]:
            outs = evaluate(derived.program, args)
            carry = [
                repeat_lanes(x, size) if wanted and not got else x
                for x, wanted, got in zip(outs[:k], carry_mask, derived.is_mapped_out, strict=False)
            ]
            return [*carry, *outs[k:]]

        return stage_closed(run, derived.program.in_avals, derived.program.name)

    def params(self) -> dict[str, Any]:
        shown = {} if self.progress is None else {"progress": self.progress}
        return {"length": self.length, "reverse": self.reverse, **shown, "body": self.body}


def bind_scan(
    body: Program,
    consts: Values,
    carry: Values,
    xs: Values,
    length: int,
    reverse: bool,
    progress: str | None = None,
    kind: type[Scan] = Scan,
) -> list[Any]:
    """Run a scan, with what does not need to wait for it computed before it."""
    body, all_consts = hoisting.hoisted(body, consts)
    split = None
    if not kind.is_counted:
        split = hoisting.split_ahead(body, len(all_consts), len(carry), length)
    if split is not None:
        xs = [*xs, *evaluate(split.ahead, [*all_consts, *xs])]
        body = split.body
    scan = kind(body, len(all_consts), len(carry), length, reverse, progress)
    return scan.bind(*all_consts, *carry, *xs)


class Residuals:
    """How a scan is split for linearisation.

    Attributes:
        forward: The body that also returns residuals.
        prelude: Residuals that are the same in all steps, from the constants; or ``None``.
        tangent: The linear body: fixed residuals and tangents of constants; tangents of the
            carry; scanned residuals and tangents.
        n_stacked: How many residuals the forward body adds.
        fixed: Where fixed residuals come from; first of all the number of steps, if that is one.
        scanned: Where the others come from.
        y_active: Which outputs have tangents.
    """

    def __init__(self, scan: Scan, active: Mask, split: LinearizedProgram) -> None:
        body, k = scan.body, scan.n_carry
        a, b, n = scan.n_consts, scan.n_consts + k, len(body.outputs)
        forward = split.forward
        invariant = hoisting.invariant_vars(forward, a)
        emitted_as_y = {id(y): i for i, y in enumerate(forward.outputs[k:n])}
        emitted: list[Any] = []
        constant: list[Var] = []
        places: list[tuple[str, int]] = []
        for kind, i in split.residuals:
            atom = forward.inputs[i] if kind == "in" else forward.outputs[i]
            if kind == "in" and i < a:
                places.append(("const", i))
            elif kind == "in" and i >= b:
                places.append(("x", i - b))
            elif type(atom) is Var and atom in invariant:
                places.append(("invariant", len(constant)))
                constant.append(atom)
            elif id(atom) in emitted_as_y:
                places.append(("y", emitted_as_y[id(atom)]))
            else:
                places.append(("stacked", len(emitted)))
                emitted.append(atom)
        self.forward = Program(
            forward.inputs,
            forward.equations,
            [*forward.outputs[:n], *emitted],
            forward.name,
            forward.constants,
        )
        self.prelude = None
        if constant:
            equations = [e for e in forward.equations if not invariant.isdisjoint(e.outputs)]
            self.prelude = Program(
                forward.inputs[:a], equations, constant, f"before_{body.name}", forward.constants
            )
        is_fixed = [kind in ("const", "invariant") for kind, _ in places]
        self.n_stacked = len(emitted)
        self.fixed = [p for p, fixed in zip(places, is_fixed, strict=True) if fixed]
        if scan.is_counted:
            self.fixed.insert(0, ("const", 0))
        self.scanned = [p for p, fixed in zip(places, is_fixed, strict=True) if not fixed]
        self.y_active = split.is_active_out[k:]
        self.tangent = self._tangent_body(scan, active, split, is_fixed)

    @staticmethod
    def _tangent_body(scan: Scan, active: Mask, split: Any, is_fixed: list[bool]) -> Program:
        k = scan.n_carry
        act_consts, act_carry, _act_xs = scan.split(active)
        n_res = len(split.residuals)
        avals = [a.strong() for a in split.tangent.in_avals]
        res_avals, dot_avals = avals[:n_res], avals[n_res:]
        n_fixed = sum(is_fixed)
        counts = [a.strong() for a in scan.body.in_avals[: int(scan.is_counted)]]
        dc, dk, dx = cut(dot_avals, sum(act_consts), sum(act_carry))
        carry_avals = [a.strong() for a in scan.split(scan.body.in_avals)[1]]

        def run(*args: Any) -> list[Any]:
            fixed, d_consts, d_carry, scanned, d_xs = cut(
                args[len(counts) :], n_fixed, len(dc), len(dk), n_res - n_fixed
            )
            take_fixed, take_scanned = iter(fixed), iter(scanned)
            residuals = [next(take_fixed) if f else next(take_scanned) for f in is_fixed]
            found = evaluate(split.tangent, [*residuals, *d_consts, *d_carry, *d_xs])
            dots = scatter(found, split.is_active_out)
            moved = [
                zeros_like_aval(aval) if t is None else t
                for t, aval, on in zip(dots[:k], carry_avals, act_carry, strict=True)
                if on
            ]
            return [*moved, *(t for t in dots[k:] if t is not None)]

        fixed_avals = [a for a, f in zip(res_avals, is_fixed, strict=True) if f]
        scanned_avals = [a for a, f in zip(res_avals, is_fixed, strict=True) if not f]
        in_avals = [*counts, *fixed_avals, *dc, *dk, *scanned_avals, *dx]
        return stage_closed(run, in_avals, f"tangent_{scan.body.name}")


def _as_program(scan: Scan, avals: Sequence[ShapedArray]) -> Program:
    return stage_closed(lambda *xs: scan.bind(*xs), avals, scan.body.name)


def aval_of_linear(x: Any) -> ShapedArray:
    """Type of an argument of a transpose rule."""
    aval: ShapedArray = x.aval if is_linear(x) else aval_of(x)
    return aval.strong()


def cut(values: Values, *counts: int) -> list[list[Any]]:
    """Consecutive parts of the given lengths, and the rest."""
    parts, start = [], 0
    for n in counts:
        parts.append(list(values[start : start + n]))
        start += n
    return [*parts, list(values[start:])]


def dense_tangents(active: Sequence[bool], primals: Values, dots: Values) -> list[Any]:
    """Tangents of the active values, zeros where there are none."""
    return [instantiate(t, x) for x, t, on in zip(primals, dots, active, strict=True) if on]


def _instantiated(active: Mask, primals: Values, tangents: Values) -> list[Any | None]:
    """Tangents, with zeros for active inputs that have none."""
    return [
        instantiate(t, x) if on else None
        for on, x, t in zip(active, primals, tangents, strict=True)
    ]


def exchange_front(x: Any) -> Any:
    """The first two axes exchanged."""
    ndim = len(shape_of(x))
    return Transpose((1, 0, *range(2, ndim))).bind(x)
