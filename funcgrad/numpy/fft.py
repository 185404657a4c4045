"""Discrete Fourier transforms, with NumPy's names.

Lengths are brought about by cutting and by zeros at the end, normalisation by one factor; the rest
is the primitives `Fft`, `Rfft` and `Irfft`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.base.signatures import docstring, signature_of
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import FLOAT64, complex_dtype, is_complex, is_inexact
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.numpy.elementwise import divide
from funcgrad.numpy.meanings import MEANINGS
from funcgrad.numpy.promotion import as_value, normalize_axes, normalize_axis, strong
from funcgrad.numpy.rearranging import roll
from funcgrad.numpy.reducing import refuse_out
from funcgrad.numpy.shaping import astype, constant_pad
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.fft import Fft, Irfft, Rfft
from funcgrad.primitives.objects import unwrapped
from funcgrad.primitives.shape import Slice, shape_of

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of the elements of a transform.

    As `numpy.fft.fftfreq`; the spacing may be traced.

    Args: n: Length of the transform.
    Example: fg.numpy.fft.fftfreq(4, 0.5) -> array([ 0. ,  0.5, -1. , -0.5])
    """
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of the elements of a transform of real numbers.

    As `numpy.fft.rfftfreq`; the spacing may be traced.

    Args: n: Length of the transform.
    Example: fg.numpy.fft.rfftfreq(4, 0.5) -> array([0. , 0.5, 1. ])
    """
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(function: Any, n: int, d: Any, dtype: Any, device: Any) -> Any:
    check_placement(function.__name__, device=device)
    n = operator.index(n)  # NumPy looks at its type
    d = unwrapped(d)
    found = divide(function(n), d) if isinstance(d, Tracer) else function(n, d)
    return found if dtype is None else astype(found, dtype)


_PLANE = "array([[10.+0.j, -2.+0.j],\n       [-4.+0.j,  0.+0.j]])"
_FROM_PLANE = "array([[ 2.5+0.j, -0.5+0.j],\n       [-1. +0.j,  0. +0.j]])"
_REAL_PLANE = "array([[ 2.5, -0.5],\n       [-1. ,  0. ]])"
_TRANSFORM = "Discrete Fourier transform along"
_INVERSE = "Inverse discrete Fourier transform along"
_OF_REAL = "Discrete Fourier transform of real numbers"
_HALF = "the half that determines it."
_LINE = (
    "array([ 2.5       , -0.66666667,  0.        , -0.16666667,  0.        ,\n       -0.66666667])"
)
TEXTS = {
    "fft": (f"{_TRANSFORM} an axis.", "array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])"),
    "ifft": (f"{_INVERSE} an axis.", "array([ 2.5+0.j , -0.5-0.5j, -0.5+0.j , -0.5+0.5j])"),
    "rfft": (f"{_OF_REAL}: {_HALF}", "array([10.+0.j, -2.+2.j, -2.+0.j])"),
    "irfft": ("Inverse of `rfft`, a real array.", _LINE),
    "hfft": (
        "Real transform of the half of a Hermitian vector.",
        "array([15., -4.,  0., -1.,  0., -4.])",
    ),
    "ihfft": ("Inverse of `hfft`.", "array([ 2.5-0.j , -0.5-0.5j, -0.5-0.j ])"),
    "fft2": (f"{_TRANSFORM} two axes.", _PLANE),
    "ifft2": (f"{_INVERSE} two axes.", _FROM_PLANE),
    "rfft2": (f"{_OF_REAL} along two axes: {_HALF}", _PLANE),
    "irfft2": ("Inverse of `rfft2`, a real array.", _REAL_PLANE),
    "fftn": (f"{_TRANSFORM} several axes.", _PLANE),
    "ifftn": (f"{_INVERSE} several axes.", _FROM_PLANE),
    "rfftn": (f"{_OF_REAL} along several axes: {_HALF}", _PLANE),
    "irfftn": ("Inverse of `rfftn`, a real array.", _REAL_PLANE),
}
"""By the name of a transform: a summary, and what it gives for an array of the numbers 1 to 4."""


def describe(
    function: Function, path: str, text: tuple[str, str], meanings: Mapping[str, str], notes: str
) -> None:
    """Give a transform its docstring.

    Args:
        function: The transform; one of a line takes its length ``n``.
        path: Module and name.
        text: A row of `TEXTS`.
        meanings: The meanings of parameters by their names.
        notes: The paragraph below the summary.
    """
    own = {parameter: meanings[parameter] for parameter in signature_of(function).parameters}
    operand = "[1.0, 2.0, 3.0, 4.0]" if "n" in own else "[[1.0, 2.0], [3.0, 4.0]]"
    call = f"fg.{path}(np.array({operand})) -> {text[1]}"
    function.__doc__ = docstring(text[0], own, call, notes)


_MEANINGS = {**MEANINGS, "axis": "The transformed axis."}


def _described(function: F) -> F:
    name = function.__name__
    describe(function, f"numpy.fft.{name}", TEXTS[name], _MEANINGS, f"As `numpy.fft.{name}`.")
    return function


_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _operand(a: Any, function: str) -> Any:
    """A floating or complex array."""
    x = strong(as_value(a, function))
    return x if is_inexact(aval_of(x).dtype) else p.convert(x, FLOAT64)


def _complex(a: Any, function: str) -> Any:
    x = _operand(a, function)
    return p.convert(x, complex_dtype(aval_of(x).dtype))


def _real(a: Any, function: str) -> Any:
    x = _operand(a, function)
    if is_complex(aval_of(x).dtype):
        raise DtypeError(f"{function} needs a real array, got {aval_of(x)}; use fft, or x.real.")
    return x


def _of_length(x: Any, n: int, axis: int, function: str) -> Any:
    """``x`` cut to ``n`` elements along ``axis``, or with zeros at its end."""
    shape = shape_of(x)
    if n < 1:
        raise ValueError(f"{function}: invalid number of data points ({n}) specified.")
    if n < shape[axis]:
        limits = (*shape[:axis], n, *shape[axis + 1 :])
        return Slice((0,) * len(shape), limits, (1,) * len(shape)).bind(x)
    if n == shape[axis]:
        return x
    return constant_pad(x, [(0, n - shape[axis] if i == axis else 0) for i in range(len(shape))])


def _scaled(x: Any, count: int, norm: Any, is_inverse: bool) -> Any:
    """Normalisation of a transform of ``count`` points, where the inverse has 1/count."""
    if norm not in _OPPOSITE:
        raise ValueError(f"norm must be 'backward', 'ortho' or 'forward', got {norm!r}.")
    if norm in (None, "backward"):
        return x
    factor = count if norm == "forward" else count**0.5
    return p.mul.bind(x, aval_of(x).dtype.type(factor if is_inverse else 1 / factor))


def _axis_of(x: Any, axis: int, function: str) -> int:
    return normalize_axis(axis, len(shape_of(x)), function)


def _line(a: Any, n: Any, axis: int, norm: Any, is_inverse: bool, function: str) -> Any:
    x = _complex(a, function)
    index = _axis_of(x, axis, function)
    n = shape_of(x)[index] if n is None else int(n)
    x = _of_length(x, n, index, function)
    return _scaled(Fft((index,), is_inverse).bind(x), n, norm, is_inverse)


@_described
def fft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "fft")
    return _line(a, n, axis, norm, False, "fft")


@_described
def ifft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "ifft")
    return _line(a, n, axis, norm, True, "ifft")


@_described
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "rfft")
    x = _real(a, "rfft")
    index = _axis_of(x, axis, "rfft")
    n = shape_of(x)[index] if n is None else int(n)
    return _scaled(Rfft(index).bind(_of_length(x, n, index, "rfft")), n, norm, False)


@_described
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "irfft")
    x = _complex(a, "irfft")
    index = _axis_of(x, axis, "irfft")
    n = 2 * (shape_of(x)[index] - 1) if n is None else int(n)
    if n < 1:
        raise ValueError(f"irfft: invalid number of data points ({n}) specified.")
    x = _of_length(x, n // 2 + 1, index, "irfft")
    return _scaled(Irfft(index, n).bind(x), n, norm, True)


@_described
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "hfft")
    if norm not in _OPPOSITE:
        raise ValueError(f"norm must be 'backward', 'ortho' or 'forward', got {norm!r}.")
    return irfft(p.conj.bind(_complex(a, "hfft")), n, axis, _OPPOSITE[norm])


@_described
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "ihfft")
    if norm not in _OPPOSITE:
        raise ValueError(f"norm must be 'backward', 'ortho' or 'forward', got {norm!r}.")
    return p.conj.bind(rfft(a, n, axis, _OPPOSITE[norm]))


# Several axes.


def _lengths(x: Any, s: Any, axes: Any, function: str) -> tuple[list[int | None], list[int]]:
    """Lengths (None: as they are) and axes, in any of NumPy's spellings."""
    ndim = len(shape_of(x))
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    indices = [normalize_axis(i, ndim, function) for i in axes]
    given = (None,) * len(indices) if s is None else s
    lengths: list[int | None] = [None if n in (None, -1) else n for n in given]
    if len(lengths) != len(indices):
        raise ShapeError(f"{function}: s and axes have different lengths.")
    return lengths, indices


def _several(a: Any, s: Any, axes: Any, norm: Any, is_inverse: bool, function: str) -> Any:
    x = _complex(a, function)
    lengths, indices = _lengths(x, s, axes, function)
    return _transformed(x, lengths, indices, norm, is_inverse, function)


def _transformed(
    x: Any,
    lengths: Sequence[int | None],
    indices: Sequence[int],
    norm: Any,
    is_inverse: bool,
    function: str,
) -> Any:
    if len(set(indices)) != len(indices):
        for n, axis in zip(reversed(lengths), reversed(indices), strict=True):
            x = _line(x, n, axis, norm, is_inverse, function)
        return x
    count = 1
    for n, axis in zip(lengths, indices, strict=True):
        x = x if n is None else _of_length(x, n, axis, function)
        count *= shape_of(x)[axis]
    if not indices:
        return x
    return _scaled(Fft(tuple(indices), is_inverse).bind(x), count, norm, is_inverse)


@_described
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "fftn")
    return _several(a, s, axes, norm, False, "fftn")


@_described
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "ifftn")
    return _several(a, s, axes, norm, True, "ifftn")


@_described
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "fft2")
    return _several(a, s, axes, norm, False, "fft2")


@_described
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "ifft2")
    return _several(a, s, axes, norm, True, "ifft2")


@_described
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "rfftn")
    x = _real(a, "rfftn")
    lengths, indices = _lengths(x, s, axes, "rfftn")
    if not indices:
        raise ShapeError("rfftn needs at least one axis.")
    # Lengths are those of the argument, also of an axis that is transformed again.
    lengths = [shape_of(x)[i] if n is None else n for n, i in zip(lengths, indices, strict=True)]
    x = rfft(x, lengths[-1], indices[-1], norm)
    return _transformed(x, lengths[:-1], indices[:-1], norm, False, "rfftn")


@_described
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    refuse_out(out, "irfftn")
    x = _complex(a, "irfftn")
    lengths, indices = _lengths(x, s, axes, "irfftn")
    if s is not None:
        # A length of -1 is that of the argument, also along the axis that is halved.
        lengths = [
            shape_of(x)[i] if n is None else n for n, i in zip(lengths, indices, strict=True)
        ]
    if not indices:
        raise ShapeError("irfftn needs at least one axis.")
    x = _transformed(x, lengths[:-1], indices[:-1], norm, True, "irfftn")
    return irfft(x, lengths[-1], indices[-1], norm)


@_described
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: None = None) -> Any:
    return rfftn(a, s, axes, norm, out)


@_described
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: None = None) -> Any:
    return irfftn(a, s, axes, norm, out)


# Order of frequencies.


def fftshift(x: Any, axes: Any = None) -> Any:
    """A transform with the zero frequency in the middle, as `numpy.fft.fftshift`.

    Example: fg.numpy.fft.fftshift(np.array([1.0, 2.0, 3.0, 4.0])) -> array([3., 4., 1., 2.])
    """
    return _rolled(x, axes, 1, "fftshift")


def ifftshift(x: Any, axes: Any = None) -> Any:
    """Inverse of `fftshift`, as `numpy.fft.ifftshift`.

    Example: fg.numpy.fft.ifftshift(np.array([1.0, 2.0, 3.0, 4.0])) -> array([3., 4., 1., 2.])
    """
    return _rolled(x, axes, -1, "ifftshift")


def _rolled(x: Any, axes: Any, direction: int, function: str) -> Any:
    x = as_value(x, function)
    indices = normalize_axes(axes, len(shape_of(x)), function)
    return roll(x, [direction * (shape_of(x)[i] // 2) for i in indices], indices)
