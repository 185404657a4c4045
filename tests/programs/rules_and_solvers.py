"""Derivative rules with options, linear maps that are transposed, and solvers on dictionaries."""

from functools import partial

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax
from funcgrad.flatten_util import ravel_pytree
from funcgrad.scipy.sparse.linalg import cg


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def clipped(x, low=-1.0, high=1.0):
    return x


def clipped_fwd(x, low, high):
    return x, None


def clipped_bwd(low, high, _, g):
    return (jnp.clip(g, low, high),)


clipped.defvjp(clipped_fwd, clipped_bwd)


@jax.custom_jvp
def log1pexp(x, scale):
    return scale * jnp.log1p(jnp.exp(x / scale))


log1pexp.defjvps(
    lambda t, out, x, scale: t * jax.nn.sigmoid(x / scale),
    lambda t, out, x, scale: t * (out / scale - x / scale * jax.nn.sigmoid(x / scale)),
)


@partial(jax.jit, static_argnames=("f", "steps"))
def fixed_point(f, params, guess, *, steps=60):
    def iterate(x):
        return f(x, params)

    def solve(g, start):
        return lax.fori_loop(0, steps, lambda _, x: iterate(x), start)

    def tangent_solve(g, y):
        return y / g(1.0)

    return lax.custom_root(lambda x: x - iterate(x), guess, solve, tangent_solve)


def kepler(x, params):
    return params["mean"] + params["e"] * jnp.sin(x)


def newton(loss, x, *, damping=1e-3, iterations=8):
    """Newton's method whose steps are solved by conjugate gradients."""

    def step(x, _):
        gradient, product = jax.linearize(jax.grad(loss), x)

        def damped(v):
            return jax.tree.map(lambda p, q: p + damping * q, product(v), v)

        direction, _ = cg(damped, jax.tree.map(jnp.negative, gradient), maxiter=20, tol=1e-12)
        return jax.tree.map(jnp.add, x, direction), loss(x)

    return lax.scan(step, x, None, length=iterations)


def main():
    rng = np.random.default_rng(5)

    # A rule with options that are not differentiated, by position and by default.
    assert jax.grad(lambda x: 10 * clipped(x))(2.0) == 1.0
    assert jax.grad(lambda x: -10 * clipped(x, -3.0, 5.0))(2.0) == -3.0
    assert jax.vmap(jax.grad(lambda x: clipped(x) ** 2))(jnp.array([0.2, 3.0])).tolist() == [
        0.4,
        1.0,
    ]

    found = jax.grad(log1pexp, argnums=(0, 1))(1.0, 2.0)
    plain = jax.grad(lambda x, s: s * jnp.log(1 + jnp.exp(x / s)), argnums=(0, 1))(1.0, 2.0)
    np.testing.assert_allclose(found, plain, 1e-12)

    # Kepler's equation, to second order, for many at once.
    params = {"mean": 0.7, "e": 0.3}
    root = fixed_point(kepler, params, 0.5)
    assert abs(root - 0.3 * np.sin(root) - 0.7) < 1e-14
    slope = jax.grad(lambda p: fixed_point(kepler, p, 0.5))(params)
    np.testing.assert_allclose(slope["mean"], 1 / (1 - 0.3 * np.cos(root)), 1e-12)
    second = jax.grad(jax.grad(lambda m: fixed_point(kepler, {"mean": m, "e": 0.3}, 0.5)))(0.7)
    np.testing.assert_allclose(second, -0.3 * np.sin(root) / (1 - 0.3 * np.cos(root)) ** 3, 1e-10)
    means = jnp.linspace(0, 1, 4)
    many = jax.vmap(lambda m: fixed_point(kepler, {"mean": m, "e": 0.3}, 0.5))(means)
    assert np.abs(many - 0.3 * np.sin(many) - means).max() < 1e-13

    # Newton's method on a dictionary.
    a, b = rng.normal(size=(30, 4)), rng.normal(size=30)

    def loss(p):
        return jnp.mean(jnp.cosh(0.3 * (a @ p["w"] + p["b"] - b)))

    best, losses = newton(loss, {"w": jnp.zeros(4), "b": 0.0})
    steepest = ravel_pytree(jax.grad(loss)(best))[0]
    assert np.abs(steepest).max() < 1e-8
    assert np.all(np.diff(losses) < 1e-12)

    # The transpose of a linear map of pytrees, and the two halves of a derivative.
    def blur(x):
        return {"sum": x["u"][1:] + x["u"][:-1], "scaled": 2.0 * x["v"]}

    shape = {"u": jax.ShapeDtypeStruct((5,), np.float64), "v": jax.ShapeDtypeStruct((), np.float64)}
    (back,) = jax.linear_transpose(blur, shape)({"sum": jnp.ones(4), "scaled": 3.0})
    np.testing.assert_array_equal(back["u"], [1, 2, 2, 2, 1])
    assert back["v"] == 6.0
    fwd, bwd = jax.fwd_and_bwd(lambda p, x: jnp.tanh(x @ p["w"]), argnums=0)
    for _ in range(2):
        _, kept = fwd({"w": best["w"]}, a)
        by_hand = a.T @ (1 - np.tanh(a @ best["w"]) ** 2)
        np.testing.assert_allclose(bwd(kept, jnp.ones(30))["w"], by_hand, 1e-10)
    ones = jax.tree.map(jnp.ones_like, back)
    primal, pushed = jax.jvp(lambda p: jnp.sum(blur(p)["sum"]), (ones,), (back,))
    assert (float(primal), float(pushed)) == (8.0, 14.0)
    return {"root": float(root), "loss": float(losses[-1])}
