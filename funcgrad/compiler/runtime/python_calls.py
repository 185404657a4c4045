"""Steps that Python runs: what only a primitive's own evaluation can compute, and callbacks.

The step takes the interpreter's lock, calls an object with the address of the slots, and gives the
lock back. So a program that contains such a step is native all around it, in loops as well. What
the call raises ends the program, and is raised by whoever runs that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler import abi
from funcgrad.compiler.loops.builder import SystemProgram, read_word
from funcgrad.compiler.loops.language import SLOTS, NamedFunction, call, equal
from funcgrad.compiler.nest.layout import Operand, Uniform, Value
from funcgrad.compiler.nest.nodes import External
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.executable import Step
from funcgrad.core.facets import Facet
from funcgrad.observers.limits import current_limits
from funcgrad.observers.messages import add_place
from funcgrad.observers.source import is_raised_by_us, stands_for

shows_progress = Facet("shows_progress", False)
"""Whether an operation is a loop that Python runs in parts, to show how far it is."""

impl_inside_plan: Facet[Callable[..., Any] | None] = Facet("impl_inside_plan", None)
"""``impl_inside_plan(*arrays)``: evaluation as a step of Python in a compiled program, by default
that by NumPy."""


@dataclass
class PythonCall:
    """The job of a node that Python evaluates."""

    node: External

    @property
    def codes(self) -> list[NamedFunction]:
        """Codes of the step."""
        return [PythonStep.named()]

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Parts for threads: it is never shared."""
        return [(0, 1)]

    def text(self) -> str:
        """One line about it."""
        primitive = self.node.primitive
        if not shows_progress(primitive):
            return f"numpy: {primitive.name}"
        return f"python: {primitive.name}, in parts that show its progress"

    def step(self) -> Step:
        """The step, when everything has its place."""
        call = _Call(self.node)
        words = abi.in_order(abi.PYTHON_WORDS, function=id(call))
        return Step(kernel_store.code_address(PythonStep.named()), words, (call,))


Reader = Callable[[int], Any]
"""Gives an argument, of the address of the slots."""


class _Call:
    """Evaluates a node, given the address of the slots of a call."""

    def __init__(self, node: External) -> None:
        self.evaluate = impl_inside_plan(node.primitive) or node.primitive.impl
        self.has_list = node.primitive.multiple_results
        self.source = node.source
        self.text = f"{node.primitive.name}\n  at            {node.source}"
        self.readers = [_reader(x) for x in node.operands]
        self.writers = [_array_at(value) for value in node.outs]

    @stands_for("self")
    def __call__(self, slots: int) -> None:
        try:
            outs = self.evaluate(*[read(slots) for read in self.readers])
        except Exception as error:
            if is_raised_by_us(error.__traceback__):
                add_place(error, self.source)
            raise
        for array_at, out in zip(self.writers, outs if self.has_list else [outs], strict=True):
            array_at(slots)[...] = out
        if (limits := current_limits()) is not None:
            limits.check_time(lambda: f"a compiled program, after {self.text}")


def _reader(operand: Operand) -> Reader:
    if isinstance(operand, Uniform):
        fixed = np.broadcast_to(operand.scalar, operand.shape)[()]
        return lambda slots: fixed
    array_at = _array_at(operand.value)
    if operand.is_value:
        return array_at if operand.shape else lambda slots: array_at(slots)[()]
    if 0 in operand.shape:
        empty = np.empty(operand.shape, operand.dtype)
        return lambda slots: empty
    part_at = _array_at(operand.value, operand)
    return lambda slots: part_at(slots)[()]


def _array_at(value: Value, operand: Operand | None = None) -> Reader:
    """Gives the array of a value, or an operand in it, in the memory of a call."""
    place, offset = 8 * value.slot, int(value.offset)
    kind: Any = ctypes.c_char * value.nbytes
    word_at = ctypes.c_int64.from_address
    if operand is None:
        view: tuple[Any, ...] = ()
        shape, dtype = value.shape, value.dtype
    else:
        shape, dtype, size = operand.shape, operand.dtype, operand.dtype.itemsize
        view = operand.offset * size, tuple(s * size for s in operand.strides)
    last = 0, np.empty(shape, dtype)

    def array_at(slots: int) -> np.ndarray:
        nonlocal last
        address = word_at(slots + place).value + offset
        found = last
        if found[0] != address:  # in a loop, it lies where it lay in the step before
            found = last = address, np.ndarray(shape, dtype, kind.from_address(address), *view)
        return found[1]

    return array_at


class PythonStep(SystemProgram):
    """The step that calls an object of Python: `abi.PYTHON_WORDS`.

    The object is given the address of the slots; what it raises goes into slots.
    """

    def write(self) -> None:
        words = self.given(abi.PYTHON_WORDS)
        control = self.word(SLOTS, abi.CONTROL_SLOT)
        functions = {name: read_word(control, k) for k, name in enumerate(abi.CONTROL_WORDS)}
        state = self.call(functions["ensure"])
        slots = self.call(functions["number"], SLOTS)
        result = self.call(functions["call"], words["function"], slots)
        is_raised = self.let(equal(result, 0))
        with self.when(is_raised):
            self.call(functions["fetch"], *(SLOTS + 8 * (abi.RAISED_SLOT + k) for k in range(3)))
        self.call(functions["drop"], slots)
        self.call(functions["drop"], result)
        self.call(functions["release"], state)
        # Whoever was called may have changed it for good.
        self.put_word(SLOTS, abi.MODE_SLOT, call("read_control"))
        with self.when(is_raised):
            self.give_back(abi.RAISED)
