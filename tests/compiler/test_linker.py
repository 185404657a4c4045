"""Object files that become code without LLVM's linker, and those that it has to be asked for."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from funcgrad.compiler.native import llvm_backend, llvmlite_path
from funcgrad.compiler.runtime import linker

pytestmark = pytest.mark.skipif(not linker.IS_AVAILABLE, reason="LLVM's linker is used here")

CONSTANTS = """
define double @f(double %x) nounwind {
  %y = fmul double %x, 0x400921FB54442D18
  ret double %y
}
"""
INNER = """
define internal double @twice(double %x) nounwind noinline {
  %y = fadd double %x, %x
  ret double %y
}
define double @other(double %x) nounwind { ret double %x }
define double @f(double %x) nounwind {
  %y = call double @twice(double %x)
  %z = call double @twice(double %y)
  ret double %z
}
"""
LIBRARY = """
declare double @cbrt(double)
define double @f(double %x) nounwind {
  %y = call double @cbrt(double %x)
  ret double %y
}
"""
# A jump table: addresses within code, in a section of constants.
TABLE = f"""
declare double @sin(double)
declare double @cos(double)
define double @f(double %x) nounwind {{
entry:
  %k = fptosi double %x to i64
  switch i64 %k, label %none [{" ".join(f"i64 {k}, label %case{k}" for k in range(8))}]
{
    "".join(
        f'''
case{k}:
  %y{k} = call double @{("sin", "cos")[k % 2]}(double {k}.5)
  br label %done
'''
        for k in range(8)
    )
}
none:
  br label %done
done:
  %y = phi double [0.0, %none]{"".join(f", [%y{k}, %case{k}]" for k in range(8))}
  ret double %y
}}
"""
WRITABLE = """
@state = internal global double 1.0
define double @f(double %x) nounwind {
  %old = load double, ptr @state
  %new = fadd double %old, %x
  store volatile double %new, ptr @state
  ret double %new
}
"""
UNKNOWN = LIBRARY.replace("cbrt", "nobody_has_this")

SIMPLE: dict[str, tuple[str, Callable[[float], float]]] = {
    "constants": (CONSTANTS, lambda x: x * math.pi),
    "functions of its own": (INNER, lambda x: 4 * x),
    "functions of the C library": (LIBRARY, lambda x: float(np.cbrt(x))),
    "tables": (TABLE, lambda x: (math.sin, math.cos)[int(x) % 2](int(x) + 0.5)),
}


def object_of(assembly: str) -> bytes:
    return llvm_backend.Emission(assembly, llvm_backend.Effort.TILES).result()


def called(address: int, x: float) -> float:
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(x)


@pytest.mark.parametrize("what", SIMPLE)
def test_simple_objects_run(what: str) -> None:
    assembly, expected = SIMPLE[what]
    code = object_of(assembly)
    address = linker.link(code, "f")
    assert address is not None
    for x in (0.0, 1.25, 6.0, 7.5):
        assert called(address, x) == pytest.approx(expected(x), rel=1e-15)
    assert linker.link(code, "g") is None
    assert called(llvmlite_path.load(code, "f"), 1.25) == called(address, 1.25)


def test_pages_of_code_cannot_be_written() -> None:
    address = linker.link(object_of(CONSTANTS), "f")
    with open("/proc/self/maps") as file:
        rows = [line.split() for line in file]
    for bounds, mode, *_ in rows:
        begin, end = (int(word, 16) for word in bounds.split("-"))
        if address is not None and begin <= address < end:
            assert mode == "r-xp"
            return
    raise AssertionError("the code is nowhere")


@pytest.mark.parametrize("assembly", [WRITABLE, UNKNOWN], ids=["writable", "unknown"])
def test_other_objects_are_left_to_llvm(assembly: str) -> None:
    assert linker.link(object_of(assembly), "f") is None


@pytest.mark.parametrize("refused", ["mmap", "mprotect"])
def test_systems_that_forbid_new_code_are_left_to_llvm(
    refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hardened kernel refuses memory that becomes executable, and a full one all memory."""
    called: list[str] = []
    libc = linker._libc

    def failing(name: str, result: Any = ctypes.c_int) -> Any:
        called.append(name)
        if name != refused:
            return libc(name, result)
        return lambda *_: linker._FAILED if name == "mmap" else -1

    monkeypatch.setattr(linker, "_libc", failing)
    code = object_of(CONSTANTS)
    assert linker.link(code, "f") is None
    # Nothing is kept of what had been taken.
    assert called == (["mmap"] if refused == "mmap" else ["mmap", "mprotect", "munmap"])
    assert llvmlite_path.load(code, "f")


EXECUTABLE = 4


def changed_section(code: bytes, is_code: bool, **fields: int) -> bytes:
    """An object file of which the section of code, or of its addresses, has other fields."""
    head = linker._HEAD.unpack_from(code)
    sections = linker._sections(code)
    number = next(k for k, s in enumerate(sections) if s.flags & EXECUTABLE and s.size)
    if not is_code:
        kinds = [(s.kind, s.info) for s in sections]
        number = kinds.index((linker._RELOCATIONS, number))
    start = head[6] + head[11] * number
    row = linker._SECTION.pack(*sections[number]._replace(**fields))
    return code[:start] + row + code[start + len(row) :]


@pytest.mark.parametrize(
    ("is_code", "fields"),
    [
        (True, {"alignment": 1 << 20}),
        (True, {"alignment": 3}),
        (True, {"size": 1 << 40}),
        (True, {"kind": 8}),
        (True, {"flags": 7}),
        (False, {"kind": 9}),
        (False, {"link": 200}),
        (False, {"size": 1 << 40}),
    ],
)
def test_sections_that_are_not_known_are_left_to_llvm(is_code: bool, fields: Any) -> None:
    code = object_of(LIBRARY)
    assert linker.link(changed_section(code, is_code), "f") is not None
    assert linker.link(changed_section(code, is_code, **fields), "f") is None


def test_kernels_with_variables_run_all_the_same() -> None:
    code = object_of(WRITABLE)
    assert linker.link(code, "f") is None
    address = llvmlite_path.load(code, "f")
    assert [called(address, 2.0), called(address, 0.5)] == [3.0, 3.5]


def test_what_is_no_object_is_left_to_llvm() -> None:
    code = object_of(TABLE)
    for size in range(0, len(code), 7):
        assert linker.link(code[:size], "f") is None
    arm = code[:18] + struct.pack("<H", 183) + code[20:]
    for other in (b"", b"\0" * 500, code[::-1], b"MZ" + code[2:], arm):
        assert linker.link(other, "f") is None


def test_damage_raises_nothing() -> None:
    """What is linked is whole, by its digest; but nothing is read or written out of bounds."""
    rng = np.random.default_rng(0)
    code = object_of(TABLE)
    linked = 0
    for _ in range(400):
        data = bytearray(code)
        for place in rng.integers(len(data), size=int(rng.integers(1, 6))):
            data[place] = rng.integers(256)
        linked += linker.link(bytes(data), "f") is not None
    assert 0 < linked < 400
