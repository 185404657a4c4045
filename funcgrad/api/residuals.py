"""Recorded linear maps as data: the values that they need, and what remains without them.

``split : (T a -o T b) -> ([residual], skeleton)``, and ``skeleton.fill`` is its inverse. So a
linear map is a pytree, which programs can take and return.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from funcgrad.base.forking import cached_property
from funcgrad.core.primitive import Linear
from funcgrad.transforms.linearize import LinearMap, Point, TapeEntry
from funcgrad.transforms.programs import live_entries

_NUMBERS = (bool, int, float, complex)


class _Hole:
    """The place of a residual."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Skeleton:
    """A linear map without its residuals; two that compute the same from equal ones are equal."""

    def __init__(self, linear: LinearMap) -> None:
        self.linear = linear

    @cached_property
    def _key(self) -> Hashable:
        linear = self.linear
        slots = [*linear.inputs, *linear.outputs]
        key = (
            tuple((e.primitive, _positions(e), *map(_input_key, e.inputs)) for e in linear.entries),
            tuple(None if slot is None else (slot.index, slot.aval) for slot in slots),
            len(linear.inputs),
            _map_point(_input_key, linear.point),
        )
        try:
            hash(key)
        except TypeError:
            return id(self)
        return key

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Skeleton) and self._key == other._key)

    def fill(self, residuals: Sequence[Any]) -> LinearMap:
        """The linear map with these residuals."""
        linear = self.linear

        def filled(x: Any) -> Any:
            return residuals[x.index] if type(x) is _Hole else x

        entries = [_with_inputs(e, list(map(filled, e.inputs))) for e in linear.entries]
        point = _map_point(filled, linear.point)
        return LinearMap(linear.inputs, entries, linear.length, linear.outputs, point)


def split(linear: LinearMap) -> tuple[list[Any], Skeleton]:
    """The residuals of a linear map, each once, and the rest."""
    residuals: dict[int, tuple[int, Any]] = {}

    def hole(x: Any) -> Any:
        if isinstance(x, Linear):
            _ = x.aval  # What it would be found from must not be kept.
            return x
        if type(x) in _NUMBERS:
            return x
        return _Hole(residuals.setdefault(id(x), (len(residuals), x))[0])

    entries = [_with_inputs(e, list(map(hole, e.inputs))) for e in live_entries(linear)]
    for slot in (*linear.inputs, *linear.outputs):
        _ = slot is None or slot.aval
    point = _map_point(hole, linear.point)
    rest = LinearMap(linear.inputs, entries, linear.length, linear.outputs, point)
    return [x for _, x in residuals.values()], Skeleton(rest)


def _map_point(function: Callable[[Any], Any], point: Point | None) -> Point | None:
    if point is None:
        return None
    inputs, outputs = (tuple(map(function, xs)) for xs in (point.inputs, point.outputs))
    return Point(inputs, outputs, tuple(point.axes))


def _with_inputs(entry: TapeEntry, inputs: list[Any]) -> TapeEntry:
    found = TapeEntry.__new__(TapeEntry)
    for name in TapeEntry.__slots__:
        setattr(found, name, getattr(entry, name))
    found.inputs = inputs
    return found


def _positions(entry: TapeEntry) -> tuple[int, ...]:
    return tuple(entry.outputs)


def _input_key(x: Any) -> Hashable:
    return (type(x), x.index if isinstance(x, Linear | _Hole) else repr(x))
