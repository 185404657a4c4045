"""Distributions and statistics: SciPy's names and arguments on arrays and traced values."""
# ruff: noqa: F403, F405

from typing import TYPE_CHECKING, Any

from funcgrad.base.signatures import share
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.stats.bounded import *
from funcgrad.scipy.stats.density import gaussian_kde
from funcgrad.scipy.stats.discrete import *
from funcgrad.scipy.stats.host_functions import CLASSES, HOST_NAMES, HostName
from funcgrad.scipy.stats.meanings import MEANINGS
from funcgrad.scipy.stats.means import circmean, circstd, circvar, gmean, hmean, pmean
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
from funcgrad.scipy.stats.ranks import *
from funcgrad.scipy.stats.relations import linregress, pearsonr, pointbiserialr
from funcgrad.scipy.stats.significance import *
from funcgrad.scipy.stats.spreads import iqr, kstat, kstatvar, median_abs_deviation
from funcgrad.scipy.stats.summaries import *
from funcgrad.scipy.stats.symmetric import *
from funcgrad.scipy.stats.transformations import boxcox, boxcox_llf, yeojohnson, yeojohnson_llf
from funcgrad.scipy.stats.trimming import *
from funcgrad.scipy.stats.vectors import dirichlet, multinomial, multivariate_normal

if TYPE_CHECKING:  # names of SciPy's that are added below

    def __getattr__(name: str) -> Any: ...


vars().update({name: HostName(name) for name in HOST_NAMES})

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "boxcox", "boxcox_llf", "cauchy", "chi2",
    "chisquare", "circmean", "circstd", "circvar", "describe", "dirichlet", "energy_distance",
    "entropy", "erlang", "expon", "f", "f_oneway", "gamma", "gaussian_kde", "gennorm", "geom",
    "gmean", "gstd", "gumbel_l", "gumbel_r", "gzscore", "halfcauchy", "halfnorm", "hmean",
    "hypergeom", "invgamma", "iqr", "kstat", "kstatvar", "kurtosis", "laplace", "linregress",
    "logistic", "lognorm", "loguniform", "lomax", "maxwell", "median_abs_deviation", "mode",
    "moment", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto", "pearsonr", "pmean",
    "pointbiserialr", "poisson", "power_divergence", "powerlaw", "randint", "rankdata", "rayleigh",
    "sem", "skew", "spearmanr", "t", "tmax", "tmean", "tmin", "trim1", "trim_mean", "trimboth",
    "truncnorm", "tsem", "tstd", "ttest_1samp", "ttest_ind", "ttest_rel", "tvar", "uniform",
    "variation", "vonmises", "wasserstein_distance", "weibull_max", "weibull_min", "wrapcauchy",
    "yeojohnson", "yeojohnson_llf", "zmap", "zscore",
]  # fmt: skip
__all__ += HOST_NAMES
__all__ += CLASSES

share(__name__, MEANINGS)
present_results(__name__, fallback="scipy.stats")
