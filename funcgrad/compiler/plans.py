"""Plans: all that the compiler knows of a program that it has arranged, for who tells about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.allocate import Memory, Nested
from funcgrad.compiler.nest.kernel import Kernel
from funcgrad.compiler.nest.layout import Value
from funcgrad.compiler.nest.nodes import Graph, Node, Site, all_nodes
from funcgrad.compiler.runtime.matmul import Multiplication
from funcgrad.compiler.runtime.python_calls import PythonCall
from funcgrad.compiler.runtime.routines import ForeignCall
from funcgrad.core.avals import ShapedArray
from funcgrad.core.program import Program
from funcgrad.observers.limits import format_bytes
from funcgrad.observers.source import SourceLocation

Job = Kernel | Multiplication | ForeignCall | PythonCall | Nested

SHOWN_VALUES = 8
"""How many of the largest intermediate results are shown."""


@dataclass
class Plan:
    """A plan, as the compiler left it.

    Attributes:
        program: The program, simplified.
        graph: Its nodes.
        jobs: What runs every group of them.
        sources: The kernels, by number.
        memory: Where everything is.
        code_bytes: Size of the kernels' object files.
        sites: What kernels may refuse, by the numbers that they know.
    """

    program: Program
    graph: Graph
    jobs: Sequence[Sequence[Job]]
    sources: Sequence[str]
    memory: Memory
    code_bytes: int
    sites: Sequence[Site] = ()

    def largest(self) -> str:
        """The largest array that a call allocates, and the line that makes it."""
        results = [(v.nbytes, type_of(v), "a result") for v in self.graph.outputs if v.home is v]
        rows = [*self.largest_values(), *results]
        if not rows:
            return "none."
        nbytes, kind, place = max(rows, key=lambda row: row[0])
        return f"{kind}: {format_bytes(nbytes)}, {place}"

    def largest_values(self) -> Iterator[tuple[int, str, str]]:
        """The largest intermediate results: bytes, type, and the user's line."""
        found: dict[Value, Node] = {
            value: node
            for node in all_nodes(self.graph)
            for value in node.outs
            if value.is_stored and value.slot == self.memory.arena_slot
        }
        rows = sorted(found.items(), key=lambda row: -row[0].nbytes)[:SHOWN_VALUES]
        for value, node in rows:
            source = None if node.equation is None else node.equation.source
            yield value.nbytes, type_of(value), "" if source is None else str(source)


def type_of(value: Value) -> str:
    """The type of a value, as programs print it."""
    return str(ShapedArray(value.shape, value.dtype))


def nodes_of(job: Job) -> Sequence[Node]:
    """The nodes that a job computes."""
    return job.nodes if isinstance(job, Kernel) else (job.node,)


def source_lines(nodes: Iterable[Node]) -> Iterator[str]:
    """The user's lines that nodes compute, each once, with the operations that it makes."""
    found: dict[SourceLocation | None, dict[str, None]] = {}
    for node in all_nodes(Graph(nodes=list(nodes))):
        if node.equation is not None:
            source = node.equation.source
            names = found.setdefault(None if source is None else source.unscoped, {})
            names[node.equation.primitive.name] = None
    for source, names in found.items():
        place = "somewhere" if source is None else str(source)
        yield f"{place}   [{', '.join(names)}]"
