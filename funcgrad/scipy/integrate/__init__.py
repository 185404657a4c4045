"""`scipy.integrate` on arrays and traced values: samples, functions and differential equations."""

from funcgrad.namespaces import present
from funcgrad.scipy.integrate.initial_value import OdeResult, OdeSolution, odeint, solve_ivp

__all__ = ["OdeResult", "OdeSolution", "odeint", "solve_ivp"]

present(__name__)
