"""Failure of one process ends all: the others would wait for it forever.

An exception that nobody catches is shown once, with the number of its rank, and then MPI ends all
processes. Where all fail alike, the lowest rank is the first to speak.
"""

from __future__ import annotations

import atexit
import sys
import time
from types import TracebackType
from typing import Any

PATIENCE = 0.25
"""Seconds that a rank leaves to each lower one to speak first, up to `MOST_PATIENCE`."""

MOST_PATIENCE = 1.0

_watched: list[Any] = []
"""The communicator whose processes end together."""
_exit_code: list[int] = []
"""The code with which this process leaves a block of collectives."""


def end_together(communicator: Any) -> None:
    """From now on, what ends this process by an exception ends those of a communicator."""
    if _watched:
        return
    _watched.append(communicator)
    earlier = sys.excepthook

    def show_and_end(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        index, size = communicator.Get_rank(), communicator.Get_size()
        time.sleep(min(PATIENCE * index, MOST_PATIENCE))
        print(f"rank {index} of {size} failed, which ends all:", file=sys.stderr)
        earlier(kind, error, traceback)
        sys.stdout.flush()
        sys.stderr.flush()
        communicator.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = show_and_end
    atexit.register(_end_after_exit)


def note_exit(error: BaseException | None) -> None:
    """Remember that a block of collectives was left by `SystemExit` with a code other than 0."""
    if isinstance(error, SystemExit) and error.code:
        _exit_code.append(error.code if isinstance(error.code, int) else 1)


def _end_after_exit() -> None:
    if _exit_code and _watched:
        sys.stdout.flush()
        sys.stderr.flush()
        _watched[0].Abort(_exit_code[0])
