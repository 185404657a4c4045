"""Placements of arrays, of which there is one: undivided, on the processor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from funcgrad.base.placement import CPU, Device
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError


class PartitionSpec(tuple[Any, ...]):
    """Axes of a mesh for the axes of an array; without meaning for one device."""

    platform = "cpu"

    def __new__(cls, *partitions: Any) -> PartitionSpec:
        return super().__new__(cls, partitions)


class Mesh:
    """The processor as a mesh: every axis has length 1.

    Args:
        devices: The processor, in an array of any number of axes.
        axis_names: A name for each of them.

    Raises:
        ArgumentError: If there is more than one device.
    """

    platform = "cpu"

    def __init__(self, devices: Any, axis_names: Any, **options: Any) -> None:
        self.devices = np.asarray(devices, object)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if self.devices.size != 1:
            raise ArgumentError(
                f"a mesh of shape {self.devices.shape} needs {self.devices.size} devices, and "
                "there is one, the CPU. jit uses all of its cores for large arrays."
            )

    @property
    def shape(self) -> dict[str, int]:
        """The length of every axis, which is 1."""
        return dict.fromkeys(self.axis_names, 1)

    @property
    def size(self) -> int:
        """The number of devices, which is 1."""
        return 1

    def __enter__(self) -> Mesh:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], *args: Any, **options: Any
) -> Mesh:
    """The processor as a mesh of axes of length 1."""
    devices = np.full(tuple(axis_shapes), CPU) if math.prod(axis_shapes) != 1 else None
    return Mesh(np.full((1,) * len(axis_names), CPU) if devices is None else devices, axis_names)


@contextmanager
def set_mesh(mesh: Mesh) -> Iterator[Mesh]:
    """A block in which the processor is the mesh, as it always is."""
    yield mesh


class Sharding:
    """Placement of an array."""

    platform = "cpu"
    memory_kind = None

    @property
    def device_set(self) -> set[Device]:
        """The processor."""
        return {CPU}

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device has all of it, which is always the case."""
        return True

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has all of it, which is always the case."""
        return True


@dataclass(frozen=True)
class SingleDeviceSharding(Sharding):
    """Undivided on one device."""

    device: Any = CPU


class NamedSharding(Sharding):
    """Along the axes of a mesh of one device: undivided."""

    def __init__(self, mesh: Any, spec: Any, **options: Any) -> None:
        self.mesh = mesh
        self.spec = spec


class _NoMesh:
    """The mesh of programs that have none."""

    platform = "cpu"
    empty = True
    axis_names: tuple[str, ...] = ()

    @property
    def shape(self) -> dict[str, int]:
        """No axes."""
        return {}


NO_MESH = _NoMesh()
"""The mesh of types that name none."""
