"""Curvature at work: natural gradient, sharpness, and meta-learning.

`second_order.py` minimises with Hessians. Here are three further uses of second derivatives, none
of which forms a matrix:

- The natural gradient F^-1 g of a logistic regression on badly scaled columns. The Fisher matrix is
  F = J^T diag(p (1 - p)) J / n, with J the Jacobian of the logits. A product F v is one `jvp` and
  one `vjp`, and the method of conjugate gradients solves F d = g from such products alone.
- Sharpness, the largest eigenvalue of the Hessian, by power iteration with Hessian-vector products.
  Gradient descent with learning rate r is stable where the sharpness is below 2 / r.
- Meta-learning (Finn et al., 2017): initial parameters from which one step of gradient descent
  fits a new sine. The gradient goes through that step, so it contains a second derivative.

Run it with

    python examples/curvature.py

It prints what each achieves, and writes `curvature.png`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
import program
import training
from funcgrad import lax, nn, optim
from funcgrad.scipy.sparse.linalg import cg

# The natural gradient.


def regression(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of sizes from 0.01 to 10, and labels that a line divides but for some noise."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(0.01, 10.0, 6)
    x = rng.standard_normal((400, 6)) * scales
    return x, (x @ (1 / scales) + 0.5 * rng.standard_normal(400) > 0).astype(float)


def logistic_loss(w: Any, x: Any, y: Any) -> Any:
    """Mean cross-entropy, and a little weight decay."""
    return nn.losses.sigmoid_binary_cross_entropy(x @ w, y).mean() + 1e-6 * fnp.sum(w**2)


def fisher_product(w: Any, v: Any, x: Any) -> Any:
    """J^T diag(p (1 - p)) J v / n, where J is the Jacobian of the logits x w in w."""
    logits, moved = fg.jvp(lambda w: x @ w, (w,), (v,))
    chances = nn.sigmoid(logits)
    _, pull = fg.vjp(lambda w: x @ w, w)
    return pull(chances * (1 - chances) * moved)[0] / len(x) + 1e-6 * v


def natural_gradient(w: Any, slope: Any, x: Any) -> Any:
    """F^-1 slope by conjugate gradients (Hestenes and Stiefel, 1952), from products F v."""
    return cg(lambda v: fisher_product(w, v, x), slope, rtol=1e-8, maxiter=12)[0]


def descend(x: Any, y: Any, steps: int, rate: float, is_natural: bool) -> np.ndarray:
    """The loss before every step along the gradient, or along the natural one."""

    def step(w: Any, _: None) -> tuple[Any, Any]:
        value, slope = fg.value_and_grad(logistic_loss)(w, x, y)
        direction = natural_gradient(w, slope, x) if is_natural else slope
        return w - rate * direction, value

    return fg.jit(lambda w: lax.scan(step, w, length=steps)[1])(np.zeros(x.shape[1]))


# Sharpness.


def predict(params: training.Layers, x: Any) -> Any:
    """The network's output (rows,) for inputs (rows,); tanh units."""
    x = x[:, None]
    for layer in params[:-1]:
        x = fnp.tanh(x @ layer["w"] + layer["b"])
    return (x @ params[-1]["w"] + params[-1]["b"])[:, 0]


def fit_loss(params: training.Layers, x: Any, y: Any) -> Any:
    """Mean squared error."""
    return fnp.mean((predict(params, x) - y) ** 2)


def sharpness(params: training.Layers, x: Any, y: Any, steps: int = 30) -> Any:
    """Largest eigenvalue of the Hessian, by power iteration."""
    flat, unflatten = fg.flatten_util.ravel_pytree(params)
    slope = fg.grad(lambda flat: fit_loss(unflatten(flat), x, y))

    def step(v: Any, _: None) -> tuple[Any, Any]:
        image = fg.jvp(slope, (flat,), (v,))[1]
        return image / fnp.linalg.norm(image), v @ image

    return lax.scan(step, np.full(flat.shape, flat.size**-0.5), length=steps)[1][-1]


def sharpness_of_training(steps: int, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Loss and sharpness before every step of gradient descent."""
    x = np.linspace(-1, 1, 32)
    y, start = np.sin(5 * x), training.dense((1, 24, 24, 1), seed, variance=1.0)
    return training.minimize(
        lambda params, _: fit_loss(params, x, y), start, optim.sgd(rate), steps=steps,
        watch=lambda params, _: sharpness(params, x, y),
    )[1:]  # fmt: skip


# Meta-learning.


def adapted(params: training.Layers, x: Any, y: Any, rate: float) -> training.Layers:
    """Parameters after one step of gradient descent."""
    return fg.tree.map(lambda p, g: p - rate * g, params, fg.grad(fit_loss)(params, x, y))


def tasks(key: Any, count: int) -> tuple[Any, Any]:
    """Twenty points (count, 20) of each of several sines of any amplitude and phase."""
    first, second, third = fg.random.split(key, 3)
    height = fg.random.uniform(first, (count, 1), minval=0.5, maxval=2.0)
    phase = fg.random.uniform(second, (count, 1), maxval=np.pi)
    x = fg.random.uniform(third, (count, 20), minval=-3.0, maxval=3.0)
    return x, height * fnp.sin(x + phase)


def meta_loss(params: training.Layers, key: Any, rate: float) -> Any:
    """Mean loss on ten points of a task, after a step on the ten others."""
    x, y = tasks(key, 16)

    def of_task(x: Any, y: Any) -> Any:
        return fit_loss(adapted(params, x[:10], y[:10], rate), x[10:], y[10:])

    return fnp.mean(fg.vmap(of_task)(x, y))


def meta_train(steps: int, rate: float, seed: int) -> np.ndarray:
    """The losses of Adam, whose gradient goes through the step of each task."""
    start = training.dense((1, 32, 32, 1), seed, variance=1.0)
    keys = fg.random.split(fg.random.key(seed), steps)
    return training.minimize(
        lambda params, key: meta_loss(params, key, rate), start, optim.adam(3e-3), keys
    )[1]


# The picture.


def plot(
    losses: dict[str, np.ndarray], sharp: Any, meta: np.ndarray, rate: float, path: Path
) -> None:
    """Draw the three."""
    figure, ((left, middle, right),) = program.panels(1, 3, 14, 4)
    for name, values in losses.items():
        left.loglog(range(1, len(values) + 1), values, label=name)
    left.set(title="logistic regression", xlabel="step", ylabel="loss")
    left.legend()
    middle.plot(sharp[1], color="tab:purple", label="sharpness")
    middle.axhline(2 / rate, color="black", linestyle=":", label="2 / learning rate")
    middle.set(title="sharpness of a network", xlabel="step", ylabel="largest eigenvalue")
    middle.legend(loc="lower right")
    window = max(1, len(meta) // 25)
    right.semilogy(training.smooth(meta, window), color="tab:green")
    right.set(title="meta-learning, smoothed", xlabel="step", ylabel="loss after one step")
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Three uses of curvature.", "curvature.png", steps=(10, 600), lr=0.2, seed=(0, 0)
)


def run(args: argparse.Namespace) -> tuple[dict[str, np.ndarray], Any, np.ndarray]:
    """Run the three, print, and draw."""
    x, y = regression(args.seed)
    losses = {
        "gradient": descend(x, y, args.steps, 0.02, is_natural=False),
        "natural gradient": descend(x, y, 20, 1.0, is_natural=True),
    }
    for name, values in losses.items():
        print(f"{name:16} loss {values[-1]:.4f} after {len(values)} steps")
    sharp = sharpness_of_training(args.steps, args.lr, args.seed)
    print(
        f"sharpness {sharp[1][0]:.2f} -> {sharp[1][-1]:.2f}, largest {sharp[1].max():.2f}; "
        f"2 / rate is {2 / args.lr:.2f}"
    )
    meta = meta_train(args.steps, 0.05, args.seed)
    tenth = len(meta) // 10
    first, last = np.mean(meta[:tenth]), np.mean(meta[-tenth:])
    print(f"loss on a new sine after one step: {first:.3f} -> {last:.3f}")
    plot(losses, sharp, meta, args.lr, args.output)
    return losses, sharp, meta


if __name__ == "__main__":
    run(parse_arguments())
