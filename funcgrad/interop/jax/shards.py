"""Shards: the parts of an array on the lanes of a mesh, under the names of ``jax.Shard``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.distributed.meshes import sums_in
from funcgrad.interop.jax.devices import NamedSharding


@dataclass(frozen=True)
class Shard:
    """The part of an array that belongs to a lane of a mesh.

    Attributes:
        device: Name of the lane.
        index: Where the part lies in the array, as slices.
        replica_id: How many lanes before have the same part.
        data: The part.
    """

    device: Any
    index: tuple[slice, ...]
    replica_id: int
    data: Any


def shards_of(x: Any, adopt: Callable[[Any], Any]) -> list[Shard]:
    """The parts of the lanes of its mesh, or all of it where there is none.

    Args:
        x: An array that says where it lies.
        adopt: Makes arrays of its kind.
    """
    if not isinstance(x.sharding, NamedSharding):
        whole = tuple(slice(None) for _ in x.shape)
        return [Shard(device, whole, 0, x) for device in x.devices()]
    seen: dict[str, int] = {}
    found = []
    mesh, (unreduced, _) = x.sharding.mesh, sums_in(x.sharding.spec)
    summed = [i for i, name in enumerate(mesh.axis_names) if name in unreduced]
    rows = zip(np.ndindex(mesh.devices.shape), x.sharding.parts(x.shape), strict=True)
    for lane, index in rows:
        term = tuple(lane[i] for i in summed)
        key = repr((index, term))
        if x.terms is None:  # the first lane has the sum
            part = np.asarray(x)[index]
            part = np.zeros_like(part) if any(term) else part
        else:
            part = np.asarray(x.terms)[term][index]
        data = adopt(part)
        found.append(Shard(mesh.devices[lane], index, seen.setdefault(key, 0), data))
        seen[key] += 1
    return found
