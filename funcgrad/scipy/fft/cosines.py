"""Cosine and sine transforms of types 1 to 4, from Fourier transforms of rearranged lines.

All are linear, and real on the real and the imaginary part of a line. Types 2 and 3 are taken from
transforms of the length of the line: its even elements, then its odd ones backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.signatures import docstring
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import floating, is_complex_value, line_axis, zeros_added

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _cosine_1(x: Any) -> Any:
    if shape_of(x)[-1] < 2:
        raise ShapeError(f"dct of type 1 needs at least 2 elements, got {aval_of(x)}.")
    return fnp.fft.rfft(fnp.concatenate([x, x[..., -2:0:-1]], -1)).real


def _cosine_2(x: Any) -> Any:
    n = shape_of(x)[-1]
    spectrum = fnp.fft.rfft(fnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1))
    rotated = 2 * spectrum * _turns(x, n, n // 2 + 1)
    # The upper half is in the imaginary parts of the lower one.
    upper = -rotated.imag[..., 1 : (n + 1) // 2]
    return fnp.concatenate([rotated.real, upper[..., ::-1]], -1)


def _cosine_3(x: Any) -> Any:
    n = shape_of(x)[-1]
    reversed_ = fnp.concatenate([fnp.zeros_like(x[..., :1]), x[..., :0:-1]], -1)
    half = n // 2 + 1
    spectrum = (x[..., :half] - 1j * reversed_[..., :half]) * np.conj(_turns(x, n, half))
    line = fnp.fft.irfft(spectrum, n) * n
    first, second = line[..., : (n + 1) // 2], line[..., (n + 1) // 2 :][..., ::-1]
    pairs = fnp.stack([first[..., : n // 2], second], -1)
    woven = fnp.reshape(pairs, (*shape_of(x)[:-1], 2 * (n // 2)))
    return woven if n % 2 == 0 else fnp.concatenate([woven, first[..., -1:]], -1)


def _turns(x: Any, n: int, count: int) -> np.ndarray:
    angles = np.exp(-0.5j * np.pi * np.arange(count) / n)
    return angles.astype(np.result_type(aval_of(x).dtype, np.complex64))


def _cosine_4(x: Any) -> Any:
    n = shape_of(x)[-1]
    spectrum = fnp.fft.fft(x * _turns(x, n, n), 2 * n)[..., :n]
    half_turn = np.exp(-0.25j * np.pi / n)
    return 2 * (spectrum * (_turns(x, n, n) * half_turn).astype(aval_of(spectrum).dtype)).real


def _sine_1(x: Any) -> Any:
    zero = fnp.zeros_like(x[..., :1])
    odd = fnp.concatenate([zero, x, zero, -x[..., ::-1]], -1)
    return -fnp.fft.rfft(odd).imag[..., 1 : shape_of(x)[-1] + 1]


def _alternating(x: Any) -> np.ndarray:
    signs = np.ones(shape_of(x)[-1], aval_of(x).dtype)
    signs[1::2] = -1
    return signs


_KERNELS: dict[tuple[str, int], Callable[[Any], Any]] = {
    ("dct", 1): _cosine_1,
    ("dct", 2): _cosine_2,
    ("dct", 3): _cosine_3,
    ("dct", 4): _cosine_4,
    ("dst", 1): _sine_1,
    ("dst", 2): lambda x: _cosine_2(x * _alternating(x))[..., ::-1],
    ("dst", 3): lambda x: _cosine_3(x[..., ::-1]) * _alternating(x),
    ("dst", 4): lambda x: _cosine_4(x * _alternating(x))[..., ::-1],
}


def _single(factor: float, x: Any, index: int) -> np.ndarray:
    """1 for all elements of a line but one."""
    weights = np.ones(shape_of(x)[-1], aval_of(x).dtype)
    weights[index] = factor
    return weights


def _orthogonal(family: str, kind: int, x: Any) -> Any:
    """A transform whose matrix is orthogonal, up to one factor."""
    end = 0 if family == "dct" else -1
    if kind == 3:
        x = x * _single(sqrt(2), x, end)
    if family == "dct" and kind == 1:
        x = x * _single(sqrt(2), x, 0) * _single(sqrt(2), x, -1)
    y = _KERNELS[family, kind](x)
    if kind == 2:
        y = y * _single(sqrt(0.5), y, end)
    if family == "dct" and kind == 1:
        y = y * _single(sqrt(0.5), y, 0) * _single(sqrt(0.5), y, -1)
    return y


def _along(
    name: str,
    family: str,
    x: Any,
    kind: int,
    n: int | None,
    axis: int,
    norm: str | None,
    is_inverse: bool,
    orthogonalize: bool | None,
) -> Any:
    if kind not in _INVERSE:
        raise ArgumentError(f"{name}: type must be 1, 2, 3 or 4, got {kind!r}.")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}.")
    kind = _INVERSE[kind] if is_inverse else kind
    place = line_axis(x, axis, name)
    lines = fnp.moveaxis(x, place, -1)
    count = shape_of(lines)[-1] if n is None else int(n)
    if count < 1:
        raise ShapeError(f"{name}: there must be elements to transform, got {count}.")
    missing = count - shape_of(lines)[-1]
    lines = zeros_added(lines, 0, missing, len(shape_of(x)) - 1) if missing > 0 else lines
    lines = lines[..., :count]
    is_orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    compute = (lambda v: _orthogonal(family, kind, v)) if is_orthogonal else _KERNELS[family, kind]
    if is_complex_value(lines):
        y = compute(lines.real) + 1j * compute(lines.imag)
    else:
        y = compute(lines)
    period = 2 * count if kind != 1 else 2 * (count - 1 if family == "dct" else count + 1)
    if norm == "ortho":
        y = y * _scalar(y, 1 / sqrt(period))
    elif (norm == "forward") != is_inverse:
        y = y * _scalar(y, 1 / period)
    return fnp.moveaxis(y, -1, place)


def _scalar(x: Any, value: float) -> Any:
    return aval_of(x).dtype.type(value)


def _line_transform(name: str, family: str, is_inverse: bool) -> Callable[..., Any]:
    def along_a_line(
        x: Any,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Any:
        (x,) = floating(name, x)
        return _along(name, family, x, type, n, axis, norm, is_inverse, orthogonalize)

    return _named(name, along_a_line)


def _space_transform(name: str, family: str, is_inverse: bool) -> Callable[..., Any]:
    def along_axes(
        x: Any,
        type: int = 2,
        s: Sequence[int] | None = None,
        axes: Any = None,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Any:
        (x,) = floating(name, x)
        ndim = len(shape_of(x))
        lengths = None if s is None else [int(n) for n in np.atleast_1d(s)]
        if axes is None:
            indices = list(range(ndim if lengths is None else len(lengths)))
            indices = [i - len(indices) for i in indices]
        else:
            indices = [int(i) for i in np.atleast_1d(axes)]
        if lengths is not None and len(lengths) != len(indices):
            raise ShapeError(f"{name}: s and axes have different lengths.")
        for i, axis in enumerate(indices):
            n = None if lengths is None else lengths[i]
            x = _along(name, family, x, type, n, axis, norm, is_inverse, orthogonalize)
        return x

    return _named(name, along_axes)


_SHOWN = {
    "dct": "array([20.        , -6.30864406,  0.        , -0.44834153])",
    "idct": "array([ 1.49995328, -1.1378679 ,  0.32720773, -0.18929311])",
    "dst": "array([13.06562965, -5.65685425,  5.411961  , -4.        ])",
    "idst": "array([ 1.6421339 , -0.2024893 ,  0.09040392, -0.06497288])",
    "dctn": "array([[ 40.        ,  -5.65685425],\n       [-11.3137085 ,   0.        ]])",
    "idctn": "array([[ 1.00444174, -0.34911165],\n       [-0.52588835,  0.12055826]])",
    "dstn": "array([[ 20.        ,  -5.65685425],\n       [-11.3137085 ,   0.        ]])",
    "idstn": "array([[ 0.81694174, -0.03661165],\n       [-0.21338835, -0.06694174]])",
}
"""By the name of a transform: what it gives for an array of the numbers 1 to 4."""


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    kind = "cosine" if "dct" in name else "sine"
    what = f"Inverse of a {kind}" if name.startswith("i") else kind.capitalize()
    is_space = name.endswith("n")
    where = " along several axes" if is_space else ""
    operand = "[[1.0, 2.0], [3.0, 4.0]]" if is_space else "[1.0, 2.0, 3.0, 4.0]"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = docstring(
        f"{what} transform{where}, as `scipy.fft.{name}`.",
        {},
        f"fg.scipy.fft.{name}(np.array({operand})) -> {_SHOWN[name]}",
        returns="An array like ``x``, floating or complex.",
        raises={
            "ArgumentError": "If ``type`` or ``norm`` are others.",
            "ShapeError": "If there are no elements to transform.",
        },
    )
    return function


dct = _line_transform("dct", "dct", False)
idct = _line_transform("idct", "dct", True)
dst = _line_transform("dst", "dst", False)
idst = _line_transform("idst", "dst", True)
dctn = _space_transform("dctn", "dct", False)
idctn = _space_transform("idctn", "dct", True)
dstn = _space_transform("dstn", "dst", False)
idstn = _space_transform("idstn", "dst", True)
