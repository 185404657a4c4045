"""Discrete Fourier transforms, without normalisation forwards and with ``1/n`` backwards.

All are linear. The matrix of the complex transform is symmetric, so it is its own transpose. The
real ones drop, or rebuild, the redundant half of a Hermitian spectrum; their transposes follow
from the pairing ``Re <ct, t>`` without conjugation. Several axes, lengths and norms are composed
in the namespaces above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.dtypes import complex_dtype, real_dtype
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Array, Form, Routine, UfuncCall
from funcgrad.primitives.elementwise import conj, mul
from funcgrad.primitives.families import Recipe, linear_jvp, shape_of
from funcgrad.primitives.ordering import axis_last
from funcgrad.records import dataclass


def _form(name: str, x: ShapedArray, out: ShapedArray, axis: int, scale: Any) -> Form:
    """One transform along an axis by NumPy's loop, which multiplies by ``scale``.

    Where there is nothing to multiply by, `numpy.fft` computes in double precision.
    """
    order = axis_last(x.ndim, axis)
    is_double = scale is None or x.dtype.char in "dD"
    dtypes = [_double(aval.dtype) if is_double else aval.dtype for aval in (x, out)]
    arrays = [Array(aval.shape, dtype, order) for aval, dtype in zip((x, out), dtypes, strict=True)]
    factor = real_dtype(dtypes[0])
    arrays.append(Array((), factor, value=factor.type(1 if scale is None else scale)))
    call = UfuncCall("numpy.fft._pocketfft_umath", (name,), (0, 2, 1))
    return Routine(tuple(arrays), (1,), (call,), x.ndim - 1)


def _double(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def _check_axis(name: str, x: ShapedArray, axis: int, kind: str) -> None:
    if not 0 <= axis < x.ndim or not x.shape[axis]:
        raise ShapeError(f"{name}: {x} has no elements along an axis {axis} to transform.")
    if x.dtype.kind != kind:
        wanted = "complex" if kind == "c" else "real floating"
        raise DtypeError(f"{name} needs a {wanted} array, got {x}. Convert it with .astype().")


def _along(weights: np.ndarray, axis: int, ndim: int) -> Any:
    """One-dimensional weights, to be multiplied along an axis."""
    return weights.reshape([-1 if i == axis else 1 for i in range(ndim)])


@dataclass(frozen=True)
class Fft(Primitive):
    """``sum over j of x[j] exp(-2 pi i j k / n)`` along each of ``axes``.

    Args:
        axes: Transformed axes.
        inverse: Whether the sign of the exponent is positive and the result is divided by ``n``.
    """

    axes: tuple[int, ...]
    inverse: bool = False

    jvp = linear_jvp

    def impl(self, x: Any) -> Any:
        return (np.fft.ifftn if self.inverse else np.fft.fftn)(x, axes=self.axes)

    def lower(self, x: ShapedArray) -> Form:
        if len(self.axes) == 1:
            (axis,) = self.axes
            if self.inverse:
                return _form("ifft", x, x, axis, 1 / x.shape[axis])
            return _form("fft", x, x, axis, None)
        recipe = Recipe(x)
        out = recipe.inputs[0]
        for axis in reversed(self.axes):
            out = recipe(replace(self, axes=(axis,)), out)
        return recipe.form(out)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        for axis in self.axes:
            _check_axis(self.name, x, axis, "c")
        return shaped(x.shape, x.dtype)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (self.bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return replace(self, axes=tuple(a + 1 for a in self.axes)).bind(*args), 0


@dataclass(frozen=True)
class Rfft(Primitive):
    """The first ``n // 2 + 1`` elements of the transform of a real array along ``axis``."""

    axis: int

    jvp = linear_jvp

    def impl(self, x: Any) -> Any:
        return np.fft.rfft(x, axis=self.axis)

    def lower(self, x: ShapedArray) -> Form:
        name = "rfft_n_odd" if x.shape[self.axis] % 2 else "rfft_n_even"
        return _form(name, x, self.abstract_eval(x), self.axis, None)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        _check_axis(self.name, x, self.axis, "f")
        length = x.shape[self.axis] // 2 + 1
        shape = (*x.shape[: self.axis], length, *x.shape[self.axis + 1 :])
        return shaped(shape, complex_dtype(x.dtype))

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        # <ct, F x>, over the reals: x[j] is paired with Re (sum over k of ct[k] exp(...)), which
        # is what the inverse makes of a spectrum whose other half mirrors this one.
        n = x.shape[self.axis]
        weights = np.full(shape_of(ct)[self.axis], n / 2, aval_of(ct).dtype)
        weights[0] = n
        if n % 2 == 0:
            weights[-1] = n
        spectrum = mul.bind(conj.bind(ct), _along(weights, self.axis, x.aval.ndim))
        return (Irfft(self.axis, n).bind(spectrum),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return Rfft(self.axis + 1).bind(*args), 0


@dataclass(frozen=True)
class Irfft(Primitive):
    """The real array of length ``n`` along ``axis`` whose `Rfft` is given.

    Imaginary parts of the elements that belong to themselves (the first, and the last if ``n`` is
    even) are ignored.
    """

    axis: int
    n: int

    jvp = linear_jvp

    def impl(self, x: Any) -> Any:
        return np.fft.irfft(x, self.n, self.axis)

    def lower(self, x: ShapedArray) -> Form:
        return _form("irfft", x, self.abstract_eval(x), self.axis, 1 / self.n)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        _check_axis(self.name, x, self.axis, "c")
        if self.n < 1 or x.shape[self.axis] != self.n // 2 + 1:
            raise ShapeError(
                f"{self.name}: a real array of length {self.n} has {self.n // 2 + 1} frequencies, "
                f"got {x} along axis {self.axis}."
            )
        shape = (*x.shape[: self.axis], self.n, *x.shape[self.axis + 1 :])
        return shaped(shape, real_dtype(x.dtype))

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        # Every frequency but the self-conjugate ones stands for itself and its mirror image.
        weights = np.full(self.n // 2 + 1, 2.0 / self.n, x.dtype)
        weights[0] = 1 / self.n
        if self.n % 2 == 0:
            weights[-1] = 1 / self.n
        column = _along(weights, self.axis, x.aval.ndim)
        return (mul.bind(conj.bind(Rfft(self.axis).bind(ct)), column),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return Irfft(self.axis + 1, self.n).bind(*args), 0
