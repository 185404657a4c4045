"""`scipy.optimize` on traced values: roots, least squares and minima, differentiated implicitly.

What has no derivative rule here is SciPy's own and takes concrete values.
"""

# ruff: noqa: F401
# ruff: noqa: F403

from typing import TYPE_CHECKING, Any

from scipy.optimize import (
    BFGS,
    SR1,
    Bounds,
    BroydenFirst,
    HessianUpdateStrategy,
    InverseJacobian,
    KrylovJacobian,
    LbfgsInvHessProduct,
    LinearConstraint,
    NoConvergence,
    NonlinearConstraint,
    OptimizeResult,
    OptimizeWarning,
)

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.optimize.meanings import MEANINGS
from funcgrad.scipy.optimize.rosenbrock import rosen, rosen_der, rosen_hess, rosen_hess_prod
from funcgrad.scipy.optimize.scalar_minima import brent, fminbound, minimize_scalar
from funcgrad.scipy.optimize.scalar_roots import *
from funcgrad.scipy.optimize.systems import curve_fit, fsolve, least_squares, minimize, root
from funcgrad.scipy.results import Result as OptimizeResults

if TYPE_CHECKING:  # the names that are added below

    def __getattr__(name: str) -> Any: ...


vars().update(
    host_functions(
        "scipy.optimize",
        """
        anderson approx_fprime basinhopping bracket broyden1 broyden2 brute check_grad diagbroyden
        differential_evolution direct dual_annealing excitingmixing fmin fmin_bfgs fmin_cg
        fmin_cobyla fmin_l_bfgs_b fmin_ncg fmin_powell fmin_slsqp fmin_tnc golden
        isotonic_regression leastsq line_search linear_sum_assignment linearmixing linprog
        linprog_verbose_callback lsq_linear milp newton_krylov nnls quadratic_assignment shgo
        show_options
        """,
    )
)

__all__ = page(vars())

share(__name__, MEANINGS)
present_results(__name__)
