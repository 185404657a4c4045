"""Distributions of vectors, and densities by kernels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.scipy import stats
from funcgrad.testing import check_grads

RNG = np.random.default_rng(0)
X, MEAN, A = RNG.normal(size=(4, 3)), RNG.normal(size=3), RNG.normal(size=(3, 3))
COV = A @ A.T + np.eye(3)
ALPHA = np.array([0.5, 2.0, 3.0])
SIMPLEX = RNG.dirichlet(ALPHA, 5).T
P = np.array([0.2, 0.3, 0.5])
COUNTS = np.array([[1, 2, 3], [0, 6, 0], [1, 1, 1]])


def same(actual, expected):
    np.testing.assert_allclose(actual, expected, 1e-12)


@pytest.mark.parametrize("cov", [COV, 2.0, np.array([1.0, 2.0, 3.0])], ids=["full", "one", "own"])
def test_multivariate_normal(cov):
    ours, reference = stats.multivariate_normal, scipy.stats.multivariate_normal
    same(ours.logpdf(X, MEAN, cov), reference.logpdf(X, MEAN, cov))
    same(ours.pdf(X[0], MEAN, cov), reference.pdf(X[0], MEAN, cov))
    same(ours.entropy(MEAN, cov), reference.entropy(MEAN, cov))
    same(ours(MEAN, cov).logpdf(X), reference.logpdf(X, MEAN, cov))
    check_grads(lambda x, m: ours.logpdf(x, m, cov), (X, MEAN), order=2)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_singular_covariances(rank):
    ours, reference = stats.multivariate_normal, scipy.stats.multivariate_normal
    cov = A[:, :rank] @ A[:, :rank].T
    inside = MEAN + RNG.normal(size=(4, rank)) @ A[:, :rank].T
    for points in (inside, inside[0], np.concatenate([inside, X])):
        expected = reference.logpdf(points, MEAN, cov, allow_singular=True)
        got = ours.logpdf(points, MEAN, cov, allow_singular=True)
        np.testing.assert_allclose(got, expected, 1e-10)
    np.testing.assert_array_equal(np.isneginf(ours.logpdf(X, MEAN, cov, True)), rank < 3)
    slope = fg.grad(lambda x: ours.logpdf(x, MEAN, cov, allow_singular=True))(inside[0])
    np.testing.assert_allclose(slope, -np.linalg.pinv(cov) @ (inside[0] - MEAN), 1e-8, 1e-10)


def test_stacks_and_numbers():
    ours, reference = stats.multivariate_normal, scipy.stats.multivariate_normal
    same(ours.logpdf(1.3, 0.2, 2.0), reference.logpdf(1.3, 0.2, 2.0))
    same(ours.logpdf(X[0]), reference.logpdf(X[0], np.zeros(3)))
    stacked = ours.logpdf(X[:, None], MEAN, np.stack([COV, 2 * COV]))
    same(stacked[:, 1], reference.logpdf(X, MEAN, 2 * COV))
    check_grads(lambda c: ours.logpdf(X, MEAN, c @ c.T), (A + 2 * np.eye(3),), order=2)
    compiled = fg.jit(fg.vmap(lambda x: ours.logpdf(x, MEAN, COV)))(X)
    same(compiled, reference.logpdf(X, MEAN, COV))
    assert (
        ours.logpdf(X.astype(np.float32), 0 * np.float32(MEAN), np.float32(1)).dtype == np.float32
    )


def test_dirichlet():
    ours, reference = stats.dirichlet, scipy.stats.dirichlet
    same(ours.logpdf(SIMPLEX, ALPHA), reference.logpdf(SIMPLEX, ALPHA))
    same(ours.pdf(SIMPLEX[:2], ALPHA), reference.pdf(SIMPLEX[:2], ALPHA))
    for name in ("mean", "var", "cov", "entropy"):
        same(getattr(ours, name)(ALPHA), getattr(reference, name)(ALPHA))
    check_grads(lambda a, x: ours.logpdf(x[:2], a), (ALPHA, SIMPLEX), order=2)
    assert ours.logpdf(np.array([0.5, 0.6, 0.2]), ALPHA) == -np.inf
    assert fg.grad(lambda a: ours.logpdf(np.array([0.5, 0.6, 0.2]), a))(ALPHA).any() == 0


def test_multinomial():
    ours, reference = stats.multinomial, scipy.stats.multinomial
    same(ours.logpmf(COUNTS, 6, P), reference.logpmf(COUNTS, 6, P))
    same(ours.pmf(COUNTS, 6, P), reference.pmf(COUNTS, 6, P))
    same(ours.cov(6, P), reference.cov(6, P))
    same(ours.mean(6, P), 6 * P)
    same(ours.entropy(6, P), reference.entropy(6, P))
    check_grads(lambda p: ours.logpmf(COUNTS[:2], 6, p), (P,), order=2)
    assert ours.pmf([1.5, 1.5, 3.0], 6, P) == 0


WEIGHTS = np.abs(RNG.normal(size=20))
DATA, POINTS = RNG.normal(size=(2, 20)), RNG.normal(size=(2, 5))


@pytest.mark.parametrize("width", [None, "silverman", 0.3, lambda kde: 0.1 * kde.d])
def test_densities_by_kernels(width):
    ours = stats.gaussian_kde(DATA, width, WEIGHTS)
    reference = scipy.stats.gaussian_kde(DATA, width, WEIGHTS)
    same(ours(POINTS), reference(POINTS))
    same(ours.logpdf(POINTS), reference.logpdf(POINTS))
    same(ours.inv_cov, reference.inv_cov)
    same(ours.integrate_kde(ours), reference.integrate_kde(reference))
    box = (MEAN[:2], COV[:2, :2])
    same(ours.integrate_gaussian(*box), reference.integrate_gaussian(*box))
    same(ours.marginal([0]).pdf(POINTS[0]), reference.marginal([0]).pdf(POINTS[0]))


def test_densities_do_not_depend_on_where_points_are_counted_from():
    far = np.array([[1e6], [-1e6]])
    near, away = stats.gaussian_kde(DATA), stats.gaussian_kde(DATA + far)
    np.testing.assert_allclose(away.logpdf(POINTS + far), near.logpdf(POINTS), rtol=1e-8)


def test_densities_of_numbers():
    ours, reference = stats.gaussian_kde(DATA[0]), scipy.stats.gaussian_kde(DATA[0])
    same(ours.integrate_box_1d(-1.0, 1.0), reference.integrate_box_1d(-1.0, 1.0))
    same(ours.neff, reference.neff)
    drawn = ours.resample(fg.random.key(0), (2000,))
    assert drawn.shape == (1, 2000)
    cdf = np.vectorize(lambda x: reference.integrate_box_1d(-np.inf, x))
    assert scipy.stats.kstest(drawn[0, :300], cdf).pvalue > 1e-3


def test_densities_are_differentiable_pytrees():
    def logs(data, points):
        return stats.gaussian_kde(data).logpdf(points)

    check_grads(logs, (DATA, POINTS), order=1)
    kde = stats.gaussian_kde(DATA)
    same(fg.jit(lambda k, x: k.logpdf(x))(kde, POINTS), kde.logpdf(POINTS))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stats.multivariate_normal.pdf(X, MEAN, np.eye(2)), ShapeError, "do not fit"),
        (
            lambda: fg.grad(
                lambda c: stats.multivariate_normal.logpdf(X[0], MEAN, c, allow_singular=True)
            )(COV),
            ArgumentError,
            r"one matrix of known values, got f64\[3,3\]",
        ),
        (
            lambda: stats.multivariate_normal.pdf(X, MEAN, -COV, allow_singular=True),
            ArgumentError,
            "positive semidefinite, its least eigenvalue is -",
        ),
        (lambda: stats.multivariate_normal.rvs(), ArgumentError, "funcgrad.random"),
        (lambda: stats.dirichlet.pdf(SIMPLEX, np.ones(7)), ShapeError, "must have length 7 or 6"),
        (lambda: stats.dirichlet.mean(np.eye(2)), ShapeError, "alpha must be a vector"),
        (lambda: stats.gaussian_kde([1.0]), ShapeError, "several points"),
        (lambda: stats.gaussian_kde(DATA, "wide"), ArgumentError, "'scott', 'silverman'"),
        (lambda: stats.gaussian_kde(DATA, weights=[1.0]), ShapeError, "20 weights"),
        (lambda: stats.gaussian_kde(DATA)(np.ones((3, 1))), ShapeError, "3 components"),
        (lambda: stats.gaussian_kde(DATA).integrate_box_1d(0, 1), ArgumentError, "one component"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words):
        call()
