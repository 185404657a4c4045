"""Scalar values while LLVM instructions are written for them.

`Emitted` wraps one LLVM value and has Python's operators, so that the formulas of `vecmath` and the
words of `vocabulary` read like mathematics: every operator appends one instruction. Python numbers
become constants of the other operand's type. No instruction carries fast-math flags: NaN,
infinities and signed zeros mean what NumPy means by them, and products are contracted only by an
explicit `fma`. This file knows LLVM only, not Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()


class Emitted:
    """One LLVM scalar: ``kind`` is ``"f"``, ``"i"``, ``"u"`` or ``"b"``."""

    __slots__ = ("builder", "kind", "value")

    def __init__(self, builder: ir.IRBuilder, value: Any, kind: str) -> None:
        self.builder = builder
        self.value = value
        self.kind = kind

    # Construction.
    def like(self, value: Any) -> Emitted:
        """The LLVM ``value`` with this one's kind."""
        return Emitted(self.builder, value, self.kind)

    def constant(self, number: Any) -> Emitted:
        """A Python number as a constant of this type."""
        if isinstance(number, Emitted):
            return number
        number = float(number) if self.kind == "f" else int(number)
        return self.like(ir.Constant(self.type, number))

    def flag(self, value: Any) -> Emitted:
        return Emitted(self.builder, value, "b")

    @property
    def type(self) -> Any:
        return self.value.type

    @property
    def width(self) -> int:
        """Bits."""
        return {F32: 32, F64: 64}[self.type] if self.kind == "f" else self.type.width

    # Arithmetic.
    def _binary(self, other: Any, floating: str, integer: str) -> Emitted:
        instruction = getattr(self.builder, floating if self.kind == "f" else integer)
        return self.like(instruction(self.value, self.constant(other).value))

    def __add__(self, other: Any) -> Emitted:
        return self._binary(other, "fadd", "add")

    def __sub__(self, other: Any) -> Emitted:
        return self._binary(other, "fsub", "sub")

    def __mul__(self, other: Any) -> Emitted:
        return self._binary(other, "fmul", "mul")

    def __truediv__(self, other: Any) -> Emitted:
        return self._binary(other, "fdiv", "")

    def __radd__(self, other: Any) -> Emitted:
        return self.constant(other) + self

    def __rsub__(self, other: Any) -> Emitted:
        return self.constant(other) - self

    def __rmul__(self, other: Any) -> Emitted:
        return self.constant(other) * self

    def __rtruediv__(self, other: Any) -> Emitted:
        return self.constant(other) / self

    def __neg__(self) -> Emitted:
        negated = self.builder.fneg if self.kind == "f" else self.builder.neg
        return self.like(negated(self.value))

    def fma(self, factor: Any, term: Any) -> Emitted:
        """``self * factor + term``, rounded once."""
        return self.intrinsic("fma", self.constant(factor), self.constant(term))

    # Integers and flags.
    def __and__(self, other: Any) -> Emitted:
        return self.like(self.builder.and_(self.value, self.constant(other).value))

    def __or__(self, other: Any) -> Emitted:
        return self.like(self.builder.or_(self.value, self.constant(other).value))

    def __xor__(self, other: Any) -> Emitted:
        return self.like(self.builder.xor(self.value, self.constant(other).value))

    def __invert__(self) -> Emitted:
        return self.like(self.builder.not_(self.value))

    def __lshift__(self, other: Any) -> Emitted:
        return self.like(self.builder.shl(self.value, self.constant(other).value))

    def __rshift__(self, other: Any) -> Emitted:
        shift = self.builder.ashr if self.kind == "i" else self.builder.lshr
        return self.like(shift(self.value, self.constant(other).value))

    # Comparison.
    def compare(self, symbol: str, other: Any) -> Emitted:
        a, b = self.value, self.constant(other).value
        if self.kind == "f":
            unordered = symbol == "!="
            instruction = self.builder.fcmp_unordered if unordered else self.builder.fcmp_ordered
        else:
            signed = self.kind == "i"
            instruction = self.builder.icmp_signed if signed else self.builder.icmp_unsigned
        return self.flag(instruction(symbol, a, b))

    def __lt__(self, other: Any) -> Emitted:
        return self.compare("<", other)

    def __le__(self, other: Any) -> Emitted:
        return self.compare("<=", other)

    def __gt__(self, other: Any) -> Emitted:
        return self.compare(">", other)

    def __ge__(self, other: Any) -> Emitted:
        return self.compare(">=", other)

    def __eq__(self, other: Any) -> Emitted:  # type: ignore[override]
        return self.compare("==", other)

    def __ne__(self, other: Any) -> Emitted:  # type: ignore[override]
        return self.compare("!=", other)

    __hash__ = None  # type: ignore[assignment]

    def isnan(self) -> Emitted:
        return self.flag(self.builder.fcmp_unordered("uno", self.value, self.value))

    def select(self, a: Any, b: Any) -> Emitted:
        """``a`` where this flag is set, else ``b``; both are evaluated. One must be `Emitted`."""
        a = a if isinstance(a, Emitted) else b.constant(a)
        b = a.constant(b)
        return a.like(self.builder.select(self.value, a.value, b.value))

    # Functions that are one instruction.
    def intrinsic(self, name: str, *others: Emitted) -> Emitted:
        """Call ``llvm.<name>`` overloaded on this type."""
        values = [self.value, *(other.value for other in others)]
        suffix = f"f{self.width}" if self.kind == "f" else f"i{self.width}"
        function = declare(self.builder, f"llvm.{name}.{suffix}", self.type, len(values))
        return self.like(self.builder.call(function, values))

    def absolute(self) -> Emitted:
        if self.kind == "f":
            return self.intrinsic("fabs")
        return self if self.kind == "u" else (self < 0).select(-self, self)

    def rint(self) -> Emitted:
        """The nearest integer, ties to even."""
        return self.intrinsic("rint")

    def sqrt(self) -> Emitted:
        return self.intrinsic("sqrt")

    def copysign(self, other: Any) -> Emitted:
        return self.intrinsic("copysign", self.constant(other))

    # Conversion.
    def bits(self) -> Emitted:
        """The bit pattern of a float as a signed integer of its width."""
        return Emitted(self.builder, self.builder.bitcast(self.value, ir.IntType(self.width)), "i")

    def as_float(self) -> Emitted:
        """The float of this width whose bit pattern this integer is."""
        to = F32 if self.width == 32 else F64
        return Emitted(self.builder, self.builder.bitcast(self.value, to), "f")

    def to_int(self) -> Emitted:
        """The integral part, as a signed integer of the float's width. It must be in range."""
        to = ir.IntType(self.width)
        return Emitted(self.builder, self.builder.fptosi(self.value, to), "i")

    def to_float(self) -> Emitted:
        """The nearest float of this integer's width."""
        convert = self.builder.sitofp if self.kind == "i" else self.builder.uitofp
        return Emitted(self.builder, convert(self.value, F32 if self.width == 32 else F64), "f")

    def cast(self, to: Any, kind: str) -> Emitted:
        """Conversion between real types as NumPy's ``astype`` does it on values in range."""
        return Emitted(self.builder, _CASTS[self.kind + kind](self, to), kind)

    def widened(self) -> Emitted:
        """A float of 32 bits with 64."""
        return Emitted(self.builder, self.builder.fpext(self.value, F64), "f")

    def narrowed(self) -> Emitted:
        """The nearest float of 32 bits."""
        return Emitted(self.builder, self.builder.fptrunc(self.value, F32), "f")

    def call(self, name: str, *others: Emitted) -> Emitted:
        """Call a function of libm (``sin``, or ``sinf`` for 32 bits)."""
        values = [self.value, *(other.value for other in others)]
        suffix = "f" if self.width == 32 else ""
        function = declare(self.builder, name + suffix, self.type, len(values))
        return self.like(self.builder.call(function, values))


def declare(builder: ir.IRBuilder, name: str, type: Any, count: int) -> ir.Function:
    """The declaration of a function of ``count`` equal arguments, without side effects."""
    module = builder.module
    found = module.globals.get(name)
    if found is None:
        found = ir.Function(module, ir.FunctionType(type, [type] * count), name)
        found.attributes.add("nounwind")
        if not name.startswith("llvm."):
            found.attributes.add("readnone")
    return found


def _float_to_float(x: Emitted, to: Any) -> Any:
    if x.type == to:
        return x.value
    return (x.builder.fpext if to == F64 else x.builder.fptrunc)(x.value, to)


def _float_to_int(x: Emitted, to: Any) -> Any:
    # Narrow integers go through the conversion that the hardware has, and wrap.
    wide = ir.IntType(max(to.width, 32))
    return _int_to_int(x.like(x.builder.fptosi(x.value, wide)), to)


def _float_to_unsigned(x: Emitted, to: Any) -> Any:
    if to.width == 64:
        # The upper half goes through the signed conversion, so that negative numbers wrap.
        upper = x >= 2.0**63
        low = Emitted(x.builder, x.builder.fptosi(upper.select(x - 2.0**63, x).value, to), "i")
        return upper.select(low ^ -(2**63), low).value
    return _int_to_int(x.like(x.builder.fptosi(x.value, I64 if to.width == 32 else I32)), to)


def _int_to_int(x: Emitted, to: Any) -> Any:
    width = x.value.type.width
    if width == to.width:
        return x.value
    if width > to.width:
        return x.builder.trunc(x.value, to)
    return (x.builder.sext if x.kind == "i" else x.builder.zext)(x.value, to)


def _flag(x: Emitted, to: Any) -> Any:
    return (x != 0).value


_CASTS: dict[str, Callable[[Emitted, Any], Any]] = {
    "ff": _float_to_float,
    "fi": _float_to_int,
    "fu": _float_to_unsigned,
    "fb": _flag,
    "ib": _flag,
    "ub": _flag,
    "bb": lambda x, to: x.value,
    "if": lambda x, to: x.builder.sitofp(x.value, to),
    "uf": lambda x, to: x.builder.uitofp(x.value, to),
    "bf": lambda x, to: x.builder.uitofp(x.value, to),
    **dict.fromkeys(("ii", "iu", "ui", "uu", "bi", "bu"), _int_to_int),
}
