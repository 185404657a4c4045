"""One of several programs, chosen by an index.

Derivatives are switches again, over the derivatives of the branches. Branches keep different
residuals; a slot holds what each of them needs of one type, and zeros in the others. Under `vmap`
an index that differs between lanes makes all branches run, each behind a gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np

from funcgrad.base.ranks import demand_agreement
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import divided_axis
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear, mapped_length
from funcgrad.core.program import Program, axis_names_of, evaluate
from funcgrad.dtypes import INT64
from funcgrad.higher_order.checked_programs import CheckedProgram, check_program
from funcgrad.higher_order.checks import Failure, nothing
from funcgrad.higher_order.dividing import divided_switch
from funcgrad.higher_order.jit import run_program, scatter
from funcgrad.higher_order.lanes import broadcast_lanes, choose, count_if, is_guard_needed, shield
from funcgrad.higher_order.linear_call import zeros
from funcgrad.higher_order.linearity import parted, together
from funcgrad.higher_order.scan import cut
from funcgrad.higher_order.series import taylor_of_switch
from funcgrad.lowering import Branch, Form
from funcgrad.observers.checks import Kinds, Site
from funcgrad.primitives.elementwise import convert, equal, maximum, minimum
from funcgrad.primitives.reductions import ReduceAny
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
Slot = tuple[tuple[int, ...], Any, int]
"""A place for residuals: shape, dtype, and number among those of this type."""


class Switch(Primitive):
    """Run one of ``branches``: ``bind(index, *operands)``, the index clipped to those that exist.

    Attributes:
        branches: Programs with equal types of inputs and of outputs.
    """

    branches: tuple[Program, ...]

    multiple_results = True
    is_composite = True
    taylor = taylor_of_switch
    divided = divided_switch
    makes_no_nans = True

    @property
    def is_effectful(self) -> bool:  # type: ignore[override]
        return any(b.is_effectful for b in self.branches)

    def chosen(self, index: Any) -> Program:
        """Select the branch for a concrete index."""
        return self.branches[min(max(int(index), 0), len(self.branches) - 1)]

    def impl(self, index: Any, *operands: Any) -> Any:
        demand_agreement(axis_names_of(self), int(index), "cond or switch: the index")
        return run_program(self.chosen(index), operands)

    def impl_inside_plan(self, index: Any, *operands: Any) -> Any:
        return run_program(self.chosen(index), operands)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return [a.strong() for a in self.branches[0].out_avals]

    def lower(self, *avals: ShapedArray) -> Form:
        assert avals[0].dtype == INT64, "native code reads eight bytes"
        return Branch()

    def params(self) -> dict[str, Any]:
        return {"branches": self.branches}

    def _memo(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        return self.branches[0].memo((*key, self.branches), make)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        active = tuple(t is not None for t in tangents[1:])
        branches, is_active_out = self._memo(("switch jvp", active), lambda: self._jvp(active))
        results = Switch(branches).bind(*primals, *(t for t in tangents if t is not None))
        n = len(is_active_out)
        return results[:n], scatter(results[n:], is_active_out)

    def _jvp(self, active: Mask) -> tuple[tuple[Program, ...], Mask]:
        derived = [jvp_program(b, active) for b in self.branches]
        joined = _any(d.is_active_out for d in derived)
        dot_avals = _where(self.abstract_eval(), joined)
        n = len(joined)

        def filled(program: Program, own: Mask) -> Program:
            def run(*args: Any) -> list[Any]:
                outs, dots = cut(evaluate(program, args), n)
                return [*outs, *_fill(dots, own, joined, dot_avals)]

            return stage_closed(run, program.in_avals, program.name)

        return tuple(filled(d.program, d.is_active_out) for d in derived), joined

    def linearize(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Any, Any]:
        return self._apply(linearize_program, primals, tangents)

    def separate(self, args: Sequence[Value], is_linear: Sequence[bool]) -> list[Value] | None:
        if is_linear[0]:
            return None
        return together(*self._apply(separate_program, *parted(args, is_linear)))

    def _apply(
        self,
        split_program: Callable[[Program, Mask], LinearizedProgram],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> tuple[Any, Any]:
        active = tuple(t is not None for t in tangents[1:])
        key = ("switch", split_program, active)
        split = self._memo(key, lambda: _Linearized(self, active, split_program))
        index, *operands = primals
        results = Switch(split.forward).bind(*primals)
        n = len(split.is_active_out)
        if not any(split.is_active_out):
            return results[:n], [None] * n
        residuals = [operands[i] for i in split.forwarded]
        residuals += [results[i] for i in split.returned]
        nonzero = [t for t in tangents if t is not None]
        dots = Switch(split.tangent).bind(index, *residuals, *results[n:], *nonzero)
        return results[:n], scatter(dots, split.is_active_out)

    def linear_parts(self, is_linear: Mask) -> list[tuple[Program, Mask]] | None:
        return None if is_linear[0] else [(b, is_linear[1:]) for b in self.branches]

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        index, *operands = args
        linear = tuple(map(is_linear, operands))
        given = tuple(c is not None for c in ct)
        branches, is_active_in = self._memo(
            ("switch transpose", linear, given), lambda: self._transposed(linear, given)
        )
        known = [x for x in operands if not is_linear(x)]
        results = Switch(branches).bind(index, *known, *(c for c in ct if c is not None))
        return [None, *scatter(results, is_active_in)]

    def _transposed(self, linear: Mask, given: Mask) -> tuple[tuple[Program, ...], Mask]:
        derived = [transpose_program(b, linear, given) for b in self.branches]
        joined = _any(d.is_active_in for d in derived)
        avals = _where([a.strong() for a in self.branches[0].in_avals], joined)

        def filled(program: Program, own: Mask) -> Program:
            def run(*args: Any) -> list[Any]:
                return _fill(evaluate(program, args), own, joined, avals)

            return stage_closed(run, program.in_avals, program.name)

        return tuple(filled(d.program, d.is_active_in) for d in derived), joined

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Failure]]:
        derived = [check_program(b, kinds) for b in self.branches]
        sites = tuple(site for d in derived for site in d.sites)
        if not sites:
            return Switch(tuple(d.program for d in derived)).bind(*args), ()
        branches = self._memo(("switch checked", kinds), lambda: _among(derived, sites))
        results = Switch(branches).bind(*args)
        n = derived[0].n_outputs
        return results[:n], [Failure.of_flat(sites, results[n:])]

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = mapped_length(args, dims)
        index, *operands = args
        mapped = tuple(d is not None for d in dims[1:])
        if dims[0] is None:
            key = ("switch batch", mapped, size, divided_axis())
            branches, out_mapped = self._memo(key, lambda: self._batched(mapped, size))
            outs = Switch(branches).bind(index, *operands)
            return outs, [0 if on else None for on in out_mapped]
        outs = self._by_lane(index, operands, mapped, size)
        out_dims: list[BatchDim] = [0] * len(outs)
        for i, k in self._handed_on().items():
            outs[i], out_dims[i] = operands[k], dims[1:][k]
        return outs, out_dims

    def _handed_on(self) -> dict[int, int]:
        """Results that are the same operand in all branches, and which."""
        first, *others = self.branches
        places = {id(x): k for k, x in enumerate(first.inputs)}
        found = {i: places[id(x)] for i, x in enumerate(first.outputs) if id(x) in places}
        return {
            i: k
            for i, k in found.items()
            if all(branch.outputs[i] is branch.inputs[k] for branch in others)
        }

    def _batched(self, mapped: Mask, size: int) -> tuple[tuple[Program, ...], Mask]:
        derived = [batch_program(b, mapped, size) for b in self.branches]
        joined = _any(d.is_mapped_out for d in derived)

        def widened(program: Program, own: Mask) -> Program:
            def run(*args: Any) -> list[Any]:
                return broadcast_lanes(evaluate(program, args), own, joined, size)

            return stage_closed(run, program.in_avals, program.name)

        return tuple(widened(d.program, d.is_mapped_out) for d in derived), joined

    def _by_lane(self, index: Any, operands: Sequence[Any], mapped: Mask, size: int) -> list[Any]:
        """All branches, each for the lanes that want it."""
        last = np.int64(len(self.branches) - 1)
        index = minimum.bind(maximum.bind(convert(index, INT64), np.int64(0)), last)
        if divided_axis() is not None:
            # Processes that skip a branch would miss the sums of its cotangents.
            everywhere = (True,) * len(operands)
            operands, mapped = broadcast_lanes(operands, mapped, everywhere, size), everywhere
        outs: list[Any] = []
        for i, branch in enumerate(self.branches):
            flag = equal.bind(index, np.int64(i))
            given, places = operands, mapped
            if branch.is_effectful:
                branch, given, places = count_if(branch), [flag, *operands], (True, *mapped)
            own = self._for_lanes(branch, flag, given, places, size)
            outs = own if not i else [choose(flag, x, y) for x, y in zip(own, outs, strict=True)]
        return outs

    def _for_lanes(
        self, branch: Program, flag: Any, operands: Sequence[Any], mapped: Mask, size: int
    ) -> list[Any]:
        wanted = (True,) * len(branch.outputs)
        if not is_guard_needed(branch, operands, mapped):
            everywhere = (True,) * len(operands)
            derived = batch_program(branch, everywhere, size)
            full = broadcast_lanes(operands, mapped, everywhere, size)
            with np.errstate(all="ignore"):  # of lanes that do not want the branch
                outs = evaluate(derived.program, shield(branch, flag, full, everywhere))
                return broadcast_lanes(outs, derived.is_mapped_out, wanted, size)
        derived = batch_program(branch, mapped, size)
        avals = [a.update(shape=(size, *a.shape)) for a in self.abstract_eval()]

        def run(flag: Any, *args: Any) -> list[Any]:
            outs = evaluate(derived.program, shield(branch, flag, args, mapped))
            return broadcast_lanes(outs, derived.is_mapped_out, wanted, size)

        def skip(flag: Any, *args: Any) -> list[Any]:
            return [zeros(a) for a in avals]

        in_avals = [aval_of(x).strong() for x in (flag, *operands)]
        programs = [stage_closed(f, in_avals, branch.name) for f in (skip, run)]
        is_wanted = convert(ReduceAny((0,)).bind(flag), INT64)
        outs = Switch(tuple(programs)).bind(is_wanted, flag, *operands)
        return list(outs)


def _among(derived: Sequence[CheckedProgram], sites: tuple[Site, ...]) -> tuple[Program, ...]:
    """Branches that say what they found wrong at sites of all of them."""

    def placed(inner: CheckedProgram, offset: int) -> Program:
        def run(*args: Any) -> list[Any]:
            results = evaluate(inner.program, args)
            found = inner.failure(results) if inner.sites else nothing(())
            return [*results[: inner.n_outputs], *found.among(sites, offset).flat]

        return stage_closed(run, inner.program.in_avals, inner.program.name)

    offsets = accumulate((len(d.sites) for d in derived), initial=0)
    return tuple(placed(d, offset) for d, offset in zip(derived, offsets, strict=False))


class _Linearized:
    """The branches of a switch, each split, with common residuals between the halves.

    Attributes:
        forward: Branches that return their results, then the slots.
        tangent: Branches of ``forwarded`` operands, ``returned`` results, slots, and tangents.
        forwarded: Operands that are residuals of some branch.
        returned: Results that are residuals of some branch.
        is_active_out: Which results have tangents.
    """

    def __init__(
        self,
        switch: Switch,
        active: Mask,
        split_program: Callable[[Program, Mask], LinearizedProgram],
    ) -> None:
        splits = [split_program(b, active) for b in switch.branches]
        self.is_active_out = _any(s.is_active_out for s in splits)
        self.out_avals = switch.abstract_eval()
        self.in_avals = [a.strong() for a in switch.branches[0].in_avals]
        self.active = active
        n = len(self.out_avals)
        sources = [source for s in splits for source in s.residuals]
        self.forwarded = sorted({i for kind, i in sources if kind == "in"})
        self.returned = sorted({i for kind, i in sources if kind == "out" and i < n})
        self.places = [_slots(s) for s in splits]
        self.slots = sorted({p for own in self.places for p in own.values()}, key=str)
        pairs = list(zip(splits, self.places, strict=True))
        self.forward = tuple(self._forward(s, own) for s, own in pairs)
        self.tangent = tuple(self._tangent(s, own) for s, own in pairs)

    def _slot_avals(self) -> list[ShapedArray]:
        return [ShapedArray(shape, dtype) for shape, dtype, _ in self.slots]

    def _forward(self, split: LinearizedProgram, own: dict[int, Slot]) -> Program:
        held = {slot: i for i, slot in own.items()}

        def run(*args: Any) -> list[Any]:
            outs = evaluate(split.forward, args)
            stored = [
                outs[held[slot]] if slot in held else zeros(aval)
                for slot, aval in zip(self.slots, self._slot_avals(), strict=True)
            ]
            return [*outs[: split.n_outputs], *stored]

        return stage_closed(run, split.forward.in_avals, split.forward.name)

    def _tangent(self, split: LinearizedProgram, own: dict[int, Slot]) -> Program:
        n_forwarded, n_returned = len(self.forwarded), len(self.returned)
        dot_avals = _where(self.out_avals, self.is_active_out)

        def run(*args: Any) -> list[Any]:
            operands, results, stored, dots = cut(args, n_forwarded, n_returned, len(self.slots))
            known: dict[tuple[str, int], Any] = {}
            known.update(zip((("in", i) for i in self.forwarded), operands, strict=True))
            known.update(zip((("out", i) for i in self.returned), results, strict=True))
            at = dict(zip(self.slots, stored, strict=True))
            known.update((("out", i), at[slot]) for i, slot in own.items())
            outs = evaluate(split.tangent, [*(known[s] for s in split.residuals), *dots])
            return _fill(outs, split.is_active_out, self.is_active_out, dot_avals)

        avals = [
            *(self.in_avals[i] for i in self.forwarded),
            *(self.out_avals[i] for i in self.returned),
            *self._slot_avals(),
            *_where(self.in_avals, self.active),
        ]
        return stage_closed(run, avals, split.tangent.name)


def _slots(split: LinearizedProgram) -> dict[int, Slot]:
    """A slot for every residual that is neither an operand nor a result."""
    counts: Counter[Any] = Counter()
    slots = {}
    out_avals = split.forward.out_avals
    for kind, i in split.residuals:
        if kind == "out" and i >= split.n_outputs:
            aval = out_avals[i]
            kind_of = (aval.shape, aval.dtype)
            slots[i] = (*kind_of, counts[kind_of])
            counts[kind_of] += 1
    return slots


def _any(masks: Any) -> Mask:
    """Disjunction of the masks."""
    return reduce(lambda a, b: tuple(x or y for x, y in zip(a, b, strict=True)), masks)


def _where(values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    return [x for x, on in zip(values, mask, strict=True) if on]


def _fill(
    values: Sequence[Any], own: Mask, joined: Mask, avals: Sequence[ShapedArray]
) -> list[Any]:
    """The values that are wanted, zeros for those that this branch does not have."""
    given = _where(scatter(values, own), joined)
    return [zeros(a) if x is None else x for x, a in zip(given, avals, strict=True)]
