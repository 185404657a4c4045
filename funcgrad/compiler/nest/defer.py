"""Asynchronous calls: wait where the result is first read, not where the call was begun.

``defer : graph -> graph``. Other steps run in between; after each, the plan lets the library make
progress.
"""

from __future__ import annotations

from funcgrad.compiler.nest.layout import Value
from funcgrad.compiler.nest.nodes import Graph, Node, Routine, values_read


def defer(graph: Graph) -> None:
    """Move every node that waits to where its result is read first."""
    waiting = {node.out: node for node in graph.nodes if _waits(node)}
    if not waiting:
        return
    nodes: list[Node] = []

    def append(node: Node) -> None:
        for value in values_read(node):
            waited = waiting.pop(value, None)
            if waited is not None:
                append(waited)
        nodes.append(node)

    for node in graph.nodes:
        if not _waits(node):
            append(node)
    left: list[Value] = list(waiting)
    for value in left:
        if value in waiting:
            append(waiting.pop(value))
    graph.nodes = nodes


def _waits(node: Node) -> bool:
    return isinstance(node, Routine) and node.begun_by is not None
