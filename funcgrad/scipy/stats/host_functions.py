"""SciPy's own distributions and functions of known values, under their names here.

`scipy.stats` is imported when the first of them is called.
"""

from __future__ import annotations

from typing import Any

from funcgrad.base.imports import load
from funcgrad.numpy.host_functions import host_function

_DISTRIBUTIONS = """
    alpha anglit arcsine argus betanbinom betaprime boltzmann bradford burr burr12 chi cosine
    crystalball dgamma dirichlet_multinomial dlaplace dpareto_lognorm dweibull exponnorm exponpow
    exponweib fatiguelife fisk foldcauchy foldnorm gausshyper genexpon genextreme gengamma
    genhalflogistic genhyperbolic geninvgauss genlogistic genpareto gibrat gompertz halfgennorm
    halflogistic hypsecant invgauss invweibull invwishart irwinhall jf_skew_t johnsonsb johnsonsu
    kappa3 kappa4 ksone kstwo kstwobign landau laplace_asymmetric levy levy_l levy_stable loggamma
    logser loglaplace matrix_normal matrix_t mielke moyal multivariate_hypergeom multivariate_t
    nakagami ncf nchypergeom_fisher nchypergeom_wallenius nct ncx2 nhypergeom normal_inverse_gamma
    norminvgauss ortho_group pearson3 planck poisson_binom powerlognorm powernorm
    random_correlation random_table rdist recipinvgauss reciprocal rel_breitwigner rice
    semicircular skellam skewcauchy skewnorm special_ortho_group studentized_range trapezoid triang
    truncexpon truncpareto truncweibull_min tukeylambda uniform_direction unitary_group
    vonmises_fisher vonmises_line wald wishart yulesimon zipf zipfian
"""
_FUNCTIONS = """
    abs alexandergovern anderson anderson_ksamp ansari barnard_exact bartlett bayes_mvs
    binned_statistic binned_statistic_2d binned_statistic_dd binomtest bootstrap boschloo_exact
    boxcox_normmax boxcox_normplot brunnermunzel bws_test chatterjeexi chi2_contingency
    combine_pvalues cramervonmises cramervonmises_2samp cumfreq differential_entropy
    directional_stats dunnett ecdf epps_singleton_2samp estimated_cdf exp expectile
    false_discovery_control fisher_exact fit fligner friedmanchisquare goodness_of_fit jarque_bera
    kendalltau kruskal ks_1samp ks_2samp kstest kurtosistest levene lmoment log logrank
    make_distribution mannwhitneyu median_test monte_carlo_test mood multiscale_graphcorr mvsdist
    normaltest obrientransform order_statistic page_trend_test percentileofscore permutation_test
    poisson_means_test power ppcc_max ppcc_plot probplot quantile quantile_test ranksums relfreq
    scoreatpercentile shapiro siegelslopes sigmaclip skewtest sobol_indices somersd spearmanrho
    theilslopes tiecorrect truncate ttest_ind_from_stats tukey_hsd wasserstein_distance_nd
    weightedtau wilcoxon yeojohnson_normmax yeojohnson_normplot
"""
CLASSES = (
    "Binomial", "BootstrapMethod", "CensoredData", "ConstantInputWarning", "Covariance",
    "DegenerateDataWarning", "FitError", "Logistic", "Mixture", "MonteCarloMethod",
    "NearConstantInputWarning", "Normal", "PermutationMethod", "Uniform", "rv_continuous",
    "rv_discrete", "rv_histogram",
)  # fmt: skip
"""Classes of SciPy: distributions of known values, bases of others, options, warnings."""


class HostName:
    """A function or a distribution of `scipy.stats`, for known values only.

    Args: name: Its name there.
    """

    is_host_function = True

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        path = f"scipy.stats.{name}"
        self.__doc__ = (
            f"`{path}` itself, for known values only.\n\n"
            f"``help({path})`` describes its arguments and results."
        )

    def __repr__(self) -> str:
        return f"<scipy.stats.{self.__name__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the value of SciPy's own function.

        Raises: ConcretizationTypeError: If an argument is a traced value.
        """
        return host_function("scipy.stats", self.__name__)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        own = getattr(load("scipy.stats"), self.__name__)
        member = getattr(own, name)
        if not callable(member):
            return member
        return host_function("scipy.stats", f"{self.__name__}.{name}")


HOST_FUNCTIONS = {name: HostName(name) for name in (_DISTRIBUTIONS + _FUNCTIONS).split()}
"""SciPy's own, by their names."""
