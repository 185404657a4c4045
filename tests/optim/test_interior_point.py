"""IPOPT with sparse derivatives, where cyipopt is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from funcgrad import optim
from funcgrad.errors import LibraryError
from funcgrad.scipy.optimize import minimize
from funcgrad.sparsity import Coloring

IS_THERE = importlib.util.find_spec("cyipopt") is not None
installed = pytest.mark.skipif(not IS_THERE, reason="cyipopt is not installed")
N = 400


def chain(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@installed
@pytest.mark.parametrize("n", [5, N])
def test_unconstrained_minima(n: int) -> None:
    found = minimize(chain, np.full(n, 0.5), method="ipopt")
    assert found.success
    assert isinstance(found.sparsity, Coloring)
    assert found.sparsity.n_colors == 3
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-6)
    assert found.nfev >= found.nit > 0


@installed
def test_constraints_bounds_and_options_of_all_kinds() -> None:
    """Hock and Schittkowski's problem 71, and a linear constraint that holds."""
    equal = {"type": "eq", "fun": lambda x, r: np.sum(x**2) - r, "args": (40.0,)}
    product = scipy.optimize.NonlinearConstraint(lambda x: np.prod(x), 25.0, np.inf)
    linear = scipy.optimize.LinearConstraint(np.ones((1, 4)), 0.0, 20.0)
    seen = []
    found = minimize(
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2], np.array([1.0, 5.0, 5.0, 1.0]),
        method="IPOPT", bounds=[(1.0, 5.0)] * 4, constraints=[equal, product, linear], tol=1e-9,
        options={"maxiter": 50}, callback=lambda x: seen.append(np.array(x)),
    )  # fmt: skip
    assert found.success
    np.testing.assert_allclose(found.x, [1.0, 4.74299963, 3.82114998, 1.37940829], rtol=1e-6)
    np.testing.assert_allclose(found.constr[:2], [0.0, 25.0], atol=1e-7)
    assert found.fun == pytest.approx(17.0140173, rel=1e-7)
    assert len(found.multipliers) == 3
    np.testing.assert_allclose(seen[-1], found.x, rtol=1e-5)


@installed
def test_a_large_problem_of_control_as_trust_regions_solve_it() -> None:
    n, h = 100, 0.01

    def effort(z: Any) -> Any:
        return h * np.sum(z["u"] ** 2)

    def motion(z: Any) -> Any:
        x, v, u = z["x"], z["v"], z["u"]
        mean = 0.5 * (v[1:] + v[:-1])
        drag = 0.5 * mean * np.sqrt(mean**2 + 1e-3)
        ends = np.stack([x[0], v[0], x[-1] - 1.0, v[-1]])
        return {"moved": x[1:] - x[:-1] - h * mean, "ends": ends,
                "pushed": v[1:] - v[:-1] - h * (u - drag)}  # fmt: skip

    start = {"x": np.zeros(n + 1), "v": np.zeros(n + 1), "u": np.zeros(n)}
    held = scipy.optimize.NonlinearConstraint(motion, 0.0, 0.0)
    bounds = {"x": (0.0, None), "v": None, "u": (-6.0, 6.0)}
    found = optim.minimize(effort, start, method="ipopt", constraints=held, bounds=bounds)
    assert found.success
    assert found.x["x"][-1] == pytest.approx(1.0)
    assert abs(found.x["u"]).max() <= 6.0 + 1e-6
    free = optim.minimize(effort, start, method="ipopt", constraints=held)
    assert free.fun == pytest.approx(12.512, abs=2e-3)
    assert free.sparsity.pattern.nnz < 600


@pytest.mark.skipif(IS_THERE, reason="cyipopt is installed")
def test_it_says_what_is_missing() -> None:
    with pytest.raises(LibraryError, match="needs cyipopt, which is not installed: pip install"):
        minimize(chain, np.ones(3), method="ipopt")
