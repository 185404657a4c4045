"""The package's own sources, read and parsed once for all tests of a process that search them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.heap import resting

ROOT = Path(__file__).parents[1]
PACKAGE = "funcgrad"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}
"""The files of the modules, by their names."""


@cache
def text_of(module: str) -> str:
    return SOURCES[module].read_text(encoding="utf-8")


@cache
def tree_of(module: str) -> ast.Module:
    """The tree of a module, in which the collector never searches for cycles."""
    with resting():
        return ast.parse(text_of(module), str(SOURCES[module]))


@cache
def statements_of(module: str) -> tuple[ast.stmt, ...]:
    """All statements, those inside of others, too: a tenth of the nodes."""
    found: list[ast.stmt] = []
    pending: list[ast.AST] = [tree_of(module)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            found.append(node)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, ())
    return tuple(found)


@cache
def nodes_of(module: str) -> tuple[ast.AST, ...]:
    """All nodes of the tree. Where a word in `text_of` shows that it has none, do not ask."""
    return tuple(ast.walk(tree_of(module)))
