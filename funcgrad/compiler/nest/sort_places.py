"""Places in the stable order of keys, by sorting numbers that have key and place in one.

NumPy sorts integers of 64 bits in vectors, many times faster than it sorts places by other numbers
in a stable way. So a key of 32 bits stands in the upper half of such an integer and the place in
the lower one: equal keys keep their order because places differ. Longer keys, and several keys,
are sorted half by half, the least significant one first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from funcgrad.compiler.foreign import sort_function
from funcgrad.compiler.machine import SEVERAL
from funcgrad.compiler.nest.builder import Builder
from funcgrad.compiler.nest.layout import Operand, Shape, Value, View, whole
from funcgrad.compiler.nest.nodes import Pick, Point, Routine
from funcgrad.dtypes import INT64
from funcgrad.lowering import LibraryCall, SortCall

LEAST = SEVERAL
"""Length from which this is worth its kernels: shorter lines are sorted by insertion."""

_SORT = SortCall(0, stable=False)

_SIGNED = "({0} ^ (({0} >> %d) & %d))"
"""The bits of a float, as an integer that grows with it: those of negative ones are inverted."""


def is_sortable(calls: Sequence[LibraryCall], keys: Sequence[Operand], shape: Shape) -> bool:
    """Whether a routine only sorts places along the last axis, in a stable way, by such keys."""
    return (
        bool(calls)
        and all(isinstance(x, SortCall) and x.order is not None and x.stable for x in calls)
        and LEAST <= shape[-1] < 1 << 31
        and all(isinstance(x, View) and x.dtype.kind in "iuf" for x in keys)
        # NumPy counts the elements of 16 bits instead of comparing them.
        and all(x.dtype.itemsize >= 4 for x in keys)
        and bool(sort_function(INT64, False, False))
    )


def sorted_places(builder: Builder, keys: Sequence[Operand]) -> View:
    """The order that sorts along the last axis, int64.

    Args:
        builder: Appends the nodes.
        keys: Of one shape, the one that decides first at the end.
    """
    shape = keys[0].shape
    count = builder.constant(np.arange(shape[-1])).broadcast(shape)
    places: View | None = None
    for key in keys:
        for digit in _digits(builder, key):
            seen = digit if places is None else _picked(builder, digit, places)
            pairs = _point(builder, "({0} << 32) | {1}", seen, count)
            memory = whole(Value(shape, INT64))
            arrays, starts = {0: memory}, ((0, pairs),)
            node = Routine((pairs,), (memory.value,), (_SORT,), 0, arrays, starts)
            at = _point(builder, "{0} & 4294967295", builder.result(node))
            places = at if places is None else _picked(builder, places, at)
    assert places is not None
    return places


def _digits(builder: Builder, key: Operand) -> Iterator[View]:
    """Integers of 32 bits with a sign, the least significant ones first."""
    n = 8 * key.dtype.itemsize
    if key.dtype.kind == "f":
        highest, infinity = (1 << n - 1) - 1, 0xFF << 23 if n == 32 else 0x7FF << 52
        bits = _point(builder, f"i64(bitcast_f{n}_i{n}({{0}}))", key)
        # Zeros are one, and so are all NaN, which come last.
        order = f"select({{0}} == -{highest + 1}, 0, {_SIGNED % (n - 1, highest)})"
        key = _point(builder, f"select(({{0}} & {highest}) > {infinity}, {highest}, {order})", bits)
    elif key.dtype.kind == "u":
        lowest = -(1 << n - 1)
        key = _point(builder, f"i64({{0}}) {'^' if n == 64 else '+'} ({lowest})", key)
    if n == 64:
        yield _point(builder, "({0} & 4294967295) - 2147483648", key)
        yield _point(builder, "{0} >> 32", key)
    else:
        yield _point(builder, "i64({0})", key)


def _point(builder: Builder, expr: str, *operands: Operand) -> View:
    return builder.result(Point(operands, (Value(operands[0].shape, INT64),), expr))


def _picked(builder: Builder, table: View, places: View) -> View:
    """The elements of lines at places in them."""
    length = table.shape[-1]
    first = View(table.value, table.shape, (*table.strides[:-1], 0), table.offset)
    out = Value(table.shape, table.dtype)
    steps = (table.strides[-1],)
    return builder.result(Pick((first, places), (out,), "place", (length,), steps))
