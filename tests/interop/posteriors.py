"""Posteriors of many classes, as plain NumPy functions, with data that seeded generators make.

The models are those of posteriordb's classes: regressions, hierarchies, Gaussian processes, hidden
Markov models, differential equations, time series, item response, mixtures, survival. A model is a
function of a generator: it makes data, and gives the log density of its parameters up to a
constant, parameters (whose values do not matter), and their constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.interop.samplers import LogDensity, interval, ordered, positive, simplex
from funcgrad.scipy import special

Made = tuple[Callable[[Any], Any], dict[str, Any], dict[str, Any]]
MODELS: dict[str, Callable[[np.random.Generator], Made]] = {}


def model(make: Callable[[np.random.Generator], Made]) -> Callable[[np.random.Generator], Made]:
    """Register a model."""
    MODELS[make.__name__] = make
    return make


def made(name: str) -> Made:
    """The log density of a model, its parameters and their constraints."""
    return MODELS[name](np.random.default_rng(sum(map(ord, name))))


def density(name: str) -> LogDensity:
    """The log density of a model, of a vector."""
    return LogDensity(*made(name))


def normal(x: Any, mean: Any = 0.0, scale: Any = 1.0) -> Any:
    return np.sum(-0.5 * ((x - mean) / scale) ** 2 - np.log(scale))


def half_cauchy(x: Any, scale: float = 1.0) -> Any:
    return np.sum(-np.log1p((x / scale) ** 2))


def student(x: Any, nu: Any, mean: Any, scale: Any) -> Any:
    z = (x - mean) / scale
    constant = special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2) - 0.5 * np.log(nu)
    return np.sum(constant - np.log(scale) - (nu + 1) / 2 * np.log1p(z**2 / nu))


def bernoulli(y: Any, logit: Any) -> Any:
    return np.sum(y * logit - np.logaddexp(0.0, logit))


def poisson(y: Any, log_rate: Any) -> Any:
    return np.sum(y * log_rate - np.exp(log_rate))


def regressors(rng: np.random.Generator, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_normal((n, k))
    return x, x @ np.linspace(-1, 1, k)


# Regressions.


@model
def linear(rng):
    x, mean = regressors(rng, 100, 3)
    y = mean + rng.standard_normal(100)

    def log_density(p):
        return normal(y, p["a"] + x @ p["b"], p["s"]) + normal(p["b"]) - p["s"]

    return log_density, {"a": 0.0, "b": np.zeros(3), "s": 1.0}, {"s": positive}


@model
def interaction(rng):
    x, mean = regressors(rng, 80, 2)
    y = mean + x[:, 0] * x[:, 1] + rng.standard_normal(80)

    def log_density(p):
        b = p["b"]
        mean = b[0] + b[1] * x[:, 0] + b[2] * x[:, 1] + b[3] * x[:, 0] * x[:, 1]
        return normal(y, mean, p["s"]) + half_cauchy(p["s"], 2.5)

    return log_density, {"b": np.zeros(4), "s": 1.0}, {"s": positive}


@model
def robust(rng):
    x, mean = regressors(rng, 70, 3)
    y = mean + rng.standard_t(3, 70)

    def log_density(p):
        prior = normal(p["b"], 0.0, 2.0) - 0.1 * p["nu"] - p["s"]
        return student(y, p["nu"], x @ p["b"], p["s"]) + prior

    parameters = {"b": np.zeros(3), "nu": 4.0, "s": 1.0}
    return log_density, parameters, {"nu": positive, "s": positive}


@model
def logistic(rng):
    x, logit = regressors(rng, 120, 4)
    y = (rng.random(120) < special.expit(logit)) * 1.0
    return lambda p: bernoulli(y, x @ p["b"]) + normal(p["b"], 0.0, 2.5), {"b": np.zeros(4)}, {}


@model
def probit(rng):
    x, mean = regressors(rng, 90, 3)
    y = mean + rng.standard_normal(90) > 0
    sign = 2.0 * y - 1

    def log_density(p):
        return np.sum(special.log_ndtr(sign * (x @ p["b"]))) + normal(p["b"])

    return log_density, {"b": np.zeros(3)}, {}


@model
def counts(rng):
    x, rate = regressors(rng, 90, 3)
    y = rng.poisson(np.exp(rate)) * 1.0

    def log_density(p):
        return poisson(y, p["a"] + x @ p["b"]) + normal(p["b"]) + normal(p["a"])

    return log_density, {"a": 0.0, "b": np.zeros(3)}, {}


@model
def overdispersed_counts(rng):
    x, rate = regressors(rng, 60, 2)
    y = rng.poisson(np.exp(rate) * rng.gamma(2.0, 0.5, 60)) * 1.0

    def log_density(p):
        eta, phi = x @ p["b"], p["phi"]
        choose = special.gammaln(y + phi) - special.gammaln(phi)
        terms = choose + y * eta - (y + phi) * np.logaddexp(eta, np.log(phi)) + phi * np.log(phi)
        return np.sum(terms) + normal(p["b"]) - phi

    return log_density, {"b": np.zeros(2), "phi": 1.0}, {"phi": positive}


@model
def zero_inflated_counts(rng):
    y = rng.poisson(3.0, 80) * (rng.random(80) < 0.7) * 1.0

    def log_density(p):
        rate, zero = p["rate"], p["zero"]
        some = np.log1p(-zero) + y * np.log(rate) - rate
        none = np.logaddexp(np.log(zero), np.log1p(-zero) - rate)
        return np.sum(np.where(y == 0, none, some)) - rate

    constraints = {"rate": positive, "zero": interval(0.0, 1.0)}
    return log_density, {"rate": 1.0, "zero": 0.5}, constraints


@model
def shares(rng):
    x, logit = regressors(rng, 60, 2)
    mean = special.expit(logit)
    y = np.clip(rng.beta(5 * mean, 5 * (1 - mean)), 1e-3, 1 - 1e-3)

    def log_density(p):
        m = special.expit(x @ p["b"])
        a, b = m * p["phi"], (1 - m) * p["phi"]
        terms = (a - 1) * np.log(y) + (b - 1) * np.log1p(-y) - special.betaln(a, b)
        return np.sum(terms) + normal(p["b"]) - 0.1 * p["phi"]

    return log_density, {"b": np.zeros(2), "phi": 5.0}, {"phi": positive}


@model
def durations(rng):
    x, rate = regressors(rng, 60, 2)
    y = rng.gamma(2.0, np.exp(rate))

    def log_density(p):
        mean, a = np.exp(x @ p["b"]), p["shape"]
        terms = a * np.log(a / mean) - special.gammaln(a) + (a - 1) * np.log(y) - a * y / mean
        return np.sum(terms) + normal(p["b"]) - a

    return log_density, {"b": np.zeros(2), "shape": 1.0}, {"shape": positive}


@model
def ordinal(rng):
    x, mean = regressors(rng, 80, 2)
    y = np.digitize(mean + rng.logistic(size=80), [-1.0, 0.0, 1.0])

    def log_density(p):
        eta, cuts = x @ p["b"], p["cuts"]
        above = special.expit(eta[:, None] - cuts)
        edge = np.ones((80, 1))
        share = np.concatenate([edge, above], 1) - np.concatenate([above, 0 * edge], 1)
        return np.sum(np.log(share[np.arange(80), y])) + normal(p["b"]) + normal(cuts, 0.0, 2.0)

    return log_density, {"b": np.zeros(2), "cuts": np.array([-1.0, 0, 1])}, {"cuts": ordered}


@model
def categories(rng):
    x, _ = regressors(rng, 90, 3)
    y = np.argmax(x @ rng.standard_normal((3, 4)) + rng.gumbel(size=(90, 4)), 1)

    def log_density(p):
        logits = x @ p["b"]
        logits = logits - special.logsumexp(logits, axis=1)[:, None]
        return np.sum(logits[np.arange(90), y]) + normal(p["b"])

    return log_density, {"b": np.zeros((3, 4))}, {}


@model
def horseshoe(rng):
    x, _ = regressors(rng, 50, 12)
    y = 2 * x[:, 0] + rng.standard_normal(50)

    def log_density(p):
        b = p["z"] * p["local"] * p["tau"]
        prior = normal(p["z"]) + half_cauchy(p["local"]) + half_cauchy(p["tau"], 0.1)
        return normal(y, x @ b, p["s"]) + prior - p["s"]

    parameters = {"z": np.ones(12), "local": np.ones(12), "tau": 1.0, "s": 1.0}
    return log_density, parameters, dict.fromkeys(("local", "tau", "s"), positive)


@model
def errors_in_variables(rng):
    truth = rng.standard_normal(40)
    x, y = truth + 0.3 * rng.standard_normal(40), 2 * truth + 0.5 * rng.standard_normal(40)

    def log_density(p):
        seen = normal(x, p["t"], 0.3) + normal(y, p["a"] + p["b"] * p["t"], p["s"])
        return seen + normal(p["t"]) - p["s"]

    return log_density, {"t": np.zeros(40), "a": 0.0, "b": 1.0, "s": 1.0}, {"s": positive}


@model
def growth(rng):
    age = np.linspace(1, 30, 27)
    y = 2.6 - 0.97 * 0.87**age + 0.1 * rng.standard_normal(27)

    def log_density(p):
        return normal(y, p["a"] - p["b"] * p["r"] ** age, p["s"]) - p["a"] - p["b"] - p["s"]

    constraints = {"a": positive, "b": positive, "r": interval(0.5, 1.0), "s": positive}
    return log_density, {"a": 1.0, "b": 1.0, "r": 0.8, "s": 1.0}, constraints


# Hierarchies.


EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


@model
def schools_centered(rng):
    def log_density(p):
        prior = normal(p["theta"], p["mu"], p["tau"]) + normal(p["mu"], 0.0, 5.0)
        return normal(EFFECTS, p["theta"], ERRORS) + prior + half_cauchy(p["tau"], 5.0)

    return log_density, {"mu": 0.0, "tau": 1.0, "theta": np.zeros(8)}, {"tau": positive}


@model
def schools_noncentered(rng):
    def log_density(p):
        prior = normal(p["z"]) + normal(p["mu"], 0.0, 5.0) + half_cauchy(p["tau"], 5.0)
        return normal(EFFECTS, p["mu"] + p["tau"] * p["z"], ERRORS) + prior

    return log_density, {"mu": 0.0, "tau": 1.0, "z": np.zeros(8)}, {"tau": positive}


@model
def radon(rng):
    county, floor = rng.integers(0, 20, 150), rng.integers(0, 2, 150) * 1.0
    y = 1.3 + 0.3 * rng.standard_normal(20)[county] - 0.7 * floor + rng.standard_normal(150)

    def log_density(p):
        a = p["mu"] + p["tau"] * p["z"]
        prior = normal(p["z"]) + normal(p["mu"]) + normal(p["b"]) - p["tau"] - p["s"]
        return normal(y, a[county] + p["b"] * floor, p["s"]) + prior

    parameters = {"mu": 0.0, "tau": 1.0, "z": np.zeros(20), "b": 0.0, "s": 1.0}
    return log_density, parameters, {"tau": positive, "s": positive}


@model
def varying_slopes(rng):
    group, x = rng.integers(0, 10, 120), rng.standard_normal(120)
    y = rng.standard_normal(10)[group] + rng.standard_normal(10)[group] * x

    def log_density(p):
        r, scales = p["r"], p["scales"]
        first = scales[0] * p["z"][0]
        second = scales[1] * (r * p["z"][0] + np.sqrt(1 - r**2) * p["z"][1])
        mean = p["mu"][0] + first[group] + (p["mu"][1] + second[group]) * x
        prior = normal(p["z"]) + normal(p["mu"]) + np.log1p(-(r**2)) - np.sum(scales) - p["s"]
        return normal(y, mean, p["s"]) + prior

    parameters = {
        "mu": np.zeros(2), "scales": np.ones(2), "r": 0.0, "z": np.zeros((2, 10)), "s": 1.0,
    }  # fmt: skip
    constraints = {"scales": positive, "r": interval(-1.0, 1.0), "s": positive}
    return log_density, parameters, constraints


@model
def seeds(rng):
    n, x = rng.integers(10, 80, 21) * 1.0, rng.integers(0, 2, (21, 2)) * 1.0
    y = rng.binomial(n.astype(int), special.expit(x @ np.array([0.5, -0.5]))) * 1.0

    def log_density(p):
        eta = p["a"] + x @ p["b"] + p["tau"] * p["z"]
        likelihood = np.sum(y * eta - n * np.logaddexp(0.0, eta))
        return likelihood + normal(p["z"]) + normal(p["a"]) + normal(p["b"]) - p["tau"]

    return (
        log_density,
        {"a": 0.0, "b": np.zeros(2), "tau": 1.0, "z": np.zeros(21)},
        {"tau": positive},
    )


@model
def rats(rng):
    day = np.array([8.0, 15, 22, 29, 36]) - 22
    y = 240 + rng.standard_normal((30, 1)) * 15 + day * 6 + rng.standard_normal((30, 5)) * 6

    def log_density(p):
        mean = p["a"][:, None] + p["b"][:, None] * day
        prior = normal(p["a"], p["mu"][0] * 100, p["tau"][0] * 10)
        prior += normal(p["b"], p["mu"][1] * 10, p["tau"][1]) + normal(p["mu"], 1.0, 2.0)
        return normal(y / 10, mean / 10, p["s"]) + prior - np.sum(p["tau"]) - p["s"]

    parameters = {
        "a": np.full(30, 240.0), "b": np.full(30, 6.0), "mu": np.ones(2), "tau": np.ones(2),
        "s": 1.0,
    }  # fmt: skip
    return log_density, parameters, {"tau": positive, "s": positive}


@model
def batting(rng):
    n = np.full(18, 45.0)
    y = rng.binomial(45, 0.27, 18) * 1.0

    def log_density(p):
        a, b = p["m"] * p["k"], (1 - p["m"]) * p["k"]
        prior = (a - 1) * np.log(p["theta"]) + (b - 1) * np.log1p(-p["theta"])
        likelihood = y * np.log(p["theta"]) + (n - y) * np.log1p(-p["theta"])
        return np.sum(prior + likelihood - special.betaln(a, b)) - 1.5 * np.log(p["k"])

    unit = interval(0.0, 1.0)
    parameters = {"m": 0.5, "k": 2.0, "theta": np.full(18, 0.5)}
    return log_density, parameters, {"m": unit, "k": positive, "theta": unit}


@model
def spatial_counts(rng):
    here, there = np.arange(29), np.arange(1, 30)
    expected = rng.uniform(2, 20, 30)
    y = rng.poisson(expected) * 1.0

    def log_density(p):
        eta = p["a"] + p["s"] * p["phi"] + np.log(expected)
        smooth = -0.5 * np.sum((p["phi"][here] - p["phi"][there]) ** 2)
        return poisson(y, eta) + smooth + normal(np.sum(p["phi"]), 0.0, 0.03) - p["s"]

    return log_density, {"a": 0.0, "phi": np.zeros(30), "s": 1.0}, {"s": positive}


# Gaussian processes.


def covariance(x: Any, length: Any, scale: Any, noise: Any) -> Any:
    square = (x[:, None] - x) ** 2
    return scale**2 * np.exp(-0.5 * square / length**2) + noise**2 * np.eye(len(x))


@model
def process(rng):
    x = np.linspace(0, 5, 25)
    y = np.sin(x) + 0.2 * rng.standard_normal(25)

    def log_density(p):
        root = np.linalg.cholesky(covariance(x, p["length"], p["scale"], p["noise"]))
        z = np.linalg.solve(root, y)
        prior = -p["length"] - p["scale"] - p["noise"] - 1 / p["length"]
        return -0.5 * np.sum(z**2) - np.sum(np.log(np.diag(root))) + prior

    parameters = {"length": 1.0, "scale": 1.0, "noise": 0.5}
    return log_density, parameters, dict.fromkeys(parameters, positive)


@model
def counts_of_a_process(rng):
    x = np.linspace(0, 3, 15)
    y = rng.poisson(np.exp(1 + np.sin(2 * x))) * 1.0

    def log_density(p):
        root = np.linalg.cholesky(covariance(x, p["length"], p["scale"], 1e-3))
        return poisson(y, p["a"] + root @ p["z"]) + normal(p["z"]) - p["length"] - p["scale"]

    parameters = {"a": 0.0, "length": 1.0, "scale": 1.0, "z": np.zeros(15)}
    return log_density, parameters, {"length": positive, "scale": positive}


@model
def process_of_few_waves(rng):
    x, k = np.linspace(-1, 1, 60), np.arange(1, 13)
    y = np.cos(4 * x) + 0.3 * rng.standard_normal(60)
    waves = np.sin(np.pi * k * (x[:, None] + 1.5) / 3) / np.sqrt(1.5)

    def log_density(p):
        frequency = np.pi * k / 3
        spectrum = (
            p["scale"] * np.sqrt(p["length"]) * np.exp(-0.25 * (p["length"] * frequency) ** 2)
        )
        mean = waves @ (spectrum * p["z"])
        return normal(y, mean, p["s"]) + normal(p["z"]) - p["s"] - p["length"] - p["scale"]

    parameters = {"length": 0.5, "scale": 1.0, "s": 1.0, "z": np.zeros(12)}
    return log_density, parameters, dict.fromkeys(("length", "scale", "s"), positive)


# Time.


@model
def autoregression(rng):
    y = np.cumsum(rng.standard_normal(80)) * 0.3

    def log_density(p):
        mean = p["a"] + p["b"][0] * y[1:-1] + p["b"][1] * y[:-2]
        return normal(y[2:], mean, p["s"]) + normal(p["b"]) + normal(p["a"]) - p["s"]

    return log_density, {"a": 0.0, "b": np.zeros(2), "s": 1.0}, {"s": positive}


@model
def moving_average(rng):
    y = rng.standard_normal(40)

    def log_density(p):
        error = y[0] - p["mu"]
        total = normal(error, 0.0, p["s"])
        for t in range(1, 40):
            error = y[t] - p["mu"] - p["phi"] * y[t - 1] - p["theta"] * error
            total = total + normal(error, 0.0, p["s"])
        return total + normal(p["mu"]) - p["s"]

    one = interval(-1.0, 1.0)
    parameters = {"mu": 0.0, "phi": 0.0, "theta": 0.0, "s": 1.0}
    return log_density, parameters, {"phi": one, "theta": one, "s": positive}


@model
def garch(rng):
    y = rng.standard_normal(50) * np.exp(0.3 * np.sin(np.arange(50) / 5))

    def log_density(p):
        variance, total = p["first"] ** 2, 0.0
        for t in range(50):
            total = total + normal(y[t], p["mu"], np.sqrt(variance))
            variance = p["a"] + p["b"] * (y[t] - p["mu"]) ** 2 + p["c"] * (1 - p["b"]) * variance
        return total - p["a"]

    unit = interval(0.0, 1.0)
    parameters = {"mu": 0.0, "a": 0.5, "b": 0.3, "c": 0.3, "first": 1.0}
    return log_density, parameters, {"a": positive, "b": unit, "c": unit, "first": positive}


@model
def stochastic_volatility(rng):
    y = rng.standard_normal(60) * np.exp(0.5 * np.cumsum(0.2 * rng.standard_normal(60)))

    def log_density(p):
        h = p["mu"] + p["h"]
        steps = normal(p["h"][1:], p["phi"] * p["h"][:-1], p["s"])
        first = normal(p["h"][0], 0.0, p["s"] / np.sqrt(1 - p["phi"] ** 2))
        return normal(y, 0.0, np.exp(h / 2)) + steps + first + normal(p["mu"]) - p["s"]

    parameters = {"mu": 0.0, "phi": 0.9, "s": 0.2, "h": np.zeros(60)}
    return log_density, parameters, {"phi": interval(-1.0, 1.0), "s": positive}


@model
def local_level(rng):
    y = np.cumsum(rng.standard_normal(50)) + rng.standard_normal(50)

    def log_density(p):
        mean, variance, total = 0.0 * p["level"], 10.0 + 0.0 * p["level"], 0.0
        for t in range(50):
            seen = variance + p["noise"] ** 2
            total = total + normal(y[t], mean, np.sqrt(seen))
            gain = variance / seen
            mean, variance = mean + gain * (y[t] - mean), variance * (1 - gain) + p["level"] ** 2
        return total - p["level"] - p["noise"]

    parameters = {"level": 1.0, "noise": 1.0}
    return log_density, parameters, dict.fromkeys(parameters, positive)


@model
def local_trend(rng):
    y = np.cumsum(np.cumsum(0.1 * rng.standard_normal(25))) + rng.standard_normal(25)
    move, see = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])

    def log_density(p):
        mean, spread, total = 0.0 * p["q"], 10 * np.eye(2), 0.0
        for t in range(25):
            seen = see @ spread @ see + p["noise"] ** 2
            total = total + normal(y[t], see @ mean, np.sqrt(seen))
            gain = spread @ see / seen
            mean = move @ (mean + gain * (y[t] - see @ mean))
            spread = move @ (spread - gain[:, None] * (see @ spread)) @ move.T + np.diag(
                p["q"] ** 2
            )
        return total - np.sum(p["q"]) - p["noise"]

    parameters = {"q": np.ones(2), "noise": 1.0}
    return log_density, parameters, dict.fromkeys(parameters, positive)


# Hidden states.


@model
def hidden_states(rng):
    state = (np.cumsum(rng.random(60) < 0.1) % 2).astype(int)
    y = np.array([-1.0, 1.5])[state] + 0.7 * rng.standard_normal(60)

    def log_density(p):
        rows = np.log(p["move"])
        seen = -0.5 * ((y[:, None] - p["mu"]) / p["s"]) ** 2 - np.log(p["s"])
        forward = seen[0] - np.log(2.0)
        for t in range(1, 60):
            forward = special.logsumexp(forward[:, None] + rows, axis=0) + seen[t]
        return special.logsumexp(forward) + normal(p["mu"], 0.0, 2.0) - p["s"]

    parameters = {"mu": np.array([-1.0, 1.0]), "s": 1.0, "move": np.full((2, 2), 0.5)}
    return log_density, parameters, {"mu": ordered, "s": positive, "move": simplex}


@model
def hidden_states_of_symbols(rng):
    y = rng.integers(0, 4, 40)

    def log_density(p):
        rows, seen = np.log(p["move"]), np.log(p["emit"])[:, y]
        forward = seen[:, 0]
        for t in range(1, 40):
            forward = special.logsumexp(forward[:, None] + rows, axis=0) + seen[:, t]
        return special.logsumexp(forward) + np.sum(rows) + 0.5 * np.sum(np.log(p["emit"]))

    parameters = {"move": np.full((3, 3), 1 / 3), "emit": np.full((3, 4), 0.25)}
    return log_density, parameters, dict.fromkeys(parameters, simplex)


@model
def occupancy(rng):
    x = rng.standard_normal((50, 2))
    y = rng.binomial(5, 0.4, 50) * (rng.random(50) < 0.6) * 1.0

    def log_density(p):
        there, seen = x @ p["b"], p["a"] + 0.0 * x[:, 0]
        present = y * seen - 5 * np.logaddexp(0.0, seen) - np.logaddexp(0.0, -there)
        absent = np.where(y == 0, -np.logaddexp(0.0, there), -1e3)
        return np.sum(np.logaddexp(present, absent)) + normal(p["b"]) + normal(p["a"])

    return log_density, {"a": 0.0, "b": np.zeros(2)}, {}


# Differential equations.


def integrated(slope: Callable[[Any], Any], state: Any, step: float, n: int) -> list[Any]:
    """States after each of some steps of Runge and Kutta's method."""
    found = []
    for _ in range(n):
        a = slope(state)
        b = slope(state + step / 2 * a)
        c = slope(state + step / 2 * b)
        d = slope(state + step * c)
        state = state + step / 6 * (a + 2 * b + 2 * c + d)
        found.append(state)
    return found


@model
def predators(rng):
    y = np.exp(rng.standard_normal((20, 2)) * 0.3 + 2.5)

    def log_density(p):
        a, b, c, d = (p["rates"][k] for k in range(4))

        def slope(u):
            return np.stack([u[0] * (a - b * u[1]), u[1] * (c * u[0] - d)])

        found = np.stack(integrated(slope, p["first"], 0.1, 20))
        prior = normal(np.log(p["rates"]), -1.0) + normal(np.log(p["first"]), 2.0)
        return normal(np.log(y), np.log(found), p["s"]) + prior - p["s"]

    parameters = {"rates": np.array([0.5, 0.03, 0.03, 0.5]), "first": np.full(2, 10.0), "s": 0.3}
    return log_density, parameters, dict.fromkeys(parameters, positive)


@model
def epidemic(rng):
    y = rng.poisson(5 + 20 * np.exp(-0.5 * ((np.arange(14) - 6) / 3) ** 2)) * 1.0

    def log_density(p):
        def slope(u):
            new = p["contacts"] * u[0] * u[1]
            return np.stack([-new, new - p["leaves"] * u[1]])

        first = np.stack([1 - p["first"], p["first"]])
        found = np.stack(integrated(slope, first, 0.5, 28))[1::2, 1]
        prior = -p["contacts"] - p["leaves"] - 10 * p["first"]
        return poisson(y, np.log(200 * found)) + prior

    parameters = {"contacts": 1.0, "leaves": 0.5, "first": 0.02}
    return log_density, parameters, {
        "contacts": positive, "leaves": positive, "first": interval(0.0, 1.0),
    }  # fmt: skip


@model
def elimination(rng):
    t = np.linspace(0.5, 12, 15)
    y = 5 * (np.exp(-0.2 * t) - np.exp(-1.5 * t)) * np.exp(0.1 * rng.standard_normal(15))

    def log_density(p):
        fast, slow = p["slow"] + p["more"], p["slow"]
        level = p["dose"] * fast / (fast - slow) * (np.exp(-slow * t) - np.exp(-fast * t))
        prior = normal(np.log(p["dose"]), 1.0) - p["slow"] - p["more"] - p["s"]
        return normal(np.log(y), np.log(level), p["s"]) + prior

    parameters = {"dose": 4.0, "slow": 0.3, "more": 1.0, "s": 0.5}
    return log_density, parameters, dict.fromkeys(parameters, positive)


# Items, pairs, mixtures.


@model
def items_of_one_slope(rng):
    person, item = np.repeat(np.arange(20), 8), np.tile(np.arange(8), 20)
    y = (rng.random(160) < 0.5) * 1.0

    def log_density(p):
        prior = normal(p["a"]) + normal(p["b"])
        return bernoulli(y, p["a"][person] - p["b"][item]) + prior

    return log_density, {"a": np.zeros(20), "b": np.zeros(8)}, {}


@model
def items(rng):
    y = (rng.random((25, 10)) < 0.6) * 1.0

    def log_density(p):
        logit = p["slope"] * (p["a"][:, None] - p["b"])
        prior = normal(p["a"]) + normal(p["b"], p["mu"], p["tau"]) + normal(np.log(p["slope"]))
        return bernoulli(y, logit) + prior + normal(p["mu"]) - p["tau"]

    parameters = {"a": np.zeros(25), "b": np.zeros(10), "slope": np.ones(10), "mu": 0.0, "tau": 1.0}
    return log_density, parameters, {"slope": positive, "tau": positive}


@model
def pairs(rng):
    first, second = rng.integers(0, 8, 60), rng.integers(0, 8, 60)
    y = (rng.random(60) < 0.5) * 1.0

    def log_density(p):
        skill = p["s"] * p["z"]
        return bernoulli(y, skill[first] - skill[second]) + normal(p["z"]) - p["s"]

    return log_density, {"z": np.zeros(8), "s": 1.0}, {"s": positive}


@model
def mixture_of_two(rng):
    y = np.where(rng.random(80) < 0.3, -2.0, 1.0) + rng.standard_normal(80)

    def log_density(p):
        parts = -0.5 * ((y[:, None] - p["mu"]) / p["s"]) ** 2 - np.log(p["s"])
        weighted = np.logaddexp(np.log(p["w"]) + parts[:, 0], np.log1p(-p["w"]) + parts[:, 1])
        return np.sum(weighted) + normal(p["mu"], 0.0, 2.0) - np.sum(p["s"])

    parameters = {"mu": np.array([-1.0, 1.0]), "s": np.ones(2), "w": 0.5}
    return log_density, parameters, {"mu": ordered, "s": positive, "w": interval(0.0, 1.0)}


@model
def mixture_of_points(rng):
    y = rng.standard_normal((60, 2)) + np.array([[-3.0, 0], [0, 3], [3, 0]])[np.arange(60) % 3]

    def log_density(p):
        square = np.sum((y[:, None] - p["mu"]) ** 2, -1)
        parts = np.log(p["w"]) - 0.5 * square / p["s"] ** 2 - 2 * np.log(p["s"])
        prior = normal(p["mu"], 0.0, 3.0) - np.sum(p["s"]) + np.sum(np.log(p["w"]))
        return np.sum(special.logsumexp(parts, axis=1)) + prior

    parameters = {"mu": np.zeros((3, 2)), "s": np.ones(3), "w": np.full(3, 1 / 3)}
    return log_density, parameters, {"s": positive, "w": simplex}


@model
def topics(rng):
    words = rng.integers(0, 12, 100)
    document = np.repeat(np.arange(5), 20)

    def log_density(p):
        share = p["of_documents"] @ p["of_topics"]
        prior = np.sum(np.log(p["of_documents"])) + np.sum(np.log(p["of_topics"]))
        return np.sum(np.log(share[document, words])) + prior

    parameters = {"of_documents": np.full((5, 3), 1 / 3), "of_topics": np.full((3, 12), 1 / 12)}
    return log_density, parameters, dict.fromkeys(parameters, simplex)


# Survival.


@model
def weibull(rng):
    x, rate = regressors(rng, 70, 2)
    t, is_seen = rng.weibull(1.5, 70) * np.exp(rate), rng.random(70) < 0.8

    def log_density(p):
        z = p["shape"] * (np.log(t) - x @ p["b"])
        hazard = np.log(p["shape"]) + z - np.log(t)
        return np.sum(np.where(is_seen, hazard, 0.0) - np.exp(z)) + normal(p["b"]) - p["shape"]

    return log_density, {"b": np.zeros(2), "shape": 1.0}, {"shape": positive}


@model
def frailty(rng):
    group, t = rng.integers(0, 10, 60), rng.exponential(size=60)
    is_seen = (rng.random(60) < 0.7) * 1.0

    def log_density(p):
        rate = p["a"] + p["tau"] * p["z"][group]
        return (
            np.sum(is_seen * rate - t * np.exp(rate)) + normal(p["z"]) + normal(p["a"]) - p["tau"]
        )

    return log_density, {"a": 0.0, "tau": 1.0, "z": np.zeros(10)}, {"tau": positive}


@model
def proportional_hazards(rng):
    x, rate = regressors(rng, 50, 3)
    order = np.argsort(rng.exponential(np.exp(-rate)))
    x, is_seen = x[order], (rng.random(50) < 0.8) * 1.0

    def log_density(p):
        eta = x @ p["b"]
        at_risk = np.cumsum(np.exp(eta)[::-1])[::-1]
        return np.sum(is_seen * (eta - np.log(at_risk))) + normal(p["b"])

    return log_density, {"b": np.zeros(3)}, {}
