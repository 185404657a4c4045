"""A recurrent network in plain loops and lists, whose gradient is checked by differences."""

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import grad
from funcgrad.interop.autograd.misc.optimizers import rmsprop

RNG = np.random.RandomState(3)
BITS = RNG.randint(0, 2, (8, 40)).astype(float)
TARGET = np.vstack([np.zeros(40), np.zeros(40), BITS[:-2]])  # the bit of two steps ago


def init(width):
    return {
        "in": RNG.randn(width) * 0.5,
        "change": RNG.randn(width, width) * 0.5,
        "bias": np.zeros(width),
        "out": RNG.randn(width) * 0.5,
    }


def outputs(params, bits):
    hidden = np.zeros((bits.shape[1], len(params["in"])))
    found = []
    for row in bits:
        mixed = np.dot(hidden, params["change"]) + np.outer(row, params["in"]) + params["bias"]
        hidden = np.tanh(mixed)
        found.append(np.dot(hidden, params["out"]))
    return np.stack(found)


def loss(params, i=0):
    return np.mean((outputs(params, BITS)[2:] - TARGET[2:]) ** 2)


def main():
    params = init(6)
    slope = grad(loss)(params)["change"][1, 2]
    moved = []
    for shift in (1e-5, -1e-5):
        change = params["change"].copy()
        change[1, 2] += shift
        moved.append(loss(dict(params, change=change)))
    assert abs(slope - (moved[0] - moved[1]) / 2e-5) < 1e-8
    trained = rmsprop(grad(loss), params, num_iters=400, step_size=0.01)
    accuracy = np.mean((outputs(trained, BITS)[2:] > 0.5) == (TARGET[2:] > 0.5))
    assert accuracy > 0.95
    return {"start": float(loss(params)), "accuracy": float(accuracy)}
