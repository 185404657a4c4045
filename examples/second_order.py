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
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from matplotlib.figure import Figure

import funcgrad as fg
import funcgrad.numpy as fnp
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


class Training(NamedTuple):
    """A linear regression, and how it is trained."""

    x: np.ndarray
    y: np.ndarray
    steps: int = 20


def make_training(seed: int) -> Training:
    """Data whose columns have different sizes, so that no learning rate suits all of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(64, 5)) * np.array([0.3, 0.6, 1.0, 1.4, 2.0])
    return Training(x, x @ rng.normal(size=5) + 0.1 * rng.normal(size=64))


def loss_after_training(log_rate: Any, training: Training) -> Any:
    """The logarithm of the loss after all steps with the learning rate `exp(log_rate)`."""
    optimizer = optim.sgd(fnp.exp(log_rate))

    def loss(w: Any) -> Any:
        return fnp.mean((training.x @ w - training.y) ** 2)

    def step(carry: tuple[Any, Any], _: Any) -> tuple[tuple[Any, Any], None]:
        w, state = carry
        updates, state = optimizer.update(fg.grad(loss)(w), state)
        return (optim.apply_updates(w, updates), state), None

    w = np.zeros(training.x.shape[1])
    (w, _), _ = lax.scan(step, (w, optimizer.init(w)), length=training.steps)
    return fnp.log(loss(w))


def learn_rate(training: Training, first: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Learning rates along the way, and the losses after training with each.

    Where training diverges the loss is a cliff, whose slope is bounded before Adam sees it.
    """
    optimizer = optim.chain(
        optim.clip(1.0), optim.adam(optim.cosine_decay_schedule(0.25, steps), b1=0.5)
    )

    def step(carry: tuple[Any, Any], _: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        log_rate, state = carry
        loss, slope = fg.value_and_grad(loss_after_training)(log_rate, training)
        updates, state = optimizer.update(slope, state)
        return (optim.apply_updates(log_rate, updates), state), (fnp.exp(log_rate), fnp.exp(loss))

    start = np.log(np.float64(first))
    return fg.jit(lambda c: lax.scan(step, c, length=steps)[1])((start, optimizer.init(start)))


def losses_of(rates: np.ndarray, training: Training) -> np.ndarray:
    """The losses after training with each of several learning rates, all at once."""
    run = fg.vmap(lambda rate: fnp.exp(loss_after_training(fnp.log(rate), training)))
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
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    a, b = np.meshgrid(np.linspace(-1.7, 1.7, 200), np.linspace(-3.5, 2.2, 200))
    heights = 100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2
    left.contourf(a, b, np.log10(heights + 1e-3), levels=20, cmap="Greys")
    near = np.abs(newton).max(axis=1) < 5
    left.plot(*newton[near].T, marker="o", markersize=4, label="Newton")
    left.plot(*lbfgs.T, marker=".", markersize=4, label="L-BFGS")
    left.plot(1, 1, marker="*", color="tab:red", markersize=12, linestyle="none")
    left.set(title="Rosenbrock's function", xlim=(-1.7, 1.7), ylim=(-3.5, 2.2))
    left.legend(loc="upper center")
    for points, name in ((newton, "Newton"), (lbfgs, "L-BFGS")):
        values = [max(float(rosenbrock(x)), 1e-32) for x in points]
        middle.semilogy(values, marker=".", label=name)
    middle.set(title="convergence", xlabel="step", ylabel="value")
    middle.legend()
    right.loglog(*swept, color="tab:gray", label="all learning rates")
    right.loglog(*learned, marker=".", color="tab:orange", label="learned")
    right.loglog(learned[0][-1], learned[1][-1], marker="*", markersize=12, color="tab:red")
    right.set(title="loss after training", xlabel="learning rate", ylim=(5e-3, 100))
    right.legend()
    for axes in (middle, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = argparse.ArgumentParser(description="Newton, L-BFGS, and a learned learning rate.")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the data")
    parser.add_argument("--rate-steps", type=int, default=60, metavar="N")
    parser.add_argument(
        "--out-dir", type=Path, default=Path(), metavar="FOLDER", help="where the picture goes"
    )
    args = parser.parse_args(arguments)
    if args.rate_steps < 1 or args.seed < 0:
        parser.error("--rate-steps must be at least 1, and --seed at least 0")
    try:
        args.out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --out-dir: {error}")
    return args


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    args = parse_arguments(arguments)
    rng = np.random.default_rng(args.seed)
    for name, difference in differences_from_scipy(*rng.normal(size=(2, 6))).items():
        print(f"{name:24s} differs from SciPy's by {difference:.1e}")
    newton, lbfgs = newton_path(START), lbfgs_path(START)
    for name, points in (("Newton", newton), ("L-BFGS", lbfgs)):
        print(f"{name:24s} {len(points) - 1:3d} steps, value {float(rosenbrock(points[-1])):.1e}")
    for method in ("trust-exact", "Newton-CG", "BFGS"):
        found = optim.minimize(rosenbrock, START, method=method)
        print(f"{'SciPy ' + method:24s} {found.nit:3d} steps, value {found.fun:.1e}")
    training = make_training(args.seed)
    learned = learn_rate(training, first=1e-3, steps=args.rate_steps)
    rates = np.geomspace(1e-3, 1.0, 400)
    losses = losses_of(rates, training)
    best = int(np.nanargmin(losses))
    print(f"learned rate {learned[0][-1]:.4f}, loss after training {learned[1][-1]:.5f}")
    print(f"best of 400  {rates[best]:.4f}, loss after training {losses[best]:.5f}")
    plot(newton, lbfgs, learned, (rates, losses), args.out_dir / "second_order.png")
    print(f"wrote {args.out_dir / 'second_order.png'}")


if __name__ == "__main__":
    main()
