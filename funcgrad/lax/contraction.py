"""Products of matrices and their generalisations."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from funcgrad.core.avals import aval_of
from funcgrad.core.placement import check_placement
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
from funcgrad.primitives.contraction import Contract
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.families import shape_of

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
"""``((contracted of lhs, of rhs), (batch of lhs, of rhs))``."""


class Precision(enum.Enum):
    """Names of precisions: all mean the full precision of the dtype here."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __str__(self) -> str:
        return self.name


PrecisionLike = None | str | Precision | tuple[str, str] | tuple[Precision, Precision]
"""What ``precision=`` takes; it changes nothing."""


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
        lhs: Array.
        rhs: Array of the same dtype.
        dimension_numbers: ``((contracted of lhs, of rhs), (batch of lhs, of rhs))``.
        precision: Accepted for JAX's signature; products are always of full precision.
        preferred_element_type: Dtype in which products are formed and returned.
        out_sharding: The CPU, if anything.

    Returns:
        An array with the batch axes first, then the free axes of ``lhs``, then those of ``rhs``.

    Raises:
        ShapeError: If paired axes differ in number or length.

    Example:
        >>> import numpy as np
        >>> from funcgrad import lax
        >>> x, y = np.ones((5, 2, 3)), np.ones((5, 3, 4))
        >>> lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
        (5, 2, 4)
    """
    check_placement("lax.dot_general", out_sharding=out_sharding)
    x, y = array_operand("dot_general", lhs), array_operand("dot_general", rhs)
    if preferred_element_type is not None:
        wanted = canonical_dtype(preferred_element_type)
        x, y = convert(x, wanted), convert(y, wanted)
    x, y = same_dtype("dot_general", x, y)
    check_kinds("dot_general", aval_of(x).dtype, "biufc")
    (x_summed, y_summed), (x_batch, y_batch) = dimension_numbers
    pairs = _pairs(x, y, x_summed, y_summed) + _pairs(x, y, x_batch, y_batch)
    return _contraction(len(shape_of(x)), len(shape_of(y)), pairs, len(x_batch)).bind(x, y)


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
        rhs: Array of the same dtype.
        dimension_numbers: As in `dot_general`; by default the last axis of ``lhs`` meets the
            first of ``rhs``.
        precision: Accepted for JAX's signature.
        preferred_element_type: Dtype in which products are formed and returned.
        out_sharding: The CPU, if anything.

    Returns:
        The product.

    Example:
        >>> import numpy as np
        >>> from funcgrad import lax
        >>> print(lax.dot(np.array([[1.0, 2.0]]), np.array([3.0, 4.0])))
        [11.]
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
        precision: Accepted for JAX's signature.

    Returns:
        An array of shape ``(..., m, n)``.
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
