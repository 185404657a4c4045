"""Kernels compiled by `numba.njit`, through what Numba promises to keep.

``compile_kernel : function -> function of Numba``. A kernel applies words. Here every
word becomes an intrinsic of Numba for the types that it is given (`numba.extending`), the vectors,
pointers and lanes of kernels become types of Numba, and the kernel is printed as a Python function
of those. Numba compiles it as it compiles any other; an intrinsic calls a function whose assembly
is that of its word.

This is the reference for the translation that kernels take by default (`translate`): both emit the
instructions of a word by the same code, all else is each one's own. It takes ten times as long or
more, and nothing of it is kept on disk. ``FUNCGRAD_NUMBA=public`` selects it, and so does a release
of llvmlite that was never tested (`runtime.releases`).
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numba
from llvmlite import ir
from numba import types as numba_types
from numba.extending import intrinsic, models, register_model

from funcgrad.compiler.loops import language
from funcgrad.compiler.loops.language import Apply, Body, Expression, Function, Number, Variable
from funcgrad.compiler.native import llvm
from funcgrad.compiler.native.complexes import KINDS, Complex, cast, llvm_type
from funcgrad.compiler.native.elementary import settle_formulas
from funcgrad.compiler.native.llvm import F32, F64, I1, I64, POINTER, Module, Type, vector_of
from funcgrad.compiler.native.memory import LaneIndex
from funcgrad.compiler.native.scalars import Builder, Emitted
from funcgrad.compiler.native.signatures import give_types, type_of_number
from funcgrad.compiler.native.translate import simplified
from funcgrad.compiler.native.types import (
    ARGS,
    BOOL,
    FLOAT64,
    INT64,
    NONE,
    PARTS,
    SCALARS,
    SLOTS,
    WEAK_FLOAT,
    Lanes,
    Signature,
    element_of,
    is_weak,
)
from funcgrad.compiler.native.vocabulary import WORDS


class KernelType(numba_types.Type):
    """A type of kernels that Numba does not have.

    Attributes:
        own: The type.
    """

    def __init__(self, own: Any) -> None:
        self.own = own
        super().__init__(f"kernel {own}")


@register_model(KernelType)
class _Model(models.PrimitiveModel):
    """How Numba keeps such a value: as the LLVM value that it is."""

    def __init__(self, manager: Any, numba_type: KernelType) -> None:
        super().__init__(manager, numba_type, _kept_type(numba_type.own))


def _part_types(t: Any) -> list[Type]:
    """The LLVM types of the parts of a value as Numba keeps it: pointers are integers."""
    if t is NONE:
        return []
    if isinstance(t, Lanes):
        return [I64, vector_of(I1, t.count), I1] if t.is_partial else [I64]
    type = llvm_type(t)
    return [I64 if type is POINTER else type] * (2 if element_of(t) in PARTS else 1)


def _numbas(type: Type) -> Any:
    """An LLVM type as Numba's interface has it."""
    if type.count:
        return ir.VectorType(_numbas(type.element), type.count)
    return {F32: ir.FloatType(), F64: ir.DoubleType()}.get(type) or ir.IntType(type.width)


def _kept_type(t: Any) -> Any:
    parts = [_numbas(type) for type in _part_types(t)]
    return parts[0] if len(parts) == 1 else ir.LiteralStructType(parts)


def _parts(value: Any) -> list[Emitted]:
    """The parts of a value."""
    if isinstance(value, Complex):
        return [value.re, value.im]
    if isinstance(value, LaneIndex):
        return [part for part in value if part is not None]
    if value.kind == "p":
        value = value.builder.let(f"ptrtoint {value} to i64", I64, "i")
    return [value]


def _joined(parts: Sequence[Emitted], t: Any) -> Any:
    """The inverse of `_parts`."""
    if isinstance(t, Lanes):
        return LaneIndex(*parts)
    if len(parts) == 2:
        return Complex(*parts)
    (part,) = parts
    if llvm_type(t) is POINTER:
        return part.builder.let(f"inttoptr {part} to ptr", POINTER, "p")
    return part


_SCALARS: dict[Any, Any] = {
    t: getattr(numba_types, {"bool": "boolean"}.get(t.name, t.name)) for t in SCALARS.values()
}


@lru_cache(4096)
def _numba_type(t: Any) -> Any:
    """Numba's type for values of type ``t``."""
    if t is NONE:
        return numba_types.void
    return _SCALARS.get(FLOAT64 if t is WEAK_FLOAT else t) or KernelType(t)


def compile_kernel(function: Function) -> Any:
    """A kernel compiled by Numba.

    Args:
        function: The kernel.

    Returns:
        Numba's function, whose ``address`` is that of ``int64 kernel(int64* slots, int64* args)``
        as long as it lives.

    Raises:
        UnsupportedError: The kernel applies something that is no word.
        TypingError: A word is given what it does not take.
    """
    printed = Printed(function)
    namespace: dict[str, Any] = dict(printed.words)
    exec(compile(printed.text, "<kernel>", "exec"), namespace)
    word = numba_types.int64
    return numba.cfunc(word(word, word), error_model="numpy")(namespace["kernel"])


class _Operand(NamedTuple):
    """Operand of a word: a value of a type, or a number that is known."""

    type: Any
    number: Any = None


class Printed:
    """A kernel as a Python function of Numba's intrinsics, of which each knows its types.

    Args:
        function: The kernel.

    Attributes:
        text: Its definition.
        words: The intrinsics that it calls, by name.
    """

    def __init__(self, function: Function) -> None:
        function = simplified(function)
        types = give_types(function.body)
        self.types, self.signatures = types.variables, types.words
        self.numbers: dict[str, Any] = {}
        self.words: dict[str, Any] = {}
        self.names: dict[Any, str] = {}
        entries = [
            language.Assign(argument.name, Variable(f"{self.word(_entry, t)}({argument}_address)"))
            for argument, t in ((language.SLOTS, SLOTS), (language.WORDS, ARGS))
        ]
        end = language.Return(Variable(self.number(0, INT64)))
        body = [*entries, *self.statements(function.body), end]
        self.text = "\n".join(
            ["def kernel(slots_address, args_address):", *language.indented(body), ""]
        )

    def word(self, make: Callable[..., Any], *facts: Any) -> str:
        """The name of an intrinsic, which is made when it is first needed."""
        name = self.names.get((make, facts))
        if name is None:
            what = facts[0].name if hasattr(facts[0], "name") else "number"
            name = f"{what.partition('(')[0]}_{len(self.names)}"
            self.names[make, facts] = name
            self.words[name] = make(*facts)
        return name

    def number(self, number: Any, t: Any) -> str:
        """A number of type ``t``."""
        return f"{self.word(_constant, _Number(number), t)}()"

    def statements(self, body: Body) -> list[language.Statement]:
        """Statements whose expressions are texts of calls."""
        return [made for statement in body for made in self.statement(statement)]

    def statement(self, statement: language.Statement) -> Iterator[language.Statement]:
        target, operands, blocks = statement.parts()
        match statement:
            case language.Assign(name, Number(number)) if is_weak(self.types[name]):
                self.numbers[name] = number
                return
            case language.Assign(name):
                t = self.types[name]
            case language.Evaluate(value):
                t = self.type_of(value)
            case language.If() | language.While():
                t = BOOL
            case _:
                t = INT64
        texts = [Variable(self.expression(x, t)) for x in operands]
        inside = [self.statements(block) for block in blocks]
        if isinstance(statement, language.For):
            yield language.For(target, texts[0], texts[1], statement.step, inside[0])
        else:
            yield statement.of_parts(target, texts, inside)

    # Expressions.
    def type_of(self, x: Expression) -> Any:
        if isinstance(x, Apply):
            return self.signatures[x].return_type
        if isinstance(x, Variable):
            return self.types[x.name]
        assert isinstance(x, Number)
        return type_of_number(x.value)

    def expression(self, x: Expression, t: Any) -> str:
        """The text of an expression whose value is to be of type ``t``."""
        if isinstance(x, Apply):
            return self.call(x.word, x.operands, self.signatures[x], t)
        number = self.known(x)
        if number is not None:
            return self.number(number, t)
        source = self.type_of(x)
        return str(x) if source == t else f"{self.word(_conversion, source, t)}({x})"

    def known(self, x: Expression) -> Any:
        """The number that an expression is, or `None`."""
        if isinstance(x, Number):
            return x.value
        return self.numbers.get(x.name) if isinstance(x, Variable) else None

    def call(self, name: str, given: Sequence[Expression], signature: Signature, t: Any) -> str:
        operands, texts = [], []
        for x in given:
            number = self.known(x)
            source = self.type_of(x)
            if number is None:
                operands.append(_Operand(source))
                texts.append(self.expression(x, source))
            else:
                operands.append(_Operand(source, _Number(number)))
        word = self.word(_word, WORDS[name], signature, tuple(operands), t)
        return f"{word}({', '.join(texts)})"


class _Number:
    """A number by its type and bits: 1, 1.0 and True are three, and so are 0.0 and -0.0."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = type(value), repr(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Number) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


# Intrinsics. Each is made for the types, and the numbers, that it is given.
def _word(word: Any, signature: Signature, operands: Sequence[_Operand], t: Any) -> Any:
    def emit(builder: Builder, values: Sequence[Any]) -> Any:
        remaining = iter(values)
        given = [
            cast(builder, x.number.value if x.number else next(remaining), x.type, target)
            for x, target in zip(operands, signature.args, strict=True)
        ]
        found = word.emission(builder, signature, given)
        return None if t is NONE else cast(builder, found, signature.return_type, t)

    return _intrinsic([x.type for x in operands if x.number is None], t, emit)


def _constant(number: _Number, t: Any) -> Any:
    return _intrinsic([], t, lambda builder, values: cast(builder, number.value, None, t))


def _conversion(source: Any, t: Any) -> Any:
    return _intrinsic([source], t, lambda builder, values: cast(builder, values[0], source, t))


def _entry(t: Any) -> Any:
    """The address of an argument's words."""
    return _intrinsic(
        [INT64], t, lambda b, values: b.let(f"inttoptr {values[0]} to ptr", POINTER, "p")
    )


_NUMBERS = itertools.count()


def _intrinsic(
    sources: Sequence[Any], t: Any, emit: Callable[[Builder, Sequence[Any]], Any]
) -> Any:
    signature = _numba_type(t)(*map(_numba_type, sources))
    symbol = f"word_{next(_NUMBERS)}"
    module = _written(symbol, sources, t, emit)
    result = ir.VoidType() if t is NONE else _kept_type(t)

    def generate(context: Any, builder: ir.IRBuilder, _: Any, args: Sequence[Any]) -> Any:
        parts: list[Any] = []
        for value, source in zip(args, sources, strict=True):
            n = len(_part_types(source))
            parts += [value] if n == 1 else [builder.extract_value(value, k) for k in range(n)]
        # Memory of the stack lives as long as the kernel.
        for nbytes in module.functions[symbol].rooms:
            with builder.goto_entry_block():
                room = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes))
            room.align = 64
            parts.append(builder.bitcast(room, ir.PointerType()))
        found = builder.call(_defined(builder.module, module, symbol, result), parts)
        return context.get_dummy_value() if t is NONE else found

    def define(typing_context: Any, *args: Any) -> Any:
        return signature, generate

    names = ["typing_context", *(f"x{k}" for k in range(len(sources)))]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    define.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names]
    )
    return intrinsic(define)


def _written(
    symbol: str, sources: Sequence[Any], t: Any, emit: Callable[[Builder, Sequence[Any]], Any]
) -> Module:
    """A function of the parts of values that returns those of another one, and what it calls."""
    module = Module(has_hints=False)
    types = [type for source in sources for type in _part_types(source)]
    results = _part_types(t)
    text = ", ".join(map(str, results))
    result = results[0] if len(results) == 1 else Type(f"{{ {text} }}" if results else "void")
    function = llvm.Function(symbol, result, types, "alwaysinline nounwind")
    function.is_given_rooms = True
    builder = Builder(module, function)
    remaining, values = iter(builder.arguments("".join(map(_kinds, sources)))), []
    for source in sources:
        values.append(_joined([next(remaining) for _ in _part_types(source)], source))
    found = emit(builder, values)
    parts = [] if t is NONE else _parts(found)
    if len(parts) < 2:
        builder.end(f"ret {parts[0]}" if parts else "ret void")
    else:
        joined = Emitted(builder, "poison", result, "")
        for k, part in enumerate(parts):
            joined = joined.made(f"insertvalue {joined}, {part}, {k}")
        builder.end(f"ret {joined}")
    settle_formulas(module)
    return module


def _kinds(t: Any) -> str:
    """The kinds of a value's parts."""
    if isinstance(t, Lanes):
        return "ibb" if t.is_partial else "i"
    kind = KINDS.get(element_of(t)) or ("f" if t is WEAK_FLOAT else "i")
    return kind * len(_part_types(t))


class _Given(ir.Function):
    """A function of a module whose text is given."""

    def __init__(self, module: ir.Module, name: str, text: str, kind: Any) -> None:
        super().__init__(module, kind, name)
        self.text = text

    def __str__(self) -> str:
        return self.text


def _defined(numbas: ir.Module, module: Module, symbol: str, result: Any) -> ir.Function:
    """A function of a module, which with all that it calls becomes one of Numba's module."""
    found = numbas.globals.get(symbol)
    if found is not None:
        return found
    other = ir.FunctionType(ir.VoidType(), [])  # nothing of Numba calls these
    for name, text in module.declarations.items():
        if name not in numbas.globals:
            _Given(numbas, name, text + "\n", other)
    for name, function in module.functions.items():
        if name == symbol:
            arguments = [_numbas(type) for type in function.arguments]
            arguments += [ir.PointerType()] * len(function.rooms)
            kind = ir.FunctionType(result, arguments)
        else:
            kind = other
        if name not in numbas.globals:
            _Given(numbas, name, function.text(module.attributes.get(name, "")), kind)
    return numbas.globals[symbol]
