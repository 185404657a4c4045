"""Special functions: derivatives against mpmath, limits at singular places, lazy SciPy."""

from __future__ import annotations

import subprocess
import sys

import mpmath
import numpy as np
import pytest
import scipy.special

import funcgrad as fg
from funcgrad.errors import MissingRuleError
from funcgrad.primitives import gamma_functions, incomplete
from funcgrad.primitives import special as sp


def slope(primitive, *args, argument=-1):
    """The derivative in one argument."""
    args = [np.float64(a) for a in args]
    tangents = [None] * len(args)
    tangents[argument] = np.float64(1)
    return primitive.jvp(args, tangents)[1]


@pytest.mark.parametrize(
    ("primitive", "function", "point"),
    [
        (sp.erf, mpmath.erf, 0.7),
        (sp.erfinv, mpmath.erfinv, 0.9),
        (sp.lgamma, mpmath.loggamma, 3.3),
        (sp.gamma, mpmath.gamma, -1.5),
        (sp.digamma, mpmath.digamma, 0.3),
        (sp.ndtr, mpmath.ncdf, -5.0),
        (sp.log_ndtr, lambda x: mpmath.log(mpmath.ncdf(x)), -30.0),
        (sp.i0, lambda x: mpmath.besseli(0, x), 2.5),
        (sp.i1, lambda x: mpmath.besseli(1, x), 1e-6),
        (sp.i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-x), 30.0),
        (sp.k1, lambda x: mpmath.besselk(1, x), 0.2),
        (sp.j1, lambda x: mpmath.besselj(1, x), 9.0),
        (sp.y0, lambda x: mpmath.bessely(0, x), 0.4),
        (sp.expi, mpmath.ei, 1.5),
        (sp.exp1, mpmath.e1, 1.5),
        (sp.spence, lambda x: mpmath.polylog(2, 1 - x).real, 1.0004),
        (sp.exprel, lambda x: mpmath.expm1(x) / x, 0.009),
        (sp.exprel, lambda x: mpmath.expm1(x) / x, -0.02),
        (sp.logit, lambda x: mpmath.log(x / (1 - x)), 0.01),
        (sp.log_expit, lambda x: -mpmath.log1p(mpmath.exp(-x)), -40.0),
    ],
    ids=lambda p: getattr(p, "name", None),
)
def test_derivative_against_mpmath(primitive, function, point):
    with mpmath.workdps(40):
        expected = float(mpmath.diff(function, point))
    np.testing.assert_allclose(slope(primitive, point), expected, 5e-12)


def difference(function, x):
    """The derivative to 25 digits, of many more that are computed."""
    h = mpmath.mpf(10) ** -20 * x
    return (function(x + h) - function(x - h)) / (2 * h)


def lower_gamma(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


@pytest.mark.parametrize("a", [1e-4, 0.1, 1.0, 3.5, 40.0, 400.0])
@pytest.mark.parametrize("ratio", [1e-4, 0.01, 0.5, 0.9, 1.0, 1.1, 1.5, 5.0, 40.0])
def test_incomplete_gamma_in_its_order(a, ratio):
    """As accurate where the derivative is small, far from ``a`` on both sides, as elsewhere."""
    x = a * ratio
    with mpmath.workdps(60):
        if x < a + 0.5:
            expected = float(difference(lambda b: lower_gamma(b, x), a))
        else:
            expected = -float(difference(lambda b: mpmath.gammainc(b, x, regularized=True), a))
    np.testing.assert_allclose(slope(sp.gammainc, a, x, argument=0), expected, 1e-13, 1e-305)
    np.testing.assert_allclose(slope(sp.gammaincc, a, x, argument=0), -expected, 1e-13, 1e-305)


@pytest.mark.parametrize(
    ("primitive", "args"),
    [
        (sp.gammainc, (3e3, 3.1e3)),
        (sp.gammainc, (1e6, 1e6)),
        (sp.betainc, (3e3, 2e3, 0.61)),
        (sp.betainc, (0.5, 4e3, 1e-4)),
    ],
)
def test_densities_of_large_parameters_are_accurate(primitive, args):
    with mpmath.workdps(40):
        *shapes, x = map(mpmath.mpf, args)
        logs = (shapes[0] - 1) * mpmath.log(x)
        if len(shapes) == 1:
            logs -= x + mpmath.loggamma(shapes[0])
        else:
            logs += (shapes[1] - 1) * mpmath.log1p(-x) - mpmath.log(mpmath.beta(*shapes))
        expected = float(mpmath.exp(logs))
    np.testing.assert_allclose(slope(primitive, *args, argument=len(args) - 1), expected, 4e-15)


def test_incomplete_gamma_at_the_ends():
    a, x = np.array([1.0, 1.0, -1.0, np.nan]), np.array([0.0, np.inf, 1.0, 1.0])
    out = incomplete.gammainc_da.bind(a, x)
    np.testing.assert_array_equal(out, [0.0, 0.0, np.nan, np.nan])
    assert slope(sp.gammainc, 1.0, 0.0) == 1


def test_mixed_derivative_of_incomplete_gamma():
    with mpmath.workdps(40):
        expected = float(mpmath.diff(lower_gamma, (2.5, 1.2), (1, 1)))
    np.testing.assert_allclose(slope(incomplete.gammainc_da, 2.5, 1.2), expected, 1e-12)


def test_incomplete_beta():
    with mpmath.workdps(40):
        expected = float(
            mpmath.diff(lambda x: mpmath.betainc(2.5, 0.7, 0, x, regularized=True), 0.3)
        )
    np.testing.assert_allclose(slope(sp.betainc, 2.5, 0.7, 0.3), expected, 1e-13)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("a", "b"), [(0.1, 3.0), (2.5, 0.7), (40.0, 60.0), (300.0, 0.5)])
@pytest.mark.parametrize("x", [1e-4, 0.3, 0.5, 0.7, 0.999])
def test_incomplete_beta_in_its_shapes(a, b, x):
    def lower(a, b):
        return mpmath.betainc(a, b, 0, x, regularized=True)

    with mpmath.workdps(220):
        expected = [float(difference(lambda v: lower(v, b), a))]
        expected += [float(difference(lambda v: lower(a, v), b))]
    for i in range(2):
        found = slope(sp.betainc, a, b, x, argument=i)
        np.testing.assert_allclose(found, expected[i], 1e-13, 1e-300)


def test_incomplete_beta_at_the_ends():
    x = np.array([0.0, 1.0, -0.1, 1.1, np.nan])
    out = incomplete.betainc_da.bind(np.full(5, 2.0), np.full(5, 3.0), x)
    np.testing.assert_array_equal(out, [0.0, 0.0, np.nan, np.nan, np.nan])


@pytest.mark.parametrize(
    ("primitive", "expected"),
    [(sp.i1, 0.5), (sp.i1e, 0.5), (sp.j1, 0.5), (sp.i0, 0.0), (sp.exprel, 0.5), (sp.i0e, 0.0)],
    ids=lambda p: getattr(p, "name", None),
)
def test_limits_at_zero(primitive, expected):
    assert slope(primitive, 0.0) == expected


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("primitive", "function"),
    [
        (sp.j0, lambda x: mpmath.besselj(0, x)),
        (sp.j1, lambda x: mpmath.besselj(1, x)),
        (sp.i0, lambda x: mpmath.besseli(0, x)),
        (sp.i1, lambda x: mpmath.besseli(1, x)),
        (sp.exprel, lambda x: mpmath.expm1(x) / x if x else mpmath.mpf(1)),
    ],
)
@pytest.mark.parametrize("x", [0.0, 0.7])
def test_high_derivatives_at_zero(primitive, function, x):
    derivative = primitive.bind
    for order in range(1, 6):
        derivative = fg.grad(derivative)
        with mpmath.workdps(60):
            expected = float(mpmath.diff(function, x, order, h=mpmath.mpf(10) ** -9))
        for f in (derivative, fg.jit(derivative)):
            np.testing.assert_allclose(f(x), expected, 1e-7, 1e-9)


def test_limit_of_the_dilogarithm_at_one():
    assert slope(sp.spence, 1.0) == -1


def test_zero_times_logarithm_of_zero():
    assert sp.xlogy.bind(0.0, 0.0) == 0
    assert slope(sp.xlogy, 0.0, 0.0) == 0
    assert slope(sp.xlog1py, 0.0, -1.0) == 0


@pytest.mark.parametrize(
    ("primitive", "args", "argument", "text"),
    [
        (
            gamma_functions.polygamma,
            (1.0, 2.0),
            0,
            r"polygamma has no derivative .* argument n \(the order\)",
        ),
        (
            incomplete.betainc_da,
            (2.0, 2.0, 0.5),
            1,
            "the derivative of betainc in a has no derivative with respect to its argument b",
        ),
    ],
    ids=["polygamma", "betainc_da"],
)
def test_undefined_partial_derivatives_say_so(primitive, args, argument, text):
    with pytest.raises(MissingRuleError, match=text):
        slope(primitive, *args, argument=argument)


@pytest.mark.parametrize("n", range(5))
def test_polygamma_of_every_order(n):
    x = np.linspace(0.2, 9, 7)
    found = gamma_functions.polygamma.bind(np.float64(n), x)
    np.testing.assert_allclose(found, [float(mpmath.polygamma(n, v)) for v in x], 1e-12)


@pytest.mark.parametrize("name", sp.SCIPY_UFUNCS)
def test_ufuncs_are_found_by_their_names(name):
    ufunc = getattr(scipy.special, name, None)
    if name == "_zeta":  # the ufunc behind the function zeta
        return
    assert isinstance(ufunc, np.ufunc)
    assert ufunc.__name__ == name
    primitive = sp.SCIPY_UFUNCS[name]
    args = [np.float64(0.375), np.float64(0.625), np.float64(0.25)][: ufunc.nin]
    np.testing.assert_allclose(primitive.bind(*args), ufunc(*args), 1e-14)


def test_scipy_is_imported_at_first_use():
    code = (
        "import sys; import funcgrad.primitives.special as sp; "
        "assert 'scipy' not in sys.modules; sp.erf.bind(0.5); assert 'scipy.special' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
