"""Kernels as functions of C.

``print_function : function, name -> text``. Statements of the loop language have counterparts in C;
expressions are printed with the types that `native.signatures` gives, by `words`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from funcgrad.compiler.loops import language
from funcgrad.compiler.native.signatures import give_types, type_of_number
from funcgrad.compiler.native.translate import simplified
from funcgrad.compiler.native.types import BOOL, INT64, NONE, Lanes, Vector, Words, is_weak
from funcgrad.interop.c.lanes import Run, accesses, area, count_of, is_same, named
from funcgrad.interop.c.words import Prelude, c_type, convert, literal


def print_function(function: language.Function, name: str, prelude: Prelude) -> str:
    """The definition of ``int64_t name(int64_t *slots, const int64_t *args)``.

    Args:
        function: The kernel.
        name: Of the function.
        prelude: Gets what the function uses.
    """
    printer = _Printer(simplified(function), prelude)
    head = f"static int64_t {name}(int64_t *slots, const int64_t *args) {{"
    return "\n".join([head, *printer.lines, "    return 0;", "}"])


class _Printer:
    """Prints the statements of a kernel, with the types that its blocks have."""

    def __init__(self, function: language.Function, prelude: Prelude) -> None:
        types = give_types(function)
        self.types, self.signatures = types.variables, types.words
        self.prelude = prelude
        self.numbers: dict[str, Any] = {}
        self.lines: list[str] = []
        self.n_loops = 0
        self.declared = {"slots", "args"}
        self.n_places = 0
        self.uses = Counter(
            x.name for body_x in language.expressions(function.body) for x in _variables(body_x)
        )
        for name in sorted(types.in_memory - self.declared):
            self.declare(name)
        for argument in ("slots", "args"):
            if argument not in self.uses:
                self.write(1, f"(void){argument};")
        self.statements(function.body, 1)

    def declare(self, name: str) -> None:
        """Declare a variable that is assigned more than once."""
        t = self.types[name]
        kind = self.prelude.use(c_type(t))
        zero = "{0}" if isinstance(t, Vector | Lanes) or kind.startswith("fg_complex") else "0"
        self.write(1, f"{kind}{'' if kind.endswith('*') else ' '}{named(name)} = {zero};")
        if name not in self.uses:
            self.write(1, f"(void){named(name)};")
        self.declared.add(name)

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statements(self, body: language.Body, depth: int) -> None:
        for count, group in itertools.groupby(body, lambda x: count_of(self, x)):
            if count:
                Run(self, count, depth).print(list(group))
                continue
            for statement in group:
                self.statement(statement, depth)

    def statement(self, statement: language.Statement, depth: int) -> None:
        self.depth = depth
        match statement:
            case language.Assign(name, value):
                self.assign(name, value, depth)
            case language.Evaluate(language.Apply("store", (*places, value, area)) as x) if (
                isinstance(self.signatures[x].args[1], Lanes)
            ):
                found = language.Variable(self.vector(value, self.signatures[x].args[2]))
                store = language.Apply("store", (*places, found, area))
                self.signatures[store] = self.signatures[x]
                Run(self, self.types[found.name].count, depth).print([language.Evaluate(store)])
            case language.Evaluate(value):
                text = self.expression(value, self.type_of(value))
                if text:
                    self.write(depth, f"{text};")
            case language.Break():
                self.write(depth, "break;")
            case language.Return(value):
                self.write(depth, f"return {self.expression(value, INT64)};")
            case language.If(test, body, otherwise):
                self.write(depth, f"if ({self.test(test)}) {{")
                self.statements(body, depth + 1)
                if otherwise:
                    self.write(depth, "} else {")
                    self.statements(otherwise, depth + 1)
                self.write(depth, "}")
            case language.While(test, body):
                self.write(depth, f"while ({self.test(test)}) {{")
                self.statements(body, depth + 1)
                self.write(depth, "}")
            case language.For():
                self.count(statement, depth)

    def assign(self, name: str, value: language.Expression, depth: int) -> None:
        t = self.types[name]
        if is_weak(t) and isinstance(value, language.Number):
            self.numbers[name] = value.value
            return
        if isinstance(t, Vector):
            assert isinstance(value, language.Apply)
            text = self.call(value)
        else:
            text = self.expression(value, t)
        if name in self.declared:
            self.write(depth, f"{named(name)} = {_bare(text)};")
            return
        kind = self.prelude.use(c_type(t))
        if name not in self.uses:
            self.write(depth, f"(void){text};")
            return
        space = "" if kind.endswith("*") else " "
        self.write(depth, f"{kind}{space}{named(name)} = {_bare(text)};")

    def count(self, loop: language.For, depth: int) -> None:
        start, stop = (self.expression(x, INT64) for x in (loop.start, loop.stop))
        name = named(loop.index)
        step = f"{name}++" if loop.step == 1 else f"{name} += {loop.step}"
        relation = "<" if loop.step > 0 else ">"
        kind = "" if loop.index in self.declared else "int64_t "
        end = f"end{self.n_loops}"
        self.n_loops += 1
        self.write(depth, f"const int64_t {end} = {_bare(stop)};")
        if _is_independent(loop):
            self.write(depth, "FG_INDEPENDENT")
        self.write(
            depth, f"for ({kind}{name} = {_bare(start)}; {name} {relation} {end}; {step}) {{"
        )
        self.statements(loop.body, depth + 1)
        self.write(depth, "}")

    def test(self, test: language.Expression) -> str:
        return _bare(self.expression(test, BOOL))

    # Expressions.

    def type_of(self, x: language.Expression) -> Any:
        if isinstance(x, language.Apply):
            return self.signatures[x].return_type
        if isinstance(x, language.Variable):
            return self.types[x.name]
        assert isinstance(x, language.Number)
        return type_of_number(x.value)

    def name_of(self, name: str) -> str:
        """The name of a variable in C."""
        return named(name)

    def known(self, x: language.Expression) -> Any:
        """The number that an expression is, or `None`."""
        if isinstance(x, language.Number):
            return x.value
        return self.numbers.get(x.name) if isinstance(x, language.Variable) else None

    def expression(self, x: language.Expression, t: Any) -> str:
        """The text of an expression whose value is to be of type ``t``."""
        if isinstance(t, Vector):
            return named(self.vector(x, t))
        number = self.known(x)
        if number is not None:
            return self.prelude.use(literal(number, t))
        text = self.call(x) if isinstance(x, language.Apply) else named(str(x))
        return self.converted(text, self.type_of(x), t)

    def new(self, t: Any) -> str:
        """A variable for what is used in other statements than the one that computes it."""
        numbers = itertools.count(len(self.types))
        name = next(name for name in (f"u{k}" for k in numbers) if name not in self.types)
        self.types[name] = t
        self.uses[name] = -1
        return name

    def vector(self, x: language.Expression, t: Any) -> str:
        """The variable that a vector is in."""
        if isinstance(x, language.Variable) and self.types[x.name] == t:
            return x.name
        name = self.new(t)
        assign = language.Assign(name, x)
        if count_of(self, assign):
            Run(self, t.count, self.depth).print([assign])
        else:
            assert isinstance(x, language.Apply)
            self.write(self.depth, f"{self.prelude.use(c_type(t))} {name} = {self.call(x)};")
        return name

    def call(self, x: language.Apply) -> str:
        signature = self.signatures[x]
        if x.word == "room":
            words = -(-signature.args[0].literal_value // 8)
            name = f"room{len(self.lines)}"
            self.lines.insert(0, f"    int64_t {name}[{words}];")
            return f"((int64_t)(intptr_t){name})"
        given = [
            self.expression(operand, t)
            for operand, t in zip(x.operands, signature.args, strict=True)
        ]
        return self.prelude.call(x.word, signature, given)

    def converted(self, text: str, source: Any, t: Any) -> str:
        if source == t or t is NONE or isinstance(t, Words | Lanes):
            return text
        return self.prelude.use(convert(text, source, t))


def _variables(x: language.Expression) -> Iterator[language.Variable]:
    if isinstance(x, language.Variable):
        yield x
    elif isinstance(x, language.Apply):
        for operand in x.operands:
            yield from _variables(operand)


def _bare(text: str) -> str:
    """A text without the parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]


def _is_independent(loop: language.For) -> bool:
    """Whether iterations of a loop without others in it read nothing that others write.

    Areas of memory with different numbers do not overlap (`docs/compiler.md`). Of one that is
    written, every iteration may touch one place, which is its own: that of the index.
    """
    body = loop.body
    if any(isinstance(x, language.For | language.While | language.If) for x in body):
        return False
    touched = [x for each in language.expressions(body) for x in accesses(each)]
    stores = [x for x in touched if x.word == "store"]
    if not stores or any(x.word not in ("load", "store") for x in touched):
        return False
    written = {area(x): x.operands[:2] for x in stores}
    inner = set(language.assigned(body))
    return all(
        is_same(x.operands[:2], place)
        and isinstance(place[0], language.Variable)
        and place[0].name not in inner
        and isinstance(place[1], language.Variable)
        and place[1].name == loop.index
        for x in touched
        if (place := written.get(area(x))) is not None
    )
