"""Arrays of the package ``jax`` that are made of the parts that lie on each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.errors import ArgumentError
from funcgrad.interop.jax.devices import NamedSharding, Sharding
from funcgrad.interop.jax.placing import device_put

Index = tuple[slice, ...]


def _indices(shape: tuple[int, ...], place: Sharding) -> list[Index]:
    """Return the slices that the part of each device takes in an array of a shape."""
    if isinstance(place, NamedSharding):
        return list(place.parts(shape))
    return [tuple(slice(None) for _ in shape)]


def _assembled(shape: tuple[int, ...], place: Sharding, pairs: Sequence[tuple[Index, Any]]) -> Any:
    first = pairs[0][1]
    if len(pairs) == 1:
        return device_put(first, place)
    whole = np.empty(shape, first.dtype)
    for index, part in pairs:
        whole[index] = part
    return device_put(whole, place)


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[Index], Any],
    dtype: Any = None,
) -> Any:
    """An array whose parts a function gives.

    Args:
        shape: The shape of the whole.
        sharding: How it is divided.
        data_callback: From the slices that a part takes in the whole to the part.
        dtype: Not needed: parts have one.
    """
    shape = tuple(shape)
    every = {repr(index): index for index in _indices(shape, sharding)}
    return _assembled(shape, sharding, [(index, data_callback(index)) for index in every.values()])


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """An array of the parts that lie on each device.

    Args:
        shape: The shape of the whole.
        sharding: How it is divided.
        arrays: A part for each device, in their order.
        dtype: Not needed: parts have one.
    Raises: ArgumentError: If there is not one part for each device.
    """
    shape = tuple(shape)
    indices = _indices(shape, sharding)
    if len(indices) != len(arrays):
        raise ArgumentError(
            f"make_array_from_single_device_arrays: {sharding!r} has {len(indices)} devices, but "
            f"there are {len(arrays)} arrays. Pass one for each."
        )
    return _assembled(shape, sharding, list(zip(indices, arrays, strict=True)))
