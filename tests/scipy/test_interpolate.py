"""`funcgrad.scipy.interpolate` against SciPy and finite differences."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import funcgrad as fg
from funcgrad import errors
from funcgrad.scipy import interpolate
from funcgrad.testing import check_grads

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 3, 7))
Y = RNG.normal(size=(7, 2))
RING = np.concatenate([Y[:-1], Y[:1]])
INSIDE = X[:-1] + 0.37 * np.diff(X)
WIDE = np.linspace(-1, 4, 9)
GIVEN = ((1, np.array([0.3, 1.0])), (2, np.array([0.4, 2.0])))
PIECEWISE: list[Any] = [
    *(("CubicSpline", (X, Y), {"bc_type": b}) for b in ("not-a-knot", "natural", "clamped", GIVEN)),
    ("CubicSpline", (X, Y), {"bc_type": ("clamped", "not-a-knot")}),
    ("CubicSpline", (X, RING), {"bc_type": "periodic"}),
    ("CubicSpline", (X[:3], Y[[0, 1, 0]]), {"bc_type": "periodic"}),
    ("CubicSpline", (X[:3], Y[:3]), {}),
    ("CubicSpline", (X[:2], Y[:2]), {}),
    ("PchipInterpolator", (X, Y), {}),
    ("PchipInterpolator", (X[:2], Y[:2]), {}),
    ("Akima1DInterpolator", (X, Y), {}),
    ("Akima1DInterpolator", (X, Y), {"method": "makima"}),
    ("CubicHermiteSpline", (X, Y, np.cos(Y)), {}),
]


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, 1e-9, 1e-10)


@pytest.mark.parametrize(("name", "args", "options"), PIECEWISE)
def test_piecewise(name: str, args: Any, options: Any) -> None:
    ours = getattr(interpolate, name)(*args, **options)
    theirs = getattr(scipy.interpolate, name)(*args, **options)
    x = args[0]
    for nu in (0, 1, 2):
        close(ours(WIDE, nu), theirs(WIDE, nu))
    close(ours.integrate(x[0], x[-1] - 0.1), theirs.integrate(x[0], x[-1] - 0.1))
    close(ours.antiderivative()(INSIDE[:1]), theirs.antiderivative()(INSIDE[:1]))
    if options.get("bc_type") == "periodic":
        close(ours.integrate(-2, 7.0), theirs.integrate(-2, 7.0))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axes(axis: int) -> None:
    shape = [2, 3]
    shape.insert(axis, 7)
    y, places = np.random.default_rng(1).normal(size=shape), INSIDE.reshape(3, 2)
    for name in (
        "CubicSpline",
        "PchipInterpolator",
        "BarycentricInterpolator",
        "KroghInterpolator",
    ):
        ours, theirs = (getattr(m, name)(X, y, axis=axis) for m in (interpolate, scipy.interpolate))
        close(ours(places), theirs(places))


@pytest.mark.parametrize(
    "kind",
    [
        "linear",
        "nearest",
        "nearest-up",
        "previous",
        "next",
        "zero",
        "slinear",
        "quadratic",
        "cubic",
        5,
    ],
)
def test_interp1d(kind: Any) -> None:
    half = np.concatenate([X, (X[1:] + X[:-1]) / 2, INSIDE])
    cases: list[Any] = [
        ({}, half),
        ({"fill_value": "extrapolate"}, WIDE),
        ({"bounds_error": False}, WIDE),
        ({"fill_value": (1.0, 2.0), "bounds_error": False}, WIDE),
    ]
    for options, places in cases:
        for x, y in ((X, Y.T), (X[::-1], Y.T)):
            ours, theirs = (
                m.interp1d(x, y, kind, **options) for m in (interpolate, scipy.interpolate)
            )
            if kind in ("nearest", "nearest-up") and x is not X:
                continue  # SciPy's halves go the other way there
            close(ours(places), theirs(places))
    with pytest.raises(ValueError, match="outside of the interpolation range"):
        interpolate.interp1d(X, Y.T, kind)(WIDE)


def test_polynomials() -> None:
    ours = interpolate.BarycentricInterpolator(X, Y)
    theirs = scipy.interpolate.KroghInterpolator(X, Y)
    close(ours(X), Y)
    for k in (1, 2):
        close(
            ours.derivative(np.concatenate([X, INSIDE]), k),
            theirs.derivative(np.concatenate([X, INSIDE]), k),
        )
    repeated: Any = ([0, 0, 1, 1, 1], [1.0, 2, 3, 4, 5])
    ours, theirs = (m.KroghInterpolator(*repeated) for m in (interpolate, scipy.interpolate))
    close(ours(WIDE), theirs(WIDE))
    close(
        interpolate.krogh_interpolate(X, Y, INSIDE, [0, 1]),
        scipy.interpolate.krogh_interpolate(X, Y, INSIDE, [0, 1]),
    )
    close(
        interpolate.barycentric_interpolate(X, Y, INSIDE),
        scipy.interpolate.barycentric_interpolate(X, Y, INSIDE),
    )
    close(
        interpolate.pchip_interpolate(X, Y, INSIDE, 1),
        scipy.interpolate.pchip_interpolate(X, Y, INSIDE, 1),
    )


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_b_splines(k: int) -> None:
    ours, theirs = (m.make_interp_spline(X, Y, k) for m in (interpolate, scipy.interpolate))
    close(ours.t, theirs.t)
    close(ours.c, theirs.c)
    for nu in range(min(k, 3)):
        close(ours(WIDE, nu), theirs(WIDE, nu))
    close(ours.integrate(0.1, 2.0), theirs.integrate(0.1, 2.0))
    close(ours(WIDE, extrapolate=False), theirs(WIDE, extrapolate=False))
    tck = scipy.interpolate.splrep(X, Y[:, 0], k=k)
    for ext in (0, 1, 3):
        close(interpolate.splev(WIDE, tck, 0, ext), scipy.interpolate.splev(WIDE, tck, 0, ext))


GRID = tuple(np.sort(RNG.uniform(size=n)) for n in (7, 8, 6))
VALUES = RNG.normal(size=(7, 8, 6, 2))
POINTS = RNG.uniform(0.3, 0.6, size=(4, 3))


@pytest.mark.parametrize("method", ["linear", "nearest", "slinear", "pchip"])
def test_grids(method: str) -> None:
    options: Any = {"method": method, "bounds_error": False}
    grid = (GRID[0][::-1], *GRID[1:])
    for fill in (np.nan, None, 3.0):
        for points in (POINTS, POINTS + 0.6, POINTS[0]):
            ours, theirs = (
                m.RegularGridInterpolator(grid, VALUES, **options, fill_value=fill)(points)
                for m in (interpolate, scipy.interpolate)
            )
            close(ours, theirs)
    close(
        interpolate.interpn(GRID, VALUES, POINTS, **options),
        scipy.interpolate.interpn(GRID, VALUES, POINTS, **options),
    )
    with pytest.raises(ValueError, match="out of bounds in dimension 0"):
        interpolate.RegularGridInterpolator(GRID, VALUES)(POINTS + 2)


@pytest.mark.parametrize(("method", "k"), [("cubic", 3), ("quintic", 5)])
def test_splines_on_grids(method: str, k: int) -> None:
    """Against splines along one axis after the other: SciPy's solver stops at 1e-5."""
    found = interpolate.RegularGridInterpolator(GRID, VALUES, method, False, None)(POINTS)
    for point, row in zip(POINTS, found, strict=True):
        rest: Any = VALUES
        for places, x in zip(GRID, point, strict=True):
            rest = scipy.interpolate.make_interp_spline(places, rest, k)(x)
        close(row, rest)


def test_radial_functions() -> None:
    rng = np.random.default_rng(2)
    places, values, points = (
        rng.uniform(size=(9, 2)),
        rng.normal(size=(9, 3)),
        rng.uniform(size=(4, 2)),
    )
    kernels = [
        "linear",
        "thin_plate_spline",
        "cubic",
        "quintic",
        "multiquadric",
        "inverse_multiquadric",
        "inverse_quadratic",
        "gaussian",
    ]
    for kernel, smoothing in product(kernels, (0.0, 0.01)):
        options: Any = {"kernel": kernel, "epsilon": 2.0, "smoothing": smoothing}
        ours, theirs = (
            m.RBFInterpolator(places, values, **options)(points)
            for m in (interpolate, scipy.interpolate)
        )
        np.testing.assert_allclose(ours, theirs, 1e-7, 1e-8)
    check_grads(
        lambda *a: interpolate.RBFInterpolator(a[0], a[1])(a[2]), (places, values, points), order=1
    )


MAKERS: dict[str, Any] = {
    "CubicSpline": interpolate.CubicSpline,
    "PchipInterpolator": interpolate.PchipInterpolator,
    "Akima1DInterpolator": interpolate.Akima1DInterpolator,
    "BarycentricInterpolator": interpolate.BarycentricInterpolator,
    "KroghInterpolator": interpolate.KroghInterpolator,
    "make_interp_spline": interpolate.make_interp_spline,
    "interp1d": lambda x, y: interpolate.interp1d(x, y, axis=0),
    "RegularGridInterpolator": lambda x, y: interpolate.RegularGridInterpolator((x,), y),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", MAKERS)
def test_derivatives_in_everything(name: str) -> None:
    make = MAKERS[name]
    places = INSIDE[:, None] if name == "RegularGridInterpolator" else INSIDE
    check_grads(lambda x, y, q: make(x, y)(q), (X, Y, places), order=1)
    spline = make(X, Y)
    close(fg.jit(lambda s, q: s(q))(spline, places), spline(places))  # they are pytrees
    close(
        fg.vmap(lambda y: make(X, y)(places))(np.stack([Y, 2 * Y])),
        np.stack([spline(places), 2 * spline(places)]),
    )


def test_second_derivatives() -> None:
    for name in ("CubicSpline", "BarycentricInterpolator"):
        spline, theirs = (getattr(m, name)(X, Y[:, 0]) for m in (interpolate, scipy.interpolate))
        at = X[2] if name == "BarycentricInterpolator" else INSIDE[2]
        expected = theirs(at, 2) if name == "CubicSpline" else theirs.derivative(at, 2)
        np.testing.assert_allclose(fg.grad(fg.grad(spline))(at), expected, 1e-7)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: interpolate.CubicSpline(X, Y[:3]), "y has 3 values along axis 0 and x has 7"),
        (lambda: interpolate.CubicSpline(X[::-1], Y), "strictly increasing"),
        (lambda: interpolate.CubicSpline(X, Y, bc_type="no"), "bc_type must be"),
        (lambda: interpolate.CubicSpline(X, Y, bc_type="periodic"), "first and last values"),
        (lambda: interpolate.interp1d(X, Y, "no", axis=0), "kind must be one of"),
        (lambda: interpolate.make_interp_spline(X, Y, bc_type="natural"), "CubicSpline takes"),
        (lambda: interpolate.RegularGridInterpolator(GRID, VALUES, "no"), "method must be one of"),
        (lambda: interpolate.RBFInterpolator(Y, X, kernel="gaussian"), "needs epsilon="),
        (lambda: interpolate.PPoly(np.ones((2, 3)), X), "do not fit"),
        (lambda: fg.jit(interpolate.lagrange)(X, X), "lagrange is SciPy's own"),
    ],
)
def test_messages(call: Any, text: str) -> None:
    with pytest.raises(errors.FuncgradError, match=text):
        call()
