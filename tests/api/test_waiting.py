"""``jit(..., wait=False)``: NumPy serves while kernels are compiled on another thread."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.api import compilation
from funcgrad.errors import CompilerError


class Gate:
    """A compiler that does not begin before it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_open = threading.Event()
        self.calls: list[str] = []
        self.error: Exception | None = None
        for name in ("executable_of", "compile_program"):
            monkeypatch.setattr(compilation, name, self._guarded(getattr(compilation, name)))

    def _guarded(self, compiler: Callable[..., Any]) -> Callable[..., Any]:
        def compile_later(program: Any, *rest: Any, **options: Any) -> Any:
            self.calls.append(threading.current_thread().name)
            assert self.is_open.wait(60)
            if self.error is not None:
                raise self.error
            return compiler(program, *rest, **options)

        return compile_later


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Gate(monkeypatch)
    yield made
    made.is_open.set()
    wait_for_threads()


def wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "funcgrad-jit":
            thread.join(60)


def loop(x: Any) -> Any:
    return fg.lax.scan(lambda c, row: (np.sin(c) + row.sum(), c * 2), 0.5, x)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "chain": (lambda x: np.tanh(x) * np.exp(-x), (np.linspace(0, 1, 7),)),
    "gradient": (fg.value_and_grad(lambda x: np.sum(np.sin(x) ** 2)), (np.arange(5.0),)),
    "argument itself": (lambda x: x, (np.arange(4.0),)),
    "twice the same": (lambda x: (x, {"a": x}, x + 0), (np.arange(4.0),)),
    "views": (lambda x: (x[::2], x.T, np.broadcast_to(x, (3, 2, 4))), (np.ones((2, 4)),)),
    "a constant": (lambda x: (x + 1, np.arange(3.0)), (np.ones(2),)),
    "scalars": (lambda x, y: (x + y, x * 2), (1.5, 3)),
    "float32": (lambda x: x * 2.0 + 1, (np.ones(3, np.float32),)),
    "integers": (lambda x: (x // 2, x > 1), (np.arange(4, dtype=np.int8),)),
    "complex": (lambda x: np.conj(x) * 1j, (np.ones(2, complex),)),
    "nan and inf": (lambda x: (np.log(x), 1 / x, np.sqrt(-x)), (np.array([0.0, 1.0]),)),
    "matrix product": (lambda a, b: a @ b, (np.ones((3, 4)), np.ones((4, 2)))),
    "loop": (loop, (np.ones((6, 2)),)),
    "branch": (lambda x: fg.lax.cond(x > 0, np.sin, np.cos, x), (-1.0,)),
    "nested": (lambda x: fg.jit(np.exp)(x) + fg.jit(np.sin)(x), (np.arange(3.0),)),
    "lapack": (lambda a: np.linalg.solve(a, a[0]), (np.eye(3) * 2,)),
    "empty": (lambda x: (x.sum(), x + 1), (np.ones((0, 3)),)),
    "random": (lambda key: fg.random.normal(key, (3,)), (fg.random.key(0),)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_kernels(name: str, gate: Gate) -> None:
    fun, args = PROGRAMS[name]
    f = fg.jit(lambda *args: fun(*args), wait=False)
    first, again = f(*args), f(*args)
    assert gate.calls == ["funcgrad-jit"]
    gate.is_open.set()
    wait_for_threads()
    compiled = f(*args)
    assert f.cache_info().hits == 2
    assert f.lower(*args).as_text()
    leaves, structure = fg.tree_util.tree_flatten(compiled)
    for served in (first, again):
        found, found_structure = fg.tree_util.tree_flatten(served)
        assert found_structure == structure
        for a, b in zip(found, leaves, strict=True):
            assert type(a) is type(b)
            np.testing.assert_allclose(
                np.asarray(a, np.result_type(a)), b, rtol=1e-6, atol=1e-12, strict=True
            )


@pytest.mark.parametrize("name", ["argument itself", "twice the same", "views", "a constant"])
def test_results_are_new_arrays(name: str, gate: Gate) -> None:
    fun, args = PROGRAMS[name]
    f = fg.jit(lambda *args: fun(*args), wait=False)
    results = fg.tree_util.tree_leaves(f(*args))
    for i, result in enumerate(results):
        assert result.flags.carray
        assert result.base is None
        for other in (*args, *results[:i]):
            assert not np.shares_memory(result, other)
        result[...] = 9
    for found, expected in zip(
        fg.tree_util.tree_leaves(f(*args)), fg.tree_util.tree_leaves(fun(*args)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_the_call_path_is_that_of_jit_afterwards(gate: Gate) -> None:
    f = fg.jit(lambda x: x * 3, wait=False)
    f(np.ones(3))
    assert f.cache_info().kernels_compiled + f.cache_info().kernels_loaded == 0
    gate.is_open.set()
    wait_for_threads()
    f(np.ones(3))
    info = f.cache_info()
    assert info.kernels_compiled + info.kernels_loaded + info.kernels_reused == 1
    assert len(f._paths) == 1
    assert (info.hits, info.misses, info.traces) == (1, 1, 1)


def test_donated_arguments_are_left_alone_meanwhile(gate: Gate) -> None:
    f = fg.jit(lambda x: x + 1, donate_argnums=0, wait=False)
    x = np.zeros(5)
    assert f(x).tolist() == [1.0] * 5
    assert x.tolist() == [0.0] * 5
    gate.is_open.set()
    wait_for_threads()
    assert f(x).tolist() == [1.0] * 5


def test_static_and_named_arguments(gate: Gate) -> None:
    f = fg.jit(lambda x, n, *, scale: x**n * scale, static_argnums=1, wait=False)
    for n in (2, 3):
        assert f(np.full(2, 2.0), n, scale=10.0).tolist() == [10 * 2.0**n] * 2


def test_errors_of_tracing_come_at_once(gate: Gate) -> None:
    with pytest.raises(TypeError, match="traced"):
        fg.jit(lambda x: 1 if x > 0 else 2, wait=False)(1.0)
    assert gate.calls == []


def test_an_error_of_the_compiler_is_raised_by_every_later_call(gate: Gate) -> None:
    f = fg.jit(lambda x: x - 1, wait=False)
    gate.error = CompilerError("no such instruction")
    assert f(np.ones(2)).tolist() == [0.0, 0.0]
    gate.is_open.set()
    wait_for_threads()
    for _ in range(2):
        with pytest.raises(CompilerError, match="no such instruction"):
            f(np.ones(2))


@pytest.mark.usefixtures("small_heap")
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_error_that_nobody_asks_for_is_a_warning(when: str, gate: Gate) -> None:
    gate.error = CompilerError("no such instruction")
    f = fg.jit(lambda x: x - 2, wait=False)
    f.clear_cache()  # not shared with other functions, so that it dies with f
    f(np.ones(2))
    text = "compiling jit.* failed: CompilerError: no such instruction"

    def end() -> None:
        nonlocal f
        if when == "before":
            del f
            gc.collect()
        gate.is_open.set()
        wait_for_threads()
        f = None
        gc.collect()

    with pytest.warns(RuntimeWarning, match=text):
        end()


def test_threads_start_one_compilation(gate: Gate) -> None:
    f = fg.jit(lambda x: np.cos(x) + 1, wait=False)
    barrier, found = threading.Barrier(8), []

    def call() -> None:
        barrier.wait()
        found.extend(f(np.zeros(3)) for _ in range(20))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.01)
    gate.is_open.set()
    for thread in threads:
        thread.join(60)
    assert len(found) == 160
    np.testing.assert_array_equal(found, np.full((160, 3), 2.0))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_compiles_what_had_not_begun() -> None:
    turn = threading.Event()

    def hold() -> None:
        with fg.api.background._TURN:
            turn.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    f = fg.jit(lambda x: x * 7, wait=False)
    assert f(np.ones(2)).tolist() == [7.0, 7.0]
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def child() -> None:
        f(np.ones(2))
        wait_for_threads()
        f(np.ones(2))
        queue.put((f(np.ones(2)).tolist(), len(f._paths)))

    process = context.Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert queue.get() == ([7.0, 7.0], 1)
    turn.set()
    holder.join(60)
    wait_for_threads()


def test_a_process_ends_with_its_kernels_on_disk(tmp_path: Path) -> None:
    code = """
import numpy as np, funcgrad as fg
f = fg.jit(lambda x: np.sin(x) + 1, wait=WAIT)
print(f(np.zeros(2)).tolist(), f.cache_info().kernels_loaded)
"""
    environment = {**os.environ, "FUNCGRAD_CACHE_DIR": str(tmp_path / "kernels")}
    outs = []
    for wait in ("False", "True"):
        command = [sys.executable, "-W", "error", "-c", code.replace("WAIT", wait)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        outs.append(done.stdout)
    assert outs == ["[1.0, 1.0] 0\n", "[1.0, 1.0] 1\n"]


def double(x: Any) -> Any:
    return x * 2


def test_copies_wait_no_more_than_their_original(gate: Gate) -> None:
    f = fg.jit(double, wait=False)
    for other in (copy.copy(f), pickle.loads(pickle.dumps(f))):
        assert other.options["wait"] is False
        assert other(np.ones(2)).tolist() == [2.0, 2.0]


def test_transformations_of_it_wait(gate: Gate) -> None:
    gate.is_open.set()
    f = fg.jit(lambda x: np.sum(x**2), wait=False)
    assert fg.grad(f)(np.ones(2)).tolist() == [2.0, 2.0]
    assert gate.calls == []


def test_surroundings_are_still_watched(gate: Gate) -> None:
    f = fg.jit(lambda x: fnp.where(x > 0, x, 0.0), wait=False)
    assert f(np.array([-1.0, 2.0])).tolist() == [0.0, 2.0]
