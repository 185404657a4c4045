"""What appends nodes to a graph.

`lower` goes through the equations; `loops` and `contractions`, which it calls, append through this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from funcgrad.compiler.nest.layout import Operand, Value
from funcgrad.compiler.nest.nodes import Graph, Node, Point
from funcgrad.core.program import Equation, Program

N = TypeVar("N", bound=Node)


class Builder:
    """Appends nodes to a graph.

    Attributes:
        graph: The graph.
        epoch: How many barriers have come so far.
        equation: The equation that nodes are appended for.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.epoch = 0
        self.equation: Equation | None = None

    def add(self, node: N) -> N:
        node.epoch = self.epoch
        node.equation = self.equation
        self.graph.nodes.append(node)
        return node

    def copy(self, operand: Operand) -> Value:
        """The elements of an operand, stored contiguously."""
        out = Value(operand.shape, operand.dtype)
        return self.add(Point((operand,), (out,), "{0}")).out

    def lower_into(self, graph: Graph, program: Program, operands: Sequence[Operand]) -> None:
        """Lower a program that is applied to operands, such as a loop's body, into a new graph."""
        raise NotImplementedError
