"""Folds of windows against loops in Python."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad import errors, lax
from tests.lax.agreement import check

WRAPS = [lambda f: f, fg.jit]
FOLDS: dict[str, tuple[Any, Any, float]] = {
    "sum": (lax.add, np.add, 0.0),
    "max": (lax.max, np.maximum, -np.inf),
    "min": (np.minimum, np.minimum, np.inf),
    "product": (lax.mul, np.multiply, 1.0),
    "other": (np.hypot, np.hypot, 0.0),
}


def spread(x: np.ndarray, init: Any, pads: Any, base: Any) -> np.ndarray:
    """An array with an element around and between its own."""
    shape = [
        a + max((n - 1) * b + 1, 0) + c for n, (a, c), b in zip(x.shape, pads, base, strict=True)
    ]
    out = np.full(shape, init, x.dtype)
    places = zip(x.shape, pads, base, strict=True)
    out[tuple(slice(a, a + (n - 1) * b + 1, b) for n, (a, _), b in places)] = x
    return out


def folded(
    x: np.ndarray,
    init: Any,
    fold: Any,
    taps: Any,
    strides: Any,
    pads: Any,
    base: Any,
    dilation: Any,
) -> np.ndarray:
    """The definition."""
    x = spread(x, init, pads, base)
    spans = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
    windows = [max(0, (n - k) // s + 1) for n, k, s in zip(x.shape, spans, strides, strict=True)]
    out = np.full(windows, init, x.dtype)
    for place in itertools.product(*map(range, windows)):
        starts = [w * s for w, s in zip(place, strides, strict=True)]
        bounds = zip(starts, spans, dilation, strict=True)
        for element in x[tuple(slice(a, a + k, d) for a, k, d in bounds)].ravel():
            out[place] = fold(out[place], element)
    return out


@st.composite
def windows(draw: Any) -> dict[str, Any]:
    rank = draw(st.integers(0, 3))

    def each(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(rank)]

    return {
        "shape": each(1, 5),
        "taps": each(1, 3),
        "strides": each(1, 3),
        "pads": list(zip(each(0, 3), each(0, 3), strict=True)),
        "base": each(1, 2),
        "dilation": each(1, 2),
    }


@given(windows(), st.sampled_from(sorted(FOLDS)), st.sampled_from([None, 2.0]), st.booleans())
def test_by_definition(
    case: dict[str, Any], name: str, start: float | None, is_jitted: bool
) -> None:
    ours, theirs, neutral = FOLDS[name]
    init = neutral if start is None else start
    x = np.random.default_rng(0).normal(size=case["shape"])
    options = [case[key] for key in ("taps", "strides", "pads", "base", "dilation")]
    found = WRAPS[is_jitted](lambda x: lax.reduce_window(x, init, ours, *options))(x)
    with np.errstate(all="ignore"):
        expected = folded(x, init, theirs, *options)
    np.testing.assert_allclose(found, expected, 1e-12, 1e-12)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", ["sum", "max", "min", "product", "other"])
@pytest.mark.parametrize(
    "options",
    [
        ((2, 2), (2, 2), "VALID"),
        ((3, 2), (1, 2), "SAME"),
        ((2, 3), (3, 1), [(1, 0), (2, 1)], (1, 1), (2, 1)),
        ((7, 6), (1, 1), "SAME_LOWER"),
    ],
    ids=str,
)
def test_derivatives(name: str, options: Any, wrap: Any) -> None:
    """To second order, against central differences, in both modes and mapped."""
    ours, _, init = FOLDS[name]
    rng = np.random.default_rng(1)
    x, t = rng.permutation(30).reshape(5, 6) / 10 + 0.1, rng.normal(size=(5, 6))

    def f(x: Any) -> Any:
        return lax.reduce_window(x, init, ours, *options)

    def loss(x: Any) -> Any:
        return np.sum(np.sin(f(x)))

    step = 1e-6
    slope = (f(x + step * t) - f(x - step * t)) / (2 * step)
    np.testing.assert_allclose(wrap(lambda x: fg.jvp(f, (x,), (t,))[1])(x), slope, 1e-5, 1e-6)
    grad = wrap(fg.grad(loss))
    np.testing.assert_allclose(np.sum(grad(x) * t), np.sum(np.cos(f(x)) * slope), 1e-6)
    second = wrap(lambda x: fg.jvp(fg.grad(loss), (x,), (t,))[1])(x)
    difference = (grad(x + step * t) - grad(x - step * t)) / (2 * step)
    np.testing.assert_allclose(second, difference, 1e-4, 1e-4)
    mapped = wrap(fg.vmap(fg.grad(loss), 1))(np.stack([x, -x + 4], 1))
    np.testing.assert_allclose(mapped[1], grad(-x + 4), 1e-12)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("fold", [lax.max, lax.min])
def test_of_equal_elements_the_first_has_the_derivative(wrap: Any, fold: Any) -> None:
    x = np.array([[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [0.0, 2.0, 2.0]])
    init = -np.inf if fold is lax.max else np.inf
    grad = wrap(
        fg.grad(lambda x: np.sum(lax.reduce_window(x, init, fold, (2, 2), (1, 1), "VALID")))
    )
    highest, lowest = [[1, 0, 1], [0, 0, 1], [0, 1, 0]], [[1, 1, 0], [0, 1, 0], [1, 0, 0]]
    np.testing.assert_array_equal(grad(x), highest if fold is lax.max else lowest)


@pytest.mark.parametrize("wrap", WRAPS)
def test_nan_is_passed_on_and_takes_the_derivative(wrap: Any) -> None:
    x = np.array([1.0, np.nan, 3.0, 2.0])

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), "VALID")

    np.testing.assert_array_equal(wrap(pooled)(x), [np.nan, 3.0])
    np.testing.assert_array_equal(
        wrap(fg.grad(lambda x: np.sum(pooled(x))))(x), [0.0, 1.0, 1.0, 0.0]
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f", "d", "F", "i4", "u1", "?"])
def test_dtypes(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 9, (6, 7)).astype(dtype)
    folds = {
        "F": [(lax.add, np.add, 0)],
        "?": [(np.logical_or, np.logical_or, False), (lax.bitwise_and, np.logical_and, True)],
    }
    info = np.iinfo(dtype) if dtype in ("i4", "u1") else np.finfo("d")
    plain = [(lax.add, np.add, 0), (lax.max, np.maximum, info.min), (lax.min, np.minimum, info.max)]
    for ours, theirs, init in folds.get(dtype, plain):
        options = (2, 3), (1, 2), [(1, 1), (0, 1)]
        with np.errstate(over="ignore"):
            start = x.dtype.type(init)
        expected = folded(x, start, theirs, *options, (1, 1), (1, 1))
        check(
            lambda x, f=ours, s=start, o=options: lax.reduce_window(x, s, f, *o),
            lambda x, e=expected: e,
            x,
        ) if dtype not in "fdF" else None
        for wrap in WRAPS:
            found = wrap(lambda x, f=ours, s=start, o=options: lax.reduce_window(x, s, f, *o))(x)
            assert found.dtype == x.dtype
            np.testing.assert_array_equal(found, expected)


def test_pairs_fold_together() -> None:
    """The place of the greatest element, by a fold of pairs."""
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])

    def better(a: Any, b: Any) -> Any:
        takes = b[0] > a[0]
        return np.where(takes, b[0], a[0]), np.where(takes, b[1], a[1])

    values, places = lax.reduce_window(
        (x, np.arange(6)), (-np.inf, -1), better, (3,), (1,), "VALID"
    )
    np.testing.assert_array_equal(values, [4, 4, 5, 9])
    np.testing.assert_array_equal(places, [2, 2, 4, 5])


def test_names_of_padding() -> None:
    assert lax.padtype_to_pads((5, 6), (2, 3), (1, 2), "SAME_LOWER") == [(1, 0), (1, 0)]
    assert lax.padtype_to_pads((5, 6), (2, 3), (1, 2), "same") == [(0, 1), (0, 1)]
    assert lax.padtype_to_pads((5,), (9,), (1,), "VALID") == [(0, 0)]


X = np.ones((4, 5))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: lax.reduce_window(X, 0.0, lax.add, (2,), (1, 1), "SAME"),
            errors.ArgumentError,
            "window_dimensions must be 2 integers",
        ),
        (
            lambda: lax.reduce_window(X, 0.0, lax.add, (2, 0), (1, 1), "SAME"),
            errors.ArgumentError,
            r"of at least 1, one per axis, got \(2, 0\)",
        ),
        (
            lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2), (1, 1), [(1, 1)]),
            errors.ArgumentError,
            "2 pairs",
        ),
        (
            lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2), (1, 1), [(0, 0), (-9, 0)]),
            errors.ShapeError,
            "along axis 1 of the window",
        ),
        (
            lambda: lax.reduce_window(X, [0.0], lax.add, (2, 2), (1, 1), "SAME"),
            errors.ArgumentError,
            "init_value must have the structure",
        ),
        (
            lambda: lax.reduce_window(X, X[0], lax.add, (2, 2), (1, 1), "SAME"),
            errors.ShapeError,
            "init values must be scalars",
        ),
        (
            lambda: lax.reduce_window(X * 1j, 0.0, lax.max, (2, 2), (1, 1), "SAME"),
            errors.DtypeError,
            "not defined for c128",
        ),
    ],
)
def test_errors_say_what_does_not_fit(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", ["sum", "max"])
def test_no_windows(wrap: Any, name: str) -> None:
    fold, _, init = FOLDS[name]

    def f(x: Any) -> Any:
        return lax.reduce_window(x, init, fold, (3, 6), (1, 1), "VALID")

    assert wrap(f)(X).shape == (2, 0)
    assert not wrap(fg.grad(lambda x: np.sum(f(x))))(X).any()


def test_windows_without_strides() -> None:
    x = np.arange(5.0)
    found = lax.reduce_window(x, 0.0, lax.add, window_dimensions=(2,))
    np.testing.assert_array_equal(found, x[1:] + x[:-1])
