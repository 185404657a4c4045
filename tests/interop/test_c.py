"""Compiled functions by address, called by ctypes, Numba, SciPy, threads of C, cffi and Cython."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import sys

import numba
import numpy as np
import pytest
from scipy import integrate, ndimage

import funcgrad as fg
from funcgrad.compiler.runtime import kernel_store
from funcgrad.errors import ArgumentError

R = np.random.default_rng(3)
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
)


def assert_close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def loss(w, x):
    return np.sum(np.tanh(x @ w))


def loss_and_slope(x):
    return fg.value_and_grad(lambda x: handed_over(x)[0] * repeated(x)[0])(x)


def pointers(*arrays):
    """Arrays as arguments of functions of `ctypes`."""
    return [
        x.ctypes.data
        if x.dtype.kind in "bc"
        else x.ctypes.data_as(ctypes.POINTER(np.ctypeslib.as_ctypes_type(x.dtype)))
        for x in arrays
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", DTYPES.split())
def test_every_dtype_in_arrays_and_as_number(dtype):
    f = fg.cfunc(
        lambda x, y: (np.where(x == y, x, y), x[1] == y), f"{dtype}[n], {dtype} -> {dtype}[n], bool"
    )
    x = np.array([0, 1, 1, 0, 1], dtype)
    replaced, flag = f(x, x[1])
    np.testing.assert_array_equal(replaced, np.ones(5, dtype))
    assert replaced.dtype == x.dtype
    assert flag
    flag = np.zeros((), bool)
    number = pointers(x[1:2])[0] if x.dtype.kind == "c" else x[1]
    given, out, end = pointers(x, replaced, flag)
    replaced[:] = 0
    assert f.ctypes(5, given, number, out, end, None) == 0
    assert flag
    np.testing.assert_array_equal(replaced, np.ones(5, dtype))


def handed_over(x):
    """Numbers and short arrays that several kernels hand to each other."""
    scale = np.exp(x[0])
    z = (x - x.mean()) / scale
    return np.sum(np.log1p(z**2)) + np.log(scale) * np.max(z), np.cumsum(z)[::2] * scale


def repeated(x):
    def body(i, carry):
        total, y = carry
        return total + np.sum(y) * x[i], np.tanh(y) + total

    total, y = fg.lax.fori_loop(0, 4, body, (x[0], x))
    chosen = fg.lax.cond(total > 0, lambda: np.sin(y[0]), lambda: y[1] * 2)
    return chosen + total, y * chosen


def factorised(x):
    a = np.outer(x, x) + np.eye(len(x))
    root = np.linalg.cholesky(a)
    z = np.linalg.solve(root, x * 2)
    return np.sum(z**2) - np.sum(np.log(np.diag(root))), z


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("f", "n_steps"), [(handed_over, 1), (repeated, 1), (factorised, None), (loss_and_slope, 1)]
)
def test_steps_of_few_elements_are_one(f, n_steps):
    x = R.standard_normal(7)
    expected = fg.jit(f)(x)
    compiled = fg.cfunc(f, f"float64[7] -> float64, float64[{len(expected[1])}]")
    for _ in range(2):
        for a, b in zip(compiled(x), expected, strict=True):
            assert_close(a, b)
    ((_, plan),) = compiled._plans.items()
    steps = plan.executable.table.steps
    assert len(steps) == n_steps or (n_steps is None and len(steps) > 1)


def test_sizes_by_name_compile_nothing_new():
    gradient = fg.cfunc(fg.grad(loss), "float64[m], float64[n, m] -> float64[m]")
    assert gradient.prototype == (
        "int32_t loss(int64_t m, int64_t n, const double *w, const double *x, double *out, "
        "void *scratch)"
    )
    # Products have several inner loops, which are compiled when sizes first need them.
    gradient(np.ones(10), np.ones((30, 10)))
    gradient(np.ones(33), np.ones((50, 33)))
    compiled = kernel_store.stats().compiled
    for n, m in ((48, 35), (41, 20)):
        w, x = R.standard_normal(m), R.standard_normal((n, m))
        found = gradient(w, x)
        assert_close(found, (1 - np.tanh(x @ w) ** 2) @ x)
    assert kernel_store.stats().compiled <= compiled


def test_trees_are_structures_of_pointers():
    f = fg.cfunc(
        lambda p, x: {"y": p["w"] @ x + p["bias"][0], "norm": np.sum(p["bias"][1] ** 2)},
        "{w: float64[n, m], bias: (float64[n], float32[2])}, float64[m] -> "
        "{y: float64[n], norm: float32}",
    )
    assert f.declaration == (
        "typedef struct {\n"
        "    struct {\n"
        "        const double *x0;  /* float64[n] */\n"
        "        const float *x1;  /* float32[2] */\n"
        "    } bias;\n"
        "    const double *w;  /* float64[n, m] */\n"
        "} function_p;\n"
        "typedef struct {\n"
        "    float *norm;\n"
        "    double *y;  /* float64[n] */\n"
        "} function_out;\n"
        "int32_t function(int64_t n, int64_t m, const function_p *p, const double *x, "
        "const function_out *out, void *scratch);"
    )
    w, b, x = R.standard_normal((3, 2)), np.ones(3), np.ones(2)
    c = np.array([3, 4], np.float32)
    found = f({"w": w, "bias": (b, c)}, x)
    assert_close(found["y"], w @ x + 1)
    assert found["norm"] == 25
    y, norm = np.zeros(3), np.zeros((), np.float32)
    address = ctypes.c_void_p * 3
    given = address(b.ctypes.data, c.ctypes.data, w.ctypes.data)
    out = address(norm.ctypes.data, y.ctypes.data)
    start = x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    assert f.ctypes(3, 2, given, start, out, None) == 0
    assert_close(y, w @ x + 1)
    assert norm == 25


def test_a_status_has_a_message_with_the_line():
    take = fg.cfunc(lambda x, i: x[i], "float64[n], int64[m] -> float64[m]")
    np.testing.assert_array_equal(take(np.arange(3.0), np.array([2, -1])), [2.0, 2.0])
    with pytest.raises(ArgumentError, match=r"bounds for an axis of length 3.*(?s:.*)test_c\.py"):
        take(np.arange(3.0), np.array([1, 3]))
    power = fg.cfunc(lambda n: 2**n, "int64 -> int64")
    with pytest.raises(ArgumentError, match="not defined for a value: power"):
        power(-1)
    assert power(5) == 32


def test_sizes_that_do_not_fit_are_a_status():
    f = fg.cfunc(lambda x: x.reshape(-1, 12).sum(0), "float64[n] -> float64[12]")
    out = np.zeros(12)
    given = pointers(np.ones(30), out)
    status = f.ctypes(30, *given, None)
    assert "ShapeError: " in f.message(status)
    assert f.ctypes(30, *given, None) == status
    assert f.ctypes(24, *given, None) == 0
    for unknown in (0, -1, status + 100):
        with pytest.raises(ArgumentError, match=f"no message for the status {unknown}: 0 says"):
            f.message(unknown)
    np.testing.assert_array_equal(out, np.full(12, 2.0))


def test_scratch_memory_of_the_caller():
    f = fg.cfunc(lambda x: np.sum((x @ x) @ (x + 1)), "float64[n, n] -> float64")
    x, out = R.standard_normal((40, 40)), np.zeros(())
    nbytes = f.scratch_bytes(n=40)
    assert nbytes >= 2 * x.nbytes
    room = np.full(nbytes + 16, 7, np.uint8)
    assert f.ctypes(40, *pointers(x, out), room.ctypes.data) == 0
    assert_close(out, np.sum(x @ x @ (x + 1)))
    np.testing.assert_array_equal(room[nbytes:], 7)
    assert (room[:nbytes] != 7).any()


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (lambda: fg.cfunc(np.sin, "float32(int32) ->"), "a signature is written such as"),
        (lambda: fg.cfunc(np.sin, "float64, float64"), "a signature is written such as"),
        (lambda: fg.cfunc(np.sin, "float16 -> float16"), "float16 is no dtype; there are bool"),
        (lambda: fg.cfunc(np.sin, "float64[n.x] -> float64"), "a signature is written such as"),
        (lambda: fg.cfunc(np.sin, "int64(float64)"), "says by NaN that it failed"),
        (lambda: fg.cfunc(np.sin, "float64(float64[n])"), "says by NaN that it failed"),
        (lambda: fg.cfunc(np.sin, "float64({a: float64})"), "structures of pointers"),
        (lambda: fg.cfunc(np.sin, "float64[n] -> float64[2*n]"), r"returns f64\[24\] for n = 24"),
        (
            lambda: fg.cfunc(np.sin, "float64[n] -> float64[n]")(np.ones((2, 2))),
            r"got the shapes \(2, 2\)",
        ),
        (
            lambda: fg.cfunc(np.sin, "float64[n] -> float64[n]")(np.ones(2) * 1j),
            "complex128 is not float64, and would lose a part. Convert it",
        ),
        (
            lambda: fg.cfunc(np.sin, "float64[n] -> float64[n]").prepare(m=3),
            r"has the sizes \['n'\], got \['m'\]",
        ),
        (
            lambda: fg.cfunc(np.sin, "float64(float64)").low_level_callable("filter1d"),
            "a filter1d is a function of one vector whose result is a vector",
        ),
        (
            lambda: fg.cfunc(
                lambda x, c: c @ x, "float64(float64[2], float64[2])"
            ).low_level_callable("quad", data=np.ones(3)),
            r"the data are float64\[2\], got shape \(3,\)",
        ),
    ],
)
def test_errors_say_what_to_do(run, text):
    with pytest.raises(ArgumentError, match=text):
        run()


def test_keywords_of_c_are_no_names():
    f = fg.cfunc(lambda int, x: int * x, "float64, float64[n] -> float64[n]")
    assert "double int_, const double *x" in f.prototype


def test_callbacks_of_scipy():
    f = fg.cfunc(lambda x, p: np.exp(-p[0] * x) + p[1], "float64(float64, float64[2])")
    for form in ("plain", "quad"):
        got = integrate.quad(f.low_level_callable(form, data=[2.0, 1.0]), 0, 1)[0]
        assert abs(got - ((1 - math.exp(-2)) / 2 + 1)) < 1e-12
    image = R.uniform(size=(6, 7))
    spread = fg.cfunc(lambda w: np.max(w) - np.min(w), "float64[n] -> float64")
    found = ndimage.generic_filter(image, spread.low_level_callable("filter"), size=3)
    expected = ndimage.maximum_filter(image, 3) - ndimage.minimum_filter(image, 3)
    assert_close(found, expected)
    means = fg.cfunc(lambda x: (x[:-2] + x[1:-1] + x[2:]) / 3, "float64[n] -> float64[n - 2]")
    found = ndimage.generic_filter1d(image, means.low_level_callable("filter1d"), 3)
    assert_close(found, ndimage.uniform_filter1d(image, 3))
    shift = fg.cfunc(lambda i, by: i - by, "int64[2], float64[2] -> float64[2]")
    found = ndimage.geometric_transform(
        image, shift.low_level_callable("transform", data=[0.5, 0.25])
    )
    assert_close(found, ndimage.shift(image, (0.5, 0.25)))


def test_an_integrator_takes_it():
    field = fg.cfunc(lambda t, y: np.stack([y[1], -y[0]]), "float64, float64[2] -> float64[2]")
    found = integrate.solve_ivp(field, (0, 1), [0.0, 1.0], rtol=1e-9, atol=1e-9)
    assert abs(found.y[0, -1] - math.sin(1)) < 1e-7


def test_numba_calls_it_with_arrays():
    gradient = fg.cfunc(fg.grad(loss), "float64[m], float64[n, m] -> float64[m]").ctypes

    @numba.njit
    def descend(w, x, steps):
        step = np.empty_like(w)
        for _ in range(steps):
            if gradient(w.size, x.shape[0], w.ctypes, x.ctypes, step.ctypes, 0) != 0:
                return w
            w = w - 0.1 * step
        return w

    w, x = R.standard_normal(3), R.standard_normal((5, 3))
    expected = w
    for _ in range(4):
        expected = expected - 0.1 * (1 - np.tanh(x @ expected) ** 2) @ x
    assert_close(descend(w, x, 4), expected)


THREADS = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef int32_t (*function)(int64_t, const double *, double *, void *);
struct work { function f; int64_t first; double worst; };

static void *run(void *given) {
    struct work *work = given;
    for (int64_t k = 0; k < 50; k++) {
        int64_t n = 1 + (work->first + k) % 9;
        double *x = malloc(8 * n), y;
        for (int64_t i = 0; i < n; i++) x[i] = i + 1;
        if (work->f(n, x, &y, NULL)) y = -1;
        double wrong = y - n * (n + 1) * (2 * n + 1) / 6;
        if (wrong < 0) wrong = -wrong;
        if (wrong > work->worst) work->worst = wrong;
        free(x);
    }
    return NULL;
}

double worst(function f) {
    pthread_t threads[4];
    struct work works[4];
    double found = 0;
    for (int k = 0; k < 4; k++) {
        works[k] = (struct work){f, 3 * k, 0};
        pthread_create(&threads[k], NULL, run, &works[k]);
    }
    for (int k = 0; k < 4; k++) {
        pthread_join(threads[k], NULL);
        if (works[k].worst > found) found = works[k].worst;
    }
    return found;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_threads_of_c_meet_new_sizes(tmp_path):
    f = fg.cfunc(lambda x: np.sum(x * x), "float64[n] -> float64")
    (tmp_path / "threads.c").write_text(THREADS)
    library = tmp_path / "threads.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", str(tmp_path / "threads.c"), "-o", str(library)]
    subprocess.run([*command, "-lpthread"], check=True)
    worst = ctypes.CDLL(str(library)).worst
    worst.restype, worst.argtypes = ctypes.c_double, [ctypes.c_void_p]
    assert worst(f.address) < 1e-12


def test_cffi_calls_it():
    cffi = pytest.importorskip("cffi")
    f = fg.cfunc(lambda p, x: p["a"] * x, "{a: float64}, float64[n] -> float64[n]")
    ffi = cffi.FFI()
    ffi.cdef(f.declaration)
    kind = "int32_t (*)(int64_t, const function_p *, const double *, double *, void *)"
    function = ffi.cast(kind, f.address)
    a, x, out = ffi.new("double *", 2.0), ffi.new("double[]", [1.0, 3.0]), ffi.new("double[2]")
    assert function(2, ffi.new("function_p *", {"a": a}), x, out, ffi.NULL) == 0
    assert list(out) == [2.0, 6.0]


CYTHON = """
from libc.stdint cimport int32_t, int64_t, uintptr_t
ctypedef int32_t (*function)(int64_t, const double *, double *, void *) noexcept nogil

def total(uintptr_t address, double[::1] x):
    cdef function f = <function><void *>address
    cdef double out
    cdef int32_t status
    with nogil:
        status = f(x.shape[0], &x[0], &out, NULL)
    return status, out
"""


@pytest.mark.nightly
def test_cython_calls_it(tmp_path):
    pytest.importorskip("Cython")
    f = fg.cfunc(lambda x: np.sum(x**3), "float64[n] -> float64")
    (tmp_path / "caller.pyx").write_text(CYTHON)
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "-3", "-i", "caller.pyx"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    sys.path.insert(0, str(tmp_path))
    try:
        caller = __import__("caller")
        assert caller.total(f.address, np.arange(4.0)) == (0, 36.0)
    finally:
        sys.path.remove(str(tmp_path))


@pytest.mark.nightly
def test_nlopt_calls_it():
    nlopt = pytest.importorskip("nlopt")

    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    both = fg.cfunc(fg.value_and_grad(rosenbrock), "float64[n] -> float64, float64[n]")

    def objective(x, slope):
        value, slope[:] = both(x)
        return float(value)

    solver = nlopt.opt(nlopt.LD_LBFGS, 6)
    solver.set_min_objective(objective)
    solver.set_xtol_rel(1e-12)
    np.testing.assert_allclose(solver.optimize(np.zeros(6)), np.ones(6), 1e-6)


def chemistry(t, y):
    """Robertson's three reactions, which are stiff."""
    a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return np.stack([b - a, a - b - c, c])


@pytest.mark.nightly
def test_sundials_calls_it():
    sundials = pytest.importorskip("sksundae.cvode")
    field = fg.cfunc(chemistry, "float64, float64[3] -> float64[3]")
    slopes = fg.cfunc(fg.jacobian(chemistry, 1), "float64, float64[3] -> float64[3, 3]")

    def of_field(t, y, out):
        out[:] = field(t, y)

    def of_slopes(t, y, at, out):
        out[:] = slopes(t, y)

    solver = sundials.CVODE(of_field, jacfn=of_slopes, rtol=1e-9, atol=1e-12, max_num_steps=5000)
    start, times = np.array([1.0, 0, 0]), (0.0, 40.0)
    found = solver.solve(np.array(times), start)
    expected = integrate.solve_ivp(field, times, start, "Radau", jac=slopes, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.y[-1], expected.y[:, -1], 1e-6)


@pytest.mark.nightly
def test_ipopt_calls_it():
    cyipopt = pytest.importorskip("cyipopt")
    both = fg.cfunc(
        fg.value_and_grad(lambda x: np.sum(np.cosh(x) + x)), "float64[n] -> float64, float64[n]"
    )
    found = cyipopt.minimize_ipopt(both, np.ones(4), jac=True, tol=1e-10)
    np.testing.assert_allclose(found.x, np.full(4, -math.asinh(1)), 1e-6)
