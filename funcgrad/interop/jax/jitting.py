"""`jit` of arrays of the package ``jax``, and its fast path from arguments to results."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any

from funcgrad.api.calls import OfKind
from funcgrad.api.compilation import Entry, Jitted
from funcgrad.base.dialect import Dialect, default_dtype
from funcgrad.base.pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from funcgrad.base.tree_code import MISS
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.higher_order.jit import how_jit_runs
from funcgrad.interop.jax.arrays import Adopted, Array, DeletedArray, adopt, weak_array
from funcgrad.interop.jax.places import Labels
from funcgrad.interop.jax.placing import given
from funcgrad.interop.jax.random_keys import check_fits
from funcgrad.interop.jax.widths import given_halves, rules
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

    def _cache_size(self) -> int:
        return len(self._cache)

    @property
    def static_nums(self) -> Collection[int]:
        """Positions of arguments that are no arrays."""
        return self._static.nums

    @property
    def donates(self) -> bool:
        """Whether the memory of some arguments may be used for results."""
        return bool(self._donated)

    def donated_leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of the arguments that are donated."""
        nums, names = self._donated.nums, self._donated.names
        places = [i for i in nums if i < len(args)]
        return tree_leaves(
            ([args[i] for i in places], [v for k, v in kwargs.items() if k in names])
        )

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


def _in_memory_of(x: Array, made: Array) -> Array:
    """A result in the memory of the array that was donated for it: numbers come as copies."""
    if made.ndim or not x.flags.writeable:
        return made
    x.setfield(made, x.dtype)
    moved = x.view(Array)
    moved.weak_type = made.weak_type
    return moved


_LIMIT = 1 << 31
"""Bound of integers of 32 bits."""


class AdoptedJit(Adopted):
    """Result of ``jax.jit``: a jitted function that follows the rules of JAX.

    Args: original: The function that compiles itself.
    """

    _original: JittedOfArrays

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._original.donates:
            return self._call_donating(args, kwargs)
        return self._call(*args, **kwargs)

    def _call_donating(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, and delete the arrays whose memory results have then."""
        given = self._original.donated_leaves(args, kwargs)
        if not given:
            return self._call(*args, **kwargs)
        traces = self._original.cache_info().traces
        result = self._call(*args, **kwargs)
        if any(isinstance(x, Tracer) for x in given):
            return result
        given = [x for x in given if type(x) is Array]
        leaves, treedef = tree_flatten(result)
        for i, made in enumerate(leaves):
            like = [x for x in given if (x.shape, x.dtype) == (made.shape, made.dtype)]
            if like:
                leaves[i] = _in_memory_of(like[0], made)
                given = [x for x in given if x is not like[0]]
                like[0].delete()
        if given and self._original.cache_info().traces > traces:
            unused = ", ".join(f"{x.dtype.name}[{','.join(map(str, x.shape))}]" for x in given)
            warnings.warn(
                f"Some donated buffers were not usable: {unused}. No result has their shape and "
                "dtype.",
                stacklevel=3,
            )
        return tree_unflatten(treedef, leaves)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        for i, x in enumerate(args):
            if type(x) is int and not -_LIMIT <= x < _LIMIT and i not in self._original.static_nums:
                check_fits(x)
        if Labels.are_there:
            args, kwargs = tree_map(given, (args, kwargs))
        is_plain = not kwargs and not how_jit_runs() and not PROMOTIONS.users
        if is_plain and current_trace() is EVAL:
            result = self._original.short_way(args, rules())
            if result is not MISS:
                return result
        for leaf in tree_leaves((args, kwargs)):
            if type(leaf) is DeletedArray:
                leaf.refuse()
        args, kwargs = given_halves((args, kwargs))
        return super().__call__(*args, **kwargs)
