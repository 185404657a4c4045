"""The No-U-Turn sampler: many chains, each of them one compiled loop that tunes itself.

The model is the one of eight schools (Rubin 1981), whose pupils were coached for a test. A school's
effect was estimated as y_j with the standard error s_j, and

    y_j     ~ Normal(theta_j, s_j)
    theta_j = mu + tau z_j,   z_j ~ Normal(0, 1)
    mu      ~ Normal(0, 5),   tau ~ HalfCauchy(5)

`LogDensity` makes a function of a vector of it. A draw follows a trajectory, forwards or backwards
in time and twice as long each time, until it turns around; one of its points is the next draw,
chosen by its weight. One `while_loop` takes a leapfrog step per iteration, whatever part of a
trajectory it belongs to, so `vmap` over chains wastes little. A `scan` makes the draws. Before, it
tunes the step by dual averaging, and the metric by variances of draws in windows that double. Run
it with

    python examples/nuts.py

It prints posterior means with their Monte-Carlo errors, R-hat and effective sample sizes, and
writes `nuts_schools.png`.

Sources: Hoffman and Gelman, The No-U-Turn sampler (2014); Betancourt, A conceptual introduction to
Hamiltonian Monte Carlo (2017), for weights of points and the criterion; Phan, Pradhan and
Jankowiak, Composable effects (2019), for trajectories without recursion; the Stan reference manual,
for windows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import funcgrad as fg
import program
from bayes import averaged_step, chosen, effective_size, r_hat, restarted, updated_moments
from funcgrad.interop.samplers import LogDensity, positive

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

DEEPEST = 10
"""Trajectories have at most 2 ** DEEPEST steps."""

FIRST, WINDOWS, LAST = 75, (25, 50, 100, 200, 500), 50
"""Iterations of the adaptation: for a first step size, for metrics, for the last step size."""


def log_density(p: dict[str, Any]) -> Any:
    """Of the eight schools, up to a constant."""
    theta = p["mu"] + p["tau"] * p["z"]
    likelihood = -0.5 * np.sum(((EFFECTS - theta) / ERRORS) ** 2)
    prior = -0.5 * (p["mu"] / 5) ** 2 - np.log1p((p["tau"] / 5) ** 2) - 0.5 * np.sum(p["z"] ** 2)
    return likelihood + prior


PARAMS = {"mu": 0.0, "tau": 1.0, "z": np.zeros(len(EFFECTS))}


# A trajectory.


def leapfrog(slope: Callable[[Any], Any], end: dict[str, Any], step: Any, variances: Any) -> Any:
    """One step of dq/dt = variances p, dp/dt = slope(q)."""
    p = end["p"] + step / 2 * end["slope"]
    q = end["q"] + step * variances * p
    value, found = slope(q)
    return {"q": q, "p": p + step / 2 * found, "slope": found}, value


def turns(first: Any, last: Any, total: Any, variances: Any) -> Any:
    """Whether going on at an end of a part of a trajectory would shorten it.

    Of the momenta at its ends, and the sum of all; that counts the ends half.
    """
    middle = variances * (total - (first + last) / 2)
    return (np.sum(first * middle) <= 0) | (np.sum(last * middle) <= 0)


def levels(leaf: Any) -> tuple[Any, Any]:
    """How many parts contain a point and have ended, and how many begin at or before it.

    Parts are binary trees of points: their number is that of the lowest bits that are set, and of
    the other bits that are set, of the number of the point.
    """
    bits = (leaf // 2 ** np.arange(DEEPEST)) % 2
    ended = np.sum(np.cumprod(bits))
    return ended, np.sum(bits) - ended


def make_draw(slope: Callable[[Any], Any]) -> Callable[..., Any]:
    """A draw ``(q, key, step, variances) -> q, what happened`` of the function's density.

    Args:
        slope: The log density at a vector, and its gradient.
    """

    def start(q: Any, key: Any, variances: Any) -> dict[str, Any]:
        p_key, way_key, key = fg.random.split(key, 3)
        p = fg.random.normal(p_key, q.shape) / np.sqrt(variances)
        value, found = slope(q)
        end = {"q": q, "p": p, "slope": found}
        return {
            "ends": (end, end), "now": end, "way": fg.random.bernoulli(way_key) * 2.0 - 1.0,
            "energy": value - 0.5 * np.sum(variances * p**2), "key": key,
            "q": q, "weight": np.zeros(()), "total": p,
            "part": {"q": q, "weight": np.full((), -np.inf), "total": 0 * p},
            "momenta": np.zeros((DEEPEST, len(q))), "totals": np.zeros((DEEPEST, len(q))),
            "leaf": np.zeros((), int), "depth": np.zeros((), int), "count": np.zeros(()),
            "acceptance": np.zeros(()), "diverges": np.array(False), "is_open": np.array(True),
        }  # fmt: skip

    def advance(s: dict[str, Any], step: Any, variances: Any) -> dict[str, Any]:
        key, leaf_key, part_key, way_key = fg.random.split(s["key"], 4)
        now, value = leapfrog(slope, s["now"], step * s["way"], variances)
        gain = value - 0.5 * np.sum(variances * now["p"] ** 2) - s["energy"]
        gain = np.where(np.isnan(gain), -np.inf, gain)
        diverges = gain < -1000

        # The new part of the trajectory, with this point.
        weight = np.logaddexp(s["part"]["weight"], gain)
        is_taken = np.log(fg.random.uniform(leaf_key)) < gain - weight
        total = s["part"]["total"] + now["p"]
        q = np.where(is_taken, now["q"], s["part"]["q"])
        ended, begun = levels(s["leaf"])
        places = np.arange(DEEPEST)
        is_first = (s["leaf"] % 2 == 0) & (places == begun)
        momenta = np.where(is_first[:, None], now["p"], s["momenta"])
        totals = np.where(is_first[:, None], total, s["totals"])
        inner = fg.vmap(turns, in_axes=(0, None, 0, None))(
            momenta, now["p"], total - totals + momenta, variances
        )
        # Parts that end here began at the points that were kept last.
        is_part = (places >= begun) & (places < begun + ended) & (s["leaf"] % 2 == 1)
        fails = diverges | np.any(inner & is_part)
        is_whole = (s["leaf"] + 1 == 2 ** s["depth"]) & ~fails

        # The trajectory, with the part if that is whole.
        joined = np.logaddexp(s["weight"], weight)
        is_new = is_whole & (np.log(fg.random.uniform(part_key)) < weight - s["weight"])
        ends = (
            chosen(is_whole & (s["way"] < 0), now, s["ends"][0]),
            chosen(is_whole & (s["way"] > 0), now, s["ends"][1]),
        )
        whole = s["total"] + total
        turned = turns(ends[0]["p"], ends[1]["p"], whole, variances)
        depth = s["depth"] + is_whole
        way = np.where(is_whole, fg.random.bernoulli(way_key) * 2.0 - 1.0, s["way"])
        part = {"q": q, "weight": weight, "total": total}
        empty = {"q": q, "weight": np.full((), -np.inf), "total": 0 * total}
        return {
            "ends": ends, "energy": s["energy"], "key": key, "way": way, "depth": depth,
            "now": chosen(is_whole, chosen(way < 0, *ends), now),
            "q": np.where(is_new, q, s["q"]),
            "weight": np.where(is_whole, joined, s["weight"]),
            "total": np.where(is_whole, whole, s["total"]),
            "part": chosen(is_whole, empty, part), "momenta": momenta, "totals": totals,
            "leaf": np.where(is_whole, 0, s["leaf"] + 1), "count": s["count"] + 1,
            "acceptance": s["acceptance"] + np.exp(np.minimum(gain, 0.0)),
            "diverges": s["diverges"] | diverges,
            "is_open": ~fails & ~(is_whole & turned) & (depth < DEEPEST),
        }  # fmt: skip

    def draw(q: Any, key: Any, step: Any, variances: Any) -> tuple[Any, dict[str, Any]]:
        found = fg.lax.while_loop(
            lambda s: s["is_open"], lambda s: advance(s, step, variances), start(q, key, variances)
        )
        acceptance = found["acceptance"] / found["count"]
        told = {"acceptance": acceptance, "steps": found["count"], "diverges": found["diverges"]}
        return found["q"], told

    return draw


# A chain.


def make_chain(density: Callable[[Any], Any], draws: int) -> Callable[[Any, Any], dict[str, Any]]:
    """A chain ``(q, key) -> what it drew``: adaptation and draws, one loop.

    Args:
        density: The log density of a vector.
        draws: How many there are after the adaptation.
    """
    draw = make_draw(fg.value_and_grad(density))
    warm_up = FIRST + sum(WINDOWS) + LAST
    ends = FIRST + np.cumsum(WINDOWS)
    total = warm_up + draws
    is_measured = np.isin(np.arange(total), ends - 1)
    is_measuring = (np.arange(total) >= FIRST) & (np.arange(total) < ends[-1])

    def iterate(s: dict[str, Any], given: tuple[Any, ...]) -> tuple[dict[str, Any], Any]:
        key, is_adapting, is_measuring, is_measured = given
        averaging, variances = s["averaging"], s["variances"]
        log_step = np.where(is_adapting, averaging["log_step"], averaging["mean_log_step"])
        q, told = draw(s["q"], key, np.exp(log_step), variances)
        averaged = averaged_step(averaging, told["acceptance"])
        averaging = chosen(is_adapting, averaged, averaging)
        moments = chosen(is_measuring, updated_moments(s["moments"], q), s["moments"])
        n = moments["count"]
        measured = moments["squares"] / np.maximum(n - 1, 1.0)
        measured = (n * measured + 5e-3) / (n + 5)
        fresh = restarted(np.exp(averaging["mean_log_step"]))
        s = {
            "q": q, "variances": np.where(is_measured, measured, variances),
            "averaging": chosen(is_measured, fresh, averaging),
            "moments": chosen(is_measured, fg.tree.map(lambda x: 0 * x, moments), moments),
        }  # fmt: skip
        return s, (q, told)

    def chain(q: Any, key: Any) -> dict[str, Any]:
        state = {
            "q": q,
            "variances": np.ones_like(q),
            "moments": {"count": np.zeros(()), "mean": np.zeros_like(q), "squares": q * 0.0},
            "averaging": restarted(np.full((), 0.1)),
        }
        keys = fg.random.split(key, total)
        given = (keys, np.arange(total) < warm_up, is_measuring, is_measured)
        state, (values, told) = fg.lax.scan(iterate, state, given)
        kept = fg.tree.map(lambda x: x[warm_up:], told)
        return {
            "values": values[warm_up:],
            "acceptance": np.mean(kept["acceptance"]),
            "steps": np.sum(told["steps"]),
            "divergences": np.sum(kept["diverges"]),
        }

    return chain


# The command line.


@dataclass(frozen=True)
class Posterior:
    """Draws (chains, draws, ...) of all parameters by name, and what the chains say."""

    parameters: dict[str, np.ndarray]
    divergences: int

    @property
    def quantities(self) -> dict[str, np.ndarray]:
        """The mean and the deviation of schools, and their effects."""
        mu, tau, z = (self.parameters[name] for name in ("mu", "tau", "z"))
        theta = mu[..., None] + tau[..., None] * z
        effects = {f"theta[{j}]": theta[..., j] for j in range(len(EFFECTS))}
        return {"mu": mu, "tau": tau, **effects}


def sample(density: LogDensity, chains: int, draws: int, seed: int) -> Posterior:
    """Chains from places that are drawn."""
    first, second = fg.random.split(fg.random.key(seed))
    places = fg.random.normal(first, (chains, density.n))
    keys = fg.random.split(second, chains)
    with tqdm(total=2, desc="compiling", unit="stage") as bar:
        run_chains = fg.jit(fg.vmap(make_chain(density, draws))).lower(places, keys).compile()
        bar.update()
        bar.set_description("sampling")
        begin = time.perf_counter()
        found = run_chains(places, keys)
        elapsed = time.perf_counter() - begin
        bar.update()
    steps = int(np.sum(found["steps"]))
    print(f"{chains} chains of {draws} draws in {elapsed:.2f} s,", end=" ")
    print(f"{1e6 * elapsed / steps:.1f} us a gradient, acceptance", end=" ")
    print(np.round(found["acceptance"], 2))
    return Posterior(density.parameters(found["values"]), int(np.sum(found["divergences"])))


def plot(posterior: Posterior, path: Path) -> None:
    """Draw the estimates of the schools, and their effects in the posterior."""
    figure, ((axes,),) = program.panels(1, 1, 7, 4.2)
    theta = np.stack([x for name, x in posterior.quantities.items() if "theta" in name], -1)
    low, middle, high = np.quantile(theta, [0.05, 0.5, 0.95], axis=(0, 1))
    places = np.arange(len(EFFECTS))
    axes.errorbar(places - 0.1, EFFECTS, 1.645 * ERRORS, fmt="x", color="grey", label="estimate")
    axes.errorbar(places + 0.1, middle, [middle - low, high - middle], fmt="o", label="posterior")
    axes.axhline(float(posterior.parameters["mu"].mean()), color="tab:green", linewidth=0.8)
    axes.set(title="effects of coaching, 90 %", xlabel="school", ylabel="points")
    axes.legend()
    program.save(figure, path)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("The No-U-Turn sampler.")
    parser.add_argument(
        "--draws", type=program.whole(10), default=1000, metavar="N", help="of every chain"
    )
    parser.add_argument("--chains", type=program.whole(1), default=4, metavar="N")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    return program.parse(parser, arguments)


def run(args: argparse.Namespace) -> Posterior:
    """Sample, tell, draw."""
    density = LogDensity(log_density, PARAMS, {"tau": positive})
    posterior = sample(density, args.chains, args.draws, args.seed)
    print(f"{'':9}{'mean':>9}{'error':>9}{'deviation':>11}{'R-hat':>8}{'draws':>8}")
    for name, x in posterior.quantities.items():
        size, rhat = effective_size(x[..., None])[0], r_hat(x[..., None])[0]
        deviation = x.std()
        error = deviation / np.sqrt(size)
        print(f"{name:9}{x.mean():9.3f}{error:9.3f}{deviation:11.3f}{rhat:8.4f}{size:8.0f}")
    print(f"{posterior.divergences} divergences")
    plot(posterior, args.out_dir / "nuts_schools.png")
    return posterior


if __name__ == "__main__":
    run(parse_arguments())
