"""Dependencies of object code besides the source of a kernel, known at a glance.

Kernels are kept under the versions of what has made them, a digest of the sources of our own
translator and the features of the processor. To ask LLVM for these and to read those takes longer
than to load a small program. So the answers are kept, too, under what `installation` sees.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from funcgrad import errors, intrinsics
from funcgrad.base import digests, forking, imports, records, signatures, stacks
from funcgrad.base.digests import digest

_PACKAGE = Path(__file__).parents[2]

SOURCES = (
    _PACKAGE / "compiler",
    _PACKAGE / "api" / "number_calls.py",
    _PACKAGE / "profiling" / "timed_steps.py",
    Path(intrinsics.__file__),
    Path(records.__file__),
    Path(signatures.__file__),
    Path(forking.__file__),
    Path(digests.__file__),
    Path(stacks.__file__),
    Path(imports.__file__),
    Path(errors.__file__),
)
"""Sources of the translation of kernels, and of programs that are kept by their names. Some of the
compiler's files have no part in it; that a change of one of them compiles kernels again costs less
than one forgotten in a list."""

_FOLDERS = ("base", "core", "higher_order", "passes", "primitives", "transforms")
PLANNERS = (*map(_PACKAGE.joinpath, _FOLDERS), _PACKAGE / "dtypes.py", _PACKAGE / "lowering.py")
"""Sources, besides those above, that the plan of a program follows from: operations and passes."""

_ROOMS = frozenset(path.stem for path in (*SOURCES, *PLANNERS) if path.parent == _PACKAGE)


def is_of_plans(module: str) -> bool:
    """Whether a module is one of those whose sources plans are kept under."""
    package, _, rest = module.partition(".")
    return package == _PACKAGE.name and rest.partition(".")[0] in _ROOMS


_BOOT = "/proc/sys/kernel/random/boot_id"
_PROCESSOR = "/proc/cpuinfo"


def sources_digest(*places: Path) -> str:
    """Digest of files, and of all sources in folders."""
    found = []
    for place in map(str, places):
        for path in _sources(place):
            with open(path, "rb") as file:
                name = path.removeprefix(place).replace(os.sep, "/")
                found.append(f"{name}\0{digest(file.read())}")
    return digest("".join(found).encode())


def _sources(place: str) -> list[str]:
    """A file, or the sources in a folder."""
    if place.endswith(".py"):
        return [place]
    found = []
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                found.append(entry.path)
            elif entry.name != "__pycache__" and entry.is_dir():
                found += _sources(entry.path)
    return sorted(found)


def installation() -> str | None:
    """Digest of what is installed and of what it runs on, without a look into any file.

    Files are known by their places, sizes and times, of which the system itself sets one. The
    processor is known by what the system says of it, as it is now: a machine or a container that
    runs may go on elsewhere. A running system has a number until it starts again.

    Returns: The digest, or ``None`` where systems do not say so.
    """
    try:
        with open(_BOOT, "rb") as file:
            boot = file.read()
        processor = _processor()
        files = [path for place in map(str, (*SOURCES, *PLANNERS)) for path in _sources(place)]
        files += llvm_files()
        states = [(path, os.stat(path)) for path in files]
        known = [(path, x.st_size, x.st_ino, x.st_mtime_ns, x.st_ctime_ns) for path, x in states]
    except OSError:
        return None
    facts = (boot, processor, os.uname(), sys.version, sys.executable, known)
    return digest(repr(facts).encode())


def _processor() -> list[bytes]:
    """Description of the first processor by the system, without its speed, which varies."""
    with open(_PROCESSOR, "rb") as file:
        first = file.read(_FIRST_PROCESSOR).partition(b"\n\n")[0]
    return [
        line for line in first.splitlines() if b"MHz" not in line and b"MIPS" not in line.upper()
    ]


_FIRST_PROCESSOR = 1 << 14
"""Bytes that are enough for one of them."""


_LIBRARY_SUFFIXES = (".so", ".dylib", ".dll")


def llvm_files() -> Iterator[str]:
    """The library of llvmlite, which holds LLVM."""
    package = importlib.util.find_spec("llvmlite")
    for place in package.submodule_search_locations or () if package is not None else ():
        inner = os.path.join(place, "binding")
        yield from (
            os.path.join(inner, x) for x in os.listdir(inner) if x.endswith(_LIBRARY_SUFFIXES)
        )
