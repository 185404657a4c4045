"""LLVM assembly while it is written, as text: types, blocks, functions and modules.

An instruction is a line, a value is its name: what is written is what LLVM's parser reads, and
nothing is built only to be printed. Functions that do not depend on the kernel (formulas, masked
accesses) are written once in a process, and belong to every module that calls them.

Left out: values and their operators (`scalars`), and optimisation (`llvm_backend`).
"""

from __future__ import annotations

import ctypes
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from funcgrad.compiler.loops.language import SCOPES


class Type:
    """A type of LLVM; each is one object.

    Attributes:
        text: How it is written.
        suffix: What the names of LLVM's functions of it end with.
        width: Bits of an element.
        count: Elements of a vector; 0 of a scalar.
        element: The type of an element; of a scalar, itself.
    """

    __slots__ = ("count", "element", "suffix", "text", "width")

    def __init__(self, text: str, suffix: str = "", width: int = 0) -> None:
        self.text = text
        self.suffix = suffix
        self.width = width
        self.count = 0
        self.element = self

    def __str__(self) -> str:
        return self.text

    @property
    def nbytes(self) -> int:
        """Bytes of an element."""
        return self.width // 8

    def of(self, element: Type) -> Type:
        """The type of as many elements of another type."""
        return vector_of(element, self.count) if self.count else element


@cache
def integer(width: int) -> Type:
    """The type of integers of so many bits."""
    return Type(f"i{width}", f"i{width}", width)


@cache
def vector_of(element: Type, count: int) -> Type:
    """The type of vectors."""
    found = Type(f"<{count} x {element}>", f"v{count}{element.suffix}", element.width)
    found.count, found.element = count, element
    return found


def structure_of(types: Sequence[Type]) -> Type:
    """The type of what a function returns that has several values of as many elements."""
    found = Type(f"{{ {', '.join(map(str, types))} }}")
    found.count = types[0].count
    return found


I1, I8, I16, I32, I64 = map(integer, (1, 8, 16, 32, 64))
F32, F64 = Type("float", "f32", 32), Type("double", "f64", 64)
POINTER, VOID = Type("ptr", "p0", 64), Type("void")


def constant_text(type: Type, number: Any) -> str:
    """A number as LLVM writes it; of a vector, in every element."""
    if type.count:
        return f"splat ({type.element} {constant_text(type.element, number)})"
    if type is F64 or type is F32:
        number = float(number) if type is F64 else ctypes.c_float(number).value
        return f"0x{struct.pack('>d', number).hex()}"
    return str(int(number))


class Block:
    """Instructions that run one after the other.

    Attributes:
        label: Its name.
        phis: The instructions that say what came in.
        lines: The others, up to the last one.
        end: The last one, which says what comes next; empty as long as the block is open.
    """

    __slots__ = ("end", "label", "lines", "phis")

    def __init__(self, label: str) -> None:
        self.label = label
        self.phis: list[str] = []
        self.lines: list[str] = []
        self.end = ""


class Function:
    """A function, whose arguments are ``%a0``, ``%a1``, ...

    Args:
        symbol: Its name.
        result: The type of what it returns.
        arguments: The types of what it is given.
        attributes: What is said of it.
        linkage: Who may call it.

    Attributes:
        rooms: Bytes of what it has on the stack, ``%r0``, ``%r1``, ...
        is_given_rooms: Whether these are arguments, behind the others.
        origin: Metadata of the function, where its instructions have lines.
    """

    def __init__(
        self,
        symbol: str,
        result: Type,
        arguments: Sequence[Type],
        attributes: str = "nounwind",
        linkage: str = "internal ",
    ) -> None:
        self.symbol = symbol
        self.result = result
        self.arguments = tuple(arguments)
        self.attributes = attributes
        self.linkage = linkage
        self.blocks: list[Block] = []
        self.allocas: list[str] = []
        self.rooms: list[int] = []
        self.is_given_rooms = False
        self.origin = ""
        self.n_values = 0

    def text(self, attributes: str = "") -> str:
        """Its definition.

        Args: attributes: What a module says of it.
        """
        arguments, allocas = [f"{t} %a{k}" for k, t in enumerate(self.arguments)], self.allocas
        if self.is_given_rooms:
            arguments += [f"ptr %r{k}" for k in range(len(self.rooms))]
        else:
            rooms = enumerate(self.rooms)
            allocas = [f"  %r{k} = alloca [{n} x i8], align 64" for k, n in rooms] + allocas
        given = ", ".join(arguments)
        lines = [
            f"define {self.linkage}{self.result} @{self.symbol}({given}) "
            f"{self.attributes} {attributes}{self.origin} {{"
        ]
        for block in self.blocks:
            lines += [f"{block.label}:", *block.phis, *allocas, *block.lines, block.end]
            allocas = []
        lines.append("}\n")
        return "\n".join(lines)


class Module:
    """Functions that are compiled together, and what LLVM is told of their accesses to memory.

    Accesses of different scopes never overlap: that is what the ABI promises, and what lets LLVM
    vectorise loops without comparing addresses at run time. In a function that joins several, that
    is so of those of each one, and of each time it runs (`begun`).

    Args: has_hints: Whether LLVM is told of scopes and of what is likely.

    Attributes:
        functions: What is defined, by symbol.
        declarations: What is defined elsewhere.
        attributes: What this module says of functions that others have, too.
        n_calls: How many calls of formulas it has, by symbol.
        kept: Functions that LLVM must not remove, as only its vectoriser may call them.
        has_order: Whether LLVM must leave the terms of folds in the order in which they are.
        likely: Metadata of a branch that nearly always takes the first way.
        unlikely: That of one that rarely does.
        unpredictable: That of a selection that is no branch, as the processor could not predict it.
        always_same: That of a load from memory that nothing writes.
    """

    def __init__(self, has_hints: bool = True) -> None:
        self.has_hints = has_hints
        self.functions: dict[str, Function] = {}
        self.declarations: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.n_calls: Counter[str] = Counter()
        self.kept: list[str] = []
        self.has_order = False
        hints = ", !prof !2", ", !prof !3", ", !unpredictable !0", ", !invariant.load !0"
        self.likely, self.unlikely, self.unpredictable, self.always_same = (
            hints if has_hints else ("",) * len(hints)
        )
        self._nodes = [
            "!{}",
            '!{!"kernel"}',
            '!{!"branch_weights", i32 2000, i32 1}',
            '!{!"branch_weights", i32 1, i32 99}',
        ]
        self._scopes: dict[Any, int] = {}
        self._named: list[str] = []

    def number_lines(self, function: Function) -> Callable[[int], str]:
        """Have LLVM keep the lines of a function's instructions: metadata for each.

        It writes them to the line table of the object file, and the code is the same. Of an
        instruction that it makes of two, or moves to before another one, it keeps the lower line
        (`llvm_backend.keep_lines`).
        """
        file = self._node('!DIFile(filename: "kernel", directory: "")')
        unit = self._node(
            f"distinct !DICompileUnit(language: DW_LANG_C99, file: !{file}, isOptimized: true, "
            "runtimeVersion: 0, emissionKind: LineTablesOnly)"
        )
        kind = self._node("!DISubroutineType(types: !0)")
        own = self._node(
            f'distinct !DISubprogram(name: "kernel", scope: !{file}, file: !{file}, line: 1, '
            f"type: !{kind}, scopeLine: 1, spFlags: DISPFlagDefinition | DISPFlagOptimized, "
            f"unit: !{unit})"
        )
        dwarf = self._node('!{i32 2, !"Dwarf Version", i32 4}')
        info = self._node('!{i32 2, !"Debug Info Version", i32 3}')
        self._named += [
            f"!llvm.dbg.cu = !{{!{unit}}}",
            f"!llvm.module.flags = !{{!{dwarf}, !{info}}}",
        ]
        function.origin = f" !dbg !{own}"

        def metadata(line: int) -> str:
            return f", !dbg !{self._node(f'!DILocation(line: {line}, scope: !{own})')}"

        return metadata

    def _node(self, text: str) -> int:
        self._nodes.append(text)
        return len(self._nodes) - 1

    def _scope(self, scope: Any) -> int:
        """The number of the node of a scope; the lists of itself and of the others follow it."""
        found = self._scopes.get(scope)
        if found is None:
            found = self._scopes[scope] = self._node(f'!{{!"scope {scope}", !1}}')
            self._node(f"!{{!{found}}}")
            self._node("")
        return found

    def access(self, scope: Any) -> str:
        """Metadata of an access to memory of a scope."""
        if not self.has_hints:
            return ""
        node = self._scope(scope)
        return f", !alias.scope !{node + 1}, !noalias !{node + 2}"

    def begun(self, scope: int) -> str:
        """The instruction by which what a scope promises holds anew; empty without hints."""
        if not self.has_hints:
            return ""
        name = "llvm.experimental.noalias.scope.decl"
        self.declarations[name] = f"declare void @{name}(metadata)"
        return f"call void @{name}(metadata !{self._scope(scope) + 1})"

    def left_in_numbers(self) -> str:
        """Metadata of the branch of a loop that LLVM shall not vectorise."""
        hint = self._node('!{!"llvm.loop.vectorize.enable", i1 0}')
        return f", !llvm.loop !{self._node(f'distinct !{{!{hint + 1}, !{hint}}}')}"

    def helper(self, symbol: str, write: Callable[[Module, str], None]) -> Function:
        """A function that is written once in a process, with all that it calls.

        Args:
            symbol: Its name, which says all of it.
            write: What adds it to a module.
        """
        found = self.functions.get(symbol)
        if found is None:
            known = _HELPERS.get((symbol, self.has_hints))
            if known is None:
                known = Module(self.has_hints)
                write(known, symbol)
                _HELPERS[symbol, self.has_hints] = known
            self.functions.update(known.functions)
            self.declarations.update(known.declarations)
            self.kept += known.kept
            found = self.functions[symbol]
        return found

    def text(self) -> str:
        """The assembly."""
        parts = [f.text(self.attributes.get(symbol, "")) for symbol, f in self.functions.items()]
        parts += self.declarations.values()
        if self.kept:
            kept = [f"ptr @{symbol}" for symbol in dict.fromkeys(self.kept)]
            parts.append(
                f"@llvm.compiler.used = appending global [{len(kept)} x ptr] [{', '.join(kept)}], "
                'section "llvm.metadata"'
            )
        self._tell_scopes_apart()
        parts += self._named
        parts += [f"!{k} = {node}" for k, node in enumerate(self._nodes)]
        return "\n".join(parts) + "\n"

    def _tell_scopes_apart(self) -> None:
        """List for every scope the others, of its own function and of what all have in common."""
        groups = {s: s // SCOPES if isinstance(s, int) else -1 for s in self._scopes}
        for scope, node in self._scopes.items():
            near = {groups[scope], -1} if groups[scope] >= 0 else {*groups.values()}
            others = [f"!{n}" for s, n in self._scopes.items() if n != node and groups[s] in near]
            self._nodes[node + 2] = f"!{{{', '.join(others)}}}"


_HELPERS: dict[tuple[str, bool], Module] = {}
"""Functions that do not depend on the kernel, each with all that it calls."""
