"""A guest leaves the process of its host as it was, at every moment, for every thread."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from tests import guest

ROOT = Path(__file__).parents[1]


def run(scenario: str, tmp_path: Path, **variables: str) -> str:
    """What a process of its own prints, which has no kernels on disk."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.guest", scenario],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": str(tmp_path / "kernels"), **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        # Background jobs of shells ignore it, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert done.stderr == ""
    return done.stdout.strip()


needs_posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals and forks")


@pytest.mark.sampled(4)
@needs_posix
@pytest.mark.parametrize("scenario", guest.SCENARIOS)
def test_the_host_is_as_it_was_at_every_moment(scenario: str, tmp_path: Path) -> None:
    assert run(scenario, tmp_path) == "looks: 3"


@needs_posix
@pytest.mark.nightly
def test_a_hundred_compilations(tmp_path: Path) -> None:
    assert run("compilations", tmp_path, GUEST_COMPILATIONS="100") == "looks: 3"


BREAKING = """
import os, sys
from tests import guest
for name in guest.BROKEN:
    if (child := os.fork()) == 0:
        try:
            print([name, *sorted(guest.broken(name).found)], file=sys.__stdout__, flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


@cache
def found_where_broken() -> dict[str, list[str]]:
    """What is found when each check is broken, in a process of its own that one process forks."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BREAKING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    rows = map(ast.literal_eval, done.stdout.splitlines())
    return {name: found for name, *found in rows}


@needs_posix
@pytest.mark.parametrize("name", guest.BROKEN)
def test_every_change_is_seen_though_it_lasts_a_moment(name: str) -> None:
    assert name in found_where_broken()[name]


def test_changes_of_one_thread_are_seen_by_its_callbacks() -> None:
    watch = guest.Watch()
    with np.errstate(all="raise"):
        watch.look()
    assert "NumPy's error state" in watch.found
    with np.errstate(call=print):
        watch.look()
    assert "NumPy's error call" in watch.found
    profile = sys.getprofile()
    sys.setprofile(lambda *args: None)
    watch.look()
    sys.setprofile(profile)
    assert "trace and profile" in watch.found


@pytest.mark.skipif(not guest.can_flush, reason="the word of another processor is elsewhere")
def test_a_changed_control_word_is_seen_in_its_own_mode() -> None:
    watch = guest.Watch()
    with guest.flushed():
        watch.look()
    assert set(watch.found) == {"floating point"}


def test_every_check_is_broken_by_one_of_these_tests() -> None:
    of_one_thread = {"NumPy's error state", "NumPy's error call", "trace and profile"}
    assert set(guest.CHECKS) - {"processors"} - guest.BROKEN.keys() == of_one_thread | {
        "floating point"
    }


def test_the_host_may_collect_and_pause_its_collector() -> None:
    code = """
import gc, threading, numpy as np
gc.disable()
import funcgrad as fg
fg.jit(lambda x: np.sin(x) + 1)(1.0)
assert not gc.isenabled()
gc.freeze()
frozen = gc.get_freeze_count()
fg.jit(lambda x: np.cos(x) + 2)(1.0)
with fg.checking_leaks():
    fg.grad(np.sin)(1.0)
assert 0 < gc.get_freeze_count() <= frozen  # fewer, where some of them die
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_compiling_imports_nothing_of_numba() -> None:
    code = """
import sys, numpy as np, funcgrad as fg
fg.jit(lambda x: np.sin(x).cumsum() @ x)(np.ones(3))
print(sorted(name for name in sys.modules if name.split(".")[0] in ("numba", "yaml")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "[]\n"


# NumPy's error state.


@pytest.mark.parametrize("transform", [fg.grad, fg.value_and_grad, fg.hessian, fg.jacfwd])
@pytest.mark.parametrize("x", [0.0, np.float32(0.0)])
def test_what_the_caller_lets_raise_is_raised_within_derivatives(transform: Any, x: Any) -> None:
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="log"):
        transform(np.log)(x)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide"):
        transform(lambda x: (np.array([1.0, 2.0]) / x).sum())(x)


@pytest.mark.parametrize("transform", [fg.jvp, fg.vjp, fg.linearize])
def test_of_other_derivatives_too(transform: Any) -> None:
    args = ((np.zeros(2),), (np.ones(2),)) if transform is fg.jvp else (np.zeros(2),)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        transform(np.log, *args)


def test_errors_that_are_counted_are_counted_within_derivatives() -> None:
    seen: list[str] = []
    with np.errstate(divide="call", call=lambda kind, flag: seen.append(kind)):
        fg.grad(lambda x: np.log(x).sum())(np.zeros(2))
    assert seen


def test_nothing_is_warned_of_within_derivatives() -> None:
    assert np.isinf(fg.grad(np.log)(0.0))  # warnings are errors here


@pytest.mark.parametrize(
    "call",
    [
        lambda look, x: fg.jit(lambda x: fg.pure_callback(look, x, x))(x),
        lambda look, x: fg.grad(lambda x: fg.debug.callback(look, x) or (x * x).sum())(x),
        lambda look, x: fg.jit(
            fg.vmap(lambda x: fg.pure_callback(look, x, x, vmap_method="sequential"))
        )(x),
        lambda look, x: fg.jit(
            lambda x: fg.lax.fori_loop(0, 2, lambda i, x: fg.pure_callback(look, x, x), x)
        )(x),
    ],
    ids=["jit", "grad", "vmap", "loop"],
)
def test_callbacks_run_in_the_error_state_of_the_caller(call: Any) -> None:
    seen: list[Any] = []

    def look(x: Any) -> Any:
        seen.append(np.geterr())
        return np.asarray(x)

    for state in ({}, {"all": "raise"}, {"divide": "ignore", "over": "print"}):
        seen.clear()
        with np.errstate(**state):
            expected = np.geterr()
            call(look, np.linspace(0.5, 1.0, 3))
            assert np.geterr() == expected
        assert seen
        assert all(found == expected for found in seen)


# Memory.

KEPT = """
import gc, sys, numpy as np, funcgrad as fg
f = fg.jit(lambda x: x * 2.0)
x = np.ones(1 << 19)
for _ in range(3):
    f(x)
print(fg.show_config("dicts")["memory"]["freed results"])
fg.clear_caches()
print(fg.show_config("dicts")["memory"]["freed results"])
"""


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("", "4.0 of 256.0 MiB\n0.0 of 256.0 MiB\n"),
        ("8M", "4.0 of 8.0 MiB\n0.0 of 8.0 MiB\n"),
        pytest.param("0", "0.0 of 0.0 MiB\n0.0 of 0.0 MiB\n", marks=pytest.mark.nightly),
    ],
)
def test_memory_of_freed_results_is_shown_set_and_given_back(limit: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KEPT],
        env={**os.environ, "FUNCGRAD_KEEP_MEMORY": limit},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == (expected, "")


def test_a_limit_of_memory_is_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_KEEP_MEMORY", "much")
    with pytest.raises(fg.errors.ArgumentError, match="FUNCGRAD_KEEP_MEMORY='MUCH' is not a size"):
        fg.show_config("dicts")


# Imports of the compiler.

PROCESS = """
import os, signal, sys
import numpy as np
import funcgrad as fg

names = set(sys.argv[1:])

def hook(event, args):
    if event == "import" and args[0] in names:
        names.discard(args[0])
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.addaudithook(hook)
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

PARTS = [
    "llvmlite.utils",
    "funcgrad.compiler.native.llvm_library",
    "funcgrad.compiler.native.scalars",
    "funcgrad.compiler.native.memory",
    "funcgrad.compiler.native.numbers",
    "funcgrad.compiler.native.complexes",
    "funcgrad.compiler.native.signatures",
    "funcgrad.compiler.native.vocabulary",
    "funcgrad.compiler.native.vecmath.formulas",
]


def interrupted_at(names: list[str]) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, *names],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    return int(done.stdout)


@needs_posix
def test_the_next_call_has_the_whole_compiler() -> None:
    """After Ctrl-C in the middle of its imports, one after the other."""
    assert interrupted_at(PARTS) >= 8


@needs_posix
@pytest.mark.nightly
@pytest.mark.parametrize("name", PARTS)
def test_the_next_call_has_the_whole_compiler_after_each(name: str) -> None:
    assert interrupted_at([name]) <= 1


def test_a_file_with_the_name_of_a_module_is_no_deadlock(tmp_path: Path) -> None:
    """The compiler imports it, and it calls a compiled function."""
    (tmp_path / "llvmlite.py").write_text(
        "import numpy as np, funcgrad as fg\nfg.jit(lambda x: np.sin(x) + 1)(1.0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import funcgrad as fg\nfg.jit(lambda x: x + 2)(1.0)"],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": "off", "PYTHONPATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "such as glob.py: rename it" in done.stderr


def test_many_threads_compile_their_first_functions_at_once() -> None:
    code = """
import threading, numpy as np, funcgrad as fg
x, found, errors = np.linspace(0.0, 1.0, 5), {}, []

def work(k):
    try:
        found[k] = fg.jit(lambda x: np.sin(x * k) + k)(x)
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not errors, errors
for k in range(8): np.testing.assert_allclose(found[k], np.sin(x * k) + k)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_watch_itself_changes_nothing() -> None:
    n_threads = threading.active_count()
    with guest.watched() as watch:
        pass
    watch.found.pop("collector frozen", None)  # frozen tests may die meanwhile
    assert watch.found == {}
    assert threading.active_count() == n_threads


def test_finalizers_may_compile_within_a_compilation() -> None:
    code = """
import gc, numpy as np, funcgrad as fg
found = []

class Cycle:
    def __init__(self):
        self.own = self
    def __del__(self):
        k = len(found)
        found.append(fg.jit(lambda x: np.sin(x) * k)(1.0) == np.sin(1.0) * k)

gc.set_threshold(50, 2, 2)
for k in range(6):
    Cycle()
    got = fg.jit(lambda x, k=k: np.tanh(x * k).sum() + np.cumsum(x)[-1])(np.ones(3))
    np.testing.assert_allclose(got, 3 * np.tanh(k) + 3)
gc.collect()
assert len(found) == 6 and all(found), found
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs_posix
def test_handlers_compute_in_the_middle_of_anything() -> None:
    """Of a trace, a derivative, a compilation: they get values, and change nothing."""
    code = """
import signal, numpy as np, funcgrad as fg
n = 0
is_within = False

def handle(number, frame):
    global n, is_within
    if not is_within:
        is_within = True
        n += 1
        with fg.ensure_compile_time_eval():
            assert abs(fg.jit(lambda x: np.sin(x) * n)(1.0) - np.sin(1.0) * n) < 1e-12
            assert abs(fg.grad(lambda x: np.sin(x) * n)(1.0) - np.cos(1.0) * n) < 1e-12
        is_within = False
        signal.setitimer(signal.ITIMER_REAL, 1e-3 * (1 + n % 7))

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 1e-3)
x = np.full(4, 0.1)
for k in range(12):
    got = fg.jit(lambda x: np.cumsum(np.tanh(x * k)) + k)(x)
    np.testing.assert_allclose(got, np.cumsum(np.tanh(x * k)) + k)
    got = fg.jit(fg.vmap(fg.grad(lambda x: np.exp(x * k) * x)))(x)
    np.testing.assert_allclose(got, np.exp(x * k) * (1 + x * k))
signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a handler that runs now sets the timer again
signal.setitimer(signal.ITIMER_REAL, 0)
assert n
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
