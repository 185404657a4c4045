"""Lookups, windows and their converses: elements at places that are computed.

Such an element is one scalar for every index, as any other: so lookups and windows become nodes
that fusion treats like points (`Pick`), and scatters and replaced windows nodes of one kind
(`Put`). Indices that are known now and count evenly, as those of lanes and diagonals do, are
strides. Indices that are to be refused if they are wrong are looked through before anything is read
or written (`Checked`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from funcgrad import lowering as forms
from funcgrad.base.records import dataclass
from funcgrad.compiler.loops.language import Variable
from funcgrad.compiler.nest.bounds import bounds_of
from funcgrad.compiler.nest.builder import Builder
from funcgrad.compiler.nest.layout import Operand, Shape, Uniform, Value, View, cut, whole
from funcgrad.compiler.nest.nodes import Checked, Copies, Pick, Point, Put, Site
from funcgrad.compiler.nest.places import FARTHEST, signed
from funcgrad.dtypes import INT64, UINT64


def looked_up(builder: Builder, form: forms.Lookup, operands: list[Operand], out: Value) -> Operand:
    """Elements of the first operand at places that the others name."""
    x, *indices = operands
    if isinstance(x, Uniform) and form.mode in ("clip", "wrap"):
        return Uniform(x.scalar, out.shape)
    x = builder.stored(x)
    if not (math.prod(out.shape) and all(x.shape[axis] for axis in form.axes)):
        if form.mode == "raise":
            _refuse(builder, form.axes, x.shape, indices)
        return Uniform(form.fill, out.shape)
    places = _places(builder, form, x, indices, out.shape)
    if not places.indices:
        return places.first
    return _picked(builder, places, out, form.fill if places.mode == "fill" else None)


def scattered(
    builder: Builder, form: forms.Scatter, operands: list[Operand], out: Value
) -> Operand:
    """The first operand with elements of the second taken in at places that the others name."""
    x, updates, *indices = operands
    if not math.prod(updates.shape) and form.mode != "raise":
        return x
    if form.mode == "raise" and not (math.prod(updates.shape) and math.prod(x.shape)):
        _refuse(builder, form.axes, x.shape, indices)
        return x
    if isinstance(x, Uniform):
        compared = _compared(builder, form, x, updates, indices, out)
        if compared is not None:
            return compared
    places = _places(builder, form, whole(out), indices, updates.shape)
    return _put(builder, operands, places, len(x.shape) - len(form.axes), form.step)


def _compared(
    builder: Builder,
    form: forms.Scatter,
    x: Uniform,
    updates: Operand,
    indices: Sequence[Operand],
    out: Value,
) -> View | None:
    """A scatter of one element in each row of an array that is otherwise one scalar.

    Every element asks whether the place of its row is its own. So it shares kernels with what
    reads it, and nothing is written twice.
    """
    n = len(updates.shape) - len(out.shape) + len(form.axes)
    shape = updates.shape[:n]
    counted: dict[int, int] = {}  # for each axis of rows the axis of the updates that counts it
    chosen: list[tuple[int, Operand]] = []
    for axis, index in zip(form.axes, indices, strict=True):
        even = _even_places(index.broadcast(shape), out.shape[axis], form.mode)
        if even is None:
            chosen.append((axis, index.broadcast(shape)))
            continue
        along = [i for i, step in enumerate(even[1]) if step]
        if even[0] or [even[1][i] for i in along] not in ([], [1]):
            return None
        if along:
            counted[axis] = along[0]
        if (shape[along[0]] if along else 1) != out.shape[axis]:
            return None
    others = math.prod(m for i, m in enumerate(shape) if i not in counted.values())
    if len(chosen) != 1 or others != 1 or not counted or form.mode == "wrap":
        return None
    ((axis, index),) = chosen
    if axis < max(counted) or len({*counted.values()}) != len(counted) or not math.prod(out.shape):
        return None
    rest = [i for i in range(len(out.shape)) if i not in form.axes]
    counted |= {i: n + k for k, i in enumerate(rest)}

    def spread(operand: Operand, axes: dict[int, int]) -> Operand:
        strides = [operand.strides[axes[i]] if i in axes else 0 for i in range(len(out.shape))]
        return operand.restrided(out.shape, tuple(strides), operand.offset)

    # Integers as wide as the elements are compared in the same vectors.
    is_narrow = out.dtype.itemsize <= 4 and out.shape[axis] <= np.iinfo(np.int32).max
    count = np.dtype(np.int32 if is_narrow else np.int64)
    length = Uniform(np.int64(out.shape[axis]), shape)
    k, own = form.axes.index(axis), builder.array(np.arange(out.shape[axis], dtype=count))
    given = indices[k], out.shape[axis]
    if form.mode == "raise" and not _is_inside(*given) and given not in builder.watched:
        assert builder.equation is not None
        # Read from the array that counts places, an index is looked at in passing.
        places = _Places(builder.stored(own).restrided(shape, (0,) * len(shape), 0), "raise")
        places.indices, places.lengths, places.steps = [index], [given[1]], [1]
        places.sites = [Site(builder.equation, k, *given)]
        index = _picked(builder, places, Value(shape, count))
    expr = _PLACES["clip" if form.mode == "clip" else "fill"]
    expr = expr.format(signed(Variable("{0}"), index.dtype))
    place = builder.result(Point((index, length), (Value(shape, count),), expr))
    operands = (
        x.broadcast(out.shape),
        spread(updates, counted),
        spread(place, {i: k for i, k in counted.items() if k < n}),
        spread(own, {axis: 0}),
    )
    expr = f"select({{2}} == {{3}}, {form.step}, {{0}})"
    return builder.result(Point(operands, (out,), expr))


_PLACES = {
    "clip": "minimum(maximum({0}, 0), {{1}} - 1)",
    "fill": "minimum(maximum(select({0} < 0, {0} + {{1}}, {0}), -1), {{1}})",
}
"""The place that an index means along an axis of a length, by mode; -1 or the length where it means
none, so that it fits into as many bits as the length does.
"""


def window(builder: Builder, operands: list[Operand], out: Value) -> Operand:
    """A part of the first operand; the others are its starts."""
    x, *starts = operands
    known = _known_cut(x.shape, out.shape, starts)
    if known is not None:
        return x.reindexed(known, out.shape)
    if isinstance(x, Uniform):
        return Uniform(x.scalar, out.shape)
    return _picked(builder, _of_window(x, starts, out.shape), out)


def replaced(builder: Builder, operands: list[Operand], out: Value) -> Operand:
    """The first operand with a part replaced by the second; the others are its starts."""
    x, update, *starts = operands
    known = _known_cut(x.shape, update.shape, starts)
    if known is not None:
        if not math.prod(update.shape):
            return x
        parts = whole(out), whole(out).reindexed(known, update.shape)
        return builder.result(Copies((x, update), (out,), parts))
    places = _of_window(whole(out), starts, update.shape)
    return _put(builder, operands, places, len(update.shape), "{1}")


# Places that are computed.


@dataclass
class _Places:
    """Addresses that the index arrays of a lookup point to.

    Attributes:
        first: The element of the array that is meant, at every index, if all integers are 0.
        mode: What the integers mean.
        indices: Those that are not known now.
        lengths: The lengths of their axes.
        steps: How many elements it is from place to place along them.
        lanes: Axes along which indices that are known count an axis of the array.
        sites: As of `Pick`.
    """

    first: View
    mode: str
    indices: list[Operand] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    lanes: set[int] = field(default_factory=set)
    sites: list[Site | None] = field(default_factory=list)


def _places(
    builder: Builder,
    form: forms.Lookup | forms.Scatter,
    array: View,
    indices: Sequence[Operand],
    shape: Shape,
) -> _Places:
    """The places of a lookup or scatter in an array, in an index space."""
    rest = [i for i in range(len(array.shape)) if i not in form.axes]
    n = len(shape) - len(rest)
    places = _Places(array, form.mode)
    strides, offset = np.zeros(n, np.int64), array.offset
    for k, (axis, index) in enumerate(zip(form.axes, indices, strict=True)):
        full = index.broadcast(shape[:n])
        even = _even_places(full, array.shape[axis], form.mode)
        if even is None:
            places.indices.append(_repeated(full, shape))
            places.lengths.append(array.shape[axis])
            places.steps.append(array.strides[axis])
            if form.mode == "raise":
                assert builder.equation is not None
                site = Site(builder.equation, k, index, array.shape[axis])
                places.sites.append(None if _is_inside(index, site.length) else site)
                builder.watched.add((index, site.length))
            continue
        offset += even[0] * array.strides[axis]
        strides += np.array(even[1], np.int64) * array.strides[axis]
        counted = [i for i, step in enumerate(even[1]) if step]
        places.lanes.update(counted if len(counted) == 1 else ())
    if all(map(_are_places, places.indices, places.lengths)):
        places.mode = "place"
    row = (*strides.tolist(), *(array.strides[i] for i in rest))
    places.first = View(array.value, shape, row, offset if math.prod(shape) else 0)
    return places


def _of_window(x: View, starts: Sequence[Operand], shape: Shape) -> _Places:
    """The places of a window of an array."""
    places = _Places(x.restrided(shape, x.strides, x.offset if math.prod(shape) else 0), "start")
    for start, n, m, stride in zip(starts, x.shape, shape, x.strides, strict=True):
        if n > m:
            places.indices.append(_repeated(start, shape))
            places.lengths.append(n - m + 1)
            places.steps.append(stride)
    if all(map(_are_places, places.indices, places.lengths)):
        places.mode = "place"
    return places


def _picked(builder: Builder, places: _Places, out: Value, fill: Any = None) -> View:
    operands, sites = (places.first, *places.indices), tuple(places.sites)
    facts = places.mode, tuple(places.lengths), tuple(places.steps)
    return builder.result(Pick(operands, (out,), *facts, fill, sites))


def _put(
    builder: Builder, operands: Sequence[Operand], places: _Places, n_rest: int, step: str
) -> View:
    target, read = places.first, (*operands[:2], *places.indices)
    facts = places.mode, tuple(places.lengths), tuple(places.steps)
    lanes, sites = frozenset(places.lanes), tuple(places.sites)
    return builder.result(Put(read, (target.value,), target, *facts, n_rest, lanes, step, sites))


def _refuse(
    builder: Builder, axes: Sequence[int], shape: Shape, indices: Sequence[Operand]
) -> None:
    """Look for wrong indices where nothing is read or written at them."""
    for k, (axis, index) in enumerate(zip(axes, indices, strict=True)):
        if math.prod(index.shape) and not _is_inside(index, shape[axis]):
            builder.add(Checked((index,), (Value(index.shape, INT64),), shape[axis], k))


def count_of(builder: Builder, x: Operand, number: int) -> Operand:
    """The same integers, of which negative ones end the program: the operand of this number."""
    bounds = bounds_of(x)
    if bounds is None or bounds[0] >= 0 or not math.prod(x.shape):
        return x
    # Along an axis of one element -2 is the first number that means nothing.
    index: Operand = Uniform(INT64.type(-2), x.shape)
    if not isinstance(x, Uniform):
        point = Point((x,), (Value(x.shape, INT64),), "select({0} < 0, -2, 0)")
        index = builder.result(point)
    builder.add(Checked((index,), (Value(x.shape, INT64),), 1, number))
    return Uniform(x.dtype.type(0), x.shape) if isinstance(x, Uniform) else x


def _is_inside(index: Operand, length: int) -> bool:
    """Whether indices are not out of bounds, whatever the arguments are."""
    bounds = bounds_of(index)
    return bounds is not None and -length <= bounds[0] and bounds[1] < length


def _are_places(index: Operand, length: int) -> bool:
    """Whether indices lie in ``0 .. length-1``, whatever the arguments are."""
    bounds = bounds_of(index)
    return bounds is not None and bounds[0] >= 0 and bounds[1] < length


def _repeated(index: Operand, shape: Shape) -> Operand:
    """Integers for the first axes of a shape, for all of it."""
    more = (0,) * (len(shape) - len(index.shape))
    return index.restrided(shape, index.strides + more, index.offset)


# Places that are known now.


def _known_places(index: Operand, length: int, mode: str) -> np.ndarray | None:
    """The places that indices mean along an axis, if they are known now and all mean one."""
    numbers = known_numbers(index)
    if numbers is None or not (numbers.size and length):
        return None
    if mode == "wrap":
        return (numbers.astype(UINT64 if numbers.dtype == UINT64 else INT64) % length).astype(INT64)
    if numbers.dtype == UINT64:
        numbers = np.minimum(numbers, FARTHEST)
    places = numbers.astype(INT64)
    if mode == "clip":
        return places.clip(0, length - 1)
    places = np.where(places < 0, places + length, places)
    return places if places.min() >= 0 and places.max() < length else None


def _even_places(index: Operand, length: int, mode: str) -> tuple[int, tuple[int, ...]] | None:
    """The first place and the steps along all axes, of valid indices that count evenly.

    Nothing for those that are not known now.
    """
    places = _known_places(index, length, mode)
    if places is None:
        return None
    corner: Shape = (0,) * places.ndim
    first, steps = int(places[corner]), []
    expected = np.full((1,) * places.ndim, first)
    for axis, n in enumerate(places.shape):
        second = (*corner[:axis], 1, *corner[axis + 1 :])
        steps.append(int(places[second]) - first if n > 1 else 0)
        along = np.arange(n) * steps[-1]
        expected = expected + along.reshape((n,) + (1,) * (places.ndim - axis - 1))
    return (first, tuple(steps)) if bool((expected == places).all()) else None


def known_numbers(index: Operand) -> np.ndarray | None:
    """Indices that are known now, if there are any; axes along which they repeat have length 1."""
    if isinstance(index, Uniform):
        return np.full((1,) * len(index.shape), index.scalar)
    if index.value.array is None or not all(index.shape):
        return None
    storage = index.value.array.reshape(-1)
    shape = tuple(n if s else 1 for n, s in zip(index.shape, index.strides, strict=True))
    nbytes = tuple(s * storage.itemsize for s in index.strides)
    return np.lib.stride_tricks.as_strided(storage[index.offset :], shape, nbytes)


def _known_cut(shape: Shape, sizes: Shape, starts: Sequence[Operand]) -> forms.Reindex | None:
    """A window whose starts are known now."""
    found = []
    for n, m, start in zip(shape, sizes, starts, strict=True):
        if n == m:
            found.append(0)
        elif isinstance(start, Uniform):
            found.append(min(max(int(start.scalar), 0), n - m))
        else:
            return None
    return cut(found)
