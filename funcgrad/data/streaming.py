"""Batches of examples that do not fit into memory, in random order, for several processes.

Rows on a disk are read fast only if neighbours are read together. So the order is random at two
levels: that of blocks of neighbouring rows, and that of the rows of some blocks, which are in
memory together. The blocks are dealt to a fixed number of lanes, and each batch has as many rows of
every lane: so the batches are the same for one process, which has all lanes, and for several, which
share them out and read only what is theirs. Every place in an epoch can be begun at, as it follows
from the seed and the number of the batch.

It follows, too, where in which batch a row will stand, before it is read. So rows are copied there
from the memory that the disk has written to, and batches are views of what was filled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from math import prod
from operator import index
from typing import Any

import numpy as np

from funcgrad import random
from funcgrad.api.vectorization import vmap
from funcgrad.base.forking import cached_property
from funcgrad.base.pytree import keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_map
from funcgrad.base.records import dataclass
from funcgrad.data.batching import Seed, key_of
from funcgrad.data.direct import Buffers
from funcgrad.data.sources import Source, read, view
from funcgrad.errors import ArgumentError, ShapeError

BLOCK_BYTES = 1 << 20
"""Bytes of a block: a disk reads as many in the time that it takes to find them, or in less."""

LEAST_BLOCKS = 4
"""The least number of blocks of a lane, where examples are few."""


@dataclass(eq=False, repr=False)
class Stream:
    """Batches of a source, the result of `stream`: every loop gives the same; `len` counts them."""

    _leaves: list[Any]
    _treedef: Any
    _size: int
    _key: Any
    _lanes: int
    _window: int
    _part: tuple[int, int]
    _start: int

    def __post_init__(self) -> None:
        self._count = len(self._leaves[0])

    def __len__(self) -> int:
        return max(self._batches - self._start, 0)

    def __iter__(self) -> Iterator[Any]:
        return self._in_order() if self._key is None else self._shuffled()

    def _in_order(self) -> Iterator[Any]:
        own, size = _share(self._size, self._part), self._size
        # A process that has whole batches reads several at once, where they are small.
        n = max(self._block // size, 1) if len(own) == size else 1
        starts = range(self._start * size, self._batches * size, n * size)
        most = max(self._window * self._block // (n * size), 2)
        soon: deque[Any] = deque(maxlen=most)
        for k, start in enumerate(starts):
            for later in starts[k + (k > 0) * (most - 1) : k + most]:
                soon.append(self._expect(*self._span_in_order(later, own, n)))
            found = self._read(read, *self._span_in_order(start, own, n))
            for at in range(0, len(tree_leaves(found)[0]), len(own)):
                yield _rows(found, at, at + len(own))

    def _span_in_order(self, start: int, own: range, n: int) -> tuple[int, int]:
        """The own rows of ``n`` batches, or of those that are left."""
        stop = min(start + (n - 1) * self._size, (self._batches - 1) * self._size)
        return start + own.start, stop + own.stop

    def _shuffled(self) -> Iterator[Any]:
        own, rows = len(_share(self._lanes, self._part)), self._size // self._lanes
        batch, done = None, 0
        for segment, is_last in self._segments(rows):
            n = len(tree_leaves(segment)[0]) // own
            if n == rows and not is_last:
                yield segment
                continue
            if batch is None:
                batch = tree_map(lambda x: np.empty((own * rows, *x.shape[1:]), x.dtype), segment)
            tree_map(partial(_put, own, rows, done), batch, segment)
            del segment  # Where nothing sees the last segment, the next window takes its place.
            done += n
            if done == rows:
                whole, batch, done = batch, None, 0
                yield whole
                del whole

    @property
    def _batches(self) -> int:
        if self._key is None:
            return self._count // self._size
        return self._blocks_of_lane * self._block // (self._size // self._lanes)

    @cached_property
    def _kinds(self) -> Any:
        """No examples: shapes and types of arrays of them."""
        return self._treedef.unflatten([tree_map(np.asarray, x[0:0]) for x in self._leaves])

    @cached_property
    def _block(self) -> int:
        """Rows of a block."""
        row = sum(x.dtype.itemsize * prod(x.shape[1:]) for x in tree_leaves(self._kinds))
        most = self._count // (self._lanes * LEAST_BLOCKS)
        return max(min(BLOCK_BYTES // max(row, 1), most), 1)

    @property
    def _blocks_of_lane(self) -> int:
        return self._count // self._block // self._lanes

    def _segments(self, rows: int) -> Iterator[tuple[Any, bool]]:
        """Batches, or the parts of them that lie in one window; and whether a window ends there.

        Args: rows: How many of a batch are of the same lane; these are neighbours.
        """
        block = self._block
        n, lanes = self._count // block, _share(self._lanes, self._part)
        key_of_start, key_of_blocks, key_of_rows = random.split(self._key, 3)
        # Rows that are left over are not the same in each epoch.
        first = int(random.randint(key_of_start, (), 0, self._count - n * block + 1))
        blocks = np.asarray(random.permutation(key_of_blocks, n))
        # One row for each lane: its blocks, in the order in which they are read.
        blocks = blocks[: self._blocks_of_lane * self._lanes].reshape(-1, self._lanes).T
        blocks = blocks[lanes.start : lanes.stop]
        keys = vmap(partial(random.fold_in, key_of_rows))(np.arange(lanes.start, lanes.stop))
        begin, end = self._start * rows, self._batches * rows
        begun = begin // (self._window * block)
        places = range(begun * self._window, blocks.shape[1], self._window)
        starts = [first + np.sort(blocks[:, i : i + self._window]) * block for i in places]
        memory = Buffers()
        soon: deque[Any] = deque(maxlen=2)
        for k, now in enumerate(starts):
            # The disk reads the next window while this one is used.
            for later in starts[k + (k > 0) : k + 2]:
                soon.append([self._expect(int(i), int(i) + block) for i in later.flat])
            span, place = now.shape[1] * block, places[k] * block
            cuts = np.unique(np.r_[0, np.arange(-place % rows, span, rows), span])
            order_of = partial(_order, begun + k, span)
            to = _destinations(cuts, vmap(order_of)(keys)).reshape(-1, block)
            filled = tree_map(partial(_empty, memory, to.size), self._kinds)
            for own, start in zip(to, now.flat, strict=True):
                found = self._read(view, int(start), int(start) + block)
                tree_map(partial(_scatter, own), filled, found)
            for low, high in pairwise(cuts.tolist()):
                if begin <= place + low and place + high <= end:
                    yield _rows(filled, low * len(lanes), high * len(lanes)), high == span
            del filled

    def _expect(self, start: int, stop: int) -> Any:
        """Let files be read ahead, as long as the result is kept."""
        return [x.expect(slice(start, stop)) for x in self._leaves if isinstance(x, Source)]

    def _read(self, how: Callable[[Any, slice], Any], start: int, stop: int) -> Any:
        """Examples from files and arrays, as one of their functions gives them.

        Raises: ShapeError: If they are not as many, or not like the others.
        """
        found = self._treedef.unflatten([how(x, slice(start, stop)) for x in self._leaves])
        pairs, treedef = tree_flatten_with_path(found)
        kinds, wanted = tree_flatten(self._kinds)
        if treedef != wanted:
            raise ShapeError(
                f"data.stream: examples {start} to {stop} are a {treedef}, not a {wanted}."
            )
        for (at, x), kind in zip(pairs, kinds, strict=True):
            shape = stop - start, *kind.shape[1:]
            if (x.dtype, x.shape) != (kind.dtype, shape):
                raise ShapeError(
                    f"data.stream: examples {start} to {stop} of source{keystr(at)} are "
                    f"{x.dtype}{list(x.shape)}, not {kind.dtype}{list(shape)} as expected."
                )
        return found


def _order(window: int, span: int, key: Any) -> Any:
    """The numbers of the rows of a lane in a window, in their new order."""
    return random.permutation(random.fold_in(key, window), span)


def _destinations(cuts: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """The places that the rows of a window take: in segments, and there lane after lane.

    Args:
        cuts: The places between segments, from 0 to the number of rows of a lane.
        orders: For each lane the numbers of its rows, in their new order.
    Returns: A number for each lane and row.
    """
    lanes, n = orders.shape
    starts, lengths = np.repeat(cuts[:-1], np.diff(cuts)), np.repeat(np.diff(cuts), np.diff(cuts))
    to = np.empty((lanes, n), np.intp)
    for lane, order in enumerate(orders):
        to[lane, order] = np.arange(n) + starts * (lanes - 1) + lengths * lane
    return to


def _empty(memory: Buffers, n: int, kind: np.ndarray) -> np.ndarray:
    """An array for ``n`` examples."""
    nbytes = n * kind.dtype.itemsize * prod(kind.shape[1:])
    if kind.dtype.hasobject or not nbytes:
        return np.empty((n, *kind.shape[1:]), kind.dtype)
    return memory.take(nbytes).view(kind.dtype).reshape(n, *kind.shape[1:])


def _scatter(to: np.ndarray, out: np.ndarray, rows: np.ndarray) -> None:
    """Copy rows to their places."""
    nbytes = out.dtype.itemsize * prod(out.shape[1:])
    if nbytes and not out.dtype.hasobject:
        # As one element each, rows are copied faster. With an axis of its own, that is without the
        # interpreter's lock, which threads that read need.
        out, rows = (np.ascontiguousarray(x).view(np.uint8) for x in (out, rows))
        out, rows = (x.reshape(-1, nbytes).view(f"V{nbytes}") for x in (out, rows))
    out[to] = rows


def _put(lanes: int, rows: int, done: int, batch: np.ndarray, segment: np.ndarray) -> None:
    """Copy rows of each lane to its part of a batch, behind those that are there."""
    n, *kind = len(segment) // lanes, *segment.shape[1:]
    batch.reshape(lanes, rows, *kind)[:, done : done + n] = segment.reshape(lanes, n, *kind)


def _rows(tree: Any, start: int, stop: int) -> Any:
    return tree_map(lambda x: x[start:stop], tree)


def _share(n: int, part: tuple[int, int]) -> range:
    i, of = part
    return range(n * i // of, n * (i + 1) // of)


def stream(
    source: Any,
    size: int,
    *,
    seed: Seed | None = None,
    start: int = 0,
    part: tuple[int, int] = (0, 1),
    lanes: int = 8,
    window: int = 8,
) -> Stream:
    """Batches of examples that need not fit into memory.

    Args:
        source: A pytree of arrays, arrays that are mapped from files or computed when they are
            sliced (such as those of Dask), and sources, such as `folder` gives. All have as many
            examples.
        size: How many examples are in a batch of all processes; a multiple of ``lanes``. Examples
            that are left over are left out.
        seed: As of `batches`. The order is random among blocks of neighbouring examples, and among
            the examples of ``window`` blocks, which are in memory together.
        start: The number of the batch to begin with, as when a program resumes.
        part: The number of this process, and how many there are, which divides ``lanes``: such as
            ``(distributed.rank(), distributed.size())``. A process gets its part of each batch, and
            reads what is needed for it.
        lanes: Into how many parts examples are divided beforehand. The batches depend on this
            number, and not on that of the processes.
        window: How many blocks of each lane are in memory.
    Returns: An iterable of pytrees of arrays, of known `len`.

    Raises:
        ArgumentError: If a number does not fit another.
        ShapeError: If there are different numbers of examples.

    Example:
        >>> x = np.arange(64)
        >>> whole = list(fg.data.stream(x, 16, seed=0))
        >>> halves = [list(fg.data.stream(x, 16, seed=0, part=(i, 2))) for i in range(2)]
        >>> all((np.concatenate(pair) == both).all() for *pair, both in zip(*halves, whole))
        True
        >>> rest = list(fg.data.stream(x, 16, seed=0, start=3))
        >>> len(rest), (rest[0] == whole[3]).all()
        (1, np.True_)
    """
    pairs, treedef = tree_flatten_with_path(source)
    if not pairs:
        raise ArgumentError("data.stream needs at least one array, got none.")
    counts = [(f"source{keystr(at)}", _length(f"source{keystr(at)}", x)) for at, x in pairs]
    for place, n in counts:
        if n != counts[0][1]:
            raise ShapeError(
                f"data.stream: {place} has {n} examples, but {counts[0][0]} has {counts[0][1]}."
            )
    i, of = part
    for name, value, least in (
        ("size", size, 1), ("lanes", lanes, 1), ("window", window, 1), ("start", start, 0),
    ):  # fmt: skip
        if index(value) < least:
            raise ArgumentError(f"data.stream: {name} must be at least {least}, got {value}.")
    if size % lanes or lanes % of or not 0 <= i < of:
        raise ArgumentError(
            f"data.stream: size={size} must be a multiple of lanes={lanes}, and lanes one of the "
            f"processes of part={part}, which are counted from 0."
        )
    key = None if seed is None else key_of("stream", seed)
    leaves = [x for _, x in pairs]
    return Stream(leaves, treedef, size, key, lanes, window, (i, of), start)


def _length(place: str, x: Any) -> int:
    try:
        return len(x)
    except TypeError:
        raise ShapeError(
            f"data.stream: {place} has no axis of examples; it is a {type(x).__name__}."
        ) from None
