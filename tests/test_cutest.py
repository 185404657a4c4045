"""The command that runs CUTEst's problems."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import cutest


def write(out: Path, way: str, *lines: dict[str, Any]) -> None:
    (out / f"{way}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_last_line_of_a_problem_counts(tmp_path: Path) -> None:
    write(tmp_path, "here", {"name": "A"}, {"name": "A", "n": 2}, {"name": "B"})
    assert cutest.lines_of(tmp_path / "here.jsonl") == [{"name": "A", "n": 2}, {"name": "B"}]
    assert cutest.lines_of(tmp_path / "jax.jsonl") == []


@pytest.mark.parametrize("missed", [0, 1])
def test_what_is_missed_fails(
    tmp_path: Path, missed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {"seconds": 0.5, "first": 0.5, "each": 0.1}
    here = {"nnz": 4, "colors": 2, "missed": missed, **times}
    there = {"nnz": 4, "colors": 3, "seconds": 10.0, "first": 10.0, "each": 0.5}
    write(tmp_path, "here", {"name": "A", "n": 5000, "hessian": here}, {"name": "B"})
    write(tmp_path, "jax", {"name": "A", "n": 5000, "hessian": there}, {"name": "B"})
    assert cutest.report(tmp_path) == missed
    said = capsys.readouterr().out
    assert f"{missed} of 1 that have dense derivatives miss an entry" in said
    assert "fewer in 1, as many in 0, more in 0" in said
    assert "first 40.0 (least 40.0), later 5.0 (least 5.00)" in said
    assert "2 problems; 1 failed, 0 of them here alone" in said
    write(tmp_path, "jax", {"name": "B", "n": 2})
    assert cutest.report(tmp_path) == 1


def test_it_asks_for_the_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cutest.main(["--sources", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "pip install --target cutest sif2jax asdex" in capsys.readouterr().out


def test_problems_are_imported_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = ("sif2jax", "sif2jax.cutest", "sif2jax.cutest._some")
    files = {
        "__init__.py": "raise ImportError",
        "_problem.py": "class AbstractProblem: ...",
        "cutest/__init__.py": "raise ImportError",
        "cutest/_some/__init__.py": (
            "from .a import A as A\nfrom .b import B as B\nsome_problems = (A(), B())\n"
        ),
        "cutest/_some/a.py": "from sif2jax import AbstractProblem\nclass A(AbstractProblem): ...",
        "cutest/_some/b.py": "raise ImportError",
    }
    for name, text in files.items():
        file = tmp_path / "sif2jax" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    made = ("sif2jax._problem", "sif2jax.cutest._some.a", "sif2jax.cutest._some.b")
    for module in (*packages, *made):
        monkeypatch.setitem(sys.modules, module, None)  # so that it is gone behind the test
        monkeypatch.delitem(sys.modules, module)
    problems = cutest.problems_of(tmp_path)
    assert list(problems) == ["A", "B"]
    assert type(problems["A"]()).__name__ == "A"
    with pytest.raises(ImportError):
        problems["B"]()
