"""Products in which rows are divided into groups of traced sizes, each with its own matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.lax.contraction import DotDimensionNumbers, dot_general
from funcgrad.lax.operands import Array, ArrayLike, array_operand
from funcgrad.lax.shapes import broadcast
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.cumulative import Cumsum
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.shape import Transpose, reshape

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"]


class RaggedDotDimensionNumbers(NamedTuple):
    """Roles of the axes of `ragged_dot_general`.

    Args:
        dot_dimension_numbers: ``((contracted of lhs, of rhs), (batch of lhs, of rhs))``.
        lhs_ragged_dimensions: The one axis of ``lhs`` that is divided into groups.
        rhs_group_dimensions: The axis of ``rhs`` that has one element per group, if any.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: None = None,
    out_sharding: Any = None,
) -> Array:
    """Rows of a matrix, in consecutive groups, each times the matrix of its group.

    Every group multiplies all rows, those of the others being zeros: ``g`` products in all.

    Args:
        lhs: Array of shape ``(m, k)``.
        rhs: Array of shape ``(g, k, n)``, of the same dtype.
        group_sizes: ``g`` integers: how many rows each group has. Rows beyond them give zeros.
    Returns: An array of shape ``(m, n)``.

    Raises:
        ArgumentError: If there is an offset or another device.
        DtypeError: If sizes are no integers.
        ShapeError: If shapes do not match.

    Example:
        >>> weights = np.array([[[1.0]], [[10.0]]])
        >>> print(fg.lax.ragged_dot(np.ones((3, 1)), weights, np.array([1, 2])).T)
        [[ 1. 10. 10.]]
    """
    numbers = RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0])
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset,
        out_sharding,
    )  # fmt: skip


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: None = None,
    out_sharding: Any = None,
) -> Array:
    """`dot_general` where one axis of ``lhs`` is divided into groups of traced sizes.

    What a group means depends on the axis. A free axis: every group has its own part of ``rhs``. A
    contracted axis: every group has a sum of its own, along a new first axis of the result. A batch
    axis: groups change nothing.

    Args:
        rhs: Array of the same dtype.
        group_sizes: Integers of shape ``(g,)``, or with the lengths of the batch axes of ``lhs``
            and of its axes of the same kind before the ragged one in front.
        ragged_dot_dimension_numbers: `RaggedDotDimensionNumbers`.
    Returns: The products.

    Raises:
        ArgumentError: If there is an offset or another device.
        DtypeError: If sizes are no integers.
        ShapeError: If axes or shapes do not match.

    Example:
        >>> fg.lax.ragged_dot_general(
        ...     np.ones((3, 2)),
        ...     np.ones((2, 2, 1)),
        ...     np.array([1, 2]),
        ...     fg.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)),
        ... )
        array([[2.],
               [2.],
               [2.]])
    """
    name = "ragged_dot_general"
    check_placement(f"lax.{name}", out_sharding=out_sharding)
    if group_offset is not None:
        raise ArgumentError(f"lax.{name}: group_offset must be None; slice group_sizes and rhs.")
    x, y = array_operand(name, lhs), array_operand(name, rhs)
    sizes = array_operand(name, group_sizes)
    if aval_of(sizes).dtype.kind not in "iu":
        raise DtypeError(f"lax.{name}: group_sizes must be integers, got {aval_of(sizes)}.")
    (x_summed, y_summed), (x_batch, y_batch) = (
        [list(map(int, axes)) for axes in pair]
        for pair in ragged_dot_dimension_numbers.dot_dimension_numbers
    )
    ragged = [int(a) for a in ragged_dot_dimension_numbers.lhs_ragged_dimensions]
    groups = [int(a) for a in ragged_dot_dimension_numbers.rhs_group_dimensions]
    if len(ragged) != 1 or not 0 <= ragged[0] < len(shape_of(x)):
        raise ShapeError(f"lax.{name}: one axis of {aval_of(x)} is ragged, got {ragged}.")
    (axis,) = ragged
    is_free = axis not in x_summed and axis not in x_batch
    if len(groups) != int(is_free):
        raise ShapeError(
            f"lax.{name}: rhs has one axis of groups where a free axis is ragged, else none; got "
            f"rhs_group_dimensions={groups} for axis {axis} of {aval_of(x)}."
        )
    numbers = ((x_summed, y_summed), (x_batch, y_batch))
    if axis in x_batch:
        _for_lines(name, x, sizes, [a for a in x_batch if a < axis])
        return dot_general(x, y, numbers, precision, preferred_element_type)
    kin = x_summed if axis in x_summed else _free_axes(x, x_summed, x_batch)
    before = [*x_batch, *(a for a in kin if a < axis)]
    x = _by_group(name, x, axis, sizes, before)
    up = [[a + 1 for a in axes] for axes in (x_summed, x_batch)]
    if is_free:
        numbers = (([*up[0], 0], [*y_summed, *groups]), (up[1], y_batch))
        return dot_general(x, y, numbers, precision, preferred_element_type)
    y = broadcast(y, (shape_of(x)[0],))
    y_up = [[a + 1 for a in axes] for axes in (y_summed, y_batch)]
    numbers = ((up[0], y_up[0]), ([0, *up[1]], [0, *y_up[1]]))
    return dot_general(x, y, numbers, precision, preferred_element_type)


def _free_axes(x: Array, summed: Sequence[int], batch: Sequence[int]) -> list[int]:
    return [a for a in range(len(shape_of(x))) if a not in summed and a not in batch]


def _for_lines(name: str, x: Array, sizes: Array, before: Sequence[int]) -> Array:
    """Sizes of groups for every line of ``x``, which the axes in front count."""
    lengths = [shape_of(x)[a] for a in before]
    if len(shape_of(sizes)) == 1:
        sizes = broadcast(sizes, lengths)
    if list(shape_of(sizes)[:-1]) != lengths:
        raise ShapeError(
            f"lax.{name}: group_sizes must have shape (g,) or {(*lengths, 'g')}, got "
            f"{aval_of(sizes)}."
        )
    return sizes


def _by_group(name: str, x: Array, axis: int, sizes: Array, before: Sequence[int]) -> Array:
    """``x`` once for every group along a new first axis, with zeros outside of the group."""
    sizes = p.convert(_for_lines(name, x, sizes, before), np.dtype(np.int64))
    shape = shape_of(sizes)
    ends = Cumsum(len(shape) - 1).bind(sizes)
    starts = p.sub.bind(ends, sizes)
    order = [int(i) for i in np.argsort(before)]
    own = {a: shape_of(x)[a] for a in before}
    target = (shape[-1], *(own.get(a, 1) for a in range(len(shape_of(x)))))

    def placed(bounds: Array) -> Array:
        return reshape(Transpose((len(order), *order)).bind(bounds), target)

    n = shape_of(x)[axis]
    places = np.arange(n).reshape([n if a == axis else 1 for a in range(len(shape_of(x)))])
    inside = p.bitwise_and.bind(
        p.less_equal.bind(placed(starts), places), p.less.bind(places, placed(ends))
    )
    return p.select.bind(inside, x, p.zero_of(x))
