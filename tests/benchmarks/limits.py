"""What no library can beat: the least that must be done for some rows, alone.

Products are NumPy's, copies `numpy.copyto`, and a few loops are written by hand for Numba. A limit
is measured beside the libraries; it is not verified, for it does not compute the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from tests.benchmarks.workload import map_arrays


@dataclass(frozen=True)
class Limit:
    """The least work of a row.

    Args:
        what: Its name in the table.
        prepare: Makes the call to be timed of the arguments of the problem.
    """

    what: str
    prepare: Callable[..., Callable[[], object]]


def copies(*arrays: np.ndarray) -> Callable[[], object]:
    """Copy every argument once: read and write as much as the smallest program can."""
    targets = [np.empty_like(array) for array in arrays]

    def run() -> None:
        for target, array in zip(targets, arrays, strict=True):
            np.copyto(target, array)

    return run


def one_copy(first: np.ndarray, *_: Any) -> Callable[[], object]:
    """Copy the first argument."""
    return copies(first)


def products(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Callable[[], object]:
    """Matrix products into arrays that are there."""
    targets = [np.empty((a.shape[0], b.shape[1]), a.dtype) for a, b in pairs]

    def run() -> None:
        for (a, b), target in zip(pairs, targets, strict=True):
            np.matmul(a, b, out=target)

    return run


def product(a: np.ndarray, b: np.ndarray) -> Callable[[], object]:
    """One matrix product."""
    return products([(a, b)])


def layer_weights(layers: Any) -> list[np.ndarray]:
    """The matrices of a network's layers."""
    return [layer["w"] for layer in layers]


def network_products(layers: Any, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The products of a forward pass, with activations of the right shapes."""
    weights = layer_weights(layers)
    inputs = [x, *(np.ones((len(x), w.shape[1]), x.dtype) for w in weights[:-1])]
    return list(zip(inputs, weights, strict=True))


def inference_products(layers: Any, x: np.ndarray) -> Callable[[], object]:
    """The products of a forward pass."""
    return products(network_products(layers, x))


def step_products(state: Any, x: np.ndarray, _: Any) -> Callable[[], object]:
    """The products of forward and backward pass: three per layer, two in the first one."""
    forward = network_products(state["params"], x)
    pairs = list(forward)
    for number, (a, w) in enumerate(forward):
        cotangent = np.ones((len(a), w.shape[1]), a.dtype)
        pairs.append((a.T, cotangent))
        if number:
            pairs.append((cotangent, w.T))
    return products(pairs)


def orbit_by_hand(y: np.ndarray, rates: np.ndarray) -> Callable[[], object]:
    """The loop of the orbit, written by hand."""
    steps = 1000
    y, rates = (np.asarray(array, np.float64) for array in (y, rates))
    return lambda: _orbit(y, rates, steps)


@numba.njit
def _slope(a, b, p):
    return p[0] * a - p[1] * a * b, p[3] * a * b - p[2] * b


@numba.njit
def _orbit(y, p, steps):
    h = 0.01
    a, b = y[0], y[1]
    for _ in range(steps):
        a1, b1 = _slope(a, b, p)
        a2, b2 = _slope(a + h / 2 * a1, b + h / 2 * b1, p)
        a3, b3 = _slope(a + h / 2 * a2, b + h / 2 * b2, p)
        a4, b4 = _slope(a + h * a3, b + h * b3, p)
        a += h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        b += h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
    return a + b


LIMITS = {
    "scale": Limit("np.copyto", copies),
    "negate": Limit("np.copyto", copies),
    "axpy-chain": Limit("np.copyto of one", one_copy),
    "softmax": Limit("np.copyto", copies),
    "layer-norm": Limit("np.copyto of the rows", one_copy),
    "heat-3d": Limit("np.copyto", one_copy),
    "jacobi-2d": Limit("np.copyto", one_copy),
    "matmul": Limit("its product, by NumPy", product),
    "mlp-inference-32": Limit("its products, by NumPy", inference_products),
    "mlp-inference-512": Limit("its products, by NumPy", inference_products),
    "wide-step": Limit("its products, by NumPy", step_products),
    "mlp-adam": Limit("its products, by NumPy", step_products),
    "mlp-rmsprop": Limit("its products, by NumPy", step_products),
    "orbit": Limit("by hand, Numba", orbit_by_hand),
}
"""By the name of the row."""


def limit_of(row: str, arguments: Any) -> tuple[str, Callable[[], object]] | None:
    """Name and call of the limit of a row, with arguments of the dtype of the run."""
    if row not in LIMITS:
        return None
    limit = LIMITS[row]
    return f"limit: {limit.what}", limit.prepare(*map_arrays(np.array, arguments))
