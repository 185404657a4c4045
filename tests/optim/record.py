"""Write `recorded/*.npz`: what optax and PyTorch do in 50 steps, in float64.

Run by hand with JAX, optax and PyTorch installed, from the root of the repository:

    python -m tests.optim.record
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import torch

from tests.optim.problem import (
    CHAINS,
    COUNTS,
    OPTIMIZERS,
    SCHEDULES,
    STEPS,
    gradient,
    start,
    value,
)
from tests.optim.torch_optimizers import TORCH

EVERY = 10  # which steps are kept: the 1st, and each 10th


def flat(params: Any) -> np.ndarray:
    return np.concatenate([np.ravel(params[name]) for name in ("w", "b")])


def kept(rows: list[np.ndarray]) -> np.ndarray:
    return np.array([rows[0], *rows[EVERY - 1 :: EVERY]])


def by_optax(tx: optax.GradientTransformation) -> np.ndarray:
    update = optax.with_extra_args_support(tx).update

    def step(carry: Any, _: Any) -> tuple[Any, Any]:
        params, state = carry
        g = gradient(params)
        extra = {"value": value(params), "grad": g, "value_fn": value}
        updates, state = update(g, state, params, **extra)
        params = optax.apply_updates(params, updates)
        return (params, state), params

    params = jax.tree.map(jax.numpy.asarray, start())
    _, history = jax.lax.scan(step, (params, tx.init(params)), length=STEPS)
    return kept([flat(jax.tree.map(lambda x, i=i: x[i], history)) for i in range(STEPS)])


def by_torch(name: str, arguments: dict[str, Any]) -> np.ndarray:
    params = {k: torch.tensor(v, requires_grad=True) for k, v in start().items()}
    optimizer = getattr(torch.optim, name)(list(params.values()), **arguments)
    rows = []
    for _ in range(STEPS):
        for k, g in gradient({k: v.detach().numpy() for k, v in params.items()}).items():
            params[k].grad = torch.tensor(g)
        optimizer.step()
        rows.append(flat({k: v.detach().numpy().copy() for k, v in params.items()}))
    return kept(rows)


def save(name: str, recorded: dict[str, np.ndarray]) -> None:
    folder = Path(__file__).with_name("recorded")
    folder.mkdir(exist_ok=True)
    np.savez_compressed(folder / f"{name}.npz", **recorded)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    save("torch", {key: by_torch(*case.torch) for key, case in TORCH.items()})
    schedules = {key: getattr(optax, f)(*arguments) for key, (f, arguments) in SCHEDULES.items()}
    counts = np.array(COUNTS, np.float64)
    save(
        "schedules", {key: np.array([*map(float, map(f, counts))]) for key, f in schedules.items()}
    )
    made = {key: getattr(optax, f)(**arguments) for key, (f, arguments) in OPTIMIZERS.items()}
    made |= {key: make(optax) for key, make in CHAINS.items()}
    save("optax", {key: by_optax(tx) for key, tx in made.items()})


if __name__ == "__main__":
    main()
