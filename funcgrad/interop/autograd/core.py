"""``autograd.core``: the unary forms of ``make_vjp`` and ``make_jvp``, and the rules' names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from funcgrad.interop.autograd import differential_operators
from funcgrad.interop.autograd.boxes import getval, isbox
from funcgrad.interop.autograd.extend import (
    WITH_RULES,
    Primitive,
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

__all__ = [
    "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum",
    "defvjp_argnums", "getval", "isbox", "make_jvp", "make_vjp", "primitive", "primitive_jvps",
    "primitive_vjps", "vspace",
]  # fmt: skip


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


class _Rules(MutableMapping[Primitive, Callable[..., Any]]):
    """Rules of one mode that users gave to primitives."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def __getitem__(self, fun: Any) -> Callable[..., Any]:
        rule = getattr(fun, self.mode) if isinstance(fun, Primitive) else None
        if rule is None:
            raise KeyError(fun)
        return rule

    def __setitem__(self, fun: Primitive, rule: Callable[..., Any]) -> None:
        (defvjp_argnums if self.mode == "vjps" else defjvp_argnums)(fun, rule)

    def __delitem__(self, fun: Primitive) -> None:
        self[fun]
        setattr(fun, self.mode, None)

    def __iter__(self) -> Iterator[Primitive]:
        return (fun for fun in WITH_RULES if getattr(fun, self.mode) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


primitive_vjps = _Rules("vjps")
primitive_jvps = _Rules("jvps")
