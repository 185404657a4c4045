"""`scipy.integrate` on arrays and traced values: samples, functions and differential equations.

What only makes constants, and SciPy's classes of solvers, are SciPy's own.
"""

# ruff: noqa: F401
# ruff: noqa: F403

from typing import TYPE_CHECKING, Any

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

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.integrate.boundary_values import solve_bvp
from funcgrad.scipy.integrate.initial_value import OdeResult, OdeSolution, odeint, solve_ivp
from funcgrad.scipy.integrate.meanings import MEANINGS
from funcgrad.scipy.integrate.quadrature import *
from funcgrad.scipy.integrate.samples import *

if TYPE_CHECKING:  # the names that are added below

    def __getattr__(name: str) -> Any: ...


vars().update(
    host_functions(
        "scipy.integrate",
        """
        cubature lebedev_rule newton_cotes nsum qmc_quad tanhsinh
        """,
    )
)

__all__ = page(vars())

share(__name__, MEANINGS)
present_results(__name__)
