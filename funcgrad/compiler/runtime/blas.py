"""Library that multiplies matrices, and the addresses of its functions.

``FUNCGRAD_BLAS`` chooses: ``own``, the tiles of `loops.library.tiles` (the default where there are
threads for them); ``scipy``, the BLAS that SciPy exports (elsewhere); ``mkl`` of the package of
that name; or the path of a library. It is read when a function is compiled.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.imports import load
from funcgrad.base.records import dataclass
from funcgrad.compiler.foreign import LETTERS, linear_algebra_file, linear_algebra_function
from funcgrad.compiler.runtime.threads import is_available
from funcgrad.errors import LibraryError

VARIABLE = "FUNCGRAD_BLAS"


@dataclass(frozen=True)
class Library:
    """A library with general matrix products.

    Attributes:
        name: What it is called here.
        path: Its file.
        gemms: Addresses of its products, by BLAS's letter.
    """

    name: str
    path: str
    gemms: tuple[tuple[str, int], ...]

    def gemm(self, dtype: Any) -> int:
        """Address of the product for ``dtype`` (f32, f64, c64 or c128)."""
        return dict(self.gemms)[LETTERS[np.dtype(dtype).char]]


def chosen() -> Library | None:
    """The library that multiplies matrices; ``None`` for tiles of our own.

    Raises: LibraryError: ``FUNCGRAD_BLAS`` names none, or one that is not there.
    """
    default = "own" if is_available() else "scipy"
    asked = environment.text(VARIABLE) or default
    if asked == "own" and is_available():
        return None
    return library(asked)


@cache
def library(name: str) -> Library:
    """A library by its name or path.

    Raises: LibraryError: There is no such library, or it has no products of matrices.
    """
    if name == "scipy":
        gemms = ((x, linear_algebra_function(f"{x}gemm")) for x in LETTERS.values())
        return Library(name, linear_algebra_file(), tuple(gemms))
    if name == "own":
        raise LibraryError(
            f"{VARIABLE}=own needs threads of our own, which there are on Linux only. Use "
            f"{VARIABLE}=scipy, the default on this system."
        )
    if name in _FILES:
        paths = list(_installed(name))
    elif os.sep in name:
        paths = [name]
    else:
        raise LibraryError(f"{VARIABLE}={name} names no library: give own, scipy, mkl, or a path.")
    tried = []
    for path in paths:
        try:
            return _loaded(name, path)
        except OSError as error:
            tried.append(f"{path}: {error}")
    looked = "; ".join(tried) or (
        f"neither the package {name} nor the system has {' or '.join(_FILES[name])}"
    )
    cure = f"pip install {name}" if name in _FILES else "give the path of a BLAS"
    raise LibraryError(
        f"{VARIABLE}={name} cannot be used ({looked}). To have it: {cure}. Without the variable "
        "products need no library."
    )


_FILES = {"mkl": ("libmkl_rt", "mkl_rt")}
"""How the files begin that packages and systems have."""


def _installed(name: str) -> Iterator[str]:
    """Files that may be the library: those of the package, then the system's."""
    # By name, because each of them loads thirty modules that nothing else here needs.
    metadata = load("importlib.metadata")
    find_library = load("ctypes.util").find_library
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        is_library = ".so" in file.name or file.suffix in (".dll", ".dylib", ".pyd")
        if is_library and file.name.startswith(_FILES[name]):
            yield str(Path(str(file.locate())).resolve())
    found = find_library(_FILES[name][-1])
    if found is not None:
        yield found


def _loaded(name: str, path: str) -> Library:
    loaded = ctypes.CDLL(path)
    names = {letter: f"{letter}gemm_" for letter in LETTERS.values()}
    missing = [function for function in names.values() if not hasattr(loaded, function)]
    if missing:
        raise OSError(f"has no {', '.join(missing)}")
    _KEPT.append(loaded)
    found = ((x, ctypes.cast(loaded[function], ctypes.c_void_p)) for x, function in names.items())
    return Library(name, path, tuple((x, address.value or 0) for x, address in found))


_KEPT: list[Any] = []
"""Libraries whose functions plans call."""
