"""Assembled arrays are read where their parts come from, not put together first.

``read_through : graph -> graph``. A sum of padded arrays, a slice of a concatenation, neighbours in
an array whose inner part was replaced: what computes with them reads the part that an index leads
to (`Guard`), so that neither the assembled array nor its memory exists. An array is still put
together where something else than points and folds needs it, or where its elements are read so
often that asking costs more than memory.
"""

from __future__ import annotations

import math

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.machine import QUESTIONS
from funcgrad.compiler.nest.layout import (
    Box,
    Operand,
    Shape,
    Uniform,
    Value,
    View,
    is_everything,
    reindex_of,
    seen_box,
    whole,
)
from funcgrad.compiler.nest.nodes import Copies, Fold, Graph, Guard, Node, Point, readers_of
from funcgrad.lowering import Reindex


def read_through(graph: Graph) -> None:
    """Let points and folds read the parts of assembled arrays; changes the graph."""
    if not any(isinstance(node, Copies) for node in graph.nodes):
        return
    readers = readers_of(graph.nodes)
    outputs = set(graph.outputs)
    assemblies: dict[Value, _Assembly] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Copies) and node.out not in outputs:
            assembly = _assembly(node)
            if assembly is not None and assembly.is_readable(readers[node.out]):
                assemblies[node.out] = assembly
                continue
        if isinstance(node, Point | Fold):
            node.operands = tuple(
                assemblies[x.value].read(x, nodes)
                if isinstance(x, View) and x.value in assemblies
                else x
                for x in node.operands
            )
        nodes.append(node)
    graph.nodes = nodes


@dataclass(frozen=True)
class _Part:
    """An operand, counted by the indices of the assembled array, of which it covers a box."""

    operand: Operand
    box: Box


class _Assembly:
    """An array that is put together of parts; later ones cover earlier ones."""

    def __init__(self, node: Copies, parts: list[_Part]) -> None:
        self.node = node
        self.parts = parts
        self.known: dict[tuple[Reindex, Shape], Operand] = {}

    def is_readable(self, readers: list[Node]) -> bool:
        """Whether all who read it can ask for its parts, and there are not too many questions."""
        questions: dict[tuple[Reindex, Shape], int] = {}
        for node in readers:
            if not isinstance(node, Point | Fold) or node.epoch != self.node.epoch:
                return False
            for x in node.operands:
                if not isinstance(x, View) or x.value is not self.node.out:
                    continue
                form = reindex_of(x)
                if form is None or math.prod(x.shape) > 2 * math.prod(self.node.out.shape):
                    return False
                _, asked = self._seen(form, x.shape)
                questions[form, x.shape] = len(asked)
        return sum(questions.values()) <= QUESTIONS

    def _seen(self, form: Reindex, shape: Shape) -> tuple[Operand, list[_Part]]:
        """What a view of it shows: an operand, and parts that cover boxes of that."""
        base: Operand = Uniform(np.zeros((), self.node.out.dtype)[()], shape)
        asked: list[_Part] = []
        for part in self.parts:
            box = seen_box(part.box, form, shape)
            if box is None:
                continue
            operand = part.operand.reindexed(form, shape)
            if is_everything(box, shape):
                base, asked = operand, []
            else:
                asked.append(_Part(operand, box))
        return base, asked

    def read(self, view: View, nodes: list[Node]) -> Operand:
        """The operand that takes the place of a view of it; its guards are appended to nodes."""
        form = reindex_of(view)
        assert form is not None  # it is readable
        key = form, view.shape
        if key not in self.known:
            found, asked = self._seen(form, view.shape)
            for part in asked:
                out = Value(view.shape, self.node.out.dtype)
                nodes.append(Guard((part.operand, found), (out,), part.box).like(self.node))
                found = whole(out)
            self.known[key] = found
        return self.known[key]


def _assembly(node: Copies) -> _Assembly | None:
    """What a node puts together, if its parts are boxes of its own dtype."""
    parts = []
    for operand, place in zip(node.operands, node.places, strict=True):
        box = box_of(place)
        if box is None or operand.dtype != node.out.dtype:
            return None
        parts.append(_Part(operand.around(box, node.out.shape), box))
    return _Assembly(node, parts) if node.out.nbytes else None


def box_of(place: View) -> Box | None:
    """The box of its value that a view with the same axes covers, if it is one."""
    form = reindex_of(place)
    if form is None or any(step != 1 for step in form.steps):
        return None
    if len(place.shape) != len(form.starts):
        return None
    if any(axis not in (None, k) for k, axis in enumerate(form.axes)):
        return None
    return tuple((a, a + n) for a, n in zip(form.starts, place.shape, strict=True))
