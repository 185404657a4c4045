"""Folds over axes, running folds, the places of extremes, and sorting."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.base.pytree import PyTreeDef, tree_structure
from funcgrad.base.records import dataclass
from funcgrad.base.signatures import call_of, docstring
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.dtypes import BOOL
from funcgrad.errors import ArgumentError, ShapeError, TreeError
from funcgrad.higher_order.staging import check_function, name_of
from funcgrad.lax import elementwise
from funcgrad.lax.operands import (
    Array,
    ArrayLike,
    array_operand,
    canonical_axes,
    canonical_axis,
    canonical_dtype,
    check_kinds,
    checked,
    same_dtype,
)
from funcgrad.lax.shapes import broadcast, concatenate, reshape, transpose
from funcgrad.primitives import cumulative, reductions, sorting
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.objects import flatten_numbers
from funcgrad.primitives.shape import ReduceSum
from funcgrad.transforms.batch import batch_flat

__all__ = [
    "argmax", "argmin", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "reduce",
    "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
    "reduce_xor", "sort", "sort_key_val", "top_k",
]  # fmt: skip

_RAISES = {
    "DtypeError": "If the dtype is of another kind.",
    "ShapeError": "If an axis is not there.",
}


def _reduction(
    name: str,
    kind: type[Primitive],
    summary: str,
    kinds: str,
    shows: str = "",
    of_bits: Callable[..., Array] | None = None,
) -> Callable[..., Array]:
    def function(operand: ArrayLike, axes: Sequence[int]) -> Array:
        x = array_operand(name, operand)
        check_kinds(name, aval_of(x).dtype, kinds)
        counted = tuple(sorted(canonical_axes(name, axes, len(shape_of(x)))))
        if of_bits is not None and aval_of(x).dtype != BOOL:
            return _fold_bits(of_bits, x, counted)
        return checked(kind(counted), x) if counted else x  # type: ignore[call-arg]

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    meanings = {
        "operand": "The array; its dtype is that of the result.",
        "axes": "Axes to reduce, a tuple; they are dropped.",
    }
    call = call_of(f"fg.lax.{name}", shows)
    returns = "An array without the axes that are reduced."
    function.__doc__ = docstring(summary, meanings, call, returns=returns, raises=_RAISES)
    return function


_sum = _reduction("reduce_sum", ReduceSum, "Sum over ``axes``.", "iufc")
reduce_prod = _reduction(
    "reduce_prod",
    reductions.ReduceProd,
    "Product over ``axes``.",
    "iufc",
    shows="np.arange(6.0).reshape(2, 3), (1,) -> array([ 0., 60.])",
)
reduce_max = _reduction(
    "reduce_max",
    reductions.ReduceMax,
    "Maximum over ``axes``; nan if any element is nan.",
    "biufc",
    shows="np.arange(6.0).reshape(2, 3), (1,) -> array([2., 5.])",
)
reduce_min = _reduction(
    "reduce_min",
    reductions.ReduceMin,
    "Minimum over ``axes``; nan if any element is nan.",
    "biufc",
    shows="np.arange(6.0).reshape(2, 3), (1,) -> array([0., 3.])",
)
reduce_or = _reduction(
    "reduce_or",
    reductions.ReduceAny,
    "Whether any of the bools along ``axes`` is true; of integers, or of their bits.",
    "biu",
    shows="np.array([True, False]), (0,) -> np.True_",
    of_bits=elementwise.bitwise_or,
)
reduce_and = _reduction(
    "reduce_and",
    reductions.ReduceAll,
    "Whether all of the bools along ``axes`` are true; of integers, and of their bits.",
    "biu",
    shows="np.array([True, False]), (0,) -> np.False_",
    of_bits=elementwise.bitwise_and,
)


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Sum over ``axes``, which are dropped; the dtype stays.

    Example: fg.lax.reduce_sum(np.arange(6.0).reshape(2, 3), (1,)) -> array([ 3., 12.])
    """
    check_placement("lax.reduce_sum", out_sharding=out_sharding)
    return _sum(operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Exclusive or of the bits of integers, or of bools, over ``axes``, which are dropped.

    Args: operand: Array of integers or bools.
    Example: print(fg.lax.reduce_xor(np.array([6, 3, 1]), (0,))) -> 4
    """
    x = array_operand("reduce_xor", operand)
    dtype = aval_of(x).dtype
    check_kinds("reduce_xor", dtype, "biu")
    return reduce(x, dtype.type(0), elementwise.bitwise_xor, axes)


_Monoid = tuple[Callable[..., Array], Callable[..., Array]]
_MONOIDS: dict[Any, _Monoid] = {
    key: (combine, fold)
    for combine, fold, keys in (
        (elementwise.add, reduce_sum, (elementwise.add, operator.add, np.add)),
        (elementwise.mul, reduce_prod, (elementwise.mul, operator.mul, np.multiply)),
        (elementwise.max, reduce_max, (elementwise.max, np.maximum)),
        (elementwise.min, reduce_min, (elementwise.min, np.minimum)),
        (elementwise.bitwise_or, reduce_or, (elementwise.bitwise_or, operator.or_, np.logical_or)),
        (
            elementwise.bitwise_and,
            reduce_and,
            (elementwise.bitwise_and, operator.and_, np.logical_and),
        ),
    )
    for key in keys
}


def monoid(computation: Callable[[Any, Any], Any]) -> _Monoid | None:
    """A function that is known to be associative, and the reduction by it."""
    return _MONOIDS.get(computation) if isinstance(computation, Hashable) else None


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """A fold over ``dimensions`` that starts with ``init_values``.

    Elements that stand next to each other are combined in pairs, then the results, and so on:
    ``computation`` is traced about ``log2(n)`` times for ``n`` elements. Sums, products, extremes
    and those of bools (``add``, ``mul``, ``max``, ``min``, ``bitwise_or``, ``bitwise_and`` of
    `lax`, `operator` or NumPy) are operations of their own.

    Args:
        operands: Array, or pytree of arrays of one shape, which are folded together.
        init_values: Scalar of its dtype, or pytree of them.
        dimensions: The axes, which are dropped.
    Returns: The folded array, or pytree of them.

    Raises:
        ArgumentError: If ``computation`` is no function.
        ShapeError: If shapes of operands differ, or ``computation`` changes types.
        TreeError: If structures differ.

    Example:
        >>> print(fg.lax.reduce(np.arange(4.0), 10.0, fg.lax.add, (0,)))
        16.0
        >>> print(fg.lax.reduce(np.arange(4.0), -np.inf, np.logaddexp, (0,)).round(4))
        3.4402
    """
    check_placement("lax.reduce", out_sharding=out_sharding)
    check_function(computation, "computation", "reduce")
    leaves, treedef = flatten_numbers(operands)
    known = monoid(computation) if treedef.is_leaf else None
    if known is not None:
        combine, fold = known
        x, init = same_dtype("reduce", array_operand("reduce", operands), init_values)
        return combine(init, fold(x, dimensions))
    starts, start_tree = flatten_numbers(init_values)
    if start_tree != treedef:
        raise TreeError(
            "lax.reduce: init_values must have the structure of operands.\n"
            f"  expected      {treedef}\n  got           {start_tree}"
        )
    pairs = [
        same_dtype("reduce", array_operand("reduce", x), v)
        for x, v in zip(leaves, starts, strict=True)
    ]
    fold_pairs = _Fold(computation, treedef, [x for x, _ in pairs], [v for _, v in pairs])
    return treedef.unflatten(fold_pairs.along(dimensions))


def _fold_bits(computation: Callable[..., Array], x: Array, axes: Sequence[int]) -> Array:
    """Integers folded bit by bit."""
    zero = aval_of(x).dtype.type(0)
    start = ~zero if computation is elementwise.bitwise_and else zero
    return _Fold(computation, tree_structure(0), [x], [start]).along(axes)[0]


@dataclass(eq=False)
class _Fold:
    """A fold by an associative function of pytrees of scalars."""

    computation: Callable[[Any, Any], Any]
    treedef: PyTreeDef
    arrays: list[Array]
    starts: list[Array]

    def __post_init__(self) -> None:
        self.what = f"lax.reduce({name_of(self.computation)})"
        shapes = {shape_of(x) for x in self.arrays}
        if len(shapes) != 1 or any(shape_of(v) for v in self.starts):
            types = ", ".join(str(aval_of(x)) for x in (*self.arrays, *self.starts))
            raise ShapeError(
                f"{self.what}: operands must have one shape and init_values must be scalars, got "
                f"{types}."
            )
        (self.shape,) = shapes

    def along(self, dimensions: Sequence[int]) -> list[Array]:
        """The results for every position in the other axes."""
        ndim = len(self.shape)
        axes = tuple(sorted(canonical_axes("reduce", dimensions, ndim)))
        kept = [i for i in range(ndim) if i not in axes]
        rest = tuple(self.shape[i] for i in kept)
        n, width = prod(self.shape[i] for i in axes), prod(rest)
        lines = [reshape(transpose(x, [*axes, *kept]), (n, width)) for x in self.arrays]
        while n > 1:
            lines, n = self.halved(lines, n), (n + 1) // 2
        if n:
            lines = self.combined(self.starts, [x[0] for x in lines], width, False)
        else:
            lines = [broadcast(v, (width,)) for v in self.starts]
        return [reshape(x, rest) for x in lines]

    def halved(self, lines: list[Array], n: int) -> list[Array]:
        """Neighbours combined; the last row of an odd number stays as it is."""
        m, width = n // 2, shape_of(lines[0])[1]
        left, right = ([reshape(x[i : 2 * m : 2], (m * width,)) for x in lines] for i in (0, 1))
        pairs = [reshape(x, (m, width)) for x in self.combined(left, right, m * width, True)]
        if n % 2:
            return [concatenate([x, y[-1:]], 0) for x, y in zip(pairs, lines, strict=True)]
        return pairs

    def combined(
        self, left: list[Array], right: list[Array], size: int, is_left_mapped: bool
    ) -> list[Array]:
        """The function mapped over corresponding elements."""
        k = len(left)

        def flat(*scalars: Array) -> list[Array]:
            out = self.computation(
                self.treedef.unflatten(scalars[:k]), self.treedef.unflatten(scalars[k:])
            )
            outs, tree = flatten_numbers(out)
            if tree != self.treedef:
                raise TreeError(
                    f"{self.what}: the function must keep the structure.\n"
                    f"  expected      {self.treedef}\n  got           {tree}"
                )
            return [self.fitting(x, v) for x, v in zip(outs, self.starts, strict=True)]

        dims = [0 if is_left_mapped else None] * k + [0] * k
        outs, out_dims = batch_flat(flat, [*left, *right], dims, size, self.what, None)
        return [
            x if d is not None else broadcast(x, (size,))
            for x, d in zip(outs, out_dims, strict=True)
        ]

    def fitting(self, out: Array, start: Array) -> Array:
        """A result of the function, which has the type of its operands."""
        expected = aval_of(start).strong()
        got = aval_of(out)
        if got.shape or (got.dtype != expected.dtype and not got.weak_type):
            raise ShapeError(
                f"{self.what}: the function must return {expected} as it is given, but it "
                f"returned {got.strong()}."
            )
        return convert(out, expected.dtype)


def argmax(operand: ArrayLike, axis: int, index_dtype: Any = np.int64) -> Array:
    """Index of the first maximum along an axis, which is dropped.

    Args: operand: Array of real numbers or bools; nan counts as largest.
    Returns: The indices.
    Example: fg.lax.argmax(np.array([3.0, 1.0, 2.0]), 0, np.int64) -> np.int64(0)
    """
    return _place("argmax", reductions.ArgMax, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: Any = np.int64) -> Array:
    """Index of the first minimum along an axis, which is dropped.

    Args: operand: Array of real numbers or bools; nan counts as smallest.
    Returns: The indices.
    Example: fg.lax.argmin(np.array([3.0, 1.0, 2.0]), 0, np.int64) -> np.int64(1)
    """
    return _place("argmin", reductions.ArgMin, operand, axis, index_dtype)


def _place(name: str, kind: Any, operand: ArrayLike, axis: int, index_dtype: Any) -> Array:
    x = array_operand(name, operand)
    check_kinds(name, aval_of(x).dtype, "biuf")
    wanted = canonical_dtype(index_dtype)
    check_kinds(name, wanted, "iu")
    return convert(checked(kind(canonical_axis(name, axis, len(shape_of(x)))), x), wanted)


def _running(name: str, kind: Any, summary: str, kinds: str, shows: str) -> Callable[..., Array]:
    def function(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        x = array_operand(name, operand)
        check_kinds(name, aval_of(x).dtype, kinds)
        return kind(canonical_axis(name, axis, len(shape_of(x))), bool(reverse)).bind(x)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    meanings = {
        "operand": "The array; the result has its shape and dtype.",
        "axis": "The axis.",
        "reverse": "Whether to begin at the far end.",
    }
    call = call_of(f"fg.lax.{name}", shows)
    function.__doc__ = docstring(f"{summary} along an axis.", meanings, call, raises=_RAISES)
    return function


cumsum = _running(
    "cumsum",
    cumulative.Cumsum,
    "Running sum",
    "iufc",
    shows="np.array([3.0, 1.0, 2.0]) -> array([3., 4., 6.])",
)
cumprod = _running(
    "cumprod",
    cumulative.Cumprod,
    "Running product",
    "iufc",
    shows="np.array([3.0, 1.0, 2.0]) -> array([3., 3., 6.])",
)
cummax = _running(
    "cummax",
    cumulative.Cummax,
    "Running maximum",
    "iufc",
    shows="np.array([3.0, 1.0, 2.0]) -> array([3., 3., 3.])",
)
cummin = _running(
    "cummin",
    cumulative.Cummin,
    "Running minimum",
    "iufc",
    shows="np.array([3.0, 1.0, 2.0]) -> array([3., 1., 1.])",
)
cumlogsumexp = _running(
    "cumlogsumexp",
    cumulative.Cumlogsumexp,
    "Running logarithm of the sum of exponentials",
    "f",
    shows="np.array([3.0, 1.0, 2.0]) -> array([3.        , 3.12692801, 3.40760596])",
)


def sort(
    operand: ArrayLike | Sequence[ArrayLike],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Any:
    """``operand`` in ascending order along an axis; of several arrays the first ones decide.

    Args:
        operand: Array, or a tuple of arrays of one shape that are permuted together.
        num_keys: How many of the arrays decide, the first one first.
    Returns: The sorted array or tuple of arrays; nan comes last.

    Example:
        >>> keys, values = fg.lax.sort((np.array([3, 1, 2]), np.array([0, 1, 2])))
        >>> print(values)
        [1 2 0]
    """
    arrays = operand if isinstance(operand, tuple | list) else (operand,)
    arrays = [array_operand("sort", x) for x in arrays]
    if not 1 <= num_keys <= len(arrays):
        raise ArgumentError(f"lax.sort: num_keys={num_keys} of {len(arrays)} operands.")
    axis = canonical_axis("sort", dimension, len(shape_of(arrays[0])))
    if len(arrays) == 1:
        out = [sorting.Sort(axis).bind(arrays[0])]
    else:
        out = sorting.sort_together(arrays, axis, num_keys)
    return tuple(out) if isinstance(operand, tuple | list) else out[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """``keys`` in ascending order along an axis, and ``values`` permuted likewise.

    Args:
        keys: An array, which is sorted.
        values: An array of the same shape, which follows.
    Example: fg.lax.sort_key_val(np.array([3.0, 1.0]), np.array([10, 20]))
        -> (array([1., 3.]), array([20, 10]))
    """
    keys, values = sort((keys, values), dimension, is_stable)
    return keys, values


def top_k(operand: ArrayLike, k: int, axis: int = -1) -> tuple[Array, Array]:
    """The ``k`` largest elements along an axis, descending, and their indices.

    Args: operand: Array of real numbers; nan counts as largest.
    Returns: Values, and indices (int64); of equal elements the first comes first.

    Example:
        >>> values, places = fg.lax.top_k(np.array([1.0, 4.0, 2.0]), 2)
        >>> print(values, places)
        [4. 2.] [1 2]
    """
    x = array_operand("top_k", operand)
    ndim = len(shape_of(x))
    place = canonical_axis("top_k", axis, ndim)
    order = [i for i in range(ndim) if i != place] + [place]
    values, places = checked(sorting.TopK(int(k)), transpose(x, order))
    back = [int(i) for i in np.argsort(order)]
    return transpose(values, back), transpose(places, back)
