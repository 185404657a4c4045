"""Run the rules on a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.api.arguments import check_callable, name_of, normalize_argnums
from funcgrad.errors import ArgumentError, ConcretizationTypeError, MissingRuleError
from funcgrad.linting.findings import Finding, LintReport
from funcgrad.linting.rule import Rule
from funcgrad.linting.rules import RULES
from funcgrad.linting.subject import Step, Subject

MOST_LOOKS = 256
"""Times that a rule looks at one operation of one line; of later ones it sees every tenth."""


def rules() -> dict[str, str]:
    """Return the rules by their names, each with what it looks for.

    Example:
        >>> fg.linting.rules()["kink"]
        'A point at which the derivative jumps: abs at 0, equal elements of max, equal eigenvalues.'
    """
    return {name: rule.summary for name, rule in RULES.items()}


def lint(
    f: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] | None = None,
    ignore: Iterable[str] = (),
    only: Iterable[str] | None = None,
    **kwargs: Any,
) -> LintReport:
    """Look for what is likely to be wrong with a function and its derivative at a point.

    The function is run a few times, operation by operation with NumPy, with its callbacks, and
    differentiated once. A comment ``# lint: ignore`` or ``# lint: ignore[rule]`` at the end of a
    line switches rules off for the line.

    Args:
        f: Function of arrays or pytrees, such as a loss.
        *args: Its arguments: typical ones, since kinks and overflows are looked for at these.
        argnums: Positions of the arguments that are differentiated, as of `grad`: others may be
            data, of which nobody wants a derivative. All arguments by default.
        ignore: Names of rules that do not look.
        only: Names of the rules that look, all if it is ``None``.
        **kwargs: Keyword arguments of the function.
    Returns: A `LintReport`: a sequence of `Finding`, the worst first, which prints as a text.
    Raises: ArgumentError: There is no rule of a name, or no argument of a number.

    Example:
        >>> report = fg.lint(lambda x: np.sum(np.round(x) ** 2), np.ones(3) / 3)
        >>> [(found.rule, found.severity) for found in report]
        [('cut-derivative', 'warning')]
    """
    check_callable(f, "lint")
    looking = chosen(ignore, only)
    if argnums is not None:
        argnums = normalize_argnums(argnums, len(args), name_of(f))
    with np.errstate(all="ignore"):
        try:
            found = _found(looking, Subject(f, args, kwargs, argnums))
        except ConcretizationTypeError as error:
            found = _of_error(looking, error)
            if not found:
                raise
    merged = _merged(found)
    shown = [finding for finding in merged if not finding.is_ignored]
    names = [rule.name for rule in looking]
    return LintReport(name_of(f), shown, names, len(merged) - len(shown))


def _found(looking: Sequence[Rule], subject: Subject) -> list[Finding]:
    found: list[Finding] = []
    for rule in looking:
        if rule.watches == "record":
            found += [rule.found(*said) for said in rule.look(subject)]
    for watches, run in (
        ("evaluations", subject.evaluations),
        ("derivatives", subject.derivatives),
    ):
        watching = [_Watching(rule, subject) for rule in looking if rule.watches == watches]
        if watching:
            try:
                run(_all_of(watching))
            except MissingRuleError as error:
                found += _of_error(looking, error)
            found += [finding for watch in watching for finding in watch.found]
    return found


def _of_error(looking: Sequence[Rule], error: Exception) -> list[Finding]:
    """Findings about an error with which the function, or its derivative, has ended."""
    said = [(rule, rule.look(error)) for rule in looking if rule.watches == "errors"]
    return [rule.found(*words) for rule, words in said if words is not None]


def chosen(ignore: Iterable[str], only: Iterable[str] | None) -> list[Rule]:
    """The rules that look.

    Args:
        ignore: Names of rules that do not.
        only: Names of those that may, all if it is ``None``.
    Raises: ArgumentError: There is no rule of a name.
    """
    ignored, wanted = set(ignore), set(RULES) if only is None else set(only)
    unknown = sorted((ignored | wanted) - set(RULES))
    if unknown:
        raise ArgumentError(
            f"lint has no rule {unknown[0]!r}. Its rules are: {', '.join(sorted(RULES))}."
        )
    return [rule for name, rule in RULES.items() if name in wanted - ignored]


class _Watching:
    """A rule that is shown steps."""

    def __init__(self, rule: Rule, subject: Subject) -> None:
        self.rule = rule
        self.look = rule.look(subject)
        self.looks: Counter[Any] = Counter()
        self.found: list[Finding] = []

    def __call__(self, step: Step) -> None:
        key = (step.location, type(step.primitive))
        self.looks[key] += 1
        if self.looks[key] > MOST_LOOKS and self.looks[key] % 10:
            return
        said = self.look(step)
        if said is not None:
            self.found.append(self.rule.found(*said))


def _all_of(watching: Sequence[_Watching]) -> Callable[[Step], None]:
    def look(step: Step) -> None:
        for watch in watching:
            watch(step)

    return look


def _merged(found: Sequence[Finding]) -> list[Finding]:
    """One finding for each line and rule, with the number of times."""
    first: dict[Any, Finding] = {}
    counts: Counter[Any] = Counter()
    for finding in found:
        key = (finding.rule, finding.location)
        first.setdefault(key, finding)
        counts[key] += 1
    return [replace(finding, times=counts[key]) for key, finding in first.items()]
