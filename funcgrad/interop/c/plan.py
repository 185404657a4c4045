"""Plans in C: the steps of a compiled program, written out one after the other.

`write_plan : executable -> text`. The text is what a call does with its slots: kernels are called
with their words, loops and branches of steps are those of C. Numbers in the text that may depend on
sizes stand apart, so that plans for several sizes are one text and a table of numbers (`files`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.loops.language import Function, NamedFunction
from funcgrad.compiler.native.types import SCALARS
from funcgrad.compiler.nest.allocate import Nested
from funcgrad.compiler.nest.arena import Offset
from funcgrad.compiler.nest.kernel import Kernel, Place
from funcgrad.compiler.nest.layout import Value, View, whole
from funcgrad.compiler.nest.nodes import Loop, Site
from funcgrad.compiler.report import Job, nodes_of
from funcgrad.compiler.runtime.executable import Executable, Step
from funcgrad.compiler.runtime.matmul import Multiplication
from funcgrad.compiler.runtime.python_calls import PythonCall
from funcgrad.compiler.runtime.routines import ForeignCall
from funcgrad.compiler.runtime.strided import StridedMultiplication
from funcgrad.dtypes import short_name
from funcgrad.errors import ArgumentError
from funcgrad.interop.c.calling import described_site
from funcgrad.interop.c.printer import print_function
from funcgrad.interop.c.words import Prelude, literal


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

    Args:
        has_sizes: Whether all plans are for the same sizes.

    Attributes:
        prelude: Functions that they use.
        texts: Their definitions, by their names.
        constants: Definitions of arrays that do not change, likewise.
        messages: Descriptions of what kernels may refuse, by the numbers that they know.
    """

    def __init__(self, has_sizes: bool = True) -> None:
        self.has_sizes = has_sizes
        self.prelude = Prelude()
        self.texts: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self.messages: dict[str, int] = {}
        self._arrays: dict[tuple[str, bytes], str] = {}

    def definitions(self, users: str) -> list[str]:
        """List definitions that a text uses: functions of the prelude, arrays and kernels."""
        used = {*re.findall(r"\b(?:kernel|constant)_\d+\b", users)}
        kernels, constants = (
            [text for name, text in texts.items() if name in used]
            for texts in (self.texts, self.constants)
        )
        return [self.prelude.text("\n".join([*kernels, users])), *constants, *kernels]

    def array(self, array: np.ndarray) -> str:
        """The name of a constant array."""
        key = array.dtype.str, array.tobytes()
        name = self._arrays.get(key)
        if name is None:
            name = self._arrays[key] = f"constant_{len(self._arrays)}"
            self.constants[name] = definition(array, name)
        return name

    def site(self, site: Site) -> int:
        """The number of a check that may fail."""
        text = described_site(site, self.has_sizes)
        return self.messages.setdefault(text, len(self.messages))

    def name(self, function: Function, lines: Iterable[str] = ()) -> str:
        """The name in C of a kernel, which is printed when it is first asked for.

        Args:
            function: The kernel.
            lines: The user's lines that it computes.
        """
        key = function.name
        if key not in self.names:
            name = self.names[key] = f"kernel_{len(self.names)}"
            comment = "".join(f"/* {line} */\n" for line in lines)
            self.texts[name] = comment + print_function(function, name, self.prelude)
        return self.names[key]


class PlanWriter:
    """Writes one plan.

    Attributes:
        lines: Statements of C; ``{}`` stands for a number of `marks`.
        marks: The numbers, in order.
        buffers: Scratch memory that the numbers name.
    """

    def __init__(self, executable: Executable, kernels: Kernels, what: str) -> None:
        self.kernels = kernels
        self.what = what
        self.lines: list[str] = []
        self.marks: list[Mark] = []
        report = executable.report
        self.memory = executable.memory
        self.inner = {value: slot for slot, value in self.memory.arenas}
        self.numbered: dict[Value, int] = {}
        self.buffers: list[Buffer] = []
        self.graph = report.graph
        for value in report.graph.constants:
            assert value.array is not None
            if value.array.size:
                name = kernels.array(value.array)
                self.line(1, f"slots[{value.slot}] = (int64_t)(intptr_t){name};")
        for row in report.jobs:
            for job in row:
                self.job(job, 1)

    def line(self, depth: int, text: str, *words: int) -> None:
        """A statement, with words for which ``{}`` stands."""
        self.lines.append("    " * depth + text)
        self.marks += [self.mark(word) for word in words]

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

    # Jobs.

    def job(self, job: Job, depth: int) -> None:
        if isinstance(job, Nested):
            self.nested(job, depth)
        elif isinstance(job, Kernel):
            name = self.kernels.name(job.function, _lines(job))
            for part in range(len(job.parts)):
                self.step(depth, name, self.words(job, part))
        elif isinstance(job, Multiplication):
            self.product(job, depth)
        elif isinstance(job, StridedMultiplication):
            self.own(job.step(1), job.codes, job, depth)
        elif isinstance(job, ForeignCall) and job.is_own:
            self.own(job.step(self.kernels.site(job.site)), job.codes, job, depth)
        else:
            assert isinstance(job, ForeignCall | PythonCall)
            lines = "".join(f"\n  at            {line}" for line in _lines(job))
            raise ArgumentError(
                f"{self.what}: a library of NumPy or SciPy evaluates a step, which C without them "
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

    def step(self, depth: int, name: str, words: Sequence[int | str]) -> None:
        """Call a kernel."""
        texts = [x if isinstance(x, str) else "{}" for x in words]
        numbers = [x for x in words if not isinstance(x, str)]
        self.line(depth, "{{")
        rows = [", ".join(texts[k : k + 8]) for k in range(0, len(texts), 8)]
        separator = ",\n" + "    " * (depth + 2)
        self.line(depth + 1, f"const int64_t args[] = {{{{{separator.join(rows)}}}}};", *numbers)
        self.line(depth + 1, f"FG_STEP({name}(slots, args));")
        self.line(depth, "}}")

    def own(self, step: Step, codes: Sequence[Any], job: Job, depth: int) -> None:
        """Call a program that is written down, with constants of its own."""
        (code,) = codes
        assert isinstance(code, NamedFunction)
        name = self.kernels.name(code, _lines(job))
        addresses = {x.ctypes.data: x for x in step.held if isinstance(x, np.ndarray)}
        words = [
            f"(int64_t)(intptr_t){self.kernels.array(addresses[word])}"
            if word in addresses
            else word
            for word in step.words
        ]
        self.step(depth, name, words)

    def product(self, job: Multiplication, depth: int) -> None:
        """A product of matrices."""
        node = job.node
        batch, m, n, k = node.sizes
        a, b = node.operands
        assert isinstance(a, View)
        assert isinstance(b, View)
        words = [batch, m, n, k]
        layouts = node.layouts
        for x, layout in ((a, layouts[0]), (b, layouts[1])):
            size = x.dtype.itemsize
            words += [x.value.slot, x.first_byte]
            steps = (1, layout.row_stride) if layout.is_transposed else (layout.row_stride, 1)
            words += [size * step for step in (layout.batch_stride, *steps)]
        out = whole(node.out)
        words += [out.value.slot, out.first_byte]
        name = f"fg_product_{short_name(node.out.dtype)}"
        self.kernels.prelude.use(name)
        self.step(depth, name, words)

    def nested(self, job: Nested, depth: int) -> None:
        """A loop or a branch."""
        node = job.node
        for slot, start, nbytes in job.sets():
            self.line(depth, f"slots[{slot}] = slots[{start}] + {{}};", nbytes)
        if not isinstance(node, Loop):
            self.branch(job, depth)
            return
        index = f"i{depth}"
        if node.length is None:
            self.line(depth, "for (;;) {{")
            self.section(job.sections[0], depth + 1)
            test = node.bodies[0].outputs[0]
            self.line(
                depth + 1,
                f"if (!*(const uint8_t *)(intptr_t)(slots[{test.slot}] + {{}})) break;",
                test.offset,
            )
        else:
            self.line(
                depth, f"for (int64_t {index} = 0; {index} < {{}}; {index}++) {{{{", node.length
            )
        self.section(job.sections[-1], depth + 1)
        for now, following, spare in job.turns():
            self.line(
                depth + 1,
                f"{{{{ int64_t next = slots[{following}]; slots[{following}] = slots[{spare}]; "
                f"slots[{spare}] = next; slots[{now}] = next; }}}}",
            )
        for slot, nbytes in job.moves():
            self.line(depth + 1, f"slots[{slot}] += {{}};", nbytes)
        self.line(depth, "}}")

    def branch(self, job: Nested, depth: int) -> None:
        """A choice among sections, by an index that is clipped to them."""
        index = job.node.operands[0]
        assert isinstance(index, View)
        last = len(job.sections) - 1
        self.line(depth, "{{")
        self.line(
            depth + 1,
            f"int64_t which = *(const fg_i64 *)(intptr_t)(slots[{index.value.slot}] + {{}});",
            index.first_byte,
        )
        self.kernels.prelude.use("fg_i64")
        self.line(depth + 1, f"switch (which < 0 ? 0 : which > {last} ? {last} : which) {{{{")
        for k, section in enumerate(job.sections):
            self.line(depth + 1, f"case {k}:" if k < last else "default:")
            self.section(section, depth + 2)
            self.line(depth + 2, "break;")
        self.line(depth + 1, "}}")
        self.line(depth, "}}")

    def section(self, section: Any, depth: int) -> None:
        for row in section.jobs:
            for job in row:
                self.job(job, depth)


def _lines(job: Job) -> Iterator[str]:
    """The user's lines of a job, without the folders of their files."""
    found: dict[str, None] = {}
    for node in nodes_of(job):
        source = node.equation.source if node.equation is not None else None
        if source is not None:
            found[source.short().replace("*/", "")] = None
    return iter(found)


def definition(array: np.ndarray, name: str) -> str:
    """A constant array in C."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(f"f{flat.dtype.itemsize // 2}")
    kind = "b1" if flat.dtype.kind == "b" else short_name(flat.dtype)
    texts = [literal(x, SCALARS[kind]) for x in flat.tolist()]
    rows = [", ".join(texts[k : k + 8]) for k in range(0, len(texts), 8)]
    body = ",\n    ".join(rows)
    return f"static const {_HELD[kind]} {name}[] = {{\n    {body}\n}};"


_HELD = {
    "b1": "uint8_t", "f32": "float", "f64": "double",
    **{f"{k}{bits}": f"{'u' * (k == 'u')}int{bits}_t" for k in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip
