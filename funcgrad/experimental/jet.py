"""Taylor series: derivatives of all orders along a curve.

``jet : (a -> b) -> (a, derivatives of a curve) -> (b, derivatives of its image)``. The curve is the
polynomial with these derivatives at 0. Operations pass on the coefficients of Taylor series
(`funcgrad.higher_order.taylor`): ``n`` derivatives cost about ``n^2`` times the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.api.arguments import name_of
from funcgrad.base.namespaces import present
from funcgrad.base.pytree import tree_flatten, tree_unflatten
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.higher_order.taylor import taylor_flat
from funcgrad.primitives.objects import is_traced

__all__ = ["jet"]


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
    **options: Any,
) -> tuple[Any, list[Any]]:
    """The value of a function on a curve, and the derivatives along it.

    Args:
        fun: Function of pytrees of floating arrays.
        primals: Its arguments.
        series: For each of them the derivatives of the curve: the first, the second, and so on, as
            many for all.
        factorial_scaled: Whether they are derivatives; otherwise they are the coefficients of the
            powers, which are derivatives divided by factorials.
        **options: Of no effect.
    Returns: The value, and as many derivatives (or coefficients) of the value.

    Raises:
        ArgumentError: If numbers of arguments or of derivatives differ.
        TreeError: If a derivative does not have the structure of its argument.

    Example:
        >>> y, (first, second) = fg.experimental.jet.jet(np.sin, (0.5,), ((1.0, 0.0),))
        >>> print(np.round([y, first, second], 4))
        [ 0.4794  0.8776 -0.4794]
    """
    orders = {len(terms) for terms in series}
    if len(series) != len(primals) or len(orders) != 1:
        raise ArgumentError(
            f"jet: {len(primals)} arguments need as many series of one length, got "
            f"{len(series)} of lengths {sorted(orders)}."
        )
    (order,) = orders
    for x, terms in zip(primals, series, strict=True):
        treedef = tree_flatten(x)[1]
        for term in terms:
            if tree_flatten(term)[1] != treedef:
                raise TreeError(
                    f"jet: a derivative must have the structure of its argument, {treedef}, got "
                    f"{tree_flatten(term)[1]}."
                )

    leaves, treedef = tree_flatten(tuple(primals))
    by_order = [tree_flatten(tuple(terms[k] for terms in series))[0] for k in range(order)]
    args = [
        [_as_value(x), *(_scaled(t, x, k, factorial_scaled) for k, t in enumerate(terms, 1))]
        for x, *terms in zip(leaves, *by_order, strict=True)
    ]
    out_tree: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        out, tree = tree_flatten(fun(*tree_unflatten(treedef, xs)))
        out_tree.append(tree)
        return out

    found = taylor_flat(flat, args, order, f"jet({name_of(fun)})")
    values = [
        tree_unflatten(out_tree[0], [_derivative(terms, k, factorial_scaled) for terms in found])
        for k in range(order + 1)
    ]
    return values[0], values[1:]


def _as_value(x: Any) -> Any:
    return x if hasattr(x, "dtype") else np.asarray(x)[()]


def _scaled(term: Any, x: Any, k: int, is_derivative: bool) -> Any:
    """A coefficient, of the dtype of its argument; ``None`` if it is known to be zero."""
    if not is_traced(term) and not np.any(term):
        return None
    dtype = aval_of(x).dtype
    value = fnp.broadcast_to(fnp.astype(fnp.asarray(term), dtype), fnp.shape(x))
    return value / math.factorial(k) if is_derivative and k > 1 else value


def _derivative(terms: Sequence[Any], k: int, is_derivative: bool) -> Any:
    if terms[k] is None:
        return fnp.zeros_like(terms[0])
    return math.factorial(k) * terms[k] if is_derivative and k > 1 else terms[k]


present(__name__)
