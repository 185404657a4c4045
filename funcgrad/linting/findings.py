"""Findings of rules, and the report of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.observers.source import SourceLocation

SEVERITIES = ("error", "warning", "note")
"""From the worst: a derivative that is wrong or missing; numbers that are bad at these data; what
costs time or memory, or may surprise."""

_IGNORED = re.compile(r"#\s*lint:\s*ignore(?:\[([\w\s,-]*)\])?")


@dataclass(frozen=True)
class Finding:
    """One thing that a rule has found; prints as a few lines.

    Attributes:
        rule: Name of the rule.
        severity: ``"error"``, ``"warning"`` or ``"note"``.
        location: The user's line; ``None`` if it is unknown.
        why: What is so, and what follows from it.
        advice: What to write instead.
        times: How often it was found at this line.
    """

    rule: str
    severity: str
    location: SourceLocation | None
    why: str
    advice: str
    times: int = 1

    @property
    def line(self) -> str | None:
        """``file.py:14   text of the line``, if it is known."""
        return None if self.location is None else str(self.location)

    @property
    def is_ignored(self) -> bool:
        """Whether the line ends with ``# lint: ignore`` or ``# lint: ignore[rule]``."""
        found = None if self.location is None else _IGNORED.search(self.location.text())
        if found is None:
            return False
        names = found[1]
        return names is None or self.rule in {name.strip() for name in names.split(",")}

    def __str__(self) -> str:
        times = f" ({self.times} times)" if self.times > 1 else ""
        lines = [f"{self.severity}: {self.why}{times}   [{self.rule}]"]
        if self.line is not None:
            lines.append(f"  at            {self.line}")
        return "\n".join([*lines, f"  write         {self.advice}"])


class LintReport(Sequence[Finding]):
    """The result of `lint`: findings, the worst first, which print as a text.

    Args:
        name: Name of the function.
        findings: What was found.
        rules: Names of the rules that looked.
        n_ignored: How many findings comments have switched off.
    """

    def __init__(
        self, name: str, findings: Sequence[Finding], rules: Sequence[str], n_ignored: int = 0
    ) -> None:
        self.name = name
        self.rules = tuple(rules)
        self.n_ignored = n_ignored
        self._findings = sorted(findings, key=lambda found: SEVERITIES.index(found.severity))

    def __getitem__(self, index: Any) -> Any:
        return self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    @property
    def errors(self) -> list[Finding]:
        """Findings of severity ``"error"``."""
        return [found for found in self if found.severity == "error"]

    def by_rule(self, rule: str) -> list[Finding]:
        """Findings of one rule.

        Args: rule: Its name.
        """
        return [found for found in self if found.rule == rule]

    def __str__(self) -> str:
        off = f", {self.n_ignored} switched off by comments" if self.n_ignored else ""
        if not self:
            return f"{self.name}: {len(self.rules)} rules found nothing{off}"
        counts = [
            f"{n} {severity}{'s' * (n > 1)}"
            for severity in SEVERITIES
            if (n := sum(found.severity == severity for found in self))
        ]
        names = dict.fromkeys(found.rule for found in self)
        pages = f"why, and examples: python -m funcgrad lint --rules {' '.join(names)}"
        return "\n".join([f"{self.name}: {', '.join(counts)}{off}", *map(str, self), pages])

    __repr__ = __str__
