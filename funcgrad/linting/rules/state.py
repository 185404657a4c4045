"""State of compiled functions: values that change behind their back, and programs for each call."""

from __future__ import annotations

from typing import Any

from funcgrad.api.compilation import Jitted
from funcgrad.base.transformed import MadeOf
from funcgrad.linting.assignments import later
from funcgrad.linting.bodies import all_equations
from funcgrad.linting.calls import retraces, retraces_so_far
from funcgrad.linting.rule import Findings, rule
from funcgrad.linting.subject import Subject
from funcgrad.observers.source import SourceLocation, is_users


@rule("changing-state", "note")
def changing(subject: Subject) -> Findings:
    """A variable, attribute or entry that the function reads and that is assigned later.

    Globals, variables of a function around it, attributes, entries of a dict; also what a function
    reads that this one calls.

    Why:
        A compiled function may go on with the value of its first call, and its results are
        then those of an old state.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> class Model:
        ...     def __init__(self):
        ...         self.rate = 0.5
        ...     def cool(self):
        ...         self.rate = self.rate / 2
        ...     def loss(self, x):
        ...         return np.sum(self.rate * x**2)
        >>> [found.rule for found in fg.lint(Model().loss, np.ones(3))]
        ['changing-state']

    Not found:
        >>> class Model:
        ...     def __init__(self):
        ...         self.rate = 0.5
        ...     def loss(self, x):
        ...         return np.sum(self.rate * x**2)
        >>> [found.rule for found in fg.lint(Model().loss, np.ones(3))]
        []
    """
    lines = [e.source for e in all_equations(subject.record.equations) if e.source is not None]
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
    """A compiled function that was traced again and again, with the cause.

    It needs four programs or more, or is made anew for each call. The report says which argument
    changed, from what to what, at which line; functions that are called within count as well.

    Why:
        Each program takes its time to trace and to compile, often more than all its calls.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> f = fg.jit(lambda x: np.sum(x**2))
        >>> for n in range(2, 8):
        ...     _ = f(np.ones(n))
        >>> [found.rule for found in fg.lint(f, np.ones(3))]
        ['retraced']

    Not found:
        >>> f = fg.jit(lambda x: np.sum(x**2))
        >>> for n in range(2, 8):
        ...     _ = f(np.ones(8))
        >>> [found.rule for found in fg.lint(f, np.ones(8))]
        []
    """
    layer: Any = subject.f
    while isinstance(layer, MadeOf):
        if isinstance(layer, Jitted):
            yield from retraces_so_far(layer)
        layer = layer.original
    yield from retraces(subject.calls)
