"""The posterior of the hierarchical regression: by quadrature, by a long run, by the example."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("bayes")

# Means and their standard errors of 4 chains with --draws 40000 --seed 7.
RECORDED = {
    "mu": (0.0005, 0.0004),
    "tau": (0.3606, 0.0004),
    "sigma": (0.7002, 0.0000),
    "bp": (0.2126, 0.0001),
    "s5": (0.3219, 0.0001),
    "s3": (-0.2070, 0.0001),
    "sex": (-0.1498, 0.0001),
    "a[0]": (-0.2533, 0.0004),
    "a[1]": (-0.1741, 0.0003),
    "a[2]": (-0.2504, 0.0004),
    "a[3]": (-0.1981, 0.0004),
    "a[4]": (-0.2593, 0.0004),
    "a[5]": (-0.2012, 0.0004),
    "a[6]": (0.0107, 0.0003),
    "a[7]": (0.0097, 0.0003),
    "a[8]": (0.3856, 0.0004),
    "a[9]": (0.0519, 0.0003),
    "a[10]": (0.1174, 0.0003),
    "a[11]": (0.7767, 0.0005),
}


def exact_means():
    """The posterior means by quadrature over the two scales.

    Given tau and sigma, y = A w + sigma e with A = [1, X, tau M] and w = (mu, beta, z) ~ N(0, 1) is
    linear and normal: the precision of w is P = 1 + A'A / sigma^2, its mean m = P^-1 A'y / sigma^2,
    and log p(y) = -n log sigma - log det P / 2 - (y'y / sigma^2 - m'P m) / 2.
    """
    data = example.load_data()
    member = np.eye(example.GROUPS)[data.group]
    plain = np.hstack([np.ones((len(data.y), 1)), data.x, member])
    is_group = np.arange(plain.shape[1]) > len(example.COVARIATES)
    logs = np.stack(
        np.meshgrid(np.linspace(-3.0, 1.0, 241), np.linspace(-0.6, -0.1, 121)), axis=-1
    ).reshape(-1, 2)
    tau, sigma = np.exp(logs.T)
    scale = np.where(is_group, tau[:, None], 1.0)
    weighted = scale / sigma[:, None]
    gram = weighted[:, :, None] * weighted[:, None, :] * (plain.T @ plain)
    precision = gram + np.eye(plain.shape[1])
    right = scale * (plain.T @ data.y) / sigma[:, None] ** 2
    m = np.linalg.solve(precision, right[..., None])[..., 0]
    evidence = -len(data.y) * np.log(sigma) - 0.5 * np.linalg.slogdet(precision)[1]
    evidence += 0.5 * (np.sum(m * right, axis=1) - data.y @ data.y / sigma**2)
    prior = -0.5 * ((tau / 0.5) ** 2 + sigma**2) + logs.sum(axis=1)
    weight = np.exp(evidence + prior - np.max(evidence + prior))
    first = 1 + len(example.COVARIATES)
    values = [m[:, :1], tau[:, None], sigma[:, None], m[:, 1:first]]
    values.append(m[:, :1] + tau[:, None] * m[:, first:])
    return weight @ np.hstack(values) / weight.sum()


def recorded():
    means, errors = np.array([RECORDED[name] for name in example.NAMES]).T
    return means, errors


def test_the_recorded_run_is_right():
    means, errors = recorded()
    assert np.max(np.abs(means - exact_means()) / (errors + 5e-5)) < 4


@pytest.mark.nightly
def test_the_chains_have_converged_to_the_recorded_means(tmp_path):
    posterior = run(example, "--out-dir", tmp_path)
    means, errors = recorded()
    assert posterior.draws.shape == (4, 2000, len(example.NAMES))
    assert posterior.divergences == 0
    assert np.max(posterior.r_hat) < 1.01
    allowed = 4 * np.sqrt(posterior.error**2 + errors**2) + 5e-5
    assert np.all(np.abs(posterior.mean - means) < allowed)
    for name in ("bayes_traces.png", "bayes_posterior.png"):
        check_picture(tmp_path / name)


def test_the_diagnostics_of_chains_with_a_known_correlation():
    rho, rng = 0.8, np.random.default_rng(0)
    noise = rng.normal(size=(4, 20_000, 2)) * np.sqrt(1 - rho**2)
    values = np.zeros_like(noise)
    for i in range(1, noise.shape[1]):
        values[:, i] = rho * values[:, i - 1] + noise[:, i]
    size = example.effective_size(values)
    np.testing.assert_allclose(size, 80_000 * (1 - rho) / (1 + rho), rtol=0.1)
    assert np.all(example.r_hat(values) < 1.01)
    values[0] += 1.0
    assert np.all(example.r_hat(values) > 1.05)


def test_groups_are_of_equal_size_and_ordered():
    data = example.load_data()
    assert np.ptp(np.bincount(data.group)) <= 1
    assert data.x.shape == (442, 4)
    np.testing.assert_allclose(data.x.std(axis=0), 1.0)
