"""Python's collector of cycles, where there is nothing for it to find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Leave cycles alone within a block that makes many objects which stay, and few cycles.

    Each generation of them would be searched, with all that is there already, such as the modules
    that are being imported: a tenth of the time of ``import funcgrad``, a quarter of a first call.
    Afterwards they are as old as if they had been searched, unless somebody has frozen others,
    which would be thawed with them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
