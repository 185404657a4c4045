"""From steps and samples to lines: where the time of a function went.

Time of compiled programs is measured step by step. In a step of several lines it is divided by
where the processor was sampled; without samples, by what the operations should take. Time of Python
is sampled.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.allocate import Nested
from funcgrad.compiler.nest.lower import build, simplified
from funcgrad.compiler.plans import nodes_of
from funcgrad.core.avals import ShapedArray
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Equation, Program, Var
from funcgrad.costs import Cost
from funcgrad.observers.source import SourceLocation
from funcgrad.profiling.session import Measured
from funcgrad.profiling.timing import Line, TimedProgram, TimedStep, costs_of, divided, line_of
from funcgrad.reports import Machine

LEAST_SAMPLES = 20
"""Samples of a kernel that its time is divided by; fewer say less than a model does."""


def _zeros() -> defaultdict[Any, float]:
    return defaultdict(float)


@dataclass
class LineTimes:
    """Work of one line in a call.

    Attributes:
        location: The line.
        seconds: Its time by phase: ``""``, ``"backward"``, ``"remat"``.
        python: Time of Python and of operations that NumPy evaluates, which is part of it.
        sampled: Time of shared kernels, divided by samples.
        modelled: Time of shared kernels, divided by a model of costs.
        threads: Time on all threads.
        cost: Operations and bytes.
        calls: How often it runs.
        neighbours: Time of the kernels that it shares with others, by line of these.
    """

    location: SourceLocation
    seconds: defaultdict[str, float] = field(default_factory=_zeros)
    python: float = 0.0
    sampled: float = 0.0
    modelled: float = 0.0
    threads: float = 0.0
    cost: Cost = field(default_factory=Cost)
    calls: float = 0.0
    neighbours: defaultdict[SourceLocation, float] = field(default_factory=_zeros)

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def lines_of(measured: Measured, machine: Machine) -> tuple[dict[SourceLocation, LineTimes], float]:
    """The times of all lines in one call, and what belongs to none."""
    return _Collector(measured, machine).collected()


class _Collector:
    def __init__(self, measured: Measured, machine: Machine) -> None:
        self.measured = measured
        self.machine = machine
        self.n = measured.n_calls
        self.lines: dict[SourceLocation, LineTimes] = {}
        self.nowhere = 0.0

    def collected(self) -> tuple[dict[SourceLocation, LineTimes], float]:
        native = 0.0
        for program in self.measured.programs:
            native += self._program(program)
        self._python(native)
        self._operations()
        return self.lines, self.nowhere

    def _line(self, line: Line) -> LineTimes | None:
        if line is None:
            return None
        place = line.shared
        return self.lines.setdefault(place, LineTimes(place))

    # Compiled programs.

    def _program(self, program: TimedProgram) -> float:
        """Add the steps of a program; the time of the calling thread in it."""
        total = 0.0
        rows = zip(
            program.steps, program.seconds(), program.on_threads(), program.calls(), strict=True
        )
        for step, seconds, threads, calls in rows:
            total += seconds
            if step.job is not None and calls:
                self._step(step, seconds / self.n, threads / self.n, calls / self.n)
            else:
                self.nowhere += seconds / self.n
        return total

    def _step(self, step: TimedStep, seconds: float, threads: float, calls: float) -> None:
        assert step.job is not None
        costs: Costs = costs_of(nodes_of(step.job))
        if isinstance(step.job, Nested):
            costs = {line: (Cost(), 1.0) for line in [line_of(step.job.node)]}
        shares, way = self._shares(step, costs)
        for line, share in shares.items():
            found = self._line(line)
            if found is None:
                self.nowhere += seconds * share
                continue
            assert line is not None
            found.seconds[line.phase] += seconds * share
            found.threads += threads * share
            if way is not None:
                setattr(found, way, getattr(found, way) + seconds * share)
            for other, others in shares.items():
                if other is not None and other.shared is not found.location:
                    found.neighbours[other.shared] += seconds * others
        for line, (cost, times) in costs.items():
            found = self._line(line)
            if found is not None:
                found.cost += cost.times(calls)
                found.calls = max(found.calls, times * calls)

    def _shares(
        self, step: TimedStep, costs: dict[Line, Any]
    ) -> tuple[dict[Line, float], str | None]:
        """Divide a step's time among lines; and the way in which that is known."""
        if len(costs) == 1:
            return dict.fromkeys(costs, 1.0), None
        way, shares = "modelled", {}
        if step.kernel is not None:
            found = step.kernel.shares(self.measured.samples)
            if sum(found.values()) >= LEAST_SAMPLES:
                way, shares = "sampled", found
        assert step.job is not None
        if not shares:  # what has no line is there for those that have one
            model = divided(step.job, self.machine)
            shares = {line: time for line, time in model.items() if line is not None} or model
        total = sum(shares.values())
        return {line: share / total for line, share in shares.items()}, way

    # Python.

    def _python(self, native: float) -> None:
        """Add what was sampled of Python: all the time that the programs did not take.

        The way into a program cannot be told from the program by a sample: it is what is left.
        """
        measured = self.measured
        rows: defaultdict[Line, float] = defaultdict(float, measured.python)
        pulled = sum(measured.transposes.values())
        for line, seconds in measured.transposes.items():
            rows[line] += measured.pulled * seconds / pulled
        if not pulled:
            rows[None] += measured.pulled
        left = max(measured.seconds - native, 0.0)
        python, around = sum(rows.values()), sum(measured.native.values())
        for line, seconds in measured.native.items():
            rows[line] += max(left - python, 0.0) * seconds / around
        total = sum(rows.values())
        for line, seconds in rows.items():
            seconds *= left / total / self.n if total else 0.0
            found = self._line(line)
            if found is None:
                self.nowhere += seconds
                continue
            assert line is not None
            found.seconds[line.phase] += seconds
            found.python += seconds
            found.threads += seconds
        if not total:
            self.nowhere += left / self.n

    def _operations(self) -> None:
        """Add the costs of what NumPy evaluates."""
        known: dict[Any, Costs] = {}
        for (line, primitive, avals), count in self.measured.operations.items():
            key = primitive, avals
            if key not in known:
                known[key] = _costs_of(primitive, avals)
            for inner, (cost, calls) in known[key].items():
                found = self._line(inner or line)
                if found is not None:
                    found.cost += cost.times(count)
                    found.calls = max(found.calls, calls * count)


Costs = dict[Line, tuple[Cost, float]]


def _costs_of(primitive: Primitive, avals: tuple[ShapedArray, ...]) -> Costs:
    """Costs of one operation by itself: by line, if it runs a program, else of no line."""
    inputs = [Var(aval) for aval in avals]
    out = primitive.abstract_eval(*avals)
    outputs = [Var(aval) for aval in (out if primitive.multiple_results else [out])]
    program = Program(inputs, [Equation(primitive, inputs, outputs)], outputs, "operation")
    return costs_of(build(simplified(program)).nodes)
