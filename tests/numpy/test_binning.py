"""`digitize`, `searchsorted` and `histogram` of edges of all orders, known and traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.base.index_rule import INDEX_RULE
from funcgrad.errors import ConcretizationTypeError, ShapeError

INF, NAN = np.inf, np.nan
VALUES = np.array([-1, 0, 0.5, 1, 2, 3, 4, NAN, INF, -INF, -0.0])
EDGES = {
    "up": [0.0, 1, 2, 3],
    "down": [3.0, 2, 1, 0],
    "constant": [1.0, 1, 1],
    "none": [],
    "one": [1.0],
    "nan": [NAN],
    "nans": [NAN, NAN],
    "up to nan": [0.0, 1, NAN],
    "up to nans": [0.0, 1, NAN, NAN],
    "down from nan": [NAN, 2.0, 1],
    "down from nans": [NAN, NAN, 2.0, 1],
    "ties going up": [0.0, 0, 1, 1],
    "ties going down": [1.0, 1, 0, 0],
    "infinite": [-INF, 0, INF],
    "infinite, down": [INF, 0, -INF],
}


def check(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype


CASES = [
    (name, dtype)
    for name, edges in EDGES.items()
    for dtype in ("f8", "f4", "i4", "u1")
    if dtype in ("f8", "f4") or np.isfinite(edges).all()
]


@pytest.mark.sampled(16)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_digitize(name: str, dtype: str) -> None:
    bins = np.array(EDGES[name], dtype)
    x = VALUES.astype("f4") if dtype == "f4" else VALUES
    for right in (False, True):
        expected = np.digitize(x, bins, right)
        check(fnp.digitize(x, bins, right), expected)
        check(fg.jit(lambda x, right=right: np.digitize(x, bins, right))(x), expected)
        traced = fg.jit(lambda x, b, right=right: np.digitize(x, b, right))
        check(traced(x, bins), expected)
        check(traced(x[:0], bins), expected[:0])
        check(traced(x[2], bins), expected[2])
        if dtype == "f8":
            check(fg.jvp(lambda b, r=right: np.digitize(x, b, r), (bins,), (bins,))[0], expected)


def test_digitize_of_mapped_edges() -> None:
    bins = np.array([[0.0, 1, 2], [2.0, 1, 0], [1.0, 1, 1]])
    expected = [np.digitize(VALUES, b) for b in bins]
    for wrap in (lambda f: f, fg.jit):
        check(wrap(fg.vmap(lambda b: np.digitize(VALUES, b)))(bins), expected)
    step = fg.jit(lambda b: fg.lax.scan(lambda c, b: (c, np.digitize(VALUES, b)), 0, b)[1])
    check(step(bins), expected)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [n for n in EDGES if "down" not in n])
def test_histogram(name: str) -> None:
    edges = np.array(EDGES[name])
    x = VALUES if np.isnan(edges).any() else VALUES[np.isfinite(VALUES)]
    for weights in (None, np.arange(len(x)), np.arange(1.0, len(x) + 1)):
        expected = np.histogram(x, edges, weights=weights)
        known = fg.jit(lambda x, w=weights: np.histogram(x, edges, weights=w))(x)
        traced = fg.jit(lambda x, b, w=weights: np.histogram(x, b, weights=w))(x, edges)
        for found in (fnp.histogram(x, edges, weights=weights), known, traced):
            check(found[0], expected[0])
            check(found[1], expected[1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("side", ["left", "right"])
def test_sorter(side: Any) -> None:
    for edges in ([2.0, NAN, 0.0, 1.0], [3, 1, 2], [1.0]):
        a = np.array(edges)
        for order in (np.argsort(a), np.argsort(a).astype(np.int32)):
            expected = np.searchsorted(a, VALUES, side, order)
            check(fnp.searchsorted(a, VALUES, side, order), expected)
            traced = fg.jit(lambda a, v, o: np.searchsorted(a, v, side, o))
            check(traced(a, VALUES, order), expected)


LINE = np.array([1.0, 2.0, 3.0])
TWO = np.ones((2, 2))
REFUSALS: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = [
    (np.digitize, (LINE, np.array([0.0, 2, 1])), ValueError, "increase or decrease monotonic"),
    (np.digitize, (LINE, np.array([NAN, 1, 2])), ValueError, "increase or decrease monotonic"),
    (np.digitize, (LINE, np.array([0, 2, 1], "u1")), ValueError, "or decrease monotonic"),
    (np.digitize, (LINE, TWO), ShapeError, "digitize: bins are a line of edges, got f64"),
    (np.digitize, (LINE * 1j, LINE), TypeError, "complex numbers have no order, got c128"),
    (np.digitize, (LINE, LINE * 1j), TypeError, "complex numbers have no order, got c128"),
    (np.histogram, (LINE, LINE[::-1]), ValueError, "histogram: bins must increase monotonic"),
    (np.histogram, (LINE, np.array([2, 1], "u1")), ValueError, "must increase monotonically"),
    (np.histogram_bin_edges, (LINE, LINE[::-1]), ValueError, "must increase monotonically"),
    (np.histogram, (LINE, TWO), ShapeError, "bins are a line of edges"),
]


@pytest.mark.parametrize(("function", "args", "error", "text"), REFUSALS)
def test_edges_that_are_refused(function: Any, args: Any, error: Any, text: str) -> None:
    x, edges = args
    ours = getattr(fnp, function.__name__)
    for f in (ours, fg.jit(lambda x: function(x, edges))):
        with pytest.raises(error, match=text):
            f(*args[: 2 if f is ours else 1])
    if x.dtype.kind == edges.dtype.kind == "f":  # eager derivatives know their values
        with pytest.raises(error, match=text):
            fg.jvp(function, (x, edges), (x, edges))


@pytest.mark.parametrize(
    ("sorter", "error", "text"),
    [
        ([0, 1], ValueError, "an index for each of .* elements, got i64"),
        ([-1, 0, 1], ValueError, "indices of sorter are from 0 to 2"),
        ([0, 1, 3], ValueError, "indices of sorter are from 0 to 2"),
        ([0.0, 1.0, 2.0], TypeError, "sorter must be of integers, got f64"),
    ],
)
def test_sorters_that_are_refused(sorter: Any, error: Any, text: str) -> None:
    with pytest.raises(error):
        np.searchsorted(LINE, LINE, sorter=sorter)
    for f in (fnp.searchsorted, fg.jit(lambda a, v, sorter: np.searchsorted(a, v, "left", sorter))):
        if "from" not in text or f is fnp.searchsorted:
            with pytest.raises(error, match=text):
                f(LINE, LINE, sorter=np.array(sorter))


def test_bincount_says_whose_function_takes_a_length() -> None:
    text = r"depends on values, but its argument is a traced i64\[3\](.|\n)*numpy\.bincount\(x, len"
    with pytest.raises(ConcretizationTypeError, match=text):
        fg.jit(np.bincount)(np.arange(3))
    assert fg.jit(lambda x: fnp.bincount(x, length=3))(np.arange(3)).tolist() == [1, 1, 1]


RANGES = [
    (0.0, 5.0), (3.0, 3.0), (2.0, 1.0), (0.0, NAN), (-INF, 0.0), (0.0, INF), (NAN, NAN), (INF, INF),
    (1e16, 1e16 + 4), (1e300, 1e300),
]  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("bins", [1, 3])
@pytest.mark.parametrize("ends", RANGES)
def test_ranges_of_histograms(ends: tuple[float, float], bins: int) -> None:
    x = np.arange(6.0)
    calls: list[Callable[[], Any]] = [
        lambda: fnp.histogram(x, bins, ends),
        lambda: fg.jit(lambda x: np.histogram(x, bins, ends))(x),
        lambda: fg.jit(lambda x, ends: np.histogram(x, bins, ends))(x, ends),
        lambda: fg.jit(lambda x, ends: np.histogramdd(x, [bins], [ends]))(x, ends),
    ]
    try:
        counts, edges = np.histogram(x, bins, ends)
    except ValueError:
        for call in calls:
            with pytest.raises(ValueError, match="the range must be finite, ascend, and have room"):
                call()
        return
    for call in calls:
        np.testing.assert_array_equal(call()[0], counts)
        np.testing.assert_allclose(np.ravel(call()[1]), edges)


@pytest.mark.parametrize("x", [[1.0, NAN], [-INF, 1.0]])
def test_ranges_of_elements_are_finite(x: list[float]) -> None:
    for f in (fnp.histogram, fg.jit(np.histogram)):
        with pytest.raises(ValueError, match="the range must be finite"):
            f(np.array(x))


def test_jax_checks_no_traced_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(INDEX_RULE, "name", "clamp")
    f = fg.jit(lambda x, high: np.histogram(x, 2, (0.0, high)))
    counts, edges = f(np.arange(3.0), NAN)
    assert counts.shape == (2,)
    assert np.isnan(edges[1:]).all()
    edges = np.array([0.0, 2.0, 1.0])
    np.testing.assert_array_equal(fg.jit(np.histogram)(np.arange(3.0), edges)[1], edges)
