"""Steps with timers around them, for programs whose time is measured.

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
from funcgrad.compiler.loops.builder import SystemProgram, read_word
from funcgrad.compiler.loops.language import SLOTS, WORDS, Variable, call
from funcgrad.compiler.native.processor import is_x86
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.executable import Step

CALLS, TICKS, NUMBER, LOG = range(4)
"""The words of a timed step that threads share."""

LOG_HEAD = 2
LOG_ROW = 4
"""A log: how many rows it was given, and has room for; rows ``(step, begin, end, thread)``."""

_MONOTONIC = 6 if sys.platform == "darwin" else 1
_SECOND = 1_000_000_000


def timed_step(step: Step, counters: np.ndarray) -> Step:
    """A step that runs another one and measures it.

    Args:
        step: The other one.
        counters: The words of `CALLS` to `LOG`, which live as long as the step.
    """
    words = [step.address, counters.ctypes.data, *step.words]
    address = kernel_store.code_address(_Timed.named())
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
    head["kernel"] = kernel_store.code_address(_Timed.named())
    head["part_words"] = size + len(abi.TIMED_WORDS)
    words = abi.in_order(abi.PARALLEL_WORDS, **head)
    for start in range(0, len(rest), size):
        words += [kernel, counters.ctypes.data, *rest[start : start + size]]
    return Step(step.address, words, (*step.held, counters), step.flushes)


class _Clock(SystemProgram):
    """Ticks, of the processor's counter where there is one that all threads share."""

    facts = SystemProgram.facts_of()

    def write(self) -> None:
        self.give_back(self.clock())

    def clock(self) -> Variable:
        """The time in ticks."""
        if is_x86():
            return self.run("cycles")
        moment = self.run("room", 16)
        self.do("clock_gettime", _MONOTONIC, moment)
        return self.let(read_word(moment, 0) * _SECOND + read_word(moment, 1))


class _Timed(_Clock):
    """The timed step."""

    facts = SystemProgram.facts

    def write(self) -> None:
        kernel, counters = self.word(WORDS, 0), self.word(WORDS, 1)
        begin = self.clock()
        code = self.call(kernel, SLOTS, WORDS + 8 * len(abi.TIMED_WORDS))
        end = self.clock()
        self.do("add_shared", counters + 8 * CALLS, 1)
        self.do("add_shared", counters + 8 * TICKS, end - begin)
        log = self.word(counters, LOG)
        n_rows = self.word(log, 1)
        with self.when(read_word(log, 0) < n_rows):
            row = self.run("add_shared", log, 1)
            with self.when(row < n_rows):
                thread = call("pthread_self") if sys.platform != "win32" else 0
                place = self.let(log + (row * (8 * LOG_ROW) + 8 * LOG_HEAD))
                for k, value in enumerate((read_word(counters, NUMBER), begin, end, thread)):
                    self.put_word(place, k, value)
        self.give_back(code)


@cache
def clock() -> Callable[[], int]:
    """The clock of timed steps, as a function."""
    return ctypes.CFUNCTYPE(ctypes.c_int64)(kernel_store.code_address(_Clock.named()))


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
