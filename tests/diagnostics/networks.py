"""Multi-layer perceptrons that are healthy or ill by construction."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp

BATCH, INPUTS, CLASSES = 32, 8, 5


def perceptron(
    depth: int,
    activation: Any = np.tanh,
    is_normalized: bool = False,
    gain: float = 1.0,
    width: int = 16,
    dtype: Any = np.float64,
) -> tuple[Any, list[dict[str, Any]], Any, Any]:
    """A loss, its parameters, inputs and labels; ``gain`` scales weights of variance 1 / fan-in."""
    rng = np.random.default_rng(depth)
    sizes = [INPUTS, *[width] * (depth - 1), CLASSES]
    params = []
    for m, n in itertools.pairwise(sizes):
        layer = {"w": gain * rng.standard_normal((m, n)) / np.sqrt(m), "b": np.zeros(n)}
        if is_normalized and n != CLASSES:
            layer |= {"scale": np.ones(n), "shift": np.zeros(n)}
        params.append({name: x.astype(dtype) for name, x in layer.items()})

    def loss(params: Any, x: Any, labels: Any) -> Any:
        *hidden, last = params
        for layer in hidden:
            x = x @ layer["w"] + layer["b"]
            if is_normalized:
                x = (x - fnp.mean(x, axis=0)) / fnp.sqrt(fnp.var(x, axis=0) + 1e-5)
                x = layer["scale"] * x + layer["shift"]
            x = activation(x)
        chances = fg.nn.log_softmax(x @ last["w"] + last["b"])
        return -fnp.mean(fnp.take_along_axis(chances, labels[:, None], axis=1))

    x = rng.standard_normal((BATCH, INPUTS)).astype(dtype)
    return loss, params, x, rng.integers(0, CLASSES, BATCH)
