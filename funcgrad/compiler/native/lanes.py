"""Words of indices of lanes: which neighbours are loaded, computed and stored at once.

Those that are there follow each other: the end of a row, and ranges of indices, leave some. Two
numbers say which, and flags are made of these in the block that needs them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from funcgrad.compiler.native.llvm import I1, I32, I64, Type, vector_of
from funcgrad.compiler.native.scalars import Builder, Emitted
from funcgrad.compiler.native.types import INT64, Lanes, Signature, lanes, signature
from funcgrad.compiler.native.words import define, expect, literal_of


class LaneIndex(NamedTuple):
    """An index of lanes.

    Attributes:
        first: That of the first lane.
        left: The number of the lane behind the last one that is there.
        is_whole: Whether all are there.
        begin: The number of the first lane that is there, if it may be another one.
    """

    first: Any
    left: Any = None
    is_whole: Any = None
    begin: Any = None

    def mask(self, type: Type) -> Emitted:
        """The flags of the lanes that are there, for vectors of a type."""
        left, begin = self.left, self.begin
        key = left.text, "" if begin is None else begin.text, type
        found: Emitted = left.builder.once_here(key, lambda: left.before(type, begin))
        return found

    def numbers(self, count: int) -> Emitted:
        """The index of every lane."""
        builder, type = self.first.builder, vector_of(I64, count)
        steps = builder.call(f"llvm.stepvector.{type.suffix}", type, "i")
        return self.first.splat(count) + steps


def _lanes_rule(args: Any) -> Signature:
    expect(len(args) == 2, "lanes(first, count)", args)
    return signature(lanes(literal_of(args[1], args), False), INT64, args[1])


@define("lanes", _lanes_rule, is_mapped=False)
def _lanes(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Load as many neighbours as a vector has lanes."""
    return LaneIndex(values[0])


def _first_lanes_rule(args: Any) -> Signature:
    expect(len(args) == 3, "first_lanes(first, end, count)", args)
    t = lanes(literal_of(args[2], args), True)
    return signature(t, INT64, INT64, args[2])


@define("first_lanes", _first_lanes_rule, is_mapped=False)
def _first_lanes(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """At most as many neighbours, before an end."""
    first, end, _ = values
    count = sig.return_type.count
    left = end - first
    is_whole = left >= count
    left = is_whole.select(count, left).cast(I32, "i")
    return LaneIndex(first, left, is_whole)


def _some_lanes(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Fewer neighbours, before an end."""
    return _first_lanes(builder, sig, values)._replace(is_whole=builder.number(I1, 0, "b"))


define("some_lanes", _first_lanes_rule, is_mapped=False)(_some_lanes)


def _bounded_rule(args: Any, is_inner: bool) -> Signature:
    expect(len(args) == 2 and isinstance(args[0], Lanes), "lanes and an index", args)
    t = lanes(args[0].count, True, is_inner or args[0].is_inner)
    return signature(t, args[0], INT64)


@define("lanes_before", lambda args: _bounded_rule(args, False), is_mapped=False)
def _lanes_before(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Lanes of an index before an end."""
    index, end = values
    count, begin = sig.return_type.count, index.begin
    left = _number_of(index, end, count)
    if index.left is not None:
        left = left.intrinsic("smin", index.left)
    if begin is None:
        return index._replace(left=left, is_whole=left == count)
    left = left.intrinsic("smax", begin)
    return index._replace(left=left, is_whole=left - begin == count)


@define("lanes_from", lambda args: _bounded_rule(args, True), is_mapped=False)
def _lanes_from(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Lanes of an index from a begin on."""
    index, begin = values
    count = sig.return_type.count
    number, left = _number_of(index, begin, count), index.left
    if left is None:
        left = builder.number(I32, count)
    if index.begin is not None:
        number = number.intrinsic("smax", index.begin)
    number = number.intrinsic("smin", left)
    return LaneIndex(index.first, left, left - number == count, number)


def _number_of(index: LaneIndex, place: Emitted, count: int) -> Emitted:
    """The number of the lane at a place, from that of the first one to that behind the last."""
    number = place - index.first
    number = number.intrinsic("smax", number.constant(0)).intrinsic("smin", number.constant(count))
    return number.cast(I32, "i")
