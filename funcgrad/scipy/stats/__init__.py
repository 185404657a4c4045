"""Distributions and statistics: SciPy's names and arguments on arrays and traced values."""

# ruff: noqa: F401
# ruff: noqa: F403

from typing import TYPE_CHECKING, Any

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.stats.bounded import *
from funcgrad.scipy.stats.density import gaussian_kde
from funcgrad.scipy.stats.discrete import *
from funcgrad.scipy.stats.host_functions import CLASSES as _CLASSES
from funcgrad.scipy.stats.host_functions import HOST_FUNCTIONS as _HOST_FUNCTIONS
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


vars().update(_HOST_FUNCTIONS)

__all__ = page(vars(), *_CLASSES)

share(__name__, MEANINGS)
present_results(__name__, fallback="scipy.stats")
