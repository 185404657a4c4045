"""Statements that turn indices into places: what each mode of a lookup makes of a number."""

from __future__ import annotations

import numpy as np

from funcgrad.compiler.abi import REFUSED
from funcgrad.compiler.nest.source import Source


def resolve(
    source: Source, mode: str, name: str, index: str, dtype: np.dtype[np.generic], length: str
) -> str:
    """Statements that make ``name`` the place that an index means.

    Args:
        source: The kernel.
        mode: As of `nodes.Pick`.
        name: The new variable.
        index: That of the index.
        dtype: Its dtype.
        length: That of the length of the axis, or of how many starts a window has.

    Returns:
        The expression of whether the place exists, or nothing where it always does.
    """
    if mode == "start":
        source.add(f"{name} = {_clamped(index, dtype, f'({length} - 1)')}")
        return ""
    if mode == "place":
        source.add(f"{name} = i64({index})")
        return ""
    at = f"{name}i"
    source.add(f"{at} = i64({index})")
    if mode == "clip":
        source.add(f"{name} = minimum(maximum({at}, 0), {length} - 1)")
    elif mode == "wrap":
        source.add(f"{name} = {at}")
        with source.block(f"if ({at} < 0) | ({at} >= {length}):"):
            source.add(f"{name} = remainder({at}, {length})")
    else:
        source.add(f"{name} = select({at} < 0, {at} + {length}, {at})")
        return f"({name} >= 0) & ({name} < {length})"
    return ""


def is_wrong(index: str, length: str) -> str:
    """The expression of whether an index is to be refused."""
    return f"({index} < -{length}) | ({index} >= {length})"


def refuse(source: Source, site: str, index: str, position: str) -> None:
    """Statements that end the kernel because of an index."""
    source.add(f"slots[1] = {site}")
    source.add(f"slots[2] = {index}")
    source.add(f"slots[3] = {position}")
    source.add(f"return {REFUSED}")


def _clamped(start: str, dtype: np.dtype[np.generic], room: str) -> str:
    """The expression of the start of a window, moved so that it lies inside."""
    if dtype.kind == "u":
        return f"i64(minimum(u64({start}), u64({room})))"
    return f"minimum(maximum(i64({start}), 0), {room})"
