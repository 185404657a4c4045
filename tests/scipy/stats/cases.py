"""Distributions and parameters: of the values by mpmath, and of all laws."""

from __future__ import annotations

CONTINUOUS: dict[str, list[tuple[float, ...]]] = {
    "norm": [()],
    "laplace": [()],
    "logistic": [()],
    "cauchy": [()],
    "t": [(0.7,), (3.5,), (250.0,), (0.15,), (1e6,)],
    "gumbel_r": [()],
    "gumbel_l": [()],
    "gennorm": [(0.8,), (3.0,)],
    "vonmises": [(0.4,), (30.0,), (5e3,)],
    "expon": [()],
    "gamma": [(2.5,), (0.3,), (3e4,), (1e-3,)],
    "erlang": [(3.0,)],
    "chi2": [(1.0,), (40.0,)],
    "invgamma": [(4.5,)],
    "f": [(3.0, 8.0), (50.0, 4.5), (0.35, 9574.0)],
    "lognorm": [(0.7,)],
    "weibull_min": [(0.6,), (2.2,)],
    "weibull_max": [(2.2,)],
    "pareto": [(5.5,)],
    "lomax": [(4.5,)],
    "rayleigh": [()],
    "maxwell": [()],
    "halfnorm": [()],
    "halfcauchy": [()],
    "uniform": [()],
    "beta": [(0.4, 2.5), (2.0, 3.0), (700.0, 900.0), (0.05, 3e4)],
    "powerlaw": [(1.7,)],
    "truncnorm": [
        (-0.5, 1.5),
        (3.0, 9.0),
        (-7.0, -2.0),
        (-1e-3, 2e-3),
        (40.0, 41.0),
        (-60.0, -45.0),
    ],
    "wrapcauchy": [(0.4,), (0.999,)],
    "loguniform": [(0.2, 3.0)],
}
DISCRETE: dict[str, list[tuple[float, ...]]] = {
    "bernoulli": [(0.3,)],
    "binom": [(9.0, 0.3), (5000.0, 0.02)],
    "nbinom": [(3.5, 0.4), (0.05, 0.5)],
    "geom": [(0.3,)],
    "poisson": [(3.3,), (800.0,)],
    "betabinom": [(8.0, 2.0, 3.0), (4.0, 4.0, 7000.0), (99.0, 704.0, 12.5)],
    "hypergeom": [(20.0, 7.0, 12.0), (399.0, 388.0, 318.0), (662.0, 127.0, 432.0)],
    "randint": [(2.0, 9.0)],
}

PROBABILITIES = (1e-30, 1e-3, 0.2, 0.7)
"""From both ends: where the tables are."""
