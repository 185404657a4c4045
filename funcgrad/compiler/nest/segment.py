"""Long programs in parts of bounded length, cut where they look alike.

Fusion compares groups with groups, so its time grows faster than their number: it is done part by
part. An unrolled loop repeats the same nodes, but not in steps of any fixed length; were it cut by
counting, every part would begin elsewhere in the loop, and no two would give the same kernels. So a
part ends where a number made of its last few nodes is smallest within a range: a place that depends
on what is computed there. All parts of a loop whose body is shorter than that range then begin
alike, share their kernels, and compile once.

The numbers are the same in every process, as the disk cache wants it, and do not depend on lengths
of axes, for which kernels are not compiled again either.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from funcgrad.compiler.machine import KERNEL_NODES
from funcgrad.compiler.nest.nodes import Node

LEAST = 2 * KERNEL_NODES
"""Nodes of the shortest part. Twice as many are the longest one."""

WHOLE = 8 * KERNEL_NODES
"""Programs of so many nodes are one part."""

_LOOK_BACK = 8


def segments(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Consecutive parts of a list of nodes."""
    if len(nodes) <= WHOLE:
        yield nodes
        return
    kinds = np.array([zlib.crc32(_kind(node).encode()) for node in nodes], np.uint32)
    start = 0
    while len(nodes) - start > 2 * LEAST:
        ends = range(start + LEAST, start + 2 * LEAST)
        end = min(ends, key=lambda i: (zlib.crc32(kinds[i - _LOOK_BACK : i].tobytes()), i))
        yield nodes[start:end]
        start = end
    yield nodes[start:]


def _kind(node: Node) -> str:
    """The operation of a node, apart from the lengths of its axes."""
    types = [f"{x.dtype.char}{len(x.shape)}{type(x).__name__}" for x in node.operands]
    outs = [f"{out.dtype.char}{len(out.shape)}" for out in node.outs]
    return f"{type(node).__name__} {getattr(node, 'expr', '')} {types} {outs}"
