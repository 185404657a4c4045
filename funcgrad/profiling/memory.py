"""Memory of a function: the most at a time, and the lines whose values it holds."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.layout import Value
from funcgrad.compiler.nest.nodes import Node, values_read
from funcgrad.compiler.plans import Plan, nodes_of
from funcgrad.core.program import Atom, Equation
from funcgrad.diagnostics.record import Record
from funcgrad.observers.limits import format_bytes
from funcgrad.observers.source import SourceLocation
from funcgrad.profiling.timing import Line, line_of
from funcgrad.reports import Report


@dataclass(frozen=True)
class MemoryProfile:
    """The most memory of a function at a time; prints as a sentence.

    Attributes:
        peak: Bytes of a compiled program, with arguments and results, or of the arrays that NumPy
            makes: whatever is more.
        holders: The lines whose values are there at that time, and the bytes of these, the largest
            first.
    """

    peak: int
    holders: tuple[tuple[SourceLocation, int], ...]

    def __str__(self) -> str:
        held = [f"{line.short()} ({format_bytes(n)})" for line, n in self.holders[:3]]
        text = f"{format_bytes(self.peak)} at most"
        return text + (f", held by {', '.join(held)}" if held else "")


def of_program(plan: Plan) -> MemoryProfile:
    """The memory of a compiled program, at the step at which its values take most."""
    rows = [[node for job in row for node in nodes_of(job)] for row in plan.jobs]
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    makers: dict[Value, Node] = {}
    for i, nodes in enumerate(rows):
        for node in nodes:
            for value in node.outs:
                if value.is_stored:
                    first.setdefault(value.home, i)
                    makers.setdefault(value.home, node)
            for value in (*node.outs, *values_read(node)):
                last[value.home] = i
    last.update((value.home, len(rows)) for value in plan.graph.outputs)
    live = [[v for v in first if first[v] <= i <= last[v]] for i in range(len(rows))]
    most = max(live, key=lambda values: sum(v.nbytes for v in values), default=[])
    held: Counter[SourceLocation] = Counter()
    for value in most:
        line = line_of(makers[value])
        if line is not None:
            held[line.shared] += value.nbytes
    peak = Report(plan).memory_analysis().peak_memory_in_bytes
    return MemoryProfile(peak, tuple(held.most_common()))


def of_record(known: Record) -> MemoryProfile:
    """The memory of the operations of a record, whose values live as long as they are read."""
    last = {atom: i for i, e in enumerate(known.equations) for atom in (*e.outputs, *e.inputs)}
    last.update(dict.fromkeys(known.outputs, len(known.equations)))
    live: dict[Atom, Equation] = {}
    most: list[tuple[Atom, Equation]] = []
    peak = 0
    for i, e in enumerate(known.equations):
        live.update(dict.fromkeys(e.outputs, e))
        now = sum(atom.aval.nbytes for atom in live)
        if now > peak:
            peak, most = now, [*live.items()]
        live = {atom: maker for atom, maker in live.items() if last[atom] > i}
    held: Counter[SourceLocation] = Counter()
    for atom, maker in most:
        if maker.source is not None:
            held[maker.source.shared] += atom.aval.nbytes
    return MemoryProfile(peak, tuple(held.most_common()))


class ArrayMemory:
    """The arrays of NumPy that operations have made and that are still there, by line."""

    def __init__(self) -> None:
        self.held: Counter[Line] = Counter()
        self.most: Counter[Line] = Counter()
        self.now = self.peak = 0
        self._refs: dict[int, Any] = {}

    def add(self, line: Line, results: Sequence[Any]) -> None:
        """Note the results of an operation."""
        for x in results:
            if type(x) is not np.ndarray or x.base is not None or id(x) in self._refs:
                continue

            def gone(_: Any, key: int = id(x), nbytes: int = x.nbytes) -> None:
                del self._refs[key]
                self.held[line] -= nbytes
                self.now -= nbytes

            self._refs[id(x)] = weakref.ref(x, gone)
            self.held[line] += x.nbytes
            self.now += x.nbytes
        if self.now > self.peak:
            self.peak, self.most = self.now, Counter(self.held)

    def found(self) -> MemoryProfile:
        held: Counter[SourceLocation] = Counter()
        for line, nbytes in self.most.items():
            if line is not None and nbytes:
                held[line.shared] += nbytes
        return MemoryProfile(self.peak, tuple(held.most_common()))
