"""Prefix folds of any associative function, in logarithmically many vectorised steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.base.pytree import tree_unflatten
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.errors import ArgumentError, ShapeError, TreeError
from funcgrad.higher_order.staging import (
    check_function,
    check_leaf,
    checked_integer,
    leaves_with_paths,
    located,
    name_of,
)
from funcgrad.primitives.shape import Concatenate, Reverse, Slice, reshape, shape_of


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefixes ``x0, fn(x0, x1), fn(fn(x0, x1), x2), ...`` along an axis.

    ``fn`` is called about ``2 log2(n)`` times, on slices that hold many elements: pairs are
    combined, their prefixes found in the same way, and the rest filled in between.

    Args:
        fn: Associative and vectorised along the axis; from two pytrees like ``elems`` to one.
        elems: Pytree of arrays with equal lengths along the axis.
        reverse: Whether the fold starts at the far end.
    Returns: A pytree like ``elems``.

    Raises:
        ArgumentError: If there are no arrays.
        ShapeError: If lengths differ, an array has no such axis, or ``fn`` changes types.
        TreeError: If ``fn`` changes the structure.

    Reference:
        G. E. Blelloch, Prefix sums and their applications, 1990.

    Example: fg.lax.associative_scan(np.maximum, np.array([1, 3, 2, 5, 4]))
        -> array([1, 3, 3, 5, 5])
    """
    what = f"associative_scan({name_of(fn)})"
    check_function(fn, "fn", what)
    axis = checked_integer(axis, "axis", what)
    leaves, paths, tree = leaves_with_paths(elems, "elems")
    avals = [check_leaf(x, p, what) for x, p in zip(leaves, paths, strict=True)]
    _check_lengths(avals, paths, axis, what)

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        out = fn(tree_unflatten(tree, a), tree_unflatten(tree, b))
        outs, out_paths, out_tree = leaves_with_paths(out, "result")
        if out_tree != tree:
            raise located(
                TreeError,
                f"{what}: the function must keep the structure.",
                f"  elems         {tree}",
                f"  returned      {out_tree}",
            )
        for x, y, path in zip(a, outs, out_paths, strict=True):
            wanted, got = aval_of(x).strong(), check_leaf(y, path, what).strong()
            if wanted != got:
                raise located(
                    ShapeError,
                    f"{what}: the function must keep the types of its arguments, which are "
                    f"stacked along axis {axis}.",
                    f"  `{path}`: {got} from {wanted}",
                    "Convert the elements before (.astype), and reduce no axis.",
                )
        return outs

    axes = [axis % aval_of(x).ndim for x in leaves]
    values = (
        [Reverse((a,)).bind(x) for x, a in zip(leaves, axes, strict=True)] if reverse else leaves
    )
    found = _prefixes(combine, values, axes)
    if reverse:
        found = [Reverse((a,)).bind(x) for x, a in zip(found, axes, strict=True)]
    return tree_unflatten(tree, found)


def _check_lengths(
    avals: Sequence[ShapedArray], paths: Sequence[str], axis: int, what: str
) -> None:
    if not avals:
        raise located(ArgumentError, f"{what}: elems has no arrays.")
    for aval, path in zip(avals, paths, strict=True):
        if not -aval.ndim <= axis < aval.ndim:
            raise located(ShapeError, f"{what}: `{path}` is {aval}, which has no axis {axis}.")
    lengths = [aval.shape[axis] for aval in avals]
    if len(set(lengths)) > 1:
        rows = ", ".join(f"`{p}` has {n}" for p, n in zip(paths, lengths, strict=True))
        raise located(ShapeError, f"{what}: lengths along axis {axis} differ: {rows}.")


def _prefixes(
    combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any], axes: list[int]
) -> list[Any]:
    n = shape_of(xs[0])[axes[0]]
    if n < 2:
        return xs

    def part(values: list[Any], start: int, stop: int, step: int = 1) -> list[Any]:
        return [_along(x, a, start, stop, step) for x, a in zip(values, axes, strict=True)]

    pairs = combine(part(xs, 0, n - 1, 2), part(xs, 1, n, 2))
    odd = _prefixes(combine, pairs, axes)
    m = n // 2
    later = part(xs, 2, n, 2)
    first = part(xs, 0, 1)
    left = odd if n % 2 else part(odd, 0, m - 1)
    even = first
    if n > 2:
        filled = combine(left, later)
        even = [Concatenate(a).bind(x, y) for x, y, a in zip(first, filled, axes, strict=True)]
    return [_interleave(e, o, a) for e, o, a in zip(even, odd, axes, strict=True)]


def _along(x: Any, axis: int, start: int, stop: int, step: int) -> Any:
    shape = shape_of(x)
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    stops = tuple(stop if i == axis else n for i, n in enumerate(shape))
    steps = tuple(step if i == axis else 1 for i in range(len(shape)))
    return Slice(starts, stops, steps).bind(x)


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """Elements of both, in turn, the first of ``even`` first; it may be one longer."""
    m = shape_of(odd)[axis]
    shape = shape_of(odd)
    split = (*shape[:axis], m, 1, *shape[axis + 1 :])
    both = Concatenate(axis + 1).bind(
        reshape(_along(even, axis, 0, m, 1), split), reshape(odd, split)
    )
    merged = reshape(both, (*shape[:axis], 2 * m, *shape[axis + 1 :]))
    n = shape_of(even)[axis]
    return merged if n == m else Concatenate(axis).bind(merged, _along(even, axis, m, n, 1))
