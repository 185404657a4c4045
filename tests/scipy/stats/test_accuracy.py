"""Densities and distribution functions against mpmath, in the tails too."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as reference

from funcgrad.api import compilation
from funcgrad.higher_order import jit as loops
from funcgrad.scipy import stats
from tests.scipy.stats.cases import CONTINUOUS, DISCRETE
from tests.scipy.stats.recorded import MASSES, RECORDED

EPS = np.finfo(float).eps


def check(actual, expected, tolerance, what):
    error = np.abs(actual - expected)
    bad = ~(error <= tolerance)
    assert not bad.any(), f"{what}: {actual[bad]} for {expected[bad]}, {error[bad] / EPS} eps"


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    distribution = getattr(stats, name)
    for parameters in CONTINUOUS[name]:
        rows = np.array([row[1:] for row in RECORDED[name] if row[0] == parameters])
        x, logs, log_condition, below, below_condition, above, above_condition = rows.T
        slack = 1e-13 + 8 * EPS * log_condition
        log_scale = np.maximum(1, np.abs(logs))
        check(distribution.logpdf(x, *parameters), logs, log_scale * slack, "logpdf")
        check(
            distribution.pdf(x, *parameters),
            np.exp(logs),
            2 * np.exp(logs) * log_scale * slack,
            "pdf",
        )
        for method, values, condition in (
            ("cdf", below, below_condition),
            ("sf", above, above_condition),
        ):
            slack = 1e-13 + 8 * EPS * condition
            found = getattr(distribution, method)(x, *parameters)
            check(found, values, values * slack, method)
            there = (values > 0) & (slack < 1e-3)  # where the number says where it is
            found = getattr(distribution, f"log{method}")(x[there], *parameters)
            expected = np.log(values[there])
            others = (above, above_condition) if method == "cdf" else (below, below_condition)
            other, other_condition = (v[there] for v in others)
            is_near = values[there] > 0.5
            expected = np.where(is_near, np.log1p(-np.minimum(other, 0.5)), expected)
            # Where the logarithm is near 0 it is as accurate as the probability of the rest.
            near = (1e-13 + 8 * EPS * other_condition) * np.abs(expected)
            far = slack[there] * np.maximum(1, np.abs(expected))
            check(found, expected, np.where(is_near, 2 * near, far), f"log{method}")


@pytest.mark.parametrize("name", CONTINUOUS)
def test_quantiles_are_inverse(name):
    distribution = getattr(stats, name)
    for parameters in CONTINUOUS[name]:
        for there, back in (("ppf", "cdf"), ("isf", "sf")):
            q = np.array([1e-12, 1e-3, 0.2, 0.5, 0.7, 0.999])
            x = getattr(distribution, there)(q, *parameters)
            # Quantiles below the least number are 0, and the probability there is not known.
            q, x = (v[np.abs(x) > 1e-300] for v in (q, x))
            step = 64 * EPS * np.abs(x * distribution.pdf(x, *parameters))
            close = 1e-12 * q + np.where(np.isfinite(step), step, 0) + 8 * EPS * (q > 0.1)
            check(getattr(distribution, back)(x, *parameters), q, close, there)


SUMMED = {"betabinom", "hypergeom"}
"""Distributions whose tails are sums of their masses: their searches take longest to compile."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.nightly) if x in SUMMED else x for x in DISCRETE],
)
def test_discrete(name):
    distribution = getattr(stats, name)
    for parameters in DISCRETE[name]:
        rows = np.array([row[1:] for row in MASSES[name] if row[0] == parameters])
        k, logs, below, above = rows.T
        # The condition in parameters that are probabilities and rates is the number itself.
        slack = 1e-13 + 8 * EPS * (1 + np.abs(k) + np.abs(logs))
        check(distribution.logpmf(k, *parameters), logs, slack * np.maximum(1, -logs), "logpmf")
        check(distribution.pmf(k, *parameters), np.exp(logs), 2 * slack * np.exp(logs), "pmf")
        check(distribution.cdf(k, *parameters), below, 2 * slack * below, "cdf")
        check(distribution.sf(k, *parameters), above, 2 * slack * above, "sf")
        inside = (below > 0) & (below < 1)
        found = distribution.ppf(distribution.cdf(k[inside], *parameters), *parameters)
        np.testing.assert_array_equal(found, k[inside])
        inside = (above > 0) & (above < 1)
        found = distribution.isf(distribution.sf(k[inside], *parameters), *parameters)
        np.testing.assert_array_equal(found, k[inside])


def test_searches_are_compiled_once_for_all_parameters(monkeypatch):
    q = np.array([0.1, 0.5, 0.9])
    first = [stats.binom.ppf(q, n, 0.3) for n in (7.0, 40.0)]
    monkeypatch.setattr(compilation, "compile_program", None)
    monkeypatch.setattr(loops, "compile_program", None)
    again = [stats.binom.ppf(q, n, p) for n, p in ((7.0, 0.3), (40.0, 0.3), (5.0, 0.9))]
    np.testing.assert_array_equal(again[:2], first)
    np.testing.assert_array_equal(again[2], reference.binom.ppf(q, 5, 0.9))
