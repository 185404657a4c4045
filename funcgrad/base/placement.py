"""The one device there is, and the keywords with which JAX's programs choose among many.

``device=``, ``sharding=`` and ``out_sharding=`` of functions say where arrays lie. They lie in the
memory of the processor; a keyword may say so, and anything else is refused.
"""

from __future__ import annotations

from typing import Any

from funcgrad.errors import ArgumentError


class Device:
    """The processor, as JAX's programs ask about a device.

    Example: fg.Device().platform -> 'cpu'
    """

    platform = "cpu"
    device_kind = "cpu"
    id = 0
    process_index = 0
    local_hardware_id = 0

    def memory_stats(self) -> None:
        """Nothing: the memory is that of the process."""

    def __repr__(self) -> str:
        return "CpuDevice(id=0)"

    __str__ = __repr__


CPU = Device()


def is_cpu(value: Any) -> bool:
    """Whether a device, its name, or a placement of one device is the processor."""
    return value is None or value == "cpu" or getattr(value, "platform", None) == "cpu"


def check_placement(name: str, **given: Any) -> None:
    """Refuse placements that are not the processor.

    Args:
        name: The public function.
        **given: The keywords and what they were given.
    Raises: ArgumentError: If one is neither ``None`` nor the processor.
    """
    for keyword, value in given.items():
        if not is_cpu(value):
            raise ArgumentError(
                f"{name}: there is one device, the CPU, and arrays lie on it undivided; got "
                f"{keyword}={value!r}. Leave {keyword} out, or give None."
            )
