"""An arm that is not taken contributes nothing to a derivative, however singular it is there.

`UNTAKEN` lists functions with the arm that goes wrong; random ones follow. Expected values are
closed forms of the arm that is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as special
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import funcgrad as fg

INF = np.inf
BIG = 1e200


def where_positive(arm: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``arm(x)`` where ``x`` is positive, else ``sin(x)``."""
    return lambda x: np.where(x > 0, arm(x), np.sin(x))


def safe_norm(x: Any) -> Any:
    return np.where(np.all(x == 0), 0.0, np.sqrt(np.sum(x**2)))


def sigmoid(x: Any) -> Any:
    return np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


def softplus(x: Any) -> Any:
    return np.where(x > 30.0, x, np.log1p(np.exp(x)))


def masked_mean(x: Any) -> Any:
    """The mean of elements of which there is none."""
    mask = x > 100.0
    count = np.sum(np.where(mask, 1.0, 0.0))
    return np.where(count > 0, np.sum(np.where(mask, x, 0.0)) / count, 0.0)


def sinc(x: Any) -> Any:
    return np.where(x == 0, 1.0, np.sin(x) / x)


def of_pair(arm: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.where(x != 0, arm(x, 2 * x), np.sin(x))


# Name, function, point, first derivative, second derivative.
UNTAKEN: list[tuple[str, Any, Any, Any, Any]] = [
    *(
        (f"{name} at 0", where_positive(arm), 0.0, 1.0, 0.0)
        for name, arm in [
            ("log", np.log),
            ("log2", np.log2),
            ("sqrt", np.sqrt),
            ("cbrt", np.cbrt),
            ("reciprocal", lambda x: 1 / x),
            ("quotient", lambda x: np.sin(x) / x),
            ("0 / 0", lambda x: x / x),
            ("power", lambda x: x**0.5),
            ("negative power", lambda x: x**-3),
            ("x**y", lambda x: x**x),
            ("x log x", lambda x: x * np.log(x)),
            ("log of sqrt", lambda x: np.log(np.sqrt(x))),
            ("exp of reciprocal", lambda x: np.exp(1 / x)),
            ("log of log", lambda x: np.log(np.log(x))),
            ("x / |x|", lambda x: x / np.abs(x)),
            ("gammaln", special.gammaln),
            ("digamma", special.psi),
            ("k0", special.k0),
            ("y1", special.y1),
            ("logit", special.logit),
            ("entr", special.entr),
            ("xlogy", lambda x: special.xlogy(1 + x, x)),
            ("norm", lambda x: np.sqrt(np.sum(np.stack([x, x]) ** 2))),
            ("prod", lambda x: np.prod(np.stack([x, 1 / x, x]))),
            ("cumprod", lambda x: np.cumprod(np.stack([x, 1 / x, x]))[-1]),
            ("logsumexp", lambda x: fg.scipy.special.logsumexp(np.stack([1 / x, -1 / x]))),
            ("max", lambda x: np.max(np.stack([1 / x, np.log(x)]))),
            ("std", lambda x: np.std(np.stack([1 / x, np.log(x)]))),
            ("complex log", lambda x: np.log(x + 0j).real),
            ("complex quotient", lambda x: np.abs((1 + 2j) / (x + 1j * x))),
        ]
    ),
    ("log1p at -1", lambda x: np.where(x > -1, np.log1p(x), x), -1.0, 1.0, 0.0),
    ("arcsin at 1", lambda x: np.where(x < 1, np.arcsin(x), x**2), 1.0, 2.0, 2.0),
    ("arccos at 1", lambda x: np.where(x < 1, np.arccos(x), x**2), 1.0, 2.0, 2.0),
    ("arccosh at 1", lambda x: np.where(x > 1, np.arccosh(x), x**2), 1.0, 2.0, 2.0),
    ("arctanh at 1", lambda x: np.where(x < 1, np.arctanh(x), x**2), 1.0, 2.0, 2.0),
    ("erfinv at 1", lambda x: np.where(x < 1, special.erfinv(x), x**2), 1.0, 2.0, 2.0),
    ("log of a negative", lambda x: np.where(x > 0, np.log(x), x**2), -2.0, -4.0, 2.0),
    ("exp overflows", lambda x: np.where(x < 1e3, np.exp(np.exp(x)), x), 1e3, 1.0, 0.0),
    ("sinh overflows", lambda x: np.where(x < 1e3, np.sinh(x), x), 1e3, 1.0, 0.0),
    ("sinc at 0", sinc, 0.0, 0.0, 0.0),
    ("sigmoid far left", sigmoid, -1000.0, 0.0, 0.0),
    ("sigmoid far right", sigmoid, 1000.0, 0.0, 0.0),
    ("softplus far right", softplus, 1000.0, 1.0, 0.0),
    ("norm of zeros", safe_norm, np.zeros(3), np.zeros(3), np.zeros(3)),
    ("mean of nothing", masked_mean, np.ones(3), np.zeros(3), np.zeros(3)),
    ("division by y = 0", of_pair(lambda x, y: x / y), 0.0, 1.0, 0.0),
    ("arctan2", of_pair(lambda x, y: np.arctan2(1 / x, 1 / y)), 0.0, 1.0, 0.0),
    ("hypot", of_pair(lambda x, y: np.hypot(np.log(x), y)), 0.0, 1.0, 0.0),
    ("root of a maximum", lambda x: np.sqrt(np.maximum(x, 0.0)), -1.0, 0.0, 0.0),
    ("maximum of a root", lambda x: np.maximum(np.sqrt(x), 1.0), 0.0, 0.0, 0.0),
    ("root of clipped", lambda x: np.sqrt(np.clip(x, 0.0, 4.0)) + x**2, -1.0, -2.0, 2.0),
    ("inside of log", lambda x: np.log1p(np.where(x > 0, np.sqrt(x), x)), 0.0, 1.0, -1.0),
    ("outside of sqrt", lambda x: np.where(x > 0, x, 0.0) ** 0.5 * 0 + x**2, 0.0, 0.0, 2.0),
    (
        "select",
        lambda x: np.select([x > 0, x < 0], [np.log(x), 1 / x], default=x**2),
        0.0,
        0.0,
        2.0,
    ),
    (
        "one element of many",
        lambda x: np.sum(np.where(x > 0, np.sqrt(x), 3 * x)),
        np.array([0.0, 4.0]),
        np.array([3.0, 0.25]),
        np.array([0.0, -1 / 32]),
    ),
    (
        "slogdet of a singular matrix",
        lambda x: np.where(x > 0, np.linalg.slogdet(x * np.ones((2, 2)))[1], np.sin(x)),
        0.0,
        1.0,
        0.0,
    ),
    (
        "det of a singular matrix",
        lambda x: np.where(x > 0, np.linalg.det(x * np.ones((2, 2))), np.sin(x)),
        0.0,
        1.0,
        0.0,
    ),
    (
        "cond",
        lambda x: fg.lax.cond(x > 0, np.log, np.sin, x),
        0.0,
        1.0,
        0.0,
    ),
]

cases = pytest.mark.parametrize(
    ("function", "x", "first", "second"),
    [case[1:] for case in UNTAKEN],
    ids=[case[0] for case in UNTAKEN],
)


def total(function: Any) -> Any:
    return lambda x: np.sum(function(x))


def derivatives(function: Any, wrap: Any = lambda f: f) -> list[tuple[str, Any, int]]:
    """Ways to the gradient (1) and to the sum of the Hessian's rows (2)."""
    gradient = fg.grad(function)

    def tangent(f: Any) -> Any:
        return lambda x: fg.jvp(f, (x,), (np.ones_like(x),))[1]

    return [
        ("reverse", wrap(gradient), 1),
        ("forward", wrap(tangent(function)), 0),
        ("reverse over reverse", wrap(fg.grad(total(gradient))), 2),
        ("forward over reverse", wrap(tangent(gradient)), 2),
        ("reverse over forward", wrap(fg.grad(tangent(function))), 2),
    ]


def check(ways: list[tuple[str, Any, int]], x: Any, first: Any, second: Any) -> None:
    expected = {0: np.sum(first), 1: first, 2: second}
    for name, way, order in ways:
        np.testing.assert_allclose(way(x), expected[order], 1e-12, 1e-12, err_msg=name)


def quietly(function: Any) -> Any:
    """Values of arms that are not taken warn as NumPy does."""

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return call


@cases
def test_eager(function: Any, x: Any, first: Any, second: Any) -> None:
    check(derivatives(function, quietly), x, first, second)


@pytest.mark.sampled(16)
@cases
def test_compiled(function: Any, x: Any, first: Any, second: Any) -> None:
    check(derivatives(function, fg.jit), x, first, second)


@cases
def test_mapped(function: Any, x: Any, first: Any, second: Any) -> None:
    lanes, firsts, seconds = (np.stack([v] * 3) for v in (np.asarray(x), first, second))

    def mapped(f: Any) -> Any:
        return quietly(fg.vmap(f))

    expected = {0: np.stack([np.sum(first)] * 3), 1: firsts, 2: seconds}
    for name, way, order in derivatives(function, mapped):
        np.testing.assert_allclose(way(lanes), expected[order], 1e-12, 1e-12, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_other_dtypes(dtype: Any) -> None:
    def gradient(x: Any) -> Any:
        _, pull = fg.vjp(lambda x: np.where(np.abs(x) > 0, np.log(x) / x, 3 * x), x)
        return pull(np.ones(3, dtype))[0]

    x = np.zeros(3, dtype)
    for function in (quietly(gradient), fg.jit(gradient)):
        found = function(x)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.full(3, 3, dtype))


# Random arms.

UNARY: list[Any] = [
    np.log, np.log2, np.log1p, np.sqrt, np.cbrt, np.exp, np.expm1, np.exp2, np.tan, np.arcsin,
    np.arccos, np.arctan, np.arccosh, np.arctanh, np.sinh, np.tanh, np.abs, np.square,
    np.reciprocal, special.expit, special.erf, special.gammaln, special.log_ndtr,
    lambda u: u**-2, lambda u: u**-1.5, lambda u: u**0.5, lambda u: u**3, lambda u: 2.0**u,
    lambda u: np.prod(np.stack([u, 1.0 / u, 2.0 * u])),
    lambda u: np.linalg.norm(np.stack([u, 1.0 + u])),
    lambda u: fg.scipy.special.logsumexp(np.stack([u, -u])),
    lambda u: np.clip(u, -1.0, 1.0),
]  # fmt: skip
BINARY: list[Any] = [
    np.add, np.subtract, np.multiply, np.divide, np.power, np.hypot, np.arctan2, np.maximum,
    np.logaddexp, special.xlogy,
]  # fmt: skip
POINTS = [0.0, -0.0, 1.0, -1.0, -2.5, INF, -INF, np.nan, BIG, -BIG, 1e-300]


def arms(depth: int) -> Any:
    """Functions of one number, ``depth`` operations deep."""
    if not depth:
        return st.just(lambda u: u)
    inner = arms(depth - 1)
    unary = st.builds(lambda f, g: lambda u: f(g(u)), st.sampled_from(UNARY), inner)
    binary = st.builds(
        lambda f, g, h: lambda u: f(g(u), h(u)), st.sampled_from(BINARY), inner, inner
    )
    return unary | binary


TAKEN = [
    (np.sin, np.cos, lambda x: -np.sin(x)),
    (lambda x: x**3, lambda x: 3 * x**2, lambda x: 6 * x),
    (np.log, lambda x: 1 / x, lambda x: -1 / x**2),
    (lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2, lambda x: 2 / (1 + x) ** 3),
]


def joined(arm: Any, taken: Any, point: float, is_first: bool) -> Any:
    """``taken(x)`` where ``x < 1``, and ``arm`` at ``point`` moved along with ``x`` elsewhere."""

    def function(x: Any) -> Any:
        bad = arm((x - 0.5) + point)
        good = taken(x)
        return np.where(x < 1, good, bad) if is_first else np.where(x >= 1, bad, good)

    return function


random_arms = given(
    arm=st.integers(1, 3).flatmap(arms),
    taken=st.sampled_from(TAKEN),
    point=st.sampled_from(POINTS),
    is_first=st.booleans(),
)


@settings(max_examples=4 * settings.default.max_examples, deadline=None)
@random_arms
def test_random_arms(arm: Any, taken: Any, point: float, is_first: bool) -> None:
    function, first, second = taken
    f = joined(arm, function, point, is_first)
    check(derivatives(f, quietly), 0.5, first(0.5), second(0.5))


@random_arms
def test_random_arms_mapped(arm: Any, taken: Any, point: float, is_first: bool) -> None:
    function, first, second = taken
    f = joined(arm, function, point, is_first)
    x = np.array([0.5, 0.25])
    expected = {0: first(x), 1: first(x), 2: second(x)}
    for name, way, order in derivatives(f, lambda g: quietly(fg.vmap(g))):
        np.testing.assert_allclose(way(x), expected[order], 1e-12, err_msg=name)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@random_arms
def test_random_arms_compiled(arm: Any, taken: Any, point: float, is_first: bool) -> None:
    function, first, second = taken
    f = joined(arm, function, point, is_first)
    check(derivatives(f, fg.jit), 0.5, first(0.5), second(0.5))


# What is not hidden, and what is not said.


def test_taken_singularities_stay() -> None:
    with np.errstate(all="ignore"):
        assert fg.grad(np.sqrt)(0.0) == INF
        assert fg.grad(lambda x: 1 / x)(0.0) == -INF
        assert np.isnan(fg.grad(np.log)(np.nan))
        assert np.isnan(fg.jvp(np.sin, (1.0,), (np.nan,))[1])


@pytest.mark.parametrize("x", [0.0, np.zeros(3)], ids=["scalar", "array"])
def test_no_warning_comes_from_derivatives(x: Any) -> None:
    """`np.sqrt(0)` does not warn, and neither does its gradient where it is not used."""

    def loss(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x) * np.exp(x), 2 * x))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(fg.grad(loss)(x), 2 * np.ones_like(x))
        np.testing.assert_array_equal(fg.grad(lambda x: np.sum(fg.grad(loss)(x)))(x), 0 * x)
        tangent = fg.jvp(loss, (x,), (np.ones_like(x),))[1]
        assert tangent == 2 * np.size(x)
