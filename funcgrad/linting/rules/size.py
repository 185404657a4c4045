"""Waste of time or memory: large constants, loops that were unrolled, dead lines."""

from __future__ import annotations

from collections import Counter

from funcgrad.core.program import Equation
from funcgrad.linting.bodies import all_equations
from funcgrad.linting.rule import Findings, rule
from funcgrad.linting.subject import Subject
from funcgrad.observers.limits import format_bytes
from funcgrad.observers.source import SourceLocation

LARGE = 1 << 20
"""Bytes of an array that a function should be given, not close over."""
ROUNDS = 64
"""Rounds of a loop of Python after which it should be one of the library's."""


@rule("large-constant", "note")
def large(subject: Subject) -> Findings:
    """An array of a megabyte or more that the function closes over.

    Why:
        It takes memory in each program, and a change of the array after the first call is
        not seen.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> table = np.ones(1 << 18)
        >>> def f(x):
        ...     return np.sum(table * x)
        >>> [found.rule for found in fg.lint(f, 1.0)]
        ['large-constant']

    Not found:
        >>> def f(x, table):
        ...     return np.sum(table * x)
        >>> [found.rule for found in fg.lint(f, 1.0, table)]
        []
    """
    for var, value in subject.record.constants.items():
        if value.nbytes >= LARGE:
            reader = next((e.source for e in subject.record.equations if var in e.inputs), None)
            yield (
                reader,
                f"an array {var.aval} of {format_bytes(value.nbytes)} is a constant of the "
                "function: copied when that is traced, so that later changes are not seen",
                "an argument of the function in its place",
            )


@rule("unrolled-loop", "note")
def unrolled(subject: Subject) -> Findings:
    """A loop of Python whose rounds are traced one after the other, and were not found again.

    It needs 64 rounds or more.

    Why:
        Tracing and compiling take as long as there are rounds, where a loop of the library
        is compiled once.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def f(x):
        ...     for _ in range(100):
        ...         x = np.sin(x)
        ...     return x
        >>> [found.rule for found in fg.lint(f, 1.0)]
        ['unrolled-loop']

    Not found:
        >>> def f(x):
        ...     return fg.lax.fori_loop(0, 100, lambda i, x: np.sin(x), x)
        >>> [found.rule for found in fg.lint(f, 1.0)]
        []
    """
    lines = Counter((e.source, e.primitive) for e in all_equations(subject.record.equations))
    reported = set()
    for (line, primitive), n in lines.items():
        if n >= ROUNDS and line is not None and line not in reported:
            reported.add(line)
            yield (
                line,
                f"{primitive.name} is traced {n} times at this line",
                "lax.fori_loop, lax.scan or one operation on an array with an axis more",
            )


@rule("unused-result", "note")
def dead(subject: Subject) -> Findings:
    """A line whose results are computed and never used.

    Why:
        It is often a result that was meant to be used: a term that was left out, a value
        that was not assigned.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def loss(x):
        ...     scaled = 3.0 * x
        ...     return np.sum(x**2)
        >>> [found.rule for found in fg.lint(loss, np.ones(3))]
        ['unused-result']

    Not found:
        >>> def loss(x):
        ...     scaled = 3.0 * x
        ...     return np.sum(scaled**2)
        >>> [found.rule for found in fg.lint(loss, np.ones(3))]
        []
    """
    used: set[tuple[str, int]] = set()
    unused: dict[SourceLocation, Equation] = {}
    for equation in all_equations(subject.record.equations):
        if not equation.outputs or equation.source is None:
            continue
        if equation in subject.needed.equations:
            used.add((equation.source.file, equation.source.line))
        else:
            unused.setdefault(equation.source, equation)
    for line, equation in unused.items():
        if (line.file, line.line) not in used and equation.outputs[0].aval.size > 1:
            yield (
                line,
                f"no result depends on what this line computes, {equation.outputs[0].aval}",
                "nothing: leave the line out, or return what it computes",
            )
