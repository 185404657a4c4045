"""Random keys that are used twice."""

from __future__ import annotations

from types import CodeType

import numpy as np

from funcgrad.base.digests import digest
from funcgrad.core.facets import Facet
from funcgrad.core.program import Equation
from funcgrad.linting.bodies import form_of
from funcgrad.linting.rule import Findings, Place, Said, rule
from funcgrad.linting.subject import Step, Subject, sources_within
from funcgrad.lowering import Loop

draws = Facet("draws", False)
"""Whether an operation turns a key and counters into random bits, always the same ones."""


@rule("reused-key", "error", watches="evaluations")
class Reused:
    """Random numbers that are drawn twice from one key: they are the same, or correlated.

    Why:
        Noise that repeats is no noise: what should be independent is equal or correlated,
        and means and errors come out wrong.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def noise(key):
        ...     first = fg.random.normal(key, (3,))
        ...     return first * fg.random.uniform(key, (3,))
        >>> [found.rule for found in fg.lint(noise, fg.random.key(0))]
        ['reused-key']

    Not found:
        >>> def noise(key):
        ...     one, other = fg.random.split(key)
        ...     return fg.random.normal(one, (3,)) * fg.random.uniform(other, (3,))
        >>> [found.rule for found in fg.lint(noise, fg.random.key(0))]
        []
    """

    def __init__(self, subject: Subject) -> None:
        self.seen: dict[str, Place] = {}

    def __call__(self, step: Step) -> Said | None:
        if not draws(step.primitive):
            return None
        if step.loop is not None:
            return step.location, *_same_in(step.loop)
        *key, high, low = step.operands
        first = (np.ravel(high)[:1], np.ravel(low)[:1])
        name = digest(b"".join(np.asarray(x).tobytes() for x in (*key, *first)))
        if name not in self.seen:
            self.seen[name] = step.location
            return None
        before = self.seen[name]
        same = before is step.location
        where = "in an earlier round of this line" if same else f"at {before}"
        return (
            step.location,
            f"these random numbers come from a key that was used before, {where}: they are the "
            "same bits",
            "key, subkey = random.split(key) before each use, and never use a key after it is split"
            + ("; in a loop, split it in the loop or scan over split(key, n)" if same else ""),
        )


@rule("constant-key", "error")
def constant(subject: Subject) -> Findings:
    """Random numbers in a loop that do not depend on the round, so that each gets the same.

    Why:
        A random walk whose steps are all equal is a straight line, and nothing tells so.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def walk(key):
        ...     step = lambda i, x: x + fg.random.normal(key)
        ...     return fg.lax.fori_loop(0, 4, step, 0.0)
        >>> [found.rule for found in fg.lint(walk, fg.random.key(0), only=["constant-key"])]
        ['constant-key']

    Not found:
        >>> def walk(key):
        ...     step = lambda i, x: x + fg.random.normal(fg.random.fold_in(key, i))
        ...     return fg.lax.fori_loop(0, 4, step, 0.0)
        >>> [found.rule for found in fg.lint(walk, fg.random.key(0), only=["constant-key"])]
        []
    """
    inner: dict[CodeType, Equation] = {}
    for equation in subject.record.equations:
        if isinstance(form_of(equation), Loop):
            for source in sources_within(equation):
                inner.setdefault(source.code, equation)
    for equation in subject.record.equations:
        place = equation.source
        if draws(equation.primitive) and place is not None and place.code in inner:
            loop = inner[place.code]
            if loop is not equation:
                yield place, *_same_in(loop.primitive.name)


def _same_in(loop: str) -> tuple[str, str]:
    return (
        f"these random numbers are the same in every round of {loop}",
        "random.fold_in(key, i) with the counter of the loop, or scan over split(key, n)",
    )
