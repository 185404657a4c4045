"""Functions that choose between elements by conditions.

Everything is made of indexing and elementwise operations; loops run over static things only: axes,
conditions, coefficients.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import BOOL, is_complex, is_inexact
from funcgrad.errors import DtypeError
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.creating import zeros
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.ordering import nonzero, searchsorted, sort
from funcgrad.numpy.promotion import as_value, promote, promote_to_compare, strong, to_dtype
from funcgrad.numpy.reducing import refuse_out, sum
from funcgrad.numpy.shaping import broadcast_to, ravel, reshape
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import shape_of

__all__ = [
    "clip", "isin", "isneginf", "isposinf", "nan_to_num", "piecewise", "select", "where",
]  # fmt: skip


_INT64 = np.iinfo(np.int64)


def where(
    condition: Any,
    x: Any = None,
    y: Any = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Elements of one array where a condition holds, and of another one elsewhere.

    As `numpy.where`: elements of ``x`` where the condition holds, of ``y`` elsewhere.

    The side that is not chosen is computed, and contributes nothing to derivatives, however
    singular it is: no argument needs to be replaced beforehand.

    Args:
        condition: Array of truth values.
        x: Array, or None together with ``y`` for `nonzero`.
        size: For ``where(condition)`` of a traced condition: see `nonzero`.

    Example:
        >>> print(fg.numpy.where(np.array([True, False]), 1.0, np.array([2.0, 3.0])))
        [1. 3.]
        >>> float(fg.grad(lambda x: fg.numpy.where(x > 0, np.sqrt(x), 2 * x))(0.0))
        2.0
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    mask = truth_of(condition, "where")
    return p.select.bind(mask, *map(strong, promote(as_value(x, "where"), as_value(y, "where"))))


def truth_of(x: Any, function: str) -> Any:
    """A strong bool value: whether elements differ from zero."""
    return strong(e.truth(as_value(x, function)))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Elements chosen from several arrays by conditions.

    As `numpy.select`: the choice of the first condition that holds.

    Args:
        choicelist: Values, one for each condition.
        default: Value where no condition holds.
    Example: fg.numpy.select([np.array([True, False]), np.array([True, True])], [1.0, 2.0])
        -> array([1., 2.])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError("list of cases must be same length as list of conditions")
    values = promote(*[as_value(c, "select") for c in (*choicelist, default)])
    out = strong(values[-1])
    for condition, choice in zip(reversed(condlist), reversed(values[:-1]), strict=True):
        out = p.select.bind(truth_of(condition, "select"), strong(choice), out)
    return out


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """A function that is defined piece by piece.

    As `numpy.piecewise`, with functions that work on arrays element by element.

    Every function is evaluated on an array of the shape of ``x``, in which elements outside of its
    domain are replaced by one of its domain.

    Args:
        funclist: Functions or values, one for each condition.
        *args: Operands: arrays, numbers or traced values. They broadcast.
        **kw: Keywords for the functions.

    Example:
        >>> fg.numpy.piecewise(
        ...     np.array([-1.0, 2.0]), [np.array([True, False])], [lambda x: -x, lambda x: x]
        ... )
        array([1., 2.])
    """
    x = strong(as_value(x, "piecewise"))
    rows = _rows_of_conditions(condlist, shape_of(x), len(funclist))
    conditions = [truth_of(c, "piecewise") for c in rows]
    if len(funclist) == len(conditions) + 1:
        others = conditions[0]
        for c in conditions[1:]:
            others = p.bitwise_or.bind(others, c)
        conditions.append(p.bitwise_not.bind(others))
    if len(funclist) != len(conditions):
        raise ValueError(
            f"piecewise: {len(conditions)} conditions need as many functions, or one more, got "
            f"{len(funclist)}."
        )
    dtype = aval_of(x).dtype
    out = zeros(shape_of(x), dtype)
    for condition, function in zip(conditions, funclist, strict=True):
        value = function(_inside(x, condition), *args, **kw) if callable(function) else function
        out = p.select.bind(condition, to_dtype(as_value(value), dtype), out)
    return out


def _rows_of_conditions(condlist: Any, shape: tuple[int, ...], functions: int) -> list[Any]:
    """The conditions, of which a single one may be given as it is."""
    if isinstance(condlist, list | tuple):
        is_one = functions <= 2 and shape and not shape_of(condlist[0])
        return [condlist] if is_one else list(condlist)
    given = as_value(condlist, "piecewise")
    own = shape_of(given)
    if not own or (shape and (len(own) == 1 or own == shape)):
        return [given]
    return [getitem(given, i) for i in range(own[0])]


def _inside(x: Any, condition: Any) -> Any:
    """``x`` where the condition holds, elsewhere its first element that meets it."""
    flat = ravel(broadcast_to(condition, shape_of(x)))
    if not aval_of(x).size:
        return x
    first = getitem(ravel(x), nonzero(flat, size=1)[0][0])
    return p.select.bind(condition, x, first)


def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: None = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Any:
    """Elements limited to an interval.

    As `numpy.clip`: elements outside of bounds become the bound they are beyond.

    Python's integers beyond the range of the array's dtype are no bounds.

    Args:
        a_min: Lower bound.
        a_max: Upper bound.
        min: Lower bound, by the name of the array API.
        max: Upper bound, by the name of the array API.
    Example: fg.numpy.clip(np.array([-1.0, 0.5, 2.0]), 0.0, 1.0) -> array([0. , 0.5, 1. ])
    """
    refuse_out(out, "clip")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    x = as_value(a, "clip")
    dtype = aval_of(x).dtype
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low = None if type(low) is int and low <= info.min else _within(low, info)
        high = None if type(high) is int and high >= info.max else _within(high, info)
    bounds = [as_value(b, "clip") for b in (low, high) if b is not None]
    x, *bounds = promote(x, *bounds)
    if is_complex(aval_of(x).dtype):
        raise DtypeError(
            f"clip: complex numbers have no order, got {aval_of(x)}. Clip the real and the "
            "imaginary part, or scale by the absolute value."
        )
    if low is not None:
        x = p.maximum.bind(x, bounds[0])
    return x if high is None else p.minimum.bind(x, bounds[-1])


def _within(bound: Any, info: np.iinfo) -> Any:
    """A traced Python integer as the nearest one that the dtype of the array can hold."""
    aval = aval_of(bound) if isinstance(bound, Tracer) else None
    if aval is None or not aval.weak_type or is_inexact(aval.dtype):
        return bound
    least, largest = builtins.max(info.min, _INT64.min), builtins.min(info.max, _INT64.max)
    return e.minimum(e.maximum(bound, least), largest)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Elements with nan and infinities replaced by numbers, as `numpy.nan_to_num`.

    Args:
        nan: Value for nan.
        posinf: Value for infinity; by default the greatest finite number.
        neginf: Value for minus infinity; by default the least finite number.
    Example: fg.numpy.nan_to_num(np.array([1.0, np.nan])) -> array([1., 0.])
    """
    x = strong(as_value(x, "nan_to_num"))
    dtype = aval_of(x).dtype
    if is_complex(dtype):
        real, imag = (nan_to_num(q.bind(x), copy, nan, posinf, neginf) for q in (p.real, p.imag))
        return p.from_parts.bind(real, imag)
    if not is_inexact(dtype):
        return x
    info = np.finfo(dtype)
    largest = info.max if posinf is None else posinf
    least = info.min if neginf is None else neginf
    for special, value in ((np.inf, largest), (-np.inf, least)):
        x = p.select.bind(p.equal.bind(x, dtype.type(special)), to_dtype(value, dtype), x)
    return p.select.bind(p.isnan.bind(x), to_dtype(nan, dtype), x)


def isposinf(x: Any, out: None = None) -> Any:
    """Whether each element is plus infinity, as `numpy.isposinf`.

    Example: fg.numpy.isposinf(np.array([-np.inf, 1.0, np.inf])) -> array([False, False,  True])
    """
    refuse_out(out, "isposinf")
    return _is_infinite(x, np.inf, "isposinf")


def isneginf(x: Any, out: None = None) -> Any:
    """Whether each element is minus infinity, as `numpy.isneginf`.

    Example: fg.numpy.isneginf(np.array([-np.inf, 1.0, np.inf])) -> array([ True, False, False])
    """
    refuse_out(out, "isneginf")
    return _is_infinite(x, -np.inf, "isneginf")


def _is_infinite(x: Any, end: float, function: str) -> Any:
    x = as_value(x, function)
    if is_complex(aval_of(x).dtype):
        raise TypeError(f"{function}: complex infinities have no sign, got {aval_of(x)}.")
    return e.equal(x, end)


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
    method: str = "auto",
) -> Any:
    """Whether each element is among given values.

    As `numpy.isin`, by binary search in the sorted test elements.

    ``assume_unique``, ``kind`` and ``method`` are of no effect, as results do not depend on them.

    Args:
        test_elements: Values to compare the elements with.
        assume_unique: Without effect: values need not be distinct.
        invert: Whether to say which elements are not found.
        method: Accepted; one way is used, which gives the same.
    Example: fg.numpy.isin(np.array([1, 2, 3]), [2, 5]) -> array([False,  True, False])
    """
    x, tests = promote_to_compare(as_value(element, "isin"), as_value(test_elements, "isin"))
    if not aval_of(tests).size:
        found = zeros(shape_of(x), BOOL)
    elif is_complex(aval_of(x).dtype):
        column = reshape(x, (*shape_of(x), 1))
        same = p.equal.bind(column, ravel(tests))
        found = e.greater(sum(same, -1), 0)
    else:
        ordered = sort(tests, None)
        place = e.minimum(searchsorted(ordered, x), shape_of(ordered)[0] - 1)
        found = p.equal.bind(getitem(ordered, place), x)
    return p.bitwise_not.bind(found) if invert else found
