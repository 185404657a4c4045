"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    primitive: Any, name: str, summary: str, first: int, shown: str
) -> Callable[..., Any]:
    def function(
        x: Any,
        /,
        *,
        axis: int | None = None,
        dtype: Any = None,
        out: None = None,
        include_initial: bool = False,
    ) -> Any:
        refuse_out(out, name)
        x = summand(x, dtype, name)
        x = x if shape_of(x) else s.reshape(x, (1,))
        shape = shape_of(x)
        if axis is None and len(shape) != 1:
            raise ValueError(f"{name} of {aval_of(x)} needs an axis.")
        index = normalize_axis(0 if axis is None else axis, len(shape), name)
        folded = _along(x, primitive)(index).bind(x)
        if not include_initial:
            return folded
        zeros = (0,) * len(shape)
        lows = tuple(int(i == index) for i in range(len(shape)))
        return s.Pad(lows, zeros, zeros).bind(folded, aval_of(x).dtype.type(first))

    table = {**MEANINGS, "axis": "The axis, counted from the end if negative. A vector needs none."}
    call = f"{SMALL}, axis=0) -> {shown}"
    return named(function, name, summary, call, f"As `numpy.{name}`.", table)


cumulative_sum = _with_initial(
    Cumsum,
    "cumulative_sum",
    "Cumulative sum along an axis.",
    0,
    "array([[1., 2.],\n       [4., 6.]])",
)
cumulative_prod = _with_initial(
    Cumprod,
    "cumulative_prod",
    "Cumulative product along an axis.",
    1,
    "array([[1., 2.],\n       [3., 8.]])",
)
