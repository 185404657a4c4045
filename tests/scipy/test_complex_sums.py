"""Convolutions and correlations of complex, real and integer arrays of all sizes, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

import funcgrad as fg
from funcgrad.errors import ArgumentError
from funcgrad.scipy import ndimage, signal
from funcgrad.testing import check_grads

DTYPES = ["DD", "dD", "Dd", "lD", "Dl", "FF", "fF", "Ff", "dd", "ll"]
SHAPES = [((5, 6), (3, 2)), ((3, 2), (5, 6)), ((4, 4), (4, 4)), ((1, 1), (5, 1)), ((3, 4), (3, 2))]
LINES = [((5,), (3,)), ((4,), (2,)), ((4,), (4,))]


def drawn(shape: Any, dtype: str) -> Any:
    rng = np.random.default_rng(len(shape) + ord(dtype))
    x = 4 * rng.normal(size=shape)
    return (x + 4j * rng.normal(size=shape) if dtype in "FD" else x).astype(dtype)


def check(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    scale = 1e-4 if found.dtype.char in "fF" else 1e-10
    np.testing.assert_allclose(found, expected, scale, scale)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("dtypes", DTYPES)
def test_matrices(dtypes: str, name: str) -> None:
    for shapes in SHAPES:
        x, y = (drawn(s, d) for s, d in zip(shapes, dtypes, strict=True))
        for mode in ("full", "same", "valid"):
            for boundary, fill in (("fill", 0), ("fill", 2), ("wrap", 0), ("symm", 0)):
                options: Any = (mode, boundary, fill)
                expected = getattr(scipy.signal, name)(x, y, *options)
                check(getattr(signal, name)(x, y, *options), expected)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_the_compiled_correlation_and_its_derivatives(shapes: Any) -> None:
    x, y = (drawn(s, "D") for s in shapes)

    def f(x: Any, y: Any) -> Any:
        return signal.correlate2d(x, y, "valid")

    expected = scipy.signal.correlate2d(x, y, "valid")
    check(fg.jit(f)(x, y), expected)
    check(fg.jit(fg.vmap(f))(x[None], y[None])[0], expected)
    check_grads(lambda x, y: np.abs(f(x, y)) ** 2, (x, y), order=1)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("dtypes", DTYPES)
def test_images(dtypes: str, name: str) -> None:
    for shapes in (*LINES, SHAPES[0], SHAPES[4]):
        x, w = (drawn(s, d) for s, d in zip(shapes, dtypes, strict=True))
        for options in ({}, {"mode": "constant", "cval": 1.5, "origin": -1}):
            check(
                getattr(ndimage, name)(x, w, **options),
                getattr(scipy.ndimage, name)(x, w, **options),
            )
            if len(shapes[0]) == 1:
                line = f"{name}1d"
                expected = getattr(scipy.ndimage, line)(x, w, **options)
                check(getattr(ndimage, line)(x, w, **options), expected)
                ours = getattr(ndimage, line)
                traced = fg.jit(lambda x, w, o=options, f=ours: f(x, w, **o))
                check(traced(x, w), expected)


@pytest.mark.filterwarnings("ignore:promoting specified output dtype")
@pytest.mark.parametrize("output", [np.float32, np.float64, np.int32, np.complex64])
def test_results_of_complex_numbers_stay_complex(output: Any) -> None:
    x, w = drawn((6,), "D"), drawn((3,), "d")
    for name in ("convolve", "correlate1d"):
        expected = getattr(scipy.ndimage, name)(x, w, output=output)
        found = getattr(ndimage, name)(x, w, output=output)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("mode", ["full", "valid"])
def test_numbers_beyond_the_ends_fit_the_array(mode: Any) -> None:
    x, w = drawn((4, 4), "d"), drawn((2, 2), "d")
    with pytest.raises(
        ArgumentError, match=r"convolve2d: fillvalue must be real beside f64\[4,4\]"
    ):
        signal.convolve2d(x, w, mode, fillvalue=1j)
    with pytest.raises(
        ArgumentError, match=r"correlate: cval must be real beside f64\[4,4\], got 1j"
    ):
        ndimage.correlate(x, w * 1j, cval=1j)
