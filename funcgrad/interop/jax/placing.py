"""Places of arrays: `device_put`, `shard_map` and its kin, whose results say how they are divided.

Arrays lie in one memory, whatever a program says about them. What it says is kept with an array, so
that its parts can be asked for: by ``x.sharding``, ``x.addressable_shards``. `jit` takes and gives
it as nodes of pytrees, so that it is a part of types; within, it is noted (`places`).
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from funcgrad import lax, sharding
from funcgrad.api import arrays, staging
from funcgrad.base.placement import Device
from funcgrad.base.pytree import (
    broadcast_prefix,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.distributed.meshes import TermsSpec, names_by_axis, names_in, sums_in
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.cells import Cell
from funcgrad.interop.jax.arrays import Adopted, Array, adopt, placed_on
from funcgrad.interop.jax.devices import AbstractMesh, NamedSharding, Sharding
from funcgrad.interop.jax.lane_programs import as_operation, spmd_names
from funcgrad.interop.jax.places import (
    Labels,
    Notes,
    explicit,
    is_spec,
    lengthened,
    merged,
    note,
    note_use,
    noting,
    place_of,
    resolved,
    shortened,
    spec_of_rows,
    without_names,
)
from funcgrad.interop.jax.terms import stacking, summed, terms_of, with_terms, without_terms
from funcgrad.interop.jax.widths import gradients_stored, in_few_bits
from funcgrad.primitives.objects import HoldsArray
from funcgrad.primitives.shape import Reshape
from funcgrad.random.key_arrays import KeyArray
from funcgrad.transforms.linearize import LinearizeTrace


def put(x: Any, place: Any, what: str) -> Any:
    """An array that says where it lies; a traced value is remembered for the result of `jit`.

    Args:
        x: The array.
        place: A device, a sharding or a spec.
        what: The public function.
    Raises: ShapeError: If it cannot be divided like that.
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
    if isinstance(place, NamedSharding):
        Labels.are_there = True
    if isinstance(x, Tracer):
        if _divides(place, x.shape):
            note(x, place)
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


class Given:
    """An argument of `jit` with its sharding.

    Args:
        value: The argument.
        place: A sharding.
        terms: Those of a sum over lanes, where they are known.
    """

    def __init__(self, value: Any, place: NamedSharding, terms: Any) -> None:
        self.value = value
        self.place = place
        self.terms = terms


register_pytree_node(
    Given,
    lambda node: ((node.value, node.terms), node.place),
    lambda place, kept: Given(kept[0], place, kept[1]),
)


def given(x: Any) -> Any:
    """An argument of `jit`, with its place where that is known."""
    place = place_of(x) if isinstance(x, Array | Cell) else None
    return Given(x, shortened(place), terms_of(x)) if isinstance(place, NamedSharding) else x


def _taken(x: Any) -> Any:
    """Unwrap an argument, and record its sharding."""
    if type(x) is not Given:
        return x
    place = lengthened(x.place, x.value.ndim)
    if isinstance(x.value, Cell):
        x.value.sharding = place  # type: ignore[attr-defined]
        return x.value
    note(x.value, place)
    return with_terms(x.value, x.terms)


class _Placed:
    """A result of `jit` with its sharding, and terms if it is a sum of known ones."""

    def __init__(self, value: Any, place: Any, terms: Any) -> None:
        self.value = value
        self.place = place
        self.terms = terms


def _placed(place: Any, kept: Sequence[Any]) -> Any:
    return with_terms(put(kept[0], lengthened(place, np.ndim(kept[0])), ""), kept[1])


register_pytree_node(_Placed, lambda node: ((node.value, node.terms), node.place), _placed)


def keeping_places(fun: Callable[..., Any], out_shardings: Any = None) -> Callable[..., Any]:
    """A function to compile, whose results say where they lie.

    Args:
        fun: The function.
        out_shardings: A prefix of the pytree of results; `None` where nothing is asked for.
    """

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        with noting():
            if Labels.are_there:
                args, kwargs = tree_map(_taken, (args, kwargs), is_leaf=lambda x: type(x) is Given)
            leaves, treedef = tree_flatten(fun(*args, **kwargs))
            places = [place_of(x) for x in leaves]
            terms = [terms_of(x) if _is_sum(place_of(x)) else None for x in leaves]
        if out_shardings is not None:
            asked = broadcast_prefix(
                out_shardings, tree_unflatten(treedef, leaves), is_leaf=lambda s: s is None
            )
            pairs = zip(asked, places, strict=True)
            places = [known if s is None else resolved(s, "jit") for s, known in pairs]
        found = [
            _Placed(x, shortened(place), parts if _is_sum(place) else None)
            if place is not None and _divides(place, np.shape(x))
            else x
            for x, place, parts in zip(leaves, places, terms, strict=True)
        ]
        return tree_unflatten(treedef, found)

    return run


def _is_sum(place: Any) -> bool:
    return isinstance(place, NamedSharding) and bool(sums_in(place.spec)[0])


class _InPlaces(Adopted):
    """A transformed function that follows where arrays lie.

    Args:
        original: The function.
        run: What computes instead.
    """

    def __init__(self, original: Callable[..., Any], run: Callable[..., Any]) -> None:
        super().__init__(original)
        self._run = run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)


def placing_gradients(transformation: Callable[..., Any]) -> Callable[..., Any]:
    """`grad` or `value_and_grad`, whose gradients lie and are stored as the arguments are.

    What is reduced in the type of an argument is unreduced in that of its gradient, and the
    reverse. Where nothing is known of an argument, it is how `shard_map` divides it.

    Args: transformation: The transformation.
    """
    is_grad = transformation.__name__ == "grad"

    @functools.wraps(transformation)
    def transform(
        fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **options: Any
    ) -> Any:
        compute = transformation(fun, argnums, has_aux, **options)

        def changed(out: Any, change: Callable[[Any, int], Any]) -> Any:
            """The results with other gradients, made of those and of the argument's number."""
            found = out if is_grad and not has_aux else out[not is_grad]
            if isinstance(argnums, int):
                found = change(found, argnums)
            else:
                found = tuple(map(change, found, argnums))
            if not is_grad:
                return out[0], found
            return (found, out[1]) if has_aux else found

        def run(*args: Any, **kwargs: Any) -> Any:
            if not Labels.are_there:
                out = compute(*args, **kwargs)
                return changed(out, lambda gradient, i: gradients_stored(gradient, args[i]))
            places = [[place_of(x) for x in tree_leaves(arg)] for arg in args]
            with noting() as notes:
                of_noted = transformation(_noted(fun, places, notes), argnums, has_aux, **options)
                out = of_noted(*args, **kwargs)
            return changed(out, lambda gradient, i: _lying_as(gradient, places[i]))

        return _InPlaces(compute, run)

    return transform


def _noted(fun: Callable[..., Any], places: list[list[Any]], notes: Notes) -> Callable[..., Any]:
    """A function that is told where its arguments lie, and tells how it divides others."""

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        rows = [tree_leaves(arg) for arg in args]
        for values, known in zip(rows, places, strict=True):
            for x, place in zip(values, known, strict=True):
                if place is not None:
                    note(x, place)
        out = fun(*args, **kwargs)
        for values, known in zip(rows, places, strict=True):
            uses = [notes.uses.get(id(x), (x, None))[1] for x in values]
            known[:] = [u if k is None else k for k, u in zip(known, uses, strict=True)]
        return out

    return run


def _lying_as(gradient: Any, places: list[Any]) -> Any:
    """A gradient that lies as its argument."""
    leaves, treedef = tree_flatten(gradient)
    made = [
        put(g, p.with_spec(p.spec.dual), "grad") if isinstance(p, NamedSharding) else g
        for g, p in zip(leaves, places, strict=True)
    ]
    return tree_unflatten(treedef, made)


def device_put(x: Any, device: Any = None, **options: Any) -> Any:
    """`funcgrad.device_put`, with arrays that say where they are put.

    Args:
        x: A pytree of arrays and numbers.
        device: A device, a sharding or a spec, or a pytree of such for leaves of ``x``.
        **options: Of no effect.
    """
    made = _device_put(x)
    if device is None or isinstance(device, Device | Sharding | str | sharding.PartitionSpec):
        return tree_map(lambda leaf: _moved(leaf, device), made)
    places = broadcast_prefix(device, made)
    leaves, treedef = tree_flatten(made)
    pairs = zip(leaves, places, strict=True)
    return tree_unflatten(treedef, [_moved(leaf, place) for leaf, place in pairs])


def device_get(x: Any) -> Any:
    """The arrays of a pytree as NumPy's; what is no array, such as a text, as it is.

    Args: x: A pytree.
    """

    def read(leaf: Any) -> Any:
        is_kept = isinstance(leaf, Tracer | HoldsArray) or not hasattr(leaf, "__array__")
        return leaf if is_kept else np.asarray(leaf)

    return tree_map(read, x)


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays of the program that are not deleted, in any order.

    Args: platform: Where they lie: all are on the CPU.
    """
    alive = (x for x in gc.get_objects() if type(x) is Array and not x.is_deleted())
    return list(alive) if platform in (None, "cpu") else []


def _moved(x: Any, place: Any) -> Any:
    """An array that lies elsewhere; of a traced one, another value."""
    if isinstance(x, Tracer) and isinstance(place, NamedSharding | sharding.PartitionSpec):
        x = Reshape(x.shape).bind(x)
    return put(x, place, "device_put")


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


def auto_axes(fun: Any = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """A function whose results are divided as its caller, or the decorator, says.

    Args:
        fun: The function; without one, a decorator is returned.
        axes: Names of axes of the mesh; ignored, since no axis needs to be told apart.
        out_sharding: A sharding or a spec, or a pytree of such; the function that is returned has
            an argument of this name, too.
    """
    if fun is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(fun)
    def call(*args: Any, out_sharding: Any = out_sharding, **kwargs: Any) -> Any:
        found = fun(*args, **kwargs)
        return found if out_sharding is None else device_put(found, out_sharding)

    return call


def explicit_axes(fun: Any = None, /, *, axes: Any = None, in_sharding: Any = None) -> Any:
    """A function whose arguments are divided as its caller, or the decorator, says.

    Args:
        fun: The function; without one, a decorator is returned.
        axes: Names of axes of the mesh; ignored, since no axis needs to be told apart.
        in_sharding: A sharding or a spec, or a pytree of such for the positional arguments; the
            function that is returned has an argument of this name, too.
    """
    if fun is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(fun)
    def call(*args: Any, in_sharding: Any = in_sharding, **kwargs: Any) -> Any:
        given = args if in_sharding is None else device_put(args, in_sharding)
        return fun(*given, **kwargs)

    return call


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
    inner: list[Any] = []
    of_lanes = _of_lanes(in_few_bits(f), inner)
    whole = adopt(sharding.shard_map(of_lanes, **options))
    whole_staged = adopt(as_operation(of_lanes, options))
    all_specs = tree_leaves((options["in_specs"], options["out_specs"]), is_leaf=is_spec)
    has_sums = any(sums_in(spec)[0] for spec in all_specs)

    @functools.wraps(f)
    def run(*args: Any) -> Any:
        around = sharding.get_abstract_mesh()
        mesh = options.get("mesh") or around
        _check_spmd_names(options["in_specs"], options["out_specs"])
        if isinstance(mesh, AbstractMesh) and not around.manual_axes:
            mesh = _common_mesh(args, mesh)
        leaves = tree_leaves(args)
        specs = broadcast_prefix(options["in_specs"], args, is_leaf=is_spec)
        places = inner[:] = [place_of(x) for x in leaves]
        mapped = set(options.get("axis_names") or mesh.axis_names)
        _check_sums(options["in_specs"], mesh, mapped)
        has_cells = any(isinstance(x, Cell) for x in leaves)
        is_traced = current_trace().is_staged or (
            isinstance(current_trace(), LinearizeTrace) and options.get("check_vma", True)
        )
        is_shown = is_traced and not around.manual_axes and not has_cells
        compute, compute_staged, of_terms = whole, whole_staged, options
        if not around.manual_axes and has_sums:
            args, of_terms = _with_terms_of(args, specs, mesh, options)
            compute = adopt(sharding.shard_map(of_lanes, **of_terms))
            compute_staged = adopt(as_operation(of_lanes, of_terms))
        with noting():
            out = compute_staged(*args) if is_shown else compute(*args)
            is_followed = current_trace() is not EVAL or mapped.issuperset(mesh.explicit_axes)
            if not (is_followed or has_cells) and any(map(explicit, places)):
                # Only a program tells how its results are divided.
                inner[:] = places
                staging.eval_shape(compute, *args)
        if around.manual_axes:
            return out
        for x, spec in zip(leaves, specs, strict=True):
            note_use(x, NamedSharding(mesh, without_terms(spec)))
        leaves, treedef = tree_flatten(out)
        specs = broadcast_prefix(of_terms["out_specs"], out, is_leaf=is_spec)
        made = []
        for x, spec, known in zip(leaves, specs, inner, strict=True):
            total, place = summed(x, spec), NamedSharding(mesh, without_terms(spec))
            total = put(total, merged(place, known, np.ndim(total)), "shard_map")
            made.append(with_terms(total, x if isinstance(spec, TermsSpec) else None))
        return tree_unflatten(treedef, made)

    return run


def _with_terms_of(
    args: Any, specs: list[Any], mesh: Any, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Arguments with the terms of sums where they are known, and options that say so."""
    leaves, treedef = tree_flatten(args)
    for i, (x, spec) in enumerate(zip(leaves, specs, strict=True)):
        terms = terms_of(x) if sums_in(spec)[0] else None
        if terms is not None and sums_in(place_of(x).spec)[0] == spec.unreduced:
            leaves[i], specs[i] = terms, stacking(spec, mesh.axis_names)
    return tree_unflatten(treedef, leaves), {
        **options,
        "in_specs": tree_unflatten(treedef, specs),
        "out_specs": stacking(options["out_specs"], mesh.axis_names),
    }


def _check_sums(specs: Any, mesh: Any, mapped: set[Hashable]) -> None:
    """Say where arguments are terms of a sum though types do not say how arrays are divided."""
    summed = {n for s in tree_leaves(specs, is_leaf=is_spec) for n in sums_in(s)[0]}
    if summed and not set(mesh.axis_names) == mapped == set(mesh.explicit_axes):
        kind = ArgumentError if mapped == set(mesh.axis_names) else NotImplementedError
        raise kind(
            f"shard_map: unreduced, of axis {min(map(repr, summed))} in in_specs, can only be used "
            "when the mesh passed to shard_map contains axis names all of type `Explicit`, and "
            "shard_map maps all of them."
        )


def _of_lanes(f: Callable[..., Any], places: list[Any]) -> Callable[..., Any]:
    """A function of lanes that knows how these are divided along axes that it is not mapped over.

    Args:
        f: The function.
        places: Where its arguments lie in front of `shard_map`; where its results do, afterwards.
    """

    @functools.wraps(f)
    def run(*args: Any) -> Any:
        mesh = sharding.get_abstract_mesh()
        if not mesh.explicit_axes:
            out = f(*args)
            places[:] = [None] * len(tree_leaves(out))
            return out
        for x, place in zip(tree_leaves(args), places, strict=True):
            if isinstance(x, Cell):
                continue
            spec = place.spec if isinstance(place, NamedSharding) else None
            rest = without_names(spec, np.ndim(x), mesh.manual_axes)
            note(x, NamedSharding(mesh, rest))
        out = f(*args)
        places[:] = [place_of(x) for x in tree_leaves(out)]
        return out

    return run


def placing_lanes(transformation: Callable[..., Any]) -> Callable[..., Any]:
    """`vmap`, along an axis of arrays that an axis of a mesh may divide: then it divides results.

    Args: transformation: The transformation.
    """

    @functools.wraps(transformation)
    def transform(
        fun: Callable[..., Any],
        in_axes: Any = 0,
        out_axes: Any = 0,
        *more: Any,
        spmd_axis_name: Any = None,
        **options: Any,
    ) -> Any:
        if spmd_axis_name is not None:
            fun = dividing_lanes(fun, spmd_axis_name)
        compute = transformation(fun, in_axes, out_axes, *more, **options)

        def run(*args: Any, **kwargs: Any) -> Any:
            leaves = tree_leaves(args)
            known = [explicit(place_of(x)) for x in leaves] if Labels.are_there else []
            if not any(known):
                return compute(*args, **kwargs)
            axes = broadcast_prefix(in_axes, args, is_leaf=lambda axis: axis is None)
            lanes = _Lanes(fun, list(zip(leaves, known, axes, strict=True)), spmd_axis_name)
            with noting():
                out = transformation(lanes.noted, in_axes, out_axes, *more, **options)(
                    *args, **kwargs
                )
            return lanes.placed(out, out_axes)

        return _InPlaces(compute, run)

    return transform


class _Lanes:
    """A mapped function whose arguments are divided along explicit axes of a mesh.

    Args:
        fun: The function.
        rows: Arguments, where they lie, and along which of their axes they are mapped.
        spmd_axis_name: The axis of the mesh that `vmap` was given, if any.
    """

    def __init__(self, fun: Callable[..., Any], rows: list[Any], spmd_axis_name: Any) -> None:
        self.mesh = next(place.mesh for _, place, _ in rows if place is not None)
        self.names: tuple[Hashable, ...] = ()
        self.known: list[Any] = []
        for x, place, axis in rows:
            spec = None if place is None else place.spec
            entries = names_by_axis(spec, np.ndim(x))
            if axis is not None:
                self.names = entries.pop(axis) or self.names
            self.known.append(None if place is None else place.with_spec(spec_of_rows(entries)))
        given = spmd_axis_name if isinstance(spmd_axis_name, tuple) else (spmd_axis_name,)
        if self.names and spmd_axis_name is not None and self.names != given:
            raise ArgumentError(
                "vmap: Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type "
                f"is allowed, but {self.names[0]!r} divides an argument along the mapped axis."
            )
        self.fun = dividing_lanes(fun, self.names) if self.names else fun
        self.found: list[Any] = []

        @functools.wraps(fun)
        def noted(*args: Any, **kwargs: Any) -> Any:
            for x, place in zip(tree_leaves(args), self.known, strict=True):
                if place is not None:
                    note(x, place)
            out = self.fun(*args, **kwargs)
            self.found = [place_of(x) for x in tree_leaves(out)]
            return out

        self.noted = noted

    def placed(self, out: Any, out_axes: Any) -> Any:
        """Results that say where they lie."""
        leaves, treedef = tree_flatten(out)
        axes = broadcast_prefix(out_axes, out, is_leaf=lambda axis: axis is None)
        made = []
        for x, place, axis in zip(leaves, self.found, axes, strict=True):
            entries = names_by_axis(getattr(place, "spec", None), np.ndim(x) - (axis is not None))
            if axis is not None:
                entries.insert(axis % np.ndim(x), self.names)
            made.append(put(x, NamedSharding(self.mesh, spec_of_rows(entries)), "vmap"))
        return tree_unflatten(treedef, made)


_checks_spmd_names: ContextVar[bool] = ContextVar("checks_spmd_names", default=True)


def dividing_lanes(fun: Callable[..., Any], names: Any) -> Callable[..., Any]:
    """A function to map, along an axis that is divided by axes of a mesh.

    Args:
        fun: The function.
        names: A name, or several.
    """
    listed = tuple(names) if isinstance(names, tuple | list) else (names,)

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        token = spmd_names.set(((current_trace(), listed), *spmd_names.get()))
        try:
            return fun(*args, **kwargs)
        finally:
            spmd_names.reset(token)

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
    names = {name for _, row in spmd_names.get() for name in row}
    used = {n for s in tree_leaves(specs, is_leaf=is_spec) for n in names_in(s)}
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
        mesh = options.get("mesh") or sharding.get_abstract_mesh()
        mapped = set(options.get("axis_names") or set(mesh.axis_names) - set(mesh.manual_axes))
        others = [name for name in mesh.axis_names if name not in mapped]
        specs = tree_map(lambda x: _spec_of(x, mesh, others), args)
        return shard_map(f, in_specs=specs, **options)(*args)

    return run


def _spec_of(x: Any, mesh: Any, others: Any) -> sharding.PartitionSpec:
    place = place_of(x)
    if place is None and isinstance(x, Tracer) and not mesh.explicit_axes:
        raise ArgumentError(
            "shard_map: a traced array does not say how it is divided, unless the type of an axis "
            "of the mesh is explicit. Give shard_map in_specs."
        )
    if not isinstance(place, NamedSharding):
        return sharding.PartitionSpec()
    return without_names(place.spec, x.ndim, others)


_INFERRED = object()


def smap(f: Any = None, /, *, in_axes: Any = _INFERRED, out_axes: Any, axis_name: Any) -> Any:
    """`funcgrad.sharding.smap`.

    Args:
        f: The function; without one, a decorator is returned.
        in_axes: As in `funcgrad.sharding.smap`; by default as arrays say.
        out_axes: As in `funcgrad.sharding.smap`.
        axis_name: As in `funcgrad.sharding.smap`.
    """
    is_inferred = in_axes is _INFERRED
    options = sharding.specs_of_axes(0 if is_inferred else in_axes, out_axes, axis_name)
    if not is_inferred:
        return shard_map(f, **options)
    del options["in_specs"]
    if axis_name not in sharding.get_abstract_mesh().explicit_axes:
        raise ArgumentError(
            f"smap: in_axes was not specified, and arrays do not say how they are divided along "
            f"axis {axis_name!r}, whose type is not explicit. Give smap in_axes."
        )
    return shard_map(f, **options)


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

    Raises: ArgumentError: If the mesh around has the axis, and no `shard_map` maps it.
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
    is_known = isinstance(axis_name, str | tuple)
    return pvary(x, axis_name) if to == "varying" and is_known else _pcast(x, axis_name, to=to)


_pvary = Adopted(lax.pvary)
_pcast = Adopted(lax.pcast)
