"""A small library of layers: custom nodes with static fields, optional parameters that are None."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad.flatten_util import ravel_pytree


@partial(jax.tree_util.register_dataclass, data_fields=["kernel", "bias"], meta_fields=["name"])
@dataclass
class Linear:
    kernel: Any
    bias: Any = None
    name: str = field(default="linear")

    def __call__(self, x, *, scale=1.0):
        y = scale * (x @ self.kernel)
        return y if self.bias is None else y + self.bias


@jax.tree_util.register_pytree_with_keys_class
class Stack:
    def __init__(self, layers, activation="tanh"):
        self.layers = list(layers)
        self.activation = activation

    def tree_flatten_with_keys(self):
        keys = map(jax.tree_util.SequenceKey, range(len(self.layers)))
        return tuple(zip(keys, self.layers, strict=True)), self.activation

    @classmethod
    def tree_unflatten(cls, activation, layers):
        return cls(layers, activation)

    def __call__(self, x, **options):
        *hidden, last = self.layers
        for layer in hidden:
            x = {"tanh": jnp.tanh, "relu": jax.nn.relu}[self.activation](layer(x, **options))
        return last(x)


class State(NamedTuple):
    model: Stack
    velocity: Stack | None
    step: Any


def loss(model, x, *, y, weight=None, decay: float):
    error = (model(x, scale=0.5)[:, 0] - y) ** 2
    data = jnp.mean(error) if weight is None else jnp.average(error, weights=weight)
    penalty = jax.tree.reduce(
        lambda total, leaf: total + jnp.sum(leaf**2) * (leaf.ndim > 1), model, 0.0
    )
    return data + decay * penalty, {"data": data, "weight": weight}


@partial(jax.jit, static_argnames=("decay", "momentum"), donate_argnames="state")
def train(state, batch, *, decay=1e-4, momentum=None):
    (_, aux), gradient = jax.value_and_grad(loss, has_aux=True)(state.model, decay=decay, **batch)
    velocity = None
    if momentum is not None:
        old = (
            jax.tree.map(jnp.zeros_like, state.model) if state.velocity is None else state.velocity
        )
        velocity = gradient = jax.tree.map(lambda v, g: momentum * v + g, old, gradient)
    model = jax.tree.map(lambda p, g: p - 0.1 * g, state.model, gradient)
    return State(model, velocity, state.step + 1), aux


def initial(key, sizes, **options):
    keys = jax.random.split(key, len(sizes) - 1)
    rows = zip(keys, sizes[:-1], sizes[1:], strict=True)
    layers = [
        Linear(jax.random.normal(k, (m, n), jnp.float64) / m**0.5, jnp.zeros(n), f"layer{i}")
        for i, (k, m, n) in enumerate(rows)
    ]
    layers[-1].bias = None
    return Stack(layers, **options)


def main():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(64, 3))
    y = np.sin(x[:, 0]) - 0.5 * x[:, 1]
    model = initial(jax.random.key(0), (3, 8, 8, 1), activation="tanh")

    paths, tree = jax.tree_util.tree_flatten_with_path(model)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    assert names[0] == "[0].kernel"
    assert len(names) == 5  # the last bias is None, and no leaf
    assert jax.tree_util.tree_unflatten(tree, [leaf for _, leaf in paths]).layers[2].bias is None
    mask = jax.tree_util.tree_map_with_path(lambda path, leaf: "bias" in str(path[-1]), model)
    assert sum(jax.tree.leaves(mask)) == 2
    kept = jax.tree.map(lambda m, leaf: None if m else leaf, mask, model)
    assert len(jax.tree.leaves(kept)) == 3
    assert len(jax.tree.leaves(kept, is_leaf=lambda leaf: leaf is None)) == 6

    # The gradient in one direction is a quotient of differences.
    rest = {"x": x, "y": y, "decay": 0.01}
    gradient, aux = jax.grad(loss, has_aux=True)(model, **rest)
    assert aux["weight"] is None
    flat, unravel = ravel_pytree(model)
    direction = rng.normal(size=flat.shape)
    ahead, behind = (loss(unravel(flat + s * direction), **rest)[0] for s in (1e-5, -1e-5))
    slope = ravel_pytree(gradient)[0] @ direction
    assert abs((ahead - behind) / 2e-5 - slope) < 1e-7

    state = State(model, None, 0)
    first = float(loss(model, **rest)[0])
    batch = {"x": x, "y": y}
    for _ in range(50):
        state, aux = train(state, batch)
    for _ in range(150):
        state, aux = train(state, batch | {"weight": np.ones(64)}, momentum=0.9, decay=0.0)
    assert int(state.step) == 200
    assert state.velocity.layers[2].bias is None
    assert state.model.layers[1].name == "layer1"
    assert float(aux["data"]) < 0.01 < first
    shapes = jax.eval_shape(lambda m: jax.vmap(m)(x[:, None]), state.model)
    assert shapes.shape == (64, 1, 1)
    return {"loss": float(aux["data"]), "first": first}
