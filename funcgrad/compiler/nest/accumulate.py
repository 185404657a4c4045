"""Accumulators of folds: one number, or vectors of lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.compiler.loops.language import Expression, Variable, applied, call
from funcgrad.compiler.machine import VECTOR_BYTES
from funcgrad.compiler.nest.iteration import Vectors
from funcgrad.compiler.nest.kernel import KernelBuilder, neutral
from funcgrad.compiler.nest.nodes import Fold
from funcgrad.dtypes import BOOL
from funcgrad.intrinsics import expression
from funcgrad.lowering import Reduction


def is_accurate(fold: Fold) -> bool:
    """Whether it is a sum of floats, whose rounding errors are to stay small."""
    return fold.form.accurate and fold.out.dtype.kind == "f"


def is_across(fold: Fold) -> bool:
    """Whether it also folds the elements of a vector."""
    uses = expression(fold.form.step).uses
    if len(uses) != 1 or not uses[0].across:
        return False
    return fold.out.dtype.kind != "c" or uses[0].is_by_part


def is_ordered(fold: Fold) -> bool:
    """Whether it is an extreme of floats."""
    uses = expression(fold.form.step).uses
    return fold.out.dtype.kind == "f" and uses[0].across in ("max", "min")


def is_idempotent(fold: Fold) -> bool:
    """Whether folding the same element once more changes nothing."""
    return expression(fold.form.step).uses[0].across in ("max", "min", "or", "and")


_ANY, _ALL = "{0} | {1}", "{0} & {1}"
"""Steps of folds of flags, whose sum is not 0 if any is set, and whose product if all are."""


class Accumulator:
    """An accumulator variable of a fold.

    Extremes of floats in lanes are folded as integers of the same order, for which one instruction
    knows what is greater: with NaN and two zeros, that takes several. Flags in lanes are folded as
    integers of all bits or none, as wide as what they were found by: that is what comparisons give
    where the processor has no registers for flags, and flags as such would be packed in each turn.

    Sums of floats are accurate: blocks are added up in float64, and blocks of float64 with the
    rounding error carried along (Knuth's two-sum). Within a block of contiguous float32 many lanes
    share the additions; elsewhere one variable takes them all, which is then of float64, too. What
    is one vector needs no blocks.
    """

    def __init__(
        self, source: KernelBuilder, form: Reduction, dtype: np.dtype[Any], name: str
    ) -> None:
        self.source = source
        self.form = form
        self.dtype = dtype
        self.name = name
        self.is_accurate = form.accurate and dtype.kind == "f"
        self.is_wide = False
        self.vectors: Vectors | None = None
        """The lanes that share the additions, if it is written so and not left to LLVM."""
        self.zero = source.literal(neutral(form.init, dtype))

    @property
    def order(self) -> str:
        """The word that makes elements integers of which the greatest one is wanted, if any."""
        if self.vectors is None or self.dtype.kind != "f":
            return ""
        return {"max": "ascending", "min": "descending"}.get(self._across, "")

    @property
    def _across(self) -> str:
        (combines,) = expression(self.form.step).uses
        return combines.across

    def _folded(self, x: Expression) -> Expression:
        """An element as it is folded among lanes."""
        if self.order:
            return call(self.order, x)
        if self.vectors is None or self.dtype != BOOL:
            return x
        bits = min(max(8 * VECTOR_BYTES // self.vectors.narrow, 8), 64)
        return call("negative", call(f"i{bits}", x))

    def _unfolded(self, x: Expression) -> Expression:
        """The inverse of `_folded`."""
        if self.order:
            return call(f"from_{self.order}", x)
        return x if self.dtype != BOOL else call("not_equal", x, 0)

    @property
    def lane_step(self) -> str:
        """The step of the fold, among lanes."""
        if self.order:
            return "maximum({0}, {1})"
        if self.vectors is None or self.dtype != BOOL:
            return self.form.step
        return {"add": _ANY, "max": _ANY, "mul": _ALL, "min": _ALL}.get(
            self._across, self.form.step
        )

    def start(self) -> None:
        if not self.is_accurate:
            self._start_lanes(self.zero)
            return
        self.source.assign(f"{self.name}s", call("f64", 0))
        if self.dtype.itemsize == 8:
            self.source.assign(f"{self.name}e", call("f64", 0))

    def start_block(self) -> None:
        if self.is_accurate:
            self._start_lanes(call("f64", 0) if self.is_wide else self.zero)

    def _start_lanes(self, zero: Expression) -> None:
        if self.vectors is None:
            self.source.assign(self.name, zero)
            return
        zero = self._folded(zero)
        self.source.assign(self.name, call("splat", zero, self.vectors.wide))
        if self.vectors.has_rest:
            self.source.assign(f"{self.name}r", call("splat", zero, self.vectors.narrow))

    def step(self, value: Expression, lanes: Expression | None = None) -> None:
        """Fold a value, or those that are there of lanes, into the accumulator of the block."""
        value = self._folded(value)
        if lanes is not None:
            value = call("present", lanes, value, self._folded(self.zero))
        self.source.assign(self.name, applied(self.lane_step, [Variable(self.name), value]))

    def over_lanes(self) -> Expression:
        """The accumulator of the block, as one number."""
        name, vectors = Variable(self.name), self.vectors
        if vectors is None:
            return name
        count, last = vectors.wide, vectors.register or vectors.narrow
        while count > last:
            count //= 2
            halves = [call("low", name), call("high", name)]
            name = self.source.assign(f"{self.name}h{count}", applied(self.lane_step, halves))
        if vectors.has_rest:
            both = [name, Variable(f"{self.name}r")]
            name = self.source.assign(f"{self.name}h", applied(self.lane_step, both))
        (combines,) = expression(self.lane_step).uses
        total = call(f"across_{combines.name}", name)
        return self.source.assign(f"{self.name}a", self._unfolded(total))

    def begin_with(self, value: Expression) -> None:
        """Take the sum of the first block."""
        self.source.assign(f"{self.name}s", call("f64", value))

    def add_block(self, value: Expression) -> None:
        """Add the sum of a block to those of the blocks before."""
        source, n = self.source, self.name
        s, e = Variable(f"{n}s"), Variable(f"{n}e")
        if self.dtype.itemsize == 4:
            source.assign(f"{n}s", s + call("f64", value))
            return
        t = source.assign(f"{n}t", s + value)
        u = source.assign(f"{n}u", t - s)
        source.assign(f"{n}e", e + ((s - (t - u)) + (value - u)))
        source.assign(f"{n}s", t)

    def add(self, value: Expression) -> None:
        """Fold in one value outside of blocks."""
        if self.is_accurate:
            self.add_block(value)
        else:
            self.step(value)

    def result(self) -> Expression:
        if not self.is_accurate:
            return self.over_lanes()
        s, e = Variable(f"{self.name}s"), Variable(f"{self.name}e")
        if self.dtype.itemsize == 4:
            return call("f32", s)
        # Where the sum overflows, the error is not a number.
        return call("select", call("isfinite", e), s + e, s)
