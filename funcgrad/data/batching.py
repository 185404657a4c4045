"""Arrays of examples: batches in random order, prepared ahead in a thread, and split in two.

A set of examples is a pytree of NumPy arrays whose first axis counts the examples. All randomness
comes from a seed by way of `funcgrad.random`: the same seed gives the same order everywhere.
"""

from __future__ import annotations

import collections
import contextvars
import math
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from operator import index
from typing import Any, Generic, TypeVar

import numpy as np

from funcgrad import random
from funcgrad.base.pytree import PyTreeDef, keystr, tree_flatten_with_path
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.primitives.objects import is_traced
from funcgrad.random.key_arrays import KeyArray

T = TypeVar("T")
Seed = Any
"""A Python integer, or a key of `funcgrad.random`."""


@dataclass(eq=False, repr=False)
class Batches:
    """Batches of a data set: every loop gives the same ones; `len` counts them."""

    _arrays: list[np.ndarray]
    _treedef: PyTreeDef
    _size: int
    _order: np.ndarray | None
    _drop_last: bool

    def __len__(self) -> int:
        count = len(self._arrays[0])
        return count // self._size if self._drop_last else -(-count // self._size)

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            rows: Any = slice(i * self._size, (i + 1) * self._size)
            if self._order is not None:
                rows = self._order[rows]
            yield self._treedef.unflatten([x[rows] for x in self._arrays])


def batches(
    arrays: Any,
    size: int,
    *,
    seed: Seed | None = None,
    shuffle: bool | None = None,
    drop_last: bool = False,
) -> Batches:
    """Examples in groups of equal size.

    Args:
        arrays: A pytree of arrays whose first axes have the same length, the number of examples.
        size: How many examples are in a batch.
        seed: An integer or a key of `funcgrad.random`: examples come in the random order that it
            gives. Use another one for every pass over the data.
        shuffle: Whether the order is random; by default if there is a seed.
        drop_last: Whether the examples that are left over, fewer than ``size``, are left out.
    Returns: An iterable of pytrees, of known `len`. Without shuffling they are views of the arrays.

    Raises:
        ArgumentError: If there are no arrays, the size is not positive, or ``shuffle=True`` comes
            without a seed.
        ShapeError: If the arrays have different numbers of examples.

    Example:
        >>> x, y = np.arange(10.0), np.arange(10)
        >>> for epoch in range(2):
        ...     for batch_x, batch_y in fg.data.batches((x, y), 4, seed=epoch):
        ...         assert (batch_x == batch_y).all()
        >>> [len(b) for b in fg.data.batches(x, 4)], len(fg.data.batches(x, 4, drop_last=True))
        ([4, 4, 2], 2)
    """
    leaves, treedef, count = _examples("batches", arrays)
    if index(size) < 1:
        raise ArgumentError(f"data.batches: size must be at least 1, got {size}.")
    if shuffle and seed is None:
        raise ArgumentError(
            "data.batches: shuffle=True needs a seed: an integer, such as the number of the epoch, "
            "or a key of funcgrad.random."
        )
    is_random = seed is not None and shuffle is not False
    order = random.permutation(key_of("batches", seed), count) if is_random else None
    return Batches(leaves, treedef, index(size), order, drop_last)


def train_test_split(
    arrays: Any, test_size: float = 0.25, *, seed: Seed, stratify: Any | None = None
) -> tuple[Any, Any]:
    """Examples divided at random into two sets.

    Args:
        arrays: A pytree of arrays whose first axes have the same length, the number of examples.
        test_size: The share of the second set, between 0 and 1, of which the number of examples is
            rounded up; or that number itself, if it is an integer.
        seed: An integer or a key of `funcgrad.random`.
        stratify: Labels, one for each example: both sets then have the same share of every label,
            to within one example.
    Returns: Two pytrees of the structure of ``arrays``, for training and for testing, each in
        random order.

    Raises:
        ArgumentError: If one of the sets would be empty.
        ShapeError: If the arrays, or the labels, have different numbers of examples.

    Example:
        >>> x, y = np.arange(8.0), np.array([0, 0, 0, 0, 1, 1, 1, 1])
        >>> (train_x, train_y), (test_x, test_y) = fg.data.train_test_split(
        ...     (x, y), 0.5, seed=0, stratify=y
        ... )
        >>> sorted(test_y.tolist()), test_x.shape
        ([0, 0, 1, 1], (4,))
    """
    leaves, treedef, count = _examples("train_test_split", arrays)
    tests = _count_of_tests(test_size, count)
    key, key_of_ties = random.split(key_of("train_test_split", seed))
    order = random.permutation(key, count)
    if stratify is not None:
        labels = np.asarray(stratify)
        if labels.shape != (count,):
            raise ShapeError(
                f"data.train_test_split: stratify needs one label for each of {count} examples, "
                f"got an array of shape {labels.shape}."
            )
        order = _stratified(order, labels, tests, key_of_ties)

    def part(rows: np.ndarray) -> Any:
        return treedef.unflatten([x[rows] for x in leaves])

    return part(order[tests:]), part(order[:tests])


def _count_of_tests(test_size: float, count: int) -> int:
    is_share = not isinstance(test_size, int | np.integer)
    tests = math.ceil(test_size * count - 1e-9) if is_share else int(test_size)
    if (is_share and not 0 < test_size < 1) or not 0 < tests < count:
        raise ArgumentError(
            f"data.train_test_split: both sets need examples, but test_size={test_size} of {count} "
            "leaves one of them empty. Give a share between 0 and 1, or a number of examples."
        )
    return tests


def _stratified(order: np.ndarray, labels: np.ndarray, tests: int, key: np.ndarray) -> np.ndarray:
    """The order, changed so that its first ``tests`` rows have their share of every label."""
    _, kinds, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    shares = sizes * tests / len(labels)
    quotas = np.floor(shares).astype(int)
    # Largest remainders get the elements that rounding left over, equal ones in random order.
    remainders = shares - quotas
    ranked = np.lexsort((random.permutation(key, len(sizes)), -remainders))
    quotas[ranked[: tests - quotas.sum()]] += 1
    kinds = kinds[order]
    # The place of every row among those of its label.
    by_kind = np.argsort(kinds, kind="stable")
    places = np.empty(len(order), int)
    places[by_kind] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_test = places < quotas[kinds]
    return np.concatenate([order[is_test], order[~is_test]])


def _examples(function: str, arrays: Any) -> tuple[list[np.ndarray], PyTreeDef, int]:
    """The arrays of a tree, its structure, and the number of examples."""
    pairs, treedef = tree_flatten_with_path(arrays)
    if not pairs:
        raise ArgumentError(f"data.{function} needs at least one array, got none.")
    leaves: list[np.ndarray] = []
    for path, x in pairs:
        place = f"arrays{keystr(path)}"
        if is_traced(x):
            raise ArgumentError(
                f"data.{function}: {place} is traced. Make batches outside of transformed "
                "functions; inside, index with lax.dynamic_slice or numpy.take."
            )
        array = np.asarray(x)
        if not array.ndim:
            raise ShapeError(
                f"data.{function}: {place} has no axis of examples; it is a {type(x).__name__}. "
                "Lists are containers of arrays: make an array of them first."
            )
        if leaves and len(array) != len(leaves[0]):
            raise ShapeError(
                f"data.{function}: {place} has {len(array)} examples, but "
                f"arrays{keystr(pairs[0][0])} has {len(leaves[0])}."
            )
        leaves.append(array)
    return leaves, treedef, len(leaves[0])


def key_of(function: str, seed: Seed) -> Any:
    """The key for a seed."""
    if isinstance(seed, KeyArray) and not seed.shape:
        return seed
    key = np.asarray(seed)
    if not key.ndim and key.dtype.kind in "iu":
        return random.key(seed)
    if key.shape != (2,) or key.dtype != np.uint32:
        raise ArgumentError(
            f"data.{function}: seed must be an integer or a key of funcgrad.random, got {seed!r}."
        )
    return key


class Prefetch(Generic[T]):
    """Iterator that reads ahead, the result of `prefetch`; a ``with`` block closes it."""

    def __init__(self, iterable: Iterable[T], n: int) -> None:
        self._shared = _Shared(n)
        # The thread does not know this object, which may go away while the thread waits.
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(_produce, iter(iterable), self._shared),
            name="funcgrad.data.prefetch",
            daemon=True,
        )
        self._thread.start()
        self._finalizer = weakref.finalize(self, self._shared.stop)

    def __iter__(self) -> Prefetch[T]:
        return self

    def __next__(self) -> T:
        return self._shared.take()

    def close(self) -> None:
        """Stop the thread, and wait for it: at most until the next element would be ready."""
        self._shared.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Prefetch[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Shared:
    """Queue of elements that a thread has made ready; at most ``limit`` of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._process = os.getpid()
        self._ready: collections.deque[Any] = collections.deque()
        self._changed = threading.Condition()
        self._is_stopped = False
        self._is_finished = False
        self._error: BaseException | None = None

    def put(self, element: Any) -> bool:
        """Add an element as soon as there is room; false if nobody wants more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or len(self._ready) < self._limit)
            if not self._is_stopped:
                self._ready.append(element)
                self._changed.notify_all()
            return not self._is_stopped

    def finish(self, error: BaseException | None) -> None:
        """Nothing more will come, because of an error or not."""
        with self._changed:
            self._is_finished, self._error = True, error
            self._changed.notify_all()

    def stop(self) -> None:
        """Nothing more is wanted."""
        if self._process != os.getpid():
            return  # the thread is in the parent, and may have held the lock
        with self._changed:
            self._is_stopped = True
            self._ready.clear()
            self._changed.notify_all()

    def take(self) -> Any:
        if self._process != os.getpid():
            raise ArgumentError(
                "data.prefetch: its thread works in the process that made it, not in this one, "
                "which was forked. Call prefetch in the child."
            )
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._is_finished or self._is_stopped)
            if self._ready:
                element = self._ready.popleft()
                self._changed.notify_all()
                return element
            error, self._error = self._error, None
        if error is not None and not self._is_stopped:
            raise error
        raise StopIteration


def _produce(source: Iterator[Any], shared: _Shared) -> None:
    """The work of the thread."""
    error: BaseException | None = None
    try:
        for element in source:
            if not shared.put(element):
                break
            del element  # Not to be kept alive while the next one is made.
        close = getattr(source, "close", None)
        if close is not None:
            close()
    except BaseException as raised:  # Whatever it is, it belongs to whoever takes the elements.
        error = raised
    shared.finish(error)


def prefetch(iterable: Iterable[T], n: int = 2) -> Prefetch[T]:
    """The elements of an iterable, computed ahead of their use in a thread.

    While a compiled step runs, which does not hold Python's lock, the next batches are prepared.

    Args:
        iterable: Such as `batches`, or a generator that loads files.
        n: How many elements are kept ready at most.

    Returns:
        An iterator. An error of the iterable is raised by it after the elements before. It ends
        with its ``close()``, at the end of a ``with`` block, when it is collected, and with the
        process; a generator is then closed, too, in the thread.
    Raises: ArgumentError: If ``n`` is not positive.

    Example:
        >>> with fg.data.prefetch(x * x for x in range(4)) as squares:
        ...     list(squares)
        [0, 1, 4, 9]
    """
    if index(n) < 1:
        raise ArgumentError(f"data.prefetch: n must be at least 1, got {n}.")
    return Prefetch(iterable, index(n))
