"""Distributions and statistics: SciPy's names and arguments on arrays and traced values."""

from funcgrad.scipy.stats.bounded import (
    beta,
    loguniform,
    powerlaw,
    truncnorm,
    uniform,
    wrapcauchy,
)
from funcgrad.scipy.stats.discrete import (
    bernoulli,
    betabinom,
    binom,
    geom,
    hypergeom,
    nbinom,
    poisson,
    randint,
)
from funcgrad.scipy.stats.positive import (
    chi2,
    erlang,
    expon,
    gamma,
    halfcauchy,
    halfnorm,
    invgamma,
    lognorm,
    lomax,
    maxwell,
    pareto,
    rayleigh,
    weibull_max,
    weibull_min,
)
from funcgrad.scipy.stats.positive import f_distribution as f
from funcgrad.scipy.stats.symmetric import (
    cauchy,
    gennorm,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    norm,
    t,
    vonmises,
)
