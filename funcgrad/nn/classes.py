"""Integers that name classes, or rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.errors import DtypeError, OutOfBoundsError
from funcgrad.higher_order.staging import located
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.objects import is_traced

Array = Any
ArrayLike = Any


def checked_integers(name: str, what: str, labels: ArrayLike, advice: str = "") -> Array:
    """An array of integers.

    Raises: DtypeError: If they are not integers.
    """
    index = strong(as_value(labels, name))
    if aval_of(index).dtype.kind not in "iu":
        problem = f"{name}: {what} must be integers, got {aval_of(index)}."
        raise located(DtypeError, f"{problem} {advice}".rstrip())
    return index


def within(name: str, what: str, index: Array, count: int) -> Array:
    """The integers, those outside ``0 .. count - 1`` such that indexing knows them to be outside.

    To NumPy negative ones count from the end; as labels they are mistakes, or mark what is missing.

    Raises: OutOfBoundsError: If one is known, and is outside.
    """
    dtype = aval_of(index).dtype
    if is_traced(index):
        # A narrow dtype may not have a number beyond the end.
        wide = p.convert(index, np.dtype(np.int64)) if dtype.itemsize < 8 else index
        if dtype.kind == "u":
            return wide
        return p.select.bind(
            p.less.bind(wide, p.zero_of(wide)), aval_of(wide).dtype.type(count), wide
        )
    outside = (index < 0) | (index >= count)
    if np.any(outside):
        wrong = np.asarray(index)[outside].flat[0]
        raise located(
            OutOfBoundsError,
            f"{name}: there are {count} {what}, 0 to {count - 1}, got {wrong} in "
            f"{aval_of(index)}. What is missing needs a place of its own, or a mask.",
        )
    return index


__all__ = ["checked_integers", "within"]
