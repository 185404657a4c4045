"""Scalars and vectors of them while LLVM instructions are written.

`Emitted` wraps one LLVM value and has Python's operators, so that the formulas of `vecmath` and the
words of `vocabulary` read like mathematics: every operator appends one instruction. Python numbers
become constants of the other operand's type. What is written for a scalar is written for a vector
as well, element by element: LLVM's instructions are the same. No instruction carries fast-math
flags but those of folds: NaN, infinities and signed zeros mean what NumPy means by them, and
products are contracted only by an explicit `fma`. This file knows LLVM only, not Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()


class Splat(ir.Constant):
    """A constant vector of equal elements, which is short as text, too."""

    def _get_reference(self) -> str:
        return f"splat ({self.constant[0]})"


def like_shape(type: Any, element: Any) -> Any:
    """The type that is to ``element`` what ``type`` is to its own: itself, or a vector of it."""
    return ir.VectorType(element, type.count) if isinstance(type, ir.VectorType) else element


def constant_of(type: Any, number: Any) -> Any:
    """A number as a constant scalar or vector."""
    if isinstance(type, ir.VectorType):
        return Splat(type, ir.Constant(type.element, number))
    return ir.Constant(type, number)


class Emitted:
    """An LLVM scalar or vector: ``kind`` is ``"f"``, ``"i"``, ``"u"`` or ``"b"``."""

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
        return self.like(constant_of(self.type, number))

    def flag(self, value: Any) -> Emitted:
        return Emitted(self.builder, value, "b")

    @property
    def type(self) -> Any:
        return self.value.type

    @property
    def element(self) -> Any:
        """The LLVM type of one element."""
        t = self.value.type
        return t.element if isinstance(t, ir.VectorType) else t

    @property
    def lanes(self) -> int:
        """Elements of a vector; 0 of a scalar."""
        t = self.value.type
        return t.count if isinstance(t, ir.VectorType) else 0

    @property
    def width(self) -> int:
        """Bits of an element."""
        return {F32: 32, F64: 64}[self.element] if self.kind == "f" else self.element.width

    @property
    def suffix(self) -> str:
        """What the names of LLVM's functions of this type end with."""
        vector = f"v{self.lanes}" if self.lanes else ""
        return f"{vector}{'f' if self.kind == 'f' else 'i'}{self.width}"

    def of(self, element: Any) -> Any:
        """The type of as many elements of another type."""
        return like_shape(self.type, element)

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
        function = declare(self.builder, f"llvm.{name}.{self.suffix}", self.type, len(values))
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
        to = self.of(ir.IntType(self.width))
        return Emitted(self.builder, self.builder.bitcast(self.value, to), "i")

    def as_float(self) -> Emitted:
        """The float of this width whose bit pattern this integer is."""
        to = self.of(F32 if self.width == 32 else F64)
        return Emitted(self.builder, self.builder.bitcast(self.value, to), "f")

    def cast(self, to: Any, kind: str) -> Emitted:
        """Conversion between real types as NumPy's ``astype`` does it on x86-64.

        Args:
            to: The LLVM type of an element of the result.
            kind: Its kind.
        """
        return Emitted(self.builder, _CASTS[self.kind + kind](self, to), kind)

    def whole(self, to: Any) -> Emitted:
        """A float as an integer of the LLVM type ``to``, which has to hold it."""
        return Emitted(self.builder, self.builder.fptosi(self.value, self.of(to)), "i")

    def widened(self) -> Emitted:
        """A float of 32 bits with 64."""
        return self.cast(F64, "f")

    def narrowed(self) -> Emitted:
        """The nearest float of 32 bits."""
        return self.cast(F32, "f")

    def call(self, name: str, *others: Emitted) -> Emitted:
        """Call a function of libm (``sin``, or ``sinf`` for 32 bits), once for every element."""
        values = [self.value, *(other.value for other in others)]
        name += "f" if self.width == 32 else ""
        if self.lanes:
            function = each(self.builder.module, name, self.type, len(values))
        else:
            function = declare(self.builder, name, self.type, len(values))
        return self.like(self.builder.call(function, values))

    # Elements of vectors.
    def splat(self, lanes: int) -> Emitted:
        """A vector of this scalar."""
        type = ir.VectorType(self.type, lanes)
        if isinstance(self.value, ir.Constant) and self.value.constant is not ir.Undefined:
            return self.like(Splat(type, self.value))
        # Made where the scalar is, before loops that use it, and once for all of them.
        key = id(self.value), lanes
        known = self.builder.module.splats
        if key not in known:
            home = getattr(self.value, "parent", None)
            if isinstance(home, ir.Block) and home is not self.builder.block:
                with self.builder.goto_block(home):
                    known[key] = self.value, self._filled(type)
            else:
                known[key] = self.value, self._filled(type)
        return self.like(known[key][-1])

    def _filled(self, type: Any) -> Any:
        undefined = ir.Constant(type, ir.Undefined)
        first = self.builder.insert_element(undefined, self.value, I32(0))
        places = constant_of(ir.VectorType(I32, type.count), 0)
        return self.builder.shuffle_vector(first, undefined, places)

    def half(self, upper: bool) -> Emitted:
        """The lower or the upper half of a vector."""
        n = self.lanes // 2
        part = ir.VectorType(self.element, n)
        name = f"llvm.vector.extract.{self.like(ir.Constant(part, None)).suffix}.{self.suffix}"
        function = declared(self.builder, name, ir.FunctionType(part, [self.type, I64]))
        return self.like(self.builder.call(function, [self.value, I64(n * upper)]))

    def across(self, name: str) -> Emitted:
        """All elements of a vector folded into one by an operation of LLVM's reductions."""
        if self.kind == "f":
            name = {"max": "fmaximum", "min": "fminimum"}.get(name, f"f{name}")
        elif self.kind == "b":  # LLVM adds single bits modulo 2
            name = {"add": "or", "max": "or", "mul": "and", "min": "and"}.get(name, name)
        elif name in ("max", "min"):
            name = f"{'s' if self.kind == 'i' else 'u'}{name}"
        values, types = [self.value], [self.type]
        if name in ("fadd", "fmul"):
            values.insert(0, ir.Constant(self.element, -0.0 if name == "fadd" else 1.0))
            types.insert(0, self.element)
        function = declared(
            self.builder,
            f"llvm.vector.reduce.{name}.{self.suffix}",
            ir.FunctionType(self.element, types),
        )
        fastmath = ("reassoc",) if len(values) > 1 else ()
        return self.like(self.builder.call(function, values, fastmath=fastmath))


class Written(ir.Function):
    """A function of a module whose text is given."""

    def __init__(self, module: ir.Module, kind: Any, name: str, text: str) -> None:
        super().__init__(module, kind, name)
        self.text = text

    def __str__(self) -> str:
        return self.text


def declared(builder: ir.IRBuilder, name: str, kind: Any) -> ir.Function:
    """The declaration of a function."""
    found = builder.module.globals.get(name)
    return ir.Function(builder.module, kind, name) if found is None else found


def by_element(
    module: Any, symbol: str, type: Any, count: int, compute: Callable[..., Any], *attributes: str
) -> ir.Function:
    """A function of ``count`` vectors, which is computed for every element by itself."""
    found = module.globals.get(symbol)
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(type, [type] * count), symbol)
    function.linkage = "internal"
    for attribute in (*attributes, "noinline"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    result = ir.Constant(type, ir.Undefined)
    for i in range(type.count):
        elements = [builder.extract_element(x, I32(i)) for x in function.args]
        result = builder.insert_element(result, compute(builder, *elements), I32(i))
    builder.ret(result)
    return function


def each(module: Any, name: str, type: Any, count: int) -> ir.Function:
    """A function that calls one of scalars for every element of ``count`` vectors."""

    def call(builder: ir.IRBuilder, *elements: Any) -> Any:
        return builder.call(declare(builder, name, type.element, count), elements)

    symbol = f"{name}.each{type.count}"
    return by_element(module, symbol, type, count, call, "nounwind", "readnone")


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
    if x.element == to:
        return x.value
    return (x.builder.fpext if to == F64 else x.builder.fptrunc)(x.value, x.of(to))


def _truncated(x: Emitted, wide: Any) -> Emitted:
    """The integer of 32 or 64 bits, or the least one where there is none.

    That is what x86-64 has an instruction for, and so what NumPy gives there; LLVM's conversion is
    undefined for NaN and for numbers out of range.
    """
    return (x.absolute() < 2.0 ** (wide.width - 1)).select(x.whole(wide), -(1 << (wide.width - 1)))


def _float_to_int(x: Emitted, to: Any) -> Any:
    # Narrow integers are the lower bits of those of 32.
    return _int_to_int(_truncated(x, ir.IntType(max(to.width, 32))), to)


def _float_to_unsigned(x: Emitted, to: Any) -> Any:
    if to.width == 64:
        # The upper half goes through the signed conversion, so that negative numbers wrap.
        upper = x >= 2.0**63
        number = _truncated(upper.select(x - 2.0**63, x), to)
        return upper.select(number ^ -(2**63), number).value
    return _int_to_int(_truncated(x, I64 if to.width == 32 else I32), to)


def _int_to_int(x: Emitted, to: Any) -> Any:
    width = x.element.width
    if width == to.width:
        return x.value
    if width > to.width:
        return x.builder.trunc(x.value, x.of(to))
    return (x.builder.sext if x.kind == "i" else x.builder.zext)(x.value, x.of(to))


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
    "if": lambda x, to: x.builder.sitofp(x.value, x.of(to)),
    "uf": lambda x, to: x.builder.uitofp(x.value, x.of(to)),
    "bf": lambda x, to: x.builder.uitofp(x.value, x.of(to)),
    **dict.fromkeys(("ii", "iu", "ui", "uu", "bi", "bu"), _int_to_int),
}
