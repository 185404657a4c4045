"""Places of extremes: the first element that no other one of its row is more extreme than.

``places : form, array -> integers``. The most extreme element of a row is a fold, and so is the
least number of those that are as extreme: both share kernels with what makes the row, and with each
other. Of a long row the extremes of blocks are found first, then the block, and the element in it.
Columns that lie side by side are folded together.
"""

from __future__ import annotations

import numpy as np

from funcgrad.compiler.machine import SUM_BLOCK
from funcgrad.compiler.nest.bounds import bounds_of, is_within
from funcgrad.compiler.nest.builder import Builder
from funcgrad.compiler.nest.kernel import neutral
from funcgrad.compiler.nest.layout import Operand, Uniform, Value, View, whole
from funcgrad.compiler.nest.nodes import Copies, Fold, Pick, Point
from funcgrad.dtypes import BOOL, INT32, INT64
from funcgrad.intrinsics import expression
from funcgrad.lowering import ArgReduction, Reduction

BLOCK = 2 * SUM_BLOCK
"""Elements of the part of a long row that is looked through for its extreme a second time."""


def places(builder: Builder, form: ArgReduction, x: View, out: Value) -> View:
    """The places of extremes along an axis.

    Args:
        builder: Appends the nodes.
        form: What is asked.
        x: The array, with two elements or more along the axis.
        out: The places.
    """
    out.bounds = 0, x.shape[form.axis] - 1
    axes = [axis for axis in range(len(x.shape)) if axis != form.axis]
    are_columns = axes and form.axis < axes[-1] and x.strides[form.axis] != 1 == x.strides[-1]
    if x.dtype == BOOL:
        x = whole(builder.copy(x, np.dtype(np.uint8)))
    elif x.dtype.itemsize > INT32.itemsize and is_within(bounds_of(x), INT32):
        x = whole(builder.copy(x, INT32))
    if are_columns:
        return _first(builder, form, x, form.axis, out)
    return _of_rows(builder, form, x.permuted([*axes, form.axis]), out)


def _of_rows(builder: Builder, form: ArgReduction, x: View, out: Value) -> View:
    """The places of extremes along the last axis."""
    if x.shape[-1] > 2 * BLOCK:
        return _of_long_rows(builder, form, x, out)
    return _first(builder, form, x, len(x.shape) - 1, out)


def _first(builder: Builder, form: ArgReduction, x: View, axis: int, out: Value) -> View:
    """The first place along an axis of what is as extreme as the most extreme element."""
    # Numbers as wide as the elements are chosen in the same vectors.
    count = np.dtype(np.int32 if x.dtype.itemsize <= 4 else np.int64)
    numbers = builder.constant(np.arange(x.shape[axis], dtype=count))
    numbers = numbers.restrided(x.shape, tuple(int(k == axis) for k in range(len(x.shape))), 0)
    most = _along(_most(builder, form, x, axis), x, axis)
    nowhere = Uniform(neutral("{highest}", count), x.shape)
    expr = f"select({form.better}, {{3}}, {{2}})"
    found = builder.result(Point((most, x, numbers, nowhere), (Value(x.shape, count),), expr))
    least = Reduction((axis,), "{highest}", "minimum({0}, {1})")
    if count == INT64:
        return builder.result(Fold((found,), (out,), least))
    first = builder.result(Fold((found,), (Value(out.shape, count),), least))
    return builder.result(Point((first,), (out,), "{0}"))


def _of_long_rows(builder: Builder, form: ArgReduction, x: View, out: Value) -> View:
    """Likewise, block by block; the last block ends where a row does, wherever it begins."""
    *_, n = x.shape
    axis, n_blocks = len(x.shape) - 1, n // BLOCK
    every = [(length,) for length in x.shape[:-1]]
    blocks = x.narrowed(axis, 0, n_blocks * BLOCK).divided([*every, (n_blocks, BLOCK)])
    last = _most(builder, form, x.narrowed(axis, n - BLOCK, n), axis)
    most = Value((*last.shape, n_blocks + 1), x.dtype)
    ends = (0, n_blocks), (n_blocks, n_blocks + 1)
    spots = tuple(whole(most).narrowed(axis, *end) for end in ends)
    parts = _most(builder, form, blocks, axis + 1), _along(last, spots[1], axis)
    seen = builder.result(Copies(parts, (most,), spots))
    begins = builder.constant(np.minimum(np.arange(n_blocks + 1) * BLOCK, n - BLOCK))
    at = _of_rows(builder, form, seen, Value(last.shape, INT64))
    table = begins.restrided(last.shape, (0,) * axis, 0)
    first = Pick((table, at), (Value(last.shape, INT64),), "place", (n_blocks + 1,), (1,))
    begin = builder.result(first)
    window = x.narrowed(axis, 0, BLOCK)
    read = window, _along(begin, window, axis)
    steps = (x.strides[-1],)
    block = Pick(read, (Value(window.shape, x.dtype),), "place", (n - BLOCK + 1,), steps)
    own = _of_rows(builder, form, builder.result(block), Value(last.shape, INT64))
    return builder.result(Point((begin, own), (out,), "{0} + {1}"))


def _most(builder: Builder, form: ArgReduction, x: View, axis: int) -> View:
    """The most extreme elements along an axis."""
    (combines,) = expression(form.step).uses
    init = {"max": "{lowest}", "min": "{highest}"}[combines.across]
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return builder.result(Fold((x,), (Value(shape, x.dtype),), Reduction((axis,), init, form.step)))


def _along(x: View, other: Operand, axis: int) -> View:
    """The elements of an array, each repeated along an axis that another one has."""
    return x.restrided(other.shape, (*x.strides[:axis], 0, *x.strides[axis:]), x.offset)
