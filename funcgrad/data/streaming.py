"""Batches of examples that do not fit into memory, in random order, for several processes.

Rows on a disk are read fast only if neighbours are read together. So the order is random at two
levels: that of blocks of neighbouring rows, and that of the rows of some blocks, which are in
memory together. The blocks are dealt to a fixed number of lanes, and each batch has as many rows of
every lane: so the batches are the same for one process, which has all lanes, and for several, which
share them out and read only what is theirs. Every place in an epoch can be begun at, as it follows
from the seed and the number of the batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from math import prod
from operator import index
from typing import Any

import numpy as np

from funcgrad import random
from funcgrad.base.forking import cached_property
from funcgrad.base.pytree import keystr, tree_flatten_with_path, tree_leaves, tree_map
from funcgrad.data.batching import Seed, key_of
from funcgrad.data.sources import Source, read, read_into
from funcgrad.errors import ArgumentError, ShapeError

BLOCK_BYTES = 1 << 20
"""Bytes of a block: a disk reads as many in the time that it takes to find them, or in less."""

LEAST_BLOCKS = 4
"""The least number of blocks of a lane, where examples are few."""


class Stream:
    """Batches of a source, the result of `stream`: every loop gives the same; `len` counts them."""

    def __init__(
        self,
        leaves: list[Any],
        treedef: Any,
        size: int,
        key: Any,
        lanes: int,
        window: int,
        part: tuple[int, int],
        start: int,
    ) -> None:
        self._leaves = leaves
        self._treedef = treedef
        self._size = size
        self._key = key
        self._lanes = lanes
        self._window = window
        self._part = part
        self._start = start
        self._count = len(leaves[0])

    def __len__(self) -> int:
        return max(self._batches - self._start, 0)

    def __iter__(self) -> Iterator[Any]:
        return self._in_order() if self._key is None else self._shuffled()

    def _in_order(self) -> Iterator[Any]:
        own = _share(self._size, self._part)
        starts = range(self._start * self._size, self._batches * self._size, self._size)
        soon: deque[Any] = deque(maxlen=2)
        for k, start in enumerate(starts):
            for later in starts[k + (k > 0) : k + 2]:
                soon.append(self._expect(later + own.start, later + own.stop))
            rows = slice(start + own.start, start + own.stop)
            yield self._treedef.unflatten([read(x, rows) for x in self._leaves])

    def _shuffled(self) -> Iterator[Any]:
        own, rows = len(_share(self._lanes, self._part)), self._size // self._lanes
        windows = self._windows()
        window, orders = None, np.zeros((own, 0), int)
        for _ in range(self._start, self._batches):
            batch = self._like(own * rows)
            done = 0
            while done < rows:
                if not orders.shape[1]:
                    window, orders = next(windows)
                n = min(rows - done, orders.shape[1])
                tree_map(partial(_take, orders[:, :n], rows, done), window, batch)
                orders, done = orders[:, n:], done + n
            yield batch

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

    def _windows(self) -> Iterator[tuple[Any, np.ndarray]]:
        """Rows that are in memory together, and for each own lane the numbers of its rows.

        The arrays are filled anew with the rows of the next window.
        """
        block, rows = self._block, self._size // self._lanes
        n, lanes = self._count // block, _share(self._lanes, self._part)
        key_of_start, key_of_blocks, key_of_rows = random.split(self._key, 3)
        # Rows that are left over are not the same in each epoch.
        first = int(random.randint(key_of_start, (), 0, self._count - n * block + 1))
        blocks = np.asarray(random.permutation(key_of_blocks, n))
        # One row for each lane: its blocks, in the order in which they are read.
        blocks = blocks[: self._blocks_of_lane * self._lanes].reshape(-1, self._lanes).T
        blocks = blocks[lanes.start : lanes.stop]
        keys = [random.fold_in(key_of_rows, lane) for lane in lanes]
        begun, skipped = divmod(self._start * rows, self._window * block)
        places = range(begun * self._window, blocks.shape[1], self._window)
        starts = [first + np.sort(blocks[:, i : i + self._window]) * block for i in places]
        filled = self._like(starts[0].size * block) if starts else None
        soon: deque[Any] = deque(maxlen=2)
        for k, now in enumerate(starts):
            # The disk reads the next window while this one is used.
            for later in starts[k + (k > 0) : k + 2]:
                soon.append([self._expect(int(i), int(i) + block) for i in later.flat])
            for i, start in enumerate(now.flat):
                self._read(int(start), _rows(filled, i * block, (i + 1) * block))
            span = now.shape[1] * block
            orders = [random.permutation(random.fold_in(key, begun + k), span) for key in keys]
            of_lanes = np.arange(len(lanes))[:, None] * span + np.stack(orders)
            yield filled, of_lanes[:, skipped:]
            skipped = 0

    def _like(self, n: int) -> Any:
        """Arrays for so many examples."""
        return tree_map(lambda x: np.empty((n, *x.shape[1:]), x.dtype), self._kinds)

    def _expect(self, start: int, stop: int) -> Any:
        """Let files be read ahead, as long as the result is kept."""
        return [x.expect(slice(start, stop)) for x in self._leaves if isinstance(x, Source)]

    def _read(self, start: int, into: Any) -> None:
        """Fill arrays with the examples from a place on."""
        stop = start + len(tree_leaves(into)[0])
        for x, arrays in zip(self._leaves, self._treedef.flatten_up_to(into), strict=True):
            read_into(x, slice(start, stop), arrays)


def _take(orders: np.ndarray, rows: int, done: int, window: Any, batch: Any) -> None:
    """Copy rows of each lane to its part of a batch, behind those that are there."""
    for lane, order in enumerate(orders):
        start = lane * rows + done
        # All are in range, and only where it is not checked NumPy writes into `out` itself.
        np.take(window, order, 0, out=batch[start : start + len(order)], mode="clip")


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

    Returns:
        An iterable of pytrees of arrays, of known `len`.

    Raises:
        ArgumentError: If a number does not fit another.
        ShapeError: If there are different numbers of examples.

    Example:
        >>> import numpy as np
        >>> from funcgrad import data
        >>> x = np.arange(64)
        >>> whole = list(data.stream(x, 16, seed=0))
        >>> halves = [list(data.stream(x, 16, seed=0, part=(i, 2))) for i in range(2)]
        >>> all((np.concatenate(pair) == both).all() for *pair, both in zip(*halves, whole))
        True
        >>> rest = list(data.stream(x, 16, seed=0, start=3))
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
