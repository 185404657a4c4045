"""Questions about arrays whose answers are known while values are not: shapes, dtypes, kinds.

And the three that compare whole arrays, whose answers may be traced.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import dtypes
from funcgrad.base.dialect import default_dtype
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import is_complex, weak_representative
from funcgrad.errors import ArgumentError
from funcgrad.numpy import creating, elementwise
from funcgrad.numpy.promotion import as_value, normalize_axes, promote_inexact, strong
from funcgrad.numpy.writable import FUNCTIONS
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.objects import StandsForArray, unwrapped
from funcgrad.primitives.reductions import ReduceAll
from funcgrad.primitives.shape import shape_of

__all__ = [
    "allclose", "angle", "array_equal", "array_equiv", "broadcast_shapes", "can_cast", "copy",
    "imag", "isclose", "iscomplex", "iscomplexobj", "isreal", "isrealobj", "isscalar",
    "issubdtype", "ndarray", "ndim", "promote_types", "real", "result_type", "shape", "size",
]  # fmt: skip

broadcast_shapes = np.broadcast_shapes


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype belongs to a kind of dtypes.

    As `numpy.issubdtype`, also of dtypes that NumPy does not have, as those of random keys.

    Args:
        arg1: Dtype.
        arg2: Dtype, or a kind of dtypes such as ``numpy.floating``.
    Example: fg.numpy.issubdtype(np.float32, np.floating) -> True
    """
    return dtypes.issubdtype(arg1, arg2)


def promote_types(a: Any, b: Any) -> np.dtype[Any]:
    """Smallest dtype to which two can be converted, as `numpy.promote_types`.

    Example: fg.numpy.promote_types(np.float32, np.int32) -> dtype('float64')
    """
    return default_dtype(np.promote_types(a, b))


def shape(a: Any) -> tuple[int, ...]:
    """The lengths of the axes: what an object says itself, and none for ``None``, as in NumPy.

    Example: fg.numpy.shape(np.array([[1.0, 2.0], [3.0, 4.0]])) -> (2, 2)
    """
    if a is None:
        return ()
    known = getattr(a, "shape", None)
    return known if isinstance(known, tuple) else shape_of(as_value(a, "shape"))


def ndim(a: Any) -> int:
    """The number of axes.

    Example: fg.numpy.ndim(np.array([[1.0, 2.0], [3.0, 4.0]])) -> 2
    """
    return len(shape(a))


def size(a: Any, axis: int | tuple[int, ...] | None = None) -> int:
    """The number of elements, or the length of one axis, or the product of those of several.

    Args: axis: The axis, counted from the end if negative; by default all of them, or the flattened
            array.
    Example: fg.numpy.size(np.array([[1.0, 2.0], [3.0, 4.0]])) -> 4
    """
    lengths = shape(a)
    if axis is None:
        return math.prod(lengths)
    if isinstance(axis, tuple):
        return math.prod(lengths[i] for i in normalize_axes(axis, len(lengths), "size"))
    return lengths[axis]


def isscalar(element: Any) -> bool:
    """Whether an object is a number.

    As `numpy.isscalar`; a traced value counts as an array.

    Example: fg.numpy.isscalar(3.0) -> True
    """
    return not isinstance(element, Tracer) and np.isscalar(element)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex.

    Example: fg.numpy.iscomplexobj(np.array([1.0, 2.0 + 3.0j])) -> True
    """
    return is_complex(aval_of(as_value(x, "iscomplexobj")).dtype)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex.

    Example: fg.numpy.isrealobj(np.array([1.0, 2.0 + 3.0j])) -> False
    """
    return not iscomplexobj(x)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype to which arrays, numbers and dtypes promote, as `numpy.result_type`.

    Args: *arrays_and_dtypes: Arrays, numbers and dtypes.
    Example: fg.numpy.result_type(np.float32, 1.0) -> dtype('float32')
    """
    return np.result_type(*map(_promotes_as, arrays_and_dtypes))


def _promotes_as(x: Any) -> Any:
    x = unwrapped(x)
    if not isinstance(x, Tracer):
        return x
    return weak_representative(x.aval.dtype) if x.aval.weak_type else x.aval.dtype


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether a dtype can be converted to another one, as `numpy.can_cast`.

    Args:
        from_: Dtype.
        to: Dtype.
        casting: How much a conversion may lose, as ``"safe"`` or ``"same_kind"``.
    Example: fg.numpy.can_cast(np.float64, np.float32) -> False
    """
    from_ = unwrapped(from_)
    return np.can_cast(from_.dtype if isinstance(from_, Tracer) else from_, to, casting)


def copy(a: Any, order: str = "K") -> Any:
    """A copy of an array.

    As `numpy.copy`; traced arrays are immutable and need none.

    Example: fg.numpy.copy([1.0, 2.0]) -> array([1., 2.])
    """
    return creating.array(a)


def real(val: Any) -> Any:
    """The real part.

    Example: fg.numpy.real(np.array([1.0, 2.0 + 3.0j])) -> array([1., 2.])
    """
    val = as_value(val, "real")
    if isinstance(val, np.generic | int | float | complex):
        return val.real
    return p.real.bind(strong(val)) if iscomplexobj(val) else val


def imag(val: Any) -> Any:
    """The imaginary part; zeros of the same dtype for real values.

    Example: fg.numpy.imag(np.array([1.0, 2.0 + 3.0j])) -> array([0., 3.])
    """
    val = as_value(val, "imag")
    if isinstance(val, np.generic | int | float | complex):
        return val.imag
    return p.imag.bind(strong(val)) if iscomplexobj(val) else creating.zeros_like(val)


def angle(z: Any, deg: bool = False) -> Any:
    """The argument of complex numbers, in radians or degrees.

    Args:
        z: Complex or real numbers.
        deg: Whether the angle is in degrees.
    Example: fg.numpy.angle(1.0j) -> np.float64(1.5707963267948966)
    """
    radians = elementwise.arctan2(imag(z), real(z))
    return elementwise.degrees(radians) if deg else radians


def isreal(x: Any) -> Any:
    """Whether imaginary parts are zero.

    Example: fg.numpy.isreal(np.array([1.0, 2.0 + 3.0j])) -> array([ True, False])
    """
    return elementwise.equal(imag(x), 0)


def iscomplex(x: Any) -> Any:
    """Whether imaginary parts are not zero.

    Example: fg.numpy.iscomplex(np.array([1.0, 2.0 + 3.0j])) -> array([False,  True])
    """
    return elementwise.not_equal(imag(x), 0)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """``|a - b| <= atol + rtol |b|``, as `numpy.isclose`; infinities are close to themselves.

    Args: rtol: Allowed difference, relative to ``b``.
    Example: fg.numpy.isclose(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9]))
        -> array([ True,  True])
    """
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
    """Whether all elements are close, as `isclose` says.

    Args: rtol: Allowed difference, relative to ``b``.
    Example: fg.numpy.allclose(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9])) -> np.True_
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and all elements are equal.

    Example: fg.numpy.array_equal(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9])) -> np.False_
    """
    a1, a2 = as_value(a1, "array_equal"), as_value(a2, "array_equal")
    if shape_of(a1) != shape_of(a2):
        return False
    same = elementwise.equal(a1, a2)
    if equal_nan:
        both = elementwise.logical_and(elementwise.isnan(a1), elementwise.isnan(a2))
        same = elementwise.logical_or(same, both)
    return _all(same)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether shapes broadcast together and all elements are then equal.

    Example: fg.numpy.array_equiv(np.array([1.0, 1.0]), np.array([[1.0, 1.0], [1.0, 1.0]]))
        -> np.True_
    """
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

    def __call__(cls, shape: Any, dtype: Any = float, **options: Any) -> Any:
        others = [name for name, value in options.items() if value is not None]
        if others:
            raise ArgumentError(
                f"ndarray(shape, dtype): {', '.join(others)} is not supported. Use numpy.ndarray "
                "for an array over the memory of another object."
            )
        return FUNCTIONS["empty"](shape, dtype)


class ndarray(metaclass=_ArrayType):
    """Stand for arrays in `isinstance`: `numpy.ndarray`, and traced values.

    Called with a shape and a dtype it makes an array as `empty` does.

    Args:
        shape: Length of every axis, a whole number or several.
        dtype: Type of the elements.
        options: What else `numpy.ndarray` takes: only ``None``.
    Returns: An array of arbitrary elements.
    Raises: ArgumentError: For an array over the memory of another object.

    Example:
        >>> isinstance(np.ones(3), fg.numpy.ndarray)
        True
        >>> fg.numpy.ndarray((2, 3), dtype=np.float32).shape
        (2, 3)
    """
