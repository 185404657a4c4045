"""Numba as the front end: the source of a kernel becomes LLVM instructions.

``translate : source -> LLVM assembly``. `numba_ir` writes Numba's intermediate
representation; Numba's type inference and its lowering to LLVM run on it with contexts of our own,
which know the vocabulary of kernels and nothing else: Numba's usual contexts load thousands of
overloads first, and its usual pipeline compiles wrappers, reference counting and exception objects
that a kernel has no use for.

Left out: Numba's code generator and its libraries (`llvm_backend` optimises and emits).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import funcdesc, lowering, targetconfig, types
from numba.core.base import BaseContext
from numba.core.compiler import Flags
from numba.core.typed_passes import type_inference_stage
from numba.core.typing.context import BaseContext as BaseTypingContext

from funcgrad.compiler.native.numba_ir import write
from funcgrad.compiler.native.scalars import I64, POINTER
from funcgrad.compiler.native.vocabulary import (
    ARGS,
    OPERATORS,
    SLOTS,
    WEAK_FLOAT,
    WORDS,
    Word,
    WordType,
    constant,
    convert,
    is_weak,
    llvm_type,
    promote,
    unwrap,
    wrap,
)


def translate(source: str, symbol: str) -> str:
    """LLVM assembly of a kernel.

    Args:
        source: Text of ``def kernel(slots, args): ...``.
        symbol: Name of the native function.

    Raises:
        numba.core.errors.NumbaError: The source uses something outside the vocabulary.
    """
    blocks = write(source, WORDS)
    with targetconfig.ConfigStack().enter(Flags()):
        typemap, result, calltypes, _ = type_inference_stage(
            TYPING, TARGET, blocks, (SLOTS, ARGS), types.int64
        )
        description = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            blocks,
            typemap,
            result,
            calltypes,
            mangler=_mangle,
            inline=False,
            noalias=False,
            abi_tags=(),
        )
        library = _Library(symbol)
        KernelLower(TARGET, library, description, blocks).lower()
    library.module.scope_accesses()
    return str(library.module)


def _mangle(name: str, argtypes: Any, **options: Any) -> str:
    return name


class TypingContext(BaseTypingContext):
    """Types of the words, of Python's operators and of literals."""

    def resolve_value_type(self, value: Any) -> Any:
        if isinstance(value, Word):
            return value.type
        if isinstance(value, float):
            return WEAK_FLOAT
        if isinstance(value, bool):
            return types.boolean
        if isinstance(value, int):
            return types.int64
        if value is None:
            return types.none
        if value in OPERATORS:
            return OPERATORS[value].type
        raise ValueError(f"{value!r} is not a word of kernels")

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        if not isinstance(function, WordType):
            function = self.resolve_value_type(function)
        return function.get_call_type(self, args, kws)

    def unify_pairs(self, first: Any, second: Any) -> Any:
        if first == second or second is types.undefined:
            return first
        if first is types.undefined:
            return second
        if is_weak(first) or is_weak(second):
            return promote((first, second))
        return None


class KernelModule(ir.Module):
    """An LLVM module that remembers which memory every load and store belongs to.

    Accesses of different scopes never overlap: that is what the ABI promises, and what lets LLVM
    vectorise loops without comparing addresses at run time.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.accesses: dict[Any, list[Any]] = {}

    def note_access(self, instruction: Any, scope: Any) -> None:
        self.accesses.setdefault(scope, []).append(instruction)

    def empty_metadata(self) -> Any:
        return self.add_metadata([])

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


class TargetContext(BaseContext):
    """Implementations of the words: they write their own instructions."""

    call_conv = _Convention()

    def get_function(self, function: Any, sig: Any, _firstcall: bool = True) -> Any:
        if not isinstance(function, WordType):
            function = self.typing_context.resolve_value_type(function)
        return lambda builder, args, loc=None: function.word.emit(builder, sig, args)

    def get_constant_generic(self, builder: ir.IRBuilder, ty: Any, value: Any) -> Any:
        if isinstance(ty, WordType) or value is None:
            return self.get_dummy_value()
        return ir.Constant(llvm_type(ty), value)

    def get_value_type(self, ty: Any) -> Any:
        return llvm_type(ty)

    def get_dummy_value(self) -> Any:
        return ir.Constant(llvm_type(types.none), 0)

    def get_return_value(self, builder: ir.IRBuilder, ty: Any, value: Any) -> Any:
        return value

    def cast(self, builder: ir.IRBuilder, value: Any, source: Any, target: Any) -> Any:
        if source == target or isinstance(target, types.Literal):
            return value
        if isinstance(source, types.Literal):
            return constant(types.float64 if target == WEAK_FLOAT else target, source.literal_value)
        if source == WEAK_FLOAT:
            if isinstance(value, ir.Constant):
                return constant(target, value.constant)
            source = types.float64
        return unwrap(builder, convert(wrap(builder, value, source), target))

    def codegen(self) -> None:
        """There is none: see `llvm_backend`."""


class KernelLower(lowering.Lower):
    """Numba's lowering with plain variables: no reference counts, no debug information."""

    def lower(self) -> None:
        self.genlower = None
        self.lower_normal_function(self.fndesc)

    def setup_function(self, fndesc: Any) -> None:
        self.variables: dict[str, Any] = {}
        kind = ir.FunctionType(I64, [POINTER, POINTER])
        self.function = ir.Function(self.module, kind, self.module.name)
        self.function.attributes.add("nounwind")
        self.entry_block = self.function.append_basic_block("entry")
        self.builder = ir.IRBuilder(self.entry_block)

    def extract_function_arguments(self) -> Any:
        self.fnargs = self.function.args
        return self.fnargs

    def pre_block(self, block: Any) -> None:
        self._cur_ir_block = block

    def post_block(self, block: Any) -> None:
        """Numba cleans up after exceptions here; kernels have none."""

    def loadvar(self, name: str) -> Any:
        found = self._blk_local_varmap.get(name)
        return self.builder.load(self._variable(name)) if found is None else found

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self._variable(name))

    def _variable(self, name: str) -> Any:
        found = self.variables.get(name)
        if found is None:
            with self.builder.goto_entry_block():
                found = self.builder.alloca(llvm_type(self.typeof(name)), name=name)
            self.variables[name] = found
        return found

    def delvar(self, name: str) -> None:
        self._blk_local_varmap.pop(name, None)

    def incref(self, ty: Any, value: Any) -> None:
        """Scalars are not counted."""

    def decref(self, ty: Any, value: Any) -> None:
        """Scalars are not counted."""


TYPING = TypingContext()
TARGET = TargetContext(TYPING, "cpu")
