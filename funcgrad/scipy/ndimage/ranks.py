"""Filters that choose a neighbour, and the morphology of grey images that they make.

Derivatives are those of the neighbours that were chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.signatures import docstring
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value, promote, strong
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import line_axis
from funcgrad.scipy.ndimage.filters import cast, chosen_axes, output_dtype, per_axis
from funcgrad.scipy.neighbourhoods import extreme, neighbours, ranked

__all__ = [
    "black_tophat", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening",
    "maximum_filter", "maximum_filter1d", "median_filter", "minimum_filter", "minimum_filter1d",
    "morphological_gradient", "morphological_laplace", "percentile_filter", "rank_filter",
    "white_tophat",
]  # fmt: skip


def _footprint(name: str, x: Any, size: Any, footprint: Any, axes: list[int]) -> np.ndarray:
    """Footprint: mask of the neighbours that count, with an axis for every one of ``x``."""
    if footprint is None:
        if size is None:
            raise ArgumentError(f"{name} needs a size or a footprint.")
        sizes = [int(n) for n in per_axis(name, "size", size, len(axes))]
        mask = np.ones(sizes, bool)
    else:
        mask = np.asarray(footprint) != 0
        if mask.ndim != len(axes):
            raise ShapeError(
                f"{name}: footprint must have {len(axes)} axes, one for each that is filtered, got "
                f"{mask.ndim}."
            )
    shape = [1] * len(shape_of(x))
    for axis, n in zip(axes, mask.shape, strict=True):
        shape[axis] = n
    order = np.argsort(axes)
    return mask.transpose(order).reshape(shape)


def _spread(values: list[Any], axes: list[int], ndim: int, rest: Any) -> list[Any]:
    """Values for some axes, and others for the rest."""
    out = [rest] * ndim
    for axis, value in zip(axes, values, strict=True):
        out[axis] = value
    return out


Choice = Callable[[str, Any, np.ndarray, list[int], list[str], Any], Any]


def _chosen(
    name: str,
    choose: Choice,
    input: Any,
    size: Any,
    footprint: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
) -> Any:
    x = strong(as_value(input, name))
    dtype = output_dtype(name, x, output)
    indices = chosen_axes(name, x, axes)
    mask = _footprint(name, x, size, footprint, indices)
    ndim, n = len(shape_of(x)), len(indices)
    origins = _spread(per_axis(name, "origin", origin, n), indices, ndim, 0)
    modes = _spread(per_axis(name, "mode", mode, n), indices, ndim, "constant")
    if 0 in shape_of(x):
        return cast(x, dtype)
    return cast(choose(name, x, mask, origins, modes, cval), dtype)


_SHOWN = {
    "maximum_filter": "array([2., 9., 9., 9.])",
    "minimum_filter": "array([1., 1., 2., 4.])",
    "median_filter": "array([1., 2., 4., 4.])",
    "maximum_filter1d": "array([2., 9., 9., 9.])",
    "minimum_filter1d": "array([1., 1., 2., 4.])",
    "grey_erosion": "array([1., 1., 2., 4.])",
    "grey_dilation": "array([2., 9., 9., 9.])",
    "grey_opening": "array([1., 2., 4., 4.])",
    "grey_closing": "array([2., 2., 9., 9.])",
    "morphological_gradient": "array([1., 8., 7., 5.])",
    "morphological_laplace": "array([ 1.,  6., -7.,  5.])",
    "white_tophat": "array([0., 0., 5., 0.])",
    "black_tophat": "array([1., 0., 0., 5.])",
}
"""By the name of a filter: what it gives of ``[1, 2, 9, 4]`` with windows of 3."""


def _filter(name: str, what: str, choose: Choice) -> Callable[..., Any]:
    def filter_(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        return _chosen(name, choose, input, size, footprint, output, mode, cval, origin, axes)

    errors = {"ShapeError": "If axes do not fit."}
    return _described(
        filter_, name, f"{what} of the neighbours of each element", "size or footprint", errors
    )


def _described(
    function: Callable[..., Any], name: str, summary: str, needed: str, errors: dict[str, str]
) -> Callable[..., Any]:
    """A function with its name and docstring: arguments are those of the whole package."""
    function.__name__ = function.__qualname__ = name
    call = f"fg.scipy.ndimage.{name}(np.array([1.0, 2.0, 9.0, 4.0]), size=3) -> {_SHOWN[name]}"
    function.__doc__ = docstring(
        f"{summary}, as `scipy.ndimage.{name}`.",
        {},
        call,
        returns="An array like ``input``.",
        raises={"ArgumentError": f"If there is no {needed}, or a mode is impossible.", **errors},
    )
    return function


def _extreme(is_max: bool) -> Choice:
    def choose(name: str, x: Any, mask: Any, origins: Any, modes: Any, cval: Any) -> Any:
        return extreme(name, x, is_max, mask, origins, modes, cval)

    return choose


def _of_rank(rank_of: Callable[[int], int]) -> Choice:
    def choose(name: str, x: Any, mask: Any, origins: Any, modes: Any, cval: Any) -> Any:
        return ranked(name, x, rank_of(int(np.count_nonzero(mask))), mask, origins, modes, cval)

    return choose


maximum_filter = _filter("maximum_filter", "Greatest", _extreme(True))
minimum_filter = _filter("minimum_filter", "Least", _extreme(False))
median_filter = _filter("median_filter", "Median", _of_rank(lambda n: n // 2))


def rank_filter(
    input: Any,
    rank: int,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Neighbour of a rank, 0 for the least, -1 for the last, as `scipy.ndimage.rank_filter`.

    The other arguments are those of `median_filter`.

    Args: rank: Which of the sorted neighbours, counted from 0, or from the end if negative.
    Example: fg.scipy.ndimage.rank_filter(np.array([1.0, 2.0, 9.0, 4.0]), 0, size=3)
        -> array([1., 1., 2., 4.])
    """
    choose = _of_rank(lambda n: int(rank))
    return _chosen("rank_filter", choose, input, size, footprint, output, mode, cval, origin, axes)


def percentile_filter(
    input: Any,
    percentile: float,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Neighbour that a share of the others is below, as `scipy.ndimage.percentile_filter`.

    The other arguments are those of `median_filter`.

    Args: percentile: Which percentile of the neighbours.
    Example: fg.scipy.ndimage.percentile_filter(np.array([1.0, 2.0, 9.0, 4.0]), 50, size=3)
        -> array([1., 2., 4., 4.])
    """
    share = float(percentile)
    share = share + 100 if share < 0 else share
    if not 0 <= share <= 100:
        raise ArgumentError(f"percentile_filter: percentile must be from 0 to 100, got {share}.")
    choose = _of_rank(lambda n: n - 1 if share == 100 else int(n * share / 100))
    return _chosen(
        "percentile_filter", choose, input, size, footprint, output, mode, cval, origin, axes
    )


def _along_a_line(name: str, is_max: bool) -> Callable[..., Any]:
    def filter_(
        input: Any,
        size: int,
        axis: int = -1,
        output: Any = None,
        mode: str = "reflect",
        cval: Any = 0.0,
        origin: int = 0,
    ) -> Any:
        places = (line_axis(as_value(input, name), axis, name),)
        choose = _extreme(is_max)
        return _chosen(name, choose, input, size, None, output, mode, cval, origin, places)

    what = "Greatest" if is_max else "Least"
    return _described(filter_, name, f"{what} of neighbours along an axis", "size", {})


maximum_filter1d = _along_a_line("maximum_filter1d", True)
minimum_filter1d = _along_a_line("minimum_filter1d", False)


# Morphology.


def _grey(
    name: str,
    is_dilation: bool,
    input: Any,
    size: Any,
    footprint: Any,
    structure: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
) -> Any:
    """Extremes of neighbours, to which a structure is added (from which it is taken)."""
    x = strong(as_value(input, name))
    indices = chosen_axes(name, x, axes)
    if structure is not None:
        structure = np.asarray(structure)
        footprint = np.ones(structure.shape, bool) if footprint is None else footprint
    if footprint is not None:
        footprint = np.asarray(footprint) != 0
        sizes = list(footprint.shape)
    elif size is not None:
        sizes = [int(n) for n in per_axis(name, "size", size, len(indices))]
    else:
        raise ArgumentError(f"{name} needs a size, a footprint or a structure.")
    origins = [int(o) for o in per_axis(name, "origin", origin, len(indices))]
    if is_dilation:
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, sizes, strict=True)]
        footprint = None if footprint is None else np.flip(footprint)
        structure = None if structure is None else np.flip(structure)
    if structure is None or not np.any(structure):
        choose = _extreme(is_dilation)
    else:
        choose = _with_structure(structure, indices, is_dilation)
    size = None if footprint is not None else size
    return _chosen(name, choose, x, size, footprint, None, mode, cval, origins, indices)


def _with_structure(structure: np.ndarray, axes: list[int], is_dilation: bool) -> Choice:
    def choose(name: str, x: Any, mask: Any, origins: Any, modes: Any, cval: Any) -> Any:
        found = neighbours(name, x, mask, origins, modes, cval)
        values = structure.transpose(np.argsort(axes)).reshape(mask.shape)[mask]
        found, values = promote(found, values.astype(aval_of(x).dtype))
        moved = found + values if is_dilation else found - values
        return (fnp.max if is_dilation else fnp.min)(moved, axis=-1)

    return choose


def _morphology(name: str, what: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    def operation(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        structure: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        x = strong(as_value(input, name))
        dtype = output_dtype(name, x, output)

        def step(is_dilation: bool, v: Any) -> Any:
            return _grey(name, is_dilation, v, size, footprint, structure, mode, cval, origin, axes)

        return cast(compute(x, lambda v: step(False, v), lambda v: step(True, v)), dtype)

    return _described(operation, name, what, "size, footprint or structure", {})


def _without(a: Any, b: Any) -> Any:
    return fnp.logical_xor(a, b) if aval_of(a).dtype.kind == "b" else a - b


grey_erosion = _morphology("grey_erosion", "Least of neighbours", lambda x, e, d: e(x))
grey_dilation = _morphology("grey_dilation", "Greatest of neighbours", lambda x, e, d: d(x))
grey_opening = _morphology(
    "grey_opening", "An erosion and then a dilation", lambda x, e, d: d(e(x))
)
grey_closing = _morphology(
    "grey_closing", "A dilation and then an erosion", lambda x, e, d: e(d(x))
)
morphological_gradient = _morphology(
    "morphological_gradient", "The dilation without the erosion", lambda x, e, d: d(x) - e(x)
)
morphological_laplace = _morphology(
    "morphological_laplace",
    "Dilation and erosion without twice the array",
    lambda x, e, d: d(x) + e(x) - x - x,
)
white_tophat = _morphology(
    "white_tophat", "The array without its opening", lambda x, e, d: _without(x, d(e(x)))
)
black_tophat = _morphology(
    "black_tophat", "The closing without the array", lambda x, e, d: _without(e(d(x)), x)
)
