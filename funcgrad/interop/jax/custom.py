"""Functions with rules of their own, called by the rules of JAX also where nothing is traced."""

from __future__ import annotations

from typing import Any

from funcgrad.api import custom
from funcgrad.api.arguments import Function
from funcgrad.base.dialect import enter_dialect, leave_dialect
from funcgrad.base.error_state import without_warnings
from funcgrad.base.pytree import tree_map
from funcgrad.core.trace import EVAL, current_trace
from funcgrad.interop.jax.arrays import adopt
from funcgrad.interop.jax.widths import is_x64, narrow, rules


class OfPackage(custom.CustomFunction):
    """A function whose arguments have the bits that there are, and whose results are adopted.

    Attributes:
        method: What gives it the rule without which it cannot be called; empty if it can be.
    """

    method = ""

    def def_vmap(self, vmap_rule: Function) -> Function:
        """Give the function its batching rule, or the one that it decorates, if that takes one."""
        inner = self.rules.fun
        if isinstance(inner, custom_vmap):
            return inner.def_vmap(vmap_rule)
        return super().def_vmap(vmap_rule)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.rules
        is_bare = given.jvp is None and given.fwd is None and given.vmap is None
        if is_bare and self.method:
            raise AttributeError(f"{self.name} has no rule yet: give it one by {self.method}.")
        if kwargs:
            args, kwargs = self._resolve(args, kwargs), {}
        token = enter_dialect(rules())
        try:
            if current_trace() is EVAL and not is_x64():  # traces narrow what they are given
                args, kwargs = tree_map(narrow, (args, kwargs))
            with without_warnings() as block, block:
                return adopt(super().__call__(*args, **kwargs))
        finally:
            leave_dialect(token)


class custom_jvp(OfPackage, custom.custom_jvp):
    """`funcgrad.custom_jvp` of arrays of the package."""

    method = "defjvp"


class custom_vjp(OfPackage, custom.custom_vjp):
    """`funcgrad.custom_vjp` of arrays of the package."""

    method = "defvjp"


class custom_vmap(OfPackage, custom.custom_vmap):
    """`funcgrad.custom_batching.custom_vmap` of arrays of the package."""

    method = "def_vmap"
