"""Programs that say how arrays are divided: `shard_map` over meshes of named axes, as in JAX.

Outside of `shard_map` arrays are whole, and the same in all processes. Inside, a function sees one
lane of a mesh: the parts of its arguments that the specs name; lanes meet in the collectives of
`funcgrad.lax`. Under ``mpiexec`` the lanes are shared out among the processes, as many for each as
go; in one process they are mapped, as by `vmap`. There are no devices to choose: only the shape of
a mesh counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from math import gcd, prod
from typing import Any

import numpy as np

from funcgrad.api.arguments import leaf_paths, name_of
from funcgrad.api.vectorization import indexable
from funcgrad.base import environment
from funcgrad.base.namespaces import present
from funcgrad.base.pytree import broadcast_prefix, tree_map, tree_unflatten
from funcgrad.base.transformed import Transformed
from funcgrad.core.avals import aval_of
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.distributed.meshes import (
    AxisType,
    Mesh,
    NamedSharding,
    P,
    PartitionSpec,
    TermsSpec,
    get_abstract_mesh,
    make_mesh,
    names_by_axis,
    names_in,
    rows_of,
    set_mesh,
    sums_in,
)
from funcgrad.distributed.processes import axis_of, subgroups, world
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.higher_order.cells import Cell, fill_cells, passing_cells
from funcgrad.higher_order.cells import rows_of as cells_among
from funcgrad.higher_order.jit import along_processes
from funcgrad.higher_order.mesh_lanes import DividedTrace, MeshAxis, lane_type, may_mix_kinds
from funcgrad.higher_order.staging import place
from funcgrad.numpy.writable import as_arguments
from funcgrad.primitives.collectives import (
    REDUCED,
    UNREDUCED,
    AllGather,
    AxisIndex,
    OwnPart,
    PSum,
    PVary,
    RankEqual,
)
from funcgrad.primitives.elementwise import equal, select
from funcgrad.primitives.objects import flatten_values
from funcgrad.primitives.shape import Slice, Transpose, repeat_lanes, reshape, shape_of
from funcgrad.transforms.batch import BatchTracer, batch_flat

__all__ = [
    "AxisType", "Mesh", "NamedSharding", "P", "PartitionSpec", "get_abstract_mesh", "make_mesh",
    "set_mesh", "shard_map", "smap",
]  # fmt: skip


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any,
    mesh: Mesh | None = None,
    axis_names: Collection[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Map a function over the lanes of a mesh, each with its part of the arguments.

    The result is a function of whole arrays. Derivatives of it are those of the whole computation:
    what several lanes read gets the sum of their cotangents, and a result that is equal in all
    lanes counts once, inside of the function as well. No rules by hand are needed.

    Args:
        f: The function of parts; without it, a decorator.
        out_specs: A `PartitionSpec` for each result, or a prefix of their pytree. An axis of the
            mesh that a spec does not name must not matter to the result.
            Along axes that are ``unreduced`` in it, the whole is the sum of the values of the
            lanes; along those that are ``reduced``, all have the same.
        in_specs: A `PartitionSpec` for each argument, or a prefix of their pytree. A part is the
            same in all lanes along axes that its spec does not name. Along ``unreduced`` ones the
            first lane has the array and others have zeros; along ``reduced`` ones all have it, and
            derivatives inside give a cotangent that is unreduced (`lax.pcast`).
        mesh: The mesh; by default that of `set_mesh`.
        axis_names: Names of the axes that are mapped; by default all. Along others arrays stay
            whole.
        check_vma: Whether what is equal in all lanes is followed, checked, and counts once in
            derivatives inside of the function. Without it, results are those of the first lane,
            and the gradient that a lane computes is that of the sum of the results of all lanes.
    Returns: A function of whole arrays.

    Raises:
        ArgumentError: If specs name unknown axes, or a result differs along an axis that its spec
            does not name.
        ShapeError: If an array cannot be divided.

    Example:
        >>> mesh = fg.make_mesh((2,), ("x",))
        >>> def mean_square(w, x):
        ...     return fg.lax.pmean(np.mean((x @ w) ** 2), "x")
        >>> loss = fg.shard_map(mean_square, mesh=mesh, in_specs=(fg.P(), fg.P("x")),
        ...                     out_specs=fg.P())
        >>> float(loss(np.ones(3), np.eye(4, 3)))
        0.75
        >>> fg.grad(loss)(np.ones(3), np.eye(4, 3))
        array([0.5, 0.5, 0.5])
    """
    if f is None:
        return partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    function = f
    what = f"shard_map({name_of(f)})"

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs:
            raise ArgumentError(
                f"{what}: arguments are given by position, as in_specs is, but got "
                f"{', '.join(kwargs)} by name.{place()}"
            )
        chosen = mesh if mesh is not None else get_abstract_mesh()
        if chosen.empty:
            raise ArgumentError(
                f"{what}: there is no mesh.{place()} Pass mesh=..., or call it inside set_mesh."
            )
        axes = _axes_of(chosen, axis_names, check_vma, what)
        leaves, treedef = flatten_values(args)
        paths = leaf_paths(args)
        specs = _prefix(in_specs, args, "in_specs", what)
        if any(isinstance(x, Cell) for x in leaves):
            return run_with_cells(leaves, treedef, specs)
        for x, spec, path in zip(leaves, specs, paths, strict=True):
            rows_of(spec, shape_of(x), {a.label: a.size for a in axes}, what, path)
        pairs = [_divided(x, spec, axes) for x, spec in zip(leaves, specs, strict=True)]
        trees: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            taken = [_taken(x, spec, axes) for x, spec in zip(values, specs, strict=True)]
            inner = as_arguments(list(map(indexable, taken)))
            with chosen.mapped([a.label for a in axes]):
                outs, tree = flatten_values(function(*tree_unflatten(treedef, list(inner))))
            result = tree_unflatten(tree, outs)
            rows = zip(
                outs, _prefix(out_specs, result, "out_specs", what),
                leaf_paths(result, "result"), strict=True,
            )  # fmt: skip
            trees.append(tree)
            return [_given(*row, axes, what) for row in rows]

        is_shared = any(a.is_divided for a in axes)
        with along_processes() if is_shared else nullcontext():
            outs, flags = _over(axes, [d for _, d in pairs], flat, [x for x, _ in pairs], what)
            result = tree_unflatten(trees[0], outs)
            rows = zip(
                outs, flags, _prefix(out_specs, result, "out_specs", what),
                leaf_paths(result, "result"), strict=True,
            )  # fmt: skip
            whole = [_assembled(*row, axes, check_vma, what) for row in rows]
        return tree_unflatten(trees[0], whole)

    def run_with_cells(leaves: list[Any], treedef: Any, specs: list[Any]) -> Any:
        """Map a function of the contents of references, which also returns their final contents."""
        rows = cells_among(leaves)
        cells = [leaves[i] for i, _ in rows]

        def of_contents(*values: Any) -> Any:
            inner = list(values)
            made = fill_cells(inner, rows)
            return function(*tree_unflatten(treedef, inner)), [cell.content() for cell in made]

        of_contents.__name__ = name_of(function)
        mapped = shard_map(
            of_contents,
            out_specs=(out_specs, [specs[i] for i, _ in rows]),
            in_specs=tuple(specs),
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
        with passing_cells(cells, what) as contents:
            for (i, _), content in zip(rows, contents, strict=True):
                leaves[i] = content
            out, left = mapped(*leaves)
        for cell, value in zip(cells, left, strict=True):
            cell.put(value, what)
        return out

    return Transformed(
        run,
        shard_map,
        function,
        out_specs=out_specs,
        in_specs=in_specs,
        mesh=mesh,
        axis_names=axis_names,
        check_vma=check_vma,
    )


def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: Any, out_axes: Any, axis_name: Hashable
) -> Any:
    """Map a function over one axis of the mesh around, each lane with its part of the arguments.

    Args:
        f: The function of parts; without it, a decorator.
        in_axes: Which axis of each argument is divided: an int, `None` if all lanes have all of
            it, or a prefix of the pytree of the arguments.
        out_axes: Along which axis of each result the parts are put together, likewise.
        axis_name: The axis of the mesh.
    Returns: A function of whole arrays, as of `shard_map`.
    Raises: ArgumentError: If there is no mesh, or it has no such axis.

    Example:
        >>> with fg.set_mesh(fg.make_mesh((2,), ("i",))):
        ...     total = fg.smap(lambda x: fg.lax.psum(x, "i"), in_axes=0, out_axes=None,
        ...                              axis_name="i")
        ...     total(np.arange(4.0))
        array([2., 4.])
    """
    options = specs_of_axes(in_axes, out_axes, axis_name)
    return partial(shard_map, **options) if f is None else shard_map(f, **options)


def specs_of_axes(in_axes: Any, out_axes: Any, axis_name: Hashable) -> dict[str, Any]:
    """Arguments of `shard_map` for those of `smap`.

    Args:
        in_axes: As of `smap`.
        out_axes: As of `smap`.
        axis_name: As of `smap`.
    Raises: ArgumentError: If an axis is negative.
    """

    def spec(axis: int | None) -> PartitionSpec:
        if axis is None:
            return P()
        if axis < 0:
            raise ArgumentError(f"smap: axes are counted from the front, got {axis}.{place()}")
        return P(*[None] * axis, axis_name)

    def specs(axes: Any) -> Any:
        return tree_map(spec, axes, is_leaf=lambda x: x is None)

    return {"in_specs": specs(in_axes), "out_specs": specs(out_axes), "axis_names": {axis_name}}


Flags = list[bool]
"""For every axis of a mesh whether a value is mapped over it."""


def _over(
    axes: Sequence[MeshAxis],
    flags: Sequence[Flags],
    function: Callable[..., list[Any]],
    values: Sequence[Any],
    what: str,
) -> tuple[list[Any], list[Flags]]:
    """Results of a function mapped over axes, the first outermost, with lanes in front."""
    if not axes:
        outs = function(*values)
        return outs, [[] for _ in outs]
    axis, *rest = axes
    of_rest: list[Flags] = []

    def inner(*xs: Any) -> list[Any]:
        trace = current_trace()
        assert isinstance(trace, DividedTrace)
        trace.follows = True
        outs, found = _over(rest, [f[1:] for f in flags], function, xs, what)
        of_rest[:] = found
        return outs

    dims = [0 if f[0] else None for f in flags]
    outs, out_dims = batch_flat(inner, values, dims, axis.n_own, what, axis)
    return outs, [[d is not None, *f] for d, f in zip(out_dims, of_rest, strict=True)]


def _divided(x: Any, spec: Any, axes: Sequence[MeshAxis]) -> tuple[Any, Flags]:
    """The lanes that this process has of an array, in front."""
    by_name = {a.label: a for a in axes}
    processes = tuple(a.processes for a in axes if a.is_divided)
    if processes and isinstance(x, Tracer):
        x = RankEqual(processes).bind(x)
    shape: list[int] = []
    positions: dict[Hashable, int] = {}
    of_dims: list[int] = []
    for n, names in zip(shape_of(x), names_by_axis(spec, len(shape_of(x))), strict=True):
        for name in names:
            positions[name] = len(shape)
            shape.append(by_name[name].size)
            n //= by_name[name].size
        of_dims.append(len(shape))
        shape.append(n)
    x = reshape(x, tuple(shape))
    for name, position in positions.items():
        ranks = by_name[name].ranks
        if ranks is not None:
            x = OwnPart(ranks, ranks.size, position).bind(x)
    order = (*(positions[a.label] for a in axes if a.label in positions), *of_dims)
    x = x if order == tuple(range(len(order))) else Transpose(order).bind(x)
    return x, [a.label in positions for a in axes]


def _taken(x: Any, spec: Any, axes: Sequence[MeshAxis]) -> Any:
    """The part of a lane as a term of a sum, or a copy, along axes of which that is said."""
    unreduced, reduced = sums_in(spec)
    terms = tuple(a.whole for a in axes if a.label in unreduced)
    copies = tuple(a.whole for a in axes if a.label in reduced and a.is_tracked)
    if isinstance(spec, TermsSpec):
        x = reshape(x, shape_of(x)[len(terms) :])
    else:
        for axis in terms:
            is_first = equal.bind(AxisIndex(*axis).bind(), np.int32(0))
            x = select.bind(is_first, x, np.zeros((), aval_of(x).dtype))
    x = PVary(terms, to=UNREDUCED).bind(x) if terms else x
    return PVary(copies, to=REDUCED).bind(x) if copies else x


def _given(x: Any, spec: Any, path: str, axes: Sequence[MeshAxis], what: str) -> Any:
    """The result of a lane, summed up where that was left for later.

    What differs is taken for terms of a sum where the spec says so.
    """
    unreduced, reduced = sums_in(spec)
    kinds = lane_type(x)
    terms = kinds.unreduced | (unreduced & kinds.varying if may_mix_kinds() else frozenset())
    for axis in axes:
        asked = {UNREDUCED: axis.label in unreduced, REDUCED: axis.label in reduced}
        for kind, names in ((UNREDUCED, terms), (REDUCED, kinds.reduced)):
            if axis.is_tracked and (axis.label in names) != asked[kind]:
                is_it = "is" if axis.label in names else "is not"
                says = "says that it is" if asked[kind] else "does not say that"
                raise ArgumentError(
                    f"{what}: `{path}` {is_it} {kind} along axis {axis.label!r} of the mesh, and "
                    f"{spec!r}, of out_specs passed to shard_map, {says}.{place()}{_CURES[kind]}"
                )
        if asked[UNREDUCED] and not isinstance(spec, TermsSpec):
            x = PSum((axis.whole,), axis.is_tracked).bind(PVary((axis.whole,)).bind(x))
    return reshape(x, (*[1] * len(unreduced), *shape_of(x))) if isinstance(spec, TermsSpec) else x


_CURES = {
    UNREDUCED: "Terms of a sum are values that differ; lax.psum or psum_scatter sums what "
    "lax.pcast(value, axis, to='unreduced') has left for later.",
    REDUCED: "What is equal in all lanes becomes reduced by lax.pcast(value, axis, to='reduced'); "
    "what is reduced becomes varying by to='varying'.",
}


def _assembled(
    x: Any, flags: Flags, spec: Any, path: str, axes: Sequence[MeshAxis], check_vma: bool, what: str
) -> Any:
    """The whole array of the lanes of all processes."""
    lanes = [a for a, on in zip(axes, flags, strict=True) if on]
    named = names_in(spec)
    shape = shape_of(x)[len(lanes) :]
    rows = rows_of(spec, shape, {a.label: a.size for a in axes}, what, path, is_part=True)
    for axis in [a for a in lanes if a.label not in named]:
        if check_vma and axis.size > 1 and axis.label not in sums_in(spec)[1]:
            raise ArgumentError(
                f"{what}: `{path}` may differ along axis {axis.label!r} of the mesh, which "
                f"{spec!r} does not name.{place()}"
                f"Combine the values, for example by lax.psum(value, {axis.label!r}), name the "
                "axis in out_specs, or say by check_vma=False that they are equal."
            )
        x = _first(_gathered(x, axis, lanes.index(axis)), lanes.index(axis))
        lanes.remove(axis)
    for axis in axes:
        if axis.label in named and axis not in lanes:
            x = repeat_lanes(x, axis.n_own, axis)
            lanes.insert(0, axis)
    for position, axis in enumerate(lanes):
        x = _gathered(x, axis, position)
    places = {axis.label: i for i, axis in enumerate(lanes)}
    order: list[int] = []
    for i, names in enumerate(rows):
        order += [*(places[name] for name in names), len(lanes) + i]
    x = x if order == sorted(order) else Transpose(tuple(order)).bind(x)
    sizes = {a.label: a.size for a in axes}
    whole = [n * prod(sizes[k] for k in names) for n, names in zip(shape, rows, strict=True)]
    return reshape(x, tuple(whole))


def _gathered(x: Any, axis: MeshAxis, position: int) -> Any:
    ranks = axis.ranks
    if ranks is None:
        return x
    return AllGather(ranks, ranks.size, position, True, is_invariant=True).bind(x)


def _first(x: Any, position: int) -> Any:
    """The first element along an axis."""
    shape = shape_of(x)
    high = [1 if i == position else n for i, n in enumerate(shape)]
    found = Slice((0,) * len(shape), tuple(high), (1,) * len(shape)).bind(x)
    return reshape(found, (*shape[:position], *shape[position + 1 :]))


def _axes_of(
    mesh: Mesh, names: Collection[Hashable], is_tracked: bool, what: str
) -> tuple[MeshAxis, ...]:
    unknown = [name for name in names if name not in mesh.axis_names]
    if unknown:
        raise ArgumentError(
            f"{what}: the mesh has no axis {unknown[0]!r}, only {mesh.axis_names}.{place()}"
        )
    chosen = set(names) or set(mesh.axis_names) - set(mesh.manual_axes)
    around = {known.label for known, _ in axes_in_scope() if isinstance(known, MeshAxis)}
    twice = [name for name in mesh.axis_names if name in chosen and name in around]
    if twice:
        raise ArgumentError(
            f"{what}: a shard_map around maps axis {twice[0]!r} of the mesh already.{place()}"
            "Name the others in axis_names, and pass no mesh, or that of get_abstract_mesh()."
        )
    lengths = tuple(mesh.shape.items())
    axes = _shared_out(lengths, is_tracked, world() is not None)
    return tuple(a for a in axes if a.label in chosen)


@lru_cache(64)
def _shared_out(
    lengths: tuple[tuple[Hashable, int], ...], is_tracked: bool, is_launched: bool
) -> tuple[MeshAxis, ...]:
    """The axes of a mesh, divided among processes from the first axis on, as far as these go."""
    communicator = world()
    left = communicator.Get_size() if communicator is not None else 1
    grid = []
    for _, n in lengths:
        grid.append(gcd(n, left))
        left //= grid[-1]
    groups = subgroups(communicator, (*grid, left))
    checks = environment.is_on("FUNCGRAD_CHECK_RANKS")
    axes = []
    for (name, n), group, k in zip(lengths, groups, grid, strict=False):
        ranks = axis_of(name, group, False, checks) if k > 1 else None
        axes.append(MeshAxis(name, n, ranks, is_tracked))
    return tuple(axes)


def _prefix(specs: Any, tree: Any, name: str, what: str) -> list[Any]:
    def is_leaf(x: Any) -> bool:
        return x is None or isinstance(x, PartitionSpec)

    try:
        return broadcast_prefix(specs, tree, is_leaf=is_leaf)
    except TreeError as error:
        raise ArgumentError(
            f"{what}: {name} is not a prefix of the tree that it describes. {error}{place()}"
        ) from None


_SHOWN = 16
"""How many lanes are written out at most."""


def _with_lanes(x: BatchTracer) -> str:
    """The type, and along axes of a mesh the values of this process's lanes, where known."""
    axes: list[MeshAxis] = []
    values: Any = x
    while isinstance(axis := getattr(getattr(values, "owner", None), "axis_name", None), MeshAxis):
        axes.insert(0, axis)
        values = values.value
    text = Tracer.__repr__(x)
    if not axes or isinstance(values, Tracer):
        return text
    first = [0 if a.ranks is None else a.ranks.index * a.n_own for a in axes]
    names = ", ".join(str(a.label) for a in axes)
    for lane in list(np.ndindex(np.shape(values)[: len(axes)]))[:_SHOWN]:
        at = ", ".join(str(start + i) for start, i in zip(first, lane, strict=True))
        text += f"\nat mesh coordinates ({names}) = ({at}):\n{values[lane]}"
    return text


BatchTracer.__repr__ = _with_lanes  # type: ignore[assignment]

present(__name__)
