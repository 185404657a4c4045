"""Groups that run again, so that intermediate results keep to a limit of bytes.

``fit : groups -> groups``. Where the most memory is in use, values that wait there for a later
reader give their memory up, one after the other: the group that computes a value runs once more
before that reader, after those that made what it reads and is gone by then. Kernels are the same.
Candidates are ordered by the bytes that they free for each cycle of work that is done twice.

Left out: loops, branches and calls of libraries, which run once.

Source:
    Chen et al., Training deep nets with sublinear memory cost, arXiv:1604.06174; the greedy choice
    as in Kirisame et al., Dynamic tensor rematerialization, arXiv:2006.09616.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from funcgrad.base.records import dataclass
from funcgrad.compiler.machine import SEVERAL
from funcgrad.compiler.nest.cost import cycles_of
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.layout import Value
from funcgrad.compiler.nest.nodes import (
    Graph,
    Nest,
    Routine,
    cloned,
    depth_first,
    reading,
    values_read,
    without_unread,
)


def fit(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """Let groups run again until a graph keeps to its limit or nothing helps; changes the graph."""
    if graph.limit is None or math.isinf(graph.limit.nbytes):
        return list(groups)
    search = _Search(graph, groups)
    order = search.run()
    if len(order) == len(groups):
        return list(groups)
    found = _repeated(groups, order, search.outputs)
    # A run computes only the values that are read from it, not those read from other runs.
    nodes = [node for group in found for node in group.nodes]
    twice = (groups[i] for i, count in Counter(order).items() if count > 1)
    kinds = {type(node) for group in twice for node in group.nodes}
    kept = {*without_unread(nodes, search.outputs, tuple(kinds))}
    for group in found:
        group.nodes = [node for node in group.nodes if node in kept]
    found = [group for group in found if group.nodes]
    graph.nodes = [node for group in found for node in group.nodes]
    return found


Version = tuple[Value, int]
"""A value, and the position of the run that makes it."""


@dataclass(frozen=True)
class _Lifetimes:
    """When values live, if groups run in some order.

    Attributes:
        used: For every value that a run makes, the positions of others that read it, ascending.
        live: Bytes in use during each run.
    """

    used: dict[Version, list[int]]
    live: list[int]

    @property
    def measure(self) -> tuple[int, int]:
        """Objective to minimise: peak memory in bytes, and how often the peak is reached."""
        most = max(self.live)
        return most, self.live.count(most)


class _Search:
    """Search for the groups that are recomputed, and for their positions.

    An order is a list of the numbers of groups, some of which occur several times. A run reads what
    the last run before it has made.
    """

    def __init__(self, graph: Graph, groups: Sequence[Group]) -> None:
        assert graph.limit is not None
        self.limit = graph.limit
        self.groups = groups
        self.outputs = set(graph.outputs)
        self.maker = {v: i for i, g in enumerate(groups) for node in g.nodes for v in node.outs}
        self.reads = [
            [
                value
                for value in dict.fromkeys(v for node in group.nodes for v in values_read(node))
                if self.maker.get(value, i) != i
            ]
            for i, group in enumerate(groups)
        ]
        self.made: list[list[Value]] = [[] for _ in groups]
        """Values that each group stores for others."""
        read = {value for values in self.reads for value in values}
        for value, i in self.maker.items():
            if value not in self.outputs and (value in read or not groups[i].is_fusable):
                self.made[i].append(value)
        self.can_repeat = [
            not any(isinstance(n, Nest | Routine) or n.is_effectful or len(n.outs) != 1 for n in g)
            for g in (group.nodes for group in groups)
        ]
        self.cycles = [cycles_of(group.nodes) for group in groups]

    def run(self) -> list[int]:
        """The order in which groups run."""
        order = list(range(len(self.groups)))
        now = self.lifetimes(order)
        while now.measure[0] > self.limit.nbytes:
            for candidate in sorted(self._candidates(order, now), reverse=True)[:SEVERAL]:
                _, before, again = candidate
                changed = [*order[:before], *again, *order[before:]]
                then = self.lifetimes(changed)
                if then.measure < now.measure:
                    order, now = changed, then
                    break
            else:
                break
        return order

    def lifetimes(self, order: Sequence[int]) -> _Lifetimes:
        last: dict[int, int] = {}
        used: dict[Version, list[int]] = {}
        for position, i in enumerate(order):
            for value in self.reads[i]:
                if value not in self.outputs:
                    used[value, last[self.maker[value]]].append(position)
            last[i] = position
            used.update(((value, position), []) for value in self.made[i])
        changes = [0] * (len(order) + 1)
        for (value, position), readers in used.items():
            changes[position] += value.nbytes
            changes[readers[-1] + 1 if readers else position + 1] -= value.nbytes
        live, total = [], 0
        for i, change in zip(order, changes, strict=False):
            total += change
            live.append(total + self.limit.scratch[i])
        return _Lifetimes(used, live)

    def _candidates(
        self, order: Sequence[int], now: _Lifetimes
    ) -> Iterator[tuple[float, int, list[int]]]:
        """Bytes won for each cycle, the position of a reader, and what to run again before it."""
        peak = now.live.index(max(now.live))
        for (value, position), readers in now.used.items():
            k = bisect.bisect_left(readers, peak)
            if position >= peak or k == len(readers) or readers[k] == peak:
                continue
            before = readers[k]
            again = self._again(value, before, order, now)
            if again is not None:
                yield value.nbytes / sum(self.cycles[i] for i in again), before, again

    def _again(
        self, wanted: Value, before: int, order: Sequence[int], now: _Lifetimes
    ) -> list[int] | None:
        """The groups that compute a value from what is there before a position.

        What is small beside it is kept until then.
        """
        last = {i: position for position, i in enumerate(order[:before])}

        def needs(i: int) -> Iterator[int]:
            for value in self.reads[i]:
                maker = self.maker.get(value)
                if maker is None or value in self.outputs or SEVERAL * value.nbytes < wanted.nbytes:
                    continue
                readers = now.used[value, last[maker]]
                if not readers or readers[-1] < before:
                    yield maker

        found = depth_first([self.maker[wanted]], needs)
        return sorted(found) if all(self.can_repeat[i] for i in found) else None


def _repeated(groups: Sequence[Group], order: Sequence[int], outputs: set[Value]) -> list[Group]:
    """Groups in an order in which some occur again."""
    runs: list[Group] = []
    now: dict[Value, Value] = {}  # for values that were computed again what readers read instead
    for i in order:
        own = groups[i]
        if own not in runs:
            for node in own.nodes:
                node.operands = tuple(reading(x, now) for x in node.operands)
            runs.append(own)
            continue
        instead = {value: other for value, other in now.items() if value.maker not in own.nodes}
        nodes = [cloned(node, instead) for node in own.nodes]
        now |= {n.out: instead[n.out] for n in own.nodes if n.out not in outputs}
        group = Group(len(groups) + len(runs), nodes[0])
        group.nodes, group.space, group.nest = nodes, own.space, own.nest
        group.precision = own.precision
        runs.append(group)
    return runs
