"""The documentation runs: every Python block of README.md and docs/, and every doctest.

Blocks of one file share their names, as a reader would type them one after the other. A block whose
first line is ``# not run`` is skipped; a comment `# -> text` after an expression, or after a
``print``, is checked against what it shows.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import types
from pathlib import Path

import pytest

import funcgrad

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXPECTATION = "# -> "
NOT_RUN = "# not run"
DOCTEST_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks_of(page: Path) -> list[str]:
    """The Python blocks of a page, each moved down to its own line numbers."""
    text = page.read_text()
    return [
        "\n" * text[: match.start(1)].count("\n") + match[1]
        for match in BLOCK.finditer(text)
        if not match[1].startswith(NOT_RUN)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_blocks_run_and_show_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page):
        for statement in ast.parse(block, str(page)).body:
            shown = run_statement(statement, page, names)
            expected = expectation_after(statement, block)
            if expected is not None:
                assert shown == expected, f"{page.name}:{statement.lineno}"


def run_statement(statement: ast.stmt, page: Path, names: dict[str, object]) -> str:
    """Run one statement as an interactive Python would; returns what it shows."""
    shown = io.StringIO()
    is_expression = isinstance(statement, ast.Expr)
    tree = ast.Interactive([statement]) if is_expression else ast.Module([statement], [])
    code = compile(tree, str(page), "single" if is_expression else "exec", dont_inherit=True)
    with contextlib.redirect_stdout(shown):
        exec(code, names)
    return shown.getvalue().strip()


def expectation_after(statement: ast.stmt, block: str) -> str | None:
    """The text after ``# ->`` on the last line of a statement."""
    line = block.splitlines()[statement.end_lineno - 1]
    _, arrow, text = line[statement.end_col_offset :].partition(EXPECTATION)
    return text.strip() if arrow else None


def modules() -> list[str]:
    found = pkgutil.walk_packages(funcgrad.__path__, "funcgrad.")
    return ["funcgrad", *(info.name for info in found)]


@pytest.mark.parametrize("name", modules())
def test_doctests(name):
    module = importlib.import_module(name)
    assert isinstance(module, types.ModuleType)
    failures = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=DOCTEST_FLAGS, verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test, out=failures.write)
    assert not runner.failures, failures.getvalue()


def links_of(page: Path) -> list[str]:
    """Relative links of a page, without their anchors."""
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    return [link for link in links if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    assert [link for link in links_of(page) if not (page.parent / link).exists()] == []


def test_links_lead_to_headings():
    pages = {page.name: page.read_text() for page in PAGES}
    for name, text in pages.items():
        for file, anchor in re.findall(r"\]\(([a-z_]*(?:\.md)?)#([a-z-]+)\)", text):
            headings = re.findall(r"^#+ (.*)$", pages[file or name], re.MULTILINE)
            anchors = {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in anchors, f"{name}: {file}#{anchor}"


def test_every_error_and_warning_is_listed():
    page = (ROOT / "docs" / "errors.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) | {"FuncgradError"}
    assert set(funcgrad.errors.__all__) - listed == {"FuncgradWarning"}
