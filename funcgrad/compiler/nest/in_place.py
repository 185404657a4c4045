"""Results in the memory of what nobody needs any more: donated inputs, and arrays that change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.layout import Shape, Uniform, Value, View
from funcgrad.compiler.nest.nodes import (
    Copies,
    Graph,
    Node,
    Point,
    Put,
    Routine,
    readers_of,
)


def reuse_inputs(graph: Graph, groups: Sequence[Group], donated: Sequence[bool]) -> None:
    """Let outputs replace donated inputs of their type that nothing needs any more."""
    free: dict[tuple[Shape, Any], list[Value]] = {}
    reads: dict[Value, list[tuple[int, bool]]] = {}
    """Where each is read, and whether only at the index that is computed there."""
    for value, given in zip(graph.inputs, donated, strict=False):
        if given:
            free.setdefault((value.shape, value.dtype), []).append(value)
            reads[value] = []
    home = {node: i for i, group in enumerate(groups) for node in group.nodes}
    for node, i in home.items():
        for k, x in enumerate(node.operands):
            if isinstance(x, View) and x.value in reads:
                is_plain = x.is_whole and x.shape == node.space and not node.looks_around(k)
                reads[x.value].append((i, is_plain))
    shapes = graph.out_shapes or [out.shape for out in graph.outputs]
    for out, shape in zip(graph.outputs, shapes, strict=True):
        i = home[out.maker]
        candidates = free.get((shape, out.dtype), [])
        changed = [value for value, changes in _changed(out.maker) if changes is out]
        if changed:
            candidates = [value for value in candidates if value in changed]
        elif not isinstance(out.maker, Point):
            continue
        for value in candidates:
            if all(
                j < i or (j == i and groups[i].walk is None and is_plain)
                for j, is_plain in reads[value]
            ):
                out.home = value
                free[shape, out.dtype].remove(value)
                break


def _changed(node: Node) -> Iterator[tuple[Value, Value]]:
    """The arrays that a node changes where they are, if it reads them nowhere else, and into what.

    They have the type of what becomes of them.
    """
    if isinstance(node, Routine):
        found = node.replaced
        if isinstance(found, View) and found.is_whole and found.dtype == node.out.dtype:
            yield found.value, node.out
        for i, x in node.starts:
            memory = node.memory[i]
            if not isinstance(x, View) or not _becomes(x, memory) or memory.value not in node.outs:
                continue
            if [y.value for y in node.operands if isinstance(y, View)].count(x.value) == 1:
                yield x.value, memory.value
        return
    if not isinstance(node, Put | Copies):
        return
    if isinstance(node, Copies) and (
        node.is_fresh or not node.places or not node.places[0].is_whole
    ):
        return
    x, *others = node.operands
    if isinstance(x, Uniform) or not x.is_whole:
        return
    if not any(isinstance(y, View) and y.value is x.value for y in others):
        yield x.value, node.out


def _becomes(operand: View, memory: View) -> bool:
    """Whether an array that starts as a copy of an operand may be the operand itself."""
    return (
        operand.is_whole
        and memory.is_whole
        and (operand.shape, operand.dtype) == (memory.shape, memory.dtype)
    )


def _ends(node: Node, other: Node) -> bool:
    """Whether a node waits for what another one has begun: it reads nothing of its own."""
    return isinstance(node, Routine) and node.begun_by is other


def change_in_place(
    graph: Graph, groups: Sequence[Group], carries: Sequence[tuple[Value, Value]] = ()
) -> None:
    """Let parts of arrays be changed where these are, if nothing needs them as they were.

    Args:
        graph: The graph.
        groups: Its groups, in the order in which they run.
        carries: Inputs that may be written to, each with the output that takes its place.
    """
    replaced = dict(carries)
    inputs, outputs = set(graph.inputs), set(graph.outputs)
    home = {node: i for i, group in enumerate(groups) for node in group.nodes}
    readers = readers_of(home)
    for i, group in reversed(list(enumerate(groups))):
        for changed, out in _changed(group.nodes[0]):
            if any(
                home[reader] > i and not _ends(reader, group.nodes[0])
                for reader in readers[changed]
            ):
                continue
            if changed.maker is None:
                is_free = replaced.get(changed) is out.home
            else:
                is_free = changed not in outputs and out.home not in inputs
            if is_free:
                changed.home = out.home
