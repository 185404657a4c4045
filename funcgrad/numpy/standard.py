"""Names of the array API standard, and of NumPy's that convert and ask for types.

There is one device, ``"cpu"``. Dtypes are those that funcgrad computes in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import check_dtype
from funcgrad.errors import ArgumentError
from funcgrad.numpy.creating import array, asarray
from funcgrad.numpy.joining import vstack
from funcgrad.numpy.ordering import value_if_known
from funcgrad.numpy.promotion import as_value
from funcgrad.numpy.scalars import complex64, complex128, float32, float64
from funcgrad.primitives.objects import unwrapped
from funcgrad.primitives.shape import reshape, shape_of

__all__ = [
    "asanyarray", "asarray_chkfinite", "ascontiguousarray", "cdouble", "common_type", "csingle",
    "double", "finfo", "from_dlpack", "fromiter", "iinfo", "isdtype", "iterable",
    "min_scalar_type", "row_stack", "single", "ufunc",
]  # fmt: skip

single, double, csingle, cdouble = float32, float64, complex64, complex128
row_stack = vstack

_BY_KIND = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
_DTYPES = tuple(
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
        "float64", "complex64", "complex128",
    )
)  # fmt: skip


class NamespaceInfo:
    """Capabilities of the namespace, in the words of the array API standard."""

    def capabilities(self) -> dict[str, Any]:
        """Indexing by masks and sizes that depend on data are there outside of vmap and jit."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The one device."""
        return "cpu"

    def devices(self) -> list[str]:
        """The one device."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of new arrays by kind."""
        check_placement("default_dtypes", device=device)
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of a kind, or of several, by name; by default all."""
        check_placement("dtypes", device=device)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        return {d.name: d for d in _DTYPES if kind is None or any(isdtype(d, k) for k in kinds)}


def __array_namespace_info__() -> NamespaceInfo:
    """Return the capabilities of the namespace, in the words of the array API standard.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.__array_namespace_info__().default_device()
        'cpu'
    """
    return NamespaceInfo()


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind, as `numpy.isdtype`.

    Args:
        dtype: The dtype.
        kind: A dtype, a name such as ``"real floating"``, or a tuple of them.
    Raises: ArgumentError: If the name is unknown.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.isdtype(fnp.float32, "real floating"), fnp.isdtype(fnp.int8, ("bool", "integral"))
        (True, True)
    """
    own = np.dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(own, k) for k in kind)
    if not isinstance(kind, str):
        return own == np.dtype(kind)
    if kind not in _BY_KIND:
        raise ArgumentError(f"isdtype: kind must be one of {sorted(_BY_KIND)}, got {kind!r}.")
    return own.kind in _BY_KIND[kind]


def finfo(dtype: Any) -> np.finfo[Any]:
    """Limits of a floating dtype.

    As `numpy.finfo`, of a dtype or of an array, which may be traced.

    Example: print(fg.numpy.finfo(fg.numpy.float32).eps) -> 1.1920929e-07
    """
    return np.finfo(_dtype_of(dtype))


def iinfo(type: Any) -> np.iinfo[Any]:
    """Limits of an integer dtype.

    As `numpy.iinfo`, of a dtype or of an array, which may be traced.

    Args: type: Dtype of integers, or an integer.
    Example: print(fg.numpy.iinfo(fg.numpy.zeros(2, fg.numpy.int8)).max) -> 127
    """
    return np.iinfo(_dtype_of(type))


def _dtype_of(x: Any) -> Any:
    """The dtype of an array or number; a dtype itself."""
    if isinstance(x, type | str | np.dtype):
        return np.dtype(x)
    x = unwrapped(x)
    is_value = isinstance(x, np.ndarray | np.generic | Tracer | int | float | complex)
    return aval_of(x).dtype if is_value else np.dtype(x)


def common_type(*arrays: Any) -> Any:
    """Inexact dtype that several arrays have in common.

    As `numpy.common_type`: the floating type that holds all of the arrays.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.common_type(fnp.zeros(2, fnp.float32), fnp.zeros(2, int)).__name__
        'float64'
    """
    avals = [aval_of(as_value(x, "common_type")) for x in arrays]
    return np.common_type(*(np.empty((1,) * bool(a.shape), a.dtype) for a in avals))


def min_scalar_type(a: Any) -> np.dtype[Any]:
    """Smallest dtype that holds a number.

    As `numpy.min_scalar_type`; of a traced number it is the dtype, as of an array.

    Example: fg.numpy.min_scalar_type(300) -> dtype('uint16')
    """
    x = as_value(a, "min_scalar_type")
    return aval_of(x).dtype if isinstance(x, Tracer) else np.min_scalar_type(x)


def iterable(y: Any) -> bool:
    """Whether an object can be iterated over.

    As `numpy.iterable`.

    Example: fg.numpy.iterable([1]), fg.numpy.iterable(2.0) -> (True, False)
    """
    y = unwrapped(y)
    return bool(y.shape) if isinstance(y, Tracer) else np.iterable(y)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array of another library, without a copy.

    As `numpy.from_dlpack`; traced values are what they are.

    Args:
        x: An object with ``__dlpack__``, or a traced value.
        copy: Whether to copy.
    Example: fg.numpy.from_dlpack(np.arange(3)) -> array([0, 1, 2])
    """
    check_placement("from_dlpack", device=device)
    x = unwrapped(x)
    if isinstance(x, Tracer):
        return x
    found = np.from_dlpack(x)
    check_dtype(found.dtype, "an array given to from_dlpack")
    return found.copy() if copy else found


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1) -> Any:
    """Vector of the elements of an iterable.

    As `numpy.fromiter`; the numbers may be traced.

    Args:
        iter: Gives numbers.
        count: How many to take; all by default.
    Raises: ValueError: If there are fewer.
    Example: fg.numpy.fromiter((i * i for i in range(4)), int) -> array([0, 1, 4, 9])
    """
    items: list[Any] = []
    for item in iter:
        if len(items) == count:
            break
        items.append(item)
    if len(items) < count:
        raise ValueError(f"fromiter: there are {len(items)} numbers, {count} were asked for.")
    return array(items, dtype)


def asanyarray(a: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array made from what is given.

    As `asarray`: subclasses of ndarray are taken for what they are to NumPy's functions.

    Example: fg.numpy.asanyarray([1.0, 2.0]) -> array([1., 2.])
    """
    return asarray(a, dtype, device=device, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """An array in row-major order, with at least one axis.

    As `numpy.ascontiguousarray`: an array of at least one axis; traced values have no order.

    Example: fg.numpy.ascontiguousarray(2.0) -> array([2.])
    """
    x = asarray(a, dtype)
    if not isinstance(x, Tracer):
        return np.ascontiguousarray(x)
    return x if shape_of(x) else reshape(x, (1,))


def asarray_chkfinite(a: Any, dtype: Any = None) -> Any:
    """An array made from what is given, whose elements are finite.

    As `asarray`; what is not finite raises, if the values are known.

    Raises: ValueError: If there is a nan or an infinity.
    Example: fg.numpy.asarray_chkfinite([1.0, 2.0]) -> array([1., 2.])
    """
    x = asarray(a, dtype)
    known = value_if_known(x)
    if known is not None and not np.all(np.isfinite(known)):
        raise ValueError("asarray_chkfinite: there are infs or nans.")
    return x


class _UfuncType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, np.ufunc) or (callable(instance) and hasattr(instance, "nin"))


class ufunc(metaclass=_UfuncType):
    """Type of functions of elements, for `isinstance`.

    Example: isinstance(fg.numpy.add, fg.numpy.ufunc), isinstance(fg.numpy.sum, fg.numpy.ufunc)
        -> (True, False)
    """
