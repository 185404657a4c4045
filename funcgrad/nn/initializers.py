"""Initial weights: functions ``init(key, shape, dtype)``, with JAX's names and numbers.

For the same key, shape and dtype the numbers are JAX's, up to rounding. The dtype is float64 unless
one is given; JAX's is float32 in its 32-bit mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import random
from funcgrad.base.dialect import default_dtype
from funcgrad.base.placement import check_placement
from funcgrad.base.signatures import docstring
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import FLOAT64, real_dtype
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.numpy.creating import full
from funcgrad.numpy.promotion import as_value, checked_dtype, normalize_axis, to_dtype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.linalg import Qr
from funcgrad.primitives.matrices import matrix_transpose

Array = Any
Initializer = Callable[..., Array]
"""A function of a key, a shape and optionally a dtype."""

Axes = int | Sequence[int]
_INPUTS = -2
"""The axis of the inputs, unless another one is given."""

# Standard deviation of the standard normal distribution truncated to -2 .. 2:
# sqrt(1 - 4 phi(2) / (Phi(2) - Phi(-2))).
_TRUNCATED_STD = 0.87962566103423978


def zeros(key: Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros; the key is not used.

    Example: fg.nn.initializers.zeros(fg.random.key(0), (2,)) -> array([0., 0.])
    """
    check_placement("nn.initializers.zeros", out_sharding=out_sharding)
    return full(shape, 0, _dtype(dtype))


def ones(key: Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """An array of ones; the key is not used.

    Example: fg.nn.initializers.ones(fg.random.key(0), (2,)) -> array([1., 1.])
    """
    check_placement("nn.initializers.ones", out_sharding=out_sharding)
    return full(shape, 1, _dtype(dtype))


def _dtype(dtype: Any) -> np.dtype[Any]:
    return default_dtype(FLOAT64 if dtype is None else checked_dtype(dtype, "an initializer"))


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Every element ``value``.

    Args:
        value: A number, or an array that broadcasts to the shape of the weights.
        dtype: Dtype of the weights unless the initializer is given one; by default float64.
    Returns: An initializer.
    Example: print(fg.nn.initializers.constant(2)(fg.random.key(0), (2,), np.float32)) -> [2. 2.]
    """

    def init(key: Array, shape: Sequence[int], dtype: Any = dtype) -> Array:
        return full(shape, value, _dtype(dtype))

    return init


def _scaled(draw: Callable[..., Array], factor: Any, dtype: Any) -> Initializer:
    """An initializer that multiplies what ``draw(key, shape, dtype)`` gives."""

    def init(key: Array, shape: Sequence[int], dtype: Any = dtype) -> Array:
        wanted = _dtype(dtype)
        return p.mul.bind(draw(key, shape, wanted), to_dtype(as_value(factor), wanted))

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Numbers of ``[0, scale)``.

    Args:
        scale: Upper bound.
        dtype: Dtype of the weights unless the initializer is given one; by default float64.
    Returns: An initializer.
    Example: fg.nn.initializers.uniform()(fg.random.key(0), (3, 2))
        -> array([[0.00418457, 0.00216295],
                  [0.00965321, 0.00574501],
                  [0.00532226, 0.00354905]])
    """
    return _scaled(random.uniform, scale, dtype)


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Normal numbers of mean 0.

    Args: dtype: Dtype of the weights unless the initializer is given one; by default float64.
    Returns: An initializer.
    Example: fg.nn.initializers.normal()(fg.random.key(0), (3, 2))
        -> array([[-0.00205842, -0.00784766],
                  [ 0.01816087,  0.00187844],
                  [ 0.00080868, -0.00372111]])
    """
    return _scaled(random.normal, stddev, dtype)


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """Normal numbers of mean 0 that lie between bounds.

    Args:
        stddev: Standard deviation before truncation.
        dtype: Dtype of the weights unless the initializer is given one; by default float64.
        lower: Lower bound, in standard deviations.
        upper: Upper bound, in standard deviations.
    Returns: An initializer.
    Example: fg.nn.initializers.truncated_normal()(fg.random.key(0), (3, 2))
        -> array([[-0.00196352, -0.00741471],
                  [ 0.01590591,  0.00179203],
                  [ 0.00077181, -0.00354433]])
    """

    def draw(key: Array, shape: Sequence[int], dtype: Any) -> Array:
        return random.truncated_normal(key, lower, upper, shape, dtype)

    return _scaled(draw, stddev, dtype)


_MODES: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: math.sqrt(fan_in * fan_out),
}


def _fans(
    shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """Number of inputs and of outputs; axes that are not named count for both."""
    if len(shape) <= 1 and in_axis == _INPUTS:
        raise ShapeError(
            f"variance_scaling needs weights of two axes or more, for inputs and outputs, got "
            f"shape {tuple(shape)}. Use nn.initializers.normal or zeros, or say which axes count "
            "inputs and outputs: in_axis=(), out_axis=0."
        )
    inputs, outputs, batch = (_length(shape, axes) for axes in (in_axis, out_axis, batch_axis))
    window = math.prod(shape) / inputs / outputs / batch if math.prod(shape) else 0.0
    return inputs * window, outputs * window


def _length(shape: Sequence[int], axes: Axes) -> int:
    named = (axes,) if isinstance(axes, int) else tuple(axes)
    return math.prod(shape[normalize_axis(a, len(shape), "variance_scaling")] for a in named)


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = _INPUTS,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:
    """Weights of mean 0 and variance ``scale / n``, where ``n`` counts inputs or outputs.

    Args:
        scale: Positive factor.
        mode: What ``n`` is: ``"fan_in"`` (inputs), ``"fan_out"`` (outputs), ``"fan_avg"`` or
            ``"fan_geo_avg"`` (their arithmetic or geometric mean).
        distribution: ``"truncated_normal"`` (at two standard deviations), ``"normal"`` or
            ``"uniform"``; of complex numbers, uniform on a disk.
        in_axis: Axis or axes of the inputs.
        out_axis: Axis or axes of the outputs.
        batch_axis: Axis or axes that count for neither.
        dtype: Floating or complex dtype of the weights unless the initializer is given one; by
            default float64.
    Returns: An initializer.
    Raises: ArgumentError: If there is no such mode or distribution.

    Example:
        >>> init = fg.nn.initializers.variance_scaling(1.0, "fan_in", "normal")
        >>> weights = init(fg.random.key(0), (1000, 100))
        >>> print(bool(abs(weights.std() - 1000**-0.5) < 1e-3))
        True
    """
    if mode not in _MODES:
        raise ArgumentError(f"variance_scaling: mode {mode!r} is none of {', '.join(_MODES)}.")
    if distribution not in _DISTRIBUTIONS:
        raise ArgumentError(
            f"variance_scaling: distribution {distribution!r} is none of "
            f"{', '.join(_DISTRIBUTIONS)}."
        )

    def init(key: Array, shape: Sequence[int], dtype: Any = dtype) -> Array:
        wanted = _dtype(dtype)
        if wanted.kind not in "fc":
            raise DtypeError(f"variance_scaling needs a floating or complex dtype, got {wanted}.")
        n = _MODES[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        draw, factor = (_DISTRIBUTIONS if wanted.kind == "f" else _COMPLEX)[distribution]
        real = real_dtype(wanted)
        variance = to_dtype(as_value(scale / max(n, 1e-300)), real)
        deviation = p.sqrt.bind(p.mul.bind(variance, real.type(factor)))
        return p.mul.bind(draw(key, shape, wanted), p.convert(deviation, wanted))

    return init


def _symmetric(key: Array, shape: Sequence[int], dtype: Any) -> Array:
    return random.uniform(key, shape, dtype, -1.0, 1.0)


def _truncated(key: Array, shape: Sequence[int], dtype: Any) -> Array:
    return random.truncated_normal(key, -2.0, 2.0, shape, dtype)


def _isotropic(key: Array, shape: Sequence[int], dtype: Any, radius: Callable[..., Any]) -> Array:
    """Complex numbers of random directions, whose radii are a function of uniform numbers."""
    real = real_dtype(dtype)
    of_radius, of_angle = random.split(key)
    length = radius(random.uniform(of_radius, shape, real), real.type)
    angle = p.mul.bind(random.uniform(of_angle, shape, real), real.type(2 * np.pi))
    parts = (p.mul.bind(length, part.bind(angle)) for part in (p.cos, p.sin))
    return p.from_parts.bind(*parts)


def _on_disk(key: Array, shape: Sequence[int], dtype: Any) -> Array:
    return _isotropic(key, shape, dtype, lambda u, kind: p.sqrt.bind(u))


def _truncated_complex(key: Array, shape: Sequence[int], dtype: Any) -> Array:
    def radius(u: Any, kind: Any) -> Any:  # the inverse of Rayleigh's distribution function
        return p.sqrt.bind(p.neg.bind(p.log1p.bind(p.mul.bind(u, kind(math.expm1(-4.0))))))

    return _isotropic(key, shape, dtype, radius)


# Samplers by name, each with the reciprocal of its variance.
_DISTRIBUTIONS: dict[str, tuple[Callable[..., Array], float]] = {
    "truncated_normal": (_truncated, _TRUNCATED_STD**-2),
    "normal": (random.normal, 1.0),
    "uniform": (_symmetric, 3.0),
}
_COMPLEX: dict[str, tuple[Callable[..., Array], float]] = {
    # JAX's factor leaves the probability of numbers beyond 2 out: the variance is 1.9 % too large.
    "truncated_normal": (_truncated_complex, 1 / (1 - 5 * math.exp(-4.0))),
    "normal": (random.normal, 1.0),
    "uniform": (_on_disk, 2.0),
}


def _family(
    name: str, scale: float, mode: str, distribution: str, source: str, shown: str
) -> Initializer:
    """A public function that is `variance_scaling` with three arguments given."""

    def family(
        in_axis: Axes = _INPUTS, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    family.__name__ = family.__qualname__ = name
    family.__module__ = __name__
    meanings = {
        "in_axis": "Axes of the inputs.",
        "out_axis": "Axes of the outputs.",
        "batch_axis": "Axes that count neither as inputs nor as outputs.",
        "dtype": "Floating dtype of the weights unless the initializer is given one.",
    }
    draw = f"{name}()(fg.random.key(0), (200, 50)).std().round(4)"
    family.__doc__ = docstring(
        f'``variance_scaling({scale}, "{mode}", "{distribution}")`` ({source}).',
        meanings,
        f"fg.nn.initializers.{draw} -> {shown}",
        returns="An initializer: ``init(key, shape, dtype)`` returns an array.",
    )
    return family


_GLOROT = "Glorot and Bengio 2010"
_LECUN = "LeCun and others 1998"
_HE = "He and others 2015, arXiv:1502.01852"
glorot_uniform = _family("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT, "np.float64(0.0897)")
glorot_normal = _family(
    "glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT, "np.float64(0.09)"
)
lecun_uniform = _family("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN, "np.float64(0.0709)")
lecun_normal = _family(
    "lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN, "np.float64(0.0712)"
)
he_uniform = _family("he_uniform", 2.0, "fan_in", "uniform", _HE, "np.float64(0.1003)")
he_normal = _family("he_normal", 2.0, "fan_in", "truncated_normal", _HE, "np.float64(0.1006)")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Uniformly distributed matrices with orthonormal rows or columns, whichever are fewer.

    Args:
        scale: Factor.
        column_axis: Axis of the columns; all other axes together are the rows.
        dtype: Floating dtype of the weights unless the initializer is given one; by default
            float64.
    Returns: An initializer: Q of the QR decomposition of normal numbers, with the signs that make
        the diagonal of R positive (Mezzadri 2007, arXiv:math-ph/0609050).

    Example:
        >>> q = fg.nn.initializers.orthogonal()(fg.random.key(0), (5, 3))
        >>> print(np.allclose(q.T @ q, np.eye(3)))
        True
    """

    def init(key: Array, shape: Sequence[int], dtype: Any = dtype) -> Array:
        if len(shape) < 2:
            raise ShapeError(f"orthogonal needs two axes or more, got shape {tuple(shape)}.")
        wanted = _dtype(dtype)
        place = normalize_axis(column_axis, len(shape), "orthogonal")
        columns = shape[place]
        others = [n for i, n in enumerate(shape) if i != place]
        rows = math.prod(others)
        q = _orthonormal(random.normal(key, (max(rows, columns), min(rows, columns)), wanted))
        if rows < columns:
            q = matrix_transpose(q)
        # Columns in front, the rows unfolded, and the columns put in their place.
        q = s.reshape(s.moveaxis_to_front(q, 1), (columns, *others))
        return p.mul.bind(s.moveaxis_from_front(q, place), to_dtype(as_value(scale), wanted))

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Kernels of convolutions that pass on what they are given, rotated: zeros around one matrix.

    Args:
        scale: Factor.
        column_axis: Axis of the columns of the matrix, as in `orthogonal`.
        dtype: Floating dtype of the weights unless the initializer is given one; by default
            float64.
    Returns: An initializer for shapes (..., inputs, outputs) with one, two or three axes of a
        window, and not more inputs than outputs. The tap in the middle has orthonormal rows.

    Source:
        Xiao and others, arXiv:1806.05393.

    Example:
        >>> kernel = fg.nn.initializers.delta_orthogonal()(fg.random.key(0), (3, 2, 4))
        >>> print(np.allclose(kernel[1] @ kernel[1].T, np.eye(2)), kernel[[0, 2]].any())
        True False
    """

    def init(key: Array, shape: Sequence[int], dtype: Any = dtype) -> Array:
        if len(shape) not in (3, 4, 5) or shape[-2] > shape[-1]:
            raise ShapeError(
                "delta_orthogonal needs one to three axes of a window, inputs, and at least as "
                f"many outputs, got shape {tuple(shape)}."
            )
        matrix = orthogonal(scale, column_axis)(key, shape[-2:], _dtype(dtype))
        middle = np.zeros((*shape[:-2], 1, 1), bool)
        middle[tuple((n - 1) // 2 for n in shape[:-2])] = True
        is_middle, everywhere = (s.broadcast_to(x, tuple(shape)) for x in (middle, matrix))
        return p.select.bind(is_middle, everywhere, p.zero_of(matrix))

    return init


def _orthonormal(a: Array) -> Array:
    q, r = Qr().bind(a)
    k = s.shape_of(r)[-1]
    diagonal = s.ReduceSum((0,)).bind(p.mul.bind(r, np.eye(k, dtype=aval_of(r).dtype)))
    return p.mul.bind(q, p.sign.bind(diagonal))


__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip
