"""Teaching examples, and what examples share: at most 60 lines but for pictures and options."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest

from docs.tools.gallery import GROUPS
from tests.examples.program import FOLDER

LONGEST = 60
SHARED = sorted(p.stem for p in FOLDER.glob("*.py") if "__main__" not in p.read_text("utf-8"))
PROGRAMS = sorted({p.stem for p in FOLDER.glob("*.py")} - set(SHARED))
TEACHING = sorted(
    {*GROUPS["First steps"], *GROUPS["Derivatives"], *GROUPS["What goes wrong in training"]}
    | {"compare_optimizers", "draw_digits"}
)
APART = ("plot", "write", "parse_arguments", "run", "main")
SPACE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


def core(name: str) -> set[int]:
    """Lines of code that are neither imports, docstrings and comments, nor pictures and options."""
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    tree, lines = ast.parse(source), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SPACE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        is_main = isinstance(node, ast.If) and node in tree.body
        is_apart = isinstance(node, ast.FunctionDef) and node.name in APART
        is_apart |= isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in APART
        if is_text or is_import or is_main or is_apart:
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return lines


@pytest.mark.parametrize("name", [*TEACHING, *SHARED])
def test_the_core_is_short(name):
    assert len(core(name)) <= LONGEST


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_command_line_is_the_shared_one(name):
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert "ArgumentParser(" not in source
    assert "program.parser(" in source or "program.command_line(" in source
    assert "savefig(" not in source
