"""Abstract values: what is known of an array before its contents are.

An aval is a shape, a dtype and whether the value is *weak*: a Python scalar, or the result of
Python arithmetic on Python scalars, which takes the dtype of what it meets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.dtypes import PYTHON_SCALARS, check_dtype, short_name
from funcgrad.errors import ArgumentError, ShapeError

Shape = tuple[int, ...]


class ShapedArray:
    """Shape, dtype and weakness of an array.

    Args:
        shape: Tuple of non-negative ints.
        dtype: A supported NumPy dtype, in native byte order.
        weak_type: Whether the value promotes as a Python scalar.
    Example: fg.extend.ShapedArray((2,), np.dtype(np.float32)) -> f32[2]
    """

    __slots__ = ("dtype", "shape", "weak_type")
    shape: Shape
    dtype: np.dtype[Any]
    weak_type: bool

    def __init__(self, shape: Shape, dtype: np.dtype[Any], weak_type: bool = False) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def strong(self) -> ShapedArray:
        """The same type with the weakness forgotten."""
        return shaped(self.shape, self.dtype) if self.weak_type else self

    def update(self, shape: Shape | None = None, dtype: np.dtype[Any] | None = None) -> ShapedArray:
        """The type with another shape or dtype."""
        shape = self.shape if shape is None else shape
        is_weak = self.weak_type and dtype is None
        return shaped(shape, self.dtype if dtype is None else dtype, is_weak)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, ShapedArray)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        weak = "~" if self.weak_type else ""
        return f"{weak}{short_name(self.dtype)}[{','.join(map(str, self.shape))}]"


_LARGEST = np.iinfo(np.intp).max


def check_size(what: str, shape: Shape, dtype: np.dtype[Any]) -> None:
    """Refuse arrays that NumPy refuses: those whose bytes no address can count.

    Axes without elements do not count, as in NumPy: views of such an array have strides.

    Args:
        what: How the message calls what would make the array.
        shape: Its shape.
        dtype: Its dtype.
    Raises: ShapeError: It is too large.
    """
    nbytes = dtype.itemsize
    for n in shape:
        if n:
            nbytes *= n
    if nbytes > _LARGEST:
        raise ShapeError(
            f"{what}: an array of {dtype.name} of shape {shape} would have 2**"
            f"{math.log2(nbytes):.1f} bytes, more than addresses can count, and no NumPy array can "
            "be so large. Make it smaller, or compute with its parts, for example by lax.scan or "
            "lax.map."
        )


INTERNED: dict[tuple[Any, ...], ShapedArray] = {}
"""Avals as `shaped` has made them, strong ones by shape and dtype."""
_INTERN_LIMIT = 16384


def shaped(shape: Shape, dtype: np.dtype[Any], weak_type: bool = False) -> ShapedArray:
    """The aval of this shape and dtype, strong if not told; equal calls usually give one object."""
    key = (shape, dtype, True) if weak_type else (shape, dtype)
    found = INTERNED.get(key)
    if found is None:
        if len(INTERNED) >= _INTERN_LIMIT:
            INTERNED.clear()
        found = INTERNED[key] = ShapedArray(shape, dtype, weak_type)
    return found


_WEAK = {kind: shaped((), dtype, True) for kind, dtype in PYTHON_SCALARS.items()}
# Python's bool is not weak in any way that shows: it is NumPy's lowest dtype.
_WEAK[bool] = ShapedArray((), PYTHON_SCALARS[bool])
_SCALARS: dict[type, ShapedArray] = dict(_WEAK)


NO_MATRIX = (
    "np.matrix is not supported, because its products and shapes are not those of arrays. Pass "
    "np.asarray(x), and write @ for the product of matrices."
)


def aval_of(value: Any) -> ShapedArray:
    """The aval of a concrete array, a NumPy or Python scalar, or anything with an ``aval``.

    Raises:
        DtypeError: If the dtype is not supported.
        ArgumentError: If it is a masked array, or an `np.matrix`.
    """
    kind = type(value)
    if kind is np.ndarray:
        key = (value.shape, value.dtype)
        return INTERNED.get(key) or shaped(value.shape, check_dtype(value.dtype))
    found = _SCALARS.get(kind)
    if found is not None:
        return found
    aval: ShapedArray | None = getattr(value, "aval", None)
    if aval is not None:
        return aval
    if isinstance(value, np.generic):
        scalar = _SCALARS[kind] = shaped((), check_dtype(value.dtype, "a NumPy scalar"))
        return scalar
    # Masked arrays come last: naming `np.ma` imports it, which no other value should pay for.
    if isinstance(value, np.matrix):
        raise ArgumentError(NO_MATRIX)
    if isinstance(value, np.ndarray) and isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(
            "masked arrays are not supported, because their masks would be ignored. Pass "
            "x.filled(value), or data and mask apart."
        )
    array = np.asarray(value)
    hint = " (np.stack makes an array of one)" if kind in (list, tuple) else ""
    return shaped(array.shape, check_dtype(array.dtype, f"a value of type {kind.__name__}{hint}"))
