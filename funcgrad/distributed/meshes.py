"""Meshes of named axes, and specs that say how arrays are divided by them."""

from __future__ import annotations

import enum
from collections.abc import Collection, Hashable, Sequence
from contextvars import ContextVar
from copy import copy
from math import prod
from typing import Any, Self

import numpy as np

from funcgrad.base.placement import CPU
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.staging import place


class PartitionSpec(tuple[Any, ...]):
    """How the axes of an array are divided: a name of an axis of a mesh for each, or `None`.

    A tuple of names divides an axis of the array by several axes of the mesh, the last one varying
    fastest. Axes of the array without an entry are not divided.

    Args:
        partitions: The entries.
        unreduced: Names of axes over whose lanes the array is a sum.
        reduced: Names of axes in whose lanes it is equal, and its cotangent is such a sum.
    Raises: ArgumentError: If a name is given twice.

    Example:
        >>> fg.P("x", None, ("y", "z"))
        PartitionSpec('x', None, ('y', 'z'))
        >>> fg.P(None, reduced={"x"})
        PartitionSpec(None, reduced={'x'})
    """

    unreduced: frozenset[Hashable]
    reduced: frozenset[Hashable]

    def __new__(
        cls,
        *partitions: Any,
        unreduced: Collection[Hashable] = (),
        reduced: Collection[Hashable] = (),
    ) -> PartitionSpec:
        entries = (tuple(e) if isinstance(e, list) else e for e in partitions)
        made = super().__new__(cls, entries)
        made.unreduced, made.reduced = frozenset(unreduced), frozenset(reduced)
        names = [name for names in names_by_axis(made, 0) for name in names]
        twice = made.unreduced & made.reduced | (made.unreduced | made.reduced).intersection(names)
        if twice:
            raise ArgumentError(
                f"PartitionSpec: axis {min(map(repr, twice))} is named twice: an array is divided "
                f"by an axis, or reduced, or unreduced.{place()}"
            )
        return made

    platform = "cpu"
    """The place of arrays that a program puts somewhere by it."""

    @property
    def dual(self) -> PartitionSpec:
        """The spec of cotangents: what was reduced is unreduced, and the reverse."""
        return PartitionSpec(*self, unreduced=self.reduced, reduced=self.unreduced)

    @property
    def divided(self) -> PartitionSpec:
        """The entries alone."""
        return PartitionSpec(*self)

    def __add__(self, other: tuple[Any, ...]) -> PartitionSpec:
        return PartitionSpec(*self, *other, unreduced=self.unreduced, reduced=self.reduced)

    def __eq__(self, other: object) -> bool:
        same = tuple.__eq__(self, other) is True
        return same and all(getattr(self, k) == getattr(other, k, frozenset()) for k in _SUMS)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __repr__(self) -> str:
        words = [*map(repr, self)]
        for kind in _SUMS:
            names = ", ".join(sorted(map(repr, getattr(self, kind))))
            words += [f"{kind}={{{names}}}"] if names else []
        return f"PartitionSpec({', '.join(words)})"

    def __reduce__(self) -> Any:
        return _spec, (tuple(self), self.unreduced, self.reduced)


_SUMS = ("unreduced", "reduced")


def _spec(entries: tuple[Any, ...], unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)


P = PartitionSpec


class TermsSpec(PartitionSpec):
    """Spec of the terms of a sum that is left for later, stacked: lanes have one each.

    Args:
        total: The spec of the sum, which has names of axes that are unreduced.
        axis_names: Those of the mesh. There is an axis in front for each that is unreduced.
    """

    total: PartitionSpec

    def __new__(cls, total: PartitionSpec, axis_names: Sequence[Hashable]) -> TermsSpec:
        stacked = (name for name in axis_names if name in total.unreduced)
        made = tuple.__new__(cls, (*stacked, *total))
        made.total, made.unreduced, made.reduced = total, total.unreduced, total.reduced
        return made


class AxisType(enum.Enum):
    """Who divides arrays along an axis of a mesh: the compiler, types of arrays, or `shard_map`.

    Only `shard_map` does here. Along other axes arrays are whole, whatever their types are.

    Example: fg.make_mesh((2,), ("x",)).axis_types -> (<AxisType.Auto: 'auto'>,)
    """

    Auto = "auto"
    Explicit = "explicit"
    Manual = "manual"


class Mesh:
    """Lanes in a grid whose axes have names.

    Args:
        devices: An array of anything, of which the shape counts.
        axis_names: A name for each of its axes.
        axis_types: An `AxisType` for each of them; by default, none is mapped yet.
        **options: About devices, as in JAX; they are ignored.

    Attributes:
        axis_types: Inside of `shard_map`, the axes that it maps are manual ones.
    Raises: ArgumentError: If there are more or fewer names than axes.
    Example: fg.sharding.Mesh(np.zeros((2, 3)), ("x", "y")).shape -> {'x': 2, 'y': 3}
    """

    def __init__(
        self,
        devices: Any,
        axis_names: Any,
        axis_types: Sequence[AxisType] | None = None,
        **options: Any,
    ) -> None:
        self.devices = np.asarray(devices, object)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.axis_types = tuple(axis_types or [AxisType.Auto] * self.devices.ndim)
        if len(set(self.axis_names)) != self.devices.ndim:
            raise ArgumentError(
                f"Mesh: a grid of shape {self.devices.shape} needs {self.devices.ndim} different "
                f"names of axes, got {self.axis_names}.{place()}"
            )

    @property
    def shape(self) -> dict[Hashable, int]:
        """The length of every axis."""
        return dict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def size(self) -> int:
        """The number of lanes."""
        return self.devices.size

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.devices.shape

    @property
    def empty(self) -> bool:
        """Whether it has no axes."""
        return not self.axis_names

    @property
    def manual_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes that `shard_map` maps, inside of which this is asked."""
        return self._names_of(AxisType.Manual)

    @property
    def auto_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes along which the compiler may divide arrays, and does not."""
        return self._names_of(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes along which types of arrays would divide them."""
        return self._names_of(AxisType.Explicit)

    @property
    def abstract_mesh(self) -> Mesh:
        """The mesh: only its shape counts."""
        return self

    def mapped(self, names: Collection[Hashable]) -> Mesh:
        """The same mesh within `shard_map`.

        Args: names: The axes that are mapped.
        """
        made = copy(self)
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        made.axis_types = tuple(AxisType.Manual if name in names else t for name, t in pairs)
        return made

    def _names_of(self, kind: AxisType) -> tuple[Hashable, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, found in pairs if found is kind)

    def _key(self) -> tuple[Any, ...]:
        return (self.axis_names, self.devices.shape, *self.devices.flat)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name!r}: {n}' for name, n in self.shape.items())})"

    def __enter__(self) -> Mesh:
        _meshes.set((*_meshes.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _meshes.set(_meshes.get()[:-1])


_meshes: ContextVar[tuple[Mesh, ...]] = ContextVar("funcgrad_meshes", default=())
"""Meshes of the blocks around the current code, the innermost last."""


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[Hashable], **options: Any) -> Mesh:
    """A mesh of a shape.

    Args:
        axis_shapes: The length of each axis.
        axis_names: A name for each axis.
        **options: About devices, as in JAX; they are ignored.
    Returns: A `Mesh`.
    Example: fg.make_mesh((4, 2), ("data", "model")) -> Mesh('data': 4, 'model': 2)
    """
    return Mesh(np.full(tuple(axis_shapes), CPU, object), axis_names)


class set_mesh:
    """Let `shard_map` map over this mesh from now on, unless it is told otherwise.

    In a ``with`` statement, until its block ends: then the mesh of before counts again.

    Args: mesh: The mesh.
    Raises: ArgumentError: If it is none.

    Example:
        >>> with fg.sharding.set_mesh(fg.make_mesh((2,), ("x",))):
        ...     double = fg.shard_map(lambda x: 2 * x, in_specs=fg.P("x"), out_specs=fg.P("x"))
        ...     print(double(np.arange(4)))
        [0 2 4 6]
    """

    def __init__(self, mesh: Mesh) -> None:
        if not isinstance(mesh, Mesh):
            raise ArgumentError(f"set_mesh needs a mesh, got a {type(mesh).__name__}.")
        self._mesh = mesh
        self._before = _meshes.get()
        _meshes.set((*self._before, mesh))

    def __enter__(self) -> Mesh:
        return self._mesh

    def __exit__(self, *error: object) -> None:
        _meshes.set(self._before)


def get_abstract_mesh() -> Mesh:
    """The mesh of the code around: that of `set_mesh`, or of the `shard_map` that maps it.

    Returns: A `Mesh`, without axes if there is none around.

    Example:
        >>> with fg.set_mesh(fg.make_mesh((4, 2), ("data", "model"))):
        ...     fg.sharding.get_abstract_mesh()
        Mesh('data': 4, 'model': 2)
    """
    around = _meshes.get()
    return around[-1] if around else _NO_MESH


_NO_MESH = Mesh(np.empty((), object), ())


class NamedSharding:
    """How an array is divided: a mesh and a spec.

    Args:
        mesh: The mesh.
        spec: The spec.
        **options: About devices, as in JAX; they are ignored.

    Example:
        >>> mesh = fg.make_mesh((4, 2), ("x", "y"))
        >>> fg.sharding.NamedSharding(mesh, fg.P("y", "x")).shard_shape((8, 8))
        (4, 2)
    """

    memory_kind = None

    def __init__(self, mesh: Any, spec: Any, **options: Any) -> None:
        self.mesh = mesh
        self.spec = spec

    @property
    def device_set(self) -> set[Any]:
        """The devices of the mesh."""
        return set(self.mesh.devices.flat)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether no axis is divided."""
        return all(self.mesh.shape[name] == 1 for name in names_in(self.spec))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has all of it, which is always the case."""
        return True

    @property
    def names(self) -> list[Hashable]:
        """The axes of the mesh that divide arrays."""
        return names_in(self.spec)

    def with_spec(self, spec: Any) -> Self:
        """The same mesh with another spec.

        Args: spec: The spec.
        """
        return type(self)(self.mesh, spec)

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether another sharding divides arrays into the same parts.

        Args:
            other: The other one.
            ndim: Number of axes of the arrays.
        """
        if not isinstance(other, NamedSharding) or self.mesh != other.mesh:
            return False
        return names_by_axis(self.spec, ndim) == names_by_axis(other.spec, ndim)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
        """The part of each lane as slices, by the devices of the mesh.

        Args: global_shape: Shape of the array.
        Raises: ShapeError: If it cannot be divided.
        """
        return dict(zip(self.mesh.devices.flat, self.parts(global_shape), strict=True))

    def parts(self, global_shape: Sequence[int]) -> list[tuple[slice, ...]]:
        """The part of each lane as slices, in the order of the lanes.

        Args: global_shape: Shape of the array.
        Raises: ShapeError: If it cannot be divided.
        """
        lengths = self.shard_shape(global_shape)
        rows = names_by_axis(self.spec, len(lengths))
        found = []
        for lane in np.ndindex(self.mesh.devices.shape):
            at = dict(zip(self.mesh.axis_names, lane, strict=True))
            part = []
            for n, names in zip(lengths, rows, strict=True):
                index = 0
                for name in names:
                    index = index * self.mesh.shape[name] + at[name]
                part.append(slice(index * n, (index + 1) * n) if names else slice(None))
            found.append(tuple(part))
        return found

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Shape of the part of one lane.

        Args: global_shape: Shape of the array.
        Raises: ShapeError: If it cannot be divided.
        """
        shape = tuple(global_shape)
        rows = rows_of(self.spec, shape, self.mesh.shape, "shard_shape", "the array")
        return tuple(
            n // prod(self.mesh.shape[name] for name in names)
            for n, names in zip(shape, rows, strict=True)
        )

    def _key(self) -> tuple[Any, ...]:
        rows = names_by_axis(self.spec, 0)
        while rows and not rows[-1]:
            rows.pop()
        return self.mesh, tuple(rows), sums_in(self.spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh!r}, {self.spec!r})"


def names_by_axis(spec: Any, ndim: int) -> list[tuple[Hashable, ...]]:
    """Names of axes of a mesh for every axis of an array."""
    entries = () if spec is None else tuple(spec)
    rows = [() if e is None else e if isinstance(e, tuple) else (e,) for e in entries]
    return [*rows, *[()] * (ndim - len(rows))]


def sums_in(spec: Any) -> tuple[frozenset[Hashable], frozenset[Hashable]]:
    """Axes over which arrays of a spec are sums, and those over which their cotangents are."""
    none: frozenset[Hashable] = frozenset()
    return getattr(spec, "unreduced", none), getattr(spec, "reduced", none)


def names_in(spec: Any) -> list[Hashable]:
    """Axes of a mesh that divide arrays."""
    return [name for names in names_by_axis(spec, 0) for name in names]


def rows_of(
    spec: Any,
    shape: tuple[int, ...],
    lengths: dict[Hashable, int],
    what: str,
    path: str,
    is_part: bool = False,
) -> list[tuple[Hashable, ...]]:
    """Names of axes of a mesh for every axis of an array, which has to fit them."""
    names = names_in(spec)
    unknown = [name for name in (*names, *frozenset.union(*sums_in(spec))) if name not in lengths]
    if unknown or len(set(names)) < len(names):
        wrong = f"has no axis {unknown[0]!r}" if unknown else "can divide an array once by an axis"
        raise ArgumentError(f"{what}: the mesh {wrong}: {spec!r} of `{path}`.{place()}")
    rows = names_by_axis(spec, len(shape))
    if len(rows) > len(shape):
        raise ShapeError(
            f"{what}: {spec!r} has {len(rows)} entries, but `{path}` has shape {shape}.{place()}"
        )
    for i, (n, row) in enumerate(zip(shape, rows, strict=True)):
        parts = prod(lengths[name] for name in row)
        if not is_part and n % parts:
            raise ShapeError(
                f"{what}: axis {i} of `{path}`, of length {n}, cannot be divided into {parts} "
                f"equal parts, as {spec!r} says.{place()}"
            )
    return rows
