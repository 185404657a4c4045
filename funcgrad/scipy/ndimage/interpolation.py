"""Arrays at places between their elements: any places, and grids that are moved, rotated or scaled.

Splines of orders 0 to 5, which are differentiable in the array and in the places. At elements,
splines of order 1 have a kink: their derivative there is that of the right side.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import along, extended, floating
from funcgrad.scipy.ndimage import splines
from funcgrad.scipy.ndimage.filters import cast, per_axis, summand

__all__ = ["affine_transform", "map_coordinates", "rotate", "shift", "zoom"]

_PADDING = 12
"""Elements before and behind, where a mode has no spline of its own: as many as SciPy takes."""


def _prepared(
    name: str, x: Any, order: int, mode: str, cval: Any, prefilter: bool
) -> tuple[Any, int]:
    """Coefficients, and by how many elements they go beyond the array."""
    if not prefilter or order < 2:
        return x, 0
    extension = splines.extension_of(name, mode)
    padding = _PADDING if mode in ("nearest", "grid-constant") else 0
    for axis in range(len(shape_of(x))):
        if padding:
            x = extended(x, axis, padding, padding, mode, cval)
    for axis in range(len(shape_of(x))):
        x = splines.coefficients(x, axis, order, extension)
    return x, padding


class _Place:
    """Places along an axis: neighbouring elements, their weights, and a mask of those outside."""

    def __init__(self, c: Any, n: int, order: int, mode: str, extension: str) -> None:
        self.outside: Any = None
        if mode == "constant":
            self.outside = (c < 0) | (c > n - 1)
        elif mode == "wrap":
            c = fnp.where((c < 0) | (c > n - 1), c % max(n - 1, 1), c)
        base = fnp.floor(c if order % 2 else c + 0.5)
        self.weights = splines.weights_at(c - base if order % 2 else c - base + 0.5, order)
        first = fnp.astype(base, np.int64) - order // 2
        self.indices, self.beyond = [], []
        for k in range(order + 1):
            index = first + k
            self.beyond.append((index < 0) | (index >= n) if mode == "grid-constant" else None)
            is_nearest = mode == "nearest"
            self.indices.append(
                fnp.clip(index, 0, n - 1) if is_nearest else splines.within(index, n, extension)
            )


def _at_places(x: Any, places: Sequence[Any], order: int, mode: str, cval: Any, name: str) -> Any:
    """Splines with these coefficients at places, one array of coordinates for each axis."""
    extension = splines.extension_of(name, mode)
    rows = [_Place(c, n, order, mode, extension) for c, n in zip(places, shape_of(x), strict=True)]
    out: Any = 0
    for taps in itertools.product(range(order + 1), repeat=len(rows)):
        found = fnp.at(x)[tuple(r.indices[k] for r, k in zip(rows, taps, strict=True))]
        value = found.get(mode="clip")
        for row, k in zip(rows, taps, strict=True):
            if row.beyond[k] is not None:
                value = fnp.where(row.beyond[k], cval, value)
        for row, k in zip(rows, taps, strict=True):
            value = value * row.weights[k]
        out = out + value
    for row in rows:
        if row.outside is not None:
            out = fnp.where(row.outside, cval, out)
    return out


def _along_axes(x: Any, places: Sequence[Any], order: int, mode: str, cval: Any, name: str) -> Any:
    """Splines at a grid: one vector of coordinates for each axis."""
    extension = splines.extension_of(name, mode)
    masks = []
    ndim = len(places)
    for axis, c in enumerate(places):
        row = _Place(c, shape_of(x)[axis], order, mode, extension)
        out: Any = 0
        column = [-1 if i == axis else 1 for i in range(ndim)]
        for index, weights, beyond in zip(row.indices, row.weights, row.beyond, strict=True):
            value = fnp.take(x, index, axis=axis, mode="clip")
            if beyond is not None:
                value = fnp.where(fnp.reshape(beyond, column), cval, value)
            out = out + value * fnp.reshape(weights, column)
        x = out
        if row.outside is not None:
            masks.append(fnp.reshape(row.outside, column))
    for mask in masks:
        x = fnp.where(mask, cval, x)
    return x


def _coordinates(name: str, x: Any, *values: Any) -> list[Any]:
    """Values in the precision of ``x``."""
    real = np.empty(0, aval_of(x).dtype).real.dtype
    return [fnp.astype(v, real) for v in floating(name, *values)]


def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """Values at any places of a spline through an array, as `scipy.ndimage.map_coordinates`.

    Args:
        coordinates: Places, one array of coordinates (or a row of one) for each axis of ``input``.
        output: The dtype of the result; that of ``input`` by default. An integer is taken as the
            order, which is JAX's third argument.
        order: Order of the spline, 0 to 5; 0 for the nearest element, 1 for linear interpolation.
        mode: What stands beyond the ends: "constant", "nearest", "mirror", "reflect", "wrap",
            "grid-constant", "grid-mirror" or "grid-wrap", as in SciPy.
        prefilter: Whether the spline goes through the elements; otherwise they are its
            coefficients.
    Returns: Values, in the shape of one array of coordinates. They are differentiable in ``input``,
        ``coordinates`` and ``cval``.

    Raises:
        ArgumentError: If the order or the mode is another one.
        ShapeError: If there is not one array of coordinates for each axis.

    Example:
        >>> x = np.arange(6.0).reshape(2, 3)
        >>> print(fg.scipy.ndimage.map_coordinates(x, np.array([[0.5, 1.0], [0.5, 2.0]]), order=1))
        [2. 5.]
    """
    name = "map_coordinates"
    if isinstance(output, int) and not isinstance(output, bool):
        output, order = None, output
    order = splines.check_order(name, order)
    x, dtype = summand(name, input, output)
    places = [as_value(c, name) for c in coordinates]
    if len(places) != len(shape_of(x)) or not places:
        raise ShapeError(
            f"{name}: there must be one array of coordinates for each axis of {aval_of(x)}, got "
            f"{len(places)}."
        )
    places = fnp.broadcast_arrays(*_coordinates(name, x, *places))
    found, padding = _prepared(name, x, order, mode, cval, prefilter)
    places = [c + padding for c in places]
    out = _at_places(found, places, order, mode, cval, name)
    return cast(_rounded(out, dtype), dtype)


def _rounded(x: Any, dtype: np.dtype[Any]) -> Any:
    """Round values that become integers."""
    return fnp.trunc(x + fnp.copysign(0.5, x)) if dtype.kind in "iu" else x


def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """Array that is moved along its axes, as `scipy.ndimage.shift`.

    Args:
        shift: By how many elements, one number or one for each axis; it may be traced.
        order: As in `map_coordinates`.
        prefilter: As in `map_coordinates`.
    Returns: An array like ``input``.
    Example: print(fg.scipy.ndimage.shift(np.array([1.0, 2.0, 4.0]), 0.5, order=1)) -> [0.  1.5 3. ]
    """
    order = splines.check_order("shift", order)
    x, dtype = summand("shift", input, output)
    (steps,) = _coordinates("shift", x, shift)
    steps = fnp.broadcast_to(steps, (len(shape_of(x)),))
    found, padding = _prepared("shift", x, order, mode, cval, prefilter)
    places = [np.arange(n) - steps[i] + padding for i, n in enumerate(shape_of(x))]
    return cast(_rounded(_along_axes(found, places, order, mode, cval, "shift"), dtype), dtype)


def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """Array with more or fewer elements, as `scipy.ndimage.zoom`.

    Args:
        zoom: Known factor of lengths, one or one for each axis.
        order: As in `map_coordinates`.
        prefilter: As in `map_coordinates`.
        grid_mode: Whether distances are measured from the borders of elements, not their middles.
    Returns: An array of lengths ``round(n * zoom)``.
    Example: print(fg.scipy.ndimage.zoom(np.array([1.0, 3.0]), 2.0, order=1, mode="nearest"))
        -> [1.         1.66666667 2.33333333 3.        ]
    """
    order = splines.check_order("zoom", order)
    x, dtype = summand("zoom", input, output)
    factors = [float(z) for z in per_axis("zoom", "zoom", zoom, len(shape_of(x)))]
    lengths = [round(n * z) for n, z in zip(shape_of(x), factors, strict=True)]
    if prefilter and all(z == 1 for z in factors):
        return cast(x, dtype)
    found, padding = _prepared("zoom", x, order, mode, cval, prefilter)
    places = []
    for n, m in zip(shape_of(x), lengths, strict=True):
        top, bottom = (n, m) if grid_mode else (n - 1, m - 1)
        ratio = top / bottom if bottom else 1.0
        k = np.arange(m)
        c = (k + 0.5) * ratio - 0.5 if grid_mode else k * ratio
        places.append((c + padding).astype(np.empty(0, aval_of(x).dtype).real.dtype))
    return cast(_rounded(_along_axes(found, places, order, mode, cval, "zoom"), dtype), dtype)


def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Sequence[int] | None = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """Array under an affine map of its places, as `scipy.ndimage.affine_transform`.

    Args:
        matrix: Matrix; vector, for a diagonal one; or with one more column (and row), which is the
            offset. It may be traced.
        offset: Vector or number, which may be traced.
        output_shape: Shape of the result; that of ``input`` by default.
        order: As in `map_coordinates`.
        prefilter: As in `map_coordinates`.
    Returns: An array of the shape ``output_shape``.
    Raises: ShapeError: If the matrix does not fit.
    Example: print(fg.scipy.ndimage.affine_transform(np.array([1.0, 2.0, 4.0]), [0.5], order=1))
        -> [1.  1.5 2. ]
    """
    name = "affine_transform"
    order = splines.check_order(name, order)
    x, dtype = summand(name, input, output)
    shape = shape_of(x) if output_shape is None else tuple(int(n) for n in output_shape)
    n = len(shape_of(x))
    matrix, offset = _coordinates(name, x, matrix, offset)
    got = shape_of(matrix)
    if got in ((n, n + 1), (n + 1, n + 1)) and len(shape) == n:
        matrix, offset = matrix[:n, :n], matrix[:n, n]
    if shape_of(matrix) not in ((n,), (n, len(shape))):
        raise ShapeError(
            f"{name}: matrix {aval_of(matrix)} does not go from {len(shape)} axes to those of "
            f"{aval_of(x)}."
        )
    offset = fnp.broadcast_to(offset, (n,))
    found, padding = _prepared(name, x, order, mode, cval, prefilter)
    if len(shape_of(matrix)) == 1:
        places = [np.arange(m) * matrix[i] + (offset[i] + padding) for i, m in enumerate(shape)]
        out = _along_axes(found, places, order, mode, cval, name)
    else:
        places = []
        for i in range(n):
            c: Any = offset[i] + padding
            for j, m in enumerate(shape):
                c = c + matrix[i, j] * along(np.arange(m), j, len(shape))
            places.append(fnp.broadcast_to(c, shape))
        out = _at_places(found, places, order, mode, cval, name)
    return cast(_rounded(out, dtype), dtype)


def rotate(
    input: Any,
    angle: Any,
    axes: Sequence[int] = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """Array that is rotated in the plane of two axes, as `scipy.ndimage.rotate`.

    Args:
        input: Array of at least two axes.
        angle: Degrees; it may be traced where ``reshape`` is False.
        axes: The plane.
        reshape: Whether the result is large enough to hold all of the input.
        order: As in `map_coordinates`.
        prefilter: As in `map_coordinates`.
    Returns: The rotated array.
    Raises: ArgumentError: If there are not two axes.
    Example: fg.scipy.ndimage.rotate(np.array([[1.0, 2.0], [3.0, 4.0]]), 90.0)
        -> array([[2., 4.],
                  [1., 3.]])
    """
    name = "rotate"
    order = splines.check_order(name, order)
    x, dtype = summand(name, input, output)
    ndim = len(shape_of(x))
    plane = sorted({int(a) % ndim if ndim else 0 for a in axes})
    if ndim < 2 or len(plane) != 2 or len(list(axes)) != 2:
        raise ArgumentError(f"{name} needs two different axes, got {tuple(axes)} of {aval_of(x)}.")
    if reshape:
        cos, sin = _circle(float(angle))
        rotation = np.array([[cos, sin], [-sin, cos]])
        rows, columns = (shape_of(x)[a] for a in plane)
        corners = rotation @ [[0, 0, rows, rows], [0, columns, 0, columns]]
        lengths = [int(v) for v in np.ptp(corners, axis=1) + 0.5]
    else:
        lengths = [shape_of(x)[a] for a in plane]
    if isinstance(angle, int | float):
        cos, sin = _circle(float(angle))
    else:
        (turn,) = _coordinates(name, x, angle)
        cos, sin = fnp.cos(turn * (np.pi / 180)), fnp.sin(turn * (np.pi / 180))
    matrix = fnp.stack([fnp.stack([cos, sin]), fnp.stack([-sin, cos])])
    middle = np.array([(shape_of(x)[a] - 1) / 2 for a in plane])
    offset = middle - matrix @ ((np.array(lengths) - 1) / 2)
    lines = fnp.moveaxis(x, plane, (-2, -1))
    flat = fnp.reshape(lines, (-1, *shape_of(lines)[-2:]))
    rotated = [
        affine_transform(flat[i], matrix, offset, lengths, None, order, mode, cval, prefilter)
        for i in range(shape_of(flat)[0])
    ]
    out = fnp.reshape(fnp.stack(rotated), (*shape_of(lines)[:-2], *lengths))
    out = fnp.moveaxis(out, (-2, -1), plane)
    return cast(_rounded(out, dtype), dtype)


def _circle(angle: float) -> tuple[float, float]:
    """Cosine and sine of degrees, exact at multiples of 90."""
    quarter, rest = divmod(angle, 90.0)
    cos, sin = float(np.cos(np.deg2rad(rest))), float(np.sin(np.deg2rad(rest)))
    for _ in range(int(quarter) % 4):
        cos, sin = -sin, cos
    return cos, sin
