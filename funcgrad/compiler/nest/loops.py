"""Loops and branches as nodes with inner graphs.

Inner graphs see the outer one through links: values whose memory is a part of an outer value's, and
in a loop moves on with every iteration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from funcgrad import lowering as forms
from funcgrad.compiler.machine import FEW
from funcgrad.compiler.nest.bounds import beyond, bounds_of, counted, drifting, limited, step_of
from funcgrad.compiler.nest.builder import Builder
from funcgrad.compiler.nest.layout import (
    Operand,
    Uniform,
    Value,
    View,
    contiguous_strides,
    same_strides,
    whole,
)
from funcgrad.compiler.nest.nodes import Branch, Carry, Graph, Link, Loop, Point
from funcgrad.core.program import Atom, Equation, Program
from funcgrad.passes.dce import dce


class Nester:
    """Makes a loop or branch a node with inner graphs; every method returns the results."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.bases: dict[Value, Value] = {}
        self.links: list[Link] = []

    def loop(self, form: forms.Loop, body: Program, operands: list[Operand]) -> Iterable[Operand]:
        a, b = form.n_consts, form.n_consts + form.n_carry
        carried = _changing(body, a, b)
        inner = [self._constant(x) for x in operands[:a]]
        starts: list[tuple[Value, Link]] = []
        for i in range(a, b):
            inner.append(
                self._start(operands[i], starts) if carried[i - a] else self._constant(operands[i])
            )
        inner += [self._scanned(x, form) for x in operands[b:]]
        results = body.outputs
        for k, now, step in self._counters(body, inner, range(a, b)):
            now.value.bounds = counted(operands[k], step, form.length)
        k = form.n_carry
        # Equal stacks are one. A carried value that is stacked, too, is carried in its stack.
        stacks = list(dict.fromkeys(results[k:]))
        changing = [x for x, on in zip(results, carried, strict=False) if on]
        # Carried values keep their layout in memory, whatever their shape.
        returned = [*stacks, *(x for x in changing if x not in stacks)]
        graph = self._graph(body, inner, returned, len(stacks))
        made = dict(zip(stacks, graph.outputs, strict=False))
        stacked = {atom: self._stack(value, form) for atom, value in made.items()}
        rest = iter(graph.outputs[len(stacks) :])
        carries = [
            Carry(now, made[atom], link, None)
            if atom in made
            else Carry(now, next(rest), link, Value(now.shape, now.dtype))
            for (now, link), atom in zip(starts, changing, strict=True)
        ]
        self._add_loop([*stacked.values()], (graph,), carries, form.length)
        last = 0 if form.reverse else form.length - 1
        ends = iter(
            whole(stacked[atom]).element(last) if c.final is None else whole(c.final)
            for c, atom in zip(carries, changing, strict=True)
        )
        kept = [next(ends) if on else x for on, x in zip(carried, operands[a:b], strict=True)]
        return [*kept, *(whole(stacked[atom]) for atom in results[k:])]

    def _stack(self, value: Value, form: forms.Loop) -> Value:
        """The outer value that keeps a result of every iteration."""
        stacked = Value((form.length, *value.shape), value.dtype)
        size = math.prod(value.shape)
        start, step = ((form.length - 1) * size, -size) if form.reverse else (0, size)
        self.links.append(Link(value, stacked, start, step) if size else Link(value, stacked))
        return stacked

    def while_loop(
        self, form: forms.While, condition: Program, body: Program, operands: list[Operand]
    ) -> Iterable[Operand]:
        a, b = form.n_cond_consts, form.n_cond_consts + form.n_body_consts
        carried = _changing(body, b - a, len(body.inputs))
        consts = [self._constant(x) for x in operands[:b]]
        starts: list[tuple[Value, Link]] = []
        state = [
            self._start(x, starts) if on else self._constant(x)
            for x, on in zip(operands[b:], carried, strict=True)
        ]
        inner = [*consts[a:], *state]
        counters = self._counters(body, inner, range(b - a, len(inner)))
        for k, now, step in counters:
            now.value.bounds = drifting(operands[a + k], step)
        test = self._graph(condition, [*consts[:a], *state], condition.outputs)
        changing = [x for x, on in zip(body.outputs, carried, strict=True) if on]
        outside = [now.value.bounds for _, now, _ in counters]
        for k, now, step in counters:
            found = limited(operands[a + k], step, now, whole(test.outputs[0]))
            now.value.bounds = found or now.value.bounds
        graph = self._graph(body, inner, changing, 0)
        # The condition is asked once more, when they are beyond: of arrays, places are asked then.
        if not all(type(node) is Point and not node.space for node in test.nodes):
            for (k, now, step), bounds in zip(counters, outside, strict=True):
                now.value.bounds = beyond(operands[a + k], step, now.value.bounds) or bounds
        finals = [Value(now.shape, now.dtype) for now, _ in starts]
        carries = [
            Carry(now, result, link, final)
            for (now, link), result, final in zip(starts, graph.outputs, finals, strict=True)
        ]
        self._add_loop([], (test, graph), carries, None, form.has_flags)
        rest = iter(finals)
        return [whole(next(rest)) if on else x for on, x in zip(carried, operands[b:], strict=True)]

    def branch(self, programs: Sequence[Program], operands: list[Operand]) -> Iterable[Operand]:
        index, *rest = operands
        inner = [self._constant(x) for x in rest]
        graphs = [self._graph(program, inner, program.outputs) for program in programs]
        outs = [Value(v.shape, v.dtype) for v in graphs[0].outputs]
        for graph in graphs:
            self.links += [Link(value, out) for value, out in zip(graph.outputs, outs, strict=True)]
        operands = [index, *Loop.reads(self.links, (), outs)]
        self.builder.add(Branch(tuple(operands), tuple(outs), tuple(graphs), tuple(self.links)))
        return [whole(out) for out in outs]

    # Operands of the inner graphs.

    def _constant(self, operand: Operand) -> Operand:
        """The same operand, read from inside."""
        if isinstance(operand, Uniform):
            return operand
        if operand.value not in self.bases:
            inner = Value(operand.value.shape, operand.value.dtype)
            inner.array, inner.bounds = operand.value.array, bounds_of(whole(operand.value))
            self.bases[operand.value] = inner
            self.links.append(Link(inner, operand.value))
        return operand.of(self.bases[operand.value])

    def _scanned(self, operand: Operand, form: forms.Loop) -> Operand:
        """An element along the first axis, another one in each iteration."""
        if isinstance(operand, Uniform):
            return operand.element(0)
        first = operand.element(form.length - 1 if form.reverse else 0)
        inner = Value(first.shape, first.dtype)
        inner.bounds = bounds_of(operand)
        step = -operand.strides[0] if form.reverse else operand.strides[0]
        offset = first.offset if math.prod(operand.shape) else 0
        self.links.append(Link(inner, operand.value, offset, step))
        return View(inner, first.shape, first.strides)

    def _start(self, operand: Operand, starts: list[tuple[Value, Link]]) -> Operand:
        """A carried value; it starts in the memory of its initial value, which is only read."""
        if isinstance(operand, Uniform) or not same_strides(
            operand.shape, operand.strides, contiguous_strides(operand.shape)
        ):
            operand = whole(self.builder.copy(operand))
        now = Value(operand.shape, operand.dtype)
        starts.append((now, Link(now, operand.value, operand.offset)))
        return whole(now)

    def _counters(
        self, body: Program, inner: Sequence[Operand], carried: range
    ) -> list[tuple[int, View, int]]:
        """Carried integers to which every iteration adds the same, and that number."""
        found = []
        makers: dict[Atom, int] = {x: i for i, e in enumerate(body.equations) for x in e.outputs}
        for k, output in zip(carried, body.outputs, strict=False):
            now = inner[k]
            if isinstance(now, Uniform) or now.shape or now.dtype.kind not in "iu":
                continue
            if output is body.inputs[k]:
                continue
            needed = _needed(body, makers, output)
            if needed is None:
                continue
            part = Program(body.inputs, needed, [output], body.name, body.constants)
            graph = Graph(constants=[])
            self.builder.lower_into(graph, part, inner)
            step = step_of(now, whole(graph.outputs[0]))
            if step:
                found.append((k, now, step))
        return found

    def _graph(
        self,
        program: Program,
        inner: Sequence[Operand],
        outputs: Sequence[Atom],
        n_shaped: int | None = None,
    ) -> Graph:
        """An inner graph; its constants are the outer one's."""
        part = Program(program.inputs, program.equations, outputs, program.name, program.constants)
        graph = Graph(constants=self.builder.graph.constants)
        self.builder.lower_into(graph, dce(part), inner, n_shaped)
        return graph

    # Results.

    def _add_loop(
        self,
        stacks: list[Value],
        graphs: tuple[Graph, ...],
        carries: list[Carry],
        length: int | None,
        has_flags: bool = False,
    ) -> None:
        outs = [*(c.final for c in carries if c.final is not None), *stacks]
        links, operands = tuple(self.links), Loop.reads(self.links, carries, outs)
        made = Loop(operands, tuple(outs), graphs, links, tuple(carries), length, has_flags)
        self.builder.add(made)


def _needed(body: Program, makers: Mapping[Atom, int], output: Atom) -> Sequence[Equation] | None:
    """The equations of which a result is made, if they are few; `makers` are places of such."""
    found: set[int] = set()
    waiting = [output]
    while waiting:
        place = makers.get(waiting.pop())
        if place is not None and place not in found:
            found.add(place)
            if len(found) > FEW:
                return None
            waiting += body.equations[place].inputs
    return [body.equations[place] for place in sorted(found)]


def _changing(body: Program, start: int, stop: int) -> list[bool]:
    """Whether carried inputs may come out different, for each."""
    inputs = body.inputs[start:stop]
    return [body.outputs[i] is not var for i, var in enumerate(inputs)]
