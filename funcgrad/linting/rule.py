"""Rules, the page of each, and the table of all."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from funcgrad.base.records import dataclass
from funcgrad.linting.findings import Finding
from funcgrad.observers.source import SourceLocation

F = TypeVar("F", bound=Callable[..., Any])
Place = SourceLocation | None

PAGE = "reference/lint_rules"
"""The page of the documentation that shows the rules, each under its name."""
_HEADS = re.compile(r"^(Why|Found|Not found):\n", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        name: Its name, which reports show and by which it is switched off.
        severity: That of its findings.
        summary: What it looks for, in a sentence.
        look: The function.
        watches: What it is given: ``"record"``, ``"evaluations"``, ``"derivatives"``, ``"errors"``.
    """

    name: str
    severity: str
    summary: str
    look: Callable[..., Any]
    watches: str

    def found(self, location: Place, why: str, advice: str) -> Finding:
        """A finding of this rule."""
        return Finding(self.name, self.severity, location, why, advice)

    @property
    def sections(self) -> dict[str, str]:
        """The docstring of the function: ``"What"``, ``"Why"``, ``"Found"``, ``"Not found"``."""
        what, *rest = _HEADS.split(inspect.cleandoc(self.look.__doc__ or ""))
        bodies = (textwrap.dedent(text).strip() for text in rest[1::2])
        return {"What": what.strip(), **dict(zip(rest[::2], bodies, strict=True))}

    @property
    def page(self) -> str:
        """The rule as a text: what it finds, why, examples, how it is switched off."""
        parts = self.sections
        what = parts.pop("What")
        parts["Switch it off"] = (
            f"at a line       # lint: ignore[{self.name}]\n"
            f'for a project   ignore = ["{self.name}"], in [tool.funcgrad.lint] of pyproject.toml'
        )
        parts["In the documentation"] = f"{PAGE}.html#{self.name}"
        rest = (f"{head}:\n{textwrap.indent(text, '    ')}" for head, text in parts.items())
        return "\n\n".join([f"{self.name} ({self.severity})", what, *rest])


Said = tuple[Place, str, str]
"""The line, why, and what to write."""

RULES: dict[str, Rule] = {}
"""All rules, by their names."""


def rule(name: str, severity: str, watches: str = "record") -> Callable[[F], F]:
    """Make a function a rule.

    Its docstring is the page of the rule: what it finds, in a sentence and as many more as are
    needed, then ``Why:``, ``Found:`` and ``Not found:``, the last two with examples.

    Args:
        name: The name of the rule.
        severity: ``"error"``, ``"warning"`` or ``"note"``.
        watches: ``"record"``: it is given the `Subject`, and yields what `Said` is. Otherwise it is
            a class, made anew for each function, which is called with each `Step` and gives a line,
            why, and advice, or nothing. ``"errors"``: it is given the error with which the function
            or its derivative has ended, and says why, or nothing.
    """

    def register(look: F) -> F:
        summary = (look.__doc__ or "").partition("\n\n")[0].replace("\n    ", " ").strip()
        RULES[name] = Rule(name, severity, summary, look, watches)
        return look

    return register


Findings = Iterator[Said]
