"""Products of matrices and their generalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.errors import ShapeError
from funcgrad.lax.operands import (
    Array,
    ArrayLike,
    array_operand,
    canonical_axes,
    canonical_dtype,
    check_kinds,
    same_dtype,
)
from funcgrad.lax.precision import PrecisionLike
from funcgrad.primitives.contraction import Contract
from funcgrad.primitives.elementwise import convert, mul
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.shape import broadcast_to, reshape

__all__ = ["DotDimensionNumbers", "batch_matmul", "dot", "dot_general", "scaled_dot"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
"""``((contracted of lhs, of rhs), (batch of lhs, of rhs))``."""


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Sum of products over pairs of contracted axes, for every index of the batch axes.

    Args:
        rhs: Array; of two dtypes the result has the one that is complex, else the floating one,
            else the longer one, else the signed one, as in JAX. It is not promoted further.
        dimension_numbers: ``((contracted of lhs, of rhs), (batch of lhs, of rhs))``.

    Returns:
        An array with the batch axes first, then the free axes of ``lhs``, then those of ``rhs``.
    Raises: ShapeError: If paired axes differ in number or length.

    Example:
        >>> x, y = np.ones((5, 2, 3)), np.ones((5, 3, 4))
        >>> fg.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
        (5, 2, 4)
    """
    check_placement("lax.dot_general", out_sharding=out_sharding)
    x, y = array_operand("dot_general", lhs), array_operand("dot_general", rhs)
    if preferred_element_type is not None:
        wanted = canonical_dtype(preferred_element_type)
        x, y = convert(x, wanted), convert(y, wanted)
    x, y = same_dtype("dot_general", *_in_the_higher_dtype(x, y))
    check_kinds("dot_general", aval_of(x).dtype, "biufc")
    (x_summed, y_summed), (x_batch, y_batch) = dimension_numbers
    pairs = _pairs(x, y, x_summed, y_summed) + _pairs(x, y, x_batch, y_batch)
    return _contraction(len(shape_of(x)), len(shape_of(y)), pairs, len(x_batch)).bind(x, y)


def _in_the_higher_dtype(x: Array, y: Array) -> tuple[Array, Array]:
    """Both in the dtype that ranks higher, if neither is a weak number."""
    a, b = aval_of(x), aval_of(y)
    if a.dtype == b.dtype or a.weak_type or b.weak_type:
        return x, y
    higher = max(a.dtype, b.dtype, key=_rank)
    return convert(x, higher), convert(y, higher)


def _rank(dtype: np.dtype[Any]) -> tuple[int, int, bool]:
    return _KINDS[dtype.kind], dtype.itemsize, dtype.kind != "u"


def _pairs(
    x: Array, y: Array, x_axes: Sequence[int], y_axes: Sequence[int]
) -> list[tuple[int, int]]:
    left = canonical_axes("dot_general", x_axes, len(shape_of(x)))
    right = canonical_axes("dot_general", y_axes, len(shape_of(y)))
    same_number = len(left) == len(right)
    if not same_number or any(
        shape_of(x)[a] != shape_of(y)[b] for a, b in zip(left, right, strict=True)
    ):
        raise ShapeError(
            f"lax.dot_general: axes {left} of {aval_of(x)} do not match axes {right} of "
            f"{aval_of(y)}."
        )
    return list(zip(left, right, strict=True))


def _contraction(
    x_ndim: int, y_ndim: int, pairs: Sequence[tuple[int, int]], batch: int
) -> Contract:
    """Positions to letters; the last ``batch`` pairs are batch axes."""
    x_labels = list(_LETTERS[:x_ndim])
    y_labels = list(_LETTERS[x_ndim : x_ndim + y_ndim])
    for a, b in pairs:
        y_labels[b] = x_labels[a]
    batch_labels = [x_labels[a] for a, _ in pairs[len(pairs) - batch :]]
    paired = {x_labels[a] for a, _ in pairs}
    free = [c for c in (*x_labels, *y_labels) if c not in paired]
    return Contract("".join(x_labels), "".join(y_labels), "".join([*batch_labels, *free]))


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Products of vectors and matrices.

    Args:
        lhs: Array; without ``dimension_numbers`` of one or two axes.
        rhs: Array; of two dtypes the result has the higher, as in `dot_general`.
        dimension_numbers: As in `dot_general`; by default the last axis of ``lhs`` meets the
            first of ``rhs``.
    Returns: The product.
    Example: print(fg.lax.dot(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))) -> [11.]
    """
    check_placement("lax.dot", out_sharding=out_sharding)
    x, y = array_operand("dot", lhs), array_operand("dot", rhs)
    if dimension_numbers is None:
        if not (1 <= len(shape_of(x)) <= 2 and 1 <= len(shape_of(y)) <= 2):
            raise ShapeError(
                f"lax.dot needs one or two axes, got {aval_of(x)} and {aval_of(y)}. Use "
                "lax.dot_general, or funcgrad.numpy.matmul."
            )
        dimension_numbers = (((len(shape_of(x)) - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrix products of two equal stacks of matrices.

    Args:
        lhs: Array of shape ``(..., m, k)``.
        rhs: Array of shape ``(..., k, n)`` with the same leading axes.
    Returns: An array of shape ``(..., m, n)``.
    Example: fg.lax.batch_matmul(np.ones((1, 1, 3)), np.ones((1, 3, 1))) -> array([[[3.]]])
    """
    x, y = array_operand("batch_matmul", lhs), array_operand("batch_matmul", rhs)
    ndim = len(shape_of(x))
    if ndim < 2 or len(shape_of(y)) != ndim:
        raise ShapeError(
            f"lax.batch_matmul needs stacks of equally many axes, got {aval_of(x)} "
            f"and {aval_of(y)}."
        )
    stack = tuple(range(ndim - 2))
    return dot_general(x, y, (((ndim - 1,), (ndim - 2,)), (stack, stack)))


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: Any = None,
) -> Array:
    """`dot_general` of operands that are multiplied by scales, each of them for a block.

    It has derivatives in operands and scales.

    Args:
        rhs: Another one; the dtypes of both, and of their scales, promote by
            ``preferred_element_type``, or must be equal.
        lhs_scale: Array with as many axes as ``lhs``. Its lengths divide those of ``lhs``: an
            element counts for a block. By default 1.
        rhs_scale: Likewise, for ``rhs``.
        dimension_numbers: As in `dot_general`. By default the last axis of ``lhs`` is summed with
            the last but one of ``rhs``, and those before are batch axes.
    Returns: An array as of `dot_general`.
    Raises: ShapeError: If the lengths of a scale do not divide those of its operand.

    Example:
        >>> x, y = np.ones((1, 2, 4)), np.ones((1, 4, 1))
        >>> fg.lax.scaled_dot(x, y, lhs_scale=np.array([[[1.0, 2.0], [3.0, 4.0]]]))[0]
        array([[ 6.],
               [14.]])
    """
    x = _scaled(lhs, lhs_scale, "lhs", preferred_element_type)
    y = _scaled(rhs, rhs_scale, "rhs", preferred_element_type)
    if dimension_numbers is None:
        batch = tuple(range(len(shape_of(x)) - 2))
        dimension_numbers = ((len(batch) + 1,), (len(batch),)), (batch, batch)
    return dot_general(x, y, dimension_numbers, None, preferred_element_type)


def _scaled(x: ArrayLike, scale: ArrayLike | None, name: str, dtype: Any) -> Array:
    x = array_operand("scaled_dot", x)
    if scale is None:
        return x
    factor = array_operand("scaled_dot", scale)
    lengths, parts = shape_of(x), shape_of(factor)
    if len(lengths) != len(parts) or any(
        part == 0 or length % part for length, part in zip(lengths, parts, strict=True)
    ):
        raise ShapeError(
            f"lax.scaled_dot: the lengths of {name}_scale, {aval_of(factor)}, must divide those of "
            f"{name}, {aval_of(x)}."
        )
    if dtype is not None:
        x, factor = convert(x, canonical_dtype(dtype)), convert(factor, canonical_dtype(dtype))
    x, factor = same_dtype("scaled_dot", x, factor)
    pairs = list(zip(lengths, parts, strict=True))
    blocks = tuple(n for length, count in pairs for n in (count, length // count))
    single = tuple(n for count in parts for n in (count, 1))
    spread = broadcast_to(reshape(factor, single), blocks)
    return reshape(mul.bind(reshape(x, blocks), spread), lengths)
