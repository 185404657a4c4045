"""Statements that turn indices into places: what each mode of a lookup makes of a number."""

from __future__ import annotations

import numpy as np

from funcgrad.compiler.abi import REFUSED
from funcgrad.compiler.nest.source import Source


def resolve(source: Source, mode: str, name: str, index: str, length: str) -> str:
    """Statements that make ``name`` the place that an index means.

    Args:
        source: The kernel.
        mode: As of `lowering.Lookup`, or "place": it is one.
        name: The new variable.
        index: A variable of int64.
        length: That of the length of the axis.

    Returns:
        The expression of whether the place exists, or nothing where it always does.
    """
    if mode == "clip":
        source.add(f"{name} = minimum(maximum({index}, 0), {length} - 1)")
    elif mode == "wrap":
        source.add(f"{name} = {index}")
        with source.block(f"if ({index} < 0) | ({index} >= {length}):"):
            source.add(f"{name} = remainder({index}, {length})")
    elif mode == "place":
        source.add(f"{name} = {index}")
    else:
        source.add(f"{name} = select({index} < 0, {index} + {length}, {index})")
    return f"({name} >= 0) & ({name} < {length})" if mode == "fill" else ""


def is_wrong(index: str, length: str) -> str:
    """The expression of whether an index is to be refused."""
    return f"({index} < -{length}) | ({index} >= {length})"


def refuse(source: Source, site: str, index: str, position: str) -> None:
    """Statements that end the kernel because of an index."""
    source.add(f"slots[1] = {site}")
    source.add(f"slots[2] = {index}")
    source.add(f"slots[3] = {position}")
    source.add(f"return {REFUSED}")


def clamped(start: str, dtype: np.dtype[np.generic], room: str) -> str:
    """The expression of the start of a window, moved so that it lies inside."""
    if dtype.kind == "u":
        return f"i64(minimum(u64({start}), u64({room})))"
    return f"minimum(maximum(i64({start}), 0), {room})"
