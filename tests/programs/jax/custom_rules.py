"""Rules of one's own: a root by the implicit function theorem, and gradients that are clipped."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, guess):
    def body(state):
        x, _ = state
        return f(a, x), x

    def unfinished(state):
        x, before = state
        return jnp.max(jnp.abs(x - before)) > 1e-13

    return lax.while_loop(unfinished, body, (f(a, guess), guess))[0]


def forward(f, a, guess):
    x = fixed_point(f, a, guess)
    return x, (a, x)


def backward(f, saved, ct):
    a, x = saved
    _, pull_a = jax.vjp(lambda a: f(a, x), a)
    _, pull_x = jax.vjp(lambda x: f(a, x), x)
    w = fixed_point(lambda ct, w: ct + pull_x(w)[0], ct, ct)
    return pull_a(w)[0], jnp.zeros_like(x)


fixed_point.defvjp(forward, backward)


def newton_root(a):
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)


assert jnp.allclose(newton_root(2.0), jnp.sqrt(2.0))
assert jnp.allclose(jax.grad(newton_root)(2.0), 0.5 / jnp.sqrt(2.0))
slopes = jax.vmap(jax.jit(jax.grad(newton_root)))(jnp.array([1.0, 4.0, 9.0]))
assert jnp.allclose(slopes, jnp.array([0.5, 0.25, 1 / 6]))


@jax.custom_jvp
def softened(x):
    return jnp.log1p(jnp.exp(x))


@softened.defjvp
def softened_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return softened(x), jnp.where(x > 0, 1.0, 0.5) * x_dot


assert jax.grad(softened)(3.0) == 1.0
assert jax.jvp(softened, (-3.0,), (2.0,))[1] == 1.0


@jax.custom_gradient
def clipped(x):
    return x, lambda g: jnp.clip(g, -1.0, 1.0)


assert jax.grad(lambda x: 7.0 * clipped(x))(2.0) == 1.0
