"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.base.signatures import explain
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.dtypes import BOOL
from funcgrad.numpy.meanings import MEANINGS
from funcgrad.numpy.promotion import normalize_axis
from funcgrad.numpy.reducing import PLACES, SMALL, WITH_NAN, named, refuse_out, summand
from funcgrad.numpy.shaping import ravel
from funcgrad.numpy.skipping_nan import filled
from funcgrad.primitives import shape as s
from funcgrad.primitives.cumulative import Cummax, Cummin, Cumprod, Cumsum
from funcgrad.primitives.shape import shape_of

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum"]


def _along(x: Any, primitive: Callable[..., Primitive]) -> Callable[..., Primitive]:
    """The running fold of the dtype of ``x``: sums of bools are "or", products are "and"."""
    if aval_of(x).dtype != BOOL:
        return primitive
    return Cummax if primitive is Cumsum else Cummin


def _running(x: Any, axis: Any, primitive: Callable[..., Primitive], name: str) -> Any:
    primitive = _along(x, primitive)
    if axis is None:
        return primitive(0).bind(ravel(x))
    return primitive(normalize_axis(axis, len(shape_of(x)), name)).bind(x)


def _cumulative(
    primitive: Callable[..., Primitive], name: str, summary: str, shown: str, notes: str = ""
) -> Callable[..., Any]:
    fill = {"nancumsum": 0, "nancumprod": 1}.get(name)

    def function(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        refuse_out(out, name)
        x = a if fill is None else filled(a, fill, name)
        return _running(summand(x, dtype, name), axis, primitive, name)

    call = f"{SMALL if fill is None else WITH_NAN}, axis=0) -> {shown}"
    return named(function, name, summary, call, f"As `numpy.{name}`.{notes}", MEANINGS | PLACES)


cumsum = _cumulative(
    Cumsum, "cumsum", "Cumulative sum along an axis.", "array([[1., 2.],\n       [4., 6.]])"
)
cumprod = _cumulative(
    Cumprod,
    "cumprod",
    "Cumulative product along an axis.",
    "array([[1., 2.],\n       [3., 8.]])",
    " Its derivative is exact where elements are 0.",
)
nancumsum = _cumulative(
    Cumsum,
    "nancumsum",
    "Cumulative sum along an axis; nan counts as 0.",
    "array([[1., 0.],\n       [4., 4.]])",
)
nancumprod = _cumulative(
    Cumprod,
    "nancumprod",
    "Cumulative product along an axis; nan counts as 1.",
    "array([[1., 1.],\n       [3., 4.]])",
)


def _with_initial(
    name: str, x: Any, axis: Any, dtype: Any, include: bool, primitive: Any, first: int
) -> Any:
    x = summand(x, dtype, name)
    x = x if shape_of(x) else s.reshape(x, (1,))
    shape = shape_of(x)
    if axis is None and len(shape) != 1:
        raise ValueError(f"{name} of {aval_of(x)} needs an axis.")
    index = normalize_axis(0 if axis is None else axis, len(shape), name)
    out = _along(x, primitive)(index).bind(x)
    if not include:
        return out
    zeros = (0,) * len(shape)
    lows = tuple(int(i == index) for i in range(len(shape)))
    return s.Pad(lows, zeros, zeros).bind(out, aval_of(x).dtype.type(first))


def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: None = None,
    include_initial: bool = False,
) -> Any:
    """Cumulative sum along an axis, as `numpy.cumulative_sum`.

    Args:
        axis: The axis, counted from the end if negative. A vector needs none.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.cumulative_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([[1., 2.],
               [4., 6.]])
    """
    refuse_out(out, "cumulative_sum")
    return _with_initial("cumulative_sum", x, axis, dtype, include_initial, Cumsum, 0)


def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: None = None,
    include_initial: bool = False,
) -> Any:
    """Cumulative product along an axis, as `numpy.cumulative_prod`.

    Args:
        axis: The axis, counted from the end if negative. A vector needs none.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.cumulative_prod(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([[1., 2.],
               [3., 8.]])
    """
    refuse_out(out, "cumulative_prod")
    return _with_initial("cumulative_prod", x, axis, dtype, include_initial, Cumprod, 1)


explain(globals(), MEANINGS)
