"""The functions that `vjp` and `linearize` return.

Both are pytrees, whose leaves are what they keep of the point: so compiled functions can return
them and take them, and `vmap` can map them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.api.arguments import (
    Owner,
    check_for_nans,
    leaf_paths,
    same_type,
    zeros_for,
    zeros_like,
)
from funcgrad.api.residuals import Skeleton, split
from funcgrad.base.dialect import NUMPY, default_dtype, dialect
from funcgrad.base.error_state import without_warnings
from funcgrad.base.forking import cached_property
from funcgrad.base.pytree import PyTreeDef, register_pytree_node, tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.base.transformed import BelongsToProcess
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.dtypes import float0
from funcgrad.errors import DtypeError, ShapeError, TreeError
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.objects import flatten_values, settled
from funcgrad.transforms.linearize import LinearMap


@dataclass(frozen=True)
class Signature:
    """Structures and types of the arguments and results of a function at a point."""

    what: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]


class LinearFunction(BelongsToProcess):
    """A derivative at a point.

    Args:
        signature: Of the function that it is the derivative of.
        linear: From tangents of all arguments to those of all results.
        kept: Values that results must not share memory with.
    """

    called = "a derivative at a point"
    instead = "Pickle the function and the point."

    def __init__(self, signature: Signature, linear: LinearMap, kept: Sequence[Any]) -> None:
        self.signature = signature
        self.linear = linear
        self.kept = kept

    @cached_property
    def parts(self) -> tuple[list[Any], Skeleton]:
        """The residuals, and the linear map without them."""
        return split(self.linear)

    def zero(self, aval: ShapedArray, i: int, of: str) -> Any:
        """A zero for a value of the point, "inputs" or "outputs", whose type is known."""
        point = self.linear.point
        return zeros_for(aval) if point is None else zeros_like(getattr(point, of)[i])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.signature.what}>"


class VjpFunction(LinearFunction):
    """From a cotangent of the result to a tuple with one for every argument."""

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        s = self.signature
        cts = check_cotangents(cotangent, s.out_tree, s.out_avals, s.what)
        with without_warnings() as block, block:
            pulled = self.linear.pull(cts)
        own = Owner([*self.kept, *cts])
        filled = [
            self.zero(a, i, "inputs") if ct is None else own(ct)
            for i, (ct, a) in enumerate(zip(pulled, s.in_avals, strict=True))
        ]
        check_for_nans(s.what, filled, (list(self.kept), cotangent))
        found: tuple[Any, ...] = tree_unflatten(s.in_tree, filled)
        return found


class JvpFunction(LinearFunction):
    """From tangents of the arguments to that of the result."""

    def __call__(self, *tangents: Any) -> Any:
        s = self.signature
        what = f"the linear map of {s.what}"
        dots = check_tangents(s.in_tree, s.in_avals, tangents, what)
        with without_warnings() as block, block:
            pushed = self.linear.push(dots)
        own = Owner([*self.kept, *dots])
        filled = [
            self.zero(a, i, "outputs") if t is None else own(t)
            for i, (t, a) in enumerate(zip(pushed, s.out_avals, strict=True))
        ]
        check_for_nans(s.what, filled, (*self.kept, *tangents))
        return tree_unflatten(s.out_tree, filled)


def _flatten(function: LinearFunction) -> tuple[list[Any], tuple[Signature, Skeleton]]:
    residuals, skeleton = function.parts
    return residuals, (function.signature, skeleton)


def _register(kind: type[LinearFunction]) -> None:
    def unflatten(meta: tuple[Signature, Skeleton], residuals: Sequence[Any]) -> LinearFunction:
        signature, skeleton = meta
        residuals = list(map(settled, residuals))
        function = kind(signature, skeleton.fill(residuals), residuals)
        # Not found again, for the residuals may be anything now.
        function.parts = residuals, skeleton
        return function

    register_pytree_node(kind, _flatten, unflatten, is_transient=True)


_register(VjpFunction)
_register(JvpFunction)


def _rows(
    name: str, given: Any, treedef: PyTreeDef, avals: Sequence[ShapedArray], what: str, like: str
) -> Iterable[tuple[Any, ShapedArray, Callable[[], str]]]:
    """Leaves of directions that must have a structure, with their types and how to name them."""
    leaves, structure = flatten_values(given)
    if structure != treedef and structure != treedef.closed():
        raise TreeError(
            f"the {name} for {what} must have the structure of {like}.\n"
            f"  expected      {treedef.closed()}\n  got           {structure.closed()}"
        )
    paths = [partial(_path, given, name, i) for i in range(len(leaves))]
    return zip(leaves, avals, paths, strict=True)


def _path(tree: Any, name: str, i: int) -> str:
    return leaf_paths(tree, name)[i]


def check_cotangents(
    cotangent: Any, treedef: PyTreeDef, avals: Sequence[ShapedArray], what: str
) -> list[Any]:
    """Leaves of a cotangent of the structure and types of a result, ``None`` where zero."""
    rows = _rows("cotangent", cotangent, treedef, avals, what, "the function's result")
    return [_check_ct(*row, what) for row in rows]


def _check_ct(ct: Any, aval: ShapedArray, path: Callable[[], str], what: str) -> Any:
    if aval.dtype.kind not in "fc":
        return None
    if isinstance(ct, np.ndarray) and ct.dtype == float0:
        return None
    if type(ct) in (int, float, complex) and not aval.shape:
        return aval.dtype.type(ct)
    got = aval_of(ct)
    if _is_exact(got, aval) or _is_narrowed(got, aval):
        return convert(ct, aval.dtype)
    if not same_type(got, aval):
        raise ShapeError(
            f"the cotangent `{path()}` for {what} must have the type of the function's result, "
            f"{aval.strong()}, but is {got.strong()}."
        )
    return ct


def _is_exact(got: ShapedArray, aval: ShapedArray) -> bool:
    """Whether a direction is of integers or bools: SciPy tries linear operators with ``int8``.

    Unlike another floating dtype they do not tell of a precision that got lost. JAX refuses them.
    """
    return got.dtype.kind in "biu" and got.shape == aval.shape and dialect() is NUMPY


def _is_narrowed(got: ShapedArray, aval: ShapedArray) -> bool:
    """Whether a direction has the bits in which the dialect has handed a result over."""
    wanted = default_dtype(aval.dtype)
    return got.shape == aval.shape and got.dtype == wanted != aval.dtype


def check_tangents(
    treedef: PyTreeDef, avals: Sequence[ShapedArray], tangents: Any, what: str
) -> list[Any]:
    """Leaves of tangents of the structure and types of their primals, ``None`` for float0."""
    rows = _rows("tangents", tangents, treedef, avals, what, "the primals")
    return [_check_tangent(*row, what) for row in rows]


def _check_tangent(tangent: Any, aval: ShapedArray, path: Callable[[], str], what: str) -> Any:
    if isinstance(tangent, np.ndarray) and tangent.dtype == float0:
        if aval.dtype.kind in "fc":
            raise DtypeError(f"{what}: the tangent `{path()}` is float0, its primal is {aval}.")
        return None
    if type(tangent) in (int, float, complex) and not aval.shape and aval.dtype.kind in "fc":
        return aval.dtype.type(tangent)
    got = aval_of(tangent)
    if aval.dtype.kind not in "fc":
        raise DtypeError(
            f"{what}: the primal of `{path()}` is {aval}, which has no derivative, so its tangent "
            f"must be np.zeros({aval.shape}, funcgrad.float0), but is {got}. Close over it instead."
        )
    if _is_exact(got, aval):
        return convert(tangent, aval.dtype)
    if not same_type(got, aval):
        raise ShapeError(
            f"{what}: the tangent `{path()}` must have the type of its primal, {aval.strong()}, "
            f"but is {got.strong()}."
        )
    return tangent
