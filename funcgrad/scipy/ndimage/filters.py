"""Filters that weigh neighbours: any weights, Gaussian and uniform ones, and differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import FLOAT64, is_complex, is_inexact
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value, normalize_axis, promote, strong
from funcgrad.numpy.reducing import safe_sqrt
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import line_axis
from funcgrad.scipy.neighbourhoods import weighted

__all__ = [
    "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
    "gaussian_gradient_magnitude", "gaussian_laplace", "generic_gradient_magnitude",
    "generic_laplace", "laplace", "prewitt", "sobel", "uniform_filter", "uniform_filter1d",
]  # fmt: skip


def output_dtype(function: str, x: Any, output: Any) -> np.dtype[Any]:
    """The dtype of a result: that of the argument, or the one that ``output`` asks for."""
    if output is None:
        return aval_of(x).dtype
    try:
        return np.dtype(output)
    except TypeError:
        raise ArgumentError(
            f"{function}: output must be a dtype or None; results are new arrays."
        ) from None


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """A value as one of ``dtype``; complex ones as the complex dtype of that precision."""
    if aval_of(x).dtype.kind == "c":
        dtype = np.promote_types(dtype, np.complex64)
    return convert(x, dtype)


def per_axis(function: str, what: str, value: Any, count: int) -> list[Any]:
    """One value for each of ``count`` axes."""
    if isinstance(value, str) or not np.iterable(value):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise ShapeError(
            f"{function}: {what} must be one or {count}, one per axis, got {len(values)}."
        )
    return values


def chosen_axes(function: str, x: Any, axes: Any) -> list[int]:
    """Non-negative axes for a number, a sequence, or None (all)."""
    ndim = len(shape_of(x))
    if axes is None:
        return list(range(ndim))
    return [normalize_axis(a, ndim, function) for a in (axes if np.iterable(axes) else (axes,))]


def summand(function: str, input: Any, output: Any) -> tuple[Any, np.dtype[Any]]:
    """A floating or complex value, and the dtype of the result."""
    x = strong(as_value(input, function))
    dtype = output_dtype(function, x, output)
    return (x if is_inexact(aval_of(x).dtype) else convert(x, FLOAT64)), dtype


def _sums(
    function: str,
    input: Any,
    weights: Any,
    axes: Sequence[int],
    output: Any,
    modes: Sequence[str],
    cval: Any,
    origins: Sequence[int],
    is_flipped: bool,
) -> Any:
    x, dtype = summand(function, input, output)
    if np.iscomplexobj(cval) and not is_complex(aval_of(x).dtype):
        raise ArgumentError(f"{function}: cval must be real beside {aval_of(x)}, got {cval}.")
    x, w = map(strong, promote(x, as_value(weights, function)))
    if len(shape_of(w)) != len(axes):
        raise ShapeError(
            f"{function}: weights must have one axis for each of the {len(axes)} axes that are "
            f"filtered, got {aval_of(w)}."
        )
    if 0 in shape_of(w):
        raise ShapeError(f"{function}: there are no weights, got {aval_of(w)}.")
    if is_flipped:
        w = fnp.flip(w)
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, shape_of(w), strict=True)]
    elif is_complex(aval_of(w).dtype):
        w = fnp.conj(w)
    return cast(weighted(function, x, w, axes, origins, modes, cval), dtype)


def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """Weighted sums of neighbours along one axis, as `scipy.ndimage.correlate1d`.

    Args:
        weights: Vector of weights, which may be traced; of complex ones the conjugate is taken.
        mode: What stands beyond the ends: "reflect" (d c b a | a b c d), "mirror" (d c b | a b c
            d), "nearest", "wrap" or "constant", and those with "grid-".
    Returns: An array like ``input``; complex if either is, whatever ``output`` is.

    Raises:
        ArgumentError: If the mode or the origin is impossible, or ``cval`` is complex and ``input``
            is not.
        ShapeError: If weights are no vector.
    Example: print(fg.scipy.ndimage.correlate1d(np.array([1.0, 2.0, 4.0]), [1.0, 0.0, -1.0]))
        -> [-1. -3. -2.]
    """
    axes = [line_axis(as_value(input, "correlate1d"), axis, "correlate1d")]
    return _sums("correlate1d", input, weights, axes, output, [mode], cval, [origin], False)


def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """`correlate1d` with the weights backwards, as `scipy.ndimage.convolve1d`.

    Args: weights: Weights of the neighbours.
    Example: fg.scipy.ndimage.convolve1d(np.array([1.0, 2.0, 9.0, 4.0]), np.array([1.0, 0.0, -1.0]))
        -> array([ 1.,  8.,  2., -5.])
    """
    axes = [line_axis(as_value(input, "convolve1d"), axis, "convolve1d")]
    return _sums("convolve1d", input, weights, axes, output, [mode], cval, [origin], True)


def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Weighted sums of neighbours, as `scipy.ndimage.correlate`.

    Args: weights: Array of weights, one axis for each of ``axes``; it may be traced. Of complex
            ones the conjugate is taken.
    Returns: An array like ``input``; complex if either is, whatever ``output`` is.

    Raises:
        ArgumentError: If a mode or an origin is impossible, or ``cval`` is complex and ``input`` is
            not.
        ShapeError: If axes do not fit.
    Example: fg.scipy.ndimage.correlate(np.array([1.0, 2.0, 9.0, 4.0]), np.array([1.0, 0.0, -1.0]))
        -> array([-1., -8., -2.,  5.])
    """
    return _along("correlate", input, weights, output, mode, cval, origin, axes, False)


def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """`correlate` with the weights backwards along every axis, as `scipy.ndimage.convolve`.

    Args: weights: Weights of the neighbours.
    Example: fg.scipy.ndimage.convolve(np.array([1.0, 2.0, 9.0, 4.0]), np.array([1.0, 0.0, -1.0]))
        -> array([ 1.,  8.,  2., -5.])
    """
    return _along("convolve", input, weights, output, mode, cval, origin, axes, True)


def _along(
    name: str,
    input: Any,
    weights: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
    is_flipped: bool,
) -> Any:
    indices = chosen_axes(name, as_value(input, name), axes)
    modes = per_axis(name, "mode", mode, len(indices))
    origins = per_axis(name, "origin", origin, len(indices))
    return _sums(name, input, weights, indices, output, modes, cval, origins, is_flipped)


# Gaussian and uniform weights.


def _gaussian(sigma: Any, order: int, radius: int, dtype: Any) -> Any:
    """A derivative of a Gaussian at integers, for a correlation."""
    x = np.arange(-radius, radius + 1).astype(dtype)
    scale = 1 / (sigma * sigma)
    bell = np.exp(-0.5 * scale * x * x)
    bell = bell / np.sum(bell)
    # Derivatives are polynomials times the bell: q becomes q' - x q / sigma**2.
    q: list[Any] = [1.0]
    for _ in range(order):
        derivative = [k * c for k, c in enumerate(q)][1:]
        product = [0.0, *(-scale * c for c in q)]
        q = [c + d for c, d in zip(product, [*derivative, 0.0, 0.0], strict=False)]
    polynomial: Any = 0.0
    for c in reversed(q):
        polynomial = polynomial * x + c
    # From the far end: sums run against the direction of the axis.
    return np.flip(polynomial * bell)


def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Any:
    """Gaussian mean of neighbours, or its derivatives, as `scipy.ndimage.gaussian_filter1d`.

    Args:
        sigma: Standard deviation; it may be traced where ``radius`` is given.
        order: Which derivative.
    Returns: An array like ``input``.
    Raises: ArgumentError: If ``order`` or ``radius`` is negative.
    Example: print(np.round(fg.scipy.ndimage.gaussian_filter1d(np.eye(1, 5, 2)[0], 1.0), 3))
        -> [0.058 0.242 0.399 0.242 0.058]
    """
    reach = int(truncate * float(sigma) + 0.5) if radius is None else int(radius)
    if reach < 0 or order < 0:
        raise ArgumentError(
            f"gaussian_filter1d: order and radius must not be negative, got {order} and {reach}."
        )
    x, dtype = summand("gaussian_filter1d", input, output)
    weights = _gaussian(sigma, int(order), reach, np.empty(0, aval_of(x).dtype).real.dtype)
    return cast(correlate1d(x, weights, axis, None, mode, cval), dtype)


def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """`gaussian_filter1d` along several axes, as `scipy.ndimage.gaussian_filter`.

    Args: order: Which derivatives, likewise.
    Returns: An array like ``input``.
    Example: print(np.round(fg.scipy.ndimage.gaussian_filter(np.eye(3), 0.5), 3))
        -> [[0.809 0.179 0.012]
            [0.179 0.641 0.179]
            [0.012 0.179 0.809]]
    """
    name = "gaussian_filter"
    x, dtype = summand(name, input, output)
    indices = chosen_axes(name, x, axes)
    n = len(indices)
    rows = [per_axis(name, w, v, n) for w, v in (("sigma", sigma), ("order", order))]
    rows += [per_axis(name, w, v, n) for w, v in (("mode", mode), ("radius", radius))]
    for axis, deviation, k, kind, reach in zip(indices, *rows, strict=True):
        if reach is not None or float(deviation) > 1e-15:
            # Integers are those of every step, as in SciPy.
            x = gaussian_filter1d(x, deviation, axis, k, dtype, kind, cval, truncate, radius=reach)
    return cast(x, dtype)


def uniform_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """Means of ``size`` neighbours along an axis, as `scipy.ndimage.uniform_filter1d`.

    Example: fg.scipy.ndimage.uniform_filter1d(np.array([1.0, 2.0, 9.0, 4.0]), 3)
        -> array([1.33333333, 4.        , 5.        , 5.66666667])
    """
    if int(size) < 1:
        raise ArgumentError(f"uniform_filter1d: size must be positive, got {size}.")
    x, dtype = summand("uniform_filter1d", input, output)
    weights = np.full(int(size), 1 / int(size)).astype(np.empty(0, aval_of(x).dtype).real.dtype)
    return cast(correlate1d(x, weights, axis, None, mode, cval, origin), dtype)


def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Means of neighbours, as `scipy.ndimage.uniform_filter`.

    Returns: An array like ``input``.

    Example:
        >>> fg.scipy.ndimage.uniform_filter(
        ...     np.array([[1.0, 2.0, 3.0], [4.0, 9.0, 6.0], [7.0, 8.0, 5.0]]), size=3
        ... )
        array([[2.77777778, 3.44444444, 4.11111111],
               [4.77777778, 5.        , 5.22222222],
               [6.77777778, 6.55555556, 6.33333333]])
    """
    name = "uniform_filter"
    x, dtype = summand(name, input, output)
    indices = chosen_axes(name, x, axes)
    n = len(indices)
    rows = [per_axis(name, w, v, n) for w, v in (("size", size), ("mode", mode))]
    rows.append(per_axis(name, "origin", origin, n))
    for axis, length, kind, shift in zip(indices, *rows, strict=True):
        if int(length) > 1:
            x = uniform_filter1d(x, length, axis, dtype, kind, cval, shift)
    return cast(x, dtype)


# Differences.


def _difference(
    name: str, smoothing: Sequence[float], input: Any, axis: int, output: Any, mode: Any, cval: Any
) -> Any:
    x, dtype = summand(name, input, output)
    place = line_axis(x, axis, name)
    modes = per_axis(name, "mode", mode, len(shape_of(x)))
    x = correlate1d(x, [-1.0, 0.0, 1.0], place, None, modes[place], cval)
    for i, kind in enumerate(modes):
        if i != place:
            x = correlate1d(x, smoothing, i, None, kind, cval)
    return cast(x, dtype)


def prewitt(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Any:
    """Prewitt filter: differences along an axis, summed over neighbours.

    As `scipy.ndimage.prewitt`.

    Example: fg.scipy.ndimage.prewitt(np.array([[1.0, 2.0, 3.0], [4.0, 9.0, 6.0], [7.0, 8.0, 5.0]]))
        -> array([[ 7.,  6., -1.],
                  [ 7.,  2., -5.],
                  [ 7., -2., -9.]])
    """
    return _difference("prewitt", [1.0, 1.0, 1.0], input, axis, output, mode, cval)


def sobel(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Any:
    """Sobel filter: differences along an axis, smoothed along the others.

    As `scipy.ndimage.sobel`.

    Returns: An array like ``input``.
    Example: print(fg.scipy.ndimage.sobel(np.array([1.0, 2.0, 4.0]))) -> [1. 3. 2.]
    """
    return _difference("sobel", [1.0, 2.0, 1.0], input, axis, output, mode, cval)


def generic_laplace(
    input: Any,
    derivative2: Callable[..., Any],
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: Mapping[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Any:
    """Sum of second derivatives along all axes, as `scipy.ndimage.generic_laplace`.

    Args:
        derivative2: From ``(input, axis, output, mode, cval, *extra_arguments,
            **extra_keywords)``.
        extra_arguments: Passed on.
        extra_keywords: Passed on.
    Returns: An array like ``input``.

    Example:
        >>> fg.scipy.ndimage.generic_laplace(
        ...     np.array([1.0, 2.0, 9.0, 4.0]),
        ...     lambda x, axis, output, mode, cval: fg.scipy.ndimage.correlate1d(
        ...         x, np.array([1.0, -2.0, 1.0]), axis, output, mode, cval
        ...     ),
        ... )
        array([  1.,   6., -12.,   5.])
    """
    parts, x, dtype = _derivatives(
        "generic_laplace", input, derivative2, output, mode, cval, extra_arguments, extra_keywords,
        axes,
    )  # fmt: skip
    return cast(sum(parts[1:], parts[0]) if parts else x, dtype)


def generic_gradient_magnitude(
    input: Any,
    derivative: Callable[..., Any],
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: Mapping[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Any:
    """Length of the gradient, as `scipy.ndimage.generic_gradient_magnitude`.

    Arguments are those of `generic_laplace`, with a first derivative. Where the gradient is 0, the
    derivative of its length is 0.

    Args:
        derivative: Function that gives the derivative along one axis.
        extra_arguments: Further arguments of the function.
        extra_keywords: Further keywords of the function.

    Example:
        >>> fg.scipy.ndimage.generic_gradient_magnitude(
        ...     np.array([1.0, 2.0, 9.0, 4.0]), fg.scipy.ndimage.sobel
        ... )
        array([1., 8., 2., 5.])
    """
    parts, x, dtype = _derivatives(
        "generic_gradient_magnitude", input, derivative, output, mode, cval, extra_arguments,
        extra_keywords, axes,
    )  # fmt: skip
    if not parts:
        return cast(x, dtype)
    squares = [fnp.square(p) for p in parts]
    return cast(safe_sqrt(sum(squares[1:], squares[0])), dtype)


def _derivatives(
    name: str,
    input: Any,
    derivative: Callable[..., Any],
    output: Any,
    mode: Any,
    cval: Any,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any] | None,
    axes: Any,
) -> tuple[list[Any], Any, np.dtype[Any]]:
    x, dtype = summand(name, input, output)
    indices = chosen_axes(name, x, axes)
    modes = per_axis(name, "mode", mode, len(indices))
    parts = [
        derivative(x, axis, None, kind, cval, *arguments, **(keywords or {}))
        for axis, kind in zip(indices, modes, strict=True)
    ]
    return parts, x, dtype


def laplace(
    input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Any:
    """Sum of second differences along all axes, as `scipy.ndimage.laplace`.

    Example: print(fg.scipy.ndimage.laplace(np.array([1.0, 2.0, 4.0]))) -> [ 1.  1. -2.]
    """

    def second(x: Any, axis: int, output: Any, mode: str, cval: Any) -> Any:
        return correlate1d(x, [1.0, -2.0, 1.0], axis, output, mode, cval)

    return generic_laplace(input, second, output, mode, cval, axes=axes)


def _of_gaussians(
    generic: Callable[..., Any],
    order: int,
    input: Any,
    sigma: Any,
    output: Any,
    mode: Any,
    cval: Any,
    axes: Any,
    keywords: Mapping[str, Any],
) -> Any:
    indices = chosen_axes("gaussian_laplace", as_value(input, "gaussian_laplace"), axes)
    deviations = per_axis("gaussian_laplace", "sigma", sigma, len(indices))

    def derivative(x: Any, axis: int, output: Any, mode: str, cval: Any) -> Any:
        orders = [order if i == axis else 0 for i in indices]
        return gaussian_filter(x, deviations, orders, output, mode, cval, axes=indices, **keywords)

    return generic(input, derivative, output, mode, cval, axes=axes)


def gaussian_laplace(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """Sum of second derivatives of a Gaussian mean, as `scipy.ndimage.gaussian_laplace`.

    Arguments are those of `gaussian_filter`.

    Example: fg.scipy.ndimage.gaussian_laplace(np.array([1.0, 2.0, 9.0, 4.0]), 1.0)
        -> array([ 1.85973702,  0.2608436 , -2.41804555,  0.29631293])
    """
    return _of_gaussians(generic_laplace, 2, input, sigma, output, mode, cval, axes, kwargs)


def gaussian_gradient_magnitude(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """Length of a Gaussian mean's gradient, as `scipy.ndimage.gaussian_gradient_magnitude`.

    Arguments are those of `gaussian_filter`. Where it is 0, its derivative is 0.

    Example: fg.scipy.ndimage.gaussian_gradient_magnitude(np.array([1.0, 2.0, 9.0, 4.0]), 1.0)
        -> array([0.93136931, 2.2863095 , 0.91425433, 0.44068586])
    """
    generic = generic_gradient_magnitude
    return _of_gaussians(generic, 1, input, sigma, output, mode, cval, axes, kwargs)
