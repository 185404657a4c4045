"""How much stack native code takes: frames of functions in object files, and chains of calls."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

SAVED = 64
"""Bytes of a call besides the frame: the return address and registers that are saved."""


def frames(code: bytes) -> dict[str, int]:
    """Bytes of the frame of every function of an object file for x86-64 or ARM."""
    machine, start, size, count = (
        struct.unpack_from(kind, code, place)[0]
        for kind, place in (("<H", 18), ("<Q", 40), ("<H", 58), ("<H", 60))
    )
    frame_of = {62: _frame_x86, 183: _frame_arm}[machine]
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + size * i) for i in range(count)]
    found = {}
    for _, kind, _, _, offset, nbytes, link, *_ in sections:
        if kind != 2:  # symbols
            continue
        names = sections[link][4]
        for place in range(offset, offset + nbytes, 24):
            name, info, _, section, value, length = struct.unpack_from("<IBBHQQ", code, place)
            if info & 15 != 2 or not section:  # no function that is defined here
                continue
            first = sections[section][4] + value
            text = code[names + name : code.index(b"\0", names + name)].decode()
            found[text] = frame_of(code[first : first + length])
    return found


_PROLOGUE = 64
"""Bytes in which a function makes its frame."""


def _frame_x86(body: bytes) -> int:
    """What is subtracted from the stack pointer, and what its alignment may add."""
    head = body[:_PROLOGUE]
    found = [
        int.from_bytes(m[1], "little") for m in re.finditer(rb"\x48\x81\xec(....)", head, re.S)
    ]
    found += [m[1][0] for m in re.finditer(rb"\x48\x83\xec(.)", head, re.S)]
    return max(found, default=0) + (64 if re.search(rb"\x48\x83\xe4", head) else 0)


def _frame_arm(body: bytes) -> int:
    words = [w for (w,) in struct.iter_unpack("<I", body[: min(len(body), _PROLOGUE) // 4 * 4])]
    # sub sp, sp, #n; the same from another register to which the stack is aligned
    subtracted = [w for w in words if w & 0xFF8003E0 == 0xD10003E0]
    return sum((w >> 10 & 0xFFF) << (12 if w >> 22 & 1 else 0) for w in subtracted)


def deepest(assembly: str, code: bytes) -> int:
    """Bytes of stack that the longest chain of calls within a module takes.

    Args:
        assembly: The module in LLVM assembly.
        code: Its object file.
    """
    sizes = frames(code)
    called = dict(_calls(assembly))
    known: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in known:
            inner = max((depth(other) for other in called.get(name, ())), default=0)
            known[name] = sizes.get(name, 0) + SAVED + inner
        return known[name]

    return max(map(depth, called))


def _calls(assembly: str) -> Iterator[tuple[str, set[str]]]:
    """By function what it calls of its own module."""
    bodies = re.findall(r"^define [^@]*@\"?([\w.$]+)\"?\((.*?)^}", assembly, re.M | re.S)
    names = {name for name, _ in bodies}
    for name, body in bodies:
        yield name, set(re.findall(r"\bcall [^@\n]*@\"?([\w.$]+)\"?\(", body)) & names


def grows(assembly: str) -> list[str]:
    """Allocations on the stack whose size is known late, or which are made again and again."""
    found = []
    for body in re.findall(r"^define [^\n]*\n(.*?)^}", assembly, re.M | re.S):
        first, *later = re.split(r"^[\w.$\"]+:.*\n", body, flags=re.M)
        if first.strip() in ("", "{") and later:  # the first block has a name
            first, *later = later
        found += [line for part in later for line in part.splitlines() if " alloca " in line]
        found += re.findall(r" alloca [^\n]*, i\d+ %[^\n]*", first)
    return found
