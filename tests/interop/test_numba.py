"""Numba's functions have derivatives, and funcgrad's functions have addresses."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numpy import cos, hypot
from scipy import integrate, ndimage

import funcgrad as fg
from funcgrad import lax
from funcgrad.interop.numba import cfunc, install, traceable, uninstall

X = np.array([0.5, 1.5, 2.0])
SCALE = 2.0


@pytest.fixture(autouse=True)
def patched():
    """Numba's functions take traced values within a test, and not after it."""
    install()
    yield
    uninstall()


@numba.njit
def bend(x, k=2.0):
    return SCALE * math.sin(x) * x + k


@numba.njit
def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] > 1.0:
            s += bend(x[i])
        else:
            s -= x[i] ** 3
    return s


@numba.njit
def hinge(x, w):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] * w > 1.0:
            s += (x[i] * w - 1.0) ** 2
    return s


@numba.njit
def until(x, tolerance):
    y, n = x, 0
    while abs(y * y - x) > tolerance:
        y = 0.5 * (y + x / y)
        n += 1
        if n > 50:
            return 0.0
    return y


@numba.njit(parallel=True)
def roots(x):
    out = np.zeros(len(x))
    for i in numba.prange(len(x)):
        if x[i] > 1.0:
            out[i] = math.sqrt(x[i])
        else:
            out[i] += i * x[i]
    return out


@numba.njit
def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


@numba.njit
def by_name(x):
    return cos(x) * hypot(x, 2.0)


@numba.njit(parallel=True)
def parallel(x):
    s = 0.0
    for i in numba.prange(len(x)):
        s += np.exp(-x[i]) * np.linalg.norm(x)
    return s


@numba.njit
def largest(x, y):
    return max(x, y, 0.5) * min(x, y) + abs(float(x))


@numba.njit
def of_pair(pair):
    a, b = pair
    return a * b * b


@numba.njit
def inner(x):
    def square(t):
        return math.pow(t, 2.0)

    return square(x) + math.log(x, 2.0)


@numba.vectorize
def elementwise(x, y):
    return x * y + math.exp(x)


@numba.njit
def calls_elementwise(x):
    return np.sum(elementwise(x, 2.0))


@numba.njit
def declared(x):
    return x * x * x


@numba.njit
def calls_declared(x):
    return declared(x) + 1.0


@pytest.fixture(scope="module", autouse=True)
def signature():
    """Compile what has a signature, as Numba does where it is decorated; not during collection."""
    if not declared.signatures:  # a process may come back to this module
        declared.compile("float64(float64)")
        declared.disable_compile()


def slope(f, x):
    """By central differences of the function as Python runs it."""
    x = np.asarray(x, float)
    steps = 1e-6 * np.eye(x.size).reshape(x.size, *x.shape)
    flat = [(f(x + h) - f(x - h)) / 2e-6 for h in steps]
    return np.reshape(flat, x.shape)


TRACED = {
    "scalars": (lambda x: bend(x), 0.7),
    "branches on traced numbers": (fg.jit(traceable(total)), X),
    "loops on traced numbers": (fg.jit(lambda x: until(x, 1e-12)), 2.0),
    "writes in branches": (fg.jit(lambda x: np.sum(roots(x))), np.array([0.5, 2, 3, 0.1, 0.2, 4])),
    "loops and calls": (total, X),
    "recursion": (lambda x: power(x, 4), 1.3),
    "functions imported by name": (by_name, 0.3),
    "prange and linalg": (parallel, X),
    "min and max": (lambda x: largest(x, 1.0), 2.0),
    "tuples": (lambda x: of_pair((x, x)), 1.5),
    "inner functions": (inner, 1.5),
    "vectorize": (calls_elementwise, X),
    "signatures": (calls_declared, 1.5),
}


def test_programs_of_loops_with_branches_do_not_grow():
    sizes = [len(fg.make_jaxpr(traceable(total))(np.ones(n)).eqns) for n in (20, 2000)]
    assert sizes[0] == sizes[1] < 20
    x = np.linspace(-2.0, 3.0, 2000)
    expected = np.where(x > 1, SCALE * (np.sin(x) + x * np.cos(x)), -3 * x**2)
    np.testing.assert_allclose(fg.jit(fg.grad(traceable(total)))(x), expected, rtol=1e-13)


def test_cotangents_of_elements_are_no_arrays():
    """A branch is given the element that its condition reads, and no array, whose zeros it adds."""
    gradient = fg.make_jaxpr(fg.grad(traceable(hinge)))(np.ones(100), 1.5)
    switches = [text.split("in (")[0] for text in str(gradient).split("branches[")[1:]]
    assert switches
    assert not any("f64[100]" in text for text in switches)
    x = np.linspace(-2.0, 3.0, 500)
    np.testing.assert_allclose(
        fg.jit(fg.grad(traceable(hinge)))(x, 1.5), 3 * np.maximum(1.5 * x - 1, 0), rtol=1e-13
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TRACED)
def test_compiled_functions_have_derivatives(name):
    f, x = TRACED[name]
    reference = {
        "scalars": lambda x: SCALE * np.sin(x) * x + 2.0,
        "branches on traced numbers": lambda x: sum(
            SCALE * np.sin(t) * t + 2 if t > 1 else -(t**3) for t in x
        ),
        "loops on traced numbers": np.sqrt,
        "writes in branches": lambda x: np.sum(np.where(x > 1, np.sqrt(x), x * np.arange(x.size))),
        "loops and calls": lambda x: sum(
            SCALE * np.sin(t) * t + 2 if t > 1 else -(t**3) for t in x
        ),
        "recursion": lambda x: x**4,
        "functions imported by name": lambda x: np.cos(x) * np.hypot(x, 2.0),
        "prange and linalg": lambda x: np.sum(np.exp(-x)) * np.linalg.norm(x),
        "min and max": lambda x: max(x, 1.0, 0.5) * min(x, 1.0) + abs(x),
        "tuples": lambda x: x**3,
        "inner functions": lambda x: x**2 + np.log2(x),
        "vectorize": lambda x: np.sum(2 * x + np.exp(x)),
        "signatures": lambda x: x**3 + 1,
    }[name]
    np.testing.assert_allclose(fg.grad(f)(x), slope(reference, x), rtol=1e-6, atol=1e-7)
    ones = np.ones_like(x)
    value, dot = fg.jvp(f, (x,), (ones,))
    np.testing.assert_allclose(value, reference(x), rtol=1e-13)
    np.testing.assert_allclose(dot, np.sum(slope(reference, x)), rtol=1e-6, atol=1e-7)
    if np.ndim(x) == 0:
        points = np.array([x, x + 0.01])
        np.testing.assert_allclose(
            fg.vmap(f)(points), [reference(p) for p in points.tolist()], rtol=1e-13
        )


def test_they_are_arguments_of_every_transformation():
    exact = np.cos(X) * X * SCALE + SCALE * np.sin(X)
    np.testing.assert_allclose(fg.vmap(fg.grad(bend))(X), exact, rtol=1e-12)
    np.testing.assert_allclose(fg.jit(bend)(0.5), SCALE * np.sin(0.5) * 0.5 + 2)
    np.testing.assert_allclose(fg.grad(fg.grad(power))(2.0, 3), 12.0)
    carry, seen = lax.scan(lambda c, x: (bend(c, x), c), 0.1, X)
    expected = 0.1
    for k, c in zip(X, seen, strict=True):
        assert abs(c - expected) < 1e-12
        expected = SCALE * np.sin(expected) * expected + k
    assert abs(carry - expected) < 1e-12


def test_concrete_arguments_run_what_numba_compiled():
    assert bend(0.5) == SCALE * math.sin(0.5) * 0.5 + 2.0
    fg.grad(bend)(0.5)
    assert bend(0.5) == SCALE * math.sin(0.5) * 0.5 + 2.0
    assert len(bend.signatures) == 1
    with pytest.raises(numba.core.errors.TypingError):
        total("text")


def test_functions_of_elements_and_with_signatures_are_traceable_by_name():
    np.testing.assert_allclose(fg.grad(traceable(declared))(2.0), 12.0)
    np.testing.assert_allclose(fg.vmap(fg.grad(traceable(elementwise)))(X, X), X + np.exp(X))
    assert traceable(bend) is traceable(bend)


@numba.guvectorize("(n)->()")  # without types, so that it is not compiled while tests are collected
def generalised(x, out):
    out[0] = x.sum()


@numba.guvectorize("(n),()->(n),()")
def smoothed(x, weight, out, largest):
    s = x[0]
    for i in range(x.shape[0]):
        s = weight * x[i] + (1.0 - weight) * s
        out[i] = s
    largest[0] = max(s, 0.0)


def test_functions_that_write_their_results():
    rows = np.stack([X, -X])
    types = [(numba.float64[:], numba.float64[:])]
    declared = numba.guvectorize(types, "(n)->()")(generalised.gufunc_builder.py_func)
    np.testing.assert_allclose(fg.jit(traceable(declared))(rows), rows.sum(1))
    np.testing.assert_allclose(fg.jit(traceable(generalised))(rows), rows.sum(1))
    weights = np.array([0.5, 0.25])
    np.testing.assert_allclose(
        fg.jit(fg.grad(lambda x: np.sum(traceable(generalised)(x) ** 2)))(rows),
        2 * rows.sum(1)[:, None] * np.ones(3),
    )
    out, largest = fg.jit(traceable(smoothed))(rows, weights)
    for row, weight, got, last in zip(rows, weights, out, largest, strict=True):
        want = [row[0]]
        for value in row:
            want.append(weight * value + (1 - weight) * want[-1])
        np.testing.assert_allclose(got, want[1:])
        np.testing.assert_allclose(last, max(want[-1], 0.0))


@pytest.mark.parametrize(
    ("run", "kind", "text"),
    [
        (lambda: fg.grad(declared)(1.0), TypeError, r"traceable\(declared\)"),
        (lambda: fg.grad(elementwise)(1.0, 1.0), NotImplementedError, "ufunc elementwise has no"),
        (lambda: traceable(np.sin), TypeError, "made by .*numba.guvectorize, got ufunc"),
        (lambda: cfunc(lambda x: X, "float64(float64)"), TypeError, r"returns f64\[3\]"),
        (lambda: cfunc(np.sin, "float64(str)"), TypeError, "str is no dtype"),
        (lambda: cfunc(3, "float64(float64)"), TypeError, "needs a function"),
        (
            lambda: cfunc(np.sin, "float64(float64)").low_level_callable("filter"),
            TypeError,
            "a filter is a function of one vector",
        ),
        (
            lambda: cfunc(np.sin, "float64(float64)").low_level_callable("ode"),
            TypeError,
            "got 'ode' for double sin",
        ),
        (
            lambda: cfunc(
                lambda x: fg.scipy.linalg.signm(x.reshape(2, 2))[0, 0], "float64(float64[4])"
            ),
            TypeError,
            "an operation that NumPy evaluates",
        ),
    ],
)
def test_errors_say_what_to_do(run, kind, text):
    with pytest.raises(kind, match=text):
        run()


def test_a_derivative_is_called_by_c_and_by_scipy():
    f = cfunc(fg.grad(lambda x: np.sin(x) * x), "float64(float64)")
    assert f.prototype == "double function(double)"
    assert repr(f) == "<compiled double function(double)>"
    assert abs(f.ctypes(1.0) - (math.cos(1) + math.sin(1))) < 1e-15
    by_address = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(f.address)
    assert by_address(1.0) == f.ctypes(1.0)
    assert abs(integrate.quad(f.low_level_callable(), 0, 2)[0] - 2 * math.sin(2)) < 1e-12


def test_vectors_are_pointers():
    rhs = cfunc(lambda t, y: np.stack([y[1], -t * y[0]]), "float64[2](float64, float64[2])")
    assert rhs.prototype == "void function(double, const double *, double *)"
    pointer = ctypes.POINTER(ctypes.c_double)
    y, out = np.array([1.0, 2.0]), np.zeros(2)
    rhs.ctypes(3.0, y.ctypes.data_as(pointer), out.ctypes.data_as(pointer))
    np.testing.assert_array_equal(out, [2.0, -3.0])


def test_constants_and_vectors_are_read_by_computed_indices():
    table = np.array([1.0, 2.0, 4.0])
    f = cfunc(lambda t, x: t[x.astype(np.int64)], "float64(float64[3], float64)")
    start = table.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    found = [f.ctypes(start, k) for k in (0.0, 2.0, -1.0, 3.0, 1.0)]
    # C knows no exceptions: what raises under jit gives nan.
    np.testing.assert_array_equal(found, [1.0, 4.0, 4.0, np.nan, 2.0])


@pytest.mark.nightly
def test_threads_call_it_at_once():
    f = cfunc(lambda x, y: np.sum(np.sin(np.arange(100.0) * x)) * y, "float64(float64, float64)")
    points = np.linspace(0.0, 1.0, 400)
    expected = [np.sum(np.sin(np.arange(100.0) * x)) * 2 for x in points]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: [f.ctypes(x, 2.0) for x in points], range(8)):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.nightly
def test_forms_of_scipys_callbacks():
    f = cfunc(
        lambda x, y: np.exp(-x * y) * np.sum(np.arange(50.0) * x), "float64(float64, float64)"
    )
    got = integrate.nquad(f.low_level_callable("quad"), [[0, 1], [0, 2]])[0]
    expected = integrate.dblquad(lambda y, x: np.exp(-x * y) * 1225 * x, 0, 1, 0, 2)[0]
    assert abs(got - expected) < 1e-8
    centre = cfunc(lambda w: fg.grad(lambda w: np.sum(w**3))(w)[4], "float64(float64[9])")
    image = np.random.default_rng(0).uniform(size=(6, 6))
    found = ndimage.generic_filter(image, centre.low_level_callable("filter"), size=3)
    np.testing.assert_allclose(found, 3 * image**2)


@pytest.mark.nightly
def test_numbas_code_calls_it():
    slope_of = cfunc(fg.grad(lambda x: np.sin(x) * x), "float64(float64)").ctypes

    @numba.njit
    def loop(n):
        s = 0.0
        for i in range(n):
            s += slope_of(0.1 * i)
        return s

    points = 0.1 * np.arange(1000)
    assert abs(loop(1000) - np.sum(np.cos(points) * points + np.sin(points))) < 1e-9


@numba.njit
def thomas(below, diagonal, above, right):
    """A tridiagonal system, by elimination in arrays that are written to."""
    n = len(right)
    c, d, x = np.zeros(n), np.zeros(n), np.empty(n)
    c[0], d[0] = above[0] / diagonal[0], right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - below[i] * c[i - 1]
        c[i] = above[i] / pivot
        d[i] = (right[i] - below[i] * d[i - 1]) / pivot
    x[n - 1] = d[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


@numba.njit
def fill(out, x):
    for i in range(out.shape[0]):
        out[i] += math.sin(x) * i


@numba.njit
def filled(x):
    out = np.zeros((2, 3))
    fill(out[0], x)
    out[1:] += 1.0
    return out


def test_arrays_that_they_make_are_written_to():
    pytest.importorskip("funcgrad.numpy.writable")
    below, diagonal = np.array([0.0, 1.0, 1.0, 1.0]), np.full(4, 4.0)
    above, right = np.array([1.0, 1.0, 1.0, 0.0]), np.arange(4.0)
    matrix = np.diag(diagonal) + np.diag(above[:3], 1) + np.diag(below[1:], -1)
    args = (below, diagonal, above, right)
    np.testing.assert_allclose(fg.jacrev(thomas, 3)(*args), np.linalg.inv(matrix), atol=1e-14)
    x = np.linalg.solve(matrix, right)
    slope = -np.linalg.inv(matrix) * x
    np.testing.assert_allclose(fg.jacfwd(thomas, 1)(*args), slope, atol=1e-14)
    np.testing.assert_allclose(fg.jit(thomas)(*args), x, atol=1e-14)
    rows = np.stack([right, 2 * right])
    np.testing.assert_allclose(fg.vmap(thomas, (None, None, None, 0))(*args[:3], rows)[1], 2 * x)
    expected = np.stack([np.cos(0.3) * np.arange(3), np.zeros(3)])
    np.testing.assert_allclose(fg.jacfwd(filled)(0.3), expected)


def test_numba_is_neither_loaded_nor_changed_unasked():
    code = """
import sys, numpy as np, funcgrad as fg
fg.grad(np.sin)(1.0)
assert 'funcgrad.interop.numba' not in sys.modules
import numba
base = numba.core.dispatcher._DispatcherBase
before = dict(vars(base))
f = numba.njit(lambda x: x * x)
try:
    fg.grad(f)(3.0)
except TypeError:
    pass
assert fg.grad(fg.interop.numba.traceable(f))(3.0) == 6.0
assert dict(vars(base)) == before
fg.interop.numba.install()
fg.interop.numba.install()
assert fg.grad(f)(3.0) == 6.0 and f(3.0) == 9.0
assert dict(vars(base)) != before
fg.interop.numba.uninstall()
fg.interop.numba.uninstall()
assert dict(vars(base)) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", [bend, declared, of_pair], ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", [fg.grad, fg.jit, fg.vmap, "scan"])
def test_without_the_patch_the_error_names_the_line_and_the_remedy(function, transform):
    uninstall()
    x = 1.0 if transform is fg.grad else X

    def caller(x):
        return function((x, x)) if function is of_pair else function(x)

    def scanned(x):
        return lax.scan(lambda c, x: (c, caller(x)), 0.0, x)

    run = scanned if transform == "scan" else transform(caller)
    with pytest.raises(fg.errors.TracerArrayConversionError) as info:
        run(x)
    text, name = str(info.value), function.__name__
    assert f"{name}, which Numba compiled, needs arrays, but it was called with a traced" in text
    line = "return function((x, x)) if function is of_pair else function(x)"
    assert re.search(rf"test_numba.py:\d+   {re.escape(line)}", text)
    assert f"Call funcgrad.interop.numba.traceable({name}) instead of {name}" in text
    assert "Or call funcgrad.interop.numba.install() first" in text


@numba.njit
def doubled(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = 2 * x[i]
    return y.sum()


@pytest.mark.parametrize("transform", [fg.grad, fg.jit])
def test_the_error_is_the_same_where_arrays_can_be_assigned_to(transform):
    def caller(x):
        y = 3 * x
        y[0] = 1.0
        return doubled(y) + (not hasattr(y, "_numba_type_"))

    uninstall()
    with pytest.raises(fg.errors.TracerArrayConversionError) as info:
        transform(caller)(X)
    assert "doubled, which Numba compiled, needs arrays" in str(info.value)
    assert re.search(r"test_numba.py:\d+   return doubled\(y\)", str(info.value))


def test_questions_of_others_are_answered_as_of_any_array():
    found = []
    fg.grad(lambda x: found.append(hasattr(x, "_numba_type_")) or x)(1.0)
    assert found == [False]


def test_what_others_have_patched_since_is_left_alone():
    base = numba.core.dispatcher._DispatcherBase
    ours = base.typeof_pyval
    base.typeof_pyval = lambda self, val: ours(self, val)
    try:
        with pytest.raises(TypeError, match="another library has replaced it since install"):
            uninstall()
    finally:
        base.typeof_pyval = ours
