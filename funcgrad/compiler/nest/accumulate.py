"""Folds while a kernel walks over their elements: accumulators, one number or vectors of lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.compiler.nest.nodes import Fold
from funcgrad.compiler.nest.source import Source, neutral
from funcgrad.intrinsics import expression
from funcgrad.lowering import Reduction
from funcgrad.records import dataclass


@dataclass(frozen=True)
class Vectors:
    """How a loop is written in vectors.

    Attributes:
        wide: Elements that an iteration computes at once.
        narrow: The same for what is left then: those of one register.
    """

    wide: int
    narrow: int
    is_rest: bool = False
    """Whether folds take its elements as what is left of longer vectors."""
    register: int = 0
    """Elements of one register, if the results of several are to be folded one by one."""

    @property
    def has_rest(self) -> bool:
        """Whether a second loop takes what is left."""
        return self.wide != self.narrow


def is_across(fold: Fold) -> bool:
    """Whether it also folds the elements of a vector."""
    uses = expression(fold.form.step).uses
    return len(uses) == 1 and bool(uses[0].across)


class Accumulator:
    """An accumulator variable of a fold.

    Extremes of floats in lanes are folded as integers of the same order, for which one instruction
    knows what is greater: with NaN and two zeros, that takes several.

    Sums of floats are accurate: blocks are added up in float64, and blocks of float64 with the
    rounding error carried along (Knuth's two-sum). Within a block of contiguous float32 many lanes
    share the additions; elsewhere one variable takes them all, which is then of float64, too. What
    is one vector needs no blocks.
    """

    def __init__(self, source: Source, form: Reduction, dtype: np.dtype[Any], name: str) -> None:
        self.source = source
        self.form = form
        self.dtype = dtype
        self.name = name
        self.is_accurate = form.accurate and dtype.kind == "f"
        self.is_wide = False
        self.vectors: Vectors | None = None
        """How many lanes share the additions, if it is written so and not left to LLVM."""
        self.zero = source.literal(neutral(form.init, dtype))

    @property
    def order(self) -> str:
        """What turns elements into integers of which the greatest one is wanted, if anything."""
        if self.vectors is None or self.dtype.kind != "f":
            return ""
        (combines,) = expression(self.form.step).uses
        return {"max": "ascending", "min": "descending"}.get(combines.across, "")

    @property
    def lane_step(self) -> str:
        """The step of the fold, among lanes."""
        return "maximum({0}, {1})" if self.order else self.form.step

    def start(self) -> None:
        if not self.is_accurate:
            self._start_lanes(self.zero)
            return
        self.source.add(f"{self.name}s = f64(0)")
        if self.dtype.itemsize == 8:
            self.source.add(f"{self.name}e = f64(0)")

    def start_block(self) -> None:
        if self.is_accurate:
            self._start_lanes("f64(0)" if self.is_wide else self.zero)

    def _start_lanes(self, zero: str) -> None:
        if self.vectors is None:
            self.source.add(f"{self.name} = {zero}")
            return
        zero = f"{self.order}({zero})" if self.order else zero
        self.source.add(f"{self.name} = splat({zero}, {self.vectors.wide})")
        if self.vectors.has_rest:
            self.source.add(f"{self.name}r = splat({zero}, {self.vectors.narrow})")

    def step(self, value: str, lanes: str = "", is_rest: bool = False) -> None:
        """Fold a value into the accumulator of the block.

        Args:
            value: The value.
            lanes: The index of its lanes, if not all of them are there.
            is_rest: Whether it comes after the whole vectors.
        """
        name = f"{self.name}r" if is_rest else self.name
        zero = self.zero
        if self.order:
            value, zero = f"{self.order}({value})", f"{self.order}({zero})"
        value = f"present({lanes}, {value}, {zero})" if lanes else value
        self.source.add(f"{name} = {self.lane_step.format(name, value)}")

    def _over_lanes(self) -> str:
        """The accumulator of the block, as one number."""
        name, vectors = self.name, self.vectors
        if vectors is None:
            return name
        count, last = vectors.wide, vectors.register or vectors.narrow
        while count > last:
            count //= 2
            step = self.lane_step.format(f"low({name})", f"high({name})")
            name = f"{self.name}h{count}"
            self.source.add(f"{name} = {step}")
        if vectors.has_rest:
            self.source.add(f"{self.name}h = {self.lane_step.format(name, f'{self.name}r')}")
            name = f"{self.name}h"
        (combines,) = expression(self.lane_step).uses
        total = f"across_{combines.name}({name})"
        total = f"from_{self.order}({total})" if self.order else total
        self.source.add(f"{self.name}a = {total}")
        return f"{self.name}a"

    def end_block(self, value: str = "") -> None:
        if not self.is_accurate:
            return
        n, value = self.name, value or self._over_lanes()
        if self.dtype.itemsize == 4:
            self.source.add(f"{n}s = {n}s + f64({value})")
            return
        self.source.add(f"{n}t = {n}s + {value}")
        self.source.add(f"{n}u = {n}t - {n}s")
        self.source.add(f"{n}e = {n}e + (({n}s - ({n}t - {n}u)) + ({value} - {n}u))")
        self.source.add(f"{n}s = {n}t")

    def add(self, value: str) -> None:
        """Fold in one value outside of blocks."""
        if self.is_accurate:
            self.end_block(value)
        else:
            self.step(value)

    def result(self) -> str:
        n = self.name
        if not self.is_accurate:
            return self._over_lanes()
        if self.dtype.itemsize == 4:
            return f"f32({n}s)"
        # Where the sum overflows, the error is not a number.
        return f"select(isfinite({n}e), {n}s + {n}e, {n}s)"
