"""Meanings of parameters of which a docstring does not speak: ``docs/parameters.txt``.

Docstrings of functions that NumPy, SciPy or JAX have too say what is particular here. Their other
parameters are described in a table. A line ``# funcgrad.numpy funcgrad.lax.sort*`` says for which
modules and functions the lines ``name: meaning`` below it hold; of two, the later one counts.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from pathlib import Path

from docs.tools.names import Name, described_parameters

FILE = Path(__file__).parents[1] / "parameters.txt"

Section = tuple[tuple[str, ...], dict[str, str]]


@functools.cache
def sections() -> tuple[Section, ...]:
    """The table: scopes, and what parameters mean there."""
    found: list[Section] = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            found.append((tuple(line.removeprefix("# ").split()), {}))
        elif line:
            name, _, meaning = line.partition(": ")
            found[-1][1][name] = meaning
    return tuple(found)


def holds_for(scope: str, name: Name) -> bool:
    """Whether a scope is the module of a name, or the name, or a pattern of it."""
    return scope == name.module or fnmatch.fnmatchcase(name.path, scope)


def undescribed(name: Name) -> list[str]:
    """Parameters of which the docstring does not speak, neither in a section nor in backticks."""
    if name.is_result or (name.kind == "class" and not name.is_ours):
        return []
    literals = " ".join(re.findall(r"`+([^`]+)`", name.documentation))
    known = described_parameters(name.documentation) | set(re.findall(r"\w+", literals))
    return [q for q in name.parameters if q not in known and not q.startswith("_")]


def meanings(name: Name) -> dict[str, str]:
    """What the table says of the parameters of which the docstring does not speak."""
    table: dict[str, str] = {}
    for scopes, rows in sections():
        if any(holds_for(scope, name) for scope in scopes):
            table.update(rows)
    return {q: table[q] for q in undescribed(name) if q in table}
