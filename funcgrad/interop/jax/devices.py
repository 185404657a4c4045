"""Devices and placements: names for the processor, in whose memory every array lies undivided.

There is one device, or as many as a program asks for, as it may of JAX on processors. Placements
over several are kept with the arrays that a program puts there; computations do not follow them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import sharding
from funcgrad.base import environment
from funcgrad.base.placement import CPU, Device
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError


class CpuDevice(Device):
    """One of several names for the processor.

    Args: id: Its number.
    """

    def __init__(self, id: int) -> None:
        self.id = self.local_hardware_id = id

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    __str__ = __repr__


class Devices:
    """The devices that there are.

    Their number is that of the flags of XLA when they are first used, so that programs can set
    these flags after they have imported ``jax``.

    Attributes:
        reads_flags: Whether their number is still to be found in the flags.
    """

    def __init__(self) -> None:
        self._known: list[Device] = [CPU]
        self.reads_flags = True

    @property
    def all(self) -> list[Device]:
        """The devices, the processor first."""
        if self.reads_flags:
            flags = environment.of_jax("XLA_FLAGS")
            found = re.search(r"--xla_force_host_platform_device_count=(\d+)", flags)
            self.ask_for(int(found[1]) if found else None)
            self.reads_flags = False
        return self._known

    def ask_for(self, number: int | None) -> None:
        """Have a number of devices from now on; `None` changes nothing."""
        if number is not None:
            self._known += [CpuDevice(i) for i in range(len(self._known), number)]
            del self._known[max(1, number) :]
            self.reads_flags = False


DEVICES = Devices()


def devices(backend: str | None = None) -> list[Device]:
    """The devices that there are.

    Args: backend: ``"cpu"``, if anything.
    Raises: RuntimeError: If it is another, as in JAX.
    """
    if backend not in (None, "cpu"):
        raise RuntimeError(f"Unknown backend {backend}: there is one platform, 'cpu'.")
    return list(DEVICES.all)


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices that there are: all belong to this process."""
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """The number of devices."""
    return len(devices(backend))


class Backend:
    """The platform of all devices, as programs ask about it."""

    platform = "cpu"
    platform_version = "funcgrad"
    devices = staticmethod(devices)
    local_devices = staticmethod(local_devices)
    device_count = staticmethod(device_count)
    local_device_count = staticmethod(device_count)

    def process_index(self) -> int:
        """Index of this process among those that own devices: 0, as it owns them all."""
        return 0


_BACKEND = Backend()


def get_backend(platform: str | None = None) -> Backend:
    """The platform of a name.

    Args: platform: ``"cpu"``, if anything.
    Raises: RuntimeError: If it is another, as in JAX.
    """
    devices(platform)
    return _BACKEND


BACKENDS: dict[str, Any] = {
    "backends": lambda: {"cpu": _BACKEND},
    "get_backend": get_backend,
    "get_default_device": lambda: CPU,
}
"""Names of ``jax.extend.backend``."""


class Mesh(sharding.Mesh):
    """Devices as a mesh of named axes.

    Args:
        devices: Devices, in an array of any number of axes.
        axis_names: A name for each of them.
        **options: As of `funcgrad.sharding.Mesh`.
    Raises: ArgumentError: If there are fewer devices.
    """

    platform = "cpu"

    def __init__(
        self, devices: Any, axis_names: Any, axis_types: Any = None, **options: Any
    ) -> None:
        super().__init__(devices, axis_names, axis_types)
        if self.size > len(DEVICES.all):
            raise ArgumentError(
                f"a mesh of shape {self.devices.shape} needs {self.devices.size} devices, and "
                f"there is one, the CPU, with names for {len(DEVICES.all)}. jit uses all of its "
                "cores for large arrays; jax_num_cpu_devices gives it more names."
            )

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The lengths and names of the axes."""
        made = AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)
        made.concrete = self
        return made


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], *args: Any, **options: Any
) -> Mesh:
    """The leading devices as a mesh."""
    return Mesh(create_device_mesh(axis_shapes), axis_names, options.get("axis_types"))


def create_device_mesh(mesh_shape: Sequence[int], *args: Any, **options: Any) -> np.ndarray:
    """The leading devices in an array; the processor again where there are too few."""
    size = math.prod(mesh_shape)
    chosen = np.full(size, CPU, object)
    chosen[: len(DEVICES.all)] = DEVICES.all[:size]
    return chosen.reshape(tuple(mesh_shape))


class AbstractMesh(sharding.Mesh):
    """A mesh of lengths and names.

    Args:
        axis_sizes: Lengths of its axes.
        axis_names: A name for each of them.
        axis_types: As of `Mesh`.
        **options: Of no effect.

    Attributes:
        concrete: The mesh whose `abstract_mesh` it is; else itself.
    """

    platform = "cpu"

    def __init__(
        self, axis_sizes: Sequence[int], axis_names: Any, axis_types: Any = None, **options: Any
    ) -> None:
        super().__init__(np.full(tuple(axis_sizes), CPU, object), axis_names, axis_types)
        self.concrete: sharding.Mesh = self


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

    @property
    def device_set(self) -> set[Device]:
        """The device."""
        return {self.device}


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> Sharding:
    """Undivided on one device, with its one kind of memory."""
    return SingleDeviceSharding(device)


class NamedSharding(sharding.NamedSharding, Sharding):
    """Along the axes of a mesh."""


class _NoMesh:
    """The mesh of programs that have none."""

    platform = "cpu"
    empty = True
    axis_names: tuple[str, ...] = ()
    explicit_axes: tuple[str, ...] = ()

    @property
    def shape(self) -> dict[str, int]:
        """No axes."""
        return {}


NO_MESH = _NoMesh()
"""The mesh of types that name none."""
