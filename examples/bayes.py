"""Bayesian regression with groups, by Hamiltonian Monte Carlo: every chain is one compiled loop.

The model explains the progression of diabetes in 442 patients (scikit-learn's data) by blood
pressure, two serum measurements and sex, and by an intercept for each of twelve groups of patients
with similar body-mass index:

    y_i   ~ Normal(a[group_i] + x_i' beta, sigma)
    a_g   = mu + tau z_g,   z_g ~ Normal(0, 1)
    mu, beta_k ~ Normal(0, 1),   tau ~ HalfNormal(0.5),   sigma ~ HalfNormal(1)

All variables are standardised. The log density is written in plain NumPy. A chain is one `scan`. It
takes leapfrog steps with `grad`, adapts the step size by Nesterov's dual averaging, estimates
variances for the metric, and then draws samples. `vmap` runs four chains. Run it with

    python examples/bayes.py

It prints posterior means with their Monte-Carlo errors and R-hat, and writes `bayes_traces.png` and
`bayes_posterior.png`.

Sources: Neal, MCMC using Hamiltonian dynamics (2011); Hoffman and Gelman, The No-U-Turn sampler
(2014), for the step size; Vehtari et al., Rank-normalization, folding, and localization (2021), for
split R-hat and the effective sample size.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from tqdm import tqdm

import funcgrad as fg
import program

GROUPED_BY, COVARIATES = "bmi", ("bp", "s5", "s3", "sex")
GROUPS = 12
CHAINS = 4
LEAPFROG_STEPS = 12
TARGET_ACCEPTANCE = 0.8

# How many iterations the adaptation takes: for a first step size, for the metric, for the last
# step size.
FIRST, METRIC, LAST = 100, 400, 250
WARM_UP = FIRST + METRIC + LAST

NAMES = ["mu", "tau", "sigma", *COVARIATES, *(f"a[{g}]" for g in range(GROUPS))]


# The data and the model.


@dataclass(frozen=True)
class Data:
    """Covariates (442, 4) and progression (442,), standardised, and the group of each (442,)."""

    x: np.ndarray
    y: np.ndarray
    group: np.ndarray


def load_data() -> Data:
    """Groups are of equal size, by rank."""
    found = load_diabetes()
    columns = dict(zip(found.feature_names, found.data.T, strict=True))
    rank = np.argsort(np.argsort(columns[GROUPED_BY], kind="stable"), kind="stable")
    x = np.stack([columns[name] for name in COVARIATES], axis=1)
    return Data(
        (x - x.mean(axis=0)) / x.std(axis=0),
        (found.target - found.target.mean()) / found.target.std(),
        rank * GROUPS // len(rank),
    )


def make_log_density(data: Data) -> Callable[[dict[str, Any]], Any]:
    """The log density of the parameters, up to a constant.

    Scales are parametrised by their logarithms, whose Jacobian adds the logarithms themselves.
    """
    is_member = (data.group[:, None] == np.arange(GROUPS)).astype(float)

    def log_density(p: dict[str, Any]) -> Any:
        tau, sigma = np.exp(p["log_tau"]), np.exp(p["log_sigma"])
        intercepts = p["mu"] + tau * p["z"]
        errors = (data.y - is_member @ intercepts - data.x @ p["beta"]) / sigma
        likelihood = -0.5 * np.sum(errors**2) - len(data.y) * p["log_sigma"]
        prior = -0.5 * (p["mu"] ** 2 + np.sum(p["beta"] ** 2) + np.sum(p["z"] ** 2))
        scales = -0.5 * ((tau / 0.5) ** 2 + sigma**2) + p["log_tau"] + p["log_sigma"]
        return likelihood + prior + scales

    return log_density


PARAMS: dict[str, Any] = {
    "mu": np.zeros(()),
    "log_tau": np.zeros(()),
    "log_sigma": np.zeros(()),
    "beta": np.zeros(len(COVARIATES)),
    "z": np.zeros(GROUPS),
}


def quantities(p: dict[str, Any]) -> Any:
    """What one wants to know, in the order of `NAMES`."""
    mu, tau = p["mu"], np.exp(p["log_tau"])
    scalars = np.stack([mu, tau, np.exp(p["log_sigma"])])
    return np.concatenate([scalars, p["beta"], mu + tau * p["z"]])


# Hamiltonian Monte Carlo.


def leapfrog(
    slope: Callable[[Any], Any], q: Any, p: Any, step: Any, variances: Any
) -> tuple[Any, Any]:
    """Follow dq/dt = variances p, dp/dt = slope(q) for `LEAPFROG_STEPS` steps."""

    def advance(_: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        q, p = state
        q = q + step * variances * p
        return q, p + step * slope(q)

    q, p = fg.lax.fori_loop(0, LEAPFROG_STEPS, advance, (q, p + step / 2 * slope(q)))
    return q, p - step / 2 * slope(q)


def averaged_step(state: dict[str, Any], acceptance: Any) -> dict[str, Any]:
    """Nesterov's dual averaging: steps that are accepted as often as wanted, on average."""
    count = state["count"] + 1
    error = state["error"] + (TARGET_ACCEPTANCE - acceptance - state["error"]) / (count + 10)
    log_step = np.log(10 * state["first_step"]) - np.sqrt(count) / 0.05 * error
    weight = count**-0.75
    mean = weight * log_step + (1 - weight) * state["mean_log_step"]
    return {**state, "count": count, "error": error, "log_step": log_step, "mean_log_step": mean}


def restarted(step: Any) -> dict[str, Any]:
    """The beginning of the averaging."""
    zero, log_step = np.zeros(()), np.log(step)
    return {
        "first_step": step,
        "count": zero,
        "error": zero,
        "log_step": log_step,
        "mean_log_step": log_step,
    }


def chosen(condition: Any, one: Any, other: Any) -> Any:
    """One tree or another."""
    return fg.tree.map(lambda a, b: np.where(condition, a, b), one, other)


def updated_moments(moments: dict[str, Any], q: Any) -> dict[str, Any]:
    """Welford's running mean and sum of squares."""
    count = moments["count"] + 1
    mean = moments["mean"] + (q - moments["mean"]) / count
    squares = moments["squares"] + (q - moments["mean"]) * (q - mean)
    return {"count": count, "mean": mean, "squares": squares}


def make_chain(
    log_density: Callable[[Any], Any], describe: Callable[[Any], Any], draws: int
) -> Callable[[Any, Any], dict[str, Any]]:
    """A chain `(q, key) -> what it drew`: adaptation and draws, one loop."""
    value_and_slope = fg.value_and_grad(log_density)

    def slope(q: Any) -> Any:
        return value_and_slope(q)[1]

    def iterate(state: dict[str, Any], given: tuple[Any, Any]) -> tuple[dict[str, Any], Any]:
        i, key = given
        momentum_key, jitter_key, accept_key = fg.random.split(key, 3)
        q, variances, averaging = state["q"], state["variances"], state["averaging"]
        is_adapting = i < WARM_UP
        log_step = np.where(is_adapting, averaging["log_step"], averaging["mean_log_step"])
        # A step that varies visits orbits of which a fixed one would return to its beginning.
        step = np.exp(log_step) * fg.random.uniform(jitter_key, minval=0.8, maxval=1.2)
        p = fg.random.normal(momentum_key, q.shape) / np.sqrt(variances)
        new_q, new_p = leapfrog(slope, q, p, step, variances)
        before = log_density(q) - 0.5 * np.sum(variances * p**2)
        after = log_density(new_q) - 0.5 * np.sum(variances * new_p**2)
        change = np.where(np.isfinite(after), after - before, -np.inf)
        acceptance = np.exp(np.minimum(change, 0.0))
        q = np.where(fg.random.uniform(accept_key) < acceptance, new_q, q)

        averaging = chosen(is_adapting, averaged_step(averaging, acceptance), averaging)
        is_measuring = (i >= FIRST) & (i < FIRST + METRIC)
        moments = chosen(is_measuring, updated_moments(state["moments"], q), state["moments"])
        is_measured = i == FIRST + METRIC - 1
        measured = moments["squares"] / np.maximum(moments["count"] - 1, 1.0)
        variances = np.where(is_measured, measured, variances)
        first_step = np.exp(averaging["mean_log_step"])
        averaging = chosen(is_measured, restarted(first_step), averaging)
        state = {"q": q, "variances": variances, "moments": moments, "averaging": averaging}
        return state, (describe(q), acceptance, change < -1000)

    def chain(q: Any, key: Any) -> dict[str, Any]:
        state = {
            "q": q,
            "variances": np.ones_like(q),
            "moments": {"count": np.zeros(()), "mean": np.zeros_like(q), "squares": q * 0.0},
            "averaging": restarted(np.full((), 0.1)),
        }
        total = WARM_UP + draws
        given = (np.arange(total), fg.random.split(key, total))
        state, (values, acceptance, diverged) = fg.lax.scan(iterate, state, given)
        return {
            "values": values[WARM_UP:],
            "acceptance": np.mean(acceptance[WARM_UP:]),
            "divergences": np.sum(diverged[WARM_UP:]),
            "step": np.exp(state["averaging"]["mean_log_step"]),
        }

    return chain


# Diagnostics.


def split_halves(values: np.ndarray) -> np.ndarray:
    """Every chain (chains, draws, ...) as two."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def r_hat(values: np.ndarray) -> np.ndarray:
    """Split R-hat of each quantity of chains (chains, draws, quantities)."""
    halves = split_halves(values)
    draws = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = draws * halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt(((draws - 1) / draws * within + between / draws) / within)


def effective_size(values: np.ndarray) -> np.ndarray:
    """How many independent draws are worth as much, by Geyer's initial monotone sequence."""
    halves = split_halves(values)
    count, draws, _ = halves.shape
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * draws, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :draws].mean(axis=0) / draws
    within = covariance[0] * draws / (draws - 1)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    correlation = 1 - (within - covariance) / (covariance[0] + between)
    correlation[0] = 1.0
    pairs = correlation[: draws // 2 * 2].reshape(draws // 2, 2, -1).sum(axis=1)
    pairs = np.where(np.minimum.accumulate(pairs > 0, axis=0), pairs, 0.0)
    time = 2 * np.minimum.accumulate(pairs, axis=0).sum(axis=0) - 1
    return count * draws / np.maximum(time, 1 / np.log10(count * draws))


@dataclass(frozen=True)
class Posterior:
    """Draws (chains, draws, quantities) in the order of `NAMES`, and what they are worth."""

    draws: np.ndarray
    divergences: int

    @property
    def mean(self) -> np.ndarray:
        return self.draws.mean(axis=(0, 1))

    @property
    def deviation(self) -> np.ndarray:
        return self.draws.std(axis=(0, 1))

    @property
    def error(self) -> np.ndarray:
        """The standard error of the means, of a finite number of draws."""
        return self.deviation / np.sqrt(effective_size(self.draws))

    @property
    def r_hat(self) -> np.ndarray:
        return r_hat(self.draws)


# The pictures.


def plot_traces(posterior: Posterior, path: Path) -> None:
    """Draw the chains of a few quantities, and their distributions chain by chain."""
    shown = ["mu", "tau", "sigma", COVARIATES[0], f"a[{GROUPS - 1}]"]
    height = 1.7 * len(shown)
    figure, axes = program.panels(len(shown), 2, 10, height, width_ratios=(1, 3))
    for name, (left, right) in zip(shown, axes, strict=True):
        for chain in posterior.draws[:, :, NAMES.index(name)]:
            left.hist(chain, bins=40, histtype="step", density=True)
            right.plot(chain, linewidth=0.3)
        left.set_ylabel(name)
        left.set_yticks([])
        right.set_xlim(0, posterior.draws.shape[1])
    left.set_xlabel("value")
    right.set_xlabel("iteration")
    program.save(figure, path)


def plot_posterior(posterior: Posterior, data: Data, path: Path) -> None:
    """Draw intercepts beside the plain means of their groups, and the slopes."""
    figure, ((left, right),) = program.panels(1, 2, 10, 4.2, width_ratios=(3, 2))
    low, high = np.quantile(posterior.draws, [0.05, 0.95], axis=(0, 1))
    mean, places = posterior.mean, np.arange(GROUPS)
    first = NAMES.index("a[0]")
    spread = np.stack([mean - low, high - mean])
    plain = [data.y[data.group == g].mean() for g in places]
    left.plot(places, plain, "x", color="grey", label="mean of the group")
    left.errorbar(places, mean[first:], spread[:, first:], fmt="o", label="intercept, 90 %")
    left.axhline(mean[0], color="tab:green", linewidth=0.8, label="mu")
    left.set(title="intercepts", xlabel="group, by body-mass index", ylabel="progression")
    left.legend()
    slopes = slice(NAMES.index(COVARIATES[0]), first)
    right.errorbar(mean[slopes], COVARIATES, xerr=spread[:, slopes], fmt="o")
    right.axvline(0, color="black", linewidth=0.8)
    right.set(title="slopes, 90 %", xlabel="change per standard deviation")
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("A hierarchical regression by HMC.")
    parser.add_argument(
        "--draws", type=program.whole(10), default=2000, metavar="N", help="of every chain"
    )
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    return program.parse(parser, arguments)


def sample(data: Data, draws: int, seed: int) -> Posterior:
    """Four chains from four places."""
    start, unravel = fg.flatten_util.ravel_pytree(PARAMS)
    of_params = make_log_density(data)
    chain = make_chain(lambda q: of_params(unravel(q)), lambda q: quantities(unravel(q)), draws)
    first, second = fg.random.split(fg.random.key(seed))
    places = fg.random.normal(first, (CHAINS, len(start)))
    keys = fg.random.split(second, CHAINS)
    with tqdm(total=2, desc="compiling", unit="stage") as bar:
        run_chains = fg.jit(fg.vmap(chain)).lower(places, keys).compile()
        bar.update()
        bar.set_description("sampling")
        begin = time.perf_counter()
        found = run_chains(places, keys)
        elapsed = time.perf_counter() - begin
        bar.update()
    slopes = CHAINS * (WARM_UP + draws) * (LEAPFROG_STEPS + 2)
    print(f"{CHAINS} chains of {WARM_UP} + {draws} iterations in {elapsed:.2f} s,", end=" ")
    print(f"{1e6 * elapsed / slopes:.1f} us a gradient")
    print("acceptance", np.round(found["acceptance"], 2), "steps", np.round(found["step"], 3))
    return Posterior(found["values"], int(np.sum(found["divergences"])))


def run(args: argparse.Namespace) -> Posterior:
    """Sample, tell, draw."""
    data = load_data()
    posterior = sample(data, args.draws, args.seed)
    print(f"{'':8}{'mean':>10}{'error':>10}{'deviation':>11}{'R-hat':>8}")
    columns = (posterior.mean, posterior.error, posterior.deviation, posterior.r_hat)
    for name, mean, error, deviation, rhat in zip(NAMES, *columns, strict=True):
        print(f"{name:8}{mean:10.4f}{error:10.4f}{deviation:11.4f}{rhat:8.4f}")
    print(f"{posterior.divergences} divergences, largest R-hat {posterior.r_hat.max():.4f}")
    plot_traces(posterior, args.out_dir / "bayes_traces.png")
    plot_posterior(posterior, data, args.out_dir / "bayes_posterior.png")
    return posterior


if __name__ == "__main__":
    run(parse_arguments())
