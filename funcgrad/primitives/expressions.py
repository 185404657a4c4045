"""Formulas of primitives with operators: one text, which NumPy evaluates or a `Recipe` records.

What is written here is a part of one operation, so that it has no derivative of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.dtypes import COMPLEX128, FLOAT64, is_complex
from funcgrad.intrinsics import SHORT
from funcgrad.lowering import Call
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import Elementwise, Recipe, either, repetition
from funcgrad.primitives.reductions import ReduceAny
from funcgrad.primitives.shape import BroadcastTo, ReduceSum, Reshape

Run = Callable[..., Any]


class Expression:
    """A value of a formula.

    Args:
        run: Called with a primitive and values, evaluates or records it.
        value: The value.
        digits: Bits of the real numbers that the formula's result is converted to, 32 or 64.
    """

    __slots__ = ("digits", "run", "value")
    __array_ufunc__ = None

    def __init__(self, run: Run, value: Any, digits: int = 64) -> None:
        self.run = run
        self.value = value
        self.digits = digits

    def like(self, value: Any) -> Expression:
        """Another value of the same formula."""
        return Expression(self.run, value, self.digits)

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

    def __le__(self, other: Any) -> Expression:
        return apply(p.less_equal, self, other)

    def __ge__(self, other: Any) -> Expression:
        return apply(p.greater_equal, self, other)

    def __and__(self, other: Expression) -> Expression:
        return apply(p.bitwise_and, self, other)

    def __or__(self, other: Expression) -> Expression:
        return apply(p.bitwise_or, self, other)


def apply(primitive: Primitive, *args: Any) -> Expression:
    """A primitive of expressions and numbers, which have the dtype of the last expression."""
    like = next(x for x in reversed(args) if isinstance(x, Expression))
    dtype = like.dtype
    values = [x.value if isinstance(x, Expression) else _number(x, dtype) for x in args]
    return like.like(like.run(primitive, *values))


def _number(x: Any, dtype: np.dtype[Any]) -> Any:
    return dtype.type(x) if type(x) in (int, float, complex) else x


def where(condition: Expression, x: Any, y: Any) -> Expression:
    """``x`` where the condition holds, else ``y``, one of which may be a number."""
    dtype = next(v for v in (x, y) if isinstance(v, Expression)).dtype
    values = [v.value if isinstance(v, Expression) else _number(v, dtype) for v in (x, y)]
    return condition.like(condition.run(p.select, condition.value, *values))


def anywhere(condition: Expression) -> bool:
    """Whether a condition holds for any element, or may hold for one when a record is run."""
    return condition.run is not evaluated or bool(np.any(condition.value))


def spread(x: Expression) -> Expression:
    """``x`` with a last axis of length 1."""
    return x.like(x.run(Reshape((*x.shape, 1)), x.value))


def total(x: Expression) -> Expression:
    """The sum along the last axis."""
    return x.like(x.run(ReduceSum((len(x.shape) - 1,)), x.value))


Formula = Callable[..., Expression]

_BLOCK = 4096
"""So many elements are evaluated at once: formulas may need some hundred numbers for each."""


def _double(*avals: ShapedArray) -> np.dtype[Any]:
    """The dtype in which formulas of these types are computed."""
    return COMPLEX128 if any(is_complex(a.dtype) for a in avals) else FLOAT64


def _digits(dtype: np.dtype[Any]) -> int:
    """Bits of real numbers that results of this dtype are as exact as."""
    return 64 if dtype in (COMPLEX128, FLOAT64) else 32


def evaluated(primitive: Primitive, *args: Any) -> Any:
    """A primitive of arrays: what `Expression` runs to evaluate a formula."""
    return primitive.impl(*args)


def evaluate(formula: Formula, *args: Any) -> Any:
    """The values of a formula, in the dtype of the last argument; it computes in double."""
    dtype, wide = aval_of(args[-1]).dtype, _double(*map(aval_of, args))
    arrays = np.broadcast_arrays(*(np.asarray(x, wide) for x in args))
    flat, digits = [x.reshape(-1) for x in arrays], _digits(dtype)
    out = np.empty(flat[0].shape, wide)
    with np.errstate(all="ignore"):
        for start in range(0, out.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            out[part] = formula(*(Expression(evaluated, x[part], digits) for x in flat)).value
        return out.reshape(arrays[0].shape).astype(dtype, copy=False)[()]


def recorded(recipe: Recipe, formula: Formula, *args: Any) -> Any:
    """Record the result of a formula, computed in double precision, in a recipe."""
    avals = [x.aval for x in args]
    shape, dtype = np.broadcast_shapes(*(a.shape for a in avals)), avals[-1].dtype
    double = _double(*avals)
    given = []
    for aval, x in zip(avals, args, strict=True):
        wide: Any = x if aval.dtype == double else recipe(p.Convert(double), x)
        wide = wide if aval.shape == shape else recipe(BroadcastTo(shape), wide)
        given.append(Expression(recipe, wide, _digits(dtype)))
    value = formula(*given).value
    return value if dtype == double else recipe(p.Convert(dtype), value)


def record(formula: Formula, *avals: ShapedArray) -> Call:
    """The form of an operation whose values are those of a formula."""
    recipe = Recipe(*avals)
    return recipe.form(recorded(recipe, formula, *recipe.inputs))


def unless_any(
    rare: Expression, usual: Formula, otherwise: Formula, *args: Expression
) -> Expression:
    """The values of a formula of compiled programs, or those of another one if any are rare.

    The other one is then for all elements: what is rare may cost more time than the formula.
    """
    recipe = rare.run
    assert isinstance(recipe, Recipe)
    values = [x.value for x in args]
    branches = []
    for formula in (usual, otherwise):
        inner = Recipe(*(aval_of(x) for x in values))
        out = formula(*(Expression(inner, x, rare.digits) for x in inner.inputs))
        branches.append(inner.form(out.value).program)
    found = recipe(ReduceAny(tuple(range(len(rare.shape)))), rare.value)
    index = recipe(p.Convert(np.dtype(np.int64)), found)
    return rare.like(recipe(either(*branches), index, *values)[0])


def repeated(
    condition: Formula, step: Callable[..., Sequence[Expression]], *state: Expression
) -> list[Expression]:
    """Repeat a step on a state of equal shapes.

    Elements go on as long as their condition holds.
    """
    run, digits = state[0].run, state[0].digits
    values = [x.value for x in state]
    if run is evaluated:
        return [state[0].like(x) for x in _evaluate_repeated(condition, step, values, digits)]
    assert isinstance(run, Recipe)
    # Elements along one axis, each with a flag: a block of them ends when its last one has.
    shape, flat = state[0].shape, (math.prod(state[0].shape),)
    values = [run(Reshape(flat), x) for x in values]
    inner = Recipe(*map(aval_of, values), ShapedArray(flat, np.dtype(bool)))
    *old, is_open = [Expression(inner, x, digits) for x in inner.inputs]
    now = [where(is_open, x, y) for x, y in zip(step(*old), old, strict=True)]
    body = inner.form(*(x.value for x in (*now, condition(*now)))).program
    test = Recipe(*body.out_avals)
    program = test.form(test(ReduceAny((0,)), test.inputs[-1])).program
    first = condition(*map(state[0].like, values))
    *found, _ = run(repetition(program, body), *values, first.value)
    return [state[0].like(run(Reshape(shape), x)) for x in found]


def _evaluate_repeated(
    condition: Formula,
    step: Callable[..., Sequence[Expression]],
    values: Sequence[Any],
    digits: int,
) -> list[Any]:
    """The same with arrays, of elements that are left only."""
    outs = [np.empty_like(x) for x in values]
    places, now = np.arange(outs[0].size), values
    while places.size:
        is_open = condition(*(Expression(evaluated, x, digits) for x in now)).value
        if not is_open.all():
            for out, x in zip(outs, now, strict=True):
                out[places[~is_open]] = x[~is_open]
            places, now = places[is_open], [x[is_open] for x in now]
        now = [x.value for x in step(*(Expression(evaluated, x, digits) for x in now))]
    return outs


def function(primitive: Elementwise) -> Callable[..., Expression]:
    """A primitive as a function of expressions."""
    return lambda *args: apply(primitive, *args)


def by_digits(primitive: Elementwise) -> Callable[[Expression], Expression]:
    """The same, in compiled programs no more exact than the formula's result needs it."""
    short = Elementwise(SHORT + primitive.name, primitive.function, SHORT + primitive.code)

    def run(x: Expression) -> Expression:
        is_short = x.digits == 32 and x.dtype == FLOAT64 and x.run is not evaluated
        return apply(short if is_short else primitive, x)

    return run


sqrt, absolute, floor, rint, minimum, maximum = (
    function(primitive) for primitive in (p.sqrt, p.absolute, p.floor, p.rint, p.minimum, p.maximum)
)
exp, expm1, log, log1p = map(by_digits, (p.exp, p.expm1, p.log, p.log1p))


def power(x: Expression, y: Expression) -> Expression:
    """``x**y`` of positive numbers."""
    return exp(y * log(x)) if x.digits == 32 else apply(p.power, x, y)
