"""Asynchronous calls: wait where the result is first read, not where the call was begun.

``defer : graph -> graph``. Other steps run in between; after each, the plan lets the library make
progress.
"""

from __future__ import annotations

from funcgrad.compiler.nest.nodes import Graph, Node, Routine, depth_first, values_read


def defer(graph: Graph) -> None:
    """Move every node that waits to where its result is read first."""
    waits = [x for x in graph.nodes if isinstance(x, Routine) and x.begun_by is not None]
    if waits:
        waiting: set[Node] = {*waits}
        others = [node for node in graph.nodes if node not in waiting]

        def needs(node: Node) -> list[Node]:
            return [value.maker for value in values_read(node) if value.maker in waiting]

        graph.nodes = depth_first([*others, *waits], needs)
