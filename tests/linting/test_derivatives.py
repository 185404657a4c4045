"""Derivatives by all ways against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg

X = np.linspace(0.1, 2.0, 6)


def smooth(x: Any) -> Any:
    return np.sum(np.sin(x) * np.exp(-(x**2))) / np.sqrt(1 + x[0])


def tree(params: Any, x: Any) -> Any:
    return {"out": np.tanh(x @ params["w"]) * params["b"], "norm": np.sum(params["w"] ** 3)}


@fg.custom_vjp
def wrong(x: Any) -> Any:
    return x**3


wrong.defvjp(lambda x: (x**3, x), lambda x, ct: (2 * x**2 * ct,))


@fg.custom_jvp
def right_at_first(x: Any) -> Any:
    return x**3


@fg.custom_jvp
def square(x: Any) -> Any:
    return x**2


right_at_first.defjvp(lambda p, t: (right_at_first(p[0]), 3 * square(p[0]) * t[0]))
square.defjvp(lambda p, t: (square(p[0]), 3 * p[0] * t[0]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_right_ones(dtype: Any) -> None:
    assert fg.check_derivatives(smooth, X.astype(dtype))
    params = {"w": np.ones((6, 2), dtype), "b": np.full(2, 0.5, dtype)}
    assert fg.check_derivatives(tree, params, X.astype(dtype))
    assert fg.check_derivatives(lambda x, n: x**n, dtype(1.5), 3)
    for n in (0, 1, 100_000):
        checks = fg.check_derivatives(
            lambda x: np.sum(np.sin(x) * x), np.linspace(1, 2, n, dtype=dtype)
        )
        assert checks, str(checks)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "transform", [fg.jit, fg.checkpoint, lambda f: lambda x: np.sum(fg.vmap(lambda y: f(y * x))(x))]
)
def test_transformed_ones(transform: Any) -> None:
    checks = fg.check_derivatives(transform(smooth), X)
    assert checks, str(checks)


def test_loops() -> None:
    def loop(x: Any) -> Any:
        return fg.lax.scan(lambda c, y: (np.sin(c) * y, c), 1.0, x)[0]

    assert fg.check_derivatives(loop, X)


def test_a_wrong_rule_is_found() -> None:
    checks = fg.check_derivatives(lambda x: np.sum(wrong(x)), X, order=1, points=1)
    assert not checks
    assert checks.exit_status == 1
    assert {row.way for row in checks.wrong} == {"forwards", "backwards", "compiled"}
    text = str(checks)
    assert text.startswith("derivatives of <lambda>: ")
    assert "wrong" in text


def test_a_wrong_second_derivative_is_found() -> None:
    assert fg.check_derivatives(lambda x: np.sum(right_at_first(x)), X, order=1)
    checks = fg.check_derivatives(lambda x: np.sum(right_at_first(x)), X)
    assert {row.order for row in checks.wrong} == {2}


def test_what_is_not_analytic_is_said() -> None:
    checks = fg.check_derivatives(lambda x: np.sum(np.abs(x) ** 3), -X)
    assert checks
    ways = {row.way: row.verdict for row in checks.rows}
    assert ways.get("complex step", "not analytic") == "not analytic"


def test_bad_input() -> None:
    with pytest.raises(fg.errors.ArgumentError, match=r"no argument of sum is an array of real"):
        fg.check_derivatives(np.sum, 3)
    with pytest.raises(fg.errors.ArgumentError, match=r"returned i64\[\]; its results must be"):
        fg.check_derivatives(np.argmax, X)
    with pytest.raises(fg.errors.ArgumentError, match=r"order must be 1 or 2, but is 3"):
        fg.check_derivatives(smooth, X, order=3)
