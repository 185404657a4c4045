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
