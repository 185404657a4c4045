"""Numba is imported in parts, and is whole for everybody who imports it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPILE = """
import importlib.util, pathlib, sys, threading
import numpy as np
import funcgrad as fg

def compile_one():
    assert fg.jit(lambda x: x * 3 + 1)(np.ones(3)).tolist() == [4.0] * 3

def is_whole(numba):
    core = numba.core
    assert core.types is sys.modules["numba.core.types"]
    assert numba.float64 is core.types.float64
    return numba.njit(lambda x: x + 1)(2) == 3

def loaded():
    return {name for name in sys.modules if name.startswith("numba.")}

def parsed():
    from funcgrad.compiler.native.numba_parts import types
    return types
"""

CASES = {
    "parts alone": """
compile_one()
assert "importlib.resources" not in sys.modules and "numba.core.analysis" not in sys.modules
import importlib.resources, logging
assert importlib.resources.files("llvmlite").joinpath("__init__.py").is_file()
types = sys.modules["numba.core.types.functions"]
assert types._logger.manager is logging.getLogger(types.__name__).manager
assert types.logging.INFO == logging.INFO
assert "numba.core.lowering" in loaded()
assert "numba" not in sys.modules
assert not loaded() & {"numba.core.typeinfer", "numba.parfors", "numba.core.typing.context"}
assert len(loaded()) < 60, len(loaded())
assert not sys.modules.keys() & {"yaml", "coverage"}
""",
    "whole after parts": """
compile_one()
types = parsed()
import numba
assert is_whole(numba) and numba.core.types is types
fg.jit(lambda x: x - 1)(np.ones(3))
import numba as again
assert again is numba and not hasattr(numba, "no_such_name")
""",
    "submodule after parts": """
compile_one()
from numba.typed import List
import numba
assert List([1, 2])[1] == 2 and is_whole(numba)
""",
    "parts after whole": """
import numba
compile_one()
assert is_whole(numba) and parsed() is numba.core.types
""",
    "a reference taken while parts are loaded": """
compile_one()
numba = next(f.module for f in sys.meta_path if getattr(f, "name", None) == "numba")
assert is_whole(numba)
import numba as known
assert known is numba
""",
    "a reference to a module within": """
compile_one()
typing = sys.modules["numba.core"].typing
assert "numba.core.typing" not in sys.modules
assert typing.Context().__module__ == "numba.core.typing.context"
import numba
assert is_whole(numba) and sys.modules["numba.core.typing"] is typing is numba.core.typing
assert not [f for f in sys.meta_path if hasattr(f, "is_made")]
fg.jit(lambda x: x - 1)(np.ones(3))
""",
    "a neighbour that was put off": """
compile_one()
config = sys.modules["numba.core.config"]
if importlib.util.find_spec("yaml"):
    import yaml
    assert yaml.safe_load("a: 1") == config.yaml.safe_load("a: 1") == {"a": 1}
    assert yaml.__version__ and yaml is sys.modules["yaml"]
""",
    "a neighbour that is asked at once": """
pathlib.Path(".numba_config.yaml").write_text("developer_mode: 1")
compile_one()
config = sys.modules["numba.core.config"]
assert config.DEVELOPER_MODE == 1 or not config._HAVE_YAML
""",
    "lines that are reported": """
compile_one()
config, lowering = sys.modules["numba.core.config"], sys.modules["numba.core.lowering"]
if hasattr(config, "JIT_COVERAGE"):
    from numba.misc import coverage_support
    coverage_support._the_registry.append(lambda: "told")
    assert not lowering.get_registered_loc_notify()
    config.JIT_COVERAGE = 1
    assert "told" in lowering.get_registered_loc_notify()
""",
    "threads": """
errors = []

def run(action):
    try:
        action()
    except BaseException as error:
        errors.append(error)

def use_numba():
    import numba
    assert is_whole(numba)

actions = [compile_one, use_numba, use_numba, compile_one]
threads = [threading.Thread(target=run, args=(action,)) for action in actions]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
""",
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.nightly if i > 2 else ()) for i, c in enumerate(CASES)],
)
def test_numba_in_a_fresh_process(case: str, tmp_path: Path) -> None:
    environment = {**os.environ, "FUNCGRAD_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", COMPILE + CASES[case]]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
