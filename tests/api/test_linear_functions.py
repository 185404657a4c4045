"""What vjp and linearize return: functions that are pytrees."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax, tree_util
from funcgrad.base import pytree

X = np.array([0.3, -0.7, 1.1])
W = np.arange(1.0, 10.0).reshape(3, 3) / 7


@fg.custom_vjp
def clipped(x: Any) -> Any:
    return np.sin(x)


clipped.defvjp(lambda x: (np.sin(x), np.cos(x)), lambda cos, ct: (np.clip(ct, -0.5, 0.5) * cos,))


@fg.custom_jvp
def tripled(x: Any) -> Any:
    return np.sin(x)


tripled.defjvp(lambda p, t: (np.sin(p[0]), 3.0 * np.cos(p[0]) * t[0]))

# Functions of one vector, and the diagonal or full Jacobian at a point.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "elementwise": (lambda x: np.sin(x) * x, lambda x: np.diag(np.cos(x) * x + np.sin(x))),
    "matrix": (lambda x: np.tanh(W @ x), lambda x: (1 - np.tanh(W @ x) ** 2)[:, None] * W),
    "linear": (lambda x: W @ x, lambda x: W),
    "identity": (lambda x: x, lambda x: np.eye(3)),
    "constant": (lambda x: np.ones(3), lambda x: np.zeros((3, 3))),
    "scaled by a number": (lambda x: 2.0 * x, lambda x: 2.0 * np.eye(3)),
    "compiled": (fg.jit(lambda x: np.exp(x) * 2), lambda x: np.diag(2 * np.exp(x))),
    "scan": (
        lambda x: lax.scan(lambda c, w: (c * np.cos(w), None), x, X)[0],
        lambda x: np.diag(np.full(3, np.cos(X).prod())),
    ),
    "while": (
        lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * s[1]), (0, x))[1],
        lambda x: np.diag(8 * x**7),
    ),
    "cond": (
        lambda x: lax.cond(x[0] > 0, np.exp, np.sin, x),
        lambda x: np.diag(np.exp(x) if x[0] > 0 else np.cos(x)),
    ),
    "checkpoint": (fg.checkpoint(lambda x: np.exp(np.sin(x))),
        lambda x: np.diag(np.exp(np.sin(x)) * np.cos(x))),
    "custom_jvp": (tripled, lambda x: np.diag(3 * np.cos(x))),
    "indexing": (lambda x: x[np.array([2, 0, 0])] ** 2,
        lambda x: 2 * x[[2, 0, 0]][:, None] * np.eye(3)[[2, 0, 0]]),
}  # fmt: skip

CT = np.array([1.0, -2.0, 0.5])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_return_and_take_pullbacks(name: str) -> None:
    f, jacobian = FUNCTIONS[name]
    made = fg.jit(lambda x: fg.vjp(f, x))
    apply = fg.jit(lambda pull, ct: pull(ct))
    for x in (X, X[::-1].copy(), 2 * X):
        y, pull = made(x)
        expected = CT @ jacobian(x)
        np.testing.assert_allclose(y, f(x), rtol=1e-13)
        np.testing.assert_allclose(pull(CT)[0], expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(apply(pull, CT)[0], expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(apply(fg.vjp(f, x)[1], CT)[0], expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            fg.jacrev(lambda ct, pull=pull: pull(ct)[0])(CT), jacobian(x).T, rtol=1e-12, atol=1e-13
        )
    assert made.cache_info().traces == 1
    assert pull(CT)[0].flags.writeable


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_return_and_take_linear_maps(name: str) -> None:
    f, jacobian = FUNCTIONS[name]
    made = fg.jit(lambda x: fg.linearize(f, x))
    apply = fg.jit(lambda push, t: push(t))
    for x in (X, X[::-1].copy(), 2 * X):
        _, push = made(x)
        expected = jacobian(x) @ CT
        np.testing.assert_allclose(push(CT), expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(apply(push, CT), expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            apply(fg.linearize(f, x)[1], CT), expected, rtol=1e-12, atol=1e-13
        )


# Without residuals there would be nothing to map.
@pytest.mark.parametrize(
    "name", [n for n in FUNCTIONS if tree_util.tree_leaves(fg.vjp(FUNCTIONS[n][0], X)[1])]
)
def test_maps_over_points(name: str) -> None:
    f, jacobian = FUNCTIONS[name]
    xs = np.stack([X, X + 0.25, 2 * X])
    pulls = fg.vmap(lambda x: fg.vjp(f, x)[1])(xs)
    found = fg.vmap(lambda pull: pull(CT)[0])(pulls)
    expected = np.stack([CT @ jacobian(x) for x in xs])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_gradients_pass_through_what_is_kept() -> None:
    f = FUNCTIONS["matrix"][0]

    def via_jit(x: Any) -> Any:
        _, pull = fg.jit(lambda x: fg.vjp(f, x))(x)
        return np.sum(pull(CT)[0] ** 2)

    def direct(x: Any) -> Any:
        return np.sum((CT @ ((1 - np.tanh(W @ x) ** 2)[:, None] * W)) ** 2)

    step = 1e-6
    expected = [(direct(X + step * e) - direct(X - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(fg.grad(via_jit)(X), expected, rtol=1e-7)
    np.testing.assert_allclose(fg.jit(fg.grad(via_jit))(X), expected, rtol=1e-7)


def test_pullbacks_of_custom_rules_are_those_of_the_rule() -> None:
    _, pull = fg.jit(lambda x: fg.vjp(clipped, x))(X)
    np.testing.assert_allclose(pull(CT)[0], np.clip(CT, -0.5, 0.5) * np.cos(X), rtol=1e-13)


def test_structures_arguments_and_extra_results() -> None:
    def f(p: Any, n: int, x: Any) -> Any:
        return {"a": p["w"] * x, "b": [p["b"] + n]}, {"n": n, "x": x}

    p = {"w": np.array([2.0, 3.0]), "b": 1.5}
    made = fg.jit(lambda p, n, x: fg.vjp(f, p, n, x, has_aux=True))
    y, pull, aux = made(p, 4, np.ones(2, np.float32))
    np.testing.assert_array_equal(y["a"], [2.0, 3.0])
    assert aux["n"] == 4
    dp, dn, dx = pull({"a": np.array([1.0, 10.0]), "b": [2.0]})
    np.testing.assert_array_equal(dp["w"], [1.0, 10.0])
    assert dp["b"] == 2.0
    assert dn.dtype == fg.float0
    np.testing.assert_array_equal(dx, np.array([2.0, 30.0], np.float32))
    assert dx.dtype == np.float32
    assert y["b"][0] == 5.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_dtypes_and_python_scalars_stay(dtype: Any) -> None:
    x = X.astype(dtype)
    _, pull = fg.jit(lambda x, s: fg.vjp(lambda x: 0.5 * x * s, x))(x, 3.0)
    (ct,) = pull(np.ones(3, dtype))
    assert ct.dtype == dtype
    np.testing.assert_array_equal(ct, np.full(3, 1.5, dtype))


def test_they_are_trees_of_what_they_keep() -> None:
    _, pull = fg.vjp(lambda x: np.sin(x) * W[0], X)
    leaves = tree_util.tree_leaves(pull)
    assert all(isinstance(x, np.ndarray | np.generic) for x in leaves)
    nothing = tree_util.tree_map(np.zeros_like, pull)
    np.testing.assert_array_equal(nothing(CT)[0], np.zeros(3))
    np.testing.assert_allclose(pull(CT)[0], CT * W[0] * np.cos(X), rtol=1e-15)
    assert repr(pull) == "<VjpFunction of vjp(<lambda>)>"


def test_functions_of_other_points_are_taken_without_a_new_trace() -> None:
    apply = fg.jit(lambda pull, ct: pull(ct))
    for scale in (1.0, 2.0, 3.0):
        apply(fg.vjp(FUNCTIONS["matrix"][0], scale * X)[1], CT)
    assert apply.cache_info().traces == 1
    apply(fg.vjp(np.sin, X)[1], CT)
    assert apply.cache_info().traces == 2


@pytest.mark.usefixtures("small_heap")
def test_what_they_keep_is_freed_with_them() -> None:
    before = len(pytree._interned)
    x = np.ones(100)
    _, pull = fg.vjp(lambda x: np.sin(x) * x, x)
    leaves, treedef = tree_util.tree_flatten((1.0, [pull]))
    kept = [weakref.ref(leaf) for leaf in leaves if isinstance(leaf, np.ndarray)]
    del leaves, pull, x
    gc.collect()
    assert kept
    assert all(r() is None for r in kept)
    del treedef
    assert len(pytree._interned) <= before


def test_they_are_carried_and_chosen() -> None:
    f = FUNCTIONS["matrix"][0]
    _, pull = fg.vjp(f, X)
    ct, _ = lax.scan(lambda ct, _: (pull(ct)[0], None), CT, None, length=2)
    jacobian = FUNCTIONS["matrix"][1](X)
    np.testing.assert_allclose(ct, CT @ jacobian @ jacobian, rtol=1e-12)
    carry, _ = lax.scan(lambda s, _: ((s[0], s[0](s[1])[0]), None), (pull, CT), None, length=2)
    np.testing.assert_allclose(carry[1], CT @ jacobian @ jacobian, rtol=1e-12)
