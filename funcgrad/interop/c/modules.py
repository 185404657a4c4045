"""Compiled programs as modules of Python that Numba compiles, without funcgrad.

A kernel is a Python function of words, intrinsics of Numba whose LLVM assembly the module has
(`native.numba_words`). A plan is a function of its steps (`plan_in_python`). Vectors are as long as
those of the processor at hand; LLVM divides them for others.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from funcgrad.compiler.abi import FIRST_SLOT, REFUSED
from funcgrad.compiler.native import numba_words
from funcgrad.interop.c.entry import FAILED, FIRST_MESSAGE
from funcgrad.interop.c.plan_in_python import KernelsInPython, PlanInPython
from funcgrad.interop.c.programs import ExportedModule, Program
from funcgrad.interop.c.sizes import ALIGNMENT, Piece

_HEAD = """\
from __future__ import annotations

import functools

import numba
import numpy as np
"""

_WORDS = '''\
compiled = numba.njit(error_model="numpy", nogil=True, cache=True)


def _read(name, kind):
    text = f"""
define internal i64 @{name}(i64 %a) alwaysinline nounwind {{
  %p = inttoptr i64 %a to ptr
  %v = load {kind}, ptr %p
  %r = {"zext i8 %v to i64" if kind == "i8" else "add i64 %v, 0"}
  ret i64 %r
}}
"""
    return word(name, types.int64, [types.int64], {name: text})


def pointer_to(t):
    kind = types.CPointer(t)

    @intrinsic
    def pointer(typing_context, address):
        return kind(types.int64), lambda context, builder, _, values: builder.inttoptr(
            values[0], context.get_value_type(kind)
        )

    return pointer


byte_at, integer_at = _read("byte_at", "i8"), _read("integer_at", "i64")
'''
"""Words of plans."""

_FORMULAS = """\
def fg_quotient(a, b):
    return a // b


fg_larger, fg_float64 = max, float


def fg_room(size):
    return (size + 63) // 64 * 64


def fg_word64(a):
    return int(np.float64(a).view(np.int64))


def fg_word32(a):
    return int(np.float32(a).view(np.int32))
"""
"""Functions of `sizes.Formula`."""

_RUN = """\
@compiled
def run(addresses, slots, row, constants, scratch):
    slots_address, row_address = np.int64(slots.ctypes.data), np.int64(row.ctypes.data)
    arena = (np.int64(scratch.ctypes.data) + {alignment} - 1) // {alignment} * {alignment}
    for k in range(len(addresses)):
        slots[{first} + k] = addresses[k]
    code = np.int64({failed})
{choice}
    # The arrays whose addresses kernels have are alive until here.
    return code + 0 * (len(slots) + len(row) + len(constants) + len(scratch))


@functools.lru_cache(256)
def row_of(*sizes):
    for bounds, numbers in PIECES:
        if all(low <= n <= high for n, (low, high) in zip(sizes, bounds)):
            found = numbers(*sizes) if callable(numbers) else numbers
            return np.array(found, np.int64)
    raise ValueError(f"the module has no code for the sizes {{sizes}}")


def compute(arrays, *sizes):
    row = row_of(*sizes)
    slots, scratch = np.zeros({n_slots}, np.int64), np.empty(row[1], np.uint8)
    addresses = np.array([x.ctypes.data for x in arrays], np.int64)
    constants = np.array([x.ctypes.data for x in CONSTANTS], np.int64)
    code = run(addresses, slots, row, constants, scratch)
    if code:
        raise ValueError(MESSAGES[slots[1] + {first_message} if code == {refused} else {failed}])
"""


class ModuleWriter(Program):
    """Writes the module of one function."""

    kernels: KernelsInPython
    kinds = KernelsInPython, PlanInPython

    def exported(self) -> ExportedModule:
        return ExportedModule(self.name, self.signature, self.source())

    def source(self) -> str:
        runs = self._runs()
        messages = "".join(f"    {text!r},\n" for text in self.messages)
        sizes = "".join(f", {name}" for name in self.signature.names)
        _, words = inspect.getsource(numba_words).split("from __future__ import annotations\n")
        parts = [
            f'"""{self.name}: {self.signature}"""',
            _HEAD + words.lstrip("\n"),
            _WORDS,
            *self.kernels.definitions(),
            *runs,
            f"MESSAGES = [\n{messages}]",
            self.function(f"    compute(arrays{sizes})\n"),
        ]
        return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"

    def _runs(self) -> list[str]:
        """Functions of plans, of the numbers that plans take from sizes, and the table of both."""
        texts: list[str] = []
        choice: list[str] = []
        pieces: list[str] = []
        for kind, group in enumerate(self.groups()):
            plan = group[0].plan
            given = "slots, slots_address, row, row_address, constants"
            lines = [f"@compiled\ndef run_{kind}({given}):", *plan.text.lines]
            texts.append("\n".join([*lines, "    return np.int64(0)"]))
            choice.append(f"    if row[0] == {kind}:")
            if plan.arena_slot >= 0:
                choice.append(f"        slots[{plan.arena_slot}] = arena")
            choice.append(f"        code = run_{kind}({given})")
            if group[0].formulas:
                texts.append(self._numbers(kind, group[0]))
            for k, piece in enumerate(group):
                name = f"numbers_{kind}"
                if not piece.formulas:
                    name += f"_{k}"
                    row = [kind, piece.plan.nbytes, *piece.plan.numbers]
                    texts.append(f"{name} = {_listed(row)}")
                pieces.append(f"    ({piece.box!r}, {name}),")
        run = _RUN.format(
            alignment=ALIGNMENT,
            first=FIRST_SLOT,
            failed=FAILED,
            refused=REFUSED,
            first_message=FIRST_MESSAGE,
            n_slots=self.n_slots,
            choice="\n".join(choice),
        )
        has_formulas = any(piece.formulas for piece in self.pieces)
        return [
            *([_FORMULAS] if has_formulas else []),
            *texts,
            "\n".join(["PIECES = [", *pieces, "]"]),
            run,
        ]

    def _numbers(self, kind: int, piece: Piece) -> str:
        """The function that computes the numbers of a plan, of sizes."""
        statements = piece.statements(self.names)
        lines = [f"    {name} = {text}" for name, text in statements]
        row = ", ".join([str(kind), "total", *piece.numbers(self.names)])
        return "\n".join(
            [f"def numbers_{kind}({', '.join(self.names)}):", *lines, f"    return [{row}]"]
        )


def _listed(numbers: Sequence[int]) -> str:
    """A list of numbers in short lines."""
    rows = [", ".join(map(str, numbers[k : k + 8])) for k in range(0, len(numbers), 8)]
    return "[\n" + "".join(f"    {row},\n" for row in rows) + "]"
