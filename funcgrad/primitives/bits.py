"""Bit patterns: reading them as another dtype, counting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import Shape, ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.dtypes import short_name
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Extern, Form, Pointwise
from funcgrad.primitives.elementwise import Constantlike
from funcgrad.primitives.families import zero_jvp
from funcgrad.records import dataclass


@dataclass(frozen=True)
class Bitcast(Primitive):
    """The bits of ``x`` read as another dtype.

    A narrower dtype adds a last axis, low words first; a wider one takes the last axis away.
    """

    dtype: np.dtype[Any]

    jvp = zero_jvp

    def lower(self, x: ShapedArray) -> Form:
        if x.dtype.itemsize != self.dtype.itemsize:
            return Extern()
        own, wanted = short_name(x.dtype), short_name(self.dtype)
        if x.dtype == self.dtype:
            return Pointwise("{0}")
        if x.dtype.kind in "iu" and self.dtype.kind in "iu":
            return Pointwise(f"{wanted}({{0}})")
        is_known = {x.dtype.kind, self.dtype.kind} in ({"f", "i"}, {"f", "u"})
        return Pointwise(f"bitcast_{own}_{wanted}({{0}})") if is_known else Extern()

    def impl(self, x: Any) -> Any:
        x = np.asarray(x)
        shape = self._shape(x.shape, x.dtype)
        return x.ravel().view(self.dtype).reshape(shape).copy()[()]

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        if "b" in (x.dtype.kind, self.dtype.kind) and x.dtype != self.dtype:
            raise DtypeError(f"{self.name}: bools have no bits to share, got {x} for {self.dtype}.")
        return shaped(self._shape(x.shape, x.dtype), self.dtype)

    def _shape(self, shape: Shape, dtype: np.dtype[Any]) -> Shape:
        own, wanted = dtype.itemsize, self.dtype.itemsize
        if wanted <= own:
            return shape if wanted == own else (*shape, own // wanted)
        if not shape or shape[-1] * own != wanted:
            raise ShapeError(
                f"{self.name}: elements of {self.dtype} need a last axis of {wanted // own} "
                f"elements of {dtype}, got shape {shape}."
            )
        return shape[:-1]

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), 0

    def params(self) -> dict[str, Any]:
        return {"dtype": short_name(self.dtype)}


def _population_count(x: Any) -> Any:
    x = np.asarray(x)
    # NumPy counts the bits of the absolute value of signed integers.
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)[()]


population_count = Constantlike(
    "population_count", _population_count, "population_count({0})", "", "iu"
)

gcd_of = Constantlike("gcd", np.gcd, "gcd({0}, {1})", "", "iu")
