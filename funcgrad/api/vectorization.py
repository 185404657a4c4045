"""vmap: a function of single examples becomes one of batches."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from funcgrad.api import arguments
from funcgrad.base.dialect import dialect
from funcgrad.base.pytree import broadcast_prefix, tree_leaves, tree_unflatten
from funcgrad.base.transformed import Transformed
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeError
from funcgrad.higher_order.cells import Cell, fill_cells, passing_cells, rows_of
from funcgrad.higher_order.staging import kept_weak
from funcgrad.numpy.writable import ARGUMENT, WritableArray, as_arguments
from funcgrad.primitives import shape as s
from funcgrad.primitives.objects import flatten_values
from funcgrad.transforms.batch import batch_flat


def vmap(
    fun: arguments.Function,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable = None,
    axis_size: int | None = None,
) -> arguments.Function:
    """Map a function over array axes, without a loop.

    Args:
        fun: Function of single examples.
        in_axes: Which axis of every positional argument is mapped: an int, ``None`` for an
            argument that is not mapped (which may then be any object), or a tuple or list with one
            entry per argument, each possibly a pytree prefix of it. Keyword arguments are mapped
            along axis 0.
        out_axes: Where the mapped axis stands in the results: an int, ``None`` for results that
            do not depend on mapped arguments, or a pytree prefix of the result.
        axis_name: Name of the mapped axis.
        axis_size: Length of the mapped axis; needed only if no argument is mapped.
    Returns: The mapped function.
    Raises: ShapeError: If mapped axes differ in length or do not exist.
    Example: fg.vmap(np.dot, in_axes=(0, None))(np.eye(2), np.array([3.0, 4.0])) -> array([3., 4.])
    """
    arguments.check_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not isinstance(in_axes, tuple | int | type(None) | dict):
        raise ArgumentError(
            f"vmap: in_axes must be an int, None, or a tuple with an entry for every positional "
            f"argument, got {in_axes!r}."
        )
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")
    what = f"vmap({arguments.name_of(fun)})"

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ArgumentError(
                f"{what}: in_axes={in_axes!r} has {len(in_axes)} entries, but the function was "
                f"called with {len(args)} positional arguments."
            )
        leaves, treedef = flatten_values((args, kwargs))
        paths = _paths(args, kwargs)
        axes = _leaf_axes(in_axes, args, kwargs, what)
        # Functions and other objects may be passed along, but not mapped.
        if any(isinstance(x, Cell) and a is not None for x, a in zip(leaves, axes, strict=True)):
            return run_with_cells(leaves, treedef, axes)
        is_value = [a is not None or _is_value(x) for x, a in zip(leaves, axes, strict=True)]
        passed = [None if here else x for x, here in zip(leaves, is_value, strict=True)]
        leaves, axes, paths = (list(compress(row, is_value)) for row in (leaves, axes, paths))
        for x, path in zip(leaves, paths, strict=True):
            arguments.aval_of_argument(x, path, what)
        dims = [_normalize(x, a, p, what) for x, a, p in zip(leaves, axes, paths, strict=True)]
        size = _common_size(leaves, dims, paths, axis_size, what)
        fronted = [
            x if d is None else s.moveaxis_to_front(x, d) for x, d in zip(leaves, dims, strict=True)
        ]
        out_tree: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            rest = iter(as_arguments(list(map(indexable, values))))
            inner = [next(rest) if here else x for x, here in zip(passed, is_value, strict=True)]
            inner_args, inner_kwargs = tree_unflatten(treedef, inner)
            outs, tree = flatten_values(fun(*inner_args, **inner_kwargs))
            out_tree.append(tree)
            return outs

        flags = [None if d is None else 0 for d in dims]
        outs, out_dims = batch_flat(flat, fronted, flags, size, what, axis_name)
        result = tree_unflatten(out_tree[0], outs)
        places = _prefix(out_axes, result, "out_axes", what)
        names = arguments.leaf_paths(result, "result")
        placed = [
            _place(*row, size, what) for row in zip(outs, out_dims, places, names, strict=True)
        ]
        if dialect().weak is not None:
            placed = kept_weak(placed, list(map(aval_of, outs)))
        arguments.check_for_nans(what, placed, args, kwargs)
        return tree_unflatten(out_tree[0], placed)

    def run_with_cells(leaves: list[Any], treedef: Any, axes: list[Any]) -> Any:
        """Map a function of what mapped references hold, which also returns what is left."""
        rows = [row for row in rows_of(leaves) if axes[row[0]] is not None]
        cells = [leaves[i] for i, _ in rows]

        def of_contents(*values: Any) -> Any:
            inner = list(values)
            made = fill_cells(inner, rows)
            args, kwargs = tree_unflatten(treedef, inner)
            return fun(*args, **kwargs), [cell.content() for cell in made]

        of_contents.__name__ = arguments.name_of(fun)
        out_places = (out_axes, [axes[i] for i, _ in rows])
        mapped = vmap(of_contents, tuple(axes), out_places, axis_name, axis_size)
        with passing_cells(cells, what) as contents:
            for (i, _), content in zip(rows, contents, strict=True):
                leaves[i] = content
            out, left = mapped(*leaves)
        for cell, value in zip(cells, left, strict=True):
            cell.put(value, what)
        return out

    return Transformed(
        run, vmap, fun, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name, axis_size=axis_size
    )


def indexable(value: Any) -> Any:
    """An array that is not mapped as one that traced integers are indices of."""
    if type(value) is np.ndarray and value.ndim:
        return WritableArray(value, None, ARGUMENT)
    return value


def _is_value(leaf: Any) -> bool:
    if isinstance(leaf, Cell):
        return False
    try:
        aval_of(leaf)
    except DtypeError:
        return False
    return True


def _check_axes(axes: Any, name: str) -> None:
    for leaf in tree_leaves(axes):
        if not isinstance(leaf, int | np.integer) or isinstance(leaf, bool):
            raise ArgumentError(f"vmap: {name} must hold ints and None, got {leaf!r}.")


def _paths(args: Any, kwargs: Any) -> list[str]:
    return arguments.leaf_paths(args) + (arguments.leaf_paths(kwargs, "kwargs") if kwargs else [])


def _leaf_axes(in_axes: Any, args: Any, kwargs: Any, what: str) -> list[Any]:
    axes = in_axes if not isinstance(in_axes, int) else tuple(in_axes for _ in args)
    return _prefix(axes, args, "in_axes", what) + _prefix(0, kwargs, "in_axes", what)


def _prefix(axes: Any, tree: Any, name: str, what: str) -> list[Any]:
    try:
        return broadcast_prefix(axes, tree, is_leaf=lambda x: x is None, is_opened=True)
    except TreeError as error:
        raise TreeError(
            f"{what}: {name} is not a prefix of the tree that it describes. {error}"
        ) from None


def _normalize(leaf: Any, axis: int | None, path: str, what: str) -> int | None:
    if axis is None:
        return None
    ndim = len(s.shape_of(leaf))
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"{what}: in_axes maps axis {axis} of `{path}`, which has {ndim} axes. Use None for "
            "arguments that are not mapped."
        )
    return axis % ndim


def _common_size(
    leaves: Sequence[Any],
    dims: Sequence[int | None],
    paths: Sequence[str],
    axis_size: int | None,
    what: str,
) -> int:
    sizes = {
        path: s.shape_of(x)[d]
        for x, d, path in zip(leaves, dims, paths, strict=True)
        if d is not None
    }
    distinct = set(sizes.values()) | ({axis_size} if axis_size is not None else set())
    if len(distinct) == 1:
        size = distinct.pop()
        assert size is not None
        return size
    if not distinct:
        raise ArgumentError(f"{what}: no argument is mapped, so axis_size must be given.")
    rows = "".join(f"\n  {path:<13} {n}" for path, n in sizes.items())
    given = f"\n  axis_size     {axis_size}" if axis_size is not None else ""
    raise ShapeError(f"{what}: mapped axes must have one length, got{rows}{given}")


def _place(out: Any, dim: int | None, axis: int | None, path: str, size: int, what: str) -> Any:
    """A result with its mapped axis where ``out_axes`` wants it."""
    if dim is None:
        if axis is None:
            return out
        out = s.broadcast_to(out, (size, *s.shape_of(out)))
        out = out.copy() if isinstance(out, np.ndarray) else out
    elif axis is None:
        raise ArgumentError(
            f"{what}: out_axes is None for `{path}`, but that result depends on a mapped argument. "
            "Give the place of its mapped axis, or reduce over it inside the function."
        )
    ndim = len(s.shape_of(out))
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{what}: out_axes puts axis {axis} into `{path}`, which has {ndim} axes.")
    return s.moveaxis_from_front(out, axis % ndim)
