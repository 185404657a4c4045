"""Equinox and optax: ten steps of training a small network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


def make() -> Callable[[], Any]:
    model = eqx.nn.MLP(2, 1, 32, 2, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (256, 2))
    y = jnp.sin(x[:, :1]) * x[:, 1:]
    optimizer = optax.adam(1e-3)
    start = optimizer.init(eqx.filter(model, eqx.is_array))

    def loss(model: Any) -> Any:
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    @eqx.filter_jit
    def step(model: Any, state: Any) -> Any:
        value, gradient = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(gradient, state, model)
        return eqx.apply_updates(model, updates), state, value

    def call() -> Any:
        now, state = model, start
        for _ in range(10):
            now, state, value = step(now, state)
        return value

    return call
