"""Signals to a thread that has computed for a while, however long other processes pause it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signal_within(seconds: float, number: int) -> Iterator[None]:
    """Send this process a signal in the middle of what the block computes.

    A timer started before the block could ring before the block begins: a busy machine pauses
    processes for longer than a test waits. So the block's own processor time counts where the
    system has it for each thread.

    Args:
        seconds: How long the thread computes before the signal comes.
        number: That of the signal.
    """
    ask = getattr(time, "pthread_getcpuclockid", None)
    clock = time.CLOCK_MONOTONIC if ask is None else ask(threading.get_ident())
    start, is_over = time.clock_gettime_ns(clock), threading.Event()

    def send() -> None:
        # No arithmetic of floats in the caller's thread, which may look at its flags.
        while not is_over.wait(0.005):
            if time.clock_gettime_ns(clock) - start >= seconds * 1e9:
                os.kill(os.getpid(), number)
                return

    sender = threading.Thread(target=send)
    try:
        sender.start()
        yield
    finally:
        is_over.set()
        sender.join()
