"""Statements that turn indices into places: what each mode of a lookup makes of a number.

Indices of every dtype are numbers of 64 bits with a sign first (`signed`), and are inside of an
axis before anything narrower is made of them.
"""

from __future__ import annotations

import numpy as np

from funcgrad.compiler.abi import REFUSED
from funcgrad.compiler.nest.source import Source
from funcgrad.dtypes import INT64, UINT64

NOWHERE = -1
"""The position of an index of which only the value is known."""

FARTHEST = int(np.iinfo(INT64).max)
"""What stands for all unsigned indices beyond it: no axis is as long."""


def resolve(
    source: Source,
    mode: str,
    name: str,
    index: str,
    dtype: np.dtype[np.generic],
    length: str,
    worst: str = "",
) -> str:
    """Statements that make ``name`` the place that an index means.

    Args:
        source: The kernel.
        mode: As of `nodes.Pick`.
        name: The new variable.
        index: That of the index.
        dtype: Its dtype.
        length: That of the length of the axis, or of how many starts a window has.
        worst: In mode "raise", the variable that becomes the worst index so far (`watch`), if any.

    Returns:
        The expression of whether the place exists, or nothing where it always does.
    """
    at = f"{name}i"
    if mode == "place":
        source.add(f"{name} = i64({index})")
        return ""
    if mode == "wrap" and dtype == UINT64:
        source.add(f"{name} = i64(remainder({index}, u64({length})))")
        return ""
    source.add(f"{at} = {signed(index, dtype)}")
    if mode == "raise":
        counted = _counted(source, name, dtype, length)
        source.add(f"{name} = i64(minimum(u64({counted}), u64({length} - 1)))")
        if worst:
            source.add(f"{worst} = maximum({worst}, u64({counted}))")
    elif mode in ("clip", "start"):
        source.add(f"{name} = minimum(maximum({at}, 0), {length} - 1)")
    elif mode == "wrap":
        source.add(f"{name} = {at}")
        with source.block(f"if ({at} < 0) | ({at} >= {length}):"):
            source.add(f"{name} = remainder({at}, {length})")
    else:
        source.add(f"{name} = select({at} < 0, {at} + {length}, {at})")
        return f"({name} >= 0) & ({name} < {length})"
    return ""


def signed(index: str, dtype: np.dtype[np.generic]) -> str:
    """The expression of an index as i64, or of the greatest i64 if it is greater."""
    return f"i64(minimum({index}, {FARTHEST}))" if dtype == UINT64 else f"i64({index})"


def _counted(source: Source, name: str, dtype: np.dtype[np.generic], length: str) -> str:
    """A variable that holds an index, ``{name}i``, counted from the start.

    Read without its sign it is at least the length if, and only if, the index is out of bounds.
    """
    if dtype.kind == "u":
        return f"{name}i"
    source.add(f"{name}c = select({name}i < 0, {name}i + {length}, {name}i)")
    return f"{name}c"


def watch(source: Source, worst: str) -> None:
    """Statements before the loops in which indices are looked at: the worst one is kept.

    Out of bounds are those that are great as unsigned numbers, once they were counted from the
    start. So a maximum tells, without a branch, whether any is.
    """
    source.add(f"{worst} = u64(0)")


def refuse_worst(source: Source, worst: str, length: str, site: str) -> None:
    """Statements behind the loops, which end the kernel if the worst index is out of bounds."""
    with source.block(f"if {worst} >= u64({length}):"):
        source.add(f"{worst}i = i64({worst})")
        index = f"select({worst}i < 0, {worst}i - {length}, {worst}i)"
        refuse(source, site, index, str(NOWHERE))


def resolve_or_refuse(
    source: Source, name: str, index: str, dtype: np.dtype[np.generic], length: str, site: str
) -> None:
    """Statements that make ``name`` a place, or end the kernel at once: where few are computed."""
    source.add(f"{name}i = {signed(index, dtype)}")
    source.add(f"{name} = {_counted(source, name, dtype, length)}")
    with source.block(f"if u64({name}) >= u64({length}):"):
        refuse(source, site, f"{name}i", str(NOWHERE))


def is_wrong(index: str, length: str) -> str:
    """The expression of whether an index is to be refused."""
    return f"({index} < -{length}) | ({index} >= {length})"


def refuse(source: Source, site: str, index: str, position: str) -> None:
    """Statements that end the kernel because of an index."""
    source.add(f"slots[1] = {site}")
    source.add(f"slots[2] = {index}")
    source.add(f"slots[3] = {position}")
    source.add(f"return {REFUSED}")
