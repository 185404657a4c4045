"""Questions about arrays whose answers are known while values are not: shapes, dtypes, kinds.

And the three that compare whole arrays, whose answers may be traced.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import dtypes
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import is_complex, weak_representative
from funcgrad.numpy import elementwise, shaping
from funcgrad.numpy.promotion import as_value, normalize_axes, promote_inexact, strong
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.objects import StandsForArray, settled
from funcgrad.primitives.reductions import ReduceAll
from funcgrad.primitives.shape import shape_of

broadcast_shapes = np.broadcast_shapes


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """As `numpy.issubdtype`, also of dtypes that NumPy does not have, as those of random keys."""
    return dtypes.issubdtype(arg1, arg2)


def promote_types(a: Any, b: Any) -> np.dtype[Any]:
    """As `numpy.promote_types`."""
    return np.promote_types(a, b)


def shape(a: Any) -> tuple[int, ...]:
    """The lengths of the axes."""
    return shape_of(as_value(a, "shape"))


def ndim(a: Any) -> int:
    """The number of axes."""
    return len(shape(a))


def size(a: Any, axis: int | tuple[int, ...] | None = None) -> int:
    """The number of elements, or the length of one axis, or the product of those of several."""
    lengths = shape(a)
    if axis is None:
        return math.prod(lengths)
    if isinstance(axis, tuple):
        return math.prod(lengths[i] for i in normalize_axes(axis, len(lengths), "size"))
    return lengths[axis]


def isscalar(element: Any) -> bool:
    """As `numpy.isscalar`; a traced value counts as an array."""
    return not isinstance(element, Tracer) and np.isscalar(element)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return is_complex(aval_of(as_value(x, "iscomplexobj")).dtype)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype to which arrays, numbers and dtypes promote, as `numpy.result_type`."""
    return np.result_type(*map(_promotes_as, arrays_and_dtypes))


def _promotes_as(x: Any) -> Any:
    x = settled(x)
    if not isinstance(x, Tracer):
        return x
    return weak_representative(x.aval.dtype) if x.aval.weak_type else x.aval.dtype


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """As `numpy.can_cast`."""
    from_ = settled(from_)
    return np.can_cast(from_.dtype if isinstance(from_, Tracer) else from_, to, casting)


def copy(a: Any, order: str = "K") -> Any:
    """As `numpy.copy`; traced arrays are immutable and need none."""
    return shaping.array(a)


def real(val: Any) -> Any:
    """The real part."""
    val = as_value(val, "real")
    if isinstance(val, np.generic | int | float | complex):
        return val.real
    return p.real.bind(strong(val)) if iscomplexobj(val) else val


def imag(val: Any) -> Any:
    """The imaginary part; zeros of the same dtype for real values."""
    val = as_value(val, "imag")
    if isinstance(val, np.generic | int | float | complex):
        return val.imag
    return p.imag.bind(strong(val)) if iscomplexobj(val) else shaping.zeros_like(val)


def angle(z: Any, deg: bool = False) -> Any:
    """The argument of complex numbers, in radians or degrees."""
    radians = elementwise.arctan2(imag(z), real(z))
    return elementwise.degrees(radians) if deg else radians


def isreal(x: Any) -> Any:
    """Whether imaginary parts are zero."""
    return elementwise.equal(imag(x), 0)


def iscomplex(x: Any) -> Any:
    """Whether imaginary parts are not zero."""
    return elementwise.not_equal(imag(x), 0)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """``|a - b| <= atol + rtol |b|``, as `numpy.isclose`; infinities are close to themselves."""
    a, b = promote_inexact(as_value(a, "isclose"), as_value(b, "isclose"))
    distance, bound = abs(elementwise.subtract(a, b)), atol + rtol * elementwise.absolute(b)
    near = elementwise.logical_and(elementwise.less_equal(distance, bound), elementwise.isfinite(b))
    near = elementwise.logical_or(near, elementwise.equal(a, b))
    if equal_nan:
        both = elementwise.logical_and(elementwise.isnan(a), elementwise.isnan(b))
        near = elementwise.logical_or(near, both)
    return near


def _all(x: Any) -> Any:
    return ReduceAll(tuple(range(len(shape_of(x))))).bind(x)


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as `isclose` says."""
    return _all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and all elements are equal."""
    a1, a2 = as_value(a1, "array_equal"), as_value(a2, "array_equal")
    if shape_of(a1) != shape_of(a2):
        return False
    same = elementwise.equal(a1, a2)
    if equal_nan:
        both = elementwise.logical_and(elementwise.isnan(a1), elementwise.isnan(a2))
        same = elementwise.logical_or(same, both)
    return _all(same)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether shapes broadcast together and all elements are then equal."""
    shapes = shape(a1), shape(a2)
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return _all(elementwise.equal(a1, a2))


class _ArrayType(type):
    """Makes ``isinstance(x, ndarray)`` true for NumPy's arrays and for traced ones."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, np.ndarray | Tracer | StandsForArray)


class ndarray(metaclass=_ArrayType):
    """What an array is to `isinstance`: `numpy.ndarray`, or a traced value.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> isinstance(np.ones(3), fg.numpy.ndarray)
        True
    """
