"""Exported programs: compiled by C's compilers, run without Python, compared with the process."""

from __future__ import annotations

import ctypes
import importlib
import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError
from funcgrad.interop.c import Exported
from tests.processors import COMPILER, EMULATOR, EXPECTED, PROGRAMS
from tests.test_compositions import LETTERS, POINT, SAMPLES, WORDS

NATIVE = ("gcc",)
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror"]
R = np.random.default_rng(8)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def signature_of(arrays: Sequence[Any]) -> str:
    return ", ".join(
        x.dtype.name + (str(list(x.shape)) if x.shape else "") for x in map(np.asarray, arrays)
    )


def exported(f: Any, args: Sequence[Any], name: str) -> tuple[Exported, list[np.ndarray]]:
    """A function whose results are listed, and what it returns in the process."""
    known = [np.asarray(x) for x in fg.tree.leaves(fg.jit(f, threads=1)(*args))]

    def flat(*args: Any) -> Any:
        found = fg.tree.leaves(f(*args))
        return tuple(found) if len(found) > 1 else found[0]

    return fg.export(flat, f"{signature_of(args)} -> {signature_of(known)}", name), known


def main_of(made: Exported) -> str:
    """A program that reads the arguments and writes the status and the results."""
    lines = ["#include <stdio.h>", f'#include "{made.name}.h"', "int main(void) {"]
    names = []
    for k, t in enumerate((*made.signature.leaves, *made.signature.outs)):
        kind = t.c_type
        is_result = k >= len(made.signature.leaves)
        size = int(np.prod(t.shape({}), dtype=int))
        lines.append(f"    static {kind} a{k}[{max(size, 1)}];")
        names.append(f"a{k}[0]" if t.is_value and not is_result else f"a{k}")
        if not is_result:
            lines.append(f"    if (fread(a{k}, sizeof *a{k}, {size}, stdin) != {size}) return 9;")
    lines.append(f"    int32_t status = {made.name}({', '.join([*names, 'NULL'])});")
    lines.append("    fwrite(&status, 4, 1, stdout);")
    for k in range(len(made.signature.leaves), len(names)):
        size = int(
            np.prod(made.signature.outs[k - len(made.signature.leaves)].shape({}), dtype=int)
        )
        lines.append(f"    fwrite(a{k}, sizeof *a{k}, {size}, stdout);")
    return "\n".join([*lines, "    return 0;", "}", ""])


def run(
    made: Exported, args: Sequence[Any], folder: Path, compiler: str = "gcc", runner: str = "",
    flags: Sequence[str] = ("-march=native",),
) -> tuple[int, list[np.ndarray]]:  # fmt: skip
    """Compile a file with a program around it, and run that without Python."""
    source, *_ = made.write(folder)
    (folder / "main.c").write_text(main_of(made))
    program = str(folder / made.name)
    command = [compiler, *STRICT, *flags, str(source), str(folder / "main.c"), "-o", program]
    subprocess.run([*command, "-lm"], check=True)
    given = b"".join(
        np.ascontiguousarray(x, t.dtype).tobytes()
        for x, t in zip(args, made.signature.leaves, strict=True)
    )
    command = [runner, program] if runner else [program]
    out = subprocess.run(command, input=given, capture_output=True, check=True, env={}).stdout
    found, place = [], 4
    for t in made.signature.outs:
        shape = t.shape({})
        found.append(np.frombuffer(out, t.dtype, int(np.prod(shape)), place).reshape(shape))
        place += found[-1].nbytes
    return int.from_bytes(out[:4], "little", signed=True), found


def check(name: str, found: Sequence[np.ndarray], expected: Sequence[Any]) -> None:
    for x, y in zip(found, map(np.asarray, expected), strict=True):
        rtol = 3e-5 if y.dtype.char in "fF" else 1e-10
        scale = float(np.abs(y).max(initial=0))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * scale, err_msg=name)


@cache
def has_formulas() -> bool:
    """Whether this processor has fused products, and files so the compiler's formulas."""
    command = ["gcc", "-march=native", "-dM", "-E", "-x", "c", "/dev/null"]
    return "__FP_FAST_FMA " in subprocess.run(command, capture_output=True, text=True).stdout


DAILY = frozenset(("functions", "integers", "complex", "scan", "gradient", "solve", "lookups"))


def programs() -> list[Any]:
    return [
        pytest.param(name, marks=[] if name in DAILY else [pytest.mark.nightly])
        for name in PROGRAMS
        if name != "subnormal"
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("flags", [["-march=native"], [], ["-march=native", "-mno-avx512f"]])
def test_registers_of_any_length_and_none_give_the_same_bits(flags, tmp_path):
    few = R.standard_normal((9, 5, 5))

    def f(a, z, x, k):
        products = a @ a[:, :13], a[:3] @ a, z[:5] @ z.T, z @ z[:, ::2]
        sums = x.sum(), (x * 2 - x / 3).sum()
        return *products, *sums, fg.numpy.linalg.det(few), 2.5 * k.astype(float)

    args = (
        R.standard_normal((37, 37)),
        (R.standard_normal((20, 20)) + 1j * R.standard_normal((20, 20))).astype("F"),
        np.append(R.standard_normal(3000), -0.0).astype("f"),
        R.integers(-9, 9, 40),
    )
    made, expected = exported(f, args, "program")
    assert "fg_held_f32" in made.source
    if (
        any("avx512" in flag for flag in flags)
        and "avx512f" not in Path("/proc/cpuinfo").read_text()
    ):
        pytest.skip("the processor has no such registers")
    found = [
        run(made, args, tmp_path, compiler, flags=[*flags, *more])
        for compiler in ("gcc", "clang")
        if shutil.which(compiler)
        for more in ([], ["-DFG_NO_VECTORS"])
    ]
    for status, results in found:
        assert status == 0
        check("program", results, expected)
        for x, y in zip(results, found[0][1], strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("flags", [[], ["-DFG_NO_VECTORS"]], ids=["vectors", "no vectors"])
@pytest.mark.parametrize("dtype", ["f", "D"])
def test_products_add_their_terms_in_the_order_of_the_process(dtype, flags, tmp_path):
    """One row and several, blocks of terms, the edges of tiles, and both layouts."""
    a, b = (R.standard_normal(shape).astype(dtype) for shape in ((13, 300), (300, 37)))
    if dtype == "D":
        a, b = a + 1j * a[::-1], b - 1j * b[::-1]

    def f(a, b):
        return a @ b, a[0] @ b, a[:1] @ b[:, :7], b.T @ a.T, b[:, :3].T @ a[0], a[:2, ::2] @ b[1::2]

    made, known = exported(f, (a, b), "program")
    status, found = run(made, (a, b), tmp_path, flags=["-march=native", *flags])
    assert status == 0
    check("program", found, known)
    if has_formulas():
        for x, y in zip(found, known, strict=True):
            np.testing.assert_array_equal(x, y)


def test_sums_of_lookups_add_them_in_the_order_of_the_process(tmp_path):
    x, places = R.standard_normal((160, 9)), R.integers(0, 9, 160)
    args = x, places
    made, known = exported(lambda x, places: x[np.arange(160), places].sum(), args, "program")
    status, found = run(made, args, tmp_path)
    assert status == 0
    np.testing.assert_allclose(found[0], known[0], rtol=1e-12)
    if has_formulas():
        assert found[0] == known[0]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", programs())
def test_programs(name, tmp_path):
    f, args = PROGRAMS[name]
    made, known = exported(f, args, name.replace(" ", "_"))
    status, found = run(made, args, tmp_path)
    assert status == 0
    check(name, found, known)
    if has_formulas():
        for x, y in zip(found, known, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.nightly
@pytest.mark.skipif(
    any(shutil.which(x) is None for x in (COMPILER, EMULATOR)), reason="needs an emulator for ARM"
)
@pytest.mark.parametrize("name", [x for x in PROGRAMS if x != "subnormal"])
def test_programs_on_another_processor(name, tmp_path):
    f, args = PROGRAMS[name]
    made, _ = exported(f, args, name.replace(" ", "_"))
    status, found = run(made, args, tmp_path, COMPILER, EMULATOR, ["-static"])
    assert status == 0
    check(name, found, fg.tree.leaves(EXPECTED.get(name, f)(*args)))


@pytest.mark.nightly
@pytest.mark.parametrize("name", SAMPLES)
def test_compositions(name, tmp_path):
    """Words of transformations on the programs of their laws, a file each."""
    for number, word in enumerate(WORDS[::7]):
        f: Any = SAMPLES[name].program
        for letter in reversed(word):
            f = LETTERS[letter](f)
        try:
            made, known = exported(f, (POINT,), f"f{number}")
        except ArgumentError as error:
            assert "a library of NumPy or SciPy evaluates a step" in str(error)  # noqa: PT017
            continue
        status, found = run(made, (POINT,), tmp_path)
        assert status == 0
        np.testing.assert_allclose(found[0], known[0], rtol=1e-12, atol=1e-12, err_msg=str(word))


FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arctanh sqrt floor ceil trunc rint"
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("flags", [("-march=native",), ()])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_are_right_to_two_units(dtype, flags, tmp_path):
    x = np.random.default_rng(0).uniform(0.01, 0.99, 20_000).astype(dtype)
    names = FUNCTIONS.split()
    made, known = exported(lambda x: [getattr(np, name)(x) for name in names], (x,), "functions")
    status, found = run(made, (x,), tmp_path, flags=flags)
    assert status == 0
    for name, got, in_process in zip(names, found, known, strict=True):
        exact = getattr(np, name)(x.astype(np.longdouble))
        units = np.abs(got - exact) / np.spacing(np.abs(got))
        assert units.max() <= 2.5, f"{name}: two units, and half a unit of rounding"
        if flags and has_formulas():
            np.testing.assert_array_equal(got, in_process, err_msg=name)


def test_rare_arguments_have_their_own_way(tmp_path):
    """Huge angles, remainders of large quotients, and integers that floats do not hold."""
    x = np.linspace(-9, 9, 103)
    x[::7] *= 1e80
    n, m = np.arange(-50, 53) * (1 << 55) + 1, np.arange(103) % 11 - 5
    small = (n % 1000).astype(np.int32)

    def f(x: Any, n: Any, m: Any, small: Any) -> Any:
        angles = np.sin(x) + 2 * np.cos(x * 2) + np.tan(np.sin(x) * 1e12)
        return (
            angles,
            np.fmod(x, 0.3),
            np.remainder(x, -0.7),
            n // m,
            n % m,
            small // m.astype("i4"),
        )

    made, known = exported(f, (x, n, m, small), "rare")
    status, found = run(made, (x, n, m, small), tmp_path)
    assert status == 0
    for got, expected in zip(found, known, strict=True):
        if has_formulas():
            np.testing.assert_array_equal(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-12)
    np.testing.assert_array_equal(found[3][m != 0], n[m != 0] // m[m != 0])


@pytest.mark.parametrize(
    "size", [33, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 7, 31, 70))]
)
def test_lanes_read_what_lies_beside_what_others_write(size, tmp_path):
    """An array that is shifted within itself, in rows of all lengths."""
    x = R.standard_normal((5, size))

    def f(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            c = c.at[:, 1:].add(fg.numpy.tanh(c[:, :-1]))
            return c, fg.numpy.max(c, axis=1)

        return fg.lax.scan(step, x, None, length=3)

    made, known = exported(f, (x,), "shifts")
    status, found = run(made, (x,), tmp_path)
    assert status == 0
    for got, expected in zip(found, known, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["F", "D"])
def test_edges_of_complex_stencils_are_what_the_process_gives(dtype, tmp_path):
    """A choice between a constant and a pair in memory: gcc has vectors for it, but wrong ones."""

    def f(x: Any) -> Any:
        product = np.pad(x[1:-1, 1:] * x[:-2, :-1], ((1, 1), (1, 0))) * x
        total = np.sum(np.pad(x, ((0, 0), (3, 3))), 1)
        return product, x - np.pad(x[2:, 1:-1] + x[:-2, 2:], 1), total

    x = (R.integers(0, 5, (6, 150)) + 1j * R.integers(0, 5, (6, 150))).astype(dtype)
    made, known = exported(f, [x], "edges")
    status, found = run(made, [x], tmp_path)
    assert status == 0
    check("edges", found, known)


@pytest.mark.nightly
def test_files_take_little_longer_than_the_process(tmp_path):
    """The mean ratio of processor times, calls of both in turn."""
    x, a, w = R.uniform(0.1, 0.9, 4000), R.standard_normal((200, 20)), R.standard_normal(20)
    programs = {
        "functions": (lambda x: np.tanh(x) * np.sin(x) + np.exp(-x * x) / (1 + x), (x,)),
        "logarithms": (lambda x: np.log(x) - np.log1p(x), (x,)),
        "total": (fg.value_and_grad(lambda x: np.sum(np.expm1(x) * np.sqrt(x))), (x,)),
        "choice": (lambda x: np.where(x > 0.5, np.log(x), x * x).sum(), (x,)),
        "likelihood": (
            fg.value_and_grad(lambda w, a: np.sum(np.log1p(np.exp(-(a * w).sum(1))))), (w, a),
        ),
        "softmax": (lambda a: np.exp(a - a.max(1)[:, None]) / np.exp(a).sum(1)[:, None], (a,)),
    }  # fmt: skip
    ratios = {}
    for name, (f, args) in programs.items():
        made, known = exported(f, args, f"{name}_")
        source, *_ = made.write(tmp_path)
        library = str(tmp_path / f"{name}.so")
        flags = ["-std=c99", "-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, str(source), "-o", library, "-lm"], check=True)
        run_file = getattr(ctypes.CDLL(library), f"{name}__by_addresses")
        arrays = [*args, *(np.empty(y.shape, y.dtype) for y in known)]
        given = (ctypes.c_void_p * len(arrays))(*(y.ctypes.data for y in arrays))

        def flat(*args: Any, f: Any = f) -> Any:
            found = fg.tree.leaves(f(*args))
            return tuple(found) if len(found) > 1 else found[0]

        there = fg.cfunc(flat, str(made.signature)).ctypes
        pointers = [y.ctypes.data_as(t) for y, t in zip(arrays, there.argtypes, strict=False)]
        calls = partial(run_file, given, None), partial(there, *pointers, None)
        times: tuple[list[float], list[float]] = [], []
        for _ in range(9):
            for call, found in zip(calls, times, strict=True):
                start = time.process_time()
                for _ in range(200):
                    assert call() == 0
                found.append(time.process_time() - start)
        ratios[name] = np.median(times[0]) / np.median(times[1])
    assert np.exp(np.mean(np.log([*ratios.values()]))) <= 1.4, ratios


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cube_roots_are_right_to_a_unit_everywhere(dtype, tmp_path):
    info = np.finfo(dtype)
    x = 2.0 ** np.random.default_rng(1).uniform(info.minexp, info.maxexp, 20_000)
    edges = [0.0, np.inf, info.max, info.tiny, info.smallest_subnormal, 3 * info.tiny / 8]
    x = np.concatenate([edges, x]).astype(dtype)
    x = np.concatenate([x, -x, [np.nan]]).astype(dtype)
    made, _ = exported(np.cbrt, (x,), "roots")
    status, (found,) = run(made, (x,), tmp_path)
    assert status == 0
    exact = np.cbrt(x.astype(np.longdouble))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(x))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x))
    found, exact = found[np.isfinite(x)], exact[np.isfinite(x)]
    assert np.max(np.abs(found - exact) / np.spacing(np.abs(found))) <= 1


def test_a_refused_index_is_a_status_with_a_line(tmp_path):
    x, i = np.arange(5.0), np.array([1, 4])
    made, _ = exported(lambda x, i: x[i], (x, i), "take")
    assert run(made, (x, i), tmp_path)[0] == 0
    status, _ = run(made, (x, np.array([1, 5])), tmp_path)
    assert status == 3
    assert "an index is out of bounds for an axis of length 5: " in made.source
    assert "test_export.py" in made.source
    assert str(Path(__file__).parent) not in made.source, "folders are nobody's business"


def test_convolutions(tmp_path):
    x, w = R.standard_normal((2, 3, 9, 9)), R.standard_normal((4, 3, 3, 3))
    made, known = exported(
        lambda x, w: fg.lax.conv_general_dilated(x, w, (1, 1), "SAME"), (x, w), "conv"
    )
    status, found = run(made, (x, w), tmp_path)
    assert status == 0
    check("convolution", found, known)


def test_memory_is_that_of_the_caller_alone(tmp_path):
    x = R.standard_normal((20, 20))
    made, _ = exported(lambda x: np.sum(np.cumsum(x, 0)[::-1] / np.cumsum(x, 1)), (x,), "total")
    assert made.scratch_bytes
    assert f"#define TOTAL_SCRATCH {made.scratch_bytes}" in made.header
    assert run(made, (x,), tmp_path)[0] == 0
    status, _ = run(made, (x,), tmp_path, flags=["-DFG_NO_MALLOC"])
    assert status == 1, "the program passes a null pointer"


def test_structures_and_scratch_memory_in_cpp(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    made = fg.export(
        lambda p, x: {"y": np.tanh(p["w"] @ x) + p["b"], "n": (x @ p["w"].T @ p["w"]).sum()},
        "{w: float64[3, 2], b: float64[3]}, float64[2] -> {y: float64[3], n: float64}",
        "layer",
    )
    source, *_ = made.write(tmp_path)
    (tmp_path / "main.cpp").write_text(
        """\
#include <cstdio>
#include "layer.h"
int main() {
    double w[6] = {1, 2, 3, 4, 5, 6}, b[3] = {1, 1, 1}, x[2] = {0.5, -0.25}, y[3], n;
    static char scratch[LAYER_SCRATCH];
    layer_p p = {b, w};
    layer_out out = {&n, y};
    if (layer(&p, x, &out, scratch)) return 1;
    std::printf("%.15g %.15g", y[2], n);
}
"""
    )
    library = str(tmp_path / "layer.o")
    subprocess.run(["gcc", *STRICT, "-c", str(source), "-o", library], check=True)
    program = str(tmp_path / "main")
    flags = ["-Wall", "-Wextra", "-Werror", "-std=c++11"]
    command = ["g++", *flags, str(tmp_path / "main.cpp"), library, "-o", program]
    subprocess.run(command, check=True)
    y, n = map(float, subprocess.run([program], capture_output=True, check=True).stdout.split())
    w, x = np.arange(1.0, 7.0).reshape(3, 2), np.array([0.5, -0.25])
    np.testing.assert_allclose(y, np.tanh(w @ x)[2] + 1, rtol=1e-14)
    np.testing.assert_allclose(n, (x @ w.T @ w).sum(), rtol=1e-14)


def test_a_loader_needs_numpy_alone(tmp_path):
    made = fg.export(
        lambda p, i: (p["w"][i] * p["scale"], np.sum(p["w"])),
        "{w: float32[4], scale: float32}, int64[2] -> float32[2], float32",
        "taken",
    )
    source, _, loader = made.write(tmp_path)
    library = str(tmp_path / "libtaken.so")
    subprocess.run(["gcc", *STRICT, "-shared", "-fPIC", str(source), "-o", library], check=True)
    assert "funcgrad" not in loader.read_text()
    program = (
        "import sys, numpy as np, taken\n"
        "print(*taken.taken(np.float32(2), np.arange(4), [3, 1]), 'funcgrad' in sys.modules)\n"
        "taken.taken(np.float32(2), np.arange(4), [3, 4])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "[6. 2.] 6.0 False\n"
    assert "ValueError: an index is out of bounds for an axis of length 4" in done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64", "int8"])
def test_products_of_all_shapes(dtype, tmp_path, monkeypatch):
    """Tiles that are whole and that are not, of matrices and of their transposes."""
    sizes = {"m": [1, 4, 5, 6, 13], "n": [3, 4, 16, 33], "k": [3, 127, 128, 300]}
    text = "D[2, m, k], D[2, n, k] -> D[2, m, n], D[2, k, 3], D[2, 3, k]".replace("D", dtype)

    def products(a, b):
        return a @ b.mT, a.mT @ a[:, :, :3], b[:, :3] @ a.mT @ a

    made = fg.export(products, text, f"products_{dtype}", sizes)
    source, *_ = made.write(tmp_path)
    library = str(tmp_path / f"lib{made.name}.so")
    subprocess.run(["gcc", *STRICT, "-shared", "-fPIC", str(source), "-o", library], check=True)
    monkeypatch.syspath_prepend(tmp_path)
    found = getattr(importlib.import_module(made.name), made.name)
    for m, n, k in itertools.product(*sizes.values()):
        a, b = ((100 * R.standard_normal((2, rows, k))).astype(dtype) for rows in (m, n))
        for got, expected in zip(found(a, b), products(a, b), strict=True):
            atol = {"float32": 100, "float64": 1e-6}.get(dtype, 0)
            np.testing.assert_allclose(got, expected, rtol=atol and 1e-5, atol=atol)


def test_one_file_for_many_sizes(tmp_path, monkeypatch):
    """Plans that differ by numbers are one text; the loader finds sizes in shapes."""

    def loss(w, x):
        z = np.tanh(x @ w)
        return np.sum(z[1:] * z[:-1]) + np.sum(w**2), np.cumsum(z)[: len(z) - 1] * np.arange(
            1.0, len(z)
        )

    sizes = {"n": range(2, 24), "m": [17, 3]}
    text = "float64[m], float64[n, m] -> float64, float64[n - 1]"
    made = fg.export(loss, text, "of_sizes", sizes)
    assert "/* The function is for n of 2 to 23. */" in made.header
    assert "int32_t of_sizes(int64_t m, int64_t n, const double *w" in made.header
    one = fg.export(loss, text, "of_one", {"n": [9], "m": [3]})
    assert made.source.count("static int64_t kernel_") < 8 * one.source.count(
        "static int64_t kernel_"
    )
    source, *_ = made.write(tmp_path)
    library = str(tmp_path / "libof_sizes.so")
    subprocess.run(["gcc", *STRICT, "-shared", "-fPIC", str(source), "-o", library], check=True)
    monkeypatch.syspath_prepend(tmp_path)
    of_sizes = importlib.import_module("of_sizes").of_sizes
    for n in sizes["n"]:
        for m in sizes["m"]:
            w, x = R.standard_normal(m), R.standard_normal((n, m))
            for found, expected in zip(of_sizes(w, x), loss(w, x), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    with pytest.raises(ValueError, match="the file has no code for these sizes"):
        of_sizes(np.zeros(4), np.zeros((9, 4)))
    with pytest.raises(ValueError, match=r"expected the shapes \[\(3,\), \(9, 3\)\], got"):
        of_sizes(np.zeros(3), np.zeros((9, 4)))
    with pytest.raises(TypeError, match="expected 2 arguments, got 1"):
        of_sizes(np.zeros(3))
    with pytest.raises(ArgumentError, match="no size is negative, got n of -1 to 7"):
        fg.export(loss, text, "of_sizes", sizes | {"n": range(-1, 8)})


def _residuals(w, x, y):
    return np.sum(np.log1p(np.exp(-y * (x @ w)))) / len(y) + np.mean(w**2)


def _recurrence(x):
    def step(c, u):
        return np.tanh(c + u), c * u

    return fg.lax.scan(step, x[0] * 0, x)[1].sum()


RANGES: dict[str, tuple[Any, str]] = {
    "gradient": (
        fg.value_and_grad(_residuals),
        "float64[m], float64[n, m], float64[n] -> float64, float64[m]",
    ),
    "scan": (fg.grad(_recurrence), "float64[n, m] -> float64[n, m]"),
    "steps": (
        lambda x: fg.lax.fori_loop(0, 9, lambda i, c: c + 0.1 * np.sin(c), x),
        "float32[n] -> float32[n]",
    ),
    "products": (lambda x: np.sum((x @ x.T) @ (x + 1)), "float64[n, m] -> float64"),
    "solve": (
        lambda a: fg.numpy.linalg.solve(a + 9 * np.eye(6), a[:, :, :2]),
        "float64[n, 6, 6] -> float64[n, 6, 2]",
    ),
    "softmax": (
        lambda a: np.exp(a - a.max(1)[:, None]) / np.exp(a).sum(1)[:, None],
        "float64[n, m] -> float64[n, m]",
    ),
}
"""Programs for ranges of sizes."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", RANGES)
def test_ranges_of_sizes(name, tmp_path, monkeypatch):
    """Sizes between those that plans were made for, at edges of pieces, and equal ones."""
    f, text = RANGES[name]
    sizes = {key: range(1, 1501) for key in "nm" if key in text.partition("->")[0]}
    made = fg.export(f, text, f"of_ranges_{name}", sizes)
    source, *_ = made.write(tmp_path)
    library = str(tmp_path / f"lib{made.name}.so")
    flags = ["-march=native", "-shared", "-fPIC"]
    subprocess.run(["gcc", *STRICT, *flags, str(source), "-o", library, "-lm"], check=True)
    monkeypatch.syspath_prepend(tmp_path)
    call = getattr(importlib.import_module(made.name), made.name)
    rng = np.random.default_rng(3)
    rows = [(n, m) for n in (1, 2, 3, 4, 16, 17) for m in (1, 3, 5, 17)]
    rows += [
        (33, 33),
        (1500, 7),
        (7, 1500),
        *np.exp(rng.uniform(0, 6, (9, 2))).astype(int).tolist(),
    ]
    for row in rows:
        known = dict(zip("nm", row, strict=False))
        args = [rng.standard_normal(t.shape(known)).astype(t.dtype) for t in made.signature.leaves]
        expected = fg.tree.leaves(fg.jit(f, threads=1)(*args))
        check(f"{name} {row}", fg.tree.leaves(call(*args)), expected)


def test_ranges_whose_programs_differ_are_refused():
    def powers(x):
        return x ** np.arange(len(x))

    with pytest.raises(ArgumentError, match=r"every size has a program of its own, .* n = 2999"):
        fg.export(powers, "float64[n] -> float64[n]", "powers", {"n": range(1, 6001)})


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "call_from_c.md"


def block(language: str, number: int = 0) -> str:
    """A block of the page in a language."""
    return PAGE.read_text().split(f"```{language}\n")[1 + number].partition("```")[0]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("language", "compiler"),
    [("c", "gcc"), ("cpp", "g++"), ("rust", "rustc"), ("r", "Rscript")],
)
def test_programs_of_the_page(language, compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")

    def loss(w, x, y):
        return np.mean((np.tanh(x @ w) - y) ** 2)

    made = fg.export(
        fg.value_and_grad(loss),
        "float64[3], float64[20, 3], float64[20] -> float64, float64[3]",
        name="loss_and_slope",
    )
    source, *_ = made.write(tmp_path)
    main, library = tmp_path / f"main.{language}", tmp_path / "libloss_and_slope.a"
    main.write_text(block(language))

    def command(*words: Any) -> bytes:
        given = [*map(str, words)]
        return subprocess.run(given, check=True, capture_output=True, cwd=tmp_path).stdout

    command("gcc", *STRICT, "-c", source, "-o", tmp_path / "it.o")
    command("ar", "rcs", library, tmp_path / "it.o")
    run = [tmp_path / "main"]
    if language == "r":
        between = tmp_path / "for_r.c"
        between.write_text(block("c", 1))
        shared = ["-shared", "-fPIC", between, source, "-o", tmp_path / "for_r.so"]
        command("gcc", *STRICT, *shared, "-lm")
        run = [compiler, main]
    elif language == "rust":
        command(compiler, "-L", tmp_path, main, "-o", tmp_path / "main")
    else:
        command(compiler, "-Wall", main, library, "-o", tmp_path / "main", "-lm")
    w, x = np.array([0.5, -0.5, 0.25]), (np.arange(60) % 7 / 7).reshape(20, 3)
    value, slope = fg.value_and_grad(loss)(w, x, np.arange(20) % 2 * 1.0)
    assert command(*run).split() == [b"%.6f" % value, b"%.6f" % slope[0]]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fg.export(np.sin, "float64(float64)"), "exported functions have a status"),
        (
            lambda: fg.export(np.sin, "float64[n] -> float64[n]"),
            r"the file has code for sizes that are known: .*signature \(n\), got none",
        ),
        (
            lambda: fg.export(np.sin, "float64[2] -> float64[2]", sizes={"n": [2]}),
            r"signature \(there are none\), got n",
        ),
        (
            lambda: fg.export(lambda x: np.linalg.eigvalsh(x), "float64[9, 9] -> float64[9]"),
            r"a library of NumPy or SciPy evaluates a step(?s:.*)test_export\.py",
        ),
    ],
)
def test_errors_say_what_to_do(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()
