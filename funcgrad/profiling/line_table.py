"""Line tables: the statement that each instruction of a kernel is of.

``read_lines : kernel -> LineTable``. LLVM writes them as DWARF (version 4, section 6.2): a
program for a machine with registers for the address and the line, which here is a statement, each
of whose rows holds from its address to that of the next one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.runtime.kernel_store import LinedBuild
from funcgrad.compiler.runtime.linker import line_program


@dataclass(frozen=True)
class LineTable:
    """Map from instructions of a function, whose first one has offset 0, to statements.

    Attributes:
        starts: Where rows begin, ascending.
        lines: Their statements, 0 where nobody knows.
        called: Functions that statements call, as offsets, and the statements.
        sizes: Instructions of each statement as it was translated, those of formulas among them.
        first: The lowest offset of these, and of the function.
        end: Behind the last of them.
    """

    starts: np.ndarray
    lines: np.ndarray
    called: tuple[tuple[range, tuple[int, ...]], ...]
    sizes: dict[int, int]
    first: int
    end: int

    def shares(self, offsets: np.ndarray) -> dict[int, float]:
        """How many of some instructions are of each of `lines`.

        Those of a function that several statements call count in equal parts.
        """
        shares: dict[int, float] = {}
        rest = np.ones(len(offsets), bool)
        for place, callers in self.called:
            is_here = (offsets >= place.start) & (offsets < place.stop)
            rest &= ~is_here
            for line in callers:
                shares[line] = shares.get(line, 0.0) + is_here.sum() / len(callers)
        rows = np.searchsorted(self.starts, offsets[rest], "right") - 1
        found = np.where(rows >= 0, self.lines[np.maximum(rows, 0)], 0)
        for line, count in zip(*np.unique(found, return_counts=True), strict=True):
            shares[int(line)] = shares.get(int(line), 0.0) + int(count)
        return {line: share for line, share in shares.items() if share}


def read_lines(build: LinedBuild) -> LineTable | None:
    """The line table of a kernel, if its object file has one that can be read.

    Args: build: The kernel, and what it is made of.
    """
    symbol, assembly = build.symbol, build.assembly
    found = line_program(build.object_file())
    if found is None or symbol not in found[1]:
        return None
    section, functions = found
    rows = sorted(_rows(section))
    start = functions.pop(symbol).start
    places = {name: range(p.start - start, p.stop - start) for name, p in functions.items()}
    callers = _callers(assembly, symbol)
    called = tuple((place, callers[name]) for name, place in places.items() if callers.get(name))
    addresses, lines = np.array(rows or [(0, 0)], np.int64).T
    ends = [place.stop for place in places.values()]
    first = min([0, *(place.start for place in places.values())])
    end = max([rows[-1][0] - start, *ends])
    return LineTable(addresses - start, lines, called, _sizes(assembly, symbol), first, end)


_DEFINED = re.compile(r"^define [^@]*@([\w.]+)\(")
_CALLED = re.compile(r"\bcall [^@]*@([\w.]+)\(")
_AT = re.compile(r"!dbg !(\d+)$")
_LINE = re.compile(r"^!(\d+) = !DILocation\(line: (\d+),", re.MULTILINE)


def _callers(assembly: str, symbol: str) -> dict[str, tuple[int, ...]]:
    """The statements of a function that call others, at once or through others."""
    numbers = {node: int(line) for node, line in _LINE.findall(assembly)}
    calls: dict[str, set[str]] = {}
    found: list[tuple[str, int]] = []
    function = ""
    for text in assembly.splitlines():
        if (define := _DEFINED.match(text)) is not None:
            function = define[1]
        elif (call := _CALLED.search(text)) is not None:
            calls.setdefault(function, set()).add(call[1])
            if function == symbol and (at := _AT.search(text)) is not None:
                found.append((call[1], numbers[at[1]]))
    lines: dict[str, set[int]] = {}
    while found:
        name, line = found.pop()
        if line not in lines.setdefault(name, set()):
            lines[name].add(line)
            found += [(inner, line) for inner in calls.get(name, ())]
    return {name: tuple(sorted(of)) for name, of in lines.items()}


_NO_CODE = re.compile(r" = (phi|getelementptr) |^  br label ")
"""Joins of blocks and moved addresses, which are rarely instructions of their own."""


def _sizes(assembly: str, symbol: str) -> dict[int, int]:
    """How many instructions each statement is, with those of the functions that it calls."""
    numbers = {node: int(line) for node, line in _LINE.findall(assembly)}
    own: dict[str, int] = {}
    calls: dict[str, list[str]] = {}
    rows: list[tuple[int, str]] = []
    function = ""
    for text in assembly.splitlines():
        if (define := _DEFINED.match(text)) is not None:
            function = define[1]
        elif text.startswith("  ") and not _NO_CODE.search(text):
            own[function] = own.get(function, 0) + 1
            call = _CALLED.search(text)
            if call is not None:
                calls.setdefault(function, []).append(call[1])
            if function == symbol and (at := _AT.search(text)) is not None:
                rows.append((numbers[at[1]], "" if call is None else call[1]))

    def size(name: str) -> int:
        return own.get(name, 1) + sum(map(size, calls.get(name, ())))

    sizes: dict[int, int] = {}
    for line, called in rows:
        sizes[line] = sizes.get(line, 0) + (size(called) if called else 1)
    return sizes


_HEAD = struct.Struct("<IHIBBBbBB")
_COPY, _ADVANCE, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN = range(1, 6)
_CONST_ADD, _FIXED_ADVANCE, _SET_ISA = 8, 9, 12
_END, _SET_ADDRESS = 1, 2


def _rows(program: bytes) -> Iterator[tuple[int, int]]:
    """Addresses, and the lines from there on."""
    _, version, head, least, _, _, base, width, first = _HEAD.unpack_from(program)
    if version != 4:
        return
    place = 10 + head
    address, line = 0, 1

    def number(is_signed: bool = False) -> int:
        nonlocal place
        found = shift = 0
        while True:
            byte = program[place]
            place += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found - (1 << shift) if is_signed and byte & 0x40 else found

    while place < len(program):
        code = program[place]
        place += 1
        if code >= first:
            address += (code - first) // width * least
            line += base + (code - first) % width
            yield address, line
        elif code == 0:
            size = number()
            end, code = place + size, program[place]
            if code == _SET_ADDRESS:
                (address,) = struct.unpack_from("<Q", program, place + 1)
            elif code == _END:
                yield address, 0
                address, line = 0, 1
            place = end
        elif code == _COPY:
            yield address, line
        elif code == _ADVANCE:
            address += number() * least
        elif code == _ADVANCE_LINE:
            line += number(is_signed=True)
        elif code == _CONST_ADD:
            address += (255 - first) // width * least
        elif code == _FIXED_ADVANCE:
            address += struct.unpack_from("<H", program, place)[0]
            place += 2
        elif code in (_SET_FILE, _SET_COLUMN, _SET_ISA):
            number()
