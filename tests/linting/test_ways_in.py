"""The command and the fixture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import funcgrad as fg
from funcgrad.linting.script import ignored_by_project, lint_script, main

SCRIPT = """\
import sys
import numpy as np
import funcgrad as fg


def loss(w, x, y):
    return np.mean((x @ w - y) ** 2) + np.sum(np.abs(w))


w, x, y = np.zeros((3, 1)), np.ones((4, 3)), np.ones(4)
step = fg.jit(lambda w: w - 0.1 * fg.grad(loss)(w, x, y))
for _ in range(3):
    w = step(w)
print(w.shape, sys.argv[1:])
sys.exit(3)
"""


LABELLED = """\
import numpy as np
import funcgrad as fg


def loss(p, label):
    return -np.mean(np.log(np.where(label > 0, p, 1 - p)))


p, label = np.array([0.2, 0.7]), np.array([0.0, 1.0])
print(fg.grad(loss)(p, label).shape, fg.grad(lambda a, p: loss(p, a), 1)(label, p).shape)
"""


def test_arguments_that_a_script_does_not_differentiate(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(LABELLED, encoding="utf-8")
    reports = lint_script(fg, str(path))
    assert [len(report) for report in reports] == [0, 0]


@pytest.fixture(name="script")
def a_script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_functions_that_a_script_differentiates(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    originals = fg.grad, fg.value_and_grad, [*sys.argv]
    (report,) = lint_script(fg, str(script), ["--epochs", "3"])
    assert [found.rule for found in report] == ["accidental-broadcast", "kink"]
    assert capsys.readouterr().out == "(3, 1) ['--epochs', '3']\n"
    assert (fg.grad, fg.value_and_grad, sys.argv) == originals


def test_the_command(script: Path) -> None:
    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "funcgrad", "lint", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    found = run(str(script))
    assert found.returncode == 1
    assert "warning: sub of f64[4,1] and f64[4] is f64[4,4]" in found.stdout
    clean = run(str(script), "--ignore", "kink", "accidental-broadcast")
    assert clean.returncode == 0
    missing = run(str(script.with_name("none.py")))
    assert missing.returncode == 2
    assert "none.py" in missing.stderr


RETRACED = """\
import numpy as np
import funcgrad as fg

step = fg.jit(lambda w, x: w - 0.1 * fg.grad(lambda w: np.sum((x @ w) ** 2))(w))
w = np.ones(2)
for n in range(3, 9):
    w = step(w, np.ones((n, 2)))
"""


def test_compiled_functions_of_a_script_that_need_many_programs(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(RETRACED, encoding="utf-8")
    _, report = lint_script(fg, str(path))
    (found,) = report
    assert found.location.text() == "w = step(w, np.ones((n, 2)))"
    assert "6 programs in 6 calls, 5 of them because of args[1]" in found.why
    assert "args[1]: f64[7,2] -> f64[8,2]" in found.why
    assert len(lint_script(fg, str(path), ignore=["retraced"])) == 1


AT_POINTS = """\
import numpy as np
import funcgrad as fg


def size(x):
    return np.sum(np.abs(x))


value, pull = fg.vjp(lambda x: size(x), np.zeros(2))
_, dot = fg.jvp(lambda x: size(x) + 1, primals=(np.zeros(2),), tangents=(np.ones(2),))
_, push, extra = fg.linearize(lambda x: (size(x) + 2, x), np.zeros(2), has_aux=True)
print(value, pull(1.0), dot, push(np.ones(2)))
"""


def test_derivatives_at_a_point(tmp_path: Path) -> None:
    path = tmp_path / "points.py"
    path.write_text(AT_POINTS, encoding="utf-8")
    reports = lint_script(fg, str(path))
    assert [[found.rule for found in report] for report in reports] == [["kink"]] * 3


FAILS = """\
import numpy as np
import funcgrad as fg
from beside import loss

print(fg.hessian(loss)(np.zeros(2)).shape)
print(fg.grad(lambda x: x / float(x))(1.0))
"""


def test_a_script_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "beside.py").write_text(
        "import numpy as np\n\n\ndef loss(x):\n    return np.sum(np.abs(x))\n", encoding="utf-8"
    )
    path = tmp_path / "train.py"
    path.write_text(FAILS, encoding="utf-8")
    before = [*sys.path]
    assert main(fg, [str(path)]) == 2
    assert sys.path == before
    del sys.modules["beside"]
    out, err = capsys.readouterr()
    assert "[kink]\n  at            beside.py:5" in out
    assert "[left-trace]\n  at            train.py:6" in out
    assert err.startswith(f'the script ended with an error:\n  File "{path}", line 6')
    assert "ConcretizationTypeError: float() needs" in err
    assert "linting" not in err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ignore = ['knik']", "lint has no rule 'knik'"),
        ("ignore = 'kink'", "ignore is a list"),
        ("ignore = [", "Invalid value"),
    ],
)
def test_a_project_that_is_not_understood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.funcgrad.lint]\n{text}\n", encoding="utf-8")
    assert main(fg, [str(tmp_path / "none.py")]) == 2
    assert capsys.readouterr().err.startswith(f"{file}: {told}")


def test_rules_that_a_project_leaves_out(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert ignored_by_project(inner) == []
    text = "[tool.funcgrad.lint]\nignore = ['kink']\n"
    (tmp_path / "a" / "pyproject.toml").write_text(text, encoding="utf-8")
    assert ignored_by_project(inner) == ["kink"]


def test_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        'pytest_plugins = ["funcgrad.linting.pytest_plugin"]\n', encoding="utf-8"
    )
    (tmp_path / "test_it.py").write_text(
        "import numpy as np\n\n\n"
        "def test_fine(lint):\n    assert lint(np.sum, np.ones(2)).name == 'sum'\n\n\n"
        "def test_kink(lint):\n    lint(lambda x: np.sum(np.abs(x)), np.zeros(2))\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "1 failed, 1 passed" in found.stdout
    assert "abs has a kink at these data (2 elements are within rounding of it)" in found.stdout
