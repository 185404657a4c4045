"""Native code below the code generator: kernels, the executor, matrix products, and their cache.

`compile_kernels` gives the addresses of the native code of functions of the loop language, from
memory, else from disk, else by compiling them (`native.translate`, then `native.llvm_backend`).
Importing this file loads neither: a process that finds all its kernels on disk never imports
llvmlite.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad.base.digests import digest
from funcgrad.base.forking import Lock, cached_property, in_children
from funcgrad.base.imports import load
from funcgrad.base.records import dataclass
from funcgrad.compiler import machine
from funcgrad.compiler.abi import ABI, CONTROL_WORDS, OWN_WORD
from funcgrad.compiler.loops.language import Function, NamedFunction
from funcgrad.compiler.loops.library import tiles
from funcgrad.compiler.runtime import threads
from funcgrad.compiler.runtime.dependencies import PLANNERS, SOURCES, installation, sources_digest
from funcgrad.compiler.runtime.disk_cache import DiskCache, from_home, open_default, size_limit
from funcgrad.compiler.runtime.executor import executor_code as executor_program
from funcgrad.compiler.runtime.linker import link
from funcgrad.compiler.runtime.releases import is_by_numba
from funcgrad.errors import CompilerError


@dataclass
class Stats:
    """Origins of kernels since the process started."""

    compiled: int = 0
    loaded_from_disk: int = 0
    memory_hits: int = 0
    damaged: int = 0
    """Files of the disk cache that were unusable; their kernels were compiled again."""
    log: list[tuple[str, float]] = field(default_factory=list)
    """Text of every kernel that was compiled or loaded, and its seconds: translation and LLVM."""


_STATS = Stats()
_ADDRESSES: dict[str, int] = {}
"""Addresses of code, by the digest of its name."""
_SIZES: dict[str, int] = {}
_LOCK = Lock()
"""Held while kernels are compiled; a child of a fork compiles what it needs itself."""


def stats() -> Stats:
    """Counters of this process."""
    return _STATS


class _Tallies(threading.local):
    """The counters that are open in this thread."""

    def __init__(self) -> None:
        self.open: list[Stats] = []


_TALLIES = _Tallies()


@contextmanager
def counting() -> Iterator[Stats]:
    """Counters of what this thread asks for within a block."""
    tally = Stats()
    _TALLIES.open.append(tally)
    try:
        yield tally
    finally:
        # Others may count the same: a finalizer that compiles within a compilation.
        _TALLIES.open[:] = [other for other in _TALLIES.open if other is not tally]


def _count(origin: str, is_kernel: bool = True) -> None:
    """Count in this process; for the programs that are being compiled, kernels alone."""
    for tally in (_STATS, *(_TALLIES.open if is_kernel else ())):
        setattr(tally, origin, getattr(tally, origin) + 1)


def compile_kernels(
    functions: Sequence[Function], codes: Sequence[NamedFunction] = ()
) -> dict[str, int]:
    """The native code of kernels; what has to be compiled is compiled side by side.

    Args:
        functions: The kernels.
        codes: What else the program is going to ask for by `code_address`. What is brief comes
            last: LLVM is busy with the others while that is translated.
    Returns: For the text of every kernel the address of ``int64 kernel(int64* slots, int64*
        args)``, valid until the process ends.
    Raises: CompilerError: A kernel does not compile.
    """
    missing = [function for function in functions if function.digest not in _ADDRESSES]
    for _ in range(len(functions) - len(missing)):
        _count("memory_hits")
    # The longest first, so that none is left to be compiled alone when the others are there.
    missing.sort(key=lambda function: len(function.text), reverse=True)
    named = [code for code in codes if code.digest not in _ADDRESSES]
    named.sort(key=lambda code: code.is_brief)
    n_long = sum(not code.is_brief for code in named)
    builds = [*map(_build_of, [*named[:n_long], *missing, *named[n_long:]])]
    if builds:
        _build(builds)
    return {function.text: _ADDRESSES[function.digest] for function in functions}


def load_kept(kernels: Sequence[str], codes: Iterable[str]) -> dict[str, int] | None:
    """Addresses of code that is in memory or on disk, by digest; nothing if some is in neither.

    Args:
        kernels: Digests of the names of kernels.
        codes: Those of other functions.
    """
    with _LOCK:
        names = [*kernels, *codes]
        missing = [_Stored(name, k < len(kernels)) for k, name in enumerate(names)]
        missing = [code for code in missing if code.digest not in _ADDRESSES]
        if not all(code.is_read() for code in missing):
            return None
        for _ in range(len(kernels) - sum(code.is_kernel for code in missing)):
            _count("memory_hits")
        for code in missing:
            code.count()
            code.link()
        return {name: _ADDRESSES[name] for name in names}


def kernel_with_lines(function: Function, lines: Sequence[int]) -> LinedBuild | None:
    """The same native code with a table of its lines, compiled once more for that.

    Args:
        function: The kernel.
        lines: For every statement, as it is translated, the number that the table has of it. Where
            an instruction is of two, it tells the lower one.
    """
    if _is_by_numba():
        return None
    build = LinedBuild(function, tuple(lines))
    if build.text not in _LINED:
        _build([build])
        _LINED[build.text] = build
    return _LINED[build.text]


_LINED: dict[str, LinedBuild] = {}


def digests_by_address() -> dict[int, str]:
    """Names by which `load_kept` knows code, by its address."""
    return {address: name for name, address in list(_ADDRESSES.items())}


def code_size(texts: Iterable[str]) -> int:
    """Bytes of the object files of kernels that were compiled or loaded."""
    return sum(_SIZES[digest(text.encode())] for text in texts)


def loaded() -> tuple[int, int]:
    """How many kernels and other functions this process has, and the bytes of their object files.

    They stay until it ends: programs and threads know their addresses.
    """
    return len(_SIZES), sum(_SIZES.values())


def code_address(code: NamedFunction) -> int:
    """The native code of a program that is written down."""
    if code.digest not in _ADDRESSES:
        _build([_build_of(code)])
    return _ADDRESSES[code.digest]


_COPIES = itertools.count()


def own_copy(code: NamedFunction, word: int) -> int:
    """The address of a copy of native code that nobody else is given.

    Args:
        code: The code, which has `abi.OWN_WORD` as a constant in memory.
        word: The number that stands there in the copy.
    """
    with _LOCK:
        build = _Build(code)
        build.begin()
        found = build.object_file()
        placeholder, name = struct.pack("=Q", OWN_WORD), build.symbol.encode()
        if found.count(placeholder) != 1:
            raise CompilerError(f"{code.name} has no place for a word of its own.")
        symbol = f"fg_{next(_COPIES):0{len(name) - 3}d}"
        copy = found.replace(placeholder, struct.pack("=Q", word)).replace(name, symbol.encode())
        return link(copy, symbol) or _llvmlite_path().load(copy, symbol)


def _build_of(function: Function) -> _Build:
    is_by_numba = not function.is_brief and _is_by_numba()
    return (_NumbaBuild if is_by_numba else _Build)(function)


@cache
def executor_code() -> NamedFunction:
    """``int64 run(int64* slots, int64* table, int64 n_objects)``."""
    return executor_program(_array_offsets())


def machine_facts() -> dict[str, str]:
    """Dependencies of object code: the version of its generator, and the processor."""
    return (_llvmlite_path() if _is_by_numba() else _native()).facts()


@cache
def tile_shape(dtype: Any) -> tiles.Shape:
    """The inner loop of the products of matrices of ``dtype``."""
    return tiles.inner_shape(np.zeros((), dtype).real.itemsize, _machine()["features"])


def vectors_held() -> int:
    """How many vectors the registers of this processor hold."""
    return machine.vectors_held(_machine()["features"])


def parallel_address() -> int:
    """The native code of a step whose parts run on several threads."""
    return code_address(threads.Parallel.named())


def pool_address(n_threads: int) -> int:
    """The pool, with workers for so many threads."""
    found = threads.pool(code_address(threads.Worker.named()))
    found.grow(n_threads - 1)
    return found.address


@cache
def control_words() -> Any:
    """Words by which programs call Python, and ask it for signals: `abi.CONTROL_WORDS`."""
    functions = {
        "ensure": ctypes.pythonapi.PyGILState_Ensure,
        "release": ctypes.pythonapi.PyGILState_Release,
        "check": ctypes.pythonapi.PyErr_CheckSignals,
        "fetch": ctypes.pythonapi.PyErr_Fetch,
        "number": ctypes.pythonapi.PyLong_FromVoidPtr,
        "call": ctypes.pythonapi.PyObject_CallOneArg,
        "drop": ctypes.pythonapi.Py_DecRef,
    }
    words = {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in functions.items()}
    words["main"] = threading.main_thread().ident or 0
    return np.array([words[name] for name in CONTROL_WORDS], np.uint64)


def _forget_main_thread() -> None:
    """A child's main thread is the one that forked."""
    if control_words.cache_info().currsize:
        control_words()[CONTROL_WORDS.index("main")] = threading.main_thread().ident or 0


in_children(_forget_main_thread)


def raised(words: Any) -> BaseException:
    """The exception that ``PyErr_Fetch`` gave, whose references are given up.

    Args: words: Its type, value and traceback, in memory.
    """
    restore = ctypes.pythonapi["PyErr_Restore"]
    restore.restype, restore.argtypes = None, [ctypes.c_void_p] * 3
    try:
        restore(*(int(word) or None for word in words))
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@cache
def executor() -> Callable[[int, int, int], int]:
    """The executor as a function of the addresses of slots and table and the number of objects.

    The call releases the interpreter's lock.
    """
    word = ctypes.c_int64
    kind = ctypes.CFUNCTYPE(word, ctypes.c_void_p, ctypes.c_void_p, word)
    return kind(executor_address())


def executor_address() -> int:
    """Address of the executor."""
    return code_address(executor_code())


def _build(builds: Sequence[_Build]) -> None:
    """Bring several texts into memory, as many at a time as there are processors."""
    with _LOCK:
        waiting: deque[_Build] = deque()
        for build in builds:
            if build.digest in _ADDRESSES:  # by another thread, meanwhile
                _count("memory_hits", build.is_kernel)
                continue
            if len(waiting) == _N_AT_ONCE:
                waiting.popleft().finish()
            build.begin()
            waiting.append(build)
        for build in waiting:
            build.finish()


# More than there are processors: the first takes longest, and translation is not to wait for it.
_N_AT_ONCE = 4 * (os.cpu_count() or 1)


class _Stored:
    """Code that may be on disk.

    Args:
        digest: Of its name.
        is_kernel: Whether it counts among the kernels of a program.

    Attributes:
        disk: The folder that it is looked for in.
        code: The object file.
        seconds: How long it took to come here.
    """

    def __init__(self, digest: str, is_kernel: bool) -> None:
        self.digest = digest
        self.symbol = f"fg_{digest[:32]}"
        self.is_kernel = is_kernel
        self.seconds = 0.0
        self.disk: DiskCache | None = None
        self.code: bytes | None = None

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Dependencies of its object file."""
        return {**_environment(), "source": self.digest, "symbol": self.symbol}

    @cached_property
    def key(self) -> str:
        """Name of its files on disk."""
        return digest(repr(self.facts).encode())

    def is_read(self) -> bool:
        """Read the object file; whether it was there."""
        self.disk = _disk()
        # Into a new folder, keys are looked for when LLVM is at work on what is to be kept.
        if self.disk is not None and (_noted() is not None or not self.disk.is_empty):
            damaged = self.disk.damaged
            self.code = self.disk.read(self.key, self.facts)
            _STATS.damaged += self.disk.damaged - damaged
        return self.code is not None

    def count(self) -> None:
        """Count it among what was on disk."""
        _count("loaded_from_disk", self.is_kernel)

    def link(self) -> None:
        """Link the object file into the process."""
        assert self.code is not None
        _SIZES[self.digest] = len(self.code)
        address = link(self.code, self.symbol)
        _ADDRESSES[self.digest] = address or _llvmlite_path().load(self.code, self.symbol)


class _Build(_Stored):
    """A kernel, or a program that is written down, on its way to native code.

    Args:
        function: What it does.
        text: What the code is looked up by, in memory and, as a digest, on disk, if it is no kernel
            of a program; by default the function's name.
    """

    def __init__(self, function: Function, text: str = "") -> None:
        self.is_program = isinstance(function, NamedFunction)
        name = digest(text.encode()) if text else function.digest
        super().__init__(name, not (self.is_program or text))
        self.function = function
        self.text = text or function.name

    def _emission(self) -> Any:
        """Start to make the object file."""
        native = _native()
        assembly, is_in_vectors = _frontend().translate(self.function, self.symbol)
        effort = "VECTORS" if is_in_vectors else "ALL"
        if self.is_program:
            effort = "BRIEF" if self.function.is_brief else "TILES"
        way = _llvmlite_path() if _is_by_numba() else None
        return native.Emission(assembly, native.Effort[effort], way)

    def begin(self) -> None:
        """Read the object file from disk if it is there, else start to compile it."""
        start = time.perf_counter()
        if self.is_read():
            self.count()
        else:
            with self._reported():
                self.emission = self._emission()
        self.seconds += time.perf_counter() - start

    def object_file(self) -> bytes:
        """Wait for the object file, and keep it."""
        if self.code is None:
            with self._reported():
                if self.disk is not None:
                    _ = self.key  # while LLVM is at work
                self.code = self.emission.result()
                self.seconds += self.emission.seconds
            _count("compiled", self.is_kernel)
            if self.disk is not None:
                self.disk.write(self.key, self.function.text, self.code, self.facts)
        return self.code

    def finish(self) -> None:
        """Wait for the object file, keep it, and link it into the process."""
        self.code = self.object_file()
        start = time.perf_counter()
        self.link()
        self.seconds += time.perf_counter() - start
        _STATS.log.append((self.text, self.seconds))

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Errors as a defect of funcgrad, with the text that caused it."""
        try:
            yield
        except (CompilerError, MemoryError, OSError, RecursionError):
            raise  # they say nothing of the text: the machine, or the time that a program gives
        except Exception as error:
            raise CompilerError(
                f"a generated kernel does not compile, which is a defect of funcgrad: {error}\n"
                f"Please report it with this source:\n\n{self.function.text}"
            ) from error


class LinedBuild(_Build):
    """A kernel whose object file tells the lines of its instructions.

    Attributes:
        assembly: What it is made of, in which lines are metadata.
    """

    def __init__(self, function: Function, lines: tuple[int, ...]) -> None:
        super().__init__(function, f"# lines {lines}\n{function.name}")
        self.assembly, self.is_in_vectors = _frontend().translate(function, self.symbol, lines)

    def _emission(self) -> Any:
        native = _native()
        native.keep_lines()
        effort = native.Effort.VECTORS if self.is_in_vectors else native.Effort.ALL
        return native.Emission(self.assembly, effort)

    @property
    def address(self) -> int:
        """Address of its code."""
        return _ADDRESSES[self.digest]


class _NumbaBuild(_Build):
    """A kernel on its way to native code by `numba.njit`; nothing of it is kept on disk."""

    def begin(self) -> None:
        """Compile it."""
        start = time.perf_counter()
        with self._reported():
            self.compiled = _numba_path().compile_kernel(self.function)
        self.seconds += time.perf_counter() - start

    def finish(self) -> None:
        """Let it live as long as the process."""
        _count("compiled", self.is_kernel)
        _BY_NUMBA.append(self.compiled)
        _SIZES[self.digest] = 0  # Numba does not tell
        _ADDRESSES[self.digest] = self.compiled.address
        _STATS.log.append((self.text, self.seconds))


_BY_NUMBA: list[Any] = []
"""Functions of Numba whose addresses programs know."""


def _is_by_numba() -> bool:
    """Whether kernels are compiled by Numba, and LLVM is called as llvmlite promises it."""
    return is_by_numba(_llvmlite_version)


@cache
def _llvmlite_version() -> str:
    known = _noted()
    return str(_whole(load("llvmlite")).__version__ if known is None else known["llvmlite"])


@cache
def _noted() -> dict[str, Any] | None:
    """Record of `_environment` in the disk cache."""
    disk = _disk()
    key = None if disk is None else _installation()
    return None if disk is None or key is None else disk.recall(key)


def recalled(key: str) -> dict[str, Any] | None:
    """Facts of this machine that were `noted`."""
    disk = _disk()
    return None if disk is None else disk.recall(key)


def noted(key: str, facts: dict[str, Any]) -> None:
    """Keep facts that take long to find beside the kernels, if these are kept."""
    disk = _disk()
    if disk is not None:
        disk.note(key, facts)


_installation = cache(installation)


@cache
def _machine() -> dict[str, Any]:
    """The facts of the machine."""
    known = _noted()
    if known is not None:
        return known
    _native()
    _frontend()  # while LLVM's library is read
    return machine_facts()


@cache
def _environment() -> dict[str, Any]:
    """Dependencies of the object code of a given source besides the source."""
    known = _noted()
    if known is not None:
        return {name: fact for name, fact in known.items() if name != _PLANNER}
    facts = {
        "abi": ABI,
        "python": sys.implementation.cache_tag,
        "translator": sources_digest(*SOURCES),
        **_machine(),
    }
    disk, key = _disk(), _installation()
    if disk is not None and key is not None:
        disk.note(key, {**facts, _PLANNER: _planner()})
    return facts


_PLANNER = "planner"


@cache
def _planner() -> str:
    """Digest of the sources that plans follow from, besides those of object code."""
    known = _noted()
    return sources_digest(*PLANNERS) if known is None else known[_PLANNER]


def knows_plans() -> bool:
    """Whether a plan of another process may be on disk."""
    return _noted() is not None and not _is_by_numba()


def plan_key(what: str) -> str | None:
    """The name that a plan has on disk, if plans are kept there.

    Args: what: The program, and what else it is planned for.
    """
    if _is_by_numba() or _disk() is None or _installation() is None:
        return None
    return digest(repr((_environment(), _planner(), np.__version__, what)).encode())


class _Disk:
    """The disk cache of this process; opened when the first kernel is needed."""

    cache: DiskCache | None = None
    is_open = False


def _disk() -> DiskCache | None:
    if not _Disk.is_open:
        _Disk.cache = open_default()
        _Disk.is_open = True
    return _Disk.cache


def cache_dir() -> str | None:
    """The folder of compiled kernels, or ``None`` where they are not kept on disk."""
    disk = _disk()
    return None if disk is None else str(disk.folder)


def is_cache_read_only() -> bool:
    """Whether there is a folder of compiled kernels to which nothing can be added."""
    disk = _disk()
    return disk is not None and disk.is_read_only


def set_cache_dir(path: str | Path | None) -> None:
    """Keep compiled kernels in another folder from now on.

    Args: path: The folder, created if it does not exist; ``None`` keeps nothing on disk.
    Raises: CacheError: The folder cannot be used, or others could write to it.
    """
    with _LOCK:
        _Disk.cache = None if path is None else DiskCache(from_home(path), size_limit())
        _Disk.is_open = True


def cache_size() -> int:
    """Size of the folder of compiled kernels, in bytes."""
    disk = _disk()
    return 0 if disk is None else disk.size()


def cache_clear() -> None:
    """Remove all compiled kernels from disk; this process keeps those it has loaded."""
    disk = _disk()
    if disk is not None:
        disk.clear()


def _array_offsets() -> dict[str, int]:
    """Byte offsets of the fields of array objects, checked on an array.

    The layout is part of NumPy's stable binary interface (``PyArrayObject_fields``).
    """
    places = {"CLASS": -1, "DATA": 0, "NDIM": 1, "SHAPE": 2, "DTYPE": 5, "FLAGS": 6}
    size = ctypes.sizeof(ctypes.c_void_p)
    offsets = {name: object.__basicsize__ + k * size for name, k in places.items()}
    probe = np.zeros((2, 3))

    def field_at(name: str, kind: Any) -> Any:
        return kind.from_address(id(probe) + offsets[name]).value

    addresses = [field_at(name, ctypes.c_void_p) for name in ("CLASS", "DATA", "DTYPE", "SHAPE")]
    numbers = [field_at(name, ctypes.c_int32) for name in ("NDIM", "FLAGS")]
    lengths = addresses.pop()
    found = *addresses, *numbers, lengths and list((ctypes.c_int64 * 2).from_address(lengths))
    expected = id(np.ndarray), probe.ctypes.data, id(probe.dtype), 2, probe.flags.num, [2, 3]
    if found != expected:
        raise CompilerError(
            f"NumPy {np.__version__} keeps the fields of arrays elsewhere than at the offsets of "
            "its stable binary interface. Use another NumPy version; without jit everything works."
        )
    return offsets


@cache
def _frontend() -> Any:
    """Load the translation of kernels, and llvmlite's writer of LLVM assembly."""
    return _whole(load("funcgrad.compiler.native.translate"))


@cache
def _numba_path() -> Any:
    """Load Numba: the only place of the compiler that does."""
    return _whole(load("funcgrad.compiler.native.numba_path"))


@cache
def _native() -> Any:
    """Load LLVM: the only place that does in a process that compiles nothing."""
    native = _whole(load("funcgrad.compiler.native.llvm_backend"))
    if not _is_by_numba():
        native.prepare()
    return native


@cache
def _llvmlite_path() -> Any:
    """Load llvmlite's Python, where LLVM is called as it promises."""
    return _whole(load("funcgrad.compiler.native.llvmlite_path"))


def _whole(module: Any) -> Any:
    """Return a module of the compiler, unless this thread is in the middle of importing it."""
    if getattr(module.__spec__, "_initializing", False):
        raise CompilerError(
            "a compiled function was called by a module that the compiler imports. A file of yours "
            "has the name of a module of Python or of a library, such as glob.py: rename it."
        )
    return module
