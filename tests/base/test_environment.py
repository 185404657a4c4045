"""Environment variables: read in one place, documented in one table, refused where wrong."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from funcgrad.base import environment
from funcgrad.compiler.runtime.threads import default_threads
from funcgrad.errors import ArgumentError
from tests.sources import SOURCES, nodes_of, text_of

ROOT = Path(__file__).parents[2]
# The user's cache folder, threads of other libraries, and what a report shows of all of them.
OTHERS = {"environment.py", "configuration.py", "disk_cache.py"}


def test_one_file_reads_the_environment() -> None:
    reading = {"environ", "getenv", "environb"}
    assert not [
        f"{path} reads {node.attr}"
        for module, path in SOURCES.items()
        if path.name not in OTHERS and any(name in text_of(module) for name in reading)
        for node in nodes_of(module)
        if isinstance(node, ast.Attribute) and node.attr in reading
    ]


def test_every_name_is_known_where_it_is_mentioned() -> None:
    files = [*(ROOT / "funcgrad").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    found = {
        name
        for path in files
        for name in re.findall(r"FUNCGRAD_[A-Z_]*[A-Z]", path.read_text(encoding="utf-8"))
    }
    assert found == set(environment.VARIABLES)


def rows() -> list[str]:
    return [
        f"| `{v.name}` | {v.values} | {v.default} | {v.read} | {v.meaning} |"
        for v in environment.VARIABLES.values()
    ]


def test_the_table_of_the_documentation_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("| `")] == rows()


def test_blanks_and_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, expected in (("0", False), ("", False), (" 0 ", False), ("1", True), ("yes", True)):
        monkeypatch.setenv("FUNCGRAD_VERIFY", value)
        assert environment.is_on("FUNCGRAD_VERIFY") is expected
    monkeypatch.delenv("FUNCGRAD_VERIFY")
    assert not environment.is_on("FUNCGRAD_VERIFY")
    assert environment.text("FUNCGRAD_VERIFY") is None
    monkeypatch.setenv("FUNCGRAD_VERIFI", "1")
    assert "FUNCGRAD_VERIFI" in environment.unknown()


@pytest.mark.parametrize("wrong", ["two", "0", "-1", "1.5"])
def test_wrong_numbers_of_threads_are_refused(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("FUNCGRAD_NUM_THREADS", wrong)
    with pytest.raises(
        ArgumentError, match=f"FUNCGRAD_NUM_THREADS='{wrong}' is no number of threads"
    ):
        default_threads()
    monkeypatch.setenv("FUNCGRAD_NUM_THREADS", " 3 ")
    assert default_threads() == 3
