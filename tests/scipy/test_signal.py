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
