"""Modules whose code is put off, and the library that is loaded ahead."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from funcgrad.compiler.native.put_off import PutOff, put_off

NAME = "funcgrad_put_off_example"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that is installed, and was not imported."""
    (tmp_path / f"{NAME}.py").write_text("value, given = [1], 'its own'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield NAME
    sys.modules.pop(NAME, None)


def test_the_code_runs_when_it_is_imported_afterwards(example: str) -> None:
    with put_off(example, given="ours"):
        early = importlib.import_module(example)
        assert type(early) is PutOff
        assert early.given == "ours"
        assert importlib.import_module(example) is early
    assert example not in sys.modules
    late = importlib.import_module(example)
    assert (late.value, late.given) == ([1], "its own")
    assert early.value is late.value


@pytest.mark.parametrize("is_within", [True, False])
def test_the_code_runs_when_another_name_is_asked_for(example: str, is_within: bool) -> None:
    with put_off(example):
        early = importlib.import_module(example)
        if is_within:
            assert early.value == [1]
    assert early.value is importlib.import_module(example).value
    for name in ("__path__", "missing"):
        with pytest.raises(AttributeError, match=f"'{example}' has no attribute '{name}'"):
            getattr(early, name)


def test_what_is_there_stays_and_what_is_not_stays_absent(example: str) -> None:
    module = importlib.import_module(example)
    with put_off(example, value=2):
        assert importlib.import_module(example) is module
        assert module.value == [1]
    with put_off("funcgrad_no_such_module"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("funcgrad_no_such_module")


def test_modules_of_a_package_that_is_put_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may import them: `importlib.metadata` wants one of `importlib.resources`."""
    name = "funcgrad_put_off_package"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text(f"from {name}.part import value\n")
    (tmp_path / name / "part.py").write_text("value = [1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with put_off(name):
            part = importlib.import_module(f"{name}.part")
            assert type(sys.modules[name]) is PutOff
        whole = importlib.import_module(name)
        assert whole.part is part
        assert whole.value is part.value
    finally:
        for path in (name, f"{name}.part"):
            sys.modules.pop(path, None)


START = """
import os, sys, time
import numpy as np
import funcgrad as fg
from funcgrad.compiler.runtime import kernel_store

def is_mapped():
    with open("/proc/self/maps") as file:
        return "llvmlite" in file.read()

assert not is_mapped()
kernel_store.prepare()
"""
CALL = """
assert fg.jit(lambda x: x * 5 - 2)(np.ones(3)).tolist() == [3.0] * 3
"""
COLD = """
if child := os.fork():  # while the library is loaded
    assert os.waitpid(child, 0)[1] == 0
    end = time.monotonic() + 60
    while not is_mapped() and time.monotonic() < end:
        time.sleep(0.01)
    assert is_mapped() and "llvmlite" not in sys.modules
"""
WARM = """
assert not is_mapped()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_the_library_is_loaded_ahead_where_no_kernel_is_known(tmp_path: Path) -> None:
    environment = {**os.environ, "FUNCGRAD_CACHE_DIR": str(tmp_path / "cache")}
    for text in (START + COLD + CALL, START + CALL + WARM):
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
