"""Collectives: operations along the named axes of `vmap`.

Inside ``vmap(f, axis_name="i")`` the function sees one example; these functions combine the values
of all examples along ``"i"``. An ``axis_name`` may be a tuple of names, which is read like one long
axis, the last name varying fastest. Values may be pytrees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from funcgrad.base.pytree import tree_map
from funcgrad.base.ranks import Ranks
from funcgrad.base.signatures import share
from funcgrad.core.avals import aval_of
from funcgrad.core.axes import named_axis
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.mesh_lanes import MeshAxis
from funcgrad.higher_order.staging import place
from funcgrad.primitives import collectives
from funcgrad.primitives.elementwise import convert, equal, select
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.objects import map_numbers, map_values
from funcgrad.primitives.shape import moveaxis_from_front, reshape, shape_of
from funcgrad.transforms.batch import batch_flat

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax", "pmean",
    "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes", "pvary",
]  # fmt: skip

AxisName = Hashable | tuple[Hashable, ...]
Axes = tuple[tuple[Hashable, int], ...]
Groups = Sequence[Sequence[int]] | None
Tree = Any


def psum(x: Tree, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Tree:
    """Sum over the mapped axis.

    Args: x: Pytree of arrays. Bools are summed as ints. Constants give constants: ``psum(1, "i")``
            is the length of the axis, a Python int.
    Returns: A pytree like ``x``, the same for all examples.
    Raises: AxisNameError: If no surrounding `vmap` has such an axis.
    Example: fg.vmap(lambda x: x / fg.lax.psum(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
        -> array([0.25, 0.75])
    """
    if axis_index_groups is not None:
        return _in_groups(psum, x, axis_name, axis_index_groups)
    axes = _axes(axis_name, "psum")
    ranks = _of_processes(axes)
    size = prod(n for _, n in axes) // prod(n for _, n in ranks)

    def of_leaf(leaf: Any) -> Any:
        if aval_of(leaf).dtype == bool:
            leaf = convert(leaf, np.dtype(np.int64)) if _is_array(leaf) else int(leaf)
        if isinstance(leaf, Tracer):
            return _combined(collectives.PSum, axes, leaf)
        # Values that Python computes are equal in all lanes of an array, but not in all processes.
        total = leaf * size
        return collectives.PSum(ranks).bind(total) if ranks else total

    return map_numbers(of_leaf, x)


def pmean(x: Tree, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Tree:
    """Mean over the mapped axis.

    Returns: A pytree like ``x``, the same for all examples.
    Raises: AxisNameError: If no surrounding `vmap` has such an axis.
    Example: fg.vmap(lambda x: x - fg.lax.pmean(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
        -> array([-1.,  1.])
    """
    if axis_index_groups is not None:
        return _in_groups(pmean, x, axis_name, axis_index_groups)
    size = prod(n for _, n in _axes(axis_name, "pmean"))
    return tree_map(lambda total: total / size, psum(x, axis_name))


def pmax(x: Tree, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Tree:
    """Maximum over the mapped axis.

    Returns: A pytree like ``x``, the same for all examples. Its derivative is shared by ties.
    Raises: AxisNameError: If no surrounding `vmap` has such an axis.
    Example: fg.vmap(lambda x: x / fg.lax.pmax(x, "i"), axis_name="i")(np.array([1.0, 4.0]))
        -> array([0.25, 1.  ])
    """
    if axis_index_groups is not None:
        return _in_groups(pmax, x, axis_name, axis_index_groups)
    axes = _axes(axis_name, "pmax")
    return _of_lanes(collectives.PMax, axes, x)


def pmin(x: Tree, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Tree:
    """Minimum over the mapped axis.

    Returns: A pytree like ``x``, the same for all examples. Its derivative is shared by ties.
    Raises: AxisNameError: If no surrounding `vmap` has such an axis.
    Example: fg.vmap(lambda x: x - fg.lax.pmin(x, "i"), axis_name="i")(np.array([1.0, 4.0]))
        -> array([0., 3.])
    """
    if axis_index_groups is not None:
        return _in_groups(pmin, x, axis_name, axis_index_groups)
    axes = _axes(axis_name, "pmin")
    return _of_lanes(collectives.PMin, axes, x)


def pvary(x: Tree, axis_name: AxisName) -> Tree:
    """A copy of a value for every lane of axes of a mesh, inside `funcgrad.shard_map`.

    Operations that meet values of the lanes do this by themselves. What differs already stays as it
    is, and so does what is along other axes.

    Returns: A pytree like ``x``. In derivatives every copy counts, and ``x`` gets the sum.
    Raises: AxisNameError: If there is no such axis.

    Example:
        >>> mesh = fg.make_mesh((2,), ("i",))
        >>> copies = fg.shard_map(
        ...     lambda x: fg.lax.pvary(x, "i"), mesh=mesh, in_specs=fg.P(), out_specs=fg.P("i")
        ... )
        >>> copies(np.array([1.0, 4.0]))
        array([1., 4., 1., 4.])
    """
    return _cast(x, axis_name, collectives.VARYING, "pvary")


def pcast(x: Tree, axis_name: AxisName, *, to: str) -> Tree:
    """A value as one that differs, or may differ, along axes of a mesh: `pvary`.

    Values stay as they are; their type, and so their derivatives, are what changes:

    * ``"varying"``, of a value that is equal in all lanes or is ``"reduced"``: `pvary`.
    * ``"unreduced"``, of one that differs: its lanes are terms of a sum, which `psum` or
      `psum_scatter` forms later. Until then only linear operations take it.
    * ``"reduced"``, of one that is equal in all lanes: its cotangent is unreduced, so that it is
      not summed in each backward pass, but when it is asked for.

    Args: to: One of these words. How to make lanes equal is said by a collective, such as `psum`.
    Returns: A pytree like ``x``.
    Raises: ArgumentError: If ``to`` is another word, or ``x`` is of a kind that cannot be taken so.

    Example:
        >>> mesh = fg.make_mesh((2,), ("i",))
        >>> copies = fg.shard_map(lambda x: fg.lax.pcast(x, "i", to="varying"), mesh=mesh,
        ...                       in_specs=fg.P(), out_specs=fg.P("i"))
        >>> copies(np.array([1.0, 4.0]))
        array([1., 4., 1., 4.])
    """
    if to not in (collectives.VARYING, collectives.UNREDUCED, collectives.REDUCED):
        raise ArgumentError(
            f"pcast: to must be 'varying', 'unreduced' or 'reduced', got {to!r}.{place()} To have "
            "equal values in all lanes, combine them by psum, pmax or all_gather."
        )
    if isinstance(axis_name, set | frozenset | list):
        raise ArgumentError(
            f"pcast: axis_name must be a tuple or a str, got {axis_name!r}.{place()}"
        )
    return _cast(x, axis_name, to, "pcast")


def _cast(x: Tree, axis_name: AxisName, to: str, what: str) -> Tree:
    axes = tuple(axis for axis in _axes(axis_name, what) if isinstance(axis[0], MeshAxis))
    return map_values(collectives.PVary(axes, to=to).bind, x) if axes else x


def pbroadcast(x: Tree, axis_name: AxisName, source: int) -> Tree:
    """The value of one example, for all.

    Args: source: Number of the example.
    Returns: A pytree like ``x``, the same for all examples.

    Raises:
        AxisNameError: If no surrounding `vmap` has such an axis.
        ArgumentError: If there is no such example.
    Example: fg.vmap(lambda x: fg.lax.pbroadcast(x, "i", 1), axis_name="i")(np.array([1.0, 4.0]))
        -> array([4., 4.])
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ArgumentError(
            f"pbroadcast: source must be one of the {size} examples along {axis_name!r}, got "
            f"{source}.{place()}"
        )
    is_source = equal.bind(axis_index(axis_name), np.int32(source))

    def of_leaf(leaf: Any) -> Any:
        array = leaf if isinstance(leaf, Tracer) else np.asarray(leaf)
        dtype = aval_of(array).dtype
        own = select.bind(is_source, array, np.zeros((), dtype))
        total = psum(own, axis_name)
        return convert(total, dtype) if dtype.kind == "b" else total

    return map_values(of_leaf, x)


def axis_index(axis_name: AxisName) -> Any:
    """Number of the example along the mapped axis.

    Returns: An int32 scalar, from 0.
    Raises: AxisNameError: If no surrounding `vmap` has such an axis.
    Example: fg.vmap(lambda x: x + fg.lax.axis_index("i"), axis_name="i")(np.zeros(3))
        -> array([0., 1., 2.])
    """
    index: Any = np.int32(0)
    for name, size in _axes(axis_name, "axis_index"):
        index = index * np.int32(size) + collectives.AxisIndex(name, size).bind()
    return index


def axis_size(axis_name: AxisName) -> int:
    """Length of the mapped axis, a Python int.

    Returns: The length; the product of lengths for several names.
    Raises: AxisNameError: If no surrounding `vmap` has such an axis.
    Example: fg.vmap(lambda x: x / fg.lax.axis_size("i"), axis_name="i")(np.ones(4))
        -> array([0.25, 0.25, 0.25, 0.25])
    """
    return prod(n for _, n in _axes(axis_name, "axis_size"))


def all_gather(
    x: Tree,
    axis_name: AxisName,
    *,
    axis_index_groups: Groups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Tree:
    """The values of all examples in one array.

    Args:
        axis: Where the mapped axis stands in the result.
        tiled: Whether the values are joined along ``axis`` instead of stacked along a new one.
        to: Of lanes of a mesh, whether each gets an array of its own (``"varying"``), all have
            one, which counts once in derivatives (``"invarying"``), or copies whose cotangents are
            summed when they are scattered (``"reduced"``; see `pcast`).
    Returns: A pytree like ``x``, the same for all examples.

    Raises:
        AxisNameError: If no surrounding `vmap` has such an axis.
        ArgumentError: If ``to`` is another word.
    Example: fg.vmap(lambda x: fg.lax.all_gather(x, "i"), axis_name="i")(np.arange(2.0))
        -> array([[0., 1.],
                  [0., 1.]])
    """
    if axis_index_groups is not None:
        gather = partial(all_gather, axis=axis, tiled=tiled)
        return _in_groups(gather, x, axis_name, axis_index_groups)
    axes = _axes(axis_name, "all_gather")
    if to not in (collectives.VARYING, collectives.INVARYING, collectives.REDUCED):
        raise ArgumentError(
            f"all_gather: to must be 'varying', 'invarying' or 'reduced', got {to!r}.{place()}"
        )

    def gathered(leaf: Any, name: Hashable, size: int, position: int) -> Any:
        kinds = [
            to == kind and isinstance(name, MeshAxis)
            for kind in (collectives.INVARYING, collectives.REDUCED)
        ]
        return collectives.AllGather(name, size, position, tiled, *kinds).bind(leaf)

    def of_leaf(leaf: Any) -> Any:
        position = _normalized(axis, len(shape_of(leaf)) + (not tiled), "all_gather")
        for i, (name, size) in enumerate(reversed(axes)):
            leaf = gathered(leaf, name, size, position)
            leaf = collectives.joined(leaf, position) if i and not tiled else leaf
        return leaf

    return map_values(of_leaf, x)


def psum_scatter(
    x: Tree,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> Tree:
    """Sum over the mapped axis, of which every example gets its own part.

    Args:
        scatter_dimension: Axis of the sum that is divided among the examples. Its length is that
            of the mapped axis, or a multiple of it if ``tiled``.
        tiled: Whether the divided axis is kept, with its part, instead of dropped.
    Returns: A pytree like ``x``.

    Raises:
        AxisNameError: If no surrounding `vmap` has such an axis.
        ShapeError: If the axis cannot be divided.
    Example: fg.vmap(lambda x: fg.lax.psum_scatter(x, "i"), axis_name="i")(np.eye(2) + 1)
        -> array([3., 3.])
    """
    if axis_index_groups is not None:
        scatter = partial(psum_scatter, scatter_dimension=scatter_dimension, tiled=tiled)
        return _in_groups(scatter, x, axis_name, axis_index_groups)
    axes = _axes(axis_name, "psum_scatter")

    def of_leaf(leaf: Any) -> Any:
        axis = _normalized(scatter_dimension, len(shape_of(leaf)), "psum_scatter")
        if len(axes) > 1 and not tiled:
            first = axes[0][1]
            leaf = (
                collectives.parted(leaf, axis, first) if shape_of(leaf)[axis] % first == 0 else leaf
            )
        for name, size in axes:
            leaf = _bind_checked(collectives.ReduceScatter(name, size, axis, tiled), leaf)
        return leaf

    return map_numbers(of_leaf, x)


def ppermute(x: Tree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Tree:
    """Send values from example to example.

    Args: perm: Pairs (source, destination). Examples that nobody sends to get zeros.
    Returns: A pytree like ``x``.

    Raises:
        AxisNameError: If no surrounding `vmap` has such an axis.
        ArgumentError: If a source or a destination appears twice or does not exist, or ``perm``
            is an iterator.

    Example:
        >>> shift = lambda x: fg.lax.ppermute(x, "i", [(0, 1), (1, 2)])
        >>> fg.vmap(shift, axis_name="i")(np.array([1.0, 2.0, 3.0]))
        array([0., 1., 2.])
    """
    axes = _axes(axis_name, "ppermute")
    size = prod(n for _, n in axes)
    if not isinstance(perm, Sequence | np.ndarray):
        raise ArgumentError(
            f"ppermute: perm must be a list of pairs, got a {type(perm).__name__}, which may be "
            f"used up when it is read again.{place()} Pass list(perm)."
        )
    pairs = tuple((int(source), int(destination)) for source, destination in perm)
    for what, lanes in zip(("source", "destination"), zip(*pairs, strict=True), strict=False):
        if len(set(lanes)) != len(lanes) or not all(0 <= lane < size for lane in lanes):
            raise ArgumentError(
                f"ppermute: every {what} must be named once and lie between 0 and {size - 1}, "
                f"because axis {axis_name!r} has length {size}, got {list(lanes)}.{place()}"
            )
    if len(axes) == 1:
        return map_values(collectives.PPermute(axes[0][0], size, pairs).bind, x)
    senders = np.full(size, size)
    for source, destination in pairs:
        senders[destination] = source
    sender = Gather((0,)).bind(senders, axis_index(axis_name))

    def of_leaf(leaf: Any) -> Any:
        zero = aval_of(leaf).dtype.type(0)
        return Gather((0,), "fill", zero).bind(all_gather(leaf, axis_name), sender)

    return map_values(of_leaf, x)


def pshuffle(x: Tree, axis_name: Hashable, perm: Sequence[int]) -> Tree:
    """Permute the examples: example ``k`` gets the value of example ``perm[k]``.

    Args: perm: A permutation of the examples.
    Returns: A pytree like ``x``.

    Raises:
        AxisNameError: If no surrounding `vmap` has such an axis.
        ArgumentError: If ``perm`` is not a permutation.
    Example: fg.vmap(lambda x: fg.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(np.arange(3.0))
        -> array([2., 0., 1.])
    """
    axis_name, size = named_axis(axis_name, "pshuffle")
    if sorted(perm) != list(range(size)):
        raise ArgumentError(
            f"pshuffle: perm must be a permutation of the {size} examples along {axis_name!r}, got "
            f"{list(perm)}.{place()} To send to some of them only, use ppermute."
        )
    return ppermute(x, axis_name, list(zip(perm, range(size), strict=True)))


def all_to_all(
    x: Tree,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> Tree:
    """Send part ``k`` of an axis to example ``k``, and put together what arrives.

    Args:
        split_axis: Axis that is divided. Its length is that of the mapped axis, or a multiple of
            it if ``tiled``.
        concat_axis: Axis of the result along which parts from different examples follow one
            another.
        tiled: Whether parts keep the divided axis and are joined along an existing one.
    Returns: A pytree like ``x``.

    Raises:
        AxisNameError: If no surrounding `vmap` has such an axis.
        ShapeError: If the axis cannot be divided.

    Example:
        >>> f = fg.vmap(lambda x: fg.lax.all_to_all(x, "i", 0, 0), axis_name="i")
        >>> f(np.array([[1, 2], [3, 4]]))
        array([[1, 3],
               [2, 4]])
    """
    if axis_index_groups is not None:
        exchange = partial(all_to_all, split_axis=split_axis, concat_axis=concat_axis, tiled=tiled)
        return _in_groups(exchange, x, axis_name, axis_index_groups)
    axes = _axes(axis_name, "all_to_all")
    size = prod(n for _, n in axes)

    def of_leaf(leaf: Any) -> Any:
        split = _normalized(split_axis, len(shape_of(leaf)), "all_to_all")
        concat = _normalized(concat_axis, len(shape_of(leaf)), "all_to_all")
        if len(axes) == 1:
            return _bind_checked(collectives.AllToAll(axes[0][0], size, split, concat, tiled), leaf)
        collectives.AllToAll(None, size, split, concat, tiled).abstract_eval(aval_of(leaf))
        shape = shape_of(leaf)
        lengths = (*(n for _, n in axes), *([shape[split] // size] if tiled else []))
        leaf = reshape(leaf, (*shape[:split], *lengths, *shape[split + 1 :]))
        for i, (name, n) in enumerate(axes):  # senders come in front, in the order of the names
            leaf = collectives.AllToAll(name, n, split + i, i, False).bind(leaf)
        rest = shape_of(leaf)[len(axes) :]
        received = moveaxis_from_front(reshape(leaf, (size, *rest)), concat)
        return collectives.joined(received, concat) if tiled else received

    return map_values(of_leaf, x)


def pswapaxes(x: Tree, axis_name: Hashable, axis: int, *, axis_index_groups: Groups = None) -> Tree:
    """Exchange the mapped axis with an axis of the same length.

    Args: axis: Axis of ``x``.
    Returns: A pytree like ``x``.

    Raises:
        AxisNameError: If no surrounding `vmap` has such an axis.
        ShapeError: If the lengths differ.

    Example:
        >>> f = fg.vmap(lambda x: fg.lax.pswapaxes(x, "i", 0), axis_name="i")
        >>> f(np.array([[1, 2], [3, 4]]))
        array([[1, 3],
               [2, 4]])
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _in_groups(
    collective: Callable[[Tree, Hashable], Tree], x: Tree, axis_name: AxisName, groups: Groups
) -> Tree:
    """Apply a collective within groups of lanes, to values that are gathered from all.

    Args:
        collective: Of a value and the name of an axis.
        x: Pytree of arrays.
        axis_name: As of the collective.
        groups: The groups.
    Raises: ArgumentError: If not every lane is in one group, or groups differ in length.
    """
    size = axis_size(axis_name)
    lengths = {len(group) for group in groups or ()}
    lanes = [int(lane) for group in groups or () for lane in group]
    if len(lengths) != 1 or sorted(lanes) != list(range(size)):
        raise ArgumentError(
            f"axis_index_groups must have each of the {size} lanes along {axis_name!r} in one "
            f"group, and groups of one length, got {groups}.{place()}"
        )
    n = lengths.pop()
    table, order = np.asarray(lanes).reshape(-1, n), np.argsort(lanes)
    index = axis_index(axis_name)
    members = Gather((0,)).bind(table[order // n], index)
    own = Gather((0,)).bind(order % n, index)
    name = object()

    def of_leaf(leaf: Any) -> Any:
        values = Gather((0,)).bind(all_gather(leaf, axis_name), members)
        outs, dims = batch_flat(
            lambda value: [collective(value, name)], [values], [0], n, "a group of lanes", name
        )
        return outs[0] if dims[0] is None else Gather((0,)).bind(outs[0], own)

    return map_values(of_leaf, x)


def _axes(axis_name: AxisName, operation: str) -> Axes:
    """Names and lengths, checked."""
    names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
    return tuple(named_axis(name, operation) for name in names)


def _bind_checked(primitive: Primitive, leaf: Any) -> Any:
    """Apply a primitive to what it can be applied to."""
    primitive.abstract_eval(aval_of(leaf))
    return primitive.bind(leaf)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, Tracer | np.ndarray | np.generic)


def _of_lanes(kind: Callable[..., Primitive], axes: Axes, x: Tree) -> Tree:
    """Apply a reduction that leaves what is equal in all lanes as it is."""
    ranks = _of_processes(axes)

    def of_leaf(leaf: Any) -> Any:
        return _combined(kind, axes if isinstance(leaf, Tracer) else ranks, leaf)

    return map_numbers(of_leaf, x)


def _combined(kind: Callable[..., Primitive], axes: Axes, leaf: Any) -> Any:
    """Apply a reduction, whose results count once along axes of which that is said."""
    tracked = tuple(x for x in axes if isinstance(x[0], MeshAxis) and x[0].is_tracked)
    others = tuple(x for x in axes if x not in tracked)
    if others:
        leaf = kind(others).bind(leaf)
    return kind(tracked, True).bind(collectives.PVary(tracked).bind(leaf)) if tracked else leaf


def _of_processes(axes: Axes) -> Axes:
    return tuple(axis for axis in axes if isinstance(axis[0], Ranks))


def _normalized(axis: int, ndim: int, operation: str) -> int:
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{operation}: there is no axis {axis} among {ndim}.{place()}")
    return axis % ndim


share(__name__, {"x": "Pytree of arrays."})
