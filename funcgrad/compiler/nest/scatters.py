"""Scatters of kernels: elements that are taken in at places that are computed (`nodes.Put`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext

from funcgrad.compiler.loops.language import Expression, Variable, all_of, applied, call
from funcgrad.compiler.nest.kernel import KernelBuilder, Length
from funcgrad.compiler.nest.layout import Operand
from funcgrad.compiler.nest.nodes import Put
from funcgrad.compiler.nest.places import resolve
from funcgrad.compiler.nest.plan import Plan

Places = Mapping[tuple[Operand, int], Variable]
"""Variables of places, by the index that means each and the length of its axis."""

NOTHING: Places = {}


class Scatter:
    """Words and statements of one scatter.

    Args:
        source: The kernel.
        node: The scatter.
        mark: What its names have in common, where a kernel has several.
    """

    def __init__(self, source: KernelBuilder, node: Put, mark: str = "") -> None:
        self.source, self.node, self.mark = source, node, mark
        size = node.out.dtype.itemsize
        self.steps: list[Expression | int] = []
        for k, (length, step) in enumerate(zip(node.lengths, node.steps, strict=True)):
            source.assign(f"n{mark}{k}", source.word(Length(length)))
            nbytes = size if step == 1 else source.word(step * size)
            self.steps.append(source.assign(f"s{mark}{k}", nbytes))
        self.sites = [None if site is None else source.word(site) for site in node.sites]

    @contextmanager
    def placed(
        self,
        start: Expression,
        indices: Iterable[Expression],
        known: Places = NOTHING,
    ) -> Iterator[Variable]:
        """Statements that run where some indices mean a place.

        Args:
            start: The pointer to the element that is meant if all indices are 0.
            indices: The indices.
            known: Places that lookups have found.
        Yields: The pointer to the element.
        """
        source, node, mark, tests, place = self.source, self.node, self.mark, [], start
        operands = node.operands[2:]
        for k, (index, operand) in enumerate(zip(indices, operands, strict=True)):
            site, name = self.sites[k] if self.sites else None, f"k{mark}{k}"
            length, found = Variable(f"n{mark}{k}"), known.get((operand, node.lengths[k]))
            if found is not None:
                self.source.assign(name, found)
                continue
            test = resolve(source, node.mode, name, index, operand.dtype, length, site)
            tests += [] if test is None else [test]
        with source.when(all_of(tests)) if tests else nullcontext():
            for k, step in enumerate(self.steps):
                place = call("offset", place, Variable(f"k{mark}{k}") * step)
            yield source.assign(f"row{mark}", place)


class Scatters:
    """The scatters among the nodes of a kernel, each of single elements."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.found: dict[Put, Scatter] = {}

    def declare(self) -> None:
        """The lengths of axes along which places are computed, and bytes from place to place."""
        for i, node in enumerate(self.plan.nodes):
            if isinstance(node, Put):
                self.found[node] = Scatter(self.plan.source, node, f"{i}_")

    def take_in(self, node: Put, value_of: Callable[[Operand], Expression], known: Places) -> None:
        """Take the current element in, where lookups know some places."""
        access = self.plan.outs[node]
        _, updates, *indices = node.operands
        value, places = value_of(updates), [*map(value_of, indices)]
        start = self.plan.space.address(access)
        with self.found[node].placed(start, places, known) as row:
            result = applied(node.step, [call("load", row, 0, access.scope), value])
            self.plan.source.store(row, 0, result, access.scope)
