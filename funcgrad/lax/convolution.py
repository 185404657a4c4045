"""Convolutions: sums of products over windows that slide, as in networks for images.

As everywhere in this field, the kernel is not reversed: strictly they are correlations.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.dtypes import BOOL
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lax import operands
from funcgrad.lax.shapes import reshape, rev, transpose
from funcgrad.lax.windows import Pads, checked_pads, padtype_to_pads, per_axis, slides_of
from funcgrad.primitives.contraction import Contract
from funcgrad.primitives.convolution import Convolution
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.families import shape_of

__all__ = [
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv", "conv_dimension_numbers",
    "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches",
    "conv_transpose", "conv_with_general_padding",
]  # fmt: skip

_SPATIAL = "abdefhjklmpqrstuvwxyz"
_DEFAULTS = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


class ConvDimensionNumbers(NamedTuple):
    """Roles of the axes of the arrays of a convolution.

    Attributes:
        lhs_spec: Axes of ``lhs``: batch, channels, then those along which windows slide.
        rhs_spec: Axes of ``rhs``: output channels, input channels, then those along windows.
        out_spec: Axes of the result: batch, channels, then those along which windows slid.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]
"""Dimension numbers that `conv_dimension_numbers` turns into a `ConvDimensionNumbers`."""


def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> ConvDimensionNumbers:
    """Convert dimension numbers to positions of axes.

    Args: dimension_numbers: Three strings with one letter per axis: ``N`` and ``C`` are batch and
            channels of ``lhs`` and of the result, ``O`` and ``I`` output and input channels of
            ``rhs``, all others name axes along which windows slide. ``None`` for batch and channels
            first, output channels first. A `ConvDimensionNumbers` is returned as it is.
    Returns: The numbers.

    Raises:
        ArgumentError: If a letter is missing, repeated or in one string only.
        ShapeError: If the numbers of axes differ.

    Example:
        >>> from funcgrad import lax
        >>> spec = lax.conv_dimension_numbers((8, 9, 9, 3), (5, 5, 3, 6), ("NHWC", "HWIO", "NHWC"))
        >>> spec.lhs_spec, spec.rhs_spec
        ((0, 3, 1, 2), (3, 2, 0, 1))
    """
    ndim = len(lhs_shape)
    if len(rhs_shape) != ndim or ndim < 2:
        raise ShapeError(
            "a convolution needs arrays of equally many axes, at least two, got shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}."
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        specs = [tuple(map(int, spec)) for spec in dimension_numbers]
        if any(sorted(spec) != list(range(ndim)) for spec in specs):
            raise ArgumentError(
                f"dimension_numbers: every spec must name each of the {ndim} axes once, got "
                f"{dimension_numbers}."
            )
        return ConvDimensionNumbers(*specs)
    if dimension_numbers is None:
        axes = tuple(range(ndim))
        return ConvDimensionNumbers(axes, axes, axes)
    strings = list(dimension_numbers)
    letters = [("N", "C"), ("O", "I"), ("N", "C")]
    if len(strings) != 3 or not all(isinstance(s, str) for s in strings):
        raise ArgumentError(
            "dimension_numbers must be None, three strings such as ('NHWC', 'HWIO', 'NHWC'), or a "
            f"ConvDimensionNumbers, got {dimension_numbers!r}."
        )
    spatial = [c for c in strings[1] if c not in "OI"]
    specs = []
    for string, first in zip(strings, letters, strict=True):
        wanted = [*first, *spatial]
        if sorted(string) != sorted(wanted) or len(set(string)) != ndim:
            raise ArgumentError(
                f"dimension_numbers: {string!r} must have the letters {', '.join(wanted)}, each "
                f"once, for {ndim} axes (of {tuple(strings)})."
            )
        specs.append(tuple(string.index(c) for c in wanted))
    return ConvDimensionNumbers(*specs)


def conv_general_dilated(
    lhs: operands.ArrayLike,
    rhs: operands.ArrayLike,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> operands.Array:
    """The sums of products of a kernel with every window of an array.

    ``out[n, o, y]`` is the sum of ``padded[n, c, stride * y + dilation * k] * rhs[o, c, k]`` over
    ``c`` and ``k``, along any number of axes at once. The kernel is not reversed.

    Args:
        lhs: Array of a batch, channels and axes along which windows slide; by default in this
            order, ``(N, C, ...)``.
        rhs: The kernel, of the same dtype; by default ``(O, C / feature_group_count, ...)``.
        padding: ``"SAME"``, ``"VALID"``, ``"SAME_LOWER"`` (`padtype_to_pads`), or ``(low, high)``
            for every such axis: zeros around ``lhs``; negative ones cut.
        feature_group_count: Into how many groups channels are divided, those of the result too;
            each group sees its own channels only.
        batch_group_count: Into how many groups the batch is divided, and the channels of the
            result; each group of these comes from its part of the batch.
    Returns: An array of the batch, the output channels, and one element per window. Where the
        kernel does not fit into the array there are no windows.

    Raises:
        ArgumentError: If there is not one number for every axis along which windows slide.
        DtypeError: If dtypes differ.
        ShapeError: If numbers of channels do not match, or padding cuts more than there is.

    Example:
        >>> image, kernel = np.arange(16.0).reshape(1, 1, 4, 4), np.ones((1, 1, 3, 3))
        >>> print(fg.lax.conv_general_dilated(image, kernel, (1, 1), "VALID")[0, 0])
        [[45. 54.]
         [81. 90.]]
        >>> channels_last = ("NHWC", "HWIO", "NHWC")
        >>> x, w = np.ones((2, 8, 8, 3)), np.ones((5, 5, 3, 6))
        >>> fg.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=channels_last).shape
        (2, 4, 4, 6)
    """
    name = "conv_general_dilated"
    check_placement(f"lax.{name}", out_sharding=out_sharding)
    x, y = operands.array_operand(name, lhs), operands.array_operand(name, rhs)
    if preferred_element_type is not None:
        wanted = operands.canonical_dtype(preferred_element_type)
        x, y = convert(x, wanted), convert(y, wanted)
    x, y = operands.same_dtype(name, x, y)
    if aval_of(x).dtype == BOOL:  # whether any product is true
        lhs, rhs = (convert(v, np.dtype(np.int32)) for v in (x, y))
        counts = conv_general_dilated(
            lhs,
            rhs,
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
        )
        return convert(counts, BOOL)
    operands.check_kinds(name, aval_of(x).dtype, "iufc")
    numbers = conv_dimension_numbers(shape_of(x), shape_of(y), dimension_numbers)
    count = len(shape_of(x)) - 2
    shape = [shape_of(x)[i] for i in numbers.lhs_spec]
    taps = [shape_of(y)[i] for i in numbers.rhs_spec]
    strides = per_axis(name, "window_strides", window_strides, count)
    base = per_axis(name, "lhs_dilation", lhs_dilation, count)
    dilation = per_axis(name, "rhs_dilation", rhs_dilation, count)
    if isinstance(padding, str):
        if any(d != 1 for d in base):
            raise ArgumentError(
                f"lax.{name}: padding {padding!r} is not defined with lhs_dilation {base}. Give "
                "(low, high) for every axis, or use lax.conv_transpose."
            )
        spans = [(k - 1) * d + 1 for k, d in zip(taps[2:], dilation, strict=True)]
        pads = padtype_to_pads(shape[2:], spans, strides, padding)
    else:
        pads = checked_pads(name, padding, count)
    groups = _groups(aval_of(x), aval_of(y), numbers, feature_group_count, batch_group_count)
    if 0 in taps[2:]:
        raise ShapeError(f"lax.{name}: the kernel {aval_of(y)} has windows without elements.")
    slides = slides_of(name, shape[2:], taps[2:], strides, pads, base, dilation)
    letters = _SPATIAL[:count]
    lhs_labels = _placed("nc" + letters, numbers.lhs_spec)
    rhs_labels = _placed("oc" + letters, numbers.rhs_spec)
    out_labels = _placed("no" + letters, numbers.out_spec)
    if groups == (1, 1):
        convolution = Convolution(
            lhs_labels, rhs_labels, out_labels, tuple(zip(letters, slides, strict=True))
        )
        return convolution.bind(x, y)
    # A group is a letter of all three, before that of the axis that it divides.
    divided = "c" if groups[0] > 1 else "n"
    size = prod(groups)
    x = _divided(x, lhs_labels.index(divided), size)
    y = _divided(y, rhs_labels.index("o"), size)
    convolution = Convolution(
        lhs_labels.replace(divided, "g" + divided),
        rhs_labels.replace("o", "go"),
        out_labels.replace("o", "go"),
        tuple(zip(letters, slides, strict=True)),
    )
    out = convolution.bind(x, y)
    axis = out_labels.index("o")
    lengths = shape_of(out)
    merged = (*lengths[:axis], lengths[axis] * lengths[axis + 1], *lengths[axis + 2 :])
    return reshape(out, merged)


def _placed(letters: str, spec: Sequence[int]) -> str:
    """Labels of an array: letter ``i`` stands at axis ``spec[i]``."""
    return "".join(letters[list(spec).index(axis)] for axis in range(len(letters)))


def _divided(x: operands.Array, axis: int, groups: int) -> operands.Array:
    shape = shape_of(x)
    return reshape(x, (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))


def _groups(
    x: ShapedArray, y: ShapedArray, numbers: ConvDimensionNumbers, features: int, batches: int
) -> tuple[int, int]:
    """The numbers of groups, checked."""
    if features < 1 or batches < 1 or (features > 1 and batches > 1):
        raise ArgumentError(
            "lax.conv_general_dilated: feature_group_count and batch_group_count must be at least "
            f"1, and not both more, got {features} and {batches}."
        )
    n, c = (x.shape[i] for i in numbers.lhs_spec[:2])
    o, i = (y.shape[i] for i in numbers.rhs_spec[:2])
    if c != i * features:
        raise ShapeError(
            f"lax.conv_general_dilated: {x} has {c} channels (axis {numbers.lhs_spec[1]}), but the "
            f"kernel {y} takes {i} (axis {numbers.rhs_spec[1]})"
            + (f" in each of {features} groups." if features > 1 else ".")
        )
    if o % (features * batches) or n % batches:
        what = "feature_group_count" if features > 1 else "batch_group_count"
        raise ShapeError(
            f"lax.conv_general_dilated: {what} {features * batches} must divide the "
            f"{o} output channels of {y}"
            + (f" and the batch of {n} of {x}." if batches > 1 else ".")
        )
    return features, batches


def conv(
    lhs: operands.ArrayLike,
    rhs: operands.ArrayLike,
    window_strides: Sequence[int],
    padding: str | Pads,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> operands.Array:
    """`conv_general_dilated` with its defaults: ``(N, C, ...)`` and ``(O, C, ...)``.

    Returns: An array ``(N, O, ...)``.
    Example: print(fg.lax.conv(np.arange(5.0).reshape(1, 1, 5), np.ones((1, 1, 2)), (2,), "VALID"))
        -> [[[1. 5.]]]
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: operands.ArrayLike,
    rhs: operands.ArrayLike,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> operands.Array:
    """`conv_general_dilated` of ``(N, C, ...)`` and ``(O, C, ...)`` without groups.

    Returns: An array ``(N, O, ...)``.

    Example:
        >>> fg.lax.conv_with_general_padding(
        ...     np.ones((1, 1, 4)), np.ones((1, 1, 2)), (1,), [(0, 0)], None, None
        ... )
        array([[[2., 2., 2.]]])
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: operands.ArrayLike,
    rhs: operands.ArrayLike,
    strides: Sequence[int],
    padding: str | Pads,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> operands.Array:
    """Transposed convolution ("deconvolution"): strides insert zeros between elements.

    With ``transpose_kernel`` it is the transpose of the convolution with these strides and this
    padding, as gradients use it.

    Args:
        lhs: Array; by default with channels last, ``(N, ..., C)``.
        rhs: The kernel; by default ``(..., C, O)``.
        strides: Distance to which neighbouring elements of ``lhs`` are spread.
        padding: ``"SAME"`` for a result ``stride`` times as long, ``"VALID"`` for all windows that
            meet an element, or ``(low, high)`` around the spread elements.
        transpose_kernel: Whether the kernel is reversed and its channels are exchanged.
        use_consistent_padding: Whether explicit padding is that of the convolution transposed.
    Returns: The result.

    Example:
        >>> x, kernel = np.array([1.0, 10.0]).reshape(1, 2, 1), np.ones((3, 1, 1))
        >>> print(fg.lax.conv_transpose(x, kernel, (2,), "VALID").ravel())
        [ 1.  1. 11. 10. 10.]
    """
    name = "conv_transpose"
    x, y = operands.array_operand(name, lhs), operands.array_operand(name, rhs)
    ndim = len(shape_of(x))
    if dimension_numbers is None:
        if ndim not in _DEFAULTS:
            raise ArgumentError(
                f"lax.{name} needs dimension_numbers for {aval_of(x)}: there is a default for 2 to "
                "5 axes."
            )
        dimension_numbers = _DEFAULTS[ndim]
    numbers = conv_dimension_numbers(shape_of(x), shape_of(y), dimension_numbers)
    count = ndim - 2
    spread = per_axis(name, "strides", strides, count)
    dilation = per_axis(name, "rhs_dilation", rhs_dilation, count)
    taps = [shape_of(y)[i] for i in numbers.rhs_spec[2:]]
    spans = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
    if isinstance(padding, str):
        pads = [transposed_pads(k, s, padding) for k, s in zip(spans, spread, strict=True)]
    else:
        pads = checked_pads(name, padding, count)
        if use_consistent_padding:
            pads = [(k - 1 - a, k - 1 - b) for k, (a, b) in zip(spans, pads, strict=True)]
    if transpose_kernel:
        y = rev(y, numbers.rhs_spec[2:])
        axes = list(range(ndim))
        o, i = numbers.rhs_spec[:2]
        axes[o], axes[i] = i, o
        y = transpose(y, axes)
    return conv_general_dilated(
        x,
        y,
        (1,) * count,
        pads,
        spread,
        dilation,
        numbers,
        preferred_element_type=preferred_element_type,
    )


def transposed_pads(span: int, stride: int, padding: str) -> tuple[int, int]:
    """Padding around spread elements, for one axis."""
    name = padding.upper()
    if name == "VALID":
        return span - 1, stride - 1 + max(span - stride, 0)
    if name != "SAME":
        raise ArgumentError(
            f"lax.conv_transpose: padding must be 'SAME', 'VALID' or one (low, high) per axis, got "
            f"{padding!r}."
        )
    both = span + stride - 2
    low = span - 1 if stride > span - 1 else -(-both // 2)
    return low, both - low


def conv_general_dilated_patches(
    lhs: operands.ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> operands.Array:
    """The elements of every window, side by side: what a convolution multiplies with its kernel.

    Args:
        lhs: Array, as in `conv_general_dilated`.
        preferred_element_type: Dtype of the result.
    Returns: As `conv_general_dilated` with ``C * prod(filter_shape)`` output channels: the elements
        of the window in the first channel, in row-major order, then those in the second, ...

    Example:
        >>> x = np.arange(5.0).reshape(1, 1, 5)
        >>> print(fg.lax.conv_general_dilated_patches(x, (3,), (2,), "VALID")[0])
        [[0. 2.]
         [1. 3.]
         [2. 4.]]
    """
    x = operands.array_operand("conv_general_dilated_patches", lhs)
    if preferred_element_type is not None:
        x = convert(x, operands.canonical_dtype(preferred_element_type))
    sizes = tuple(int(n) for n in filter_shape)
    count = len(shape_of(x)) - 2
    if len(sizes) != count:
        raise ArgumentError(
            f"lax.conv_general_dilated_patches: filter_shape must be {count} integers, one per "
            f"axis along which windows slide, got {sizes}."
        )
    zeros = (0,) * len(shape_of(x))
    numbers = conv_dimension_numbers(shape_of(x), zeros, dimension_numbers)
    channels = shape_of(x)[numbers.lhs_spec[1]]
    # A kernel per element of the window, 1 there.
    eye = np.eye(prod(sizes), dtype=aval_of(x).dtype).reshape(1, prod(sizes), 1, *sizes)
    kernel = np.broadcast_to(eye, (channels, prod(sizes), 1, *sizes)).reshape(-1, 1, *sizes)
    kernel = kernel.transpose(np.argsort(numbers.rhs_spec))
    return conv_general_dilated(
        x,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=channels,
    )


def conv_general_dilated_local(
    lhs: operands.ArrayLike,
    rhs: operands.ArrayLike,
    window_strides: Sequence[int],
    padding: str | Pads,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: Any = None,
) -> operands.Array:
    """A convolution with a kernel of its own for every window.

    Args:
        lhs: Array, as in `conv_general_dilated`.
        rhs: The kernels: by default ``(O, C * prod(filter_shape), ...)`` with the axes of the
            result along which windows slid, its second axis as that of the result of
            `conv_general_dilated_patches`.
    Returns: As `conv_general_dilated`.

    Example:
        >>> x, kernels = np.ones((1, 1, 4)), np.arange(6.0).reshape(1, 2, 3)
        >>> print(fg.lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,)))
        [[[3. 5. 7.]]]
    """
    name = "conv_general_dilated_local"
    x, y = operands.array_operand(name, lhs), operands.array_operand(name, rhs)
    x, y = operands.same_dtype(name, x, y)
    numbers = conv_dimension_numbers(shape_of(x), shape_of(y), dimension_numbers)
    patches = conv_general_dilated_patches(
        x,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        ConvDimensionNumbers(numbers.lhs_spec, numbers.rhs_spec, numbers.lhs_spec),
    )
    letters = _SPATIAL[: len(shape_of(x)) - 2]
    labels = [
        _placed(text + letters, spec)
        for text, spec in zip(("nc", "oc", "no"), numbers, strict=True)
    ]
    return Contract(*labels).bind(patches, y)
