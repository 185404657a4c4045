"""Statements of plain arithmetic on lanes as loops over registers.

Compilers of C keep a variable of many lanes in memory where a loop over them assigns it: sums that
go round a loop would be loaded and stored at every step. Where a compiler has vectors (GNU C), a
variable is also an array of as many registers as it fills, which an unrolled loop leaves there.
Elsewhere a register holds one element, and the text is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from funcgrad.compiler.loops.language import Apply, Assign, Evaluate, Expression, Variable
from funcgrad.compiler.native.types import SCALARS, Lanes, Vector
from funcgrad.interop.c.words import literal, short

PART = "part"
"""The number of a register, in C."""

_BYTES = 64
"""Bytes of the largest register: vectors fill some of them."""

_FLOATS = tuple(t for name, t in SCALARS.items() if name[0] == "f")

_SYMBOLS = {
    "add": "+", "radd": "+", "subtract": "-", "multiply": "*", "rmul": "*", "divide": "/",
}  # fmt: skip


class Loop(Protocol):
    """The printer of a stage (`lanes.Run`)."""

    printer: Any
    count: int
    local: set[str]

    def address_of(self, x: Apply, t: Any) -> str: ...

    def target_of(self, x: Apply) -> str: ...

    def declare(self, name: str) -> None: ...


def type_of_stage(loop: Loop, stage: Sequence[Assign | Evaluate]) -> Any:
    """The floating type if all statements are plain arithmetic in one; else ``None``."""
    types = set()
    for statement in stage:
        if isinstance(statement, Assign):
            types.add(loop.printer.types[statement.name].element)
        else:
            types.add(loop.printer.signatures[statement.value].args[2].element)
    if len(types) != 1 or not types <= set(_FLOATS):
        return None
    (t,) = types
    if loop.count * int(short(t)[1:]) // 8 % _BYTES:
        return None
    values = [x.value if isinstance(x, Assign) else x.value.operands[2] for x in stage]
    return t if all(_is_plain(loop, x, t) for x in values) else None


def _is_plain(loop: Loop, x: Expression, t: Any) -> bool:
    if loop.printer.known(x) is not None:
        return True
    found = loop.printer.type_of(x)
    if not isinstance(found, Vector | Lanes):
        return bool(found == t)
    if isinstance(found, Lanes) or found.element != t:
        return False
    if not isinstance(x, Apply):
        return True
    if x.word in ("low", "high"):
        return isinstance(x.operands[0], Variable)
    is_plain = x.word in _SYMBOLS or x.word in ("load", "splat", "negative", "muladd", short(t))
    return is_plain and (x.word == "load" or all(_is_plain(loop, y, t) for y in x.operands))


def lines_of(loop: Loop, stage: Sequence[Assign | Evaluate], t: Any) -> list[str]:
    """The statements of the body of a loop over registers, and before them its head."""
    printer = _Printer(loop, t)
    body = [printer.statement(x) for x in stage]
    return [f"for (int {PART} = 0; {PART} < {printer.n_parts}; {PART}++) {{", *body, "}"]


class _Printer:
    """Prints statements of one register."""

    def __init__(self, loop: Loop, t: Any) -> None:
        self.loop = loop
        self.t = t
        self.held, self.row, self.step = (
            loop.printer.prelude.use(f"fg_{x}_{short(t)}") for x in ("held", "row", "count")
        )
        self.n_parts = f"{loop.count} / {self.step}"

    def statement(self, statement: Assign | Evaluate) -> str:
        if isinstance(statement, Evaluate):
            assert isinstance(statement.value, Apply)
            to = self.loop.target_of(statement.value)
            return f"{self._at(to, self.row)} = {self._whole(statement.value.operands[2])};"
        name, text = statement.name, self._whole(statement.value)
        if name in self.loop.local:
            return f"const {self.held} {self._variable(name)} = {text};"
        self.loop.declare(name)
        return f"{self._variable(name)} = {text};"

    def _at(self, pointer: str, row: str) -> str:
        return f"*({row} *)({pointer} + {PART} * {self.step})"

    def _variable(self, name: str, place: str = PART) -> str:
        text = self.loop.printer.name_of(name)
        return text if name in self.loop.local else f"{text}.v[{place}]"

    def _whole(self, x: Expression) -> str:
        """An expression as a register."""
        text = self._text(x)
        if self._is_scalar(x):
            return f"{text} - ({self.held}){{0}}"  # is the number in every element, also -0
        return text

    def _bare(self, x: Expression) -> Expression:
        """Strip conversions to the same type, and broadcasts to all lanes, from an expression."""
        while (
            isinstance(x, Apply)
            and x.word in ("splat", short(self.t))
            and isinstance(self.loop.printer.type_of(x), Vector)
        ):
            x = x.operands[0]
        return x

    def _is_scalar(self, x: Expression) -> bool:
        return not isinstance(self.loop.printer.type_of(self._bare(x)), Vector)

    def _text(self, x: Expression) -> str:
        """An expression, which is a number if it is one of all lanes."""
        loop, x = self.loop, self._bare(x)
        number = loop.printer.known(x)
        if number is not None:
            return loop.printer.prelude.use(literal(number, self.t))
        if self._is_scalar(x):
            return loop.printer.expression(x, self.t)
        if isinstance(x, Variable):
            return self._variable(x.name)
        assert isinstance(x, Apply)
        match x.word:
            case "load":
                return self._at(loop.address_of(x, self.t), f"const {self.row}")
            case "low" | "high":
                place = PART if x.word == "low" else f"{PART} + {self.n_parts}"
                return self._variable(str(x.operands[0]), place)
            case "negative":
                return f"(-{self._text(x.operands[0])})"
            case "muladd":
                given = ", ".join(map(self._whole, x.operands))
                return loop.printer.prelude.use(f"fg_fused_{short(self.t)}({given})")
        a, b = x.operands
        # Operators take a number beside a register, but not two numbers.
        first = self._whole(a) if self._is_scalar(a) and self._is_scalar(b) else self._text(a)
        return f"({first} {_SYMBOLS[x.word]} {self._text(b)})"
