"""Who waits for whom: the time that each process computes, and that it is in collectives.

Processes that meet in every step are all as fast as the slowest one, which is the one that waits
least. So the timers of the steps of compiled programs, and those of evaluated collectives, tell
which one it is.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Hashable
from statistics import median
from types import TracebackType
from typing import Any

import numpy as np

from funcgrad.api.compilation import forget_call_paths
from funcgrad.base.forking import Lock
from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.nodes import Routine
from funcgrad.compiler.plans import nodes_of
from funcgrad.compiler.runtime import executable
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.distributed.exchange import axis_of_processes
from funcgrad.distributed.processes import evaluated
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.staging import located
from funcgrad.lowering import NativeCall
from funcgrad.profiling import timed_steps
from funcgrad.profiling.timing import TimedProgram, TimedStep


@dataclass(frozen=True)
class RankTime:
    """The time of one process.

    Attributes:
        rank: Its number.
        host: The name of its machine.
        seconds: The time in the block.
        messages: Of it, the time in collectives: waiting for others, and exchanging.
    """

    rank: int
    host: str
    seconds: float
    messages: float

    @property
    def own(self) -> float:
        """The time outside of collectives."""
        return self.seconds - self.messages


class Waits:
    """The result of `waits`: a context manager, and what was measured once it is left.

    Attributes:
        ranks: A `RankTime` for each process; empty before.
        slow: The numbers of those that are slower than the others.
    """

    def __init__(self, axis_name: Hashable, factor: float) -> None:
        self.ranks: tuple[RankTime, ...] = ()
        self._axis = axis_of_processes(axis_name, "waits")
        self._factor = factor
        self._programs: dict[Executable, TimedProgram] = {}
        self._log = np.zeros(timed_steps.LOG_HEAD, np.int64)  # has room for nothing
        self._begin = self._evaluated = 0.0

    @property
    def slow(self) -> tuple[int, ...]:
        found = []
        for row in self.ranks:
            others = [other.own for other in self.ranks if other is not row]
            if others and row.own > self._factor * median(others):
                found.append(row.rank)
        return tuple(found)

    def __enter__(self) -> Waits:
        with _STARTING:
            if executable.observers:
                raise located(ArgumentError, "waits: another profile is running in this process.")
            executable.observers.append(self._found)
        forget_call_paths()
        self._axis.everyones(None)
        self._begin, self._evaluated = time.perf_counter(), evaluated.seconds
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, traceback: TracebackType | None
    ) -> None:
        seconds = time.perf_counter() - self._begin
        messages = evaluated.seconds - self._evaluated
        executable.observers.remove(self._found)
        for program in self._programs.values():
            program.keep()
            program.stop()
            steps = zip(program.steps, program.seconds(), strict=True)
            messages += sum(taken for step, taken in steps if _is_message(step))
        self._programs.clear()
        forget_call_paths()
        if kind is None:
            own = platform.node(), seconds, messages
            rows = self._axis.everyones(own)
            self.ranks = tuple(RankTime(i, *row) for i, row in enumerate(rows))

    def _found(self, found: Executable) -> None:
        """Instrument a program with timers when it is called; that call does not count."""
        if found not in self._programs:
            begin = time.perf_counter()
            self._programs[found] = TimedProgram(found, self._log, has_sampler=False)
            self._programs[found].start()
            self._begin += time.perf_counter() - begin

    def __str__(self) -> str:
        lines = [f"{'rank':>6}  {'host':<20}{'own':>10}{'messages':>10}"]
        for row in self.ranks:
            shares = f"{row.own:>8.3f} s{row.messages:>8.3f} s"
            mark = "  slow: the others wait for it" if row.rank in self.slow else ""
            lines.append(f"{row.rank:>6}  {row.host[:20]:<20}{shares}{mark}")
        return "\n".join(lines)


_STARTING = Lock()


def _is_message(step: TimedStep) -> bool:
    nodes = [] if step.job is None else nodes_of(step.job)
    calls = [call for node in nodes if isinstance(node, Routine) for call in node.calls]
    return any(isinstance(call, NativeCall) for call in calls)


def waits(axis_name: Hashable = None, *, factor: float = 1.5) -> Waits:
    """Measure in a block which processes others wait for.

    All processes of the axis enter and leave the block together. Compiled functions, if they were
    called before, run as they are, with timers around their steps.

    Args:
        axis_name: As of `rank`.
        factor: A process is slow if it takes this many times as long outside of collectives as the
            others, of which the median counts.

    Returns:
        A context manager. When the block is left, its ``ranks`` tells for each process its host,
        and the time outside of collectives and in them; its ``slow`` the numbers of slow ones.
        Printed, it is a table.
    Raises: ArgumentError: If a profile is running.

    Example:
        >>> import funcgrad as fg
        >>> with fg.distributed.waits() as waits:
        ...     total = sum(range(1000))
        >>> len(waits.ranks), waits.slow
        (1, ())
    """
    return Waits(axis_name, factor)
