"""A convolutional network tells rows from columns."""

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.nn import initializers

layout = ("NHWC", "HWIO", "NHWC")


def images(key, n):
    k1, k2, k3 = random.split(key, 3)
    place = random.randint(k1, (n,), 0, 8)
    is_row = random.bernoulli(k2, shape=(n,))
    rows = jnp.zeros((n, 8, 8)).at[jnp.arange(n), place].set(1.0)
    x = jnp.where(is_row[:, None, None], rows, rows.transpose(0, 2, 1))
    return (x + 0.3 * random.normal(k3, x.shape))[..., None], is_row.astype(jnp.int32)


def network(params, x):
    for kernel in params["kernels"]:
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)
        x = jax.nn.relu(x)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1) @ params["last"]


def loss(params, x, labels):
    logits = jax.nn.log_softmax(network(params, x))
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 2) * logits, axis=-1))


k1, k2, k3, k4 = random.split(random.key(0), 4)
make = initializers.he_normal()
params = {
    "kernels": [make(k1, (3, 3, 1, 4)), make(k2, (3, 3, 4, 4))],
    "last": make(k3, (16, 2)),
}
x, labels = images(k4, 64)


@jax.jit
def step(params):
    gradient = jax.grad(loss)(params, x, labels)
    return jax.tree.map(lambda p, g: p - 0.3 * g, params, gradient)


for _ in range(60):
    params = step(params)
x, labels = images(random.key(9), 64)
assert jnp.mean(jnp.argmax(network(params, x), -1) == labels) > 0.95
