"""The heap as the collector of cycles sees it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = (50_000, 5, 5)
"""Objects that are made between searches among the youngest (Python: 700), and how many of these
searches come before each wider one."""
_HIDDEN: list[bool] = []


def rest_collector() -> None:
    """Search for no cycles while tests are collected: nearly all that is made then stays."""
    gc.disable()


def hide_from_collector() -> None:
    """Hide the tests that were collected, and search for cycles less often.

    Each full search would take a second for the tests. And what traces and compiles many small
    programs makes so many objects that searches as often as by default take a tenth to a third of
    the processor time.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(*SELDOM)
    _HIDDEN.append(True)


@contextmanager
def resting() -> Iterator[None]:
    """Search for no cycles while something is made that stays, and hide it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


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
