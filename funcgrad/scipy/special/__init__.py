"""`scipy.special` on arrays, numbers and traced values: SciPy's names, arguments and promotion.

Five tables of ufuncs, whose rows are public as they stand, and a page of names: functions composed
of them, and functions that make constants, have files of their own. The primitives, with the
derivatives, are in `funcgrad.primitives.special` and its neighbours.
"""

# ruff: noqa: F403, F405

from typing import TYPE_CHECKING

from funcgrad.base.signatures import share
from funcgrad.numpy.composed import sinc
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.exponentials import log_softmax, logsumexp, softmax
from funcgrad.scipy.special import (
    bessel,
    constants,
    distributions,
    elementary,
    hypergeometric,
    waves,
)
from funcgrad.scipy.special.bessel import *
from funcgrad.scipy.special.combinatorics import *
from funcgrad.scipy.special.composed import *
from funcgrad.scipy.special.constants import *
from funcgrad.scipy.special.distributions import *
from funcgrad.scipy.special.elementary import *
from funcgrad.scipy.special.harmonics import *
from funcgrad.scipy.special.hypergeometric import *
from funcgrad.scipy.special.meanings import MEANINGS
from funcgrad.scipy.special.orders import *
from funcgrad.scipy.special.polynomials import *
from funcgrad.scipy.special.rows import names_in
from funcgrad.scipy.special.waves import *

if TYPE_CHECKING:
    from scipy.special import SpecialFunctionError, SpecialFunctionWarning

__all__ = [
    *names_in(bessel, distributions, elementary, hypergeometric, waves), *constants.__all__,
    "SpecialFunctionError", "SpecialFunctionWarning", "assoc_laguerre", "assoc_legendre_p",
    "assoc_legendre_p_all", "bessel_jn", "comb", "diric", "eval_chebyc", "eval_chebys",
    "eval_chebyt", "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite",
    "eval_hermitenorm", "eval_jacobi", "eval_laguerre", "eval_legendre", "eval_sh_chebyt",
    "eval_sh_chebyu", "eval_sh_jacobi", "eval_sh_legendre", "factorial", "factorial2",
    "factorialk", "h1vp", "h2vp", "ivp", "jvp", "kelvin", "kvp", "lambertw", "legendre_p",
    "legendre_p_all", "log_ndtr", "log_softmax", "logsumexp", "lpmv", "modfresnelm",
    "modfresnelp", "multigammaln", "perm", "polygamma", "sinc", "softmax", "softplus",
    "sph_harm_y", "sph_harm_y_all", "sph_legendre_p", "sph_legendre_p_all", "spherical_in",
    "spherical_jn", "spherical_kn", "spherical_yn", "stirling2", "yvp", "zeta",
]  # fmt: skip

share(__name__, MEANINGS)
present_results(__name__, fallback="scipy.special")
