"""Scalars and vectors of them while LLVM instructions are written.

`Emitted` is one LLVM value and has Python's operators, so that the formulas of `vecmath` and the
words of kernels read like mathematics: every operator appends one instruction. Python numbers
become constants of the other operand's type. What is written for a scalar is written for a vector
as well, element by element: LLVM's instructions are the same. No instruction carries fast-math
flags but those of folds: NaN, infinities and signed zeros mean what NumPy means by them, and
products are contracted only by an explicit `fma`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from funcgrad.compiler.native.llvm import (
    F32,
    F64,
    I1,
    I32,
    I64,
    POINTER,
    VOID,
    Block,
    Function,
    Module,
    Type,
    constant_text,
    integer,
    vector_of,
)

_PREDICATES = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


Operator = Callable[["Emitted", Any], "Emitted"]


def _operator(name: str, of_floats: str = "") -> Operator:
    """The method of an operator that is one instruction, perhaps another one of floats."""
    return lambda self, other: self._binary(other, of_floats if self.kind == "f" else name)


def _reflected(name: str, of_floats: str) -> Operator:
    """The method of the same operator behind a number."""
    method = _operator(name, of_floats)
    return lambda self, other: method(self.constant(other), self)


def _comparison(symbol: str) -> Operator:
    return lambda self, other: self.compare(symbol, other)


class Emitted:
    """An LLVM value.

    Attributes:
        text: Its name, or the number that it is.
        type: Its LLVM type.
        kind: ``"f"``, ``"i"``, ``"u"`` or ``"b"``; ``"p"`` of a pointer.
        block: Where it is computed; nothing of constants and arguments.
    """

    __slots__ = ("block", "builder", "kind", "text", "type")

    def __init__(
        self, builder: Builder, text: str, type: Type, kind: str, block: Block | None = None
    ) -> None:
        self.builder = builder
        self.text = text
        self.type = type
        self.kind = kind
        self.block = block

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"

    # Construction.
    def like(self, other: Emitted) -> Emitted:
        """Another value with this one's kind."""
        return other.of_kind(self.kind)

    def of_kind(self, kind: str) -> Emitted:
        """The same value, read as one of another kind."""
        return Emitted(self.builder, self.text, self.type, kind, self.block)

    def made(self, text: str) -> Emitted:
        """Result of an instruction, of this type."""
        return self.builder.let(text, self.type, self.kind)

    def constant(self, number: Any) -> Emitted:
        """A Python number as a constant of this type."""
        if isinstance(number, Emitted):
            return number
        return Emitted(self.builder, constant_text(self.type, number), self.type, self.kind)

    def flag(self, text: str) -> Emitted:
        """The flags that an instruction computes of values of this type."""
        return self.builder.let(text, self.type.of(I1), "b")

    @property
    def element(self) -> Type:
        """The LLVM type of one element."""
        return self.type.element

    @property
    def lanes(self) -> int:
        """Elements of a vector; 0 of a scalar."""
        return self.type.count

    @property
    def width(self) -> int:
        """Bits of an element."""
        return self.type.width

    @property
    def suffix(self) -> str:
        """Suffix of the names of LLVM's functions of this type."""
        return self.type.suffix

    # Arithmetic.
    def _binary(self, other: Any, name: str) -> Emitted:
        if not isinstance(other, Emitted):
            other = self.constant(other)
        return self.builder.let(
            f"{name} {self.type.text} {self.text}, {other.text}", self.type, self.kind
        )

    __add__, __radd__ = _operator("add", "fadd"), _reflected("add", "fadd")
    __sub__, __rsub__ = _operator("sub", "fsub"), _reflected("sub", "fsub")
    __mul__, __rmul__ = _operator("mul", "fmul"), _reflected("mul", "fmul")
    __truediv__, __rtruediv__ = _operator("fdiv", "fdiv"), _reflected("fdiv", "fdiv")

    def __neg__(self) -> Emitted:
        return self.made(f"fneg {self}") if self.kind == "f" else self.constant(0) - self

    def fma(self, factor: Any, term: Any) -> Emitted:
        """``self * factor + term``, rounded once."""
        return self.intrinsic("fma", self.constant(factor), self.constant(term))

    def folded(self, instruction: str, other: Emitted) -> Emitted:
        """A step of a fold of floats, whose order LLVM may change unless the module has one."""
        flag = "" if self.builder.module.has_order else "reassoc "
        return self.made(f"{instruction} {flag}{self}, {other.text}")

    # Integers and flags.
    __and__, __or__, __xor__ = _operator("and"), _operator("or"), _operator("xor")
    __lshift__ = _operator("shl")

    def __invert__(self) -> Emitted:
        return self._binary(-1, "xor")

    def __rshift__(self, other: Any) -> Emitted:
        return self._binary(other, "ashr" if self.kind == "i" else "lshr")

    def divided(self, other: Emitted) -> Emitted:
        """The quotient of integers, toward zero, by the processor's instruction."""
        return self._binary(other, "sdiv" if self.kind == "i" else "udiv")

    # Comparison.
    def compare(self, symbol: str, other: Any, kind: str = "") -> Emitted:
        """Whether values are in an order; of another kind, if one is given."""
        kind, name = kind or self.kind, _PREDICATES[symbol]
        if kind == "f":
            test = f"fcmp {'u' if symbol == '!=' else 'o'}{name}"
        elif symbol in ("==", "!="):
            test = f"icmp {name}"
        else:
            test = f"icmp {'s' if kind == 'i' else 'u'}{name}"
        return self.flag(f"{test} {self}, {self.constant(other).text}")

    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("<", "<=", ">", ">="))
    __eq__, __ne__ = map(_comparison, ("==", "!="))  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def isnan(self) -> Emitted:
        """Whether it is no number."""
        return self.isunordered(self)

    def isunordered(self, other: Emitted) -> Emitted:
        """Whether one of two is no number."""
        return self.flag(f"fcmp uno {self}, {other.text}")

    def select(self, a: Any, b: Any, is_unpredictable: bool = False) -> Emitted:
        """``a`` where this flag is set, else ``b``; both are evaluated. One must be `Emitted`.

        LLVM turns it into a branch where that seems predictable, unless metadata forbid it.
        """
        a = a if isinstance(a, Emitted) else b.constant(a)
        hint = self.builder.module.unpredictable if is_unpredictable else ""
        return a.made(f"select {self}, {a}, {a.constant(b)}{hint}")

    # Functions that are one instruction.
    def intrinsic(self, name: str, *others: Emitted) -> Emitted:
        """Call ``llvm.<name>`` overloaded on this type."""
        name = f"llvm.{name}.{self.type.suffix}"
        return self.builder.call(name, self.type, self.kind, self, *others)

    def absolute(self) -> Emitted:
        """The magnitude."""
        if self.kind == "f":
            return self.intrinsic("fabs")
        return self if self.kind == "u" else (self < 0).select(-self, self)

    def rint(self) -> Emitted:
        """The nearest integer, ties to even."""
        return self.intrinsic("rint")

    def sqrt(self) -> Emitted:
        """The square root."""
        return self.intrinsic("sqrt")

    def copysign(self, other: Any) -> Emitted:
        """This magnitude with another sign."""
        return self.intrinsic("copysign", self.constant(other))

    # Conversion.
    def converted(self, instruction: str, to: Type, kind: str) -> Emitted:
        """Conversion by an instruction, to elements of another type."""
        to = self.type.of(to)
        return self.builder.let(f"{instruction} {self} to {to}", to, kind)

    def bits(self) -> Emitted:
        """The bit pattern of a float as a signed integer of its width."""
        return self.converted("bitcast", integer(self.width), "i")

    def as_float(self) -> Emitted:
        """The float of this width whose bit pattern this integer is."""
        return self.converted("bitcast", F32 if self.width == 32 else F64, "f")

    def packed(self) -> Emitted:
        """Flags as the bits of one integer."""
        to = integer(self.lanes)
        return self.builder.let(f"bitcast {self} to {to}", to, "u")

    def cast(self, to: Type, kind: str) -> Emitted:
        """Conversion between real types as NumPy's ``astype`` does it on x86-64.

        Args:
            to: The LLVM type of an element of the result.
            kind: Its kind.
        """
        return _CASTS[self.kind + kind](self, to).of_kind(kind)

    def whole(self, to: Type) -> Emitted:
        """A float as an integer of the LLVM type ``to``, which has to hold it."""
        return self.converted("fptosi", to, "i")

    def widened(self) -> Emitted:
        """A float of 32 bits with 64."""
        return self.cast(F64, "f")

    def narrowed(self) -> Emitted:
        """The nearest float of 32 bits."""
        return self.cast(F32, "f")

    def call(self, name: str, *others: Emitted) -> Emitted:
        """Call a function of libm (``sin``, or ``sinf`` for 32 bits), once for every element."""
        name += "f" if self.width == 32 else ""
        if self.lanes:
            name = each(self.builder.module, name, self.type, 1 + len(others))
        return self.builder.call(name, self.type, self.kind, self, *others)

    # Elements of vectors.
    def splat(self, lanes: int) -> Emitted:
        """A vector of this scalar."""
        builder = self.builder
        if not self.text.startswith("%"):
            return Emitted(builder, f"splat ({self})", vector_of(self.type, lanes), self.kind)
        known: Emitted = builder.once((self.text, lanes), self, lambda: self._spread(lanes))
        builder.numbers[known.text] = self
        return self.like(known)

    def _spread(self, lanes: int) -> Emitted:
        """A vector of this scalar, made here."""
        type = vector_of(self.type, lanes)
        first = self.builder.let(f"insertelement {type} poison, {self}, i32 0", type, self.kind)
        places = f"<{lanes} x i32> zeroinitializer"
        return first.made(f"shufflevector {first}, {type} poison, {places}")

    def before(self, type: Type, begin: Emitted | None = None) -> Emitted:
        """The flags of so many of the first lanes of vectors of a type, where they are needed.

        Those of the lanes before ``begin``, which is no more than that, are not set.

        Of flags that come from another block, processors that have no registers for them make
        bytes, and of these flags again: that takes LLVM longer than the rest of a kernel.
        """
        width = I64 if type.width == 64 else I32  # in flags of as many bits
        kind = vector_of(width, type.count)
        numbers = self.builder.call(f"llvm.stepvector.{kind.suffix}", kind, "i")
        end = self.cast(width, "i")
        if begin is not None:
            # One comparison, of unsigned numbers that are shifted so that signed ones are in order.
            first = begin.cast(width, "i") + -(1 << (width.width - 1))
            numbers, end = numbers - first._spread(type.count), end - first
        flags: Emitted = numbers < end._spread(type.count)
        return flags

    def mixed(self, other: Emitted | None, places: Iterable[int]) -> Emitted:
        """Elements of this vector and another one, counted through both."""
        numbers = ", ".join([f"i32 {k}" for k in places])
        type = vector_of(self.type.element, numbers.count("i32"))
        second = "poison" if other is None else other.text
        return self.builder.let(
            f"shufflevector {self}, {self.type} {second}, <{type.count} x i32> <{numbers}>",
            type,
            self.kind,
        )

    def lane(self, k: int) -> Emitted:
        """One element of a vector."""
        return self.builder.let(f"extractelement {self}, i32 {k}", self.type.element, self.kind)

    def with_lane(self, k: int, value: Emitted) -> Emitted:
        """The vector with another element."""
        return self.made(f"insertelement {self}, {value}, i32 {k}")

    def half(self, upper: bool) -> Emitted:
        """The lower or the upper half of a vector."""
        part = vector_of(self.type.element, self.type.count // 2)
        place = Emitted(self.builder, str(part.count * upper), I64, "i")
        name = f"llvm.vector.extract.{part.suffix}.{self.type.suffix}"
        return self.builder.call(name, part, self.kind, self, place)

    def across(self, name: str) -> Emitted:
        """All elements of a vector folded into one by an operation of LLVM's reductions."""
        if self.kind == "f":
            name = {"max": "fmaximum", "min": "fminimum"}.get(name, f"f{name}")
        elif self.kind == "b":  # LLVM adds single bits modulo 2
            name = {"add": "or", "max": "or", "mul": "and", "min": "and"}.get(name, name)
        elif name in ("max", "min"):
            name = f"{'s' if self.kind == 'i' else 'u'}{name}"
        symbol, element = f"llvm.vector.reduce.{name}.{self.type.suffix}", self.type.element
        if name not in ("fadd", "fmul"):
            return self.builder.call(symbol, element, self.kind, self)
        start = constant_text(element, -0.0 if name == "fadd" else 1.0)
        first = Emitted(self.builder, start, element, self.kind)
        return self.builder.call(symbol, element, self.kind, first, self, flags="reassoc ")


class Builder:
    """Appends instructions to the blocks of a function.

    Attributes:
        module: The module.
        function: The function.
        block: The block that is written.
        numbers: The scalars of vectors that are made of one, by the names of these.
        line: Metadata of instructions: the statement that they are of, if that is to be known.
        shares: Whether equal calls of formulas are one here; compilers of C find them.
    """

    block: Block
    shares = True

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.numbers: dict[str, Emitted] = {}
        self.line = ""
        self.n_blocks = 0
        self.known: dict[Hashable, Any] = {}
        module.functions[function.symbol] = function
        self.open_block("entry")

    def arguments(self, kinds: str) -> list[Emitted]:
        """The values of the function's arguments, by their kinds."""
        types = self.function.arguments
        return [
            Emitted(self, f"%a{k}", t, kind)
            for k, (t, kind) in enumerate(zip(types, kinds, strict=True))
        ]

    def let(self, text: str, type: Type, kind: str) -> Emitted:
        """The value of an instruction."""
        function, block = self.function, self.block
        function.n_values += 1
        name = f"%v{function.n_values}"
        block.lines.append(f"  {name} = {text}{self.line}")
        return Emitted(self, name, type, kind, block)

    def once(self, key: Hashable, scalar: Emitted, make: Callable[[], Any]) -> Any:
        """Make something of a scalar where that is, before loops that use it, once for all of them.

        Args:
            key: The name of what is made.
            scalar: The scalar.
            make: Appends the instructions.
        """
        if key not in self.known:
            here, self.block = self.block, scalar.block or self.function.blocks[0]
            self.known[key] = make()
            self.block = here
        return self.known[key]

    def once_here(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Make something once for all of this block.

        Args:
            key: The name of what is made.
            make: Appends the instructions.
        """
        if not self.shares:
            return make()
        name = key, self.block
        if name not in self.known:
            self.known[name] = make()
        return self.known[name]

    def do(self, text: str) -> None:
        """Append an instruction that has no value."""
        self.block.lines.append(f"  {text}{self.line}")

    def number(self, type: Type, number: Any, kind: str = "i") -> Emitted:
        """A constant."""
        return Emitted(self, constant_text(type, number), type, kind)

    def call(
        self, name: str, type: Type, kind: str, *args: Emitted, flags: str = "", hints: str = ""
    ) -> Emitted:
        """The value of a call; a function that the module does not define is declared."""
        return self.let(f"call {flags}{self._called(name, type, args)}{hints}", type, kind)

    def run(self, name: str, *args: Emitted, hints: str = "") -> None:
        """Call a function that has no value."""
        self.do(f"call {self._called(name, VOID, args)}{hints}")

    def _called(self, name: str, type: Type, args: Sequence[Emitted]) -> str:
        module = self.module
        if name not in module.functions and name not in module.declarations:
            types = ", ".join([x.type.text for x in args])
            # Functions of libm have no side effects.
            attributes = "" if name.startswith("llvm.") else " nounwind readnone"
            module.declarations[name] = f"declare {type} @{name}({types}){attributes}"
        given = ", ".join([f"{x.type.text} {x.text}" for x in args])
        return f"{type.text} @{name}({given})"

    def moved(self, pointer: Emitted, index: Emitted, element: Type, inbounds: str = "") -> Emitted:
        """A pointer, so many elements further."""
        return self.let(
            f"getelementptr {inbounds}{element.text}, ptr {pointer.text}, {index}", POINTER, "p"
        )

    # Blocks.
    def new_block(self, name: str) -> Block:
        """A block that is to begin later."""
        self.n_blocks += 1
        return Block(f"{name}{self.n_blocks}")

    def begin(self, block: Block) -> Block:
        """Go on with a new block."""
        self.block = block
        self.function.blocks.append(block)
        return block

    def open_block(self, name: str) -> Block:
        """Begin another block."""
        return self.begin(self.new_block(name))

    def end(self, text: str) -> None:
        """Say what comes after this block, unless that was said before."""
        if not self.block.end:
            self.block.end = f"  {text}{self.line}"

    def jump(self, block: Block) -> None:
        """Go on in a block."""
        self.end(f"br label %{block.label}")

    def fork(self, flag: Emitted, first: Block, second: Block, hint: str = "") -> None:
        """Go on in one of two blocks."""
        self.end(f"br {flag}, label %{first.label}, label %{second.label}{hint}")

    def phi(self, cases: Iterable[tuple[Emitted, Block]]) -> Emitted:
        """A value that depends on the block before."""
        cases = list(cases)
        first = cases[0][0]
        return first.made(f"phi {first.type} {arms(cases)}")

    def room(self, type: Type) -> Emitted:
        """Return the address of a stack slot for a value."""
        allocas = self.function.allocas
        allocas.append(f"  %m{len(allocas)} = alloca {type}")
        return Emitted(self, f"%m{len(allocas) - 1}", POINTER, "p")

    def in_turn(self, count: Emitted, write: Callable[[Emitted], None]) -> None:
        """Run what ``write`` appends for the numbers up to ``count``, which is 1 or more."""
        before, body, end = self.block, self.new_block("for"), self.new_block("end")
        self.jump(body)
        self.begin(body)
        index = Emitted(self, f"%i{self.n_blocks}", I64, "i", body)
        write(index)
        following = index.made(f"add nsw {index}, 1")
        cases = (self.number(I64, 0), before), (following, self.block)
        body.phis.append(f"  {index.text} = phi i64 {arms(cases)}")
        self.fork(following < count, body, end)
        self.begin(end)

    def if_any(self, flags: Emitted, usual: Emitted, compute: Callable[[], Emitted]) -> Emitted:
        """A value that is computed if any flag is set, which is rare, else ``usual``."""
        is_any = flags.packed() != 0 if flags.lanes else flags
        before = self.block
        inside, end = self.new_block("rare"), self.new_block("end")
        self.fork(is_any, inside, end, self.module.unlikely)
        self.begin(inside)
        value, last = compute(), self.block
        self.jump(end)
        self.begin(end)
        return self.phi([(usual, before), (value, last)])


def arms(cases: Iterable[tuple[Emitted, Block]]) -> str:
    """Values and the blocks that they come from, as a phi lists them."""
    return ", ".join([f"[ {value.text}, %{block.label} ]" for value, block in cases])


def by_element(
    module: Module,
    symbol: str,
    type: Type,
    kind: str,
    count: int,
    compute: Callable[..., Emitted],
    attributes: str = "",
) -> str:
    """The symbol of a function of ``count`` vectors, computed for every element by itself.

    A loop takes LLVM a third of the time of a statement for every element.
    """

    def write(module: Module, symbol: str) -> None:
        builder = Builder(module, Function(symbol, type, [type] * count, f"{attributes} noinline"))
        element, rooms = type.element, []
        for x in builder.arguments(kind * count):
            rooms.append(builder.room(type))
            builder.do(f"store {x}, {rooms[-1]}")

        def one(index: Emitted) -> None:
            places = [builder.moved(room, index, element) for room in rooms]
            args = [builder.let(f"load {element}, {place}", element, kind) for place in places]
            builder.do(f"store {compute(*args)}, {places[0]}")

        builder.in_turn(builder.number(I64, type.count), one)
        builder.end(f"ret {builder.let(f'load {type}, {rooms[0]}', type, kind)}")

    return module.helper(symbol, write).symbol


def each(module: Module, name: str, type: Type, count: int) -> str:
    """The symbol of a function that calls one of scalars for every element of vectors."""

    def call(first: Emitted, *others: Emitted) -> Emitted:
        return first.builder.call(name, first.type, "f", first, *others)

    symbol = f"{name}.each{type.count}"
    return by_element(module, symbol, type, "f", count, call, "nounwind readnone")


def _float_to_float(x: Emitted, to: Type) -> Emitted:
    if x.element is to:
        return x
    return x.converted("fpext" if to is F64 else "fptrunc", to, "f")


def _truncated(x: Emitted, wide: Type) -> Emitted:
    """The integer of 32 or 64 bits, or the least one where there is none.

    That is what x86-64 has an instruction for, and so what NumPy gives there; LLVM's conversion is
    undefined for NaN and for numbers out of range.
    """
    return (x.absolute() < 2.0 ** (wide.width - 1)).select(x.whole(wide), -(1 << (wide.width - 1)))


def _float_to_int(x: Emitted, to: Type) -> Emitted:
    # Narrow integers are the lower bits of those of 32.
    return _int_to_int(_truncated(x, integer(max(to.width, 32))), to)


def _float_to_unsigned(x: Emitted, to: Type) -> Emitted:
    if to.width == 64:
        # The upper half goes through the signed conversion, so that negative numbers wrap.
        upper = x >= 2.0**63
        number = _truncated(upper.select(x - 2.0**63, x), to)
        return upper.select(number ^ -(2**63), number)
    return _int_to_int(_truncated(x, I64 if to.width == 32 else I32), to)


def _int_to_int(x: Emitted, to: Type) -> Emitted:
    if x.width == to.width:
        return x
    extended = "sext" if x.kind == "i" else "zext"
    return x.converted("trunc" if x.width > to.width else extended, to, x.kind)


def _flag(x: Emitted, to: Type) -> Emitted:
    return x != 0


_CASTS: dict[str, Callable[[Emitted, Type], Emitted]] = {
    "ff": _float_to_float,
    "fi": _float_to_int,
    "fu": _float_to_unsigned,
    "fb": _flag,
    "ib": _flag,
    "ub": _flag,
    "bb": lambda x, to: x,
    "if": lambda x, to: x.converted("sitofp", to, "f"),
    "uf": lambda x, to: x.converted("uitofp", to, "f"),
    "bf": lambda x, to: x.converted("uitofp", to, "f"),
    **dict.fromkeys(("ii", "iu", "ui", "uu", "bi", "bu"), _int_to_int),
}
