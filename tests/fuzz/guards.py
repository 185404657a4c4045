"""Memory of compiled programs where a single byte too far is a fault.

Within `guarded`, every buffer of a plan lies against a page that may not be touched: arguments
that `place` has laid out, results, constants, arguments in the form that kernels read, what NumPy
returns in between, and every value and all scratch of the arena, nested ones too, which then share
no memory. A kernel that reads or writes beside one of them ends the process by SIGSEGV: run it by
`survives`.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from funcgrad.compiler import pipeline
from funcgrad.compiler.native import llvm_backend, translate  # noqa: F401 (before any fork)
from funcgrad.compiler.nest import allocate
from funcgrad.compiler.nest.arena import Buffer
from funcgrad.compiler.runtime import executable

PAGE = mmap.PAGESIZE
SIDES = ("end", "beginning")
_PROT_NONE = 0
_libc = ctypes.CDLL(None, use_errno=True)


def rounded(nbytes: int) -> int:
    """Up to whole pages."""
    return -(-nbytes // PAGE) * PAGE


def region(nbytes: int, holes: Sequence[tuple[int, int]]) -> tuple[np.ndarray, int]:
    """Whole pages of memory, of which some may not be touched, and their address."""
    memory = mmap.mmap(-1, max(nbytes, PAGE))
    array = np.frombuffer(memory, np.uint8)
    address: int = array.__array_interface__["data"][0]
    for begin, end in holes:
        args = ctypes.c_void_p(address + begin), ctypes.c_size_t(end - begin), _PROT_NONE
        if _libc.mprotect(*args):
            raise OSError(ctypes.get_errno(), "mprotect")
    return array, address


def offset_of(nbytes: int, side: str) -> int:
    """Where a value of so many bytes begins in its pages, after the first guard page."""
    if side == "beginning":
        return 0
    step = min(nbytes & -nbytes, 64) or 1  # its elements remain aligned, and no more than these
    return (rounded(nbytes) - nbytes) // step * step


class _Guards:
    def __init__(self, side: str) -> None:
        self.side = side
        self.holes: list[tuple[int, int]] = []
        """The guard pages of the arena that was packed last."""

    # What takes the place of functions of the package.

    def packed(self, buffers: Sequence[Buffer]) -> int:
        """Give every buffer pages of its own, between guard pages."""
        size = PAGE
        self.holes = [(0, PAGE)]
        for buffer in buffers:
            buffer.offset = size + offset_of(buffer.nbytes, self.side)
            size += rounded(buffer.nbytes) + PAGE
            self.holes.append((size - PAGE, size))
        return size

    def fill_arena(self, fill: Callable[..., int]) -> Callable[..., int]:
        def filled(graph: Any, groups: Any, jobs: Any, slot: int, memory: Any) -> int:
            size = fill(graph, groups, jobs, slot, memory)
            holes = self.holes
            for job in (job for row in jobs for job in row):
                if isinstance(job, allocate.Nested):
                    for inner, value in zip(job.arena_slots, job.arenas, strict=True):
                        found = memory.holes[inner]
                        holes += [(a + value.offset, b + value.offset) for a, b in found]
            memory.__dict__.setdefault("holes", {})[slot] = holes
            return size

        return filled

    def arena_of(self, memory: Any) -> tuple[np.ndarray, int]:
        holes = memory.__dict__.get("holes")
        if holes is None:  # compiled before
            return executable.aligned_arena(memory)
        return region(memory.arena_bytes, holes[memory.arena_slot])

    def new_array(self, shape: Any, dtype: Any) -> np.ndarray:
        """An array of arbitrary values between two guard pages."""
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        nbytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        end = PAGE + rounded(nbytes)
        raw, _ = region(end + PAGE, [(0, PAGE), (end, end + PAGE)])
        raw[PAGE:end] = 0xA5
        return np.ndarray(shape, dtype, raw, PAGE + offset_of(nbytes, self.side))

    def copied(self, array: Any) -> np.ndarray:
        array = np.asarray(array)
        made = self.new_array(array.shape, array.dtype)
        made[...] = array
        return made

    def executable(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(graph: Any, *args: Any, **options: Any) -> Any:
            for value in graph.constants:
                value.array = self.copied(value.array)
            return make(graph, *args, **options)

        return made

    def place(self, array: np.ndarray) -> np.ndarray:
        """The same array between guard pages, with the same strides and alignment."""
        if not array.size:
            return array
        last = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True) if s > 0)
        first = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True) if s < 0)
        nbytes = last - first + array.itemsize
        end = PAGE + rounded(nbytes)
        raw, _ = region(end + PAGE, [(0, PAGE), (end, end + PAGE)])
        begin = PAGE + (rounded(nbytes) - nbytes if self.side == "end" else 0)
        if array.flags.aligned:
            begin -= begin % array.dtype.alignment
        made = np.ndarray(array.shape, array.dtype, raw, begin - first, array.strides)
        if array.flags.writeable:
            made[...] = array
        else:
            for index in np.ndindex(array.shape):
                made[index] = array[index]
            made.flags.writeable = False
        return made


@contextmanager
def guarded(side: str) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """Compile and run programs with guard pages.

    Args:
        side: Where buffers touch such a page: at their "end" or at their "beginning". On the other
            side it is less than a page away.

    Yields:
        A function that lays out an argument in this manner.
    """
    guards = _Guards(side)
    changed = [
        (allocate, "packed", guards.packed),
        (allocate, "_fill_arena", guards.fill_arena(allocate._fill_arena)),
        (executable, "arena_of", guards.arena_of),
        (executable, "new_array", guards.new_array),
        (pipeline, "Executable", guards.executable(pipeline.Executable)),
    ]
    before = [getattr(module, name) for module, name, _ in changed]
    try:
        for module, name, value in changed:
            setattr(module, name, value)
        yield guards.place
    finally:
        for (module, name, _), value in zip(changed, before, strict=True):
            setattr(module, name, value)


def survives(function: Callable[[], Any]) -> str:
    """Run a function in a forked child.

    Returns:
        What was wrong: the signal that ended the child, or the exception; empty if nothing was.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        code = 1
        try:
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
            function()
            code = 0
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}"[:4000].encode())
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        message = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return message
