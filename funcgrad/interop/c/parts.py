"""Statements of arithmetic and formulas on lanes as loops over registers.

Compilers of C keep a variable of many lanes in memory where a loop over them assigns it: sums that
go round a loop would be loaded and stored at every step. Where a compiler has vectors (GNU C), a
variable is also an array of as many registers as it fills, which an unrolled loop leaves there.
Elsewhere a register holds one element, and the text is the same. Numbers of a statement and of its
neighbours have one width. Flags are masks, integers of that width whose bits are all 0 or all 1,
or bits where a processor has registers of them; in memory they are masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from funcgrad.compiler.loops.language import Apply, Assign, Evaluate, Expression, Variable
from funcgrad.compiler.native.types import BOOL, INT64, Lanes, Vector, element_of
from funcgrad.interop.c.formulas import VALUES
from funcgrad.interop.c.registers import compared, definition
from funcgrad.interop.c.words import FLAG_OPERATORS, OPERATORS, literal, short

PART = "part"
"""The number of a register, in C."""

_BYTES = 64
"""Bytes of the largest register: vectors fill some of them."""

_COMPARISONS = frozenset(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))
_BINARY = frozenset(("add", "radd", "subtract", "multiply", "rmul"))
_WORDS = {
    "f": _BINARY | {"divide", "negative", "muladd", "select", "splat"},
    "i": _BINARY
    | {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "negative", "muladd", "select"}
    | {"splat"},
    "b": _COMPARISONS | frozenset(FLAG_OPERATORS) | {"splat"},
}
"""Words that are operators of registers, by the kind of what they return; others are functions."""


class Loop(Protocol):
    """The printer of a stage (`lanes.Run`)."""

    printer: Any
    count: int
    local: set[str]

    def address_of(self, x: Apply, t: Any) -> str: ...

    def target_of(self, x: Apply) -> str: ...

    def place_of(self, x: Apply) -> str: ...

    def later(self, x: Apply, store: str, kind: str, count: str) -> str | None: ...

    def index_of(self, x: Expression) -> str: ...

    def declare(self, name: str) -> None: ...

    def divisor_of(self, text: str, kind: str) -> str: ...


def width_of_stage(loop: Loop, stage: Sequence[Assign | Evaluate]) -> int:
    """The bits of all numbers if all statements are arithmetic on registers; else 0."""
    targets = [_target(loop, x) for x in stage]
    widths = {int(short(t)[1:]) for _, t, _ in targets if t is not BOOL} or {64}
    (width, *others) = widths
    if others or width not in (32, 64) or loop.count * width // 8 % _BYTES:
        return 0
    are_plain = all(
        _is_number(t, width) or (t is BOOL and bool(name) and (width == 64 or name in loop.local))
        for name, t, _ in targets
    )
    return width if are_plain and all(_fits(loop, x, t, width) for _, t, x in targets) else 0


def _target(loop: Loop, x: Assign | Evaluate) -> tuple[str, Any, Expression]:
    """The variable that a statement assigns, if it does, the type of elements, and the value."""
    if isinstance(x, Assign):
        return x.name, loop.printer.types[x.name].element, x.value
    assert isinstance(x.value, Apply)
    return "", element_of(loop.printer.signatures[x.value].args[2]), x.value.operands[2]


def _is_number(t: Any, width: int) -> bool:
    return t is not BOOL and short(t) in (f"f{width}", f"i{width}")


def _fits(loop: Loop, x: Expression, t: Any, width: int) -> bool:
    """Whether an expression of elements of a type is one of registers."""
    if t is not BOOL and not _is_number(t, width):
        return False
    found = loop.printer.type_of(x)
    if isinstance(found, Lanes):
        return bool(t is INT64)
    if not isinstance(found, Vector) or loop.printer.known(x) is not None:
        return True
    if found.element is not t:
        return False
    if not isinstance(x, Apply):
        return t is not BOOL or width == 64 or str(x) in loop.local
    if x.word in ("load", "load_apart", "low", "high"):
        is_load = x.word.startswith("load")
        return t is not BOOL and (is_load or isinstance(x.operands[0], Variable))
    if x.word == "present":
        return all(_fits(loop, y, t, width) for y in x.operands[1:])
    if x.word in ("load_each", "load_run"):
        return t is not BOOL and width == 64 and _fits(loop, x.operands[1], INT64, width)
    if x.word == "load_where":
        return t is not BOOL and _fits(loop, x.operands[2], t, width)
    given = [element_of(s) for s in loop.printer.signatures[x].args]
    is_same = x.word == short(t) and (
        given[0] in (t, BOOL) or not isinstance(loop.printer.type_of(x.operands[0]), Vector)
    )
    words = ("select", *FLAG_OPERATORS) if given[0] is BOOL else _WORDS[short(t)[0]]
    is_word = is_same or x.word.startswith("bitcast_") or x.word in words
    if not is_word and (x.word in VALUES or definition(x.word, short(given[0])) is None):
        return False
    return all(_fits(loop, y, s, width) for y, s in zip(x.operands, given, strict=True))


def lines_of(loop: Loop, stage: Sequence[Assign | Evaluate], width: int) -> list[str]:
    """The statements of the body of a loop over registers, and before them its head."""
    printer = _Printer(loop, width)
    body = [printer.statement(x) for x in stage]
    head = f"for (int {PART} = 0; {PART} < {printer.n_parts}; {PART}++) {{"
    return [head, *printer.end(), *body, "}"]


def rare_of_registers(word: str, name: str, letters: str, kinds: Sequence[str], count: int) -> str:
    """Statements that compute a word with rare arguments, up to the test whether there are any.

    Args:
        word: The word.
        name: The short name of the type of numbers.
        letters: The names of pointers to lanes, or of numbers.
        kinds: The short names of their types.
        count: How many lanes there are.
    """
    given = [
        f"{a}->v[{PART}]" if "x" in kind else f"{a} - (fg_held_{name}){{0}}"
        for a, kind in zip(letters, kinds, strict=True)
    ]
    mask = f"i{name[1:]}"
    return (
        f"    fg_mask_{mask} rare = {{0}};\n    FG_UNROLL\n"
        f"    for (int {PART} = 0; {PART} < {count} / fg_count_{name}; {PART}++)\n"
        f"        r->v[{PART}] = fg_held_{word}_{name}({', '.join(given)}, &rare);\n"
        f"    if (fg_any_{mask}(rare))\n"
    )


class _Printer:
    """Prints statements of one register."""

    def __init__(self, loop: Loop, width: int) -> None:
        self.loop = loop
        self.mask = f"i{width}"
        self.step = self._use(f"fg_count_{self.mask}")
        self.n_parts = f"{loop.count} / {self.step}"
        self.first = f"{PART} * {self.step}"
        self.indices: set[str] = set()

    def _use(self, text: str) -> str:
        return self.loop.printer.prelude.use(text)

    def _held(self, t: Any) -> str:
        """The type of a register."""
        return self._use(f"fg_mask_{self.mask}" if t is BOOL else f"fg_held_{short(t)}")

    def statement(self, statement: Assign | Evaluate) -> str:
        name, t, value = _target(self.loop, statement)
        text = self._whole(value, t)
        if not name:
            assert isinstance(statement.value, Apply)
            to, value = self.loop.target_of(statement.value), statement.value
            store = f"{self._at(to, t)} = {{}};"
            if self.loop.printer.signatures[value].args[1].is_partial:
                count = f"{self.loop.index_of(value.operands[1])}.count"
                store = self._use(f"fg_kept_{short(t)}({to}, {self.first}, {count}, {{}});")
            row = self.loop.later(value, store, self._held(t), self.n_parts)
            self.indices.add(self._index(value) if row is None else "")
            return store.format(text) if row is None else f"{row}[{PART}] = {text};"
        if name in self.loop.local:
            return f"const {self._held(t)} {self._variable(name)} = {text};"
        self.loop.declare(name)
        self.indices.add(self._index_of_fold(name, value))
        if t is BOOL:
            text = self._use(f"fg_stored_{self.mask}({text})")
        return f"{self._variable(name)} = {text};"

    def end(self) -> list[str]:
        """The statement that leaves the loop where no more lanes are there.

        Nothing is stored there, and folds, which begin with what changes nothing, are as they were.
        """
        index = self.indices.pop() if len(self.indices) == 1 else ""
        return [f"if ({self.first} >= {index}.count) break;"] * bool(index)

    def _index_of_fold(self, name: str, value: Expression) -> str:
        """The index of the lanes that are folded into a variable, if some may not be there."""
        match value:
            case Apply(_, (Variable(of), Apply("present") as folded)) if name == of:
                return self._index(folded, 0)
        return ""

    def _index(self, x: Apply, place: int = 1) -> str:
        """The index of lanes that a word takes, if some may not be there."""
        is_partial = self.loop.printer.signatures[x].args[place].is_partial
        return self.loop.index_of(x.operands[place]) if is_partial else ""

    def _at(self, pointer: str, t: Any, is_read: bool = False) -> str:
        row = self._use(f"fg_row_{short(t)}")
        return f"*({'const ' * is_read}{row} *)({pointer} + {self.first})"

    def _variable(self, name: str, place: str = PART) -> str:
        text = self.loop.printer.name_of(name)
        return text if name in self.loop.local else f"{text}.v[{place}]"

    def _whole(self, x: Expression, t: Any) -> str:
        """An expression as a register."""
        text = self._text(x, t)
        if self._is_scalar(x):
            if t is BOOL:
                return self._use(f"fg_every_{self.mask}({text})")
            # The number is in every element, also -0.
            return f"{text} - ({self._held(t)}){{0}}"
        return text

    def _bare(self, x: Expression) -> Expression:
        """Strip conversions to the same type, and broadcasts to all lanes, from an expression."""
        type_of = self.loop.printer.type_of
        while (
            isinstance(x, Apply)
            and isinstance(found := type_of(x), Vector)
            and x.word in ("splat", short(found.element))
            and element_of(type_of(x.operands[0])) in (found.element, type_of(x.operands[0]))
        ):
            x = x.operands[0]
        return x

    def _is_scalar(self, x: Expression) -> bool:
        return not isinstance(self.loop.printer.type_of(self._bare(x)), Vector | Lanes)

    def _text(self, x: Expression, t: Any) -> str:
        """An expression, which is a number if it is one of all lanes."""
        loop, x = self.loop, self._bare(x)
        number = loop.printer.known(x)
        if self._is_scalar(x):
            if number is not None:
                return self._use(literal(number, t))
            return loop.printer.expression(x, t)
        if isinstance(loop.printer.type_of(x), Lanes):
            return f"({loop.index_of(x)}.first + {self._at(self._use('fg_iota_i64'), INT64, True)})"
        if isinstance(x, Variable):
            text = self._variable(x.name)
            is_stored = t is BOOL and x.name not in loop.local
            return self._use(f"fg_flags_{self.mask}({text})") if is_stored else text
        assert isinstance(x, Apply)
        if x.word in ("load", "load_apart"):
            place = loop.address_of(x, t)
            index = loop.printer.signatures[x].args[1]
            if x.word == "load" and index.is_partial:
                count = f"{loop.index_of(x.operands[1])}.count"
                return self._use(f"fg_loaded_{short(t)}({place}, {self.first}, {count})")
            return self._at(place, t, True)
        if x.word in ("low", "high"):
            place = PART if x.word == "low" else f"{PART} + {self.n_parts}"
            return self._variable(str(x.operands[0]), place)
        return self._word(x, t)

    def _word(self, x: Apply, t: Any) -> str:
        """A word at registers."""
        signature = self.loop.printer.signatures[x]
        word, args = x.word, [*map(element_of, signature.args)]
        if word == "present":
            value = self._whole(x.operands[1], t)
            if not signature.args[0].is_partial:
                return value
            mask = self._present(x.operands[0], signature.args[0])
            return self._chosen(t, mask, value, self._whole(x.operands[2], t))
        if word in ("load_each", "load_run"):
            pointer = self.loop.printer.expression(x.operands[0], signature.args[0])
            at = self._whole(x.operands[1], INT64)
            return self._use(f"fg_each_{short(t)}({pointer}, {at})")
        if word == "load_where":
            mask, other = self._present(x.operands[1], args[1]), self._whole(x.operands[2], t)
            place = f"{self.loop.place_of(x)}, {self.first}"
            return self._use(f"fg_where_{short(t)}({place}, {mask}, {other})")
        if word == short(t):  # a flag as a number
            one, zero = (f"{literal(k, t)} - ({self._held(t)}){{0}}" for k in (1, 0))
            return self._chosen(t, self._whole(x.operands[0], args[0]), one, zero)
        if word.startswith("bitcast_"):
            source, target = short(args[0]), short(t)
            given = self._whole(x.operands[0], args[0])
            return f"FG_AS({self._held(t)}, {self._use(f'fg_bits_{source}_{target}')}, {given})"
        if word == "select":
            return self._chosen(t, *map(self._whole, x.operands, args))
        kind, wholes = short(args[0]), [*map(self._whole, x.operands, args)]
        if args[0] is BOOL:
            return f"({_joined(FLAG_OPERATORS[word], wholes)})"
        if word in _COMPARISONS:
            return self._use(compared(OPERATORS[word], wholes, kind))
        if word == "muladd" or word not in _WORDS[short(t)[0]]:
            function = "fused" if word == "muladd" else f"held_{word}"
            return self._use(f"fg_{function}_{kind}({', '.join(wholes)})")
        texts = [self._text(y, s) for y, s in zip(x.operands, args, strict=True)]
        if word == "divide" and [*map(self._is_scalar, x.operands)] == [False, True]:
            divisor = self.loop.divisor_of(texts[1], kind)
            return self._use(f"fg_over_{kind}({texts[0]}, {divisor})")
        if all(map(self._is_scalar, x.operands)):
            # Operators take a number beside a register, but not two numbers.
            texts[0] = wholes[0]
        symbol = _SIGNS.get(word) or OPERATORS[word]
        if kind[0] == "i" and symbol in "+-*":  # wraps around
            unsigned = self._use(f"(fg_held_u{kind[1:]})"), f"(u{VALUES[kind]})"
            flags = map(self._is_scalar, x.operands)
            texts = [unsigned[flag] + text for flag, text in zip(flags, texts, strict=True)]
            return f"({self._held(t)})({_joined(symbol, texts)})"
        return f"({_joined(symbol, texts)})"

    def _chosen(self, t: Any, mask: str, a: str, b: str) -> str:
        function = f"fg_either_{self.mask}" if t is BOOL else f"fg_chosen_{short(t)}"
        return self._use(f"{function}({mask}, {a}, {b})")

    def _present(self, x: Expression, t: Lanes) -> str:
        """The mask of the lanes that an index has."""
        index = self.loop.index_of(x)
        there = self._use(f"fg_there_{self.mask}({index}.count - {self.first})")
        if not t.is_inner:
            return there
        return f"({there} & ~{self._use(f'fg_there_{self.mask}({index}.begin - {self.first})')})"


def _joined(symbol: str, texts: Sequence[str]) -> str:
    return f" {symbol} ".join(texts) if len(texts) > 1 else symbol + texts[0]


_SIGNS = {"negative": "-", "bitwise_not": "~"}
