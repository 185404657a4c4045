"""JAXopt: logistic regression with 20 coefficients by L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jaxopt


def make() -> Callable[[], Any]:
    x = jax.random.normal(jax.random.key(0), (200, 20))
    y = (x @ jnp.linspace(-1.0, 1.0, 20) > 0).astype(jnp.float32)

    def loss(w: Any) -> Any:
        z = x @ w
        return jnp.mean(jnp.logaddexp(0.0, z) - y * z) + 0.01 * jnp.sum(w * w)

    solver = jaxopt.LBFGS(loss, maxiter=50, tol=1e-4)
    run = jax.jit(lambda w: solver.run(w).params)
    w = jnp.zeros(20)
    return lambda: run(w)
