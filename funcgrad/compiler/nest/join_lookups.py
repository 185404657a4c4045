"""Lookups and windows share kernels with what makes their indices and reads their results.

``join_lookups : graph -> graph``. An element at a place that is computed is one scalar for every
index, as any other: so a lookup becomes a node that fusion treats like a point (`Pick`). Indices
that are known now and count evenly, as those of lanes and diagonals do, are strides. Indices that
are to be refused if they are wrong are looked through before anything is read or written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from funcgrad.compiler.nest.layout import Operand, Shape, Uniform, Value, View, whole
from funcgrad.compiler.nest.nodes import (
    Checked,
    Deposit,
    Graph,
    Lookup,
    Node,
    Pick,
    Point,
    Put,
    Replace,
    Window,
    rewrite,
)
from funcgrad.records import dataclass


def join_lookups(graph: Graph) -> None:
    """Let lookups and windows be computed element by element; changes the graph."""
    known = dict(graph.constants)

    def joined(node: Node) -> Iterator[Node] | None:
        match node:
            case Lookup():
                return _picks(node, known)
            case Deposit():
                return _puts(node, known)
            case Window():
                return iter([_window(node)])
            case Replace():
                return iter([_replacement(node)])
        return None

    rewrite(graph, joined)


def _checked(
    node: Lookup | Deposit, indices: Sequence[Operand], known: dict[Value, np.ndarray]
) -> tuple[list[Operand], list[Node]]:
    """Indices of which wrong ones are refused, as places; nothing is asked of places."""
    places: list[Operand] = []
    checks: list[Node] = []
    for k, (axis, index) in enumerate(zip(node.form.axes, indices, strict=True)):
        length = node.operands[0].shape[axis]
        numbers = _numbers(index, known)
        if numbers is not None and numbers.min() >= 0 and numbers.max() < length:
            places.append(index)
            continue
        out = Value(index.shape, np.dtype(np.int64))
        checks.append(Checked((index,), (out,), length, k))
        places.append(whole(out))
    return places, checks


@dataclass
class _Places:
    """Where the index arrays of a lookup point to.

    Attributes:
        first: The element of the array that is meant, at every index, if all integers are 0.
        mode: What the integers mean.
        indices: Those that are not known now.
        lengths: The lengths of their axes.
        steps: How many elements it is from place to place along them.
        lanes: Axes along which indices that are known count an axis of the array.
    """

    first: View
    mode: str
    indices: list[Operand] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    lanes: set[int] = field(default_factory=set)


def _places(
    node: Lookup | Deposit,
    array: View,
    indices: Sequence[Operand],
    shape: Shape,
    known: dict[Value, np.ndarray],
) -> _Places:
    """The places of a lookup or deposit in an array, in an index space."""
    axes, n = node.form.axes, len(node.index_shape)
    rest = [i for i in range(len(array.shape)) if i not in axes]
    mode = "place" if node.form.mode == "raise" else node.form.mode
    places = _Places(array, mode)
    strides, offset = np.zeros(n, np.int64), array.offset
    for axis, index in zip(axes, indices, strict=True):
        full = index.broadcast(node.index_shape)
        even = even_places(full, known, array.shape[axis])
        if even is None:
            places.indices.append(_repeated(full, shape))
            places.lengths.append(array.shape[axis])
            places.steps.append(array.strides[axis])
            continue
        offset += even[0] * array.strides[axis]
        strides += np.array(even[1], np.int64) * array.strides[axis]
        walked = [i for i, step in enumerate(even[1]) if step]
        places.lanes.update(walked if len(walked) == 1 else ())
    row = (*strides.tolist(), *(array.strides[i] for i in rest))
    places.first = View(array.value, shape, row, offset if math.prod(shape) else 0)
    return places


def _picks(node: Lookup, known: dict[Value, np.ndarray]) -> Iterator[Node]:
    x, *indices = node.operands
    assert isinstance(x, View)
    if node.form.mode == "raise":
        indices, checks = _checked(node, indices, known)
        yield from checks
    if not all(x.shape[axis] for axis in node.form.axes):  # there is nothing to be read
        fill = Uniform(node.form.fill, node.out.shape)
        yield Point((fill,), node.outs, "{0}")
        return
    places = _places(node, x, indices, node.out.shape, known)
    yield _pick(node, places, node.form.fill if places.mode == "fill" else None)


def _pick(node: Node, places: _Places, fill: Any = None) -> Node:
    if not places.indices:
        return Point((places.first,), node.outs, "{0}")
    operands = (places.first, *places.indices)
    lengths, steps = tuple(places.lengths), tuple(places.steps)
    return Pick(operands, node.outs, places.mode, lengths, steps, fill)


def _puts(node: Deposit, known: dict[Value, np.ndarray]) -> Iterator[Node]:
    _, updates, *indices = node.operands
    if node.form.mode == "raise":
        indices, checks = _checked(node, indices, known)
        yield from checks
    places = _places(node, whole(node.out), indices, updates.shape, known)
    n_rest = len(updates.shape) - len(node.index_shape)
    yield _put(node, places, n_rest, node.form.step)


def _put(node: Node, places: _Places, n_rest: int, step: str) -> Put:
    x, updates, *_ = node.operands
    lengths, steps, lanes = tuple(places.lengths), tuple(places.steps), frozenset(places.lanes)
    operands = (x, updates, *places.indices)
    return Put(operands, node.outs, places.first, places.mode, lengths, steps, n_rest, lanes, step)


def _window(node: Window) -> Node:
    x, *starts = node.operands
    assert isinstance(x, View)
    return _pick(node, _of_window(x, starts, node.out.shape))


def _replacement(node: Replace) -> Node:
    _, update, *starts = node.operands
    places = _of_window(whole(node.out), starts, update.shape)
    return _put(node, places, len(update.shape), node.step)


def _of_window(x: View, starts: Sequence[Operand], shape: Shape) -> _Places:
    """The places of a window of an array."""
    places = _Places(x.walked(shape, x.strides, x.offset if math.prod(shape) else 0), "start")
    for start, n, m, stride in zip(starts, x.shape, shape, x.strides, strict=True):
        if n > m:
            places.indices.append(_repeated(start, shape))
            places.lengths.append(n - m + 1)
            places.steps.append(stride)
    return places


def _repeated(index: Operand, shape: Shape) -> Operand:
    """Integers for the first axes of a shape, for all of it."""
    more = (0,) * (len(shape) - len(index.shape))
    return index.walked(shape, index.strides + more, index.offset)


def even_places(
    index: Operand, known: dict[Value, np.ndarray], length: int
) -> tuple[int, tuple[int, ...]] | None:
    """The first place and the steps along all axes, of valid indices that count evenly.

    Nothing for those that are not known now.
    """
    places = _numbers(index, known)
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
    is_even = bool((expected == places).all()) and 0 <= expected.min() <= expected.max() < length
    return (first, tuple(steps)) if is_even else None


def _numbers(index: Operand, known: dict[Value, np.ndarray]) -> np.ndarray | None:
    """Indices that are known now, if there are any; axes along which they repeat have length 1."""
    if isinstance(index, Uniform):
        return np.full((1,) * len(index.shape), index.scalar)
    if index.value not in known or not all(index.shape):
        return None
    storage = known[index.value].reshape(-1)
    shape = tuple(n if s else 1 for n, s in zip(index.shape, index.strides, strict=True))
    nbytes = tuple(s * storage.itemsize for s in index.strides)
    return np.lib.stride_tricks.as_strided(storage[index.offset :], shape, nbytes)
