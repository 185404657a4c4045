"""Derivative rules by the user, under the names of ``jax.custom_derivatives``."""

from funcgrad.api.custom import closure_convert, custom_gradient, custom_jvp, custom_vjp
from funcgrad.api.linear_calls import linear_call
from funcgrad.api.rule_results import SymbolicZero
from funcgrad.namespaces import present

__all__ = [
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "linear_call",
]

present(__name__)
