"""The page of the rules of lint: each under its name, drawn from its docstring."""

from __future__ import annotations

from pathlib import Path

from docs.tools.restructured import indented, replace, table, title
from funcgrad.linting.rule import PAGE, Rule
from funcgrad.linting.rules import RULES


def write(folder: Path) -> None:
    """Write the page."""
    replace(folder / f"{PAGE.rpartition('/')[2]}.rst", page())


def page() -> str:
    """A table of all rules, and a section for each."""
    rows = [(f":ref:`{name} <lint-rule-{name}>`", rule.summary) for name, rule in RULES.items()]
    return "\n".join(
        [
            title("Rules of lint"),
            "What :doc:`fg.lint </lint>` looks for. ``python -m funcgrad lint --rules kink`` shows"
            " the same in a terminal.\n",
            table(rows),
            *map(section, RULES.values()),
        ]
    )


def section(rule: Rule) -> str:
    """One rule: what it finds, why, an example that is found and one that is not."""
    parts = rule.sections
    off = f"# lint: ignore[{rule.name}]"
    project = f'[tool.funcgrad.lint]\nignore = ["{rule.name}"]'
    return "\n".join(
        [
            f".. _lint-rule-{rule.name}:\n",
            title(rule.name, "-"),
            f"**{rule.severity.capitalize()}.** {parts['What']}\n",
            f"**Why.** {parts['Why']}\n",
            f"**Found**\n\n{parts['Found']}\n",
            f"**Not found**\n\n{parts['Not found']}\n",
            f"**Switch it off** at a line that ends with ``{off}``, or for a project in its"
            f" pyproject.toml::\n\n{indented(project)}\n",
        ]
    )
