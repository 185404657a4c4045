"""Arguments of NumPy-style functions: conversion to values, and promotion of dtypes.

Promotion is NumPy's: Python scalars, and traced values that stem from Python arithmetic alone, are
weak; everything else keeps its dtype. Nothing here computes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.base.dialect import NARROWER, NUMPY, default_dtype, dialect
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import (
    BOOL,
    FLOAT64,
    PYTHON_SCALARS,
    check_dtype,
    inexact_dtype,
    is_inexact,
    weak_representative,
)
from funcgrad.errors import AxisError, DtypeError
from funcgrad.higher_order.cells import Cell
from funcgrad.observers.promotion import PROMOTIONS, refuse_promotion, refuse_ranks
from funcgrad.primitives.elementwise import Convert, convert
from funcgrad.primitives.objects import WRAPPED_DTYPES, unwrapped
from funcgrad.primitives.shape import Concatenate, reshape, shape_of

_ARRAYS = (np.ndarray, np.generic, Tracer)
_VALUES = (Tracer, np.generic)
_LISTS = (list, tuple)


def as_value(x: Any, function: str = "this function") -> Any:
    """An array, scalar or tracer for anything that NumPy takes as an array.

    Args:
        x: Array, number, tracer, or nested lists of them.
        function: Named in messages.
    Raises: DtypeError: If ``x`` is no array or has a dtype that is not supported.
    """
    if isinstance(x, _VALUES) or type(x) in PYTHON_SCALARS:
        return x
    if isinstance(x, _LISTS):
        if holds_tracer(x):
            return stack_nested(x)
        return _checked(np.asarray(x), function)
    if isinstance(x, np.ndarray):
        return x if x.dtype.char not in WRAPPED_DTYPES else _checked(unwrapped(x), function)
    value = unwrapped(x)
    if isinstance(value, _ARRAYS) or type(value) in PYTHON_SCALARS:
        return _checked(value, function)
    if isinstance(value, Cell):
        value.refuse_as_array(function)
    if isinstance(x, int | float | complex):  # of a class of its own, as members of IntEnum
        return np.asarray(x).item()
    if isinstance(x, range) or _is_buffer(x):
        return _checked(np.asarray(x), function)
    raise DtypeError(
        f"{function} needs arrays or numbers, got a {type(x).__name__}. Pytrees are handled by "
        "funcgrad.tree.map."
    )


def _is_buffer(x: Any) -> bool:
    """Whether an object exports a buffer for NumPy, as `array.array` and `memoryview` do."""
    try:
        memoryview(x)
    except TypeError:
        return False
    return True


def _checked(x: Any, function: str) -> Any:
    check_dtype(
        x.dtype if isinstance(x, _ARRAYS) else aval_of(x).dtype, f"an argument of {function}"
    )
    return x


def holds_tracer(x: Any) -> bool:
    """Whether nested lists hold what NumPy cannot join: traced values, or what stands for them."""
    if isinstance(x, _LISTS):
        return any(map(holds_tracer, x))
    if type(x) in PYTHON_SCALARS or isinstance(x, np.generic):
        return False
    if isinstance(x, np.ndarray):
        return x.dtype.char == "O"
    return isinstance(x, Tracer) or hasattr(x, "__jax_array__")


def stack_nested(x: Any) -> Any:
    """Nested lists of values and tracers as one array."""
    if not isinstance(x, _LISTS):
        return unwrapped(x)
    rows = promote(*[stack_nested(row) for row in x])
    lifted = [reshape(row, (1, *shape_of(row))) for row in map(strong, rows)]
    return Concatenate(0).bind(*lifted)


def strong(x: Any) -> Any:
    """A weak value made one of its own dtype."""
    aval = aval_of(x)
    if type(x) in PYTHON_SCALARS:
        return aval.dtype.type(x)
    return Convert(aval.dtype).bind(x) if aval.weak_type else x


def promote_to_compare(x: Any, y: Any) -> list[Any]:
    """Strong values of one dtype, in which Python's integers need not fit into a narrow one."""
    if not is_inexact(aval_of(x).dtype) and not is_inexact(aval_of(y).dtype):
        x, y = strong(x), strong(y)
    return [strong(v) for v in promote(x, y, is_compared=True)]


def result_dtype(avals: Sequence[ShapedArray]) -> np.dtype[Any]:
    """The dtype to which values of these types promote."""
    first = avals[0]
    if all(a.dtype == first.dtype for a in avals):
        return first.dtype
    deciding = _deciding(avals)
    return _in_bits_of_dialect(
        avals,
        np.result_type(
            *(weak_representative(a.dtype) if a.weak_type else a.dtype for a in deciding)
        ),
    )


def _deciding(avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    """The types that decide about the dtype of a result: in JAX, of floats and integers, floats."""
    if dialect() is NUMPY:
        return avals
    inexact = [a for a in avals if is_inexact(a.dtype)]
    return avals if all(a.weak_type for a in inexact) else inexact


def _in_bits_of_dialect(avals: Sequence[ShapedArray], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a result, with the bits of the dialect.

    Where 64 bits are left out, no value of the user's has them; among themselves those of the
    library may, such as counters and words of random keys.
    """
    if dtype not in NARROWER or all(a.weak_type or a.dtype in NARROWER for a in avals):
        return dtype
    return default_dtype(dtype)


def check_casting(aval: ShapedArray, dtype: np.dtype[Any], casting: Any) -> None:
    """Raise if a conversion loses more than NumPy's rule ``casting`` allows."""
    if not np.can_cast(aval.dtype, dtype, casting):
        raise TypeError(f"Cannot cast {aval} to {dtype} according to the rule {casting!r}.")


def to_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    """A value as one of ``dtype``; Python scalars become NumPy scalars."""
    if type(x) in PYTHON_SCALARS:
        # NumPy's own conversion raises OverflowError for integers out of range.
        return np.asarray(x, dtype)[()]
    return convert(x, dtype)


def noted_dtype(
    args: Sequence[Any], avals: Sequence[ShapedArray], is_compared: bool = False
) -> np.dtype[Any]:
    """Promoted dtype, by `result_dtype`; an error in contexts that refuse the promotion.

    Raises: DtypePromotionError: If the context does not allow this promotion.
    """
    dtype = result_dtype(avals)
    if PROMOTIONS.users:
        refuse_ranks(avals)
        refuse_promotion(args, avals, dtype, is_compared)
    return dtype


def promote(*args: Any, is_compared: bool = False) -> list[Any]:
    """Values of one dtype, as NumPy promotes; values that are all weak stay so."""
    avals = [aval_of(a) for a in args]
    if PROMOTIONS.users:
        refuse_ranks(avals)
    if len(avals) == 1:
        return list(args)
    if len(avals) == 2:
        x, y = avals
        if x.dtype is y.dtype and x.weak_type is y.weak_type:
            return list(args)
        # An array with a Python float, the most frequent pair.
        if type(args[1]) is float and x.dtype.kind == "f" and not x.weak_type:
            return [args[0], x.dtype.type(args[1])]
    dtype = noted_dtype(args, avals, is_compared)
    if _are_weak(args, avals):
        return [
            a if v.dtype == dtype else _weak_to(a, dtype) for a, v in zip(args, avals, strict=True)
        ]
    return [
        a if v.dtype == dtype and not v.weak_type else to_dtype(a, dtype)
        for a, v in zip(args, avals, strict=True)
    ]


_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""Kinds of numbers; JAX knows no others."""


def _are_weak(args: Sequence[Any], avals: Sequence[ShapedArray]) -> bool:
    """Whether what is computed of values promotes as a number of Python's.

    In JAX, weak values of a higher kind decide: of bools with 1, and of integers with 1.0, but not
    of floats with 1j. Where it has no 64 bits, there is only one dtype of the kind, and they are
    strong.
    """
    if all(v.weak_type or type(a) is bool for a, v in zip(args, avals, strict=True)):
        return True
    if dialect().weak is None or default_dtype(FLOAT64) != FLOAT64:
        return False
    highest = [-1, -1]
    for v in avals:
        highest[v.weak_type] = max(highest[v.weak_type], _RANKS.get(v.dtype.kind, 3))
    return highest[True] > highest[False] and highest[False] < _RANKS["f"]


def _weak_to(x: Any, dtype: np.dtype[Any]) -> Any:
    if type(x) in PYTHON_SCALARS:
        return dtype.type(x).item()
    return Convert(dtype, weak=True).bind(x)


def promote_inexact(*args: Any) -> list[Any]:
    """Strong values of the floating dtype in which NumPy's ufuncs evaluate these arguments.

    Python's integers become floating at once, however large they are.
    """
    avals = [aval_of(a) for a in args]
    dtype = _inexact_dtype_of(avals, noted_dtype(args, avals))
    return [to_dtype(a, dtype) for a in args]


def promote_to_double(*args: Any) -> list[Any]:
    """Strong values of one dtype with at least the bits of float64, as functions of NumPy compute.

    Other libraries know no such functions: theirs compute in the floating dtype of the arguments.
    """
    if dialect() is not NUMPY:
        return promote_inexact(*args)
    avals = [aval_of(a) for a in args]
    noted_dtype(args, avals)
    dtype = result_dtype([*avals, shaped((), FLOAT64)])
    return [to_dtype(a, dtype) for a in args]


def _inexact_dtype_of(avals: Sequence[ShapedArray], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Every argument finds its floating dtype by itself: int8 with uint16 is float32.

    In JAX it is that of the dtype to which they promote.
    """
    if is_inexact(dtype):
        return dtype
    if dialect() is not NUMPY:
        return _in_bits_of_dialect(avals, inexact_dtype(dtype))
    deciding = [a.dtype for a in avals if not a.weak_type and a.dtype != BOOL] or [dtype]
    return _in_bits_of_dialect(avals, np.result_type(*map(inexact_dtype, deciding)))


def promote_quotient(x: Any, y: Any) -> list[Any]:
    """Dividend and divisor: quotients of exact numbers are float64, also those of narrow ones.

    In JAX they have the dtype of other floating functions of them.
    """
    avals = [aval_of(x), aval_of(y)]
    promoted = noted_dtype((x, y), avals)
    if is_inexact(promoted):
        return promote(x, y)
    if all(a.weak_type for a in avals):
        return [_weak_to(x, FLOAT64), _weak_to(y, FLOAT64)]
    dtype = FLOAT64 if dialect() is NUMPY else _inexact_dtype_of(avals, promoted)
    return [to_dtype(x, dtype), to_dtype(y, dtype)]


def normalize_axis(axis: Any, ndim: int, function: str) -> int:
    """A non-negative axis, or an `AxisError`."""
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        what = f"{function}: axis {index} is out of bounds for array of dimension {ndim}"
        raise AxisError(what, index, ndim)
    return index % ndim


def normalize_axes(axis: Any, ndim: int, function: str) -> tuple[int, ...]:
    """Ascending non-negative axes for an int, a tuple or None (all)."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    normalized = [normalize_axis(a, ndim, function) for a in axes]
    if len(set(normalized)) != len(normalized):
        raise ValueError(f"{function}: duplicate axis in {axis}.")
    return tuple(sorted(normalized))


def checked_dtype(dtype: Any, function: str) -> np.dtype[Any]:
    """A requested dtype, checked to be supported, in the bits of the dialect."""
    return check_dtype(default_dtype(np.dtype(dtype)), f"the dtype requested from {function}")
