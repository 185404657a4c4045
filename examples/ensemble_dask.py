"""An ensemble on a cluster of Dask: independent work needs no collectives.

The example fits ``a * exp(-b * t) + c`` to a noisy curve, once for every resampling of its points
(the bootstrap), by gradient descent in a compiled loop. The fits are independent, so Dask maps them
over the workers of its local cluster; with `--workers 0`, they run in this process. The spread of
the fits estimates the uncertainty of the parameters. Run it with

    python examples/ensemble_dask.py

It needs `pip install 'dask[distributed]'`, prints the parameters with their standard deviations,
and writes `ensemble.png`. Dask needs nothing special: `concurrent.futures`, joblib and Ray can map
the same function.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import program
from funcgrad import lax, random

TRUTH = np.array([2.0, 1.5, 0.5])
POINTS = 60


def curve(params: Any, t: Any) -> Any:
    """The model."""
    a, b, c = params
    return a * np.exp(-b * t) + c


def measurements(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of the true curve, with noise."""
    t = np.linspace(0.0, 3.0, POINTS)
    return t, curve(TRUTH, t) + 0.1 * random.normal(random.key(seed), (POINTS,))


@fg.jit
def fit(weights: Any, t: Any, y: Any) -> Any:
    """Parameters that fit weighted points: 2,000 steps of gradient descent with momentum."""

    def loss(params: Any) -> Any:
        return np.sum(weights * (curve(params, t) - y) ** 2) / POINTS

    def step(state: Any, _: Any) -> tuple[Any, None]:
        params, speed = state
        speed = 0.9 * speed - 0.05 * fg.grad(loss)(params)
        return (params + speed, speed), None

    start = np.ones(3)
    return lax.scan(step, (start, np.zeros(3)), None, length=2000)[0][0]


def member(number: int, seed: int) -> np.ndarray:
    """The fit of one resampling: its key follows from its number, not from who computes it."""
    t, y = measurements(seed)
    key = random.fold_in(random.key(seed + 1), number)
    drawn = random.randint(key, (POINTS,), 0, POINTS)
    return np.asarray(fit(np.bincount(drawn, minlength=POINTS).astype(float), t, y))


def run(args: argparse.Namespace) -> np.ndarray:
    """The fits of all members, one per row."""
    if not args.workers:
        return np.array([member(i, args.seed) for i in range(args.members)])
    dask = importlib.import_module("dask.distributed")  # pip install 'dask[distributed]'
    options = {"n_workers": args.workers, "threads_per_worker": 1, "dashboard_address": None}
    with dask.LocalCluster(**options) as cluster, dask.Client(cluster) as client:
        fits = client.map(member, range(args.members), seed=args.seed)
        return np.array(client.gather(fits))


def plot(fits: np.ndarray, seed: int, path: Path) -> None:
    """The points, and the curves of all members."""
    t, y = measurements(seed)
    figure, ((axes,),) = program.panels(1, 1, 6, 3.5)
    axes.plot(t, curve(fits.T[:, None], t[:, None]), color="tab:blue", alpha=0.2, linewidth=1)
    axes.plot(t, y, "k.")
    axes.set(title=f"{len(fits)} fits of resampled points", xlabel="t", ylabel="y")
    program.save(figure, path)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = program.parser("Bootstrap a fit on a cluster of Dask.", "ensemble.png")
    parser.add_argument("--members", type=program.whole(1), default=64)
    parser.add_argument("--workers", type=program.whole(0), default=2, help="0: without Dask")
    parser.add_argument("--seed", type=program.whole(0), default=0)
    return program.parse(parser, arguments)


def main(arguments: list[str] | None = None) -> np.ndarray:
    """Entry point."""
    args = parse_arguments(arguments)
    fits = run(args)
    for name, mean, deviation in zip("abc", fits.mean(0), fits.std(0), strict=True):
        print(f"{name} = {mean:.3f} +- {deviation:.3f}")
    plot(fits, args.seed, args.output)
    return fits


if __name__ == "__main__":
    main()
