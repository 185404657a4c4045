"""Words of kernels written in C for registers: all elements of one at once.

``definition : word, type -> function of C``. Values are registers (GNU C has operators for them),
flags are masks, and numbers stand beside registers as they are. So whether a loop over lanes
becomes vectors is not left to what a compiler knows of the loop, and the vectors are those that
the process computes. Where a compiler has no registers, one holds one element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

from funcgrad.compiler.native.llvm import Type
from funcgrad.compiler.native.scalars import Emitted
from funcgrad.interop.c.formulas import (
    SYMBOLS,
    VALUES,
    WRAPPING,
    Definition,
    Writer,
    Written,
    function_of,
    short_name,
)
from funcgrad.interop.c.functions import scalar_function

_FUNCTIONS = {
    "fma": "fused", "fmuladd": "fused", "fabs": "size", "copysign": "signed",
    "maximum": "upper", "minimum": "lower",
    **{name: name for name in ("sqrt", "rint", "floor", "ceil", "trunc")},
}  # fmt: skip
"""Functions of LLVM that are functions of registers, by their names in `functions.REGISTERS`."""

_ORDERS = {"==": "same", "!=": "unequal", "<": "less", "<=": "atmost", ">": "less", ">=": "atmost"}


def compared(symbol: str, given: Sequence[str], name: str) -> str:
    """The flags of an order of two registers.

    Args:
        symbol: The operator.
        given: The registers.
        name: The short name of the type of their elements.
    """
    a, b = reversed(given) if symbol[0] == ">" else given
    return f"fg_{_ORDERS[symbol]}_{name}({a}, {b})"


class _Held(Written):
    """A register, or a number beside registers."""

    __slots__ = ("is_number",)

    builder: _Registers

    def __init__(self, *args: Any, is_number: bool = False) -> None:
        super().__init__(*args)
        self.is_number = is_number

    @property
    def register(self) -> str:
        """The text of a register: a number is in every element, also -0."""
        if not self.is_number:
            return self.text
        if self.kind == "b":
            return f"fg_every_{self.builder.mask}({self.text})"
        return f"{self.text} - ({self.builder.c_type(short_name(self))}){{0}}"

    def of_kind(self, kind: str) -> Written:
        if kind == self.kind:
            return self
        other = _Held(self.builder, self.text, self.type, kind, is_number=self.is_number)
        name = short_name(other)
        held = VALUES[name] if self.is_number else f"fg_held_{name}"
        other.text = f"(({held}){self.text})"
        return other

    def _binary(self, other: Any, name: str) -> Written:
        right = self.constant(other)
        a, b = self.text, right.text
        if self.kind == "b":
            return self.builder.combined(name, self, right)
        if self.kind == "f":
            return self.made(f"{a} {SYMBOLS[name]} {b}")
        if name in WRAPPING:
            a, b = self.of_kind("u").text, right.of_kind("u").text
        return self.made(f"(fg_held_{short_name(self)})({a} {SYMBOLS[name]} {b})")

    def compare(self, symbol: str, other: Any, kind: str = "") -> Written:
        given = [x.of_kind(kind or self.kind) for x in (self, self.constant(other))]
        return self.flag(compared(symbol, _texts(given), short_name(given[0])))

    def isnan(self) -> Written:
        return self.compare("!=", self)

    def select(self, a: Any, b: Any, is_unpredictable: bool = False) -> Emitted:
        a = a if isinstance(a, Emitted) else b.constant(a)
        b = a.constant(b)
        kind = short_name(a)
        function = f"either_{self.builder.mask}" if kind == "b1" else f"chosen_{kind}"
        return a.made(f"fg_{function}({', '.join([self.text, *_texts([a, b])])})")

    def intrinsic(self, name: str, *others: Emitted) -> Written:
        function = _FUNCTIONS.get(name)
        if function is None:
            return self.call(name, *others)
        return self.made(f"fg_{function}_{short_name(self)}({', '.join(_texts((self, *others)))})")

    def converted(self, instruction: str, to: Type, kind: str) -> Written:
        builder = self.builder
        if self.kind == "b" and to.width == builder.width:
            one, zero = builder.number(to, 1, kind), builder.number(to, 0, kind)
            return cast(Written, self.select(one, zero))
        found = _Held(builder, "", to, kind)
        builder.fits &= instruction == "bitcast"
        source, target = short_name(self), short_name(found)
        text = f"FG_AS(fg_held_{target}, fg_bits_{source}_{target}, {self.register})"
        return builder.let(text, to, kind)

    def call(self, name: str, *others: Emitted) -> Written:
        self.builder.fits = False
        return self


def _texts(values: Iterable[Emitted]) -> list[str]:
    """Values as registers."""
    return [cast(_Held, x).register for x in values]


class _Registers(Writer):
    """Appends statements to a function of registers.

    Attributes:
        fits: Whether all that is computed is in registers of one width.
    """

    value = _Held

    def __init__(self, name: str) -> None:
        super().__init__(True, name)
        self.width = int(name[1:])
        self.mask = f"i{self.width}"
        self.rare_type = f"fg_mask_{self.mask}"
        self.fits = True

    def c_type(self, short: str) -> str:
        return f"fg_mask_{self.mask}" if short == "b1" else f"fg_held_{short}"

    def symbol(self, word: str, name: str) -> str:
        return f"fg_held_{word}_{name}"

    def returned(self, result: Any, short: str) -> list[str]:
        self.fits &= not result.is_number
        return [f"return {result.register};"]

    def plain(self, word: str, name: str, letters: str) -> list[str]:
        """One element after the other."""
        given = ", ".join(f"((const fg_{name} *)&{letter})[k]" for letter in letters)
        call = f"fg_{word}_{name}({given})"
        return [
            f"{self.c_type(name)} r = {{0}};",
            f"for (int k = 0; k < fg_count_{name}; k++) ((fg_{name} *)&r)[k] = {call};",
            "return r;",
        ]

    def combined(self, name: str, *flags: Emitted) -> Written:
        return self.let(f" {SYMBOLS[name]} ".join(_texts(flags)), flags[0].type, "b")

    def number(self, type: Type, number: Any, kind: str = "i") -> Written:
        if kind == "b":
            return _Held(self, "true" if number else "false", type, kind, is_number=True)
        found: Any = super().number(type, number, kind)
        found.is_number = True
        return found

    def call(
        self, name: str, type: Type, kind: str, *args: Emitted, flags: str = "", hints: str = ""
    ) -> Written:
        word, _, rest = name.partition(".")
        found = None if rest == "rare" else definition(word, short_name(args[0]))
        if found is None:
            self.fits = False
            return cast(Written, args[0])
        given = _texts(args)
        if found.has_rare:
            self.has_rare = True
            given.append("rare")
        return self.let(f"fg_held_{word}_{short_name(args[0])}({', '.join(given)})", type, kind)

    def if_any(self, flags: Emitted, usual: Emitted, compute: Any) -> Emitted:
        self.has_rare = True
        self.lines.append(f"*rare |= {flags.text};")
        return usual


@lru_cache(4096)
def definition(word: str, name: str) -> Definition | None:
    """The function of a word at registers; nothing if it needs others, loops or libm.

    Args:
        word: The word.
        name: The short name of the type of its arguments.
    """
    if name not in ("f32", "f64", "i32", "i64") or (name[0] == "i" and scalar_function(word, name)):
        return None
    writer = _Registers(name)
    found = function_of(writer, word, name)
    return found if writer.fits else None
