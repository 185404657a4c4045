"""Statements that turn indices into places: what each mode of a lookup makes of a number.

Indices of every dtype are numbers of 64 bits with a sign first (`signed`), and are inside of an
axis before anything narrower is made of them.
"""

from __future__ import annotations

import numpy as np

from funcgrad.compiler.abi import REFUSED
from funcgrad.compiler.loops.language import SLOTS, Expression, Number, Variable, call
from funcgrad.compiler.nest.kernel import KernelBuilder
from funcgrad.dtypes import INT64, UINT64

NOWHERE = -1
"""The position of an index of which only the value is known."""

FARTHEST = int(np.iinfo(INT64).max)
"""The number that stands for all unsigned indices beyond it: no axis is as long."""


def resolve(
    source: KernelBuilder,
    mode: str,
    name: str,
    index: Expression,
    dtype: np.dtype[np.generic],
    length: Expression,
    site: Expression | None = None,
    worst: str = "",
    lanes: Expression | None = None,
) -> Expression | None:
    """Statements that make ``name`` the place that an index means.

    Args:
        source: The kernel.
        mode: As of `nodes.Pick`.
        name: The new variable.
        index: The index.
        dtype: Its dtype.
        length: The length of the axis, or how many starts a window has.
        site: The site of which the kernel ends at once if the place does not exist, if it is to.
        worst: In mode "raise", the variable that becomes the worst index so far (`watch`), if any.
        lanes: The index of the lanes that a vector of indices belongs to.
    Returns: The test of whether the place exists, or nothing where it always does.
    """
    if site is not None:
        at = source.assign(f"{name}i", signed(index, dtype))
        place = source.assign(name, _counted(source, name, at, dtype, length))
        with source.when(call("u64", place) >= call("u64", length)):
            refuse(source, site, at, Number(NOWHERE))
        return None
    if mode == "place":
        source.assign(name, call("i64", index))
        return None
    if mode == "wrap" and dtype == UINT64:
        source.assign(name, call("i64", index % call("u64", length)))
        return None
    is_short = mode == "raise" and is_narrow(dtype)
    at = source.assign(f"{name}i", index if is_short else signed(index, dtype))
    if mode == "raise":
        word, last = "u64", call("u64", length - 1)
        if is_short:
            word = f"u{8 * dtype.itemsize}"
            last = call(word, call("minimum", length - 1, (1 << 8 * dtype.itemsize) - 1))
        counted = call(word, _counted(source, name, at, dtype, length))
        source.assign(name, call("i64", call("minimum", counted, last)))
        if worst:
            if lanes is not None:
                counted = call("across_maximum", call("present", lanes, counted, 0))
            source.assign(worst, call("maximum", Variable(worst), counted))
    elif mode in ("clip", "start"):
        source.assign(name, call("minimum", call("maximum", at, 0), length - 1))
    elif mode == "wrap" and lanes is not None:
        source.assign(name, at % length)
    elif mode == "wrap":
        source.assign(name, at)
        with source.when((at < 0) | (at >= length)):
            source.assign(name, at % length)
    else:
        place = source.assign(name, call("select", at < 0, at + length, at))
        return call("u64", place) < call("u64", length)
    return None


def is_narrow(dtype: np.dtype[np.generic]) -> bool:
    """Whether indices are compared as they are, more of them at once than of 64 bits."""
    return dtype.kind == "u" and dtype.itemsize < INT64.itemsize


def signed(index: Expression, dtype: np.dtype[np.generic]) -> Expression:
    """An index as i64, or the greatest i64 if it is greater."""
    return call("i64", call("minimum", index, FARTHEST) if dtype == UINT64 else index)


def _counted(
    source: KernelBuilder,
    name: str,
    at: Expression,
    dtype: np.dtype[np.generic],
    length: Expression,
) -> Expression:
    """A variable that holds an index counted from the start.

    Read without its sign it is at least the length if, and only if, the index is out of bounds.
    """
    if dtype.kind == "u":
        return at
    return source.assign(f"{name}c", call("select", at < 0, at + length, at))


def watch(source: KernelBuilder, worst: str, dtype: np.dtype[np.generic]) -> None:
    """Statements before the loops in which indices are looked at: the worst one is kept.

    Out of bounds are those that are great as unsigned numbers, once they were counted from the
    start. So a maximum tells, without a branch, whether any is.
    """
    source.assign(worst, call(f"u{8 * dtype.itemsize}" if is_narrow(dtype) else "u64", 0))


def refuse_worst(source: KernelBuilder, worst: str, length: Expression, site: Expression) -> None:
    """Statements behind the loops, which end the kernel if the worst index is out of bounds."""
    with source.when(call("u64", Variable(worst)) >= call("u64", length)):
        at = source.assign(f"{worst}i", call("i64", Variable(worst)))
        refuse(source, site, call("select", at < 0, at - length, at), Number(NOWHERE))


def is_wrong(index: Expression, length: Expression) -> Expression:
    """Whether an index is to be refused."""
    return (index < -length) | (index >= length)


def refuse(
    source: KernelBuilder, site: Expression, index: Expression, position: Expression
) -> None:
    """Statements that end the kernel because of an index."""
    for slot, value in ((1, site), (2, index), (3, position)):
        source.evaluate(call("write_word", SLOTS, slot, value))
    source.give_back(REFUSED)
