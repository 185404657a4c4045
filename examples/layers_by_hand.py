"""Five layers and a small network: their gradients by hand, by `grad` and by differences.

Each layer is two functions: forward, and backward, which takes the gradient of its output and
returns the gradients of what went in. The formulas stand beside the lines. The program compares
them, on inputs of 32 x 10, with automatic gradients, and with central differences of step 1e-6. A
2-3-1 network with ReLU and a squared error is then differentiated by hand as a whole. Run it with

    python examples/layers_by_hand.py

It prints the largest relative errors, and writes `layers_by_hand.png`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import funcgrad as fg
import program
from funcgrad.flatten_util import ravel_pytree

ROWS, COLUMNS, EPSILON = 32, 10, 1e-6


# The layers.


class Layer(NamedTuple):
    """`forward(*inputs)` and `backward(g, *inputs)`, where g is the gradient of the output."""

    forward: Callable[..., Any]
    backward: Callable[..., tuple[Any, ...]]
    inputs: int = 1


def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x)."""
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    """e^x_i / sum_j e^x_j in every row; subtracting the maximum changes nothing but overflow."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def softmax_backward(g: Any, x: Any) -> tuple[Any, ...]:
    """ds_i / dx_j = s_i (1[i = j] - s_j); so the gradient is s * (g - s.g), without a matrix."""
    s = softmax(x)
    return (s * (g - (s * g).sum(axis=-1, keepdims=True)),)


def softmax_jacobian(x: Any) -> Any:
    """All ds_i / dx_j of one row: diag(s) - s s^T."""
    s = softmax(x)
    return np.diag(s) - np.outer(s, s)


def linear_backward(g: Any, x: Any, w: Any, b: Any) -> tuple[Any, ...]:
    """Y = x w + b: y_ij = sum_k x_ik w_kj + b_j, so g reaches x by w^T, w by x^T, b by a sum."""
    return g @ w.T, x.T @ g, g.sum(axis=0)


LAYERS = {
    "linear": Layer(lambda x, w, b: x @ w + b, linear_backward, inputs=3),
    # max(x, 0) has slope 1 where x > 0, else 0.
    "relu": Layer(lambda x: np.maximum(x, 0), lambda g, x: (g * (x > 0),)),
    # s' = s (1 - s).
    "sigmoid": Layer(sigmoid, lambda g, x: (g * sigmoid(x) * (1 - sigmoid(x)),)),
    # tanh' = 1 - tanh^2.
    "tanh": Layer(np.tanh, lambda g, x: (g * (1 - np.tanh(x) ** 2),)),
    "softmax": Layer(softmax, softmax_backward),
}


# A network 2-3-1.


def network_loss(params: dict[str, Any], x: Any, y: Any) -> Any:
    """Mean squared error of relu(x w1 + b1) w2 + b2."""
    hidden = np.maximum(x @ params["w1"] + params["b1"], 0)
    return np.mean((hidden @ params["w2"] + params["b2"] - y) ** 2)


def network_gradient(params: dict[str, Any], x: Any, y: Any) -> dict[str, Any]:
    """The same backwards: d mean(e^2) / de = 2 e / n, then through linear, ReLU, linear."""
    sums = x @ params["w1"] + params["b1"]
    hidden = np.maximum(sums, 0)
    g = 2 * (hidden @ params["w2"] + params["b2"] - y) / y.size
    g_hidden, g_w2, g_b2 = linear_backward(g, hidden, params["w2"], params["b2"])
    _, g_w1, g_b1 = linear_backward(g_hidden * (sums > 0), x, params["w1"], params["b1"])
    return {"w1": g_w1, "b1": g_b1, "w2": g_w2, "b2": g_b2}


# The checks.


def numerical(f: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    """(f(x + eps) - f(x - eps)) / (2 eps) for every entry of every input."""
    flat, unravel = ravel_pytree(inputs)
    steps = EPSILON * np.eye(len(flat))  # one entry moves at a time
    slopes = [f(*unravel(flat + step)) - f(*unravel(flat - step)) for step in steps]
    return unravel(np.array(slopes) / (2 * EPSILON))


def relative_error(left: Any, right: Any) -> float:
    """The largest |a - b| / (|a| + |b|), where entries below a millionth of the largest are 0."""
    a, b = ravel_pytree(left)[0], ravel_pytree(right)[0]
    size = np.abs(a) + np.abs(b)
    return float(np.max(np.abs(a - b) / np.maximum(size, 1e-6 * size.max())))


def check(name: str, rng: np.random.Generator) -> tuple[float, float]:
    """Largest relative errors of a layer by hand: against `grad`, and against differences."""
    layer, weights = LAYERS[name], rng.normal(size=(ROWS, COLUMNS))
    shapes = (ROWS, COLUMNS), (COLUMNS, COLUMNS), (COLUMNS,)
    inputs = tuple(rng.normal(size=shape) for shape in shapes[: layer.inputs])

    def loss(*inputs: Any) -> Any:
        return np.sum(weights * layer.forward(*inputs))  # its gradient in the output is `weights`

    by_hand = layer.backward(weights, *inputs)
    automatic = fg.grad(loss, argnums=tuple(range(len(inputs))))(*inputs)
    return relative_error(by_hand, automatic), relative_error(by_hand, numerical(loss, inputs))


def check_network(rng: np.random.Generator) -> float:
    """Largest relative error of the network's gradient by hand, against `grad`."""
    shapes = {"w1": (2, 3), "b1": (3,), "w2": (3, 1), "b2": (1,)}
    params = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    x, y = rng.normal(size=(ROWS, 2)), rng.normal(size=(ROWS, 1))
    return relative_error(network_gradient(params, x, y), fg.grad(network_loss)(params, x, y))


# The picture.


def plot(errors: dict[str, tuple[float, float]], path: Path) -> None:
    """Draw three layers with their slopes, the matrix of a softmax, and all errors."""
    figure, ((left, middle, right),) = program.panels(1, 3, 14, 4)
    x = np.linspace(-4, 4, 201)
    for name, color in (("relu", "tab:blue"), ("sigmoid", "tab:orange"), ("tanh", "tab:green")):
        forward, backward, _ = LAYERS[name]
        left.plot(x, forward(x), color=color, label=name)
        left.plot(x, backward(1.0, x)[0], color=color, linestyle="--")
        some = np.linspace(-3.9, 3.9, 14)
        left.plot(some, fg.vmap(fg.grad(forward))(some), ".", color=color)
    left.plot([], [], "k--", label="slope by hand")
    left.plot([], [], "k.", label="slope by grad")
    left.set(title="values and slopes", xlabel="x", ylim=(-1.2, 2.2))
    left.legend(fontsize=8, loc="upper left")
    matrix = softmax_jacobian(np.array([2.0, 1.0, 0.5, 0.0, -1.0]))
    image = middle.imshow(matrix, cmap="coolwarm", vmin=-0.25, vmax=0.25)
    middle.set(title="softmax: diag(s) - s s^T", xlabel="input", ylabel="output")
    middle.grid(False)
    figure.colorbar(image, ax=middle)
    for i, label in enumerate(("by hand and grad", "by hand and differences")):
        values = [max(pair[i], 1e-17) for pair in errors.values()]
        right.semilogx(values, list(errors), "ox"[i], label=label)
    right.set(title="largest relative error", xlabel="leftmost: none", xlim=(1e-18, 1e-3))
    right.invert_yaxis()
    right.legend(fontsize=8, loc="center")
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Gradients of layers by hand.", "layers_by_hand.png", seed=(0, 0)
)


def run(args: argparse.Namespace) -> tuple[dict[str, tuple[float, float]], float]:
    """Check every layer, and the network; returns the errors."""
    rng = np.random.default_rng(args.seed)
    errors = {name: check(name, rng) for name in LAYERS}
    print(f"largest relative error by hand, {ROWS} x {COLUMNS}")
    for name, (automatic, differences) in errors.items():
        print(f"  {name:8} against grad {automatic:.1e}   against differences {differences:.1e}")
    row = rng.normal(size=COLUMNS)
    of_matrix = relative_error(softmax_jacobian(row), fg.jacrev(softmax)(row))
    print(f"  softmax, whole matrix, against jacobian {of_matrix:.1e}")
    of_network = check_network(rng)
    print(f"  network 2-3-1 against grad {of_network:.1e}")
    plot(errors, args.output)
    return errors, of_network


if __name__ == "__main__":
    run(parse_arguments())
