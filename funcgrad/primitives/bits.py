"""Bit patterns: reading them as another dtype, counting them, the next one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import Shape, ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.core.program import Var
from funcgrad.dtypes import short_name
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Form, Pointwise
from funcgrad.primitives.elementwise import (
    Constantlike,
    add,
    bitwise_and,
    bitwise_or,
    equal,
    less,
    not_equal,
    select,
    sub,
)
from funcgrad.primitives.families import Recipe, zero_jvp
from funcgrad.primitives.shape import Concatenate, Reshape, Slice


class Bitcast(Primitive):
    """The bits of ``x`` read as another dtype.

    A narrower dtype adds a last axis, low words first; a wider one takes the last axis away.
    """

    dtype: np.dtype[Any]

    jvp = zero_jvp

    def lower(self, x: ShapedArray) -> Form:
        if x.dtype == self.dtype:
            return Pointwise("{0}")
        own, wanted = x.dtype.itemsize, self.dtype.itemsize
        if own == wanted:
            return _Reread(self.dtype).lower(x)
        recipe = Recipe(x)
        (given,) = recipe.inputs
        if own < wanted:
            *stack, n = x.shape
            elements = [
                recipe(Reshape(tuple(stack)), recipe(_at(k, x.shape), given)) for k in range(n)
            ]
            return recipe.form(recipe(_Reread(self.dtype), *elements))
        single = Reshape((*x.shape, 1))
        parts = [recipe(_Reread(self.dtype, k), given) for k in range(0, own, wanted)]
        stacked = [recipe(single, part) for part in parts]
        return recipe.form(recipe(Concatenate(x.ndim), *stacked))

    def impl(self, x: Any) -> Any:
        x = np.asarray(x)
        shape = self._shape(x.shape, x.dtype)
        return x.ravel().view(self.dtype).reshape(shape).copy()[()]

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        if "b" in (x.dtype.kind, self.dtype.kind) and x.dtype != self.dtype:
            raise DtypeError(f"{self.name}: bools have no bits to share, got {x} for {self.dtype}.")
        return shaped(self._shape(x.shape, x.dtype), self.dtype)

    def _shape(self, shape: Shape, dtype: np.dtype[Any]) -> Shape:
        own, wanted = dtype.itemsize, self.dtype.itemsize
        if wanted <= own:
            return shape if wanted == own else (*shape, own // wanted)
        if not shape or shape[-1] * own != wanted:
            raise ShapeError(
                f"{self.name}: elements of {self.dtype} need a last axis of {wanted // own} "
                f"elements of {dtype}, got shape {shape}."
            )
        return shape[:-1]

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), 0

    def params(self) -> dict[str, Any]:
        return {"dtype": short_name(self.dtype)}


def _at(k: int, shape: Shape) -> Slice:
    """One element along the last axis."""
    *stack, _ = shape
    return Slice((*(0 for _ in stack), k), (*stack, k + 1), (1,) * len(shape))


class _Reread(Primitive):
    """An element whose bits are among those of several arguments of one type, side by side.

    Attributes:
        dtype: That of the element.
        start: Its first byte.
    """

    dtype: np.dtype[Any]
    start: int = 0

    def impl(self, *args: Any) -> Any:
        together = np.stack(args, -1).view(np.uint8)
        return (
            together[..., self.start :][..., : self.dtype.itemsize].copy().view(self.dtype)[..., 0]
        )

    def abstract_eval(self, *avals: ShapedArray) -> ShapedArray:
        return shaped(avals[0].shape, self.dtype)

    def lower(self, *avals: ShapedArray) -> Form:
        words = [word for k, aval in enumerate(avals) for word in _words(f"{{{k}}}", aval.dtype)]
        size = avals[0].dtype.itemsize * len(avals) // len(words)
        part = self.dtype.type(0).real.dtype
        parts = [
            _of_words(words, size, start, part)
            for start in range(self.start, self.start + self.dtype.itemsize, part.itemsize)
        ]
        return Pointwise(
            parts[0] if len(parts) == 1 else f"{short_name(self.dtype)}({', '.join(parts)})"
        )


def _words(x: str, dtype: np.dtype[Any]) -> list[str]:
    """Expressions for the bits of a number as unsigned integers: of a complex one, of its parts."""
    part = dtype.type(0).real.dtype
    name, word = short_name(part), f"u{8 * part.itemsize}"
    parts = [x] if part == dtype else [f"real({x})", f"imag({x})"]
    return [f"bitcast_{name}_{word}({p})" if part.kind == "f" else f"{word}({p})" for p in parts]


def _of_words(words: Sequence[str], size: int, start: int, dtype: np.dtype[Any]) -> str:
    """The expression of a real number whose bits begin at a byte of words of some size."""
    own = dtype.itemsize
    if own < size:
        bits = f"u{8 * own}({words[start // size]} >> {8 * _from_low(start % size, own, size)})"
    else:
        shifts = [8 * _from_low(k, size, own) for k in range(0, own, size)]
        bits = " | ".join(
            f"(u{8 * own}({words[start // size + k]}) << {shift})"
            if shift
            else f"u{8 * own}({words[start // size + k]})"
            for k, shift in enumerate(shifts)
        )
    if dtype.kind == "f":
        return f"bitcast_u{8 * own}_{short_name(dtype)}({bits})"
    return f"{short_name(dtype)}({bits})"


def _from_low(start: int, size: int, whole: int) -> int:
    """The place of some bytes of a number, counted from the lowest one."""
    return start if sys.byteorder == "little" else whole - size - start


def _population_count(x: Any) -> Any:
    x = np.asarray(x)
    # NumPy counts the bits of the absolute value of signed integers.
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)[()]


population_count = Constantlike("population_count", _population_count, "popcount({0})", "iu", "iu")

gcd_of = Constantlike("gcd", np.gcd, "gcd({0}, {1})", "iu", "iu")


def _neighbour_parts(recipe: Recipe, x: Var, y: Var) -> Var:
    """The number next to ``x``: one more or less in the order of bit patterns as integers."""
    integer = np.dtype(f"i{x.aval.dtype.itemsize}")
    zero, one, least = integer.type(0), integer.type(1), np.iinfo(integer).min
    read = Bitcast(integer)

    def reflected(place: Var, is_negative: Var) -> Var:
        """From sign and magnitude to a signed integer, or back."""
        return recipe(select, is_negative, recipe(sub, integer.type(least), place), place)

    bits = [recipe(read, v) for v in (x, y)]
    places = [reflected(b, recipe(less, b, zero)) for b in bits]
    step = recipe(select, recipe(less, *places), one, -one)
    moved = recipe(add, places[0], step)
    # From the negative number next to 0 upwards is -0.
    is_minus_zero = recipe(bitwise_and, recipe(equal, moved, zero), recipe(less, bits[0], zero))
    is_negative = recipe(bitwise_or, recipe(less, moved, zero), is_minus_zero)
    found = recipe(Bitcast(x.aval.dtype), reflected(moved, is_negative))
    other = recipe(select, recipe(equal, *places), y, found)
    is_nan = recipe(bitwise_or, recipe(not_equal, x, x), recipe(not_equal, y, y))
    return recipe(select, is_nan, recipe(add, x, y), other)


nextafter = Constantlike(
    "nextafter", np.nextafter, "nextafter({0}, {1})", "", "f", parts=_neighbour_parts
)
