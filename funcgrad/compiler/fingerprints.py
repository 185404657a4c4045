"""Fingerprints: programs that are planned alike, in any process, have the same one.

A fingerprint is a digest of all that a program consists of: its operations with their parameters,
types, and the elements of constants, but neither names nor the user's lines. It exists where each
of these is of a kind that says all of itself: numbers, texts, arrays, containers, programs, and
data classes, types and functions of this library. Anything else may mean something else tomorrow.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import numpy as np

from funcgrad.base.digests import digest
from funcgrad.base.forking import cached_property
from funcgrad.base.records import dataclass
from funcgrad.compiler.runtime.dependencies import is_of_plans
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Program, Var

MOST_BYTES = 1 << 24
"""Bytes of constants that are digested, at most: then planning takes less."""

_PLAIN = frozenset((bool, int, str, bytes, type(None), type(...)))
_CONTAINERS = (tuple, list)
_NAMED = (np.ufunc, BuiltinFunctionType, type(np.sum))


@dataclass
class Fingerprint:
    """Digest by which a program is known.

    Attributes:
        text: The digest.
        arrays: Its constants, in their order.
    """

    text: str
    arrays: list[np.ndarray]


def fingerprint(program: Program) -> Fingerprint | None:
    """The fingerprint of a program, if it has one."""
    description = _Description()
    try:
        description.add_program(program)
    except _UnknownError:
        return None
    return Fingerprint(digest("\n".join(description.lines).encode()), description.arrays)


class _UnknownError(Exception):
    """Something that does not say all of itself."""


class _Description:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arrays: list[np.ndarray] = []
        self._left = MOST_BYTES
        self._primitives: dict[int, tuple[Any, str]] = {}

    def add_program(self, program: Program) -> None:
        """A program, with names numbered from 0."""
        if program.axis_names:
            raise _UnknownError
        numbers: dict[Var, int] = {}

        def named(atoms: Iterable[Atom]) -> str:
            return " ".join(map(name_of, atoms))

        def name_of(atom: Atom) -> str:
            if not isinstance(atom, Var):
                return f"{self.told(atom.value)}:{atom.aval!r}"
            if (number := numbers.get(atom)) is None:
                number = numbers[atom] = len(numbers)
                return f"{number}:{atom.aval!r}"
            return str(number)

        for var, array in program.constants:
            self.lines.append(f"{name_of(var)} = {self.told(array)}")
        self.lines.append(named(program.inputs))
        for equation in program.equations:
            primitive = self._primitive(equation)
            inputs, outputs = named(equation.inputs), named(equation.outputs)
            self.lines.append(f"{outputs} = {primitive} {inputs}")
        self.lines.append(f"return {named(program.outputs)}")

    def _primitive(self, equation: Equation) -> str:
        """A primitive; the same one is described once."""
        primitive = equation.primitive
        known = self._primitives.get(id(primitive))
        if known is None:
            known = self._primitives[id(primitive)] = primitive, self.told(primitive)
        return known[1]

    def told(self, value: Any) -> str:
        """A text that no other value of any kind has."""
        kind: type = type(value)
        if kind is float or kind is complex:  # each nan has bits of its own
            return f"{kind.__name__} {struct.pack('=2d', value.real, value.imag).hex()}"
        if kind in _PLAIN:
            return repr(value)
        if kind is np.ndarray or isinstance(value, np.generic):
            return self._array(value)
        if isinstance(value, np.dtype):
            return f"{value!r} {value.name}"
        if kind in _CONTAINERS:
            return f"{kind.__name__}({', '.join(map(self.told, value))})"
        if kind is dict:
            return f"dict{self.told(list(value.items()))}"
        if kind is frozenset:
            return f"frozenset{sorted(map(self.told, value))}"
        if kind is slice or kind is range:
            return f"{kind.__name__}{self.told((value.start, value.stop, value.step))}"
        if kind is Program:
            if value.constants:  # which may be written to
                raise _UnknownError
            self.add_program(value)
            return f"program of {len(self.lines)} lines"
        if isinstance(value, type):
            return _name_of(value)
        if kind is FunctionType:
            return self._function(value)
        if isinstance(value, _NAMED):
            return _name_in_module(value)
        if isinstance(value, Enum):
            return f"{_name_of(kind)}.{value.name}"
        name = _name_of(kind)
        if isinstance(value, Primitive) and not is_dataclass(kind):
            facts = vars(value).items()  # without what has been derived from them so far
            return f"{name}{self.told([x for x in facts if not _is_derived(kind, x[0])])}"
        return f"{name}({', '.join(self.told(getattr(value, x)) for x in _fields(kind))})"

    def _function(self, value: FunctionType) -> str:
        """A function of this library, with what it closes over."""
        # A wrapped function says that it is of the other one's module.
        module = str(value.__globals__.get("__name__"))
        known = sys.modules.get(module)
        if known is None or vars(known) is not value.__globals__ or not is_of_plans(module):
            raise _UnknownError
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        around = self.told([*cells, value.__defaults__, value.__kwdefaults__])
        return f"{module} {_place_of(value.__code__)} {around}"

    def _array(self, array: Any) -> str:
        if array.dtype.hasobject or array.dtype.char in "gG":  # whose padding is random
            raise _UnknownError
        self._left -= array.nbytes
        if self._left < 0:
            raise _UnknownError
        if type(array) is np.ndarray:
            self.arrays.append(array)
        return text_of_array(array)


def _is_derived(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), cached_property)


def text_of_array(array: Any) -> str:
    """A text that no array or scalar of other elements has."""
    kind = f"{type(array).__name__} {array.dtype!r} {array.dtype.name}{array.shape}"
    return f"{kind} {digest(array.tobytes())}"


def _name_in_module(value: Any) -> str:
    """The name of a function of NumPy or Python."""
    return _checked_name(getattr(value, "__module__", None) or "numpy", value.__name__, value)


@lru_cache(1024)
def _name_of(kind: type) -> str:
    """The name of a class that is the same wherever this library is."""
    module = kind.__module__
    if module in ("builtins", "numpy") or is_of_plans(module):
        return _checked_name(module, kind.__qualname__, kind)
    raise _UnknownError


def _checked_name(module: str, name: str, value: Any) -> str:
    """The name of what is found by it: what says that it is of a module need not be."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value:
        raise _UnknownError
    return f"{module}.{name}"


@lru_cache(1024)
def _place_of(code: CodeType) -> str:
    """Name and place of the code of a function, which no other code of its file has."""
    return f"{code.co_qualname} {digest(repr([*code.co_positions()]).encode())}"


@lru_cache(1024)
def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a data class that tell its values apart."""
    if not is_dataclass(kind):
        raise _UnknownError
    return tuple(field.name for field in fields(kind) if field.compare)
