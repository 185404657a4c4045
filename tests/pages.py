"""The pages of the documentation as programs: what runs them, and what writes their results.

The blocks ``python`` of one page share their names, as a reader would type them in their order.
Results are shown in two ways, and both are checked: a comment ``# -> text`` after an expression or
a ``print``, or on the line below; and a fence ``output`` behind a block, in which ``...`` stands
for anything. Pages with pictures save them into the current folder. A block ``py`` is a program by
itself, often one for another library: `tests/test_programs_of_pages.py` runs those.

    python -m tests.pages docs/tutorials/loops.md             run a page, show where it is wrong
    python -m tests.pages --write docs/tutorials/*.md         and write its results and its pictures
    python -m tests.pages --write --due                       pages that have changed since

``docs/pictures/runs.json`` says which page made a picture, from which code, with which release.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import doctest
import hashlib
import io
import json
import linecache
import os
import re
import shutil
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
RUNS = PICTURES / "runs.json"
FENCE = re.compile(r"^```(python|output)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXPECTATION = "# -> "
PROGRAM = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)
NIGHTLY = "<!-- nightly -->"  # in a page: it takes too long for every run
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
STYLE = """
figure.figsize: 6.4, 3.4
figure.constrained_layout.use: True
axes.spines.top: False
axes.spines.right: False
legend.frameon: False
savefig.dpi: 144
svg.hashsalt: funcgrad
"""

# What a place of the page expects, what it shows, its line, and what the text to replace is.
Result = tuple[str, str, int, tuple[int, int]]


def is_nightly(page: Path) -> bool:
    return NIGHTLY in page.read_text()


def programs_of(page: Path) -> list[str]:
    """The blocks ``py`` of a page."""
    return PROGRAM.findall(page.read_text())


def pictures_of(page: Path) -> list[str]:
    """Files of `docs/pictures` that a page shows."""
    return re.findall(r"(?:\]\(|\{image\} )[./]*pictures/([\w.-]+)", page.read_text())


def origins(page: Path) -> dict[str, dict[str, str]]:
    """What the record has to say of every picture of a page."""
    release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    code = "".join(block for kind, block in FENCE.findall(page.read_text()) if kind == "python")
    origin = {
        "page": str(page.relative_to(ROOT)), "release": release,
        "program": hashlib.sha256(code.encode()).hexdigest()[:16],
    }  # fmt: skip
    return dict.fromkeys(pictures_of(page), origin)


def due() -> list[Path]:
    """Pages of `docs` whose pictures were made by other code, or with another release."""
    recorded = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    pages = sorted((ROOT / "docs").glob("**/*.md"))
    return [page for page in pages if not origins(page).items() <= recorded.items()]


def run(page: Path) -> Iterator[Result]:
    """Run a page in the current folder; gives every result that it shows beside the real one."""
    text = page.read_text()
    program = program_of(page)
    names: dict[str, object] = {"__name__": "__main__"}
    block_shows = ""
    for fence in FENCE.finditer(text):
        start, source = fence.start(2), fence[2]
        line = text.count("\n", 0, start)
        if fence[1] == "output":
            yield source, block_shows, line, (start, fence.end(2))
            continue
        block_shows = ""
        for statement in ast.parse("\n" * line + source, program).body:
            shown = run_statement(statement, program, names)
            block_shows += shown
            expected = expectation_after(statement, source, line)
            if expected is not None:
                text_of_it, place = expected
                span = (start + place, start + place + len(text_of_it))
                yield text_of_it, shown, statement.lineno, span


def program_of(page: Path) -> str:
    """The name of a file that only `linecache` knows: the blocks of a page, at their lines.

    What errors say of a line follows from its file, which has to be one of Python.
    """
    text, lines = page.read_text(), []
    for fence in FENCE.finditer(text):
        if fence[1] == "python":
            lines += ["\n"] * (text.count("\n", 0, fence.start(2)) - len(lines))
            lines += fence[2].splitlines(keepends=True)
    name = str(page.with_suffix(".py"))
    linecache.cache[name] = (len(text), None, lines, name)
    return name


def run_statement(statement: ast.stmt, program: str, names: dict[str, object]) -> str:
    """Run one statement as an interactive Python would; returns what it shows."""
    shown = io.StringIO()
    is_expression = isinstance(statement, ast.Expr)
    tree = ast.Interactive([statement]) if is_expression else ast.Module([statement], [])
    code = compile(tree, program, "single" if is_expression else "exec", dont_inherit=True)
    with contextlib.redirect_stdout(shown):
        exec(code, names)
    return shown.getvalue()


def expectation_after(statement: ast.stmt, source: str, line: int) -> tuple[str, int] | None:
    """The text after ``# ->`` on the last line of a statement or below it, and where it begins."""
    lines = source.splitlines(keepends=True)
    count = statement.end_lineno - line
    last = lines[count - 1]
    column = last.find(EXPECTATION, len(last.encode()[: statement.end_col_offset].decode()))
    if column < 0 and count < len(lines) and lines[count].startswith(EXPECTATION):
        last, column, count = lines[count], 0, count + 1
    if column < 0:
        return None
    column += len(EXPECTATION)
    return last[column:].rstrip("\n"), sum(map(len, lines[: count - 1])) + column


def agrees(expected: str, shown: str) -> bool:
    """Whether a page says what is shown; single lines are compared as they are."""
    if expected.endswith("\n"):
        return doctest.OutputChecker().check_output(expected, shown, FLAGS)
    return expected.strip() == shown.strip()


@contextlib.contextmanager
def settings_of_pictures() -> Iterator[None]:
    """Matplotlib draws into files, the same bytes every time."""
    settings = tempfile.NamedTemporaryFile("w", suffix="matplotlibrc", delete=False)  # noqa: SIM115
    with settings:
        settings.write(STYLE)
    # Pictures carry the date of their sources: the beginning of time.
    ours = {"MPLBACKEND": "agg", "MATPLOTLIBRC": settings.name, "SOURCE_DATE_EPOCH": "0"}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        Path(settings.name).unlink()


def write(page: Path) -> None:
    """Put the results of a page into it, where it is wrong, and its pictures into their folder."""
    text = page.read_text()
    for expected, shown, _, (start, end) in reversed(list(run(page))):
        if not agrees(expected, shown):
            shown = re.sub(rf"{page.stem}\.py:\d+", f"{page.stem}.py:...", shown)
            shown = shown if expected.endswith("\n") else shown.strip()
            text = text[:start] + shown + text[end:]
    page.write_text(text)
    recorded = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    for name, origin in origins(page).items():
        shutil.copy(name, PICTURES / name)
        recorded[name] = origin
    RUNS.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")


def report(page: Path) -> None:
    for expected, shown, line, _ in run(page):
        if not agrees(expected, shown):
            print(f"{page}:{line}: expected\n{expected.strip()}\nbut it is\n{shown.strip()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=lambda name: Path(name).resolve())
    parser.add_argument("--write", action="store_true", help="write results and pictures")
    parser.add_argument("--due", action="store_true", help="pages that have changed since")
    arguments = parser.parse_args()
    action: Callable[[Path], None] = write if arguments.write else report
    warnings.simplefilter("error")
    with settings_of_pictures():
        for page in arguments.pages + (due() if arguments.due else []):
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                action(page)


if __name__ == "__main__":
    main()
