"""A computation on a thread of its own, for callers that have something else to do meanwhile.

`Background` keeps what came of it: a result, or an error that is raised where the result is asked
for, and shown as a warning if nobody ever asks. The process does not end before the computation.
One runs at a time, and a fork waits for it, so that no child inherits a computation without its
thread in the middle; a child starts those anew that had not begun.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

from funcgrad.base.forking import Lock
from funcgrad.base.records import dataclass

T = TypeVar("T")

_TURN = Lock()


@dataclass
class _Outcome(Generic[T]):
    """Outcome of a computation."""

    what: str
    result: T | None = None
    error: BaseException | None = None
    is_shown: bool = False
    is_dropped: bool = False

    def drop(self) -> None:
        """Nobody is going to ask any more: warn of an error, now or when it occurs."""
        self.is_dropped = True
        if self.error is not None and not self.is_shown:
            self.is_shown = True
            kind = type(self.error).__name__
            warnings.warn(f"{self.what} failed: {kind}: {self.error}", RuntimeWarning, stacklevel=2)


class Background(Generic[T]):
    """The result of ``make()``, which runs in the context of whoever starts it.

    Args:
        make: The computation; its result is not `None`.
        what: Names it in the warning.
    """

    def __init__(self, make: Callable[[], T], what: str) -> None:
        self._make = make
        self._outcome: _Outcome[T] = _Outcome(what)
        weakref.finalize(self, self._outcome.drop)
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        run = _running(self._make, self._outcome)
        context = copy_context()
        self._thread = threading.Thread(target=context.run, args=(run,), name="funcgrad-jit")
        self._thread.start()

    def result(self) -> T | None:
        """Result of the computation; ``None`` while it is not there yet.

        Raises: BaseException: What the computation raised, at every call.
        """
        outcome = self._outcome
        if outcome.error is not None:
            outcome.is_shown = True
            raise outcome.error
        if outcome.result is None and self._process != os.getpid():
            self._start()
        return outcome.result

    def join(self) -> None:
        """Wait until it has ended, one way or the other."""
        self._thread.join()


def _running(make: Callable[[], T], outcome: _Outcome[T]) -> Callable[[], None]:
    """The body of the thread; it holds what it fills, not the `Background` that may be dropped."""

    def run() -> None:
        with _TURN:
            try:
                outcome.result = make()
            except BaseException as error:
                outcome.error = error
                if outcome.is_dropped:
                    outcome.drop()

    return run
