"""Measurements of a function, from which `profile` makes its tables.

The first call is measured with its compilation. The second one finds the compiled programs, whose
steps are timed from then on. Calls are measured for some seconds, and one more logs its steps.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any

import numpy as np

from funcgrad.api.compilation import forget_call_paths
from funcgrad.base.forking import Lock
from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.kernel import Kernel
from funcgrad.compiler.runtime import executable, kernel_store
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.observers import Observer, attach, detach
from funcgrad.core.primitive import Primitive
from funcgrad.diagnostics.record import record
from funcgrad.errors import ArgumentError, FuncgradError
from funcgrad.observers.source import BACKWARD, current_location
from funcgrad.profiling import timed_steps
from funcgrad.profiling.instruction_sampler import InstructionSampler
from funcgrad.profiling.memory import ArrayMemory, MemoryProfile, of_record
from funcgrad.profiling.stack_sampler import StackSampler
from funcgrad.profiling.timing import Line, TimedProgram

LOGGED = 1 << 14
"""Runs of steps that a log has room for."""

Operation = tuple[Line, Primitive, tuple[ShapedArray, ...]]


@dataclass
class FirstCall:
    """Times of the first call.

    Attributes:
        seconds: All of it.
        tracing: Tracing functions to programs, and differentiating them.
        kernels: LLVM and the translation to it, which run beside each other and the passes.
        n_kernels: How many kernels were compiled; others were there.
        tracing_lines: Time by line.
        kernel_lines: That of LLVM and the translation by line: the time of each kernel, divided by
            how many of the instructions that LLVM is given are of each line.
    """

    seconds: float = 0.0
    tracing: float = 0.0
    kernels: float = 0.0
    n_kernels: int = 0
    tracing_lines: Mapping[Line, float] = field(default_factory=dict)
    kernel_lines: Mapping[Line, float] = field(default_factory=dict)


@dataclass
class Measured:
    """Everything that was measured.

    Attributes:
        n_calls: Calls of the function.
        seconds: Their time.
        python: Time by line, of Python and what it calls, as it was sampled.
        native: Likewise, of compiled programs and the way into them.
        pulled: Likewise, of transposes of operations, of whatever line.
        transposes: Time by line, of transposes of operations in one call.
        programs: The compiled programs.
        samples: Addresses of instructions at which the calling thread was.
        has_samples: Whether the system gives such.
        log: Runs of steps in one call: program, step, begin and end in seconds, thread.
        operations: How often one call evaluates an operation at a line by NumPy.
        memory: The most memory of the arrays that it makes so.
        first: The first call.
        result: What the function returned.
    """

    n_calls: int
    seconds: float
    python: Mapping[Line, float]
    native: Mapping[Line, float]
    pulled: float
    transposes: Mapping[Line, float]
    programs: list[TimedProgram]
    samples: np.ndarray
    has_samples: bool
    log: list[tuple[int, int, float, float, int]]
    operations: Counter[Operation]
    memory: MemoryProfile
    first: FirstCall
    result: Any


def measure(
    f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], seconds: float
) -> Measured:
    """Run a function and measure it.

    Args:
        f: The function.
        args: Its arguments.
        kwargs: Keyword arguments.
        seconds: The time that is spent on calls that are measured, at least one.
    """
    with _STARTING:
        if executable.observers:
            raise ArgumentError("profile: another profile is running in this process.")
        session = _Session(lambda: f(*args, **kwargs))
        executable.observers.append(session.found)
    measured = session.measured(seconds)
    if not measured.programs and not measured.operations:
        _count_recorded(measured, f, args, kwargs)
    return measured


def _count_recorded(
    measured: Measured, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """Count the operations of a function of NumPy alone, which nobody has announced.

    They are those of a record, and unknown where the function leaves the trace.
    """
    with suppress(FuncgradError, TypeError, ValueError):
        known = record(f, args, kwargs, "profile")
        for e in known.equations:
            avals = tuple(a.aval.strong() for a in e.inputs)
            measured.operations[e.source, e.primitive, avals] += 1
        measured.memory = of_record(known)


_STARTING = Lock()


class _Tracing(Observer):
    """Counts the time of tracing; what is traced inside of another function counts once."""

    def __init__(self) -> None:
        self.depth = 0
        self.seconds = 0.0

    @contextmanager
    def tracing(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                self.seconds += time.perf_counter() - start


class _Operations(Observer):
    """Counts operations that NumPy evaluates, by line, and the time of those of transposes."""

    def __init__(self) -> None:
        self.found: Counter[Operation] = Counter()
        self.transposes: defaultdict[Line, float] = defaultdict(float)
        self.memory = ArrayMemory()
        self.seconds = 0.0

    @contextmanager
    def evaluating(self, operation: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds = time.perf_counter() - start

    def computed(
        self, operation: str, operands: Sequence[Any], results: Sequence[Any], primitive: Any
    ) -> None:
        line = current_location()
        self.memory.add(line, results)
        if primitive is not None and operation == primitive.name:
            avals = tuple(aval_of(x).strong() for x in operands)
            self.found[line, primitive, avals] += 1
            if line is not None and line.phase == BACKWARD:
                self.transposes[line] += self.seconds


class _Session:
    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.is_measuring = False
        self.programs: dict[Executable, TimedProgram] = {}
        self.log = np.zeros(timed_steps.LOG_HEAD + timed_steps.LOG_ROW * LOGGED, np.int64)
        self.sampler = InstructionSampler()

    def measured(self, seconds: float) -> Measured:
        counted = _Operations()
        n_before = len(kernel_store.stats().log)
        try:
            first = self._first_call()
            compiled = dict(kernel_store.stats().log[n_before:] if first.n_kernels else ())
            self.is_measuring = True
            forget_call_paths()
            attach(counted)
            try:
                self.call()
            finally:
                detach(counted)
            self.call()  # generates short call paths, now with timers
            result, n_calls, wall, stacks, samples = self._timed(seconds)
            log = self._logged()
            first.kernel_lines = self._of_lines(compiled)
        finally:
            executable.observers.remove(self.found)
            for program in self.programs.values():
                program.stop()
            forget_call_paths()
        return Measured(
            n_calls, wall, stacks.python, stacks.native, stacks.pulled, counted.transposes,
            [*self.programs.values()], samples, self.sampler.is_available, log, counted.found,
            counted.memory.found(), first, result,
        )  # fmt: skip

    def _first_call(self) -> FirstCall:
        tracing, first = _Tracing(), FirstCall()
        stats = kernel_store.stats()
        n_before, compiled = len(stats.log), stats.compiled
        attach(tracing)
        start = time.perf_counter()
        try:
            with StackSampler(lambda: None) as stacks:
                self.call()
        finally:
            detach(tracing)
        first.seconds = time.perf_counter() - start
        first.tracing = tracing.seconds
        first.n_kernels = stats.compiled - compiled
        if first.n_kernels:
            first.kernels = sum(taken for _, taken in stats.log[n_before:])
        first.tracing_lines = stacks.python
        return first

    def _of_lines(self, compiled: dict[str, float]) -> dict[Line, float]:
        """The time that kernels took to compile, by line."""
        found: dict[Line, float] = {}
        left = dict(compiled)
        for step in (step for program in self.programs.values() for step in program.steps):
            if isinstance(step.job, Kernel):
                seconds = left.pop(step.job.function.text, 0.0)
                for line, share in step.instructions().items():
                    found[line] = found.get(line, 0.0) + share * seconds
        return found

    def found(self, found: Executable) -> None:
        """Instrument a program with timers when it is called after the function's first call."""
        if self.is_measuring and found not in self.programs:
            program = TimedProgram(found, self.log, self.sampler.is_available)
            self.programs[found] = program
            program.start()

    def _timed(self, seconds: float) -> tuple[Any, int, float, StackSampler, np.ndarray]:
        for program in self.programs.values():
            program.start()
        timed_steps.tick()
        self.sampler.start()
        n_calls = 0
        try:
            with StackSampler(self.sampler.drain) as stacks:
                start = time.perf_counter()
                end = start + seconds
                while True:
                    result = self.call()
                    n_calls += 1
                    now = time.perf_counter()
                    if now >= end:
                        break
            for program in self.programs.values():
                program.keep()
        finally:
            samples = self.sampler.stop()
        return result, n_calls, now - start, stacks, samples

    def _logged(self) -> list[tuple[int, int, float, float, int]]:
        numbers: dict[int, tuple[int, int]] = {}
        for k, program in enumerate(self.programs.values()):
            for row in (program.counters, program.part_counters):
                row[:, timed_steps.NUMBER] = range(len(numbers), len(numbers) + len(row))
            numbers.update({len(numbers) + i: (k, i) for i in range(len(program.counters))})
        self.log[:] = 0
        self.log[1] = LOGGED
        self.call()
        n = min(int(self.log[0]), LOGGED)
        self.log[1] = 0
        rows = self.log[timed_steps.LOG_HEAD :].reshape(LOGGED, timed_steps.LOG_ROW)[:n]
        if not n:
            return []
        begin, tick = rows[:, 1].min(), timed_steps.tick()
        return [
            (*numbers[int(step)], float(a - begin) * tick, float(b - begin) * tick, int(thread))
            for step, a, b, thread in rows
        ]
