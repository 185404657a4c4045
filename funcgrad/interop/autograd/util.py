"""``autograd.util``: arguments with some of them replaced."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["subval", "subvals"]


def subvals(x: tuple[Any, ...], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """A tuple with some entries replaced.

    Args:
        x: The tuple.
        ivs: Pairs of a position and its new entry.
    """
    entries = list(x)
    for i, v in ivs:
        entries[i] = v
    return tuple(entries)


def subval(x: tuple[Any, ...], i: int, v: Any) -> tuple[Any, ...]:
    """A tuple with one entry replaced.

    Args:
        x: The tuple.
        i: The position.
        v: The new entry.
    """
    return subvals(x, [(i, v)])
