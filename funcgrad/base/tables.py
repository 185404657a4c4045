"""Tables with a bound, of which the least recently used entries go first.

They are plain dicts, whose single steps are safe between threads: two that meet cost one of them
its entry, which is then made again.
"""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def used(table: dict[K, V], key: K, value: V, most: int) -> None:
    """Note that an entry has been used. It costs nothing while a table is half empty.

    Args:
        table: The table, oldest entries first.
        key: Of the entry.
        value: Its value.
        most: How many entries there may be.
    """
    if 2 * len(table) > most:
        table.pop(key, None)
        table[key] = value


def keep(table: dict[K, V], key: K, value: V, most: int) -> None:
    """Add an entry; if there are as many as there may be, an eighth of them goes."""
    if len(table) >= most:
        for old in list(table)[: max(1, most // 8)]:
            table.pop(old, None)
    table[key] = value
