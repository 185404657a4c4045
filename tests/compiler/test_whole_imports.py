"""Ctrl-C while the compiler is imported: the next call imports it, and is correct."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.whole_imports import import_whole
from funcgrad.errors import CompilerError

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals")

SLOW = """
import os, signal, sys, time
sys.modules["os"].environ["FUNCGRAD_TEST_IMPORTS"] += "x"
os.kill(os.getpid(), signal.SIGINT)
time.sleep(0.2)
answer = 42
"""


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that interrupts whoever imports it."""
    name = "module_that_interrupts"
    (tmp_path / f"{name}.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("FUNCGRAD_TEST_IMPORTS", "")
    monkeypatch.delitem(sys.modules, name, raising=False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    yield name
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_import_goes_on(slow: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        import_whole(slow)
    assert import_whole(slow).answer == 42
    assert os.environ["FUNCGRAD_TEST_IMPORTS"] == "x"


def test_errors_are_raised_where_the_module_was_wanted() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        import_whole("no_such_module")


def test_threads_and_the_end_of_a_process_import_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(import_whole("json")))
    thread.start()
    thread.join()

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert import_whole("json") is found[0]


def test_a_file_with_the_name_of_a_module_is_no_deadlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler imports it, with locks held, and it calls a compiled function."""
    text = "from funcgrad.compiler.runtime.kernel_store import kernel_address\nkernel_address('')\n"
    (tmp_path / "module_that_compiles.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CompilerError, match=r"such as glob\.py: rename it"), kernel_store._LOCK:
        import_whole("module_that_compiles")


PROCESS = """
import os, signal, sys
import numpy as np
import funcgrad as fg

class Interrupt:
    names = set(sys.argv[1:])

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            self.names.discard(name)
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
sys.meta_path.insert(0, Interrupt())
f = fg.jit(lambda x: np.sin(x) * 3.0 + np.sum(np.tanh(x)))
x = np.linspace(0.0, 1.0, 7)
interrupted = 0
for _ in range(len(sys.argv)):
    try:
        f(x)
    except KeyboardInterrupt:
        interrupted += 1
np.testing.assert_allclose(f(x), np.sin(x) * 3.0 + np.sum(np.tanh(x)), rtol=1e-14)
print(interrupted)
"""


def test_the_next_call_has_the_whole_compiler() -> None:
    names = ["llvmlite.binding.ffi", "numba.core.datamodel.models"]
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, *names],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == ""
    assert int(done.stdout) >= 1
