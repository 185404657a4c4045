"""Newton-CG with Hessian-vector products and a while loop, on Rosenbrock's function."""

import numpy as np
from scipy.optimize import rosen, rosen_der, rosen_hess_prod

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def hvp(x, v):
    return jax.jvp(jax.grad(rosenbrock), (x,), (v,))[1]


def solve(x, b):
    def going(state):
        _, r, p, k = state
        return (r @ r > 1e-18 * (b @ b)) & (p @ hvp(x, p) > 0) & (k < 50)

    def step(state):
        y, r, p, k = state
        hp = hvp(x, p)
        alpha = (r @ r) / (p @ hp)
        new = r - alpha * hp
        return y + alpha * p, new, new + (new @ new) / (r @ r) * p, k + 1

    y, _, _, k = lax.while_loop(going, step, (jnp.zeros_like(b), b, b, 0))
    return jnp.where(k == 0, b, y)


@jax.jit
def newton(x):
    slope = jax.grad(rosenbrock)(x)
    direction = solve(x, -slope)

    def too_long(t):
        return rosenbrock(x + t * direction) > rosenbrock(x) + 1e-4 * t * (slope @ direction)

    return x + lax.while_loop(too_long, lambda t: 0.5 * t, 1.0) * direction


def main():
    x = np.array([0.5, 1.5, 0.8, 2.0])
    v = np.array([1.0, -1.0, 0.3, 2.0])
    assert np.allclose(rosenbrock(x), rosen(x))
    assert np.allclose(jax.grad(rosenbrock)(x), rosen_der(x))
    assert np.allclose(hvp(x, v), rosen_hess_prod(x, v))
    steps = 0
    while np.linalg.norm(rosen_der(np.asarray(x))) > 1e-9 and steps < 100:
        x, steps = newton(x), steps + 1
    assert np.allclose(x, 1.0)
    return {"x": np.asarray(x).tolist()}
