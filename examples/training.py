"""Shared by the example programs: dense layers, and two training loops.

`xor.py`, `four_points.py` and `moons.py` write both out, for readers who see them for the first
time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad import lax, optim

Layers = list[dict[str, Any]]


def dense(sizes: Iterable[int], seed: int, variance: float = 2.0) -> Layers:
    """Layers of these sizes: weights with `variance` / fan-in, and zero biases."""
    rng = np.random.default_rng(seed)
    return [
        {"w": rng.standard_normal((m, n)) * np.sqrt(variance / m), "b": np.zeros(n)}
        for m, n in itertools.pairwise(sizes)
    ]


def batches(arrays: tuple[Any, ...], size: int, steps: int, seed: int) -> tuple[Any, ...]:
    """One random batch for each step, stacked: arrays (steps, size, ...)."""
    rows = np.random.default_rng(seed).integers(0, len(arrays[0]), (steps, size))
    return tuple(array[rows] for array in arrays)


def minimize(
    loss: Callable[[Any, Any], Any],
    params: Any,
    optimizer: optim.GradientTransformation,
    batches: Any = None,
    steps: int | None = None,
    watch: Callable[[Any, Any], Any] = lambda params, slopes: None,
) -> tuple[Any, np.ndarray, Any]:
    """Minimise `loss(params, batch)` in one compiled loop over the batches, or of so many steps.

    Returns the last parameters, the loss before every step, and what `watch(params, slopes)` gave
    there.
    """

    def step(carry: tuple[Any, Any], batch: Any) -> tuple[tuple[Any, Any], Any]:
        params, state = carry
        value, slopes = fg.value_and_grad(loss)(params, batch)
        updates, state = optimizer.update(slopes, state, params)
        return (optim.apply_updates(params, updates), state), (value, watch(params, slopes))

    loop = fg.jit(lambda carry: lax.scan(step, carry, batches, length=steps))
    (last, _), (losses, watched) = loop((params, optimizer.init(params)))
    return last, losses, watched


def train(
    loss: Callable[..., Any],
    params: Any,
    optimizer: optim.GradientTransformation,
    batches: Iterable[tuple[Any, ...]],
) -> tuple[Any, list[float]]:
    """Minimise `loss(params, *batch)` by a compiled step; last parameters, and all losses."""

    @fg.jit
    def step(params: Any, state: Any, *batch: Any) -> tuple[Any, Any, Any]:
        value, slopes = fg.value_and_grad(loss)(params, *batch)
        updates, state = optimizer.update(slopes, state, params)
        return optim.apply_updates(params, updates), state, value

    state, losses = optimizer.init(params), []
    for batch in batches:
        params, state, value = step(params, state, *batch)
        losses.append(float(value))
    return params, losses


def smooth(losses: Any, window: int) -> np.ndarray:
    """Means over so many neighbouring losses."""
    return np.convolve(losses, np.ones(window) / window, mode="valid")
