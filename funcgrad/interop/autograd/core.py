"""``autograd.core``: the unary forms of ``make_vjp`` and ``make_jvp``, and the rules' names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.interop.autograd import differential_operators
from funcgrad.interop.autograd.extend import (
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    vspace,
)
from funcgrad.interop.autograd.tracer import getval, isbox

__all__ = [
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "getval",
    "isbox",
    "make_jvp",
    "make_vjp",
    "primitive",
    "vspace",
]


def make_vjp(fun: Callable[..., Any], x: Any) -> Any:
    """``(vjp, value)`` of a function of one argument.

    Args:
        fun: The function.
        x: The point.
    """
    return differential_operators.make_vjp(fun)(x)


def make_jvp(fun: Callable[..., Any], x: Any) -> Any:
    """The function from a tangent to ``(value, tangent)``, of a function of one argument.

    Args:
        fun: The function.
        x: The point.
    """
    return differential_operators.make_jvp(fun)(x)
