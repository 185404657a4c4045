"""Structures and types of the results of users' rules, checked by path.

Messages name the rule with the file and line of its definition.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.api.arguments import has_type, leaf_paths, same_type
from funcgrad.base import pytree
from funcgrad.base.dialect import default_dtype, ignores_cotangents_of_integers, repeats_cotangents
from funcgrad.base.scalars import plain_number
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import float0
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeError
from funcgrad.higher_order.linear_call import zeros
from funcgrad.primitives.elementwise import Convert, convert
from funcgrad.primitives.objects import HoldsArray, flatten_held, flatten_values, unwrapped

VALUE_TYPES = (Tracer, np.ndarray, np.generic, bool, int, float, complex)


class SymbolicZero:
    """A tangent that is known to be zero, for rules made with ``symbolic_zeros=True``.

    Args:
        shape: Shape of the tangent, or its type.
        dtype: Its dtype; ``float0`` for integers and bools. Not given beside a type.
    Example: fg.SymbolicZero((3,), np.float64).shape -> (3,)
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...] | ShapedArray, dtype: Any = None) -> None:
        if isinstance(shape, ShapedArray):
            dtype = shape.dtype
        self.shape = shape.shape if isinstance(shape, ShapedArray) else shape
        self.dtype = np.dtype(dtype)

    @property
    def aval(self) -> ShapedArray:
        """Its type."""
        return ShapedArray(self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"SymbolicZero(shape={self.shape}, dtype={self.dtype})"


def zero_tangent(aval: ShapedArray) -> Any:
    """Zeros of the tangent type."""
    return zeros(aval) if aval.dtype.kind in "fc" else np.zeros(aval.shape, float0)


def symbolic_zero(aval: ShapedArray) -> SymbolicZero:
    """The tangent that is known to be zero."""
    return SymbolicZero(aval.shape, aval.dtype if aval.dtype.kind in "fc" else float0)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value.

    Args:
        val: Number or array, or a pytree of them.
        symbolic_zeros: Whether to return a `SymbolicZero`.
    Returns: For each leaf zeros of its shape: of dtype `float0` for integers and bools, else of its
        own.

    Example:
        >>> fg.custom_derivatives.zero_from_primal(np.ones(2))
        array([0., 0.])
        >>> fg.custom_derivatives.zero_from_primal(3, symbolic_zeros=True).shape
        ()
    """
    leaves, treedef = flatten_held(val)
    avals = [aval_of(x).strong() for x in leaves]
    zeros: list[Any] = list(map(symbolic_zero, avals))
    if not symbolic_zeros:
        zeros = [np.array(x) if isinstance(x, np.ndarray) else x for x in map(zero_tangent, avals)]
    return zeros[0] if treedef.is_leaf else pytree.tree_unflatten(treedef, zeros)


def is_zero_tree(tree: Any) -> bool:
    """Whether all tangents of an argument are known to be zero."""
    return all(isinstance(x, SymbolicZero) for x in pytree.tree_leaves(tree))


def title_of(kind: str, name: str, rule: Any) -> str:
    """How messages call a rule: with the place of its definition."""
    place = place_of(rule)
    return f"the {kind} rule of {name}" + (f" ({place})" if place else "")


def place_of(function: Any) -> str:
    """Name, file and line of a function; empty for those that are not written in Python."""
    while not hasattr(function, "__code__"):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inner is None:
            return ""
        function = inner
    code = function.__code__
    file = os.path.basename(code.co_filename)
    return f"{function.__name__}, {file}:{code.co_firstlineno}"


def describe(value: Any) -> str:
    """A value as messages show it: arrays by their types."""
    if isinstance(value, np.ndarray) and value.dtype == float0:
        return f"float0[{','.join(map(str, value.shape))}]"
    if isinstance(value, VALUE_TYPES):
        return str(aval_of(value).strong())
    if isinstance(value, HoldsArray):
        return value.aval_text
    if isinstance(value, tuple | list | dict):
        return f"a pytree with structure {pytree.tree_structure(value)}"
    return f"a {type(value).__name__}"


def aval_of_result(leaf: Any, path: str, what: str) -> ShapedArray:
    """Type of a leaf that a rule returned."""
    try:
        return aval_of(leaf)
    except DtypeError:
        raise DtypeError(
            f"{what} returned a {type(leaf).__name__} as `{path}`, which is neither an array nor a "
            "number. Return arrays or pytrees of arrays."
        ) from None


def check_pair(result: Any, what: str, second: str) -> tuple[Any, Any]:
    """The two results of a rule."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise ArgumentError(
            f"{what} must return a pair (value, {second}), but it returned {describe(result)}."
        )
    return result[0], result[1]


class ResultType:
    """Structure and types of what a function and all of its rules return.

    The first result that is seen fixes them.

    Attributes:
        tree: The structure.
        avals: The types, which may be weak.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.tree: pytree.PyTreeDef | None = None
        self.avals: list[ShapedArray] | None = None

    def flatten(self, out: Any, what: str) -> list[Any]:
        """Leaves of a result; those that differ in bits that the dialect has not, as the first."""
        outs = self.flatten_mapped(out, what)
        if self.avals is None:
            self.avals = list(map(aval_of, outs))
        for i, (x, y) in enumerate(zip(outs, self.avals, strict=True)):
            got, expected = aval_of(x).strong(), y.strong()
            if got == expected:
                continue
            if _in_dialect(got) == _in_dialect(expected):
                outs[i] = Convert(y.dtype, weak=y.weak_type).bind(x)
            else:
                path = leaf_paths(out, "result")[i]
                raise ShapeError(
                    f"{what} must return what {self.name} returns, but `{path}` has another type."
                    f"\n  expected      {expected}\n  got           {got}"
                )
        return outs

    def flatten_mapped(self, out: Any, what: str) -> list[Any]:
        """Leaves of a result of a batching rule, whose types have one more axis."""
        outs, tree = flatten_values(out)
        if self.tree is not None and tree != self.tree:
            raise TreeError(
                f"{what} must return a value with the structure of {self.name}'s.\n"
                f"  expected      {self.tree}\n  got           {tree}"
            )
        self.tree = tree
        for i, x in enumerate(outs):
            if not has_type(x):
                aval_of_result(x, leaf_paths(out, "result")[i], what)
        return [plain_number(x) for x in outs]


def _in_dialect(aval: ShapedArray) -> ShapedArray:
    """A type in the bits that the dialect has: weak integers may have others."""
    return ShapedArray(aval.shape, default_dtype(aval.dtype))


class Fit:
    """Takes tangents or cotangents apart that a rule returned.

    Args:
        what: The rule, as messages call it.
        kind: ``"tangent"`` or ``"cotangent"``.
    """

    def __init__(self, what: str, kind: str) -> None:
        self.what = what
        self.kind = kind

    def leaves(
        self, tree: Any, treedef: pytree.PyTreeDef, avals: Sequence[ShapedArray], root: str
    ) -> list[Any]:
        """Leaves of the expected types, ``None`` where zero.

        Args:
            tree: What the rule returned; ``None`` stands for any subtree.
            treedef: The structure that it should have.
            avals: Types of the leaves of the primal.
            root: Path of the primal.
        """
        rows: list[tuple[str, Any]] = []
        pending = [(tree, treedef, root)]
        while pending:
            pending.extend(reversed(self._parts(*pending.pop(), rows)))
        return [self._leaf(x, aval, path) for (path, x), aval in zip(rows, avals, strict=True)]

    def _parts(
        self, tree: Any, treedef: pytree.PyTreeDef, path: str, rows: list[tuple[str, Any]]
    ) -> list[tuple[Any, pytree.PyTreeDef, str]]:
        """The children of a container, with their structures and paths; a leaf goes to ``rows``."""
        if tree is None:
            rows.extend([(path, None)] * treedef.num_leaves)
            return []
        if not treedef.is_leaf and treedef.closed().is_leaf:  # of one array for users
            rows.extend([(path, tree)] * treedef.num_leaves)
            return []
        children, got = pytree.tree_flatten_with_path(tree, is_leaf=lambda x: x is not tree)
        if got.is_leaf and (treedef.is_leaf or repeats_cotangents()):
            rows.extend([(path, plain_number(tree))] * treedef.num_leaves)
            return []
        if not got.has_root_of(treedef) or len(children) != len(treedef.children()):
            raise TreeError(
                f"{self.what} returned a {self.kind} of the wrong structure for `{path}`.\n"
                f"  expected      {_describe_structure(treedef)}\n"
                f"  got           {_describe_structure(pytree.tree_structure(tree))}\n"
                "Return the structure of the primal; None may stand for zeros."
            )
        return [
            (part, child, path + pytree.keystr(keys))
            for (keys, part), child in zip(children, treedef.children(), strict=True)
        ]

    def _leaf(self, value: Any, aval: ShapedArray, path: str) -> Any:
        if value is None or (isinstance(value, SymbolicZero) and value.shape == aval.shape):
            return None
        value = unwrapped(value)
        is_float0 = isinstance(value, np.ndarray) and value.dtype == float0
        if aval.dtype.kind not in "fc":
            is_known = is_float0 or ignores_cotangents_of_integers()
            if is_known and np.shape(value) == aval.shape:
                return None
            raise DtypeError(
                f"{self.what} returned a {self.kind} for `{path}`, but {aval.strong()} has none.\n"
                f"  expected      None or float0[{','.join(map(str, aval.shape))}]\n"
                f"  got           {describe(value)}"
            )
        if not is_float0:
            got = aval_of_result(value, path, self.what)
            if same_type(got, aval):
                return value
            if _converts(got, aval):
                return convert(value, aval.dtype)
        raise ShapeError(
            f"{self.what} returned a {self.kind} of the wrong type for `{path}`.\n"
            f"  expected      {aval.strong()}\n  got           {describe(value)}"
        )


def _converts(got: ShapedArray, aval: ShapedArray) -> bool:
    """Whether a Python number may stand for an array of a type."""
    return got.weak_type and got.shape == aval.shape and got.dtype.kind in "iuf" + aval.dtype.kind


def _describe_structure(treedef: pytree.PyTreeDef) -> str:
    return "an array" if treedef.is_leaf else str(treedef)
