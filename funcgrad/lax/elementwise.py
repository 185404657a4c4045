"""Functions of corresponding elements: arithmetic, comparison, bits, elementary functions.

Arguments have one dtype and one number of axes, whose lengths are equal or 1; scalars may stand
next to arrays.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.dialect import default_dtype
from funcgrad.base.signatures import call_of, docstring, signature_of
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import BOOL, complex_dtype
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.higher_order.linear_call import LinearCall
from funcgrad.lax.operands import (
    Array,
    ArrayLike,
    array_operand,
    canonical_dtype,
    check_kinds,
    check_operand,
    check_shapes,
    same_dtype,
)
from funcgrad.lax.precision import AccuracyLike
from funcgrad.primitives import bits
from funcgrad.primitives import elementwise as primitive
from funcgrad.primitives.families import Elementwise, shape_of
from funcgrad.primitives.objects import is_traced, map_values, unwrapped
from funcgrad.primitives.texts import TEXTS

__all__ = [
    "RoundingMethod", "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh",
    "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt",
    "ceil", "clamp", "clz", "complex", "conj", "convert_element_type", "cos", "cosh", "div",
    "dtype", "eq", "exp", "exp2", "expm1", "floor", "ge", "gt", "imag", "integer_pow", "is_finite",
    "le", "log", "log1p", "logistic", "lt", "max", "min", "mul", "mulhi", "ne", "neg", "nextafter",
    "population_count", "pow", "real", "reciprocal", "reduce_precision", "rem", "round", "rsqrt",
    "select", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
    "sin", "sinh", "sqrt", "square", "stop_gradient", "sub", "tan", "tanh",
]  # fmt: skip


def _unary(
    name: str, operation: Elementwise, summary: str = "", kinds: str = "", shows: str = ""
) -> Callable[..., Array]:
    """A public function of one argument for a primitive."""
    accepted = kinds or operation.kinds

    def function(x: ArrayLike) -> Array:
        x = check_operand(name, x)
        check_kinds(name, aval_of(x).dtype, accepted)
        return operation.bind(x)

    return _document(function, name, operation, summary, accepted, shows)


def _elementary(
    name: str, operation: Elementwise, summary: str = "", shows: str = ""
) -> Callable[..., Array]:
    """Make a `_unary` function for which JAX takes an accuracy."""
    accepted = operation.kinds

    def function(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
        x = check_operand(name, x)
        check_kinds(name, aval_of(x).dtype, accepted)
        return operation.bind(x)

    return _document(function, name, operation, summary, accepted, shows)


def _binary(
    name: str, operation: Elementwise, summary: str = "", kinds: str = "", shows: str = ""
) -> Callable[..., Array]:
    """A public function of two arguments of one dtype and number of axes."""
    accepted = kinds or operation.kinds

    def function(x: ArrayLike, y: ArrayLike) -> Array:
        x, y = same_dtype(name, x, y)
        check_shapes(name, x, y)
        check_kinds(name, aval_of(x).dtype, accepted)
        return operation.bind(x, y)

    return _document(function, name, operation, summary, accepted, shows)


_KINDS = {"b": "bool", "i": "signed", "u": "unsigned", "f": "float", "c": "complex"}


def _document(
    function: Any, name: str, operation: Elementwise, summary: str, kinds: str, shows: str
) -> Callable[..., Array]:
    """Write a docstring; summary and example are by default those of NumPy's ufunc."""
    if not summary:
        summary, shows = TEXTS[operation.function.__name__]
    listed = ", ".join(_KINDS[k] for k in kinds)
    meanings = {
        "x": f"An array or a number. Dtypes: {listed}. Nothing is promoted.",
        "y": "The same, of the dtype and the number of axes of ``x``.",
        "accuracy": "Accepted for JAX's signature; there is one implementation.",
    }
    own = {q: meanings[q] for q in signature_of(function).parameters}
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    raises = {"DtypeError": "If the dtype is another."}
    if "y" in own:
        raises = {
            "DtypeError": "If the dtypes differ or are others.",
            "ShapeError": "If neither is a scalar and axes differ in number or length (1 fits).",
        }
    returns = "An array like the operands, or a scalar."
    call = call_of(f"fg.lax.{name}", shows)
    function.__doc__ = docstring(summary, own, call, returns=returns, raises=raises)
    return function


# One argument.
neg = _unary("neg", primitive.neg)
sign = _unary(
    "sign",
    primitive.sign,
    "-1, 0 or 1 by the sign of ``x``; for complex ``x / |x|``.",
    shows="-3.0 -> -1.0",
)
floor = _unary("floor", primitive.floor)
ceil = _unary("ceil", primitive.ceil)
abs = _unary(
    "abs", primitive.absolute, "Absolute value; real also for complex ``x``.", shows="-2.0 -> 2.0"
)
exp = _elementary("exp", primitive.exp)
exp2 = _elementary("exp2", primitive.exp2)
expm1 = _elementary("expm1", primitive.expm1)
log = _elementary("log", primitive.log)
log1p = _elementary("log1p", primitive.log1p)
sqrt = _elementary("sqrt", primitive.sqrt)
rsqrt = _elementary("rsqrt", primitive.rsqrt, "``1 / sqrt(x)``.", shows="4.0 -> np.float64(0.5)")
cbrt = _elementary("cbrt", primitive.cbrt)
sin = _elementary("sin", primitive.sin)
cos = _elementary("cos", primitive.cos)
tan = _elementary("tan", primitive.tan)
asin = _unary("asin", primitive.arcsin)
acos = _unary("acos", primitive.arccos)
atan = _unary("atan", primitive.arctan)
sinh = _unary("sinh", primitive.sinh)
cosh = _unary("cosh", primitive.cosh)
tanh = _elementary("tanh", primitive.tanh)
asinh = _unary("asinh", primitive.arcsinh)
acosh = _unary("acosh", primitive.arccosh)
atanh = _unary("atanh", primitive.arctanh)
logistic = _elementary(
    "logistic",
    primitive.logistic,
    "``1 / (1 + exp(-x))``, without overflow.",
    shows="0.0 -> np.float64(0.5)",
)
is_finite = _unary("is_finite", primitive.isfinite, kinds="f")
real = _unary("real", primitive.real, "Real part.", shows="1 + 2j -> 1.0")
imag = _unary("imag", primitive.imag, "Imaginary part.", shows="1 + 2j -> 2.0")
bitwise_not = _unary(
    "bitwise_not",
    primitive.bitwise_not,
    "All bits inverted; logical not of bools.",
    shows="5 -> np.int64(-6)",
)
population_count = _unary(
    "population_count",
    bits.population_count,
    "Number of bits that are set, in the dtype of ``x``.",
    shows="7 -> np.int64(3)",
)

# Two arguments.
add = _binary("add", primitive.add)
sub = _binary("sub", primitive.sub)
_product = _binary("mul", primitive.mul, "``x * y``.")
rem = _binary(
    "rem",
    primitive.fmod,
    "Remainder of the division that truncates: sign of ``x``.",
    shows="-7.0, 3.0 -> np.float64(-1.0)",
)
max = _binary("max", primitive.maximum)
min = _binary("min", primitive.minimum)
atan2 = _binary(
    "atan2",
    primitive.arctan2,
    "Angle of the point ``(y, x)``: first ``x`` is its height.",
    shows="1.0, -1.0 -> np.float64(2.356194490192345)",
)
_neighbour = _binary("nextafter", bits.nextafter, "The number next to ``x`` towards ``y``.")
eq = _binary("eq", primitive.equal)
ne = _binary("ne", primitive.not_equal)
lt = _binary("lt", primitive.less, kinds="biuf")
le = _binary("le", primitive.less_equal, kinds="biuf")
gt = _binary("gt", primitive.greater, kinds="biuf")
ge = _binary("ge", primitive.greater_equal, kinds="biuf")
bitwise_and = _binary("bitwise_and", primitive.bitwise_and)
bitwise_or = _binary("bitwise_or", primitive.bitwise_or)
bitwise_xor = _binary("bitwise_xor", primitive.bitwise_xor)
shift_left = _binary(
    "shift_left",
    primitive.left_shift,
    "``x`` with its bits ``y`` places higher.",
    shows="3, 2 -> np.int64(12)",
)
shift_right_arithmetic = _binary(
    "shift_right_arithmetic",
    primitive.right_shift,
    "``x`` shifted down; the sign bit is repeated.",
    shows="-8, 1 -> np.int64(-4)",
)
_float_quotient = _binary("div", primitive.div, "``x / y``.")
_float_power = _binary("pow", primitive.power, "``x ** y``.")


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: Any = None) -> Array:
    """``x * y``.

    Args: out_dtype: Dtype in which products are formed and returned, by default that of both.
    Example: print(fg.lax.mul(np.int8(100), np.int8(100), out_dtype=np.int32)) -> 10000
    """
    if out_dtype is not None:
        wanted = canonical_dtype(out_dtype)
        x, y = (primitive.convert(array_operand("mul", v), wanted) for v in same_dtype("mul", x, y))
    return _product(x, y)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The number next to ``x1`` towards ``x2``.

    Args:
        x1: Floating array.
        x2: Another one, of the same dtype.
    Example: fg.lax.nextafter(1.0, 2.0) -> np.float64(1.0000000000000002)
    """
    return _neighbour(x1, x2)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of the product of integers, which has twice as many as they.

    Args: x: Integers.
    Returns: An array of that dtype.
    Example: print(fg.lax.mulhi(np.uint8(200), np.uint8(100)), 200 * 100 // 256) -> 78 78
    """
    x, y = same_dtype("mulhi", x, y)
    check_shapes("mulhi", x, y)
    dtype = aval_of(x).dtype
    check_kinds("mulhi", dtype, "iu")
    if dtype.itemsize < 8:
        wide = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        product = primitive.mul.bind(primitive.convert(x, wide), primitive.convert(y, wide))
        half = wide.type(8 * dtype.itemsize)
        return primitive.convert(primitive.right_shift.bind(product, half), dtype)
    # Halves of 32 bits: those above are shifted with their sign, those below have none.
    half, mask = dtype.type(32), dtype.type(0xFFFFFFFF)

    def above(v: ArrayLike) -> Array:
        return primitive.right_shift.bind(v, half)

    def below(v: ArrayLike) -> Array:
        return primitive.bitwise_and.bind(v, mask)

    low = shift_right_logical(primitive.mul.bind(below(x), below(y)), half)
    cross = primitive.add.bind(primitive.mul.bind(above(x), below(y)), low)
    other = primitive.add.bind(primitive.mul.bind(below(x), above(y)), below(cross))
    carried = primitive.add.bind(above(cross), above(other))
    return primitive.add.bind(primitive.mul.bind(above(x), above(y)), carried)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Floats rounded to what a format with fewer bits can hold.

    Halves go to the even neighbour, what is too large becomes infinite, and what is too small to
    have all bits becomes 0. Tangents and cotangents are rounded likewise.

    Args:
        operand: Floating array.
        exponent_bits: Bits of the exponent, at least 1.
        mantissa_bits: Bits of the mantissa behind the leading one, at least 0.
    Returns: An array of the same dtype.
    Raises: ArgumentError: If there are too few bits.
    Example: print(fg.lax.reduce_precision(np.array([np.pi, 1e39]), 8, 7)) -> [3.140625      inf]
    """
    x = array_operand("reduce_precision", operand)
    exponent, mantissa = int(exponent_bits), int(mantissa_bits)
    if exponent < 1 or mantissa < 0:
        raise ArgumentError(
            "lax.reduce_precision needs at least 1 bit of exponent and 0 of mantissa, got "
            f"{exponent} and {mantissa}."
        )
    aval = aval_of(x).strong()
    check_kinds("reduce_precision", aval.dtype, "f")

    def rounded(_: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        return [None if v is None else _rounded(v, exponent, mantissa) for v in values]

    call = LinearCall("reduce_precision", rounded, rounded, 0, (aval,), (aval,))
    return call.bind(x)[0]


def _rounded(x: Array, exponent: int, mantissa: int) -> Array:
    dtype = aval_of(x).dtype
    facts = np.finfo(dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    out = x
    dropped = facts.nmant - mantissa
    if dropped > 0:
        words = bits.Bitcast(word).bind(x)
        last = primitive.bitwise_and.bind(
            primitive.right_shift.bind(words, word.type(dropped)), word.type(1)
        )
        half = word.type((1 << (dropped - 1)) - 1)
        words = primitive.add.bind(words, primitive.add.bind(last, half))
        kept = word.type(np.iinfo(word).max >> dropped << dropped)
        out = bits.Bitcast(dtype).bind(primitive.bitwise_and.bind(words, kept))
        out = primitive.select.bind(primitive.isnan.bind(x), x, out)
    if exponent < facts.iexp:
        bias = (1 << (exponent - 1)) - 1
        size = primitive.absolute.bind(out)
        is_large = primitive.greater_equal.bind(size, dtype.type(2.0 ** (bias + 1)))
        endless = primitive.copysign.bind(dtype.type(np.inf), out)
        out = primitive.select.bind(is_large, endless, out)
        is_small = primitive.less.bind(size, dtype.type(2.0 ** (1 - bias)))
        nothing = primitive.copysign.bind(dtype.type(0), out)
        out = primitive.select.bind(is_small, nothing, out)
    return out


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """``x / y``; of integers the quotient truncated toward zero.

    Args:
        x: Dividend.
        y: Divisor, of the same dtype. An integer 0 gives what NumPy gives: 0 and a warning.
    Returns: The quotient, in that dtype.
    Example: print(fg.lax.div(np.array([7, -7]), 2)) -> [ 3 -3]
    """
    x, y = same_dtype("div", x, y)
    kind = aval_of(x).dtype.kind
    if kind not in "iu":
        return _float_quotient(x, y)
    check_shapes("div", x, y)
    down = primitive.floor_divide.bind(x, y)
    if kind == "u":
        return down
    zero = primitive.zero_of(x)
    is_inexact = primitive.not_equal.bind(primitive.fmod.bind(x, y), zero)
    is_negative = primitive.not_equal.bind(
        primitive.less.bind(x, zero), primitive.less.bind(y, zero)
    )
    up = primitive.bitwise_and.bind(is_inexact, is_negative)
    return primitive.add.bind(down, primitive.convert(up, aval_of(x).dtype))


def clz(x: ArrayLike) -> Array:
    """How many of the highest bits of integers are 0, in the dtype of ``x``.

    Args: x: Array of integers.
    Raises: DtypeError: If it holds others.
    Example: print(fg.lax.clz(np.array([0, 1, 255], np.uint8))) -> [8 7 0]
    """
    x = array_operand("clz", x)
    dtype = aval_of(x).dtype
    check_kinds("clz", dtype, "iu")
    word = np.dtype(f"u{dtype.itemsize}")
    filled = primitive.convert(x, word)
    # All bits below the highest one are set, and those that stay 0 are counted.
    shift = 1
    while shift < 8 * word.itemsize:
        filled = primitive.bitwise_or.bind(
            filled, primitive.right_shift.bind(filled, word.type(shift))
        )
        shift *= 2
    return primitive.convert(bits.population_count.bind(primitive.bitwise_not.bind(filled)), dtype)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """``x ** y`` for floating or complex ``x``, and ``y`` of that dtype or of integers.

    Args:
        x: Base.
        y: Exponent. A Python integer gives exact derivatives at 0 (see `integer_pow`).
    Returns: The power, in the dtype of ``x``.
    Example: fg.lax.pow(2.0, 3.0) -> 8.0
    """
    if type(y) is int:
        return integer_pow(x, y)
    x, y = check_operand("pow", x), check_operand("pow", y)
    if aval_of(y).dtype.kind in "iu":
        y = primitive.convert(y, aval_of(x).dtype)
    return _float_power(x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """``x ** y`` for a static integer ``y``.

    Args:
        x: Base, of any numeric dtype.
        y: Exponent; not negative if ``x`` is an integer.
    Returns: The power, in the dtype of ``x``.
    Example: print(fg.lax.integer_pow(np.float32(3), -1).dtype) -> float32
    """
    x = check_operand("integer_pow", x)
    dtype = aval_of(x).dtype
    check_kinds("integer_pow", dtype, "iufc")
    if dtype.kind in "fc":
        return primitive.integer_power(x, int(y))
    if y < 0:
        raise ArgumentError(f"lax.integer_pow: integers have no power {y}. Convert x to a float.")
    return primitive.power.bind(x, dtype.type(y))


def square(x: ArrayLike) -> Array:
    """``x * x``.

    Example: fg.lax.square(3.0) -> 9.0
    """
    return mul(x, x)


def reciprocal(x: ArrayLike) -> Array:
    """``1 / x`` of a floating or complex ``x``.

    Example: fg.lax.reciprocal(4.0) -> 0.25
    """
    return integer_pow(x, -1)


class RoundingMethod(enum.IntEnum):
    """Rounding of numbers in the middle between two integers, for `round`."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer, as a float.

    Args:
        x: Floating array.
        rounding_method: Where halves go: away from zero, or to the even neighbour.
    Returns: An array of the dtype of ``x``.

    Example:
        >>> print(fg.lax.round(np.array([0.5, 1.4, -2.5])))
        [ 1.  1. -3.]
        >>> print(fg.lax.round(np.array([0.5, 2.5]), fg.lax.RoundingMethod.TO_NEAREST_EVEN))
        [0. 2.]
    """
    x = check_operand("round", x)
    dtype = aval_of(x).dtype
    check_kinds("round", dtype, "f")
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return primitive.rint.bind(x)
    x = primitive.stop_gradient.bind(x)
    whole = primitive.trunc.bind(x)
    # Adding one half first would be wrong for the number just below one half.
    is_half = primitive.greater_equal.bind(
        primitive.absolute.bind(primitive.sub.bind(x, whole)), dtype.type(0.5)
    )
    step = primitive.copysign.bind(primitive.convert(is_half, dtype), x)
    return primitive.add.bind(whole, step)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """``x`` limited to ``min .. max``, which may be scalars.

    Args:
        min: Lower limit.
        max: Upper limit; it wins where it is below ``min``.
    Returns: An array of the shape and dtype of ``x``.
    Example: print(fg.lax.clamp(0.0, np.array([-1.0, 0.5, 2.0]), 1.0)) -> [0.  0.5 1. ]
    """
    low, x, high = same_dtype("clamp", min, x, max)
    for limit in (low, high):
        if shape_of(limit) not in ((), shape_of(x)):
            raise ShapeError(
                f"lax.clamp: a limit must be a scalar or have the shape of x, got {aval_of(limit)} "
                f"for {aval_of(x)}."
            )
    return primitive.minimum.bind(primitive.maximum.bind(x, low), high)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """``on_true`` where ``pred``, else ``on_false``; the cases are of one shape and dtype.

    Args:
        pred: Bool, a scalar or of the shape of the cases.
        on_true: Elements where ``pred`` holds.
        on_false: Elements where it does not.
    Returns: An array of the type of the cases.
    Example: fg.lax.select(np.array([True, False]), np.ones(2), np.zeros(2)) -> array([1., 0.])
    """
    return select_n(pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Element by element the case whose number is ``which``.

    Args:
        which: Bool for two cases (False is the first), or integers ``0 .. len(cases) - 1``; a
            scalar or of the shape of the cases.
        *cases: At least one, of one shape and dtype.
    Returns: An array of the type of the cases.

    Example:
        >>> which = np.array([2, 0, 1])
        >>> print(fg.lax.select_n(which, np.zeros(3), np.ones(3), np.full(3, 5.0)))
        [5. 0. 1.]
    """
    if not cases:
        raise ArgumentError("lax.select_n needs at least one case.")
    cases = tuple(same_dtype("select_n", *cases))
    if not any(map(is_traced, cases)):  # beside a weak traced value, Python's numbers stay weak
        cases = tuple(array_operand("select_n", x) for x in cases)
    shape = shape_of(cases[0])
    which = array_operand("select_n", which)
    if any(shape_of(x) != shape for x in cases) or shape_of(which) not in ((), shape):
        types = ", ".join(str(aval_of(x)) for x in (which, *cases))
        raise ShapeError(
            "lax.select_n needs cases of one shape, and a selector that is a scalar or of that "
            f"shape, got {types}."
        )
    if aval_of(which).dtype == BOOL:
        if len(cases) > 2:
            raise ArgumentError(f"lax.select_n: a bool selects from 2 cases, got {len(cases)}.")
        return cases[0] if len(cases) == 1 else primitive.select.bind(which, cases[1], cases[0])
    check_kinds("select_n", aval_of(which).dtype, "iu")
    out = cases[-1]
    for number in range(len(cases) - 2, -1, -1):
        is_lower = primitive.less_equal.bind(which, aval_of(which).dtype.type(number))
        out = primitive.select.bind(is_lower, cases[number], out)
    return out


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """``x`` with its bits ``y`` places lower; zeros come in at the top.

    Args:
        x: Integers.
        y: Number of places, of the same dtype.
    Returns: An array of that dtype.
    Example: fg.lax.shift_right_logical(8, 1) -> np.int64(4)
    """
    x, y = same_dtype("shift_right_logical", x, y)
    check_shapes("shift_right_logical", x, y)
    dtype = aval_of(x).dtype
    check_kinds("shift_right_logical", dtype, "iu")
    unsigned = np.dtype(f"u{dtype.itemsize}")
    x, y = primitive.convert(x, unsigned), primitive.convert(y, unsigned)
    return primitive.convert(primitive.right_shift.bind(x, y), dtype)


def conj(x: ArrayLike) -> Array:
    """Complex conjugate; a real argument becomes complex.

    Example: fg.lax.conj(1 + 2j) -> np.complex128(1-2j)
    """
    x = check_operand("conj", x)
    dtype = aval_of(x).dtype
    check_kinds("conj", dtype, "fc")
    return primitive.conj.bind(primitive.convert(x, complex_dtype(dtype)))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """``x + iy`` of two floating arrays.

    Args:
        x: Real part.
        y: Imaginary part, of the same dtype.
    Returns: complex64 for float32 parts, complex128 for float64.
    Example: fg.lax.complex(1.0, 2.0) -> np.complex128(1+2j)
    """
    x, y = same_dtype("complex", x, y)
    check_shapes("complex", x, y)
    dtype = aval_of(x).dtype
    check_kinds("complex", dtype, "f")
    return primitive.from_parts.bind(x, y)


def convert_element_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """``operand`` in another dtype.

    Args: new_dtype: A dtype, its name, or a scalar type such as ``np.float32`` or ``float``.
    Returns: The converted array; the imaginary part is dropped on the way to real dtypes.
    Example: fg.lax.convert_element_type(1.5, np.int64) -> array(1)
    """
    return primitive.convert(
        array_operand("convert_element_type", operand), canonical_dtype(new_dtype)
    )


def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """The same bits read as another dtype.

    Args: new_dtype: A dtype. A narrower one adds a last axis (low words first), a wider one takes
            the last axis away.
    Returns: The bits as ``new_dtype``. They have no derivative.
    Example: print(hex(fg.lax.bitcast_convert_type(np.float32(1), np.uint32))) -> 0x3f800000
    """
    return bits.Bitcast(canonical_dtype(new_dtype)).bind(
        array_operand("bitcast_convert_type", operand)
    )


def stop_gradient(x: Any) -> Any:
    """``x`` with derivative zero, for forward and reverse mode.

    Args: x: Array, scalar or pytree of them.
    Returns: The same values.
    Example: print(fg.grad(lambda x: x * fg.lax.stop_gradient(x))(3.0)) -> 3.0
    """
    return map_values(primitive.stop_gradient.bind, x)


def dtype(x: Any) -> np.dtype[Any]:
    """Dtype of an array or scalar; dtypes and scalar types stand for themselves.

    Args: x: An array or a number, or a dtype.
    Raises: DtypeError: If funcgrad does not compute with it.
    Example: fg.lax.dtype(1.5) -> dtype('float64')
    """
    if x is None:
        raise DtypeError("lax.dtype: None is no array.")
    is_dtype = isinstance(x, type | np.dtype)
    return default_dtype(canonical_dtype(x) if is_dtype else aval_of(unwrapped(x)).dtype)
