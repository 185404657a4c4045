"""Random counts and matrices: goodness of fit, transformations, messages."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import funcgrad as fg
from funcgrad import random
from funcgrad.errors import ArgumentError, DtypeError, ShapeError

KEY = random.key(5)
N = 4000

CASES = {
    "poisson_small": (random.poisson, (3.5,), scipy.stats.poisson(3.5)),
    "poisson_large": (random.poisson, (42.0,), scipy.stats.poisson(42.0)),
    "poisson_very_large": (random.poisson, (2e4,), scipy.stats.poisson(2e4)),
    "binomial_small": (random.binomial, (12, 0.3), scipy.stats.binom(12, 0.3)),
    "binomial_large": (random.binomial, (90, 0.7), scipy.stats.binom(90, 0.7)),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_goodness_of_fit(name):
    draw, parameters, distribution = CASES[name]
    x = draw(KEY, *parameters, shape=(N,))
    edges = np.unique(distribution.ppf(np.linspace(0, 1, 12)[1:-1]))
    chances = np.diff(distribution.cdf(edges), prepend=0, append=1)
    seen = np.bincount(np.searchsorted(edges, x), minlength=len(chances))
    assert scipy.stats.chisquare(seen, N * chances).pvalue > 1e-3


def test_multinomial():
    p = np.array([0.2, 0.3, 0.5])
    x = random.multinomial(KEY, 20, p, shape=(N, 3))
    np.testing.assert_array_equal(x.sum(-1), 20)
    np.testing.assert_allclose(x.mean(0), 20 * p, rtol=0.02)
    np.testing.assert_allclose(np.cov(x.T), scipy.stats.multinomial(20, p).cov(), atol=0.35)
    assert random.multinomial(KEY, 5, p, dtype=np.float32).dtype == np.float32
    assert random.multinomial(KEY, np.array([3, 4]), p, shape=(2, 3)).shape == (2, 3)


def test_counts_have_no_derivatives_and_map():
    assert fg.grad(lambda n: random.binomial(KEY, n, 0.3))(20.0) == 0
    assert fg.grad(lambda p: random.multinomial(KEY, 20, p)[0])(np.array([0.2, 0.8])).any() == 0
    keys = random.split(KEY, 3)
    for draw in (
        lambda k: random.poisson(k, np.array([2.0, 30.0])),
        lambda k: random.binomial(k, 50, np.array([0.1, 0.6])),
        lambda k: random.orthogonal(k, 2),
    ):
        np.testing.assert_allclose(fg.vmap(draw)(keys)[2], draw(keys[2]), 1e-12)


def test_compiled_counts():
    rates = np.array([2.0, 30.0])
    drawn = fg.jit(lambda k: random.poisson(k, rates, (4, 2)))(KEY)
    np.testing.assert_array_equal(drawn, random.poisson(KEY, rates, (4, 2)))
    drawn = fg.jit(lambda k: random.binomial(k, 60, 0.4, (5,)))(KEY)
    np.testing.assert_array_equal(drawn, random.binomial(KEY, 60, 0.4, (5,)))


def test_edges_of_parameters():
    assert random.poisson(KEY, 0.0) == 0
    assert random.poisson(KEY, np.zeros((0, 2))).shape == (0, 2)
    x = random.binomial(KEY, np.array([np.nan, -1, np.inf, 3, 0]), 0.5)
    np.testing.assert_array_equal(np.isnan(x), [True, True, False, False, False])
    assert x[2] == np.inf
    assert x[4] == 0
    np.testing.assert_array_equal(random.binomial(KEY, 7, np.array([0.0, 1.0])), [0, 7])
    assert np.isnan(random.binomial(KEY, 7, -0.1))


def test_orthogonal():
    for n, m in ((3, None), (4, 2), (2, 4)):
        q = random.orthogonal(KEY, n, (5,), m=m)
        assert q.shape == (5, n, n if m is None else m)
        tall = q if q.shape[-2] >= q.shape[-1] else q.swapaxes(-1, -2)
        eye = np.broadcast_to(np.eye(tall.shape[-1]), (5, tall.shape[-1], tall.shape[-1]))
        np.testing.assert_allclose(tall.swapaxes(-1, -2) @ tall, eye, atol=1e-12)
    # The first column of a uniformly distributed one is a uniform point of the sphere.
    q = random.orthogonal(KEY, 3, (N,))
    assert scipy.stats.kstest(q[:, 0, 0], scipy.stats.uniform(-1, 2).cdf).pvalue > 1e-3
    u = random.orthogonal(KEY, 2, dtype=np.complex128)
    np.testing.assert_allclose(u.conj().T @ u, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_methods_of_multivariate_normal(method):
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    x = random.multivariate_normal(KEY, mean, cov, (N,), method=method)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.15)
    z = np.linalg.solve(np.linalg.cholesky(cov), (x - mean).T)
    assert scipy.stats.kstest(z.ravel(), scipy.stats.norm.cdf).pvalue > 1e-3


def test_stacks_of_normal_distributions():
    means, covs = np.zeros((3, 1, 2)), np.stack([np.eye(2), 4 * np.eye(2)])
    x = random.multivariate_normal(KEY, means, covs)
    assert x.shape == (3, 2, 2)
    unit = random.normal(KEY, (3, 2, 2))
    np.testing.assert_allclose(x, unit * np.array([1.0, 2.0])[:, None], 1e-12)


def test_keys_know_their_algorithm():
    assert random.key_impl(KEY) == "threefry2x32"
    dtype = random.key_dtype("threefry2x32")
    assert KEY.dtype == dtype
    assert random.key(5, dtype=dtype) == KEY
    assert random.wrap_key_data(random.key_data(KEY), dtype="threefry2x32") == KEY


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: random.poisson(KEY, 1.0, dtype=float), DtypeError, "integer dtype"),
        (lambda: random.binomial(KEY, 3, 0.5, dtype=int), DtypeError, "floating dtype"),
        (lambda: random.multinomial(KEY, 3, 0.5), ShapeError, "last axis is that of"),
        (lambda: random.multinomial(KEY, 3, np.ones(3), shape=(2,)), ShapeError, "last axis"),
        (lambda: random.key(0, dtype="mt"), ArgumentError, "'unsafe_rbg', got 'mt'"),
        (
            lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(2), method="qr"),
            ArgumentError,
            "'cholesky', 'eigh' or 'svd', got 'qr'",
        ),
        (
            lambda: random.multivariate_normal(KEY, np.ones((3, 2)), np.eye(2), (2,)),
            ShapeError,
            "do not",
        ),
        (
            lambda: random.normal(KEY, out_sharding=1),
            ArgumentError,
            "normal: there is one device, the CPU",
        ),
        (
            lambda: random.gamma(KEY, 1.0, out_sharding=1),
            ArgumentError,
            "gamma: there is one device",
        ),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words):
        call()
