"""Plans and kernels in Python, for Numba.

A kernel is printed as a Python function of words (`native.numba_path`), whose LLVM assembly the
module has. All numbers of a plan are in an array ``row``, so that kernels find their words there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from funcgrad.compiler.loops.language import Function
from funcgrad.compiler.native.numba_path import Kind, Vocabulary, print_kernel
from funcgrad.compiler.nest.layout import Value, View
from funcgrad.compiler.runtime.matmul import Multiplication
from funcgrad.interop.c.plan import Kernels, PlanWriter

FIRST_NUMBER = 2
"""Place of a plan's first number in a row, behind its kind and the bytes of its scratch memory."""


class KernelsInPython(Kernels):
    """Functions of a module.

    Attributes:
        vocabulary: Words that they call.
    """

    def __init__(self, has_sizes: bool = True) -> None:
        super().__init__(has_sizes)
        self.vocabulary = Vocabulary()

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

    def product(self, job: Multiplication, depth: int) -> None:
        self.own(job.step(1), job.codes, job, depth)

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
