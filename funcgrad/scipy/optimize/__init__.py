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
from funcgrad.numpy.borrowing import borrow
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

anderson = borrow("scipy.optimize", "anderson")
approx_fprime = borrow("scipy.optimize", "approx_fprime")
basinhopping = borrow("scipy.optimize", "basinhopping")
bracket = borrow("scipy.optimize", "bracket")
broyden1 = borrow("scipy.optimize", "broyden1")
broyden2 = borrow("scipy.optimize", "broyden2")
brute = borrow("scipy.optimize", "brute")
check_grad = borrow("scipy.optimize", "check_grad")
diagbroyden = borrow("scipy.optimize", "diagbroyden")
differential_evolution = borrow("scipy.optimize", "differential_evolution")
direct = borrow("scipy.optimize", "direct")
dual_annealing = borrow("scipy.optimize", "dual_annealing")
excitingmixing = borrow("scipy.optimize", "excitingmixing")
fmin = borrow("scipy.optimize", "fmin")
fmin_bfgs = borrow("scipy.optimize", "fmin_bfgs")
fmin_cg = borrow("scipy.optimize", "fmin_cg")
fmin_cobyla = borrow("scipy.optimize", "fmin_cobyla")
fmin_l_bfgs_b = borrow("scipy.optimize", "fmin_l_bfgs_b")
fmin_ncg = borrow("scipy.optimize", "fmin_ncg")
fmin_powell = borrow("scipy.optimize", "fmin_powell")
fmin_slsqp = borrow("scipy.optimize", "fmin_slsqp")
fmin_tnc = borrow("scipy.optimize", "fmin_tnc")
golden = borrow("scipy.optimize", "golden")
isotonic_regression = borrow("scipy.optimize", "isotonic_regression")
leastsq = borrow("scipy.optimize", "leastsq")
line_search = borrow("scipy.optimize", "line_search")
linear_sum_assignment = borrow("scipy.optimize", "linear_sum_assignment")
linearmixing = borrow("scipy.optimize", "linearmixing")
linprog = borrow("scipy.optimize", "linprog")
linprog_verbose_callback = borrow("scipy.optimize", "linprog_verbose_callback")
lsq_linear = borrow("scipy.optimize", "lsq_linear")
milp = borrow("scipy.optimize", "milp")
newton_krylov = borrow("scipy.optimize", "newton_krylov")
nnls = borrow("scipy.optimize", "nnls")
quadratic_assignment = borrow("scipy.optimize", "quadratic_assignment")
shgo = borrow("scipy.optimize", "shgo")
show_options = borrow("scipy.optimize", "show_options")

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
