"""Kernels to LLVM assembly.

``translate : function -> LLVM assembly``. `signatures` gives the types, and here the statements
become blocks, and every expression the instructions of its words, as lines of text. This is the
lean counterpart of what ``numba.njit`` does with the same words (`numba_path`): nothing is
inferred, for all types are known, and there are neither wrappers nor reference counts nor
exceptions.

A variable that is one value is that value, and the index of a loop is a phi; of the other variables
LLVM makes registers. Left out: optimisation and object code (`llvm_backend`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from funcgrad.compiler.loops import language
from funcgrad.compiler.loops.common import name_common
from funcgrad.compiler.loops.hoist import hoist
from funcgrad.compiler.native import llvm
from funcgrad.compiler.native.complexes import KINDS, Complex, cast, llvm_type
from funcgrad.compiler.native.elementary import decide_inlining
from funcgrad.compiler.native.llvm import I64, Block, Module
from funcgrad.compiler.native.scalars import Builder, Emitted, arms
from funcgrad.compiler.native.signatures import give_types, parameter_types
from funcgrad.compiler.native.types import (
    BOOL,
    INT64,
    PARTS,
    SCALARS,
    Lanes,
    Pointer,
    Vector,
    element_of,
    is_weak,
    strong,
)
from funcgrad.compiler.native.vocabulary import WORDS


class Translation(NamedTuple):
    """A kernel in LLVM.

    Attributes:
        assembly: The module.
        is_in_vectors: Whether its innermost loops are, or LLVM would find no vectors in them.
    """

    assembly: str
    is_in_vectors: bool


def translate(
    function: language.Function, symbol: str, lines: Sequence[int] | None = None
) -> Translation:
    """A kernel in LLVM.

    Args:
        function: The kernel.
        symbol: Name of the native function.
        lines: For each of the statements of `simplified`, in the order of `language.every`, a
            number from 1 on, which the object file is to tell of its instructions.

    Raises:
        UnsupportedError: The kernel applies something that is no word.
        TypingError: A word is given what it does not take.
    """
    # Brief functions are not optimised, so they need no hints about memory.
    module = Module(has_hints=not function.is_brief)
    lowering = _Lowering(module, symbol, simplified(function), lines)
    decide_inlining(module)
    if lowering.is_in_vectors:
        module.kept.clear()  # LLVM's vectoriser does not run
    return Translation(module.text(), lowering.is_in_vectors)


def simplified(function: language.Function) -> language.Function:
    """A kernel that computes nothing twice, and nothing in a loop that does not vary in it.

    Programs that a person has written are so, nearly: what is left takes LLVM less time than this.
    """
    if isinstance(function, language.NamedFunction):
        return function
    return hoist(name_common(function, _is_pure), _is_pure)


def _is_pure(name: str) -> bool:
    word = WORDS.get(name)
    return word is not None and word.is_pure


def _is_serial(body: language.Body) -> bool:
    """Whether LLVM finds no vectors in a loop, whose iterations wait for each other or store apart.

    They wait for what one leaves to the next, if more becomes of it than a fold. They store apart
    where a pointer moves by a number that is not known.
    """
    values: dict[str, language.Expression] = {}
    folds: Counter[str] = Counter()
    for x in language.every(body):
        if isinstance(x, language.Assign):
            first = values.setdefault(x.name, x.value)
            if x.name in language.variables(first):
                folds[x.name] += [*language.variables(x.value)].count(x.name)
    used = language.uses(body)
    if any(used[name] > n for name, n in folds.items()):
        return True
    for y in language.expressions(body):
        if isinstance(y, language.Apply) and y.word == "store":
            place = y.operands[0]
            place = values.get(place.name, place) if isinstance(place, language.Variable) else place
            if isinstance(place, language.Apply) and place.word == "offset":
                return True
    return False


_IN_VECTORS = Lanes | Vector


class _Lowering:
    """Appends the instructions of a function to an LLVM function."""

    def __init__(
        self,
        module: Module,
        symbol: str,
        function: language.Function,
        lines: Sequence[int] | None = None,
        linkage: str = "",
    ) -> None:
        types, body = give_types(function), function.body
        self.types, self.signatures, self.in_memory = types.variables, types.words, types.in_memory
        self.result, given = SCALARS[function.result], parameter_types(function)
        arguments = map(llvm_type, given)
        # LLVM learns too late that vectors are spilled, and would leave them across cache lines.
        attributes = 'nounwind "stackrealign"'
        self.function = llvm.Function(
            symbol, llvm_type(self.result), [*arguments], attributes, linkage
        )
        self.builder = Builder(module, self.function)
        kinds = "".join(KINDS.get(t, "p") for t in given)
        self.values: dict[str, Any] = dict(
            zip(function.parameters, self.builder.arguments(kinds), strict=True)
        )
        for name, other in function.inner.items():
            _Lowering(module, f"{symbol}.{name}", other, linkage="internal ")
            address = f"ptrtoint (ptr @{symbol}.{name} to i64)"
            self.values[name] = Emitted(self.builder, address, I64, "i")
        self.memory: dict[str, tuple[Emitted, ...]] = {}
        # For every enclosing loop: the block after it, and the counts of loops and of uses of
        # vectors before its body.
        self.loops: list[tuple[Block, tuple[int, int]]] = []
        self.n_loops = self.n_vectors = 0
        self.is_in_vectors = True
        self.lines: dict[int, str] = {}
        if lines is not None:
            metadata = module.number_lines(self.function)
            rows = zip(language.every(body), lines, strict=True)
            self.lines = {id(x): metadata(line) for x, line in rows}
        self.statements([*body, language.END])

    # Statements.
    def statements(self, body: language.Body) -> None:
        for statement in body:
            if self.builder.block.end:
                return  # never reached
            outer, self.builder.line = self.builder.line, self.lines.get(id(statement), "")
            self.statement(statement)
            self.builder.line = outer

    def statement(self, statement: language.Statement) -> None:
        match statement:
            case language.Assign(name, value):
                self.assign(name, value)
            case language.Evaluate(value):
                self.applied(value)
            case language.If():
                self.decide(statement)
            case language.While(test, body):
                self.repeat(test, body)
            case language.For():
                self.count(statement)
            case language.Break():
                self.builder.jump(self.loops[-1][0])
            case language.Return(value):
                self.builder.end(f"ret {self.operand(value, self.result)}")

    def decide(self, statement: language.If) -> None:
        builder = self.builder
        flag = self.operand(statement.test, BOOL)
        then, end = builder.new_block("then"), builder.new_block("end")
        other = builder.new_block("else") if statement.otherwise else end
        builder.fork(flag, then, other)
        builder.begin(then)
        self.statements(statement.body)
        builder.jump(end)
        if statement.otherwise:
            builder.begin(other)
            self.statements(statement.otherwise)
            builder.jump(end)
        builder.begin(end)

    def repeat(self, test: language.Expression, body: language.Body) -> None:
        builder = self.builder
        head = builder.new_block("while")
        builder.jump(head)
        builder.begin(head)
        inside, end = builder.new_block("do"), builder.new_block("end")
        builder.fork(self.operand(test, BOOL), inside, end)
        builder.begin(inside)
        self.open_loop(end, is_cold=True)  # how often it runs is not known before
        self.statements(body)
        builder.jump(head)
        self.close_loop()

    def count(self, loop: language.For) -> None:
        # The test is repeated at the end of the body: the form that LLVM's loop passes want.
        builder, symbol = self.builder, "<" if loop.step > 0 else ">"
        # The end is fixed before the loop, as Python's is.
        start, stop = (self.operand(x, INT64) for x in (loop.start, loop.stop))
        is_phi = loop.index not in self.in_memory
        if not is_phi:
            self.store(loop.index, start)
        body, end = builder.new_block("for"), builder.new_block("end")
        before = builder.block
        builder.fork(start.compare(symbol, stop), body, end)
        builder.begin(body)
        index = Emitted(builder, f"%i{builder.n_blocks}", I64, "i", body)
        if is_phi:
            self.values[loop.index] = index
        self.open_loop(end, loop.is_cold)
        self.statements(loop.body)
        if builder.block.end:
            builder.open_block("next")
        index = index if is_phi else self.load(loop.index)
        following = index.made(f"add nsw {index}, {loop.step}")
        if is_phi:
            cases = (start, before), (following, builder.block)
            body.phis.append(f"  {index.text} = phi i64 {arms(cases)}")
        else:
            self.store(loop.index, following)
        hint = builder.module.left_in_numbers() if loop.is_cold else ""
        builder.fork(following.compare(symbol, stop), body, end, hint)
        self.close_loop(loop.body)

    def open_loop(self, end: Block, is_cold: bool = False) -> None:
        """Begin the body of a loop."""
        self.n_loops += 1
        self.loops.append((end, (self.n_loops, -1 if is_cold else self.n_vectors)))

    def close_loop(self, body: language.Body = ()) -> None:
        """Close a loop: begin the block after it."""
        end, before = self.loops.pop()
        self.builder.begin(end)
        if before == (self.n_loops, self.n_vectors) and not _is_serial(body):
            self.is_in_vectors = False

    # Variables.
    def assign(self, name: str, value: language.Expression) -> None:
        t = self.types[name]
        if name in self.in_memory:
            self.store(name, self.operand(value, strong(t)))
        elif not is_weak(t):
            self.values[name] = self.operand(value, t)
        elif isinstance(value, language.Number):
            self.values[name] = value.value
        else:
            self.values[name] = self.load(str(value))

    def load(self, name: str) -> Any:
        found = self.values.get(name)
        if found is not None:
            return found
        parts = [x.made(f"load {x.type}, ptr {x.text}") for x in self.place(name)]
        return parts[0] if len(parts) == 1 else Complex(*parts)

    def store(self, name: str, value: Any) -> None:
        parts = (value.re, value.im) if isinstance(value, Complex) else (value,)
        for part, place in zip(parts, self.place(name), strict=True):
            self.builder.do(f"store {part}, ptr {place.text}")

    def place(self, name: str) -> tuple[Emitted, ...]:
        """The memory of a variable, for each part of what it holds."""
        found = self.memory.get(name)
        if found is None:
            t = self.types[name]
            type, element = llvm_type(t), element_of(t)
            kind = KINDS.get(element) or ("p" if isinstance(t, Pointer) else type.suffix[0])
            n_parts = 2 if element in PARTS else 1
            found = self.memory[name] = tuple(
                Emitted(self.builder, f"%m{len(self.function.allocas) + k}", type, kind)
                for k in range(n_parts)
            )
            self.function.allocas += [f"  {x.text} = alloca {type}" for x in found]
        return found

    # Expressions.
    def operand(self, x: language.Expression, t: Any) -> Any:
        """The value of an expression, of type ``t``."""
        if isinstance(x, language.Apply):
            return cast(self.builder, self.applied(x), self.signatures[x].return_type, t)
        if isinstance(x, language.Variable):
            return cast(self.builder, self.load(x.name), self.types[x.name], t)
        assert isinstance(x, language.Number)
        return cast(self.builder, x.value, None, t)

    def applied(self, x: language.Apply) -> Any:
        """The value of a word."""
        signature = self.signatures[x]
        self.n_vectors += any(isinstance(t, _IN_VECTORS) for t in signature.args)
        operands = [self.operand(y, t) for y, t in zip(x.operands, signature.args, strict=True)]
        return WORDS[x.word].emission(self.builder, signature, operands)
