"""The words of kernels in C: expressions of operators, and functions of a prelude.

`call : word, signature, texts of operands -> text`. A word is an expression of C where one says the
same, and else a function ``fg_word_type``, which `Prelude` collects with all that it calls. So an
exported file has what it uses and nothing else. Integers wrap around: they are added and multiplied
without a sign. Vectors are structures, and their words are loops over the words of their elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from funcgrad.compiler.native.types import (
    ARGS,
    BOOL,
    NONE,
    PARTS,
    SCALARS,
    WEAK_FLOAT,
    Lanes,
    Literal,
    Pointer,
    Signature,
    Vector,
    Words,
)
from funcgrad.interop.c import products, registers
from funcgrad.interop.c.formulas import VALUES, definition, number_text, wide
from funcgrad.interop.c.functions import (
    FIXED,
    OF_MEMORY,
    REGISTERS,
    register_function,
    scalar_function,
)
from funcgrad.intrinsics import INTRINSICS

_SHORT = {t: name for name, t in SCALARS.items()}


def short(t: Any) -> str:
    """The name of a type in names of functions."""
    if isinstance(t, Vector):
        return f"{_SHORT[t.element]}x{t.count}"
    if isinstance(t, Lanes):
        return f"lanes{t.count}"
    if isinstance(t, Pointer):
        return f"p_{_SHORT[t.element]}"
    if t is WEAK_FLOAT:
        return "f64"
    return "i64" if isinstance(t, Literal) else _SHORT[t]


def c_type(t: Any) -> str:
    """A type in C."""
    if isinstance(t, Words):
        return "const int64_t *" if t is ARGS else "int64_t *"
    if isinstance(t, Pointer):
        return f"{held(t.element)} *"
    if t is NONE:
        return "void"
    if isinstance(t, Lanes):
        return "fg_lanes"
    if isinstance(t, Vector):
        return f"fg_{short(t)}"
    return VALUES[short(t)]


def held(t: Any) -> str:
    """The type of elements in memory, which of complex ones are their parts."""
    return f"fg_{_SHORT[PARTS.get(t, t)]}"


def at(t: Any, place: str, pointer: str = "p") -> str:
    """An element in memory."""
    if t in PARTS:
        return f"fg_load_{_SHORT[t]}({pointer}, {place})"
    return f"({pointer}[{place}] != 0)" if t == BOOL else f"{pointer}[{place}]"


def put(t: Any, place: str, value: str, pointer: str = "p") -> str:
    """The assignment of an element in memory."""
    if t in PARTS:
        return f"fg_store_{_SHORT[t]}({pointer}, {place}, {value})"
    return f"{pointer}[{place}] = {value}"


def literal(number: Any, t: Any) -> str:
    """A number of a type as text."""
    name = short(t)
    if t in PARTS:
        parts = (literal(x, PARTS[t]) for x in (complex(number).real, complex(number).imag))
        return f"fg_make_{name}({', '.join(parts)})"
    return number_text(name, number)


OPERATORS = {
    "add": "+", "radd": "+", "subtract": "-", "multiply": "*", "rmul": "*", "bitwise_and": "&",
    "bitwise_or": "|", "bitwise_xor": "^", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "divide": "/", "step_index": "+",
}  # fmt: skip
_WRAPPING = frozenset(("add", "radd", "subtract", "multiply", "rmul"))
_OF_FLAGS = {"add": "|", "radd": "|", "multiply": "&", "rmul": "&"}
FLAG_OPERATORS = {
    **_OF_FLAGS, "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "not_equal": "^",
    "logical_not": "~", "bitwise_not": "~",
}  # fmt: skip
"""Logical operations by the C operators of masks, integers whose bits are all 0 or all 1."""
_OURS = frozenset(("maximum", "minimum"))
"""Operations whose functions in C treat NaN unlike LLVM's instructions."""


MASK = "int64_t"
"""The type of elements of vectors of flags."""


def register_of(name: str) -> str:
    """The type of the elements of registers that a variable of lanes also is an array of.

    Args: name: Of its type.
    Returns: The short name; nothing if there are no such registers.
    """
    element, _, count = name.rpartition("x")
    element = "i64" if element == "b1" else element
    is_it = element[0] != "c" and element[1:] in ("32", "64")
    return element if is_it and int(count) * int(element[1:]) % 512 == 0 else ""


class Prelude:
    """Functions and types that exported kernels use.

    Attributes:
        found: Their texts, by name; what a text needs stands before it.
    """

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def text(self, users: str) -> str:
        """The functions and types that a text uses, and what these use."""
        used: set[str] = set()
        for name, text in reversed(self.found.items()):
            if re.search(rf"\b{name}\b", users) or name in used:
                used.update(re.findall(r"\bfg_\w+", text), {name})
        return "\n".join(text for name, text in self.found.items() if name in used)

    def need(self, name: str, text: str) -> str:
        """Add a text, and before it what it names."""
        if name not in self.found:
            own = {name, *re.findall(r"^static [^;{=]*?\b(fg_\w+)\(", text, re.M)}
            for other in dict.fromkeys(re.findall(r"\bfg_\w+", text)):
                if other not in own:
                    self.ask(other)
            self.found[name] = text
        return name

    def ask(self, name: str) -> None:
        """Add a function or type by its name, if it is not one of the header."""
        if name in self.found or name in ("fg_complex64", "fg_complex128"):
            return
        stem, _, kind = name.removeprefix("fg_").rpartition("_")
        if not stem and kind in VALUES:  # a type of elements in memory
            held = "uint8_t" if kind == "b1" else VALUES[kind]
            self.need(name, f"typedef {held} {name} FG_MAY_ALIAS;")
        elif not stem and re.fullmatch(r"\w+x\d+", kind):
            element, _, count = kind.rpartition("x")
            held = MASK if element == "b1" else VALUES[element]
            parts = ""
            if register := register_of(kind):
                parts = f" fg_held_{register} v[{count} / fg_count_{register}];"
            made = "union" if parts else "struct"
            self.need(name, f"typedef {made} {{ {held} x[{count}];{parts} }} {name};")
        elif stem in REGISTERS:
            self.need(name, register_function(stem, kind))
        elif stem in OF_MEMORY:
            self.need(name, OF_MEMORY[stem].replace("NAME", kind))
        elif stem in products.STEMS:
            self.need(name, products.definition(stem, kind))
        elif kind in VALUES and stem.startswith("held_"):
            found = registers.definition(stem.removeprefix("held_"), kind)
            assert found is not None
            self.need(name, found.text)
        elif kind in VALUES and stem.startswith("usual_"):
            self.need(name, definition(stem.removeprefix("usual_"), kind, True).text)
        elif kind in VALUES and stem:
            self.need(name, scalar_function(stem, kind) or definition(stem, kind, False).text)
        elif name in FIXED:
            self.need(name, FIXED[name])

    def use(self, text: str) -> str:
        """A text, and what it names."""
        for name in dict.fromkeys(re.findall(r"\bfg_\w+", text)):
            self.ask(name)
        return text

    def call(self, word: str, signature: Signature, given: Sequence[str]) -> str:
        """A word at operands as an expression; one that is no atom stands in parentheses."""
        special = _SPECIAL.get(word) or _by_prefix(word)
        if special is not None:
            return self.use(special(self, word, signature, given))
        return self.use(scalar_call(word, signature, given))


def scalar_call(word: str, signature: Signature, given: Sequence[str]) -> str:
    """Expression in C for a word of kernels at scalar operands."""
    is_libm = word.startswith("libm_")
    word = word.removeprefix("libm_")
    first = signature.args[0] if signature.args else NONE
    name = short(first)
    kind = name[0]
    if kind == "c":
        return f"fg_{word}_{name}({', '.join(given)})"
    if word in OPERATORS:
        return _operation(word, name, given)
    if word in ("select", "select_unpredictable"):
        condition, a, b = given
        return f"({condition} ? {a} : {b})"
    match word:
        case "negative":
            if kind == "f":
                return f"(-{given[0]})"
            return f"(({VALUES[name]})(0 - ({wide(name)}){given[0]}))"
        case "positive" | "real" | "conj":
            return given[0]
        case "imag":
            return literal(0, signature.return_type)
        case "logical_not":
            return f"(!{given[0]})"
        case "bitwise_not":
            return f"(!{given[0]})" if kind == "b" else f"(({VALUES[name]})~{given[0]})"
        case "isnan" | "isinf" | "isfinite":
            return f"({word}({given[0]}) != 0)"
        case "signbit":
            return f"(fg_bits_{name}_i{name[1:]}({given[0]}) < 0)"
        case "abs" if kind == "u":
            return given[0]
        case "abs" if kind == "f":
            word, is_libm = "fabs", True
    if word.startswith("bitcast_"):
        return f"fg_{word}({given[0]})".replace("fg_bitcast_", "fg_bits_")
    intrinsic = INTRINSICS.get(word)
    is_instruction = intrinsic is not None and intrinsic.code in ("llvm", "libm")
    if kind == "f" and (is_libm or (is_instruction and word not in _OURS)):
        return f"{word}{'f' * (name == 'f32')}({', '.join(given)})"
    return f"fg_{word}_{name}({', '.join(given)})"


def _operation(word: str, name: str, given: Sequence[str]) -> str:
    a, b = given
    symbol = OPERATORS[word]
    if name[0] == "b":
        return f"({a} {_OF_FLAGS.get(word, symbol)} {b})"
    if name[0] in "iu" and word in _WRAPPING:
        unsigned = wide(name)
        if VALUES[name] == unsigned:
            return f"({a} {symbol} {b})"
        return f"(({VALUES[name]})(({unsigned}){a} {symbol} ({unsigned}){b}))"
    if name[0] in "iu" and symbol in "&|^" and name[1:] in ("8", "16"):
        return f"(({VALUES[name]})({a} {symbol} {b}))"
    return f"({a} {symbol} {b})"


# Words that are no functions of their operands' values alone.


def _cast(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t, args = signature.return_type, signature.args
    if len(args) == 2:
        return f"fg_make_{short(t)}({', '.join(given)})"
    return convert(given[0], args[0], t)


def convert(text: str, source: Any, target: Any) -> str:
    """A scalar converted from one type to another, as NumPy converts it."""
    if source == target:
        return text
    a, b = short(source), short(target)
    if a == b:
        return text
    if source in PARTS:
        if target in PARTS:
            parts = (convert(f"({text}).{p}", PARTS[source], PARTS[target]) for p in ("re", "im"))
            return f"fg_make_{b}({', '.join(parts)})"
        return convert(f"({text}).re", PARTS[source], target)
    if target in PARTS:
        part = convert(text, source, PARTS[target])
        return f"fg_make_{b}({part}, {literal(0, PARTS[target])})"
    if target == BOOL:
        return f"({text} != 0)"
    if a[0] == "f" and b[0] in "iu":
        wide = "i64" if b in ("u32", "i64") else "u64" if b == "u64" else "i32"
        found = f"fg_whole{wide}_{a}({text})"
        return found if wide == b else f"(({VALUES[b]}){found})"
    return f"(({VALUES[b]}){text})"


def _pointer(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return f"(({c_type(signature.return_type)})(intptr_t){given[0]})"


def _offset(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return f"(({c_type(signature.return_type)})((char *){given[0]} + {given[1]}))"


def _advance(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    step = "2 * " if signature.return_type.element in PARTS else ""
    return f"({given[0]} + {step}{given[1]})"


def _load(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return at(signature.return_type, given[1], given[0])


def _store(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return put(signature.args[2], given[1], given[2], given[0])


def _store_each(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.args[3]
    function, kind = f"fg_store_each_{short(t)}", held(t.element)
    prelude.use(f"fg_lanes fg_i64x{t.count} fg_{short(t)} {kind}")
    prelude.need(
        function,
        f"static inline void {function}({kind} *p, fg_lanes i, fg_i64x{t.count} at, "
        f"fg_{short(t)} v) {{\n    for (int k = 0; k < {t.count}; k++)\n"
        f"        if (k < i.count) *({kind} *)((char *)p + at.x[k]) = v.x[k];\n}}",
    )
    return f"{function}({', '.join(given[:4])})"


def _lanes(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.return_type
    if word == "lanes":
        return f"fg_all_lanes({given[0]}, {t.count})"
    return f"fg_first_lanes({given[0]}, {given[1]}, {t.count})"


def _bounded(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return prelude.use(f"fg_{word}({', '.join(given)})")


def _across(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    """Folds by halves, in the order that processors have instructions for."""
    t, source = signature.return_type, signature.args[0]
    name, word = f"fg_{word}_{short(source)}", word.removeprefix("across_")
    given_types = Signature(t, (t, t))
    fold = prelude.call(word, given_types, ["a.x[k]", "a.x[k + n]"])
    is_all = word in ("minimum", "multiply", "rmul")
    halves = []
    if source.element == BOOL:  # masks
        fold = f"a.x[k] {'&' if is_all else '|'} a.x[k + n]"
    n = source.count // 2
    while n:
        halves.append(f"for (int k = 0; k < {n}; k++) a.x[k] = {fold.replace('+ n', f'+ {n}')};")
        n //= 2
    lines = [*halves, f"return a.x[0]{' != 0' * (source.element == BOOL)};"]
    if source.element == BOOL and register_of(short(source)):
        no = "~" * is_all
        rows = f"{source.count} / fg_count_i64"
        lines = [
            f"fg_held_i64 r = {no}a.v[0];",
            f"for (int k = 1; k < {rows}; k++) r |= {no}a.v[k];",
            f"return {'!' * is_all}FG_ANY(r);",
        ]
    register = register_of(short(source))
    if register[:1] == "f" and word in OPERATORS:
        lines = [*_across_registers(OPERATORS[word], source.count, register)]
        prelude.use(f"fg_count_{register}")
    body = "".join(f"    {line}\n" for line in lines)
    prelude.use(f"fg_{short(source)}")
    prelude.need(name, f"static inline {c_type(t)} {name}(fg_{short(source)} a) {{\n{body}}}")
    return f"{name}({given[0]})"


def _across_registers(symbol: str, count: int, register: str) -> Iterator[str]:
    """The same, of registers while there are several, and then of the elements of one."""
    lanes = f"fg_count_{register}"
    halves = [count >> k for k in range(1, count.bit_length())]
    for n in halves:
        other = f"a.v[k + {n} / {lanes}]"
        yield f"for (int k = 0; k < {n} / {lanes}; k++) a.v[k] = a.v[k] {symbol} {other};"
    yield f"{VALUES[register]} x[{lanes}];"
    yield "FG_UNROLL"
    yield f"for (int k = 0; k < {lanes}; k++) x[k] = a.x[k];"
    for n in halves:
        end = f"({n} < {lanes} ? {n} : 0)"
        yield "FG_UNROLL"
        yield f"for (int k = 0; k < {end}; k++) x[k] = x[k] {symbol} x[k + {n}];"
    yield "return x[0];"


def _trade(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.return_type
    length = signature.args[2].literal_value
    function = f"fg_{word}{length}_{short(t)}"
    prelude.use(f"fg_{short(t)}")
    shift = length if word == "trade_high" else 0
    low, high = f"a.x[k + {shift}]", f"b.x[k - {length - shift}]"
    loop = (
        f"    for (int k = 0; k < {t.count}; k++)\n        r.x[k] = k & {length} ? {high} : {low};"
    )
    if register_of(short(t)) and t.count * int(_SHORT[t.element][1:]) == 512:
        # One register of the largest: an instruction that takes elements of two.
        places = (t.count + k - length + shift if k & length else k + shift for k in range(t.count))
        taken = ", ".join(map(str, places))
        loop = (
            f"#ifdef FG_SHUFFLE\n    r.v[0] = FG_SHUFFLE(a.v[0], b.v[0], {taken});\n#else\n"
            f"{loop}\n#endif"
        )
    prelude.need(
        function,
        f"static inline fg_{short(t)} {function}(fg_{short(t)} a, fg_{short(t)} b) {{\n"
        f"    fg_{short(t)} r;\n{loop}\n    return r;\n}}",
    )
    return f"{function}({given[0]}, {given[1]})"


def _turn(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    count = signature.args[3].literal_value
    kind = f"fg_{_SHORT[signature.args[0].element]}"
    function = f"fg_turn{count}_{_SHORT[signature.args[0].element]}"
    prelude.use(kind)
    prelude.need(
        function,
        f"static inline void {function}({kind} *q, const {kind} *p, int64_t step) {{\n"
        f"    for (int i = 0; i < {count}; i++)\n        for (int j = 0; j < {count}; j++)\n"
        f"            q[i * {count} + j] = ((const {kind} *)((const char *)p + step * j))[i];\n}}",
    )
    return f"{function}({', '.join(given[:3])})"


def _nothing(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return ""


def _unused(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return f"(void){given[word == 'release']}"


def _read_word(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return f"{given[0]}[{given[1]}]"


def _write_word(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return f"{given[0]}[{given[1]}] = {given[2]}"


Special = Callable[[Prelude, str, Signature, Sequence[str]], str]
_SPECIAL: dict[str, Special] = {
    **dict.fromkeys(VALUES, _cast),
    "offset": _offset, "advance": _advance, "load": _load, "store": _store,
    "store_each": _store_each, "lanes": _lanes, "first_lanes": _lanes, "some_lanes": _lanes,
    "lanes_before": _bounded, "lanes_from": _bounded,
    "trade_low": _trade, "trade_high": _trade,
    "turn": _turn, "scope": _nothing, "prefetch": _unused, "release": _unused,
    "read_word": _read_word, "write_word": _write_word,
    "look": lambda prelude, word, signature, given: "INT64_C(0)",
    "claim": lambda prelude, word, signature, given: "INT64_C(0)",
}  # fmt: skip


def is_special(word: str) -> bool:
    """Whether a word is no function of its operands' values alone."""
    return word in _SPECIAL or _by_prefix(word) is not None


def _by_prefix(word: str) -> Special | None:
    if word.startswith("ptr_"):
        return _pointer
    return _across if word.startswith("across_") else None
