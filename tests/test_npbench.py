"""The runner of NPBench's programs, on a source tree with one program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import npbench

INIT = """
import numpy as np

def initialize(N, datatype=np.float64):
    return np.eye(N) * 2.0 + 0.1, np.arange(N, dtype=datatype)
"""

KERNEL = """
import numpy as np

def kernel(L, x):
    total = np.zeros(())
    for i in range(x.shape[0]):
        x[i] = (x[i] - L[i, :i] @ x[:i]) / L[i, i]
        total = total + x[i] ** 2
    return total
"""

INFO = {
    "relative_path": "toy",
    "module_name": "toy",
    "func_name": "kernel",
    "parameters": {"S": {"N": 12}},
    "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["L", "x"]},
    "input_args": ["L", "x"],
    "array_args": ["L", "x"],
    "output_args": [],
}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "npbench" / "benchmarks" / "toy"
    folder.mkdir(parents=True)
    (folder / "toy.py").write_text(INIT)
    (folder / "toy_numpy.py").write_text(KERNEL)
    (tmp_path / "bench_info").mkdir()
    (tmp_path / "bench_info" / "toy.json").write_text(json.dumps({"benchmark": INFO}))
    return tmp_path


def test_a_program_is_measured_and_checked(
    sources: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npbench, "ENOUGH", 0.0)
    program = npbench.Program(sources, npbench.described(sources)["toy"], "S")
    npbench.measure(program, peers=False)
    found: dict[str, Any] = {}
    for line in capsys.readouterr().out.splitlines():
        found.update(json.loads(line))
    assert program.changed == ["x"]
    assert found["right"]
    assert found["slope"]
    assert {"numpy", "value_first", "value", "gradient_first", "gradient"} <= found.keys()
    assert npbench.row("toy", found).startswith("| toy |")


def test_gradients_that_are_wrong_are_seen() -> None:
    def loss(x: Any, y: Any) -> Any:
        return np.sum(np.sin(x) * y)

    x, y = np.linspace(0.0, 1.0, 5), np.linspace(1.0, 2.0, 5)
    right = [y * np.cos(x), np.sin(x)]
    assert npbench.differing(loss, [x, y], right) == []
    assert npbench.differing(loss, [x, y], [right[0], 1.01 * right[1]]) == [1]


def test_programs_that_jump_are_checked_by_complex_steps() -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.where(np.round(x.real * 1e9) % 2 == 0, x**2, x**2 + 1e3))

    x = np.random.default_rng(0).uniform(size=50)
    assert npbench.differing(loss, [x], [2 * x]) == []
    assert npbench.differing(loss, [x], [2.01 * x]) == [0]


def test_means_are_geometric_and_skip_what_is_missing() -> None:
    rows = [{"a": 2.0, "b": 1.0}, {"a": 8.0, "b": 1.0}, {"a": 3.0}]
    assert npbench.mean(rows, "a", "b") == "4.00 over 2"
    assert npbench.mean([], "a", "b") == "-"
