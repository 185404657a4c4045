"""Configuration that funcgrad runs on: versions, processor, threads, BLAS, cache, environment."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.imports import load
from funcgrad.compiler import one_thread
from funcgrad.compiler.runtime import blas, kernel_store, warm_memory
from funcgrad.compiler.runtime.executable import MAX_IDLE_BYTES, idle_bytes
from funcgrad.compiler.runtime.threads import default_threads, is_available
from funcgrad.errors import ArgumentError, FuncgradError

_LIBRARIES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables of libraries that limit the threads of NumPy, SciPy, and of a BLAS that was chosen."""


def show_config(mode: str = "stdout") -> dict[str, dict[str, Any]] | None:
    """Show versions, processor and settings, for reports of defects and of slow functions.

    Args: mode: ``"stdout"`` to print, as by default; ``"dicts"`` to return it.

    Returns:
        With ``"dicts"``, a dict of sections: ``"versions"``, ``"processor"``, ``"threads"``,
        ``"matrix products"``, ``"cache"`` and ``"environment"``.
    Raises: ArgumentError: If ``mode`` is neither of both.

    Example:
        >>> config = fg.show_config("dicts")
        >>> config["versions"]["funcgrad"] == fg.__version__
        True
    """
    if mode not in ("stdout", "dicts"):
        raise ArgumentError(f'show_config: mode must be "stdout" or "dicts", got {mode!r}.')
    config = _config()
    if mode == "dicts":
        return config
    print("\n".join(_lines(config)))
    return None


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the text of `show_config`, under JAX's name for it.

    Args: return_string: Whether to return the text instead.
    Returns: The text, or ``None`` where it is printed.
    Example: "numpy" in fg.print_environment_info(return_string=True) -> True
    """
    text = "\n".join(_lines(_config()))
    if return_string:
        return text
    print(text)
    return None


def _lines(config: dict[str, dict[str, Any]]) -> Iterator[str]:
    for title, section in config.items():
        yield title
        yield from (f"  {name:<22} {value}" for name, value in section.items())


def _config() -> dict[str, dict[str, Any]]:
    facts = kernel_store.machine_facts()
    return {
        "versions": {
            "funcgrad": sys.modules["funcgrad"].__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": load("importlib.metadata").version("numba"),
            **{name: facts[name] for name in ("llvmlite", "llvm")},
        },
        "processor": {
            "name": facts["cpu"],
            "architecture": platform.machine(),
            "system": platform.platform(),
            "vector": f"{64 * kernel_store.tile_shape(np.dtype(np.float64)).lanes} bits",
        },
        "threads": {
            "by default": default_threads() if is_available() else 1,
            "processors": os.cpu_count(),
            "pool": "available" if is_available() else "not available on this system",
            "OpenBLAS on one thread": ", ".join(one_thread.libraries()) or "not loaded",
        },
        "matrix products": _products(),
        "cache": _cache(),
        "memory": _memory(),
        "environment": {
            name: value + " (not read: misspelt?)" * (name in environment.unknown())
            for name, value in sorted(os.environ.items())
            if name.startswith(environment.PREFIX) or name in _LIBRARIES
        },
    }


def _products() -> dict[str, Any]:
    try:
        library = blas.chosen()
    except FuncgradError as error:
        return {"by": f"nothing: {error}"}
    if library is None:
        return {"by": "own tiles"}
    return {"by": library.name, "library": library.path}


def _memory() -> dict[str, Any]:
    """Memory kept while nothing is computed; `clear_caches` gives the first part back."""
    number, size = kernel_store.loaded()
    most = warm_memory.most_bytes()
    return {
        "freed results": f"{warm_memory.kept_bytes() / 2**20:.1f} of {most / 2**20:.1f} MiB",
        "between calls": f"{idle_bytes() / 2**20:.1f} of {MAX_IDLE_BYTES / 2**20:.1f} MiB",
        "native code": f"{number} functions, {size / 2**20:.1f} MiB",
    }


def _cache() -> dict[str, Any]:
    try:
        folder = kernel_store.cache_dir()
        size = kernel_store.cache_size()
    except FuncgradError as error:
        return {"folder": f"none: {error}"}
    if folder is None:
        return {"folder": "none: kernels are not kept on disk"}
    found = {"folder": folder, "size": f"{size / 2**20:.1f} MiB"}
    if kernel_store.is_cache_read_only():
        found["new kernels"] = "are not kept: the folder is read-only"
    return found
