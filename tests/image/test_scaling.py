"""`funcgrad.image` against closed forms, and against weights that are summed one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors, image

RNG = np.random.default_rng(0)
PICTURE = RNG.normal(size=(5, 6, 2))
METHODS = ("linear", "cubic", "lanczos3", "lanczos5")


def kernel(method: str, x: float) -> float:
    x = abs(x)
    if method == "linear":
        return max(1 - x, 0)
    if method == "cubic":
        near, far = 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
        return near if x < 1 else far if x < 2 else 0
    radius = int(method[-1])
    return float(np.sinc(x) * np.sinc(x / radius)) if x <= radius else 0


def line(x: np.ndarray, n: int, scale: float, move: float, method: str, wide: bool) -> np.ndarray:
    out = np.zeros((n, *x.shape[1:]))
    width = max(1 / scale, 1) if wide else 1
    for j in range(n):
        place = (j + 0.5 - move) / scale - 0.5
        weights = np.array([kernel(method, (place - i) / width) for i in range(len(x))])
        if -0.5 <= place <= len(x) - 0.5:
            out[j] = np.tensordot(weights / weights.sum(), x, 1)
    return out


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("shape", [(10, 12, 2), (3, 4, 2), (5, 9, 2), (7, 3, 2)])
@pytest.mark.parametrize("method", METHODS)
def test_resize(method: str, shape: Any, antialias: bool) -> None:
    expected = PICTURE
    for axis in (0, 1):
        n, m = shape[axis], PICTURE.shape[axis]
        if n != m:
            rows = np.moveaxis(expected, axis, 0)
            expected = np.moveaxis(line(rows, n, n / m, 0, method, antialias), 0, axis)
    found = image.resize(PICTURE, shape, method, antialias)
    np.testing.assert_allclose(found, expected, 1e-11, 1e-12)
    # It is linear: its derivative is itself, and the gradient is the transpose.
    t, w = RNG.normal(size=PICTURE.shape), RNG.normal(size=shape)
    resized = lambda x: image.resize(x, shape, method, antialias)  # noqa: E731
    _, slope = fg.jvp(resized, (PICTURE,), (t,))
    np.testing.assert_allclose(slope, resized(t), 1e-11, 1e-12)
    (pulled,) = fg.vjp(resized, PICTURE)[1](w)
    np.testing.assert_allclose(np.sum(pulled * t), np.sum(w * slope), 1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_scale_and_translate(method: str) -> None:
    scale, move = np.array([1.3, 0.6]), np.array([0.4, 1.1])

    def ours(scale: Any, move: Any) -> Any:
        return image.scale_and_translate(PICTURE, (6, 6, 2), (0, 1), scale, move, method)

    def theirs(scale: Any, move: Any) -> Any:
        rows = line(PICTURE, 6, scale[0], move[0], method, True)
        return line(rows.swapaxes(0, 1), 6, scale[1], move[1], method, True).swapaxes(0, 1)

    np.testing.assert_allclose(ours(scale, move), theirs(scale, move), 1e-11, 1e-12)
    d, e, h = np.array([0.3, -0.2]), np.array([0.1, 0.4]), 1e-6
    _, slope = fg.jvp(ours, (scale, move), (d, e))
    upper, lower = (theirs(scale + s * d, move + s * e) for s in (h, -h))
    np.testing.assert_allclose(slope, (upper - lower) / (2 * h), 1e-5, 1e-6)


def test_nearest() -> None:
    x = np.arange(6.0)
    np.testing.assert_array_equal(image.resize(x, (3,), "nearest"), [1, 3, 5])
    np.testing.assert_array_equal(image.resize(x[:2], (5,), "nearest"), [0, 0, 1, 1, 1])


def test_compiled_and_mapped() -> None:
    resized = lambda x: image.resize(x, (3, 9, 2), "cubic")  # noqa: E731
    expected = resized(PICTURE)
    np.testing.assert_allclose(fg.jit(resized)(PICTURE), expected, 1e-12, 1e-13)
    stacked = fg.vmap(resized)(np.stack([PICTURE, 2 * PICTURE]))
    np.testing.assert_allclose(stacked[1], 2 * expected, 1e-12, 1e-13)


def test_dtypes_and_empty_images() -> None:
    assert image.resize(PICTURE.astype(np.float32), (3, 3, 2)).dtype == np.float32
    assert image.resize(np.arange(4), (2,)).dtype == np.float64
    assert image.resize(PICTURE, (0, 6, 2)).shape == (0, 6, 2)
    assert math.isclose(image.resize(np.ones((4, 4)), (7, 3)).mean(), 1.0)


def test_names_of_methods() -> None:
    assert image.ResizeMethod.from_string("bilinear") is image.ResizeMethod.LINEAR
    found = image.resize(PICTURE, (7, 6, 2), image.ResizeMethod.CUBIC)
    np.testing.assert_array_equal(found, image.resize(PICTURE, (7, 6, 2), "bicubic"))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: image.resize(PICTURE, (3, 3)), errors.ShapeError, "must have 3 lengths"),
        (lambda: image.resize(PICTURE, (3, 3, 2), "x"), errors.ArgumentError, "no method 'x'"),
        (
            lambda: image.scale_and_translate(
                PICTURE, (3, 3, 2), (0, 1), np.ones(2), np.ones(2), "nearest"
            ),
            errors.ArgumentError,
            "image.resize only",
        ),
        (
            lambda: image.scale_and_translate(
                PICTURE, (3, 3, 2), (0,), np.ones(1), np.ones(1), "linear"
            ),
            errors.ShapeError,
            "not in spatial_dims",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
