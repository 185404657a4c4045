"""Programs whose steps are measured, and the user's lines that a step's time belongs to.

A `TimedProgram` is an executable's plan once more, with a timer around every step (`timed_steps`):
while it is on, calls of the executable run it, and nothing of the executable is changed but the
table that it runs. Kernels of several lines are compiled a second time with line tables, so that a
sampler, which knows where in its code a processor is, knows the line (`sampled`); without one, or
for code that LLVM gives no line, time is divided by what the operations should take (`divided`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler import abi
from funcgrad.compiler.loops.language import Assign, Body, Evaluate, For, While, every, variables
from funcgrad.compiler.native.translate import simplified
from funcgrad.compiler.nest.allocate import Nested
from funcgrad.compiler.nest.cost import moves_of
from funcgrad.compiler.nest.kernel import Kernel
from funcgrad.compiler.nest.nodes import Fold, Loop, Nest, Node, Point
from funcgrad.compiler.plans import Job, nodes_of
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.executable import Executable, Step, StepTable
from funcgrad.costs import Cost, arithmetic_of
from funcgrad.observers.source import SourceLocation
from funcgrad.profiling import timed_steps
from funcgrad.profiling.line_table import LineTable, read_lines
from funcgrad.reports import Machine

Line = SourceLocation | None
"""A line of the user's; ``None`` where nobody knows it."""


MANY_LINES = 2
"""Lines of a kernel from which on samples tell more than its timer."""


@dataclass
class LinedKernel:
    """A kernel with a line table.

    Attributes:
        address: Where it is.
        table: The statements of its instructions.
        lines: The user's line of every statement.
    """

    address: int
    table: LineTable
    lines: list[Line]

    def shares(self, places: np.ndarray) -> dict[Line, float]:
        """How much of the kernel belongs to each line, by where processors were found.

        What is of no statement counts for those of which LLVM has left nothing, by their sizes.
        """
        found = self.table.shares(self.inside(places))
        there = {int(k) for k in np.unique(self.table.lines)}
        nowhere = found.pop(0, 0.0)
        gone = {
            k: size for k, size in self.table.sizes.items()
            if k not in there and self.lines[k - 1] is not None
        }  # fmt: skip
        for k, size in gone.items():
            found[k] = found.get(k, 0.0) + nowhere * size / sum(gone.values())
        shares: dict[Line, float] = {}
        for k, count in found.items():
            line = self.lines[k - 1]
            if line is not None and count:
                shares[line] = shares.get(line, 0.0) + count
        return shares

    def without_line(self, places: np.ndarray) -> float:
        """How much of the kernel is of no line, counters of its loops among it."""
        found = self.table.shares(self.inside(places))
        return sum(count for k, count in found.items() if not k or self.lines[k - 1] is None)

    def inside(self, places: np.ndarray) -> np.ndarray:
        """The places that are in the kernel, counted from its first instruction."""
        inside = places - self.address
        return inside[(inside >= self.table.first) & (inside < self.table.end)]


@dataclass
class TimedStep:
    """A step of a program that is measured.

    Attributes:
        job: What it runs; ``None`` for the check of donated arrays.
        inside: The step of the loop or branch that runs it; -1 if the program does.
        parts: How many parts it has, for several threads.
        kernel: The kernel with its lines, if it has several.
    """

    job: Job | None
    inside: int
    parts: int = 1
    kernel: LinedKernel | None = None

    def instructions(self) -> dict[SourceLocation, float]:
        """How much of its kernel, as LLVM is given it, each of the user's lines is."""
        if self.job is None:
            return {}
        if self.kernel is None:
            lines = [line for line in costs_of(nodes_of(self.job)) if line is not None]
            return {line.shared: 1 / len(lines) for line in lines}
        sizes: dict[SourceLocation, float] = {}
        for k, size in self.kernel.table.sizes.items():
            line = self.kernel.lines[k - 1]
            if line is not None:
                sizes[line.shared] = sizes.get(line.shared, 0.0) + size
        return {line: size / sum(sizes.values()) for line, size in sizes.items()}


class TimedProgram:
    """An executable with a timer around every step.

    Attributes:
        steps: The steps, those of loops and branches behind the steps that run them.
        counters: The words of `timed_steps` of every step.
        part_counters: Likewise, of its parts.
    """

    def __init__(self, executable: Executable, log: np.ndarray, has_sampler: bool) -> None:
        plan = executable.plan
        self.executable = executable
        self.has_sampler = has_sampler
        self.log = log
        self.plain = executable.table
        self.tables = {s.address: s for s in executable.nested}
        self.steps: list[TimedStep] = []
        n = len(self.plain.steps) + sum(len(s.steps) for s in executable.nested)
        self.counters, self.part_counters = (np.zeros((n, 4), np.int64) for _ in range(2))
        self.counters[:, timed_steps.NUMBER] = self.part_counters[:, timed_steps.NUMBER] = range(n)
        self.counters[:, timed_steps.LOG] = self.part_counters[:, timed_steps.LOG] = log.ctypes.data
        self.nested: list[StepTable] = []
        self.table = self._timed(self.plain, plan.jobs, -1)
        graph = plan.graph
        self.table.describe = self.plain.describe
        written = [value.home for value in graph.outputs if value.home is not value]
        self.table.seal(graph.inputs, written)

    def start(self) -> None:
        """Measure from now on, from 0."""
        self.counters[:, : timed_steps.NUMBER] = self.part_counters[:, : timed_steps.NUMBER] = 0
        self.executable.timed = self
        self.executable.table = self.table

    def keep(self) -> None:
        """Keep what was measured until now: what follows does not count."""
        self.kept, self.kept_parts = self.counters.copy(), self.part_counters.copy()

    def stop(self) -> None:
        """Run as before."""
        self.executable.table = self.plain

    # The steps.

    def _timed(self, table: StepTable, jobs: Sequence[Sequence[Job]], inside: int) -> StepTable:
        rows: list[Job | None] = [job for row in jobs for job in row]
        rows[:0] = [None] * (len(table.steps) - len(rows))
        steps = []
        for job, step in zip(rows, table.steps, strict=True):
            number = len(self.steps)
            self.steps.append(TimedStep(job, inside))
            if isinstance(job, Nested):
                step = self._with_tables(job, step, number)
            else:
                step = self._with_kernel(job, step, self.steps[-1], number)
            steps.append(timed_steps.timed_step(step, self.counters[number]))
        return StepTable(steps)

    def _with_tables(self, job: Nested, step: Step, number: int) -> Step:
        """A loop or branch that runs tables of timed steps."""
        words = list(step.words)
        if isinstance(job.node, Loop):
            places = [abi.LOOP_WORDS.index(name) for name in ("condition", "body")]
            places = [place for place in places if words[place]]
        else:
            places = [*range(len(words) - len(job.sections), len(words))]
        for place, section in zip(places, job.sections, strict=True):
            inner = self._timed(self.tables[words[place]], section.jobs, number)
            inner.seal((), ())
            self.nested.append(inner)
            words[place] = inner.address
        return Step(step.address, words, step.held, step.flushes)

    def _with_kernel(self, job: Job | None, step: Step, timed: TimedStep, number: int) -> Step:
        """A step that runs the kernel with lines, if that tells more, with its parts measured."""
        address = 0
        if isinstance(job, Kernel) and self.has_sampler and len(costs_of(job.nodes)) >= MANY_LINES:
            numbers, lines = numbered(job)
            build = kernel_store.kernel_with_lines(job.function, numbers)
            table = None if build is None else read_lines(build)
            if build is not None and table is not None:
                timed.kernel = LinedKernel(build.address, table, lines)
                address = timed.kernel.address
        if step.address != kernel_store.parallel_address():
            return Step(address or step.address, step.words, step.held, step.flushes)
        place = abi.PARALLEL_WORDS.index("kernel")
        timed.parts = step.words[abi.PARALLEL_WORDS.index("count")]
        return timed_steps.timed_parts(
            step, address or step.words[place], self.part_counters[number]
        )

    # Measurements.

    def seconds(self) -> list[float]:
        """The time of every step, without that of the steps that it runs."""
        ticks = self.kept[:, timed_steps.TICKS].tolist()
        own = list(ticks)
        for step, time in zip(self.steps, ticks, strict=False):
            if step.inside >= 0:
                own[step.inside] -= time
        return [max(time, 0) * timed_steps.tick() for time in own]

    def on_threads(self) -> list[float]:
        """The time of every step on all threads."""
        parts = self.kept_parts[:, timed_steps.TICKS].tolist()
        return [
            time if step.parts == 1 else n * timed_steps.tick()
            for step, time, n in zip(self.steps, self.seconds(), parts, strict=False)
        ]

    def calls(self) -> list[int]:
        """How often every step has run."""
        return self.kept[: len(self.steps), timed_steps.CALLS].tolist()


# Lines.


def costs_of(nodes: Iterable[Node], times: float = 1.0) -> dict[Line, tuple[Cost, float]]:
    """Costs of nodes that run together, by line, and how often each line is run.

    Args:
        nodes: The nodes.
        times: How often they run; loops inside of them run their bodies as often as they say.
    """
    found: dict[Line, tuple[Cost, float]] = {}
    nodes = list(nodes)
    for node, moved in zip(nodes, moves_of(nodes), strict=True):
        if isinstance(node, Nest):
            count = node.length or 1 if isinstance(node, Loop) else 1 / len(node.bodies)
            rows = [costs_of(body.nodes, times * count) for body in node.bodies]
        else:
            cost = arithmetic_of(node) + Cost(nbytes=float(moved))
            rows = [{line_of(node): (cost.times(times), times)}]
        for row in rows:
            for line, (cost, calls) in row.items():
                known, most = found.get(line, (Cost(), 0.0))
                found[line] = known + cost, max(calls, most)
    return found


def line_of(node: Node) -> Line:
    """The user's line of a node, whatever block it stands in."""
    source = None if node.equation is None else node.equation.source
    return None if source is None else source.unscoped.in_phase(source.phase)


def divided(job: Job, machine: Machine) -> dict[Line, float]:
    """Time that each line of a step should take, relatively."""
    found = {}
    for line, (cost, _) in costs_of(nodes_of(job)).items():
        found[line] = machine.seconds(cost, 8) or _LEAST_SECONDS
    return found


_LEAST_SECONDS = 1e-12

_OWN = re.compile(r"[va](\d+)(?!\d)")
_PREFIX = re.compile(r"k\d+_")


def _node_of(kernel: Kernel, name: str) -> Node | None:
    """The node that a variable of a kernel belongs to, by its name."""
    prefix = _PREFIX.match(name)
    if prefix is not None and prefix[0] in kernel.joined:
        inner = kernel.joined[prefix[0]]
        return _node_of(inner, name[prefix.end() :]) or inner.nodes[0]
    found = _OWN.match(name)
    if found is not None and isinstance(kernel.nodes[0], Point | Fold):
        number = int(found[1])
        return kernel.nodes[number] if number < len(kernel.nodes) else None
    return None


def statements_of(kernel: Kernel) -> list[Line]:
    """The user's line of every statement of a kernel, as it is translated.

    A variable whose name does not tell belongs to the line that reads it first, and a store to that
    of what it stores. Control flow belongs to no line.
    """
    statements = list(every(simplified(kernel.function).body))
    nodes: list[Node | None] = []
    # Of assignments and stores, from the last operand to the first.
    read = [
        [*variables(statement.value)] if isinstance(statement, Assign | Evaluate) else []
        for statement in statements
    ]
    for statement in statements:
        name = statement.name if isinstance(statement, Assign) else ""
        nodes.append(_node_of(kernel, name) if name else None)
    reader: dict[str, Node] = {}
    for k in range(len(statements) - 1, -1, -1):
        statement, node = statements[k], nodes[k]
        if node is None and isinstance(statement, Assign):
            node = nodes[k] = reader.get(statement.name)
        if node is not None:
            reader.update(dict.fromkeys(read[k], node))
    maker: dict[str, Node] = {}
    for k, statement in enumerate(statements):
        if nodes[k] is None and isinstance(statement, Evaluate):
            nodes[k] = next((maker[name] for name in read[k] if name in maker), None)
        node = nodes[k]
        if isinstance(statement, Assign) and node is not None:
            maker[statement.name] = node
    if all(node is None for node in nodes) and len(kernel.nodes) == 1:
        nodes = [kernel.nodes[0]] * len(nodes)
    return [None if node is None else line_of(node) for node in nodes]


def numbered(kernel: Kernel) -> tuple[list[int], list[Line]]:
    """Numbers of the statements of a kernel, and the line of each number from 1 on.

    Where LLVM moves an instruction it looks at the one behind, and tells the lower number. What
    nodes compute, in inner loops, comes before indices, masks and what is around these loops;
    statements of no line have the highest number.
    """
    lines, body = statements_of(kernel), simplified(kernel.function).body
    is_own = [isinstance(s, Assign) and _node_of(kernel, s.name) is not None for s in every(body)]
    ranks = [*zip(is_own, _depths(body), strict=True)]
    known = [k for k, line in enumerate(lines) if line is not None]
    known.sort(key=ranks.__getitem__, reverse=True)
    numbers = dict(zip(known, range(1, len(known) + 1), strict=True))
    rows = [numbers.get(k, len(known) + 1) for k in range(len(lines))]
    return rows, [*(lines[k] for k in known), None]


def _depths(body: Body, depth: int = 0) -> Iterator[int]:
    """How many loops are around each of `language.every` statement."""
    for statement in body:
        yield depth
        for block in statement.parts()[2]:
            yield from _depths(block, depth + isinstance(statement, For | While))
