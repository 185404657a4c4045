"""LLVM as the back end: assembly to object code, object code to addresses.

``emit : LLVM assembly -> object file`` optimises for the CPU at hand; ``load : object file ->
address`` links it into the process. Loading needs no compiler, hence no Numba: a warm process runs
only that.

Loaded by `compiler.runtime` on first use, because it imports llvmlite.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

OPTIMIZATION = 3


@cache
def cpu() -> tuple[str, str]:
    """Name and features of this CPU, as LLVM calls them."""
    # Full-width vectors: by default LLVM keeps to half of AVX-512's width.
    features = llvm.get_host_cpu_features().flatten() + ",-prefer-256-bit"
    return llvm.get_host_cpu_name(), features


@cache
def target_machine() -> Any:
    """The code generator for this CPU."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = cpu()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=name, features=features, opt=OPTIMIZATION, codemodel="jitdefault", jit=True
    )


@cache
def engine() -> Any:
    """The linker of loaded objects; it lives as long as the process."""
    empty = llvm.parse_assembly("")
    empty.triple = target_machine().triple
    found = llvm.create_mcjit_compiler(empty, target_machine())
    add_math_symbols()
    return found


def add_math_symbols() -> None:
    """Make libm known to the linker, also where Python itself does not export it."""
    if sys.platform.startswith("linux"):
        llvm.load_library_permanently("libm.so.6")


def optimize(assembly: str) -> Any:
    """The optimised module of LLVM assembly."""
    machine = target_machine()
    module = llvm.parse_assembly(assembly)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMIZATION)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    # The vectoriser may have put calls of `compiler.rare` into loops.
    inliner = llvm.create_new_module_pass_manager()
    inliner.add_always_inliner_pass()
    inliner.run(module, builder)
    return module


def emit(assembly: str) -> bytes:
    """The object file of LLVM assembly, optimised for this CPU."""
    code: bytes = target_machine().emit_object(optimize(assembly))
    return code


def load(code: bytes, symbol: str) -> int:
    """Link an object file into the process; returns the address of ``symbol``."""
    engine().add_object_file(llvm.ObjectFileRef.from_data(code))
    engine().finalize_object()
    address: int = engine().get_function_address(symbol)
    return address


def facts() -> dict[str, str]:
    """What object code depends on: the generator's version and the CPU."""
    name, features = cpu()
    return {
        "llvmlite": llvmlite.__version__,
        "llvm": ".".join(map(str, llvm.llvm_version_info)),
        "triple": llvm.get_default_triple(),
        "cpu": name,
        "features": features,
    }
