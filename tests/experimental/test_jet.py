"""Taylor series."""

from __future__ import annotations

import math

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.experimental.jet import jet


@pytest.mark.parametrize("is_scaled", [True, False])
def test_series_of_a_composition(is_scaled):
    """Along ``x + t + t^2``, from ``exp(sin(x))`` expanded by hand."""
    x, h = 0.3, 1e-3

    def image(t):
        return np.exp(np.sin(x + t + t * t))

    t = h * np.arange(-4, 5)
    fitted = np.polynomial.Polynomial.fit(t, image(t), 8).convert().coef[:4]
    scales = np.array([math.factorial(k) for k in range(4)]) if is_scaled else np.ones(4)
    series = (1.0, 2.0, 0.0) if is_scaled else (1.0, 1.0, 0.0)
    y, terms = jet(lambda v: np.exp(np.sin(v)), (x,), (series,), factorial_scaled=is_scaled)
    np.testing.assert_allclose([y, *terms], fitted * scales, 1e-5)
    jitted = fg.jit(lambda v: jet(np.exp, (v,), ((1.0, 0.0),))[1][1])
    np.testing.assert_allclose(jitted(0.7), np.exp(0.7))
    slope = fg.grad(lambda v: jet(np.sin, (v,), ((1.0, 0.0),))[1][1])
    np.testing.assert_allclose(slope(0.7), -np.cos(0.7))


def test_series_of_trees():
    y, (first,) = jet(
        lambda p, s: s * p["a"] ** 2, ({"a": np.ones(2)}, 3.0), ([{"a": np.ones(2)}], [0.5])
    )
    np.testing.assert_allclose(y, [3.0, 3.0])
    np.testing.assert_allclose(first, [6.5, 6.5])
    with pytest.raises(ArgumentError, match=r"2 arguments need as many series of one length"):
        jet(np.add, (1.0, 2.0), ((1.0,), (1.0, 0.0)))
    with pytest.raises(TreeError, match="must have the structure of its argument"):
        jet(np.sin, (1.0,), (({"a": 1.0},),))
