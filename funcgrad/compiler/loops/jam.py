"""Unroll and jam.

``jam : loop -> loops``. Several iterations of a loop are computed at once: what they compute stands
side by side, and the loops inside run once for all of them. So a processor that waits for one
iteration, as for the sums of a recurrence, computes the others meanwhile (Allen and Cocke, 1971).

It is for loops whose iterations need nothing of each other, with inner loops of equal ranges.
"""

from __future__ import annotations

from collections.abc import Iterator

from funcgrad.compiler.loops import language


def jam(loop: language.For, count: int) -> list[language.Statement]:
    """A loop of several iterations at a time, and one of what is left.

    Args:
        loop: The loop, whose step is 1.
        count: How many iterations are computed at once.
    """
    own = {*language.assigned(loop.body, of_indices=False)}

    def jammed(body: language.Body) -> Iterator[language.Statement]:
        for statement in body:
            if isinstance(statement, language.For):
                target, span, blocks = statement.parts()
                yield statement.of_parts(target, span, [[*jammed(block)] for block in blocks])
            else:
                for k in range(count):
                    names = {name: f"{name}_{k}" for name in own}
                    values = {loop.index: language.Variable(loop.index) + k} if k else None
                    yield from language.renamed([statement], names, values)

    whole = language.Variable(f"{loop.index}_whole")
    return [
        language.Assign(whole.name, loop.stop - (loop.stop - loop.start) % count),
        language.For(loop.index, loop.start, whole, count, [*jammed(loop.body)]),
        language.For(loop.index, whole, loop.stop, 1, loop.body),
    ]
