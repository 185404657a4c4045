"""The words of generated kernels: how each is typed and which LLVM instructions it becomes.

A word is a name that a kernel may call: an intrinsic (``exp``, ``f32``, ``add``, which is also what
``+`` stands for), whose arity and kinds are those of the table, or access to memory (``load``).
It is asked twice: `Word.sign` gives the signature for argument types, `Word.emit` writes the
instructions. There is one rule of promotion, NumPy's (NEP 50), in which Python literals are weak:
unlike in C or in Numba, ``i32 + i32`` stays ``i32`` and ``f32 * 2.0`` stays ``f32``.

Every word of scalars is one of vectors, too: among vectors of as many elements, a scalar stands for
a vector of itself. Vectors come from memory, by an index of lanes (``lanes``, ``first_lanes``).

Loaded by `native.translate` only, because it needs llvmlite.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from funcgrad.compiler.abi import LANES_SLOT, LOOK_SLOT
from funcgrad.compiler.native import elementary, integers
from funcgrad.compiler.native.apart import loader
from funcgrad.compiler.native.scalars import (
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    POINTER,
    Emitted,
    Written,
    constant_of,
    declared,
)
from funcgrad.compiler.native.threefry import threefry2x32
from funcgrad.compiler.native.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    NONE,
    PARTS,
    POINTERS,
    SCALARS,
    SLOTS,
    UINT32,
    UINT64,
    WEAK_FLOAT,
    Lanes,
    Literal,
    Pointer,
    Signature,
    TypingError,
    Vector,
    Words,
    element_of,
    is_weak,
    lanes,
    signature,
    strong,
    vector,
)
from funcgrad.compiler.native.vecmath.division import integer_quotient
from funcgrad.intrinsics import CASTS, INTRINSICS, Intrinsic

# --------------------------------------------------------------------------------- LLVM's types

_DTYPES = {
    t: np.dtype("bool" if name == "b1" else f"{name[0]}{int(name[1:]) // 8}")
    for name, t in SCALARS.items()
}
_BY_DTYPE = {dtype: t for t, dtype in _DTYPES.items()}

# For every type: kind and LLVM type; of a complex one, those of its parts.
_PARTS: dict[Any, tuple[str, Any]] = {
    t: (
        {"b": "b", "i": "i", "u": "u", "f": "f", "c": "f"}[name[0]],
        I1 if name == "b1"
        else ir.IntType(int(name[1:])) if name[0] in "iu"
        else F32 if name in ("f32", "c64")
        else F64,
    )
    for name, t in SCALARS.items()
}  # fmt: skip


def llvm_type(t: Any) -> Any:
    """The LLVM type of a value of type ``t``."""
    if t in PARTS:
        return ir.LiteralStructType([_PARTS[t][1]] * 2)
    if t in _PARTS:
        return _PARTS[t][1]
    if isinstance(t, Literal):
        return I64
    if t is WEAK_FLOAT:
        return F64
    if isinstance(t, Vector):
        part = ir.VectorType(_PARTS[t.element][1], t.count)
        return ir.LiteralStructType([part] * 2) if t.element in PARTS else part
    return POINTER if isinstance(t, Pointer | Words) else I8  # I8: words and None, never used


def promote(args: Sequence[Any]) -> Any:
    """The common type of scalars, as in NumPy."""
    strongs = {strong(t) for t in args if not is_weak(t)}
    if not strongs <= _PARTS.keys():
        raise TypingError(f"no common scalar type of {', '.join(map(str, args))}")
    if not strongs:
        return FLOAT64 if WEAK_FLOAT in args else INT64
    common = strongs.pop()
    if strongs:
        common = _BY_DTYPE[np.result_type(_DTYPES[common], *(_DTYPES[t] for t in strongs))]
    if WEAK_FLOAT in args and _PARTS[common][0] != "f":
        return FLOAT64
    if common == BOOL and any(is_weak(t) for t in args):
        return INT64
    return common


# --------------------------------------------------------------------------------------- values


class Complex:
    """A complex scalar, or a vector of them, as its two parts."""

    __slots__ = ("im", "re")

    def __init__(self, re: Emitted, im: Emitted) -> None:
        self.re = re
        self.im = im

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Complex) -> Complex:
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def __truediv__(self, other: Complex) -> Complex:
        # Smith's method: divide by the larger part of the divisor, without overflow between.
        a, b = other.re, other.im
        real_is_larger = a.absolute() >= b.absolute()
        large, small = real_is_larger.select(a, b), real_is_larger.select(b, a)
        ratio = small / large
        scale = large + small * ratio
        p, q = self.re, self.im
        re = real_is_larger.select(p + q * ratio, p * ratio + q)
        im = real_is_larger.select(q - p * ratio, q * ratio - p)
        # By zero both parts are divided without regard to its sign, as in NumPy.
        is_zero = (large == 0) & (small == 0)
        scale = is_zero.select(large.absolute(), scale)
        re, im = is_zero.select(p, re) / scale, is_zero.select(q, im) / scale
        return Complex(re, im)

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __eq__(self, other: Any) -> Emitted:  # type: ignore[override]
        return (self.re == other.re) & (self.im == other.im)

    def __ne__(self, other: Any) -> Emitted:  # type: ignore[override]
        return (self.re != other.re) | (self.im != other.im)

    __hash__ = None  # type: ignore[assignment]

    def absolute(self) -> Emitted:
        return elementary.emit("hypot", self.re, self.im)

    @property
    def lanes(self) -> int:
        """Elements of a vector; 0 of a scalar."""
        return self.re.lanes

    def splat(self, lanes: int) -> Complex:
        """A vector of this scalar."""
        return Complex(self.re.splat(lanes), self.im.splat(lanes))

    def half(self, upper: bool) -> Complex:
        """The lower or the upper half of a vector."""
        return Complex(self.re.half(upper), self.im.half(upper))

    def across(self, name: str) -> Complex:
        """All elements of a vector folded into one, by what is one of the parts."""
        return Complex(self.re.across(name), self.im.across(name))


def wrap(builder: ir.IRBuilder, value: Any, t: Any) -> Any:
    """An LLVM value of type ``t`` as an object with operators; pointers stay as they are."""
    t = element_of(t)
    if t in PARTS:
        re, im = builder.extract_value(value, 0), builder.extract_value(value, 1)
        return Complex(Emitted(builder, re, "f"), Emitted(builder, im, "f"))
    return Emitted(builder, value, _PARTS[t][0]) if t in _PARTS else value


def unwrap(builder: ir.IRBuilder, value: Any) -> Any:
    """The inverse of `wrap`."""
    if isinstance(value, Complex):
        empty = ir.Constant(ir.LiteralStructType([value.re.type] * 2), ir.Undefined)
        with_real = builder.insert_value(empty, value.re.value, 0)
        return builder.insert_value(with_real, value.im.value, 1)
    return value.value if isinstance(value, Emitted) else value


def convert(value: Any, t: Any) -> Any:
    """A wrapped scalar or vector converted to type ``t``; a scalar fills a vector."""
    if isinstance(t, Vector):
        value = convert(value, t.element)
        return value if value.lanes else value.splat(t.count)
    if isinstance(value, Complex):
        if t not in PARTS:
            return convert(value.re, t)
        return Complex(convert(value.re, PARTS[t]), convert(value.im, PARTS[t]))
    if t in PARTS:
        part = convert(value, PARTS[t])
        return Complex(part, part.constant(0))
    kind, llvm = _PARTS[t]
    return value.cast(llvm, kind)


def constant(t: Any, number: Any) -> Any:
    """The LLVM constant ``number`` of type ``t``, of a scalar or of a vector."""
    if element_of(t) in PARTS:
        pair = llvm_type(t)
        parts = float(number.real), float(number.imag)
        return ir.Constant(pair, [constant_of(pair.elements[0], part) for part in parts])
    kind = _PARTS[element_of(t)][0]
    return constant_of(llvm_type(t), float(number) if kind == "f" else int(number))


# ---------------------------------------------------------------------------------------- words


class Word:
    """One word: ``rule(arg types) -> signature`` and ``emission(signature, values) -> value``.

    Attributes:
        is_pure: Whether it neither reads nor writes memory, so that it can be computed at any time.
        is_mapped: Whether vectors are a matter of each element, and its rule knows scalars only.
    """

    def __init__(
        self,
        name: str,
        rule: Callable[[Any], Signature],
        emission: Callable[..., Any],
        is_pure: bool = True,
        is_mapped: bool = True,
    ) -> None:
        self.name = name
        self.rule = rule
        self.emission = emission
        self.is_pure = is_pure
        self.is_mapped = is_mapped
        self.signatures: dict[tuple[Any, ...], Signature] = {}

    def sign(self, args: tuple[Any, ...]) -> Signature:
        """The signature for arguments of these types.

        Raises:
            TypingError: It takes no such arguments.
        """
        found = self.signatures.get(args)
        if found is None:
            found = self.signatures[args] = self._signature(args)
        return found

    def _signature(self, args: tuple[Any, ...]) -> Signature:
        counts = {t.count for t in args if isinstance(t, Vector | Lanes)}
        if not counts or not self.is_mapped:
            return self.rule(args)
        expect(len(counts) == 1, "vectors must be of one length", args)
        (count,) = counts
        elements = (INT64 if isinstance(t, Lanes) else element_of(t) for t in args)
        scalars = self.rule(tuple(elements))
        return signature(
            vector(scalars.return_type, count), *(vector(t, count) for t in scalars.args)
        )

    def emit(self, builder: ir.IRBuilder, sig: Signature, args: Sequence[Any]) -> Any:
        values = [wrap(builder, a, t) for a, t in zip(args, sig.args, strict=True)]
        return unwrap(builder, self.emission(builder, sig, values))


def expect(condition: bool, what: str, args: Sequence[Any]) -> None:
    if not condition:
        raise TypingError(f"{what}, got {', '.join(map(str, args))}")


def rule_of(intrinsic: Intrinsic) -> Callable[[Any], Signature]:
    """Arguments of one promoted type of the kinds that the table of intrinsics allows."""

    def rule(args: Any) -> Signature:
        expect(len(args) == intrinsic.arity, f"{intrinsic.arity} arguments are needed", args)
        t = promote(args)
        if intrinsic.kinds in ("f", "fc") and _PARTS[t][0] != "f":
            t = FLOAT64
        kind = "c" if t in PARTS else _PARTS[t][0]
        what = f"the kind of dtype must be one of {intrinsic.kinds!r}"
        expect(kind in intrinsic.kinds, what, args)
        result = {"same": t, "bool": BOOL, "real": PARTS.get(t, t)}[intrinsic.result]
        return signature(result, *[t] * len(args))

    return rule


WORDS: dict[str, Word] = {}


def define(
    name: str, rule: Any, is_pure: bool = True, is_mapped: bool = True
) -> Callable[[Any], Any]:
    """Register the decorated emission as word ``name``."""

    def register(emission: Callable[..., Any]) -> Callable[..., Any]:
        WORDS[name] = Word(name, rule, emission, is_pure, is_mapped)
        return emission

    return register


def _add(a: Any, b: Any) -> Any:
    return a | b if isinstance(a, Emitted) and a.kind == "b" else a + b


def _multiply(a: Any, b: Any) -> Any:
    return a & b if isinstance(a, Emitted) and a.kind == "b" else a * b


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


def _fmod(a: Emitted, b: Emitted) -> Emitted:
    return elementary.emit("fmod", a, b) if a.kind == "f" else _integer_quotient(a, b)[1]


def _left_shift(a: Emitted, n: Emitted) -> Emitted:
    fits = n.builder.icmp_unsigned("<", n.value, constant_of(n.type, n.width))
    inside = a.flag(fits)
    return inside.select(a << inside.select(n, 0), a.constant(0))


def _right_shift(a: Emitted, n: Emitted) -> Emitted:
    fits = n.builder.icmp_unsigned("<", n.value, constant_of(n.type, n.width))
    if a.kind == "i":  # shifted out: 0 or -1, which is what width - 1 gives
        return a >> a.flag(fits).select(n, n.width - 1)
    inside = a.flag(fits)
    return inside.select(a >> inside.select(n, 0), a.constant(0))


def _power(a: Emitted, b: Emitted) -> Emitted:
    return elementary.emit("pow", a, b) if a.kind == "f" else integers.power(a, b)


def _maximum(a: Emitted, b: Emitted) -> Emitted:
    return elementary.emit("maximum", a, b) if a.kind == "f" else (a > b).select(a, b)


def _minimum(a: Emitted, b: Emitted) -> Emitted:
    return elementary.emit("minimum", a, b) if a.kind == "f" else (a < b).select(a, b)


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


def _reassociated_sum(a: Any, b: Any) -> Any:
    """A sum whose order LLVM may change, if it is floating: what lets reductions vectorise."""
    if isinstance(a, Complex):
        return Complex(_reassociated_sum(a.re, b.re), _reassociated_sum(a.im, b.im))
    if a.kind == "f":
        return a.like(a.builder.fadd(a.value, b.value, flags=("reassoc",)))
    return _add(a, b)


def _reassociated_product(a: Any, b: Any) -> Any:
    """A product, likewise."""
    if isinstance(a, Emitted) and a.kind == "f":
        return a.like(a.builder.fmul(a.value, b.value, flags=("reassoc",)))
    return _multiply(a, b)


def _select(condition: Emitted, a: Any, b: Any) -> Any:
    if isinstance(a, Complex):
        return Complex(condition.select(a.re, b.re), condition.select(a.im, b.im))
    return condition.select(a, b)


_EMISSIONS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "subtract": operator.sub,
    "multiply": _multiply,
    "divide": operator.truediv,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _fmod,
    "negative": operator.neg,
    "positive": lambda x: x,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_not": operator.invert,
    "logical_not": operator.invert,
    "left_shift": _left_shift,
    "right_shift": _right_shift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "pow": _power,
    "gcd": integers.gcd,
    "popcount": lambda x: x.intrinsic("ctpop"),
    "maximum": _maximum,
    "minimum": _minimum,
    "radd": _reassociated_sum,
    "rmul": _reassociated_product,
    "select": _select,
    "abs": lambda x: x.absolute(),
    "sign": _sign,
    "real": lambda x: x.re if isinstance(x, Complex) else x,
    "imag": lambda x: x.im if isinstance(x, Complex) else x.constant(0),
    "conj": lambda x: Complex(x.re, -x.im) if isinstance(x, Complex) else x,
    "isnan": _of_parts(Emitted.isnan, operator.or_),
    "isinf": _of_parts(lambda x: x.absolute() == float("inf"), operator.or_),
    "isfinite": _of_parts(lambda x: x.absolute() < float("inf"), operator.and_),
    "signbit": lambda x: x.bits() < 0,
    "threefry2x32": threefry2x32,
}
"""What the table of intrinsics leaves to instructions, of wrapped arguments."""


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """The emission of a function of its wrapped arguments alone."""
    return lambda builder, sig, values: function(*values)


def _libm(name: str) -> Callable[..., Emitted]:
    """A call of libm for floats; integers have one code for few and for many."""

    def emit(first: Emitted, *others: Emitted) -> Emitted:
        return first.call(name, *others) if first.kind == "f" else _EMISSIONS[name](first, *others)

    return emit


# Casts, selection and bit patterns.
def _cast_rule(t: Any) -> Callable[[Any], Signature]:
    def rule(args: Any) -> Signature:
        if t in PARTS and len(args) == 2:
            return signature(t, PARTS[t], PARTS[t])
        expect(len(args) == 1, "a cast has one argument", args)
        # A literal is rounded to the target at once.
        source = t if is_weak(args[0]) else strong(args[0])
        expect(source in _PARTS, "a cast needs a scalar", args)
        return signature(t, source)

    return rule


def _cast(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    return Complex(*values) if len(values) == 2 else convert(values[0], sig.return_type)


def _select_rule(args: Any) -> Signature:
    expect(len(args) == 3, "select takes a condition and two values", args)
    t = promote(args[1:])
    return signature(t, BOOL, t, t)


def _bits_rule(source: Any, target: Any) -> Callable[[Any], Signature]:
    return lambda args: signature(target, source)


def _bitcast(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    kind, llvm = _PARTS[element_of(sig.return_type)]
    return Emitted(builder, builder.bitcast(values[0].value, values[0].of(llvm)), kind)


_RULES = {
    "select": _select_rule,
    "threefry2x32": lambda args: signature(UINT64, *[UINT32] * 4),
}
"""The signatures of intrinsics whose arguments are not of one type."""

for _x in INTRINSICS.values():
    if _x.name in CASTS:
        define(_x.name, _cast_rule(SCALARS[_x.name]))(_cast)
    elif _x.name.startswith("bitcast_"):
        _from, _to = _x.name.split("_")[1:]
        define(_x.name, _bits_rule(SCALARS[_from], SCALARS[_to]))(_bitcast)
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


def _rule_by_type(results: Mapping[Any, Any]) -> Callable[[Any], Signature]:
    """One argument, whose type says that of the result."""

    def rule(args: Any) -> Signature:
        expect(len(args) == 1 and args[0] in results, "one argument of another type", args)
        return signature(results[args[0]], args[0])

    return rule


_ORDERED = {FLOAT32: INT32, FLOAT64: INT64}
_FLOATS = {order: t for t, order in _ORDERED.items()}

for _name, _descends in (("ascending", False), ("descending", True)):
    _emission = partial(_to_order, descends=_descends)
    define(_name, _rule_by_type(_ORDERED))(_of_values(_emission))
    _emission = partial(_from_order, descends=_descends)
    define(f"from_{_name}", _rule_by_type(_FLOATS))(_of_values(_emission))


@define("muladd", lambda args: signature(promote(args), *[promote(args)] * len(args)))
def _muladd(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """``x y + z``, rounded once where the processor has an instruction for that."""
    x, y, z = values
    return x.intrinsic("fmuladd", y, z)


# Memory.
def _address_rule(pointer: Pointer) -> Callable[[Any], Signature]:
    return lambda args: signature(pointer, INT64)


def _address(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    return builder.inttoptr(values[0].value, POINTER)


for _name, _pointer in POINTERS.items():
    define(f"ptr_{_name}", _address_rule(_pointer))(_address)


def memory_type(t: Any) -> Any:
    """The LLVM type of an array element: parts of complex ones, bytes for bools."""
    return I8 if t is BOOL else _PARTS[t][1]


def _offset_rule(args: Any) -> Signature:
    expect(len(args) == 2 and isinstance(args[0], Pointer), "a pointer and a count", args)
    return signature(args[0], args[0], INT64)


@define("offset", _offset_rule)
def _offset(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """The pointer moved by a number of bytes."""
    return builder.gep(values[0], [values[1].value], source_etype=I8)


@define("advance", _offset_rule)
def _advance(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """The pointer moved by a number of elements."""
    t = sig.return_type.element
    elements = values[1] * 2 if t in PARTS else values[1]
    return builder.gep(values[0], [elements.value], source_etype=memory_type(t))


def _scope_of(args: Any) -> Any:
    expect(isinstance(args[-1], Literal), "the scope must be a literal int", args)
    return args[-1]


def _place(pointer: Any, index: Any) -> tuple[Any, Any]:
    """The types of an index and of what is there."""
    if isinstance(index, Lanes):
        return index, vector(pointer.element, index.count)
    return INT64, pointer.element


def _load_rule(args: Any) -> Signature:
    expect(len(args) == 3 and isinstance(args[0], Pointer), "load(p, i, S)", args)
    index, element = _place(args[0], args[1])
    return signature(element, args[0], index, _scope_of(args))


def _store_rule(args: Any) -> Signature:
    expect(len(args) == 4 and isinstance(args[0], Pointer), "store(p, i, v, S)", args)
    index, element = _place(args[0], args[1])
    return signature(NONE, args[0], index, element, _scope_of(args))


def _scope_rule(args: Any) -> Signature:
    expect(len(args) == 1, "scope(S)", args)
    return signature(NONE, _scope_of(args))


@define("scope", _scope_rule, is_pure=False, is_mapped=False)
def _scope(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> None:
    """A scope begins, as it does each time that this is reached."""
    builder.module.begin_scope(builder, sig.args[0].literal_value)


def _look_rule(args: Any) -> Signature:
    expect(args == (SLOTS,), "look(slots)", args)
    return signature(INT64, args[0])


@define("look", _look_rule, is_pure=False, is_mapped=False)
def _look(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """The error code to stop with, or 0: what a long loop asks for now and then.

    The call touches no array, so that what LLVM knows of memory holds across it.
    """
    place = builder.gep(values[0], [I64(LOOK_SLOT)], inbounds=True, source_etype=I64)
    function = builder.load(place, typ=ir.FunctionType(I64, [POINTER]).as_pointer())
    found = builder.call(function, [values[0]])
    for access in (function, found):
        builder.module.note_access(access, sig.args[0].name)
    return Emitted(builder, found, "i")


@define("load", _load_rule, is_pure=False, is_mapped=False)
def _load(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    t, scope = sig.return_type, sig.args[-1].literal_value
    pointer, index = values[0], values[1]
    if isinstance(t, Vector):
        return _load_lanes(builder, pointer, index, t, scope)
    if t in PARTS:
        re, im = (_load_part(builder, pointer, index * 2 + k, t, scope) for k in (0, 1))
        return Complex(re, im)
    return _load_part(builder, pointer, index, t, scope)


def _load_part(builder: ir.IRBuilder, pointer: Any, index: Emitted, t: Any, scope: int) -> Emitted:
    element = memory_type(t)
    address = builder.gep(pointer, [index.value], inbounds=True, source_etype=element)
    return _loaded(builder, builder.load(address, typ=element), t, scope)


def _loaded(builder: ir.IRBuilder, value: Any, t: Any, scope: int) -> Emitted:
    """What was read from memory, where flags are bytes."""
    builder.module.note_access(value, scope)
    if element_of(t) == BOOL:
        return Emitted(builder, value, "u") != 0
    return Emitted(builder, value, _PARTS[element_of(t)][0])


@define("store", _store_rule, is_pure=False, is_mapped=False)
def _store(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> None:
    pointer, index, value, _ = values
    scope = sig.args[-1].literal_value
    if isinstance(sig.args[1], Lanes):
        _store_lanes(builder, pointer, index, value, scope)
    elif isinstance(value, Complex):
        _store_part(builder, pointer, index * 2, value.re, scope)
        _store_part(builder, pointer, index * 2 + 1, value.im, scope)
    else:
        _store_part(builder, pointer, index, value, scope)


def _store_part(
    builder: ir.IRBuilder, pointer: Any, index: Emitted, value: Emitted, scope: int
) -> None:
    value = _stored(value)
    address = builder.gep(pointer, [index.value], inbounds=True, source_etype=value.type)
    builder.module.note_access(builder.store(value.value, address), scope)


def _stored(value: Emitted) -> Emitted:
    """A value as it is in memory, where flags are bytes."""
    return value.cast(I8, "u") if value.kind == "b" else value


# Vectors.
class LaneIndex(NamedTuple):
    """An index of lanes: the first one, the flags of those that are there, and whether all are."""

    first: Any
    mask: Any = None
    is_whole: Any = None


_LOAD = """define internal {vector} @{name}(ptr %p, {mask} %flags, i1 %whole, {vector} %other) \
alwaysinline nounwind {{
  br i1 %whole, label %all, label %some, !prof {usual}
all:
  %every = load {vector}, ptr %p, align {size}
  br label %end
some:
  %found = call {vector} @llvm.masked.load.{suffix}.p0(ptr %p, i32 {size}, {mask} %flags, \
{vector} %other)
  br label %end
end:
  %x = phi {vector} [ %every, %all ], [ %found, %some ]
  ret {vector} %x
}}
"""
_STORE = """define internal void @{name}(ptr %p, {mask} %flags, i1 %whole, {vector} %x) \
alwaysinline nounwind {{
  br i1 %whole, label %all, label %some, !prof {usual}
all:
  store {vector} %x, ptr %p, align {size}
  ret void
some:
  call void @llvm.masked.store.{suffix}.p0({vector} %x, ptr %p, i32 {size}, {mask} %flags)
  ret void
}}
"""


def _some(builder: ir.IRBuilder, verb: str, type: Any) -> ir.Function:
    """The function that loads or stores lanes of which not all may be there.

    Accesses with a mask are slow where they cross a cache line: those of all lanes have none.
    """
    suffix = Emitted(builder, ir.Constant(type, None), _kind_of(type.element)).suffix
    name = f"{verb}.{suffix}"
    found = builder.module.globals.get(name)
    if found is not None:
        return found
    mask, void = ir.VectorType(I1, type.count), ir.VoidType()
    if verb == "load":
        kind = ir.FunctionType(type, [POINTER, I32, mask, type])
    else:
        kind = ir.FunctionType(void, [type, POINTER, I32, mask])
    declared(builder, f"llvm.masked.{verb}.{suffix}.p0", kind)
    text = (_LOAD if verb == "load" else _STORE).format(
        vector=type,
        mask=mask,
        name=name,
        suffix=suffix,
        size=_nbytes(type.element),
        usual=builder.module.usually.get_reference(),
    )
    kind = ir.FunctionType(type if verb == "load" else void, [POINTER, mask, I1, type])
    return Written(builder.module, kind, name, text)


def _nbytes(element: Any) -> int:
    return element.width // 8 if isinstance(element, ir.IntType) else {F32: 4, F64: 8}[element]


def _kind_of(element: Any) -> str:
    return "i" if isinstance(element, ir.IntType) else "f"


def _mixed(builder: ir.IRBuilder, low: Any, high: Any, places: Iterable[int]) -> Any:
    """Elements of two LLVM vectors, counted through both."""
    numbers = list(places)
    mask = ir.Constant(ir.VectorType(I32, len(numbers)), numbers)
    return builder.shuffle_vector(low, high, mask)


def _in_turn(n: int) -> Iterator[int]:
    """The elements of two vectors in turn, as the parts of complex numbers lie in memory."""
    return (k for i in range(n) for k in (i, n + i))


def _of_pairs(builder: ir.IRBuilder, index: LaneIndex, count: int) -> LaneIndex:
    """The index of the parts of complex lanes."""
    first = builder.shl(index.first, I64(1))
    if index.mask is None:
        return LaneIndex(first)
    doubled = (i for i in range(count) for _ in "ri")
    return LaneIndex(first, _mixed(builder, index.mask, index.mask, doubled), index.is_whole)


def _paired(builder: ir.IRBuilder, value: Complex) -> Emitted:
    """A vector of complex numbers as it is in memory."""
    parts = value.re.value, value.im.value
    return value.re.like(_mixed(builder, *parts, _in_turn(value.lanes)))


def _unpaired(builder: ir.IRBuilder, value: Emitted) -> Complex:
    """The inverse of `_paired`."""
    n = value.lanes
    even, odd = (_mixed(builder, value.value, value.value, range(k, n, 2)) for k in (0, 1))
    return Complex(value.like(even), value.like(odd))


def _load_lanes(
    builder: ir.IRBuilder, pointer: Any, index: LaneIndex, t: Any, scope: int
) -> Emitted | Complex:
    if t.element in PARTS:
        parts, pairs = vector(PARTS[t.element], 2 * t.count), _of_pairs(builder, index, t.count)
        found = _load_lanes(builder, pointer, pairs, parts, scope)
        assert isinstance(found, Emitted)
        return _unpaired(builder, found)
    element = memory_type(t.element)
    type = ir.VectorType(element, t.count)
    address = builder.gep(pointer, [index.first], inbounds=True, source_etype=element)
    if index.mask is None:
        value = builder.load(address, typ=type, align=_nbytes(element))
    else:
        operands = [address, index.mask, index.is_whole, constant_of(type, 0)]
        value = builder.call(_some(builder, "load", type), operands)
    return _loaded(builder, value, t, scope)


def _store_lanes(
    builder: ir.IRBuilder, pointer: Any, index: LaneIndex, value: Emitted | Complex, scope: int
) -> None:
    if isinstance(value, Complex):
        index, value = _of_pairs(builder, index, value.lanes), _paired(builder, value)
    value = _stored(value)
    address = builder.gep(pointer, [index.first], inbounds=True, source_etype=value.element)
    if index.mask is None:
        stored = builder.store(value.value, address, align=_nbytes(value.element))
    else:
        operands = [address, index.mask, index.is_whole, value.value]
        stored = builder.call(_some(builder, "store", value.type), operands)
    builder.module.note_access(stored, scope)


def _literal(t: Any, args: Any) -> int:
    expect(isinstance(t, Literal), "the number of lanes must be a literal int", args)
    return int(t.literal_value)


def _lanes_rule(args: Any) -> Signature:
    expect(len(args) == 2, "lanes(first, count)", args)
    return signature(lanes(_literal(args[1], args), False), INT64, args[1])


@define("lanes", _lanes_rule, is_mapped=False)
def _lanes(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """As many neighbours."""
    return LaneIndex(values[0].value)


def _first_lanes_rule(args: Any) -> Signature:
    expect(len(args) == 3, "first_lanes(first, end, count)", args)
    t = lanes(_literal(args[2], args), True)
    return signature(t, INT64, INT64, args[2])


@define("first_lanes", _first_lanes_rule, is_mapped=False)
def _first_lanes(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """At most as many neighbours, before an end."""
    first, end, _ = values
    t = sig.return_type
    left = end - first
    is_whole = left >= t.count
    left = is_whole.select(t.count, left).cast(I32, "i")
    mask = ir.VectorType(I1, t.count)
    name = f"llvm.get.active.lane.mask.v{t.count}i1.i32"
    function = declared(builder, name, ir.FunctionType(mask, [I32, I32]))
    flags = builder.call(function, [I32(0), left.value])
    return LaneIndex(first.value, flags, is_whole.value)


def _some_lanes(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """At most as many neighbours, before an end, and a mask in any case."""
    return _first_lanes(builder, sig, values)._replace(is_whole=I1(0))


define("some_lanes", _first_lanes_rule, is_mapped=False)(_some_lanes)


def lane_numbers(builder: ir.IRBuilder, index: Any, t: Any) -> Any:
    """The index of every lane."""
    type = ir.VectorType(I64, t.count)
    name = f"llvm.stepvector.v{t.count}i64"
    steps = builder.call(declared(builder, name, ir.FunctionType(type, [])), [])
    first = Emitted(builder, index.first, "i").splat(t.count)
    return builder.add(first.value, steps)


def _load_where_rule(args: Any) -> Signature:
    expect(len(args) == 5, "load_where(p, i, flags, other, S)", args)
    expect(isinstance(args[0], Pointer) and isinstance(args[1], Lanes), "lanes", args)
    index, element = _place(args[0], args[1])
    flags = vector(BOOL, index.count)
    return signature(element, args[0], index, flags, element, _scope_of(args))


@define("load_where", _load_where_rule, is_pure=False, is_mapped=False)
def _load_where(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """Neighbours where flags are set, and another value elsewhere, where nothing is read."""
    pointer, index, flags, other, _ = values
    t, scope = sig.return_type, sig.args[-1].literal_value
    flags = flags.value if index.mask is None else builder.and_(flags.value, index.mask)
    bits = builder.bitcast(flags, ir.IntType(t.count))
    index = LaneIndex(index.first, flags, builder.icmp_signed("==", bits, bits.type(-1)))
    if isinstance(other, Complex):
        index, other = _of_pairs(builder, index, t.count), _paired(builder, other)
    other = _stored(other)
    address = builder.gep(pointer, [index.first], inbounds=True, source_etype=other.element)
    load = _some(builder, "load", other.type)
    value = builder.call(load, [address, index.mask, index.is_whole, other.value])
    found = _loaded(builder, value, PARTS.get(t.element, t.element), scope)
    return _unpaired(builder, found) if t.element in PARTS else found


def _load_apart_rule(args: Any) -> Signature:
    expect(len(args) == 4, "load_apart(p, lanes, step, S)", args)
    expect(isinstance(args[0], Pointer) and isinstance(args[1], Lanes), "lanes", args)
    expect(args[0].element not in PARTS, "real numbers, integers or flags", args)
    step = _literal(args[2], args)
    expect(step not in (0, 1), "neighbours that lie apart", args)
    index, element = _place(args[0], args[1])
    return signature(element, args[0], index, args[2], _scope_of(args))


@define("load_apart", _load_apart_rule, is_pure=False, is_mapped=False)
def _load_apart(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """Elements a few steps apart: all in between is loaded, and what is meant taken out of it."""
    pointer, index = values[:2]
    t, step, scope = sig.return_type, *(x.literal_value for x in sig.args[2:])
    element = memory_type(t.element)
    type = ir.VectorType(element, t.count)
    distance = builder.mul(index.first, I64(step))
    address = builder.gep(pointer, [distance], inbounds=True, source_etype=element)
    suffix = Emitted(builder, ir.Constant(element, None), _kind_of(element)).suffix
    function = loader(builder.module, type, step, suffix)
    flags = (constant_of(function.args[1].type, 1), ir.Constant(I1, 1))
    flags = flags if index.mask is None else (index.mask, index.is_whole)
    return _loaded(builder, builder.call(function, [address, *flags]), t, scope)


def _load_each_rule(args: Any) -> Signature:
    expect(len(args) == 3 and isinstance(args[0], Pointer), "load_each(p, bytes, S)", args)
    expect(isinstance(args[1], Vector) and args[0].element not in PARTS, "a vector", args)
    count = args[1].count
    element = vector(args[0].element, count)
    return signature(element, args[0], vector(INT64, count), _scope_of(args))


@define("load_each", _load_each_rule, is_pure=False, is_mapped=False)
def _load_each(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """An element for each lane, so many bytes from the pointer."""
    pointer, nbytes, _ = values
    t, scope = sig.return_type, sig.args[-1].literal_value
    element = memory_type(t.element)
    found = ir.Constant(ir.VectorType(element, t.count), ir.Undefined)
    for lane in map(I32, range(t.count)):
        place = builder.gep(pointer, [builder.extract_element(nbytes.value, lane)], source_etype=I8)
        load = builder.load(place, typ=element, align=_nbytes(element))
        builder.module.note_access(load, scope)
        found = builder.insert_element(found, load, lane)
    value = Emitted(builder, found, _PARTS[t.element][0] if t.element is not BOOL else "u")
    return value != 0 if t.element is BOOL else value


def _present_rule(args: Any) -> Signature:
    expect(len(args) == 3 and isinstance(args[0], Lanes), "present(lanes, value, other)", args)
    t = vector(promote([element_of(t) for t in args[1:]]), args[0].count)
    return signature(t, args[0], t, t)


@define("present", _present_rule, is_mapped=False)
def _present(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """A value in the lanes that are there, another one elsewhere."""
    index, value, other = values
    if not sig.args[0].is_partial:
        return value
    return _select(Emitted(builder, index.mask, "b"), value, other)


def _splat_rule(args: Any) -> Signature:
    expect(len(args) == 2, "splat(value, count)", args)
    t = strong(args[0])
    return signature(vector(t, _literal(args[1], args)), t, args[1])


@define("splat", _splat_rule, is_mapped=False)
def _splat(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """A vector of one value."""
    return values[0].splat(sig.return_type.count)


def _half_rule(args: Any) -> Signature:
    expect(len(args) == 1 and isinstance(args[0], Vector), "half of a vector", args)
    (t,) = args
    return signature(vector(t.element, t.count // 2), t)


define("low", _half_rule, is_mapped=False)(lambda builder, sig, values: values[0].half(False))
define("high", _half_rule, is_mapped=False)(lambda builder, sig, values: values[0].half(True))


def _across_rule(args: Any) -> Signature:
    expect(len(args) == 1 and isinstance(args[0], Vector), "a vector", args)
    return signature(args[0].element, args[0])


def _across(reduction: str) -> Callable[..., Any]:
    return lambda builder, sig, values: values[0].across(reduction)


for _intrinsic in INTRINSICS.values():
    if _intrinsic.across:
        define(f"across_{_intrinsic.name}", _across_rule, is_mapped=False)(
            _across(_intrinsic.across)
        )


def _turn_rule(args: Any) -> Signature:
    expect(len(args) == 6 and isinstance(args[0], Pointer), "turn(q, p, step, count, S, T)", args)
    literals = args[3], args[4], _scope_of(args)
    _literal(args[3], args)
    return signature(NONE, args[0], args[0], INT64, *literals)


@define("turn", _turn_rule, is_pure=False, is_mapped=False)
def _turn(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> None:
    """Transpose a square tile: rows a number of bytes apart, into memory without gaps.

    In each of log2(count) stages rows exchange every other stretch of theirs (Eklundh, 1972).
    """
    target, source, step, *_ = values
    count, read, written = (t.literal_value for t in sig.args[3:])
    element = memory_type(sig.args[0].element)
    type = ir.VectorType(element, count)
    rows = []
    for i in range(count):
        place = builder.gep(source, [(step * i).value], source_etype=I8)
        rows.append(builder.load(place, typ=type, align=_nbytes(element)))
        builder.module.note_access(rows[-1], read)
    stretch = 1
    while stretch < count:
        masks = _stretches(count, stretch)
        for i in (i for i in range(count) if not i & stretch):
            pair = rows[i], rows[i + stretch]
            rows[i], rows[i + stretch] = (_mixed(builder, *pair, mask) for mask in masks)
        stretch *= 2
    for i, row in enumerate(rows):
        place = builder.gep(target, [I64(i * count)], inbounds=True, source_etype=element)
        stored = builder.store(row, place, align=_nbytes(element))
        builder.module.note_access(stored, written)


def _trade_rule(args: Any) -> Signature:
    expect(len(args) == 3 and isinstance(args[0], Vector), "two vectors and a stretch", args)
    _literal(args[2], args)
    return signature(args[0], args[0], args[0], args[2])


def _trade(is_high: bool) -> Callable[..., Any]:
    """Two rows of a tile that is transposed, after they have exchanged stretches of theirs.

    The low one gets every other stretch of the high one in place of its own next ones.
    """

    def emission(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
        low, high, _ = values
        masks = _stretches(sig.return_type.count, sig.args[2].literal_value)
        return low.like(_mixed(builder, low.value, high.value, masks[is_high]))

    return emission


def _stretches(count: int, stretch: int) -> tuple[list[int], list[int]]:
    """The elements of both rows after the exchange, counted through both of them before."""
    lanes = range(count)
    low = [i if not i & stretch else count + i - stretch for i in lanes]
    return low, [i + stretch if not i & stretch else count + i for i in lanes]


define("trade_low", _trade_rule, is_mapped=False)(_trade(False))
define("trade_high", _trade_rule, is_mapped=False)(_trade(True))


def _prefetch_rule(args: Any) -> Signature:
    expect(len(args) == 2 and isinstance(args[0], Pointer), "prefetch(p, is_written)", args)
    _literal(args[1], args)
    return signature(NONE, *args)


@define("prefetch", _prefetch_rule, is_pure=False, is_mapped=False)
def _prefetch(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> None:
    """Let the line of memory that has an address come into the nearest cache."""
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I32, I32, I32])
    hints = [I32(x) for x in (sig.args[1].literal_value, 3, 1)]
    builder.call(declared(builder, "llvm.prefetch.p0", kind), [values[0], *hints])


# Scratch memory of threads, whose lanes the bits of a slot stand for.
@define("claim", _look_rule, is_pure=False, is_mapped=False)
def _claim(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """Take a lane that is free; there are as many as threads."""
    place = builder.gep(values[0], [I64(LANES_SLOT)], inbounds=True, source_etype=I64)
    count = declared(builder, "llvm.cttz.i64", ir.FunctionType(I64, [I64, I1]))
    look, end = builder.append_basic_block("look"), builder.append_basic_block("claimed")
    builder.branch(look)
    builder.position_at_end(look)
    taken = builder.load_atomic(place, "monotonic", 8, typ=I64)
    lane = builder.call(count, [builder.not_(taken), I1(0)])
    claimed = builder.or_(taken, builder.shl(I64(1), lane))
    pair = builder.cmpxchg(place, taken, claimed, "acquire", "monotonic")
    builder.cbranch(builder.extract_value(pair, 1), end, look)
    builder.position_at_end(end)
    return Emitted(builder, lane, "i")


@define("release", lambda args: signature(NONE, args[0], INT64), is_pure=False, is_mapped=False)
def _release(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> None:
    """Give a lane back."""
    place = builder.gep(values[0], [I64(LANES_SLOT)], inbounds=True, source_etype=I64)
    others = builder.not_(builder.shl(I64(1), values[1].value))
    builder.atomic_rmw("and", place, others, "release")


# The arguments `slots` and `args`.
def _word_rule(args: Any) -> Signature:
    expect(isinstance(args[0], Words), "only slots and args have elements", args)
    return signature(INT64, args[0], INT64)


@define("read_word", _word_rule, is_pure=False)
def _read_word(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    address = builder.gep(values[0], [values[1].value], inbounds=True, source_etype=I64)
    value = builder.load(address, typ=I64)
    if sig.args[0].constant:
        value.set_metadata("invariant.load", builder.module.empty_metadata)
    builder.module.note_access(value, sig.args[0].name)
    return Emitted(builder, value, "i")


def _write_rule(args: Any) -> Signature:
    expect(args[0] is SLOTS, "only slots can be written", args)
    return signature(NONE, args[0], INT64, INT64)


@define("write_word", _write_rule, is_pure=False)
def _write_word(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> None:
    address = builder.gep(values[0], [values[1].value], inbounds=True, source_etype=I64)
    builder.module.note_access(builder.store(values[2].value, address), sig.args[0].name)


# Loops: `blocks` writes this word for the step of a `range`.
@define("step_index", lambda args: signature(INT64, INT64, INT64))
def _step_index(builder: ir.IRBuilder, sig: Signature, values: list[Any]) -> Any:
    """Sum that does not overflow, for the index is below the end of a range."""
    return values[0].like(builder.add(values[0].value, values[1].value, flags=("nsw",)))
