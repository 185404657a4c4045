"""Samples of the user's line that a thread of Python is at, two hundred in a second at most.

They are fewer where a look takes long, so that all of them take a bounded part of the time. Another
thread looks at its stack. While native code runs without the interpreter's lock, it can
look at any time; else it has to wait, and a sample counts for as long as it is since the last one:
so a long call that keeps the lock counts in full.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from types import FrameType

from funcgrad.compiler.runtime import executable
from funcgrad.observers.source import SourceLocation, location_at
from funcgrad.transforms.linearize import pull_entry

INTERVAL = 0.005
"""Seconds from one look to the next, at least."""
LONGEST = 0.05
"""And at most."""
SHARE = 0.005
"""Part of the time that looks may take."""
SWITCH = 0.0005
"""Seconds after which a thread that keeps the interpreter's lock is asked for it."""

_GOLDEN = 0.618033988749895
"""Fractional parts of the multiples of this number fill the unit interval evenly."""

_RUNS = executable.Executable._start.__code__
_PULLS = pull_entry.__code__
_CALL_PATH = "<call path>"


class StackSampler:
    """Samples of one thread, the caller's.

    Args: tick: What is called with each look.

    Attributes:
        python: Seconds by line, of Python and what it calls.
        native: Seconds by line, of compiled programs and the way into them.
        pulled: Seconds of transposes of operations whose lines nobody has kept.
    """

    def __init__(self, tick: Callable[[], None]) -> None:
        self.tick = tick
        self.python: defaultdict[SourceLocation | None, float] = defaultdict(float)
        self.native: defaultdict[SourceLocation | None, float] = defaultdict(float)
        self.pulled = 0.0
        self._thread = threading.get_ident()
        self._ended = threading.Event()

    def __enter__(self) -> StackSampler:
        self._interval = sys.getswitchinterval()
        self._worker = threading.Thread(target=self._run, name="funcgrad profile", daemon=True)
        self._worker.start()  # which may fail: nothing has changed until then
        sys.setswitchinterval(min(SWITCH, self._interval))
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._worker.join()
        sys.setswitchinterval(self._interval)

    def _run(self) -> None:
        last, spent, interval = time.perf_counter(), time.thread_time(), INTERVAL
        part = 0.0  # calls of equal length would be met at the same places by equal intervals
        while not self._ended.wait(interval * (0.5 + part)):
            part = (part + _GOLDEN) % 1
            self.tick()
            frame = sys._current_frames().get(self._thread)
            now = time.perf_counter()
            self._count(frame, now - last)
            last = now
            before, spent = spent, time.thread_time()
            interval = min(max(INTERVAL, (spent - before) / SHARE), LONGEST)

    def _count(self, frame: FrameType | None, seconds: float) -> None:
        inner = frame
        while inner is not None:
            code = inner.f_code
            if code is _RUNS or code.co_filename == _CALL_PATH:
                self.native[location_at(frame)] += seconds
                return
            if code is _PULLS and inner.f_locals["entry"].source is None:
                self.pulled += seconds
                return
            inner = inner.f_back
        self.python[location_at(frame)] += seconds
