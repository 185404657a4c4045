"""A small network learns XOR by gradient descent with momentum."""

import jax
import jax.numpy as jnp
from jax import grad, jit, random, vmap


def init(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return (x @ params[-1]["w"] + params[-1]["b"])[0]


inputs = jnp.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
targets = jnp.array([0.0, 1.0, 1.0, 0.0])


def loss(params):
    logits = vmap(predict, in_axes=(None, 0))(params, inputs)
    return jnp.mean(jnp.logaddexp(0.0, logits) - targets * logits)


@jit
def step(params, velocity):
    gradient = grad(loss)(params)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - 0.3 * g, velocity, gradient)
    return jax.tree.map(jnp.add, params, velocity), velocity


params = init(random.PRNGKey(1), (2, 8, 1))
velocity = jax.tree_util.tree_map(jnp.zeros_like, params)
for _ in range(200):
    params, velocity = step(params, velocity)
assert float(loss(params)) < 0.05
assert isinstance(params[0]["w"], jax.Array)
