"""Networks of Python's numbers in lists, without arrays, differentiated and trained."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from tests.benchmarks.workload import Problem, leaves, map_arrays, workload

POINTS = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
TARGETS = [1.0, -1.0, -1.0, 1.0]
SIZES = (3, 4, 4, 1)
RATE = 0.05


def initial_units(sizes: tuple[int, ...]) -> list[list[list[float]]]:
    """Layers of units; a unit is a list of weights, of which the last one is its bias."""
    rng = random.Random(0)
    return [
        [[rng.uniform(-1, 1) for _ in range(m + 1)] for _ in range(n)] for m, n in pairwise(sizes)
    ]


def squared_error(tanh: Callable[[Any], Any], layers: Any) -> Any:
    """The sum of the squared errors over the four points."""

    def predict(x: list[Any]) -> Any:
        for layer in layers:
            x = [
                tanh(sum((w * v for w, v in zip(unit, x, strict=False)), unit[-1]))
                for unit in layer
            ]
        return x[0]

    return sum((predict(x) - y) ** 2 for x, y in zip(POINTS, TARGETS, strict=True))


def descended(layers: Any, gradients: Any) -> Any:
    """Numbers after a step of gradient descent."""
    return [
        [
            [w - RATE * g for w, g in zip(unit, slopes, strict=True)]
            for unit, slopes in zip(layer, of_layer, strict=True)
        ]
        for layer, of_layer in zip(layers, gradients, strict=True)
    ]


def np_gradients(layers: Any) -> tuple[Any, Any]:
    """The error and its gradient, derived by hand for all points at once."""
    matrices = [np.array(layer, np.float64) for layer in layers]
    outputs = [np.array(POINTS)]
    for matrix in matrices:
        outputs.append(np.tanh(outputs[-1] @ matrix[:, :-1].T + matrix[:, -1]))
    errors = outputs[-1][:, 0] - np.array(TARGETS)
    cotangent, gradients = 2 * errors[:, None], []
    for matrix, given, found in zip(matrices[::-1], outputs[-2::-1], outputs[:0:-1], strict=True):
        cotangent = cotangent * (1 - found**2)
        slopes = np.hstack([cotangent.T @ given, cotangent.sum(axis=0)[:, None]])
        gradients.insert(0, slopes.tolist())
        cotangent = cotangent @ matrix[:, :-1]
    return np.sum(errors**2), gradients


def training(steps: int, mode: str) -> Problem:
    """So many steps: layers -> layers, the error before the last of them; fed back in."""
    layers = initial_units(SIZES)

    def program(xp: Any) -> Callable[..., Any]:
        value_and_grad = xp.value_and_grad(lambda layers: squared_error(xp.numpy.tanh, layers))

        def step(layers: Any) -> Any:
            error, gradients = value_and_grad(layers)
            return descended(layers, gradients), error

        def run(layers: Any) -> Any:
            layers, errors = xp.lax.scan(lambda s, _: step(s), layers, None, length=steps)
            return layers, errors[-1]

        return step if steps == 1 else run

    def reference(layers: Any) -> Any:
        for _ in range(steps):
            error, gradients = np_gradients(layers)
            layers = descended(layers, gradients)
        return layers, error

    def of_values(module: Any) -> Callable[..., Any]:
        def run(layers: Any) -> Any:
            """Overwrites the objects that it is given; makes them of the first call's numbers."""
            if not isinstance(layers[0][0][0], module.Value):
                layers = map_arrays(module.Value, layers)
            weights = leaves(layers)
            for _ in range(steps):
                error = squared_error(module.Value.tanh, layers)
                for weight in weights:
                    weight.gradient = 0.0
                error.backward()
                for weight in weights:
                    weight.data -= RATE * weight.gradient
            return layers, error

        return run

    return Problem(
        (layers,),
        program,
        reference,
        values=of_values,
        as_written=("autograd",) if mode == "eager" else (),
        feedback=True,
        mode=mode,
    )


@workload(small=(1,), normal=(1,), large=(1,), name="scalar-step-eager")
def eager_step(steps: int) -> Problem:
    """{steps} training step of a network of 41 Python numbers, four points, nothing compiled."""
    return training(steps, "eager")


@workload(small=(1,), normal=(1,), large=(1,), name="scalar-step")
def jitted_step(steps: int) -> Problem:
    """{steps} training step of a network of 41 Python numbers, four points."""
    return training(steps, "jit")


@workload(small=(3,), normal=(100,), large=(10_000,), name="scalar-training")
def jitted_training(steps: int) -> Problem:
    """{steps} training steps of a network of 41 Python numbers, four points, in one call."""
    return training(steps, "jit")
