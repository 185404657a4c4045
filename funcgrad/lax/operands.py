"""Operands of the functions of `lax`: arrays of one dtype, next to Python scalars.

Nothing is promoted here. A Python scalar takes the dtype of the arrays that it meets, as far as
its kind allows: an integer may become a float, a float never an integer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.dialect import default_dtype
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import PYTHON_SCALARS, ExtendedDtype, check_dtype, short_name
from funcgrad.errors import ArgumentError, DtypeError, KeyArrayError, ShapeError
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.objects import unwrapped

Array = Any
"""An `numpy.ndarray`, a NumPy scalar, or a traced array."""

ArrayLike = Any
"""An `Array` or a Python scalar."""

Shape = Sequence[int]

_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_KIND_NAMES = {"b": "bool", "i": "int", "u": "unsigned int", "f": "float", "c": "complex"}


def of_any_elements(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function that only moves, joins, chooses or compares elements, as users call it.

    Arrays of random keys say what it gives for them when it asks them for numbers.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Array:
        try:
            return function(*args, **kwargs)
        except KeyArrayError as error:
            return error.keys.answer(function, args, kwargs)

    call.__module__ = "funcgrad.lax"  # by which it is pickled
    return call


def check_operand(name: str, value: Any) -> ArrayLike:
    """The value of an operand, or an `ArgumentError` if it is a container rather than an array."""
    value = unwrapped(value)
    if isinstance(value, list | tuple | dict | str) or value is None:
        raise ArgumentError(
            f"lax.{name} needs arrays or scalars, got a {type(value).__name__}. Make it an array "
            "with np.asarray first."
        )
    return value


def array_operand(name: str, value: ArrayLike) -> Array:
    """``value`` as something that has a shape and a dtype."""
    value = check_operand(name, value)
    if isinstance(value, np.ndarray | np.generic | Tracer):
        return value
    array = np.asarray(value)
    return array if type(value) not in PYTHON_SCALARS else array.astype(default_dtype(array.dtype))


def same_dtype(name: str, *operands: ArrayLike) -> list[ArrayLike]:
    """The operands with Python scalars converted to the dtype that all others have.

    Raises: DtypeError: If the others differ, or a scalar is of a higher kind than they are.
    """
    operands = tuple(check_operand(name, x) for x in operands)
    avals = [aval_of(x) for x in operands]
    strong = next((a.dtype for a in avals if not a.weak_type), None)
    if strong is None:
        highest = max((a.dtype for a in avals), key=lambda dtype: _RANK[dtype.kind])
        return [_weak(x, highest) for x in operands]
    for aval in avals:
        is_lower = aval.weak_type and _RANK[aval.dtype.kind] <= _RANK[strong.kind]
        if aval.dtype != strong and not is_lower:
            raise _differing_dtypes(name, avals)
    return [_strong(x, strong) if a.weak_type else x for x, a in zip(operands, avals, strict=True)]


def _weak(value: ArrayLike, dtype: np.dtype[Any]) -> ArrayLike:
    """A weak value of another kind that is weak again, if it can be."""
    if aval_of(value).dtype == dtype:
        return value
    return convert(value, dtype) if isinstance(value, Tracer) else dtype.type(value).item()


def _strong(value: ArrayLike, dtype: np.dtype[Any]) -> Array:
    return convert(value, dtype) if isinstance(value, Tracer) else dtype.type(value)


def _differing_dtypes(name: str, avals: Sequence[ShapedArray]) -> DtypeError:
    types = ", ".join(map(str, avals))
    return DtypeError(
        f"lax.{name} needs arguments of one dtype, got {types}. The functions of funcgrad.lax do "
        "not promote: use lax.convert_element_type, or the counterpart in funcgrad.numpy."
    )


def check_shapes(name: str, *operands: ArrayLike) -> None:
    """Check that operands are scalars, or agree in every axis or have length 1 there.

    Raises: ShapeError: If they do not, or differ in their number of axes.
    """
    shapes = {shape_of(x) for x in operands} - {()}
    ranks = {len(shape) for shape in shapes}
    if len(ranks) > 1 or any(len(set(axis) - {1}) > 1 for axis in zip(*shapes, strict=False)):
        types = ", ".join(str(aval_of(x)) for x in operands)
        raise ShapeError(
            f"lax.{name} needs scalars and arrays whose axes are equal in number, and each equal "
            f"in length or of length 1, got {types}. The functions of funcgrad.lax add no axes: "
            "use lax.broadcast_in_dim, or funcgrad.numpy."
        )


def check_kinds(name: str, dtype: np.dtype[Any], kinds: str) -> None:
    """Raise a `DtypeError` unless ``dtype`` is of one of ``kinds`` (`numpy.dtype.kind`)."""
    if dtype.kind not in kinds:
        allowed = ", ".join(_KIND_NAMES[k] for k in kinds)
        raise DtypeError(
            f"lax.{name} is not defined for {short_name(dtype)}: it needs a dtype of kind "
            f"{allowed}. Convert with lax.convert_element_type."
        )


def checked(operation: Primitive, *operands: Array) -> Any:
    """The operation applied, after its own checks of shapes and dtypes.

    Evaluation leaves them to NumPy, which is less strict and names other functions.
    """
    operation.abstract_eval(*map(aval_of, operands))
    return operation.bind(*operands)


def canonical_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype that a dtype, its name, a scalar type or a Python type stands for."""
    if isinstance(dtype, type) and dtype in PYTHON_SCALARS:
        return PYTHON_SCALARS[dtype]
    if isinstance(dtype, ExtendedDtype):
        raise DtypeError(f"the requested array would hold numbers, but got dtype {dtype}.")
    wanted = np.dtype(dtype)
    if wanted.itemsize == 2:  # floats of 16 bits, where the dialect has them
        wanted = default_dtype(wanted)
    return check_dtype(wanted, "the requested array")


def canonical_axis(name: str, axis: int, ndim: int) -> int:
    """``axis`` counted from the front.

    Raises: ShapeError: If there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"lax.{name}: there is no axis {axis} in an array of {ndim} axes. Valid are {-ndim} "
            f"to {ndim - 1}."
            if ndim
            else f"lax.{name}: there is no axis {axis} in a scalar."
        )
    return int(axis) % ndim


def canonical_axes(name: str, axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """All ``axes`` counted from the front, each at most once."""
    counted = tuple(canonical_axis(name, a, ndim) for a in axes)
    if len(set(counted)) != len(counted):
        raise ShapeError(f"lax.{name}: an axis is named twice in {tuple(axes)}.")
    return counted
