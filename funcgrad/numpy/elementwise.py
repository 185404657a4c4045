"""NumPy's ufuncs, one table row each: NumPy's object, how arguments promote, the primitive.

Adding a ufunc is adding a row. The rows serve `funcgrad.numpy`, plain ``np.`` calls on traced
arrays, and the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from funcgrad import dtypes
from funcgrad.base.signatures import call_of, docstring
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import Tracer
from funcgrad.errors import DtypeError
from funcgrad.numpy.promotion import (
    as_value,
    checked_dtype,
    noted_dtype,
    promote,
    promote_inexact,
    promote_quotient,
    promote_to_double,
    result_dtype,
    strong,
    to_dtype,
)
from funcgrad.observers.promotion import PROMOTIONS
from funcgrad.primitives import bits
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import Elementwise
from funcgrad.primitives.texts import TEXTS

__all__ = [
    "abs", "absolute", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "bitwise_and", "bitwise_invert", "bitwise_not", "bitwise_or", "bitwise_xor",
    "cbrt", "ceil", "conj", "conjugate", "copysign", "cos", "cosh", "deg2rad", "degrees",
    "divide", "equal", "exp", "exp2", "expm1", "fabs", "float_power", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "greater", "greater_equal", "heaviside", "hypot", "invert",
    "isfinite", "isinf", "isnan", "left_shift", "less", "less_equal", "log", "log1p", "log2",
    "log10", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "maximum", "minimum", "mod", "multiply", "negative", "nextafter",
    "not_equal", "positive", "power", "rad2deg", "radians", "reciprocal", "remainder",
    "right_shift", "rint", "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract",
    "tan", "tanh", "true_divide", "trunc",
]  # fmt: skip

Function = Callable[..., Any]

UFUNCS: dict[Any, Function] = {}
"""NumPy's ufunc -> the function that treats traced arguments."""

DIRECT: dict[Any, Elementwise] = {
    q.function: q
    for q in vars(p).values()
    if isinstance(q, Elementwise) and isinstance(q.function, np.ufunc) and q.function.nin == 1
}
"""Ufuncs of one argument whose primitive takes floating arguments as they are."""
TAKES_WEAK = frozenset(
    (p.exp, p.exp2, p.expm1, p.sqrt, p.sin, p.cos, p.tan, p.sinh, p.cosh, p.tanh, p.arctan)
)
"""Functions that also take Python's floats unconverted: their derivatives never divide by them."""

_PYTHON: dict[str, type] = {"i": int, "f": float, "c": complex}


def to_loop(
    ufunc: np.ufunc,
    values: Sequence[Any],
    dtype: Any = None,
    casting: str = "same_kind",
    signature: Any = None,
) -> list[Any]:
    """Operands in the dtypes of the loop that NumPy takes for these options of a ufunc.

    Args:
        ufunc: NumPy's or SciPy's.
        values: Its operands.
        dtype: Dtype of the results.
        casting: How much a conversion of operands may lose.
        signature: Dtypes of operands and results, or their characters.
    Raises: TypeError: NumPy's, if there is no such loop or the operands do not fit it.
    """
    if dtype is not None:
        if signature is not None:
            raise TypeError("cannot specify both 'signature' and 'dtype'")
        target = checked_dtype(dtype, ufunc.__name__)
        signature = (*(None,) * ufunc.nin, *(target,) * ufunc.nout)
    avals = [aval_of(v) for v in values]
    given = [_PYTHON.get(a.dtype.kind, a.dtype) if a.weak_type else a.dtype for a in avals]
    # The rule has to be given by name alone where no signature is: None is no signature.
    asked: dict[str, Any] = {"casting": casting}
    if signature is not None:
        asked["signature"] = signature
    loop = ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout), **asked)
    # NumPy's loops of half precision, for bools and short integers, are of float32 here.
    if not dtypes.SUPPORTED.keys() >= set(loop):
        return list(values)
    return [to_dtype(v, d) for v, d in zip(values, loop, strict=False)]


def _register(ufunc: np.ufunc, compute: Function, names: Sequence[str] = ()) -> Function:
    """The public function of a ufunc: ``compute`` between conversion and ``dtype``.

    Where JAX's function takes its arguments by name too, so does this one: by ``names``.
    """
    name = ufunc.__name__

    def function(*args: Any, dtype: Any = None, **named: Any) -> Any:
        if named:
            args = signature.bind(*args, **named).args
        if len(args) != ufunc.nin:
            raise TypeError(f"{name} takes {ufunc.nin} arguments, got {len(args)}.")
        values = [as_value(a, name) for a in args]
        if dtype is not None:
            values = to_loop(ufunc, values, dtype)
        return compute(*values)

    function.__name__ = function.__qualname__ = name
    kind = Parameter.POSITIONAL_OR_KEYWORD if names else Parameter.POSITIONAL_ONLY
    names = names or (("x",) if ufunc.nin == 1 else ("x1", "x2"))
    function.__doc__ = _text(name, names)
    own = [Parameter(n, kind) for n in names]
    signature = Signature(own)
    option = Parameter("dtype", Parameter.KEYWORD_ONLY, default=None)
    vars(function)["__signature__"] = Signature([*own, option])
    UFUNCS[ufunc] = function
    return function


def _text(name: str, names: Sequence[str]) -> str:
    """The docstring of a ufunc: a summary, its operands, and an example."""
    summary, example = TEXTS[name]
    operand = "Array, number or traced value."
    operand += " Operands broadcast." if len(names) > 1 else ""
    meanings = dict.fromkeys(names, operand)
    meanings["dtype"] = "Dtype that is computed in; by default as NumPy promotes the operands."
    raises = {"DtypeError": "If an operand is neither of numbers nor of bools, or is float16."}
    if len(names) > 1:
        raises["ValueError"] = "If the operands do not broadcast."
    return docstring(
        summary,
        meanings,
        call_of(f"fg.numpy.{name}", example),
        f"As `numpy.{name}`, with its promotion of dtypes.",
        "The values, in the shape to which the operands broadcast.",
        raises,
    )


def _inexact(ufunc: np.ufunc, primitive: Primitive) -> Function:
    """A function that is evaluated in floating point (or complex)."""

    def compute(*args: Any) -> Any:
        return primitive.bind(*promote_inexact(*args))

    return _register(ufunc, compute)


def _numeric(ufunc: np.ufunc, primitive: Primitive) -> Function:
    """A function that is evaluated in the promoted dtype."""
    return _register(ufunc, lambda *args: primitive.bind(*promote(*args)))


def _widened(*args: Any) -> list[Any]:
    """Promoted values; bools as int8, in which NumPy evaluates what it has no bool loop for."""
    values = promote(*args)
    is_exact = aval_of(values[0]).dtype == dtypes.BOOL
    return [to_dtype(v, dtypes.INT8) for v in values] if is_exact else values


def _comparison(ufunc: np.ufunc, primitive: Primitive) -> Function:
    """A comparison; that of integers is exact, whatever dtypes they have."""

    def compute(x: Any, y: Any) -> Any:
        if dtypes.is_inexact(aval_of(x).dtype) or dtypes.is_inexact(aval_of(y).dtype):
            return primitive.bind(*promote(x, y, is_compared=True))
        dtype = _common_integer(x, y)
        if _is_beyond(y, x, dtype):
            return _constant(bool(ufunc(0, 1 if y > 0 else -1)))(x)
        if _is_beyond(x, y, dtype):
            return _constant(bool(ufunc(1 if x > 0 else -1, 0)))(y)
        if dtype == dtypes.FLOAT64:
            return _compare_signs(ufunc, primitive, x, y)
        return primitive.bind(to_dtype(x, dtype), to_dtype(y, dtype))

    return _register(ufunc, compute)


def _common_integer(x: Any, y: Any) -> np.dtype[Any]:
    """The dtype that integers and bools are compared in; float64 if there is no integer one.

    Python's integers are weak. Weak traced values are not: they may not fit.
    """
    avals = [aval_of(x), aval_of(y)]
    if PROMOTIONS.users:
        noted_dtype((x, y), avals, is_compared=True)
    pairs = zip((x, y), avals, strict=True)
    return result_dtype([a if type(v) is int else a.strong() for v, a in pairs])


def _is_beyond(x: Any, other: Any, dtype: np.dtype[Any]) -> bool:
    """Whether ``x`` is a Python integer outside of the range in which ``other`` is compared.

    Beside a bool it is none: NumPy raises OverflowError then, and so does the conversion here.
    """
    if type(x) is not int or dtype.kind not in "iu" or aval_of(other).dtype == dtypes.BOOL:
        return False
    info = np.iinfo(dtype)
    return not info.min <= x <= info.max


def _compare_signs(ufunc: np.ufunc, primitive: Primitive, x: Any, y: Any) -> Any:
    """int64 with uint64: a negative number decides by its sign, others are compared as uint64."""
    is_first = aval_of(x).dtype.kind == "i"
    signed = x if is_first else y
    of_negative = ufunc(-1, 0) if is_first else ufunc(0, -1)
    is_negative = p.less.bind(strong(signed), p.zero_of(signed))
    order = primitive.bind(to_dtype(x, dtypes.UINT64), to_dtype(y, dtypes.UINT64))
    return p.select.bind(is_negative, of_negative, order)


def _countable(ufunc: np.ufunc, primitive: Primitive) -> Function:
    """A function that is evaluated in the promoted dtype, int8 for bools."""
    return _register(ufunc, lambda *args: primitive.bind(*_widened(*args)))


def _real(x: Any, function: str) -> Any:
    """A value that is not complex."""
    if dtypes.is_complex(aval_of(x).dtype):
        raise DtypeError(f"{function} is not defined for complex numbers, got {aval_of(x)}.")
    return x


def _logical(ufunc: np.ufunc, primitive: Primitive) -> Function:
    """A function of truth values."""
    return _register(ufunc, lambda *args: primitive.bind(*map(truth, args)))


def _on_floats(
    ufunc: np.ufunc, primitive: Primitive, otherwise: Function, names: Sequence[str] = ()
) -> Function:
    """A function that is trivial for exact dtypes."""

    def compute(x: Any) -> Any:
        return primitive.bind(strong(x)) if aval_of(x).dtype.kind in "fc" else otherwise(x)

    return _register(ufunc, compute, names)


def truth(x: Any) -> Any:
    """A bool array: whether elements differ from zero."""
    aval = aval_of(x)
    return x if aval.dtype == dtypes.BOOL else p.not_equal.bind(strong(x), aval.dtype.type(0))


def _same(x: Any) -> Any:
    return strong(x)


def _constant(value: bool) -> Function:
    def fill(x: Any) -> Any:
        return (
            p.not_equal.bind(strong(x), strong(x))
            if not value
            else p.equal.bind(strong(x), strong(x))
        )

    return fill


# Arithmetic.
add = _numeric(np.add, p.add)
subtract = _numeric(np.subtract, p.sub)
multiply = _numeric(np.multiply, p.mul)
divide = true_divide = _register(np.true_divide, lambda x, y: p.div.bind(*promote_quotient(x, y)))
floor_divide = _countable(np.floor_divide, p.floor_divide)
mod = remainder = _countable(np.remainder, p.remainder)
fmod = _countable(np.fmod, p.fmod)
negative = _numeric(np.negative, p.neg)
positive = _register(np.positive, lambda x: _positive(x))
abs = absolute = _register(
    np.absolute, lambda x: x if aval_of(x).dtype.kind in "bu" else p.absolute.bind(x)
)
fabs = _register(np.fabs, lambda x: p.absolute.bind(*promote_inexact(_real(x, "fabs"))))
sign = _register(np.sign, lambda x: p.sign.bind(x))
maximum = _numeric(np.maximum, p.maximum)
minimum = _numeric(np.minimum, p.minimum)
square = _register(np.square, lambda x: _square(x))
reciprocal = _register(np.reciprocal, lambda x: _reciprocal(x))


def _positive(x: Any) -> Any:
    aval = aval_of(x)
    if aval.dtype == dtypes.BOOL:
        raise DtypeError(f"positive is not defined for {aval}. Convert with .astype().")
    return x


def _square(x: Any) -> Any:
    if aval_of(x).dtype.kind in "fc":
        return p.integer_power(strong(x), 2)
    (x,) = _widened(strong(x))
    return p.mul.bind(x, x)


def _reciprocal(x: Any) -> Any:
    (x,) = _widened(strong(x))
    dtype = aval_of(x).dtype
    one = dtype.type(1)
    if dtype.kind == "c":
        return p.complex_reciprocal.bind(x)
    if dtype.kind == "f":
        return p.div.bind(one, x)
    # As NumPy: of 0 it is what an infinity is converted to.
    return p.convert(p.div.bind(dtypes.FLOAT64.type(1), p.convert(x, dtypes.FLOAT64)), dtype)


def _fmax(x: Any, y: Any) -> Any:
    x, y = map(strong, promote(x, y))
    if aval_of(x).dtype.kind not in "fc":
        return p.maximum.bind(x, y)
    return p.select.bind(
        p.isnan.bind(y), x, p.select.bind(p.isnan.bind(x), y, p.maximum.bind(x, y))
    )


def _fmin(x: Any, y: Any) -> Any:
    x, y = map(strong, promote(x, y))
    if aval_of(x).dtype.kind not in "fc":
        return p.minimum.bind(x, y)
    return p.select.bind(
        p.isnan.bind(y), x, p.select.bind(p.isnan.bind(x), y, p.minimum.bind(x, y))
    )


fmax = _register(np.fmax, _fmax, ("x1", "x2"))
fmin = _register(np.fmin, _fmin, ("x1", "x2"))


def _power(x: Any, y: Any) -> Any:
    """Static small integer exponents of floats are exact products."""
    if type(y) is int and not isinstance(x, int) and aval_of(x).dtype.kind in "fc":
        return p.integer_power(x, y)
    x, y = _widened(x, y)
    if aval_of(x).dtype.kind in "iu" and not isinstance(y, Tracer) and np.any(np.less(y, 0)):
        raise ValueError("Integers to negative integer powers are not allowed.")
    return p.power.bind(x, y)


power = _register(np.power, _power)
float_power = _register(np.float_power, lambda x, y: p.power.bind(*promote_to_double(x, y)))

# Elementary functions.
sqrt = _inexact(np.sqrt, p.sqrt)
cbrt = _inexact(np.cbrt, p.cbrt)
exp = _inexact(np.exp, p.exp)
exp2 = _inexact(np.exp2, p.exp2)
expm1 = _inexact(np.expm1, p.expm1)
log = _inexact(np.log, p.log)
log2 = _inexact(np.log2, p.log2)
log10 = _inexact(np.log10, p.log10)
log1p = _inexact(np.log1p, p.log1p)
sin = _inexact(np.sin, p.sin)
cos = _inexact(np.cos, p.cos)
tan = _inexact(np.tan, p.tan)
arcsin = _inexact(np.arcsin, p.arcsin)
arccos = _inexact(np.arccos, p.arccos)
arctan = _inexact(np.arctan, p.arctan)
arctan2 = _inexact(np.arctan2, p.arctan2)
sinh = _inexact(np.sinh, p.sinh)
cosh = _inexact(np.cosh, p.cosh)
tanh = _inexact(np.tanh, p.tanh)
arcsinh = _inexact(np.arcsinh, p.arcsinh)
arccosh = _inexact(np.arccosh, p.arccosh)
arctanh = _inexact(np.arctanh, p.arctanh)
hypot = _inexact(np.hypot, p.hypot)
copysign = _inexact(np.copysign, p.copysign)
nextafter = _inexact(np.nextafter, bits.nextafter)


def _scaled(ufunc: np.ufunc) -> Function:
    def compute(x: Any) -> Any:
        (x,) = promote_inexact(_real(x, "a conversion of angles"))
        one = aval_of(x).dtype.type(1)
        # NumPy's factor, in single precision not the one that is nearest to the quotient.
        return p.mul.bind(x, ufunc(one))

    return _register(ufunc, compute)


deg2rad = radians = _scaled(np.deg2rad)
rad2deg = degrees = _scaled(np.rad2deg)
UFUNCS[np.radians], UFUNCS[np.degrees] = deg2rad, rad2deg


def _logaddexp(x: Any, y: Any) -> Any:
    """High + log1p(exp(low - high)), which neither overflows nor loses digits.

    Which argument is the higher one is a choice, not an operation, so that all derivatives are
    right where they are equal, too.
    """
    x, y = promote_inexact(x, y)
    is_ordered = p.greater_equal.bind(x, y)
    high, low = p.select.bind(is_ordered, x, y), p.select.bind(is_ordered, y, x)
    zero = aval_of(high).dtype.type(0)
    is_infinite = p.bitwise_and.bind(p.isinf.bind(high), p.equal.bind(high, low))
    distance = p.select.bind(is_infinite, zero, p.sub.bind(low, high))
    out = _principal(p.add.bind(high, p.log1p.bind(p.exp.bind(distance))))
    # Of two equal infinities neither decides: the derivative is zero.
    return p.select.bind(is_infinite, p.stop_gradient.bind(high), out)


def _principal(x: Any) -> Any:
    """A complex logarithm with its imaginary part in ``(-pi, pi]``; real ones as they are."""
    dtype = aval_of(x).dtype
    if not dtypes.is_complex(dtype):
        return x
    height = p.imag.bind(x)
    pi, turn = (aval_of(height).dtype.type(v) for v in (np.pi, 2 * np.pi))
    turns = p.ceil.bind(p.div.bind(p.sub.bind(height, pi), turn))
    return p.sub.bind(x, p.mul.bind(p.convert(p.mul.bind(turns, turn), dtype), dtype.type(1j)))


def _logaddexp2(x: Any, y: Any) -> Any:
    x, y = promote_inexact(x, y)
    ln2 = aval_of(x).dtype.type(np.log(2.0))
    return p.div.bind(_logaddexp(p.mul.bind(x, ln2), p.mul.bind(y, ln2)), ln2)


logaddexp = _register(np.logaddexp, _logaddexp)
logaddexp2 = _register(np.logaddexp2, _logaddexp2)


def _heaviside(x: Any, y: Any) -> Any:
    x, y = (_real(v, "heaviside") for v in promote_inexact(x, y))
    one, zero = aval_of(x).dtype.type(1), aval_of(x).dtype.type(0)
    step = p.select.bind(p.less.bind(x, zero), zero, p.select.bind(p.equal.bind(x, zero), y, one))
    return p.select.bind(p.isnan.bind(x), x, step)


heaviside = _register(np.heaviside, _heaviside)

# Comparison, logic, bits.
equal = _comparison(np.equal, p.equal)
not_equal = _comparison(np.not_equal, p.not_equal)
less = _comparison(np.less, p.less)
less_equal = _comparison(np.less_equal, p.less_equal)
greater = _comparison(np.greater, p.greater)
greater_equal = _comparison(np.greater_equal, p.greater_equal)
logical_and = _logical(np.logical_and, p.bitwise_and)
logical_or = _logical(np.logical_or, p.bitwise_or)
logical_xor = _logical(np.logical_xor, p.bitwise_xor)
logical_not = _logical(np.logical_not, p.bitwise_not)
bitwise_and = _numeric(np.bitwise_and, p.bitwise_and)
bitwise_or = _numeric(np.bitwise_or, p.bitwise_or)
bitwise_xor = _numeric(np.bitwise_xor, p.bitwise_xor)
bitwise_not = bitwise_invert = invert = _numeric(np.invert, p.bitwise_not)
left_shift = _register(np.left_shift, lambda x, y: p.left_shift.bind(*map(strong, _widened(x, y))))
right_shift = _register(
    np.right_shift, lambda x, y: p.right_shift.bind(*map(strong, _widened(x, y)))
)

# Rounding and classification.
floor = _on_floats(np.floor, p.floor, _same)
ceil = _on_floats(np.ceil, p.ceil, _same)
trunc = _on_floats(np.trunc, p.trunc, _same, ("x",))
rint = _inexact(np.rint, p.rint)
isnan = _on_floats(np.isnan, p.isnan, _constant(False))
isinf = _on_floats(np.isinf, p.isinf, _constant(False))
isfinite = _on_floats(np.isfinite, p.isfinite, _constant(True))
signbit = _inexact(np.signbit, p.signbit)


def _conjugate(x: Any) -> Any:
    return p.conj.bind(x) if dtypes.is_complex(aval_of(x).dtype) else _widened(x)[0]


conj = conjugate = _register(np.conjugate, _conjugate)


def of_scipy(primitive: Any) -> Function:
    """A ufunc of `scipy.special` on traced arguments."""
    name = primitive.name
    orders = getattr(primitive, "orders", 0)

    def compute(*args: Any) -> Any:
        values = [as_value(a, name) for a in args]
        if orders:
            return primitive.bind(*_promote_orders(primitive, values))
        values = promote_inexact(*values)
        if primitive.kinds == "c":
            values = [to_dtype(v, dtypes.complex_dtype(aval_of(v).dtype)) for v in values]
        return primitive.bind(*values)

    return compute


def _promote_orders(primitive: Any, values: list[Any]) -> list[Any]:
    """The arguments of a function whose first ones are orders: integers, or real numbers."""
    counted = range(primitive.integers)
    is_count = [i in counted and aval_of(v).dtype.kind in "biu" for i, v in enumerate(values)]
    for i, v in enumerate(values):
        if i < primitive.whole and not is_count[i]:
            raise DtypeError(
                f"{primitive.name}: the argument {primitive.arguments[i]} counts and must be an "
                f"integer, got {aval_of(v)}. Convert it with .astype(int)."
            )
        if i < primitive.orders:
            require_real(v, f"the argument {primitive.arguments[i]} of {primitive.name}")
    # A function with loops for integers has none that mix integers with other orders.
    if not all(is_count[i] for i in counted):
        is_count = [i < primitive.whole for i in range(len(values))]
    floating = iter(
        promote_inexact(*(v for v, count in zip(values, is_count, strict=True) if not count))
    )
    out = []
    for i, (v, count) in enumerate(zip(values, is_count, strict=True)):
        x = to_dtype(v, dtypes.INT64) if count else next(floating)
        dtype = aval_of(x).dtype
        if not count and i < primitive.orders:
            x = to_dtype(v, dtypes.real_dtype(dtype))
        elif not count and primitive.kinds == "c":
            x = to_dtype(x, dtypes.complex_dtype(dtype))
        out.append(x)
    return out


def require_real(x: Any, function: str) -> None:
    """Raise if ``x`` is complex."""
    if dtypes.is_complex(aval_of(x).dtype):
        raise DtypeError(f"{function} is not defined for complex arguments, got {aval_of(x)}.")
