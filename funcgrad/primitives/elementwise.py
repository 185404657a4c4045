"""Elementwise operations: arithmetic, comparison, bits, and the elementary functions.

A unary function is one row: its NumPy evaluation, its derivative given argument and result, and
the scalar expression of its kernel. Others give a partial derivative per argument.
Derivatives are written with operators, so that they run on NumPy values and on tracers alike.

No rule multiplies a tangent by a coefficient with ``mul``: `scale` and `unscale` leave a tangent
of 0 at 0, whatever the coefficient is. So an arm of a `select` that was not taken contributes
nothing, also where its derivative is infinite. `docs/derivatives.md` explains this and lists the
conventions at kinks.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from funcgrad.base.forking import cached_property
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.primitive import BatchDim, Linear, Primitive, Value, is_linear, with_differential
from funcgrad.core.program import Var
from funcgrad.dtypes import complex_dtype, is_complex, is_inexact, real_dtype, short_name
from funcgrad.errors import DtypeError
from funcgrad.intrinsics import MOST_FACTORS, product_of
from funcgrad.lowering import Array, Form, Pointwise, Routine, UfuncCall
from funcgrad.observers.checks import DIVISION, Fault, Kinds
from funcgrad.primitives import families
from funcgrad.primitives.shape import broadcast_to, unbroadcast
from funcgrad.scalar_tape.rules import NumberCode

Derivative = Callable[..., Value]
Slots = Sequence[Linear | None]


class Unary(families.Elementwise):
    """A differentiable function of one argument: ``dy = derivative(x, y) * dx``.

    Args:
        name: Its name in programs.
        function: The NumPy evaluation.
        derivative: Called with the argument and the result.
        code: Scalar expression of the kernel.
        slope: The derivative at numbers, in ``x`` and ``out``, if it is to be written out.
        is_regular: Whether NumPy warns of nothing in the derivative of which it has not warned in
            the function.
        **options: Those of `Elementwise`.

    Example:
        >>> fg.grad(
        ...     fg.extend.Unary("cube", lambda x: x**3, lambda x, y: 3 * x**2, "{0} * {0} * {0}")
        ... )(2.0)
        np.float64(12.0)
    """

    def __init__(
        self,
        name: str,
        function: Any,
        derivative: Derivative,
        code: str,
        slope: str = "float(derivative(x, out))",
        is_regular: bool = False,
        **options: Any,
    ):
        super().__init__(name, function, code, **options)
        self.derivative = derivative
        self.slope = slope
        self.is_regular = is_regular

    def _differential(self, primals: Sequence[Value], slots: Slots) -> tuple[Any, Any, Any]:
        (x,) = primals
        y = self.impl(x)
        if self.is_regular:
            return y, scale, [slots[0], self.derivative(x, y)]
        with np.errstate(all="ignore"):
            return y, scale, [slots[0], self.derivative(x, y)]

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,) = primals
        y = self.bind(x)
        return y, scale.bind(tangents[0], coefficient(self.derivative, x, y))

    @cached_property
    def number_code(self) -> NumberCode:
        names = {"function": self.function, "derivative": self.derivative}
        return NumberCode("float(function(x))", (self.slope,), names=names)

    at_numbers = families.at_numbers_by_code


class Blocked(float):
    """The factor of a closed gate: not even an infinite cotangent passes it."""

    def __rmul__(self, other: float) -> float:
        return 0.0


class Gated(families.Elementwise):
    """A function that passes its argument on or not: ``dy = dx where gate(x) else 0``."""

    def __init__(self, name: str, function: Any, gate: Derivative, code: str, **options: Any):
        super().__init__(name, function, code, **options)
        self.gate = gate

    def _differential(self, primals: Sequence[Value], slots: Slots) -> tuple[Any, Any, Any]:
        (x,) = primals
        return self.impl(x), select, [self.gate(x), slots[0], zero_of(x)]

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,) = primals
        return self.bind(x), select.bind(self.gate(x), tangents[0], zero_of(x))

    def at_numbers(self, x: float) -> tuple[Any, float] | None:
        y = self.impl(x)
        return (y, 1.0 if self.gate(x) else Blocked()) if math.isfinite(y) else None


def checked_division(
    self: Primitive, args: Sequence[Value], kinds: Kinds
) -> tuple[Any, Sequence[Fault]]:
    """Evaluation of a division, and where the divisor is zero."""
    out = self.bind(*args)
    if DIVISION not in kinds:
        return out, ()
    divisor = args[1]
    return out, [Fault(DIVISION, "division by zero", equal.bind(divisor, zero_of(divisor)))]


class Constantlike(families.Elementwise):
    """A function that is constant almost everywhere, or whose result is exact."""

    jvp = families.zero_jvp


class Smooth(families.Elementwise):
    """A differentiable function of any number of arguments, with a partial derivative for each.

    Partials that are right everywhere but where they meet ``0 * inf`` or ``0 / 0`` say so with
    `scale` and `unscale`, whose own derivatives are right there. They never replace an argument:
    the replacement would be differentiated.

    Args:
        name: Its name in programs.
        function: The NumPy evaluation.
        partials: Called with all arguments and the result.
        code: Scalar expression of the kernel.
        level_at: Where the function has no derivative and counts as level: all its partial
            derivatives, of every order, are 0 where this function of the arguments holds.
        **options: Those of `Elementwise`.
    """

    def __init__(
        self,
        name: str,
        function: Any,
        partials: Sequence[Derivative],
        code: str,
        level_at: Derivative | None = None,
        **options: Any,
    ):
        super().__init__(name, function, code, **options)
        self.partials = tuple(partials)
        self.level_at = level_at

    @property
    def product(self) -> Primitive:
        """The product of a tangent and a partial derivative."""
        return scale

    def _differential(self, primals: Sequence[Value], slots: Slots) -> tuple[Any, Any, Any] | None:
        is_level = None if self.level_at is None else self.level_at(*primals)
        if is_level is not None and np.asarray(is_level).any():
            return None
        out = self.impl(*primals)
        operands: list[Any] = []
        is_whole = False  # as is what a term has to be broadcast to
        with np.errstate(all="ignore"):
            for slot, partial in zip(slots, self.partials, strict=True):
                if slot is not None:
                    slope = partial(*primals, out)
                    operands += slot, slope
                    shape = np.shape(out)
                    is_whole = is_whole or np.shape(slope) == shape or slot.shape == shape
        return (out, *total_of(self.product, operands)) if is_whole else None

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        is_level = None if self.level_at is None else self.level_at(*primals)
        total: Value | None = None
        for t, partial in zip(tangents, self.partials, strict=True):
            if t is not None:
                slope = coefficient(partial, *primals, out)
                if is_level is not None:
                    slope = select.bind(is_level, zero_of(out), slope)
                term = self.product.bind(t, slope)
                total = term if total is None else add.bind(total, term)
        # A single partial derivative that is constant has not been broadcast yet.
        return out, broadcast_to(total, families.shape_of(out))


class SumOfTerms(Primitive):
    """Sum of operations of two arguments each, which broadcast: ``bind(x1, y1, x2, y2, ...)``."""

    terms: tuple[Primitive, ...]

    def _apply(self, apply: Callable[..., Any], args: Sequence[Any]) -> Any:
        values = [apply(q, *args[2 * k : 2 * k + 2]) for k, q in enumerate(self.terms)]
        return functools.reduce(functools.partial(apply, add), values)

    def impl(self, *args: Any) -> Any:
        return self._apply(lambda q, *xs: q.impl(*xs), args)

    def abstract_eval(self, *avals: ShapedArray) -> ShapedArray:
        return self._apply(lambda q, *xs: q.abstract_eval(*xs), avals)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        dots = []
        for k, term in enumerate(self.terms):
            pair = slice(2 * k, 2 * k + 2)
            if any(t is not None for t in tangents[pair]):
                dots.append(term.jvp(primals[pair], tangents[pair])[1])
        return self.bind(*primals), functools.reduce(add.bind, dots)

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        found: list[Any] = []
        for k, term in enumerate(self.terms):
            pair = args[2 * k : 2 * k + 2]
            found += term.transpose(ct, *pair) if any(map(is_linear, pair)) else (None, None)
        return found

    def in_tangents(self, is_wanted: Sequence[bool]) -> tuple[Primitive, list[bool]]:
        """The terms that are linear in a wanted argument, and flags of the arguments of these."""
        taken = [any(is_wanted[2 * k : 2 * k + 2]) for k in range(len(self.terms))]
        terms = tuple(itertools.compress(self.terms, taken))
        return SumOfTerms(terms), [flag for flag in taken for _ in range(2)]

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        def apply(term: Primitive, *pair: tuple[Value, BatchDim]) -> tuple[Value, BatchDim]:
            values, own = zip(*pair, strict=True)
            return (term.bind(*values), None) if own == (None, None) else term.batch(values, own)

        return self._apply(apply, list(zip(args, dims, strict=True)))

    def lower(self, *avals: ShapedArray) -> Form:
        recipe = families.Recipe(*avals)
        return recipe.form(self._apply(recipe, recipe.inputs))


def total_of(term: Primitive, operands: list[Any]) -> tuple[Primitive, list[Any]]:
    """An operation on pairs of operands, or the sum of several, and the operands."""
    return SumOfTerms((term,) * (len(operands) // 2)) if len(operands) > 2 else term, operands


def is_origin(x: Value, y: Value) -> Value | None:
    """Whether both arguments are 0; ``None`` if a number that is known is not."""
    if any(isinstance(v, float | np.generic) and v != 0 for v in (x, y)):
        return None
    return bitwise_and.bind(equal.bind(x, zero_of(x)), equal.bind(y, zero_of(y)))


class LinearUnary(families.Elementwise):
    """A real-linear function of one argument; ``adjoint(ct, aval of x)`` is its transpose."""

    def __init__(
        self,
        name: str,
        function: Any,
        adjoint: Derivative,
        code: str,
        number: str = "float(function(x))",
        **options: Any,
    ):
        super().__init__(name, function, code, **options)
        self.adjoint = adjoint
        self.number = number

    def _differential(self, primals: Sequence[Value], slots: Slots) -> tuple[Any, Any, Any]:
        return self.impl(*primals), self, list(slots)

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self.bind(*primals), self.bind(tangents[0])

    @cached_property
    def number_code(self) -> NumberCode:
        slope = str(float(self.function(1.0)))
        return NumberCode(self.number, (slope,), names={"function": self.function})

    at_numbers = families.at_numbers_by_code

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        return (self.adjoint(ct, args[0]),)


class Sum(families.Elementwise):
    """``x + sign * y``."""

    def __init__(self, name: str, function: Any, sign: int, code: str, **options: Any):
        super().__init__(name, function, code, **options)
        self.sign = sign

    def _differential(self, primals: Sequence[Value], slots: Slots) -> tuple[Any, Any, Any] | None:
        tx, ty = slots
        out = self.impl(*primals)
        if tx is not None and ty is not None:
            return out, self, [tx, ty]
        slot = ty if tx is None else tx
        assert slot is not None
        if slot.aval.shape != getattr(out, "shape", ()):
            return None
        return (out, None, slot) if tx is not None or self.sign == 1 else (out, neg, [slot])

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, y = primals
        tx, ty = tangents
        out = self.bind(x, y)
        if ty is None:
            return out, broadcast_to(tx, families.shape_of(out))
        if tx is None:
            ty = ty if self.sign == 1 else neg.bind(ty)
            return out, broadcast_to(ty, families.shape_of(out))
        return out, self.bind(tx, ty)

    @cached_property
    def number_code(self) -> NumberCode:
        return NumberCode("x + y" if self.sign == 1 else "x - y", ("1.0", f"{self.sign}.0"))

    at_numbers = families.at_numbers_by_code

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        x, y = args
        ct_x = unbroadcast(ct, x) if is_linear(x) else None
        if not is_linear(y):
            return ct_x, None
        ct_y = unbroadcast(ct, y)
        return ct_x, ct_y if self.sign == 1 else neg.bind(ct_y)


class Product(families.Elementwise):
    """``x * y``, bilinear."""

    is_bilinear = True

    def _differential(self, primals: Sequence[Value], slots: Slots) -> tuple[Any, Any, Any]:
        x, y = primals
        tx, ty = slots
        out = self.impl(x, y)
        if tx is not None and ty is not None:
            return out, _TWO_SCALED, [tx, y, ty, x]
        t, c = (tx, y) if ty is None else (ty, x)
        return out, mul if _is_finite_constant(c) else scale, [t, c]

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, y = primals
        tx, ty = tangents
        out = self.bind(x, y)
        if ty is None:
            return out, _scaled(tx, y)
        if tx is None:
            return out, _scaled(ty, x)
        return out, add.bind(scale.bind(tx, y), scale.bind(ty, x))

    number_code = NumberCode("x * y", ("y", "x"))
    at_numbers = families.at_numbers_by_code

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        x, y = args
        if is_linear(x):
            return unbroadcast(_scaled(ct, y), x), None
        return None, unbroadcast(_scaled(ct, x), y)


def _scaled(t: Value, c: Value) -> Value:
    """``scale``, or the plain product by a constant of the program, which is finite."""
    return (mul if _is_finite_constant(c) else scale).bind(t, c)


def _is_finite_constant(c: Value) -> bool:
    return type(c) is int or (type(c) is float and math.isfinite(c))


class Divisor(float):
    """The factor that divides: to multiply by the reciprocal would round twice."""

    def __rmul__(self, other: float) -> float:
        return other / float(self)


class Quotient(families.Elementwise):
    """``x / y``, linear in ``x``."""

    def _differential(self, primals: Sequence[Value], slots: Slots) -> tuple[Any, Any, Any]:
        x, y = primals
        tx, ty = slots
        out = self.impl(x, y)
        by = div if _is_divisor(y) else unscale
        if ty is None:
            return out, by, [tx, y]
        with np.errstate(all="ignore"):
            slope = np.negative(np.true_divide(out, y))
        return (out, scale, [ty, slope]) if tx is None else (out, _QUOTIENT, [tx, y, ty, slope])

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, y = primals
        tx, ty = tangents
        out = self.bind(x, y)
        terms = []
        if tx is not None:
            terms.append(_unscaled(tx, y))
        if ty is not None:
            # Primitives, since Python's quotient of Python's floats raises where y is 0.
            slope = coefficient(lambda: neg.bind(unscale.bind(out, y)))
            terms.append(scale.bind(ty, slope))
        return out, terms[0] if len(terms) == 1 else add.bind(*terms)

    number_code = NumberCode(
        "x / y", ("Divisor(y)", "-(out / y)"), where="y and isfinite(y)", names={"Divisor": Divisor}
    )
    at_numbers = families.at_numbers_by_code

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        x, y = args
        return unbroadcast(_unscaled(ct, y), x), None

    checked = checked_division

    def taylor_term(self, k: int, out: Any, args: Any) -> Any:
        return _taylor_term_of_quotient(self, k, out, args)


def _taylor_term_of_quotient(operation: families.Elementwise, k: int, out: Any, args: Any) -> Any:
    """Coefficient of ``y = x / c``: ``x = y c`` is solved for the last coefficient of ``y``."""
    x, c = args
    rest = x(k)
    for j in range(1, k + 1):
        if c(j) is not None and out(k - j) is not None:
            product = scale.bind(out(k - j), c(j))
            rest = neg.bind(product) if rest is None else sub.bind(rest, product)
    return None if rest is None else operation.bind(rest, c(0))


def _unscaled(t: Value, c: Value) -> Value:
    """``unscale``, or the plain quotient by a constant of the program that is not zero."""
    return (div if _is_divisor(c) else unscale).bind(t, c)


def _is_divisor(c: Value) -> bool:
    return (type(c) is int or (type(c) is float and c == c)) and c != 0


class _WholeQuotient(Constantlike):
    """A quotient without its fraction."""

    checked = checked_division


class _Rest(Smooth):
    """Remainder of a quotient."""

    checked = checked_division


def _times(number: float, x: Value) -> Value:
    """The product of a finite number that is not zero, which hides nothing."""
    if number == 1:
        return x
    by = mul if number and math.isfinite(number) else scale
    return by.bind(aval_of(x).dtype.type(number), x)


class _OfTangent(families.Elementwise):
    """An operation on a tangent, in which it is linear, and a coefficient."""

    def change(self, t: Value, c: Value, out: Value, dc: Value) -> Value:
        """The derivative along a change of the coefficient."""
        raise NotImplementedError

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        t, c = primals
        dt, dc = tangents
        out = self.bind(t, c)
        if dc is None:
            return out, self.bind(dt, c)
        change = self.change(t, c, out, dc)
        return out, change if dt is None else add.bind(self.bind(dt, c), change)

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        t, c = args
        return unbroadcast(self.bind(ct, c), t), None


class Scale(_OfTangent):
    """``t * c``, and 0 where the tangent ``t`` is 0, whatever ``c`` is. Linear in ``t``."""

    is_bilinear = True

    def impl(self, *args: Any) -> Any:
        t, c = args
        if type(t) is np.ndarray:
            return self.function(t, c)
        if type(t) is np.float64 and isinstance(c, float):
            return np.float64(float.__mul__(t, c)) if t else t
        return super().impl(t, c)

    def change(self, t: Value, c: Value, out: Value, dc: Value) -> Value:
        return pair.bind(t, dc)

    def at_number(self, number: float, other: Value) -> Value:
        """The result for a tangent that is one number."""
        return _times(number, other)


class Unscale(_OfTangent):
    """``t / c``, and 0 where the tangent ``t`` is 0, whatever ``c`` is. Linear in ``t``."""

    def impl(self, *args: Any) -> Any:
        t, c = args
        if type(t) is np.ndarray:
            return self.function(t, c)
        if type(t) is np.float64 and isinstance(c, float) and c:
            return np.float64(float.__truediv__(t, c)) if t else t
        return super().impl(t, c)

    def change(self, t: Value, c: Value, out: Value, dc: Value) -> Value:
        return pair.bind(neg.bind(coefficient(self.bind, out, c)), dc)

    def taylor_term(self, k: int, out: Any, args: Any) -> Any:
        return _taylor_term_of_quotient(self, k, out, args)


class Pair(families.Elementwise):
    """``t * s``, and 0 where either of the tangents is 0, whatever the other is. Bilinear.

    The derivative of `scale` by its coefficient: an arm that is not taken shows in a zero of the
    tangent that is scaled, or of the tangent of the coefficient.
    """

    is_bilinear = True

    def at_number(self, number: float, other: Value) -> Value:
        """The result for a tangent that is one number."""
        return _times(number, other)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        t, s = primals
        terms = [
            self.bind(dx, other)
            for dx, other in zip(tangents, (s, t), strict=True)
            if dx is not None
        ]
        return self.bind(t, s), terms[0] if len(terms) == 1 else add.bind(*terms)

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        t, s = args
        if is_linear(t):
            return unbroadcast(self.bind(ct, s), t), None
        return None, unbroadcast(self.bind(ct, t), s)


_FEW = 4096
"""Up to this size a product with zeros, by BLAS, is the fastest test of whether all are finite."""


@functools.lru_cache(64)
def _zeros(n: int, dtype: np.dtype[Any]) -> Any:
    return np.zeros(n, dtype)


def is_finite(x: Any) -> bool:
    """Whether all numbers of an array are finite; others raise the flag "invalid"."""
    if x.size <= _FEW:
        row = x if x.ndim == 1 else x.ravel()
        return math.isfinite(row.dot(_zeros(x.size, x.dtype)).real)
    return bool(np.isfinite(x).all())


takes_plain_products: ContextVar[bool] = ContextVar("funcgrad_plain_products", default=False)
"""Whether products of tangents may be nan for now where they are to be 0, as somebody looks."""


def _zero_where_zero(operation: Any, count: int) -> Callable[[Any, Any], Any]:
    """A NumPy operation whose result is 0 where one of the first ``count`` arguments is 0.

    It does not warn of invalid values: most of them are replaced, and the others come from an
    infinite tangent.
    """

    def evaluate(*args: Any) -> Any:
        if takes_plain_products.get():
            return operation(*args)
        with np.errstate(invalid="ignore"):
            out = operation(*args)
            if is_finite(out):
                return out
        for t in args[:count]:
            out = np.where(np.equal(t, 0), t, out)[()]
        return out

    return evaluate


def coefficient(derivative: Derivative, *args: Value) -> Value:
    """The coefficient of a tangent.

    NumPy does not warn of it: where it is infinite the tangent may be that of an arm that is not
    taken.
    """
    with np.errstate(all="ignore"):
        return derivative(*args)


class Select(families.Elementwise):
    """``x where condition else y``."""

    makes_no_nans = True

    def _differential(self, primals: Sequence[Value], slots: Slots) -> tuple[Any, Any, Any]:
        condition, x, y = primals
        tx, ty = slots[1:]
        out = self.impl(condition, x, y)
        if tx is None and ty is None:
            return out, None, None
        if type(condition) is np.bool_ and np.shape(x if condition else y) == out.shape:
            return out, None, tx if condition else ty
        return out, self, [condition, families.instantiate(tx, x), families.instantiate(ty, y)]

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        condition, x, y = primals
        out = self.bind(condition, x, y)
        tx, ty = tangents[1:]
        if tx is None and ty is None:
            return out, None
        return out, self.bind(condition, families.instantiate(tx, x), families.instantiate(ty, y))

    def abstract_eval(self, *avals: ShapedArray) -> ShapedArray:
        if avals[0].dtype.kind != "b":
            raise DtypeError(
                f"select: the condition must be bool, got {avals[0]}. Compare it: condition != 0."
            )
        return super().abstract_eval(*avals)

    def _check_dtypes(self, avals: Sequence[ShapedArray]) -> np.dtype[Any]:
        return super()._check_dtypes(avals[1:])

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        condition, x, y = args
        zero = zero_of(ct)
        ct_x = unbroadcast(self.bind(condition, ct, zero), x) if is_linear(x) else None
        ct_y = unbroadcast(self.bind(condition, zero, ct), y) if is_linear(y) else None
        return None, ct_x, ct_y


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    """Select as `numpy.where`; for numbers a number, as all other functions do."""
    if type(condition) is np.bool_ and isinstance(x, np.generic) and type(x) is type(y):
        return x if condition else y
    out = np.where(condition, x, y)
    return out if out.ndim else out[()]


def zero_of(x: Value) -> Value:
    """The scalar zero of the dtype of ``x``."""
    return aval_of(x).dtype.type(0)


_NUMBERS: dict[str, Any] = {"kinds": "iufc", "code_kinds": "iufc", "keeps_weak": True}
_BOOL_NUMBERS: dict[str, Any] = {"kinds": "biufc", "code_kinds": "biufc", "keeps_weak": True}

# Arithmetic. On bools, + and * are NumPy's logical or and and.
add = Sum("add", np.add, 1, "{0} + {1}", **_BOOL_NUMBERS)
sub = Sum("sub", np.subtract, -1, "{0} - {1}", **_NUMBERS)
mul = Product("mul", np.multiply, "{0} * {1}", **_BOOL_NUMBERS)
div = Quotient("div", np.true_divide, "{0} / {1}", kinds="fc", code_kinds="fc", keeps_weak=True)
neg: LinearUnary = LinearUnary(
    "neg", np.negative, lambda ct, x: neg.bind(ct), "-{0}", number="-x", **_NUMBERS
)
floor_divide = _WholeQuotient(
    "floor_divide", np.floor_divide, "floor_divide({0}, {1})", "iuf", "iuf", keeps_weak=True
)
remainder = _Rest(
    "remainder",
    np.remainder,
    [lambda x, y, out: ones_like(x), lambda x, y, out: -floor_divide.bind(x, y)],
    "remainder({0}, {1})",
    kinds="iuf",
    code_kinds="iuf",
    keeps_weak=True,
)
fmod = _Rest(
    "fmod",
    np.fmod,
    [lambda x, y, out: ones_like(x), lambda x, y, out: neg.bind(trunc.bind(div.bind(x, y)))],
    "fmod({0}, {1})",
    kinds="iuf",
    code_kinds="iuf",
)


# Operations of derivatives on tangents.
_TANGENTS: dict[str, Any] = {"kinds": "fc", "code_kinds": "fc", "keeps_weak": True}
scale = Scale(
    "scale", _zero_where_zero(np.multiply, 1), "select({0} == 0, {0}, {0} * {1})", **_TANGENTS
)
unscale = Unscale(
    "unscale", _zero_where_zero(np.true_divide, 1), "select({0} == 0, {0}, {0} / {1})", **_TANGENTS
)
_TWO_SCALED = SumOfTerms((scale, scale))
_QUOTIENT = SumOfTerms((unscale, scale))
pair = Pair(
    "pair",
    _zero_where_zero(np.multiply, 2),
    "select({0} == 0, {0}, select({1} == 0, {1}, {0} * {1}))",
    **_TANGENTS,
)
LOOK_FOR_ZEROS = frozenset((Scale, Unscale, SumOfTerms))
"""Classes of the operations on tangents that are no plain products."""


def ones_like(x: Value) -> Value:
    """The scalar one of the dtype of ``x``; it broadcasts wherever ``x`` does."""
    return aval_of(x).dtype.type(1)


_POWER: dict[str, Any] = {"kinds": "iufc", "code_kinds": "f", "keeps_weak": True}


def _power_slopes(n: int) -> list[Derivative]:
    """Derivatives of ``x**y log(x)**n`` in ``x`` and ``y``, which are made of such functions."""

    def in_x(x: Value, y: Value) -> Value:
        # y x**(y-1) log(x)**n, where a factor decides if it is 0: y also for x = 0, the power also
        # for an infinite y.
        below = y - ones_like(y)
        power_below = plain_power.bind(x, below)
        first = pair.bind(y, _times_log(n, power_below, x, below))
        return first + n * _times_log(n - 1, power_below, x, below) if n else first

    def in_y(out: Value, x: Value, y: Value) -> Value:
        return _times_log(1, out, x, y) if n == 0 else power_log(n + 1).bind(out, x, y)

    if n == 0:
        return [lambda x, y, out: in_x(x, y), lambda x, y, out: in_y(out, x, y)]
    # The power is a value that is there already; it changes by x and y alone.
    return [
        lambda out, x, y, _: zero_of(x),
        lambda out, x, y, _: in_x(x, y),
        lambda out, x, y, _: in_y(out, x, y),
    ]


def _times_log(n: int, power_of_x: Value, x: Value, y: Value) -> Value:
    return power_log(n).bind(stop_gradient.bind(power_of_x), x, y) if n else power_of_x


@functools.lru_cache(1024)
def power_log(n: int) -> Smooth:
    """``x**y log(x)**n`` for ``n > 0``, given ``x**y``, ``x`` and ``y``; 0 where ``x**y`` is 0."""
    code = product_of("log({1})", n) if n <= MOST_FACTORS else f"pow(log({{1}}), {n}.0)"
    return Smooth(
        f"power_log{n}",
        _zero_where_zero(lambda power_of_x, x, y: power_of_x * np.log(x) ** n, 1),
        _power_slopes(n),
        f"select({{0}} == 0, {{0}}, {{0}} * ({code}))",
        **_POWER,
    )


class _Power(Smooth):
    """A power, of integers by counting factors."""

    def lower(self, *avals: ShapedArray) -> Any:
        if avals[0].dtype.kind in "iu":
            return Pointwise(self.code, counts=(1,))
        return super().lower(*avals)

    def refusal(self, operand: int, value: int, position: int, *avals: ShapedArray) -> Exception:
        return ValueError("Integers to negative integer powers are not allowed.")


power = _Power(
    "power",
    np.power,
    _power_slopes(0),
    "pow({0}, {1})",
    # A jump in y: 0**y is 1 there and 0 beyond.
    level_at=is_origin,
    **_POWER,
)
plain_power = _Power("plain_power", np.power, _power_slopes(0), "pow({0}, {1})", **_POWER)
"""The power in derivatives, whose own slope at the origin is what it is: infinite."""


class IntegerPower(Primitive):
    """``x ** exponent`` for a static integer exponent: exact rule at ``x = 0``."""

    exponent: int

    keeps_weak = True

    def impl(self, x: Any) -> Any:
        if self.exponent == 2:
            return x * x
        out = np.power(x, aval_of(x).dtype.type(self.exponent))
        return out.item() if type(x) in families.PYTHON_NUMBERS else out

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        if not is_inexact(x.dtype):
            raise DtypeError(f"integer_power needs a float or complex argument, got {x}.")
        return x

    def _differential(self, primals: Sequence[Value], slots: Slots) -> tuple[Any, Any, Any] | None:
        (x,) = primals
        n = self.exponent
        if n < 2:
            return None
        out = self.impl(x)
        with np.errstate(all="ignore"):
            slope = x * n if n == 2 else n * IntegerPower(n - 1).impl(x)
        return out, scale, [slots[0], slope]

    @with_differential(_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,) = primals
        n = self.exponent
        # The derivative of x**1 is 1 and that of x**0 is 0, also where x is 0, inf or nan.
        if n == 0:
            return self.bind(x), None
        if n == 1:
            return self.bind(x), tangents[0]
        slope = coefficient(lambda: x * n if n == 2 else n * integer_power(x, n - 1))
        return self.bind(x), scale.bind(tangents[0], slope)

    @property
    def number_code(self) -> NumberCode | None:
        return NumberCode("x * x", ("x * 2",)) if self.exponent == 2 else None

    def at_numbers(self, x: float) -> tuple[Any, Any] | None:
        n = self.exponent
        if n < 2:
            return None
        out, slope = self.impl(x), x * n if n == 2 else n * IntegerPower(n - 1).impl(x)
        return (out, slope) if math.isfinite(out) and math.isfinite(slope) else None

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), 0

    def lower(self, x: ShapedArray) -> Form:
        if self.exponent in _POWERS:
            return Pointwise(_POWERS[self.exponent])
        if x.dtype.kind == "f":
            return Pointwise(f"pow({{0}}, {self.exponent}.0)")
        exponent = x.dtype.type(self.exponent)
        arrays = (Array(x.shape, x.dtype), Array((), x.dtype, value=exponent), Array(x.shape))
        return Routine(arrays, (2,), (UfuncCall("numpy", ("power",), (0, 1, 2)),), x.ndim)


def _inverse_product(n: int) -> str:
    """The expression of a power of the reciprocal, ``n > 0``.

    ``1 / x**n`` itself would be 0 where the power overflows and its reciprocal is subnormal, and
    inaccurate where the power is. The square of half of it is neither.
    """
    if n <= 3:
        return product_of("(1 / {0})", n)
    root = f"(1 / ({product_of('{0}', n // 2)}))"
    return f"({root} * {root})" + (" / {0}" if n % 2 else "")


_POWERS = {
    **{n: product_of("{0}", n) for n in range(1, MOST_FACTORS + 1)},
    **{-n: _inverse_product(n) for n in range(1, MOST_FACTORS + 1)},
}


@functools.lru_cache(256)
def power_of(exponent: int) -> IntegerPower:
    """The operation for an exponent, remembered: loops repeat it."""
    return IntegerPower(exponent)


def integer_power(x: Value, exponent: int) -> Value:
    """``x ** exponent`` of a float or complex ``x``."""
    return power_of(exponent).bind(x)


def _tie(better: Callable[[Value, Value], Value]) -> tuple[Derivative, Derivative]:
    """Partial derivatives of a choice: 1 for the chosen, 0 for the other, 1/2 each in a tie."""

    def share(mine: Value, other: Value) -> Value:
        one = ones_like(mine)
        half = one / (one + one)
        return select.bind(
            mine == other, half, select.bind(better(mine, other), one, zero_of(mine))
        )

    return (lambda x, y, out: share(x, y)), (lambda x, y, out: share(y, x))


_CHOICE: dict[str, Any] = {"kinds": "biufc", "code_kinds": "biuf", "keeps_weak": True}


class Choice(Smooth):
    """One of two numbers, by their order. Nothing passes from and to the other one."""

    @property
    def product(self) -> Primitive:
        return pair

    def at_numbers(self, x: float, y: float) -> tuple[Any, float, float] | None:
        if x == y or not math.isfinite(x) or not math.isfinite(y):
            return None
        out = self.impl(x, y)
        return (out, 1.0, Blocked()) if out == x else (out, Blocked(), 1.0)


maximum = Choice("maximum", np.maximum, _tie(lambda a, b: a > b), "maximum({0}, {1})", **_CHOICE)
minimum = Choice("minimum", np.minimum, _tie(lambda a, b: a < b), "minimum({0}, {1})", **_CHOICE)


arctan2 = Smooth(
    "arctan2",
    np.arctan2,
    # Divided twice, since the square of the distance overflows and vanishes early.
    [
        lambda x, y, out: _turning(y, hypot.bind(x, y)),
        lambda x, y, out: _turning(-x, hypot.bind(x, y)),
    ],
    "atan2({0}, {1})",
    level_at=is_origin,
    kinds="f",
)


def _turning(x: Value, distance: Value) -> Value:
    """``x / distance**2``, which nothing turns at an infinite distance."""
    return select.bind(isinf.bind(x), zero_of(x), x / distance / distance)


def _direction(x: Value, y: Value, distance: Value) -> Value:
    """``x / distance`` or, at infinity, its limit, in the middle where both are infinite."""
    one = ones_like(x)
    part = select.bind(isinf.bind(y), aval_of(x).dtype.type(math.sqrt(0.5)), one)
    return select.bind(isinf.bind(x), sign.bind(x) * part, x / distance)


hypot: Smooth = Smooth(
    "hypot",
    np.hypot,
    [lambda x, y, out: _direction(x, y, out), lambda x, y, out: _direction(y, x, out)],
    "hypot({0}, {1})",
    # As every norm.
    level_at=is_origin,
    kinds="f",
)
copysign: Smooth = Smooth(
    "copysign",
    np.copysign,
    [lambda x, y, out: sign.bind(x) * copysign.bind(ones_like(x), y), lambda x, y, out: zero_of(x)],
    "copysign({0}, {1})",
    kinds="f",
)


def _comparison(name: str, function: Any, symbol: str, code_kinds: str = "biuf") -> Constantlike:
    code = f"{{0}} {symbol} {{1}}"
    return Constantlike(name, function, code, code_kinds, "biufc", result="bool")


equal = _comparison("equal", np.equal, "==", "biufc")
not_equal = _comparison("not_equal", np.not_equal, "!=", "biufc")
less = _comparison("less", np.less, "<")
less_equal = _comparison("less_equal", np.less_equal, "<=")
greater = _comparison("greater", np.greater, ">")
greater_equal = _comparison("greater_equal", np.greater_equal, ">=")

_BITS: dict[str, Any] = {"code_kinds": "biu", "kinds": "biu"}
bitwise_and = Constantlike("bitwise_and", np.bitwise_and, "{0} & {1}", **_BITS)
bitwise_or = Constantlike("bitwise_or", np.bitwise_or, "{0} | {1}", **_BITS)
bitwise_xor = Constantlike("bitwise_xor", np.bitwise_xor, "{0} ^ {1}", **_BITS)
bitwise_not = Constantlike("bitwise_not", np.invert, "~{0}", **_BITS)
left_shift = Constantlike("left_shift", np.left_shift, "left_shift({0}, {1})", "iu", "iu")
right_shift = Constantlike("right_shift", np.right_shift, "right_shift({0}, {1})", "iu", "iu")

select: Select = Select("select", _chosen, "select({0}, {1}, {2})", "biufc", "biufc", mixed=False)

# Rounding and classification.
sign: Constantlike = Constantlike("sign", np.sign, "sign({0})", "iuf", "iufc", keeps_weak=True)
floor = Constantlike("floor", np.floor, "floor({0})", kinds="f")
ceil = Constantlike("ceil", np.ceil, "ceil({0})", kinds="f")
trunc: Constantlike = Constantlike("trunc", np.trunc, "trunc({0})", kinds="f")
rint = Constantlike("rint", np.rint, "rint({0})", kinds="fc")
isnan = Constantlike("isnan", np.isnan, "isnan({0})", "fc", "fc", result="bool")
isinf = Constantlike("isinf", np.isinf, "isinf({0})", "fc", "fc", result="bool")
isfinite = Constantlike("isfinite", np.isfinite, "isfinite({0})", "fc", "fc", result="bool")
signbit = Constantlike("signbit", np.signbit, "signbit({0})", "f", "f", result="bool")


class Convert(Primitive):
    """Conversion to another dtype. Real-linear between inexact dtypes.

    Args:
        dtype: The dtype.
        weak: Whether the result is weak, as the argument must be then.
    """

    dtype: np.dtype[Any]
    weak: bool = False

    makes_no_nans = True

    def impl(self, x: Any) -> Any:
        if self.weak and type(x) in families.PYTHON_NUMBERS:
            return self.dtype.type(x).item()
        if not isinstance(x, np.ndarray | np.generic):
            x = np.asarray(x)[()]
        # Dropping an imaginary part is meant here, and casts of nan to integers stay silent. As a
        # truth value a complex number counts as a whole.
        drops = x.dtype.kind == "c" and self.dtype.kind not in "cb"
        part = x.real if drops else x
        if isinstance(part, np.ndarray):  # of a subclass, whose method may do something else
            return np.ndarray.astype(part, self.dtype)
        return part.astype(self.dtype)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return shaped(x.shape, self.dtype, self.weak)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        exact = not is_inexact(self.dtype)
        return self.bind(*primals), None if exact else self.bind(tangents[0])

    def at_numbers(self, x: float) -> tuple[Any, float] | None:
        if self.dtype != np.float64 or self.weak or not math.isfinite(x):
            return None
        return np.float64(x), 1.0

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (convert(ct, x.dtype),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), 0

    def lower(self, x: ShapedArray) -> Form:
        if self.dtype == x.dtype:  # a change of what is weak
            return Pointwise("{0}")
        if self.dtype.kind == "b":
            return Pointwise("{0} != 0")
        drops = is_complex(x.dtype) and not is_complex(self.dtype)
        return Pointwise(f"{_CASTS[self.dtype]}({'real({0})' if drops else '{0}'})")

    def params(self) -> dict[str, Any]:
        return {"dtype": ("~" if self.weak else "") + short_name(self.dtype)}


_CASTS = {
    np.dtype(kind): name
    for kind, name in (
        ("i1", "i8"), ("i2", "i16"), ("i4", "i32"), ("i8", "i64"),
        ("u1", "u8"), ("u2", "u16"), ("u4", "u32"), ("u8", "u64"),
        ("f4", "f32"), ("f8", "f64"), ("c8", "c64"), ("c16", "c128"),
    )
}  # fmt: skip


def convert(x: Value, dtype: np.dtype[Any]) -> Value:
    """``x`` as a strongly typed value of ``dtype``."""
    aval = aval_of(x)
    return x if aval.dtype == dtype and not aval.weak_type else Convert(dtype).bind(x)


# Complex numbers. Cotangents follow the convention without conjugation: a holomorphic f has the
# cotangent ct * f'(z), and <ct, t> is the plain (bilinear) product.
def _to_complex(x: Value) -> Value:
    return convert(x, complex_dtype(x.dtype))


def _of_parts(x: Any, y: Any) -> Any:
    out = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), complex_dtype(aval_of(x).dtype))
    out.real, out.imag = x, y
    return out[()]


class _FromParts(families.Elementwise):
    """``x + iy`` without arithmetic: a product with ``i`` makes NaN of infinities."""

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        x, y = (zero_of(x) if t is None else t for x, t in zip(primals, tangents, strict=True))
        return out, broadcast_to(self.bind(x, y), families.shape_of(out))

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        parts = lambda: real.bind(ct), lambda: neg.bind(imag.bind(ct))
        return [
            unbroadcast(part(), x) if is_linear(x) else None
            for part, x in zip(parts, args, strict=True)
        ]

    def lower(self, *avals: ShapedArray) -> Any:
        return Pointwise(f"c{16 * avals[0].dtype.itemsize}({{0}}, {{1}})")


from_parts = _FromParts("from_parts", _of_parts, "", kinds="f", result="complex")
real: LinearUnary = LinearUnary(
    "real", np.real, lambda ct, x: _to_complex(ct), "real({0})", code_kinds="c", kinds="c",
    result="real",
)  # fmt: skip
imag = LinearUnary(
    "imag", np.imag, lambda ct, x: from_parts.bind(zero_of(ct), neg.bind(ct)), "imag({0})",
    code_kinds="c", kinds="c", result="real",
)  # fmt: skip
conj: LinearUnary = LinearUnary(
    "conj", np.conjugate, lambda ct, x: conj.bind(ct), "conj({0})", code_kinds="c", kinds="c"
)


def _abs_jvp(self: families.Elementwise, primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    out = self.bind(x)
    if not is_complex(aval_of(x).dtype):
        return out, scale.bind(t, sign.bind(x))
    # d|z| = Re(conj(z) dz) / |z|, and 0 at the origin.
    direction = coefficient(lambda: conj.bind(x) / convert(out, aval_of(x).dtype))
    is_zero = equal.bind(out, zero_of(out))
    return out, real.bind(scale.bind(t, select.bind(is_zero, zero_of(x), direction)))


class _Absolute(families.Elementwise):
    jvp = _abs_jvp

    def at_numbers(self, x: float) -> tuple[Any, float] | None:
        return (self.impl(x), 1.0 if x > 0 else -1.0) if x and math.isfinite(x) else None


absolute = _Absolute("abs", np.absolute, "abs({0})", "iufc", "iufc", result="real", keeps_weak=True)

# Gates and elementary functions: name, NumPy, derivative, kernel.
relu = Gated(
    "relu", lambda x: np.maximum(x, zero_of(x)), lambda x: x > zero_of(x), "maximum({0}, 0)",
    kinds="iuf", code_kinds="iuf",
)  # fmt: skip

_LN2 = float(np.log(2.0))
_LOG2_E = float(np.log2(np.e))
_LOG10_E = float(np.log10(np.e))


class _Exponential(Unary):
    def lower(self, *avals: ShapedArray) -> Any:
        """The expression that real numbers have, or that of complex ones."""
        dtype = avals[0].dtype
        return Pointwise(_complex_exp(dtype)) if is_complex(dtype) else super().lower(*avals)


def _complex_exp(dtype: np.dtype[Any]) -> str:
    """The expression of the exponential function of complex numbers, with C's special values."""
    re, im = "real({0})", "imag({0})"
    # By halves: the exponential function of the real part alone overflows first.
    half = f"exp({re} * 0.5)"
    vanishes = f"isinf({re}) & ({re} < 0)"
    at_ends = f"select({vanishes}, {half}, select(isinf({re}), {re}, {im} - {im}))"
    first = f"select(isfinite({im}), {half} * cos({im}) * {half}, {at_ends})"
    at_ends = f"select({vanishes}, copysign({half}, {im}), {im} - {im})"
    second = f"select(isfinite({im}), {half} * sin({im}) * {half}, {at_ends})"
    return f"c{8 * dtype.itemsize}({first}, select({im} == 0, {im}, {second}))"


class _Reciprocal(Unary):
    def lower(self, *avals: ShapedArray) -> Any:
        """NumPy's quotients, by the larger part: a quotient of 1 + 0i has other zeros."""
        re, im = "real({0})", "imag({0})"
        is_real = f"abs({im}) <= abs({re})"
        ratio = f"select({is_real}, {im}, {re}) / select({is_real}, {re}, {im})"
        size = f"select({is_real}, {re} + {im} * ({ratio}), {re} * ({ratio}) + {im})"
        first, second = f"select({is_real}, 1, {ratio})", f"select({is_real}, -({ratio}), -1)"
        return Pointwise(f"c{8 * avals[0].dtype.itemsize}({first} / ({size}), {second} / ({size}))")


complex_reciprocal = _Reciprocal(
    "reciprocal", np.reciprocal, lambda x, y: -y * y, "", kinds="c", code_kinds="c"
)
exp = _Exponential("exp", np.exp, lambda x, y: y, "exp({0})", slope="out", is_regular=True)
exp2 = Unary("exp2", np.exp2, lambda x, y: y * _LN2, "exp2({0})")
expm1 = Unary("expm1", np.expm1, lambda x, y: y + 1, "expm1({0})")
log = Unary("log", np.log, lambda x, y: 1 / x, "log({0})", slope="1 / x")
log2 = Unary("log2", np.log2, lambda x, y: _LOG2_E / x, "log2({0})")
log10 = Unary("log10", np.log10, lambda x, y: _LOG10_E / x, "log10({0})")
log1p = Unary("log1p", np.log1p, lambda x, y: 1 / (1 + x), "log1p({0})")
sqrt = Unary("sqrt", np.sqrt, lambda x, y: 0.5 / y, "sqrt({0})", slope="0.5 / out")
rsqrt = Unary(
    "rsqrt",
    lambda x: 1 / np.sqrt(x),
    lambda x, y: -0.5 * y / x,
    "1 / sqrt({0})",
    parts=lambda recipe, x: recipe(div, x.aval.dtype.type(1), recipe(sqrt, x)),
)
cbrt = Unary("cbrt", np.cbrt, lambda x, y: 1 / (3 * y * y), "cbrt({0})", kinds="f")
sin: Unary = Unary("sin", np.sin, lambda x, y: cos.bind(x), "sin({0})", is_regular=True)
cos: Unary = Unary("cos", np.cos, lambda x, y: -sin.bind(x), "cos({0})", is_regular=True)
tan = Unary("tan", np.tan, lambda x, y: 1 + y * y, "tan({0})")
arcsin = Unary("arcsin", np.arcsin, lambda x, y: rsqrt.bind((1 - x) * (1 + x)), "asin({0})")
arccos = Unary("arccos", np.arccos, lambda x, y: -rsqrt.bind((1 - x) * (1 + x)), "acos({0})")
arctan = Unary("arctan", np.arctan, lambda x, y: 1 / (1 + x * x), "atan({0})")
sinh: Unary = Unary("sinh", np.sinh, lambda x, y: cosh.bind(x), "sinh({0})")
cosh: Unary = Unary("cosh", np.cosh, lambda x, y: sinh.bind(x), "cosh({0})")
tanh = Unary("tanh", np.tanh, lambda x, y: 1 - y * y, "tanh({0})", slope="1 - out * out")


def _arcsinh_slope(x: Value, y: Value) -> Value:
    # The square of a huge real number overflows.
    if is_complex(aval_of(x).dtype):
        return rsqrt.bind(x * x + 1)
    return 1 / hypot.bind(x, ones_like(x))


arcsinh = Unary("arcsinh", np.arcsinh, _arcsinh_slope, "asinh({0})")
arccosh: Unary = Unary(
    "arccosh", np.arccosh, lambda x, y: rsqrt.bind(x - 1) * rsqrt.bind(x + 1), "acosh({0})"
)
arctanh = Unary("arctanh", np.arctanh, lambda x, y: 1 / ((1 - x) * (1 + x)), "atanh({0})")


def _logistic(x: Any) -> Any:
    x = np.asarray(x)
    is_right = x.real >= 0
    # exp never overflows: the real part of its argument is not positive.
    small = np.exp(np.where(is_right, -x, x))
    return (np.where(is_right, 1, small) / (1 + small))[()].astype(x.dtype)


def _complex_logistic(recipe: families.Recipe, x: Var) -> Any:
    one, zero = x.aval.dtype.type(1), real_dtype(x.aval.dtype).type(0)
    is_right = recipe(greater_equal, recipe(real, x), zero)
    small = recipe(exp, recipe(select, is_right, recipe(neg, x), x))
    return recipe(div, recipe(select, is_right, one, small), recipe(add, one, small))


logistic = Unary(
    "logistic", _logistic, lambda x, y: y * (1 - y), "expit({0})", parts=_complex_logistic
)


class _Identity(families.Elementwise):
    """The identity with derivative zero (`stop_gradient`)."""

    jvp = families.zero_jvp
    makes_no_nans = True
    stops_gradients = True

    def impl(self, *args: Any) -> Any:
        return args[0]

    def transpose(self, ct: Any, *args: Any) -> Sequence[Value | None]:
        return [None]


stop_gradient = _Identity("stop_gradient", lambda x: x, "{0}", "biufc", "biufc", keeps_weak=True)


def is_real(x: Value) -> bool:
    """Whether a value has a real dtype."""
    return real_dtype(aval_of(x).dtype) == aval_of(x).dtype
