"""Shapes that convolutions and windows give, computed from shapes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.errors import ArgumentError
from funcgrad.lax.convolution import conv_dimension_numbers, transposed_pads
from funcgrad.lax.windows import Pads, checked_pads, padtype_to_pads, per_axis, slides_of

__all__ = [
    "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
    "conv_transpose_shape_tuple", "reduce_window_shape_tuple",
]  # fmt: skip

Lengths = tuple[int, ...]


def conv_general_permutations(dimension_numbers: Any) -> tuple[Lengths, Lengths, Lengths]:
    """The axes of the three arrays of a convolution, in the order of ``NCHW``, ``OIHW``, ``NCHW``.

    Example: fg.lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
        -> ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lengths = (0,) * len(dimension_numbers[0])
    lhs, rhs, out = map(tuple, conv_dimension_numbers(lengths, lengths, dimension_numbers))
    return lhs, rhs, out


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: str | Pads,
    batch_group_count: int = 1,
) -> Lengths:
    """The shape of a convolution of ``(N, C, ...)`` with ``(O, I, ...)``.

    Args:
        strides: Distance of windows along every axis along which they slide.
        pads: Name of a padding, or ``(low, high)`` for each of these axes.
        batch_group_count: Into how many groups the batch is divided.
    Returns: The shape ``(N, O, ...)``.

    Raises:
        ArgumentError: If there is not one number for each axis.
        ShapeError: If padding takes more than there is.
    Example: fg.lax.conv_shape_tuple((8, 3, 9, 9), (16, 3, 3, 3), (2, 2), "SAME") -> (8, 16, 5, 5)
    """
    name = "conv_shape_tuple"
    lengths, taps = tuple(lhs_shape[2:]), tuple(rhs_shape[2:])
    steps = per_axis(name, "strides", strides, len(lengths))
    rows = _rows(name, lengths, taps, steps, pads)
    ones = (1,) * len(lengths)
    slides = slides_of(name, lengths, taps, steps, rows, ones, ones)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *(slide.windows for slide in slides))


def _rows(
    name: str, lengths: Lengths, taps: Lengths, steps: Lengths, pads: str | Pads
) -> list[tuple[int, int]]:
    if isinstance(pads, str):
        return padtype_to_pads(lengths, taps, steps, pads)
    return checked_pads(name, pads, len(lengths))


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    dimension_numbers: Any,
) -> Lengths:
    """The shape of a convolution whose axes are in any order.

    Args: padding: Name of a padding, or ``(low, high)`` for each of these axes.

    Example:
        >>> layout = ("NHWC", "HWIO", "NHWC")
        >>> fg.lax.conv_general_shape_tuple((8, 9, 9, 3), (3, 3, 3, 16), (1, 1), "VALID", layout)
        (8, 7, 7, 16)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    canonical = conv_shape_tuple(
        [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs], window_strides, padding
    )
    return _placed(canonical, out)


def _placed(lengths: Lengths, axes: Lengths) -> Lengths:
    own = dict(zip(axes, lengths, strict=True))
    return tuple(own[i] for i in range(len(axes)))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    dimension_numbers: Any,
) -> Lengths:
    """The shape that `conv_transpose` gives.

    Args:
        window_strides: By how much elements are spread along every axis.
        padding: ``"SAME"`` or ``"VALID"``, or ``(low, high)`` around the spread elements.

    Example:
        >>> layout = ("NHWC", "HWIO", "NHWC")
        >>> fg.lax.conv_transpose_shape_tuple((8, 5, 5, 3), (3, 3, 3, 16), (2, 2), "SAME", layout)
        (8, 10, 10, 16)
    """
    name = "conv_transpose_shape_tuple"
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    batch, _, *lengths = (lhs_shape[i] for i in lhs)
    channels, _, *taps = (rhs_shape[i] for i in rhs)
    steps = per_axis(name, "window_strides", window_strides, len(lengths))
    if isinstance(padding, str):
        pads = [transposed_pads(k, s, padding) for k, s in zip(taps, steps, strict=True)]
    else:
        pads = checked_pads(name, padding, len(lengths))
    ones = (1,) * len(lengths)
    slides = slides_of(name, lengths, taps, ones, pads, steps, ones)
    return _placed((batch, channels, *(slide.windows for slide in slides)), out)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Lengths:
    """The shape that `reduce_window` gives.

    Args:
        operand_shape: Shape of the array.
        padding: ``(low, high)`` for every axis.
    Raises: ArgumentError: If there is not one number for each axis, or the padding is a name.
    Example: fg.lax.reduce_window_shape_tuple((9, 6), (3, 2), (1, 2), [(1, 1), (0, 0)]) -> (9, 3)
    """
    name = "reduce_window_shape_tuple"
    count = len(operand_shape)
    if isinstance(padding, str):
        raise ArgumentError(f"lax.{name}: padding must be pairs; lax.padtype_to_pads gives them.")
    slides = slides_of(
        name,
        operand_shape,
        per_axis(name, "window_dimensions", window_dimensions, count),
        per_axis(name, "window_strides", window_strides, count),
        checked_pads(name, padding, count),
        per_axis(name, "base_dilation", base_dilation, count),
        per_axis(name, "window_dilation", window_dilation, count),
    )
    return tuple(slide.windows for slide in slides)
