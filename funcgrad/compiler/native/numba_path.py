"""Kernels compiled by `numba.njit`, through what Numba promises to keep.

``compile_kernel : function -> function of Numba``. A kernel applies words. Here every
word becomes an intrinsic of Numba for the types that it is given (`numba.extending`), the vectors,
pointers and lanes of kernels become types of Numba, and the kernel is printed as a Python function
of those. Numba compiles it as it compiles any other.

This is the reference for the translation that kernels take by default (`translate`): both emit the
instructions of a word by the same code, all else is each one's own. It takes ten times as long or
more, and nothing of it is kept on disk. ``FUNCGRAD_NUMBA=public`` selects it, and so does a release
of llvmlite that was never tested (`runtime.releases`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numba
from llvmlite import ir
from numba import types as numba_types
from numba.extending import intrinsic, models, register_model

from funcgrad.compiler.loops import language
from funcgrad.compiler.loops.language import Body, Expression, Function
from funcgrad.compiler.native.blocks import Number, Variable, WordCall, Writer, simplified
from funcgrad.compiler.native.scalars import I1, I64, POINTER
from funcgrad.compiler.native.signatures import give_types, type_of_number
from funcgrad.compiler.native.translate import KernelModule, cast
from funcgrad.compiler.native.types import (
    ARGS,
    BOOL,
    FLOAT64,
    INT64,
    NONE,
    SCALARS,
    SLOTS,
    WEAK_FLOAT,
    Lanes,
    Signature,
    is_weak,
)
from funcgrad.compiler.native.vocabulary import WORDS, LaneIndex, llvm_type


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


def _kept_type(t: Any) -> Any:
    if isinstance(t, Lanes):
        return ir.LiteralStructType([I64, ir.VectorType(I1, t.count), I1]) if t.is_partial else I64
    return I64 if llvm_type(t) is POINTER else llvm_type(t)


def _kept(builder: ir.IRBuilder, value: Any, t: Any) -> Any:
    """A value as Numba keeps it: an index of lanes as its parts, a pointer as an integer."""
    if isinstance(t, Lanes):
        if not t.is_partial:
            return value.first
        found = ir.Constant(_kept_type(t), ir.Undefined)
        for k, part in enumerate(value):
            found = builder.insert_value(found, part, k)
        return found
    return builder.ptrtoint(value, I64) if llvm_type(t) is POINTER else value


def _given(builder: ir.IRBuilder, value: Any, t: Any) -> Any:
    """The inverse of `_kept`."""
    if isinstance(t, Lanes):
        if not t.is_partial:
            return LaneIndex(value)
        return LaneIndex(*(builder.extract_value(value, k) for k in range(3)))
    return builder.inttoptr(value, POINTER) if llvm_type(t) is POINTER else value


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
    printed = print_kernel(function)
    namespace: dict[str, Any] = dict(printed.words)
    exec(compile(printed.text, "<kernel>", "exec"), namespace)
    word = numba_types.int64
    return numba.cfunc(word(word, word), error_model="numpy")(namespace["kernel"])


class Printed(NamedTuple):
    """A kernel as a Python function.

    Attributes:
        text: Its definition.
        words: The intrinsics that it calls, by name.
    """

    text: str
    words: dict[str, Any]


def print_kernel(function: Function) -> Printed:
    """A kernel as a Python function of Numba's intrinsics, of which each knows its types.

    Args:
        function: The kernel.
    """
    printer = _Printer(simplified(function, WORDS))
    return Printed("\n".join(printer.lines) + "\n", printer.words)


class _Operand(NamedTuple):
    """What a word is given: a value of a type, or a number that is known."""

    type: Any
    number: Any = None


class _Printer:
    """Prints the statements of a kernel, with the types that its blocks have."""

    def __init__(self, function: Function) -> None:
        written = Writer(WORDS).write(function)
        self.types, self.calls = give_types(written.blocks)
        self.values = written.values
        self.numbers: dict[str, Any] = {}
        self.words: dict[str, Any] = {}
        self.names: dict[Any, str] = {}
        self.lines = ["def kernel(slots_address, args_address):"]
        for argument, t in ((language.SLOTS, SLOTS), (language.WORDS, ARGS)):
            self.write(1, f"{argument} = {self.word(_entry, t)}({argument}_address)")
        self.statements(function.body, 1)
        self.write(1, f"return {self.number(0, INT64)}")

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

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

    def statements(self, body: Body, depth: int) -> None:
        for statement in body:
            self.statement(statement, depth)
        if not body:
            self.write(depth, "pass")

    def statement(self, statement: language.Statement, depth: int) -> None:
        match statement:
            case language.Assign(name, value):
                t, found = self.types[name], self.values[value]
                if is_weak(t) and isinstance(found, Number):
                    self.numbers[name] = found.value
                else:
                    self.write(depth, f"{name} = {self.expression(value, t)}")
            case language.Evaluate(value):
                self.write(depth, self.expression(value, self.type_of(value)))
            case language.Break():
                self.write(depth, "break")
            case language.Return(value):
                self.write(depth, f"return {self.expression(value, INT64)}")
            case language.If(test, body, otherwise):
                self.write(depth, f"if {self.expression(test, BOOL)}:")
                self.statements(body, depth + 1)
                if otherwise:
                    self.write(depth, "else:")
                    self.statements(otherwise, depth + 1)
            case language.While(test, body):
                self.write(depth, f"while {self.expression(test, BOOL)}:")
                self.statements(body, depth + 1)
            case language.For(index, start, stop, step, body):
                bounds = ", ".join(self.expression(x, INT64) for x in (start, stop))
                self.write(depth, f"for {index} in range({bounds}, {step}):")
                self.statements(body, depth + 1)

    # Expressions.
    def type_of(self, x: Expression) -> Any:
        value = self.values[x]
        if isinstance(value, WordCall):
            return self.calls[value].return_type
        if isinstance(value, Variable):
            return self.types[value.name]
        assert isinstance(value, Number)
        return type_of_number(value.value)

    def expression(self, x: Expression, t: Any) -> str:
        """The text of an expression whose value is to be of type ``t``."""
        value = self.values[x]
        if isinstance(value, WordCall):
            assert isinstance(x, language.Apply)
            return self.call(value.word.name, x.operands, self.calls[value], t)
        number = self.known(x)
        if number is not None:
            return self.number(number, t)
        assert isinstance(value, Variable)
        source = self.types[value.name]
        return value.name if source == t else f"{self.word(_conversion, source, t)}({value.name})"

    def known(self, x: Expression) -> Any:
        """The number that an expression is, or `None`."""
        value = self.values[x]
        if isinstance(value, Number):
            return value.value
        return self.numbers.get(value.name) if isinstance(value, Variable) else None

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
    def emit(builder: ir.IRBuilder, values: Sequence[Any]) -> Any:
        remaining = iter(values)
        given = [
            cast(builder, _literal(x) if x.number else next(remaining), x.type, target)
            for x, target in zip(operands, signature.args, strict=True)
        ]
        return cast(builder, word.emit(builder, signature, given), signature.return_type, t)

    return _intrinsic([x.type for x in operands if x.number is None], t, emit)


def _literal(operand: _Operand) -> Any:
    """The LLVM constant of a number that is known, before it is cast."""
    return ir.Constant(llvm_type(operand.type), operand.number.value)


def _constant(number: _Number, t: Any) -> Any:
    source = type_of_number(number.value)
    literal = ir.Constant(llvm_type(source), number.value)
    return _intrinsic([], t, lambda builder, values: cast(builder, literal, source, t))


def _conversion(source: Any, t: Any) -> Any:
    return _intrinsic([source], t, lambda builder, values: cast(builder, values[0], source, t))


def _entry(t: Any) -> Any:
    """The address of an argument's words."""
    return _intrinsic([INT64], t, lambda builder, values: builder.inttoptr(values[0], POINTER))


def _intrinsic(
    sources: Sequence[Any], t: Any, emit: Callable[[ir.IRBuilder, Sequence[Any]], Any]
) -> Any:
    signature = _numba_type(t)(*map(_numba_type, sources))

    def generate(context: Any, builder: ir.IRBuilder, _: Any, args: Sequence[Any]) -> Any:
        KernelModule.adopt(builder.module)
        values = [_given(builder, x, s) for x, s in zip(args, sources, strict=True)]
        found = emit(builder, values)
        return context.get_dummy_value() if t is NONE else _kept(builder, found, t)

    def define(typing_context: Any, *args: Any) -> Any:
        return signature, generate

    names = ["typing_context", *(f"x{k}" for k in range(len(sources)))]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    define.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names]
    )
    return intrinsic(define)
