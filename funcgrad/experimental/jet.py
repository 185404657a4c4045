"""Taylor series: derivatives of all orders along a curve.

``jet : (a -> b) -> (a, derivatives of a curve) -> (b, derivatives of its image)``. The curve is the
polynomial with these derivatives at 0, and its image is differentiated in forward mode as often as
there are derivatives: ``n`` of them cost about ``2^n`` times the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.api.differentiation import jvp
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.namespaces import present
from funcgrad.pytree import tree_flatten, tree_map

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

    Returns:
        The value, and as many derivatives (or coefficients) of the value.

    Raises:
        ArgumentError: If numbers of arguments or of derivatives differ.
        TreeError: If a derivative does not have the structure of its argument.

    Example:
        >>> import numpy as np
        >>> from funcgrad.experimental.jet import jet
        >>> y, (first, second) = jet(np.sin, (0.5,), ((1.0, 0.0),))
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

    def curve(x: Any, terms: Sequence[Any], t: Any) -> Any:
        out = x
        for k, term in enumerate(terms, 1):
            scale = 1 / math.factorial(k) if factorial_scaled else 1.0
            out = tree_map(lambda a, b, s=scale, n=k: a + s * b * t**n, out, term)
        return out

    def image(t: Any) -> Any:
        return fun(*(curve(x, terms, t) for x, terms in zip(primals, series, strict=True)))

    found: list[Any] = []
    function: Callable[[Any], Any] = image
    for k in range(order + 1):
        scale = 1.0 if factorial_scaled else 1 / math.factorial(k)
        found.append(tree_map(lambda y, s=scale: s * y if s != 1.0 else y, function(0.0)))
        function = _derivative(function)
    return found[0], found[1:]


def _derivative(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda t: jvp(function, (t,), (1.0,))[1]


present(__name__)
