"""Read files past the system's cache, straight into buffers that are used again.

What is larger than memory is not found in the cache when it is read next time. To put it there
takes the processor more time than everything else: pages are found, filled, copied, and thrown out.
Where the system allows it (`O_DIRECT`), the disk writes into the buffers of the program instead.
Positions, lengths and addresses have to be multiples of a page then. So a read gives a view of a
buffer that may begin and end a little earlier and later. The buffer is free again when nothing is
left that sees it.
"""

from __future__ import annotations

import os
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from funcgrad.errors import FileFormatError

PAGE = 4096
"""Unit of positions, lengths and addresses; the blocks of disks divide it."""

HUGE_PAGE = 1 << 21
"""Unit of the memory that reads fill, where the system has pages of this size."""

PIECES = 32
"""Buffers of one size that are taken from the system together, in memory of huge pages."""

MOST_TOGETHER = 1 << 25
"""The most bytes that are taken so."""

THREADS = 2
"""Reads that are under way at once: with one, the disk would wait for the next request."""

MOST_FREE = 1 << 27
"""The most bytes that are kept for later reads."""


class Buffers:
    """Memory for reads, in pages, which is used again.

    NumPy asks the system for huge pages where arrays are large. A command to a disk lists the pages
    to write to, some hundreds: if they are small, a large read becomes many commands.
    """

    def __init__(self) -> None:
        self.free: dict[int, list[memoryview]] = {}
        self.nbytes = 0
        self.rest: list[memoryview] = []

    def take(self, nbytes: int) -> np.ndarray:
        """Bytes that begin at a page. When no array sees them any more, they come back."""
        size = -(-nbytes // PAGE) * PAGE
        kept = self.free.get(size)
        if kept:
            memory = kept.pop()
            self.nbytes -= size
        else:
            # Threads have a rest each, if they come here at once.
            rest = self.rest.pop() if self.rest else memoryview(b"")
            if len(rest) < size:
                rest = _mapped(max(size, min(PIECES * size, MOST_TOGETHER)))
            memory = rest[:size]
            self.rest.append(rest[size:])
        array = np.frombuffer(memory, np.uint8, nbytes)
        weakref.finalize(array, self.give, memory).atexit = False
        return array

    def give(self, memory: memoryview) -> None:
        """Keep memory that is free."""
        nbytes = len(memory)
        # Sizes that are rarely needed, as where files meet, make room for others.
        for size, kept in self.free.items():
            while size != nbytes and kept and self.nbytes + nbytes > MOST_FREE:
                kept.pop()
                self.nbytes -= size
        if self.nbytes + nbytes <= MOST_FREE:
            self.nbytes += nbytes
            self.free.setdefault(nbytes, []).append(memory)


def _mapped(nbytes: int) -> memoryview:
    """New memory, which begins at a huge page."""
    whole = np.empty(nbytes + HUGE_PAGE, np.uint8)
    start = -whole.ctypes.data % HUGE_PAGE
    return whole[start : start + nbytes].data


class _Descriptor:
    """Number of a file that is open until nobody refers to this."""

    def __init__(self, path: Path, flags: int) -> None:
        self.number = os.open(path, os.O_RDONLY | flags)
        weakref.finalize(self, os.close, self.number)


class OpenFile:
    """A file that is opened when it is read, and may be closed meanwhile.

    Args:
        path: The file.
        flags: Flags of the system for opening it.
    """

    def __init__(self, path: Path, flags: int = 0) -> None:
        self._path, self._flags = path, flags
        self._open: _Descriptor | None = None

    def get(self) -> _Descriptor:
        """The open file; it is to be kept while it is read."""
        found = self._open
        if found is None:
            found = self._open = _Descriptor(self._path, self._flags)
        return found

    def close(self) -> None:
        """Close it, when reads that are under way have ended; the next one opens it again."""
        self._open = None


class DirectFile:
    """A file for reads past the cache.

    Args: path: The file.
    Raises: OSError: If it cannot be read so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = OpenFile(path, os.O_DIRECT)
        os.preadv(self.file.get().number, [_mapped(PAGE)], 0)

    def read(self, buffers: Buffers, position: int, nbytes: int) -> np.ndarray:
        """Bytes of the file: a view of a buffer.

        Raises: FileFormatError: If there are not so many.
        """
        start = position // PAGE * PAGE
        stop = position + nbytes
        whole = buffers.take(-(-(stop - start) // PAGE) * PAGE)
        at, file = start, self.file.get()
        while at < stop:
            # A read that does not end at a page has met the end of the file.
            n = 0 if at % PAGE else os.preadv(file.number, [whole.data[at - start :]], at)
            if not n:
                raise FileFormatError(f"{self.path} has become shorter while it was read.")
            at += n
        return whole[position - start : stop - start]


class Reader:
    """Reads of files past the cache, of which some are begun before they are needed."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.process = os.getpid()
        self.buffers = Buffers()
        self.threads = ThreadPoolExecutor(THREADS, "funcgrad-read")
        # Callers hold the futures, so a buffer is freed once nobody waits for its bytes.
        self.begun: weakref.WeakValueDictionary[tuple[Path, int, int], Future[list[np.ndarray]]]
        self.begun = weakref.WeakValueDictionary()

    def begin(self, file: DirectFile, position: int, nbytes: int) -> Future[list[np.ndarray]]:
        """Begin to read; the result is to be kept until `read`, which takes the bytes out of it."""
        if self.process != os.getpid():  # a fork, without the threads
            self._begin()
        key = file.path, position, nbytes
        found = self.begun.get(key)
        if found is None:
            found = self.threads.submit(lambda: [file.read(self.buffers, position, nbytes)])
            self.begun[key] = found
        return found

    def read(self, file: DirectFile, position: int, nbytes: int) -> np.ndarray:
        """Bytes of a file, which nobody else gets."""
        found = self.begin(file, position, nbytes)
        del self.begun[file.path, position, nbytes]
        return found.result().pop()


def open_direct(path: Path) -> DirectFile | None:
    """Open a file for reads past the cache; `None` where the system or the disk has none."""
    if not hasattr(os, "O_DIRECT"):
        return None
    try:
        return DirectFile(path)
    except OSError:
        return None
