"""Formulas of primitives with operators: one text, which NumPy evaluates or a `Recipe` records.

What is written here is a part of one operation, so that it has no derivative of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import Elementwise
from funcgrad.primitives.shape import ReduceSum, Reshape

Run = Callable[..., Any]


class Expression:
    """A value of a formula.

    Args:
        run: Called with a primitive and values, evaluates or records it.
        value: The value.
    """

    __slots__ = ("run", "value")
    __array_ufunc__ = None

    def __init__(self, run: Run, value: Any) -> None:
        self.run = run
        self.value = value

    @property
    def dtype(self) -> np.dtype[Any]:
        return aval_of(self.value).dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return aval_of(self.value).shape

    def __add__(self, other: Any) -> Expression:
        return apply(p.add, self, other)

    def __radd__(self, other: Any) -> Expression:
        return apply(p.add, other, self)

    def __sub__(self, other: Any) -> Expression:
        return apply(p.sub, self, other)

    def __rsub__(self, other: Any) -> Expression:
        return apply(p.sub, other, self)

    def __mul__(self, other: Any) -> Expression:
        return apply(p.mul, self, other)

    def __rmul__(self, other: Any) -> Expression:
        return apply(p.mul, other, self)

    def __truediv__(self, other: Any) -> Expression:
        return apply(p.div, self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return apply(p.div, other, self)

    def __neg__(self) -> Expression:
        return apply(p.neg, self)

    def __lt__(self, other: Any) -> Expression:
        return apply(p.less, self, other)

    def __gt__(self, other: Any) -> Expression:
        return apply(p.greater, self, other)

    def __and__(self, other: Expression) -> Expression:
        return apply(p.bitwise_and, self, other)

    def __or__(self, other: Expression) -> Expression:
        return apply(p.bitwise_or, self, other)


def apply(primitive: Primitive, *args: Any) -> Expression:
    """A primitive of expressions and numbers, which have the dtype of the last expression."""
    like = next(x for x in reversed(args) if isinstance(x, Expression))
    dtype = like.dtype
    values = [x.value if isinstance(x, Expression) else _number(x, dtype) for x in args]
    return Expression(like.run, like.run(primitive, *values))


def _number(x: Any, dtype: np.dtype[Any]) -> Any:
    return dtype.type(x) if type(x) in (int, float, complex) else x


def where(condition: Expression, x: Any, y: Any) -> Expression:
    """``x`` where the condition holds, else ``y``, one of which may be a number."""
    dtype = next(v for v in (x, y) if isinstance(v, Expression)).dtype
    values = [v.value if isinstance(v, Expression) else _number(v, dtype) for v in (x, y)]
    return Expression(condition.run, condition.run(p.select, condition.value, *values))


def spread(x: Expression) -> Expression:
    """``x`` with a last axis of length 1."""
    return Expression(x.run, x.run(Reshape((*x.shape, 1)), x.value))


def total(x: Expression) -> Expression:
    """The sum along the last axis."""
    return Expression(x.run, x.run(ReduceSum((len(x.shape) - 1,)), x.value))


def evaluated(primitive: Primitive, *args: Any) -> Any:
    """A primitive of arrays: what `Expression` runs to evaluate a formula."""
    return primitive.impl(*args)


def function(primitive: Elementwise) -> Callable[..., Expression]:
    """A primitive as a function of expressions."""
    return lambda *args: apply(primitive, *args)


exp, expm1, log, log1p, sqrt, absolute, floor, rint, power, minimum, maximum = (
    function(primitive)
    for primitive in (
        p.exp, p.expm1, p.log, p.log1p, p.sqrt, p.absolute, p.floor, p.rint, p.power, p.minimum,
        p.maximum,
    )
)  # fmt: skip
