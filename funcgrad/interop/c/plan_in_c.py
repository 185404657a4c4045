"""Plans and kernels in C.

Numbers of a plan are ``{}`` in its lines, in the order of its marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from funcgrad.compiler.loops.language import Function
from funcgrad.compiler.native.types import SCALARS
from funcgrad.compiler.nest.layout import Value, View
from funcgrad.compiler.nest.nodes import Product
from funcgrad.dtypes import short_name
from funcgrad.interop.c.plan import Kernels, PlanWriter
from funcgrad.interop.c.printer import print_function
from funcgrad.interop.c.words import Prelude, literal


class KernelsInC(Kernels):
    """Functions of a file of C.

    Attributes:
        prelude: Functions that they use.
    """

    def __init__(self, has_sizes: bool = True) -> None:
        super().__init__(has_sizes)
        self.prelude = Prelude()

    def printed(self, function: Function, name: str, lines: Iterable[str]) -> str:
        comment = "".join(f"/* {line} */\n" for line in lines)
        return comment + print_function(function, name, self.prelude)

    def definitions(self, users: str) -> list[str]:
        """List definitions that a text uses: functions of the prelude, arrays and kernels."""
        used = {*re.findall(r"\b(?:kernel|constant)_\d+\b", users)}
        kernels = [text for name, text in self.texts.items() if name in used]
        constants = [definition(x, name) for name, x in self.arrays.items() if name in used]
        return [self.prelude.text("\n".join([*kernels, users])), *constants, *kernels]


class PlanInC(PlanWriter):
    """Writes a plan as statements of C; ``{}`` stands for a number."""

    kernels: KernelsInC

    def line(self, depth: int, text: str, *words: int) -> None:
        """A statement, with words for which ``{}`` stands."""
        self.write(depth, text)
        self.marks += [self.mark(word) for word in words]

    def set_constant(self, slot: int, name: str) -> None:
        self.line(1, f"slots[{slot}] = {_address(name)};")

    def move(self, depth: int, slot: int, start: int, nbytes: int) -> None:
        change = "+= {}" if slot == start else f"= slots[{start}] + {{}}"
        self.line(depth, f"slots[{slot}] {change};", nbytes)

    def step(self, depth: int, name: str, words: Sequence[int | str]) -> None:
        self.line(depth, "{{")
        texts = [_address(x) if isinstance(x, str) else "{}" for x in words]
        numbers = [x for x in words if not isinstance(x, str)]
        rows = [", ".join(texts[k : k + 8]) for k in range(0, len(texts), 8)]
        separator = ",\n" + "    " * (depth + 2)
        self.line(depth + 1, f"const int64_t args[] = {{{{{separator.join(rows)}}}}};", *numbers)
        self.line(depth + 1, f"FG_STEP({name}(slots, args));")
        self.line(depth, "}}")

    def product(self, depth: int, node: Product, words: Sequence[int]) -> None:
        dtype = node.out.dtype
        # Signed integers of C have no sums that wrap around.
        kind = dtype if dtype.kind in "fc" else np.dtype(f"u{dtype.itemsize}")
        name = f"fg_product_{'h32' if node.is_of_pairs else short_name(kind)}"
        self.kernels.prelude.use(name)
        self.step(depth, name, words)

    def loop(self, depth: int, length: int | None) -> None:
        if length is None:
            self.line(depth, "for (;;) {{")
        else:
            index = f"i{depth}"
            self.line(depth, f"for (int64_t {index} = 0; {index} < {{}}; {index}++) {{{{", length)

    def leave_unless(self, depth: int, test: Value) -> None:
        place = f"slots[{test.slot}] + {{}}"
        self.line(depth, f"if (!*(const uint8_t *)(intptr_t)({place})) break;", test.offset)

    def turn(self, depth: int, now: int, following: int, spare: int) -> None:
        self.line(
            depth,
            f"{{{{ int64_t next = slots[{following}]; slots[{following}] = slots[{spare}]; "
            f"slots[{spare}] = next; slots[{now}] = next; }}}}",
        )

    def branch(self, depth: int, index: View, sections: Sequence[Any]) -> None:
        last = len(sections) - 1
        self.line(depth, "{{")
        self.line(
            depth + 1,
            f"int64_t which = *(const fg_i64 *)(intptr_t)(slots[{index.value.slot}] + {{}});",
            index.first_byte,
        )
        self.kernels.prelude.use("fg_i64")
        self.line(depth + 1, f"switch (which < 0 ? 0 : which > {last} ? {last} : which) {{{{")
        for k, section in enumerate(sections):
            self.line(depth + 1, f"case {k}:" if k < last else "default:")
            self.section(section, depth + 2)
            self.line(depth + 2, "break;")
        self.line(depth + 1, "}}")
        self.line(depth, "}}")

    def end(self, depth: int) -> None:
        self.line(depth, "}}")


def _address(name: str) -> str:
    """The address of a constant array."""
    return f"(int64_t)(intptr_t){name}"


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
