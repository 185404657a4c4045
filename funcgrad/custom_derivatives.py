"""Derivative rules by the user, under the names of ``jax.custom_derivatives``."""

from funcgrad.api.custom import closure_convert, custom_gradient, custom_jvp, custom_vjp
from funcgrad.api.custom_call import CustomVJPPrimal, custom_vjp_primal_tree_values
from funcgrad.api.linear_calls import linear_call
from funcgrad.api.rule_results import SymbolicZero, zero_from_primal
from funcgrad.base.namespaces import present

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_vjp", "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]  # fmt: skip

present(__name__)
