"""The rates of predators and prey are found again from a simulated course."""

import functools

import jax
import jax.numpy as jnp
from jax import lax


def field(y, rates):
    a, b, c, d = rates
    return jnp.array([a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]])


@functools.partial(jax.jit, static_argnames="steps")
def simulate(rates, steps=100, h=0.1):
    def rk4(y, _):
        k1 = field(y, rates)
        k2 = field(y + h / 2 * k1, rates)
        k3 = field(y + h / 2 * k2, rates)
        k4 = field(y + h * k3, rates)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return lax.scan(rk4, jnp.array([1.0, 0.5]), None, length=steps)[1]


truth = jnp.array([1.1, 0.4, 0.4, 0.1])
data = simulate(truth)
loss = jax.jit(jax.value_and_grad(lambda q: jnp.mean((simulate(jnp.exp(q)) - data) ** 2)))
hessian = jax.jit(jax.hessian(lambda q: jnp.mean((simulate(jnp.exp(q)) - data) ** 2)))
q = jnp.log(truth * jnp.array([1.05, 0.97, 1.02, 0.98]))
for _ in range(8):
    value, gradient = loss(q)
    q = q - jnp.linalg.solve(hessian(q) + 1e-9 * jnp.eye(4), gradient)
assert jnp.allclose(jnp.exp(q), truth, rtol=1e-6), jnp.exp(q)
