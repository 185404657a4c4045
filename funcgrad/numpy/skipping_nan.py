"""Sums, products and extremes that skip nan."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.base.annotations import Function
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import is_inexact
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.numpy.reducing import (
    FOLDED,
    PLACES,
    WITH_NAN,
    any,
    argmax,
    argmin,
    mask_of,
    max,
    min,
    named,
    prod,
    sum,
)
from funcgrad.primitives import elementwise as p

__all__ = ["nanargmax", "nanargmin", "nanmax", "nanmin", "nanprod", "nansum"]


def _present(x: Any) -> Any:
    """The mask of elements that are not nan, or None if the dtype has no nan."""
    return p.bitwise_not.bind(p.isnan.bind(x)) if is_inexact(aval_of(x).dtype) else None


def filled(a: Any, fill: complex, name: str) -> Any:
    """``a`` with ``fill`` in place of nan."""
    x = strong(as_value(a, name))
    mask = _present(x)
    return x if mask is None else p.select.bind(mask, x, aval_of(x).dtype.type(fill))


def _nan_fold(fold: Function, fill: int, name: str, summary: str, shown: str) -> Function:
    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        return fold(filled(a, fill, name), axis, dtype, out, keepdims, initial, where)

    call = f"{WITH_NAN}, axis=0) -> {shown}"
    return named(function, name, summary, call, f"As `numpy.{name}`.")


nansum = _nan_fold(
    sum, 0, "nansum", "Sum of the elements along axes; nan counts as 0.", "array([4., 4.])"
)
nanprod = _nan_fold(
    prod, 1, "nanprod", "Product of the elements along axes; nan counts as 1.", "array([3., 4.])"
)


def nan_mask(x: Any, where: Any, name: str) -> Any:
    present, mask = _present(x), mask_of(where, x, name)
    if present is None or mask is None:
        return present if mask is None else mask
    return p.bitwise_and.bind(present, mask)


def _nan_extreme(extreme: Function, fill: float, name: str, summary: str, shown: str) -> Function:
    def function(
        a: Any,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        x = strong(as_value(a, name))
        present = _present(x)
        if present is None:
            return extreme(x, axis, out, keepdims, initial, where)
        # Beyond all numbers in both parts: complex numbers are ordered by the second part, too.
        beyond = complex(fill, fill) if aval_of(x).dtype.kind == "c" else fill
        found = extreme(filled(x, beyond, name), axis, out, keepdims, initial, where)
        if initial is not None:
            return found
        # Where nothing but nan was seen the result is nan.
        is_empty = p.bitwise_not.bind(any(present, axis, keepdims=keepdims))
        return p.select.bind(is_empty, aval_of(x).dtype.type(np.nan), found)

    call = f"{WITH_NAN}, axis=0) -> {shown}"
    return named(
        function,
        name,
        summary,
        call,
        f"As `numpy.{name}`, without its warning where all elements are nan.",
        FOLDED,
    )


nanmax = _nan_extreme(
    max, -np.inf, "nanmax", "Greatest element along axes that is not nan.", "array([3., 4.])"
)
nanmin = _nan_extreme(
    min, np.inf, "nanmin", "Smallest element along axes that is not nan.", "array([1., 4.])"
)


def _nan_place(place: Function, fill: float, name: str, summary: str, shown: str) -> Function:
    def function(a: Any, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        x = strong(as_value(a, name))
        present = _present(x)
        is_known = present is not None and not isinstance(present, Tracer)
        if is_known and not np.all(np.any(present, axis=axis)):
            raise ValueError("All-NaN slice encountered")
        return place(filled(x, fill, name), axis, out, keepdims=keepdims)

    call = f"{WITH_NAN}, axis=0) -> {shown}"
    return named(
        function,
        name,
        summary,
        call,
        f"As `numpy.{name}`; for a traced slice of nothing but nan it is 0.",
        PLACES,
    )


nanargmax = _nan_place(
    argmax, -np.inf, "nanargmax", "Index of the greatest element that is not nan.", "array([1, 1])"
)
nanargmin = _nan_place(
    argmin, np.inf, "nanargmin", "Index of the smallest element that is not nan.", "array([0, 1])"
)
