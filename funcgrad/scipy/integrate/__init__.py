"""`scipy.integrate` on arrays and traced values: samples, functions and differential equations.

What only makes constants, and SciPy's classes of solvers, are SciPy's own.
"""

from scipy import integrate as _scipy
from scipy.integrate import (
    BDF,
    DOP853,
    LSODA,
    RK23,
    RK45,
    DenseOutput,
    IntegrationWarning,
    ODEintWarning,
    OdeSolver,
    Radau,
    complex_ode,
    ode,
)

from funcgrad.namespaces import present
from funcgrad.scipy.integrate.initial_value import OdeResult, OdeSolution, odeint, solve_ivp
from funcgrad.scipy.integrate.quadrature import (
    dblquad,
    fixed_quad,
    nquad,
    quad,
    quad_vec,
    tplquad,
)
from funcgrad.scipy.integrate.samples import (
    cumulative_simpson,
    cumulative_trapezoid,
    romb,
    simpson,
    trapezoid,
)
from funcgrad.scipy.passing import passed

cubature = passed(_scipy, "cubature")
lebedev_rule = passed(_scipy, "lebedev_rule")
newton_cotes = passed(_scipy, "newton_cotes")
nsum = passed(_scipy, "nsum")
qmc_quad = passed(_scipy, "qmc_quad")
solve_bvp = passed(_scipy, "solve_bvp")
tanhsinh = passed(_scipy, "tanhsinh")

__all__ = [
    "BDF",
    "DOP853",
    "LSODA",
    "RK23",
    "RK45",
    "DenseOutput",
    "IntegrationWarning",
    "ODEintWarning",
    "OdeResult",
    "OdeSolution",
    "OdeSolver",
    "Radau",
    "complex_ode",
    "cubature",
    "cumulative_simpson",
    "cumulative_trapezoid",
    "dblquad",
    "fixed_quad",
    "lebedev_rule",
    "newton_cotes",
    "nquad",
    "nsum",
    "ode",
    "odeint",
    "qmc_quad",
    "quad",
    "quad_vec",
    "romb",
    "simpson",
    "solve_bvp",
    "solve_ivp",
    "tanhsinh",
    "tplquad",
    "trapezoid",
]

present(__name__)
