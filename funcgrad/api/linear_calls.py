"""linear_call: a linear function with a transpose by the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.api.arguments import Function, check_callable
from funcgrad.base.pytree import PyTreeDef, tree_unflatten
from funcgrad.core.avals import aval_of
from funcgrad.errors import TreeError
from funcgrad.higher_order.linear_call import LinearCall, zeros
from funcgrad.primitives.objects import flatten_values
from funcgrad.transforms.programs import stage_closed


def linear_call(
    fun: Function, fun_transpose: Function, residual_args: Any, linear_args: Any
) -> Any:
    """The value of a linear function whose transpose is given.

    Args:
        fun: ``fun(residuals, x)``, linear in ``x``.
        fun_transpose: ``fun_transpose(residuals, cotangent)``, the cotangent of ``x``.
        residual_args: What both may use: a pytree of arrays.
        linear_args: The argument ``x``: a pytree of arrays.
    Returns: ``fun(residual_args, linear_args)``.
    Raises: TreeError: On differentiation, if the transpose returns another structure than ``x``
            has.

    Example:
        >>> def f(x, denominator):
        ...     quotient = lambda r, v: v / r
        ...     return x + fg.custom_derivatives.linear_call(quotient, quotient, denominator, x)
        >>> print(fg.linear_transpose(lambda x: f(x, 4.0), 1.0)(2.0)[0])
        2.5
    """
    check_callable(fun, "linear_call")
    check_callable(fun_transpose, "linear_call")
    residuals, residual_tree = flatten_values(residual_args)
    operands, operand_tree = flatten_values(linear_args)
    count = len(residuals)
    out_tree: PyTreeDef = operand_tree

    def forward(kept: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        nonlocal out_tree
        found = fun(tree_unflatten(residual_tree, kept), tree_unflatten(operand_tree, values))
        flat, out_tree = flatten_values(found)
        return flat

    def backward(kept: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        filled = [
            zeros(a) if ct is None else ct for ct, a in zip(cotangents, out_avals, strict=True)
        ]
        found = fun_transpose(tree_unflatten(residual_tree, kept), tree_unflatten(out_tree, filled))
        flat, tree = flatten_values(found)
        if tree != operand_tree:
            raise TreeError(
                "linear_call: the transpose must return the structure of linear_args.\n"
                f"  expected      {operand_tree}\n  got           {tree}"
            )
        return flat

    def flat(*values: Any) -> list[Any]:
        return forward(values[:count], values[count:])

    avals = tuple(aval_of(x).strong() for x in (*residuals, *operands))
    program = stage_closed(flat, avals, "linear_call")
    out_avals = tuple(program.out_avals)
    call = LinearCall("linear_call", forward, backward, count, avals, out_avals)
    return tree_unflatten(out_tree, call.bind(*residuals, *operands))
