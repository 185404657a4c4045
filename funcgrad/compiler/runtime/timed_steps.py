"""Steps with a clock around them, for programs whose time is measured.

A timed step runs another one: its words are `abi.TIMED_WORDS`, and then follow those of the other
step. The times go to four words of its own, which threads share: how often it has run, ticks, and
the number of the step and the address of the log. A log holds, while it has room, when each step
has run and on which thread.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from functools import cache

import numpy as np

from funcgrad.compiler import abi
from funcgrad.compiler.native.assembly import Code
from funcgrad.compiler.native.control_word import ControlWords, is_x86
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.executable import Step
from funcgrad.compiler.runtime.executor import STEP

CALLS, TICKS, NUMBER, LOG = range(4)
"""The words of a timed step that threads share."""

LOG_HEAD = 2
LOG_ROW = 4
"""A log: how many rows it was given, and has room for; rows ``(step, begin, end, thread)``."""

_MONOTONIC = 6 if sys.platform == "darwin" else 1
_SECOND = 1_000_000_000


@cache
def timed_code() -> Code:
    """The timed step."""
    writer = _Timed()
    writer.timed()
    return writer.finished()


def timed_step(step: Step, counters: np.ndarray) -> Step:
    """A step that runs another one and measures it.

    Args:
        step: The other one.
        counters: The words of `CALLS` to `LOG`, which live as long as the step.
    """
    words = [step.address, counters.ctypes.data, *step.words]
    address = kernel_store.code_address(timed_code())
    return Step(address, words, (*step.held, counters), step.flushes)


def timed_parts(step: Step, kernel: int, counters: np.ndarray) -> Step:
    """A step of parts, each of which is measured on its thread.

    Args:
        step: The step.
        kernel: The address of what computes a part.
        counters: As of `timed_step`.
    """
    n = len(abi.PARALLEL_WORDS)
    head = dict(zip(abi.PARALLEL_WORDS, step.words[:n], strict=True))
    size, rest = head["part_words"], step.words[n:]
    head["kernel"] = kernel_store.code_address(timed_code())
    head["part_words"] = size + len(abi.TIMED_WORDS)
    words = abi.in_order(abi.PARALLEL_WORDS, **head)
    for start in range(0, len(rest), size):
        words += [kernel, counters.ctypes.data, *rest[start : start + size]]
    return Step(step.address, words, (*step.held, counters), step.flushes)


class _Timed(ControlWords):
    is_brief = True

    def timed(self) -> None:
        with self.function("fg_timed", STEP, "i64"):
            kernel, counters = self.word("%args", 0, "ptr"), self.word("%args", 1, "ptr")
            begin = self.clock()
            words = self.entry("%args", len(abi.TIMED_WORDS))
            code = self.let(f"call i64 {kernel}(ptr %slots, ptr {words})")
            end = self.clock()
            self.count_up(counters, CALLS, "1")
            self.count_up(counters, TICKS, self.sub(end, begin))
            log = self.word(counters, LOG, "ptr")
            has_room = self.test("slt", self.word(log), self.word(log, 1))
            with self.when(has_room):
                row = self.count_up(log, 0, "1")
                with self.when(self.test("slt", row, self.word(log, 1))):
                    place = self.at(self.entry(log, LOG_HEAD), (row, 8 * LOG_ROW))
                    values = self.word(counters, NUMBER), begin, end, self.thread()
                    for k, value in enumerate(values):
                        self.put_word(value, place, k)
            self.leave(code)

    def count_up(self, words: str, k: int, by: str) -> str:
        return self.let(f"atomicrmw add ptr {self.entry(words, k)}, i64 {by} monotonic")

    def thread(self) -> str:
        return "0" if sys.platform == "win32" else self.invoke("i64", "pthread_self")

    def clock(self) -> str:
        """Ticks: of the processor's counter where there is one that all threads share."""
        if is_x86():
            return self.invoke("i64", "llvm.readcyclecounter")
        moment = self.room("{ i64, i64 }")
        self.invoke("i32", "clock_gettime", ("i32", _MONOTONIC), ("ptr", moment))
        return self.add(self.mul(self.word(moment), _SECOND), self.word(moment, 1))


@cache
def _clock_code() -> Code:
    writer = _Timed()
    with writer.function("fg_clock", "", "i64"):
        writer.leave(writer.clock())
    return writer.finished()


@cache
def clock() -> Callable[[], int]:
    """The clock of timed steps, as a function."""
    return ctypes.CFUNCTYPE(ctypes.c_int64)(kernel_store.code_address(_clock_code()))


@cache
def tick() -> float:
    """Seconds from one tick to the next."""
    if not is_x86():
        return 1 / _SECOND
    read = clock()
    start, first = time.perf_counter(), read()
    while time.perf_counter() - start < _CALIBRATION:
        pass
    last, end = read(), time.perf_counter()
    return (end - start) / (last - first)


_CALIBRATION = 0.02
