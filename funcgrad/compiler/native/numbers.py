"""Words of numbers: the intrinsics, conversions and bit patterns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from funcgrad.compiler.native import elementary, integers, types
from funcgrad.compiler.native.complexes import KINDS, Complex, convert, llvm_type
from funcgrad.compiler.native.llvm import integer, vector_of
from funcgrad.compiler.native.llvm_backend import has_fused_products
from funcgrad.compiler.native.processor import is_x86
from funcgrad.compiler.native.scalars import Builder, Emitted
from funcgrad.compiler.native.threefry import threefry2x32
from funcgrad.compiler.native.vecmath.division import Divisor, divisor, integer_quotient, quotient
from funcgrad.compiler.native.words import define, expect, promote
from funcgrad.intrinsics import CASTS, INTRINSICS, Intrinsic

_Operator = Callable[[Any, Any], Any]


def rule_of(intrinsic: Intrinsic) -> Callable[[Any], types.Signature]:
    """Arguments of one promoted type of the kinds that the table of intrinsics allows."""

    def rule(args: Any) -> types.Signature:
        expect(len(args) == intrinsic.arity, f"{intrinsic.arity} arguments are needed", args)
        t = promote(args)
        if intrinsic.kinds in ("f", "fc") and KINDS[t] != "f":
            t = types.FLOAT64
        kind = "c" if t in types.PARTS else KINDS[t]
        what = f"the kind of dtype must be one of {intrinsic.kinds!r}"
        expect(kind in intrinsic.kinds, what, args)
        result = {"same": t, "bool": types.BOOL, "real": types.PARTS.get(t, t)}[intrinsic.result]
        return types.signature(result, *[t] * len(args))

    return rule


def _add(a: Any, b: Any) -> Any:
    return a | b if isinstance(a, Emitted) and a.kind == "b" else a + b


def _multiply(a: Any, b: Any) -> Any:
    return a & b if isinstance(a, Emitted) and a.kind == "b" else a * b


def _divide(a: Any, b: Any) -> Any:
    number = None if isinstance(b, Complex) else a.builder.numbers.get(b.text)
    if number is None or not has_fused_products():
        return a / b
    known = a.builder.once(("divisor", number.text), number, partial(divisor, number))
    return quotient(a, Divisor(*(part.splat(a.lanes) for part in known)))


def _integer_quotient(a: Emitted, b: Emitted) -> tuple[Emitted, Emitted, Emitted]:
    """Truncated quotient and remainder, and whether they are defined (else both are 0)."""
    fails = b == 0
    if a.kind == "i":
        # The most negative number over -1 traps in hardware; -x wraps as NumPy's result does.
        minus = b == -1
        safe = (fails | minus).select(1, b)
        quotient = integer_quotient(a, safe)
        quotient = minus.select(-a, quotient)
        remainder = (fails | minus).select(0, a - quotient * safe)
    else:
        safe = fails.select(1, b)
        quotient = integer_quotient(a, safe)
        remainder = a - quotient * safe
    return fails.select(0, quotient), remainder, fails


def _floor_divide(a: Emitted, b: Emitted) -> Emitted:
    if a.kind == "f":
        return _float_divmod(a, b)[0]
    quotient, remainder, fails = _integer_quotient(a, b)
    if a.kind == "u":
        return quotient
    below = (remainder != 0) & ((remainder ^ b) < 0) & ~fails
    return below.select(quotient - 1, quotient)


def _remainder(a: Emitted, b: Emitted) -> Emitted:
    if a.kind == "f":
        return _float_divmod(a, b)[1]
    _, remainder, fails = _integer_quotient(a, b)
    if a.kind == "i":
        remainder = ((remainder != 0) & ((remainder ^ b) < 0)).select(remainder + b, remainder)
    return fails.select(0, remainder)


def _float_divmod(a: Emitted, b: Emitted) -> tuple[Emitted, Emitted]:
    """Floor of the quotient, and the remainder with the divisor's sign, exactly as in NumPy."""
    zero = a.constant(0)
    mod = elementary.emit("fmod", a, b)
    div = (a - mod) / b
    wrong_side = (mod != 0) & ((b < 0) ^ (mod < 0))
    shifted = wrong_side.select(div - 1, div)
    floored = elementary.emit("floor", shifted)
    floored = (shifted - floored > 0.5).select(floored + 1, floored)
    floored = (shifted == 0).select(zero.copysign(a / b), floored)
    remainder = wrong_side.select(mod + b, (mod == 0).select(zero.copysign(b), mod))
    by_zero = b == 0
    return by_zero.select(a / b, floored), by_zero.select(mod, remainder)


def _by_kind(name: str, of_integers: _Operator) -> _Operator:
    """An elementary function of floats, and what it is of integers."""
    return lambda a, b: elementary.emit(name, a, b) if a.kind == "f" else of_integers(a, b)


def _left_shift(a: Emitted, n: Emitted) -> Emitted:
    inside = n.compare("<", n.width, "u")
    return inside.select(a << inside.select(n, 0), a.constant(0))


def _right_shift(a: Emitted, n: Emitted) -> Emitted:
    inside = n.compare("<", n.width, "u")
    if a.kind == "i":  # shifted out: 0 or -1, which is what width - 1 gives
        return a >> inside.select(n, n.width - 1)
    return inside.select(a >> inside.select(n, 0), a.constant(0))


def _extreme(name: str, compare: _Operator, combine: _Operator) -> _Operator:
    """A maximum or minimum: NaN if there is one, and of zeros the one with the fitting sign.

    The sign is that of both zeros' bits combined. LLVM sorts numbers by their signs before it
    compares them, where a processor has no instruction for it: that takes more than twice as long.
    Of vectors it is as good.
    """

    def emit(a: Emitted, b: Emitted) -> Emitted:
        if a.kind == "f" and (a.lanes or not is_x86()):
            return elementary.emit(name, a, b)
        either = compare(a, b).select(a, b)
        if a.kind != "f":
            return either
        extreme = combine(either.bits(), compare(b, a).select(b, a).bits()).as_float()
        return a.isunordered(b).select(a + b, extreme)

    return emit


def _sign(x: Any) -> Any:
    if isinstance(x, Complex):
        size = x.absolute()
        is_zero = size == 0
        safe = is_zero.select(1, size)
        return Complex(x.re / safe, x.im / safe)
    if x.kind == "u":
        return (x != 0).select(x.constant(1), x.constant(0))
    one = (x < 0).select(x.constant(-1), x.constant(1))
    if x.kind == "i":
        return (x == 0).select(0, one)
    return x.isnan().select(x, (x == 0).select(0, one))


def _of_parts(test: Callable[[Emitted], Any], join: Callable[..., Any]) -> Callable[[Any], Any]:
    """A test of numbers, of which both parts count where they are complex."""
    return lambda x: join(test(x.re), test(x.im)) if isinstance(x, Complex) else test(x)


def _reassociated(instruction: str, usual: _Operator) -> _Operator:
    """An operation whose order LLVM may change, if it is floating: so reductions vectorise."""

    def fold(a: Any, b: Any) -> Any:
        if isinstance(a, Complex) and instruction == "fadd":
            return Complex(fold(a.re, b.re), fold(a.im, b.im))
        is_float = isinstance(a, Emitted) and a.kind == "f"
        return a.folded(instruction, b) if is_float else usual(a, b)

    return fold


def select(condition: Emitted, a: Any, b: Any, is_unpredictable: bool = False) -> Any:
    if isinstance(a, Complex):
        parts = (a.re, b.re), (a.im, b.im)
        return Complex(*(condition.select(*pair, is_unpredictable) for pair in parts))
    return condition.select(a, b, is_unpredictable)


_EMISSIONS: dict[str, Callable[..., Any]] = {
    "add": _add, "subtract": operator.sub, "multiply": _multiply, "divide": _divide,
    "floor_divide": _floor_divide, "remainder": _remainder,
    "fmod": _by_kind("fmod", lambda a, b: _integer_quotient(a, b)[1]),
    "negative": operator.neg, "positive": lambda x: x,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "bitwise_not": operator.invert, "logical_not": operator.invert,
    "left_shift": _left_shift, "right_shift": _right_shift,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "pow": _by_kind("pow", integers.power), "gcd": integers.gcd,
    "popcount": lambda x: x.intrinsic("ctpop"),
    "maximum": _extreme("maximum", operator.gt, operator.and_),
    "minimum": _extreme("minimum", operator.lt, operator.or_),
    "radd": _reassociated("fadd", _add), "rmul": _reassociated("fmul", _multiply),
    "select": select,
    "select_unpredictable": partial(select, is_unpredictable=True),
    "abs": lambda x: x.absolute(),
    "sign": _sign,
    "real": lambda x: x.re if isinstance(x, Complex) else x,
    "imag": lambda x: x.im if isinstance(x, Complex) else x.constant(0),
    "conj": lambda x: Complex(x.re, -x.im) if isinstance(x, Complex) else x,
    "isnan": _of_parts(operator.methodcaller("isnan"), operator.or_),
    "isinf": _of_parts(lambda x: x.absolute() == float("inf"), operator.or_),
    "isfinite": _of_parts(lambda x: x.absolute() < float("inf"), operator.and_),
    "signbit": lambda x: x.bits() < 0,
    "threefry2x32": threefry2x32,
}  # fmt: skip
"""Emission of intrinsics by instructions, of wrapped arguments."""


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """The emission of a function of its wrapped arguments alone."""
    return lambda builder, sig, values: function(*values)


def _libm(name: str) -> Callable[..., Emitted]:
    """A call of libm for floats; integers have one code for few and for many."""

    def emit(first: Emitted, *others: Emitted) -> Emitted:
        return first.call(name, *others) if first.kind == "f" else _EMISSIONS[name](first, *others)

    return emit


# Casts, selection and bit patterns.
def _cast_rule(t: Any) -> Callable[[Any], types.Signature]:
    def rule(args: Any) -> types.Signature:
        if t in types.PARTS and len(args) == 2:
            return types.signature(t, types.PARTS[t], types.PARTS[t])
        expect(len(args) == 1, "a cast has one argument", args)
        # A literal is rounded to the target at once.
        source = t if types.is_weak(args[0]) else types.strong(args[0])
        expect(source in KINDS, "a cast needs a scalar", args)
        return types.signature(t, source)

    return rule


def _cast(builder: Builder, sig: types.Signature, values: list[Any]) -> Any:
    return Complex(*values) if len(values) == 2 else convert(values[0], sig.return_type)


def _select_rule(args: Any) -> types.Signature:
    expect(len(args) == 3, "select takes a condition and two values", args)
    is_place = isinstance(args[1], types.Pointer) and args[1] == args[2]
    t = args[1] if is_place else promote(args[1:])
    return types.signature(t, types.BOOL, t, t)


def _bits_rule(source: Any, target: Any) -> Callable[[Any], types.Signature]:
    return lambda args: types.signature(target, source)


def _bitcast(builder: Builder, sig: types.Signature, values: list[Any]) -> Any:
    (value,), t = values, sig.return_type
    return value.converted("bitcast", llvm_type(t).element, KINDS[types.element_of(t)])


_RULES = {
    **dict.fromkeys(("select", "select_unpredictable"), _select_rule),
    "threefry2x32": lambda args: types.signature(types.UINT64, *[types.UINT32] * 4),
}
"""The signatures of intrinsics whose arguments are not of one type."""

for _x in INTRINSICS.values():
    if _x.name in CASTS:
        define(_x.name, _cast_rule(types.SCALARS[_x.name]))(_cast)
    elif _x.name.startswith("bitcast_"):
        _from, _to = _x.name.split("_")[1:]
        define(_x.name, _bits_rule(types.SCALARS[_from], types.SCALARS[_to]))(_bitcast)
    else:
        _emission = _EMISSIONS.get(_x.name) or partial(elementary.emit, _x.name)
        define(_x.name, _RULES.get(_x.name) or rule_of(_x))(_of_values(_emission))
    if _x.libm != "never":
        # Functions that have a formula, but by a call: for code that does not vectorise.
        define(f"libm_{_x.name}", rule_of(_x))(_of_values(_libm(_x.name)))


# Floats as integers that are ordered alike: what extremes are folded by.
def _to_order(x: Emitted, descends: bool) -> Emitted:
    """An integer that is the greater, the greater a float is, and the greatest for NaN of any sign.

    The bits of a negative number, inverted but for the sign, grow with it, and -0.0 comes before
    0.0. NaN lie beyond the infinities on both sides: counted from the lower one, those below it
    wrap around and are above.
    """
    bits = x.bits()
    key = bits ^ (bits >> (bits.width - 1) & _magnitude(bits))
    return (~key if descends else key) - _beyond_infinity(bits)


def _from_order(order: Emitted, descends: bool) -> Emitted:
    """The inverse of `_to_order`."""
    key = order + _beyond_infinity(order)
    key = ~key if descends else key
    return (key ^ (key >> (key.width - 1) & _magnitude(key))).as_float()


def _magnitude(bits: Emitted) -> int:
    return (1 << (bits.width - 1)) - 1


def _beyond_infinity(bits: Emitted) -> int:
    """How many bit patterns of NaN there are of either sign."""
    return (1 << (23 if bits.width == 32 else 52)) - 1


def _rule_by_type(results: Mapping[Any, Any]) -> Callable[[Any], types.Signature]:
    """One argument, whose type says that of the result."""

    def rule(args: Any) -> types.Signature:
        expect(len(args) == 1 and args[0] in results, "one argument of another type", args)
        return types.signature(results[args[0]], args[0])

    return rule


_ORDERED = {types.FLOAT32: types.INT32, types.FLOAT64: types.INT64}
_FLOATS = {order: t for t, order in _ORDERED.items()}

for _name, _descends in (("ascending", False), ("descending", True)):
    _emission = partial(_to_order, descends=_descends)
    define(_name, _rule_by_type(_ORDERED))(_of_values(_emission))
    _emission = partial(_from_order, descends=_descends)
    define(f"from_{_name}", _rule_by_type(_FLOATS))(_of_values(_emission))


@define("muladd", lambda args: types.signature(promote(args), *[promote(args)] * len(args)))
def _muladd(builder: Builder, sig: types.Signature, values: list[Any]) -> Any:
    """``x y + z``, rounded once where the processor has an instruction for that."""
    x, y, z = values
    return x.intrinsic("fmuladd", y, z) if x.kind == "f" else x * y + z


def _pairs_rule(args: Any) -> types.Signature:
    expect(list(args) == 3 * [types.INT32], "three integers of 32 bits", args)
    return types.signature(types.INT32, *args)


@define("muladd_pairs", _pairs_rule)
def _muladd_pairs(builder: Builder, sig: types.Signature, values: list[Any]) -> Any:
    """The products of both halves of integers, and a third one: x86 has an instruction for it.

    LLVM sees it where products of neighbours in a vector twice as long are added.
    """
    is_one = not values[2].lanes
    x, y, total = (v.splat(1) for v in values) if is_one else values
    count = 2 * total.lanes
    halves = vector_of(integer(total.width // 2), count)
    factors = [
        builder.let(f"bitcast {v} to {halves}", halves, "i").cast(total.element, "i")
        for v in (x, y)
    ]
    product = factors[0] * factors[1]
    low, high = (product.mixed(None, range(k, count, 2)) for k in range(2))
    found = total + (low + high)
    return found.lane(0) if is_one else found
