"""Convolutions, by labels: sums of products over windows that slide.

``Convolution("ncx", "ocx", "nox", (("x", slide),))`` says it all. The labels mean what they mean in
a `Contract`; a letter with a slide counts elements in the first operand, taps in the second and
windows in the result. So groups of channels are a letter of all three, mapping adds a fresh one,
and as a slide of elements, windows and taps is one of any two of them, every transpose is again a
convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Contraction, Form, Slide
from funcgrad.primitives.contraction import LETTERS, Contract, bilinear_jvp
from funcgrad.primitives.windows import still, taps_of

_MOST_TAPS_BYTES = 1 << 26
"""Memory that evaluation spends on a copy of all taps; more of them are summed one by one."""


class Convolution(Primitive):
    """``out[..., o] = sum over taps k of lhs[..., element(o, k)] * rhs[..., k]``, by labels.

    Args:
        lhs: One letter per axis of the first operand.
        rhs: One letter per axis of the second.
        out: One letter per axis of the result.
        slides: The letters along which windows slide; each stands in all three.
    """

    lhs: str
    rhs: str
    out: str
    slides: tuple[tuple[str, Slide], ...]

    jvp = bilinear_jvp
    is_bilinear = True

    def impl(self, x: Any, y: Any) -> Any:
        x, y = np.asarray(x), np.asarray(y)
        shape = self._out_shape(x.shape, y.shape)
        if not x.size or not y.size or 0 in shape:
            return np.zeros(shape, x.dtype)
        sequences = self._sequences(x, y)
        if sequences is not None:
            return sequences
        slides = dict(self.slides)
        unmoved = dict(zip(self.lhs, still(x.shape), strict=True))
        view = taps_of(x, tuple(slides.get(c, unmoved[c]) for c in self.lhs), x.dtype.type(0))
        fresh = _fresh(self.lhs + self.rhs + self.out, len(slides))
        tap_of = dict(zip(slides, fresh, strict=True))
        # Axes of taps of letters that do not slide have length 1.
        view = view[(..., *(slice(None) if c in slides else 0 for c in self.lhs))]
        sliding = [c for c in self.lhs if c in slides]
        lhs = self.lhs + "".join(tap_of[c] for c in sliding)
        rhs = "".join(tap_of.get(c, c) for c in self.rhs)
        if view.nbytes <= _MOST_TAPS_BYTES:
            return Contract(lhs, rhs, self.out).impl(view, y)
        # The first tap axis in a loop.
        tap = tap_of[sliding[0]]
        contract = Contract(lhs.replace(tap, ""), rhs.replace(tap, ""), self.out)
        views = np.moveaxis(view, lhs.index(tap), 0)
        total = np.zeros(shape, x.dtype)
        for part, weights in zip(views, np.moveaxis(y, rhs.index(tap), 0), strict=True):
            total += contract.impl(part, weights)
        return total

    def _sequences(self, x: np.ndarray, y: np.ndarray) -> Any:
        """A convolution of stacks of sequences, for each of which NumPy has a loop."""
        if not (self.lhs == self.rhs == self.out and len(self.slides) == 1):
            return None
        ((letter, slide),) = self.slides
        if {abs(slide.stride), abs(slide.dilation), slide.base} != {1}:
            return None
        axis = self.lhs.index(letter)
        x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
        stack, n = x.shape[:-1], y.shape[-1]
        low = slide.low + (slide.windows - 1 if slide.stride < 0 else 0)
        if slide.dilation > 0:
            y, low = y[..., ::-1], low - (n - 1)
        out = np.empty((*stack, slide.windows), x.dtype)
        for row in np.ndindex(stack):
            out[row] = _part_of_full(x[row], y[row], -low, slide.windows)
        return np.moveaxis(out[..., ::-1] if slide.stride < 0 else out, -1, axis)

    def abstract_eval(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        if x.dtype != y.dtype:
            raise DtypeError(f"convolution needs arguments of one dtype, got {x} and {y}.")
        for labels, aval in ((self.lhs, x), (self.rhs, y)):
            if len(labels) != aval.ndim:
                raise ShapeError(
                    f"convolution: labels {labels!r} need {len(labels)} axes, got {aval}."
                )
        sizes = dict(zip(self.lhs, x.shape, strict=True))
        slides = dict(self.slides)
        for c, n in zip(self.rhs, y.shape, strict=True):
            expected = slides[c].taps if c in slides else sizes.get(c, n)
            if n != expected:
                raise ShapeError(
                    f"convolution: axis {c!r} of {y} ({self._equation()}) has length {n}, not "
                    f"{expected}."
                )
        return shaped(self._out_shape(x.shape, y.shape), x.dtype)

    def _out_shape(self, x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        sizes = dict(zip(self.rhs, y, strict=True)) | dict(zip(self.lhs, x, strict=True))
        sizes |= {c: slide.windows for c, slide in self.slides}
        return tuple(sizes[c] for c in self.out)

    def _equation(self) -> str:
        return f"{self.lhs},{self.rhs}->{self.out}"

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        if is_linear(x):
            lengths = dict(zip(self.lhs, x.shape, strict=True))
            slides = tuple((c, s.from_windows(lengths[c])) for c, s in self.slides)
            return Convolution(self.out, self.rhs, self.lhs, slides).bind(ct, y), None
        slides = tuple((c, s.over_windows()) for c, s in self.slides)
        return None, Convolution(self.lhs, self.out, self.rhs, slides).bind(x, ct)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        fresh = _fresh(self.lhs + self.rhs + self.out, 1)
        lhs = self.lhs if dims[0] is None else fresh + self.lhs
        rhs = self.rhs if dims[1] is None else fresh + self.rhs
        return Convolution(lhs, rhs, fresh + self.out, self.slides).bind(*args), 0

    def lower(self, x: ShapedArray, y: ShapedArray) -> Form:
        return Contraction(self.lhs, self.rhs, self.out, self.slides)

    def params(self) -> dict[str, Any]:
        slides = {c: _text(slide) for c, slide in self.slides}
        return {"labels": self._equation(), **slides}


def _part_of_full(x: np.ndarray, y: np.ndarray, first: int, length: int) -> np.ndarray:
    """Elements ``first`` to ``first + length`` of the convolution of two sequences, all of it."""
    n = len(y)
    low, high = max(first - n + 1, 0), min(first + length, len(x))
    if low >= high:
        return np.zeros(length, x.dtype)
    full = np.convolve(x[low:high], y)[max(first - low, 0) :][:length]
    before = max(low - first, 0)
    return np.pad(full, (before, length - before - len(full))) if len(full) < length else full


def _text(slide: Slide) -> str:
    """Such as ``i=o+k`` or ``2i-1=3o+k``: which element is tap ``k`` of window ``o``."""

    def term(factor: int, letter: str) -> str:
        sign = "-" if factor < 0 else "+"
        return f"{sign}{'' if abs(factor) == 1 else abs(factor)}{letter}"

    low = f"{slide.low:+d}" if slide.low else ""
    left = term(slide.base, "i").removeprefix("+") + low
    return f"{left}={term(slide.stride, 'o').removeprefix('+')}{term(slide.dilation, 'k')}"


def _fresh(used: str, count: int) -> str:
    """Letters that are not in use."""
    return "".join([c for c in LETTERS if c not in used][:count])
