from __future__ import annotations

import functools
import itertools
import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import (
    ArgumentError,
    ConcretizationTypeError,
    DtypeError,
    NonConcreteBooleanIndexError,
)

RNG = np.random.default_rng(0)
X1 = RNG.normal(size=7)
X2 = RNG.normal(size=(3, 4))
X3 = RNG.normal(size=(2, 3, 4))
N2 = RNG.integers(-9, 9, (3, 4))
Z2 = X2 + 1j * RNG.normal(size=(3, 4))
F2 = X2.astype(np.float32)
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 1.5])
UP = np.cumsum(np.abs(RNG.normal(size=6)))


def check(ours, theirs, rtol=1e-12):
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            check(a, b)
        return
    assert np.shape(ours) == np.shape(theirs)
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    single = np.asarray(theirs).dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(
        ours, theirs, rtol=1e-5 if single else rtol, atol=1e-6 if single else 1e-12
    )


# Function, arguments, keywords; the first argument is an array, the others are known.
CASES = [
    ("where", (X2 > 0, X2, 0.0), {}),
    ("where", (X2, N2, F2), {}),
    ("where", (X2 > 0, F2, 1.0), {}),
    ("where", ([True, False], [1, 2], 3.5), {}),
    ("where", (N2,), {}),
    ("select", ([X2 > 1, X2 > 0], [X2, N2], -1), {}),
    ("piecewise", (X1, [X1 < 0, X1 >= 0], [-1.0, 1.0]), {}),
    ("piecewise", (X1, [X1 < 0, X1 > 0.5], [np.exp, np.sin, np.cos]), {}),
    ("piecewise", (X1, X1 < 0, [np.exp, np.sin]), {}),
    ("piecewise", (X1, np.stack([X1 < 0, X1 > 0.5]), [np.exp, np.sin, np.cos]), {}),
    ("piecewise", (1.5, np.array([False, True, False]), [np.exp, np.sin, np.cos]), {}),
    ("piecewise", (-0.5, np.array([False, False]), [np.exp, np.sin, np.cos]), {}),
    ("choose", (np.array([[0, 1], [2, 0]]), [X2[:2, :2], 5.0, N2[1:, 1:3]]), {}),
    ("choose", (np.array([0, 4, -1]), [1, 2, 3]), {"mode": "clip"}),
    ("choose", (np.array([0, 4, -1]), [1, 2, 3]), {"mode": "wrap"}),
    ("clip", (X2, -0.5, 0.5), {}),
    ("clip", (F2, None, 0.5), {}),
    ("clip", (F2, 0), {"a_max": None}),
    ("clip", (N2, np.arange(4), 3), {}),
    ("clip", (X2,), {"min": 0.0, "max": X2[0]}),
    ("nan_to_num", (SPECIAL,), {}),
    ("nan_to_num", (SPECIAL.astype(np.float32),), {"nan": 3.0, "posinf": 4, "neginf": -5}),
    ("nan_to_num", (SPECIAL.astype(complex),), {}),
    ("nan_to_num", (N2,), {}),
    ("isposinf", (SPECIAL,), {}),
    ("isneginf", (SPECIAL,), {}),
    ("isin", (N2, [1, 2, -3]), {}),
    ("isin", (N2, [1, 2, -3]), {"invert": True}),
    ("isin", (X2, []), {}),
    ("isin", (Z2, Z2[0]), {}),
    ("round", (X2 * 100,), {}),
    ("round", (X2 * 100, 2), {}),
    ("round", (X2 * 100, -1), {}),
    ("round", (N2 * 7, -1), {}),
    ("round", (Z2, 1), {}),
    ("around", (F2 * 10, 1), {}),
    ("sinc", (X2,), {}),
    ("sinc", (np.linspace(-0.05, 0.05, 11),), {}),
    ("sinc", (N2,), {}),
    ("i0", (X2,), {}),
    ("ldexp", (X2, N2), {}),
    ("ldexp", (np.array([1e-300, 1.0]), np.array([1100, -1074])), {}),
    ("polyval", (X1, X2), {}),
    ("polyval", ([1, 2, 3], 2), {}),
    ("logspace", (-1, 2.5, 7), {}),
    ("logspace", (0, 3, 4), {"base": 2.0, "endpoint": False}),
    ("geomspace", (1, 1000, 7), {}),
    ("geomspace", (-1.0, -8.0, 4), {}),
    ("geomspace", (np.abs(X2) + 1, 8.0, 5), {}),
    ("geomspace", (np.array([1.0, -2.0]), np.array([[3.0], [5.0]]) * [1, -1], 5), {"axis": 1}),
    ("geomspace", (np.array([1, 2]), 64, 4), {"axis": -1, "endpoint": False}),
    ("geomspace", (1j, 8j, 4), {}),
    ("geomspace", (np.array([1 + 1j, 2.0]), 3 - 2j, 4), {"axis": 1}),
    ("geomspace", (5.0, 5.0, 1), {}),
    ("logspace", (np.array([0.0, 1.0]), np.array([[2.0], [3.0]]), 4), {"axis": -1}),
    ("logspace", (0.0, 2.0, 5), {"base": np.array([2.0, 3.0, 10.0])}),
    ("logspace", (0.0, np.array([1.0, 2.0]), 4), {"base": np.array([2.0, 3.0]), "axis": -1}),
    ("logspace", (np.zeros((2, 1)), 2.0, 4), {"base": np.array([2.0, 3.0, 4.0]), "axis": 1}),
    ("take", (X2, [0, -1, 5]), {}),
    ("take", (X2, [[0, -1], [1, 1]]), {"axis": 1}),
    ("take", (X2, 1), {"axis": 0}),
    ("take", (X2, [9, -9]), {"axis": 1, "mode": "clip"}),
    ("take", (X2, [9, -9]), {"axis": 1, "mode": "wrap"}),
    ("take_along_axis", (X2, np.argsort(X2, 1)), {"axis": 1}),
    ("take_along_axis", (X2, np.array([[-1, 0, 1, 2]])), {"axis": 0}),
    ("take_along_axis", (X2, np.array([3, 1])), {"axis": None}),
    ("compress", ([True, False, True], X2), {"axis": 0}),
    ("compress", ([False, True], X2), {}),
    ("extract", (X2 > 0, X2), {}),
    ("insert", (X1, 2, 5), {}),
    ("insert", (X1, -1, [5, 6, 7]), {}),
    ("insert", (X1, [2], [5, 6]), {}),
    ("insert", (X1, [1, 1, 7], [5, 6, 8]), {}),
    ("insert", (X1, slice(0, 5, 2), 3), {}),
    ("insert", (X2, 3, 1.5), {}),
    ("insert", (X2, 1, X2[0]), {"axis": 0}),
    ("insert", (X2, 4, X2[:, 0]), {"axis": 1}),
    ("insert", (X2, [0, 2], X2[:, :2]), {"axis": -1}),
    ("insert", (X2, [0], X2[:, :1]), {"axis": 1}),
    ("insert", (N2, 1, 2.0), {"axis": 1}),
    ("rollaxis", (X3, 2), {}),
    ("rollaxis", (X3, 0, 3), {}),
    ("rollaxis", (X3, -1, 1), {}),
    ("delete", (X2, [0, 2]), {"axis": 1}),
    ("delete", (X1, slice(None, None, 2)), {}),
    ("repeat", (X2, 3), {}),
    ("repeat", (np.float64(2.5), 3), {"axis": 0}),
    ("repeat", (np.float64(2.5), 3), {"axis": -1}),
    ("repeat", (np.array(2.5), np.array([2])), {"axis": 0}),
    ("choose", (X2[:2] > 0, [X2[:2], 1.0]), {}),
    ("repeat", (X2, 2), {"axis": 1}),
    ("repeat", (X2, [1, 0, 2]), {"axis": 0}),
    ("resize", (X2, (5, 3)), {}),
    ("resize", (X2, 4), {}),
    ("block", ([[X2, X2], [np.ones((1, 8))]],), {}),
    ("block", ([1.0, X1],), {}),
    ("diagonal", (X2,), {}),
    ("diagonal", (X3, -1, 0, 2), {}),
    ("diagonal", (X3, 1, 2, 1), {}),
    ("diagonal", (X2, 9), {}),
    ("diag", (X1,), {}),
    ("diag", (X1, 2), {}),
    ("diag", (X1, -2), {}),
    ("diag", (X2, 1), {}),
    ("diagflat", (X2, -1), {}),
    ("vander", (X1,), {}),
    ("vander", (F2[0], 3), {"increasing": True}),
    ("vander", (N2[0], 5), {}),
    ("pad", (X2, 2), {}),
    ("pad", (X2, ((1, 2), (0, 3))), {"constant_values": 7}),
    ("pad", (N2, ((1, 2), (2, 3))), {"constant_values": ((1, 2), (3, 4))}),
    ("pad", (X2, (2, 1)), {"mode": "edge"}),
    ("pad", (X2, 2), {"mode": "reflect"}),
    ("pad", (X2, 3), {"mode": "reflect"}),
    *(
        ("pad", (x, widths), {"mode": mode})
        for mode in ("edge", "reflect", "symmetric", "wrap")
        for x, widths in ((N2, ((1, 2), (0, 3))), (X2[:, :1] > 0, (0, 2)), (X2, ((3, 0), (4, 4))))
    ),
    ("pad", (X2, 9), {"mode": "symmetric"}),
    ("pad", (X2, 9), {"mode": "wrap"}),
    ("pad", (X2, (2, 3)), {"mode": "linear_ramp", "end_values": (5, -4)}),
    ("pad", (N2, (2, 3)), {"mode": "linear_ramp"}),
    ("pad", (X2, (2, 3)), {"mode": "mean"}),
    ("pad", (N2, (2, 3)), {"mode": "mean"}),
    ("pad", (X2, (2, 0)), {"mode": "maximum", "stat_length": 2}),
    ("pad", (X2, (0, 3)), {"mode": "minimum", "stat_length": ((1, 2), (2, 3))}),
    ("pad", (X2, 1), {"mode": "median"}),
    ("diff", (X2,), {}),
    ("diff", (X2, 2), {"axis": 0}),
    ("diff", (X2,), {"prepend": 0.0, "append": X2[:, :2]}),
    ("diff", (X2 > 0,), {}),
    ("diff", (N2, 0), {}),
    ("ediff1d", (X2,), {"to_begin": [1.0, 2.0], "to_end": 5.0}),
    ("gradient", (X1,), {}),
    ("gradient", (X1, 0.5), {"edge_order": 2}),
    ("gradient", (UP, UP**2), {}),
    ("gradient", (X2,), {}),
    ("gradient", (X2, 2.0, np.array([0.0, 1.0, 3.0, 4.0])), {"edge_order": 2}),
    ("gradient", (X2,), {"axis": 1}),
    ("gradient", (X3,), {"axis": (2, 0), "edge_order": 1}),
    ("gradient", (X1[:2],), {}),
    ("trapezoid", (X2,), {}),
    ("trapezoid", (X2,), {"dx": 0.5, "axis": 0}),
    ("trapezoid", (X2, np.array([0.0, 1.0, 3.0, 4.0])), {}),
    ("trapezoid", (X2, np.abs(X2)), {"axis": 0}),
    ("trapezoid", (N2,), {}),
    ("trapezoid", (X3, UP[:4]), {}),
    ("trapezoid", (X3, np.abs(X2)), {}),
    ("trapezoid", (X3, np.abs(X2)), {"axis": -2}),
    ("trapezoid", (X3, UP[:3]), {"axis": 1}),
    ("trapezoid", (X3, np.abs(X3)), {"axis": -3}),
    ("unwrap", (np.array([0.0, 3.0, 6.5, -6.0, 0.1]),), {}),
    ("unwrap", (X2 * 9,), {"axis": 0, "period": 4}),
    ("unwrap", (X2 * 9,), {"discont": 5.0}),
    ("unwrap", (N2,), {"period": 6}),
    ("interp", (X2 * 5, UP, X1[:6]), {}),
    ("interp", (X2 * 5, UP, X1[:6]), {"left": -1.0, "right": 9.0}),
    ("interp", (X2 * 5, UP, X1[:6]), {"period": 3.0}),
    ("interp", (UP, UP, X1[:6]), {}),
    ("interp", (2.0, [1, 2, 3], [4, 5, 6]), {}),
    ("interp", (X2, [0.5], [3.0]), {}),
    ("digitize", (X2, [-1.0, 0.0, 1.0]), {}),
    ("digitize", (N2, [-3, 0, 3]), {"right": True}),
    ("digitize", (N2, [3, 0, -3]), {"right": True}),
    ("digitize", (N2, [3, 0, -3]), {}),
    ("bincount", (np.array([0, 3, 1, 3]),), {}),
    ("bincount", (np.array([0, 3, 1, 3]), X1[:4], 6), {}),
    ("bincount", (np.array([], int),), {"minlength": 2}),
    ("histogram", (X2,), {}),
    ("histogram", (X2, 4), {"range": (-1, 1)}),
    ("histogram", (X2, [-2.0, 0.0, 0.5, 3.0]), {"density": True}),
    ("histogram", (X2, 5), {"weights": np.abs(X2)}),
    ("histogram", (N2, 6), {}),
    ("histogram", (np.ones(3), 3), {}),
    ("histogram_bin_edges", (X2, 5), {}),
    ("cov", (X2,), {}),
    ("cov", (X2, X2**2), {"rowvar": False}),
    ("cov", (X1, X1**2), {"bias": True}),
    ("cov", (X1,), {"ddof": 2}),
    ("cov", (X2,), {"fweights": [1, 2, 1, 3], "aweights": [0.5, 1.0, 2.0, 1.0]}),
    ("cov", (X2,), {"fweights": [1, 2, 1, 3]}),
    ("cov", (Z2,), {}),
    ("corrcoef", (X2,), {}),
    ("corrcoef", (X1, X1**2), {}),
    ("corrcoef", (X1,), {}),
    ("tril_indices_from", (X2, -1), {}),
    ("triu_indices_from", (X2,), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_values(name, args, kwargs):
    got = getattr(fnp, name)(*args, **kwargs)
    if name == "clip" and "min" in kwargs:  # names that NumPy has since 2.1
        args, kwargs = (*args, kwargs["min"], kwargs["max"]), {}
    check(got, getattr(np, name)(*args, **kwargs))


def test_fix_rounds_towards_zero():  # NumPy's own one is deprecated
    for x in (X2 * 5, F2, SPECIAL):
        check(fnp.fix(x), np.trunc(x))


SMOOTH = [
    ("where", lambda x: fnp.where(x > 0, x, x * x), X2),
    ("select", lambda x: fnp.select([x > 1, x > 0], [x, x * x], 2 * x), X2),
    ("piecewise", lambda x: fnp.piecewise(x, [x > 0], [np.log, np.exp]), X1),
    ("choose", lambda x: fnp.choose(np.array([0, 1, 0, 1]), [x, x * x]), X2),
    ("clip", lambda x: fnp.clip(x, -0.5, x * x + 0.1), X2),
    ("nan_to_num", fnp.nan_to_num, X2),
    ("sinc", fnp.sinc, X2),
    ("sinc near 0", fnp.sinc, np.array([0.0, 0.01, -0.02])),
    ("i0", fnp.i0, X2),
    ("ldexp", lambda x: fnp.ldexp(x, 3), X2),
    ("polyval", lambda x: fnp.polyval(x, x), X1[:4]),
    ("take", lambda x: fnp.take(x, [0, 0, -1], 1), X2),
    ("take_along_axis", lambda x: fnp.take_along_axis(x, np.array([[0], [1], [1]]), 1), X2),
    ("repeat", lambda x: fnp.repeat(x, 2, 1), X2),
    ("repeat counts", lambda x: fnp.repeat(x, [2, 0, 1], 0), X2),
    ("diagonal", fnp.diagonal, X2),
    ("diag", lambda x: fnp.diag(x, 1) ** 2, X1),
    ("vander", fnp.vander, np.array([0.0, 1.0, -0.5])),
    ("pad constant", lambda x: fnp.pad(x, 1, constant_values=3.0), X2),
    ("pad reflect", lambda x: fnp.pad(x, 2, "reflect"), X2),
    ("pad wrap", lambda x: fnp.pad(x, ((1, 2), (3, 0)), "wrap"), X2),
    ("pad edge", lambda x: fnp.pad(x, 2, "edge"), X2),
    ("pad ramp", lambda x: fnp.pad(x, 2, "linear_ramp"), X2),
    ("pad mean", lambda x: fnp.pad(x, 2, "mean"), X2),
    ("diff", lambda x: fnp.diff(x, 2) ** 2, X2),
    ("gradient", lambda x: fnp.gradient(x, UP, edge_order=2), X1[:6]),
    ("gradient spacing", lambda x: fnp.gradient(X1[:6], x), UP),
    ("trapezoid", lambda x: fnp.trapezoid(x, x * x), X2),
    ("unwrap", lambda x: fnp.unwrap(x * 9), X1),
    ("interp", lambda x: fnp.interp(x, UP, X1[:6]), X2),
    ("interp xp", lambda x: fnp.interp(UP[0] + 0.05 + 0.3 * np.arange(4), x, X1[:6]), UP),
    ("interp fp", lambda x: fnp.interp(UP[:3] + 0.1, UP, x), X1[:6]),
    ("interp period", lambda x: fnp.interp(x, UP, X1[:6], period=3.0), X2),
    ("convolve", lambda x: fnp.convolve(x, x[:3], "same"), X1),
    ("correlate", lambda x: fnp.correlate(x, x[:3]), X1),
    ("bincount", lambda x: fnp.bincount(np.array([0, 2, 0, 1]), x), X1[:4]),
    ("histogram", lambda x: fnp.histogram(X1[:4], 3, weights=x, density=True)[0], np.abs(X1[:4])),
    ("cov", fnp.cov, X2),
    ("cov of weights", lambda w: fnp.cov(X2, aweights=w), np.abs(X1[:4])),
    ("corrcoef", lambda x: fnp.sin(fnp.corrcoef(x)), X2 + 0.1 * N2),
]


@pytest.mark.parametrize(("function", "x"), [c[1:] for c in SMOOTH], ids=[c[0] for c in SMOOTH])
def test_gradients(function, x):
    fg.testing.check_grads(function, (x,), order=2)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("function", "x"), [c[1:] for c in SMOOTH], ids=[c[0] for c in SMOOTH])
def test_compilation_and_batching(function, x):
    np.testing.assert_allclose(fg.jit(function)(x), function(x), rtol=1e-9, atol=1e-9)
    rows = np.stack([x, x * 1.01])
    out = fg.vmap(function)(rows)
    np.testing.assert_allclose(out, np.stack([function(r) for r in rows]), rtol=1e-9, atol=1e-9)


@given(
    st.integers(1, 8), st.integers(1, 8), st.sampled_from(["full", "same", "valid"]), st.booleans()
)
def test_convolve_and_correlate(m, n, mode, is_complex):
    rng = np.random.default_rng(m * 10 + n)
    x, y = rng.normal(size=m), rng.normal(size=n)
    if is_complex:
        x, y = x + 1j * rng.normal(size=m), y - 2j * rng.normal(size=n)
    check(fnp.convolve(x, y, mode), np.convolve(x, y, mode))
    check(fnp.correlate(x, y, mode), np.correlate(x, y, mode))


def test_traced_indices():
    x = np.arange(5.0)
    take = fg.jit(lambda i: fnp.take(x, i))
    np.testing.assert_array_equal(take(np.array([0, -1, 4])), [0.0, 4.0, 4.0])
    along = fg.jit(lambda i: fnp.take_along_axis(x, i))
    np.testing.assert_array_equal(along(np.array([0, -1, 4])), [0.0, 4.0, 4.0])
    for function in (take, along):
        with pytest.raises(IndexError, match=r"index 99 .* is out of bounds for axis 0"):
            function(np.array([0, -1, 99]))
    with pytest.raises(IndexError, match="out of bounds"):
        fnp.take_along_axis(x, np.array([5]))


def test_known_and_traced_masks():
    x = np.arange(4.0)
    out = fg.grad(lambda v: fnp.compress([True, False, True], v).sum())(x)
    np.testing.assert_array_equal(out, [1.0, 0.0, 1.0, 0.0])
    with pytest.raises(NonConcreteBooleanIndexError):
        fg.jit(lambda v: fnp.compress(v > 1, v))(x)
    with pytest.raises(ConcretizationTypeError, match="size="):
        fg.jit(fnp.where)(x)


def test_piecewise_keeps_other_domains_out_of_the_gradient():
    x = np.array([-1.0, 0.0, 4.0])
    out = fg.grad(lambda v: fnp.piecewise(v, [v > 0], [np.sqrt, 0.0]).sum())(x)
    np.testing.assert_array_equal(out, [0.0, 0.0, 0.25])


def test_bincount_of_traced_numbers():
    count = fg.jit(lambda i: fnp.bincount(i, length=3))
    np.testing.assert_array_equal(count(np.array([0, 2, 2, 7, -1])), [1, 0, 2])
    with pytest.raises(ConcretizationTypeError, match="length="):
        fg.jit(fnp.bincount)(np.array([0, 1]))
    with pytest.raises(ValueError, match="negative"):
        fnp.bincount(np.array([-1]))


def test_histogram_of_traced_values():
    counts, edges = fg.jit(lambda v: fnp.histogram(v, 4))(X2)
    check(counts, np.histogram(X2, 4)[0])
    check(edges, np.histogram(X2, 4)[1])


def test_where_of_python_numbers_stays_weak():
    x = np.float32([1.0, 2.0])
    assert fg.jit(lambda v: v * fnp.where(v > 1, 2.0, 3.0).astype(v.dtype))(x).dtype == np.float32


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: fnp.where(True, 1.0), ValueError),
        (lambda: fnp.select([], []), ValueError),
        (lambda: fnp.pad(X1, -1), ValueError),
        (lambda: fnp.pad(X1, 1, "nonsense"), ValueError),
        (lambda: fnp.take(X1, [9]), IndexError),
        (lambda: fnp.take(X1, [0.5]), IndexError),
        (lambda: fnp.diag(X3), ValueError),
        (lambda: fnp.convolve([], [1.0]), ValueError),
        (lambda: fnp.convolve([1.0], [1.0], "nonsense"), ValueError),
        (lambda: fnp.gradient(X1[:1]), ValueError),
        (lambda: fnp.interp(X1, UP, UP[:3]), ValueError),
        (lambda: fnp.digitize(X1, [0.0, 1.0, 0.5]), ValueError),
        (lambda: fnp.histogram(X1, "auto"), ArgumentError),
        (lambda: fnp.repeat(X1, -1), ValueError),
        (lambda: fnp.clip(X1, 0, 1, np.empty(7)), ArgumentError),
    ],
)
def test_refusals(call, error):
    with pytest.raises(error):
        call()


LENGTHS = [(300, 200), (200, 300), (129, 129), (20000, 3)]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("dtype", ["d", "f", "D", "i8", "?"])
def test_long_convolutions(lengths, mode, dtype):
    """Long ones are an operation of their own."""
    rng = np.random.default_rng(0)
    x, y = ((4 * rng.normal(size=n)).astype(dtype) for n in lengths)
    for name in ("convolve", "correlate"):
        ours, theirs = getattr(fnp, name), getattr(np, name)(x, y, mode)
        for wrap in (lambda f: f, fg.jit):
            found = wrap(lambda x, y, f=ours: f(x, y, mode))(x, y)
            assert found.dtype == theirs.dtype
            np.testing.assert_allclose(
                found, theirs, *((1e-4, 1e-3) if dtype == "f" else (1e-11, 1e-11))
            )
        mapped = fg.vmap(lambda x, y, f=ours: f(x, y, mode), (0, None))(np.stack([x, x[::-1]]), y)
        np.testing.assert_allclose(mapped[1], getattr(np, name)(x[::-1], y, mode), 1e-4, 1e-3)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_derivatives_of_long_convolutions(lengths, mode):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=n) for n in lengths)
    w = rng.normal(size=np.convolve(x, y, mode).shape)
    tangents = tx, ty = np.cos(x), np.sin(y)
    expected = np.dot(w, np.convolve(tx, y, mode) + np.convolve(x, ty, mode))

    def loss(x, y):
        return np.dot(w, np.convolve(x, y, mode))

    for wrap in (lambda f: f, fg.jit):
        gx, gy = wrap(fg.grad(loss, (0, 1)))(x, y)
        np.testing.assert_allclose(np.dot(gx, tx) + np.dot(gy, ty), expected, 1e-10)
        dot = wrap(lambda x, y: fg.jvp(loss, (x, y), tangents)[1])(x, y)
        np.testing.assert_allclose(dot, expected, 1e-10)
    mixed = fg.jvp(lambda y: fg.grad(loss)(x, y), (y,), (ty,))[1]
    np.testing.assert_allclose(np.dot(mixed, tx), np.dot(w, np.convolve(tx, ty, mode)), 1e-10)


def test_long_convolutions_need_little_memory():
    """A hundred thousand times twenty thousand products, of which none are kept."""
    x, y = np.ones(100_000), np.ones(20_000)
    program = str(fg.make_jaxpr(fg.grad(lambda x, y: np.sum(np.convolve(x, y) ** 2), (0, 1)))(x, y))
    sizes = [math.prod(map(int, s.split(","))) for s in re.findall(r"\[([\d,]+)\]", program)]
    assert max(sizes) <= 200_000


SAMPLES = [(5,), (1, 5), (5, 1), (3, 4), (1, 1), (1,), (2, 0), (0, 2)]
COVARIANCE_KEYWORDS = [{}, {"bias": True}, {"ddof": 0}, {"ddof": 9}, {"ddof": 1.5}, {"dtype": "f4"}]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("rowvar", [True, False])
@pytest.mark.parametrize("shape", SAMPLES, ids=str)
def test_covariances_of_every_shape(shape, rowvar):
    """Vectors, single rows and single columns, alone and in pairs, real and complex."""
    if (
        shape == (1, 5)
        and not rowvar
        and np.shape(outcome(np.cov, np.ones(shape), None, False)) == ()
    ):
        pytest.skip("NumPy 2.0 takes a row of five variables for five values of one")
    rng = np.random.default_rng(1)
    for dtype, own in itertools.product("dD", [None, (5,), (1, 5), (5, 1), (3, 4), (2, 4)]):
        x = rng.normal(size=shape) * (1 + 2j if dtype == "D" else 1)
        y = None if own is None else rng.normal(size=own)
        for keywords in COVARIANCE_KEYWORDS[: 5 if dtype == "D" else None]:
            names = ("cov", "corrcoef") if not keywords else ("cov",)
            for name, wrap in itertools.product(names, (lambda f: f, fg.jit)):
                plain, own_function = (
                    functools.partial(getattr(module, name), rowvar=rowvar, **keywords)
                    for module in (np, fnp)
                )
                theirs, ours = outcome(plain, x, y), outcome(wrap(own_function), x, y)
                if isinstance(theirs, Exception):
                    assert isinstance(ours, Exception)
                else:
                    single = np.asarray(theirs).dtype == np.float32
                    assert np.shape(ours) == np.shape(theirs)
                    # What is divided by 0 is infinite. Its imaginary part is a rounding error
                    # times infinity: of either sign, or nan where it is 0.
                    finite = np.isfinite(theirs)
                    np.testing.assert_array_equal(np.isfinite(ours), finite)
                    ours, theirs = (np.where(finite, x, np.real(x)) for x in (ours, theirs))
                    np.testing.assert_allclose(
                        ours, theirs, *((1e-4,) * 2 if single else (1e-9,) * 2)
                    )


def outcome(function, *args):
    """The value, or the exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except Exception as error:
            return error


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit])
def test_complex_numbers_have_no_order(wrap):
    for bounds in ((0.0, 1.0), (None, 1.0), (0.0, None)):
        with pytest.raises(
            DtypeError, match=r"clip: complex numbers have no order, got c128\[3,4\]"
        ):
            wrap(lambda x, b=bounds: fnp.clip(x, *b))(Z2)
    with pytest.raises(DtypeError, match="clip: complex"):
        wrap(lambda x: fnp.clip(x, 1j))(X1)


@pytest.mark.parametrize("args", [(3j,), (0, 3 + 0j), (0, 3, 1j), (np.complex64(2),)])
def test_a_complex_range_is_refused(args):
    with pytest.raises(DtypeError, match="arange: complex numbers have no order"):
        fnp.arange(*args)
    np.testing.assert_array_equal(fnp.arange(3, dtype=complex), np.arange(3, dtype=complex))


def test_repeat_to_a_known_length():
    for repeats in (np.array([2, 0, 1, 1, 0, 3, 1]), 2):
        full = np.repeat(X1, repeats)
        cut = fnp.repeat(X1, repeats, total_repeat_length=3)
        np.testing.assert_array_equal(cut, full[:3])
        wide = fg.jit(lambda r: fnp.repeat(X1, r, total_repeat_length=20))(repeats)
        np.testing.assert_array_equal(wide, np.append(full, [X1[-1]] * (20 - len(full))))


def test_repeat_of_traced_numbers_asks_for_a_length():
    with pytest.raises(ConcretizationTypeError, match="total_repeat_length="):
        fg.jit(lambda r: fnp.repeat(X1, r))(2)


# Places that are traced: the array, the places, the values, the axis.
PLACES = [
    *((X1, i, 5.0, None) for i in (-7, -1, 0, 3, 6, np.int32(2), np.uint8(4))),
    *((X1, i, X1[:2], None) for i in (-7, -1, 0, 3, 7)),
    *((X2, i, 1.5, axis) for i in (-2, 0, 2) for axis in (None, 0, 1, -1)),
    (X2, 3, X2[:, 0], 1),
    (X2, [1], X2[:, :2], 1),
    (X1, [1, 1, 7], [5.0, 6.0, 8.0], None),
    (X1, [5, 2, 2, -1], 3.0, None),
    (X2, [0, 3, 1], X2[:, :3], 1),
    (N2, [2, 0], 7, 0),
]
TRACED = {
    "jit": lambda f: fg.jit(f),
    "staged": lambda f: lambda i: fg.make_jaxpr(f)(i).eval(i)[0],
    "vmap": lambda f: lambda i: fg.vmap(f)(np.stack([i, i]))[1],
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("transformation", TRACED)
@pytest.mark.parametrize("module", [np, fnp])
def test_insert_and_delete_at_traced_places(module, transformation):
    traced = TRACED[transformation]
    for x, places, values, axis in PLACES:
        inserted = traced(lambda i, x=x, v=values, axis=axis: module.insert(x, i, v, axis))
        check(inserted(np.array(places)), np.insert(x, places, values, axis))
        length = x.size if axis is None else x.shape[axis]
        if np.size(places) == 1 and np.max(places) < length:
            deleted = traced(lambda i, x=x, axis=axis: module.delete(x, i, axis))
            check(deleted(np.array(places)), np.delete(x, places, axis))


def test_traced_places_beyond_the_array_are_clamped_by_the_rule_of_jax():
    with pytest.raises(IndexError, match="insert: place 9 is out of bounds for an axis of length"):
        fg.jit(lambda i: fnp.insert(X1, i, 5.0))(9)
    fg.config.update("out_of_bounds", "clamp")
    try:
        check_clamped()
    finally:
        fg.config.update("out_of_bounds", "raise")


def check_clamped():
    check(fg.jit(lambda i: fnp.insert(X1, i, 5.0))(9), np.insert(X1, 7, 5.0))
    check(fg.jit(lambda i: fnp.insert(X1, i, 5.0))(-9), np.insert(X1, 0, 5.0))
    check(fg.jit(lambda i: fnp.delete(X1, i))(9), np.delete(X1, 6))


def test_gradient_of_insert_and_delete_at_traced_places():
    w = np.arange(8.0)
    slope = fg.jit(fg.grad(lambda x, i: fnp.insert(x, i, 2 * x[0]) @ w))(X1, 2)
    check(slope, np.delete(w, 2) + np.array([4.0, *np.zeros(6)]))
    slope = fg.jit(fg.grad(lambda x, i: fnp.delete(x, i) @ w[:6]))(X1, 2)
    check(slope, np.insert(w[:6], 2, 0.0))


@pytest.mark.parametrize(
    ("function", "places", "text"),
    [
        (lambda i: fnp.insert(X1, i, 1.0), X1 > 0, r"insert needs integers .* traced bool\[7\]"),
        (lambda i: fnp.delete(X1, i), X1 > 0, r"delete needs integers .* traced bool\[7\]"),
        (lambda i: fnp.delete(X1, i), 1.5, r"delete needs integers .* traced ~f64\[\]"),
        (lambda i: fnp.delete(X1, i), [1, 2], r"the length of delete's result .* traced i64\[2\]"),
        (lambda i: fnp.delete(X1[:0], i), 0, r"the length of delete's result"),
    ],
)
def test_traced_places_that_would_decide_the_length(function, places, text):
    with pytest.raises(ConcretizationTypeError, match=text):
        fg.jit(function)(np.array(places) if isinstance(places, list) else places)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int64, np.int16])
@pytest.mark.parametrize("decimals", [40, 400, 10**6, np.int64(400)])
def test_rounding_to_digits_that_do_not_exist(decimals, dtype):
    x = np.array([1.5, -2.25, 3.0e4]).astype(dtype)
    for transform in (lambda f: f, fg.jit):
        got = transform(lambda x: fnp.round(x, decimals))(x)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, x)
        np.testing.assert_array_equal(transform(lambda x: fnp.round(x, -decimals))(x), 0 * x)


def test_geometric_lines_of_traced_bounds():
    start = np.array([1.0, -2.0, 3.0])
    for transform in (lambda f: f, fg.jit):
        got = transform(lambda a: fnp.geomspace(a, 8 * a, 4))(start)
        np.testing.assert_allclose(got, np.geomspace(start, 8 * start, 4), rtol=1e-12)
        np.testing.assert_array_equal(got[[0, -1]], [start, 8 * start])
    fg.testing.check_grads(lambda a, b: fnp.geomspace(a, b, 5), (start, 4 * start), order=2)
    fg.testing.check_grads(lambda a: fnp.logspace(0.0, 2.0, 3, base=a), (np.abs(start),), order=2)
    with pytest.raises(ValueError, match="cannot include zero"):
        fnp.geomspace(0.0, 1.0)


def test_split_at_an_array_of_sizes():
    got = fg.jit(lambda x: fg.lax.split(x, np.array([1, 3, 3])))(X1)
    for part, expected in zip(got, np.split(X1, [1, 4]), strict=True):
        np.testing.assert_array_equal(part, expected)
