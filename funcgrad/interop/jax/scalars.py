"""Dtypes that are functions too: ``jnp.float32(x)``, and ``x.dtype == jnp.float32``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import dtypes, numpy
from funcgrad.errors import ArgumentError
from funcgrad.interop.jax.arrays import Adopted
from funcgrad.interop.jax.widths import HALVES, ml_dtypes
from funcgrad.numpy import asarray
from funcgrad.random.key_arrays import KeyArray

_array = Adopted(asarray, stores=True)


class ScalarKind(type):
    """The class of the classes of `scalar_kinds`."""

    dtype: np.dtype[Any]

    def __call__(cls, x: Any = 0) -> Any:
        return _array(x, cls.dtype)

    def __eq__(cls, other: object) -> bool:
        return cls is other or other in (cls.dtype, cls.dtype.type)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)


def _kind(name: str) -> ScalarKind:
    return ScalarKind(name, (), {"dtype": np.dtype(name.rstrip("_")), "__module__": "jax.numpy"})


SCALAR_KINDS: dict[str, ScalarKind] = {
    name: _kind(name)
    for name in (
        "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128",
    )
}  # fmt: skip
SCALAR_KINDS |= {
    **{dtype.name: _kind(dtype.name) for dtype in HALVES},
    "bool": SCALAR_KINDS["bool_"],
    "int_": SCALAR_KINDS["int64"],
    "uint": SCALAR_KINDS["uint64"],
    "double": SCALAR_KINDS["float64"],
    "single": SCALAR_KINDS["float32"],
    "csingle": SCALAR_KINDS["complex64"],
    "cdouble": SCALAR_KINDS["complex128"],
    "float_": SCALAR_KINDS["float64"],
    "complex_": SCALAR_KINDS["complex128"],
}


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Compare dtypes as `funcgrad.dtypes` does, also these functions and those of ml_dtypes."""
    if isinstance(arg1, KeyArray):
        raise ArgumentError("issubdtype: the first argument must be a dtype, got keys.")
    first, second = (q.dtype.type if isinstance(q, ScalarKind) else q for q in (arg1, arg2))
    family = _family(first)
    if family is None:
        return dtypes.issubdtype(first, second)
    if isinstance(second, type) and issubclass(second, np.generic) and _family(second) is None:
        return issubclass(family, second)
    return bool(np.dtype(second) == np.dtype(first))


def _family(dtype: Any) -> type[np.number[Any]] | None:
    """The kind of NumPy's that a dtype of ml_dtypes belongs to, of which NumPy knows nothing."""
    named = np.dtype(dtype) if isinstance(dtype, str) else dtype
    scalar = named.type if isinstance(named, np.dtype) else named
    if getattr(scalar, "__module__", "") != "ml_dtypes":
        return None
    name = np.dtype(scalar).name
    if "float" in name:
        return np.floating
    return np.unsignedinteger if name.startswith("u") else np.signedinteger


def _limits(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of a dtype, also of arrays, traced ones and numbers."""

    @functools.wraps(function, updated=())
    def compute(dtype: Any) -> Any:
        # The classes of NumPy's scalars have an attribute of that name, too, which is no dtype.
        found = getattr(dtype, "dtype", None)
        return function(found if isinstance(found, np.dtype) else dtype)

    return compute


finfo, iinfo = _limits(np.finfo if ml_dtypes is None else ml_dtypes.finfo), _limits(np.iinfo)


def iscomplexobj(x: Any) -> bool:
    """Whether an array, a number or a kind of numbers is complex."""
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.kind == "c"
    return x is not None and numpy.iscomplexobj(x)


def isrealobj(x: Any) -> bool:
    """Whether it is not complex."""
    return not iscomplexobj(x)
