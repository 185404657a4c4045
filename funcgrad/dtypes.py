"""The dtypes that funcgrad computes with, and how they promote.

Promotion is NumPy's (NEP 50): Python scalars are weak, everything else is strong. This file
knows dtypes only; shapes and abstract values live in `core.avals`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import finfo, iinfo

from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.base.scalars import ScalarComplex, ScalarFloat, ScalarInt
from funcgrad.errors import DtypeError
from funcgrad.errors import DtypePromotionError as TypePromotionError

__all__ = [
    "TypePromotionError", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo",
    "issubdtype", "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip

SUPPORTED: dict[np.dtype[Any], str] = {
    dtype: "bool" if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"
    for dtype in map(
        np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16")
    )
}
"""Supported dtypes and their short names in printed programs."""

float0: np.dtype[Any] = np.dtype([("float0", np.void, 0)])
"""Dtype of the tangents of integers and booleans: a space with a single point, zero bytes wide."""

BOOL = np.dtype(np.bool_)
INT8 = np.dtype(np.int8)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)
UINT64 = np.dtype(np.uint64)
FLOAT64 = np.dtype(np.float64)
COMPLEX128 = np.dtype(np.complex128)

PYTHON_SCALARS: dict[type, np.dtype[Any]] = {
    bool: BOOL,
    int: INT64,
    float: FLOAT64,
    complex: COMPLEX128,
    ScalarInt: INT64,
    ScalarFloat: FLOAT64,
    ScalarComplex: COMPLEX128,
}
"""Types of the weak scalars and the dtype that each has on its own."""

_WEAK_REPRESENTATIVE: dict[str, Any] = {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}

_REASONS = {
    "e": "float16 has no arithmetic on CPUs; use .astype(np.float32)",
    "g": "longdouble differs between platforms; use .astype(np.float64)",
    "G": "longdouble differs between platforms; use .astype(np.complex128)",
    "O": "object arrays stand for arrays only if each of their objects is a number that fits into "
    "one; build the array with a numeric dtype",
    "U": "strings cannot be differentiated or compiled; encode them as integers",
    "S": "strings cannot be differentiated or compiled; encode them as integers",
    "M": "dates cannot be differentiated; subtract an origin and divide by a unit",
    "m": "time spans cannot be differentiated; divide by a unit, such as np.timedelta64(1, 's')",
}


def short_name(dtype: np.dtype[Any]) -> str:
    """The name of a dtype in printed types, such as ``f32``."""
    return SUPPORTED.get(dtype) or ("float0" if dtype == float0 else str(dtype))


def check_dtype(dtype: np.dtype[Any], what: str = "an array") -> np.dtype[Any]:
    """Return ``dtype``, or raise a `DtypeError` that names ``what`` if it is not supported."""
    if dtype in SUPPORTED:
        return dtype
    reason = _REASONS.get(dtype.char, "convert it with .astype() to a supported dtype")
    if not dtype.isnative:
        reason = "its byte order is not this machine's; use .astype(dtype.newbyteorder('='))"
    names = "bool, (u)int8-64, float32, float64, complex64, complex128"
    raise DtypeError(
        f"{what} has dtype {dtype}, which is not supported: {reason}. "
        f"funcgrad computes with {names}."
    )


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of this dtype have derivatives (floating or complex)."""
    return dtype.kind in "fc"


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is real floating point."""
    return dtype.kind == "f"


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is complex."""
    return dtype.kind == "c"


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the real part."""
    if dtype.kind == "c":
        return np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    return dtype


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts have the precision of ``dtype``."""
    return np.dtype(np.complex64 if dtype == np.float32 or dtype == np.complex64 else np.complex128)


def weak_representative(dtype: np.dtype[Any]) -> Any:
    """A Python scalar that promotes as a weak value of this dtype does."""
    return _WEAK_REPRESENTATIVE[dtype.kind]


def inexact_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which NumPy evaluates a float-valued function of ``dtype``.

    Integers up to 8 bits would give float16 and those of 16 bits float32 in NumPy; float16 is
    not supported, so everything that is exact becomes float32 for 8 and 16 bits, else float64.
    """
    if dtype.kind in "fc":
        return dtype
    if dialect() is not NUMPY:  # in JAX with 64 bits: of what is that wide
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    return np.dtype(np.float32 if dtype.itemsize <= 2 and dtype != BOOL else np.float64)


# Queries that programs for JAX make, under the names of ``jax.dtypes``.


class extended:
    """Kind of the dtypes that NumPy does not have: those of random keys.

    Example: fg.dtypes.issubdtype(np.float64, fg.dtypes.extended) -> False
    """


class prng_key(extended):
    """Kind of the dtypes of random keys.

    Example: fg.dtypes.issubdtype(fg.dtypes.prng_key, fg.dtypes.extended) -> True
    """


class ExtendedDtype:
    """Base of dtypes that NumPy does not have, of arrays that hold an array of numbers.

    Attributes:
        name: What it prints as.
        type: Its kind, such as `prng_key`.
        base: Dtype of the numbers.
        itemsize: Bytes of an element.
        n_parts: How many arrays of numbers there are, each of the shape of the whole.
    """

    __slots__ = ()
    name: str
    type: type[extended]
    base: np.dtype[Any]
    itemsize: int
    n_parts: int

    def holding(self, *arrays: Any) -> Any:
        """The array of this dtype that holds others, or what stands for such arrays."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a dtype belongs to a kind of dtypes.

    As `numpy.issubdtype`, also of dtypes that NumPy does not have.

    Args:
        a: A dtype, or a kind of dtypes.
        b: Likewise.

    Example:
        >>> key = fg.random.key(0)
        >>> fg.dtypes.issubdtype(key.dtype, fg.dtypes.prng_key)
        True
    """
    a, b = (q.type if isinstance(q, ExtendedDtype) else q for q in (a, b))
    if any(isinstance(q, type) and issubclass(q, extended) for q in (a, b)):
        return b is np.generic or (all(isinstance(q, type) for q in (a, b)) and issubclass(a, b))
    return bool(np.issubdtype(a, b))


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype: all have the bits that they say.

    Args:
        dtype: A dtype, or the name of one.
        allow_extended_dtype: Whether it may be one that NumPy does not have.
    Example: fg.dtypes.canonicalize_dtype("float64") -> dtype('float64')
    """
    if allow_extended_dtype and isinstance(dtype, ExtendedDtype):
        return dtype
    return np.dtype(dtype)


def itemsize_bits(dtype: Any) -> int:
    """How many bits an element has.

    Args: dtype: A dtype, or the name of one.
    Example: fg.dtypes.itemsize_bits(np.float32) -> 32
    """
    if dtype is None:
        raise ValueError("dtypes.itemsize_bits: the dtype must not be None.")
    known = dtype if isinstance(dtype, ExtendedDtype) else np.dtype(dtype)
    return 8 * known.itemsize


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Dtype to which arrays and dtypes are promoted together, as `numpy.result_type`.

    Args:
        *args: Arrays, numbers, dtypes.
        return_weak_type_flag: Whether to say, too, whether all of them are Python's numbers.
    Example: fg.dtypes.result_type(np.float32, 1.0) -> dtype('float32')
    """
    found = np.result_type(*args)
    is_weak = all(type(x) in (bool, int, float, complex) for x in args)
    return (found, is_weak) if return_weak_type_flag else found


def scalar_type_of(x: Any) -> type:
    """Python's type of numbers of the kind of ``x``.

    Args: x: Array, number or dtype.
    Raises: DtypeError: If there is none.
    Example: fg.dtypes.scalar_type_of(np.float32) -> <class 'float'>
    """
    kind = np.result_type(x).kind
    found = {"b": bool, "i": int, "u": int, "f": float, "c": complex}.get(kind)
    if found is None:
        raise DtypeError(f"dtypes.scalar_type_of: Python has no numbers like those of {x!r}.")
    return found
