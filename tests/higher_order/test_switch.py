"""`cond` and `switch` under the transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from tests.higher_order.agreement import check

W = np.array([[0.3, -0.4], [0.5, 0.2]])
POINTS = np.array([[0.7, 0.4], [0.2, 1.1], [-1.3, 0.6]])


def arms(lax: Any, x: Any) -> Any:
    """Arms with different residuals; both read tracers that they close over."""
    return lax.cond(
        x[0] > 0.5, lambda a: np.sin(a * x[1]) * W @ x, lambda a: np.exp(x) * x[0] + a, x[0] * x[1]
    )


def shared_predicate(lax: Any, x: Any) -> Any:
    """All lanes go the same way."""
    return lax.cond(np.bool_(True), lambda: x * x[::-1], lambda: x)


def one_arm_is_constant(lax: Any, x: Any) -> Any:
    tree = lax.cond(
        x[1] > 0.5,
        lambda p: {"a": np.array([1.0, 2.0]), "b": (p["a"][0], None)},
        lambda p: {"a": p["a"] ** 3, "b": (p["b"], None)},
        {"a": x, "b": x[0] * x[1]},
    )
    return tree["a"] * tree["b"][0] + x


def branches(lax: Any, x: Any) -> Any:
    """Indices outside the range, different in every lane."""
    index = fg.numpy.floor(3 * fg.stop_gradient(x[0])).astype(int) if lax is fg.lax else None
    if index is None:
        index = np.floor(3 * np.real(x[0]))
    functions = [lambda v: v @ W @ v, lambda v: np.prod(np.cos(v)), lambda v: v[0] / v[1]]
    return lax.switch(index, functions, x) * x[0]


def nested(lax: Any, x: Any) -> Any:
    def inner(v: Any) -> Any:
        return lax.cond(v[1] > 0.5, lambda u: u[0] ** 3, lambda u: np.exp(u[1]) * v[0], v)

    return lax.cond(x[0] > 0.3, inner, lambda v: v[0] * inner(2 * v), x)


def scan_inside(lax: Any, x: Any) -> Any:
    def looped(v: Any) -> Any:
        carry, ys = lax.scan(lambda c, t: (c * v[1] + t * x[0], c), v[0], np.array([0.5, 1.5, 2.0]))
        return carry * ys.sum()

    return lax.cond(x[0] > 0, looped, lambda v: v[0] * v[1], x)


def while_inside(lax: Any, x: Any) -> Any:
    """In lanes that take the other arm the loop would never end."""

    def looped(v: Any) -> Any:
        return lax.while_loop(lambda y: y < 4, lambda y: y * (1 + v), v + 0.1)

    return lax.cond(x[0] > 0, looped, lambda v: v * x[1] ** 2, x[0])


PROGRAMS = [
    arms,
    shared_predicate,
    one_arm_is_constant,
    branches,
    nested,
    scan_inside,
    while_inside,
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_transformations(program):
    check(program, POINTS)


# Arms that are not taken.

X = np.array([0.0, 1.0, 3.0])
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "jit"])


@pytest.mark.sampled(2)
@WRAPS
@pytest.mark.parametrize(
    ("arm", "value", "slope", "curvature"),
    [
        (np.log, np.log, lambda x: 1 / x, lambda x: -1 / x**2),
        (lambda x: 1 / x, lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3),
        (np.sqrt, np.sqrt, lambda x: 0.5 / np.sqrt(x), lambda x: -0.25 * x**-1.5),
    ],
    ids=["log", "reciprocal", "sqrt"],
)
def test_singular_arms(wrap, arm, value, slope, curvature):
    def f(x: Any) -> Any:
        return fg.lax.cond(x > 0, arm, lambda v: 2 * v, x)

    inside = X[1:]
    first = np.array([2.0, *slope(inside)])
    np.testing.assert_allclose(wrap(fg.vmap(f))(X), [0.0, *value(inside)], rtol=1e-14)
    np.testing.assert_allclose(wrap(fg.vmap(fg.grad(f)))(X), first, rtol=1e-14)
    np.testing.assert_allclose(wrap(fg.vmap(fg.jacfwd(f)))(X), first, rtol=1e-14)
    np.testing.assert_allclose(wrap(fg.grad(lambda x: fg.vmap(f)(x).sum()))(X), first, rtol=1e-14)
    second = wrap(fg.vmap(fg.grad(fg.grad(f))))(X)
    np.testing.assert_allclose(second, [0.0, *curvature(inside)], rtol=1e-14)


@WRAPS
def test_singular_arms_that_read_shared_arrays(wrap):
    """An infinity from a lane that went the other way, contracted with shared weights."""

    def f(x: Any, w: Any) -> Any:
        return fg.lax.cond(x > 0, lambda: (1 / x * np.ones((2, 2)) @ w).sum(), lambda: x + w.sum())

    total = fg.grad(lambda w: fg.vmap(f, (0, None))(X, w).sum())
    np.testing.assert_allclose(wrap(total)(np.ones(2)), np.full(2, 1 + 2 + 2 / 3), rtol=1e-14)
    slopes = wrap(fg.vmap(fg.grad(f, (0, 1)), (0, None)))(X, np.ones(2))
    np.testing.assert_allclose(slopes[0], [1.0, -4.0, -4 / 9], rtol=1e-14)
    np.testing.assert_allclose(slopes[1][:, 0], [1.0, 2.0, 2 / 3], rtol=1e-14)


@WRAPS
def test_arms_that_no_lane_takes(wrap):
    def f(x: Any, w: Any) -> Any:
        return fg.lax.cond(x < 0, lambda: (1 / x * w).sum(), lambda: x * w.sum())

    slopes = wrap(fg.vmap(fg.grad(f, (0, 1)), (0, None)))(X, np.ones(2))
    np.testing.assert_allclose(slopes[0], np.full(3, 2.0))
    np.testing.assert_allclose(slopes[1], np.stack([X, X], -1))


@pytest.mark.sampled(2)
@WRAPS
def test_endless_loops_in_arms_that_are_not_taken(wrap):
    """Doubling zero never reaches ten."""

    def f(x: Any) -> Any:
        def doubled(v: Any) -> Any:
            return fg.lax.while_loop(lambda y: y < 10, lambda y: y * (1 + v), v)

        return fg.lax.cond(x > 0, doubled, lambda v: v, x)

    # 1, 2, 4, 8, 16: y = x (1 + x)^4; and 3, 12: y = x (1 + x).
    np.testing.assert_allclose(wrap(fg.vmap(f))(X), [0.0, 16.0, 12.0])
    np.testing.assert_allclose(wrap(fg.vmap(fg.grad(f)))(X), [1.0, 16 + 4 * 8, 7.0])
    np.testing.assert_allclose(wrap(fg.vmap(fg.hessian(f)))(X), [0.0, 8 * 8 + 12 * 4, 2.0])
    total = wrap(fg.grad(lambda x: fg.vmap(f)(x).sum()))(X)
    np.testing.assert_allclose(total, [1.0, 48.0, 7.0])
    assert wrap(fg.vmap(fg.grad(f)))(X[:0]).shape == (0,)


@WRAPS
def test_endless_loops_behind_rules_and_checkpoints(wrap):
    """The loop is inside of a function with rules of its own, or of a checkpoint."""

    def doubled(v: Any) -> Any:
        return fg.lax.while_loop(lambda y: y < 10, lambda y: y * (1 + v), v)

    ruled = fg.custom_vjp(lambda v: doubled(v))
    ruled.defvjp(lambda v: (doubled(v), v), lambda v, ct: (ct * doubled(v),))
    for inner, slopes in ((ruled, [1.0, 16.0, 12.0]), (fg.checkpoint(doubled), [1.0, 48.0, 7.0])):

        def f(x: Any, inner: Any = inner) -> Any:
            return fg.lax.cond(x > 0, inner, lambda v: v, x)

        np.testing.assert_allclose(wrap(fg.vmap(f))(X), [0.0, 16.0, 12.0])
        np.testing.assert_allclose(wrap(fg.vmap(fg.grad(f)))(X), slopes)


@WRAPS
def test_transpose_of_lanes_of_a_linear_map(wrap):
    """What was linearised lane by lane is transposed over all lanes."""

    def f(x: Any) -> Any:
        return fg.lax.cond(x > 0, np.log, lambda v: 2 * v, x)

    def pushed(x: Any, t: Any) -> Any:
        return fg.linearize(f, x)[1](t)

    total = fg.grad(lambda t: fg.vmap(pushed)(X, t).sum())
    np.testing.assert_allclose(wrap(total)(np.ones(3)), [2.0, 1.0, 1 / 3])


def test_only_one_arm_runs():
    """Without lanes the other arm is not evaluated, neither forwards nor backwards."""

    def f(x: Any) -> Any:
        def endless(v: Any) -> Any:
            return fg.lax.while_loop(lambda y: y < 10, lambda y: y * v, v)

        return fg.lax.cond(x > 0.5, lambda v: v * v, endless, x)

    for wrap in (lambda g: g, fg.jit):
        assert wrap(f)(1.0) == 1.0
        assert wrap(fg.grad(f))(1.0) == 2.0
        assert wrap(fg.grad(fg.grad(f)))(1.0) == 2.0
        np.testing.assert_array_equal(wrap(fg.vmap(lambda x: f(x) * 1))(np.ones(2)), [1.0, 1.0])
