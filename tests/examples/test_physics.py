"""Simulations: parameters are recovered, and what physics conserves is conserved."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tests.examples.program import check_picture, load, run

example = load("physics")


def test_parameters_are_recovered_and_orbits_close(tmp_path):
    result = run(example, "--orbits", 5, "--output", tmp_path / "physics.png")
    truth = np.concatenate([example.RATES, example.BEGINNING])
    np.testing.assert_allclose(result.params, truth, atol=1e-3)
    assert result.history[-1] < 1e-3 * result.history[0]
    assert result.energy_error < 1e-4
    assert result.momentum_error < 1e-12
    assert result.gap < 0.01
    check_picture(tmp_path / "physics.png")


def test_the_simulation_is_scipys():
    rates, beginning = example.RATES, example.BEGINNING

    def slope(_, state):
        a, b = state
        return [rates[0] * a - rates[1] * a * b, rates[2] * a * b - rates[3] * b]

    times = example.TIME_STEP * np.arange(1, 101)
    options = {"t_eval": times, "rtol": 1e-10, "atol": 1e-10}
    expected = solve_ivp(slope, (0, times[-1]), beginning, **options).y.T
    found = example.simulate(np.concatenate([rates, beginning]), 100)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_energy_is_that_of_keplers_ellipse():
    q, p = example.at_perihelion()
    np.testing.assert_allclose(np.sum(p, axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(example.MASSES @ q, 0.0, atol=1e-15)
    expected = -np.prod(example.MASSES) / (2 * example.SEMI_MAJOR_AXIS)
    assert example.energy(q, p) == pytest.approx(expected, rel=1e-12)
