"""The processor, under the names with which JAX's programs ask for devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from funcgrad.base.placement import CPU, Device, check_placement
from funcgrad.errors import ArgumentError


def devices(backend: str | None = None) -> list[Device]:
    """The one device there is: the processor.

    Raises: ArgumentError: If it is another.
    Example: fg.devices() -> [CpuDevice(id=0)]
    """
    if backend not in (None, "cpu"):
        raise ArgumentError(f"devices: there is one platform, 'cpu', got {backend!r}.")
    return [CPU]


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """Devices of this process, as `devices`.

    Args:
        process_index: Without effect.
        host_id: Without effect.
    Example: fg.local_devices() -> [CpuDevice(id=0)]
    """
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """How many devices there are: 1.

    Example: fg.device_count() -> 1
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices there are: 1.

    Example: fg.local_device_count() -> 1
    """
    return len(devices(backend))


def default_backend() -> str:
    """The name of the platform: ``"cpu"``.

    Example: fg.default_backend() -> 'cpu'
    """
    return CPU.platform


def process_index(backend: str | None = None) -> int:
    """The number of this process among those of a program: 0.

    Example: fg.process_index() -> 0
    """
    return 0


def process_count(backend: str | None = None) -> int:
    """How many processes a program has: 1.

    Example: fg.process_count() -> 1
    """
    return 1


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes of a program.

    Example: fg.process_indices() -> [0]
    """
    return [0]


@contextmanager
def default_device(device: Any) -> Iterator[None]:
    """A block whose arrays lie on a device: the processor.

    Args: device: ``None``, ``"cpu"``, or one of `devices`.
    Raises: ArgumentError: If it is another.

    Example:
        >>> with fg.default_device("cpu"):
        ...     print(fg.numpy.ones(2))
        [1. 1.]
    """
    check_placement("default_device", device=device)
    yield
