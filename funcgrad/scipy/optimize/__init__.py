"""`scipy.optimize` on traced values: roots, least squares and minima, differentiated implicitly.

What has no derivative rule here is SciPy's own and takes concrete values.
"""

from scipy import optimize as _scipy
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

from funcgrad.namespaces import present
from funcgrad.scipy.optimize.rosenbrock import rosen, rosen_der, rosen_hess, rosen_hess_prod
from funcgrad.scipy.optimize.scalar_roots import (
    RootResults,
    bisect,
    brenth,
    brentq,
    fixed_point,
    newton,
    ridder,
    root_scalar,
    toms748,
)
from funcgrad.scipy.optimize.systems import curve_fit, fsolve, least_squares, minimize, root
from funcgrad.scipy.passing import passed
from funcgrad.scipy.results import Result as OptimizeResults

anderson = passed(_scipy, "anderson")
approx_fprime = passed(_scipy, "approx_fprime")
basinhopping = passed(_scipy, "basinhopping")
bracket = passed(_scipy, "bracket")
brent = passed(_scipy, "brent")
broyden1 = passed(_scipy, "broyden1")
broyden2 = passed(_scipy, "broyden2")
brute = passed(_scipy, "brute")
check_grad = passed(_scipy, "check_grad")
diagbroyden = passed(_scipy, "diagbroyden")
differential_evolution = passed(_scipy, "differential_evolution")
direct = passed(_scipy, "direct")
dual_annealing = passed(_scipy, "dual_annealing")
excitingmixing = passed(_scipy, "excitingmixing")
fmin = passed(_scipy, "fmin")
fmin_bfgs = passed(_scipy, "fmin_bfgs")
fmin_cg = passed(_scipy, "fmin_cg")
fmin_cobyla = passed(_scipy, "fmin_cobyla")
fmin_l_bfgs_b = passed(_scipy, "fmin_l_bfgs_b")
fmin_ncg = passed(_scipy, "fmin_ncg")
fmin_powell = passed(_scipy, "fmin_powell")
fmin_slsqp = passed(_scipy, "fmin_slsqp")
fmin_tnc = passed(_scipy, "fmin_tnc")
fminbound = passed(_scipy, "fminbound")
golden = passed(_scipy, "golden")
isotonic_regression = passed(_scipy, "isotonic_regression")
leastsq = passed(_scipy, "leastsq")
line_search = passed(_scipy, "line_search")
linear_sum_assignment = passed(_scipy, "linear_sum_assignment")
linearmixing = passed(_scipy, "linearmixing")
linprog = passed(_scipy, "linprog")
linprog_verbose_callback = passed(_scipy, "linprog_verbose_callback")
lsq_linear = passed(_scipy, "lsq_linear")
milp = passed(_scipy, "milp")
minimize_scalar = passed(_scipy, "minimize_scalar")
newton_krylov = passed(_scipy, "newton_krylov")
nnls = passed(_scipy, "nnls")
quadratic_assignment = passed(_scipy, "quadratic_assignment")
shgo = passed(_scipy, "shgo")
show_options = passed(_scipy, "show_options")

__all__ = [
    "BFGS",
    "SR1",
    "Bounds",
    "BroydenFirst",
    "HessianUpdateStrategy",
    "InverseJacobian",
    "KrylovJacobian",
    "LbfgsInvHessProduct",
    "LinearConstraint",
    "NoConvergence",
    "NonlinearConstraint",
    "OptimizeResult",
    "OptimizeResults",
    "OptimizeWarning",
    "RootResults",
    "anderson",
    "approx_fprime",
    "basinhopping",
    "bisect",
    "bracket",
    "brent",
    "brenth",
    "brentq",
    "broyden1",
    "broyden2",
    "brute",
    "check_grad",
    "curve_fit",
    "diagbroyden",
    "differential_evolution",
    "direct",
    "dual_annealing",
    "excitingmixing",
    "fixed_point",
    "fmin",
    "fmin_bfgs",
    "fmin_cg",
    "fmin_cobyla",
    "fmin_l_bfgs_b",
    "fmin_ncg",
    "fmin_powell",
    "fmin_slsqp",
    "fmin_tnc",
    "fminbound",
    "fsolve",
    "golden",
    "isotonic_regression",
    "least_squares",
    "leastsq",
    "line_search",
    "linear_sum_assignment",
    "linearmixing",
    "linprog",
    "linprog_verbose_callback",
    "lsq_linear",
    "milp",
    "minimize",
    "minimize_scalar",
    "newton",
    "newton_krylov",
    "nnls",
    "quadratic_assignment",
    "ridder",
    "root",
    "root_scalar",
    "rosen",
    "rosen_der",
    "rosen_hess",
    "rosen_hess_prod",
    "shgo",
    "show_options",
    "toms748",
]

present(__name__)
