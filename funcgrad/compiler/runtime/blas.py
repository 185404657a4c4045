"""Addresses of BLAS functions, from SciPy's public table of C functions.

`scipy.linalg` takes 150 ms to import, of which the table needs a quarter; it is therefore loaded
without its package where nobody has imported that yet.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from typing import Any

import numpy as np

TABLE = "scipy.linalg.cython_blas"
LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


@cache
def gemm_function(dtype: Any) -> int:
    """Address of BLAS's general matrix product for ``dtype`` (f32, f64, c64 or c128)."""
    return _address(f"{LETTERS[np.dtype(dtype).char]}gemm")


def _address(name: str) -> int:
    capsule = _table().__pyx_capi__[name]
    return _POINTER_OF(capsule, _NAME_OF(capsule))


@cache
def _table() -> Any:
    package = importlib.util.find_spec("scipy")
    if TABLE in sys.modules or package is None or package.origin is None:
        return importlib.import_module(TABLE)
    folder = Path(package.origin).parent / "linalg"
    for suffix in EXTENSION_SUFFIXES:
        path = folder / f"cython_blas{suffix}"
        if path.exists():
            return _load_extension(path)
    return importlib.import_module(TABLE)


def _load_extension(path: Path) -> Any:
    loader = ExtensionFileLoader(TABLE, str(path))
    spec = importlib.util.spec_from_file_location(TABLE, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


_NAME_OF = ctypes.pythonapi.PyCapsule_GetName
_NAME_OF.restype, _NAME_OF.argtypes = ctypes.c_char_p, [ctypes.py_object]
_POINTER_OF = ctypes.pythonapi.PyCapsule_GetPointer
_POINTER_OF.restype, _POINTER_OF.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
