"""Parameters of distributions: dtypes of samples, and broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.base.dialect import default_dtype
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import FLOAT64
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.lax.operands import Array, ArrayLike, canonical_dtype
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.objects import unwrapped
from funcgrad.random.keys import canonical_shape


def array_of(name: str, value: ArrayLike) -> Array:
    """A parameter as something that has a shape and a dtype, in the bits of the dialect.

    Raises: ArgumentError: If it is a container.
    """
    value = unwrapped(value)
    if not isinstance(value, np.ndarray | np.generic | Tracer | int | float | complex):
        raise ArgumentError(
            f"random.{name} needs arrays or scalars, got a {type(value).__name__}. Make it an "
            "array with np.asarray first."
        )
    array = np.asarray(value) if isinstance(value, int | float | complex) else value
    dtype = default_dtype(array.dtype)
    return array if dtype == array.dtype else convert(array, dtype)


def sample_dtype(dtype: Any, default: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of samples, in the bits of the dialect."""
    return default_dtype(default if dtype is None else canonical_dtype(dtype))


def floating_dtype(name: str, dtype: Any, kinds: str = "f") -> np.dtype[Any]:
    """The dtype of the samples: float64 by default.

    Raises: DtypeError: If it is not of one of ``kinds``.
    """
    wanted = sample_dtype(dtype, FLOAT64)
    if wanted.kind not in kinds:
        raise DtypeError(f"random.{name} needs a floating dtype, got {wanted}.")
    return wanted


def parameter(name: str, value: ArrayLike, dtype: np.dtype[Any]) -> Array:
    """A parameter of a distribution in the dtype of the samples."""
    if isinstance(value, int | float):
        return dtype.type(value)
    return convert(array_of(name, value), dtype)


def parameter_shape(name: str, shape: Any, *parameters: ArrayLike) -> tuple[int, ...]:
    """The shape of the samples: as asked for, or that of the parameters together.

    Raises: ShapeError: If the parameters do not broadcast to what was asked for.
    """
    own = lax.broadcast_shapes(*(shape_of(p) for p in parameters))
    if shape is None:
        return own
    wanted = canonical_shape(name, shape)
    if lax.broadcast_shapes(wanted, own) != wanted:
        raise ShapeError(
            f"random.{name}: parameters of shape {own} do not broadcast to the shape {wanted} that "
            "was asked for."
        )
    return wanted
