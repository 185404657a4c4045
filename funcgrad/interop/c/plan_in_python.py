"""Plans and kernels in Python, for Numba.

A kernel is printed as a Python function of words (`native.numba_path`), whose LLVM assembly the
module has. All numbers of a plan are in an array ``row``, so that kernels find their words there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from funcgrad.compiler.loops.language import Function
from funcgrad.compiler.native.numba_path import Kind, Vocabulary, print_kernel
from funcgrad.compiler.nest.layout import Value, View
from funcgrad.compiler.nest.nodes import Product
from funcgrad.interop.c.plan import Kernels, PlanWriter

FIRST_NUMBER = 2
"""Place of a plan's first number in a row, behind its kind and the bytes of its scratch memory."""


_PRODUCT = """\
pointer_to_DTYPE = pointer_to(numba.from_dtype(np.dtype("DTYPE")))


@compiled
def product_DTYPE(slots, row, at):
    size = SIZE
    many, m, n, k = row[at], row[at + 1], row[at + 2], row[at + 3]
    line_a, step_a = row[at + 7] // size, row[at + 8] // size
    line_b, step_b = row[at + 12] // size, row[at + 13] // size
    whole = (1 << 40,)
    for s in range(many):
        a = pointer_to_DTYPE(slots[row[at + 4]] + row[at + 5] + s * row[at + 6])
        b = pointer_to_DTYPE(slots[row[at + 9]] + row[at + 10] + s * row[at + 11])
        c = pointer_to_DTYPE(slots[row[at + 14]] + row[at + 15] + s * m * n * size)
        a, b, c = numba.carray(a, whole), numba.carray(b, whole), numba.carray(c, whole)
        for j in range(m * n):
            c[j] = 0
        # Four rows at once, which read a row of b once.
        for i in range(0, m - m % 4, 4):
            for p in range(k):
                place = i * line_a + p * step_a
                x0, x1 = a[place], a[place + line_a]
                x2, x3 = a[place + 2 * line_a], a[place + 3 * line_a]
                if step_b == 1:
                    for j in range(n):
                        y = b[p * line_b + j]
                        c[i * n + j] += x0 * y
                        c[i * n + n + j] += x1 * y
                        c[i * n + 2 * n + j] += x2 * y
                        c[i * n + 3 * n + j] += x3 * y
                else:
                    for j in range(n):
                        y = b[p * line_b + j * step_b]
                        c[i * n + j] += x0 * y
                        c[i * n + n + j] += x1 * y
                        c[i * n + 2 * n + j] += x2 * y
                        c[i * n + 3 * n + j] += x3 * y
        for i in range(m - m % 4, m):
            for p in range(k):
                x = a[i * line_a + p * step_a]
                for j in range(n):
                    c[i * n + j] += x * b[p * line_b + j * step_b]
"""
"""Products of matrices: words of `PlanWriter.product`."""

_SUM_OF_PAIR = """\
@compiled
def sum_of_pair(x, y):
    low = np.int64(np.int16(x)) * np.int64(np.int16(y))
    return low + np.int64(x >> 16) * np.int64(y >> 16)


"""


def _product(name: str) -> str:
    """The function of products of a dtype, or of its pairs."""
    dtype = name.removesuffix("_pairs")
    text = _PRODUCT.replace("product_DTYPE", f"product_{name}").replace("DTYPE", dtype)
    text = text.replace("SIZE", str(np.dtype(dtype).itemsize))
    if dtype == name:
        return text
    return _SUM_OF_PAIR + re.sub(
        r"(x\d?) \* (y|b\[.*\])$", r"sum_of_pair(\1, \2)", text, flags=re.M
    )


class KernelsInPython(Kernels):
    """Functions of a module.

    Attributes:
        vocabulary: Words that they call.
        products: Names of dtypes of products of matrices.
    """

    def __init__(self, has_sizes: bool = True) -> None:
        super().__init__(has_sizes)
        self.vocabulary = Vocabulary()
        self.products: set[str] = set()

    def printed(self, function: Function, name: str, lines: Iterable[str]) -> str:
        comment = "".join(f"# {line}\n" for line in lines)
        return f"{comment}@compiled\n{print_kernel(function, name, self.vocabulary)}"

    def definitions(self) -> list[str]:
        """List definitions: assembly, types, words, arrays and kernels."""
        words = self.vocabulary.words.values()
        kinds: dict[Kind, str] = {}
        assembly: dict[str, str] = {}
        made = []
        for word in words:
            assembly |= word.assembly
            names = [
                kinds.setdefault(kind, f"T{len(kinds)}") for kind in (word.result, *word.sources)
            ]
            rooms = "".join(f", {nbytes}" for nbytes in word.rooms)
            made.append(
                f'{word.symbol} = word("{word.symbol}", {names[0]}, [{", ".join(names[1:])}], '
                f"ASSEMBLY{rooms})"
            )
        types = [
            f"{name} = kernel_type{(kind.name, *kind.parts)!r}" for kind, name in kinds.items()
        ]
        constants = [
            f'    np.frombuffer(bytes.fromhex("{x.tobytes().hex()}"), np.uint8).copy(),'
            for x in self.arrays.values()
        ]
        return [
            "ASSEMBLY = {\n" + "".join(map(_entry, assembly.items())) + "}",
            "\n".join(types),
            "\n".join(made),
            "\n".join(["CONSTANTS = [", *constants, "]"]),
            *map(_product, sorted(self.products)),
            *self.texts.values(),
        ]


def _entry(item: tuple[str, str]) -> str:
    """A function of LLVM in the dict of all."""
    name, text = item
    return f'    "{name}": r"""\n{text.strip()}\n""",\n'


class PlanInPython(PlanWriter):
    """Writes a plan as statements of Python."""

    kernels: KernelsInPython

    def number(self, word: int) -> str:
        """A number of the plan, as an expression."""
        self.marks.append(self.mark(word))
        return f"row[{FIRST_NUMBER + len(self.marks) - 1}]"

    def set_constant(self, slot: int, name: str) -> None:
        self.write(1, f"slots[{slot}] = {_address(name)}")

    def move(self, depth: int, slot: int, start: int, nbytes: int) -> None:
        self.write(depth, f"slots[{slot}] = slots[{start}] + {self.number(nbytes)}")

    def step(self, depth: int, name: str, words: Sequence[int | str]) -> None:
        first = FIRST_NUMBER + len(self.marks)
        for k, word in enumerate(words):
            if isinstance(word, str):
                self.write(depth, f"row[{first + k}] = {_address(word)}")
                word = 0
            self.marks.append(self.mark(word))
        self.write(depth, f"code = {name}(slots_address, row_address + {8 * first})")
        self.write(depth, "if code:")
        self.write(depth + 1, "return code")

    def product(self, depth: int, node: Product, words: Sequence[int]) -> None:
        name = node.out.dtype.name + "_pairs" * node.is_of_pairs
        self.kernels.products.add(name)
        self.write(depth, f"product_{name}(slots, row, {FIRST_NUMBER + len(self.marks)})")
        self.marks += [self.mark(word) for word in words]

    def loop(self, depth: int, length: int | None) -> None:
        if length is None:
            self.write(depth, "while True:")
        else:
            self.write(depth, f"for _ in range({self.number(length)}):")
        self.write(depth + 1, "pass")

    def leave_unless(self, depth: int, test: Value) -> None:
        self.write(depth, f"if not byte_at(slots[{test.slot}] + {self.number(test.offset)}):")
        self.write(depth + 1, "break")

    def turn(self, depth: int, now: int, following: int, spare: int) -> None:
        self.write(depth, f"following = slots[{following}]")
        self.write(depth, f"slots[{following}] = slots[{spare}]")
        self.write(depth, f"slots[{spare}] = following")
        self.write(depth, f"slots[{now}] = following")

    def branch(self, depth: int, index: View, sections: Sequence[Any]) -> None:
        last = len(sections) - 1
        place = f"slots[{index.value.slot}] + {self.number(index.first_byte)}"
        which = f"which{depth}"
        self.write(depth, f"{which} = min(max(integer_at({place}), 0), {last})")
        for k, section in enumerate(sections):
            self.write(depth, f"{'el' * (k > 0)}if {which} == {k}:")
            self.write(depth + 1, "pass")
            self.section(section, depth + 1)

    def end(self, depth: int) -> None:
        pass


def _address(name: str) -> str:
    """The address of a constant array."""
    return f"constants[{name.removeprefix('constant_')}]"
