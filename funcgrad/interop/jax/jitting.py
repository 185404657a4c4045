"""`jit` of arrays of the package ``jax``, and its short way from arguments to results."""

from __future__ import annotations

from typing import Any

from funcgrad.api.calls import OfKind
from funcgrad.api.compilation import Entry, Jitted
from funcgrad.base.dialect import Dialect, default_dtype
from funcgrad.base.pytree import tree_unflatten
from funcgrad.base.tree_code import MISS
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.trace import EVAL, current_trace
from funcgrad.higher_order.jit import how_jit_runs
from funcgrad.interop.jax.arrays import Adopted, Array, adopt, weak_array
from funcgrad.interop.jax.widths import rules
from funcgrad.observers.promotion import PROMOTIONS


class JittedOfArrays(Jitted):
    """A function that compiles itself, which takes and gives arrays of the package ``jax``."""

    kind = Array

    def short_way(self, args: tuple[Any, ...], now: Dialect) -> Any:
        """The result by a call path for these rules, or `MISS`."""
        for path in self._paths_along.get((axes_in_scope(), now), ()):
            result = path(args)
            if result is not MISS:
                self._info.hits += 1
                return result
        return MISS

    def _given(self, entry: Entry, outs: list[Any]) -> Any:
        held, avals = entry.out_tree.held_names(), entry.staged.out_avals
        made = [
            x if name is not None else weak_array(x) if aval.weak_type else adopt(x)
            for x, name, aval in zip(outs, held, avals, strict=True)
        ]
        return tree_unflatten(entry.out_tree, made)

    def _results_of_kind(self, entry: Entry) -> OfKind:
        held, avals = entry.out_tree.held_names(), entry.staged.out_avals
        dtypes = [
            default_dtype(a.dtype) if name is None else None
            for a, name in zip(avals, held, strict=True)
        ]
        return OfKind(Array, tuple(dtypes), tuple(a.weak_type for a in avals))


class AdoptedJit(Adopted):
    """Result of ``jax.jit``: a jitted function that follows the rules of JAX.

    Args:
        original: The function that compiles itself.
    """

    _original: JittedOfArrays

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_plain = not kwargs and not how_jit_runs() and not PROMOTIONS.users
        if is_plain and current_trace() is EVAL:
            result = self._original.short_way(args, rules())
            if result is not MISS:
                return result
        return super().__call__(*args, **kwargs)
