"""Discrete Fourier transforms, without normalisation forwards and with ``1/n`` backwards.

All are linear. The matrix of the complex transform is symmetric, so it is its own transpose. The
real ones drop, or rebuild, the redundant half of a Hermitian spectrum; their transposes follow
from the pairing ``Re <ct, t>`` without conjugation. Several axes, lengths and norms are composed
in the namespaces above.

Compiled, they are those of `lowering.FourierCall`. A real one of even length along the last axis is
a complex one of pairs of neighbours, whose spectra are told apart by their symmetry: what belongs
to the first of each pair is Hermitian, what belongs to the second one anti-Hermitian. Another real
one is that of complex numbers. One of a length with a large prime factor is a convolution, of two
transforms of another length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.base.roots import roots_of_unity
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.dtypes import complex_dtype, real_dtype
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Array, Form, FourierCall, Routine
from funcgrad.primitives.elementwise import (
    Convert,
    add,
    conj,
    from_parts,
    imag,
    mul,
    neg,
    real,
    select,
    sub,
)
from funcgrad.primitives.families import Recipe, linear_jvp, shape_of
from funcgrad.primitives.ordering import axis_last
from funcgrad.primitives.shape import Concatenate, Pad, Reshape, Reverse, Slice, reshape

LONGEST = 2048
"""The length to which a transform is done in the memory of one step."""

LANES = 16
"""How many transforms there have to be side by side, at least."""


def _lanes_form(
    x: ShapedArray, out: ShapedArray, axis: int, n: int, inverse: bool, scale: float
) -> Form:
    """Transforms of ``n`` complex numbers along an axis, many at a time if there are many.

    Args:
        x: The input; if it is real, neighbours along the last axis are complex numbers.
        out: The output, likewise.
        axis: The axis.
        n: Its length in complex numbers, which is smooth.
        inverse: Whether the sign of the exponent is positive.
        scale: What results are multiplied by.
    """
    shape = x.shape if x.dtype.kind == "c" else out.shape
    rows = math.prod(shape[:axis]) * math.prod(shape[axis + 1 :])
    beside = math.prod(shape[axis + 1 :])
    if beside >= LANES and n <= LONGEST:
        where = (n * beside, beside, 1)
        call = FourierCall(0, 1, n, rows // beside, beside, where, where, inverse, scale)
        return Routine((Array(x.shape, x.dtype), Array(out.shape, out.dtype)), (1,), (call,), 0)
    order = axis_last(x.ndim, axis)
    arrays = [Array(aval.shape, aval.dtype, order) for aval in (x, out)]
    high, low = _two_parts(n)
    if n <= LONGEST and (rows >= LANES or high < LANES):
        where = (0, 1, n)
        call = FourierCall(0, 1, n, 1, rows, where, where, inverse, scale)
        return Routine(tuple(arrays), (1,), (call,), 0)
    # As a matrix: its columns, and then its rows, which become columns of the result.
    columns = FourierCall(0, 2, high, rows, low, (n, low, 1), (n, low, 1), inverse, scale, turns=n)
    along = FourierCall(2, 1, low, rows, high, (n, 1, low), (n, high, 1), inverse)
    arrays.append(Array((rows, n), complex_dtype(real_dtype(x.dtype))))
    return Routine(tuple(arrays), (1,), (columns, along), 0)


def _is_smooth(n: int) -> bool:
    """Whether a length is a product of primes up to 13: there is code for transforms of each."""
    for p in (2, 3, 5, 7, 11, 13):
        while n % p == 0:
            n //= p
    return n == 1


def _two_parts(n: int) -> tuple[int, int]:
    """Two factors of about the same size, the greater one last."""
    high = next(high for high in range(math.isqrt(n), 0, -1) if n % high == 0)
    return high, n // high


def _chirped_form(x: ShapedArray, axis: int, inverse: bool) -> Form:
    """Transforms of a length with a large prime factor: a convolution, by transforms of another.

    With ``2 j k = j^2 + k^2 - (k - j)^2`` and ``w[j] = exp(-pi i j^2 / n)``, the transform is
    ``w[k] sum over j of (x[j] w[j]) conj(w[k - j])``.

    Source: L. I. Bluestein, "A linear filtering approach to the computation of discrete Fourier
    transform", IEEE Trans. Audio Electroacoust. 18 (1970) 451.
    """
    n, ndim = x.shape[axis], x.ndim
    m = next(m for m in range(2 * n - 1, 4 * n) if _is_smooth(m))
    # j^2 / n counts half turns: whole ones are left out while numbers are exact.
    squares = np.array([j * j % (2 * n) for j in range(n)], np.float64)
    chirp = np.exp((1j if inverse else -1j) * np.pi * squares / n)
    kernel = np.zeros(m, np.complex128)
    kernel[:n] = chirp.conj()
    kernel[m - n + 1 :] = kernel[1:n][::-1]
    spectrum = np.fft.fft(kernel)
    recipe, zero = Recipe(x), (0,) * ndim
    own, other, last = (
        along(weights.astype(x.dtype), axis, ndim)
        for weights in (chirp, spectrum, chirp / n if inverse else chirp)
    )
    highs = tuple(m - n if i == axis else 0 for i in range(ndim))
    y = recipe(mul, recipe.inputs[0], own)
    y = recipe(Fft((axis,)), recipe(Pad(zero, highs, zero), y, x.dtype.type(0)))
    y = recipe(Fft((axis,), True), recipe(mul, y, other))
    y = recipe(Slice(zero, x.shape, (1,) * ndim), y)
    return recipe.form(recipe(mul, y, last))


def _check_axis(name: str, x: ShapedArray, axis: int, kind: str) -> None:
    if not 0 <= axis < x.ndim or not x.shape[axis]:
        raise ShapeError(f"{name}: {x} has no elements along an axis {axis} to transform.")
    if x.dtype.kind != kind:
        wanted = "complex" if kind == "c" else "real floating"
        raise DtypeError(f"{name} needs a {wanted} array, got {x}. Convert it with .astype().")


def along(weights: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    """A vector, shaped to be combined with arrays along one of their axes."""
    return weights.reshape([-1 if i == axis else 1 for i in range(ndim)])


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
            n = x.shape[axis]
            if not _is_smooth(n):
                return _chirped_form(x, axis, self.inverse)
            return _lanes_form(x, x, axis, n, self.inverse, 1 / n if self.inverse else 1.0)
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


def _part(x: ShapedArray, start: int, limit: int) -> Slice:
    """Some elements along the last axis."""
    starts = (*(0,) * (x.ndim - 1), start)
    return Slice(starts, (*x.shape[:-1], limit), (1,) * x.ndim)


def _periodic(recipe: Recipe, z: Any) -> tuple[Any, Any]:
    """A spectrum with its first element once more at the end; and conjugated, from that end."""
    last = z.aval.ndim - 1
    ahead = recipe(Concatenate(last), z, recipe(_part(z.aval, 0, 1), z))
    return ahead, recipe(conj, recipe(Reverse((last,)), ahead))


class PairedFft(Primitive):
    """The transform of real numbers along the last axis, of which neighbours are complex numbers.

    Args: inverse: Whether complex numbers are transformed back, to pairs of real ones.
    """

    inverse: bool = False

    jvp = linear_jvp

    def impl(self, x: Any) -> Any:
        if self.inverse:
            found = np.ascontiguousarray(np.fft.ifft(x))
            return found.view(real_dtype(found.dtype))
        return np.fft.fft(np.ascontiguousarray(x).view(complex_dtype(x.dtype)))

    def lower(self, x: ShapedArray) -> Form:
        out = self.abstract_eval(x)
        n = (x if self.inverse else out).shape[-1]
        if not _is_smooth(n):
            return self._by_parts(x)
        return _lanes_form(x, out, x.ndim - 1, n, self.inverse, 1 / n if self.inverse else 1.0)

    def _by_parts(self, x: ShapedArray) -> Form:
        """Transform real numbers by complex ones that are put together, or taken apart."""
        recipe, axis, shape = Recipe(x), x.ndim - 1, x.shape
        given = recipe.inputs[0]
        if self.inverse:
            z = recipe(Fft((axis,), True), given)
            parts = [recipe(Reshape((*shape, 1)), recipe(part, z)) for part in (real, imag)]
            pairs = recipe(Concatenate(axis + 1), *parts)
            return recipe.form(recipe(Reshape((*shape[:-1], 2 * shape[-1])), pairs))
        starts = ((*(0,) * axis, k) for k in (0, 1))
        parts = [recipe(Slice(start, shape, (*(1,) * axis, 2)), given) for start in starts]
        return recipe.form(recipe(Fft((axis,)), recipe(from_parts, *parts)))

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        _check_axis(self.name, x, x.ndim - 1, "c" if self.inverse else "f")
        n = x.shape[-1]
        if self.inverse:
            return shaped((*x.shape[:-1], 2 * n), real_dtype(x.dtype))
        if n % 2:
            raise ShapeError(f"{self.name}: {x} has no pairs along its last axis.")
        return shaped((*x.shape[:-1], n // 2), complex_dtype(x.dtype))

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        axis = (x.aval.ndim - 1,)
        if not self.inverse:
            return (_pairs(conj.bind(Fft(axis).bind(ct))),)
        numbers = reshape(ct, (*shape_of(x), 2))
        re, im = (_column(numbers, k) for k in (0, 1))
        return (Fft(axis, True).bind(from_parts.bind(re, neg.bind(im))),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), 0


def _pairs(x: Value) -> Value:
    """Complex numbers as neighbours."""
    shape = shape_of(x)
    parts = [reshape(part.bind(x), (*shape, 1)) for part in (real, imag)]
    return reshape(Concatenate(len(shape)).bind(*parts), (*shape[:-1], 2 * shape[-1]))


def _column(x: Value, k: int) -> Value:
    """Without the last axis."""
    shape = shape_of(x)
    starts, limits = (*(0,) * (len(shape) - 1), k), (*shape[:-1], k + 1)
    return reshape(Slice(starts, limits, (1,) * len(shape)).bind(x), shape[:-1])


class Rfft(Primitive):
    """The first ``n // 2 + 1`` elements of the transform of a real array along ``axis``."""

    axis: int

    jvp = linear_jvp

    def impl(self, x: Any) -> Any:
        return np.fft.rfft(x, axis=self.axis)

    def lower(self, x: ShapedArray) -> Form:
        if self.axis == x.ndim - 1 and x.shape[-1] % 2 == 0:
            return self._of_pairs(x)
        recipe, out = Recipe(x), self.abstract_eval(x)
        z = recipe(Convert(out.dtype), recipe.inputs[0])
        z = recipe(Fft((self.axis,)), z)
        return recipe.form(recipe(Slice((0,) * x.ndim, out.shape, (1,) * x.ndim), z))

    def _of_pairs(self, x: ShapedArray) -> Form:
        recipe = Recipe(x)
        z = recipe(PairedFft(), recipe.inputs[0])
        ahead, back = _periodic(recipe, z)
        n, dtype = x.shape[-1], z.aval.dtype
        turn = -1j * roots_of_unity(n, n // 2 + 1)
        turn = along(turn.astype(dtype), x.ndim - 1, x.ndim)
        own, other = recipe(add, ahead, back), recipe(sub, ahead, back)
        total = recipe(add, own, recipe(mul, other, turn))
        return recipe.form(recipe(mul, total, dtype.type(0.5)))

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
        spectrum = mul.bind(conj.bind(ct), along(weights, self.axis, x.aval.ndim))
        return (Irfft(self.axis, n).bind(spectrum),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return Rfft(self.axis + 1).bind(*args), 0


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
        if self.axis == x.ndim - 1 and self.n % 2 == 0:
            return self._of_pairs(x)
        axis, n, length = self.axis, self.n, x.shape[self.axis]
        recipe = Recipe(x)
        whole = self._with_real_ends(recipe, x)
        # The other half of the spectrum mirrors this one, without what belongs to itself.
        starts = tuple(int(i == axis) for i in range(x.ndim))
        limits = (*x.shape[:axis], length - (n % 2 == 0), *x.shape[axis + 1 :])
        mirrored = recipe(Slice(starts, limits, (1,) * x.ndim), whole)
        mirrored = recipe(conj, recipe(Reverse((axis,)), mirrored))
        z = recipe(Fft((axis,), True), recipe(Concatenate(axis), whole, mirrored))
        return recipe.form(recipe(real, z))

    def _with_real_ends(self, recipe: Recipe, x: ShapedArray) -> Any:
        """The spectrum without imaginary parts of the elements that belong to themselves."""
        ends = np.zeros(x.shape[self.axis], bool)
        ends[0] = True
        ends[-1] |= self.n % 2 == 0
        ends = along(ends, self.axis, x.ndim)
        whole = recipe.inputs[0]
        return recipe(select, ends, recipe(Convert(x.dtype), recipe(real, whole)), whole)

    def _of_pairs(self, x: ShapedArray) -> Form:
        recipe = Recipe(x)
        m, n, dtype = self.n // 2, self.n, x.dtype
        whole = self._with_real_ends(recipe, x)
        ahead = recipe(_part(x, 0, m), whole)
        back = recipe(conj, recipe(Reverse((x.ndim - 1,)), recipe(_part(x, 1, m + 1), whole)))
        turn = 1j * roots_of_unity(n, m).conj()
        turn = along(turn.astype(dtype), x.ndim - 1, x.ndim)
        own, other = recipe(add, ahead, back), recipe(sub, ahead, back)
        z = recipe(add, own, recipe(mul, other, turn))
        return recipe.form(recipe(PairedFft(inverse=True), recipe(mul, z, dtype.type(0.5))))

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
        column = along(weights, self.axis, x.aval.ndim)
        return (mul.bind(conj.bind(Rfft(self.axis).bind(ct)), column),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return Irfft(self.axis + 1, self.n).bind(*args), 0
