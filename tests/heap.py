"""The heap as the collector of cycles sees it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_HIDDEN: list[bool] = []


def hide_from_collector() -> None:
    """Hide the tests that were collected: each full search would take a second for them."""
    gc.collect()
    gc.freeze()
    _HIDDEN.append(True)


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
        if _HIDDEN:
            gc.freeze()


@contextmanager
def whole_heap() -> Iterator[None]:
    """Show what was hidden, to what looks for holders of objects."""
    gc.unfreeze()
    try:
        yield
    finally:
        if _HIDDEN:
            gc.freeze()
