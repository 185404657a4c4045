"""A second instance of NumPy's or SciPy's OpenBLAS, which has one thread.

Threads of OpenBLAS wait for each other by spinning. For the matrices of a stack they cost more than
they compute, the more so beside threads of ours. But how many it uses is one number for the whole
process, which belongs to the program (``openblas_set_num_threads_local`` sets the same one). So the
library is loaded again, from a copy of its file, with variables of its own; and the extension
module that calls it is loaded again, from a copy that names the copied library. A function is at
the same place in both instances of the module, so that its address differs by one distance.

* OpenBLAS starts a thread for every processor that the thread which loads it may use: here one.
* Nobody else finds the instance: its symbols are local, no name is the library's, and the module is
  not initialised, for its loops need nothing of Python.
* Copies are in memory. What is never written to is mapped from the original files afterwards, so
  that processes share it, and only the rest, about 3 MiB, remains in memory.

This is for the wheels of NumPy and SciPy on Linux with glibc. Where anything of it is missing or
not allowed, there is no second instance.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import struct
from collections.abc import Iterator
from typing import Any

from funcgrad.base import stacks
from funcgrad.base.forking import Lock, between_forks
from funcgrad.base.records import dataclass

_LOCK = Lock()
_DISTANCES: dict[str, int] = {}
_LIBRARIES: dict[str, Any] = {}
"""Libraries that have a second instance, by their files."""
_NUMBERS = itertools.count(1)


def distance(module: str, ask: Any) -> int:
    """Distance from a function of a module to the same function of its second instance.

    Args:
        module: The file of an extension module, which is loaded.
        ask: The function of its OpenBLAS that tells how many threads it uses.
    Returns: The distance; 0 where there can be no second instance.
    """
    with _LOCK:
        if module not in _DISTANCES:
            found = 0
            if _is_possible(ask.__name__):
                try:
                    # Affinity is that of one thread: of one that does nothing else.
                    found = stacks.elsewhere(lambda: _distance(module, ask))
                except OSError:
                    pass  # the system does not allow it
                except RuntimeError:
                    return 0  # no thread can be started now
            _DISTANCES[module] = found
        return _DISTANCES[module]


def libraries() -> list[str]:
    """Names of the libraries of which there is a second instance."""
    return sorted(map(os.path.basename, _LIBRARIES))


def _distance(module: str, ask: Any) -> int:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    path = _file_of(ask)
    name = os.path.basename(path).encode()
    if path not in _LIBRARIES:
        library = _loaded_again(path, name)
        if library is None or library[ask.__name__]() != 1:
            return 0
        _LIBRARIES[path] = library
    original = ctypes.CDLL(module)
    again = _loaded_again(module, name, _base(original))
    if again is None or _address(again[ask.__name__]) != _address(_LIBRARIES[path][ask.__name__]):
        return 0
    return _base(again) - _base(original)


def _is_possible(ask: str) -> bool:
    """Whether a second instance would be one: symbols that all libraries see are found first."""
    if struct.calcsize("P") != 8 or not all(hasattr(os, name) for name in _OF_LINUX):
        return False
    everywhere = ctypes.CDLL(None)
    return (
        ask.startswith("scipy_")  # a library that is nobody else's, with all of LAPACK in one file
        and hasattr(everywhere, "gnu_get_libc_version")
        and not any(hasattr(everywhere, name) for name in (ask, "blas_cpu_number"))
    )


_OF_LINUX = ("memfd_create", "sched_setaffinity")


def _loaded_again(path: str, name: bytes, base: int | None = None) -> Any:
    """A second instance of a library.

    Args:
        path: Its file.
        name: The name of OpenBLAS in it, in place of which the copy has another one.
        base: Where the first instance is, if functions have to be at the same places in both.
    Returns: The instance, or ``None`` if the file is not what was expected.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        places = list(_places(data, b"\0" + name + b"\0"))
        segments = list(_fixed_segments(data))
        if not places or not all(base is None or x.is_at(base, data) for x in segments):
            return None
        copy = os.memfd_create("funcgrad")
        try:
            with open(copy, "wb", closefd=False) as writer:
                writer.write(data)
            for place in places:
                os.pwrite(copy, b"~", place + 1)
            # The loader knows libraries by what their files are called: no two are called so.
            again = between_forks(ctypes.CDLL, f"/proc/self/fd/{'./' * next(_NUMBERS)}{copy}")
            for segment in segments:
                if not any(segment.first <= place < segment.last for place in places):
                    segment.share(_base(again), file.fileno(), copy)
        finally:
            os.close(copy)
    return again


def _places(data: mmap.mmap, text: bytes) -> Iterator[int]:
    """Positions of a text in a file."""
    place = data.find(text)
    while place >= 0:
        yield place
        place = data.find(text, place + 1)


@dataclass(frozen=True)
class _Segment:
    """A part of a file that is mapped to memory and not written to there.

    Attributes:
        address: Where it is, from the beginning of the library.
        first: Where it begins in the file.
        last: Where it ends in the file.
        protection: What may be done with it, as of ``mmap``.
    """

    address: int
    first: int
    last: int
    protection: int

    def is_at(self, base: int, data: mmap.mmap) -> bool:
        """Whether it is what a library has at its place."""
        size = self.last - self.first
        return ctypes.string_at(base + self.address, size) == data[self.first : self.last]

    def share(self, base: int, file: int, copy: int) -> None:
        """Map it from the original file, and give back the memory of its copy."""
        page = mmap.PAGESIZE
        before = self.first % page
        address, offset = base + self.address - before, self.first - before
        library: Any = ctypes.CDLL(None)
        integer, word = ctypes.c_int, ctypes.c_int64
        library.mmap.restype = word
        library.mmap.argtypes = (word, word, integer, integer, integer, word)
        library.fallocate.argtypes = (integer, integer, word, word)
        flags = _PRIVATE | _FIXED
        at = library.mmap(address, self.last - offset, self.protection, flags, file, offset)
        if at == address:
            begin = -(-self.first // page) * page  # other segments may have a part of a page
            nbytes = self.last // page * page - begin
            library.fallocate(copy, _KEEP_SIZE | _PUNCH_HOLE, begin, nbytes)


def _fixed_segments(data: mmap.mmap) -> Iterator[_Segment]:
    """The segments of an ELF file of 64 bits that are not written to, from its program headers."""
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for k in range(count):
        header = struct.unpack_from("<IIQQQQ", data, table + k * size)
        kind, flags, first, address, _, length = header
        if kind == _LOADED and not flags & _WRITABLE:
            protection = _READ | (_EXECUTE if flags & _EXECUTABLE else 0)
            yield _Segment(address, first, first + length, protection)


_LOADED, _EXECUTABLE, _WRITABLE = 1, 1, 2
_READ, _EXECUTE, _PRIVATE, _FIXED = 1, 4, 2, 16
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


def _base(library: Any) -> int:
    """Base address of a library: the first word of its record in glibc."""
    return ctypes.c_int64.from_address(library._handle).value


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class _Place(ctypes.Structure):
    """C's ``Dl_info``."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _file_of(function: Any) -> str:
    """The file that has a function."""
    place = _Place()
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(_address(function)), ctypes.byref(place)):
        raise OSError("the file of a function is not known")
    return os.fsdecode(place.file)
