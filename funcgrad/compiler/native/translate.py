"""Kernels to LLVM instructions.

``translate : function -> LLVM assembly``. `blocks` gives the blocks, `signatures` the types,
and here every assignment becomes the instructions of its word. This is the lean counterpart of what
``numba.njit`` does with the same words (`numba_path`): nothing is inferred, for all types are
known, and there are neither wrappers nor reference counts nor exceptions.

Left out: optimisation and object code (`llvm_backend`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from funcgrad.compiler.loops.language import SCOPES, Function
from funcgrad.compiler.native.blocks import (
    Argument,
    Assign,
    Branch,
    Jump,
    Number,
    Result,
    Return,
    Statement,
    Value,
    Variable,
    WordCall,
    Written,
    write,
)
from funcgrad.compiler.native.elementary import settle_formulas
from funcgrad.compiler.native.scalars import I32, I64, POINTER, declared
from funcgrad.compiler.native.signatures import give_types
from funcgrad.compiler.native.types import BOOL, FLOAT64, WEAK_FLOAT, Lanes, Literal
from funcgrad.compiler.native.vocabulary import (
    WORDS,
    constant,
    convert,
    lane_numbers,
    llvm_type,
    unwrap,
    wrap,
)


class Translation(NamedTuple):
    """A kernel in LLVM.

    Attributes:
        assembly: The module.
        is_in_vectors: Whether its innermost loops are, so that LLVM need not look for vectors.
    """

    assembly: str
    is_in_vectors: bool


def translate(function: Function, symbol: str) -> Translation:
    """A kernel in LLVM.

    Args:
        function: The kernel.
        symbol: Name of the native function.

    Raises:
        UnsupportedError: The kernel applies something that is no word.
        TypingError: A word is given what it does not take.
    """
    written = write(function, WORDS)
    module = KernelModule(symbol)
    _Lowering(module, written).lower()
    module.scope_accesses()
    settle_formulas(module)
    return Translation(str(module), written.is_in_vectors)


class KernelModule(ir.Module):
    """An LLVM module that remembers which memory every load and store belongs to.

    It also knows the vectors that scalars have been made to.

    Accesses of different scopes never overlap: that is what the ABI promises, and what lets LLVM
    vectorise loops without comparing addresses at run time. In a function that joins several, that
    is so of those of each one, and of each time it runs (`begin_scope`).
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._begin()

    @classmethod
    def adopt(cls, module: ir.Module) -> None:
        """Make a module that another compiler has begun one of these; it does without scopes."""
        if not isinstance(module, cls):
            module.__class__ = cls
            module._begin()
            module.has_scopes = False

    def _begin(self) -> None:
        self.has_scopes = True
        self.accesses: dict[Any, list[Any]] = {}
        self.empty_metadata = self.add_metadata([])
        weights = (ir.MetaDataString(self, "branch_weights"), I32(2000), I32(1))
        self.usually = self.add_metadata(weights)
        self.splats: dict[Any, Any] = {}
        self.begun: dict[int, Any] = {}

    def begin_scope(self, builder: ir.IRBuilder, scope: int) -> None:
        """Say that what a scope promises holds from here on, anew in each iteration."""
        if not self.has_scopes:
            return
        if scope not in self.begun:
            self.begun[scope] = ir.values.MDValue(self, [], str(len(self.metadata)))
        kind = ir.FunctionType(ir.VoidType(), [ir.MetaDataType()])
        begin = declared(builder, "llvm.experimental.noalias.scope.decl", kind)
        builder.call(begin, [self.begun[scope]])

    def leave_in_numbers(self, branch: Any) -> None:
        """Keep LLVM from making vectors of the loop that a branch repeats, which takes it time."""
        no = ir.Constant(ir.IntType(1), 0)
        hint = self.add_metadata([ir.MetaDataString(self, "llvm.loop.vectorize.enable"), no])
        branch.set_metadata("llvm.loop", _LoopName(self, [hint], str(len(self.metadata))))

    def note_access(self, instruction: Any, scope: Any) -> None:
        self.accesses.setdefault(scope, []).append(instruction)

    def scope_accesses(self) -> None:
        """Attach ``alias.scope`` and ``noalias`` to all accesses."""
        domain = self.add_metadata([ir.MetaDataString(self, "kernel")])
        scopes = {
            scope: self.add_metadata([ir.MetaDataString(self, f"scope {scope}"), domain])
            for scope in dict.fromkeys((*self.accesses, *self.begun))
        }
        groups = {s: s // SCOPES if isinstance(s, int) else -1 for s in scopes}
        for scope, begun in self.begun.items():
            begun.operands = [scopes[scope]]
        for scope, instructions in self.accesses.items():
            own = self.add_metadata([scopes[scope]])
            near = {groups[scope], -1} if groups[scope] >= 0 else {*groups.values()}
            others = self.add_metadata(
                [node for s, node in scopes.items() if s != scope and groups[s] in near]
            )
            for instruction in instructions:
                instruction.set_metadata("alias.scope", own)
                instruction.set_metadata("noalias", others)


class _LoopName(ir.values.MDValue):
    """What is said of a loop: a node like no other, which begins with itself."""

    def descr(self, buf: list[str]) -> None:
        parts = [self.get_reference(), *(hint.get_reference() for hint in self.operands)]
        buf.append(f"distinct !{{ {', '.join(parts)} }}\n")


def cast(builder: ir.IRBuilder, value: Any, source: Any, target: Any) -> Any:
    """The LLVM value of type ``source`` as one of type ``target``."""
    if source is target or isinstance(target, Literal):
        return value
    if isinstance(source, Literal):
        return constant(FLOAT64 if target is WEAK_FLOAT else target, source.literal_value)
    if source is WEAK_FLOAT:
        if isinstance(value, ir.Constant):
            return constant(target, value.constant)
        source = FLOAT64
    if isinstance(source, Lanes):
        return lane_numbers(builder, value, source)
    return unwrap(builder, convert(wrap(builder, value, source), target))


class _Lowering:
    """Appends the instructions of a kernel's blocks to an LLVM function.

    A variable that is one value is that value; of the others LLVM makes registers.
    """

    def __init__(self, module: KernelModule, written: Written) -> None:
        self.written = written
        self.types, self.calls = give_types(written.blocks)
        self.values: dict[str, Any] = {}
        self.variables: dict[str, Any] = {}
        kind = ir.FunctionType(I64, [POINTER, POINTER])
        self.function = ir.Function(module, kind, module.name)
        self.function.attributes.add("nounwind")
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))

    def lower(self) -> None:
        entry = self.builder.block
        self.blocks = [
            self.function.append_basic_block(f"B{label}")
            for label in range(len(self.written.blocks))
        ]
        for block, statements in zip(self.blocks, self.written.blocks, strict=True):
            self.builder.position_at_end(block)
            for statement in statements:
                self.append(statement)
        self.builder.position_at_end(entry)
        self.builder.branch(self.blocks[0])

    def append(self, statement: Statement) -> None:
        match statement:
            case Assign(name=name, value=value):
                self.store(name, self.evaluate(value, self.types[name]))
            case Jump(target=target):
                self.builder.branch(self.blocks[target])
            case Branch(condition=condition):
                flag = self.operand(condition, BOOL)
                targets = self.blocks[statement.if_true], self.blocks[statement.if_false]
                branch = self.builder.cbranch(flag, *targets)
                if statement.is_seldom:
                    self.builder.module.leave_in_numbers(branch)
            case Return(name=name):
                self.builder.ret(self.load(name))

    def evaluate(self, value: Value, t: Any) -> Any:
        """The LLVM value of type ``t``."""
        match value:
            case WordCall(word=word, operands=operands):
                signature = self.calls[value]
                given = list(map(self.operand, operands, signature.args))
                found = word.emit(self.builder, signature, given)
                return cast(self.builder, found, signature.return_type, t)
            case Variable(name=name) | Result(name=name):
                return self.operand(name, t)
            case Number(value=number):
                return ir.Constant(llvm_type(t), number)
            case Argument(position=position):
                return self.function.args[position]

    def operand(self, name: str, t: Any) -> Any:
        """A variable as a value of type ``t``."""
        return cast(self.builder, self.load(name), self.types[name], t)

    def load(self, name: str) -> Any:
        found = self.values.get(name)
        return self.builder.load(self._variable(name)) if found is None else found

    def store(self, name: str, value: Any) -> None:
        if name in self.written.in_memory:
            self.builder.store(value, self._variable(name))
        else:
            self.values[name] = value

    def _variable(self, name: str) -> Any:
        found = self.variables.get(name)
        if found is None:
            with self.builder.goto_entry_block():
                found = self.builder.alloca(llvm_type(self.types[name]), name=name)
            self.variables[name] = found
        return found
