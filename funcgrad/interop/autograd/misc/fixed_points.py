"""``autograd.misc.fixed_points``: a fixed point, differentiated as one.

At ``x = f(a)(x)`` a cotangent ``g`` of ``x`` becomes ``w = g + w df/dx``, which is solved by the
same iteration, and the cotangent of ``a`` is ``w df/da`` (implicit function theorem).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.base.pytree import tree_map
from funcgrad.interop.autograd.boxes import getval
from funcgrad.interop.autograd.differential_operators import make_vjp
from funcgrad.interop.autograd.extend import defvjp_argnums, primitive, vspace

__all__ = ["fixed_point"]


def fixed_point(f: Any, a: Any, x0: Any, distance: Callable[..., Any], tol: float) -> Any:
    """Iterate ``x = f(a)(x)`` until it moves by no more than ``tol``.

    Args:
        f: ``f(a)`` is the function of ``x``, a contraction near the solution.
        a: Parameters, an array or a container of arrays; the result is differentiable in them.
        x0: Where to start, of the structure of the result.
        distance: ``distance(x, y)``, a number.
        tol: The distance of successive points at which to stop.
    Returns: The fixed point.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd import grad
        >>> from funcgrad.interop.autograd.misc.fixed_points import fixed_point
        >>> newton = lambda a: lambda x: 0.5 * (x + a / x)
        >>> root = lambda a: fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12)
        >>> round(float(grad(root)(4.0)), 9)
        0.25
    """

    def iterate(a: Any, x0: Any) -> Any:
        step = f(a)
        x, before = step(x0), x0
        while getval(distance(x, before)) > tol:
            x, before = step(x), x
        return x

    def vjps(argnums: Any, x: Any, args: Any, kwargs: Any) -> Any:
        a, start = args

        def pull(g: Any) -> list[Any]:
            def backward(parameters: Any) -> Any:
                a, x, g = parameters
                pull_x, _ = make_vjp(f(a))(x)
                return lambda w: tree_map(lambda u, v: u + v, pull_x(w), g)

            w = fixed_point(backward, (a, x, g), vspace(x).zeros(), distance, tol)
            pull_a, _ = make_vjp(lambda a: f(a)(x))(a)
            return [pull_a(w) if n == 0 else vspace(start).zeros() for n in argnums]

        return pull

    solve = primitive(iterate)
    defvjp_argnums(solve, vjps)
    return solve(a, x0)
