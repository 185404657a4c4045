"""Images of other sizes: every axis by one matrix, whose columns weigh neighbours by a filter.

Making an image smaller, the filter is as much wider as the image gets smaller, so that no pixel is
left out (``antialias``). NumPy's functions make the matrices, so that those of known numbers are
known while other values are traced.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value, normalize_axis, promote_inexact, strong
from funcgrad.primitives.shape import shape_of

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """Filters of `resize` and `scale_and_translate`."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name, such as "linear", "bilinear" or "lanczos3".

        Raises: ArgumentError: If there is none.
        """
        if s not in _NAMES:
            known = ", ".join(map(repr, _NAMES))
            raise ArgumentError(f"there is no method {s!r} of resizing; there are {known}.")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **{f"{letters}cubic": ResizeMethod.CUBIC for letters in ("", "bi", "tri")},
    **{f"{letters}cubic-pytorch": ResizeMethod.CUBIC_PYTORCH for letters in ("", "bi", "tri")},
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
}


def _triangle(x: Any) -> Any:
    return np.maximum(1 - x, 0.0)


def _cubic(a: float) -> Callable[[Any], Any]:
    """Keys' cubic convolution."""

    def kernel(x: Any) -> Any:
        near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
        return np.where(x < 1, near, np.where(x < 2, far, 0.0))

    return kernel


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        return np.where(x > radius, 0.0, np.sinc(x) * np.sinc(x / radius))

    return kernel


_padded_cubic = _cubic(-0.75)
"""PyTorch's, without filtering, for which the first and last pixels go on beyond the ends."""

_KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _padded_cubic,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
}


def _method(method: Any) -> ResizeMethod:
    return ResizeMethod.from_string(method) if isinstance(method, str) else ResizeMethod(method)


def _weights(
    before: int, after: int, scale: Any, translation: Any, kernel: Any, antialias: bool
) -> Any:
    """The matrix ``(before, after)`` from pixels to pixels; pixels are squares, not points."""
    ratio = 1.0 / scale
    width = np.maximum(ratio, 1.0) if antialias else 1.0
    places = (np.arange(after) + 0.5 - translation) * ratio - 0.5
    is_padded = kernel is _padded_cubic and not antialias
    kernel = _KERNELS[ResizeMethod.CUBIC] if kernel is _padded_cubic and antialias else kernel
    pixels = np.arange(-2, before + 2) if is_padded else np.arange(before)
    weights = kernel(np.abs(places[None, :] - pixels[:, None]) / width)
    if is_padded:
        weights = np.equal(np.arange(before)[:, None], np.clip(pixels, 0, before - 1)) @ weights
    total = np.sum(weights, axis=0, keepdims=True)
    is_reached = np.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    weights = np.where(is_reached, weights / np.where(is_reached, total, 1.0), 0.0)
    is_inside = (places >= -0.5) & (places <= before - 0.5)
    return np.where(is_inside[None, :], weights, 0.0)


def _shape(function: str, image: Any, shape: Sequence[int]) -> tuple[int, ...]:
    lengths = tuple(map(index, shape))
    if len(lengths) != len(shape_of(image)) or any(n < 0 for n in lengths):
        raise ShapeError(
            f"image.{function}: shape must have {len(shape_of(image))} lengths, one for each axis "
            f"of {aval_of(image)}, got {lengths}."
        )
    return lengths


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = None,
) -> Any:
    """An image scaled and moved, between its pixels if need be.

    Args:
        image: Array.
        shape: Shape of the result; lengths of axes that are not scaled stay.
        spatial_dims: Axes that are scaled.
        scale: One factor for each of them; traced or known.
        translation: By how many pixels of the result it is moved along each of them; traced or
            known.
        method: "linear", "cubic", "lanczos3" or "lanczos5", or a `ResizeMethod`.
        antialias: Whether filters are wider where the image gets smaller.
        precision: Accepted for JAX's signature.
    Returns: The new image, floating; pixels from beyond the old one are 0.

    Raises:
        ArgumentError: If there is no such method.
        ShapeError: If lengths do not fit.

    Example:
        >>> line = np.array([1.0, 2.0, 4.0])
        >>> one, half = np.ones(1), np.full(1, 0.5)
        >>> print(fg.image.scale_and_translate(line, (3,), (0,), one, half, "linear"))
        [1.  1.5 3. ]
    """
    name = "scale_and_translate"
    (x,) = (strong(v) for v in promote_inexact(as_value(image, name)))
    lengths = _shape(name, x, shape)
    kind = _method(method)
    if kind not in _KERNELS:
        raise ArgumentError(f"image.{name}: method 'nearest' is one of image.resize only.")
    axes = [normalize_axis(d, len(lengths), name) for d in spatial_dims]
    scale, translation = (fnp.asarray(v) for v in (scale, translation))
    if shape_of(scale) != (len(axes),) or shape_of(translation) != (len(axes),):
        raise ShapeError(
            f"image.{name}: scale and translation must have one number for each of {len(axes)} "
            f"spatial_dims, got {aval_of(scale)} and {aval_of(translation)}."
        )
    for axis, n in enumerate(lengths):
        if axis not in axes and n != shape_of(x)[axis]:
            raise ShapeError(
                f"image.{name}: length {shape_of(x)[axis]} of axis {axis}, which is not in "
                f"spatial_dims, cannot become {n}."
            )
    rows = [(a, scale[i], translation[i]) for i, a in enumerate(axes)]
    return _transformed(x, lengths, rows, _KERNELS[kind], antialias)


def _transformed(
    x: Any, lengths: Sequence[int], rows: Sequence[tuple[int, Any, Any]], kernel: Any, anti: bool
) -> Any:
    dtype = aval_of(x).dtype
    for axis, scale, translation in rows:
        weights = _weights(shape_of(x)[axis], lengths[axis], scale, translation, kernel, anti)
        moved = fnp.moveaxis(x, axis, -1) @ fnp.astype(weights, dtype)
        x = fnp.moveaxis(moved, -1, axis)
    return x


def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod = "linear",
    antialias: bool = True,
    precision: Any = None,
) -> Any:
    """An image of another size.

    Args:
        image: Array.
        shape: Shape of the result; axes whose lengths stay are not filtered.
        method: "nearest", "linear", "cubic", "lanczos3" or "lanczos5", or a `ResizeMethod`.
        antialias: Whether filters are wider where the image gets smaller.
        precision: Accepted for JAX's signature.
    Returns: The new image, floating.

    Raises:
        ArgumentError: If there is no such method.
        ShapeError: If ``shape`` has not one length for each axis.
    Example: print(fg.image.resize(np.array([[1.0, 3.0]]), (1, 4), "linear")) -> [[1.  1.5 2.5 3. ]]
    """
    (x,) = (strong(v) for v in promote_inexact(as_value(image, "resize")))
    lengths = _shape("resize", x, shape)
    kind = _method(method)
    axes = [i for i, (m, n) in enumerate(zip(shape_of(x), lengths, strict=True)) if m != n]
    if kind is ResizeMethod.NEAREST:
        for axis in axes:
            m, n = shape_of(x)[axis], lengths[axis]
            places = np.floor((np.arange(n) + 0.5) * m / n).astype(np.int64)
            x = fnp.take(x, places, axis=axis)
        return x
    ratios = [(shape_of(x)[i], lengths[i]) for i in axes]
    rows = [(i, n / m if m and n else 1.0, 0.0) for i, (m, n) in zip(axes, ratios, strict=True)]
    return _transformed(x, lengths, rows, _KERNELS[kind], antialias)
