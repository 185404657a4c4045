"""Places of arrays: `device_put`, `shard_map` and its kin, whose results say how they are divided.

Arrays lie in one memory, whatever a program says about them. What it says is kept with an array, so
that its parts can be asked for: by ``x.sharding``, ``x.addressable_shards``. Within `jit`, results
are remembered until it ends, and handed out as nodes of the pytree that it returns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from funcgrad import lax, sharding
from funcgrad.api import arrays
from funcgrad.base.placement import Device
from funcgrad.base.pytree import (
    broadcast_prefix,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.distributed.meshes import names_in
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.interop.jax.arrays import Adopted, adopt, placed_on
from funcgrad.interop.jax.devices import AbstractMesh, NamedSharding, Sharding
from funcgrad.interop.jax.widths import in_few_bits
from funcgrad.random.key_arrays import KeyArray

_places: ContextVar[dict[int, tuple[Tracer, Any]] | None] = ContextVar("places", default=None)
"""Traced values of the innermost `jit`, and where they lie."""


def resolved(place: Any, what: str) -> Any:
    """A sharding, for a spec that of the mesh around.

    Args:
        place: A device, a sharding or a spec.
        what: The public function.

    Raises:
        ArgumentError: If there is no mesh.
    """
    if not isinstance(place, sharding.PartitionSpec):
        return place
    mesh = sharding.get_abstract_mesh()
    if mesh.empty:
        raise ArgumentError(
            f"{what}: {place!r} names axes of a mesh, and there is none. Call it inside set_mesh, "
            "or give a NamedSharding."
        )
    return NamedSharding(mesh, place)


def put(x: Any, place: Any, what: str) -> Any:
    """An array that says where it lies; a traced value is remembered for the result of `jit`.

    Args:
        x: The array.
        place: A device, a sharding or a spec.
        what: The public function.

    Raises:
        ShapeError: If it cannot be divided like that.
    """
    place = resolved(place, what)
    if isinstance(place, Device) and sharding.get_abstract_mesh().manual_axes:
        if not current_trace().is_staged:
            raise ArgumentError(
                f"{what}: this code sees one lane of shard_map, which lies where that has put it, "
                f"but got device {place!r}."
            )
        return x
    if isinstance(place, NamedSharding):
        mapped = set(sharding.get_abstract_mesh().manual_axes).intersection(place.names)
        if mapped:
            raise ArgumentError(
                f"{what}: {place!r} names {', '.join(map(repr, sorted(map(str, mapped))))}, which "
                "shard_map maps here: this code sees one lane."
            )
    if isinstance(x, Tracer):
        known = _places.get()
        if known is not None and _divides(place, x.shape):
            known[id(x)] = x, place
        return x
    if isinstance(place, NamedSharding):
        place.shard_shape(np.shape(x))
    return placed_on(x, place, what)


def _divides(place: Any, shape: tuple[int, ...]) -> bool:
    """Whether an array can lie there; within `jit`, constraints are wishes."""
    try:
        return not isinstance(place, NamedSharding) or bool(place.shard_shape(shape) is not None)
    except ShapeError:
        return False


class _Placed:
    """A result of `jit` of which is known where it lies."""

    def __init__(self, value: Any, place: Any) -> None:
        self.value = value
        self.place = place


register_pytree_node(
    _Placed, lambda node: ((node.value,), node.place), lambda place, kept: put(kept[0], place, "")
)


def keeping_places(fun: Callable[..., Any], out_shardings: Any = None) -> Callable[..., Any]:
    """A function to compile, whose results say where they lie.

    Args:
        fun: The function.
        out_shardings: A prefix of the pytree of results; `None` where nothing is asked for.
    """

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        places: dict[int, tuple[Tracer, Any]] = {}
        token = _places.set(places)
        try:
            leaves, treedef = tree_flatten(fun(*args, **kwargs))
        finally:
            _places.reset(token)
        if out_shardings is not None:
            asked = broadcast_prefix(
                out_shardings, tree_unflatten(treedef, leaves), is_leaf=lambda s: s is None
            )
            for x, place in zip(leaves, asked, strict=True):
                if place is not None:
                    places[id(x)] = x, resolved(place, "jit")
        if not places:
            return tree_unflatten(treedef, leaves)
        found = [_Placed(x, places[id(x)][1]) if id(x) in places else x for x in leaves]
        return tree_unflatten(treedef, found)

    return run


def device_put(x: Any, device: Any = None, **options: Any) -> Any:
    """`funcgrad.device_put`, with arrays that say where they are put.

    Args:
        x: A pytree of arrays and numbers.
        device: A device, a sharding or a spec, or a pytree of such for leaves of ``x``.
        **options: Of no effect.
    """
    made = _device_put(x)
    if device is None or isinstance(device, Device | Sharding | str | sharding.PartitionSpec):
        return tree_map(lambda leaf: put(leaf, device, "device_put"), made)
    places = broadcast_prefix(device, made)
    leaves, treedef = tree_flatten(made)
    pairs = zip(leaves, places, strict=True)
    return tree_unflatten(treedef, [put(leaf, place, "device_put") for leaf, place in pairs])


_device_put = Adopted(arrays.device_put)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """`device_put`; traced values are where they are.

    Args:
        x: A pytree of arrays.
        shardings: A device or a sharding, or a pytree of such for leaves of ``x``.
    """
    is_traced = any(isinstance(leaf, Tracer) for leaf in tree_leaves(x))
    made = lax.with_sharding_constraint(x, shardings) if is_traced else x
    return device_put(made, shardings)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """`device_put`.

    Args:
        xs: A pytree of arrays.
        out_shardings: A sharding or a spec, or a pytree of such for leaves of ``xs``.
    """
    return device_put(xs, out_shardings)


def shard_map(f: Any = None, /, **options: Any) -> Any:
    """`funcgrad.shard_map`, whose results say how they are divided.

    Args:
        f: The function; without one, a decorator is returned.
        **options: As in `funcgrad.shard_map`. Without ``in_specs``, arrays are divided as they say.
    """
    if f is None:
        return functools.partial(shard_map, **options)
    if "in_specs" not in options:
        return _of_divided(f, options)
    compute = adopt(sharding.shard_map(in_few_bits(f), **options))

    @functools.wraps(f)
    def run(*args: Any) -> Any:
        around = sharding.get_abstract_mesh()
        mesh = options.get("mesh") or around
        _check_spmd_names(options["in_specs"], options["out_specs"])
        if isinstance(mesh, AbstractMesh) and not around.manual_axes:
            mesh = _common_mesh(args, mesh)
        out = compute(*args)
        if around.manual_axes:
            return out
        leaves, treedef = tree_flatten(out)
        specs = broadcast_prefix(options["out_specs"], out, is_leaf=_is_spec)
        places = [NamedSharding(mesh, sharding.P() if s is None else s) for s in specs]
        pairs = zip(leaves, places, strict=True)
        return tree_unflatten(treedef, [put(x, place, "shard_map") for x, place in pairs])

    return run


_spmd_names: ContextVar[frozenset[Hashable]] = ContextVar("spmd_names", default=frozenset())
"""Axes of a mesh along which `vmap` around divides the axes that it maps."""

_checks_spmd_names: ContextVar[bool] = ContextVar("checks_spmd_names", default=True)


def dividing_lanes(fun: Callable[..., Any], names: Any) -> Callable[..., Any]:
    """A function to map, along an axis that is divided by axes of a mesh.

    Args:
        fun: The function.
        names: A name, or several.
    """
    listed = names if isinstance(names, tuple | list) else (names,)

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        token = _spmd_names.set(_spmd_names.get().union(listed))
        try:
            return fun(*args, **kwargs)
        finally:
            _spmd_names.reset(token)

    return run


@contextmanager
def disable_vmap_shmap_error() -> Iterator[None]:
    """A block in which `vmap` and `shard_map` may name the same axis of a mesh."""
    token = _checks_spmd_names.set(False)
    try:
        yield
    finally:
        _checks_spmd_names.reset(token)


def _check_spmd_names(*specs: Any) -> None:
    names = _spmd_names.get()
    used = {n for s in tree_leaves(specs, is_leaf=_is_spec) for n in names_in(s)}
    if _checks_spmd_names.get() and not names.isdisjoint(used):
        (name, *_) = names & used
        raise ArgumentError(
            f"shard_map: vmap spmd_axis_name cannot appear in its specs, but vmap around divides "
            f"lanes along axis {name!r} of the mesh, and so do the specs. Name another axis."
        )


def _common_mesh(args: Any, mesh: AbstractMesh) -> sharding.Mesh:
    """The mesh of arguments, which have to say so where that of `shard_map` is abstract."""
    leaves = [x.base if isinstance(x, KeyArray) else x for x in tree_leaves(args)]
    places = [getattr(x, "sharding", None) for x in leaves]
    found = [place.mesh for place in places if isinstance(place, NamedSharding)]
    if not found and not any(isinstance(x, Tracer) for x in leaves):
        raise ArgumentError(
            "shard_map: an AbstractMesh has no devices. Pass arrays with a NamedSharding, made by "
            "device_put, or a Mesh as mesh."
        )
    for other in found:
        if other.shape != mesh.shape:
            raise ArgumentError(
                f"shard_map: an argument is divided by {other!r}, whose shape does not match that "
                f"of {mesh!r}."
            )
    return found[0] if found else mesh.concrete


def _of_divided(f: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """`shard_map` of arrays that say how they are divided; others are whole."""

    @functools.wraps(f)
    def run(*args: Any) -> Any:
        return shard_map(f, in_specs=tree_map(_spec_of, args), **options)(*args)

    return run


def _spec_of(x: Any) -> sharding.PartitionSpec:
    if isinstance(x, Tracer):
        raise ArgumentError(
            "shard_map: a traced array does not say how it is divided. Give shard_map in_specs."
        )
    place = getattr(x, "sharding", None)
    return place.spec if isinstance(place, NamedSharding) else sharding.PartitionSpec()


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, sharding.PartitionSpec)


def smap(f: Any = None, /, *, in_axes: Any, out_axes: Any, axis_name: Any) -> Any:
    """`funcgrad.sharding.smap`.

    Args:
        f: The function; without one, a decorator is returned.
        in_axes: As in `funcgrad.sharding.smap`.
        out_axes: As in `funcgrad.sharding.smap`.
        axis_name: As in `funcgrad.sharding.smap`.
    """
    return shard_map(f, **sharding.specs_of_axes(in_axes, out_axes, axis_name))


def experimental_shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: Any = frozenset(),
) -> Any:
    """`shard_map` with the parameters that it had while it was experimental.

    Args:
        f: The function.
        mesh: The mesh.
        in_specs: As in `shard_map`.
        out_specs: As in `shard_map`.
        check_rep: ``check_vma``.
        auto: Names of axes along which arrays stay whole.
    """
    return shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        check_vma=check_rep,
        axis_names=frozenset(mesh.axis_names) - frozenset(auto),
    )


class custom_partitioning:
    """A function with rules for a compiler that divides it, which nothing here does.

    Args:
        fun: The function of whole arrays.
        static_argnums: Of no effect.
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Any = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun

    def def_partition(self, *rules: Any, **options: Any) -> None:
        """Take the rules, which are not needed."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)


def pvary(x: Any, axis_name: Any) -> Any:
    """`lax.pvary`; along an axis of one lane it is nothing, also outside of `shard_map`.

    Raises:
        ArgumentError: If the mesh around has the axis, and no `shard_map` maps it.
    """
    names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
    mesh = sharding.get_abstract_mesh()
    is_inside = bool(mesh.manual_axes)
    unmapped = [] if is_inside else [n for n in names if n in mesh.shape]
    wide = [n for n in unmapped if mesh.shape[n] > 1]
    if wide:
        raise ArgumentError(
            f"pvary should be called under jax.shard_map: the mesh around has axis {wide[0]!r}, "
            "and nothing maps it here."
        )
    mapped = tuple(n for n in names if n not in unmapped)
    return _pvary(x, mapped) if mapped else x


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """`lax.pcast`, of which ``"varying"`` is `pvary`."""
    return pvary(x, axis_name) if to == "varying" else _pcast(x, axis_name, to=to)


_pvary = Adopted(lax.pvary)
_pcast = Adopted(lax.pcast)
