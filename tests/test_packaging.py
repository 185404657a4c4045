"""What installing and importing the package costs and promises."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import funcgrad as fg

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# The benchmarks measure seconds (0.15 more than NumPy); a ratio does not depend on the machine.
TIMES_NUMPY = 5.0

OF_PLATFORMS = {"float128", "complex256"}
"""Names of NumPy that are not everywhere."""


def run_python(code: str, environment: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("module", ["", ".interop.jax", ".scipy.linalg", ".scipy.special"])
def test_import_loads_no_heavy_library(module: str) -> None:
    heavy = "numba llvmlite scipy.linalg scipy.special matplotlib sklearn jax hypothesis pytest"
    code = f"import sys, funcgrad{module}; print(*[m for m in {heavy.split()} if m in sys.modules])"
    assert run_python(code).split() == []


def test_eager_transformations_load_no_compiler():
    code = """
import sys
import numpy as np
import funcgrad as fg
fg.vmap(fg.grad(lambda x: np.tanh(x) * np.sin(x) + x**2))(np.arange(3.0))
print(any(name.split(".")[0] in ("numba", "llvmlite") for name in sys.modules))
"""
    assert run_python(code).strip() == "False"


def test_import_is_quick():
    # With compiled bytecode, as installed packages have it: the first process writes it.
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def seconds(module: str) -> float:
        # Processor time: other processes do not count in.
        code = f"import time, {module}; print(time.process_time())"
        return float(run_python(code, environment))

    seconds("funcgrad")
    ratios = [seconds("funcgrad") / seconds("numpy") for _ in range(3)]
    assert statistics.median(ratios) < TIMES_NUMPY


def test_import_prints_and_warns_nothing():
    command = [sys.executable, "-W", "error", "-c", "import funcgrad"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_version_is_that_of_the_project():
    assert fg.__version__ == PROJECT["version"]


def test_the_installed_version_is_that_of_the_project():
    try:
        installed = importlib.metadata.version("funcgrad")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("funcgrad runs from its source tree and is not installed")
    assert installed == PROJECT["version"]


def test_public_names_exist_and_are_sorted_out():
    assert len(set(fg.__all__)) == len(fg.__all__)
    assert [name for name in fg.__all__ if not hasattr(fg, name)] == []


def test_every_folder_with_code_is_a_package_and_so_is_installed():
    folders = {path.parent for path in (ROOT / "funcgrad").rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_change_log_starts_with_this_version():
    headings = [
        line for line in (ROOT / "docs/changelog.md").read_text().splitlines() if line[:3] == "## "
    ]
    assert headings[0].split()[1] == PROJECT["version"]


@pytest.mark.nightly
def test_public_names_are_known_to_type_checkers(tmp_path):
    pytest.importorskip("mypy")
    modules = ("funcgrad", "numpy", "lax", "nn", "optim", "random", "tree", "scipy.special")
    lines = []
    for name in modules:
        path = name if name == "funcgrad" else f"funcgrad.{name}"
        public = importlib.import_module(path).__all__
        lines += [f"import {path}", *(f"{path}.{x}" for x in public if x not in OF_PLATFORMS)]
    lines += [
        "def f(x: funcgrad.Array) -> None:",
        "    x.at[0].set(1.0) * (x > 0) + funcgrad.jit(f)",
    ]
    (tmp_path / "user.py").write_text("\n".join(lines))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "user.py"]
    environment = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
