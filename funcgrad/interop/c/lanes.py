"""Statements about lanes as loops over them, which compilers of C vectorise.

Neighbouring statements that compute one lane from values of the same lane are one loop: over
registers, if all of them are words of registers of one width (`parts`), else over lanes. There
variables are scalars; those that are used elsewhere are arrays. Where not all lanes are there,
their elements are copied before and after, so that every loop runs to the same end. What leaves
rare arguments to libm (`formulas`) is a loop of its own, in a function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from funcgrad.compiler.loops import language
from funcgrad.compiler.loops.language import Apply, Assign, Evaluate, Expression, Variable
from funcgrad.compiler.native.types import (
    BOOL,
    INT64,
    PARTS,
    SCALARS,
    Lanes,
    Signature,
    Vector,
    element_of,
)
from funcgrad.compiler.native.vocabulary import WORDS
from funcgrad.interop.c import words
from funcgrad.interop.c.formulas import VALUES, definition
from funcgrad.interop.c.functions import scalar_function
from funcgrad.interop.c.parts import PART, lines_of, rare_of_registers, width_of_stage
from funcgrad.interop.c.registers import definition as definition_of_registers
from funcgrad.interop.c.signature import RESERVED
from funcgrad.intrinsics import INTRINSICS

LANE = "lane"
"""The number of a lane, in C."""

_TAKEN = RESERVED | {"y0", "y1", "yn", "j0", "j1", "jn", "gamma", "I", LANE}
"""Names that variables do not have in C: keywords, and functions and macros of its headers."""


def named(name: str) -> str:
    """A variable in C."""
    return f"{name}_" if name in _TAKEN else name


_OF_MEMORY = frozenset(
    ("load", "load_where", "load_apart", "load_each", "load_run", "present", "splat")
)
"""Words of lanes that are not words of scalars, too."""

_HALVES = ("low", "high")

_INTEGERS = frozenset(t for name, t in SCALARS.items() if name[0] in "iu")

_MASKED = _INTEGERS | {t for name, t in SCALARS.items() if name[0] == "f"}
"""Types whose comparisons yield integers of the same width."""


class Printer(Protocol):
    """The printer of the statements around."""

    types: dict[str, Any]
    signatures: dict[Apply, Signature]
    prelude: words.Prelude
    declared: set[str]
    uses: Counter[str]
    n_places: int

    def write(self, depth: int, text: str) -> None: ...

    def known(self, x: Expression) -> Any: ...

    def expression(self, x: Expression, t: Any) -> str: ...

    def type_of(self, x: Expression) -> Any: ...

    def vector(self, x: Expression, t: Any) -> str: ...

    def new(self, t: Any) -> str: ...


def count_of(printer: Printer, statement: language.Statement) -> int:
    """How many lanes a statement computes, each by itself; 0 if it is no such statement."""
    match statement:
        case Assign(name, value):
            t = printer.types[name]
            return t.count if isinstance(t, Vector) and _is_by_lane(printer, value) else 0
        case Evaluate(Apply("store", (_, _, value, _)) as x):
            index = printer.signatures[x].args[1]
            return index.count if isinstance(index, Lanes) and _is_by_lane(printer, value) else 0
    return 0


def is_of_lanes(word: str) -> bool:
    """Whether a word is one of lanes, and none of scalars."""
    return word in _OF_MEMORY or word in _HALVES


def _is_by_lane(printer: Printer, x: Expression) -> bool:
    if not isinstance(x, Apply):
        return True
    t, args = printer.signatures[x]
    if x.word in _HALVES or isinstance(t, Lanes):
        return True
    if not any(isinstance(s, Vector | Lanes) for s in (t, *args)):
        return True
    is_mapped = WORDS[x.word].is_mapped and not words.is_special(x.word)
    if not isinstance(t, Vector) or not (is_mapped or x.word in VALUES or x.word in _OF_MEMORY):
        return False
    return all(_is_by_lane(printer, y) for y in x.operands)


def accesses(x: Expression) -> Iterator[Apply]:
    """The accesses to memory in an expression."""
    if isinstance(x, Apply):
        if x.word in _TOUCHING:
            yield x
        for operand in x.operands:
            yield from accesses(operand)


_TOUCHING = frozenset(
    (
        "load", "store", "load_where", "load_apart", "load_each", "load_run", "turn", "scope",
        "look", "claim", "write_word", "release", "store_each",
    )
)  # fmt: skip
"""Words that touch memory."""


def area(x: Apply) -> str:
    """The number of the area of memory that a word touches."""
    return str(x.operands[-1])


def is_same(a: Sequence[Expression], b: Sequence[Expression]) -> bool:
    """Whether expressions are the same."""
    return list(map(str, a)) == list(map(str, b))


class Rare:
    """The assignment of a word that leaves rare arguments to libm."""

    def __init__(self, name: str, word: str, signature: Signature, given: Sequence[Expression]):
        self.name = name
        self.word = word
        self.signature = signature
        self.given = given


Stage = list[Assign | Evaluate] | Rare


class Run:
    """Prints statements about as many lanes."""

    def __init__(self, printer: Printer, count: int, depth: int) -> None:
        self.printer = printer
        self.prelude = printer.prelude
        self.count = count
        self.depth = depth

    def print(self, statements: Sequence[language.Statement]) -> None:
        """Print the statements."""
        self.stages: list[Stage] = [[]]
        for statement in statements:
            self._stage(statement)
        for stage in self.stages:
            if isinstance(stage, Rare):
                self._print_rare(stage)
            elif stage:
                self._print_loop(stage)

    # Stages.

    def _stage(self, statement: language.Statement) -> None:
        """Add a statement to the last stage, or to one behind it."""
        match statement:
            case Assign(name, value):
                value = self._lifted(value)
                changed: Assign | Evaluate = Assign(name, value)
            case Evaluate(Apply(_, operands) as x):
                operands = tuple(self._lifted(y) for y in operands)
                changed = Evaluate(self._like(x, operands))
            case _:
                raise AssertionError(statement)
        stage = self.stages[-1]
        assert isinstance(stage, list)
        stored = {area(x) for x in _touched(stage) if x.word == "store"}
        if any(area(x) in stored for x in _touched([changed])):
            stage = []
            self.stages.append(stage)
        stage.append(changed)

    def _like(self, x: Apply, operands: tuple[Expression, ...]) -> Apply:
        if all(a is b for a, b in zip(x.operands, operands, strict=True)):
            return x
        found = Apply(x.word, operands)
        self.printer.signatures[found] = self.printer.signatures[x]
        return found

    def _lifted(self, x: Expression) -> Expression:
        """An expression whose words with rare arguments are computed in stages before."""
        if not isinstance(x, Apply):
            return x
        signature = self.printer.signatures[x]
        if x.word in _HALVES:
            # As many more lanes are computed before.
            whole = Variable(self.printer.vector(x.operands[0], signature.args[0]))
            return self._like(x, (whole,))
        x = self._like(x, tuple(self._lifted(y) for y in x.operands))
        if not isinstance(signature.return_type, Vector) or not _has_rare(x.word, signature):
            return x
        given = [self._named(y, t) for y, t in zip(x.operands, signature.args, strict=True)]
        name = self.printer.new(signature.return_type)
        self.stages += [Rare(name, x.word, signature, given), []]
        return Variable(name)

    def _named(self, x: Expression, t: Any) -> Expression:
        """An expression as a variable of type ``t``, if that is a vector."""
        source = self.printer.type_of(x)
        if not isinstance(source, Vector | Lanes) or (isinstance(x, Variable) and source == t):
            return x
        name = self.printer.new(t)
        stage = self.stages[-1]
        assert isinstance(stage, list)
        stage.append(Assign(name, x))
        return Variable(name)

    # Printing.

    def _print_rare(self, stage: Rare) -> None:
        t, args = stage.signature
        kinds = [words.short(s if isinstance(self.printer.type_of(x), Vector) else element_of(s))
                 for x, s in zip(stage.given, args, strict=True)]  # fmt: skip
        name = "_".join(["fg_lanes", stage.word, *kinds])
        letters = "abcd"[: len(args)]
        places = [
            f"{a}->x[k]" if "x" in kind else a for a, kind in zip(letters, kinds, strict=True)
        ]
        takes = [
            f"const {words.c_type(s)} *{a}" if "x" in kind else f"{words.c_type(element_of(s))} {a}"
            for a, s, kind in zip(letters, args, kinds, strict=True)
        ]
        word = f"{stage.word}_{words.short(element_of(args[0]))}"
        pointers = ["r", *(a for a, kind in zip(letters, kinds, strict=True) if "x" in kind)]
        short = words.short(element_of(args[0]))
        if words.register_of(words.short(t)) == short and definition_of_registers(
            stage.word, short
        ):
            usual = rare_of_registers(stage.word, short, letters, kinds, self.count)
        else:
            hidden = "".join(f"    FG_HIDE({a})\n" for a in pointers)
            usual = (
                f"    int64_t rare = 0;\n{hidden}    FG_INDEPENDENT\n"
                f"    for (int k = 0; k < {self.count}; k++)\n"
                f"        r->x[k] = fg_usual_{word}({', '.join(places)}, &rare);\n"
                "    if (rare)\n"
            )
        body = (
            f"{usual}        for (int k = 0; k < {self.count}; k++)\n"
            f"            r->x[k] = fg_{word}({', '.join(places)});"
        )
        self.prelude.use(f"{words.c_type(t)} {' '.join(takes)} {body}")
        head = f"static void {name}({', '.join([f'{words.c_type(t)} *r', *takes])}) {{"
        self.prelude.need(name, f"{head}\n{body}\n}}")
        self.declare(stage.name)
        given = [f"&{named(stage.name)}"]
        for x, s, kind in zip(stage.given, args, kinds, strict=True):
            given.append(
                f"&{named(str(x))}" if "x" in kind else self.printer.expression(x, element_of(s))
            )
        self.printer.write(self.depth, f"{name}({', '.join(given)});")

    def declare(self, name: str) -> None:
        """Declare the variable of a name, unless it is."""
        if name not in self.printer.declared:
            kind = self.prelude.use(words.c_type(self.printer.types[name]))
            self.printer.write(self.depth, f"{kind} {named(name)};")
            self.printer.declared.add(name)

    def _print_loop(self, stage: list[Assign | Evaluate]) -> None:
        self.local = self._local(stage)
        self.before: list[str] = []
        self.after: list[str] = []
        self.pointers: dict[tuple[str, ...], str] = {}
        self.masks: dict[str, int] = {}
        self.loads = [x for x in _touched(stage) if x.word != "store"]
        depth, write = self.depth, self.printer.write
        self.width = width_of_stage(self, stage)
        if self.width:
            head, *body, end = lines_of(self, stage, self.width)
            rows = [*self.before, "FG_UNROLL", head, *(f"    {x}" for x in body), end, *self.after]
            for line in rows:
                write(depth, line)
            return
        lines = []
        for statement in stage:
            if isinstance(statement, Assign):
                lines.append(self._assignment(statement.name, statement.value))
            else:
                lines.append(self._store(statement.value))
        for line in self.before:
            write(depth, line)
        write(depth, "FG_LOOP")
        write(depth, f"for (int64_t {LANE} = 0; {LANE} < {self.count}; {LANE}++) {{")
        for line in lines:
            write(depth + 1, line)
        write(depth, "}")
        for line in self.after:
            write(depth, line)

    def _local(self, stage: Sequence[Assign | Evaluate]) -> set[str]:
        """The variables that are nowhere else."""
        assigned = Counter(x.name for x in stage if isinstance(x, Assign))
        used = Counter(name for x in stage for name in _names(x.value))
        seen: set[str] = set()
        early: set[str] = set()
        for x in stage:
            early.update(name for name in _names(x.value) if name not in seen)
            if isinstance(x, Assign):
                seen.add(x.name)
        return {
            name
            for name, count in assigned.items()
            if count == 1
            and name not in self.printer.declared
            and name not in early
            and used[name] == self.printer.uses[name]
        }

    def _assignment(self, name: str, value: Expression) -> str:
        t = self.printer.types[name]
        is_local = name in self.local
        if is_local and not self.printer.uses[name]:
            return f"(void){self._text(value, t)};"
        kind = VALUES[words.short(t.element)]
        if t.element is BOOL:
            text, bits = self._mask(value)
            self.masks[name] = bits = bits if bits and is_local else 64
            kind = f"int{bits}_t"
        else:
            text = self._text(value, t)
        if is_local:
            return f"const {kind} {named(name)} = {text};"
        self.declare(name)
        return f"{named(name)}.x[{LANE}] = {text};"

    def _mask(self, x: Expression) -> tuple[str, int]:
        """A flag of one lane as an integer of as many bits as what it compares, all 0 or all 1.

        Compilers combine such integers in vectors. Of flags that are combined gcc makes choices
        among flags, for which it has no vectors. The bits of a flag of all lanes are 0.
        """
        source = self.printer.type_of(x)
        if not isinstance(source, Vector):
            mask = f"mask_{self._number()}"
            self.before.append(f"const int64_t {mask} = -(int64_t){self._text(x, BOOL)};")
            return mask, 0
        if isinstance(x, Variable):
            return self._variable(x.name), self.masks.get(x.name, 64)
        bits = 64
        if isinstance(x, Apply) and x.word in ("load", "load_apart"):
            return f"{self._flags(self.address_of(x, BOOL))}[{LANE}]", bits
        if isinstance(x, Apply) and not is_of_lanes(x.word):
            t = element_of(self.printer.signatures[x].args[0])
            if t in _MASKED:
                bits = int(words.short(t)[1:])
            elif x.word in words.FLAG_OPERATORS or x.word == "select":
                return self._combined(x)
        return f"(-(int{bits}_t){self._text(x, BOOL)})", bits

    def _variable(self, name: str) -> str:
        """The element of a variable."""
        return named(name) if name in self.local else f"{named(name)}.x[{LANE}]"

    def _combined(self, x: Apply) -> tuple[str, int]:
        """The mask of flags that a word combines."""
        masks = [self._mask(y) for y in x.operands]
        bits = max(bits for _, bits in masks)
        given = [text if n == bits else f"(int{bits}_t){text}" for text, n in masks]
        if x.word == "select":
            return "(({0} & {1}) | (~{0} & {2}))".format(*given), bits
        symbol = words.FLAG_OPERATORS[x.word]
        return f"({f' {symbol} '.join(given) if len(given) > 1 else symbol + given[0]})", bits

    def _text(self, x: Expression, t: Any) -> str:
        """An expression of one lane."""
        t = element_of(t)
        number = self.printer.known(x)
        if number is not None:
            return self.prelude.use(words.literal(number, t))
        source = self.printer.type_of(x)
        if isinstance(source, Lanes):
            text, source = f"({self.index_of(x)}.first + {LANE})", INT64
        elif isinstance(x, Apply):
            of_lanes = (source, *self.printer.signatures[x].args)
            if not any(isinstance(s, Vector | Lanes) for s in of_lanes):
                return self._same(x, t)
            text = self._word(x)
        elif isinstance(source, Vector):
            text = self._variable(str(x))
            if source.element is BOOL:
                text = f"({text} != 0)"
        else:
            return self.printer.expression(x, t)
        return self.prelude.use(_converted(text, element_of(source), t))

    def _same(self, x: Apply, t: Any) -> str:
        """An expression without lanes; what memory has is loaded before the loop.

        In one arm of a choice a load would be a branch, for which gcc has no vectors.
        """
        text = self.printer.expression(x, t)
        if x.word != "load":
            return text
        name = f"same_{self._number()}"
        self.before.append(self.prelude.use(f"const {words.c_type(t)} {name} = {text};"))
        return name

    def _word(self, x: Apply) -> str:
        signature = self.printer.signatures[x]
        t = element_of(signature.return_type)
        match x.word:
            case "load" | "load_apart":
                return words.at(t, LANE, self.address_of(x, t))
            case "load_where":
                pointer = self.printer.expression(x.operands[0], signature.args[0])
                index, other = self.index_of(x.operands[1]), self._text(x.operands[2], t)
                test = _is_there(index, signature.args[1])
                if t in PARTS:
                    # Of choices that load pairs, gcc 12 mixes up the parts in its vectors.
                    value = words.at(t, LANE, self.address_of(x, t))
                    return f"fg_choose_{words.short(t)}(-(int64_t)({test}), {value}, {other})"
                return f"({test} ? {words.at(t, f'{index}.first + {LANE}', pointer)} : {other})"
            case "load_each" | "load_run":
                pointer = self.printer.expression(x.operands[0], signature.args[0])
                place, kind = self._text(x.operands[1], signature.args[1]), words.held(t)
                return words.at(t, "0", f"((const {kind} *)((const char *){pointer} + {place}))")
            case "present":
                index = signature.args[0]
                value = self._text(x.operands[1], t)
                if not index.is_partial:
                    return value
                other = self._text(x.operands[2], t)
                test = _is_there(self.index_of(x.operands[0]), index)
                if t in _INTEGERS or t in PARTS:
                    # With a branch gcc would load what it is a place of in one way only.
                    return f"fg_choose_{words.short(t)}(-(int64_t)({test}), {value}, {other})"
                return f"({test} ? {value} : {other})"
            case "splat":
                return self._text(x.operands[0], t)
            case "low" | "high":
                place = LANE if x.word == "low" else f"{LANE} + {self.count}"
                text = f"{named(str(x.operands[0]))}.x[{place}]"
                return f"({text} != 0)" if t is BOOL else text
        given = [self._text(y, s) for y, s in zip(x.operands, signature.args, strict=True)]
        if _is_written(x.word, words.short(element_of(signature.args[0]))):
            given = [*map(self._apart, given, x.operands, signature.args)]
        elements = Signature(t, tuple(map(element_of, signature.args)))
        if x.word in VALUES:
            if len(given) == 2:
                return f"fg_make_{words.short(t)}({', '.join(given)})"
            return _converted(given[0], elements.args[0], t)
        if x.word == "select" and not isinstance(self.printer.type_of(x.operands[0]), Vector):
            # A flag of all lanes: a branch would keep compilers from vectors.
            mask = f"mask_{self._number()}"
            self.before.append(f"const int64_t {mask} = -(int64_t){given[0]};")
            return f"fg_choose_{words.short(t)}({mask}, {', '.join(given[1:])})"
        text = words.scalar_call(x.word, elements, given)
        if _has_own_way(x.word, signature):
            text = text.replace("fg_", "fg_usual_", 1)
        return text

    def _apart(self, text: str, x: Expression, t: Any) -> str:
        """An operand of a formula, which of all lanes is copied to each of them.

        Else compilers compute a part of the formula before the loop, and gcc has no vectors for
        choices by flags from there.
        """
        if isinstance(self.printer.type_of(x), Vector) or self.printer.known(x) is not None:
            return text
        name, kind = f"every_{self._number()}", VALUES[words.short(element_of(t))]
        self.before += [
            f"{kind} each_{name}[{self.count}], *{name} = each_{name};",
            f"for (int64_t {LANE} = 0; {LANE} < {self.count}; {LANE}++) {name}[{LANE}] = {text};",
            f"FG_HIDE({name})",
        ]
        return f"{name}[{LANE}]"

    def index_of(self, x: Expression) -> str:
        """The name of an index of lanes."""
        if isinstance(x, Variable):
            return self.printer.expression(x, self.printer.types[x.name])
        key = (str(x),)
        if key not in self.pointers:
            name = self.pointers[key] = f"index_{self._number()}"
            text = self.printer.expression(x, self.printer.type_of(x))
            self.before.append(f"const fg_lanes {name} = {text};")
        return self.pointers[key]

    def address_of(self, x: Apply, t: Any) -> str:
        """Elements that a word loads, side by side."""
        key = tuple(map(str, x.operands[:-1]))
        name = self.pointers.get(key)
        if name is None:
            name = self.pointers[key] = f"from_{self._number()}"
            signature = self.printer.signatures[x]
            pointer = self.printer.expression(x.operands[0], signature.args[0])
            index, kind = self.index_of(x.operands[1]), words.held(t)
            parts = 2 if t in PARTS else 1
            room = f"{kind} some_{name}[{parts * self.count}];"
            if x.word == "load_apart":
                step = self.printer.expression(x.operands[2], INT64)
                function = f"fg_apart_{words.short(t)}"
                self.before.append(room)
                call = f"{pointer} + {index}.first * {step}, {index}.count, {self.count}, {step}"
                value = f"{function}(some_{name}, {call})"
            elif x.word == "load_where":
                begin = f"{_times(parts)}{index}.begin" if signature.args[1].is_inner else "0"
                self.before.append(room)
                place = f"{pointer} + {_times(parts)}{index}.first"
                call = f"{place}, {begin}, {_times(parts)}{index}.count, {parts * self.count}"
                value = f"fg_between_{words.short(PARTS.get(t, t))}(some_{name}, {call})"
            elif signature.args[1].is_partial and not self.width:
                function = f"fg_some_{words.short(PARTS.get(t, t))}"
                self.before.append(room)
                place = f"{pointer} + {_times(parts)}{index}.first"
                call = f"{place}, {_times(parts)}{index}.count, {parts * self.count}"
                value = f"{function}(some_{name}, {call})"
            else:
                value = f"{pointer} + {_times(parts)}{index}.first"
            self.before.append(self.prelude.use(f"const {kind} *{name} = {value};"))
            if not self.width:
                self.before.append(f"FG_HIDE({name})")
        return name

    def _flags(self, pointer: str) -> str:
        """Bytes of memory as masks, by a loop of its own: wider, they would be flags again."""
        key = ("flags", pointer)
        if key not in self.pointers:
            name = self.pointers[key] = f"flags_{self._number()}"
            self.before += [
                f"{words.MASK} {name}[{self.count}];",
                "FG_LOOP",
                f"for (int64_t {LANE} = 0; {LANE} < {self.count}; {LANE}++) "
                f"{name}[{LANE}] = (0 - (int64_t){pointer}[{LANE}]) >> 63;",
            ]
        return self.pointers[key]

    def divisor_of(self, text: str, kind: str) -> str:
        """The name of what quotients by a number of all lanes need.

        Args:
            text: The number.
            kind: The short name of its type.
        """
        key = ("divisor", text, kind)
        if key not in self.pointers:
            name = self.pointers[key] = f"by_{self._number()}"
            line = f"const fg_divisor_{kind} {name} = fg_by_{kind}({text});"
            self.before.append(self.prelude.use(line))
        return self.pointers[key]

    def _store(self, x: Apply) -> str:
        t = element_of(self.printer.signatures[x].args[2])
        value = self._text(x.operands[2], t)
        return self.prelude.use(f"{words.put(t, LANE, value, self.target_of(x))};")

    def target_of(self, x: Apply) -> str:
        """The place where a word stores elements, side by side."""
        signature = self.printer.signatures[x]
        t = element_of(signature.args[2])
        number, kind, parts = self._number(), words.held(t), 2 if t in PARTS else 1
        name, room = f"to_{number}", f"some_{number}"
        place, count = self.place_of(x), f"{self.index_of(x.operands[1])}.count"
        is_partial, is_later = signature.args[1].is_partial, self.is_later(x)
        if self.width:
            is_partial = is_later = False
        if is_partial or is_later:
            self.before.append(f"{kind} {room}[{parts * self.count}];")
            function = f"fg_back_{words.short(PARTS.get(t, t))}"
            test = "" if is_later else f"if ({count} < {self.count}) "
            copied = f"{_times(parts)}{count}, {parts * self.count}"
            self.after.append(self.prelude.use(f"{test}{function}({place}, {room}, {copied});"))
        first = room if is_later else place
        if is_partial and not is_later:
            first = f"{count} < {self.count} ? {room} : {place}"
        self.before.append(f"{kind} *{name} = {first};")
        return name

    def place_of(self, x: Apply) -> str:
        """The address of the first element that a word loads or stores."""
        signature = self.printer.signatures[x]
        pointer = self.printer.expression(x.operands[0], signature.args[0])
        t = signature.args[0].element
        self.prelude.use(words.held(t))
        return f"{pointer} + {_times(2 if t in PARTS else 1)}{self.index_of(x.operands[1])}.first"

    def is_later(self, x: Apply) -> bool:
        """Whether other lanes may have still to read what a word writes before the end."""
        return any(
            area(y) == area(x)
            and not (y.word == "load" and is_same(y.operands[:2], x.operands[:2]))
            for y in self.loads
        )

    def later(self, x: Apply, store: str, kind: str, count: str) -> str | None:
        """A row of registers that is stored at the end.

        Args:
            x: The word that stores it.
            store: The statement that stores a register.
            kind: The type of registers.
            count: How many there are.
        Returns: Its name; nothing if the word stores at once.
        """
        if not self.is_later(x):
            return None
        name = f"some_{self._number()}"
        self.before.append(f"{kind} {name}[{count}];")
        loop = f"for (int {PART} = 0; {PART} < {count}; {PART}++)"
        self.after += ["FG_UNROLL", f"{loop} {store.format(f'{name}[{PART}]')}"]
        return name

    def _number(self) -> int:
        self.printer.n_places += 1
        return self.printer.n_places


def _converted(text: str, source: Any, t: Any) -> str:
    """A scalar of another type; flags are a choice, for compilers have vectors for that."""
    if source is BOOL and t is not BOOL and t not in PARTS:
        return f"({text} ? {words.literal(1, t)} : {words.literal(0, t)})"
    return words.convert(text, source, t)


def _is_there(index: str, t: Lanes) -> str:
    """The test whether an index has a lane."""
    return f"{f'{LANE} >= {index}.begin && ' * t.is_inner}{LANE} < {index}.count"


def _times(parts: int) -> str:
    return f"{parts} * " if parts > 1 else ""


def _touched(stage: Sequence[Assign | Evaluate]) -> list[Apply]:
    return [x for statement in stage for x in accesses(statement.value)]


def _names(x: Expression) -> Iterator[str]:
    if isinstance(x, Variable):
        yield x.name
    elif isinstance(x, Apply):
        for operand in x.operands:
            yield from _names(operand)


def _is_written(word: str, name: str) -> bool:
    """Whether a word of floats or integers is a function that `formulas` writes."""
    intrinsic = INTRINSICS.get(word)
    if intrinsic is None or name[0] not in "fiu" or scalar_function(word, name):
        return False
    t = SCALARS[name]
    given = list("abcd"[: intrinsic.arity])
    text = words.scalar_call(word, Signature(t, (t,) * len(given)), given)
    return text.startswith(f"fg_{word}_") and word not in VALUES


def _has_rare(word: str, signature: Signature) -> bool:
    name = words.short(element_of(signature.args[0]))
    return _is_written(word, name) and definition(word, name, True).has_rare


def _has_own_way(word: str, signature: Signature) -> bool:
    """Whether loops over lanes take another way than single numbers."""
    name = words.short(element_of(signature.args[0]))
    if not _is_written(word, name):
        return False
    ours, other = (definition(word, name, is_of_lanes).text for is_of_lanes in (True, False))
    return ours.replace("fg_usual_", "fg_") != other
