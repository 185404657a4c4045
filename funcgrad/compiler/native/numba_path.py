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

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numba
from numba import types as numba_types

from funcgrad.compiler.loops import language
from funcgrad.compiler.loops.language import Apply, Body, Expression, Function, Number, Variable
from funcgrad.compiler.native import llvm
from funcgrad.compiler.native.complexes import KINDS, Complex, cast, llvm_type
from funcgrad.compiler.native.elementary import decide_inlining
from funcgrad.compiler.native.lanes import LaneIndex
from funcgrad.compiler.native.llvm import I1, I32, I64, POINTER, Module, Type
from funcgrad.compiler.native.numba_words import kernel_type, word
from funcgrad.compiler.native.scalars import Builder, Emitted
from funcgrad.compiler.native.signatures import give_types, type_of_number
from funcgrad.compiler.native.translate import simplified, translate
from funcgrad.compiler.native.types import (
    ARGS,
    BOOL,
    FLOAT64,
    INT64,
    NONE,
    PARTS,
    SLOTS,
    WEAK_FLOAT,
    Lanes,
    Signature,
    element_of,
    is_weak,
)
from funcgrad.compiler.native.vocabulary import WORDS


def _part_types(t: Any) -> list[Type]:
    """The LLVM types of the parts of a value as Numba keeps it: pointers are integers."""
    if t is NONE:
        return []
    if isinstance(t, Lanes):
        return [I64, I32, I1, I32][: 4 if t.is_inner else 3 if t.is_partial else 1]
    type = llvm_type(t)
    return [I64 if type is POINTER else type] * (2 if element_of(t) in PARTS else 1)


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


class Kind(NamedTuple):
    """The type of a value in Numba: the arguments of `numba_words.kernel_type`.

    Attributes:
        name: The name.
        parts: The LLVM types of its parts, as text.
    """

    name: str
    parts: tuple[str, ...]


@lru_cache(4096)
def _kind(t: Any) -> Kind:
    """The type in Numba of values of type ``t``."""
    name = (FLOAT64 if t is WEAK_FLOAT else t).name
    return Kind(name, tuple(map(str, _part_types(t))))


class Written(NamedTuple):
    """A word as a function of LLVM: the arguments of `numba_words.word`.

    Attributes:
        symbol: The name of the function.
        result: The type of what it returns.
        sources: The types of its arguments.
        assembly: Its definition and those of all functions that it calls, by name.
        rooms: Bytes of memory of the stack.
    """

    symbol: str
    result: Kind
    sources: tuple[Kind, ...]
    assembly: dict[str, str]
    rooms: tuple[int, ...]

    def intrinsic(self) -> Any:
        """The word for code that Numba compiles."""
        sources = [kernel_type(kind.name, *kind.parts) for kind in self.sources]
        result = kernel_type(self.result.name, *self.result.parts)
        return word(self.symbol, result, sources, self.assembly, *self.rooms)


def compile_kernel(function: Function) -> Any:
    """A kernel compiled by Numba.

    Args: function: The kernel.
    Returns: Numba's function, whose ``address`` is that of ``int64 kernel(int64* slots, int64*
        args)``, or of a function of other words, as long as it lives.

    Raises:
        UnsupportedError: The kernel applies something that is no word.
        TypingError: A word is given what it does not take.
    """
    vocabulary = Vocabulary()
    text = print_kernel(function, "kernel", vocabulary)
    namespace: dict[str, Any] = {name: x.intrinsic() for name, x in vocabulary.words.items()}
    exec(compile(text, "<kernel>", "exec"), namespace)
    words = [numba_types.int64 for _ in function.parameters]
    return numba.cfunc(words[0](*words), error_model="numpy")(namespace["kernel"])


class Vocabulary:
    """The words of kernels, each once for its types and the numbers that it is given.

    Attributes:
        words: Their functions, by the names that kernels call them.
    """

    def __init__(self) -> None:
        self.words: dict[str, Written] = {}
        self._names: dict[Any, str] = {}

    def name(self, make: Callable[..., Written], *facts: Any) -> str:
        """The name of a word, which is written when it is first needed.

        Args:
            make: Takes the name and the facts.
            facts: Which word it is, and the types that it is for.
        """
        name = self._names.get((make, facts))
        if name is None:
            what = facts[0].name if hasattr(facts[0], "name") else "number"
            name = self._names[make, facts] = f"{what.partition('(')[0]}_{len(self._names)}"
            self.words[name] = make(name, *facts)
        return name


class _Operand(NamedTuple):
    """Operand of a word: a value of a type, or a number that is known."""

    type: Any
    number: Any = None


def print_kernel(function: Function, name: str, vocabulary: Vocabulary) -> str:
    """A kernel as a Python function of words, of which each knows its types.

    Args:
        function: The kernel.
        name: Of the function.
        vocabulary: Gets the words.
    """
    lines = _Printer(simplified(function), vocabulary).lines
    of_arguments = {"slots": "slots_address", "args": "args_address"}
    arguments = [of_arguments.get(kind, x) for x, kind in function.parameters.items()]
    return "\n".join([f"def {name}({', '.join(arguments)}):", *lines, ""])


class _Printer:
    """Prints the statements of a kernel, with the types that its blocks have."""

    def __init__(self, function: Function, vocabulary: Vocabulary) -> None:
        # Numba vectorises all loops, and `translate` those of kernels without vectors: elsewhere
        # folds have the order in which they are written.
        self.has_order = translate(function, "kernel").is_in_vectors
        types = give_types(function)
        self.types, self.signatures = types.variables, types.words
        self.numbers: dict[str, Any] = {}
        self.word = vocabulary.name
        entries = [
            language.Assign(argument.name, Variable(f"{self.word(_entry, t)}({argument}_address)"))
            for argument, t in ((language.SLOTS, SLOTS), (language.WORDS, ARGS))
            if argument.name in function.parameters
        ]
        end = language.Return(Variable(self.number(0, INT64)))
        self.lines = [*language.indented([*entries, *self.statements(function.body), end])]

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
        word = self.word(_word, WORDS[name], signature, tuple(operands), t, self.has_order)
        return f"{word}({', '.join(texts)})"


class _Number:
    """Number compared by type and bits: 1, 1.0 and True differ, and so do 0.0 and -0.0."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = type(value), repr(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Number) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


# Words. Each is written for the types, and the numbers, that it is given.
def _word(
    symbol: str,
    word: Any,
    signature: Signature,
    operands: tuple[_Operand, ...],
    t: Any,
    has_order: bool,
) -> Written:
    def emit(builder: Builder, values: Sequence[Any]) -> Any:
        builder.module.has_order = has_order
        remaining = iter(values)
        given = [
            cast(builder, x.number.value if x.number else next(remaining), x.type, target)
            for x, target in zip(operands, signature.args, strict=True)
        ]
        found = word.emission(builder, signature, given)
        return None if t is NONE else cast(builder, found, signature.return_type, t)

    return _written(symbol, [x.type for x in operands if x.number is None], t, emit)


def _constant(symbol: str, number: _Number, t: Any) -> Written:
    return _written(symbol, [], t, lambda builder, values: cast(builder, number.value, None, t))


def _conversion(symbol: str, source: Any, t: Any) -> Written:
    return _written(symbol, [source], t, lambda b, values: cast(b, values[0], source, t))


def _entry(symbol: str, t: Any) -> Written:
    """The address of an argument's words."""
    return _written(
        symbol, [INT64], t, lambda b, values: b.let(f"inttoptr {values[0]} to ptr", POINTER, "p")
    )


def _written(
    symbol: str, sources: Sequence[Any], t: Any, emit: Callable[[Builder, Sequence[Any]], Any]
) -> Written:
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
    decide_inlining(module)
    assembly = {
        name: other.text(module.attributes.get(name, ""))
        for name, other in module.functions.items()
    }
    return Written(
        symbol,
        _kind(t),
        tuple(map(_kind, sources)),
        assembly | module.declarations,
        tuple(function.rooms),
    )


def _kinds(t: Any) -> str:
    """The kinds of a value's parts."""
    if isinstance(t, Lanes):
        return "iibi"[: len(_part_types(t))]
    kind = KINDS.get(element_of(t)) or ("f" if t is WEAK_FLOAT else "i")
    return kind * len(_part_types(t))
