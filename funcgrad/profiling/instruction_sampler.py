"""Samples of the instructions of a thread, five hundred in a second of its processor's time.

Linux counts the time of the thread, and puts the addresses of the instructions at which it was
found into a ring in memory (``perf_event_open``, in user code): no signal is sent, and nothing runs
in the thread. Where that is not allowed, and on other systems, there are no samples.

Workers are not sampled: the thread that runs a program computes parts of every kernel itself, and
which lines of a kernel take the time is the same in all of its parts. A thread that is sampled also
takes longer to fall asleep and to wake up, which workers do in every call.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
import sys
from collections.abc import Iterator

import numpy as np

from funcgrad.base.records import dataclass

PERIOD = 2_000_000
"""Nanoseconds of processor time from one sample to the next."""

_PAGES = 32
_SOFTWARE, _TASK_CLOCK = 1, 1
_ADDRESS = 1  # what a sample holds
_DISABLED, _NO_KERNEL, _NO_HYPERVISOR = 1, 1 << 5, 1 << 6
_ENABLE, _DISABLE = 0x2400, 0x2401
_HEAD, _TAIL = 1024, 1032
_SAMPLE = 9
_CLOSE_ON_EXEC = 8
_THIS_THREAD = 0
_CALL = {"x86_64": 298, "aarch64": 241}.get(platform.machine(), 0)


@dataclass
class _Ring:
    file: int
    memory: mmap.mmap

    def addresses(self) -> Iterator[int]:
        """Addresses since the last time."""
        size = _PAGES * mmap.PAGESIZE
        (head,) = struct.unpack_from("<Q", self.memory, _HEAD)
        (tail,) = struct.unpack_from("<Q", self.memory, _TAIL)
        while tail < head:
            place = mmap.PAGESIZE + tail % size
            kind, _, length = struct.unpack_from("<IHH", self.memory, place)
            if kind == _SAMPLE:
                yield struct.unpack_from("<Q", self.memory, mmap.PAGESIZE + (tail + 8) % size)[0]
            tail += length
        struct.pack_into("<Q", self.memory, _TAIL, head)


class InstructionSampler:
    """Samples of the thread that starts it.

    Attributes:
        is_available: Whether there are any.
    """

    def __init__(self) -> None:
        self._ring: _Ring | None = None
        self._found: list[int] = []
        self.is_available = sys.platform == "linux" and bool(_CALL) and self._try()

    def _try(self) -> bool:
        ring = self._open()
        if ring is not None:
            self._close(ring)
        return ring is not None

    def _open(self) -> _Ring | None:
        flags = _DISABLED | _NO_KERNEL | _NO_HYPERVISOR
        words = _SOFTWARE, 112, _TASK_CLOCK, PERIOD, _ADDRESS, 0, flags
        wanted = ctypes.create_string_buffer(struct.pack("<IIQQQQQ", *words), 112)
        call = ctypes.CDLL(None).syscall
        call.restype = ctypes.c_long
        given = [ctypes.c_long(n) for n in (_CALL, _THIS_THREAD, -1, -1, _CLOSE_ON_EXEC)]
        file = call(given[0], wanted, *given[1:])
        if file < 0:
            return None
        try:
            return _Ring(file, mmap.mmap(file, (1 + _PAGES) * mmap.PAGESIZE))
        except OSError:  # memory for rings is limited
            os.close(file)
            return None

    @staticmethod
    def _close(ring: _Ring) -> None:
        ring.memory.close()
        os.close(ring.file)

    def start(self) -> None:
        """Begin to sample this thread."""
        self._found = []
        self._ring = self._open() if self.is_available else None
        if self._ring is not None:
            ctypes.CDLL(None).ioctl(self._ring.file, _ENABLE, 0)

    def drain(self) -> None:
        """Take what has come, before the ring is full."""
        if self._ring is not None:
            self._found += self._ring.addresses()

    def stop(self) -> np.ndarray:
        """End; the addresses of all samples."""
        if self._ring is not None:
            ctypes.CDLL(None).ioctl(self._ring.file, _DISABLE, 0)
            self.drain()
            self._close(self._ring)
            self._ring = None
        return np.array(self._found, np.uint64).astype(np.int64)
