"""Optimisers of optax, whose states are divided, under `funcgrad.interop.jax`.

``python -m tests.distributed.optax_shards`` maps lanes by `vmap`; under ``mpiexec`` they are ranks.
References are optimisers without wrappers and the means of the gradients of all lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad import distributed
from funcgrad.interop import jax as stand_in
from tests.distributed import shards

LANES = 4


def optimizers() -> dict[str, Callable[[], Any]]:
    """The optimisers, by name."""
    import optax  # noqa: PLC0415 (which imports jax)

    return {
        "adam": lambda: optax.adam(optax.cosine_decay_schedule(0.1, 10)),
        "adamw": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-2)),
        "lamb": lambda: optax.lamb(1e-2),
        "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=2),
        "multi-steps": lambda: optax.MultiSteps(optax.adam(1e-2), 2),
    }


def main() -> None:
    """Check all, eagerly and compiled."""
    stand_in.install()
    import jax  # noqa: PLC0415 (which is funcgrad here)

    for is_x64 in (False, True):
        jax.config.update("jax_enable_x64", is_x64)
        check()
    distributed.echo(f"optax holds on {distributed.size()}")


def check() -> None:
    """Check all in the width that there is."""
    n, i = distributed.size(), distributed.rank()
    is_alone = n == 1
    n = LANES if is_alone else n
    each = shards.gradients(n)
    for name, make in optimizers().items():
        wanted = shards.expected(make(), n)
        f = shards.with_divided_state(make(), "data", 1)
        for way in (lambda f: f, fg.jit):
            if is_alone:
                lanes = way(fg.vmap(f, axis_name="data"))(each)
                found = fg.tree.map(lambda x: x[0], lanes)
            else:
                with distributed.spmd():
                    found = way(f)(fg.tree.map(lambda g: g[i], each))
            for x, y in zip(fg.tree.leaves(found), fg.tree.leaves(wanted), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6, err_msg=name)


if __name__ == "__main__":
    main()
