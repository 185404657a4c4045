"""Numba as the front end: the source of a kernel becomes LLVM instructions.

``translate : source -> LLVM assembly``. `numba_ir` writes Numba's intermediate representation,
`signatures` gives its types, and Numba's lowering to LLVM runs on it with a context of our own,
which knows the vocabulary of kernels and nothing else: Numba's usual contexts load thousands of
overloads first, and its usual pipeline infers types that are known here and compiles wrappers,
reference counting and exception objects that a kernel has no use for.

Left out: Numba's code generator and its libraries (`llvm_backend` optimises and emits).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from funcgrad.compiler.native.elementary import settle_formulas
from funcgrad.compiler.native.numba_ir import Seldom, write
from funcgrad.compiler.native.numba_parts import funcdesc, lowering, targetconfig, types
from funcgrad.compiler.native.numba_parts import ir as blocks
from funcgrad.compiler.native.scalars import I32, I64, POINTER
from funcgrad.compiler.native.signatures import Call, give_types
from funcgrad.compiler.native.vocabulary import (
    WEAK_FLOAT,
    WORDS,
    Lanes,
    Literal,
    WordType,
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


def translate(source: str, symbol: str) -> Translation:
    """A kernel in LLVM.

    Args:
        source: Text of ``def kernel(slots, args): ...``.
        symbol: Name of the native function.

    Raises:
        numba.core.errors.NumbaError: The source uses something outside the vocabulary.
    """
    written = write(source, WORDS)
    function, in_memory = written.function, written.in_memory
    typemap, calls = give_types(function)
    description = funcdesc.PythonFunctionDescriptor.from_specialized_function(
        function,
        typemap,
        types.int64,
        {},
        mangler=_mangle,
        inline=False,
        noalias=False,
        abi_tags=(),
    )
    library = _Library(symbol)
    with targetconfig.ConfigStack().enter(_Flags()):
        lower = KernelLower(_Context(), library, description, function)
        lower.calls, lower.in_memory = calls, in_memory
        lower.lower()
    library.module.scope_accesses()
    settle_formulas(library.module)
    return Translation(str(library.module), written.is_in_vectors)


def _mangle(name: str, argtypes: Any, **options: Any) -> str:
    return name


class _Flags(targetconfig.TargetConfig):
    """What Numba's lowering asks of the flags of a compilation: nothing is for debuggers."""

    debuginfo = targetconfig.Option(type=bool, default=False, doc="debug information")
    dbg_directives_only = targetconfig.Option(type=bool, default=False, doc="line numbers only")


class KernelModule(ir.Module):
    """An LLVM module that remembers which memory every load and store belongs to.

    It also knows the vectors that scalars have been made to.

    Accesses of different scopes never overlap: that is what the ABI promises, and what lets LLVM
    vectorise loops without comparing addresses at run time.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.accesses: dict[Any, list[Any]] = {}
        self.empty_metadata = self.add_metadata([])
        weights = (ir.MetaDataString(self, "branch_weights"), I32(2000), I32(1))
        self.usually = self.add_metadata(weights)
        self.splats: dict[Any, Any] = {}

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
            for scope in self.accesses
        }
        for scope, instructions in self.accesses.items():
            own = self.add_metadata([scopes[scope]])
            others = self.add_metadata([node for s, node in scopes.items() if s != scope])
            for instruction in instructions:
                instruction.set_metadata("alias.scope", own)
                instruction.set_metadata("noalias", others)


class _LoopName(ir.values.MDValue):
    """What is said of a loop: a node like no other, which begins with itself."""

    def descr(self, buf: list[str]) -> None:
        parts = [self.get_reference(), *(hint.get_reference() for hint in self.operands)]
        buf.append(f"distinct !{{ {', '.join(parts)} }}\n")


class _Library:
    """What Numba's lowering asks of a code library."""

    def __init__(self, symbol: str) -> None:
        self.module = KernelModule(symbol)

    def create_ir_module(self, name: str) -> ir.Module:
        return self.module

    def add_ir_module(self, module: ir.Module) -> None:
        assert module is self.module


class _Convention:
    """What Numba's lowering asks of a calling convention: the result is returned as it is."""

    def return_value(self, builder: ir.IRBuilder, value: Any) -> None:
        builder.ret(value)


class _Context:
    """What Numba's lowering asks of a target."""

    call_conv = _Convention()
    enable_debuginfo = False

    def subtarget(self, **attributes: Any) -> _Context:
        return self

    def get_constant_generic(self, builder: ir.IRBuilder, ty: Any, value: Any) -> Any:
        if isinstance(ty, WordType):
            return ir.Constant(llvm_type(types.none), 0)
        return ir.Constant(llvm_type(ty), value)

    def get_return_value(self, builder: ir.IRBuilder, ty: Any, value: Any) -> Any:
        return value

    def cast(self, builder: ir.IRBuilder, value: Any, source: Any, target: Any) -> Any:
        if source == target or isinstance(target, Literal):
            return value
        if isinstance(source, Literal):
            return constant(types.float64 if target == WEAK_FLOAT else target, source.literal_value)
        if source == WEAK_FLOAT:
            if isinstance(value, ir.Constant):
                return constant(target, value.constant)
            source = types.float64
        if isinstance(source, Lanes):
            return lane_numbers(builder, value, source)
        return unwrap(builder, convert(wrap(builder, value, source), target))


class KernelLower(lowering.Lower):
    """Numba's lowering with plain variables: no reference counts, no debug information.

    Attributes:
        calls: What every call calls.
        in_memory: The variables that are more than one value; LLVM takes them into registers.
    """

    calls: dict[Any, Call]
    in_memory: set[str]

    def init(self) -> None:
        """Numba looks here for variables that are one value."""

    def lower(self) -> None:
        self.genlower = None
        self.lower_normal_function(self.fndesc)

    def setup_function(self, fndesc: Any) -> None:
        self.values: dict[str, Any] = {}
        self.variables: dict[str, Any] = {}
        kind = ir.FunctionType(I64, [POINTER, POINTER])
        self.function = ir.Function(self.module, kind, self.module.name)
        self.function.attributes.add("nounwind")
        self.entry_block = self.function.append_basic_block("entry")
        self.builder = ir.IRBuilder(self.entry_block)

    def extract_function_arguments(self) -> Any:
        self.fnargs = self.function.args
        return self.fnargs

    def lower_block(self, block: Any) -> None:
        """Lower the statements; an error needs no place in them, for the whole source is shown."""
        for statement in block.body:
            self.loc = statement.loc
            self.lower_inst(statement)

    def lower_inst(self, inst: Any) -> None:
        if isinstance(inst, blocks.Assign):
            name = inst.target.name
            self.storevar(self.lower_assign(self.typeof(name), inst), name)
            return
        super().lower_inst(inst)
        if isinstance(inst, Seldom):
            self.module.leave_in_numbers(self.builder.block.terminator)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op == "cast":
            return self.operand(expr.value, resty)
        call = self.calls[expr]
        found = self.apply(call)
        return self.context.cast(self.builder, found, call.signature.return_type, resty)

    def apply(self, call: Call) -> Any:
        operands = list(map(self.operand, call.operands, call.signature.args))
        return call.word.emit(self.builder, call.signature, operands)

    def operand(self, variable: Any, ty: Any) -> Any:
        name = variable.name
        return self.context.cast(self.builder, self.loadvar(name), self.typeof(name), ty)

    def loadvar(self, name: str) -> Any:
        found = self.values.get(name)
        return self.builder.load(self._variable(name)) if found is None else found

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if name in self.in_memory:
            self.builder.store(value, self._variable(name))
        else:
            self.values[name] = value

    def _variable(self, name: str) -> Any:
        found = self.variables.get(name)
        if found is None:
            with self.builder.goto_entry_block():
                found = self.builder.alloca(llvm_type(self.typeof(name)), name=name)
            self.variables[name] = found
        return found

    def incref(self, ty: Any, value: Any) -> None:
        """Scalars are not counted."""

    def decref(self, ty: Any, value: Any) -> None:
        """Scalars are not counted."""
