"""Unroll and jam.

``jam : loop -> loops``. Several iterations of a loop are computed at once: what they compute stands
side by side, and the loops inside run once for all of them. So a processor that waits for one
iteration, as for the sums of a recurrence, computes the others meanwhile, and what is the same for
all is computed once (Allen and Cocke, 1971).

It is for loops whose iterations need nothing of each other but what is folded from one to the
next, with inner loops of equal ranges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Set

from funcgrad.compiler.loops import language


def jam(loop: language.For, count: int, carried: Iterable[str] = ()) -> list[language.Statement]:
    """A loop of several iterations at a time, and one of what is left.

    Args:
        loop: The loop, whose step is 1.
        count: How many iterations are computed at once.
        carried: Variables that an iteration leaves to the next one.
    """
    kept = {*carried}
    own = _own(loop, kept)
    several = {*own, *kept, loop.index}

    def jammed(body: language.Body) -> Iterator[language.Statement]:
        for is_loop, statements in itertools.groupby(body, lambda x: isinstance(x, language.For)):
            if is_loop:
                for statement in statements:
                    target, span, blocks = statement.parts()
                    yield statement.of_parts(target, span, [[*jammed(x)] for x in blocks])
                continue
            first = [*statements]
            others = [x for x in first if several & _names(x)]
            for k in range(count):
                names = {name: f"{name}_{k}" for name in own}
                values = {loop.index: language.Variable(loop.index) + k} if k else None
                yield from language.renamed(others if k else first, names, values)

    whole = language.Variable(f"{loop.index}_whole")
    assigned = {*language.assigned(loop.body, of_indices=False)} - kept
    rest = language.renamed(loop.body, {name: f"{name}_rest" for name in assigned})
    return [
        language.Assign(whole.name, loop.stop - (loop.stop - loop.start) % count),
        language.For(loop.index, loop.start, whole, count, [*jammed(loop.body)]),
        language.For(loop.index, whole, loop.stop, 1, rest),
    ]


def _own(loop: language.For, carried: Set[str]) -> Set[str]:
    """The variables that differ from one iteration to the next, but for those that are carried.

    They follow from the index, or from memory that an iteration writes to.
    """
    memory = [x for y in language.expressions(loop.body) for x in language.accesses(y)]
    stored = {scope for is_load, scope in memory if not is_load}
    differ, before = {loop.index, *carried}, 0
    while before < len(differ):
        before = len(differ)
        for statement in language.every(loop.body):
            if not isinstance(statement, language.For):
                read = (x for y in language.expressions([statement]) for x in language.accesses(y))
                if differ & _names(statement) or stored & {scope for _, scope in read}:
                    differ |= {*language.assigned([statement], of_indices=False)}
    return differ - {loop.index, *carried}


def _names(statement: language.Statement) -> Set[str]:
    return {*language.assigned([statement]), *language.uses([statement])}
