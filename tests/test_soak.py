"""A short soak, and what the matrix of environments relies on."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from funcgrad import __main__ as installation
from tests import matrix, soak

ROOT = Path(__file__).parents[1]


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_settles() -> None:
    """20 seconds in a fresh process; caches fill for longer, so the bound is wide."""
    code = "from tests import soak; m = soak.soak(20, every=1); print(m[len(m) // 2], m[-1])"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    half, end = map(int, run.stdout.splitlines()[-1].split())
    assert end < 1.2 * half


def test_growth_is_that_after_a_sixth() -> None:
    assert soak.growth([50, 100, 100, 100, 100, 101]) == pytest.approx(0.01)


def test_bounds_are_stated_and_the_lowest_are_tested() -> None:
    found = matrix.bounds()
    assert set(found) == set(matrix.PACKAGES)
    for name, (low, high) in found.items():
        for version in matrix.PYTHONS:
            tested = tuple(map(int, matrix.LOWEST[version][name].split(".")))
            assert tuple(map(int, low.split("."))) <= tested
            assert not high or tested < tuple(map(int, high.split(".")))
        assert matrix.LOWEST["3.11"][name].startswith(low)


def test_the_versions_of_python_are_stated_alike() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    lists = re.findall(r"python: \[(.*)\]", workflow)
    assert [tuple(re.findall(r"[\d.]+", text)) for text in lists] == [matrix.PYTHONS] * 2
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    stated = [f"3.{c.removeprefix(prefix)}" for c in project["classifiers"] if prefix in c]
    assert tuple(stated) == matrix.PYTHONS
    assert project["requires-python"] == f">={matrix.PYTHONS[0]}"
    page = (ROOT / "docs" / "supported_versions.md").read_text()
    assert f"| {matrix.PYTHONS[0]} to {matrix.PYTHONS[-1]}, CPython with the GIL |" in page
    for path in ("README.md", "docs/start/install.md"):
        text = (ROOT / path).read_text()
        assert f"Python {matrix.PYTHONS[0]} to {matrix.PYTHONS[-1]}" in text
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["mypy"]["python_version"] == matrix.PYTHONS[0]
    assert tools["ruff"]["target-version"] == "py" + matrix.PYTHONS[0].replace(".", "")


def test_the_page_of_versions_states_the_bounds() -> None:
    page = (ROOT / "docs" / "supported_versions.md").read_text()
    stated = {"numpy": "NumPy", "scipy": "SciPy", "numba": "Numba"}
    for name, (low, high) in matrix.bounds().items():
        row = next(line for line in page.splitlines() if line.startswith(f"| {stated[name]} |"))
        upper = f"and newer, below {high} |" if high else "and newer;"
        assert f"| {low} {upper}" in row


def test_this_python_is_found() -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    assert version in matrix.interpreters()


def test_the_installation_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert installation.main() == 0
    assert "works (15 checks" in capsys.readouterr().out


def test_a_broken_installation_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(installation, "CHECKS", {"sum": lambda: (1.0, 2.0)})
    assert installation.main() == 1
    out = capsys.readouterr().out
    assert "sum:" in out
    assert "1 of 1 checks failed" in out
