"""The bridge to SciPy: trees, dtypes, derivatives, bounds, constraints."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.optimize

import funcgrad as fg
from funcgrad import optim
from funcgrad.errors import ArgumentError, DtypeError

METHODS = [
    *("Nelder-Mead", "Powell", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA", "COBYQA"),
    *("SLSQP", "trust-constr", "dogleg", "trust-ncg", "trust-exact", "trust-krylov", None),
]


def rosenbrock(p: Any) -> Any:
    x = np.concatenate([p["a"], p["b"].ravel()]) if isinstance(p, dict) else p
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bowl(p: Any) -> Any:
    return np.sum((p["a"] - 1) ** 2) + np.sum((p["b"] - 1) ** 2 * np.array([[1.0], [3.0]])) + 2


START = {"a": np.array([0.5, 0.8]), "b": np.array([[1.2], [0.7]])}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_minimum(method):
    f = rosenbrock if method in ("BFGS", "Newton-CG", "trust-exact", "trust-krylov") else bowl
    options = {} if method == "TNC" else {"maxiter": 2000}
    result = optim.minimize(f, START, method=method, options=options)
    assert isinstance(result, scipy.optimize.OptimizeResult)
    assert result.success
    for name, leaf in START.items():
        assert result.x[name].shape == leaf.shape
        np.testing.assert_allclose(result.x[name], 1.0, atol=2e-3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG", "trust-exact", "SLSQP"])
def test_iterations_are_those_of_scipy_with_its_own_derivatives(method):
    x0 = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
    hess = {"Newton-CG": scipy.optimize.rosen_hess, "trust-exact": scipy.optimize.rosen_hess}
    expected = scipy.optimize.minimize(
        scipy.optimize.rosen, x0, method=method, jac=scipy.optimize.rosen_der, hess=hess.get(method)
    )
    for is_jitted in (True, False):
        actual = optim.minimize(rosenbrock, x0, method=method, jit=is_jitted)
        assert actual.nit == expected.nit
        np.testing.assert_allclose(actual.x, expected.x, atol=1e-9)


def test_leaves_keep_their_types():
    class Pair(NamedTuple):
        x: Any
        y: Any

    def f(p: Any) -> Any:
        return (p.x - 2) ** 2 + np.sum((p.y[0] - 3) ** 2)

    result = optim.minimize(f, Pair(np.float32(0), [np.zeros(2, np.float32)]), method="BFGS")
    assert isinstance(result.x, Pair)
    assert result.x.x.dtype == result.x.y[0].dtype == np.float32
    np.testing.assert_allclose(result.x.x, 2, atol=1e-4)
    result = optim.minimize(lambda x: (x - 2) ** 2, 5)
    assert np.shape(result.x) == ()
    np.testing.assert_allclose(result.x, 2, atol=1e-6)


def test_arguments_are_passed_on():
    def f(x: Any, target: Any, settings: dict[str, Any]) -> Any:
        assert settings["name"] == "square"
        return np.sum((x - target) ** 2) * settings["scale"]

    target = np.arange(3.0)
    result = optim.minimize(f, np.ones(3), args=(target, {"name": "square", "scale": 2}))
    np.testing.assert_allclose(result.x, target, atol=1e-6)


def test_gradients_are_exact_where_differences_are_not():
    result = optim.minimize(lambda x: 1e8 + np.sum((x - 1) ** 2), np.zeros(3), method="BFGS")
    np.testing.assert_allclose(result.x, 1.0, atol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"a": (None, 0.25), "b": None}, [0.25, 0.25, 1, 1]),
        ({"a": None, "b": (np.array([[2.0], [-1.0]]), 3.0)}, [1, 1, 2, 1]),
        ({"a": [(2.0), (4.0)], "b": (-1.0, [[0.5], [2.0]])}, [2, 2, 0.5, 1]),
    ],
)
@pytest.mark.parametrize("method", [None, "trust-constr"])
def test_bounds_of_trees(method, bounds, expected):
    found = optim.minimize(bowl, START, method=method, bounds=bounds, options={"maxiter": 500})
    x = np.concatenate([found.x["a"], found.x["b"].ravel()])
    np.testing.assert_allclose(x, expected, atol=2e-3)


def test_bounds_of_arrays_are_those_of_scipy():
    for bounds in ([(None, 0.5), (2, None)], scipy.optimize.Bounds([-1, 2], [0.5, 5])):
        result = optim.minimize(lambda x: np.sum((x - 1) ** 2), np.ones(2), bounds=bounds)
        np.testing.assert_allclose(result.x, [0.5, 2.0], atol=1e-6)


def circle(p: Any) -> Any:
    return p["x"] ** 2 + p["y"] ** 2


CONSTRAINTS = {
    "dict": {"type": "ineq", "fun": lambda p: 1 - circle(p)},
    "dict with arguments": {"type": "eq", "fun": lambda p, r: circle(p) - r, "args": (1.0,)},
    "dict with jac": {
        "type": "eq",
        "fun": lambda p: circle(p) - 1,
        "jac": lambda p: np.array([2 * p["x"], 2 * p["y"]]),
    },
    "object": scipy.optimize.NonlinearConstraint(circle, -np.inf, 1),
    "object with derivatives": scipy.optimize.NonlinearConstraint(
        circle,
        1,
        1,
        jac=lambda p: np.array([[2 * p["x"], 2 * p["y"]]]),
        hess=lambda p, w: 2 * w[0] * np.eye(2),
    ),
    "linear": scipy.optimize.LinearConstraint([[1, 1]], -np.inf, -(2**0.5)),
    "several": [
        {"type": "ineq", "fun": lambda p: 1 - circle(p)},
        {"type": "ineq", "fun": lambda p: {"both": [1 - p["x"], 1 - p["y"]]}},
    ],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", [None, "trust-constr"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_get_trees_and_exact_derivatives(name, method):
    if name == "linear":
        f = circle
    else:

        def f(p: Any) -> Any:
            return p["x"] + p["y"]

    result = optim.minimize(
        f, {"x": -0.5, "y": -0.3}, method=method, constraints=CONSTRAINTS[name], tol=1e-8
    )
    np.testing.assert_allclose([result.x["x"], result.x["y"]], -(0.5**0.5), atol=1e-3)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "trust-constr"])
def test_callbacks_get_trees(method):
    seen = []
    optim.minimize(bowl, START, method=method, callback=lambda x, *_: seen.append(x["a"].copy()))
    results = []

    def look(intermediate_result: Any) -> None:
        results.append((intermediate_result.x["a"].copy(), float(intermediate_result.fun)))

    optim.minimize(bowl, START, method=method, callback=look)
    assert len(seen) == len(results) > 0
    np.testing.assert_array_equal(seen[-1], results[-1][0])


def test_a_callback_may_stop():
    def stop(intermediate_result: Any) -> None:
        raise StopIteration

    assert optim.minimize(rosenbrock, np.zeros(3), method="BFGS", callback=stop).nit == 1


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: optim.minimize(bowl, {}), ArgumentError, "x0 has no elements"),
        (
            lambda: optim.minimize(bowl, {"z": np.ones(2) * 1j}),
            DtypeError,
            r"x0\['z'\] has dtype complex128, but only real numbers",
        ),
        (
            lambda: optim.minimize(bowl, START, bounds={"a": 1.0, "b": None}),
            ArgumentError,
            r"a pair \(low, high\), or None, in place of each leaf of x0, got 1.0",
        ),
        (
            lambda: optim.minimize(bowl, START, bounds={"a": None}),
            fg.errors.TreeError,
            "differ in structure",
        ),
    ],
)
def test_mistakes_are_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
