from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import ArgumentError

DTYPES = (
    np.bool_, np.int8, np.uint8, np.int32, np.int64, np.uint32,
    np.float32, np.float64, np.complex64, np.complex128,
)  # fmt: skip
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher",
    "midpoint", "nearest",
)  # fmt: skip
FOLDS = ("sum", "prod", "mean", "var", "std", "any", "all", "count_nonzero")
REAL_FOLDS = ("max", "min", "amax", "amin", "ptp", "median")
NAN_FOLDS = (
    "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian",
)  # fmt: skip
SHAPE = (2, 3, 4)


def sample(dtype=np.float64, shape=SHAPE, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 2
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    elif np.dtype(dtype).kind == "u":
        x = np.abs(x)
    return x.astype(dtype)


def holes(seed=0):
    x = sample(shape=(4, 6), seed=seed)
    return np.where(np.random.default_rng(seed).random(x.shape) < 0.3, np.nan, x)


def check(ours, theirs):
    assert np.shape(ours) == np.shape(theirs)
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    single = np.asarray(theirs).dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(
        ours, theirs, rtol=2e-5 if single else 1e-12, atol=1e-6 if single else 1e-12
    )


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("name", FOLDS + REAL_FOLDS + NAN_FOLDS)
def test_folds(name, axis, keepdims):
    for dtype in DTYPES:
        x = sample(dtype)
        is_complex, is_bool = x.dtype.kind == "c", x.dtype.kind == "b"
        if is_complex and name not in FOLDS and name not in ("nansum", "nanprod", "nanmean"):
            continue
        if (is_bool and name == "ptp") or (axis == () and "median" in name):
            continue
        check(
            getattr(fnp, name)(x, axis=axis, keepdims=keepdims),
            getattr(np, name)(x, axis=axis, keepdims=keepdims),
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAN_FOLDS)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_folds_that_skip_nan(name, axis):
    check(getattr(fnp, name)(holes(), axis=axis), getattr(np, name)(holes(), axis=axis))
    compiled = fg.jit(lambda x: getattr(np, name)(x, axis=axis))
    check(compiled(holes()), getattr(np, name)(holes(), axis=axis))


def test_nan_spreads_otherwise():
    for name in ("sum", "mean", "max", "min", "median", "std"):
        assert np.isnan(getattr(fnp, name)(holes()))


def test_lines_of_nan_only():
    x = np.array([[np.nan, np.nan], [1.0, np.nan]])
    np.testing.assert_array_equal(fnp.nanmax(x, 1), [np.nan, 1.0])
    np.testing.assert_array_equal(fnp.nanmedian(x, 1), [np.nan, 1.0])
    np.testing.assert_array_equal(fnp.nansum(x, 1), [0.0, 1.0])
    with pytest.raises(ValueError, match="All-NaN"):
        fnp.nanargmax(x, 1)


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_places(name, axis, keepdims):
    x = holes() if name.startswith("nan") else sample(np.int8, (4, 6))
    check(
        getattr(fnp, name)(x, axis, keepdims=keepdims),
        getattr(np, name)(x, axis, keepdims=keepdims),
    )


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_running(name, dtype, axis):
    x = sample(dtype)
    check(getattr(fnp, name)(x, axis), getattr(np, name)(x, axis))


def running(fold, x, axis=None, dtype=None, include_initial=False):
    """As ``cumulative_*``, which came with NumPy 2.1."""
    found = fold(x, axis, dtype)
    if not include_initial:
        return found
    first = np.full_like(found.take([0], axis), 1 if fold is np.cumprod else 0)
    return np.concatenate([first, found], axis)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_with_initial(name):
    fold = np.cumsum if name == "cumulative_sum" else np.cumprod
    theirs = getattr(np, name, functools.partial(running, fold))
    for kwargs in (
        {"axis": 1},
        {"axis": -1, "include_initial": True},
        {"axis": 0, "dtype": np.float32},
    ):
        check(getattr(fnp, name)(sample(), **kwargs), theirs(sample(), **kwargs))
    line = sample(shape=(5,))
    check(getattr(fnp, name)(line), theirs(line))


MASK = np.random.default_rng(1).random(SHAPE) < 0.5


@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "var", "std", "any", "all", "nansum", "nanmean"]
)
@pytest.mark.parametrize("axis", [None, 2])
def test_where(name, axis):
    x, mask = sample(), MASK | (np.arange(4) < 2)
    check(getattr(fnp, name)(x, axis=axis, where=mask), getattr(np, name)(x, axis=axis, where=mask))
    check(getattr(fnp, name)(x, where=mask[0, 0]), getattr(np, name)(x, where=mask[0, 0]))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "nanmax", "nanmin"])
def test_initial(name):
    x = sample()
    check(getattr(fnp, name)(x, 1, initial=0.5), getattr(np, name)(x, 1, initial=0.5))
    check(
        getattr(fnp, name)(x, 1, initial=0.5, where=MASK),
        getattr(np, name)(x, 1, initial=0.5, where=MASK),
    )
    empty = np.ones((2, 0))
    check(getattr(fnp, name)(empty, 1, initial=0.5), getattr(np, name)(empty, 1, initial=0.5))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "ptp", "nanmax"])
def test_empty_has_no_extreme(name):
    with pytest.raises(ValueError, match=r"empty|zero-size|length 0"):
        getattr(fnp, name)(np.ones((2, 0)), 1)
    with pytest.raises(ValueError, match=r"empty|zero-size|length 0"):
        fg.jit(lambda x: getattr(np, name)(x, 1))(np.ones((2, 0)))


def test_empty_sums_and_products():
    check(fnp.sum(np.ones((0, 3)), 0), np.zeros(3))
    check(fnp.prod(np.ones((0, 3)), 0), np.ones(3))
    assert fnp.all(np.ones(0))
    assert not fnp.any(np.ones(0))


@pytest.mark.parametrize(("shape", "axis"), [((2,), ()), ((), None), ((2, 1), 1), ((1, 1), (0, 1))])
def test_a_product_of_one_complex_number_is_that_number_times_one(shape, axis):
    x = np.full(shape, complex(np.inf, 0.2))
    with np.errstate(invalid="ignore"):
        expected = np.prod(x, axis)
        for function in (lambda x: np.prod(x, axis), lambda x: fnp.prod(x, axis)):
            check(fg.jit(function)(x), expected)
            check(fg.vmap(function)(x[None])[0], expected)


def test_dtype_argument():
    x = sample(np.float32)
    for name in ("sum", "prod", "mean", "var", "std", "cumsum"):
        check(getattr(fnp, name)(x, 1, np.float64), getattr(np, name)(x, 1, np.float64))
    assert fnp.sum(np.ones(3, bool), dtype=np.float32).dtype == np.float32
    assert fnp.mean(np.arange(3), dtype=np.float32).dtype == np.float32


def test_degrees_of_freedom():
    x = sample()
    check(fnp.var(x, 1, ddof=1), np.var(x, 1, ddof=1))
    check(fnp.std(x, 1, correction=1), np.std(x, 1, correction=1))
    check(fnp.nanvar(holes(), 1, ddof=1), np.nanvar(holes(), 1, ddof=1))
    center = np.mean(x, 1, keepdims=True)
    check(fnp.var(x, 1, mean=center), np.var(x, 1, mean=center))


def test_average():
    x, w = sample(), np.abs(sample(seed=1))
    check(fnp.average(x), np.average(x))
    check(fnp.average(x, 1, w), np.average(x, 1, w))
    check(fnp.average(x, 2, w[0, 0]), np.average(x, 2, w[0, 0]))
    check(
        fnp.average(x, (0, 2), w[:, 0], keepdims=True),
        np.average(x, (0, 2), w[:, 0], keepdims=True),
    )
    check(fnp.average(x, (2, 0), w[:, 0].T), np.average(x, (2, 0), w[:, 0].T))
    for ours, theirs in zip(
        fnp.average(x, 1, w, returned=True), np.average(x, 1, w, returned=True), strict=True
    ):
        check(ours, theirs)
    check(fnp.average([1, 2, 3], weights=[1, 0, 1]), np.average([1, 2, 3], weights=[1, 0, 1]))
    with pytest.raises(ZeroDivisionError):
        fnp.average(x, 1, np.zeros_like(x))
    with pytest.raises(TypeError, match="axis"):
        fnp.average(x, weights=w[0])


@pytest.mark.parametrize("method", METHODS)
def test_quantile_methods(method):
    if method == "closest_observation" and np.quantile(np.arange(3.0), 0.5, method=method) != 1:
        pytest.skip("NumPy 2.0 takes another one")
    for q in (0.5, np.linspace(0, 1, 29), np.array([[0.2, 0.5], [1.0, 0.0]])):
        for x in (sample(shape=(4, 7)), sample(shape=(3, 8)), holes()):
            for name in ("quantile", "nanquantile"):
                ours = getattr(fnp, name)(x, q, 1, method=method)
                check(ours, getattr(np, name)(x, q, 1, method=method))


@pytest.mark.parametrize("name", ["percentile", "nanpercentile"])
def test_percentiles(name):
    x = sample()
    for axis in (None, 1, (0, 2)):
        for keepdims in (False, True):
            for q in (30, 12.5, [0, 50, 100]):
                ours = getattr(fnp, name)(x, q, axis, keepdims=keepdims)
                check(ours, getattr(np, name)(x, q, axis, keepdims=keepdims))
    assert getattr(fnp, name)(x.astype(np.float32), 30).dtype == np.float32


def test_quantiles_of_infinities():
    x = np.array([-np.inf, 1.0, np.inf])
    np.testing.assert_array_equal(fnp.quantile(x, [0.0, 0.5, 1.0]), x)
    assert fnp.median(np.array([np.inf, np.inf])) == np.inf
    x = np.array([[-np.inf, 0.0, 5.0, 2.0], [1.0, np.inf, np.inf, -3.0], [0.0, 1.0, 2.0, -np.inf]])
    for axis in (None, 0, 1):
        for name in ("median", "nanmedian"):
            expected = getattr(np, name)(x[:2], axis)
            check(getattr(fnp, name)(x[:2], axis), expected)
            check(fg.jit(lambda x, n=name, a=axis: getattr(fnp, n)(x, a))(x[:2]), expected)
    np.testing.assert_array_equal(fnp.quantile([1.0, np.inf], [0.0, 0.1, 0.9]), [1, np.inf, np.inf])
    np.testing.assert_array_equal(fg.grad(fnp.median)(x[0]), [0.0, 0.5, 0.0, 0.5])


def test_quantile_refuses():
    with pytest.raises(ValueError, match="range"):
        fnp.quantile(np.ones(3), 1.5)
    with pytest.raises(ValueError, match="nonsense"):
        fnp.quantile(np.ones(3), 0.5, method="nonsense")
    with pytest.raises(TypeError, match="order"):
        fnp.quantile(np.ones(3) * 1j, 0.5)


def test_gradient_of_quantile():
    x = sample(shape=(3, 5))
    fg.testing.check_grads(lambda v: fnp.quantile(v, np.array([0.1, 0.7]), 1), (x,), order=2)
    fg.testing.check_grads(lambda q: fnp.quantile(x, q), (np.array([0.13, 0.71]),), order=1)
    fg.testing.check_grads(lambda v: fnp.median(v, 1), (x,), order=1)


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "prod",
        "mean",
        "var",
        "std",
        "max",
        "min",
        "ptp",
        "median",
        "cumsum",
        "cumprod",
        "trace",
        "average",
    ],
)
def test_gradients_compilation_and_batching(name):
    x = sample(shape=(3, 4))
    function = getattr(fnp, name)
    fg.testing.check_grads(function, (x,), order=2)
    if name != "trace":
        fg.testing.check_grads(lambda v: function(v, axis=1), (x,), order=1)
        np.testing.assert_allclose(
            fg.jit(lambda v: function(v, axis=0))(x), function(x, axis=0), rtol=1e-12
        )
    rows = np.stack([x, x + 1])
    np.testing.assert_allclose(
        fg.vmap(function)(rows), np.stack([function(r) for r in rows]), rtol=1e-12
    )


def test_gradient_conventions():
    np.testing.assert_array_equal(fg.grad(np.std)(np.ones(3)), np.zeros(3))
    np.testing.assert_array_equal(fg.grad(np.max)(np.array([1.0, 3.0, 3.0])), [0.0, 0.5, 0.5])
    np.testing.assert_array_equal(fg.grad(np.prod)(np.array([0.0, 2.0, 3.0])), [6.0, 0.0, 0.0])
    with np.errstate(invalid="raise"):
        out = fg.grad(lambda x: np.nansum(x * x))(np.array([1.0, np.nan]))
    assert out[0] == 2.0
    np.testing.assert_array_equal(fg.grad(np.median)(np.array([1.0, 1.0])), [0.5, 0.5])
    out = fg.grad(lambda x: np.nanstd(x))(holes())
    assert np.all(np.isfinite(out[~np.isnan(holes())]))


def test_complex_variance_and_its_gradient():
    x = sample(np.complex128, (5,))
    check(fnp.var(x), np.var(x))
    fg.testing.check_grads(fnp.std, (x,), order=1)


@pytest.mark.parametrize("args", [(), (1,), (-1,), (0, 1, 2), (1, 2, 0), (9,)])
def test_trace(args):
    for dtype in (np.int8, np.float32):
        check(fnp.trace(sample(dtype), *args), np.trace(sample(dtype), *args))


@given(
    arrays.arrays(
        np.float64,
        arrays.array_shapes(min_dims=1, max_dims=3, max_side=4),
        elements=st.floats(-100, 100, width=32),
    ),
    st.data(),
)
def test_folds_of_any_shape(x, data):
    axes = tuple(data.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1)))
    for name in ("sum", "mean", "max", "median", "std"):
        np.testing.assert_allclose(
            getattr(fnp, name)(x, axes), getattr(np, name)(x, axes), rtol=1e-9, atol=1e-9
        )


def test_results_without_axes_are_scalars():
    for name in ("sum", "mean", "std", "var", "max", "median", "nanstd", "average"):
        assert isinstance(getattr(fnp, name)(np.ones(3)), np.float64), name


def test_lists_numbers_and_methods():
    assert fnp.sum([1, 2, 3]) == 6
    assert fnp.mean(2.0) == 2.0
    out = fg.jit(lambda x: (x.sum(0), x.mean(), x.max(1, keepdims=True), x.std(ddof=1)))(sample())
    x = sample()
    for ours, theirs in zip(
        out, (x.sum(0), x.mean(), x.max(1, keepdims=True), x.std(ddof=1)), strict=True
    ):
        check(ours, theirs)
    assert fg.grad(lambda a: fnp.sum([a, a * a]))(3.0) == 7.0


def test_refusals():
    with pytest.raises(ArgumentError, match="out="):
        fnp.sum(np.ones(3), out=[1.0])
    with pytest.raises(np.exceptions.AxisError):
        fnp.sum(np.ones(3), 1)
    with pytest.raises(ValueError, match="duplicate"):
        fnp.sum(np.ones((3, 3)), (0, 0))
    with pytest.raises(ValueError, match="initial"):
        fnp.max(np.ones(3), where=np.array([True, False, True]))
    with pytest.raises(ValueError, match="where="):
        fnp.sum(np.ones(3), where=np.ones((2, 3), bool))
    with pytest.raises(ValueError, match="axis"):
        fnp.cumulative_sum(np.ones((2, 2)))


def test_mean_of_nothing_warns_as_division():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert np.isnan(fnp.mean(np.ones(0)))
    assert caught


@pytest.mark.parametrize("n", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_derivatives_of_products_are_exact_where_elements_are_zero(n: int, zeros: int) -> None:
    """They take a logarithmic number of operations."""
    x = np.random.default_rng(n).normal(size=n)
    x[:zeros] = 0
    expected = [np.prod(np.delete(x, i)) for i in range(n)]
    np.testing.assert_allclose(fg.grad(np.prod)(x), expected, rtol=1e-12)
    assert len(fg.make_jaxpr(fg.grad(np.prod))(x).eqns) < 60
