"""Python's numbers with what arrays know of themselves: ``dtype``, ``shape``, ``astype`` and so on.

Functions that are called as they are, outside of any trace, get their numbers in this form, so
that they can be written as for traced values. They are ints, floats and complex numbers, take the
dtype of the arrays that they meet, and arithmetic on them gives the like again, except for
``0.5 + n`` with an int ``n``: there Python asks the float alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np


class ScalarNumber:
    """Methods that the types below add to Python's."""

    __slots__ = ()
    plain: ClassVar[type]
    array_type: ClassVar[Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Protocols that others ask for: a number has none of them.
            raise AttributeError(name)
        return getattr(self.array_type(self), name)

    # NumPy takes instances of subclasses for arrays of 64 bits: it is given plain numbers.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(plain_number, inputs), **kwargs)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return function(
            *map(_plain_nested, args), **{k: _plain_nested(v) for k, v in kwargs.items()}
        )


class ScalarInt(ScalarNumber, int):
    """An int."""

    __slots__ = ()
    plain, array_type = int, np.int64


class ScalarFloat(ScalarNumber, float):
    """A float."""

    __slots__ = ()
    plain, array_type = float, np.float64


class ScalarComplex(ScalarNumber, complex):
    """A complex number."""

    __slots__ = ()
    plain, array_type = complex, np.complex128


_OF_PLAIN: dict[type, Callable[[Any], Any]] = {
    bool: np.bool_,
    int: ScalarInt,
    float: ScalarFloat,
    complex: ScalarComplex,
}
SCALAR_NUMBERS = (ScalarInt, ScalarFloat, ScalarComplex)


def scalar_number(x: Any) -> Any:
    """A number of Python with the attributes of an array; anything else as it is."""
    made = _OF_PLAIN.get(type(x))
    return x if made is None else made(x)


def plain_number(x: Any) -> Any:
    """A number of Python without them; anything else as it is."""
    return x.plain(x) if type(x) in SCALAR_NUMBERS else x


def _plain_nested(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)(map(_plain_nested, x))
    return plain_number(x)


def _closed(operation: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator of Python's numbers whose results have the attributes again; its reflection."""

    def forward(self: Any, other: Any, *modulus: Any) -> Any:
        if type(other) not in _NUMBERS:
            return NotImplemented  # Arrays and traced values compute with plain numbers.
        return scalar_number(operation(*map(plain_number, (self, other, *modulus))))

    def reflected(self: Any, other: Any) -> Any:
        if type(other) not in _NUMBERS:
            return NotImplemented
        return scalar_number(operation(plain_number(other), plain_number(self)))

    return forward, reflected


def _closed_sign(operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: scalar_number(operation(plain_number(self)))


_NUMBERS = frozenset((*_OF_PLAIN, *SCALAR_NUMBERS))
_BINARY = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    pow, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor,
)  # fmt: skip
for _operation in _BINARY:
    _name = _operation.__name__.strip("_")
    for _side, _function in zip(("", "r"), _closed(_operation), strict=True):
        setattr(ScalarNumber, f"__{_side}{_name}__", _function)
_UNARY: tuple[Callable[[Any], Any], ...] = (
    operator.neg, operator.pos, operator.abs, operator.invert,
)  # fmt: skip
for _sign in _UNARY:
    setattr(ScalarNumber, f"__{_sign.__name__}__", _closed_sign(_sign))
