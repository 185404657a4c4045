"""Native code below the code generator: kernels, the executor, matrix products, and their cache.

A kernel is source text; `kernel_address` gives the address of its native code ``int64 kernel(int64*
slots, int64* args)`` from memory, else from disk, else by compiling it (`compiler.frontend`: Numba;
`compiler.native`: LLVM). Importing this file loads neither: a process that finds all its kernels on
disk never imports Numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from funcgrad.compiler import blas, fixed
from funcgrad.compiler.blas import gemm_function
from funcgrad.errors import CompilerError

__all__ = [
    "Stats",
    "compile_kernels",
    "executor",
    "executor_address",
    "gemm_address",
    "gemm_function",
    "kernel_address",
    "stats",
]

ABI = 1


@dataclass
class Stats:
    """Where kernels came from since the process started."""

    compiled: int = 0
    loaded_from_disk: int = 0
    memory_hits: int = 0
    log: list[tuple[str, float]] = field(default_factory=list)
    """Digest and seconds of every kernel that was compiled or loaded."""


_STATS = Stats()
_ADDRESSES: dict[str, int] = {}
_LOCK = threading.Lock()


def stats() -> Stats:
    """Counters of this process."""
    return _STATS


def kernel_address(source: str) -> int:
    """The native code of a kernel.

    Args:
        source: Text of ``def kernel(slots, args): ...``.

    Returns:
        The address of ``int64 kernel(int64* slots, int64* args)``, valid until the process ends.

    Raises:
        CompilerError: The source does not compile.
    """
    found = _ADDRESSES.get(source)
    if found is not None:
        _STATS.memory_hits += 1
        return found
    return _address(source, lambda symbol: _frontend().translate(source, symbol))


def compile_kernels(sources: list[str]) -> list[int]:
    """`kernel_address` of several sources."""
    return [kernel_address(source) for source in sources]


def executor_address() -> int:
    """The native code of ``int64 run(int64* slots, int64* table, int64 n_objects)``."""
    assembly = fixed.executor_assembly(_data_offset())
    return _address(assembly, lambda symbol: assembly, fixed.EXECUTOR_SYMBOL)


@cache
def executor() -> Callable[[int, int, int], int]:
    """The executor as a function of the addresses of slots and table and the number of objects.

    The call releases the interpreter's lock.
    """
    word = ctypes.c_int64
    return ctypes.CFUNCTYPE(word, ctypes.c_void_p, ctypes.c_void_p, word)(executor_address())


@cache
def gemm_address(dtype: Any) -> int:
    """The native code of the matrix product kernel for ``dtype`` (f32, f64, c64 or c128)."""
    letter = blas.LETTERS[np.dtype(dtype).char]
    assembly = fixed.gemm_assembly(letter)
    return _address(assembly, lambda symbol: assembly, fixed.gemm_symbol(letter))


def _address(text: str, translate: Callable[[str], str], symbol: str | None = None) -> int:
    with _LOCK:
        found = _ADDRESSES.get(text)
        if found is not None:
            _STATS.memory_hits += 1
            return found
        start = time.perf_counter()
        digest = hashlib.sha256(text.encode()).hexdigest()
        symbol = symbol or f"fg_{digest[:32]}"
        code = _compile(text, translate, symbol)
        _ADDRESSES[text] = address = _native().load(code, symbol)
        _STATS.log.append((digest, time.perf_counter() - start))
        return address


def _compile(text: str, translate: Callable[[str], str], symbol: str) -> bytes:
    try:
        code: bytes = _native().emit(translate(symbol))
    except Exception as error:
        raise CompilerError(
            f"a generated kernel does not compile, which is a defect of funcgrad: {error}\n"
            f"Please report it with this source:\n\n{text}"
        ) from error
    _STATS.compiled += 1
    return code


def _data_offset() -> int:
    """Byte offset of the data's address in an array object, checked on an array."""
    probe = np.zeros(1)
    offset = object.__basicsize__
    found = ctypes.c_void_p.from_address(id(probe) + offset).value
    if found != probe.ctypes.data:
        raise CompilerError(
            f"NumPy {np.__version__} keeps the address of an array's data elsewhere than at byte "
            f"{offset} of the object. Use another NumPy version; without jit everything works."
        )
    return offset


@cache
def _frontend() -> Any:
    """The only place that loads Numba."""
    return importlib.import_module("funcgrad.compiler.frontend")


@cache
def _native() -> Any:
    """The only place that loads llvmlite in a process that compiles nothing."""
    return importlib.import_module("funcgrad.compiler.native")
