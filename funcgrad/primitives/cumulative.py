"""Running folds along one axis, and the linear recurrence that all their derivatives are.

With ``y[i] = y[i-1] * x[i]`` the tangent obeys ``dy[i] = x[i] * dy[i-1] + y[i-1] * dx[i]``: a
linear recurrence. The same holds for running maxima (coefficients 0 and 1) and log-sum-exp
(coefficients ``exp(y[i-1] - y[i])``). `LinearRecurrence` is linear in its second argument and its
transpose is the recurrence that runs backwards, so these three lines give derivatives of every
order, exact at zeros, in linear time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Extern, Form, PrefixScan
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import linear_jvp, shape_of
from funcgrad.primitives.ordering import stacked
from funcgrad.primitives.shape import Pad


class _Cumulative(Primitive):
    """Base of the running folds: shape, batching, lowering."""

    axis: int
    reverse: bool
    ufunc: ClassVar[Any]
    init: ClassVar[str]
    step: ClassVar[str]
    kinds: ClassVar[str] = "iufc"

    def impl(self, x: Any) -> Any:
        x = np.asarray(x)
        if self.reverse:
            return np.flip(self._accumulate(np.flip(x, self.axis)), self.axis)
        return self._accumulate(x)

    def _accumulate(self, x: Any) -> Any:
        return self.ufunc.accumulate(x, self.axis, dtype=x.dtype)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        if not 0 <= self.axis < x.ndim:
            raise ShapeError(f"{self.name}: {x} has no axis {self.axis}.")
        if x.dtype.kind not in self.kinds:
            raise DtypeError(f"{self.name} is not defined for {x}. Convert it with .astype().")
        return x.strong()

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return type(self)(self.axis + 1, self.reverse).bind(args[0]), 0

    def lower(self, x: ShapedArray) -> Form:
        return PrefixScan(self.axis, self.reverse, self.init, self.step)

    def _previous(self, x: Value, fill: Any) -> Value:
        """``x[i-1]`` at ``i``, counted in the direction of the scan, and ``fill`` at its start."""
        return shifted(x, self.axis, -1 if self.reverse else 1, fill)


def shifted(x: Value, axis: int, distance: int, fill: Any) -> Value:
    """``x[i - distance]`` at ``i`` along ``axis``, with ``fill`` where there is none."""
    ndim = len(shape_of(x))
    lows = tuple(distance if i == axis else 0 for i in range(ndim))
    highs = tuple(-distance if i == axis else 0 for i in range(ndim))
    return Pad(lows, highs, (0,) * ndim).bind(x, aval_of(x).dtype.type(fill))


class LinearRecurrence(Primitive):
    """``h[i] = a[i] * h[i-1] + b[i]`` along ``axis``, from ``h = 0``, or backwards if ``reverse``.

    ``bind(a, b)``, both of one shape; linear in ``b``. As in `scale`, ``a[i] * h[i-1]`` is 0 where
    ``h[i-1]`` is 0, whatever ``a[i]`` is.
    """

    axis: int
    reverse: bool = False

    def lower(self, a: ShapedArray, b: ShapedArray) -> Form:
        step = "select({0} == 0, {0}, {0} * {1}) + {2}"
        return PrefixScan(self.axis, self.reverse, "0", step)

    def impl(self, a: Any, b: Any) -> Any:
        a, b = np.moveaxis(np.asarray(a), self.axis, 0), np.moveaxis(np.asarray(b), self.axis, 0)
        if self.reverse:
            return np.moveaxis(_recur(a[::-1], b[::-1])[::-1], 0, self.axis)
        return np.moveaxis(_recur(a, b), 0, self.axis)

    def abstract_eval(self, a: ShapedArray, b: ShapedArray) -> ShapedArray:
        if a.shape != b.shape or a.dtype != b.dtype or not 0 <= self.axis < a.ndim:
            raise ShapeError(
                f"{self.name}: coefficients and inputs must be of one type with an axis "
                f"{self.axis}, got {a} and {b}."
            )
        return shaped(b.shape, b.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a, b), (ta, tb) = primals, tangents
        out = self.bind(a, b)
        if ta is None:
            return out, self.bind(a, tb)
        source = p.pair.bind(ta, shifted(out, self.axis, -1 if self.reverse else 1, 0))
        return out, self.bind(a, source if tb is None else p.add.bind(source, tb))

    def transpose(self, ct: Any, a: Any, b: Any) -> Sequence[Any]:
        backwards = replace(self, reverse=not self.reverse)
        following = shifted(a, self.axis, 1 if self.reverse else -1, 0)
        return None, backwards.bind(following, ct)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return replace(self, axis=self.axis + 1).bind(*stacked(args, dims)), 0


_BLOCKED = 64
"""Recurrences longer than this run in blocks of the square root of their length."""


def _recur(a: Any, b: Any) -> Any:
    """The recurrence along the first axis."""
    with np.errstate(invalid="ignore", over="ignore"):
        out = _recur_fast(a, b)
    return out if np.isfinite(out).all() else _recur_rows(a, b, p.scale.impl)[0]


def _recur_fast(a: Any, b: Any) -> Any:
    """The recurrence where no coefficient is infinite, nor any product of them."""
    n = len(b)
    width = math.prod(b.shape[1:])
    if n <= _BLOCKED or width >= n:
        return _recur_rows(a, b)[0]
    # All blocks run side by side; then each receives what enters from the one before.
    size = math.isqrt(n)
    blocks = -(-n // size)
    a_blocks = np.ones((blocks * size, *b.shape[1:]), b.dtype)
    b_blocks = np.zeros_like(a_blocks)
    a_blocks[:n], b_blocks[:n] = a, b
    own_shape = (blocks, size, *b.shape[1:])
    a_blocks = a_blocks.reshape(own_shape).swapaxes(0, 1)
    b_blocks = b_blocks.reshape(own_shape).swapaxes(0, 1)
    local, product = _recur_rows(a_blocks, b_blocks)
    ends, _ = _recur_rows(product[-1], local[-1])
    out = local.copy()
    out[:, 1:] += product[:, 1:] * ends[:-1]
    return out.swapaxes(0, 1).reshape(-1, *b.shape[1:])[:n]


def _recur_rows(a: Any, b: Any, times: Any = np.multiply) -> tuple[Any, Any]:
    """The recurrence, row by row, and the running product of its coefficients."""
    out, product = np.array(b), np.array(a)
    for i in range(1, len(b)):
        out[i] += times(out[i - 1], a[i])
        product[i] *= product[i - 1]
    return out, product


class Cumsum(_Cumulative):
    """Running sum along ``axis``, from the far end if ``reverse``."""

    axis: int
    reverse: bool = False
    ufunc: ClassVar[Any] = np.add
    init: ClassVar[str] = "0"
    step: ClassVar[str] = "{0} + {1}"

    jvp = linear_jvp

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (replace(self, reverse=not self.reverse).bind(ct),)


class Cumprod(_Cumulative):
    """Running product along ``axis``, from the far end if ``reverse``."""

    axis: int
    reverse: bool = False
    ufunc: ClassVar[Any] = np.multiply
    init: ClassVar[str] = "1"
    step: ClassVar[str] = "{0} * {1}"

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x)
        source = p.scale.bind(t, self._previous(out, 1))
        return out, LinearRecurrence(self.axis, self.reverse).bind(x, source)


class _RunningExtreme(_Cumulative):
    """Running maximum or minimum: the tangent is the mean over all places that attain it."""

    kinds = "biufc"

    def lower(self, x: ShapedArray) -> Form:
        # Complex numbers have no extreme values to start from.
        return Extern() if x.dtype.kind == "c" else super().lower(x)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x)
        dtype = aval_of(x).dtype
        is_same = p.convert(p.equal.bind(out, self._previous(out, np.nan)), dtype)
        attains = p.convert(p.equal.bind(x, out), dtype)
        total = LinearRecurrence(self.axis, self.reverse)
        # At least one: from a nan on nothing attains the result, and the derivative is zero.
        count = p.maximum.bind(total.bind(is_same, attains), dtype.type(1))
        return out, p.unscale.bind(total.bind(is_same, p.scale.bind(t, attains)), count)


class Cummax(_RunningExtreme):
    """Running maximum along ``axis``, from the far end if ``reverse``; nan from a nan on."""

    axis: int
    reverse: bool = False
    ufunc: ClassVar[Any] = np.maximum
    init: ClassVar[str] = "{lowest}"
    step: ClassVar[str] = "maximum({0}, {1})"


class Cummin(_RunningExtreme):
    """Running minimum along ``axis``, from the far end if ``reverse``; nan from a nan on."""

    axis: int
    reverse: bool = False
    ufunc: ClassVar[Any] = np.minimum
    init: ClassVar[str] = "{highest}"
    step: ClassVar[str] = "minimum({0}, {1})"


class Cumlogsumexp(_Cumulative):
    """Running ``log(sum(exp(x)))`` along ``axis``, from the far end if ``reverse``."""

    axis: int
    reverse: bool = False
    ufunc: ClassVar[Any] = np.logaddexp
    init: ClassVar[str] = "{lowest}"
    step: ClassVar[str] = (
        f"select({{0}} == {{1}}, {{0}} + {math.log(2)!r}, "
        "maximum({0}, {1}) + libm_log1p(libm_exp(-abs({0} - {1}))))"
    )
    kinds: ClassVar[str] = "f"

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x)
        zero = aval_of(x).dtype.type(0)
        # Where everything so far is -inf all weights are exp(-inf), not exp(-inf + inf).
        level = p.select.bind(p.isfinite.bind(out), out, zero)
        kept = p.coefficient(lambda: p.exp.bind(p.sub.bind(self._previous(out, -np.inf), level)))
        weight = p.coefficient(lambda: p.exp.bind(p.sub.bind(x, level)))
        source = p.scale.bind(t, weight)
        return out, LinearRecurrence(self.axis, self.reverse).bind(kept, source)
