"""One compiled function in many threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.nest.kernel import Kernel
from funcgrad.compiler.runtime.threads import is_available
from funcgrad.errors import ArgumentError
from tests.compiler.plans import steps_of

THREADS = 8


def together(work: Callable[[int], Any]) -> list[Any]:
    """The results of ``work(k)`` in threads that start at the same moment."""
    barrier = threading.Barrier(THREADS)

    def run(k: int) -> Any:
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: np.sum(np.sin(x) ** 2) + np.cumsum(x)[-1],
    lambda x: (x @ x.T if x.ndim == 2 else x * 2) - np.mean(x),
    lambda x: np.sort(x, axis=-1) * 2 + np.max(x),  # NumPy and kernels in turn
    fg.grad(lambda x: np.sum(np.tanh(x) * np.max(x))),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_other_shapes_in_every_thread(number: int) -> None:
    fun = FUNCTIONS[number]
    f = fg.jit(fun)

    def work(k: int) -> None:
        rng = np.random.default_rng(k)
        arrays = [rng.normal(size=shape) for shape in ((3 + k,), (k + 1, 4), (50,), (2, 3 + k % 2))]
        expected = [fun(x) for x in arrays]
        for turn in range(40):
            x, reference = arrays[turn % 4], expected[turn % 4]
            np.testing.assert_allclose(f(x), reference, rtol=1e-12, atol=1e-12)

    together(work)
    info = f.cache_info()
    assert info.calls == THREADS * 40
    assert info.traces >= 8 + 8 + 1 + 2 - 1  # (1, 4) ... may coincide with (2, 4)


def test_one_shape_in_every_thread_at_once() -> None:
    for k in range(10):
        traced = []
        f = fg.jit(lambda x, k=k, traced=traced: (traced.append(k), np.sum(x * k) + x)[1])
        x = np.arange(1000.0)
        for found in together(lambda _, f=f, x=x: f(x)):
            np.testing.assert_allclose(found, np.sum(x * k) + x)
        assert 1 <= len(traced) <= THREADS


def test_transformations_in_every_thread() -> None:
    inner = fg.jit(lambda x: np.sin(x) * x)

    def work(k: int) -> None:
        x = np.linspace(0.0, 1.0, 5 + k)
        for _ in range(10):
            slope = fg.jit(fg.vmap(fg.grad(inner)))(x)
            np.testing.assert_allclose(slope, np.cos(x) * x + np.sin(x), rtol=1e-12)
            curvature = fg.vmap(fg.grad(fg.grad(inner)))(x)
            np.testing.assert_allclose(curvature, 2 * np.cos(x) - np.sin(x) * x, atol=1e-12)

    together(work)


def test_donation_in_every_thread() -> None:
    f = fg.jit(lambda x: np.cumsum(x) + x, donate_argnums=0)

    def work(k: int) -> None:
        x = np.full(100 + k % 2, float(k))
        for _ in range(50):
            np.testing.assert_array_equal(f(x.copy()), np.cumsum(x) + x)

    together(work)


def test_errors_in_some_threads_stay_there() -> None:
    f = fg.jit(lambda a: np.linalg.solve(a, np.ones(2)) * 2)

    def work(k: int) -> None:
        for _ in range(30):
            if k % 2:
                with pytest.raises(np.linalg.LinAlgError):
                    f(np.zeros((2, 2)))
            else:
                np.testing.assert_allclose(f(np.eye(2) * (k + 1)), np.full(2, 2 / (k + 1)))

    together(work)


def test_the_mode_of_subnormals_belongs_to_the_call() -> None:
    f = fg.jit(lambda x: np.cumsum(x * np.float32(0.5)))
    tiny = np.full(2000, 1e-40, np.float32)

    def work(k: int) -> None:
        for _ in range(50):
            if k % 2:
                assert f(tiny).max() == 0.0
            else:
                assert (tiny * np.float32(0.5)).min() > 0.0

    together(work)


# Large kernels are split into parts that several threads run.

TALL = np.random.default_rng(0).normal(size=(3001, 700)).astype(np.float32)
LARGE: dict[str, Callable[[Any], Any]] = {
    "points": lambda x: np.exp(x) * 2 + x,
    "transposed": lambda x: np.sqrt(np.abs(x.T)) - 1,
    "rows": lambda x: np.sum(x * x, axis=1),
    "softmax": fg.nn.softmax,
    "gradient of softmax": fg.grad(lambda x: np.sum(fg.nn.softmax(x) ** 2)),
    "columns": lambda x: np.sum(x * x, axis=0) + np.sum(x),
    "columns of stacks": lambda x: np.sum(x.reshape(3001, 7, -1) ** 2, axis=1),
    "running sums": lambda x: np.cumsum(x, axis=1),
    "one loop": lambda x: fg.lax.scan(lambda c, _: (np.exp(-c), None), x, None, length=3)[0],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LARGE)
def test_parts_of_kernels(name: str) -> None:
    one = fg.jit(LARGE[name], threads=1)(TALL)
    several = fg.jit(LARGE[name], threads=4)
    for _ in range(3):
        np.testing.assert_array_equal(several(TALL), one)


@pytest.mark.skipif(not is_available(), reason="kernels run on one thread here")
def test_only_large_kernels_are_split() -> None:
    split = fg.jit(LARGE["softmax"], threads=4)
    alone = fg.jit(LARGE["softmax"], threads=1)
    assert "parts" in steps_of(split.lower(TALL).as_text())
    assert "parts" not in steps_of(split.lower(TALL[:10]).as_text())
    assert "parts" not in steps_of(alone.lower(TALL).as_text())


def test_one_pool_for_many_programs_at_once() -> None:
    functions = [fg.jit(f, threads=4) for f in LARGE.values()]
    expected = [fg.jit(f, threads=1)(TALL) for f in LARGE.values()]

    def work(k: int) -> bool:
        chosen = [(k + i) % len(functions) for i in range(len(functions))]
        return all(np.array_equal(functions[i](TALL), expected[i]) for i in chosen)

    assert all(together(work))


@pytest.mark.skipif(not is_available(), reason="no workers here")
def test_programs_of_few_threads_wake_few_workers() -> None:
    """Others that a wider program has left asleep sleep on, and the one that is needed comes."""
    program = (
        "import threading, time, numpy as np, funcgrad as fg\n"
        "x = np.linspace(0.0, 1.0, 1 << 18)\n"
        "fg.jit(lambda x: np.exp(x), threads=40)(x)\n"
        "awake = set()\n"
        "def switches():\n"
        "    found = {}\n"
        "    for thread in threading.enumerate():\n"
        "        name, _, number = thread.name.rpartition('-')\n"
        "        if name == 'funcgrad-worker':\n"
        "            with open(f'/proc/self/task/{thread.native_id}/status') as status:\n"
        "                lines = dict(line.split(':') for line in status)\n"
        "            found[int(number)] = int(lines['voluntary_ctxt_switches'])\n"
        "            awake.discard(number)\n"
        "            if lines['State'].split()[0] != 'S':\n"
        "                awake.add(number)\n"
        "    return found\n"
        "two = fg.jit(lambda x: np.exp(x) * 2.0, threads=2)\n"
        "expected = np.exp(x) * 2.0\n"
        "before = {}\n"
        "while before != switches() or awake:\n"  # until all sleep
        "    before = switches()\n"
        "    time.sleep(0.1)\n"
        "for _ in range(50):\n"
        "    np.testing.assert_allclose(two(x), expected, rtol=1e-15)\n"
        "    time.sleep(0.002)\n"
        "after = switches()\n"
        "print(len(after), *[k for k in after if after[k] != before[k]])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["39", "1"], "")


@pytest.mark.skipif(not hasattr(os, "fork") or not is_available(), reason="no workers here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_its_own_workers() -> None:
    """What was planned before runs alone in the child; what is planned there starts workers."""
    program = (
        "import os, threading, numpy as np, funcgrad as fg\n"
        "def workers():\n"
        "    names = [thread.name for thread in threading.enumerate()]\n"
        "    return sorted(name for name in names if name.startswith('funcgrad-worker-'))\n"
        "every = [f'funcgrad-worker-{k}' for k in (1, 2, 3)]\n"
        "x = np.linspace(0, 1, 2_000_000)\n"
        "f = fg.jit(lambda x: np.exp(x) + 1, threads=4)\n"
        "y = f(x)\n"
        "assert workers() == every\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    assert not workers()\n"
        "ok = np.array_equal(f(x), y)\n"
        "assert workers() == ([] if not child else every)\n"
        "g = fg.jit(lambda x: np.exp(x) + 2, threads=4)\n"
        "ok = ok and np.allclose(g(x), y + 1) and workers() == every\n"
        "if not child:\n"
        "    os._exit(not ok)\n"
        "raise SystemExit(os.waitpid(child, 0)[1] != 0 or not ok)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_writes_to_no_memory_but_its_own() -> None:
    program = (
        "import os, numpy as np, funcgrad as fg\n"
        "x = np.linspace(0, 1, 2_000_000)\n"
        "m = np.linspace(0, 1, 512 * 512).reshape(512, 512)\n"
        "f = fg.jit(lambda x: np.exp(x) + 1, threads=4)\n"
        "g = fg.jit(lambda m: m @ m, threads=4)\n"
        "y, z = f(x), g(m)\n"
        "child = os.fork()\n"
        "others = [np.zeros(n) for n in range(1, 128) for _ in range(4)]\n"
        "ok = np.array_equal(f(x), y) and np.array_equal(g(m), z)\n"
        "ok = ok and not any(other.any() for other in others)\n"
        "if not child:\n"
        "    os._exit(not ok)\n"
        "raise SystemExit(os.waitpid(child, 0)[1] != 0 or not ok)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_compiles_while_its_parent_does() -> None:
    program = (
        "import os, threading, numpy as np, funcgrad as fg\n"
        "from funcgrad.compiler.native import llvm_backend\n"
        "fg.jit(np.exp)(1.0)\n"
        "x, started = np.linspace(0, 1, 8), threading.Event()\n"
        "calls = llvm_backend._Generator\n"
        "emitted = calls.emit\n"
        "def slowly(*args):\n"
        "    started.set()\n"
        "    threading.Event().wait(0.5)\n"
        "    return emitted(*args)\n"
        "calls.emit = slowly\n"
        "compiling = threading.Thread(target=fg.jit(lambda x: np.sin(x) * 3.25), args=(x,))\n"
        "compiling.start()\n"
        "assert started.wait(60)\n"
        "child = os.fork()\n"
        "y = fg.jit(lambda x: np.sin(x) * 4.5)(x)\n"
        "ok = np.allclose(y, np.sin(x) * 4.5)\n"
        "if not child:\n"
        "    os._exit(not ok)\n"
        "compiling.join()\n"
        "raise SystemExit(os.waitpid(child, 0)[1] != 0 or not ok)\n"
    )
    environment = {**os.environ, "FUNCGRAD_CACHE_DIR": "off"}
    run = subprocess.run([sys.executable, "-c", program], timeout=60, env=environment)
    assert run.returncode == 0


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_numbers_of_threads_are_checked(threads: Any) -> None:
    with pytest.raises(ArgumentError, match="threads must be a positive integer"):
        fg.jit(np.exp, threads=threads)


LIMIT = 3
limited = fg.jit(lambda x: np.sum(np.sin(x) * x), threads=LIMIT)
rows = np.linspace(0.1, 1.0, 6).reshape(2, 3)

# Everything that may be made of a function that has a limit.
DERIVED: dict[str, Callable[[], Any]] = {
    "call": lambda: limited(rows),
    "lower": lambda: limited.lower(rows),
    "grad": lambda: fg.grad(limited)(rows),
    "value_and_grad": lambda: fg.value_and_grad(limited)(rows),
    "vjp": lambda: fg.vjp(limited, rows)[1](1.0),
    "jvp": lambda: fg.jvp(limited, (rows,), (rows,)),
    "linearize": lambda: fg.linearize(limited, rows)[1](rows),
    "jacfwd": lambda: fg.jacfwd(limited)(rows),
    "jacrev": lambda: fg.jacrev(limited)(rows),
    "hessian": lambda: fg.hessian(limited)(rows),
    "vmap": lambda: fg.vmap(limited)(rows),
    "grad of vmap": lambda: fg.grad(lambda x: fg.vmap(limited)(x).sum())(rows),
    "vmap of grad": lambda: fg.vmap(fg.grad(limited))(rows),
    "checkpoint": lambda: fg.grad(fg.checkpoint(limited))(rows),
    "jit": lambda: fg.jit(limited)(rows),
    "jit of grad": lambda: fg.jit(fg.grad(limited))(rows),
    "jit of vmap of grad": lambda: fg.jit(fg.vmap(fg.grad(limited)))(rows),
    "jit of jit": lambda: fg.jit(fg.jit(lambda x: limited(x) + 1))(rows),
    "scan": lambda: fg.lax.scan(lambda c, x: (c + limited(x), c), 0.0, rows),
    "grad of scan": lambda: fg.grad(
        lambda x: fg.lax.scan(lambda c, y: (c + limited(y), None), 0.0, x)[0]
    )(rows),
    "while_loop": lambda: fg.lax.while_loop(lambda c: c < 1.0, lambda c: c + limited(c) + 1, 0.1),
    "cond": lambda: fg.lax.cond(True, limited, lambda x: 0.0, rows),
    "partial": lambda: fg.jit(threads=LIMIT)(np.sin)(rows),
}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of threads for which kernels are made."""
    found: list[int] = []
    split = Kernel.split
    monkeypatch.setattr(Kernel, "split", lambda k, n: found.append(n) or split(k, n))
    limited.clear_cache()
    return found


@pytest.mark.sampled(6)
@pytest.mark.skipif(not is_available(), reason="one thread only")
@pytest.mark.parametrize("name", DERIVED)
def test_a_limit_holds_for_what_is_made_of_a_function(name: str, seen: list[int]) -> None:
    DERIVED[name]()
    assert set(seen) == {LIMIT}


@pytest.mark.skipif(not is_available(), reason="one thread only")
def test_a_limit_of_the_whole_comes_before_those_of_the_parts(seen: list[int]) -> None:
    fg.jit(lambda x: limited(x) + fg.jit(np.sum, threads=2)(x))(rows)
    assert set(seen) == {2}
    seen.clear()
    fg.jit(lambda x: limited(x) + 1.0, threads=5)(rows)
    assert set(seen) == {5}


NO_THREADS = """
import _thread, threading
import numpy as np, funcgrad as fg

def refuse(*args, **kwargs):
    raise RuntimeError("can't create new thread at interpreter shutdown")

_thread.start_new_thread = threading._start_new_thread = refuse
x = np.linspace(0.0, 1.0, 1_000_000).reshape(1000, 1000)
f = fg.jit(lambda x: (np.exp(x) * x, x @ x), threads=4)
found, product = f(x)
np.testing.assert_allclose(found, np.exp(x) * x, rtol=1e-14)
np.testing.assert_allclose(product, x @ x, rtol=1e-12)
"""


def test_a_process_that_ends_starts_no_threads() -> None:
    """Since Python 3.12 none can be started then; what was begun is still computed."""
    environment = {**os.environ, "FUNCGRAD_CACHE_DIR": "off"}
    command = [sys.executable, "-W", "error", "-c", NO_THREADS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
