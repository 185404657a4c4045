"""Words as intrinsics of Numba: types that it does not have, and functions whose assembly is given.

``word : symbol, types, assembly -> intrinsic``. A word is a function of LLVM. Numba's module gets
its text with those of all functions that it calls, and code that Numba compiles calls it. Only
`numba.extending` and llvmlite's `ir` are used, which both promise to keep.

Exported modules contain this file as it is: it imports nothing of funcgrad.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model


class KernelType(types.Type):
    """A type that Numba does not have.

    Attributes:
        parts: The LLVM types of the parts of a value, as text.
    """

    def __init__(self, name: str, parts: Sequence[str]) -> None:
        self.parts = tuple(parts)
        super().__init__(f"kernel {name}")


@register_model(KernelType)
class _Model(models.PrimitiveModel):
    """How Numba keeps such a value: as its parts."""

    def __init__(self, manager: Any, numba_type: KernelType) -> None:
        super().__init__(manager, numba_type, _joined_type(numba_type.parts))


@lru_cache(4096)
def kernel_type(name: str, *parts: str) -> Any:
    """The type of a name: Numba's own, if it has one.

    Args:
        name: The name.
        parts: The LLVM types of the parts of a value; nothing is a number of Numba's.
    """
    if name in ("bool", "none"):
        return {"bool": types.boolean, "none": types.void}[name]
    numbas = getattr(types, name, None)
    return numbas if isinstance(numbas, types.Number) else KernelType(name, parts)


def parts_of(t: Any) -> Sequence[str]:
    """The LLVM types of the parts of a value as functions take them, as text."""
    if isinstance(t, KernelType):
        return t.parts
    if t is types.void:
        return ()
    if t is types.boolean:
        return ("i1",)
    if isinstance(t, types.Complex):
        return (_FLOATS[t.underlying_float.bitwidth],) * 2
    return (_FLOATS[t.bitwidth] if isinstance(t, types.Float) else f"i{t.bitwidth}",)


_FLOATS = {32: "float", 64: "double"}


def _llvm_type(text: str) -> Any:
    """An LLVM type as llvmlite has it."""
    count, _, element = text.strip("<>").rpartition(" x ")
    if count:
        return ir.VectorType(_llvm_type(element), int(count))
    if text == "ptr":
        return ir.PointerType()
    return {"float": ir.FloatType(), "double": ir.DoubleType()}.get(text) or ir.IntType(
        int(text[1:])
    )


def _joined_type(parts: Sequence[str]) -> Any:
    """The LLVM type of all parts of a value."""
    found = [_llvm_type(text) for text in parts]
    return found[0] if len(found) == 1 else ir.LiteralStructType(found)


def word(
    symbol: str, result: Any, sources: Sequence[Any], assembly: Mapping[str, str], *rooms: int
) -> Callable[..., Any]:
    """An intrinsic that calls a function of LLVM.

    Args:
        symbol: The name of the function.
        result: The type of what it returns.
        sources: The types of its arguments, of which it takes the parts.
        assembly: Definitions and declarations by name: its own, and those of what it calls.
        rooms: Bytes of memory of the stack, whose addresses are its last arguments.
    """
    given = [_llvm_type(text) for t in sources for text in parts_of(t)]
    given += [ir.PointerType()] * len(rooms)
    returned = parts_of(result)
    kind = ir.FunctionType(_joined_type(returned) if returned else ir.VoidType(), given)
    signature = result(*sources)

    def generate(context: Any, builder: ir.IRBuilder, _: Any, values: Sequence[Any]) -> Any:
        parts: list[Any] = []
        for value, source in zip(values, sources, strict=True):
            n = len(parts_of(source))
            parts += [value] if n == 1 else [builder.extract_value(value, k) for k in range(n)]
        # Memory of the stack lives as long as the kernel.
        for nbytes in rooms:
            with builder.goto_entry_block():
                room = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes))
            room.align = 64
            parts.append(builder.bitcast(room, ir.PointerType()))
        found = builder.call(_defined(builder.module, symbol, kind, assembly), parts)
        return found if returned else context.get_dummy_value()

    def define(typing_context: Any, *args: Any) -> Any:
        return signature, generate

    names = ["typing_context", *(f"x{k}" for k in range(len(sources)))]
    parameter = inspect.Parameter.POSITIONAL_OR_KEYWORD
    define.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, parameter) for name in names]
    )
    define.__name__ = symbol
    return intrinsic(define)


class _Given(ir.Function):
    """A function of a module whose text is given."""

    def __init__(self, module: ir.Module, name: str, kind: Any, text: str) -> None:
        super().__init__(module, kind, name)
        self.text = text

    def __str__(self) -> str:
        return self.text + "\n"


def _defined(module: ir.Module, symbol: str, kind: Any, assembly: Mapping[str, str]) -> Any:
    """A function of Numba's module, which with all that it calls becomes one of it."""
    found = module.globals.get(symbol)
    if found is None:
        found = _Given(module, symbol, kind, assembly[symbol])
        other = ir.FunctionType(ir.VoidType(), [])  # nothing of Numba calls these
        for name in re.findall(r"@([-$\w.]+)", assembly[symbol]):
            if name in assembly:
                _defined(module, name, other, assembly)
    return found
