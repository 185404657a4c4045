"""Words of kernels written in C, by the emissions that also write instructions of LLVM.

``definition : word, type -> function of C``. A word is given values that are names in C. They have
the operators of `native.scalars.Emitted`, so formulas of `vecmath` and all words that are made of
operators are written once for both languages, and their results are the same to the last bit.

A formula may leave rare arguments to libm. Loops over lanes with such a branch would not be
vectorised: for them there is a second function, which notes that an argument is rare. What writes
functions of registers is a `Writer`, too (`registers`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, cast

from funcgrad.compiler.native.complexes import KINDS, Complex
from funcgrad.compiler.native.llvm import F32, F64, I1, Type, integer
from funcgrad.compiler.native.scalars import Builder, Emitted
from funcgrad.compiler.native.types import PARTS, SCALARS
from funcgrad.compiler.native.vecmath.formulas import FORMULAS
from funcgrad.compiler.native.vocabulary import WORDS
from funcgrad.intrinsics import INTRINSICS, SHORT

VALUES = {
    "b1": "bool", "f32": "float", "f64": "double", "c64": "fg_complex64", "c128": "fg_complex128",
    **{f"{k}{bits}": f"{'u' * (k == 'u')}int{bits}_t" for k in "iu" for bits in (8, 16, 32, 64)},
    "h32": "uint32_t",
}  # fmt: skip
"""The types of values in C; of h32 the products are those of pairs (`muladd_pairs`)."""

FALLBACKS = {
    "expit": "T e = expF(-fabsF(a)); return a < 0 ? e / (1 + e) : 1 / (1 + e);",
    # A step of Newton's method: cube roots of libm may be wrong by four units.
    "cbrt": "T r = cbrtF(a); return a == 0 || isinf(a) ? r : r - (r - a / (r * r)) / 3;",
}
"""Stand-ins for formulas without fused products, if not libm's functions."""

_NOT_IN_C = frozenset(("digamma", "trigamma"))
"""Formulas of functions that libm has not: they are there without fused products, too."""

SYMBOLS = {
    "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "ashr": ">>", "lshr": ">>", "sdiv": "/",
    "udiv": "/",
}  # fmt: skip
WRAPPING = frozenset(("add", "sub", "mul", "shl"))


def wide(name: str) -> str:
    """The unsigned type in which integers of a type are added and multiplied."""
    return "uint64_t" if name.endswith("64") else "uint32_t"


def number_text(name: str, number: Any) -> str:
    """A number of a type, by the name of that, as text."""
    if name[0] == "f":
        number = float(number)
        kind = "(float)" if name == "f32" else "(double)"
        if number != number:
            return f"{kind}NAN"
        if number in (float("inf"), float("-inf")):
            return f"{'-' * (number < 0)}{kind}INFINITY"
        return repr(number) + "f" * (name == "f32")
    if name == "b1":
        return "true" if number else "false"
    number, bits = int(number), int(name[1:])
    if name[0] == "u":
        number &= (1 << bits) - 1
    if number == -(1 << 63):
        return "INT64_MIN"
    if abs(number) < 1 << 31:
        return str(number)
    return f"UINT64_C({number})" if name[0] == "u" else f"INT64_C({number})"


def short_name(x: Emitted) -> str:
    """The short name of the type of a value, or of its elements."""
    return "b1" if x.kind == "b" else f"{x.kind}{x.width}"


class Written(Emitted):
    """A value of C: a name or a number, with the operators that formulas are made of."""

    __slots__ = ()

    builder: Writer

    @property
    def lanes(self) -> int:
        return int(self.builder.is_of_lanes)

    def of_kind(self, kind: str) -> Written:
        if kind == self.kind:
            return self
        other = Written(self.builder, self.text, self.type, kind)
        other.text = f"(({VALUES[short_name(other)]}){self.text})"
        return other

    def made(self, text: str) -> Written:
        return self.builder.let(text, self.type, self.kind)

    def constant(self, number: Any) -> Emitted:
        if isinstance(number, Emitted):
            return number
        return self.builder.number(self.type, number, self.kind)

    def flag(self, text: str) -> Written:
        return self.builder.let(text, I1, "b")

    def _binary(self, other: Any, name: str) -> Written:
        if self.kind == "b":
            return self.builder.combined(name, self, self.constant(other))
        a, b = self.text, self.constant(other).text
        text = f"{a} {SYMBOLS[name]} {b}"
        if self.kind in "iu":
            if name in WRAPPING:
                w = wide(short_name(self))
                text = f"({w}){a} {SYMBOLS[name]} ({w}){b}"
            text = f"({VALUES[short_name(self)]})({text})"
        return self.made(text)

    def folded(self, instruction: str, other: Emitted) -> Written:
        return self._binary(other, instruction)

    def __neg__(self) -> Emitted:
        return self.made(f"-{self.text}") if self.kind == "f" else self.constant(0) - self

    def compare(self, symbol: str, other: Any, kind: str = "") -> Written:
        right = self.constant(other)
        a, b = self.text, right.text
        if kind and kind != self.kind:
            to = VALUES[f"{kind}{self.width}"]
            a, b = f"({to}){a}", f"({to}){b}"
        return self.flag(f"{a} {symbol} {b}")

    def isnan(self) -> Written:
        return self.flag(f"{self.text} != {self.text}")

    def isunordered(self, other: Emitted) -> Emitted:
        return self.isnan() | other.isnan()

    def select(self, a: Any, b: Any, is_unpredictable: bool = False) -> Emitted:
        a = a if isinstance(a, Emitted) else b.constant(a)
        return a.made(f"{self.text} ? {a.text} : {a.constant(b).text}")

    def intrinsic(self, name: str, *others: Emitted) -> Written:
        given = ", ".join(x.text for x in (self, *others))
        if name in _INTRINSICS:
            return self.made(f"fg_{_INTRINSICS[name]}_{short_name(self)}({given})")
        return self.made(f"{name}{'f' * (self.width == 32)}({given})")

    def converted(self, instruction: str, to: Type, kind: str) -> Written:
        target = "b1" if kind == "b" else f"{kind}{to.width}"
        if instruction == "bitcast":
            return self.builder.let(f"fg_bits_{short_name(self)}_{target}({self.text})", to, kind)
        if self.kind == "b":
            one, zero = number_text(target, 1), number_text(target, 0)
            return self.builder.let(f"{self.text} ? {one} : {zero}", to, kind)
        return self.builder.let(f"({VALUES[target]}){self.text}", to, kind)

    def packed(self) -> Emitted:
        return self

    def call(self, name: str, *others: Emitted) -> Written:
        given = ", ".join(x.text for x in (self, *others))
        return self.made(f"{name}{'f' * (self.width == 32)}({given})")


_INTRINSICS = {
    "maximum": "maximum", "minimum": "minimum", "fmuladd": "muladd", "ctpop": "popcount",
}  # fmt: skip
"""Functions of LLVM that are none of C."""


class _Helpers:
    """Functions that words ask a module of LLVM for; a file of C has them by their names."""

    def __init__(self) -> None:
        self.n_calls: Counter[str] = Counter()

    def helper(self, symbol: str, write: Any) -> _Helpers:
        self.symbol = symbol
        return self


class Writer(Builder):
    """Appends statements to a function of C.

    Args:
        is_of_lanes: Whether the function is one for loops over lanes.
        name: The short name of the numbers that the function is for.

    Attributes:
        value: The class of values.
        rare_type: The type of what notes that an argument is rare.
        lines: The statements.
        masks: Flags that are integers whose bits are all 0 or all 1.
        has_rare: Whether there are arguments that are left to libm.
    """

    value: type[Written] = Written
    rare_type = "int64_t"
    shares = False

    def __init__(self, is_of_lanes: bool, name: str) -> None:
        self.module = cast(Any, _Helpers())
        self.is_of_lanes = is_of_lanes
        self.mask_type = f"int{min(max(int(name[1:]), 8), 64)}_t"
        self.lines: list[str] = []
        self.masks: set[str] = set()
        self.has_rare = False

    def let(self, text: str, type: Type, kind: str) -> Written:
        found = self.value(self, f"v{len(self.lines)}", type, kind)
        self.lines.append(f"const {self.c_type(short_name(found))} {found.text} = {text};")
        return found

    def c_type(self, short: str) -> str:
        """The type in C of values of a type of that short name."""
        return VALUES[short]

    def combined(self, name: str, *flags: Emitted) -> Written:
        """Two flags combined as masks: gcc has no vectors for choices that it makes of others."""
        texts = [x.text if x.text in self.masks else f"-({self.mask_type}){x.text}" for x in flags]
        found = Written(self, f"v{len(self.lines)}", I1, "b")
        text = f" {SYMBOLS[name]} ".join(texts)
        self.lines.append(f"const {self.mask_type} {found.text} = {text};")
        self.masks.add(found.text)
        return found

    def number(self, type: Type, number: Any, kind: str = "i") -> Written:
        found = self.value(self, "", type, kind)
        found.text = number_text(short_name(found), number)
        if found.text.startswith("-"):
            found.text = f"({found.text})"
        return found

    def call(
        self, name: str, type: Type, kind: str, *args: Emitted, flags: str = "", hints: str = ""
    ) -> Written:
        word, _, rest = name.partition(".")
        if rest == "rare":
            return cast(Written, args[0].call(word, *args[1:]))
        given = [x.text for x in args]
        prefix = "fg"
        if self.is_of_lanes and definition(word, short_name(args[0]), True).has_rare:
            prefix, given = "fg_usual", [*given, "rare"]
            self.has_rare = True
        return self.let(f"{prefix}_{word}_{short_name(args[0])}({', '.join(given)})", type, kind)

    def if_any(self, flags: Emitted, usual: Emitted, compute: Callable[[], Emitted]) -> Emitted:
        """A computed value if a flag is set, else ``usual``; of lanes only that, with a note."""
        self.has_rare = True
        if self.is_of_lanes:
            self.lines.append(f"*rare += (int64_t){flags.text};")
            return usual
        start = len(self.lines)
        value = compute()
        inside = self.lines[start:]
        del self.lines[start:]
        name = f"w{start}"
        self.lines.append(f"{VALUES[short_name(usual)]} {name} = {usual.text};")
        self.lines += [f"if ({flags.text}) {{", *(f"    {x}" for x in inside)]
        self.lines += [f"    {name} = {value.text};", "}"]
        return Written(self, name, usual.type, usual.kind)

    # The function around the statements.

    def symbol(self, word: str, name: str) -> str:
        """The name of the function of a word."""
        return f"fg_{'usual_' * self.is_of_lanes}{word}_{name}"

    def returned(self, result: Any, short: str) -> list[str]:
        """Statements that return a result, of a type of that short name."""
        if isinstance(result, Complex):
            parts = f"{{{result.re.text}, {result.im.text}}}"
            return [f"{VALUES[short]} r = {parts};", "return r;"]
        return [f"return {result.text};"]

    def plain(self, word: str, name: str, letters: str) -> list[str]:
        """Statements that compute a word without fused products."""
        suffix, word = "f" * (name == "f32"), word.removeprefix(SHORT)
        text = FALLBACKS.get(word, f"return {word}F({', '.join(letters)});")
        for function in (word, "exp", "fabs"):
            text = text.replace(f"{function}F(", f"{function}{suffix}(")
        return [text.replace("T ", f"{VALUES[name]} ")]


class Definition(NamedTuple):
    """A function of C.

    Attributes:
        text: Its definition.
        has_rare: Whether there are arguments that are left to libm.
    """

    text: str
    has_rare: bool


@lru_cache(4096)
def definition(word: str, name: str, is_of_lanes: bool) -> Definition:
    """The function of a word at scalars.

    Args:
        word: The word.
        name: The short name of the type of its arguments.
        is_of_lanes: Whether the function takes the way that loops over lanes take, and notes
            rare arguments instead of computing their values.
    """
    return function_of(Writer(is_of_lanes, name), word, name)


_INSTRUCTIONS = frozenset(("fma",))
"""Functions of libm that are an instruction of registers where there are formulas."""


def function_of(writer: Writer, word: str, name: str) -> Definition:
    """The function of a word.

    Args:
        writer: Writes its statements.
        word: The word.
        name: The short name of the type of its arguments.
    """
    t, intrinsic = SCALARS[name], INTRINSICS.get(word)
    letters = "abcd"[: intrinsic.arity if intrinsic else 1]
    values = [_value(writer, t, letter) for letter in letters]
    signature = WORDS[word].sign((t,) * len(values))
    is_formula = intrinsic is not None and intrinsic.code == "formula" and name[0] == "f"
    if is_formula:
        result = FORMULAS[word, values[0].width](*values)
    else:
        result = WORDS[word].emission(cast(Any, writer), signature, values)
    short = next(key for key, x in SCALARS.items() if x is signature.return_type)
    body = _used([*writer.lines, *writer.returned(result, short)])
    takes_rare = writer.is_of_lanes and writer.has_rare
    if (is_formula and word not in _NOT_IN_C) or (writer.is_of_lanes and word in _INSTRUCTIONS):
        ignored = ["(void)rare;"] * takes_rare
        plain = [*ignored, *writer.plain(word, name, letters)]
        body = ["#ifdef FG_FORMULAS", *body, "#else", *plain, "#endif"]
    takes = [f"{writer.c_type(name)} {letter}" for letter in letters]
    if takes_rare:
        takes.append(f"{writer.rare_type} *rare")
    symbol = writer.symbol(word, name)
    head = f"static FG_INLINE {writer.c_type(short)} {symbol}({', '.join(takes)}) {{"
    lines = [line if line.startswith("#") else f"    {line}" for line in body]
    return Definition("\n".join([head, *lines, "}"]), writer.has_rare)


def _used(lines: list[str]) -> list[str]:
    """Statements without those whose values nothing needs."""
    found: list[str] = []
    needed: set[str] = set()
    for line in reversed(lines):
        head, is_value, rest = line.partition(" = ")
        if is_value and head.startswith("const ") and head.rpartition(" ")[2] not in needed:
            continue
        needed.update(re.findall(r"\bv\d+\b", rest if is_value else line))
        found.append(line)
    return found[::-1]


def _value(writer: Writer, t: Any, text: str) -> Any:
    """An argument of a function."""
    if t in PARTS:
        return Complex(*(_value(writer, PARTS[t], f"{text}.{part}") for part in ("re", "im")))
    kind = KINDS[t]
    short = next(name for name, x in SCALARS.items() if x is t)
    type = {"f32": F32, "f64": F64, "b1": I1}.get(short) or integer(int(short[1:]))
    return writer.value(writer, text, type, kind)
