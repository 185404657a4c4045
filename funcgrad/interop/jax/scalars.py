"""Dtypes that are functions too: ``jnp.float32(x)``, and ``x.dtype == jnp.float32``."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.interop.jax.arrays import adopt
from funcgrad.numpy import asarray


class ScalarKind(type):
    """The class of the classes of `scalar_kinds`."""

    dtype: np.dtype[Any]

    def __call__(cls, x: Any) -> Any:
        return adopt(asarray(x, cls.dtype))

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


class _KeyKind:
    """What dtypes of random keys are a kind of; here they are uint32."""


prng_key = extended = _KeyKind


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """As `numpy.issubdtype`; no dtype is one of random keys."""
    if arg2 is _KeyKind:
        return False
    first, second = (q.dtype.type if isinstance(q, ScalarKind) else q for q in (arg1, arg2))
    return bool(np.issubdtype(first, second))


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype[Any]:
    """The dtype: all have the bits that they say."""
    return np.dtype(dtype)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """As `numpy.result_type`.

    Args:
        *args: Arrays, numbers, dtypes.
        return_weak_type_flag: Whether to say, too, whether all of them are Python's numbers.
    """
    found = np.result_type(*args)
    is_weak = all(type(x) in (bool, int, float, complex) for x in args)
    return (found, is_weak) if return_weak_type_flag else found


def itemsize_bits(dtype: Any) -> int:
    """How many bits an element has."""
    return 8 * np.dtype(dtype).itemsize


def scalar_type_of(x: Any) -> type:
    """Python's type of numbers of the kind of ``x``."""
    kind = np.result_type(x).kind
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[kind]
