"""Operands of matrix functions: anything array-like, promoted to floating or complex dtypes.

Leading axes count matrices; those of several arguments broadcast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import complex_dtype
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import linalg
from funcgrad.primitives import shape as s
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of


def square(a: Any, function: str) -> Any:
    """A floating or complex value, ``(..., n, n)``."""
    return linalg.square(a, function)


def matrices(function: str, *args: Any) -> list[Any]:
    """Floating or complex values of one dtype with two axes at least, and equal stacks."""
    values = linalg.floating(*args, function=function)
    for x in values:
        if len(shape_of(x)) < 2:
            raise linalg.LinAlgError(
                f"{function} needs matrices or stacks of matrices, got {aval_of(x)}."
            )
    return stacked(values, [2] * len(values))


def stacked(values: list[Any], ranks: list[int]) -> list[Any]:
    """Values whose leading axes are broadcast, all but the last ``rank`` of each."""
    lead = np.broadcast_shapes(
        *(shape_of(x)[: len(shape_of(x)) - rank] for x, rank in zip(values, ranks, strict=True))
    )
    return [
        s.broadcast_to(x, (*lead, *shape_of(x)[len(shape_of(x)) - rank :]))
        for x, rank in zip(values, ranks, strict=True)
    ]


def check_equal_shapes(function: str, *values: Any) -> None:
    """Raise unless the matrices of all values have one shape."""
    if len({shape_of(x)[-2:] for x in values}) > 1:
        types = " and ".join(str(aval_of(x)) for x in values)
        raise ShapeError(f"{function} needs matrices of one shape, got {types}.")


def as_complex(x: Any) -> Any:
    """The value in a complex dtype."""
    return convert(x, complex_dtype(aval_of(x).dtype))


def is_complex_value(x: Any) -> bool:
    """Whether the dtype is complex."""
    return bool(aval_of(x).dtype.kind == "c")


def as_columns(b: Any, function: str) -> tuple[Any, bool]:
    """Right-hand sides as matrices, and whether they were one vector."""
    if not len(shape_of(b)):
        raise ShapeError(f"{function}: a scalar, {aval_of(b)}, is no right-hand side of equations.")
    is_vector = len(shape_of(b)) == 1
    return (s.reshape(b, (*shape_of(b), 1)) if is_vector else b), is_vector


def as_answer(x: Any, is_vector: bool) -> Any:
    """The counterpart of `as_columns`."""
    return s.reshape(x, shape_of(x)[:-1]) if is_vector else x


def choice(function: str, name: str, given: Any, allowed: tuple[Any, ...]) -> Any:
    """An option, or an error that lists what is allowed."""
    if given not in allowed:
        known = ", ".join(map(repr, allowed))
        raise ArgumentError(f"{function}: {name} must be one of {known}, got {given!r}.")
    return given


def refuse_traced(function: str, *values: Any) -> None:
    """Raise for traced values where a result has no type that is known before its values."""
    if any(is_traced(x) for x in values):
        raise ArgumentError(
            f"{function} takes concrete arrays only: what it returns depends on values. Call it "
            "outside of the transformed function."
        )
