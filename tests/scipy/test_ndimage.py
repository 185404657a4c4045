"""`funcgrad.scipy.ndimage` against SciPy: values, derivatives, `vmap` and `jit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import funcgrad as fg
from funcgrad import errors
from funcgrad.scipy import ndimage
from tests.scipy.rows import (
    Row,
    check_compiled,
    check_derivatives,
    check_mapped,
    check_value,
    each,
    row,
)

RNG = np.random.default_rng(0)
X, IMAGE, BOX = RNG.normal(size=9), RNG.normal(size=(5, 6)), RNG.normal(size=(3, 4, 5))
WHOLE = RNG.integers(0, 99, (5, 6))
WEIGHTS, CROSS = RNG.normal(size=(2, 3)), np.array([[0, 1, 0], [1, 1, 1]])
LABELS = np.array([[0, 1, 1, 2, 2, 3]] * 5)
# Away from elements and from middles between them, where splines have kinks.
INNER = RNG.integers(1, 3, (2, 4, 3)) + RNG.uniform(0.55, 0.9, (2, 4, 3))
FAR = RNG.integers(-5, 14, (1, 7)) + RNG.uniform(0.1, 0.4, (1, 7))
ANY = RNG.uniform(-7, 12, (2, 40))
SPECTRUM, HALF = np.fft.fft2(IMAGE), np.fft.rfft2(IMAGE)
MATRIX = np.array([[0.9, 0.2], [-0.1, 1.1]])
MODES = (
    "reflect", "mirror", "nearest", "wrap", "constant", "grid-mirror", "grid-wrap", "grid-constant",
)  # fmt: skip

ROWS = [
    row("correlate1d", IMAGE, WEIGHTS[0], argnums=(0, 1), axis=0, origin=1),
    row("convolve1d", X, RNG.normal(size=4), argnums=(0, 1), mode="mirror"),
    row("correlate", IMAGE, WEIGHTS, argnums=(0, 1), mode="constant", cval=0.7),
    row("convolve", BOX, WEIGHTS, argnums=(0, 1), mode="wrap", axes=(0, 2)),
    row("gaussian_filter", IMAGE, 1.2),
    row("gaussian_filter", IMAGE, (0.8, 0.5), order=(1, 2), mode="nearest"),
    row("gaussian_filter1d", X, 0.9, order=3),
    row("uniform_filter", IMAGE, (3, 4), mode="mirror"),
    row("prewitt", IMAGE, 0),
    row("sobel", IMAGE),
    row("laplace", IMAGE),
    row("gaussian_laplace", IMAGE, 0.8),
    row("gaussian_gradient_magnitude", IMAGE, 0.8),
    row("maximum_filter", IMAGE, 3),
    row("minimum_filter", IMAGE, footprint=CROSS),
    row("median_filter", IMAGE, (2, 3), mode="nearest"),
    row("rank_filter", IMAGE, -2, size=3),
    row("percentile_filter", IMAGE, 30, size=3),
    row("maximum_filter1d", X, 4),
    row("grey_dilation", IMAGE, structure=np.array([[0.0, 1.0], [0.5, 2.0]])),
    row("grey_erosion", IMAGE, (2, 3)),
    row("grey_opening", IMAGE, footprint=CROSS),
    row("grey_closing", IMAGE, 3),
    row("morphological_gradient", IMAGE, 3),
    row("morphological_laplace", IMAGE, 3),
    row("white_tophat", IMAGE, 3),
    row("black_tophat", IMAGE, 3),
    row("spline_filter1d", X, 3),
    row("spline_filter", IMAGE, 2, slow=True),
    row("map_coordinates", IMAGE, INNER, order=1, argnums=(0, 1)),
    row("map_coordinates", IMAGE, INNER, argnums=(0, 1), slow=True),
    row("map_coordinates", X, FAR, mode="mirror", order=2, argnums=(0, 1)),
    row("map_coordinates", IMAGE, INNER, order=5, argnums=(0, 1), slow=True),
    row("map_coordinates", IMAGE * (1 + 1j), INNER, order=1, argnums=1),
    row("shift", IMAGE, np.array([0.7, -1.3]), order=1, argnums=(0, 1)),
    row("shift", X, 0.6, argnums=(0, 1), mode="grid-wrap", slow=True),
    row("zoom", IMAGE, (1.5, 0.7), order=1),
    row("zoom", X, 2.0, slow=True),
    row("affine_transform", IMAGE, MATRIX, np.array([0.33, 0.47]), order=1, argnums=(0, 1, 2)),
    row("affine_transform", IMAGE, np.array([0.9, 1.2]), 0.37, order=2, argnums=(0, 1), slow=True),
    row("rotate", IMAGE, 33.0, order=1),
    row("rotate", BOX, -20.0, axes=(2, 0), reshape=False, slow=True),
    row("sum_labels", IMAGE, LABELS, [1, 3, 2]),
    row("mean", IMAGE, LABELS, [1, 3]),
    row("variance", IMAGE, LABELS, 2),
    row("standard_deviation", IMAGE),
    row("maximum", IMAGE, LABELS, [1, 3]),
    row("minimum", IMAGE, LABELS),
    row("center_of_mass", IMAGE + 9, LABELS),
    row("fourier_gaussian", SPECTRUM, 0.8),
    row("fourier_uniform", HALF, 2.0, n=6),
    row("fourier_shift", SPECTRUM, np.array([0.3, 1.2]), argnums=1),
    row("fourier_ellipsoid", SPECTRUM, 3.0),
]

CHOOSING = ("filter", "grey", "morphological", "tophat", "imum")


@each(ROWS)
def test_values(row: Row) -> None:
    check_value(ndimage, scipy.ndimage, row)


@pytest.mark.sampled(8)
@each(ROWS)
def test_derivatives(row: Row) -> None:
    is_smooth = not any(part in row.name for part in CHOOSING) or "gauss" in row.name
    check_derivatives(ndimage, scipy.ndimage, row, is_smooth)


@each([r for r in ROWS if r.name != "center_of_mass"])
def test_vmap(row: Row) -> None:
    check_mapped(ndimage, scipy.ndimage, row)


@each(ROWS, fast=4)
def test_compiled(row: Row) -> None:
    check_compiled(ndimage, row)


@pytest.mark.parametrize("mode", MODES)
def test_beyond_the_ends(mode: str) -> None:
    for name, *args in (
        ("correlate", IMAGE, RNG.normal(size=(3, 9))),
        ("maximum_filter", IMAGE, (4, 3)),
        ("grey_opening", WHOLE, (2, 3)),
        ("gaussian_filter", WHOLE, 1.2),
    ):
        options = {"mode": mode, "cval": 0.7}
        expected = getattr(scipy.ndimage, name)(*args, **options)
        found = getattr(ndimage, name)(*args, **options)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-10, 1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_places_beyond_the_ends(mode: str) -> None:
    for order in (0, 1, 3):
        options: Any = {"order": order, "mode": mode, "cval": 0.7}
        # SciPy starts recursions of reflected splines less exactly.
        bound = 1e-6 if mode in ("reflect", "grid-mirror", "nearest") else 1e-9
        for x, places in ((IMAGE, ANY), (X, ANY[:1])):
            expected = scipy.ndimage.map_coordinates(x, places, **options)
            found = ndimage.map_coordinates(x, places, **options)
            np.testing.assert_allclose(found, expected, bound, bound)


@pytest.mark.parametrize("mode", ["reflect", "mirror", "grid-wrap"])
def test_splines_go_through_the_elements(mode: str) -> None:
    for order in range(6):
        found = ndimage.map_coordinates(X, np.arange(9.0)[None], order=order, mode=mode)
        np.testing.assert_allclose(found, X, 1e-12, 1e-12)


def test_integers_are_rounded_as_in_scipy() -> None:
    for order in (1, 3):
        expected = scipy.ndimage.zoom(WHOLE, 1.7, order=order)
        np.testing.assert_array_equal(ndimage.zoom(WHOLE, 1.7, order=order), expected)


def test_the_third_argument_may_be_the_order() -> None:
    found = ndimage.map_coordinates(IMAGE, INNER, 1)
    np.testing.assert_array_equal(found, ndimage.map_coordinates(IMAGE, INNER, order=1))


def test_widths_of_gaussians_have_derivatives() -> None:
    def blurred(sigma: Any, library: Any) -> Any:
        return library.gaussian_filter1d(X, sigma, radius=4)

    h = 1e-5
    _, slope = fg.jvp(lambda s: blurred(s, ndimage), (1.3,), (1.0,))
    higher, lower = blurred(1.3 + h, scipy.ndimage), blurred(1.3 - h, scipy.ndimage)
    np.testing.assert_allclose(slope, (higher - lower) / (2 * h), 1e-6, 1e-9)


def test_angles_have_derivatives() -> None:
    def turned(angle: Any, library: Any) -> Any:
        return library.rotate(IMAGE, angle, reshape=False, mode="mirror")

    h = 1e-4
    _, slope = fg.jvp(lambda a: turned(a, ndimage), (np.float64(20.0),), (np.float64(1.0),))
    higher, lower = turned(20.0 + h, scipy.ndimage), turned(20.0 - h, scipy.ndimage)
    np.testing.assert_allclose(slope, (higher - lower) / (2 * h), 1e-5, 1e-6)


def test_no_elements() -> None:
    nothing = np.zeros((0, 3))
    for name in ("gaussian_filter", "maximum_filter"):
        assert getattr(ndimage, name)(nothing, 2).shape == (0, 3)
    assert ndimage.map_coordinates(IMAGE, np.zeros((2, 0)), order=1).shape == (0,)
    assert ndimage.sum_labels(nothing) == 0


def test_shapes_of_known_images_are_those_of_scipy() -> None:
    mask = IMAGE > 0
    np.testing.assert_array_equal(ndimage.label(mask)[0], scipy.ndimage.label(mask)[0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ndimage.correlate1d(X, WEIGHTS), errors.ShapeError, "one axis for each"),
        (lambda: ndimage.correlate1d(X, X[:3], mode="x"), errors.ArgumentError, "mode must be"),
        (lambda: ndimage.correlate1d(X, X[:3], origin=2), errors.ArgumentError, "not within"),
        (lambda: ndimage.sobel(IMAGE, output=IMAGE), errors.ArgumentError, "must be a dtype"),
        (lambda: ndimage.maximum_filter(X), errors.ArgumentError, "a size or a footprint"),
        (lambda: ndimage.maximum_filter(X * 1j, 3), errors.ArgumentError, "no order"),
        (lambda: ndimage.rank_filter(X, 9, 3), errors.ArgumentError, "not within"),
        (lambda: ndimage.map_coordinates(X, ANY), errors.ShapeError, "one array of coordinates"),
        (lambda: ndimage.zoom(X, 2, order=6), errors.ArgumentError, "from 0 to 5"),
        (lambda: ndimage.shift(X, 1, order=3, mode="x"), errors.ArgumentError, "mode must be"),
        (lambda: ndimage.affine_transform(X, MATRIX[0]), errors.ShapeError, "does not go from"),
        (lambda: ndimage.rotate(X, 3.0), errors.ArgumentError, "two different axes"),
        (lambda: fg.jit(ndimage.label)(WHOLE), TypeError, "SciPy's own function"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
