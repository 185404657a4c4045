"""`scipy.optimize` on traced values: roots, least squares and minima, differentiated implicitly.

What has no derivative rule here is SciPy's own and takes concrete values.
"""

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

from funcgrad.base.namespaces import present
from funcgrad.numpy.host_functions import host_function
from funcgrad.scipy.optimize.rosenbrock import rosen, rosen_der, rosen_hess, rosen_hess_prod
from funcgrad.scipy.optimize.scalar_minima import brent, fminbound, minimize_scalar
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
from funcgrad.scipy.results import Result as OptimizeResults

anderson = host_function("scipy.optimize", "anderson")
approx_fprime = host_function("scipy.optimize", "approx_fprime")
basinhopping = host_function("scipy.optimize", "basinhopping")
bracket = host_function("scipy.optimize", "bracket")
broyden1 = host_function("scipy.optimize", "broyden1")
broyden2 = host_function("scipy.optimize", "broyden2")
brute = host_function("scipy.optimize", "brute")
check_grad = host_function("scipy.optimize", "check_grad")
diagbroyden = host_function("scipy.optimize", "diagbroyden")
differential_evolution = host_function("scipy.optimize", "differential_evolution")
direct = host_function("scipy.optimize", "direct")
dual_annealing = host_function("scipy.optimize", "dual_annealing")
excitingmixing = host_function("scipy.optimize", "excitingmixing")
fmin = host_function("scipy.optimize", "fmin")
fmin_bfgs = host_function("scipy.optimize", "fmin_bfgs")
fmin_cg = host_function("scipy.optimize", "fmin_cg")
fmin_cobyla = host_function("scipy.optimize", "fmin_cobyla")
fmin_l_bfgs_b = host_function("scipy.optimize", "fmin_l_bfgs_b")
fmin_ncg = host_function("scipy.optimize", "fmin_ncg")
fmin_powell = host_function("scipy.optimize", "fmin_powell")
fmin_slsqp = host_function("scipy.optimize", "fmin_slsqp")
fmin_tnc = host_function("scipy.optimize", "fmin_tnc")
golden = host_function("scipy.optimize", "golden")
isotonic_regression = host_function("scipy.optimize", "isotonic_regression")
leastsq = host_function("scipy.optimize", "leastsq")
line_search = host_function("scipy.optimize", "line_search")
linear_sum_assignment = host_function("scipy.optimize", "linear_sum_assignment")
linearmixing = host_function("scipy.optimize", "linearmixing")
linprog = host_function("scipy.optimize", "linprog")
linprog_verbose_callback = host_function("scipy.optimize", "linprog_verbose_callback")
lsq_linear = host_function("scipy.optimize", "lsq_linear")
milp = host_function("scipy.optimize", "milp")
newton_krylov = host_function("scipy.optimize", "newton_krylov")
nnls = host_function("scipy.optimize", "nnls")
quadratic_assignment = host_function("scipy.optimize", "quadratic_assignment")
shgo = host_function("scipy.optimize", "shgo")
show_options = host_function("scipy.optimize", "show_options")

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
