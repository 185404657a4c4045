"""The command that runs everything slow."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib

import pytest

from tests import nightly
from tests.nightly import Step


def test_every_step_is_there() -> None:
    names = [step.name for step in nightly.STEPS]
    assert len(set(names)) == len(names)
    for step in nightly.STEPS:
        flag, module = step.command[:2]
        assert flag == "-m"
        assert importlib.util.find_spec(module) is not None


def test_steps_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert nightly.main(["--list", "--only", "soak", "programs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[::2]] == ["programs", "soak"]
    assert "python -m tests.soak --minutes 30" in lines[3]


def test_brief_steps_are_the_same_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for step in nightly.STEPS:
        assert step.brief
        assert step.briefly().command[:2] == step.command[:2]
    assert nightly.main(["--brief", "--list", "--only", "soak"]) == 0
    assert "python -m tests.soak --minutes 0.2 --threads 4" in capsys.readouterr().out


def test_a_step_that_fails_does_not_keep_others_from_running(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = [
        Step("first", ("-c", "print('done | 3'); raise SystemExit(3)"), ""),
        Step("second", ("-c", "print('== fine =='); print()"), ""),
    ]
    assert nightly.run_all(steps) == 1
    out = capsys.readouterr().out
    assert re.search(r"\| first \| \*\*failed \(3\)\*\* \| 0:\d\d:\d\d \| done / 3 \|", out)
    assert re.search(r"\| second \| passed \| 0:\d\d:\d\d \| fine \|", out)
    assert nightly.run_all(steps[1:]) == 0


def test_a_missing_peer_makes_a_step_fail_and_other_skips_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = (
        "SKIPPED [1] tests/a.py:3: could not import 'jax.tree_util': No module named 'jax'",
        "SKIPPED [2] tests/b.py: torch is not installed",
        "SKIPPED [1] tests/c.py: there is no dask.distributed",
        "SKIPPED [4] tests/d.py: the system does not fork",
        "SKIPPED [1] tests/e.py: there is no node to run the search of the site",
    )
    missing = [nightly.peer_missing_in(row) for row in rows]
    assert missing == ["jax", "torch", "distributed", None, None]
    program = "import sys; print(*sys.argv[1:], '1 passed', sep=chr(10))"
    assert nightly.run_all([Step("first", ("-c", program, rows[3]), "")]) == 0
    assert f"first: {rows[3]}" in capsys.readouterr().out
    assert nightly.run_all([Step("second", ("-c", program, *rows), "")]) == 1
    out = capsys.readouterr().out
    assert re.search(r"\| second \| \*\*failed \(no peer\)\*\* \| 0:\d\d:\d\d \| 1 passed \|", out)
    assert f"second: a peer is missing: {rows[0]}" in out
    assert f"second: {rows[4]}" in out


def test_a_step_without_what_it_needs_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    step = Step("libraries", ("-m", "tests.neighbours"), "", needs="no such folder")
    assert nightly.run_all([step]) == 0
    why = "there is no folder no such folder: python -m tests.neighbours says why"
    assert f"| libraries | not run | 0:00:00 | {why} |" in capsys.readouterr().out


def test_every_file_that_needs_a_peer_is_in_the_step() -> None:
    peers = "|".join(nightly.PEERS)
    named, computed = rf"importorskip\(['\"](?:{peers})\b", r"importorskip\((?!['\"])"
    skip = re.compile(rf"{named}|{computed}|\{{\w+\}} is not installed")
    texts = {
        str(path.relative_to(nightly.ROOT)): path.read_text(encoding="utf-8")
        for path in (nightly.ROOT / "tests").rglob("test_*.py")
    }
    found = {
        name
        for name, text in texts.items()
        if ("importorskip" in text or "is not installed" in text)
        and any(
            skip.search(ast.unparse(node))
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("pytest.")
        )
    }
    assert found - {"tests/test_nightly.py"} <= set(nightly.COMPARED)
    assert all((nightly.ROOT / path).exists() for path in nightly.COMPARED)


def test_ci_installs_the_peers() -> None:
    project = tomllib.loads((nightly.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = " ".join(extras["peers"] + extras["bench"])
    for name in ("jax", "torch", "autograd", "pandas", "xarray", "distributed"):
        assert name in wanted
    workflow = (nightly.ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert (
        "python -m pip install '.[dev,docs,peers]'\n      - run: python -m tests.nightly"
        in workflow
    )
