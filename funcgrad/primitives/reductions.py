"""Folds over axes: extreme values, products, any, all, and the places of extremes.

Sums live in `primitives.shape`, as the transpose of repetition. Convention: the tangent of a
maximum or minimum is the mean of the tangents at all places that attain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from funcgrad.core.avals import ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Linear, Primitive, Value, with_differential
from funcgrad.dtypes import BOOL, INT64
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import ArgReduction, Extern, Form, Reduction
from funcgrad.primitives import shape as s
from funcgrad.primitives.contraction import LETTERS, Contract
from funcgrad.primitives.elementwise import coefficient, convert, div, equal, mul, scale
from funcgrad.primitives.families import shape_of, zero_jvp


class _Reduce(Primitive):
    """Base of the folds: shape, batching, lowering."""

    axes: tuple[int, ...]
    function: ClassVar[Any]
    init: ClassVar[str]
    step: ClassVar[str]

    def impl(self, x: Any) -> Any:
        return self.function(x, axis=self.axes)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x.update(shape=s.drop_axes(x.shape, self.axes)).strong()

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return type(self)(tuple(a + 1 for a in self.axes)).bind(args[0]), 0

    def lower(self, x: ShapedArray) -> Form:
        return Reduction(self.axes, self.init, self.step)


class _Extreme(_Reduce):
    """Maximum or minimum over axes."""

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        if any(x.shape[a] == 0 for a in self.axes):
            raise ShapeError(f"{self.name} of {x} over an axis of length 0 has no value.")
        return super().abstract_eval(x)

    def lower(self, x: ShapedArray) -> Form:
        # Complex numbers have no extreme values to start from.
        return Extern() if x.dtype.kind == "c" else super().lower(x)

    def _differential(
        self, primals: Sequence[Value], slots: Sequence[Linear | None]
    ) -> tuple[Any, Any, Any]:
        (x,) = primals
        out = self.impl(x)
        labels = LETTERS[: x.ndim]
        rest = "".join(c for i, c in enumerate(labels) if i not in self.axes)
        return out, Contract(labels, labels, rest), [slots[0], self._shares(x, out)]

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x)
        return out, s.ReduceSum(self.axes).bind(scale.bind(t, self._shares(x, out)))

    def _shares(self, x: Value, out: Value) -> Value:
        """Share of the tangent that each place has."""
        shape = shape_of(x)
        attained = convert(equal.bind(x, s.restore_axes(out, shape, self.axes)), x.dtype)
        count = s.restore_axes(s.ReduceSum(self.axes).bind(attained), shape, self.axes)
        return coefficient(div.bind, attained, count)


class ReduceMax(_Extreme):
    """Maximum over ``axes``; nan if any element is nan."""

    axes: tuple[int, ...]
    function: ClassVar[Any] = staticmethod(np.max)
    init: ClassVar[str] = "{lowest}"
    step: ClassVar[str] = "maximum({0}, {1})"


class ReduceMin(_Extreme):
    """Minimum over ``axes``; nan if any element is nan."""

    axes: tuple[int, ...]
    function: ClassVar[Any] = staticmethod(np.min)
    init: ClassVar[str] = "{highest}"
    step: ClassVar[str] = "minimum({0}, {1})"


def _product(x: Any, axis: tuple[int, ...]) -> Any:
    return np.multiply.reduce(x, axis=axis, dtype=np.asarray(x).dtype)


class ReduceProd(_Reduce):
    """Product over ``axes``."""

    axes: tuple[int, ...]
    function: ClassVar[Any] = staticmethod(_product)
    init: ClassVar[str] = "1"
    step: ClassVar[str] = "rmul({0}, {1})"

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        others = coefficient(_product_of_others, x, self.axes)
        return self.bind(x), s.ReduceSum(self.axes).bind(scale.bind(t, others))


def _product_of_others(x: Value, axes: tuple[int, ...]) -> Value:
    """At every place the product of all other elements, exact where elements are zero.

    Halving: what belongs to both elements of a pair, one of each half, is the product of all other
    pairs. The depth is logarithmic and nothing is divided.
    """
    shape = shape_of(x)
    if len(axes) != 1:
        for axis in axes:
            # The others along several axes: along this one, times whole products of the rest.
            rest = tuple(a for a in axes if a != axis)
            own = _product_of_others(x, (axis,))
            return _combine_axes(x, own, axis, rest)
        return convert(x * 0 + 1, x.dtype)
    (axis,) = axes
    n = shape[axis]
    if n <= 1:
        return x * 0 + 1 if n == 0 else _ones(x)
    half = n // 2
    first, second = s.cut(x, axis, 0, half), s.cut(x, axis, half, 2 * half)
    odd = [s.cut(x, axis, n - 1, n)] if n % 2 else []
    join = s.Concatenate(axis).bind
    if n == 2:
        return join(second, first)
    pair = mul.bind(first, second)
    others = _product_of_others(join(pair, *odd) if odd else pair, axes)
    own = s.cut(others, axis, 0, half) if odd else others
    alone = [s.cut(others, axis, half, half + 1)] if odd else []
    return join(mul.bind(own, second), mul.bind(own, first), *alone)


def _combine_axes(x: Value, own: Value, axis: int, rest: tuple[int, ...]) -> Value:
    """Others along ``axis`` times, for every line, the product of all other lines."""
    lines = ReduceProd((axis,)).bind(x)
    dropped = tuple(a - (a > axis) for a in rest)
    other_lines = _product_of_others(lines, dropped)
    return mul.bind(own, s.restore_axes(other_lines, shape_of(x), (axis,)))


def _ones(x: Value) -> Value:
    return np.ones(shape_of(x), x.dtype)


class _Logical(_Reduce):
    jvp = zero_jvp

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        if x.dtype != BOOL:
            raise DtypeError(f"{self.name} needs a bool array, got {x}. Compare it: x != 0.")
        return super().abstract_eval(x)


class ReduceAny(_Logical):
    """Whether any element over ``axes`` is true."""

    axes: tuple[int, ...]
    function: ClassVar[Any] = staticmethod(np.any)
    init: ClassVar[str] = "False"
    step: ClassVar[str] = "{0} | {1}"


class ReduceAll(_Logical):
    """Whether all elements over ``axes`` are true."""

    axes: tuple[int, ...]
    function: ClassVar[Any] = staticmethod(np.all)
    init: ClassVar[str] = "True"
    step: ClassVar[str] = "{0} & {1}"


class _ArgExtreme(Primitive):
    """Index of the first extreme element along one axis."""

    axis: int
    function: ClassVar[Any]
    step: ClassVar[str]
    comparison: ClassVar[str]
    jvp = zero_jvp

    def lower(self, x: ShapedArray) -> Form:
        if x.dtype.kind == "c":
            return Extern()
        better = f"{{0}} {self.comparison} {{1}}"
        if x.dtype.kind == "f":  # nan is the most extreme
            better = f"({better}) | (isnan({{0}}) & (not isnan({{1}})))"
        return ArgReduction(self.axis, self.step, better)

    def impl(self, x: Any) -> Any:
        return self.function(x, axis=self.axis)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        if x.shape[self.axis] == 0:
            raise ShapeError(f"{self.name} of {x} along axis {self.axis} of length 0 has no value.")
        return shaped(s.drop_axes(x.shape, (self.axis,)), INT64)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return type(self)(self.axis + 1).bind(args[0]), 0


class ArgMax(_ArgExtreme):
    """Index of the first maximum along ``axis``, int64."""

    axis: int
    function: ClassVar[Any] = staticmethod(np.argmax)
    step: ClassVar[str] = "maximum({0}, {1})"
    comparison: ClassVar[str] = ">"


class ArgMin(_ArgExtreme):
    """Index of the first minimum along ``axis``, int64."""

    axis: int
    function: ClassVar[Any] = staticmethod(np.argmin)
    step: ClassVar[str] = "minimum({0}, {1})"
    comparison: ClassVar[str] = "<"
