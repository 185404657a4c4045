"""Memory of calls that failed while a library was still at work on it.

A program that stops between the beginning of a message and its end leaves buffers that are written
to later. They are kept until the library says that it is done with them, and nobody waits for that:
the other processes may never send their part.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from funcgrad.base.forking import Lock
from funcgrad.lowering import Background, NativeCall, Ref

_LOCK = Lock()
_kept: list[tuple[Any, list[tuple[int, Background]], Any]] = []
"""Slots of a call, the states of it that are not done, and what must live until they are."""


def is_at_work(slots: Any, states: Sequence[tuple[int, Background]]) -> bool:
    """Whether anything that a call has begun has not come to its end.

    Args:
        slots: The slots of the call.
        states: As of `allocate.Memory`.
    """
    return any(slots[slot] != background.nothing for slot, background in states)


def keep(slots: Any, states: Sequence[tuple[int, Background]], memory: Any) -> None:
    """Let memory live until nothing works on it any more.

    Args:
        slots: The slots of a call that has failed.
        states: As of `allocate.Memory`.
        memory: Whatever the call has read and written.
    """
    with _LOCK:
        _kept.append((slots, list(states), memory))
    release()


def release() -> int:
    """Go on with what is under way, and forget the memory of what is done.

    Returns: How many calls are left that have not come to their ends.
    """
    with _LOCK:
        for slots, states, _ in _kept:
            for slot, background in states:
                if slots[slot] != background.nothing:
                    _call(background.ask, slots.ctypes.data + 8 * slot)
        _kept[:] = [row for row in _kept if is_at_work(row[0], row[1])]
        return len(_kept)


def _call(call: NativeCall, state: int) -> None:
    """Call a function of the words of a state."""
    words = [state + 8 * x.offset if isinstance(x, Ref) else x for x in call.arguments]
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * len(words))
    kind(call.address)(*(word - (word >> 63 << 64) for word in words))
