"""The heap as the collector of cycles sees it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_heap() -> Iterator[None]:
    """Hide what is there, such as modules and other tests, from the collector of cycles.

    A search through all of it takes longer than most of what is tested or timed.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
