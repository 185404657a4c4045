"""Python's collector of cycles, where there is nothing for it to find."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from funcgrad.forking import in_children

# Python 3.14 came with a collector that searches the old objects piece by piece, and took it back.
# The one of builds without the GIL does not tell young objects from old ones. To freeze is a walk
# over the heap in both.
_HAS_GENERATIONS = (
    not (3, 14) <= sys.version_info < (3, 14, 5) and "free-threading" not in sys.version
)
# Counting a frozen object takes a fiftieth of the time of searching a young one.
_COUNTED_PER_SEARCHED = 10


class _Known:
    """What Python does not tell, or not at once."""

    n_frozen = 0
    """How many objects were frozen when it was last asked: Python counts them one by one."""
    is_waiting = False
    """Whether a block has turned the collector off that will turn it on again."""


@contextmanager
def paused() -> Iterator[None]:
    """Leave cycles alone within a block that makes many objects which stay, and few cycles.

    Each generation of them would be searched, with all that is there already, such as the modules
    that are being imported: a tenth of the time of ``import funcgrad``, a quarter of a first call.
    Afterwards they are as old as if they had been searched. Where somebody has frozen others, which
    would be thawed with them, they are left to the collector.
    """
    was_enabled = gc.isenabled()
    _Known.is_waiting |= was_enabled
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _age()
            gc.enable()
            _Known.is_waiting = False


def _age() -> None:
    """Make old what is young, unless that takes longer than to search it."""
    if not _HAS_GENERATIONS or _Known.n_frozen > _COUNTED_PER_SEARCHED * gc.get_count()[0]:
        return
    _Known.n_frozen = gc.get_freeze_count()
    if not _Known.n_frozen:
        gc.freeze()
        gc.unfreeze()


def _go_on() -> None:
    """In a forked child, the thread whose block has turned the collector off is not there."""
    if _Known.is_waiting:
        _Known.is_waiting = False
        gc.enable()


in_children(_go_on)
