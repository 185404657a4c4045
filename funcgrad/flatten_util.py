"""Pytrees as flat vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.dialect import default_dtype
from funcgrad.base.namespaces import present
from funcgrad.base.pytree import PyTreeDef
from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.objects import flatten_numbers, unwrapped
from funcgrad.primitives.shape import Concatenate, Slice, reshape, shape_of

__all__ = [
    "ravel_pytree",
]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves of a tree as one vector, and the way back.

    Args: pytree: A tree of arrays and numbers.
    Returns: A vector of the dtype to which the leaves promote, and a function that turns a vector
        of that length and dtype into a tree of the original structure, shapes and dtypes. Where all
        leaves have one dtype, it takes vectors of others, too, and gives leaves of these. Both can
        be transformed.
    Raises: ShapeError, DtypeError: If the function gets a vector of another length, or of another
            dtype where leaves have several.

    Example:
        >>> vector, unravel = fg.flatten_util.ravel_pytree({"a": np.ones(2), "b": 3.0})
        >>> vector
        array([1., 1., 3.])
        >>> unravel(2 * vector)
        {'a': array([2., 2.]), 'b': np.float64(6.0)}
    """
    leaves, treedef = flatten_numbers(pytree)
    types = map(aval_of, leaves)
    avals = tuple(shaped(a.shape, default_dtype(a.dtype)) for a in types)
    common = np.result_type(*(a.dtype for a in avals)) if avals else np.dtype(np.float64)
    dtype = default_dtype(common)
    rows = [
        reshape(convert(x, dtype), (a.size,)) if a.shape else reshape(convert(x, dtype), (1,))
        for x, a in zip(leaves, avals, strict=True)
    ]
    vector = Concatenate(0).bind(*rows) if rows else np.zeros(0)
    return vector, _Unravel(treedef, avals, dtype)


@dataclass(frozen=True)
class _Unravel:
    """From a vector to a tree; those of equal structures and types are equal, and pickle."""

    treedef: PyTreeDef
    avals: tuple[ShapedArray, ...]
    dtype: np.dtype[Any]

    def __call__(self, flat: Any) -> Any:
        flat = unwrapped(flat)
        size = sum(a.size for a in self.avals)
        if shape_of(flat) != (size,):
            raise ShapeError(
                f"unravel needs a vector of shape ({size},), got shape {shape_of(flat)}."
            )
        given = aval_of(flat).dtype
        dtypes = [aval.dtype for aval in self.avals]
        if given != self.dtype and any(dtype != self.dtype for dtype in dtypes):
            raise DtypeError(
                f"unravel needs a vector of dtype {self.dtype}, got {aval_of(flat)}: the leaves "
                "have several dtypes."
            )
        dtypes = dtypes if given == self.dtype else [given] * len(dtypes)
        return self.treedef.unflatten(_split(flat, self.avals, dtypes))


def _split(flat: Any, avals: Sequence[ShapedArray], dtypes: Sequence[np.dtype[Any]]) -> list[Any]:
    parts, start = [], 0
    for aval, dtype in zip(avals, dtypes, strict=True):
        part = Slice((start,), (start + aval.size,), (1,)).bind(flat)
        part = convert(reshape(part, aval.shape), dtype)
        parts.append(part[()] if isinstance(part, np.ndarray) and not aval.shape else part)
        start += aval.size
    return parts


present(__name__)
