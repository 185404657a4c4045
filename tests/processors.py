"""``python -m tests.processors``: compiled programs on processors that this machine is not.

On ARM, under an emulator: programs are compiled for it here, object code and tables of the executor
are linked with a small program in C, which runs them in memory that is as it would be there, and
what they leave is compared with NumPy. On x86-64 with fewer features: the suite's numeric tests
run in processes in which LLVM is told that this processor has none but AVX2's, or SSE2's.

What is missing (Debian: ``qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross``) is named, and
what needs it is skipped.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import llvmlite.binding as llvm
import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.compiler import abi
from funcgrad.compiler.native import llvm_backend
from funcgrad.compiler.runtime import (
    kernel_store,
)
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.reports import Report

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
VARIABLE = "FUNCGRAD_TESTS_PROCESSOR"  # of `older_processor`
OLDER = {"AVX2": "haswell", "SSE2": "x86-64"}
"""What LLVM calls processors that have these features and no later ones."""

NUMERIC = (
    "tests/compiler/test_numerics.py",
    "tests/compiler/test_modes.py",
    "tests/compiler/test_small_matrices.py",
    "tests/compiler/test_products.py",
    "tests/compiler/test_fourier.py",
    "tests/compiler/test_sums.py",
    "tests/compiler/test_vecmath.py",
    "tests/compiler/test_strided.py",
    "tests/compiler/test_vectors.py",
)


def missing() -> list[str]:
    """The tools that are not installed."""
    return [name for name in (COMPILER, EMULATOR) if shutil.which(name) is None]


# Fewer features on this processor.


def run_older(level: str, tests: Sequence[str]) -> int:
    """Run tests on a processor that has no more than some features."""
    print(f"== {level}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.older_processor", *tests]
    return subprocess.run(command, env=os.environ | {VARIABLE: OLDER[level]}).returncode


# Programs.

R = np.random.default_rng(5)
X = R.standard_normal((40, 30))
A = R.standard_normal((70, 70))
S = A @ A.T + 70 * np.eye(70)
FEW = np.stack([S[:12, :12] / 50] * 9)
HALF = np.float32(0.5)


def _both(x: Any, y: Any) -> Any:
    return x * HALF, y * 0.5


def _steps(x: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        return fnp.tanh(c) * 0.5 + y, c.sum()

    return fg.lax.scan(step, x[0], x)


def _grows(x: Any) -> Any:
    return fg.lax.while_loop(lambda x: x.sum() < 1e4, lambda x: x * 1.5 + 1, fnp.abs(x))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "functions": (lambda x: fnp.tanh(x) * fnp.sin(x) + fnp.exp(x) / (1 + x * x), (X,)),
    "single precision": (lambda x: fnp.exp(x) * fnp.cos(x) - fnp.log1p(x * x), (X.astype("f"),)),
    "integers": (lambda x: (x * 7 // 3 % 11, x >> 2, fnp.maximum(x, 3)), (np.arange(-50, 50),)),
    "conversions": (lambda x: (x.astype(int), x.astype("f"), x > 0.5), (X * 9,)),
    "reductions": (lambda x: (x.sum(), x.sum(0), x.max(1), x.argmin(0), x.mean()), (X,)),
    "long sums": (lambda x: x.sum(), (R.standard_normal(20_000).astype("f"),)),
    "softmax": (lambda x: fnp.exp(x - x.max(1)[:, None]) / fnp.exp(x).sum(1)[:, None], (X,)),
    "complex": (lambda x: (x * x.conj() + 1j, fnp.abs(x)), (X + 1j * X[::-1],)),
    "products": (lambda a: (a @ a, a[:3] @ a, a @ a[0], a.T @ a), (A,)),
    "products in single": (lambda a: (a @ a, a[:2] @ a), (A.astype("f"),)),
    "complex products": (lambda a: a @ a.T, (A + 1j * A[::-1],)),
    "large products": (lambda a: a @ a, (R.standard_normal((150, 150)),)),
    "cholesky": (fnp.linalg.cholesky, (FEW,)),
    "solve": (lambda a: fnp.linalg.solve(a, a[:, :, :2]), (FEW + 0j,)),
    "one solve": (lambda a: fnp.linalg.solve(a, a[0]), (S[:30, :30],)),
    "inverse in single": (fnp.linalg.inv, (FEW.astype("f"),)),
    "determinant": (lambda a: (fnp.linalg.det(a), fnp.linalg.slogdet(a)[1]), (FEW,)),
    "transforms": (
        lambda x: fnp.fft.fft(x, axis=0),
        (R.standard_normal((480, 32)) + 1j * R.standard_normal((480, 32)),),
    ),
    "transforms of rows": (
        lambda x: fnp.fft.ifft(x, axis=1),
        ((R.standard_normal((32, 480)) + 0j).astype("F"),),
    ),
    "scan": (_steps, (X,)),
    "while": (_grows, (X[0],)),
    "wide loop": (lambda x: fg.lax.fori_loop(0, 5, lambda i, c: c @ c / 30 + i, x), (A[:30, :30],)),
    "branches": (lambda x: fg.lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, x), (X,)),
    "lanes": (fg.vmap(lambda x: fg.lax.fori_loop(0, 4, lambda i, c: c * c - 0.5, x)), (X / 4,)),
    "lookups": (lambda x, i: (x[i], fnp.take(x, i, axis=1)), (X, np.array([3, 0, 7, 3]))),
    "scatters": (
        lambda x, i: fnp.zeros(9).at[i].add(x),
        (X.ravel(), R.integers(0, 9, X.size)),
    ),
    "cumulative": (lambda x: (fnp.cumsum(x, 0), fnp.cumprod(x, 1)), (X,)),
    "gradient": (fg.grad(lambda x: (fnp.tanh(x @ x.T) * x.sum()).mean()), (X,)),
    "random": (lambda k: fg.random.normal(fg.random.PRNGKey(3), (50,)) + k, (1.0,)),
    "subnormal": (_both, (np.full(9, 1e-40, "f"), np.full(9, 1e-310))),
}

EXPECTED: dict[str, Callable[..., Any]] = {
    "branches": lambda x: x + 1 if x.sum() > 0 else x * 2,
    "scatters": lambda x, i: np.bincount(i, x, 9),
    "subnormal": lambda x, y: (x * 0, y * 0.5),
}
"""What is not what funcgrad computes eagerly, by NumPy."""


# ARM.


class _Compiling:
    """Compiles for ARM; nothing of it can be called here.

    Attributes:
        codes: Object files, by the names of their functions.
    """

    def __init__(self) -> None:
        self.codes: dict[str, bytes] = {}
        self._addresses: dict[str, int] = {}

    @contextmanager
    def patched(self) -> Iterator[None]:
        """While this lasts, everything is compiled for ARM."""
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        facts = kernel_store._environment() | {"features": "+neon"}
        llvm_backend._await_running()  # which leave their generators behind
        cached = (
            kernel_store.executor_code, kernel_store.tile_shape, kernel_store.executor,
        )  # fmt: skip
        with ExitStack() as stack:
            for patch in (
                mock.patch.object(platform, "machine", return_value="aarch64"),
                mock.patch.object(kernel_store, "_environment", return_value=facts),
                mock.patch.object(kernel_store, "_machine", return_value=facts),
                mock.patch.object(kernel_store, "_ADDRESSES", {}),
                mock.patch.object(kernel_store, "_disk", return_value=None),
                mock.patch.object(kernel_store, "link", self._link),
                mock.patch.object(llvm_backend, "_IDLE", type(llvm_backend._IDLE)(list)),
                mock.patch.object(llvm_backend, "target_machine", self._machine),
            ):
                stack.enter_context(patch)
            for each in cached:
                each.cache_clear()
                stack.callback(each.cache_clear)
            yield

    def _machine(self, selection: int = llvm_backend.SELECTION) -> Any:
        target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
        return target.create_target_machine(
            cpu="generic", features="+neon", opt=selection, reloc="static", codemodel="small"
        )

    def _link(self, code: bytes, symbol: str) -> int:
        if symbol not in self._addresses:
            self._addresses[symbol] = 0x7E57_0000_0000_0000 + len(self._addresses)
            self.codes[symbol] = code
        return self._addresses[symbol]

    def symbol_at(self, address: int) -> int | None:
        """The number of a function."""
        number = address - 0x7E57_0000_0000_0000
        return number if 0 <= number < len(self.codes) else None


@dataclass
class _Image:
    """The memory of a call, as the emulated program is to have it."""

    arrays: list[np.ndarray] = field(default_factory=list)

    def add(self, array: np.ndarray) -> int:
        self.arrays.append(np.atleast_1d(np.ascontiguousarray(array)))
        return len(self.arrays) - 1

    def place_of(self, word: int) -> tuple[int, int] | None:
        """The region that an address is in, and how far."""
        for number, array in enumerate(self.arrays):
            distance = word - array.__array_interface__["data"][0]
            if 0 <= distance <= array.nbytes:
                return number, distance
        return None


def _packed(
    compiling: _Compiling, executable: Executable, args: Sequence[Any]
) -> tuple[bytes, Any]:
    """A call as the harness reads it, and the types of its results."""
    if not executable.is_native:
        raise ValueError(f"only NumPy runs a part of it:\n{Report(executable.plan).text()}")
    frame = executable.take_frame()
    image = _Image()
    step_tables = [executable.table, *executable.nested]
    slots = image.add(frame.slots)
    tables = [image.add(each.words.view(np.int64)) for each in step_tables]
    inputs = [
        np.array(x, dtype).reshape(shape)
        for x, (shape, dtype) in zip(args, executable.in_types, strict=True)
    ]
    results = [np.zeros(shape, dtype) for shape, dtype in executable.out_types]
    objects = [image.add(x) for x in (*inputs, *results)]
    others = [frame.arena, kernel_store.control_words()]
    others += [array for _, array in executable._constants]
    others += [array for each in step_tables for step in each.steps for array in step.held]
    for array in others:
        image.add(array)
    for k, number in enumerate(objects):
        image.arrays[slots][abi.FIRST_SLOT + k] = image.arrays[number].ctypes.data
    moves, calls = [], []
    for region in (slots, *tables):
        for place, word in enumerate(image.arrays[region].tolist()):
            symbol = compiling.symbol_at(word)
            target = image.place_of(word) if symbol is None and word > 1 << 32 else None
            if symbol is not None:
                calls.append((region, place, symbol))
            elif target is not None:
                moves.append((region, place, *target))
    head = [len(image.arrays), len(moves), len(calls), slots, tables[0], len(results)]
    words = [*head, *objects[len(inputs) :], *(x.nbytes for x in image.arrays)]
    words += [w for row in (*moves, *calls) for w in row]
    data = b"".join(x.tobytes() for x in image.arrays)
    return struct.pack(f"<{len(words)}q", *words) + data, results


HARNESS = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t word;
extern void *const symbols[];
word fg_run(word *slots, word *table, word n_objects);

static word get(FILE *file) {
    word found;
    if (fread(&found, 8, 1, file) != 1) abort();
    return found;
}

static uint64_t fpcr(void) {
    uint64_t found;
    __asm__ volatile("mrs %0, fpcr" : "=r"(found));
    return found;
}

int main(int count, char **names) {
    FILE *in = fopen(names[1], "rb"), *out = fopen(names[2], "wb");
    word n_calls = get(in);
    for (word call = 0; call < n_calls; call++) {
        word head[6];
        for (int i = 0; i < 6; i++) head[i] = get(in);
        word *results = calloc(head[5] + 1, 8), *sizes = calloc(head[0] + 1, 8);
        for (word i = 0; i < head[5]; i++) results[i] = get(in);
        for (word i = 0; i < head[0]; i++) sizes[i] = get(in);
        word *moves = calloc(4 * head[1] + 1, 8), *calls = calloc(3 * head[2] + 1, 8);
        for (word i = 0; i < 4 * head[1]; i++) moves[i] = get(in);
        for (word i = 0; i < 3 * head[2]; i++) calls[i] = get(in);
        char **places = calloc(head[0] + 1, 8);
        for (word i = 0; i < head[0]; i++) {
            places[i] = aligned_alloc(64, (sizes[i] + 127) / 64 * 64);
            if (fread(places[i], 1, sizes[i], in) != (size_t)sizes[i]) abort();
        }
        for (word i = 0; i < head[1]; i++)
            ((word *)places[moves[4 * i]])[moves[4 * i + 1]] =
                (word)(places[moves[4 * i + 2]] + moves[4 * i + 3]);
        for (word i = 0; i < head[2]; i++)
            ((word *)places[calls[3 * i]])[calls[3 * i + 1]] = (word)symbols[calls[3 * i + 2]];
        uint64_t before = fpcr();
        word code = fg_run((word *)places[head[3]], (word *)places[head[4]], 0);
        word changed = before != fpcr();
        fwrite(&code, 8, 1, out);
        fwrite(&changed, 8, 1, out);
        for (word i = 0; i < head[5]; i++) fwrite(places[results[i]], 1, sizes[results[i]], out);
    }
    return fclose(out);
}
"""


def run_on_arm(names: Sequence[str]) -> dict[str, str]:
    """Run programs under the emulator: by name what is wrong, or nothing."""
    compiling = _Compiling()
    wrong: dict[str, str] = {}
    calls: list[tuple[str, bytes, list[np.ndarray]]] = []
    for name in names:
        function, args = PROGRAMS[name]
        # Each in its own time: what is cached for one processor is forgotten after it.
        with compiling.patched():
            staged = fg.jit(function, threads=1).lower(*args).compile()
            executable = staged._executable
            flat = [np.asarray(x) for x in args]
            image, results = _packed(compiling, executable, flat)
        calls.append((name, image, results))
    with tempfile.TemporaryDirectory() as folder:
        out = _emulated(Path(folder), compiling, [image for _, image, _ in calls])
    place = 0
    for name, _, results in calls:
        code, changed = struct.unpack_from("<2q", out, place)
        place += 16
        found = []
        for x in results:
            found.append(np.frombuffer(out, x.dtype, x.size, place).reshape(x.shape))
            place += max(x.nbytes, 0)
        wrong[name] = _difference(name, code, changed, found)
    return wrong


def _emulated(folder: Path, compiling: _Compiling, images: Sequence[bytes]) -> bytes:
    """What the harness writes, built and run in a folder."""
    (folder / "harness.c").write_text(HARNESS)
    table = [f"extern char {symbol}[];" for symbol in compiling.codes]
    table.append("void *const symbols[] = {" + ", ".join(compiling.codes) + "};")
    (folder / "symbols.c").write_text("\n".join(table))
    objects = []
    for number, code in enumerate(compiling.codes.values()):
        path = folder / f"{number}.o"
        path.write_bytes(code)
        objects.append(str(path))
    program = str(folder / "program")
    sources = [str(folder / "harness.c"), str(folder / "symbols.c")]
    executor = next(symbol for symbol, code in compiling.codes.items() if b".look\0" in code)
    flags = ["-O1", "-static", "-frounding-math", f"-Dfg_run={executor}", "-o", program]
    subprocess.run([COMPILER, *flags, *sources, *objects, "-lm"], check=True)
    given = folder / "calls"
    given.write_bytes(struct.pack("<q", len(images)) + b"".join(images))
    subprocess.run([EMULATOR, program, str(given), str(folder / "found")], check=True, timeout=600)
    return (folder / "found").read_bytes()


def _difference(name: str, code: int, changed: int, found: Sequence[np.ndarray]) -> str:
    """What is wrong with the results of a call; empty if nothing is."""
    if code:
        return f"step {code - 1} has failed"
    if changed:
        return "the floating-point mode is not that from before"
    return _unlike(name, found)


def run_here(names: Sequence[str]) -> dict[str, str]:
    """Run programs in this process: by name what is wrong, or nothing."""
    return {
        name: _unlike(name, fg.tree.leaves(fg.jit(PROGRAMS[name][0])(*PROGRAMS[name][1])))
        for name in names
    }


def _unlike(name: str, found: Sequence[Any]) -> str:
    """How results are not as NumPy's; empty if they are."""
    function, args = PROGRAMS[name]
    expected = fg.tree.leaves(EXPECTED.get(name, function)(*args))
    for x, y in zip(found, expected, strict=True):
        y = np.asarray(y)
        rtol = 3e-5 if y.dtype.char in "fF" else 1e-10
        if not np.allclose(x, y, rtol=rtol, atol=rtol * float(np.abs(y).max(initial=0))):
            return f"{np.ravel(x)[:4]} instead of {y.ravel()[:4]}"
    return ""


def main(args: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.processors", description=__doc__)
    parser.add_argument("--brief", action="store_true", help="a few programs and tests of each")
    options = parser.parse_args(args)
    failed = []
    lacking = missing()
    names = list(PROGRAMS)[:: 6 if options.brief else 1]
    skipped = ""
    if lacking:
        skipped = f"; ARM skipped ({' and '.join(lacking)} not installed)"
        names = []
    wrong = run_on_arm(names) if names else {}
    for name, what in wrong.items():
        print(f"ARM: {name}: {what or 'as NumPy'}")
    failed += [f"ARM: {name}" for name, what in wrong.items() if what]
    tests = ("tests/compiler/test_modes.py",) if options.brief else NUMERIC
    if platform.machine() == "x86_64":
        failed += [level for level in OLDER if run_older(level, tests)]
    else:
        skipped += "; older x86-64 skipped (this is none)"
    print(f"{len(wrong)} programs on ARM, {len(OLDER)} levels of x86-64{skipped}")
    print(f"failed: {', '.join(failed)}" if failed else f"all as expected{skipped}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
