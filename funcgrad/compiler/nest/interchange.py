"""Loops whose steps treat many lanes alike: what belongs to an element of all lanes lies together.

`vmap` of a loop over few numbers is a loop over arrays whose first axis is that of the lanes: in
memory, the numbers of a lane are neighbours. But no lane needs another one, and vectors are of the
same number of many lanes. So the arrays of such a loop get their lanes as the last axis: of what it
carries and of what does not change copies are made before it, and of results after it. `join` lets
blocks of lanes go through all steps then.

A loop that folds over its lanes, or whose length its values decide, is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from funcgrad.compiler.machine import LOOP_OPERATIONS, SEVERAL
from funcgrad.compiler.nest.layout import Operand, S, Uniform, Value, View, whole
from funcgrad.compiler.nest.nodes import (
    Carry,
    Copies,
    Fold,
    Graph,
    Link,
    Loop,
    Node,
    Point,
    Product,
    Scan,
    is_copy,
    rewrite,
    without_unread,
)
from funcgrad.compiler.nest.small_products import sums_of_products


def interchange(graph: Graph) -> None:
    """Put the lanes of loops last."""
    copies: dict[Any, Value] = {}
    n_before = len(graph.nodes)
    rewrite(graph, lambda node: _interchanged(node, copies) if isinstance(node, Loop) else None)
    if len(graph.nodes) != n_before:
        graph.nodes = without_unread(graph.nodes, graph.outputs, (Point,))


def _interchanged(node: Loop, copies: dict[Any, Value]) -> list[Node] | None:
    """A loop over arrays with their lanes last, and copies before and after it, if it has lanes."""
    shapes = [carry.now.shape for carry in node.carries]
    size, count = max(((math.prod(shape), *shape[:1]) for shape in shapes if shape), default=(0, 0))
    if node.length is None or size == count or count <= SEVERAL:
        return None  # lanes of single numbers are vectors as they are
    if size > SEVERAL * count:
        return None  # so are those of many, whose copies would be written number by number
    try:
        found = _Interchanger(node, count, copies)
    except _NotAlikeError:
        return None
    copies.update(found.copies)
    return found.nodes


class _NotAlikeError(Exception):
    """One lane needs another one, or something that is not known here."""


class _Interchanger:
    """Writes the loop.

    Attributes:
        own: For every value of all lanes, the one with its lanes last.
        copies: Arrays from around loops with their lanes last.
        nodes: What takes the place of the loop.
    """

    def __init__(self, node: Loop, count: int, copies: dict[Any, Value]) -> None:
        self.node = node
        self.copies = {**copies}
        self.count = count
        self.own: dict[Value, Value] = {}
        self.before: list[Node] = []
        self.after: list[Node] = []
        self.links = {link.inner: link for link in node.links}
        self.carried = {carry.now for carry in node.carries}
        self.body: list[Node] = []
        for carry in node.carries:
            if self._is_wide(carry.now):
                self._lanes_first(carry.now)
        for inner in node.bodies[-1].nodes:
            self._place(inner)
        if any((carry.now in self.own) != (carry.next in self.own) for carry in node.carries):
            raise _NotAlikeError
        if sum(math.prod(x.space) for x in self.body) > count * LOOP_OPERATIONS:
            raise _NotAlikeError
        carries = tuple(self._carry(carry) for carry in node.carries)
        self.nodes = [*self.before, self._loop(carries), *self.after]

    def _is_wide(self, value: Value) -> bool:
        return value.shape[:1] == (self.count,)

    def _lanes_first(self, value: Value) -> Value:
        """The value that takes the place of one of all lanes."""
        return self.own.setdefault(value, Value((*value.shape[1:], self.count), value.dtype))

    # The body.

    def _place(self, node: Node) -> None:
        """Replace a node, if it is one of lanes."""
        if not isinstance(node, Point | Fold | Scan | Copies | Product):
            raise _NotAlikeError
        is_own = any(isinstance(x, View) and x.value in self.own for x in node.operands)
        if not is_own and not any(map(self._is_wide, node.outs)):
            self.body.append(node)
            return
        if not self._is_wide(node.out):
            raise _NotAlikeError
        self.body += [made.like(node) for made in self._of_lanes(node)]

    def _of_lanes(self, node: Node) -> Iterator[Node]:
        out = self._lanes_first(node.out)
        if isinstance(node, Product):
            yield from self._product(node, out)
            return
        operands = tuple(map(self._operand, node.operands))
        match node:
            case Point():
                yield Point(operands, (out,), node.expr)
            case Fold() if 0 not in node.form.axes:
                axes = tuple(axis - 1 for axis in node.form.axes)
                yield Fold(operands, (out,), replace(node.form, axes=axes))
            case Scan() if node.form.axis:
                yield Scan(operands, (out,), replace(node.form, axis=node.form.axis - 1))
            case Copies():
                places = tuple(self._within(node.out, place) for place in node.places)
                yield Copies(operands, (out,), places)
            case _:
                raise _NotAlikeError

    def _product(self, node: Product, out: Value) -> Iterator[Node]:
        """A product for each lane: of a stack of as many, or with a row of the first matrix."""
        if node.tables is not None or node.is_of_pairs:
            raise _NotAlikeError
        a, b = node.operands
        if a.shape[:2] == (1, self.count) != (1, 1):
            a = a.permuted((1, 0, 2))
            b = b.restrided((self.count, *b.shape[1:]), (0, *b.strides[1:]), b.offset)
        a, b = map(self._operand, (a, b))
        yield from sums_of_products(a, b, out, 0)

    def _operand(self, x: Operand) -> Operand:
        """An operand with its lanes last."""
        if x.shape[:1] != (self.count,):
            raise _NotAlikeError
        if isinstance(x, Uniform):
            return _lanes_first(x)
        link = self.links.get(x.value)
        if x.value.maker is None and x.value not in self.carried:
            is_apart = x.strides[0] > 1 and self._is_wide(x.value)
            if link is None or link.step or not is_apart:
                return _lanes_first(x)
            if link.inner not in self.own:  # it does not change: a copy is read
                copy, inner = self._copy_before(link), self._lanes_first(link.inner)
                self.links[inner] = Link(inner, copy)
        if x.value in self.own:
            return self._within(x.value, x)
        if x.strides[0]:
            raise _NotAlikeError  # the same for all lanes, but not read alike
        return _lanes_first(x)

    def _within(self, value: Value, x: View) -> View:
        """Rewrite a view of a value with lanes in front as a view of its replacement."""
        size = math.prod(value.shape[1:])  # elements of a lane
        steps = [(n - 1) * s for n, s in zip(x.shape[1:], x.strides[1:], strict=True)]
        first, last = (x.offset + sum(f(step, 0) for step in steps) for f in (min, max))
        if x.strides[0] != size or not 0 <= first <= last < max(size, 1):
            raise _NotAlikeError
        strides = tuple(s * self.count for s in x.strides[1:])
        shape = (*x.shape[1:], self.count)
        return View(self.own[value], shape, (*strides, 1), x.offset * self.count)

    # The loop.

    def _copy_before(self, link: Link) -> Value:
        """The outer array of an inner one, with its lanes last."""
        inner = link.inner
        key = link.outer, inner.shape, link.offset
        if key not in self.copies:
            given = View(link.outer, inner.shape, inner.strides, link.offset)
            self.copies[key] = copy = Value((*inner.shape[1:], self.count), inner.dtype)
            self.before.append(Point((_lanes_first(given),), (copy,), "{0}").like(self.node))
        return self.copies[key]

    def _back(self, x: Operand, out: Value) -> Node:
        """The copy of a view with its lanes first: its rows are parts that lie in turn."""
        rows = [x]
        while len(rows[0].shape) > 1:
            rows = [row.element(i) for row in rows for i in range(row.shape[0])]
        places = [View(out, (self.count,), (len(rows),), k) for k in range(len(rows))]
        return Copies(tuple(rows), (out,), tuple(places)).like(self.node)

    def _carry(self, carry: Carry) -> Carry:
        if carry.now not in self.own:
            return carry
        now, following = self.own[carry.now], self.own[carry.next]
        initial = Link(now, self._copy_before(carry.initial))
        final = Value(now.shape, now.dtype)
        if carry.final is not None:
            self.after.append(self._back(whole(final), carry.final))
        return Carry(now, following, initial, final)

    def _loop(self, carries: tuple[Carry, ...]) -> Loop:
        outputs = []
        for value in self.node.bodies[-1].outputs:
            if value not in self.own:
                outputs.append(value)
                continue
            if value in self.links:
                maker = self.own[value].maker
                seen = maker.operands[0] if is_copy(maker) else whole(self.own[value])
                self.body.append(self._back(seen, value))
                outputs.append(value)
            if any(carry.next is self.own[value] for carry in carries):
                outputs.append(self.own[value])
        nodes = without_unread(self.body, outputs, (Point,))
        body = replace(self.node.bodies[-1], nodes=nodes, outputs=outputs)
        read = {x.value for node in nodes for x in node.operands if isinstance(x, View)}
        links = tuple(k for k in self.links.values() if k.inner in read or k.inner in outputs)
        finals = [carry.final for carry in carries if carry.final is not None]
        stacks = [k.outer for k in links if k.inner.maker is not None]
        outs = tuple(dict.fromkeys([*finals, *stacks]))
        operands = tuple(dict.fromkeys(Loop.reads(links, carries, outs)))
        loop = Loop(operands, outs, (body,), links, carries, self.node.length)
        return loop.like(self.node)


def _lanes_first(x: S) -> S:
    """A view of all lanes with these last."""
    return x.permuted((*range(1, len(x.shape)), 0))
