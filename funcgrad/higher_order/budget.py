"""Checkpoints that choose for themselves: the least work within a memory budget.

A program is cut into segments, each a checkpoint. The last segments of the program keep what is
worth its bytes (results of dear operations; cheap ones are done again), the others keep their
arguments only. How many segments there are, how many of them keep something, and from which worth
on, is found by search. Every candidate is linearised and transposed, and its memory and its work
are those of the programs that would run.

Left out: cutting the bodies of loops.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from itertools import accumulate, pairwise
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray
from funcgrad.core.primitive import Primitive, Value
from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.errors import MemoryBudgetError
from funcgrad.higher_order.checkpoint import (
    Checkpoint,
    SplitProgram,
    read,
    rename,
    split_program,
    without_jit,
)
from funcgrad.higher_order.policies import Policy, everything_saveable, nothing_saveable
from funcgrad.higher_order.staging import place
from funcgrad.observers.limits import format_bytes
from funcgrad.passes.cost import (
    bytes_of_outputs,
    density_of,
    peak_of_program,
    work_of,
    work_of_program,
)
from funcgrad.passes.cse import cse
from funcgrad.passes.dce import dce
from funcgrad.passes.inline import inline

Mask = tuple[bool, ...]


@dataclass(frozen=True)
class WorthSaving:
    """A policy: save what takes at least so much work per byte to compute again."""

    density: float

    def __call__(self, primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
        result = primitive.abstract_eval(*avals)
        outputs = [Var(a) for a in (result if primitive.multiple_results else [result])]
        return density_of(Equation(primitive, [Var(a) for a in avals], outputs)) >= self.density

    def __str__(self) -> str:
        return f"WorthSaving({self.density:.3g})"


@dataclass(frozen=True)
class MemoryPlan:
    """Plan of a budgeted checkpoint: the values that it keeps and computes again.

    Attributes:
        program: The function, with checkpoints.
        n_segments: How many segments the function has.
        n_saving: How many of them, from the end, keep more than their arguments.
        predicted_peak_bytes: The most memory that its value and gradient take at a time beyond the
            arguments: residuals, results, cotangents and intermediate values.
        compiled_peak_bytes: The same inside of `jit`, where residuals end with their last use.
        extra_work: Work that is done twice, as a fraction of that of value and gradient.
        saved_bytes: Results and residuals between the passes.
        unlimited_peak_bytes: The peak if nothing were computed again.
        is_compiled: Whether it runs compiled, because it calls compiled functions.
    """

    program: Program = field(repr=False)
    n_segments: int
    n_saving: int
    predicted_peak_bytes: int
    compiled_peak_bytes: int
    extra_work: float
    saved_bytes: int
    unlimited_peak_bytes: int
    is_compiled: bool

    def __str__(self) -> str:
        return (
            f"memory plan of {self.program.name}\n"
            f"  predicted peak      {format_bytes(self.predicted_peak_bytes)} "
            f"({format_bytes(self.unlimited_peak_bytes)} if nothing is computed again)\n"
            f"  inside jit          {format_bytes(self.compiled_peak_bytes)}\n"
            f"  extra work          {self.extra_work:.0%} of value and gradient\n"
            f"  kept between        {format_bytes(self.saved_bytes)}\n"
            f"  segments            {self.n_segments}, of which the last {self.n_saving} keep "
            "intermediate results"
        )


class Budgeted(Checkpoint):
    """A checkpoint whose derivative takes no more than ``limit`` bytes."""

    limit: int = 0

    def linearize(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Any, Any]:
        is_active = tuple(t is not None for t in tangents)
        plan = plan_memory(self.program, is_active, self.limit, self.prevent_cse)
        inner = Checkpoint(plan.program, everything_saveable, self.prevent_cse, plan.is_compiled)
        return inner.linearize(primals, tangents)

    def params(self) -> dict[str, Any]:
        return {"name": self.program.name, "budget": self.limit, "program": self.program}


def plan_memory(program: Program, is_active: Mask, limit: int, prevent_cse: bool) -> MemoryPlan:
    """The plan with the least extra work whose predicted peak is within ``limit``.

    Args:
        program: The function.
        is_active: Which inputs are differentiated.
        limit: Bytes.
        prevent_cse: As for `Checkpoint`.
    Raises: MemoryBudgetError: No plan is small enough.
    """
    key = (_fingerprint(program), is_active, limit, prevent_cse)
    known = _CHOICES.get(key)
    planner = _Planner(program, is_active, prevent_cse)
    if known is None:
        if len(_CHOICES) >= _MAX_CHOICES:
            _CHOICES.clear()
        known = _CHOICES[key] = planner.best(limit)
    choice, measures = known
    return MemoryPlan(planner.program_of(choice), len(choice.cuts) - 1, choice.n_saving, **measures)


@dataclass(frozen=True)
class _Choice:
    """Cuts of a program, and the values that the last segments keep."""

    cuts: tuple[int, ...]
    n_saving: int
    policy: Policy


# A function that is called again is traced again; what was decided for its equations still holds.
_CHOICES: dict[Hashable, tuple[_Choice, dict[str, Any]]] = {}
_MAX_CHOICES = 256


def _fingerprint(program: Program) -> Hashable:
    """Equal for programs of the same operations on the same types in the same order."""
    number = {var: i for i, var in enumerate(program.inputs)}
    rows = []
    for e in program.equations:
        number.update((var, len(number)) for var in e.outputs)
        inputs = tuple(number.get(a, -1) if type(a) is Var else -2 for a in e.inputs)
        params = e.primitive.params().values()
        inner = tuple(_fingerprint(p) if isinstance(p, Program) else str(p) for p in params)
        rows.append((e.primitive.name, inner, inputs, tuple(v.aval for v in e.outputs)))
    return tuple(v.aval for v in program.inputs), tuple(rows)


@dataclass(frozen=True)
class _Measured:
    peak: int
    work: float
    saved: int
    compiled_peak: int | None = None


class _Planner:
    def __init__(self, program: Program, is_active: Mask, prevent_cse: bool) -> None:
        self.program = program
        self.flat = without_jit(program)
        n = len(self.flat.equations)
        self.last_read: dict[Atom, int] = {
            a: i for i, e in enumerate(self.flat.equations) for a in e.inputs
        }
        self.last_read.update(dict.fromkeys(self.flat.outputs, n))
        self.is_active = is_active
        self.prevent_cse = prevent_cse
        self.parts: dict[tuple[int, int], Program] = {}
        self.measured: dict[_Choice, _Measured] = {}

    def best(self, limit: int) -> tuple[_Choice, dict[str, Any]]:
        """The choice, and the measures of its plan."""
        everything = _Choice((0, len(self.flat.equations)), 1, everything_saveable)
        plain = self._measure(everything)
        chosen = everything if plain.peak <= limit else self._search(limit, plain)
        found = self._measure(chosen)
        return chosen, {
            "predicted_peak_bytes": found.peak,
            "compiled_peak_bytes": self._compiled_peak(chosen),
            "extra_work": max(found.work - plain.work, 0.0) / max(plain.work, 1.0),
            "saved_bytes": found.saved,
            "unlimited_peak_bytes": plain.peak,
            "is_compiled": self.flat is not self.program,
        }

    def _search(self, limit: int, plain: _Measured) -> _Choice:
        small = sorted(
            (_Choice(cuts, 0, nothing_saveable) for cuts in self._divisions()),
            key=lambda choice: self._measure(choice).peak,
        )
        if not small or self._measure(small[0]).peak > limit:
            raise self._too_small(limit, small, plain)
        best = small[0]
        for least in small[:_MAX_DIVISIONS]:
            for policy in self._policies():
                found = self._most_saving(least.cuts, policy, limit, best)
                best = min(best, found, key=lambda c: self._measure(c).work)
        return best

    def _most_saving(
        self, cuts: tuple[int, ...], policy: Policy, limit: int, best: _Choice
    ) -> _Choice:
        """Choose as many saving segments as the limit allows, unless that cannot be better."""
        choices = [_Choice(cuts, n, policy) for n in range(1, len(cuts))]
        if self._measure(choices[-1]).work >= self._measure(best).work:
            return best
        n = bisect.bisect_right(choices, limit, key=lambda choice: self._measure(choice).peak)
        return choices[n - 1] if n else best

    def _too_small(
        self, limit: int, small: Sequence[_Choice], plain: _Measured
    ) -> MemoryBudgetError:
        least = min([plain.peak, *(self._measure(c).peak for c in small[:1])])
        return MemoryBudgetError(
            f"checkpoint({self.flat.name}, budget={format_bytes(limit)}): the least that value and "
            f"gradient can do with is {format_bytes(least)} ({format_bytes(plain.peak)} if nothing "
            f"is computed again).{place()} Raise the budget, or make the function of more and "
            "smaller steps."
        )

    # Programs.

    def program_of(self, choice: _Choice) -> Program:
        """The function, with checkpoints."""
        p, n = self.flat, len(choice.cuts) - 1
        if choice.policy is everything_saveable and choice.n_saving == n:
            return p
        equations = [
            self._segment(a, b, choice.policy if i >= n - choice.n_saving else nothing_saveable)
            for i, (a, b) in enumerate(pairwise(choice.cuts))
        ]
        return Program(p.inputs, equations, p.outputs, p.name, p.constants)

    def _segment(self, start: int, stop: int, policy: Policy) -> Equation:
        part = self._part(start, stop)
        call = Checkpoint(part, policy, self.prevent_cse)
        source = self.flat.equations[start].source
        return Equation(call, self._reads(start, stop), self._results(start, stop), source)

    def _part(self, start: int, stop: int) -> Program:
        key = (start, stop)
        if key not in self.parts:
            inputs = self._reads(start, stop)
            equations, outputs = self.flat.equations[start:stop], self._results(start, stop)
            self.parts[key] = Program(inputs, equations, outputs, self.flat.name)
        return self.parts[key]

    def _reads(self, start: int, stop: int) -> list[Var]:
        """Variables that a segment reads: inputs, constants and results of earlier segments."""
        part = self.flat.equations[start:stop]
        made = {v for e in part for v in e.outputs}
        read = [a for e in part for a in e.inputs if type(a) is Var and a not in made]
        return list(dict.fromkeys(read))

    def _results(self, start: int, stop: int) -> list[Var]:
        """Variables of a segment that later segments or the caller read."""
        part = self.flat.equations[start:stop]
        return [v for e in part for v in e.outputs if self.last_read.get(v, -1) >= stop]

    # Measures.

    def _measure(self, choice: _Choice) -> _Measured:
        if choice not in self.measured:
            forward, backward = self._passes(choice)
            kept = bytes_of_outputs(forward)
            cts = sum(a.nbytes for a in self.flat.out_avals if a.dtype.kind in "fc")
            peak = max(peak_of_program(forward), kept + cts + peak_of_program(backward))
            work = work_of_program(forward) + work_of_program(backward)
            self.measured[choice] = _Measured(peak, work, kept)
        return self.measured[choice]

    def _passes(self, choice: _Choice) -> tuple[Program, Program]:
        """The forward pass, and the backward pass for cotangents of all results."""
        split = self._split(choice)
        n_tangents = sum(self.is_active)
        n_known = len(split.tangent.inputs) - n_tangents
        linear = (*(False,) * n_known, *(True,) * n_tangents)
        call = Checkpoint(split.tangent, everything_saveable, self.prevent_cse)
        backward, _ = call.transposed(linear, (True,) * sum(split.is_active_out))
        return split.forward, backward

    def _split(self, choice: _Choice) -> SplitProgram:
        return split_program(self.program_of(choice), self.is_active, everything_saveable)

    def _compiled_peak(self, choice: _Choice) -> int:
        """The peak of both passes in one compiled program, where nothing outlives its use.

        Results have memory of their own from the start.
        """
        split, (forward, backward) = self._split(choice), self._passes(choice)
        n = split.n_outputs
        known = [*(forward.inputs[i] for i in split.inputs), *forward.outputs[n:]]
        names = dict(zip(backward.inputs, known, strict=False))
        both = Program(
            [*forward.inputs, *backward.inputs[len(known) :]],
            [*forward.equations, *rename(backward.equations, names)],
            [*forward.outputs[:n], *(read(a, names) for a in backward.outputs)],
            self.flat.name,
            [*forward.constants, *backward.constants],
        )
        results = sum(a.nbytes for a in both.out_avals)
        return peak_of_program(dce(cse(inline(both)))) + results

    # Where to cut, and what to keep.

    def _divisions(self) -> Iterator[tuple[int, ...]]:
        """Cuts into more and more segments of about equal size, at narrow places."""
        n = len(self.flat.equations)
        widths = self._widths()
        sizes = [
            sum(v.aval.nbytes for v in e.outputs) * (work_of(e) > 0) for e in self.flat.equations
        ]
        total = list(accumulate(sizes, initial=0))
        seen = set()
        for k in _counts(n):
            cuts = {0, n}
            for i in range(1, k):
                near = [bisect.bisect_left(total, total[-1] * (i + d) / k) for d in (-0.3, 0, 0.3)]
                low, middle, high = (min(max(x, 1), n - 1) for x in near)
                cuts.add(min(range(low, high + 1), key=lambda c: (widths[c], abs(c - middle))))
            found = tuple(sorted(cuts))
            if found not in seen:
                seen.add(found)
                yield found

    def _widths(self) -> list[int]:
        """Bytes that cross every place between two equations."""
        last = self.last_read
        steps = [0] * (len(self.flat.equations) + 2)
        for i, e in enumerate(self.flat.equations):
            for v in e.outputs:
                if last.get(v, i) > i:
                    steps[i + 1] += v.aval.nbytes
                    steps[last[v] + 1] -= v.aval.nbytes
        return list(accumulate(steps))

    def _policies(self) -> list[Policy]:
        """Policies that save more and more."""
        densities = {round(math.log2(d)) for e in self.flat.equations if (d := density_of(e)) > 0}
        levels = sorted(densities)[1:]
        chosen = levels if len(levels) <= _MAX_LEVELS else [levels[0], *levels[-2:]]
        return [*(WorthSaving(2.0 ** (level - 0.5)) for level in chosen[::-1]), everything_saveable]


_MAX_LEVELS = 3
_MAX_DIVISIONS = 3


def _counts(n: int) -> Iterator[int]:
    """Numbers of segments to try, for ``n`` equations."""
    k = 1
    while k <= min(n, 3 * math.isqrt(n) + 1):
        yield k
        k = max(k + 1, k * 3 // 2)


__all__ = ["Budgeted", "MemoryPlan", "format_bytes", "plan_memory"]
