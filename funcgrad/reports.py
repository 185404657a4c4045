"""Reports: the operations, costs and needs of a compiled program, made when they are asked for.

A `Report` tells what the compiler knew of a plan; text and figures are made only when somebody asks
for them, or ``FUNCGRAD_DEBUG`` does. Every step is shown with the lines of the user's code that it
computes. Kernels know nothing of that: functions share them, and what is remembered of them depends
on their text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache

import numpy as np

from funcgrad.base import environment
from funcgrad.base.records import dataclass
from funcgrad.compiler import pipeline
from funcgrad.compiler.nest.allocate import Nested
from funcgrad.compiler.nest.builder import is_uniform
from funcgrad.compiler.nest.cost import traffic_of
from funcgrad.compiler.nest.kernel import Kernel
from funcgrad.compiler.nest.layout import Value, View
from funcgrad.compiler.nest.nodes import Branch, External, Fold, Loop, Nest, Node, Point, all_nodes
from funcgrad.compiler.plans import Job, Plan, nodes_of, source_lines, type_of
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.compiler.runtime.matmul import Multiplication
from funcgrad.compiler.runtime.python_calls import PythonCall
from funcgrad.compiler.runtime.routines import ForeignCall
from funcgrad.core.printer import Names, format_program
from funcgrad.core.program import Program
from funcgrad.costs import Cost, cost_of, most_expensive, repeated

_FRAME_BYTES = 64
"""Bytes of a frame beside its arena and its slots, to align the arena."""

_CACHED = 1 << 20
"""Bytes up to which operands are taken to be in a cache already."""

_POINTER = re.compile(r"^ *\w+ = ptr_\w+\(slots\[args\[(\d+)\]\] \+ args\[\d+\]\)$")
_RESULT = re.compile(r"^ *v(\d+)(?:_\d+)? = ")


@dataclass(frozen=True)
class Machine:
    """Rates of the processor at hand, measured, with all threads.

    Attributes:
        flops: Operations per second in products of matrices, by the size of a number in bytes.
        functions: Elementary functions per second, likewise.
        memory: Bytes per second from and to memory.
        cache: Bytes per second from and to the caches.
    """

    flops: dict[int, float]
    functions: dict[int, float]
    memory: float
    cache: float

    def seconds(self, cost: Cost, itemsize: int) -> float:
        """The least time that something can take: of computing and of moving, the longer."""
        size = 4 if itemsize <= 4 else 8
        computing = cost.flops / self.flops[size] + cost.transcendentals / self.functions[size]
        return max(computing, cost.nbytes / (self.cache if cost.nbytes < _CACHED else self.memory))


@dataclass(frozen=True)
class StepCost:
    """Cost of one step of a plan.

    Attributes:
        step: What runs it: ``"kernel 0"``, ``"matrix product"``, ``"numpy: sort"``.
        source: The user's lines, each with the operations that it makes.
        flops: Operations on numbers, elementary functions apart.
        transcendentals: Elementary functions.
        bytes_accessed: Bytes read from and written to memory.
        seconds: The least time that this can take on this machine.
    """

    step: str
    source: tuple[str, ...]
    flops: float
    transcendentals: float
    bytes_accessed: float
    seconds: float


class CostAnalysis(dict[str, float]):
    """The result of ``cost_analysis``: a dict with JAX's keys, which prints as a table of steps.

    Keys are ``"flops"`` (operations on numbers, elementary functions apart),
    ``"transcendentals"`` (elementary functions), ``"bytes accessed"`` (read from and written to
    memory), and ``"optimal_seconds"``, the roofline estimate: for every step the longer of
    computing and moving at the rates that this machine reaches.

    Attributes:
        steps: The same for every step of the plan, with the user's lines; those of a loop for all
            of its iterations.
        unknown: What is not counted, because only a run decides it or NumPy computes it.
    """

    def __init__(self, steps: Sequence[StepCost], totals: Cost, seconds: float) -> None:
        super().__init__(
            {
                "flops": totals.flops,
                "transcendentals": totals.transcendentals,
                "bytes accessed": totals.nbytes,
                "optimal_seconds": seconds,
            }
        )
        self.steps = list(steps)
        self.unknown = totals.unknown

    def __repr__(self) -> str:
        rows = [("step", "flops", "functions", "bytes", "at least")]
        for step in self.steps:
            rows.append(_figures(step.step, step, step.seconds))
            rows += [(f"  {line}", "", "", "", "") for line in step.source]
        total = StepCost(
            "", (), self["flops"], self["transcendentals"], self["bytes accessed"], 0.0
        )
        rows.append(_figures("together", total, self["optimal_seconds"]))
        width = max(len(row[0]) for row in rows)
        lines = [
            f"{first:<{width}}  {a:>9} {b:>9} {c:>9} {d:>9}".rstrip() for first, a, b, c, d in rows
        ]
        return "\n".join([*lines, *(f"not counted: {what}" for what in self.unknown)])

    __str__ = __repr__


def _figures(what: str, step: StepCost, seconds: float) -> tuple[str, str, str, str, str]:
    return (
        what,
        _short(step.flops),
        _short(step.transcendentals),
        _bytes(step.bytes_accessed),
        _figure(seconds, _TIMES, f"{seconds * 1e9:.3g} ns"),
    )


@dataclass(frozen=True)
class MemoryAnalysis:
    """Memory that a call needs, in bytes, by the names that JAX has for it.

    Attributes:
        argument_size_in_bytes: Arguments.
        output_size_in_bytes: Results.
        alias_size_in_bytes: Results that take the memory of donated arguments.
        temp_size_in_bytes: Intermediate results, kept by the function for its next call.
        constant_size_in_bytes: Arrays that the function closes over.
        generated_code_size_in_bytes: Object files of the kernels.
        live_size_in_bytes: The most of the intermediate results that is needed at once.
        peak_memory_in_bytes: The most at a time, arguments and results included.
        largest: The largest intermediate results: bytes, type, and the user's line.
        unknown: What is not counted, because only a run decides it.
    """

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    constant_size_in_bytes: int
    generated_code_size_in_bytes: int
    live_size_in_bytes: int = 0
    largest: tuple[tuple[int, str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    peak_memory_in_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        peak = (
            self.argument_size_in_bytes
            + self.output_size_in_bytes
            - self.alias_size_in_bytes
            + self.temp_size_in_bytes
            + self.constant_size_in_bytes
        )
        object.__setattr__(self, "peak_memory_in_bytes", peak)

    def __repr__(self) -> str:
        rows = {
            "arguments": self.argument_size_in_bytes,
            "results": self.output_size_in_bytes,
            "of these in donated arguments": self.alias_size_in_bytes,
            "intermediate results": self.temp_size_in_bytes,
            "of these needed at once": self.live_size_in_bytes,
            "constants": self.constant_size_in_bytes,
            "peak": self.peak_memory_in_bytes,
            "code": self.generated_code_size_in_bytes,
        }
        lines = [f"{name:<30}{_bytes(n):>10}" for name, n in rows.items() if n or name == "peak"]
        if self.largest:
            lines.append("largest intermediate results")
            lines += [
                f"  {_bytes(n):>9}  {kind}" + (f"  # {line}" if line else "")
                for n, kind, line in self.largest
            ]
        return "\n".join([*lines, *(f"not counted: {what}" for what in self.unknown)])


class Report:
    """Text and figures of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    # As text.

    def text(self, arguments: Sequence[str] = ()) -> str:
        """The program, the steps of the plan, and the kernels.

        Args: arguments: What the user calls the last inputs of the program.
        """
        names = Names()
        lines = []
        if arguments:
            inputs = self.plan.program.inputs[len(self.plan.program.inputs) - len(arguments) :]
            lines += ["arguments"]
            lines += [
                f"  {names.typed(v)}  {path}" for v, path in zip(inputs, arguments, strict=True)
            ]
            lines += [""]
        names = Names()
        lines += ["program", format_program(self.plan.program, names=names), "", "plan"]
        writer = _PlanText(self.plan, names)
        lines += writer.steps(self.plan.jobs, "  ")
        for number, source in enumerate(self.plan.sources):
            lines += ["", f"# kernel {number}", *writer.kernel(source)]
        return "\n".join(lines)

    # Cost.

    def cost(self, machine: Machine) -> CostAnalysis:
        """Cost of a call."""
        steps: list[StepCost] = []
        total, seconds = self._cost(self.plan.jobs, 1.0, machine, steps)
        return CostAnalysis(steps, total, seconds)

    def _cost(
        self, jobs: Iterable[Iterable[Job]], times: float, machine: Machine, steps: list[StepCost]
    ) -> tuple[Cost, float]:
        total, seconds = Cost(), 0.0
        for job in (job for row in jobs for job in row):
            if isinstance(job, Nested):
                cost, needed = self._nested_cost(job, times, machine, steps)
            else:
                nodes = nodes_of(job)
                cost = cost_of(nodes)
                sizes = [v.dtype.itemsize >> (v.dtype.kind == "c") for n in nodes for v in n.outs]
                each = machine.seconds(cost, max(sizes, default=8))
                cost, needed = cost.times(times), each * times
                figures = (cost.flops, cost.transcendentals, cost.nbytes, needed)
                steps.append(StepCost(self._what(job), tuple(source_lines(nodes)), *figures))
            total, seconds = total + cost, seconds + needed
        return total, seconds

    def _nested_cost(
        self, job: Nested, times: float, machine: Machine, steps: list[StepCost]
    ) -> tuple[Cost, float]:
        node = job.node
        count = node.length or 1 if isinstance(node, Loop) else 1
        found = [self._cost(s.jobs, times * count, machine, steps) for s in job.sections]
        costs = [cost for cost, _ in found]
        if isinstance(node, Branch):
            return most_expensive(costs), max(seconds for _, seconds in found)
        # Their steps have been counted for all iterations.
        once = repeated(node, [cost.times(1 / count) for cost in costs])
        return once, sum(seconds for _, seconds in found)

    def _what(self, job: Job) -> str:
        if isinstance(job, Kernel):
            return f"kernel {self.plan.sources.index(job.text)}"
        if isinstance(job, Multiplication):
            return job.what
        if isinstance(job, ForeignCall):
            return job.text()
        assert isinstance(job, PythonCall)
        return job.text()

    # Memory.

    def memory_analysis(self) -> MemoryAnalysis:
        """Memory of a call."""
        outputs = self.plan.graph.outputs
        nodes = [node for node in all_nodes(self.plan.graph) if isinstance(node, External)]
        constants = [v.array for v in self.plan.graph.constants if v.array is not None]
        frame = self.plan.memory.arena_bytes + _FRAME_BYTES + 8 * self.plan.memory.n_slots
        return MemoryAnalysis(
            argument_size_in_bytes=sum(v.nbytes for v in self.plan.graph.inputs),
            output_size_in_bytes=sum(v.nbytes for v in outputs),
            alias_size_in_bytes=sum(v.nbytes for v in outputs if v.home is not v),
            temp_size_in_bytes=frame,
            constant_size_in_bytes=sum(x.nbytes for x in constants),
            generated_code_size_in_bytes=self.plan.code_bytes,
            live_size_in_bytes=self.plan.memory.live_bytes,
            largest=tuple(self.plan.largest_values()),
            unknown=tuple(f"what NumPy needs inside of {_named(node)}" for node in nodes),
        )


def _named(node: External) -> str:
    name = node.primitive.name
    return name if node.source is None else f"{name} at {node.source.short()}"


class _PlanText:
    """The steps of a plan, and its kernels, with what they stand for.

    Attributes:
        plan: The plan.
        names: What the printed program calls its variables.
        users: The jobs that run a kernel.
    """

    def __init__(self, plan: Plan, names: Names) -> None:
        self.names = names
        self.number = {source: i for i, source in enumerate(plan.sources)}
        self.users: dict[str, list[Kernel]] = {}
        self.called: dict[Value, str] = {}
        for var, value in zip(plan.program.inputs, plan.graph.inputs, strict=True):
            self.called[value] = names(var)
        constants = iter(plan.graph.constants)
        for var, array in plan.program.constants:
            if not is_uniform(np.asarray(array)):
                self.called[next(constants)] = names(var)
        for node in plan.graph.nodes:
            self._call(node)

    def _call(self, node: Node) -> None:
        """Give the results of a node the names that the program has for them."""
        if node.equation is None:
            return
        for value, var in zip(node.outs, node.equation.outputs, strict=False):
            if value.dtype == var.aval.dtype and sorted(value.shape) == sorted(var.aval.shape):
                self.called[value] = self.names(var)

    def _value(self, value: Value) -> str:
        name = self.called.get(value)
        return type_of(value) if name is None else f"{name}:{type_of(value)}"

    # Steps.

    def steps(self, jobs: Iterable[Iterable[Job]], indent: str) -> Iterator[str]:
        for job in (job for row in jobs for job in row):
            if isinstance(job, Nested):
                yield from self._nested(job, indent)
                continue
            nodes = nodes_of(job)
            if isinstance(job, Kernel):
                self.users.setdefault(job.text, []).append(job)
                parts = f" in {len(job.parts)} parts" if len(job.parts) > 1 else ""
                head = f"kernel {self.number[job.text]}: {job.length} iterations{parts}"
            else:
                head = job.text()
            yield indent + head + self._moves(nodes)
            yield from (f"{indent}    # {line}" for line in source_lines(nodes))

    def _nested(self, job: Nested, indent: str) -> Iterator[str]:
        equation = job.node.equation
        source = None if equation is None else equation.source
        line = "" if source is None else f"   # {source}"
        for head, section in zip(_heads(job.node), job.sections, strict=True):
            for node in section.graph.nodes:
                self._call_inner(node)
            yield indent + head + line
            yield from self.steps(section.jobs, indent + "  ")

    def _call_inner(self, node: Node) -> None:
        """Inner programs are printed with names of their own, which say nothing here."""
        for value in node.outs:
            self.called.pop(value, None)

    def _moves(self, nodes: Sequence[Node]) -> str:
        """Values that nodes read and write, and the bytes of both."""
        if not nodes:
            return ""
        made = {value for node in nodes for value in node.outs}
        read = dict.fromkeys(
            x.value
            for node in nodes
            for x in node.operands
            if isinstance(x, View) and x.value not in made
        )
        written = [v for node in nodes for v in node.outs if v.is_stored]
        sides = ", ".join(map(self._value, read)), ", ".join(map(self._value, written))
        return f"; {' -> '.join(sides)}; {_bytes(traffic_of(nodes))}"

    # Kernels.

    def kernel(self, source: str) -> Iterator[str]:
        """A kernel with comments: of the first step that runs it."""
        users = self.users[source]
        first = users[0]
        if len(users) > 1:
            yield f"# run by {len(users)} steps; the first one:"
        yield from (f"# {line}" for line in source_lines(first.nodes))
        places = first.places
        is_nest = bool(first.nodes) and isinstance(first.nodes[0], Point | Fold)
        for line in source.splitlines():
            comment = ""
            if (found := _POINTER.match(line)) and int(found[1]) in places:
                comment = self._value(places[int(found[1])].value)
            elif is_nest and (found := _RESULT.match(line)):
                comment = _origin(first.nodes[int(found[1])])
            yield f"{line}  # {comment}" if comment else line
        yield ""


def _origin(node: Node) -> str:
    """Origin of a statement: its computation, and the user's line."""
    if node.equation is None:
        return ""
    source = node.equation.source
    place = "" if source is None else f", {source.short()}"
    return f"{node.equation.primitive.name}{place}"


def _heads(node: Nest) -> list[str]:
    if not isinstance(node, Loop):
        return [f"branch {i}" for i in range(len(node.bodies))]
    return ["while", "do"] if node.length is None else [f"{node.length} times"]


_COUNTS = {" T": 1e12, " G": 1e9, " M": 1e6, " k": 1e3}
_BYTES = {" GB": 1e9, " MB": 1e6, " kB": 1e3}
_TIMES = {" s": 1.0, " ms": 1e-3, " us": 1e-6}


def _figure(number: float, units: Mapping[str, float], rest: str) -> str:
    """A number with the largest unit that it has any of: 12.8 k; a text of smaller ones."""
    for unit, size in units.items():
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return rest


def _short(number: float) -> str:
    return _figure(number, _COUNTS, f"{number:.0f}")


def _bytes(number: float) -> str:
    return _figure(number, _BYTES, f"{number:.0f} B")


def _debug_level() -> int:
    level = environment.text("FUNCGRAD_DEBUG") or "0"
    return int(level) if level.isdigit() else 1


def _log(program: Program, executable: Executable) -> None:
    """Print what ``FUNCGRAD_DEBUG`` asks for."""
    level, stats = _debug_level(), executable.stats
    if level == 0:  # what is known of a plan from disk is planned again for those who ask
        return
    plan = executable.plan
    if level >= 1:
        print(
            f"funcgrad: compiled {program.name}: {len(plan.program.equations)} equations, "
            f"kernels: {stats.compiled} compiled, {stats.loaded} from disk, {stats.reused} reused",
            file=sys.stderr,
        )
        if stats.compiled and kernel_store.is_cache_read_only():
            _mention_once(
                f"the folder of compiled kernels {kernel_store.cache_dir()!r} is read-only: what "
                "it does not hold is compiled by every process"
            )
    if level >= 2:
        print(Report(plan).text(), file=sys.stderr)


@cache
def _mention_once(message: str) -> None:
    print(f"funcgrad: {message}", file=sys.stderr)


pipeline.observers.append(_log)
