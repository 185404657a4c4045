"""Object files become code of this process without LLVM, which takes longer to load than they.

``link : object file -> address``. What LLVM writes for kernels on Linux and x86-64 is simple:
read-only sections, and 64-bit addresses of these and of functions of the C library that are to be
put into them. They are copied into pages that become executable when they are no longer writable.
For every other object file, and on other systems, the answer is ``None``, and LLVM's own linker has
it.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from typing import Any, NamedTuple

IS_AVAILABLE = (
    sys.platform == "linux"
    and platform.machine() == "x86_64"
    and struct.calcsize("P") == 8
    and sys.byteorder == "little"
)

_HEAD = struct.Struct("<16sHHIQQQIHHHHHH")
_MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian
_RELOCATABLE, _X86_64 = 1, 62
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_ADDRESS = struct.Struct("<Q")

_CONTENT, _SYMBOLS, _RELOCATIONS, _OTHER_RELOCATIONS = 1, 2, 4, 9
_WRITABLE, _IN_MEMORY, _OF_THREADS = 1, 2, 0x400
_ELSEWHERE, _ABSOLUTE = 0, 0xFFF1
_ADDRESS_64 = 1
_FUNCTION = 2
_FAILED = ctypes.c_void_p(-1).value


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _NotSimple(Exception):
    """An object file has what is not known here."""


_FAILURES = (_NotSimple, struct.error, IndexError, ValueError)
"""Exceptions for object files that are not simple, or none at all."""


def link(code: bytes, symbol: str) -> int | None:
    """Bring an object file into the process.

    Args:
        code: The object file.
        symbol: The name of a function in it.
    Returns: The function's address, or ``None`` if another linker is needed.
    """
    if not IS_AVAILABLE:
        return None
    try:
        return _link(code, symbol)
    except _FAILURES:
        return None


def _link(code: bytes, symbol: str) -> int:
    sections = _sections(code)
    places, size = _places(sections, len(code))
    base = _libc("mmap", ctypes.c_void_p)(
        None,
        ctypes.c_size_t(size),
        mmap.PROT_READ | mmap.PROT_WRITE,
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        -1,
        ctypes.c_long(0),
    )
    if base in (None, _FAILED):
        raise _NotSimple
    try:
        image, function = _placed(code, sections, places, size, base, symbol.encode())
        ctypes.memmove(base, image, size)
        pages = ctypes.c_void_p(base), ctypes.c_size_t(size)
        if _libc("mprotect")(*pages, mmap.PROT_READ | mmap.PROT_EXEC):
            raise _NotSimple
    except _FAILURES:
        _libc("munmap")(ctypes.c_void_p(base), ctypes.c_size_t(size))
        raise
    # The pages stay: threads may be in them when the interpreter ends.
    return function


def _placed(
    code: bytes,
    sections: list[_Section],
    places: dict[int, int],
    size: int,
    base: int,
    wanted: bytes,
) -> tuple[bytes, int]:
    """Bytes to be placed in memory from an address on, and the address of a function in it."""
    image = bytearray(size)
    for number, place in places.items():
        section = sections[number]
        image[place : place + section.size] = _content(code, section)
    starts = {number: base + place for number, place in places.items()}
    function = None
    for section in sections:
        if section.kind == _SYMBOLS:
            function = _function(code, sections, section, starts, wanted)
        elif section.kind == _OTHER_RELOCATIONS:
            raise _NotSimple
        elif section.kind == _RELOCATIONS and section.info in places:
            symbols, place = sections[section.link], places[section.info]
            room = sections[section.info].size - _ADDRESS.size
            for offset, what, addend in _RELOCATION.iter_unpack(_content(code, section)):
                if what & 0xFFFFFFFF != _ADDRESS_64 or offset > room:
                    raise _NotSimple
                target = _target(code, sections, symbols, starts, what >> 32)
                _ADDRESS.pack_into(image, place + offset, target + addend & (1 << 64) - 1)
    if function is None:
        raise _NotSimple
    return bytes(image), function


def line_program(code: bytes) -> tuple[bytes, dict[str, range]] | None:
    """Read what an object file tells of the lines of its instructions, and where functions are.

    Returns: The section ``.debug_line``, and the addresses of the instructions of functions,
        counted from the start of their section; ``None`` if the file is not simple.
    """
    if not IS_AVAILABLE:
        return None
    try:
        return _line_program(code)
    except _FAILURES:
        return None


def _line_program(code: bytes) -> tuple[bytes, dict[str, range]]:
    sections = _sections(code)
    names = sections[_HEAD.unpack_from(code)[13]]
    number = [_name(code, names, s.name) for s in sections].index(b".debug_line")
    found = bytearray(_content(code, sections[number]))
    starts = {i: 0 for i, s in enumerate(sections) if s.flags & _IN_MEMORY}
    functions: dict[str, range] = {}
    for section in sections:
        if section.kind == _SYMBOLS:
            strings = sections[section.link]
            for name, kind, _, _, value, size in _SYMBOL.iter_unpack(_content(code, section)):
                if kind & 15 == _FUNCTION:
                    functions[_name(code, strings, name).decode()] = range(value, value + size)
        elif section.kind == _RELOCATIONS and section.info == number:
            symbols = sections[section.link]
            for offset, what, addend in _RELOCATION.iter_unpack(_content(code, section)):
                if what & 0xFFFFFFFF == _ADDRESS_64:
                    target = _target(code, sections, symbols, starts, what >> 32)
                    _ADDRESS.pack_into(found, offset, target + addend)
    return bytes(found), functions


def _libc(name: str, result: Any = ctypes.c_int) -> Any:
    """A function of the C library."""
    found = ctypes.pythonapi[name]
    found.restype = result
    return found


def _sections(code: bytes) -> list[_Section]:
    head = _HEAD.unpack_from(code)
    if (head[0][:7], head[1], head[2]) != (_MAGIC, _RELOCATABLE, _X86_64):
        raise _NotSimple
    start, size, count = head[6], head[11], head[12]
    if size != _SECTION.size:
        raise _NotSimple
    return [_Section(*_SECTION.unpack_from(code, start + size * i)) for i in range(count)]


def _content(code: bytes, section: _Section) -> bytes:
    found = code[section.offset : section.offset + section.size]
    if len(found) != section.size:
        raise _NotSimple
    return found


def _places(sections: list[_Section], n_bytes: int) -> tuple[dict[int, int], int]:
    """Offsets of the sections that are needed in memory, and the length of all."""
    places: dict[int, int] = {}
    end = 0
    for number, section in enumerate(sections):
        if section.flags & _IN_MEMORY and section.size:
            if section.kind != _CONTENT or section.flags & (_WRITABLE | _OF_THREADS):
                raise _NotSimple
            alignment = max(section.alignment, 1)
            if mmap.PAGESIZE % alignment or section.size > n_bytes:
                raise _NotSimple
            places[number] = -(-end // alignment) * alignment
            end = places[number] + section.size
    return places, max(-(-end // mmap.PAGESIZE), 1) * mmap.PAGESIZE


def _target(
    code: bytes, sections: list[_Section], symbols: _Section, starts: dict[int, int], number: int
) -> int:
    """The address that a symbol stands for."""
    name, _, _, section, value, _ = _SYMBOL.unpack_from(
        _content(code, symbols), number * _SYMBOL.size
    )
    if section in starts:
        return starts[section] + int(value)
    if section == _ABSOLUTE:
        return int(value)
    if section != _ELSEWHERE:
        raise _NotSimple
    return _of_process(_name(code, sections[symbols.link], name))


def _of_process(name: bytes) -> int:
    """The address of a function of the C library, or of another one that Python is linked with."""
    try:
        found = ctypes.pythonapi[name.decode()]
    except (AttributeError, UnicodeDecodeError) as error:
        raise _NotSimple from error
    return ctypes.cast(found, ctypes.c_void_p).value or 0


def _name(code: bytes, strings: _Section, start: int) -> bytes:
    return _content(code, strings)[start:].partition(b"\0")[0]


def _function(
    code: bytes, sections: list[_Section], symbols: _Section, starts: dict[int, int], wanted: bytes
) -> int | None:
    """The address of a named function that is defined here."""
    for name, _, _, section, value, _ in _SYMBOL.iter_unpack(_content(code, symbols)):
        if section in starts and _name(code, sections[symbols.link], name) == wanted:
            return starts[section] + int(value)
    return None
