"""Trials of other ways to write a function, each run beside what there is: nothing is guessed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from funcgrad.api.arguments import name_of
from funcgrad.base.pytree import tree_flatten, tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.base.transformed import MadeOf
from funcgrad.diagnostics.tables import table
from funcgrad.errors import FuncgradError
from funcgrad.observers.limits import format_seconds
from funcgrad.observers.source import SourceLocation

F = TypeVar("F", bound=Callable[..., Any])

ROUNDS = 5
"""The least number of rounds, in which both variants run in turn; the fastest of each counts."""
SECONDS = 0.5
"""Seconds of further rounds: other processes slow single rounds down."""
LEAST_SECONDS = 0.002
"""The least seconds of a round."""
GAIN = 0.9
"""The largest ratio of times that is reported as a gain."""


@dataclass(frozen=True)
class Trial:
    """One other way to write a function, as it was measured.

    Attributes:
        name: The trial.
        what: The change.
        location: The line that it concerns; ``None`` for the whole function.
        before: Seconds of a call, or of the line's operations, as they are.
        after: The same with the change.
        note: What else changes.
    """

    name: str
    what: str
    location: SourceLocation | None
    before: float
    after: float
    note: str = ""

    @property
    def is_gain(self) -> bool:
        """Whether the change saves time."""
        return self.after < GAIN * self.before


@dataclass(frozen=True)
class WhatIf:
    """Trials of a function, the best first; prints as a table.

    Attributes:
        name: Name of the function.
        trials: The trials.
        failed: Names of trials that the function does not run with, and why.
    """

    name: str
    trials: tuple[Trial, ...]
    failed: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        head = ("what if", "before", "after", "gain", "line")
        rows = [
            (x.what, format_seconds(x.before), format_seconds(x.after),
             f"{1 - x.after / x.before:+.0%}",
             f"{x.location or 'the function'}" + (f"   {x.note}" if x.note else ""))
            for x in self.trials
        ]  # fmt: skip
        lines = [f"what if, for {self.name}:", table(head, rows) if rows else "nothing to try"]
        return "\n".join([*lines, *(f"not tried, {name}: {why}" for name, why in self.failed)])

    __repr__ = __str__


@dataclass(eq=False)
class Subject:
    """A function with its arguments, and its lines, the slowest first.

    Attributes:
        f: The function.
        args: Its arguments.
        kwargs: Keyword arguments.
        lines: Its lines.
        leaves: The arrays among the arguments.
    """

    f: Callable[..., Any]
    args: Sequence[Any]
    kwargs: dict[str, Any]
    lines: Sequence[SourceLocation]

    def __post_init__(self) -> None:
        self.args, self.lines = tuple(self.args), tuple(self.lines)
        self.leaves, self.tree = tree_flatten((self.args, self.kwargs))

    def with_leaves(self, leaves: Sequence[Any]) -> Callable[[], Any]:
        """Call with other arrays."""
        args, kwargs = tree_unflatten(self.tree, [*leaves])
        return lambda: self.f(*args, **kwargs)

    def call(self) -> Any:
        """Call as it is."""
        return self.f(*self.args, **self.kwargs)

    def calling(self, f: Callable[..., Any]) -> Callable[[], Any]:
        """Call another function."""
        return lambda: f(*self.args, **self.kwargs)

    def remade(self, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
        """The same transformations of a changed function, the innermost one.

        Returns ``None`` if the function is none that transformations have made.
        """
        return _remade(self.f, change) if isinstance(self.f, MadeOf) else None


def _remade(f: Any, change: Callable[[Any], Any]) -> Any:
    if not isinstance(f, MadeOf):
        return change(f)
    return f.transformation(_remade(f.original, change), **f.options)


def compared(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of a call of two functions, run in turn; both are called before."""
    first()
    second()
    best = [np.inf, np.inf]
    counts = [_count(first), _count(second)]
    end, rounds = time.perf_counter() + SECONDS, 0
    while rounds < ROUNDS or time.perf_counter() < end:
        rounds += 1
        for k, function in enumerate((first, second)):
            start = time.perf_counter()
            for _ in range(counts[k]):
                function()
            best[k] = min(best[k], (time.perf_counter() - start) / counts[k])
    return best[0], best[1]


def _count(function: Callable[[], Any]) -> int:
    start = time.perf_counter()
    function()
    return max(1, int(LEAST_SECONDS / max(time.perf_counter() - start, 1e-7)))


TRIALS: dict[str, Callable[[Subject], Iterator[Trial]]] = {}
"""All trials, by their names."""


def trial(name: str) -> Callable[[F], F]:
    """Make a function a trial: it is given the `Subject`, and yields what it has measured."""

    def register(run: F) -> F:
        TRIALS[name] = run
        return run

    return register


def try_all(subject: Subject) -> WhatIf:
    """Run all trials."""
    found: list[Trial] = []
    failed: list[tuple[str, str]] = []
    for name, run in TRIALS.items():
        try:
            found += run(subject)
        except FuncgradError as error:  # the function does not run in the other way
            failed.append((name, str(error).partition("\n")[0]))
    found.sort(key=lambda x: x.after - x.before)
    return WhatIf(name_of(subject.f), tuple(found), tuple(failed))
