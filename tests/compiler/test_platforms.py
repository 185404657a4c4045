"""What is otherwise on other systems: assembly for them, and what is done where something lacks.

LLVM makes code for all processors on each of them. So what is written for others is compiled here,
though it cannot be run; and the functions that it calls have to be there.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.api import number_calls
from funcgrad.base import forking
from funcgrad.compiler import foreign, pipeline
from funcgrad.compiler.loops.library import fourier, tiles
from funcgrad.compiler.loops.library.small_layouts import InLanes, InRows
from funcgrad.compiler.loops.library.small_matrices import NAMES
from funcgrad.compiler.native import llvm_backend, llvmlite_path
from funcgrad.compiler.native.llvm_library import Library
from funcgrad.compiler.native.processor import is_x86
from funcgrad.compiler.runtime import (
    blas,
    dependencies,
    executor,
    kernel_store,
    library_calls,
    linker,
    python_calls,
    threads,
    warm_memory,
)
from funcgrad.compiler.runtime.disk_cache import DiskCache
from funcgrad.compiler.runtime.library_calls import fortran_word
from funcgrad.data import saving
from funcgrad.errors import LibraryError
from funcgrad.profiling import timed_steps
from funcgrad.scalar_tape import trace as numbers
from tests.compiler.kernels import Code, assembled, products, translated

RANDOM = np.random.default_rng(7)


# Assembly.


@dataclass(frozen=True)
class System:
    """What Python says of a system, and what LLVM calls it."""

    platform: str
    machine: str
    triple: str
    features: str


SYSTEMS = {
    "Linux, x86": System("linux", "x86_64", "x86_64-unknown-linux-gnu", "+avx,+avx2,+fma"),
    "Linux, x86, AVX-512": System("linux", "x86_64", "x86_64-unknown-linux-gnu", "+avx512f"),
    "Linux, x86, old": System("linux", "x86_64", "x86_64-unknown-linux-musl", "+sse2"),
    "Linux, ARM": System("linux", "aarch64", "aarch64-unknown-linux-gnu", "+neon"),
    "macOS, ARM": System("darwin", "arm64", "arm64-apple-macosx", "+neon"),
    "macOS, x86": System("darwin", "x86_64", "x86_64-apple-macosx", "+avx,+avx2,+fma"),
    "Windows, x86": System("win32", "AMD64", "x86_64-pc-windows-msvc", "+avx,+avx2,+fma"),
    "Windows, ARM": System("win32", "ARM64", "aarch64-pc-windows-msvc", "+neon"),
    "Linux, other": System("linux", "riscv64", "riscv64-unknown-linux-gnu", "+m,+d"),
}
OF_ALL = {"memcpy", "memset", "memmove", "malloc", "free"}
POSIX = {"pthread_self", "clock_gettime"}
HAS = {
    "linux": OF_ALL | POSIX | {"syscall"},
    "darwin": OF_ALL | POSIX,
    "win32": OF_ALL,
}


def texts() -> Iterator[tuple[str, Code]]:
    """Assembly that asks what system it is for, or calls functions of others; written anew."""
    programs = {
        "executor": executor.executor_code(kernel_store._array_offsets()),
        "disjoint": executor.Disjoint.named(),
        "loop": executor.LoopOfTables.named(),
        "branch": executor.BranchOfTables.named(),
        "library call": library_calls.ForeignStep.named(),
        "call of Python": python_calls.PythonStep.named(),
        "calls of numbers": number_calls.NumberStep.named(),
        "memory": warm_memory.WarmMemory.named(),
    }
    if sys.platform != "win32" or is_x86():  # there is no clock elsewhere
        programs["timed step"] = timed_steps._Timed.named()
    if threads.is_available():
        programs |= {"parallel": threads.Parallel.named(), "worker": threads.Worker.named()}
    for name, program in programs.items():
        yield name, translated(program)


def vectors(features: str) -> Iterator[tuple[str, Code]]:
    """Assembly that is as wide as a processor's registers."""
    lanes = tiles.inner_shape(8, features).lanes
    shape = tiles.inner_shape(4, features)
    for name, program in products("s", shape):
        yield name, assembled(program)
    for layout in (fourier.Layout(True, False), fourier.Layout(False, True)):
        kinds = fourier.Pass(8, False), fourier.Pass(3, True)
        program = fourier.Fourier.named("z", lanes, kinds, layout, layout, layout.is_beside)
        yield "Fourier", assembled(program)
    yield "small, in lanes", assembled(InLanes.named(NAMES[0], "d", lanes))
    yield "small, in rows", assembled(InRows.named(NAMES[0], "d", lanes))


def check_compiles(system: System, text: str) -> None:
    """Compile, and see whether the functions are there that are called."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(system.triple).create_target_machine(
        features=system.features, opt=0
    )
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = system.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    outside = {f.name for f in module.functions if f.is_declaration}
    assert {f for f in outside if not f.startswith("llvm.")} <= HAS[system.platform]
    if not system.triple.startswith("x86_64"):
        assert not [f for f in outside if f.startswith("llvm.x86.")]
    assert len(machine.emit_object(module)) > 100


@pytest.mark.parametrize("name", SYSTEMS)
def test_assembly_for_other_systems(name: str, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    system = SYSTEMS[name]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", system.platform)
        patch.setattr(platform, "machine", lambda: system.machine)
        found = dict(texts())
    assert ("worker" in found) == (name.startswith("Linux") and "other" not in name)
    for code in found.values():
        check_compiles(system, code.text)
    assert capfd.readouterr().err == ""


@pytest.mark.nightly
@pytest.mark.parametrize("name", SYSTEMS)
def test_vectors_of_other_processors(name: str, capfd: Any) -> None:
    for _, code in vectors(SYSTEMS[name].features):
        check_compiles(SYSTEMS[name], code.text)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("triple", "expected"),
    [
        ("x86_64-unknown-linux-gnu", "+v,-prefer-256-bit,+prefer-no-gather"),
        ("aarch64-apple-darwin", "+v"),
    ],
)
def test_features_are_those_of_the_processor(
    triple: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # LLVM complains, on the standard error stream, of features that other processors have.
    said = {"GetProcessTriple": triple, "GetHostCPUFeatures": "+v", "GetHostCPUName": "generic"}
    monkeypatch.setattr(Library, "text", lambda self, name: said[name])
    assert llvm_backend.cpu.__wrapped__()[1] == expected


# Systems without threads of our own.


def test_without_a_pool_one_thread_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pipeline, blas):
        monkeypatch.setattr(module, "is_available", lambda: False)
    monkeypatch.delenv("FUNCGRAD_BLAS", raising=False)
    x = RANDOM.standard_normal((600, 500))

    def f(x: Any) -> Any:
        return fnp.tanh(x).sum(axis=1) + (x @ x.T)[0]

    lowered = fg.jit(f, threads=8).lower(x)
    assert " parts" not in lowered.as_text()
    assert " by scipy" in lowered.as_text()
    expected = np.tanh(x).sum(axis=1) + (x @ x.T)[0]
    np.testing.assert_allclose(lowered.compile()(x), expected, rtol=1e-10, atol=1e-10)


def test_without_a_pool_own_tiles_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "is_available", lambda: False)
    blas.library.cache_clear()
    monkeypatch.setenv("FUNCGRAD_BLAS", "own")
    with pytest.raises(LibraryError) as caught:
        fg.jit(lambda x: x @ x)(np.eye(40))
    assert str(caught.value) == (
        "FUNCGRAD_BLAS=own needs threads of our own, which there are on Linux only. Use "
        "FUNCGRAD_BLAS=scipy, the default on this system."
    )


def test_the_configuration_says_that_there_is_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcgrad.api.configuration.is_available", lambda: False)
    found = fg.show_config("dicts")["threads"]
    assert (found["by default"], found["pool"]) == (1, "not available on this system")


# Systems that do not fork.


def test_locks_where_nothing_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "register_at_fork")
    called: list[int] = []
    forking.in_children(lambda: called.append(1))
    with forking.Lock():
        assert not called


# Object files that another linker brings into memory.


def test_other_systems_link_by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linker, "IS_AVAILABLE", False)
    monkeypatch.setattr(kernel_store, "_ADDRESSES", {})
    loaded: list[str] = []
    load = llvmlite_path.load
    monkeypatch.setattr(
        llvmlite_path, "load", lambda code, symbol: loaded.append(symbol) or load(code, symbol)
    )
    x = RANDOM.standard_normal(300)
    np.testing.assert_allclose(fg.jit(lambda x: fnp.sin(x) * 3 - x)(x), np.sin(x) * 3 - x)
    assert loaded


def test_c_libraries_that_are_their_own_libm(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise RuntimeError(f"{path}: cannot open shared object file")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(llvm, "load_library_permanently", refuse)
    llvmlite_path.add_math_symbols()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(llvm, "load_library_permanently", pytest.fail)
    llvmlite_path.add_math_symbols()


# Functions of NumPy and SciPy that cannot be called by native code.


@contextmanager
def forgotten(*remembered: Any) -> Iterator[None]:
    """Forget what was found out about this system, before and after a block."""
    for each in remembered:
        each.cache_clear()
    try:
        yield
    finally:
        for each in remembered:
            each.cache_clear()


MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])
CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "svd": (lambda x: np.linalg.svd(np.stack([x, x]))[1], "svd"),
    "sort": (lambda x: np.sort(x, axis=1), "sort"),
}


def agrees_by_numpy(name: str, is_numpys: bool) -> None:
    function, operation = CALLS[name]
    lowered = fg.jit(lambda x: function(x) + 0).lower(MATRIX)
    assert (f"numpy: {operation}" in lowered.as_text()) == is_numpys
    np.testing.assert_allclose(lowered.compile()(MATRIX), function(MATRIX), rtol=1e-12)


@pytest.mark.parametrize("machine", ["riscv64", "static"])
def test_processors_whose_flags_are_not_known(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Native code of this processor, like what runs it.
    kernel_store.code_address(python_calls.PythonStep.named())
    if machine == "static":  # no function of the C library can be found
        monkeypatch.setattr(foreign.ctypes, "CDLL", lambda name: object())
    else:
        monkeypatch.setattr(platform, "machine", lambda: machine)
    with forgotten(foreign.flag_words, foreign.ufunc_loop):
        assert foreign.flag_words() == (0, 0, 0, 0)
        agrees_by_numpy("svd", True)


@pytest.mark.parametrize(
    ("system", "machine", "every", "invalid"),
    [
        ("linux", "x86_64", 0x3D, 1),
        ("darwin", "arm64", 0x1F, 1),
        ("win32", "AMD64", 0x1F, 0x10),
    ],
)
def test_the_bits_of_flags(
    system: str, machine: str, every: int, invalid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    library = ctypes.CDLL(None)
    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "CDLL", lambda name: asked.append(name) or library)
        patch.setattr(sys, "platform", system)
        patch.setattr(platform, "machine", lambda: machine)
        found = foreign.flag_words.__wrapped__()
    assert found[2:] == (every, invalid)
    assert asked == ["ucrtbase" if system == "win32" else None]


def test_a_numpy_without_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("numpy._core._multiarray_umath._ARRAY_API")
    with forgotten(foreign.array_interface, foreign.sort_function):
        assert foreign.sort_function(np.dtype(float), False, False) == 0
        agrees_by_numpy("sort", True)
        assert warm_memory.handler.__wrapped__() is None


def test_libraries_of_linear_algebra_that_are_not_openblas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(foreign.ctypes, "CDLL", lambda file: object())
    assert foreign._asks_for_threads.__wrapped__(foreign.LAPACK_MODULE) is None


def test_words_of_fortran_where_the_first_byte_is_the_highest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fortran_word(7).to_bytes(8, "little")[:4] == (7).to_bytes(4, "little")
    monkeypatch.setattr(sys, "byteorder", "big")
    assert fortran_word(7).to_bytes(8, "big")[:4] == (7).to_bytes(4, "big")
    assert fortran_word("U").to_bytes(8, "big")[:1] == b"U"


# Libraries of products that packages and systems have.


@dataclass
class File:
    """As `importlib.metadata` knows the files of a package."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def suffix(self) -> str:
        return self.path.suffix

    def locate(self) -> Path:
        return self.path


@pytest.mark.parametrize("file", ["libmkl_rt.so.2", "mkl_rt.2.dll", "libmkl_rt.2.dylib"])
def test_files_of_packages_and_systems(
    file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = [File(tmp_path / x) for x in ("mkl_rt.py", "libmkl_core.so", file)]
    monkeypatch.setattr(metadata, "files", lambda name: files if name == "mkl" else None)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: f"system's {name}")
    assert list(blas._installed("mkl")) == [str(tmp_path / file), "system's mkl_rt"]
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    assert list(blas._installed("mkl")) == [str(tmp_path / file)]

    def absent(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", absent)
    assert list(blas._installed("mkl")) == []


# The clock of a thread.


def test_systems_that_do_not_know_the_time_of_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "pthread_getcpuclockid", raising=False)
    emission = llvm_backend.Emission("define void @f() {\n  ret void\n}\n")
    assert len(emission.result()) > 100
    assert emission._clock is None
    assert 50 < emission._seconds(time.monotonic() - 60) < 600


# Interpreters of other kinds.


def test_interpreters_without_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    assert number_calls.is_usable.__wrapped__() == (sys.implementation.name == "cpython")
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert not number_calls.is_usable.__wrapped__()
    monkeypatch.setattr("funcgrad.api.calls.is_usable", lambda: False)
    values = [float(i) for i in range(40)]
    f = fg.jit(lambda xs: [x * 2 + 1 for x in xs])
    for _ in range(3):
        assert f(values) == [x * 2 + 1 for x in values]
    monkeypatch.setattr(numbers, "_MAY_KEEP", False)
    kept: list[Any] = []
    for x in (0.5, 1.5):
        assert fg.grad(lambda x: kept.append(x) or np.sin(x) * x)(x) == pytest.approx(
            np.sin(x) + x * np.cos(x)
        )
    assert kept[0] is not kept[1]


# Files.


def test_systems_without_owners_of_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # As Windows: no owners, and no flags for what must not be opened.
    monkeypatch.delattr(os, "getuid")
    for name in ("_NO_LINK", "_BINARY"):
        monkeypatch.setattr(f"funcgrad.compiler.runtime.disk_cache.{name}", 0)
    cache = DiskCache(tmp_path / "kernels")
    key = "0" * 64
    cache.write(key, "source", b"code", {"cpu": "here"})
    assert cache.read(key, {"cpu": "here"}) == b"code"
    assert cache.read(key, {"cpu": "elsewhere"}) is None
    (cache.folder / f"{key}.o").write_bytes(b"other")
    assert cache.read(key, {"cpu": "here"}) is None
    assert cache.damaged == 2


def test_systems_that_have_no_number_of_their_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dependencies, "_BOOT", str(tmp_path / "boot_id"))
    assert dependencies.installation() is None


def test_systems_that_cannot_flush_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "O_DIRECTORY")
    saving.save(tmp_path / "tree.npz", {"x": MATRIX})
    np.testing.assert_array_equal(saving.load(tmp_path / "tree.npz")["x"], MATRIX)
