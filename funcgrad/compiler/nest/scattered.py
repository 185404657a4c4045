"""Results that go where the indices of a scatter say: a row or column at a place that is computed.

`write_through` gives them the memory of the array that the scatter changes. A kernel looks up the
place once, and then writes there as to any other part of an array. Where there is no place, what
stands at one of the ends is written again.
"""

from __future__ import annotations

from funcgrad.compiler.loops.language import (
    Expression,
    Variable,
    all_of,
    applied,
    call,
    sum_of,
)
from funcgrad.compiler.nest.gathers import Gathers
from funcgrad.compiler.nest.iteration import Access
from funcgrad.compiler.nest.layout import View
from funcgrad.compiler.nest.nodes import Node, Put
from funcgrad.compiler.nest.places import resolve
from funcgrad.compiler.nest.plan import Plan


class Scattered:
    """The results of a kernel that scatters place.

    They are stored after all that is loaded at the same index, in the order of their scatters.
    """

    def __init__(self, plan: Plan, gathers: Gathers) -> None:
        self.plan = plan
        self.gathers = gathers
        self.source = plan.source
        self.tests: dict[Node, Expression] = {}
        self.waiting: dict[Node, Expression] = {}

    def declare(self) -> None:
        """Move the pointers of results to their places."""
        for node, indices in self.plan.scattered.items():
            self._move(node, node.out.scatter, indices)

    def _move(self, node: Node, scatter: Put, indices: list[Access]) -> None:
        source, out = self.source, self.plan.outs[node]
        moves, tests = [], []
        rows = zip(indices, scatter.operands[2:], scatter.lengths, scatter.steps, strict=True)
        for k, (index, x, length, step) in enumerate(rows):
            name = f"{out.name}k{k}"
            n = source.assign(f"{name}n", source.word(length))
            test = resolve(source, scatter.mode, name, self.plan.space.load(index), index.dtype, n)
            if test is not None and not self.gathers.refuses(x, length):
                tests.append(test)
                source.assign(
                    f"{name}p", call("minimum", call("maximum", Variable(name), 0), n - 1)
                )
                name = f"{name}p"
            moves.append(Variable(name) * source.word(step * out.dtype.itemsize))
        if tests:
            self.tests[node] = source.assign(f"{out.name}t", all_of(tests))
        start = source.assign(f"{out.name}r", call("offset", out.pointer, sum_of(moves)))
        out.pointers[0] = start

    def store(self) -> None:
        """Write the results at one index, or at neighbours."""
        for node in sorted(self.waiting, key=lambda node: _rank(node.out.scatter)):
            out, space = self.plan.outs[node], self.plan.space
            step, value = node.out.scatter.step, self.waiting[node]
            is_replaced = node.out.scatter.is_replaced
            if not is_replaced or node in self.tests:
                old = self.source.assign(f"{out.name}o{space.suffix}", space.load(out))
                value = value if is_replaced else applied(step, [old, value])
                if node in self.tests:
                    value = call("select", self.tests[node], value, old)
            space.store(out, value)
        self.waiting = {}


def _rank(scatter: Put) -> int:
    """How many scatters come one after the other before this one."""
    x = scatter.operands[0]
    maker = x.value.maker if isinstance(x, View) else None
    return 1 + _rank(maker) if isinstance(maker, Put) else 0
