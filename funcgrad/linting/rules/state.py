"""State of compiled functions: values that change behind their back, and programs for each call."""

from __future__ import annotations

from typing import Any

from funcgrad.api.compilation import Jitted
from funcgrad.base.transformed import MadeOf
from funcgrad.linting.assignments import later
from funcgrad.linting.bodies import walk
from funcgrad.linting.calls import retraces, retraces_so_far
from funcgrad.linting.rule import Findings, rule
from funcgrad.linting.subject import Subject
from funcgrad.observers.source import SourceLocation, is_users


@rule("changing-state", "note")
def changing(subject: Subject) -> Findings:
    """A variable, attribute or entry that the function reads and that is assigned later."""
    lines = [e.source for e in walk(subject.record.equations) if e.source is not None]
    codes = dict.fromkeys([subject.code, *(line.code for line in lines)])
    for code in codes:
        if code is None or not is_users(code):
            continue
        for change in later(code):
            where = f"line {change.assigned}" + (
                f", in `{change.function}`" if change.function else ""
            )
            yield (
                SourceLocation(code, change.line),
                f"`{change.what}` is read here and assigned at {where}: a compiled function keeps "
                "the value of its first call, unless it can tell that it has changed",
                "an argument of the function in its place",
            )


@rule("retraced", "note")
def retraced(subject: Subject) -> Findings:
    """A compiled function that was traced again and again, with the cause."""
    layer: Any = subject.f
    while isinstance(layer, MadeOf):
        if isinstance(layer, Jitted):
            yield from retraces_so_far(layer)
        layer = layer.original
    yield from retraces(subject.calls)
