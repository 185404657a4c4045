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
import os
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import Any

import llvmlite

from funcgrad.base.forking import in_children
from funcgrad.base.stacks import start
from funcgrad.compiler.native.llvm_library import Made, library
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
    given = filter(None, library().text("GetHostCPUFeatures").split(","))
    features = sorted(given, key=lambda feature: feature[1:])
    if library().text("GetProcessTriple").startswith("x86_64"):
        # Full-width vectors: by default LLVM keeps to half of AVX-512's width.
        features.append("-prefer-256-bit")
        # Instructions that load from computed places take longer than single loads; a search in a
        # table took twice the time.
        features.append("+prefer-no-gather")
    return library().text("GetHostCPUName"), ",".join(features)


def has_fused_products() -> bool:
    """Whether this CPU has an instruction for a product and a sum."""
    _, features = cpu()
    return not is_x86() or "+fma" in features.split(",")


def has_masks(verb: str, width: int) -> bool:
    """Whether this CPU has a fast instruction to load or store some lanes of a vector.

    Args:
        verb: "load" or "store".
        width: Bits of an element.
    """
    _, features = cpu()
    needed = "+avx512bw" if width < 32 else "+avx" if verb == "load" else "+avx512f"
    return is_x86() and needed in features.split(",")


def target_machine(selection: int = SELECTION) -> Made:
    """A new code generator for this CPU."""
    llvm = library()
    llvm.call("InitializeNativeTarget")
    llvm.call("InitializeNativeAsmPrinter")
    triple = llvm.text("GetDefaultTargetTriple")
    target = llvm.checked("GetTargetFromTriple", triple.encode())
    if os.name == "nt":
        triple += "-elf"  # what can be linked into a process
    facts = [x.encode() for x in (triple, *cpu())]
    settings = selection, b"default", b"jitdefault", 0, 1, b""
    return llvm.run("CreateTargetMachine", target, *facts, *settings)


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


class _Generator:
    """Optimiser and code generator for this CPU, which one thread at a time may use.

    What takes calls of LLVM's library is made once, or keeps the interpreter's lock: after each of
    the others a thread waits for it, while the next translation keeps it busy.
    """

    def __init__(self, selection: int) -> None:
        llvm = library()
        self.machine = target_machine(selection)
        self.triple = llvm.text("GetTargetMachineTriple", self.machine).encode()
        data = llvm.call("CreateTargetMachineData", self.machine)
        self.layout = llvm.text("CopyStringRepOfTargetData", data).encode()
        llvm.call("DisposeTargetData", data)
        self.options = llvm.call("CreatePipelineTuningOptions")
        llvm.call("PTOSetLoopVectorization", self.options, 1)
        llvm.call("PTOSetSLPVectorization", self.options, 0)
        # Beyond what the vectoriser interleaves.
        llvm.call("PTOSetLoopUnrolling", self.options, 0)
        self.builder = llvm.run("CreatePassBuilder", self.machine, self.options)

    def object_file(self, assembly: str, effort: Effort) -> bytes:
        """The object file of LLVM assembly, optimised."""
        llvm = library()
        context = llvm.call("ContextCreate")
        module = None
        try:
            module = llvm.checked("ParseAssembly", context, assembly.encode())
            llvm.call("SetTarget", module, self.triple)
            llvm.call("SetDataLayout", module, self.layout)
            if effort is not Effort.BRIEF:
                self.optimise(module, effort)
            return self.emit(module)
        finally:
            if module is not None:
                llvm.call("DisposeModule", module)
            llvm.call("ContextDispose", context)

    def optimise(self, module: Made, effort: Effort) -> None:
        """Run the passes of an effort, one after the other."""
        llvm = library()
        names: Sequence[str] = _SIMPLIFYING
        if effort is Effort.ALL:
            # The last argument is a level for size, which later releases do not look at.
            passes = llvm.call("buildPerModuleDefaultPipeline", self.builder, OPTIMIZATION, 0)
            names = _SIMPLIFYING[:1]  # the vectoriser may put calls of `slow_paths` into loops
        else:
            passes = llvm.call("CreateNewModulePassManager")
        for name in names:
            llvm.call(f"module_Add{name}Pass", passes)
        llvm.run("RunNewModulePassManager", passes, module, self.builder)
        llvm.call("DisposeNewModulePassManger", passes)  # as llvmlite writes it

    def emit(self, module: Made) -> bytes:
        """The object file of a module."""
        llvm = library()
        buffer = llvm.checked("TargetMachineEmitToMemory", self.machine, module, 1)
        start, size = (llvm.call(f"GetBuffer{x}", buffer).value for x in ("Start", "Size"))
        try:
            return ctypes.string_at(start or 0, size or 0)
        finally:
            llvm.call("DisposeMemoryBuffer", buffer)


_SIMPLIFYING = ("AlwaysInliner", "SROA", "SimplifyCFG", "InstCombine")
"""Passes for modules that are written as they should be, but for what is to be inlined."""


_SELECTIONS = {
    Effort.BRIEF: BRIEF_SELECTION,
    Effort.TILES: FINAL_SELECTION,
}
"""Levels of the code generator for what is not a kernel."""

_IDLE: defaultdict[int, list[_Generator]] = defaultdict(list)
"""Idle code generators, by their level."""


def _object_file(assembly: str, effort: Effort) -> bytes:
    selection = _SELECTIONS.get(effort, SELECTION)
    try:
        generator = _IDLE[selection].pop()
    except IndexError:
        generator = _Generator(selection)
    code = generator.object_file(assembly, effort)
    _IDLE[selection].append(generator)
    return code


class Emission:
    """The object file of LLVM assembly, optimised for this CPU, while it is made.

    Args:
        assembly: The module.
        effort: What there is to optimise.
        way: The module `llvmlite_path`, if LLVM is called only as llvmlite promises it.

    Attributes:
        seconds: Processor time that it took, when it is there.
    """

    def __init__(self, assembly: str, effort: Effort = Effort.ALL, way: Any = None) -> None:
        self._assembly = assembly
        self._effort = effort
        self._way = way
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
            make = _object_file if self._way is None else self._way.object_file
            self._code = make(self._assembly, self._effort)
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


@cache
def prepare() -> None:
    """Read the library, and try a code generator, in a thread that nobody waits for."""
    Emission("define void @f() {\n  ret void\n}\n", Effort.VECTORS)


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
    if _version() >= (21,):
        library().call("SetCommandLine", b"", b"--pick-merged-source-locations")


def _version() -> tuple[int, ...]:
    """LLVM's version, which its library gives as bytes of a number."""
    number = library().call("GetVersionInfo").value or 0
    return tuple(number >> shift & 255 for shift in (16, 8, 0))


def facts() -> dict[str, str]:
    """Dependencies of object code: the generator's version and the CPU."""
    name, features = cpu()
    return {
        "llvmlite": llvmlite.__version__,
        "llvm": ".".join(map(str, _version())),
        "triple": library().text("GetDefaultTargetTriple"),
        "cpu": name,
        "features": features,
    }
