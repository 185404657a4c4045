"""LLVM by what llvmlite promises to keep: with a release that was not tested, and as a linker.

The counterpart of `llvm_backend` for what Numba does not compile (`numba_path`); and object code
that `runtime.linker` leaves to others is loaded here.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm


def facts() -> dict[str, str]:
    """Dependencies of object code: the generator's version and the CPU."""
    return {
        "llvmlite": llvmlite.__version__,
        "llvm": ".".join(map(str, llvm.llvm_version_info)),
        "triple": llvm.get_default_triple(),
        "cpu": llvm.get_host_cpu_name(),
        "features": llvm.get_host_cpu_features().flatten(),
    }


def object_file(assembly: str, effort: Any) -> bytes:
    """The object file of LLVM assembly.

    Args:
        assembly: The module.
        effort: As of `llvm_backend`: the least one, as Numba compiles what is to be optimised.
    """
    assert not effort.value > 0, effort
    module = llvm.parse_assembly(assembly, llvm.create_context())
    machine = _machine()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return bytes(machine.emit_object(module))


def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    known = facts()
    return llvm.Target.from_default_triple().create_target_machine(
        known["cpu"], known["features"], opt=0, codemodel="jitdefault", jit=True
    )


@cache
def _engine() -> Any:
    """The linker of loaded objects; it lives as long as the process."""
    machine = _machine()
    empty = llvm.parse_assembly("")
    empty.triple = machine.triple
    found = llvm.create_mcjit_compiler(empty, machine)
    add_math_symbols()
    return found


def add_math_symbols() -> None:
    """Make libm known to the linker, also where Python itself does not export it."""
    if sys.platform.startswith("linux"):
        # Other C libraries than GNU's, as musl, have no such file: they are their own libm.
        with suppress(RuntimeError):
            llvm.load_library_permanently("libm.so.6")


def load(code: bytes, symbol: str) -> int:
    """Link an object file into the process; returns the address of ``symbol``."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(symbol)
