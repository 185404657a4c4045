"""Plans as tests read them: the steps without the user's lines, which may hold any word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import funcgrad as fg


def plan(function: Callable[..., Any], *arguments: Any) -> str:
    """The steps of a compiled function, likewise."""
    return steps_of(str(fg.jit(function).lower(*arguments).as_text()))


def steps_of(text: str) -> str:
    """The steps of a printed program, a line each, with their indentation."""
    plan = text.split("\nplan\n")[1].split("# kernel")[0]
    lines = (line.split("   #")[0].rstrip() for line in plan.splitlines())
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
