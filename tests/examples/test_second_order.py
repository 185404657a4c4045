"""The example of second derivatives: what it finds, and its picture."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from tests.examples.program import check_picture, load, run

example = load("second_order")


def test_derivatives_are_those_that_scipy_has_written_down():
    rng = np.random.default_rng(3)
    assert max(example.differences_from_scipy(*rng.normal(size=(2, 5))).values()) < 1e-12


def test_both_methods_converge_and_newton_does_as_by_hand():
    newton, lbfgs = example.newton_path(example.START), example.lbfgs_path(example.START)
    np.testing.assert_allclose(newton[-1], 1.0, atol=1e-12)
    np.testing.assert_allclose(lbfgs[-1], 1.0, atol=1e-8)
    x = example.START
    for point in newton:
        np.testing.assert_allclose(point, x, rtol=1e-9)
        x = x - np.linalg.solve(scipy.optimize.rosen_hess(x), scipy.optimize.rosen_der(x))


@pytest.mark.nightly
def test_the_learned_rate_is_the_best_one(tmp_path):
    found = run(example, "--output", tmp_path / "second_order.png")
    (rate, loss), (best_rate, best_loss) = found["learned rate"], found["best of 400"]
    assert loss <= 1.02 * best_loss
    assert rate == pytest.approx(best_rate, rel=0.05)
    check_picture(tmp_path / "second_order.png")
