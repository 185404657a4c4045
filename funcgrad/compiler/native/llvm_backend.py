"""LLVM as the back end: assembly to object code, object code to addresses.

``emit : LLVM assembly -> object file`` optimises for the CPU at hand; ``load : object file ->
address`` links it into the process. Loading needs no compiler, hence no Numba: a warm process runs
only that.

LLVM runs on a thread of its own: whoever waits for it can be interrupted, and stops waiting after
a bound that no kernel comes near. llvmlite lets one thread at a time into LLVM; its two long calls
are made without that lock, each on a context, module and code generator of its own, which is what
LLVM asks of concurrent users. So kernels are compiled side by side, and an emission that does not
end keeps nobody else from compiling.

Loaded by `runtime.kernel_store` on first use, because it imports llvmlite.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from enum import Enum
from functools import cache, partial
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from funcgrad.base.forking import between_forks, in_children
from funcgrad.base.stacks import start
from funcgrad.compiler.native.processor import is_x86

OPTIMIZATION = 1
"""Level of the optimiser where it has to find vectors. It includes the vectoriser of loops, which
makes all of the difference. What higher levels add finds nothing in kernels as they are written,
and vectors made of neighbouring statements slow them down. Kernels that are written in vectors take
a fifth of its time with a few passes, and become the same code."""

SELECTION = 1
"""Level of the code generator for kernels, whose loops the optimiser has brought into shape. The
higher ones take a quarter longer and gain nothing that was measured."""

FINAL_SELECTION = 3
"""Level of the code generator for programs that are written down: blocks of registers in products
of matrices, which depend on how instructions are ordered and registers are chosen."""

BRIEF_SELECTION = 0
"""Level of the code generator for assembly of which no call takes long. It works on every
instruction alone, in a fifth of the time."""

MAX_SECONDS = 120.0
"""Processor time that LLVM may take for one kernel; the largest ones take a few seconds."""

_LOOK_SECONDS = 1.0
_GRACE_SECONDS = 5.0


@cache
def cpu() -> tuple[str, str]:
    """Name and features of this CPU, as LLVM calls them."""
    features = llvm.get_host_cpu_features().flatten()
    if llvm.get_process_triple().startswith("x86_64"):
        # Full-width vectors: by default LLVM keeps to half of AVX-512's width.
        features += ",-prefer-256-bit"
        # Instructions that load from computed places take longer than single loads; a search in a
        # table took twice the time.
        features += ",+prefer-no-gather"
    return llvm.get_host_cpu_name(), features


def has_fused_products() -> bool:
    """Whether this CPU has an instruction for a product and a sum."""
    _, features = cpu()
    return not is_x86() or "+fma" in features.split(",")


def target_machine(selection: int = SELECTION) -> Any:
    """A new code generator for this CPU."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = cpu()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=name, features=features, opt=selection, codemodel="jitdefault", jit=True
    )


@cache
def engine() -> Any:
    """The linker of loaded objects; it lives as long as the process."""
    empty = llvm.parse_assembly("")
    machine = target_machine()
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


class Effort(Enum):
    """Effort of the optimiser for a module."""

    BRIEF = -1
    """No optimisation, and a fast code generator: the module is written as it should be."""
    TILES = 3
    """Simplification, then careful translation: the module is a program of the library."""
    VECTORS = 1
    """Its loops compute vectors: formulas are inlined, and variables and branches simplified."""
    ALL = 2
    """Vectors are to be found, too, and the passes that prepare loops for that."""


class _Calls:
    """The calls of LLVM that take long, as llvmlite promises them: one after the other."""

    def parse(self, assembly: str) -> Any:
        """The module of a text."""
        return llvm.parse_assembly(assembly, llvm.create_context())

    def run(self, passes: Any, module: Any, builder: Any) -> None:
        """Run passes on a module."""
        passes.run(module, builder)

    def emit(self, module: Any, machine: Any) -> bytes:
        """The object file of a module."""
        return bytes(machine.emit_object(module))


class _CallsSideBySide(_Calls):
    """The same without llvmlite's lock: functions of its library, which it does not promise."""

    def __init__(self) -> None:
        in_children(_renew_lock)

    def parse(self, assembly: str) -> Any:
        context = llvm.create_context()
        with llvm.ffi.OutputString() as message:
            parse = _unlocked("LLVMPY_ParseAssembly")
            module = llvm.ModuleRef(parse(context, assembly.encode(), message), context)
            if message:
                raise RuntimeError(str(message))
        return module

    def run(self, passes: Any, module: Any, builder: Any) -> None:
        _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)

    def emit(self, module: Any, machine: Any) -> bytes:
        with llvm.ffi.OutputString() as message:
            emit_to_memory = _unlocked("LLVMPY_TargetMachineEmitToMemory")
            buffer = emit_to_memory(machine, module, 1, message)
            if not buffer:
                raise RuntimeError(str(message))
        lib = llvm.ffi.lib
        try:
            start, size = lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer)
            return ctypes.string_at(start, size)
        finally:
            lib.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _calls(is_public: bool) -> _Calls:
    return _Calls() if is_public else _CallsSideBySide()


class _Generator:
    """Optimiser and code generator for this CPU, which one thread at a time may use.

    What takes calls of LLVM's library is made once: before each of them a thread waits for the
    interpreter, which the next translation keeps busy.
    """

    def __init__(self, selection: int, is_public: bool) -> None:
        self.calls = _calls(is_public)
        self.machine = target_machine(selection)
        self.triple = self.machine.triple
        self.layout = str(self.machine.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=OPTIMIZATION)
        options.loop_vectorization = True
        options.slp_vectorization = False
        options.loop_unrolling = False  # beyond what the vectoriser interleaves
        self.builder = llvm.create_pass_builder(self.machine, options)

    def object_file(self, assembly: str, effort: Effort) -> bytes:
        """The object file of LLVM assembly, optimised."""
        module = self.calls.parse(assembly)
        module.triple, module.data_layout = self.triple, self.layout
        if effort is Effort.ALL:
            self.calls.run(self.builder.getModulePassManager(), module, self.builder)
            # The vectoriser may have put calls of `slow_paths` into loops.
            self.calls.run(_inlining(), module, self.builder)
        elif effort in (Effort.VECTORS, Effort.TILES):
            self.calls.run(_simplifying(), module, self.builder)
        return self.calls.emit(module, self.machine)


def _inlining() -> Any:
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    return passes


def _simplifying() -> Any:
    passes = _inlining()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes


def _unlocked(name: str) -> Any:
    """A function of llvmlite's library without the lock around it."""
    return partial(between_forks, getattr(llvm.ffi.lib, name)._cfn)


def _renew_lock() -> None:
    """Open llvmlite's lock in a child, where the thread that held it is not there."""
    lock = llvm.ffi.lib._lock
    if lock._lock.acquire(blocking=False):
        lock._lock.release()
    else:
        lock._lock = threading.RLock()


_SELECTIONS = {
    Effort.BRIEF: BRIEF_SELECTION,
    Effort.TILES: FINAL_SELECTION,
}
"""Levels of the code generator for what is not a kernel."""

_IDLE: defaultdict[tuple[int, bool], list[_Generator]] = defaultdict(list)
"""Idle code generators, by their level and the way in which LLVM is called."""


def _object_file(assembly: str, effort: Effort, is_public: bool) -> bytes:
    kind = _SELECTIONS.get(effort, SELECTION), is_public
    try:
        generator = _IDLE[kind].pop()
    except IndexError:
        generator = _Generator(*kind)
    code = generator.object_file(assembly, effort)
    _IDLE[kind].append(generator)
    return code


class Emission:
    """The object file of LLVM assembly, optimised for this CPU, while it is made.

    Args:
        assembly: The module.
        effort: What there is to optimise.
        is_public: Whether LLVM is called only as llvmlite promises it.

    Attributes:
        seconds: Processor time that it took, when it is there.
    """

    def __init__(self, assembly: str, effort: Effort = Effort.ALL, is_public: bool = False) -> None:
        self._assembly = assembly
        self._effort = effort
        self._is_public = is_public
        self._done = threading.Event()
        self._clock: int | None = None
        self.seconds = 0.0
        self._code = b""
        self._error: BaseException | None = None
        _RUNNING.add(self)
        # Not `threading.Thread`, whose start waits until the processors let the new thread begin.
        try:
            start(self._run)
        except RuntimeError:  # none can be started any more, as the process ends
            self._run()

    def _run(self) -> None:
        start = time.thread_time()
        try:
            if hasattr(time, "pthread_getcpuclockid"):
                self._clock = time.pthread_getcpuclockid(threading.get_ident())
            self._code = _object_file(self._assembly, self._effort, self._is_public)
        except BaseException as error:  # raised where it is waited for
            self._error = error
        finally:
            self.seconds = time.thread_time() - start
            _RUNNING.discard(self)
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Whether it is there, after so many seconds at most."""
        return self._done.wait(seconds)

    def result(self) -> bytes:
        """The object file, when it is there.

        Raises: RuntimeError: LLVM has taken more than `MAX_SECONDS` of processor time.
        """
        started = time.monotonic()
        while not self.wait(_LOOK_SECONDS):
            if self._seconds(started) > MAX_SECONDS:
                raise RuntimeError(
                    f"LLVM was still busy with it after {MAX_SECONDS:g} seconds; it goes on in a "
                    "thread that nobody waits for"
                )
        if self._error is not None:
            raise self._error
        return self._code

    def _seconds(self, started: float) -> float:
        """Processor time so far, which other processes do not count in."""
        if self._clock is None:
            return time.monotonic() - started
        try:
            return time.clock_gettime(self._clock)
        except OSError:  # the thread has just ended
            return 0.0


_RUNNING: set[Emission] = set()
in_children(_RUNNING.clear)  # they run in the parent, and a child would wait for them in vain


@atexit.register
def _await_running() -> None:
    """Wait for compilations in the background to end, before LLVM is unloaded."""
    for emission in list(_RUNNING):
        emission.wait(_GRACE_SECONDS)


@cache
def keep_lines() -> None:
    """Have LLVM keep a line of each instruction that it moves, or makes of several.

    Where branches divide a loop, its code generator moves most of the loop's instructions from one
    block to the next; by default it forgets their lines, which debuggers would take for steps. The
    option belongs to the process, and changes no code. LLVM ends the process for options that it
    does not know, as this one before version 21.
    """
    if llvm.llvm_version_info >= (21,):
        llvm.set_option("", "--pick-merged-source-locations")


def load(code: bytes, symbol: str) -> int:
    """Link an object file into the process; returns the address of ``symbol``."""
    engine().add_object_file(llvm.ObjectFileRef.from_data(code))
    engine().finalize_object()
    address: int = engine().get_function_address(symbol)
    return address


def facts() -> dict[str, str]:
    """Dependencies of object code: the generator's version and the CPU."""
    name, features = cpu()
    return {
        "llvmlite": llvmlite.__version__,
        "llvm": ".".join(map(str, llvm.llvm_version_info)),
        "triple": llvm.get_default_triple(),
        "cpu": name,
        "features": features,
    }
