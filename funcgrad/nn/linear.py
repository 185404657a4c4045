"""Linear maps of features: products with a matrix, rows of a table, convolutions.

Features are the last axis, and kernels have their inputs before their outputs, as in flax.
PyTorch's layers have them the other way round: the kernel of `dense` is the transpose of the
``weight`` of ``torch.nn.Linear``, that of `conv` is ``weight.permute(2, 3, 1, 0)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.nn.classes import checked_integers, within
from funcgrad.nn.pooling import Padding, pads_of, per_axis
from funcgrad.numpy.contracting import matmul
from funcgrad.numpy.padding import pad
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.shape import reshape, shape_of
from funcgrad.scipy.exponentials import floating

Array = Any
ArrayLike = Any
PaddingMode = Literal["zeros", "circular", "reflect", "replicate"]
"""Padding modes."""

_MODES = {"zeros": "constant", "circular": "wrap", "reflect": "reflect", "replicate": "edge"}
_MODES_OF_PADDING = {"CIRCULAR": "wrap", "REFLECT": "reflect"}


def dense(x: ArrayLike, kernel: ArrayLike, bias: ArrayLike | None = None) -> Array:
    """``x @ kernel + bias``.

    Args:
        x: Array (..., inputs).
        kernel: Matrix (inputs, outputs).
        bias: Vector (outputs,).
    Returns: An array (..., outputs).
    Raises: ShapeError: If the last axis of ``x`` is not that of the inputs.
    Example: print(fg.nn.dense(np.ones((1, 3)), np.ones((3, 2)), np.array([0.0, 1.0]))) -> [[3. 4.]]
    """
    return dense_of("nn.dense", x, kernel, bias)


def dense_of(name: str, x: ArrayLike, kernel: ArrayLike, bias: ArrayLike | None) -> Array:
    """`dense` under the name of a function or a layer."""
    x, kernel = as_value(x, name), as_value(kernel, name)
    check_features(name, x, kernel, 2)
    x, kernel, *rest = floating(name, x, kernel, *([] if bias is None else [bias]))
    y = matmul(x, kernel)
    return y + rest[0] if rest else y


def check_features(name: str, x: Array, kernel: Array, ndim: int, groups: int = 1) -> None:
    """Check the axes of a kernel, and that the last axis of an input has its features."""
    shape, taken = shape_of(x), shape_of(kernel)
    if len(taken) != ndim:
        raise located(
            ShapeError, f"{name}: the kernel must have {ndim} axes, got {aval_of(kernel)}."
        )
    if not shape or shape[-1] != taken[-2] * groups:
        raise located(
            ShapeError,
            f"{name}: the kernel {aval_of(kernel)} takes {taken[-2] * groups} features in the "
            f"last axis of its input, got {aval_of(x)}.",
        )


def embed(table: ArrayLike, indices: ArrayLike) -> Array:
    """The rows of a table that integers name.

    Args:
        table: Matrix (rows, features).
        indices: Array of integers, 0 to rows - 1.
    Returns: An array of one more axis, the features; nan for a traced index without a row.

    Raises:
        DtypeError: If the indices are not integers.
        OutOfBoundsError: If a known index has no row: negative ones are no rows either.
    Example: print(fg.nn.embed(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0, 1])))
        -> [[3. 4.]
            [1. 2.]
            [3. 4.]]
    """
    return embed_of("nn.embed", table, indices)


def embed_of(name: str, table: ArrayLike, indices: ArrayLike) -> Array:
    """`embed` under the name of a function or a layer."""
    (table,) = floating(name, table)
    index = checked_integers(name, "indices", indices)
    if len(shape_of(table)) != 2:
        raise located(ShapeError, f"{name}: the table must have two axes, got {aval_of(table)}.")
    return Gather((0,), "fill", np.nan).bind(table, within(name, "rows", index, shape_of(table)[0]))


def conv(
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    strides: int | Sequence[int] = 1,
    padding: Padding = "SAME",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    padding_mode: PaddingMode = "zeros",
) -> Array:
    """Convolution along any number of axes; the kernel is not reversed.

    Args:
        x: Array (batch, ..., inputs), whose axes in between are those of the kernel; there may be
            several batch axes in front, or none.
        kernel: Array (..., inputs / groups, outputs).
        bias: Vector (outputs,).
        padding: ``"SAME"``, ``"VALID"``, ``"SAME_LOWER"``, ``"CAUSAL"`` (one axis: nothing sees
            what comes later), an integer, or one integer or pair (low, high) for every axis.
            ``"CIRCULAR"`` and ``"REFLECT"``, flax's words, are modes of padding by which there are
            as many windows as elements with strides of 1.
        groups: Into how many groups the features are divided; outputs see those of their group.
        padding_mode: What is beyond the ends: ``"zeros"``, or as in PyTorch ``"circular"`` (the
            other end), ``"reflect"`` (the elements before the last, in reverse) or ``"replicate"``
            (the last element).
    Returns: An array (batch, ..., outputs).

    Raises:
        ArgumentError: If there is not one number for every axis of the kernel, or no such mode.
        ShapeError: If features do not match, or there are too few axes.

    Example:
        >>> x, kernel = np.ones((8, 28, 28, 1)), np.ones((5, 5, 1, 6))
        >>> fg.nn.conv(x, kernel, strides=2).shape
        (8, 14, 14, 6)
        >>> print(fg.nn.conv(np.arange(4.0)[:, None], np.ones((2, 1, 1)), padding="CAUSAL")[:, 0])
        [0. 1. 3. 5.]
        >>> ring, differences = np.array([1.0, 4.0, 9.0])[:, None], np.array([-1.0, 1.0])
        >>> print(fg.nn.conv(ring, differences[:, None, None], padding="CIRCULAR")[:, 0])
        [ 3.  5. -8.]
    """
    return conv_of("nn.conv", x, kernel, bias, strides, padding, dilation, groups, padding_mode)


def conv_of(
    name: str,
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None,
    strides: int | Sequence[int],
    padding: Padding,
    dilation: int | Sequence[int],
    groups: int,
    padding_mode: PaddingMode,
) -> Array:
    """`conv` under the name of a function or a layer."""
    x, kernel = as_value(x, name), as_value(kernel, name)
    count = _window_axes(name, x, kernel)
    check_features(name, x, kernel, count + 2, groups)
    x, kernel, *rest = floating(name, x, kernel, *([] if bias is None else [bias]))
    if shape_of(kernel)[-1] % groups:
        raise located(
            ShapeError,
            f"{name}: {groups} groups must divide the {shape_of(kernel)[-1]} outputs of the "
            f"kernel {aval_of(kernel)}.",
        )
    steps = per_axis(name, "strides", strides, count)
    gaps = per_axis(name, "dilation", dilation, count)
    spans = [(n - 1) * gap + 1 for n, gap in zip(shape_of(kernel), gaps, strict=False)]
    pads, mode = _border(name, padding, padding_mode, spans)
    batch, inputs = _one_batch(x, count)
    if mode != "constant":
        if isinstance(pads, str):
            pads = lax.padtype_to_pads(shape_of(inputs)[1:-1], spans, steps, pads)
        inputs, pads = pad(inputs, [(0, 0), *pads, (0, 0)], mode), "VALID"
    y = lax.conv_general_dilated(inputs, kernel, steps, pads, None, gaps, _layout(count), groups)
    y = reshape(y, (*batch, *shape_of(y)[1:])) if len(batch) != 1 else y
    return y + rest[0] if rest else y


def conv_transpose(
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    strides: int | Sequence[int] = 1,
    padding: Padding = "SAME",
    dilation: int | Sequence[int] = 1,
) -> Array:
    """Transposed convolution: it inserts zeros between elements instead of skipping windows.

    Args:
        x: Array (batch, ..., inputs), as in `conv`.
        kernel: Array (..., inputs, outputs). It is not reversed: the kernel of PyTorch's
            ``conv_transpose2d`` is ``np.flip(weight.transpose(2, 3, 0, 1), (0, 1))``.
        bias: Vector (outputs,).
        strides: Distance to which neighbouring elements are spread.
        padding: ``"SAME"`` for a result ``strides`` times as long, ``"VALID"`` for all windows
            that meet an element, or what is around the spread elements, as in `conv`. PyTorch's
            padding ``p`` is ``dilation * (length - 1) - p`` here.
    Returns: An array (batch, ..., outputs).

    Raises:
        ArgumentError: If there is not one number for every axis of the kernel.
        ShapeError: If features do not match, or there are too few axes.
    Example: fg.nn.conv_transpose(np.ones((8, 7, 7, 16)), np.ones((3, 3, 16, 4)), strides=2).shape
        -> (8, 14, 14, 4)
    """
    return conv_transpose_of("nn.conv_transpose", x, kernel, bias, strides, padding, dilation)


def conv_transpose_of(
    name: str,
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None,
    strides: int | Sequence[int],
    padding: Padding,
    dilation: int | Sequence[int],
) -> Array:
    """`conv_transpose` under the name of a function or a layer."""
    x, kernel = as_value(x, name), as_value(kernel, name)
    count = _window_axes(name, x, kernel)
    check_features(name, x, kernel, count + 2)
    x, kernel, *rest = floating(name, x, kernel, *([] if bias is None else [bias]))
    batch, inputs = _one_batch(x, count)
    y = lax.conv_transpose(
        inputs,
        kernel,
        per_axis(name, "strides", strides, count),
        pads_of(name, padding, count),
        per_axis(name, "dilation", dilation, count),
        _layout(count),
    )
    y = reshape(y, (*batch, *shape_of(y)[1:])) if len(batch) != 1 else y
    return y + rest[0] if rest else y


def checked_mode(name: str, mode: str) -> str:
    """NumPy's word for a mode of padding."""
    if mode not in _MODES:
        raise located(
            ArgumentError,
            f"{name}: padding_mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}.",
        )
    return _MODES[mode]


def _border(
    name: str, padding: Padding, padding_mode: str, spans: Sequence[int]
) -> tuple[str | Sequence[tuple[int, int]], str]:
    """The padding as `lax` takes it, and NumPy's word for its mode, for windows of these spans."""
    mode = checked_mode(name, padding_mode)
    word = padding.upper() if isinstance(padding, str) else ""
    if word in _MODES_OF_PADDING:
        if mode not in ("constant", _MODES_OF_PADDING[word]):
            raise located(
                ArgumentError,
                f"{name}: padding {padding!r} is a mode itself, got also padding_mode="
                f"{padding_mode!r}.",
            )
        return [((n - 1) // 2, n // 2) for n in spans], _MODES_OF_PADDING[word]
    if word == "CAUSAL":
        if len(spans) != 1:
            raise located(
                ArgumentError,
                f"{name}: padding 'CAUSAL' is for kernels of one axis, not {len(spans)}.",
            )
        return [(spans[0] - 1, 0)], mode
    return pads_of(name, padding, len(spans)), mode


def _window_axes(name: str, x: Array, kernel: Array) -> int:
    """Along how many axes a kernel slides."""
    count = len(shape_of(kernel)) - 2
    if count < 1 or len(shape_of(x)) <= count:
        raise located(
            ShapeError,
            f"{name}: the input needs the {max(count, 0)} axes along which the kernel "
            f"{aval_of(kernel)} slides, and one of features, got {aval_of(x)}."
            if count > 0
            else f"{name}: the kernel needs axes along which it slides, one of inputs and one "
            f"of outputs, got {aval_of(kernel)}.",
        )
    return count


def _one_batch(x: Array, count: int) -> tuple[tuple[int, ...], Array]:
    """The batch axes, and the array with one instead of them."""
    shape = shape_of(x)
    batch = shape[: len(shape) - count - 1]
    return batch, x if len(batch) == 1 else reshape(x, (math.prod(batch), *shape[len(batch) :]))


def _layout(count: int) -> tuple[str, str, str]:
    letters = "".join(chr(ord("a") + i) for i in range(count))
    return f"N{letters}C", f"{letters}IO", f"N{letters}C"


__all__ = ["conv", "conv_transpose", "dense", "embed"]


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: Any = np.float32,
) -> Array:
    """Products of matrices that are multiplied by scales, one for each block of a row.

    Args:
        lhs: Matrices, ``(batch, m, k)``.
        rhs: Matrices, ``(batch, n, k)``: both are summed over their last axis.
        lhs_scales: Scales, ``(batch, m, parts)``, where ``parts`` divides ``k``.
        rhs_scales: Scales, ``(batch, n, parts)``, of as many parts or others.
        preferred_element_type: Dtype in which products are formed and returned.
    Returns: An array ``(batch, m, n)``.
    Raises: ShapeError: If the shapes do not fit.

    Example:
        >>> x, scales = np.ones((1, 1, 4)), np.array([[[1.0, 2.0]]])
        >>> print(fg.nn.scaled_matmul(x, x, scales, scales))
        [[[10.]]]
    """
    numbers = ((2,), (2,)), ((0,), (0,))
    return lax.scaled_dot(
        lhs,
        rhs,
        lhs_scale=lhs_scales,
        rhs_scale=rhs_scales,
        dimension_numbers=numbers,
        preferred_element_type=preferred_element_type,
    )
