"""A Gaussian process chooses its length scale by its marginal likelihood."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax import random, vmap

jax.config.update("jax_enable_x64", True)


def kernel(params, x, y):
    return jnp.exp(2 * params["scale"] - 0.5 * ((x - y) / jnp.exp(params["length"])) ** 2)


def gram(params, xs, ys):
    return vmap(lambda x: vmap(lambda y: kernel(params, x, y))(ys))(xs)


def objective(params, xs, values):
    n = xs.shape[0]
    matrix = gram(params, xs, xs) + jnp.exp(2 * params["noise"]) * jnp.eye(n)
    factor = jnp.linalg.cholesky(matrix)
    alpha = jsp.linalg.cho_solve((factor, True), values)
    return 0.5 * values @ alpha + jnp.log(jnp.diag(factor)).sum()


key = random.key(11)
xs = jnp.sort(random.uniform(key, (40,), minval=-3.0, maxval=3.0))
values = jnp.sin(2 * xs) + 0.1 * random.normal(random.fold_in(key, 1), (40,))
params = {"scale": jnp.array(0.0), "length": jnp.array(1.0), "noise": jnp.array(-1.0)}


@jax.jit
def step(params):
    gradient = jax.grad(objective)(params, xs, values)
    return jax.tree.map(lambda a, g: a - 0.02 * jnp.clip(g, -5, 5), params, gradient)


before = objective(params, xs, values)
for _ in range(150):
    params = step(params)
assert objective(params, xs, values) < before - 20
grid = jnp.linspace(-2.5, 2.5, 50)
matrix = gram(params, xs, xs) + jnp.exp(2 * params["noise"]) * jnp.eye(40)
prediction = gram(params, grid, xs) @ jnp.linalg.solve(matrix, values)
assert jnp.max(jnp.abs(prediction - jnp.sin(2 * grid))) < 0.25
assert 0.04 < jnp.exp(params["noise"]) < 0.3
