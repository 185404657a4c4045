"""The types of values in kernels, and the signatures of the words that take and give them.

A kernel computes with NumPy's scalar types, with vectors of them, and with the weak types of
Python's literals. Types of array elements are the same object wherever they are equal, so that
they can be compared and hashed at no cost; vectors and lanes are made once for each.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

from funcgrad.intrinsics import CASTS


class TypingError(Exception):
    """A word takes no such arguments, or two types have no common one."""


class Type:
    """The type of a value in a kernel.

    Attributes:
        name: What error messages call it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


_NAMES = {"b": "bool", "i": "int{}", "u": "uint{}", "f": "float{}", "c": "complex{}"}

SCALARS: dict[str, Type] = {name: Type(_NAMES[name[0]].format(name[1:])) for name in CASTS}
"""NumPy's scalar types, by the words that cast to them."""

NONE = Type("none")
BOOL = SCALARS["b1"]
INT32, INT64 = SCALARS["i32"], SCALARS["i64"]
UINT32, UINT64 = SCALARS["u32"], SCALARS["u64"]
FLOAT32, FLOAT64 = SCALARS["f32"], SCALARS["f64"]
PARTS: dict[Type, Type] = {SCALARS["c64"]: FLOAT32, SCALARS["c128"]: FLOAT64}
"""Complex types, and those of their parts."""

WEAK_FLOAT = Type("weak_float")
"""Type of a Python float literal, which takes the dtype of the array value that it meets."""


class Literal(Type):
    """The type of a Python integer literal: weak, too, and known while the kernel is written."""

    def __init__(self, value: int) -> None:
        self.literal_value = value
        super().__init__(f"literal({value})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and other.literal_value == self.literal_value

    def __hash__(self) -> int:
        return hash(self.literal_value)


class Pointer(Type):
    """The address of array elements of one dtype."""

    def __init__(self, element: Type) -> None:
        self.element = element
        super().__init__(f"pointer({element})")


class Vector(Type):
    """Elements of one dtype that are computed at once; complex ones are two vectors, of parts."""

    def __init__(self, element: Type, count: int) -> None:
        self.element = element
        self.count = count
        super().__init__(f"vector({element}, {count})")


class Lanes(Type):
    """The index of neighbours that are computed at once: that of the first, and which are there.

    Attributes:
        count: How many they are at most.
        is_partial: Whether they may be fewer.
        is_inner: Whether some may be missing before those that are there, too.
    """

    def __init__(self, count: int, is_partial: bool, is_inner: bool) -> None:
        self.count = count
        self.is_partial = is_partial
        self.is_inner = is_inner
        super().__init__(f"lanes({count}, {is_partial}, {is_inner})")


class Words(Type):
    """The argument ``slots`` or ``args`` of a kernel: 64-bit words."""


SLOTS = Words("slots")
ARGS = Words("args")
POINTERS: dict[str, Pointer] = {name: Pointer(element) for name, element in SCALARS.items()}


@lru_cache(4096)
def literal(value: int) -> Literal:
    """The type of an integer literal."""
    return Literal(value)


@cache
def vector(element: Any, count: int) -> Any:
    """The type of a vector; of no elements, that of a scalar."""
    return Vector(element, count) if count else element


@cache
def lanes(count: int, is_partial: bool, is_inner: bool = False) -> Lanes:
    """The type of an index of lanes."""
    return Lanes(count, is_partial, is_inner)


def element_of(t: Any) -> Any:
    """The type of the elements of a vector; any other type itself."""
    return t.element if isinstance(t, Vector) else t


def strong(t: Any) -> Any:
    """The dtype that a value has when it meets no other."""
    if t is WEAK_FLOAT:
        return FLOAT64
    return INT64 if isinstance(t, Literal) else t


def is_weak(t: Any) -> bool:
    """Whether a type is that of a literal."""
    return t is WEAK_FLOAT or isinstance(t, Literal)


class Signature(NamedTuple):
    """Types of the operands and the result of a word."""

    return_type: Any
    args: tuple[Any, ...]


def signature(return_type: Any, *args: Any) -> Signature:
    """A signature of a result and its arguments."""
    return Signature(return_type, args)
