"""Waste of time or memory: large constants, loops that were unrolled, dead lines."""

from __future__ import annotations

from collections import Counter

from funcgrad.core.program import Equation
from funcgrad.linting.bodies import walk
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
    """An array of a megabyte or more that the function closes over."""
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
    """A loop of Python whose rounds are traced one after the other, and were not found again."""
    lines = Counter((e.source, e.primitive) for e in walk(subject.record.equations))
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
    """A line whose results are computed and never used."""
    used: set[tuple[str, int]] = set()
    unused: dict[SourceLocation, Equation] = {}
    for equation in walk(subject.record.equations):
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
