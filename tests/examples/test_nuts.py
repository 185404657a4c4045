"""The No-U-Turn sampler: moments in closed form, by quadrature, and calibration by simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import funcgrad as fg
from funcgrad.interop.samplers import LogDensity, positive
from tests.examples.program import check_picture, load, run

example = load("nuts")


def test_parts_of_a_trajectory():
    """Of eight points: parts that end at a point, and where they begin."""
    for leaf in range(8):
        ended, begun = map(int, example.levels(leaf))
        sizes = [n for n in (2, 4, 8) if (leaf + 1) % n == 0]
        assert ended == len(sizes)
        if leaf % 2 == 0:
            assert begun == bin(leaf).count("1")


@pytest.mark.nightly
def test_moments_of_a_normal_distribution():
    rng = np.random.default_rng(1)
    root = rng.standard_normal((5, 5)) + 2 * np.eye(5)
    covariance, mean = root @ root.T, np.arange(5.0)
    precision = np.linalg.inv(covariance)
    chain = example.make_chain(lambda x: -0.5 * (x - mean) @ precision @ (x - mean), 2000)
    found = fg.jit(fg.vmap(chain))(
        rng.standard_normal((4, 5)), fg.random.split(fg.random.key(3), 4)
    )
    values = found["values"]
    size = example.effective_size(values)
    assert np.all(size > 2000)
    assert np.all(example.r_hat(values) < 1.01)
    assert found["divergences"].sum() == 0
    assert np.all((found["acceptance"] > 0.75) & (found["acceptance"] < 0.97))
    deviation = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(values.mean((0, 1)) - mean) < 4 * deviation / np.sqrt(size))
    estimate = np.cov(values.reshape(-1, 5).T)
    np.testing.assert_allclose(estimate, covariance, atol=0.1 * np.abs(covariance).max())


def exact_means():
    """The posterior means of mu and tau: effects are integrated out, the others on a grid."""
    mu, log_tau = np.meshgrid(np.linspace(-20, 25, 600), np.linspace(-8, 5, 800), indexing="ij")
    tau = np.exp(log_tau)
    scale = np.sqrt(tau[..., None] ** 2 + example.ERRORS**2)
    weight = scipy.stats.norm.logpdf(example.EFFECTS, mu[..., None], scale).sum(-1)
    weight += -0.5 * (mu / 5) ** 2 - np.log1p((tau / 5) ** 2) + log_tau
    weight = np.exp(weight - weight.max())
    return {"mu": np.sum(weight * mu) / weight.sum(), "tau": np.sum(weight * tau) / weight.sum()}


@pytest.mark.nightly
def test_eight_schools_by_quadrature(tmp_path):
    posterior = run(example, "--out-dir", tmp_path, "--draws", 2000)
    assert posterior.divergences < 40
    for name, exact in exact_means().items():
        x = posterior.parameters[name]
        size = example.effective_size(x[..., None])[0]
        assert example.r_hat(x[..., None])[0] < 1.01
        assert abs(x.mean() - exact) < 4 * x.std() / np.sqrt(size)
    check_picture(tmp_path / "nuts_schools.png")


# Calibration by simulation (Talts et al. 2018): parameters are drawn, and data from them; the rank
# of a parameter among draws from the posterior of the data is uniform.

RANKS, THINNED = 63, 4


def _normal_data(rng: Any, n: int) -> tuple[dict[str, Any], np.ndarray]:
    mu, sigma = rng.standard_normal(n), np.abs(rng.standard_normal(n))
    y = mu[:, None] + sigma[:, None] * rng.standard_normal((n, 6))
    return {"mu": mu, "sigma": sigma}, y


def _normal(p: dict[str, Any], y: Any) -> Any:
    likelihood = -0.5 * np.sum(((y - p["mu"]) / p["sigma"]) ** 2) - 6 * np.log(p["sigma"])
    return likelihood - 0.5 * (p["mu"] ** 2 + p["sigma"] ** 2)


def _group_data(rng: Any, n: int) -> tuple[dict[str, Any], np.ndarray]:
    mu, tau, z = rng.standard_normal(n), np.abs(rng.standard_normal(n)), rng.standard_normal((n, 4))
    y = mu[:, None] + tau[:, None] * z + 0.5 * rng.standard_normal((n, 4))
    return {"mu": mu, "tau": tau, "z": z}, y


def _groups(p: dict[str, Any], y: Any) -> Any:
    theta = p["mu"] + p["tau"] * p["z"]
    prior = p["mu"] ** 2 + p["tau"] ** 2 + np.sum(p["z"] ** 2)
    return -0.5 * (np.sum(((y - theta) / 0.5) ** 2) + prior)


MODELS = {
    "normal": (_normal_data, _normal, {"sigma": positive}),
    "groups": (_group_data, _groups, {"tau": positive}),
}


def p_values(model: str, n: int, seed: int) -> dict[str, float]:
    """Whether ranks are uniform, of each parameter and of the log density, by a chi-square test."""
    make, log_density, constraints = MODELS[model]
    drawn, data = make(np.random.default_rng(seed), n)
    example_of_one = {name: x[0] for name, x in drawn.items()}

    def of_one(key: Any, y: Any, truth: Any) -> Any:
        density = LogDensity(lambda p: log_density(p, y), example_of_one, constraints)
        first, second = fg.random.split(key)
        start = 0.5 * fg.random.normal(first, (density.n,))
        values = example.make_chain(density, RANKS * THINNED)(start, second)["values"]
        values = values[THINNED - 1 :: THINNED]
        found = fg.vmap(density.unflatten)(values)
        ranks = fg.tree.map(lambda x, t: np.sum(x < t, axis=0), found, truth)
        heights = fg.vmap(lambda p: log_density(p, y))(found)
        return {**ranks, "height": np.sum(heights < log_density(truth, y))}

    keys = fg.random.split(fg.random.key(seed), n)
    ranks = fg.jit(fg.vmap(of_one))(keys, data, drawn)
    values = {}
    for name, x in ranks.items():
        counts = np.bincount(np.asarray(x).reshape(-1) * 16 // (RANKS + 1), minlength=16)
        values[name] = scipy.stats.chisquare(counts).pvalue
    return values


@pytest.mark.nightly
def test_calibration():
    assert min(p_values("groups", 80, 5).values()) > 1e-3


@pytest.mark.nightly
@pytest.mark.parametrize("model", MODELS)
def test_calibration_of_many(model):
    assert min(p_values(model, 600, 11).values()) > 1e-3
