"""Normalisation with learned scale and bias: of rows, of groups of features, of batches.

All subtract the mean before they square, so that a large mean costs no digits, and divide by
``sqrt(variance + epsilon)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.lax.collectives import AxisName
from funcgrad.nn.normalization import standardize
from funcgrad.numpy.promotion import normalize_axes, to_dtype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import reshape, shape_of
from funcgrad.scipy.exponentials import Axis, floating, fold_sum

Array = Any
ArrayLike = Any
Bessel = Literal["never", "running", "always"]
"""Variances of a batch that are divided by ``n - 1`` instead of ``n``."""


def layer_norm(
    x: ArrayLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    axis: Axis = -1,
    epsilon: float = 1e-5,
) -> Array:
    """``(x - mean) / sqrt(variance + epsilon) * scale + bias`` of every row.

    Args:
        scale: Array of the lengths of ``axis``.
        bias: Array of the lengths of ``axis``.
    Returns: An array of the shape of ``x``.
    Raises: ShapeError: If scale or bias do not have the lengths of the axes.

    Source:
        Ba, Kiros and Hinton, arXiv:1607.06450.
    Example: print(fg.nn.layer_norm(np.array([1.0, 3.0]), bias=np.ones(2), epsilon=0.0)) -> [0. 2.]
    """
    return layer_norm_of("nn.layer_norm", x, scale, bias, axis, epsilon)


def layer_norm_of(
    name: str,
    x: ArrayLike,
    scale: ArrayLike | None,
    bias: ArrayLike | None,
    axis: Axis,
    epsilon: float,
) -> Array:
    """`layer_norm` under the name of a function or a layer."""
    x, scale, bias, axes = _operands(name, x, scale, bias, axis)
    return _affine(name, standardize(x, axes, epsilon=epsilon), scale, bias, axes)


def rms_norm(
    x: ArrayLike, scale: ArrayLike | None = None, *, axis: Axis = -1, epsilon: float = 1e-5
) -> Array:
    """``x / sqrt(mean(x**2) + epsilon) * scale`` of every row: `layer_norm` without the mean.

    Args: scale: Array of the lengths of ``axis``.
    Returns: An array of the shape of ``x``.
    Raises: ShapeError: If the scale does not have the lengths of the axes.

    Source:
        Zhang and Sennrich, arXiv:1910.07467.
    Example: print(fg.nn.rms_norm(np.array([3.0, 3.0]), epsilon=0.0)) -> [1. 1.]
    """
    return rms_norm_of("nn.rms_norm", x, scale, axis, epsilon)


def rms_norm_of(
    name: str, x: ArrayLike, scale: ArrayLike | None, axis: Axis, epsilon: float
) -> Array:
    """`rms_norm` under the name of a function or a layer."""
    x, scale, _, axes = _operands(name, x, scale, None, axis)
    squares = fold_sum(x * x, axes) / _count(x, axes)
    return _affine(name, x * p.rsqrt.bind(squares + epsilon), scale, None, axes)


def group_norm(
    x: ArrayLike,
    groups: int,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    epsilon: float = 1e-5,
) -> Array:
    """Every example normalised by groups of its features, over all places.

    Args:
        x: Array (batch, ..., features).
        groups: Into how many groups the features are divided: 1 normalises an example as a whole,
            as many as features every feature by itself.
        scale: Vector (features,).
        bias: Vector (features,).
    Returns: An array of the shape of ``x``.
    Raises: ShapeError: If the groups do not divide the features, or ``x`` has less than two axes.

    Source:
        Wu and He, arXiv:1803.08494.
    Example: print(fg.nn.group_norm(np.array([[1.0, 3.0, 5.0, 9.0]]), 2, epsilon=0.0))
        -> [[-1.  1. -1.  1.]]
    """
    return group_norm_of("nn.group_norm", x, groups, scale, bias, epsilon)


def group_norm_of(
    name: str,
    x: ArrayLike,
    groups: int,
    scale: ArrayLike | None,
    bias: ArrayLike | None,
    epsilon: float,
) -> Array:
    """`group_norm` under the name of a function or a layer."""
    x, scale, bias, axes = _operands(name, x, scale, bias, -1)
    shape = shape_of(x)
    if len(shape) < 2 or groups < 1 or shape[-1] % groups:
        raise located(
            ShapeError,
            f"{name}: the last axis of an input (batch, ..., features) must divide into "
            f"{groups} groups, got {aval_of(x)}.",
        )
    split = reshape(x, (*shape[:-1], groups, shape[-1] // groups))
    places = (*range(1, len(shape) - 1), len(shape))
    y = reshape(standardize(split, places, epsilon=epsilon), shape)
    return _affine(name, y, scale, bias, axes)


def batch_norm(
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    train: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    bessel: Bessel = "running",
    axis: int = -1,
    axis_name: AxisName | None = None,
) -> tuple[Array, tuple[Array, Array]]:
    """Every feature normalised over the batch, and the running statistics after it.

    In training mean and variance are those of the batch, and the running ones, which are returned,
    move towards them: ``momentum * running + (1 - momentum) * batch``. Otherwise the running
    ones are used, and returned as they are.

    The variance of ``n`` numbers is their mean square deviation, divided by ``n`` (biased), or with
    Bessel's correction by ``n - 1``. ``bessel`` says which variances are corrected: ``"running"``
    only that which enters the running statistics, as in PyTorch; ``"never"`` none, as in flax and
    TensorFlow; ``"always"`` also that which normalises.

    Args:
        x: Array (batch, ..., features).
        mean: Running mean (features,).
        variance: Running variance (features,).
        scale: Vector (features,).
        bias: Vector (features,).
        train: Whether the statistics are those of the batch.
        bessel: ``"never"``, ``"running"`` or ``"always"``.
        axis_name: Name of an axis of a surrounding `vmap`, or of processes, or a tuple of names:
            in training the batch is then that of all examples along it, each of which has a part.
    Returns: The normalised array, and the pair of running mean and variance, of the dtypes that
        they had.

    Raises:
        ArgumentError: If there is no such ``bessel``.
        AxisNameError: If no surrounding `vmap` has such an axis.
        ShapeError: If a vector does not have the length of the features, or a variance with
            Bessel's correction is to be taken of one number.

    Source:
        Ioffe and Szegedy, arXiv:1502.03167.

    Example:
        >>> x = np.array([[1.0], [3.0]])
        >>> y, (mean, variance) = fg.nn.batch_norm(x, np.zeros(1), np.ones(1), train=True)
        >>> print(y.ravel().round(3), mean, variance)
        [-1.  1.] [0.2] [1.1]

        Parts of a batch that share their statistics:

        >>> def shared(x):
        ...     return fg.nn.batch_norm(x, np.zeros(1), np.ones(1), train=True, axis_name="parts")
        >>> y, (mean, _) = fg.vmap(shared, axis_name="parts")(x[:, None])
        >>> print(y.ravel().round(3), mean.ravel())
        [-1.  1.] [0.2 0.2]
    """
    return batch_norm_of(
        "nn.batch_norm",
        x,
        (mean, variance),
        scale,
        bias,
        train,
        momentum,
        epsilon,
        checked_bessel("nn.batch_norm", bessel),
        axis,
        axis_name,
    )


def checked_bessel(name: str, bessel: str) -> str:
    """One of the three words."""
    if bessel not in ("never", "running", "always"):
        raise located(
            ArgumentError, f"{name}: bessel must be 'never', 'running' or 'always', got {bessel!r}."
        )
    return bessel


def batch_norm_of(
    name: str,
    x: ArrayLike,
    running: tuple[ArrayLike, ArrayLike],
    scale: ArrayLike | None,
    bias: ArrayLike | None,
    train: bool,
    momentum: float,
    epsilon: float,
    bessel: str,
    axis: int,
    axis_name: AxisName | None,
) -> tuple[Array, tuple[Array, Array]]:
    """`batch_norm` under the name of a function or a layer."""
    x, scale, bias, places = _operands(name, x, scale, bias, axis)
    dtype = aval_of(x).dtype
    old_mean, old_variance = (to_dtype(v, dtype) for v in running)
    if not train:
        centered = x - _along(name, "mean", old_mean, x, places)
        spread = _along(name, "variance", old_variance, x, places)
        y = centered * p.rsqrt.bind(spread + epsilon)
        return _affine(name, y, scale, bias, places), running
    axes = tuple(i for i in range(len(shape_of(x))) if i not in places)
    n = _count(x, axes) * (1 if axis_name is None else lax.axis_size(axis_name))
    if bessel != "never" and n < 2:
        raise located(
            ShapeError,
            f"{name}: {aval_of(x)} has {n} number(s) for every feature, of which no variance "
            "with Bessel's correction can be taken: use a larger batch, or bessel='never'.",
        )

    def total(v: Array) -> Array:
        sums = fold_sum(v, axes)
        return sums if axis_name is None else lax.psum(sums, axis_name)

    mean = total(x) / n
    centered = x - mean
    squares = total(centered * centered)
    variance = squares / (n - 1 if bessel == "always" else n)
    y = _affine(name, centered * p.rsqrt.bind(variance + epsilon), scale, bias, places)
    batch = (mean, variance if bessel == "never" else squares / (n - 1))
    return y, tuple(
        to_dtype(momentum * o + (1 - momentum) * reshape(b, shape_of(o)), aval_of(r).dtype)
        for o, b, r in zip((old_mean, old_variance), batch, running, strict=True)
    )


def _operands(
    name: str, x: ArrayLike, scale: ArrayLike | None, bias: ArrayLike | None, axis: Axis
) -> tuple[Array, Array | None, Array | None, tuple[int, ...]]:
    """All in one floating dtype, and the axes."""
    given = [v for v in (x, scale, bias) if v is not None]
    rest = iter(floating(name, *given))
    x, scale, bias = (None if v is None else next(rest) for v in (x, scale, bias))
    return x, scale, bias, normalize_axes(axis, len(shape_of(x)), name)


def _count(x: Array, axes: Sequence[int]) -> int:
    return math.prod(shape_of(x)[i] for i in axes)


def _affine(
    name: str, y: Array, scale: Array | None, bias: Array | None, axes: tuple[int, ...]
) -> Array:
    if scale is not None:
        y = y * _along(name, "scale", scale, y, axes)
    return y if bias is None else y + _along(name, "bias", bias, y, axes)


def _along(name: str, what: str, v: Array, x: Array, axes: tuple[int, ...]) -> Array:
    """An array of the lengths of some axes, in the place of these."""
    shape = shape_of(x)
    lengths = tuple(shape[i] for i in axes)
    if shape_of(v) != lengths:
        raise located(
            ShapeError,
            f"{name}: the {what} must have the shape {lengths} of the features of "
            f"{aval_of(x)}, got {aval_of(v)}.",
        )
    return reshape(v, tuple(n if i in axes else 1 for i, n in enumerate(shape)))


__all__ = ["batch_norm", "group_norm", "layer_norm", "rms_norm"]
