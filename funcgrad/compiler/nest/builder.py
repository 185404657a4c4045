"""Builder of a graph, to which nodes are appended.

`lower` goes through the equations; it and `loops` and `contractions`, which it calls, use this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from funcgrad.compiler.nest.layout import Operand, Shape, Uniform, Value, View, reshaped, whole
from funcgrad.compiler.nest.nodes import Fold, Graph, Node, Point
from funcgrad.core.program import Equation, Program
from funcgrad.lowering import Reduction

N = TypeVar("N", bound=Node)


class Builder:
    """Appends nodes to a graph.

    Attributes:
        graph: The graph.
        epoch: How many barriers have come so far.
        equation: The equation that nodes are appended for.
        watched: Indices, each with the length of an axis, of which wrong ones are refused already.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.epoch = 0
        self.equation: Equation | None = None
        self.watched: set[tuple[Operand, int]] = set()
        self._laid_out: dict[View, View] = {}

    def add(self, node: N) -> N:
        node.epoch = self.epoch
        node.equation = self.equation
        self.graph.nodes.append(node)
        return node

    def result(self, node: Node) -> View:
        """All of what a node computes, which is appended."""
        return whole(self.add(node).out)

    def summed(self, operand: Operand, axes: tuple[int, ...]) -> Value:
        """The sums of an operand over some axes."""
        shape = tuple(n for axis, n in enumerate(operand.shape) if axis not in axes)
        out = Value(shape, operand.dtype)
        return self.add(Fold((operand,), (out,), sum_over(axes))).out

    def copy(self, operand: Operand, dtype: np.dtype[Any] | None = None) -> Value:
        """The elements of an operand, stored contiguously, under its dtype or another one."""
        out = Value(operand.shape, dtype or operand.dtype)
        return self.add(Point((operand,), (out,), "{0}")).out

    def stored(self, operand: Operand) -> View:
        """An operand with memory."""
        return whole(self.copy(operand)) if isinstance(operand, Uniform) else operand

    def reshaped(self, operand: Operand, shape: Shape) -> Operand:
        """An operand under another shape, copied if no strides describe it."""
        view = reshaped(operand, shape)
        if view is None:
            view = reshaped(whole(self.copy(operand)), shape)
        assert view is not None  # contiguous elements take any shape
        return view

    def array(self, array: np.ndarray) -> Operand:
        """An array that is known now."""
        if is_uniform(array):
            return Uniform(array.reshape(-1)[0], array.shape)
        return self.constant(array)

    def constant(self, array: np.ndarray) -> View:
        """An array that is known now, with memory."""
        value = Value(array.shape, array.dtype)
        value.array = np.require(array, requirements=["C", "A"])
        self.graph.constants.append(value)
        return whole(value)

    def laid_out(self, view: View) -> View:
        """The elements of a part of a constant, as a constant that is contiguous."""
        array = view.value.array
        assert array is not None
        if view not in self._laid_out:
            bytes_apart = [s * array.itemsize for s in view.strides]
            start = array.reshape(-1)[view.offset :]
            elements = np.lib.stride_tricks.as_strided(start, view.shape, bytes_apart)
            self._laid_out[view] = self.constant(elements)
        return self._laid_out[view]

    def lower_into(
        self,
        graph: Graph,
        program: Program,
        operands: Sequence[Operand],
        n_shaped: int | None = None,
    ) -> None:
        """Lower a program that is applied to operands, such as a loop's body, into a new graph.

        Args:
            graph: The graph.
            program: The program.
            operands: What it is applied to.
            n_shaped: How many of its results need values of their own shapes, from the first on;
                others may be of any shape with as many elements. By default all do.
        """
        raise NotImplementedError


def sum_over(axes: tuple[int, ...]) -> Reduction:
    """A sum over some axes."""
    return Reduction(axes, "0", "radd({0}, {1})", accurate=True)


def is_uniform(array: np.ndarray) -> bool:
    """Whether it has elements, and all have the same bits."""
    if not array.size:
        return False
    # Of what is repeated once is enough.
    array = array[tuple(slice(None) if step else slice(1) for step in array.strides)]
    # Most arrays differ between these three already.
    few = array.reshape(-1)[[0, array.size // 2, -1]]
    return _is_one(few) and _is_one(array)


def _is_one(array: np.ndarray) -> bool:
    rows = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
    return bool((rows == rows[0]).all())
