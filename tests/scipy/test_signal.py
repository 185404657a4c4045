"""`funcgrad.scipy.signal` against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import funcgrad as fg
from funcgrad import errors
from funcgrad.scipy import signal

SHAPES: list[Any] = [
    ((7,), (3,)),
    ((3,), (7,)),
    ((6,), (4,)),
    ((5, 6), (2, 3)),
    ((4, 3, 2), (2, 2, 1)),
]
X, Y = np.ones(3), np.ones((3, 2))
WRAPS = [lambda f: f, fg.jit]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_values(name: str, shapes: Any, mode: Any, wrap: Any) -> None:
    rng = np.random.default_rng(0)
    for dtypes in ("dd", "fd", "DD", "ll"):
        x, y = ((9 * rng.normal(size=s)).astype(d) for s, d in zip(shapes, dtypes, strict=True))
        x = x * 1j if dtypes == "DD" else x
        found = wrap(lambda x, y: getattr(signal, name)(x, y, mode))(x, y)
        with np.errstate(invalid="ignore"):  # SciPy casts memory that it has not written to yet
            expected = getattr(scipy.signal, name)(x, y, mode, "direct")
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-10, 1e-10)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("small", [(3, 2), (2, 4), (1, 3), (4, 1)])
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_matrices(name: str, small: Any, mode: Any) -> None:
    rng = np.random.default_rng(0)
    x, y, t = (rng.normal(size=s) for s in ((6, 5), small, small))
    ours, theirs = getattr(signal, name), getattr(scipy.signal, name)
    np.testing.assert_allclose(ours(x, y, mode), theirs(x, y, mode), 1e-12, 1e-12)
    tangent = fg.jvp(lambda y: ours(x, y, mode), (y,), (t,))[1]
    np.testing.assert_allclose(tangent, theirs(x, t, mode), 1e-12, 1e-12)
    w = np.cos(theirs(x, y, mode))
    pulled = fg.grad(lambda y: np.sum(w * ours(x, y, mode)))(y)
    np.testing.assert_allclose(np.sum(pulled * t), np.sum(w * theirs(x, t, mode)), 1e-10)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: signal.convolve(X, Y), errors.ShapeError, "equally many axes"),
        (lambda: signal.convolve(X, X[:0]), errors.ShapeError, "no elements"),
        (lambda: signal.convolve(Y, Y.T, "valid"), errors.ShapeError, "at least as long"),
        (lambda: signal.convolve(X, X, "some"), errors.ArgumentError, "'full', 'same' or 'valid'"),
        (lambda: signal.convolve2d(X, X), errors.ShapeError, "needs matrices"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def smoothed(y: Any, lamb: Any, order: int, weights: Any = None) -> Any:
    """By the equations themselves."""
    w = np.ones(len(y)) if weights is None else weights
    differences = np.diff(np.eye(len(y)), n=order, axis=0)
    return np.linalg.solve(np.diag(w) + lamb * differences.T @ differences, w * y)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(
    ("n", "order", "lamb"), [(2, 1, 0.3), (4, 3, 2.0), (5, 2, 0.0), (9, 2, 7.5), (12, 3, 100.0)]
)
def test_smoothing_by_a_penalty(n: int, order: int, lamb: float, wrap: Any) -> None:
    rng = np.random.default_rng(0)
    y, t, w = rng.normal(size=n), rng.normal(size=n), rng.uniform(0.5, 2, n)

    def ours(y: Any, lamb: Any, w: Any = None) -> Any:
        return signal.whittaker_henderson(y, lamb=lamb, order=order, weights=w).x

    np.testing.assert_allclose(wrap(ours)(y, lamb), smoothed(y, lamb, order), 1e-8)
    f = wrap(lambda *args: fg.jvp(ours, args, (t, 1.0, t)))
    h = 1e-5
    value, slope = f(y, lamb, w)
    np.testing.assert_allclose(value, smoothed(y, lamb, order, w), 1e-8)
    above, below = (smoothed(y + s * t, lamb + s, order, w + s * t) for s in (h, -h))
    np.testing.assert_allclose(slope, (above - below) / (2 * h), 1e-5, 1e-6)


def test_smoothing_fills_what_has_no_weight() -> None:
    y, w = np.arange(8.0), np.ones(8)
    y[[2, 6, 7]], w[[2, 6, 7]] = np.nan, 0.0
    found, slopes = fg.value_and_grad(
        lambda y: signal.whittaker_henderson(y, lamb=5.0, weights=w).x[-1]
    )(y)
    np.testing.assert_allclose(found, 7.0)  # straight lines go on
    assert (slopes[w == 0] == 0).all()
    assert np.isfinite(slopes).all()
    single = signal.whittaker_henderson(np.float32([1, 2, 4]), lamb=1)
    assert single.x.dtype == np.float32
    assert single.lamb == 1
    if hasattr(scipy.signal, "whittaker_henderson"):
        theirs = scipy.signal.whittaker_henderson(y, lamb=5.0, weights=w)
        ours = signal.whittaker_henderson(y, lamb=5.0, weights=w)
        np.testing.assert_allclose(ours.x, theirs.x, 1e-10, 1e-10)
        assert [*ours] == [*theirs]
