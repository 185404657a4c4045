"""Python's collector of cycles, while programs grow.

Tracing makes some ten objects for each operation, of which none is garbage before the program is
finished. The collector begins after every 700 new objects, and looks at all of them again and
again: half of the time of a program of 60,000 operations.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 1 << 19
"""New objects after which the collector begins."""


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """A context in which the collector begins less often.

    It is not switched off: a function that is traced may leave large arrays in cycles. Contexts
    within this one, in whatever thread, leave it as it is.
    """
    before = gc.get_threshold()
    if not 0 < before[0] < RARELY:  # 0 for a collector that is switched off
        yield
        return
    gc.set_threshold(RARELY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
