"""Plans as text: the steps of a compiled program, written out one after the other.

`PlanWriter : executable -> text`. The text is what a call does with its slots: kernels are called
with their words, loops and branches of steps are those of the language that a subclass writes
(`plan_in_c`, `plan_in_python`). Numbers in the text that may depend on sizes stand apart, so that
plans for several sizes are one text and a table of numbers (`programs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.loops.language import Function, NamedFunction
from funcgrad.compiler.nest.allocate import Nested
from funcgrad.compiler.nest.arena import Offset
from funcgrad.compiler.nest.kernel import Kernel, Place
from funcgrad.compiler.nest.layout import Value, View, whole
from funcgrad.compiler.nest.nodes import Loop, Product, Site
from funcgrad.compiler.plans import Job, nodes_of
from funcgrad.compiler.runtime.executable import Executable, Step
from funcgrad.compiler.runtime.matmul import Multiplication
from funcgrad.compiler.runtime.python_calls import PythonCall
from funcgrad.compiler.runtime.routines import ForeignCall
from funcgrad.errors import ArgumentError
from funcgrad.interop.c.calling import described_site


@dataclass(frozen=True)
class Mark:
    """A number of a plan.

    Attributes:
        value: The number, without the offset in scratch memory that is part of it.
        buffer: The number of the buffer whose offset that is; -1 if there is none.
    """

    value: int
    buffer: int = -1


@dataclass(frozen=True)
class Buffer:
    """A range of scratch memory.

    Attributes:
        arena: The slot of the arena in which it lies.
        offset: Where it lies there.
        nbytes: Its size.
        inner: The slot of the arena that it is, if it is one.
    """

    arena: int
    offset: int
    nbytes: int
    inner: int = -1


class Kernels:
    """Functions of an exported file, each once, whatever plans call them.

    Args: has_sizes: Whether all plans are for the same sizes.

    Attributes:
        texts: Their definitions, by their names.
        arrays: Arrays that do not change, likewise.
        messages: Descriptions of what kernels may refuse, by the numbers that they know.
    """

    def __init__(self, has_sizes: bool = True) -> None:
        self.has_sizes = has_sizes
        self.texts: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.arrays: dict[str, np.ndarray] = {}
        self.messages: dict[str, int] = {}
        self._known: dict[tuple[str, bytes], str] = {}

    def array(self, array: np.ndarray) -> str:
        """The name of a constant array."""
        key = array.dtype.str, array.tobytes()
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"constant_{len(self._known)}"
            self.arrays[name] = array
        return name

    def site(self, site: Site) -> int:
        """The number of a check that may fail."""
        text = described_site(site, self.has_sizes)
        return self.messages.setdefault(text, len(self.messages))

    def name(self, function: Function, lines: Iterable[str] = ()) -> str:
        """The name of a kernel, which is printed when it is first asked for.

        Args:
            function: The kernel.
            lines: The user's lines that it computes.
        """
        key = function.name
        if key not in self.names:
            name = self.names[key] = f"kernel_{len(self.names)}"
            self.texts[name] = self.printed(function, name, lines)
        return self.names[key]

    def printed(self, function: Function, name: str, lines: Iterable[str]) -> str:
        """The definition of a kernel, with the user's lines as comments."""
        raise NotImplementedError


class PlanWriter:
    """Writes one plan. A subclass has the statements of a language.

    Attributes:
        lines: The statements.
        marks: The numbers of the plan, in order.
        buffers: Scratch memory that the numbers name.
    """

    def __init__(self, executable: Executable, kernels: Kernels, what: str) -> None:
        self.kernels = kernels
        self.what = what
        self.lines: list[str] = []
        self.marks: list[Mark] = []
        plan = executable.plan
        self.memory = plan.memory
        self.inner = {value: slot for slot, value in self.memory.arenas}
        self.numbered: dict[Value, int] = {}
        self.buffers: list[Buffer] = []
        self.graph = plan.graph
        for value in plan.graph.constants:
            assert value.array is not None
            if value.array.size:
                self.set_constant(value.slot, kernels.array(value.array))
        for row in plan.jobs:
            for job in row:
                self.job(job, 1)

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def mark(self, word: int) -> Mark:
        """A word of a plan."""
        if not isinstance(word, Offset):
            return Mark(word)
        owner = word.owner
        if owner not in self.numbered:
            self.numbered[owner] = len(self.buffers)
            inner = self.inner.get(owner, -1)
            self.buffers.append(Buffer(owner.slot, word.start, owner.nbytes, inner))
        return Mark(word - word.start, self.numbered[owner])

    # Statements.

    def set_constant(self, slot: int, name: str) -> None:
        """Put the address of a constant array into a slot."""
        raise NotImplementedError

    def move(self, depth: int, slot: int, start: int, nbytes: int) -> None:
        """Put the address of a slot, moved by some bytes, into a slot."""
        raise NotImplementedError

    def step(self, depth: int, name: str, words: Sequence[int | str]) -> None:
        """Call a kernel with its words, of which the names are those of constant arrays."""
        raise NotImplementedError

    def product(self, depth: int, node: Product, words: Sequence[int]) -> None:
        """A product of matrices.

        Args:
            depth: Of the statement.
            node: The product.
            words: How many products, rows, columns and terms there are; for either operand its slot
                and offset, and the bytes from one matrix, row and column to the next; for the
                result its slot and offset.
        """
        raise NotImplementedError

    def loop(self, depth: int, length: int | None) -> None:
        """Begin a loop of a number of iterations, or without an end."""
        raise NotImplementedError

    def leave_unless(self, depth: int, test: Value) -> None:
        """Leave a loop where a value is false."""
        raise NotImplementedError

    def turn(self, depth: int, now: int, following: int, spare: int) -> None:
        """Let slots of a loop change places."""
        raise NotImplementedError

    def branch(self, depth: int, index: View, sections: Sequence[Any]) -> None:
        """A choice among sections, by an index that is clipped to them."""
        raise NotImplementedError

    def end(self, depth: int) -> None:
        """End a loop."""
        raise NotImplementedError

    # Jobs.

    def job(self, job: Job, depth: int) -> None:
        if isinstance(job, Nested):
            self.nested(job, depth)
        elif isinstance(job, Kernel):
            name = self.kernels.name(job.function, lines_of(job))
            for part in range(len(job.parts)):
                self.step(depth, name, self.words(job, part))
        elif isinstance(job, Multiplication) and job.node.tables is None:
            self.product(depth, job.node, _words_of_product(job.node))
        elif isinstance(job, Multiplication):
            self.own(*job.alone(), job, depth)
        elif isinstance(job, ForeignCall) and job.is_own:
            (code,) = job.codes
            self.own(job.step(self.kernels.site(job.site)), code, job, depth)
        else:
            assert isinstance(job, ForeignCall | PythonCall)
            lines = "".join(f"\n  at            {line}" for line in lines_of(job))
            raise ArgumentError(
                f"{self.what}: a library of NumPy or SciPy evaluates a step, which exported files "
                f"cannot call: {job.text().strip()}.{lines}"
            )

    def words(self, job: Kernel, part: int) -> list[int]:
        """The words of one part of a kernel."""
        found = [*job.parts[part]]
        for word in job.words:
            if isinstance(word, Place):
                value = word.value
                share = part * value.nbytes // len(job.parts) if value in job.scratch else 0
                found += [value.slot, value.offset + word.offset + share]
            elif isinstance(word, Site):
                found.append(self.kernels.site(word))
            else:
                found.append(word)
        return found

    def own(self, step: Step, code: Any, job: Job, depth: int) -> None:
        """Call a program that is written down, with constants of its own."""
        assert isinstance(code, NamedFunction)
        name = self.kernels.name(code, lines_of(job))
        addresses = {x.ctypes.data: x for x in step.held if isinstance(x, np.ndarray)}
        words = [
            self.kernels.array(addresses[word]) if word in addresses else word
            for word in step.words
        ]
        self.step(depth, name, words)

    def nested(self, job: Nested, depth: int) -> None:
        """A loop or a branch."""
        node = job.node
        for slot, start, nbytes in job.sets():
            self.move(depth, slot, start, nbytes)
        if not isinstance(node, Loop):
            index = node.operands[0]
            assert isinstance(index, View)
            self.branch(depth, index, job.sections)
            return
        self.loop(depth, node.length)
        if node.length is None:
            self.section(job.sections[0], depth + 1)
            self.leave_unless(depth + 1, node.bodies[0].outputs[0])
        self.section(job.sections[-1], depth + 1)
        for now, following, spare in job.turns():
            self.turn(depth + 1, now, following, spare)
        for slot, nbytes in job.moves():
            self.move(depth + 1, slot, slot, nbytes)
        self.end(depth)

    def section(self, section: Any, depth: int) -> None:
        for row in section.jobs:
            for job in row:
                self.job(job, depth)


def _words_of_product(node: Product) -> list[int]:
    """The words of `PlanWriter.product`."""
    words = [*node.sizes]
    for x, layout in zip(node.operands, node.layouts, strict=True):
        assert isinstance(x, View)
        words += [x.value.slot, x.first_byte]
        steps = (1, layout.row_stride) if layout.is_transposed else (layout.row_stride, 1)
        words += [x.dtype.itemsize * step for step in (layout.batch_stride, *steps)]
    out = whole(node.out)
    return [*words, out.value.slot, out.first_byte]


def lines_of(job: Job) -> Iterator[str]:
    """The user's lines of a job, without the folders of their files."""
    found: dict[str, None] = {}
    for node in nodes_of(job):
        source = node.equation.source if node.equation is not None else None
        if source is not None:
            found[source.short().replace("*/", "")] = None
    return iter(found)
