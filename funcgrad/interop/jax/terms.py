"""Sums over lanes of a mesh that are left for later, seen from outside of `shard_map`.

An array whose spec has unreduced axes is its sum for everything that reads it. Beside it stands
what the lanes have, stacked, with an axis in front for each that is unreduced: `shard_map` gives it
and takes it, `jit` carries it, and shards show it. The tangent of a sum has no terms of its own:
the first lane has all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad import sharding
from funcgrad.api.custom import custom_jvp
from funcgrad.base.pytree import tree_map
from funcgrad.core.trace import Tracer
from funcgrad.distributed.meshes import TermsSpec, sums_in
from funcgrad.interop.jax.arrays import Array, adopt
from funcgrad.interop.jax.places import is_spec, note_terms, noted_terms
from funcgrad.numpy import pad
from funcgrad.primitives.shape import ReduceSum, reshape, shape_of


def terms_of(x: Any) -> Any:
    """The terms of a sum, stacked; `None` if it is none, or nothing is known of them.

    Args: x: Any value.
    """
    if not isinstance(x, Tracer):
        return getattr(x, "terms", None)
    known = noted_terms(x)
    primal = getattr(x, "primal", None)
    if known is not None or primal is None:
        return known
    terms = terms_of(primal)
    return None if terms is None else _terms_beside(x, terms)


@custom_jvp
def _terms_beside(total: Any, terms: Any) -> Any:
    return terms


@_terms_beside.defjvp
def _of_tangents(primals: Any, tangents: Any) -> Any:
    shape = shape_of(primals[1])
    dot, dots = tangents
    stacked = len(shape) - len(shape_of(dot))
    rest = [(0, n - 1) if i < stacked else (0, 0) for i, n in enumerate(shape)]
    return primals[1], dots + pad(reshape(dot, (*[1] * stacked, *shape_of(dot))), rest)


def with_terms(x: Any, terms: Any) -> Any:
    """A sum that knows its terms.

    Args:
        x: The sum, which says how it is divided.
        terms: The terms, or `None`.
    """
    if terms is not None and isinstance(x, Tracer):
        note_terms(x, terms)
    elif terms is not None and type(x) is Array:
        x.terms = terms
    return x


def summed(terms: Any, spec: Any) -> Any:
    """The sum of what `shard_map` gives for a spec of terms."""
    if not isinstance(spec, TermsSpec):
        return terms
    return adopt(ReduceSum(tuple(range(len(spec.unreduced)))).bind(terms))


def stacking(specs: Any, axis_names: Sequence[Any]) -> Any:
    """Specs with the terms of sums instead of these.

    Args:
        specs: A pytree of specs.
        axis_names: Those of the mesh.
    """

    def stacked(spec: Any) -> Any:
        return TermsSpec(spec, axis_names) if sums_in(spec)[0] else spec

    return tree_map(stacked, specs, is_leaf=is_spec)


def without_terms(spec: Any) -> sharding.PartitionSpec:
    """The spec of a whole array; that of terms is of their sum."""
    if isinstance(spec, TermsSpec):
        return spec.total
    return sharding.P() if spec is None else spec
