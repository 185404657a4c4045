"""The words of kernels in C: expressions of operators, and functions of a prelude.

`call : word, signature, texts of operands -> text`. A word is an expression of C where one says the
same, and else a function ``fg_word_type``, which `Prelude` collects with all that it calls. So an
exported file has what it uses and nothing else. Integers wrap around: they are added and multiplied
without a sign. Vectors are structures, and their words are loops over the words of their elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.compiler.native.types import (
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
    element_of,
)
from funcgrad.interop.c.functions import FIXED, PROGRAMS, VALUES, program, scalar_function, wide
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
        return "const int64_t *" if t.constant else "int64_t *"
    if isinstance(t, Pointer):
        return f"{_held(t.element)} *"
    if t is NONE:
        return "void"
    if isinstance(t, Lanes):
        return "fg_lanes"
    if isinstance(t, Vector):
        return f"fg_{short(t)}"
    return VALUES[short(t)]


def _held(t: Any) -> str:
    """The type of elements in memory, which of complex ones are their parts."""
    return f"fg_{_SHORT[PARTS.get(t, t)]}"


def _at(t: Any, place: str, pointer: str = "p") -> str:
    """An element in memory."""
    if t in PARTS:
        return f"fg_load_{_SHORT[t]}({pointer}, {place})"
    return f"({pointer}[{place}] != 0)" if t == BOOL else f"{pointer}[{place}]"


def _put(t: Any, place: str, value: str, pointer: str = "p") -> str:
    """The assignment of an element in memory."""
    if t in PARTS:
        return f"fg_store_{_SHORT[t]}({pointer}, {place}, {value})"
    return f"{pointer}[{place}] = {value}"


def literal(number: Any, t: Any) -> str:
    """A number of a type as text."""
    if isinstance(t, Vector):
        return f"fg_splat_{short(t)}({literal(number, t.element)})"
    name = short(t)
    if t in PARTS:
        parts = (literal(x, PARTS[t]) for x in (complex(number).real, complex(number).imag))
        return f"fg_make_{name}({', '.join(parts)})"
    if name[0] == "f":
        number = float(number)
        if number != number:
            return "(float)NAN" if name == "f32" else "(double)NAN"
        if number in (float("inf"), float("-inf")):
            return f"{'-' * (number < 0)}{'(float)' if name == 'f32' else '(double)'}INFINITY"
        return repr(number) + ("f" if name == "f32" else "")
    if t == BOOL:
        return "true" if number else "false"
    number = int(number)
    if number == -(1 << 63):
        return "INT64_MIN"
    if abs(number) < 1 << 31:
        return str(number)
    return f"UINT64_C({number})" if name[0] == "u" else f"INT64_C({number})"


_OPERATORS = {
    "add": "+", "radd": "+", "subtract": "-", "multiply": "*", "rmul": "*", "bitwise_and": "&",
    "bitwise_or": "|", "bitwise_xor": "^", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "divide": "/", "step_index": "+",
}  # fmt: skip
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_WRAPPING = frozenset(("add", "radd", "subtract", "multiply", "rmul"))
_OF_FLAGS = {"add": "|", "radd": "|", "multiply": "&", "rmul": "&"}
_LIBM = {
    "abs": "fabs", "maximum": "", "minimum": "", "expit": "", "remainder": "", "floor_divide": "",
    "cbrt": "",
}  # fmt: skip
"""Names in C of what is called otherwise; none where a function of ours says it."""


class Prelude:
    """Functions and types that exported kernels use.

    Attributes:
        found: Their texts, by name; what a text needs stands before it.
    """

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def text(self) -> str:
        return "\n".join(self.found.values())

    def need(self, name: str, text: str) -> str:
        """Add a text, and before it what it names."""
        if name not in self.found:
            for other in dict.fromkeys(re.findall(r"\bfg_\w+", text)):
                if other != name:
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
            self.need(name, f"typedef struct {{ {VALUES[element]} x[{count}]; }} {name};")
        elif stem in PROGRAMS:
            self.need(name, program(stem, kind))
        elif kind in VALUES and stem:
            self.need(name, scalar_function(stem, kind))
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
        if any(isinstance(t, Vector) for t in (signature.return_type, *signature.args)):
            return self.mapped(word, signature, given)
        return self.use(scalar_call(word, signature, given))

    def mapped(self, word: str, signature: Signature, given: Sequence[str]) -> str:
        """A word at vectors, by a function that loops over their elements."""
        t, args = signature.return_type, signature.args
        name = "_".join(["fg", word, *map(short, (t, *args))])
        names = [f"a{k}" for k in range(len(args))]
        elements = Signature(element_of(t), tuple(map(element_of, args)))
        parts = [
            f"{a}.x[k]" if isinstance(s, Vector) else a for a, s in zip(names, args, strict=True)
        ]
        value = self.call(word, elements, parts)
        given_types = ", ".join(f"{c_type(s)} {a}" for s, a in zip(args, names, strict=True))
        self.use(" ".join(map(c_type, (t, *args))))
        self.need(
            name,
            f"static inline {c_type(t)} {name}({given_types}) {{\n    {c_type(t)} r;\n"
            f"    for (int k = 0; k < {t.count}; k++) r.x[k] = {value};\n    return r;\n}}",
        )
        return f"{name}({', '.join(given)})"


def scalar_call(word: str, signature: Signature, given: Sequence[str]) -> str:
    """A word at scalars."""
    word = word.removeprefix("libm_")
    first = signature.args[0] if signature.args else NONE
    name = short(first)
    kind = name[0]
    if kind == "c":
        return f"fg_{word}_{name}({', '.join(given)})"
    if word in _OPERATORS:
        return _operation(word, name, given)
    if word == "select":
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
            return f"(signbit({given[0]}) != 0)"
        case "abs" if kind == "u":
            return given[0]
    if word.startswith("bitcast_"):
        return f"fg_{word}({given[0]})".replace("fg_bitcast_", "fg_bits_")
    intrinsic = INTRINSICS.get(word)
    if kind == "f" and (word in ("abs", "muladd") or (intrinsic and intrinsic.code)):
        target = _LIBM.get(word, word)
        if word == "muladd":
            return f"fg_muladd_{name}({', '.join(given)})"
        if target:
            return f"{target}{'f' * (name == 'f32')}({', '.join(given)})"
    return f"fg_{word}_{name}({', '.join(given)})"


def _operation(word: str, name: str, given: Sequence[str]) -> str:
    a, b = given
    symbol = _OPERATORS[word]
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
    if isinstance(t, Vector):
        return prelude.mapped(word, signature, given)
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
    t = signature.return_type
    if isinstance(t, Vector):
        place = _at(t.element, "i.first + k")
        return _loop_over_lanes(prelude, "load", t, place, "", given[:2])
    return _at(t, given[1], given[0])


def _loop_over_lanes(
    prelude: Prelude, name: str, t: Any, value: str, more: str, given: Sequence[str]
) -> str:
    """The call of a function that loads elements of a vector; those without a flag are 0."""
    function = f"fg_{name}_{short(t)}"
    zero = literal(0, t.element)
    prelude.use(f"fg_lanes fg_{short(t)} {_held(t.element)} {zero} {value}")
    prelude.need(
        function,
        f"static inline fg_{short(t)} {function}(const {_held(t.element)} *p, fg_lanes i{more})"
        f" {{\n    fg_{short(t)} r;\n    for (int k = 0; k < {t.count}; k++)\n"
        f"        r.x[k] = k < i.count ? {value} : {zero};\n    return r;\n}}",
    )
    return f"{function}({', '.join(given)})"


def _store(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    pointer, index, value = given[:3]
    t = signature.args[2]
    if not isinstance(t, Vector):
        return _put(t, index, value, pointer)
    function = f"fg_store_{short(t)}"
    put = _put(t.element, "i.first + k", "v.x[k]")
    prelude.use(f"fg_lanes fg_{short(t)} {_held(t.element)} {put}")
    prelude.need(
        function,
        f"static inline void {function}({_held(t.element)} *p, fg_lanes i, fg_{short(t)} v)"
        f" {{\n    for (int k = 0; k < {t.count}; k++) if (k < i.count) {put};\n}}",
    )
    return f"{function}({pointer}, {index}, {value})"


def _load_where(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.return_type
    function, flags = f"fg_load_where_{short(t)}", f"fg_b1x{t.count}"
    at = _at(t.element, "i.first + k")
    prelude.use(f"fg_lanes fg_{short(t)} {_held(t.element)} {flags} {at}")
    prelude.need(
        function,
        f"static inline fg_{short(t)} {function}(const {_held(t.element)} *p, fg_lanes i, "
        f"{flags} f, fg_{short(t)} v) {{\n    for (int k = 0; k < {t.count}; k++)\n"
        f"        if (k < i.count && f.x[k]) v.x[k] = {at};\n    return v;\n}}",
    )
    return f"{function}({', '.join(given[:4])})"


def _load_apart(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.return_type
    call = [given[0], given[1], given[2]]
    return _loop_over_lanes(
        prelude, "load_apart", t, _at(t.element, "(i.first + k) * step"), ", int64_t step", call
    )


def _load_each(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.return_type
    function, held = f"fg_load_each_{short(t)}", f"fg_{_SHORT[t.element]}"
    prelude.use(f"fg_i64x{t.count} fg_{short(t)} {held}")
    prelude.need(
        function,
        f"static inline fg_{short(t)} {function}(const {held} *p, fg_i64x{t.count} i) {{\n"
        f"    fg_{short(t)} r;\n    for (int k = 0; k < {t.count}; k++)\n"
        f"        r.x[k] = *(const {held} *)((const char *)p + i.x[k]);\n    return r;\n}}",
    )
    return f"{function}({given[0]}, {given[1]})"


def _store_each(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.args[3]
    function, held = f"fg_store_each_{short(t)}", _held(t.element)
    prelude.use(f"fg_lanes fg_i64x{t.count} fg_{short(t)} {held}")
    prelude.need(
        function,
        f"static inline void {function}({held} *p, fg_lanes i, fg_i64x{t.count} at, "
        f"fg_{short(t)} v) {{\n    for (int k = 0; k < {t.count}; k++)\n"
        f"        if (k < i.count) *({held} *)((char *)p + at.x[k]) = v.x[k];\n}}",
    )
    return f"{function}({', '.join(given[:4])})"


def _lanes(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.return_type
    if word == "lanes":
        return f"fg_all_lanes({given[0]}, {t.count})"
    return f"fg_first_lanes({given[0]}, {given[1]}, {t.count})"


def _present(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.return_type
    function = f"fg_present_{short(t)}"
    prelude.use(f"fg_lanes fg_{short(t)}")
    prelude.need(
        function,
        f"static inline fg_{short(t)} {function}(fg_lanes i, fg_{short(t)} a, fg_{short(t)} b) {{\n"
        f"    for (int k = 0; k < {t.count}; k++) if (k >= i.count) a.x[k] = b.x[k];\n"
        "    return a;\n}",
    )
    return f"{function}({', '.join(given)})"


def splat(prelude: Prelude, t: Any, text: str) -> str:
    """A vector of one value."""
    function = f"fg_splat_{short(t)}"
    prelude.use(f"fg_{short(t)}")
    prelude.need(
        function,
        f"static inline fg_{short(t)} {function}({c_type(t.element)} a) {{\n    fg_{short(t)} r;\n"
        f"    for (int k = 0; k < {t.count}; k++) r.x[k] = a;\n    return r;\n}}",
    )
    return f"{function}({text})"


def lane_numbers(prelude: Prelude, t: Any, text: str) -> str:
    """The vector of the numbers of lanes."""
    function = f"fg_numbers{t.count}"
    prelude.use(f"fg_lanes fg_{short(t)}")
    prelude.need(
        function,
        f"static inline fg_{short(t)} {function}(fg_lanes i) {{\n    fg_{short(t)} r;\n"
        f"    for (int k = 0; k < {t.count}; k++) r.x[k] = i.first + k;\n    return r;\n}}",
    )
    return f"{function}({text})"


def _splat(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return splat(prelude, signature.return_type, given[0])


def _half(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t, source = signature.return_type, signature.args[0]
    function = f"fg_{word}_{short(t)}"
    prelude.use(f"fg_{short(t)} fg_{short(source)}")
    first = t.count if word == "high" else 0
    prelude.need(
        function,
        f"static inline fg_{short(t)} {function}(fg_{short(source)} a) {{\n    fg_{short(t)} r;\n"
        f"    for (int k = 0; k < {t.count}; k++) r.x[k] = a.x[k + {first}];\n    return r;\n}}",
    )
    return f"{function}({given[0]})"


def _across(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t, source = signature.return_type, signature.args[0]
    function = f"fg_{word}_{short(source)}"
    fold = prelude.call(word.removeprefix("across_"), Signature(t, (t, t)), ["r", "a.x[k]"])
    prelude.use(f"fg_{short(source)}")
    prelude.need(
        function,
        f"static inline {c_type(t)} {function}(fg_{short(source)} a) {{\n"
        f"    {c_type(t)} r = a.x[0];\n    for (int k = 1; k < {source.count}; k++) r = {fold};\n"
        "    return r;\n}",
    )
    return f"{function}({given[0]})"


def _trade(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    t = signature.return_type
    stretch = signature.args[2].literal_value
    function = f"fg_{word}{stretch}_{short(t)}"
    prelude.use(f"fg_{short(t)}")
    low, high = ("a.x[k]", f"b.x[k - {stretch}]")
    if word == "trade_high":
        low, high = (f"a.x[k + {stretch}]", "b.x[k]")
    prelude.need(
        function,
        f"static inline fg_{short(t)} {function}(fg_{short(t)} a, fg_{short(t)} b) {{\n"
        f"    fg_{short(t)} r;\n    for (int k = 0; k < {t.count}; k++)\n"
        f"        r.x[k] = k & {stretch} ? {high} : {low};\n    return r;\n}}",
    )
    return f"{function}({given[0]}, {given[1]})"


def _turn(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    count = signature.args[3].literal_value
    held = f"fg_{_SHORT[signature.args[0].element]}"
    function = f"fg_turn{count}_{_SHORT[signature.args[0].element]}"
    prelude.use(held)
    prelude.need(
        function,
        f"static inline void {function}({held} *q, const {held} *p, int64_t step) {{\n"
        f"    for (int i = 0; i < {count}; i++)\n        for (int j = 0; j < {count}; j++)\n"
        f"            q[i * {count} + j] = ((const {held} *)((const char *)p + step * j))[i];\n}}",
    )
    return f"{function}({', '.join(given[:3])})"


def _nothing(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return ""


def _read_word(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return f"{given[0]}[{given[1]}]"


def _write_word(prelude: Prelude, word: str, signature: Signature, given: Sequence[str]) -> str:
    return f"{given[0]}[{given[1]}] = {given[2]}"


Special = Callable[[Prelude, str, Signature, Sequence[str]], str]
_SPECIAL: dict[str, Special] = {
    **dict.fromkeys(VALUES, _cast),
    "offset": _offset, "advance": _advance, "load": _load, "store": _store,
    "load_where": _load_where, "load_apart": _load_apart, "load_each": _load_each,
    "store_each": _store_each,
    "lanes": _lanes, "first_lanes": _lanes, "some_lanes": _lanes, "present": _present,
    "splat": _splat, "low": _half, "high": _half, "trade_low": _trade, "trade_high": _trade,
    "turn": _turn, "scope": _nothing, "prefetch": _nothing, "release": _nothing,
    "read_word": _read_word, "write_word": _write_word,
    "look": lambda prelude, word, signature, given: "INT64_C(0)",
    "claim": lambda prelude, word, signature, given: "INT64_C(0)",
}  # fmt: skip


def _by_prefix(word: str) -> Special | None:
    if word.startswith("ptr_"):
        return _pointer
    return _across if word.startswith("across_") else None
