"""Distributions that stem from gamma-distributed numbers, and those of vectors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import scipy.stats

import funcgrad as fg
from funcgrad import random
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.testing import check_grads

KEY = random.key(11)
N = 2000

# Draw of given parameters and shape; parameters; distribution function.
CASES = {
    "gamma": (random.gamma, (2.5,), scipy.stats.gamma(2.5).cdf),
    "gamma_small": (random.gamma, (0.3,), scipy.stats.gamma(0.3).cdf),
    "loggamma": (random.loggamma, (0.02,), scipy.stats.loggamma(0.02).cdf),
    "beta": (random.beta, (0.5, 2.0), scipy.stats.beta(0.5, 2.0).cdf),
    "chisquare": (random.chisquare, (3.0,), scipy.stats.chi2(3.0).cdf),
    "t": (random.t, (2.5,), scipy.stats.t(2.5).cdf),
    "f": (random.f, (3.0, 8.0), scipy.stats.f(3.0, 8.0).cdf),
    "generalized_normal": (random.generalized_normal, (1.5,), scipy.stats.gennorm(1.5).cdf),
    "lognormal": (random.lognormal, (0.7,), scipy.stats.lognorm(0.7).cdf),
    "double_sided_maxwell": (
        random.double_sided_maxwell,
        (0.5, 2.0),
        lambda x: 0.5 + 0.5 * np.sign(x - 0.5) * scipy.stats.maxwell(scale=2.0).cdf(abs(x - 0.5)),
    ),
    "triangular": (
        random.triangular, (-1.0, 0.5, 2.0), scipy.stats.triang(0.5, loc=-1.0, scale=3.0).cdf
    ),
    "wald": (random.wald, (1.7,), scipy.stats.invgauss(1.7).cdf),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_goodness_of_fit(name):
    draw, parameters, cdf = CASES[name]
    x = draw(KEY, *parameters, shape=(N,))
    assert x.dtype == np.float64
    assert scipy.stats.kstest(x, cdf).pvalue > 1e-3
    single = draw(KEY, *parameters, shape=(2, 3), dtype=np.float32)
    assert single.dtype == np.float32
    assert single.shape == (2, 3)
    assert draw(KEY, *parameters, shape=(0, 2)).shape == (0, 2)


def implicit(distribution, x, *parameters):
    """dx/da at a fixed probability, by differences of SciPy's distribution function."""
    first, *rest = parameters
    h = 1e-5 * first
    change = distribution.cdf(x, first + h, *rest) - distribution.cdf(x, first - h, *rest)
    return -change / (2 * h) / distribution.pdf(x, *parameters)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("a", [0.05, 0.7, 2.5, 60.0])
def test_derivatives_of_gamma_numbers_are_implicit(a):
    for seed in range(4):
        key = random.key(seed)
        x, slope = fg.value_and_grad(lambda v, key=key: random.gamma(key, v))(a)
        logarithm, log_slope = fg.value_and_grad(lambda v, key=key: random.loggamma(key, v))(a)
        np.testing.assert_allclose(np.exp(logarithm), x, 1e-12)
        np.testing.assert_allclose(slope, implicit(scipy.stats.gamma, x, a), 1e-5)
        np.testing.assert_allclose(log_slope, slope / x, 1e-9)
        forward = fg.jvp(lambda v, key=key: random.gamma(key, v), (a,), (1.0,))[1]
        np.testing.assert_allclose(forward, slope, 1e-14)
        np.testing.assert_allclose(fg.lax.random_gamma_grad(a, x), slope, 1e-12)


def test_derivatives_of_numbers_that_are_too_small_to_be_told_from_zero():
    logarithm, slope = fg.value_and_grad(lambda v: random.loggamma(KEY, v))(1e-3)
    # Of P(a, x) = x**a / gamma(a + 1), to many digits.
    expected = (scipy.special.digamma(1.001) - logarithm) / 1e-3
    np.testing.assert_allclose(slope, expected, 1e-12)
    assert random.gamma(KEY, 1e-5) == 0
    assert fg.grad(lambda v: random.gamma(KEY, v))(1e-5) == 0


def test_derivatives_go_through_what_stems_from_gamma_numbers():
    first, second = random.split(KEY)
    slope_a = fg.grad(lambda v: random.loggamma(first, v))(0.5)
    x, slope = fg.value_and_grad(lambda v: random.beta(KEY, v, 2.0))(0.5)
    np.testing.assert_allclose(slope, x * (1 - x) * slope_a, 1e-12)
    n = random.normal(first)
    g, slope_g = fg.value_and_grad(lambda v: random.gamma(second, v))(1.25)
    x, slope = fg.value_and_grad(lambda v: random.t(KEY, v))(2.5)
    expected = n * 0.5 / np.sqrt(1.25 / g) * 0.5 * (1 / g - 1.25 * slope_g / g**2)
    np.testing.assert_allclose(slope, expected, 1e-12)
    x, slope = fg.value_and_grad(lambda v: random.chisquare(KEY, v))(3.0)
    np.testing.assert_allclose(slope, implicit(scipy.stats.chi2, x, 3.0), 1e-6)
    rows = fg.jacobian(lambda v: random.dirichlet(KEY, v))(np.array([0.5, 2.0, 3.5]))
    np.testing.assert_allclose(rows.sum(0), 0, atol=1e-14)
    assert (np.diag(rows) > 0).all()


SMOOTH = ["lognormal", "double_sided_maxwell", "triangular"]


@pytest.mark.parametrize("name", SMOOTH)
def test_pathwise_derivatives(name):
    draw, parameters, _ = CASES[name]
    check_grads(lambda *p: draw(KEY, *p, shape=(4,)), parameters, order=1, rtol=1e-4)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", CASES)
def test_keys_are_mapped(name):
    draw, parameters, _ = CASES[name]
    keys = random.split(KEY, 3)
    mapped = fg.vmap(lambda k: draw(k, *parameters, shape=(2,)))(keys)
    np.testing.assert_allclose(mapped[1], draw(keys[1], *parameters, shape=(2,)), 1e-12)


def test_compiled_gamma_numbers():
    a = np.array([0.3, 2.0])
    drawn = fg.jit(lambda k, a: random.gamma(k, a, (5, 2)))(KEY, a)
    np.testing.assert_allclose(drawn, random.gamma(KEY, a, (5, 2)), 1e-13)
    slope = fg.jit(fg.grad(lambda v: random.gamma(KEY, v)))(2.0)
    np.testing.assert_allclose(slope, fg.grad(lambda v: random.gamma(KEY, v))(2.0), 1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["gamma", "loggamma"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_numbers_outside_of_their_parameters(name, dtype):
    a = np.array([-3.0, -1.0, -0.5, -1e-3, np.nan, 2.0, 0.0], dtype)
    drawn = getattr(random, name)(KEY, a)
    np.testing.assert_array_equal(np.isnan(drawn), a != np.maximum(a, 0))
    assert drawn[-1] == (0.0 if name == "gamma" else -np.inf)


def test_vectors():
    alpha = np.array([0.5, 2.0, 3.5])
    x = random.dirichlet(KEY, alpha, (N,))
    np.testing.assert_allclose(x.sum(-1), 1.0)
    for i, a in enumerate(alpha):
        cdf = scipy.stats.beta(a, alpha.sum() - a).cdf
        assert scipy.stats.kstest(x[:, i], cdf).pvalue > 1e-3
    assert random.dirichlet(KEY, np.ones((4, 3))).shape == (4, 3)
    for p in (1.0, 2.0, 4.0):
        points = random.ball(KEY, 3, p, (N,))
        radius = (abs(points) ** p).sum(-1) ** (1 / p)
        assert scipy.stats.kstest(radius, lambda r: r**3).pvalue > 1e-3


def test_multivariate_normal():
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    x = random.multivariate_normal(KEY, mean, cov, (N,))
    z = np.linalg.solve(np.linalg.cholesky(cov), (x - mean).T)
    assert scipy.stats.kstest(z.ravel(), scipy.stats.norm.cdf).pvalue > 1e-3
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.15)
    assert random.multivariate_normal(KEY, mean, cov).shape == (2,)
    check_grads(
        lambda m, c: random.multivariate_normal(KEY, m, (c + c.T) / 2, (3,)), (mean, cov), order=2
    )
    drawn = fg.jit(lambda k: random.multivariate_normal(k, mean, cov, (2, 3)))(KEY)
    np.testing.assert_allclose(drawn, random.multivariate_normal(KEY, mean, cov, (2, 3)), 1e-12)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda: random.gamma(KEY, 1.0, dtype=int), DtypeError, "needs a floating dtype"),
        (lambda: random.beta(KEY, np.ones(3), 1.0, (2,)), ShapeError, "do not fit together"),
        (lambda: random.dirichlet(KEY, 1.0), ShapeError, "at least one axis"),
        (
            lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(3)),
            ShapeError,
            "square matrices of the length",
        ),
    ],
)
def test_messages(function, error, words):
    with pytest.raises(error, match=words):
        function()
