"""NumPy's scalar types as names of dtypes that also convert traced values.

``float32(x)`` is ``x`` as float32, whatever ``x`` is. Everywhere else these types stand for
NumPy's: as ``dtype=``, in ``np.dtype(...)``, ``isinstance``, ``issubclass``, comparisons and as
keys. They have no instances: what they return is an array, a NumPy scalar or a traced value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.numpy.promotion import as_value, holds_tracer
from funcgrad.numpy.shaping import astype

__all__ = [
    "bool_", "complex64", "complex128", "float32", "float64", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


class ScalarType(type):
    """Type of the types below; ``of`` is NumPy's type."""

    of: type[Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and holds_tracer(args[0]):
            return astype(as_value(*args, **kwargs), cls.of)
        return cls.of(*args, **kwargs)

    @property
    def dtype(cls) -> np.dtype[Any]:
        """The dtype that the type stands for."""
        return np.dtype(cls.of)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.of)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, cls.of)

    def __eq__(cls, other: object) -> bool:
        # A dtype says itself that it equals the type.
        return other is cls or other is cls.of or NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.of)

    def __repr__(cls) -> str:
        return f"<class 'funcgrad.numpy.{cls.__name__}'>"


def _like(scalar: type[Any]) -> Any:
    """The type that stands for one of NumPy's, and is derived from it where NumPy permits that."""
    bases = () if scalar is np.bool_ else (scalar,)
    members = {
        "of": scalar,
        "__slots__": (),
        "__module__": "funcgrad.numpy",
        "__doc__": (
            f"`numpy.{scalar.__name__}`, as a dtype and as a conversion, also of traced values.\n\n"
            "Args:\n    *args: Array, number or traced value, of any shape; by default zero.\n"
            f"    **kwargs: As of `numpy.{scalar.__name__}`.\n\n"
            f"Returns:\n    The value as {scalar.__name__}.\n\n"
            "Example:\n    >>> import funcgrad as fg\n"
            f"    >>> fg.numpy.{scalar.__name__}(3)\n    {scalar(3)!r}\n"
        ),
    }
    return ScalarType(scalar.__name__, bases, members)


if TYPE_CHECKING:
    from numpy import (
        bool_,
        complex64,
        complex128,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )  # fmt: skip
else:
    bool_ = _like(np.bool_)
    int8, int16, int32, int64 = map(_like, (np.int8, np.int16, np.int32, np.int64))
    uint8, uint16, uint32, uint64 = map(_like, (np.uint8, np.uint16, np.uint32, np.uint64))
    float32, float64 = _like(np.float32), _like(np.float64)
    complex64, complex128 = _like(np.complex64), _like(np.complex128)
