"""Logarithms of probabilities that no number can hold, and their derivatives, against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import funcgrad as fg
from funcgrad.scipy import stats


def log_upper(x, a):
    return mpmath.log(mpmath.gammainc(a, x, regularized=True))


def log_lower(x, a):
    return mpmath.log(mpmath.gammainc(a, 0, x, regularized=True))


def log_beta(x, a, b):
    """By a series of positive terms (DLMF 8.17.8)."""
    front = a * mpmath.log(x) + b * mpmath.log1p(-x) - mpmath.log(a * mpmath.beta(a, b))
    return front + mpmath.log(mpmath.hyp2f1(a + b, 1, a + 1, x))


def log_beta_above(x, a, b):
    return log_beta(1 - x, b, a)


def log_t(x, v):
    return log_beta(v / (v + x * x), v / 2, mpmath.mpf(1) / 2) - mpmath.log(2)


def log_f_above(x, n, d):
    return log_beta(d / (d + n * x), d / 2, n / 2)


ROWS = [
    ("gamma", "logsf", log_upper, (800.0, 2.5)),
    ("gamma", "logsf", log_upper, (1e5, 0.3)),
    ("gamma", "logsf", log_upper, (1300.0, 100.0)),
    ("gamma", "logsf", log_upper, (40.0, 2.5)),
    ("gamma", "logsf", log_upper, (1e-3, 2.5)),
    ("gamma", "logcdf", log_lower, (1e-150, 2.5)),
    ("gamma", "logcdf", log_lower, (20.0, 300.0)),
    ("gamma", "logcdf", log_lower, (6000.0, 1e4)),
    ("gamma", "logcdf", log_lower, (3.0, 2.5)),
    ("chi2", "logsf", lambda x, v: log_upper(x / 2, v / 2), (2000.0, 3.0)),
    ("invgamma", "logcdf", lambda x, a: log_upper(1 / x, a), (1e-3, 2.5)),
    ("gennorm", "logcdf", lambda x, b: log_upper((-x) ** b, 1 / b) - mpmath.log(2), (-40.0, 2.5)),
    ("beta", "logcdf", log_beta, (1e-160, 2.0, 3.0)),
    ("beta", "logcdf", log_beta, (0.1, 500.0, 500.0)),
    ("beta", "logcdf", log_beta, (0.01, 300.0, 0.5)),
    ("beta", "logcdf", log_beta, (0.3, 2.0, 3.0)),
    ("beta", "logsf", log_beta_above, (0.97, 2.0, 300.0)),
    ("beta", "logsf", log_beta_above, (0.5, 0.5, 2000.0)),
    ("beta", "logsf", log_beta_above, (0.7, 2.0, 3.0)),
    ("t", "logcdf", log_t, (-1e70, 5.0)),
    ("f", "logsf", log_f_above, (1e100, 3.0, 8.0)),
    ("binom", "logsf", lambda k, n, p: log_beta(p, k + 1, n - k), (2990.0, 3000.0, 1e-3)),
    ("nbinom", "logsf", lambda k, n, p: log_beta(1 - p, k + 1, n), (3000.0, 2.0, 0.5)),
    ("poisson", "logsf", lambda k, m: log_lower(m, k + 1), (400.0, 2.0)),
    ("poisson", "logcdf", lambda k, m: log_upper(m, k + 1), (3.0, 900.0)),
]
DISCRETE = {"binom": 2, "nbinom": 2, "poisson": 1}
"""The first argument in which there are derivatives."""


def slope(function, args, i):
    h = mpmath.mpf(10) ** -18
    ends = [[x * (1 + s * h) if k == i else x for k, x in enumerate(args)] for s in (1, -1)]
    return (function(*ends[0]) - function(*ends[1])) / (2 * h * args[i])


@pytest.mark.parametrize(("name", "method", "exact", "args"), ROWS)
def test_values_and_derivatives(name, method, exact, args):
    function = getattr(getattr(stats, name), method)
    with mpmath.workdps(50):
        numbers = [mpmath.mpf(x) for x in args]
        np.testing.assert_allclose(function(*args), float(exact(*numbers)), 2e-14)
        for i in range(DISCRETE.get(name, 0), len(args)):
            expected = float(slope(exact, numbers, i))
            found = fg.grad(function, i)(*map(np.float64, args))
            np.testing.assert_allclose(found, expected, 1e-13, err_msg=f"argument {i}")


def test_an_interval_of_few_numbers_has_a_probability():
    """Truncated normal numbers: between an end and what is next to it."""
    x, a, b = -1.0 + 2**-40, -1.0, 3.0
    with mpmath.workdps(50):
        part, whole = (mpmath.ncdf(v) - mpmath.ncdf(a) for v in map(mpmath.mpf, (x, b)))
        expected = float(mpmath.log(part / whole))
    np.testing.assert_allclose(stats.truncnorm.logcdf(x, a, b), expected, 1e-4)


COMPILED = [
    ("gamma", "logsf", ([800.0, 3.0, 0.0], [2.5, 2.5, 1.0])),
    ("gamma", "logcdf", ([1e-30, 3.0], [30.0, 2.5])),
    ("beta", "logcdf", ([1e-20, 0.3], [30.0, 2.5], [2.0, 2.0])),
    ("beta", "logsf", ([0.99, 0.3], [2.5, 2.5], [200.0, 2.0])),
]


@pytest.mark.parametrize(
    ("name", "method", "args", "dtype"),
    [
        pytest.param(*row, dtype, marks=pytest.mark.nightly if i + j else ())
        for i, row in enumerate(COMPILED)
        for j, dtype in enumerate((np.float64, np.float32))
    ],
)
def test_compiled_ones_are_the_same(name, method, args, dtype):
    function = getattr(getattr(stats, name), method)
    given = [np.array(x, dtype) for x in args]
    expected = function(*given)
    assert np.isfinite(expected).all()
    eps = float(np.finfo(dtype).eps)
    for f in (fg.jit(function), fg.vmap(function)):
        found = f(*given)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, 4 * eps)


def test_second_derivatives_in_the_tail():
    """Those in the variable, of a logarithm that is ``-x + 1.5 log(x)`` but for a constant."""
    second = fg.grad(fg.grad(lambda x: stats.gamma.logsf(x, 2.5)))(np.float64(900.0))
    with mpmath.workdps(50):
        expected = float(mpmath.diff(lambda x: log_upper(x, mpmath.mpf(2.5)), 900, 2))
    np.testing.assert_allclose(second, expected, 1e-8)
