"""Windows that slide along axes: their elements, and folds of them (pooling).

A `Slide` says which element is tap ``k`` of window ``o``. Read backwards it says of which windows
an element is a tap, and that is a slide too: so the transpose of a sum over windows is a sum over
windows, and no rule ever writes to computed places.

Convention: where several elements of a window are extreme, the tangent of a maximum or minimum is
that of the first of them, in row-major order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad.core.avals import Shape, ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Form, Slide, WindowFold
from funcgrad.primitives.families import linear_jvp, shape_of, zero_jvp
from funcgrad.primitives.shape import Pad, broadcast_to

Slides = tuple[Slide, ...]

_FEW_TAPS = 64
_NONE = np.iinfo(np.int32).max
INT32 = np.dtype(np.int32)


def taps_of(x: np.ndarray, slides: Slides, fill: Any) -> np.ndarray:
    """The taps of all windows as a view: axes of windows, then axes of taps.

    It has no memory of its own beyond that of ``x`` with what the windows meet around it.
    """
    windows = tuple(s.windows for s in slides)
    taps = tuple(s.taps for s in slides)
    if 0 in windows + taps:
        return np.empty(windows + taps, x.dtype)
    lows, highs, gaps, starts = [], [], [], []
    for slide, n in zip(slides, x.shape, strict=True):
        first, last = slide.reach
        size = last - first + 1
        low = slide.low - first if n else size
        lows.append(low)
        highs.append(size - low - (slide.base * (n - 1) + 1 if n else 0))
        gaps.append(slide.base - 1)
        starts.append(-first)
    if any(lows) or any(highs) or any(gaps):
        x = Pad(tuple(lows), tuple(highs), tuple(gaps)).impl(x, fill)
    first_tap = x[tuple(slice(start, None) for start in starts)]
    strides = [n * s.stride for n, s in zip(x.strides, slides, strict=True)]
    strides += [n * s.dilation for n, s in zip(x.strides, slides, strict=True)]
    return as_strided(first_tap, windows + taps, strides, writeable=False)


def still(shape: Shape) -> Slides:
    """Slides of axes along which nothing slides."""
    return tuple(Slide(n, 1) for n in shape)


class _Windows(Primitive):
    """Base of operations on windows of their arguments."""

    slides: Slides

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = next(shape_of(a)[0] for a, d in zip(args, dims, strict=True) if d is not None)
        dense = [
            a if d is not None else broadcast_to(a, (size, *shape_of(a)))
            for a, d in zip(args, dims, strict=True)
        ]
        wider: Any = replace(self, slides=(*still((size,)), *self.slides))
        return wider.bind(*dense), 0

    @property
    def windows(self) -> Shape:
        return tuple(s.windows for s in self.slides)

    def _taps(self, *arrays: Any, fills: Sequence[Any]) -> Iterator[list[Any]]:
        """The arrays at one tap after the other."""
        views = [taps_of(np.asarray(x), self.slides, f) for x, f in zip(arrays, fills, strict=True)]
        counts = [range(s.taps) for s in self.slides]
        every = (slice(None),) * len(counts)
        for place in itertools.product(*counts):
            yield [view[every + place] for view in views]

    def _check_axes(self, x: ShapedArray) -> None:
        if x.ndim != len(self.slides):
            raise ShapeError(f"{self.name}: {len(self.slides)} slides do not fit {x}.")


class _WindowReduce(_Windows):
    """A fold of every window."""

    function: ClassVar[Any]
    init: ClassVar[str]
    step: ClassVar[str]
    accurate: ClassVar[bool] = False

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        self._check_axes(x)
        return shaped(self.windows, x.dtype)

    def impl(self, x: Any) -> Any:
        x = np.asarray(x)
        fill = neutral(self.init, x.dtype)
        n_taps = int(np.prod([s.taps for s in self.slides], dtype=np.int64))
        if not 0 < n_taps <= _FEW_TAPS:
            view = taps_of(x, self.slides, fill)
            axes = tuple(range(x.ndim, 2 * x.ndim))
            return self.function.reduce(view, axis=axes, dtype=x.dtype, initial=fill)
        out = np.full(self.windows, fill, x.dtype)
        for (tap,) in self._taps(x, fills=[fill]):
            self.function(out, tap, out=out)
        return out[()]

    def lower(self, x: ShapedArray) -> Form:
        init, step = self.init, self.step
        return WindowFold(self.slides, (True,), (init,), "{0}", init, step, self.accurate)


class WindowSum(_WindowReduce):
    """The sum over every window."""

    slides: Slides
    function: ClassVar[Any] = np.add
    init: ClassVar[str] = "0"
    step: ClassVar[str] = "radd({0}, {1})"
    accurate: ClassVar[bool] = True

    jvp = linear_jvp

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (WindowSum(_from_windows(self.slides, x.shape)).bind(ct),)


class _WindowExtreme(_WindowReduce):
    """The maximum or minimum of every window; nan if an element is nan."""

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x)
        first = WindowFind(self.slides, self.init).bind(x, out)
        return out, WindowChosen(self.slides).bind(t, first)


class WindowMax(_WindowExtreme):
    """The maximum of every window; nan if an element is nan."""

    slides: Slides
    function: ClassVar[Any] = np.maximum
    init: ClassVar[str] = "{lowest}"
    step: ClassVar[str] = "maximum({0}, {1})"


class WindowMin(_WindowExtreme):
    """The minimum of every window; nan if an element is nan."""

    slides: Slides
    function: ClassVar[Any] = np.minimum
    init: ClassVar[str] = "{highest}"
    step: ClassVar[str] = "minimum({0}, {1})"


def neutral(init: str, dtype: np.dtype[Any]) -> Any:
    """Neutral element, beyond the ends of a window: 0, or the extreme value of a dtype."""
    if init == "0":
        return dtype.type(0)
    if dtype.kind == "b":
        return np.bool_(init == "{highest}")
    if dtype.kind == "f":
        return dtype.type(-np.inf if init == "{lowest}" else np.inf)
    info = np.iinfo(dtype)
    return dtype.type(info.min if init == "{lowest}" else info.max)


def _from_windows(slides: Slides, shape: Shape) -> Slides:
    return tuple(s.from_windows(n) for s, n in zip(slides, shape, strict=True))


class WindowFind(_Windows):
    """The number of the first tap of every window that equals the second argument; int32.

    Of a nan, that of the first tap that is nan.

    Args:
        slides: The windows of the first argument; the second has one element for each.
        fill: What stands where a window has no element: ``"{lowest}"`` or ``"{highest}"``.
    """

    slides: Slides
    fill: str

    jvp = zero_jvp

    def impl(self, x: Any, y: Any) -> Any:
        x = np.asarray(x)
        out = np.full(self.windows, _NONE, np.int32)
        taps = self._taps(x, fills=[neutral(self.fill, x.dtype)])
        for k, (tap,) in enumerate(taps):
            is_it = tap == y
            if x.dtype.kind == "f":
                is_it |= np.isnan(tap)
            out[is_it & (out == _NONE)] = k
        return out[()]

    def abstract_eval(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        self._check_axes(x)
        if y.shape != self.windows or x.dtype != y.dtype:
            raise ShapeError(f"{self.name}: {y} is not one element for each window of {x}.")
        return shaped(self.windows, INT32)

    def lower(self, x: ShapedArray, y: ShapedArray) -> Form:
        is_it = "{0} == {1}"
        if x.dtype.kind == "f":
            is_it = f"({is_it}) | isnan({{0}})"
        expr = f"select({is_it}, {{2}}, {_NONE})"
        step = "minimum({0}, {1})"
        return WindowFold(self.slides, (True, False), (self.fill,), expr, "{highest}", step)


class WindowChosen(_Windows):
    """The sum over the taps whose number is the one that stands at their window.

    Args:
        slides: The windows of the first argument.
        backward: Whether the numbers stand at the windows of the transpose, and so beside the
            elements of the first argument and not beside those of the result.
    """

    slides: Slides
    backward: bool = False

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x, number), (t, _) = primals, tangents
        return self.bind(x, number), None if t is None else self.bind(t, number)

    def transpose(self, ct: Any, x: Any, number: Any) -> Sequence[Any]:
        back = WindowChosen(_from_windows(self.slides, x.shape), not self.backward)
        return back.bind(ct, number), None

    def impl(self, x: Any, number: Any) -> Any:
        x = np.asarray(x)
        out = np.zeros(self.windows, x.dtype)
        if self.backward:
            pairs = self._taps(x, number, fills=[x.dtype.type(0), -1])
        else:
            pairs = ([tap, number] for (tap,) in self._taps(x, fills=[x.dtype.type(0)]))
        for k, (tap, chosen) in enumerate(pairs):
            np.add(out, tap, out=out, where=chosen == k)
        return out[()]

    def abstract_eval(self, x: ShapedArray, number: ShapedArray) -> ShapedArray:
        self._check_axes(x)
        if number.shape != (x.shape if self.backward else self.windows):
            raise ShapeError(f"{self.name}: {number} does not fit {x}.")
        if number.dtype != INT32:
            raise DtypeError(f"{self.name}: numbers of taps are int32, got {number}.")
        return shaped(self.windows, x.dtype)

    def lower(self, x: ShapedArray, number: ShapedArray) -> Form:
        fills = ("0", "-1") if self.backward else ("0",)
        expr = "select({1} == {2}, {0}, 0)"
        return WindowFold(
            self.slides, (True, self.backward), fills, expr, "0", "radd({0}, {1})", accurate=True
        )
