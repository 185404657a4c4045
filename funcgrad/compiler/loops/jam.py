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
    """A loop of several iterations at a time.

    Fewer that are left are computed together with the last one again, which gives what it gave; or
    in a loop of their own, if iterations change what they read.

    Args:
        loop: The loop, whose step is 1.
        count: How many iterations are computed at once.
        carried: Variables that an iteration leaves to the next one.
    """
    kept = {*carried}
    own, index = _own(loop, kept), language.Variable(loop.index)
    several = {*own, *kept, loop.index}
    is_repeatable = not (kept or _changed(loop.body))

    def is_shared(statement: language.Statement) -> bool:
        return bool(statement.parts()[2]) and not several & _asked(statement)

    def jammed(body: language.Body) -> Iterator[language.Statement]:
        for is_one, statements in itertools.groupby(body, is_shared):
            if is_one:
                for statement in statements:
                    target, span, blocks = statement.parts()
                    yield statement.of_parts(target, span, [[*jammed(x)] for x in blocks])
                continue
            first = [*statements]
            others = [x for x in first if several & _names(x)]
            for k in range(count):
                names = {name: f"{name}_{k}" for name in own}
                values = {loop.index: indices[k]}
                yield from language.renamed(others if k else first, names, values)

    indices: list[language.Expression] = [index, *(index + k for k in range(1, count))]
    if is_repeatable:
        last = language.Variable(f"{loop.index}_last")
        places = [
            language.Assign(f"{loop.index}_next{k}", language.call("minimum", indices[k], last))
            for k in range(1, count)
        ]
        indices[1:] = [language.Variable(place.name) for place in places]
        return [
            language.Assign(last.name, loop.stop - 1),
            language.For(loop.index, loop.start, loop.stop, count, [*places, *jammed(loop.body)]),
        ]
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
    _, stored = _scopes(loop.body)
    differ, before = {loop.index, *carried}, 0
    while before < len(differ):
        before = len(differ)
        for statement in language.every(loop.body):
            if statement.parts()[2]:
                is_other = bool(differ & _asked(statement))
            else:
                read, written = _scopes([statement])
                is_other = bool(differ & _names(statement) or stored & (read | written))
            if is_other:
                differ |= {*language.assigned([statement], of_indices=False)}
    return differ - {loop.index, *carried}


def _asked(statement: language.Statement) -> Set[str]:
    """The variables that say whether, or how often, a statement runs those inside of it."""
    return {name for x in statement.parts()[1] for name in language.variables(x)}


def _changed(body: language.Body) -> Set[float]:
    """The scopes of memory that is read and written."""
    return set.intersection(*_scopes(body))


def _scopes(body: language.Body) -> tuple[set[float], set[float]]:
    """The scopes of memory that is read, and of what is written."""
    memory = [x for y in language.expressions(body) for x in language.accesses(y)]
    return {x for is_load, x in memory if is_load}, {x for is_load, x in memory if not is_load}


def _names(statement: language.Statement) -> Set[str]:
    return {*language.assigned([statement]), *language.uses([statement])}
