"""The blocks ``py`` of pages: programs by themselves, many of them for other libraries.

Each runs as a script of its own, where the libraries that it imports are installed, and has to
print what its comments ``# -> text`` say. Pages that port a program show it before and after: both
say the same.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages

HOW_TO = pages.ROOT / "docs" / "howto"
PORTS = sorted(HOW_TO.glob("from_*.md"))
PROGRAMS = [
    pytest.param(program, id=f"{page.stem}-{number}")
    for page in sorted((pages.ROOT / "docs").glob("**/*.md"))
    for number, program in enumerate(pages.programs_of(page))
]


def expectations(program: str) -> list[str]:
    """What the comments of a program say that it prints."""
    return re.findall(rf"{pages.EXPECTATION}(.*)$", program, re.MULTILINE)


def imported(program: str) -> set[str]:
    """The packages that a program imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_print_what_they_say(program: str, tmp_path: Path) -> None:
    for name in imported(program):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    script = tmp_path / "program.py"
    script.write_text(program)
    paths = os.pathsep.join([str(pages.ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, env=environment, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if expectations(program):
        assert done.stdout.splitlines() == expectations(program)


@pytest.mark.parametrize("page", PORTS, ids=lambda page: page.stem)
def test_programs_print_the_same_before_and_after(page: Path) -> None:
    (before,) = pages.programs_of(page)
    after = "\n".join(
        block for kind, block in pages.FENCE.findall(page.read_text()) if kind == "python"
    )
    assert expectations(before)
    assert expectations(after)[: len(expectations(before))] == expectations(before)
