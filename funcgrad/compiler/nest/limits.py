"""Limits of loops whose iteration space is divided (`unswitch`), computed from conditions.

Each is an index with the interval in which it lies, whatever the arguments are: where intervals say
which of two indices is the greater one, nothing is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import numpy as np

from funcgrad.compiler.loops.language import Expression, call, equal
from funcgrad.compiler.nest.bounds import bounds_of
from funcgrad.compiler.nest.iteration import FIRST, Loop, Span, Vectors
from funcgrad.compiler.nest.layout import Interval, Operand
from funcgrad.compiler.nest.nodes import Node
from funcgrad.compiler.nest.plan import Plan
from funcgrad.compiler.nest.unswitch import FARTHEST, Side, is_rounded

ValueOf = Callable[[Node, Operand], Expression]


class Index(NamedTuple):
    """An index of a loop, and the least and greatest one that it may be."""

    at: Expression
    interval: Interval

    def or_greater(self, other: Index) -> Index:
        """The greater one of two."""
        (a, b), (c, d) = self.interval, other.interval
        if a >= d or c >= b:
            return self if a >= d else other
        return Index(call("maximum", self.at, other.at), (max(a, c), max(b, d)))

    def or_less(self, other: Index) -> Index:
        """The lesser one of two."""
        (a, b), (c, d) = self.interval, other.interval
        if b <= c or d <= a:
            return self if b <= c else other
        return Index(call("minimum", self.at, other.at), (min(a, c), min(b, d)))


Indices = tuple[Index, Index]
"""The first one of some that follow each other, and the one behind the last."""


def first_of(indices: Indices) -> Indices:
    """The first index of some, if there is one."""
    begin, end = indices
    return begin, Index(begin.at + 1, (begin.interval[0] + 1, begin.interval[1] + 1)).or_less(end)


class Limits:
    """The indices of a loop between which some conditions hold.

    Args:
        plan: The plan of the kernel.
        loop: The loop.
        sides: The conditions, those on its index and those on all of its range.
        value_of: The expression of what a node reads, which is the same for the whole loop.
    """

    def __init__(self, plan: Plan, loop: Loop, sides: Iterable[Side], value_of: ValueOf) -> None:
        self.plan = plan
        self.loop = loop
        self.has_low = self.has_high = False
        self.source = plan.source
        self.space = plan.space
        self.value_of = value_of
        self.stride: tuple[Expression, Expression] | None = None
        # Parts of a loop begin and end anywhere in it.
        is_whole, n = loop.begin is FIRST, loop.size
        self.begin = Index(loop.begin, (0, 0) if is_whole else (0, n))
        self.end = Index(loop.end, (n, n) if is_whole else (0, n))
        low, high = self.begin, self.end
        for side in sides:
            if side.kind == "multiple":
                self.stride = self._multiples(side)
                continue
            is_low = side.loop is loop and side.kind == "low"
            self.has_low |= is_low
            self.has_high |= not is_low
            if side.loop is not loop:
                choices = (high.at, self.begin.at)
                at = call("select", self.holds(side), *choices)
                high = Index(at, (self.begin.interval[0], high.interval[1]))
            elif is_low:
                low = self._named("inner", low.or_greater(self._turn(side, loop)))
            else:
                high = self._named("inner_end", high.or_less(self._turn(side, loop)))
        self.low, self.high = low, high

    def holds(self, side: Side) -> Expression:
        """Whether all of the loop is within a bound, which a loop around it has."""
        if side.loop is None:
            holds = self.value_of(side.node, side.operand)
            return holds if side.kind == "when" else call("logical_not", holds)
        turn = self._turn(side, side.loop).at
        return side.loop.index >= turn if side.kind == "low" else side.loop.index < turn

    def span(self) -> Span:
        """The range of the loop within all bounds."""
        name = f"{self.loop.variable}_part"
        low = self._named(name, self.low.or_less(self.end))
        return low.at, self._named(f"{name}_end", self.high.or_greater(low)).at

    def _named(self, name: str, index: Index) -> Index:
        return index._replace(at=self.source.assign(name, index.at))

    def _turn(self, side: Side, loop: Loop) -> Index:
        """The index at which a comparison turns; one at most beyond the ends of the loop."""
        first, (least, most), size = self._first(side), side.firsts, loop.size
        other = call("i64", self.value_of(side.node, side.operand))
        bounds = bounds_of(side.operand) or (-FARTHEST, FARTHEST)
        ends = bounds[0] - most, bounds[1] - least
        # Numbers far from those that count are brought near them before a difference is formed.
        if side.step > 0:
            if ends[0] < -1:
                other = call("maximum", other, first - 1)
            if ends[1] > size:
                other = call("minimum", other, first + loop.end)
            turn = other if least == most == 0 else other - first
        else:
            ends = -ends[1], -ends[0]
            if ends[1] > size:
                other = call("maximum", other, first - loop.end)
            if ends[0] < -1:
                other = call("minimum", other, first + 1)
            turn = first - other
        interval = max(ends[0], -1) + side.more, min(ends[1], size) + side.more
        return Index(turn + side.more if side.more else turn, interval)

    def _first(self, side: Side) -> Expression:
        """The first number that a condition compares, at the index 0."""
        least, most = side.firsts
        if least == most:
            return self.source.literal(np.int64(least)) if least else FIRST
        assert side.counting is not None
        return self.source.assign("first", call("i64", self.space.load(side.counting)))

    def _multiples(self, side: Side) -> tuple[Expression, Expression]:
        """An index at which the number is divided, and the distance to the next one.

        All numbers have a remainder of 0 if they are divided by 0, as those of NumPy.
        """
        first = self._first(side)
        operand = self.value_of(side.node, side.operand)
        divisor = call("maximum", call("i64", operand), -2 * FARTHEST)
        size = self.source.assign("stride", call("abs", divisor))
        stride = self.source.assign("stride", call("select", equal(size, 0), 1, size))
        return self.source.assign("multiple", -first if side.step > 0 else first), stride

    def over_multiples(self, span: Span) -> tuple[Expression, Expression, Expression]:
        """The first multiple in a span, how many there are, and the step from one to the next."""
        assert self.stride is not None
        (begin, end), (multiple, stride) = span, self.stride
        first = self.source.assign("multiple", begin + (multiple - begin) % stride)
        return first, (end - first + stride - 1) // stride, stride

    def whole_of(self, span: Span) -> Indices:
        """The ends of a span: of all of the loop, or of any part of it."""
        if span == (self.begin.at, self.end.at):
            return self.begin, self.end
        begin, end = (Index(at, (0, self.loop.size)) for at in span)
        return begin, end

    def within(self, indices: Indices, body: Collection[Node], vectors: Vectors | None) -> Indices:
        """The part of some indices between the bounds, as whole vectors of them."""
        unit = vectors.wide if vectors is not None and is_rounded(self.plan, body) else 1
        begin, end = indices
        first, last = begin, end
        if self.has_low:
            first = self._named("part", self.low.or_greater(begin).or_less(end))
            if unit > 1:
                at = first.at - ((first.at - begin.at) & (unit - 1))
                first = self._named("part", Index(at, (0, first.interval[1])))
        if self.has_high:
            last = self._named("part_end", self.high.or_greater(begin).or_less(end))
            if unit > 1:
                at = last.at + ((begin.at - last.at) & (unit - 1))
                last = Index(at, (last.interval[0], self.loop.size + unit)).or_less(end)
            last = self._named("part_end", last.or_greater(first))
        return first, last
