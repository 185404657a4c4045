"""Lookups and windows share kernels with what makes their indices and reads their results.

``join_lookups : graph -> graph``. An element at a place that is computed is one scalar for every
index, as any other: so a lookup becomes a node that fusion treats like a point (`Pick`). Indices
that are known now and count evenly, as those of lanes and diagonals do, are strides. Indices that
are to be refused if they are wrong are looked through before anything is read or written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from funcgrad.compiler.nest.layout import Operand, Shape, Uniform, Value, View, broadcast, whole
from funcgrad.compiler.nest.nodes import Checked, Deposit, Graph, Lookup, Node, Pick, Point, Window
from funcgrad.lowering import Deposit as DepositForm
from funcgrad.lowering import Lookup as LookupForm


def join_lookups(graph: Graph) -> None:
    """Let lookups and windows be computed element by element; changes the graph."""
    nodes: list[Node] = []
    known = dict(graph.constants)
    for node in graph.nodes:
        if isinstance(node, Lookup):
            nodes += _picks(node, known)
        elif isinstance(node, Window):
            nodes.append(_window(node))
        elif isinstance(node, Deposit) and node.form.mode == "raise":
            indices, checks = _checked(node, node.operands[2:])
            node.operands = (*node.operands[:2], *indices)
            node.form = DepositForm(node.form.axes, "place", node.form.step)
            nodes += [*checks, node]
        else:
            nodes.append(node)
    graph.nodes = nodes


def _like(node: Node, new: Node) -> Node:
    new.epoch, new.equation = node.epoch, node.equation
    return new


def _checked(
    node: Lookup | Deposit, indices: Sequence[Operand]
) -> tuple[list[Operand], list[Node]]:
    """Indices of which wrong ones are refused, as places."""
    checks = []
    for k, (axis, index) in enumerate(zip(node.form.axes, indices, strict=True)):
        out = Value(index.shape, np.dtype(np.int64))
        length = node.operands[0].shape[axis]
        checks.append(_like(node, Checked((index,), (out,), length, k)))
    return [whole(check.out) for check in checks], checks


def _picks(node: Lookup, known: dict[Value, np.ndarray]) -> Iterator[Node]:
    x, *indices = node.operands
    assert isinstance(x, View)
    mode = node.form.mode
    if mode == "raise":
        indices, checks = _checked(node, indices)
        mode = "place"
        yield from checks
    if not all(x.shape[axis] for axis in node.form.axes):  # there is nothing to be read
        fill = Uniform(node.form.fill, node.out.shape)
        yield _like(node, Point((fill,), node.outs, "{0}"))
        return
    shape = node.index_shape
    rest = [i for i in range(len(x.shape)) if i not in node.form.axes]
    strides, offset = np.zeros(len(shape), np.int64), x.offset
    found: list[tuple[Operand, int, int]] = []
    for axis, index in zip(node.form.axes, indices, strict=True):
        full = broadcast(index, shape)
        even = even_places(full, known, x.shape[axis])
        if even is None:
            found.append((_repeated(full, node.out.shape), x.shape[axis], x.strides[axis]))
        else:
            offset += even[0] * x.strides[axis]
            strides += np.array(even[1], np.int64) * x.strides[axis]
    row = (*strides.tolist(), *(x.strides[i] for i in rest))
    first = View(x.value, node.out.shape, row, offset if math.prod(node.out.shape) else 0)
    yield _like(node, _pick(node, first, found, mode, node.form))


def _pick(
    node: Node,
    first: View,
    places: Sequence[tuple[Operand, int, int]],
    mode: str,
    form: LookupForm | None = None,
) -> Node:
    if not places:
        return Point((first,), node.outs, "{0}")
    return Pick(
        (first, *(index for index, _, _ in places)),
        node.outs,
        mode,
        tuple(length for _, length, _ in places),
        tuple(step for _, _, step in places),
        form.fill if form is not None and mode == "fill" else None,
    )


def _window(node: Window) -> Node:
    x, *starts = node.operands
    assert isinstance(x, View)
    shape = node.out.shape
    places = [
        (_repeated(start, shape), n - m + 1, stride)
        for start, n, m, stride in zip(starts, x.shape, shape, x.strides, strict=True)
        if n > m
    ]
    first = View(x.value, shape, x.strides, x.offset if math.prod(shape) else 0)
    return _like(node, _pick(node, first, places, "start"))


def _repeated(index: Operand, shape: Shape) -> Operand:
    """Integers for the first axes of a shape, for all of it."""
    n_more = len(shape) - len(index.shape)
    if isinstance(index, Uniform):
        return Uniform(index.scalar, shape)
    return View(index.value, shape, index.strides + (0,) * n_more, index.offset)


def even_places(
    index: Operand, known: dict[Value, np.ndarray], length: int
) -> tuple[int, tuple[int, ...]] | None:
    """The first place and the steps along all axes, of valid indices that count evenly.

    Nothing for those that are not known now.
    """
    places: np.ndarray
    if isinstance(index, Uniform):
        places = np.full((1,) * len(index.shape), index.scalar)
    elif index.value in known and all(index.shape):
        storage = known[index.value].reshape(-1)
        # Axes along which the index is repeated have one element.
        shape = tuple(n if s else 1 for n, s in zip(index.shape, index.strides, strict=True))
        nbytes = tuple(s * storage.itemsize for s in index.strides)
        places = np.lib.stride_tricks.as_strided(storage[index.offset :], shape, nbytes)
    else:
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
