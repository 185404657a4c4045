"""NumPy's own names that compute nothing from numbers, for programs that import one NumPy.

Text, files, dates, settings, iterators: a program whose ``import numpy as np`` became
``import funcgrad.numpy as np`` finds them here. Classes and settings are NumPy's own, and so are
functions that only read their arguments; these refuse traced values. Names of C's types are those
of the types with sizes. Dtypes in which funcgrad does not compute can be named, not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import (
    False_,
    ScalarType,
    True_,
    broadcast,
    busdaycalendar,
    bytes_,
    character,
    clongdouble,
    complexfloating,
    copyto,
    datetime64,
    dtype,
    e,
    errstate,
    euler_gamma,
    flatiter,
    flexible,
    float16,
    floating,
    generic,
    get_include,
    get_printoptions,
    getbufsize,
    geterr,
    geterrcall,
    half,
    inexact,
    inf,
    integer,
    little_endian,
    longdouble,
    matrix,
    memmap,
    nan,
    ndenumerate,
    ndindex,
    nditer,
    nested_iters,
    newaxis,
    number,
    object_,
    pi,
    poly1d,
    printoptions,
    putmask,
    recarray,
    record,
    sctypeDict,
    set_printoptions,
    setbufsize,
    seterr,
    seterrcall,
    show_config,
    show_runtime,
    signedinteger,
    str_,
    timedelta64,
    typecodes,
    unsignedinteger,
    void,
)  # fmt: skip
from numpy.exceptions import ComplexWarning

from funcgrad.core.trace import Tracer
from funcgrad.numpy import scalars
from funcgrad.numpy.host_functions import host_functions
from funcgrad.primitives.objects import unwrapped


def _sized(code: str) -> Any:
    """Our name of one of C's types."""
    return getattr(scalars, np.dtype(code).name)


byte, ubyte = _sized("b"), _sized("B")
short, ushort = _sized("h"), _sized("H")
intc, uintc = _sized("i"), _sized("I")
long, ulong = _sized("l"), _sized("L")
longlong, ulonglong = _sized("q"), _sized("Q")
uintp = _sized("P")

# Only where C's long double has so many bits.
_LONG = [n for n in ("float128", "complex256") if hasattr(np, n)]
vars().update({n: getattr(np, n) for n in _LONG})

_HOST_FUNCTIONS = host_functions(
    "numpy",
    """
    array2string array_repr array_str asmatrix base_repr binary_repr bmat busday_count busday_offset
    datetime_as_string datetime_data format_float_positional format_float_scientific frombuffer
    fromfile fromregex fromstring genfromtxt info is_busday isfortran isnat load loadtxt
    may_share_memory mintypecode save savetxt savez savez_compressed shares_memory typename
    """,
)
vars().update(_HOST_FUNCTIONS)


def asfortranarray(a: Any, dtype: Any = None) -> Any:
    """An array as it is: where its elements lie is no part of a traced value.

    Returns: The same elements; outside of transformations in NumPy's column-major order.
    Example: fg.numpy.asfortranarray([[1, 2], [3, 4]]).flags.f_contiguous -> True
    """
    a = unwrapped(a)
    if isinstance(a, Tracer):
        return a if dtype is None else a.astype(dtype)
    return np.asfortranarray(a, dtype)


def require(a: Any, dtype: Any = None, requirements: Any = None) -> Any:
    """An array of a dtype; what is required of its memory holds outside of transformations.

    Args:
        a: Array of any shape and dtype.
        requirements: As those of `numpy.require`.
    Returns: The same elements.
    Example: fg.numpy.require([1, 2], "f8", ["C"]) -> array([1., 2.])
    """
    a = unwrapped(a)
    if isinstance(a, Tracer):
        return a if dtype is None else a.astype(dtype)
    return np.require(a, dtype, requirements)


__all__ = [
    "ComplexWarning", "False_", "ScalarType", "True_", "asfortranarray", "broadcast",
    "busdaycalendar", "byte", "bytes_", "character", "clongdouble", "complexfloating", "copyto",
    "datetime64", "dtype", "e", "errstate", "euler_gamma", "flatiter", "flexible", "float16",
    "floating", "generic", "get_include", "get_printoptions", "getbufsize", "geterr", "geterrcall",
    "half", "inexact", "inf", "intc", "integer", "little_endian", "long", "longdouble", "longlong",
    "matrix", "memmap", "nan", "ndenumerate", "ndindex", "nditer", "nested_iters", "newaxis",
    "number", "object_", "pi", "poly1d", "printoptions", "putmask", "recarray", "record", "require",
    "sctypeDict", "set_printoptions", "setbufsize", "seterr", "seterrcall", "short", "show_config",
    "show_runtime", "signedinteger", "str_", "timedelta64", "typecodes", "ubyte", "uintc", "uintp",
    "ulong", "ulonglong", "unsignedinteger", "ushort", "void",
]  # fmt: skip
__all__ += [*_LONG, *_HOST_FUNCTIONS]
