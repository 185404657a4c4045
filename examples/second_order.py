"""Second derivatives in use: Newton's method, L-BFGS, and a learned learning rate.

The first part minimises the Rosenbrock function in several ways: with Newton's method and its exact
Hessian, and with L-BFGS, each as one compiled loop; and with SciPy's methods, which get exact
Hessians or Hessian-vector products. The second part trains a linear model for a few steps of
gradient descent and differentiates the final loss with respect to the learning rate, through all
steps. `curvature.py` has the natural gradient, sharpness and meta-learning. Run it with

    python examples/second_order.py

It prints the results and writes `second_order.png`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize

import funcgrad as fg
import funcgrad.numpy as fnp
import program
import training
from funcgrad import lax, optim

START = np.array([-1.2, 1.0])
NEWTON_STEPS = 8
LBFGS_STEPS = 45


# Minimising.


def rosenbrock(x: Any) -> Any:
    """A curved valley; its minimum, 0, is where all coordinates are 1 (Rosenbrock, 1960)."""
    return fnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def hessian_product(f: Callable[[Any], Any], x: Any, v: Any) -> Any:
    """The Hessian times a vector, without the Hessian: the gradient's derivative along it."""
    return fg.jvp(fg.grad(f), (x,), (v,))[1]


def differences_from_scipy(x: np.ndarray, v: np.ndarray) -> dict[str, float]:
    """How far our derivatives are from those that SciPy has written down."""
    pairs = {
        "gradient": (fg.grad(rosenbrock)(x), scipy.optimize.rosen_der(x)),
        "Hessian": (fg.hessian(rosenbrock)(x), scipy.optimize.rosen_hess(x)),
        "Hessian-vector product": (
            hessian_product(rosenbrock, x, v),
            scipy.optimize.rosen_hess_prod(x, v),
        ),
    }
    return {name: float(np.max(np.abs(a - b) / (1 + np.abs(b)))) for name, (a, b) in pairs.items()}


@fg.jit
def newton_path(x: Any) -> Any:
    """Points of Newton's method: each step goes to the minimum of the parabola at the point."""

    def step(x: Any, _: Any) -> tuple[Any, Any]:
        x = x - fnp.linalg.solve(fg.hessian(rosenbrock)(x), fg.grad(rosenbrock)(x))
        return x, x

    return fnp.concatenate([x[None], lax.scan(step, x, length=NEWTON_STEPS)[1]])


@fg.jit
def lbfgs_path(x: Any) -> Any:
    """Points of L-BFGS, which knows gradients only."""
    optimizer = optim.lbfgs()
    value_and_grad = optim.value_and_grad_from_state(rosenbrock)

    def step(carry: tuple[Any, Any], _: Any) -> tuple[tuple[Any, Any], Any]:
        x, state = carry
        value, grad = value_and_grad(x, state=state)
        updates, state = optimizer.update(
            grad, state, x, value=value, grad=grad, value_fn=rosenbrock
        )
        x = optim.apply_updates(x, updates)
        return (x, state), x

    points = lax.scan(step, (x, optimizer.init(x)), length=LBFGS_STEPS)[1]
    return fnp.concatenate([x[None], points])


# A learning rate that is learned.


def regression(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Data whose columns have different sizes, so that no learning rate suits all of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(64, 5)) * np.array([0.3, 0.6, 1.0, 1.4, 2.0])
    return x, x @ rng.normal(size=5) + 0.1 * rng.normal(size=64)


def loss_after_training(log_rate: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """The logarithm of the loss after twenty steps with the learning rate `exp(log_rate)`."""

    def loss(w: Any, _: None = None) -> Any:
        return fnp.mean((x @ w - y) ** 2)

    start, optimizer = np.zeros(x.shape[1]), optim.sgd(fnp.exp(log_rate))
    return fnp.log(loss(training.minimize(loss, start, optimizer, steps=20)[0]))


def learn_rate(
    data: tuple[np.ndarray, np.ndarray], first: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Learning rates along the way, and the losses after training with each.

    Where training diverges the loss is a cliff, whose slope is bounded before Adam sees it.
    """
    optimizer = optim.chain(
        optim.clip(1.0), optim.adam(optim.cosine_decay_schedule(0.25, steps), b1=0.5)
    )
    _, losses, log_rates = training.minimize(
        lambda log_rate, _: loss_after_training(log_rate, *data), np.log(np.float64(first)),
        optimizer, steps=steps, watch=lambda log_rate, _: log_rate,
    )  # fmt: skip
    return np.exp(log_rates), np.exp(losses)


def losses_of(rates: np.ndarray, data: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The losses after training with each of several learning rates, all at once."""
    run = fg.vmap(lambda rate: fnp.exp(loss_after_training(fnp.log(rate), *data)))
    return fg.jit(run)(rates)


# The picture.


def plot(
    newton: np.ndarray,
    lbfgs: np.ndarray,
    learned: tuple[np.ndarray, np.ndarray],
    swept: tuple[np.ndarray, np.ndarray],
    path: Path,
) -> None:
    """Draw both paths on the map of the function, their convergence, and the learning rates."""
    figure, ((left, middle, right),) = program.panels(1, 3, 13, 4)
    a, b = np.meshgrid(np.linspace(-1.7, 1.7, 200), np.linspace(-3.5, 2.2, 200))
    heights = 100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2
    left.contourf(a, b, np.log10(heights + 1e-3), levels=20, cmap="Greys")
    near = np.abs(newton).max(axis=1) < 5
    left.plot(*newton[near].T, marker="o", markersize=4, label="Newton")
    left.plot(*lbfgs.T, marker=".", markersize=4, label="L-BFGS")
    left.plot(1, 1, marker="*", color="tab:red", markersize=12, linestyle="none")
    left.set(title="Rosenbrock's function", xlim=(-1.7, 1.7), ylim=(-3.5, 2.2))
    left.set(xlabel="first coordinate", ylabel="second coordinate")
    left.legend(loc="upper center")
    for points, name in ((newton, "Newton"), (lbfgs, "L-BFGS")):
        values = [max(float(rosenbrock(x)), 1e-32) for x in points]
        middle.semilogy(values, marker=".", label=name)
    middle.set(title="convergence", xlabel="step", ylabel="value of the function")
    middle.legend()
    right.loglog(*swept, color="tab:gray", label="all learning rates")
    right.loglog(*learned, marker=".", color="tab:orange", label="learned")
    right.loglog(learned[0][-1], learned[1][-1], marker="*", markersize=12, color="tab:red")
    right.set(title="loss after training", xlabel="learning rate", ylabel="mean squared error")
    right.set(ylim=(5e-3, 100))
    right.legend()
    left.grid(False)
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Newton, L-BFGS, and a learned learning rate.",
    "second_order.png",
    seed=(0, 0),
    rate_steps=(1, 60),
)


def run(args: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """Minimise and learn; the learned and the best rate, each with the loss after training."""
    rng = np.random.default_rng(args.seed)
    for name, difference in differences_from_scipy(*rng.normal(size=(2, 6))).items():
        print(f"{name:24s} differs from SciPy's by {difference:.1e}")
    newton, lbfgs = newton_path(START), lbfgs_path(START)
    for name, points in (("Newton", newton), ("L-BFGS", lbfgs)):
        print(f"{name:24s} {len(points) - 1:3d} steps, value {float(rosenbrock(points[-1])):.1e}")
    for method in ("trust-exact", "Newton-CG", "BFGS"):
        found = optim.minimize(rosenbrock, START, method=method)
        print(f"{'SciPy ' + method:24s} {found.nit:3d} steps, value {found.fun:.1e}")
    data, rates = regression(args.seed), np.geomspace(1e-3, 1.0, 400)
    learned, losses = learn_rate(data, first=1e-3, steps=args.rate_steps), losses_of(rates, data)
    best = int(np.nanargmin(losses))
    found = {
        "learned rate": (float(learned[0][-1]), float(learned[1][-1])),
        "best of 400": (float(rates[best]), float(losses[best])),
    }
    for name, (rate, loss) in found.items():
        print(f"{name:12} {rate:.4f}, loss after training {loss:.5f}")
    plot(newton, lbfgs, learned, (rates, losses), args.output)
    return found


if __name__ == "__main__":
    run(parse_arguments())
