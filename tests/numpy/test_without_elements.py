"""Functions whose results have a shape that depends on values, of arrays that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import DtypeError, ShapeError

FUNCTIONS: dict[str, Any] = {
    "unique": np.unique,
    "unique of both": lambda x: np.unique(x, True, True, True),
    "unique_all": np.unique_all,
    "unique_counts": np.unique_counts,
    "unique_inverse": np.unique_inverse,
    "unique_values": np.unique_values,
    "nonzero": np.nonzero,
    "argwhere": np.argwhere,
    "flatnonzero": np.flatnonzero,
    "where": np.where,
    "union1d": lambda x: np.union1d(x, x),
    "intersect1d": lambda x: np.intersect1d(x, x),
    "setdiff1d": lambda x: np.setdiff1d(x, x),
    "setxor1d": lambda x: np.setxor1d(x, x),
    "trim_zeros": np.trim_zeros,
    "extract": lambda x: np.extract(x > 0, x),
    "compress": lambda x: np.compress(x > 0, x),
    "mask": lambda x: x[x > 0],
}


def parts(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_shape_is_known(name: str) -> None:
    f = FUNCTIONS[name]
    for dtype in ("f8", "f4", "i8", "?"):
        x = np.zeros(0, dtype)
        expected = parts(f(x))
        results = [fg.jit(f)(x), fg.vmap(f)(x[None])]
        if dtype == "f8":
            results += [fg.jvp(f, (x,), (x,))[0], fg.jit(lambda x: fg.jvp(f, (x,), (x,))[0])(x)]
        for found in results:
            for ours, theirs in zip(parts(found), expected, strict=True):
                assert ours.shape in (theirs.shape, (1, *theirs.shape))
                assert ours.dtype == theirs.dtype


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_there_is_no_slope(name: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(parts(FUNCTIONS[name](x))[0] * 1.0) + np.sum(x)

    for wrapped in (fg.grad(f), fg.grad(fg.jit(f)), fg.jit(fg.grad(f)), fg.grad(fg.checkpoint(f))):
        assert wrapped(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)])
def test_rows_without_elements(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    expected = outcome(np.unique, x)
    assert outcome(fg.jit(lambda x: np.unique(x, axis=0)), x) == expected
    assert outcome(lambda x: fg.jvp(lambda x: np.unique(x, axis=0), (x,), (x,))[0], x) == expected


def outcome(f: Any, x: Any) -> Any:
    try:
        return (f(x, axis=0) if f is np.unique else f(x)).shape
    except ValueError:
        return "refused"


def test_a_size_that_was_passed_cannot_be_filled() -> None:
    with pytest.raises(ShapeError, match="no values to fill size= with"):
        fg.jit(lambda x: fnp.unique(x, size=3))(np.zeros(0))


@pytest.mark.parametrize("strange", ["a", None, 2**70, [1], np.zeros(2)])
def test_arrays_of_objects_that_are_no_numbers(strange: Any) -> None:
    x = np.empty(2, object)
    x[0] = x[1] = strange
    calls: list[Any] = [
        lambda: fg.jit(lambda x: x)(x),
        lambda: fg.jit(lambda v: v * x)(1.0),
        lambda: fg.grad(lambda v: (v * x).sum())(1.0),
        lambda: fg.vmap(lambda v: v)(x),
        lambda: fnp.add(x, 1),
        lambda: fg.lax.scan(lambda c, y: (c, y), 0.0, x),
    ]
    for call in calls:
        with pytest.raises(DtypeError, match="only if each of their objects is a number that fits"):
            call()


def test_arrays_of_objects_that_are_numbers() -> None:
    x = np.array([1, 2.5], object)
    for found in (
        fg.jit(lambda v: v * 2)(x),
        fg.vmap(lambda v: v * 2)(x),
        fg.jvp(lambda v: v * 2, (x,), (x,))[0],
        fg.lax.scan(lambda c, y: (c, y * 2), 0.0, x)[1],
        fnp.multiply(x, 2),
    ):
        assert found.dtype == np.float64
        assert found.tolist() == [2.0, 5.0]


# Reductions to numbers that NumPy gives without a single element.
REDUCTIONS: dict[str, Any] = {
    "median": np.median,
    "median, kept": lambda x, axis: np.median(x, axis, keepdims=True),
    "nanmedian": np.nanmedian,
    "nanquantile": lambda x, axis: np.nanquantile(x, 0.3, axis),
    "nanpercentile": lambda x, axis: np.nanpercentile(x, 30, axis, method="lower"),
    "mean": np.mean,
    "nanmean": np.nanmean,
    "std": np.std,
    "norm": lambda x, axis: np.linalg.norm(x, axis=axis),
    "norm 1": lambda x, axis: np.linalg.norm(x, 1, axis),
    "norm inf": lambda x, axis: np.linalg.norm(x, np.inf, axis),
    "vector_norm inf": lambda x, axis: np.linalg.vector_norm(x, axis=axis, ord=np.inf),
    "partition": lambda x, axis: np.partition(x, 3, axis),
}


@pytest.mark.sampled(8)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_nothing_are_numpys(name: str, dtype: str) -> None:
    f = REDUCTIONS[name]
    for shape, axes in (((0,), (0, -1)), ((0, 3), (0, 1, (0, 1))), ((3, 0), (0, 1))):
        x = np.zeros(shape, dtype)
        for axis in axes:
            if name == "partition" and (isinstance(axis, tuple) or shape[axis]):
                continue
            with np.errstate(all="ignore"):
                expected = np.asarray(f(x, axis))
            for found in (
                fg.jit(lambda x, axis=axis: f(x, axis))(x),
                fg.vjp(lambda x, axis=axis: f(x, axis), x)[0],
                fg.vmap(lambda x, axis=axis: f(x, axis))(x[None])[0],
            ):
                assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
                np.testing.assert_array_equal(found, expected)


def test_norms_of_matrices_without_elements() -> None:
    for shape in ((0, 3), (3, 0)):
        for order in (1, 2, np.inf, "fro", "nuc"):
            x = np.zeros(shape)
            assert fg.jit(lambda x, order=order: np.linalg.norm(x, order))(x) == 0.0
            assert fg.grad(lambda x, order=order: np.linalg.norm(x, order))(x).shape == shape


def test_several_quantiles_of_nothing() -> None:
    """All of them are there; NumPy's own function loses their axis."""
    found = fg.jit(lambda x: np.nanquantile(x, [0.2, 0.5], axis=0))(np.zeros((0, 3)))
    np.testing.assert_array_equal(found, np.full((2, 3), np.nan))


def test_counts_of_nothing() -> None:
    for length in (0, 3):
        found = fg.jit(lambda x, n=length: np.bincount(x, minlength=n))(np.zeros(0, int))
        np.testing.assert_array_equal(found, np.zeros(length, int))


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.quantile(x, 0.5), IndexError, "quantile: an axis of length 0"),
        (lambda x: np.percentile(x, 50, 0), IndexError, "percentile: an axis of length 0"),
        (lambda x: np.interp([1.0], x, x), ShapeError, "interp: there are no points"),
        (lambda x: np.linalg.cond(x[None]), np.linalg.LinAlgError, "cond is not defined on empty"),
        (lambda x: np.reshape(x, (0, -1)), ShapeError, r"does not fit shape \(0, -1\)"),
    ],
)
def test_what_numpy_refuses(function: Any, error: type[Exception], text: str) -> None:
    for call in (fg.jit(function), lambda x: fg.jvp(function, (x,), (x,))):
        with pytest.raises(error, match=text):
            call(np.zeros(0))
    with pytest.raises(ValueError if error is ShapeError else error):
        function(np.zeros(0))
