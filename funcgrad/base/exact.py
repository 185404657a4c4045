"""Keys of caches that tell values apart by type and bits, not by ``==``.

To Python ``0.0 == -0.0``, ``1 == True == 1.0`` and ``nan != nan``. What is made for one of them is
wrong for another, or never found again. `exact_key` looks into tuples, sets, dicts, slices, data
classes and arrays; any other object counts by its type and its own ``==``.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Hashable
from functools import lru_cache
from operator import is_
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from funcgrad.base import records

_OWN_KEY = frozenset(
    (str, bytes, type(None), type(...), FunctionType, BuiltinFunctionType, type, np.ufunc)
)
"""Types whose values equal nothing but themselves, or the same text."""
IS_COMPARED = frozenset((*_OWN_KEY, int, bool))
"""Types of which two values are the same where they are equal."""
_GENERATED = ("<string>", records.__file__)
"""Files in which the ``==`` of data classes is written that compares their fields."""


def exact_key(value: Any) -> Hashable:
    """A key that is equal for values of one type and the same bits.

    Args: value: Anything. What has no hash counts as it is now.
    """
    kind: type = type(value)
    return _key_maker(kind)(value)


@lru_cache(4096)
def _key_maker(kind: type) -> Callable[[Any], Hashable]:
    """How the key of a value of this type is made."""
    if kind in _OWN_KEY:
        return lambda value: value
    if kind is int or kind is bool:
        return lambda value: (kind, value)
    if kind is float:
        return lambda value: (kind, struct.pack("d", value))
    if kind is complex:
        return lambda value: (kind, struct.pack("dd", value.real, value.imag))
    parts = _parts_maker(kind)
    if issubclass(kind, np.generic) or kind is np.ndarray:
        return lambda value: _compared(value) if value.dtype.hasobject else (kind, _bits(value))
    return _compared if parts is None else lambda value: (kind, parts(value))


def _bits(value: Any) -> Hashable:
    """Dtype, shape and bits of an array or a number of NumPy."""
    # The padding of long doubles is random.
    is_padded = value.dtype.char in "gG" and isinstance(value, np.generic)
    return value.dtype, value.shape, repr(value) if is_padded else value.tobytes()


def _compared(value: Any) -> Hashable:
    return type(value), value if is_hashable(value) else Compared(value)


def _parts_maker(kind: type) -> Callable[[Any], Hashable] | None:
    """How the keys are made of what a value is compared by; None if it is compared as a whole."""
    is_named = issubclass(kind, tuple) and "__eq__" not in kind.__dict__
    if kind is tuple or kind is list or is_named:
        return lambda value: tuple(map(exact_key, value))
    if kind is dict:
        return lambda value: frozenset((exact_key(k), exact_key(x)) for k, x in value.items())
    if kind is frozenset or kind is set:
        return lambda value: frozenset(map(exact_key, value))
    if kind is slice or kind is range:
        return lambda value: exact_key((value.start, value.stop, value.step))
    if kind.__module__ == "decimal" and kind.__name__ == "Decimal":
        return str
    names = _fields_of(kind)
    if names is None:
        return None
    return lambda value: tuple([exact_key(getattr(value, name)) for name in names])


@lru_cache(4096)
def _fields_of(kind: type) -> tuple[str, ...] | None:
    """The fields that the ``==`` of a data class compares; None where the user wrote it."""
    code = getattr(kind.__eq__, "__code__", None)
    if not dataclasses.is_dataclass(kind) or code is None or code.co_filename not in _GENERATED:
        return None
    return tuple(field.name for field in dataclasses.fields(kind) if field.compare)


def is_fixed(value: Any) -> bool:
    """Whether the exact key of a value never changes, whatever a program does to the value."""
    kind: type = type(value)
    if kind in IS_COMPARED or kind is float or kind is complex:
        return True
    if kind is tuple:
        return all(map(is_fixed, value))
    is_data = isinstance(value, np.ndarray | np.generic | tuple | list | dict | set | frozenset)
    return not is_data and _fields_of(kind) is None and is_hashable(value)


def is_same(a: Any, b: Any) -> bool:
    """Whether values are one object, or tuples of such: the exact keys of fixed ones are equal."""
    if a is b:
        return True
    if type(a) is not tuple or type(b) is not tuple or len(a) != len(b):
        return False
    return all(map(is_, a, b)) or all(map(is_same, a, b))


class Compared:
    """A value that has ``==`` but no hash."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Compared)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )


def is_hashable(value: Any) -> bool:
    """Whether a value has a hash."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
