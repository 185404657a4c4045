"""Index sets: which elements of an array depend on which inputs, as unions of affine pieces.

A `Piece` is the image of a box of integers under two affine maps: one gives an index of the array,
the other one the number of an input (a *column*). A stencil has a piece for each of its points, a
sum one with a dimension that moves along columns only, whatever the lengths. A `Relation` is a
union of pieces; where indices are not affine it is a sparse matrix instead.

Sets may be too large, but never too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from funcgrad.base.forking import cached_property
from funcgrad.base.records import dataclass
from funcgrad.core.avals import Shape
from funcgrad.primitives.sparse import scipy_sparse

FULL = 8
"""Marks in a dense matrix take less time than sorting from one entry of so many on."""

MOST_PIECES = 512
"""Pieces of one relation; more become a sparse matrix."""

SMALL = 1 << 14
"""Places of a relation that has a sparse matrix sooner: its products take microseconds."""

FEW_PIECES = 40
"""Pieces of a small relation; more become a sparse matrix."""

MOST_ENTRIES = 1 << 25
"""Entries of a sparse matrix; a set of more is taken to be everything."""

MOST_PRODUCTS = 1 << 28
"""Pairs of entries that may meet in a product of matrices."""

MEETINGS = 16
LEAST_PRODUCTS = 1 << 20
"""How many may meet in one place of it, on average, and how many may meet in any case: the product
of matrices that are not sparse is not looked for."""

FREE = -1
"""The axis of a dimension that moves along columns only."""


class NotAffineError(Exception):
    """Raised inside this package where the image of a piece is not a union of pieces."""


class TooLargeError(Exception):
    """Raised inside this package where a sparse matrix would have too many entries."""


@dataclass(frozen=True)
class Dimension:
    """One side of a box.

    Args:
        axis: The axis of the array along which it moves, or `FREE`.
        step: By how much, for each of its integers.
        size: How many integers it has, from 0 on.
        stride: By how much it moves along columns.
    """

    axis: int
    step: int
    size: int
    stride: int

    @property
    def reach(self) -> int:
        """The distance of its first and last index."""
        return self.step * (self.size - 1)

    def in_reverse(self) -> tuple[Dimension, int, int]:
        """The same in opposite order, and by how much start and column move."""
        flipped = Dimension(self.axis, -self.step, self.size, -self.stride)
        return flipped, self.reach, self.stride * (self.size - 1)


@dataclass(frozen=True)
class Piece:
    """A box under two affine maps.

    Args:
        starts: The index of its first point.
        dims: The sides of the box.
        column: The column of its first point.
    """

    starts: tuple[int, ...]
    dims: tuple[Dimension, ...]
    column: int

    @property
    def size(self) -> int:
        """The number of points."""
        return math.prod(d.size for d in self.dims)

    def on(self, axis: int) -> list[Dimension]:
        """The sides that move along an axis."""
        return [d for d in self.dims if d.axis == axis]


def piece_of(starts: Iterable[int], dims: Iterable[Dimension], column: int) -> Piece:
    """A piece in its canonical form: steps are positive, and adjacent sides are merged."""
    first, found = list(starts), []
    for dim in dims:
        if dim.size == 1 or (dim.axis == FREE and dim.stride == 0):
            continue
        if dim.step < 0 or (dim.axis == FREE and dim.stride < 0):
            dim, step, stride = dim.in_reverse()
            column += stride
            if dim.axis != FREE:
                first[dim.axis] += step
        found.append(dim)
    # Sides along an axis from the outermost inwards.
    found.sort(key=lambda d: (d.axis, -d.step, -d.stride, d.size))
    merged: list[Dimension] = []
    for dim in found:
        if merged and _continues(merged[-1], dim):
            outer = merged.pop()
            dim = Dimension(dim.axis, dim.step, dim.size * outer.size, dim.stride)
        merged.append(dim)
    return Piece(tuple(first), tuple(merged), column)


def _continues(outer: Dimension, inner: Dimension) -> bool:
    """Whether two sides are one: the outer one goes on where the inner one ends."""
    return (
        outer.axis == inner.axis
        and outer.step == inner.step * inner.size
        and outer.stride == inner.stride * inner.size
    )


def strides_of(shape: Shape) -> list[int]:
    """Distances of neighbours along every axis, in elements in row-major order."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


# Moves: what becomes of one axis of an array. The image of a piece is the product of those of axes.


@dataclass(frozen=True)
class AffineMove:
    """Index ``i`` becomes index ``o`` of another axis: ``scale * i + shift == stride * o + tap``.

    Args:
        axis: The other axis.
        length: Its length.
        scale: Not 0.
        shift: Any integer.
        stride: Not 0.
        taps: For each of these there is an image.
        limits: First index that is used, and the first that is not; ``None`` for all.
    """

    axis: int
    length: int
    scale: int = 1
    shift: int = 0
    stride: int = 1
    taps: tuple[int, ...] = (0,)
    limits: tuple[int, int] | None = None


@dataclass(frozen=True)
class Fold:
    """Every index counts, and the axis goes."""


@dataclass(frozen=True)
class Pick:
    """One index counts, and the axis goes."""

    index: int


@dataclass(frozen=True)
class Accumulate:
    """Every index has an effect on itself and on all that come after it.

    Args:
        axis: The axis in the image.
        length: Its length.
        reverse: Whether the effect is on those before it.
    """

    axis: int
    length: int
    reverse: bool


Move = AffineMove | Fold | Pick | Accumulate
_Image = tuple[dict[int, int], list[Dimension], int]
"""First indices along axes of the image, sides, and by how much the column moves."""


def moved(piece: Piece, moves: Sequence[Move], shape: Shape, filled: Sequence[int]) -> list[Piece]:
    """The images of a piece of an array.

    Args:
        piece: The piece.
        moves: One for every axis of the array.
        shape: Shape of the image.
        filled: Axes of the image along which everything is repeated.
    Raises: NotAffineError: If the image is none of pieces.
    """
    choices = [_images(piece.starts[axis], piece.on(axis), move) for axis, move in enumerate(moves)]
    repeated = [Dimension(axis, 1, shape[axis], 0) for axis in filled]
    if any(n == 0 for n in shape):
        return []
    found = []
    for choice in product(*choices):
        starts, dims, column = [0] * len(shape), [*piece.on(FREE), *repeated], piece.column
        for first, sides, shift in choice:
            for axis, start in first.items():
                starts[axis] = start
            dims += sides
            column += shift
        found.append(piece_of(starts, dims, column))
    return found


def _images(start: int, dims: Sequence[Dimension], move: Move) -> list[_Image]:
    """Images of one axis of a piece."""
    if isinstance(move, Fold):
        return [({}, [Dimension(FREE, 0, d.size, d.stride) for d in dims], 0)]
    if isinstance(move, Pick):
        return list(_picked(start, dims, move.index))
    if isinstance(move, Accumulate):
        return [_accumulated(start, dims, move)]
    return [image for tap in move.taps for image in _affine_image(start, dims, move, tap)]


def _picked(start: int, dims: Sequence[Dimension], index: int) -> Iterator[_Image]:
    if not dims:
        if start == index:
            yield {}, [], 0
        return
    if len(dims) > 1:
        raise NotAffineError
    (dim,) = dims
    number, rest = divmod(index - start, dim.step)
    if not rest and 0 <= number < dim.size:
        yield {}, [], number * dim.stride


def _accumulated(start: int, dims: Sequence[Dimension], move: Accumulate) -> _Image:
    last = start + sum(d.reach for d in dims)
    sides = [Dimension(FREE, 0, d.size, d.stride) for d in dims]
    low, high = (0, last + 1) if move.reverse else (start, move.length)
    return {move.axis: low}, [*sides, Dimension(move.axis, 1, high - low, 0)], 0


def _affine_image(
    start: int, dims: Sequence[Dimension], move: AffineMove, tap: int
) -> Iterator[_Image]:
    """One tap of an affine move."""
    low, high = move.limits or (None, None)
    if len(dims) > 1:
        yield from _affine_image_inside(start, dims, move, tap)
        return
    dim = dims[0] if dims else Dimension(move.axis, 1, 1, 0)
    first, last = 0, dim.size
    if low is not None and high is not None:
        first = max(first, -((start - low) // dim.step))
        last = min(last, -((start - high) // dim.step))
    # scale * (start + step * z) + shift == stride * o + tap, for z in first .. last - 1.
    slope, base = move.scale * dim.step, move.scale * start + move.shift - tap
    common = math.gcd(slope, move.stride)
    if base % common:
        return
    period = abs(move.stride) // common
    z = (-base // common * pow(slope // common, -1, period)) % period if period > 1 else 0
    z += -((z - first) // period) * period  # the first that is not below
    o, o_step = (base + slope * z) // move.stride, slope * period // move.stride
    count = max(0, -((z - last) // period))
    # The part of o, o + o_step, ... that is inside of the axis.
    if o_step > 0:
        skipped, end = max(0, -(o // o_step)), -((o - move.length) // o_step)
    else:
        skipped, end = max(0, -((move.length - 1 - o) // -o_step)), -((-1 - o) // -o_step)
    count = min(count, end) - skipped
    if count > 0:
        side = Dimension(move.axis, o_step, count, dim.stride * period)
        shift = dim.stride * (z + skipped * period)
        yield {move.axis: o + skipped * o_step}, [side], shift


def _affine_image_inside(
    start: int, dims: Sequence[Dimension], move: AffineMove, tap: int
) -> Iterator[_Image]:
    """Several sides along one axis: if all of them are used, they move together."""
    last = start + sum(d.reach for d in dims)
    if move.limits is not None and not (move.limits[0] <= start and last < move.limits[1]):
        raise NotAffineError
    base = move.scale * start + move.shift - tap
    if base % move.stride or any(move.scale * d.step % move.stride for d in dims):
        raise NotAffineError
    first = base // move.stride
    sides = [
        Dimension(move.axis, move.scale * d.step // move.stride, d.size, d.stride) for d in dims
    ]
    reaches = [d.reach for d in sides]
    low, high = first + sum(min(0, r) for r in reaches), first + sum(max(0, r) for r in reaches)
    if high < 0 or low >= move.length:
        return
    if low < 0 or high >= move.length:
        raise NotAffineError
    yield {move.axis: first}, sides, 0


# Other shapes.


def reshaped(piece: Piece, old: Shape, new: Shape) -> list[Piece]:
    """The same elements in row-major order under another shape.

    Raises: NotAffineError: If they are no pieces of it.
    """
    starts = [0] * len(new)
    dims = piece.on(FREE)
    pieces = [Piece(tuple(starts), tuple(dims), piece.column)]
    for before, after in _axis_groups(old, new):
        if len(before) == len(after) == 1:
            parts = [
                ([piece.starts[before[0]]], [_along(d, after[0]) for d in piece.on(before[0])])
            ]
            shifts = [0]
        else:
            lengths = strides_of(tuple(old[i] for i in before))
            flat = sum(piece.starts[i] * m for i, m in zip(before, lengths, strict=True))
            sides = [
                Dimension(0, d.step * m, d.size, d.stride)
                for i, m in zip(before, lengths, strict=True)
                for d in piece.on(i)
            ]
            merged = piece_of([flat], sides, 0).dims
            split = list(_unraveled(flat, merged, [new[i] for i in after], 0))
            parts = [(s, [_along(d, after[d.axis]) for d in found]) for s, found, _ in split]
            shifts = [shift for _, _, shift in split]
        pieces = [
            _with_axes(p, after, part, shift)
            for p in pieces
            for part, shift in zip(parts, shifts, strict=True)
        ]
        if len(pieces) > MOST_PIECES:
            raise NotAffineError
    return [piece_of(p.starts, p.dims, p.column) for p in pieces]


def _along(dim: Dimension, axis: int) -> Dimension:
    return Dimension(axis, dim.step, dim.size, dim.stride)


def _with_axes(
    piece: Piece, axes: Sequence[int], part: tuple[Sequence[int], Sequence[Dimension]], shift: int
) -> Piece:
    starts = list(piece.starts)
    for axis, start in zip(axes, part[0], strict=True):
        starts[axis] = start
    return Piece(tuple(starts), (*piece.dims, *part[1]), piece.column + shift)


def _axis_groups(old: Shape, new: Shape) -> Iterator[tuple[list[int], list[int]]]:
    """Axes of two shapes that have the same elements; those of length 1 belong to none."""
    left = [i for i, n in enumerate(old) if n != 1][::-1]
    right = [i for i, n in enumerate(new) if n != 1][::-1]
    while left:
        before, after = [left.pop()], [right.pop()]
        n, m = old[before[0]], new[after[0]]
        while n != m:
            if n < m:
                before.append(left.pop())
                n *= old[before[-1]]
            else:
                after.append(right.pop())
                m *= new[after[-1]]
        yield before, after


def _unraveled(
    flat: int, dims: Sequence[Dimension], shape: Sequence[int], shift: int
) -> Iterator[tuple[list[int], list[Dimension], int]]:
    """Sides that move along flat indices as those that move along the axes of a shape.

    Yields first indices, sides, and by how much columns move.
    """
    lengths = strides_of(tuple(shape))
    starts = [flat // m % n for m, n in zip(lengths, shape, strict=True)]
    room = [n - 1 - s for n, s in zip(shape, starts, strict=True)]
    found: list[Dimension] = []
    pending = sorted(dims, key=lambda d: d.step)
    while pending:
        dim = pending.pop()
        axis = next(i for i, m in enumerate(lengths) if m <= dim.step)
        step, rest = divmod(dim.step, lengths[axis])
        if rest:
            raise NotAffineError
        side = Dimension(axis, step, dim.size, dim.stride)
        if side.reach <= room[axis]:
            room[axis] -= side.reach
            found.append(side)
            continue
        inner, rest = divmod(shape[axis], step)
        if rest or axis == 0:
            raise NotAffineError
        # It goes on in the next row: cut into the end of this one, whole ones, and the rest.
        if starts[axis] >= step or dim.size <= inner:
            cut = room[axis] // step + 1
        elif dim.size % inner:
            cut = dim.size // inner * inner
        else:
            pending.append(Dimension(0, dim.step * inner, dim.size // inner, dim.stride * inner))
            pending.append(Dimension(0, dim.step, inner, dim.stride))
            continue
        if not 0 < cut < dim.size:
            raise NotAffineError
        others = [*pending, *(_flat(d, lengths) for d in found)]
        first = Dimension(0, dim.step, cut, dim.stride)
        rest_ = Dimension(0, dim.step, dim.size - cut, dim.stride)
        yield from _unraveled(flat, [*others, first], shape, shift)
        moved_on = shift + cut * dim.stride
        yield from _unraveled(flat + cut * dim.step, [*others, rest_], shape, moved_on)
        return
    yield starts, found, shift


def _flat(dim: Dimension, lengths: Sequence[int]) -> Dimension:
    return Dimension(0, dim.step * lengths[dim.axis], dim.size, dim.stride)


# Relations.


class Relation:
    """Relation between the elements of an array and the columns that they depend on.

    Args:
        shape: Of the array.
        width: The number of columns.
        pieces: A union of them.
        matrix: Further entries: a sparse matrix of bools with a row for every element.
    """

    def __init__(
        self, shape: Shape, width: int, pieces: Iterable[Piece], matrix: Any = None
    ) -> None:
        self.shape = tuple(shape)
        self.width = width
        self.pieces = _without_covered(pieces)
        self.extra = matrix
        is_small = self.n_rows * width <= SMALL
        if len(self.pieces) > (FEW_PIECES if is_small else MOST_PIECES):
            try:
                self.extra, self.pieces = self.matrix, []
            except TooLargeError:
                self.extra, self.pieces = None, [_everything(self.shape, width)]

    def __repr__(self) -> str:
        return f"Relation({self.shape}, {self.width}, {len(self.pieces)} pieces, {self.extra!r})"

    @property
    def n_rows(self) -> int:
        return math.prod(self.shape)

    @property
    def is_empty(self) -> bool:
        return not self.pieces and (self.extra is None or not self.extra.nnz)

    @property
    def bound(self) -> int:
        """The most entries that it can have."""
        return sum(p.size for p in self.pieces) + (0 if self.extra is None else self.extra.nnz)

    @cached_property
    def matrix(self) -> Any:
        """A sparse matrix of all entries; raises a `TooLargeError` if there are too many."""
        if self.bound > MOST_ENTRIES:
            raise TooLargeError
        if not self.pieces and self.extra is not None:
            return self.extra
        if any(p.size == self.n_rows * self.width for p in self.pieces):
            return full_matrix(self.n_rows, self.width)
        if self.bound * FULL > self.n_rows * self.width:
            is_there = np.zeros((self.n_rows, self.width), np.bool_)
            self.mark(is_there)
            return _of_marks(is_there)
        found = matrix_of(*self._of_pieces(), (self.n_rows, self.width))
        return found if self.extra is None else found + self.extra

    @property
    def places(self) -> tuple[Any, Any]:
        """Rows and columns of all entries, some of which are there more than once."""
        row, column = self._of_pieces()
        if self.extra is None:
            return row, column
        extra = self.extra.tocoo()
        return np.concatenate([row, extra.row]), np.concatenate([column, extra.col])

    def mark(self, is_there: Any) -> None:
        """Set the elements of a dense matrix of bools where there are entries."""
        strides, flat = strides_of(self.shape), is_there.reshape(-1)
        for piece in self.pieces:
            first = _dot(piece.starts, strides) * self.width + piece.column
            steps = [
                d.stride + (0 if d.axis == FREE else d.step * strides[d.axis] * self.width)
                for d in piece.dims
            ]
            sizes = [d.size for d in piece.dims]
            np.lib.stride_tricks.as_strided(flat[first:], sizes, steps)[...] = True
        if self.extra is not None:
            extra = self.extra.tocoo()
            is_there[extra.row, extra.col] = True

    def _of_pieces(self) -> tuple[Any, Any]:
        strides = strides_of(self.shape)
        rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for piece in self.pieces:
            row = np.full((1,) * len(piece.dims), _dot(piece.starts, strides), np.int64)
            column = np.full((1,) * len(piece.dims), piece.column, np.int64)
            for k, d in enumerate(piece.dims):
                counted = np.arange(d.size).reshape([-1 if i == k else 1 for i in range(row.ndim)])
                row = row + counted * (0 if d.axis == FREE else d.step * strides[d.axis])
                column = column + counted * d.stride
            rows.append(np.broadcast_to(row, np.broadcast_shapes(row.shape, column.shape)).ravel())
            columns.append(column.ravel())
        return np.concatenate(rows), np.concatenate(columns)


def _dot(a: Iterable[int], b: Iterable[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def matrix_of(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """A matrix of bools with entries in these rows and columns."""
    entries = np.ones(len(rows), np.bool_)
    return scipy_sparse().coo_array((entries, (rows, columns)), shape).tocsr()


def _of_marks(is_there: Any) -> Any:
    """The sparse matrix of a dense one."""
    n = is_there.shape[1]
    starts = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))])
    indices = (np.flatnonzero(is_there) % max(n, 1)).astype(np.int32)
    entries = np.ones(len(indices), np.bool_)
    return scipy_sparse().csr_array((entries, indices, starts), is_there.shape)


def full_matrix(n_rows: int, width: int) -> Any:
    """A matrix of bools with all entries."""
    indices = np.tile(np.arange(width, dtype=np.int32), n_rows)
    starts = np.arange(n_rows + 1, dtype=np.int64) * width
    entries = np.ones(len(indices), np.bool_)
    return scipy_sparse().csr_array((entries, indices, starts), (n_rows, width))


def product_of(a: Any, b: Any) -> Any:
    """The product of two matrices of bools; raises a `TooLargeError` if it is too much."""
    lengths, own = np.diff(b.indptr)[a.indices], np.diff(a.indptr)
    limit = min(MOST_PRODUCTS, max(LEAST_PRODUCTS, MEETINGS * a.shape[0] * b.shape[1]))
    if int(lengths.sum()) > limit:
        raise TooLargeError
    found = a @ b if own.max(initial=0) > 1 else _chosen_rows(b, a.indices, own, lengths)
    if found.nnz > MOST_ENTRIES:
        raise TooLargeError
    return found


def _chosen_rows(matrix: Any, rows: Any, is_there: Any, lengths: Any) -> Any:
    """Rows of a matrix in another order, some of them empty: a product, without its sums.

    Args:
        matrix: The matrix.
        rows: Which of its rows there are.
        is_there: Which rows of the result these are: 0 for an empty one.
        lengths: Of the rows that there are.
    """
    if np.array_equal(rows, np.arange(len(is_there))) and len(rows) == matrix.shape[0]:
        return matrix
    chosen = matrix[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    starts = starts[np.concatenate([[0], np.cumsum(is_there)])]
    shape = (len(is_there), matrix.shape[1])
    return scipy_sparse().csr_array((chosen.data, chosen.indices, starts), shape)


def _everything(shape: Shape, width: int) -> Piece:
    dims = [Dimension(i, 1, n, 0) for i, n in enumerate(shape)]
    return piece_of([0] * len(shape), [*dims, Dimension(FREE, 0, width, 1)], 0)


def dense(shape: Shape, width: int) -> Relation:
    """Everything depends on everything."""
    nonempty = math.prod(shape) and width
    return Relation(shape, width, [_everything(shape, width)] if nonempty else [])


def identity(shape: Shape, width: int, column: int) -> Relation:
    """Every element is a column of its own, from a column on."""
    strides = strides_of(shape)
    dims = [Dimension(i, 1, n, s) for i, (n, s) in enumerate(zip(shape, strides, strict=True))]
    pieces = [piece_of([0] * len(shape), dims, column)] if math.prod(shape) else []
    return Relation(shape, width, pieces)


def transformed(
    relation: Relation, rule: Callable[[Piece], Sequence[Piece]], shape: Shape
) -> Relation:
    """The image of a relation under a rule for pieces; by matrices where that is not affine.

    Args:
        relation: The relation.
        rule: The images of a piece.
        shape: Shape of the result.
    """
    found: list[Piece] = []
    rest: list[Piece] = []
    for piece in relation.pieces:
        try:
            found += rule(piece)
        except NotAffineError:
            rest.append(piece)
    if not rest and relation.extra is None:
        return Relation(shape, relation.width, found)
    remaining = Relation(relation.shape, relation.width, rest, relation.extra)
    own = identity(relation.shape, relation.n_rows, 0)
    try:
        images = [image for piece in own.pieces for image in rule(piece)]
    except NotAffineError:
        return dense(shape, relation.width)
    return with_matrix(found, Relation(shape, own.width, images), remaining)


def with_matrix(found: Sequence[Piece], operation: Relation, inner: Relation) -> Relation:
    """Pieces, and what depends on columns through the rows of an inner relation.

    Args:
        found: Pieces.
        operation: The rows, as columns, that the elements of the result depend on.
        inner: What these depend on.
    """
    try:
        matrix = product_of(operation.matrix, inner.matrix)
    except TooLargeError:
        return dense(operation.shape, inner.width)
    return Relation(operation.shape, inner.width, found, matrix)


def collapsed(relation: Relation, shape: Shape) -> Relation:
    """Every element depends on all that any element of another array depends on."""
    if not math.prod(shape):
        return Relation(shape, relation.width, [])
    everywhere = [Dimension(i, 1, n, 0) for i, n in enumerate(shape)]
    zeros = [0] * len(shape)
    found = [
        piece_of(zeros, [*everywhere, *(Dimension(FREE, 0, d.size, d.stride) for d in p.dims)],
                 p.column)
        for p in relation.pieces
    ]  # fmt: skip
    if relation.extra is not None and relation.extra.nnz:
        columns = np.unique(relation.extra.indices)
        cuts = np.flatnonzero(np.diff(columns) > 1) + 1
        runs = np.split(columns, cuts) if len(cuts) < MOST_PIECES // 2 else [columns]
        found += [
            piece_of(zeros, [*everywhere, Dimension(FREE, 0, int(r[-1] - r[0]) + 1, 1)], int(r[0]))
            for r in runs
        ]
    return Relation(shape, relation.width, found)


def union(relations: Sequence[Relation]) -> Relation:
    """The union of relations of arrays of one shape."""
    first = relations[0]
    if len(relations) == 1:
        return first
    extra = [r.extra for r in relations if r.extra is not None]
    matrix = sum(extra[1:], extra[0]) if extra else None
    pieces = dict.fromkeys(p for r in relations for p in r.pieces)
    return Relation(first.shape, first.width, pieces, matrix)


def _without_covered(pieces: Iterable[Piece]) -> list[Piece]:
    """Pieces without those that are parts of others on the same affine map."""
    pieces = list(pieces)
    if len(pieces) < 2:
        return pieces
    groups: dict[Any, list[Piece]] = {}
    for piece in dict.fromkeys(pieces):
        groups.setdefault(_line(piece), []).append(piece)
    kept: list[Piece] = []
    for group in groups.values():
        boxes = [_box(p) for p in group]
        kept += [
            p
            for i, p in enumerate(group)
            if not any(i != j and _is_inside(boxes[i], box) for j, box in enumerate(boxes))
        ]
    return kept


def _line(piece: Piece) -> Any:
    """Key that pieces of the same affine map share."""
    column = piece.column
    key: list[Any] = []
    for axis, start in enumerate(piece.starts):
        sides = piece.on(axis)
        if len(sides) != 1:
            key.append((start, *sides))
            continue
        (dim,) = sides
        column -= start // dim.step * dim.stride
        key.append((start % dim.step, dim.step, dim.stride))
    return (*key, *piece.on(FREE), column)


def _box(piece: Piece) -> list[tuple[int, int]]:
    return [(s, s + sum(d.reach for d in piece.on(i))) for i, s in enumerate(piece.starts)]


def _is_inside(inner: Sequence[tuple[int, int]], outer: Sequence[tuple[int, int]]) -> bool:
    return all(c <= a and b <= d for (a, b), (c, d) in zip(inner, outer, strict=True))
