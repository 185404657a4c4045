"""Processes, threads and tasks: functions travel, locks do not, each has its own state."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import importlib
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import data, lax
from funcgrad.base import forking
from funcgrad.errors import (
    ArgumentError,
    DtypePromotionError,
    NonFiniteError,
    TimeLimitError,
    UnexpectedTracerError,
    UnpicklableError,
)

ROOT = Path(__file__).parents[2]
X = np.linspace(0.1, 0.9, 4)

# A program as users write it: decorated functions, lambdas and closures beside the main part.
SCRIPT = """
import functools, sys
import numpy as np
import funcgrad as fg

@fg.jit
def decorated(x):
    return np.sin(x)

@functools.partial(fg.jit, static_argnums=1)
def power(x, n):
    return x**n if n else decorated(x)

@fg.jit
def countdown(x, n=3):
    return x

@fg.custom_jvp
def ruled(x):
    return 2 * x

@ruled.defjvp
def ruled_jvp(primals, tangents):
    return 2 * primals[0], 7 * tangents[0]

def plain(x):
    return np.sum(x**2)

class Model:
    scale = 3.0
    def loss(self, x):
        return self.scale * np.sum(x)

FUNCTIONS = [decorated, functools.partial(power, n=2), functools.partial(power, n=0), countdown,
             ruled, fg.vmap(fg.grad(ruled)), fg.jit(fg.grad(plain)), fg.grad(Model().loss),
             fg.jit(Model().loss)]
X = np.linspace(0.1, 0.9, 4)

def apply(f):
    return np.asarray(f(X)).tolist()

def expected():
    return [apply(f) for f in FUNCTIONS]
"""

PARTS = {
    "spawn": """
import multiprocessing
with multiprocessing.get_context("spawn").Pool(1) as pool:
    found = pool.map(apply, FUNCTIONS)
""",
    "fork": """
import multiprocessing
expected()
with multiprocessing.get_context("fork").Pool(1) as pool:
    found = pool.map(apply, FUNCTIONS)
""",
    "forkserver": """
import multiprocessing
with multiprocessing.get_context("forkserver").Pool(1) as pool:
    found = pool.map(apply, FUNCTIONS)
""",
    "concurrent.futures": """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
    found = list(pool.map(apply, FUNCTIONS))
""",
    "joblib": """
from joblib import Parallel, delayed
k = 3.0
FUNCTIONS += [fg.jit(lambda x: k * x), fg.vmap(fg.grad(lambda x: k * x))]
found = Parallel(2)(delayed(apply)(f) for f in FUNCTIONS)
""",
    "cloudpickle": """
import cloudpickle, pickle, subprocess
k = 3.0
FUNCTIONS += [fg.jit(lambda x: k * x), fg.vmap(fg.grad(lambda x: k * x))]
made = cloudpickle.dumps((apply, FUNCTIONS))
code = "import sys, pickle; f, gs = pickle.load(sys.stdin.buffer); print([f(g) for g in gs])"
run = subprocess.run([sys.executable, "-c", code], input=made, capture_output=True, check=True)
found = eval(run.stdout)
""",
    "the same process": """
import copy, pickle
pickled = [pickle.loads(pickle.dumps(f, n)) for n in (2, 3, 4, 5) for f in FUNCTIONS]
found = [apply(f) for f in pickled[-len(FUNCTIONS):]]
for n in (2, 3, 4, 5):
    for f in (decorated, ruled):
        assert pickle.loads(pickle.dumps(f, n)) is f
        assert copy.copy(f) is copy.deepcopy(f) is f
""",
}
NEEDED = {"joblib": "joblib", "cloudpickle": "cloudpickle"}
QUICK = ("spawn", "the same process")


@pytest.mark.parametrize(
    "way", [pytest.param(w, marks=() if w in QUICK else pytest.mark.nightly) for w in PARTS]
)
def test_functions_of_a_script_travel(way: str, tmp_path: Path) -> None:
    if way in NEEDED:
        pytest.importorskip(NEEDED[way])
    main = "".join(f"    {line}\n" for line in PARTS[way].splitlines())
    check = "    assert found == expected(), (found, expected())\n    print('same')\n"
    script = tmp_path / "script.py"
    script.write_text(f"{SCRIPT}\nif __name__ == '__main__':\n{main}{check}")
    run = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.stdout == "same\n", run.stderr


def square(x: Any) -> Any:
    return x * x


def double(x: Any) -> Any:
    return 2.0 * x


def test_what_belongs_to_a_process_says_so() -> None:
    f = fg.jit(square)
    lowered = f.lower(X)
    advice = r"Pickle the jitted function: it compiles again, mostly from the kernels on disk\."
    for value, called in (
        (f.trace(X), "a traced function"),
        (lowered, "a lowered function"),
        (lowered.compile(), "a compiled function"),
    ):
        with pytest.raises(UnpicklableError, match=f"{called} cannot be pickled.*{advice}"):
            pickle.dumps(value)
        assert copy.copy(value) is value
        assert copy.deepcopy([value])[0] is value
    with pytest.raises(UnpicklableError, match="a traced program cannot be pickled"):
        pickle.dumps(fg.make_jaxpr(square)(X))
    for linear in (fg.vjp(square, X)[1], fg.linearize(square, X)[1]):
        with pytest.raises(UnpicklableError, match="Pickle the function and the point"):
            pickle.dumps(linear)
        np.testing.assert_array_equal(copy.deepcopy(linear)(X), linear(X))
    for traced in (fg.linear_transpose(double, X), fg.closure_convert(double, X)[0]):
        with pytest.raises(UnpicklableError, match="Pickle the function that it was made of"):
            pickle.dumps(traced)
        assert copy.deepcopy(traced) is traced
    assert issubclass(UnpicklableError, TypeError)


# Forks.

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
OWN_LOCKS = {
    # Of objects: a child makes its own, or asks for the process first.
    "funcgrad.base.forking": 3,  # what forks wait for; the lock that children renew is a class
    "funcgrad.base.stacks": 1,  # of a thread that another one waits for
    "funcgrad.compiler.runtime.threads": 1,  # of a pool of workers, which a child makes anew
    "funcgrad.compiler.native.llvm_backend": 1,  # of an emission
    "funcgrad.data.batching": 1,  # of a thread that prefetches, which a child does not wait for
    "funcgrad.profiling.stack_sampler": 1,  # of a thread that looks: the same
}


def test_every_lock_is_known_to_forks() -> None:
    made = re.compile(r"threading\.(?:Lock|RLock|Condition|Event|Semaphore|Barrier)\(")
    hidden = re.compile(
        r"from (?:_thread|threading|multiprocessing) import|_thread\.(?:RLock|allocate)"
        r"|import cached_property"
    )
    found = {}
    for file in sorted((ROOT / "funcgrad").rglob("*.py")):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        text = file.read_text()
        known = "from _thread import RLock" if module == "funcgrad.base.forking" else ""
        text = text.replace("funcgrad.base.forking import cached_property", "").replace(
            known, "", 1
        )
        assert not hidden.search(text), module
        if n := len(made.findall(text)):
            found[module] = n
    assert found == OWN_LOCKS


LOCKS = [
    "funcgrad.base.records._LOCK",
    "funcgrad.base.pytree._lock",
    "funcgrad.core.observers._lock",
    "funcgrad.observers.promotion._lock",
    "funcgrad.higher_order.remembered._lock",
    "funcgrad.compiler.runtime.kernel_store._LOCK",
    "funcgrad.compiler.runtime.executable._idle_lock",
    "funcgrad.api.background._TURN",
    "funcgrad.api.compilation._STARTING",
]


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("path", LOCKS)
def test_a_child_finds_every_lock_open(path: str) -> None:
    module, _, name = path.rpartition(".")
    lock = getattr(importlib.import_module(module), name)
    is_held, end = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            end.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait(60)
    child = os.fork()  # which does not wait for the holder either
    if child == 0:
        signal.alarm(20)
        with lock:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    end.set()
    holder.join()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_mends_what_another_thread_left_half_done() -> None:
    mended: list[str] = []
    lock = forking.Lock(lambda: mended.append("child"))
    is_held, end = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            end.wait(60)

    def fork() -> int:
        child = os.fork()
        if child == 0:
            os._exit(len(mended))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert fork() == 0  # nobody holds it
    with lock:
        assert fork() == 0  # the thread that forks goes on with it
    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait(60)
    assert fork() == 1
    end.set()
    holder.join()
    assert not mended


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forks_wait_for_native_calls_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    is_begun, end = threading.Event(), threading.Event()

    def call() -> str:
        is_begun.set()
        end.wait(60)
        return "result"

    found: list[str] = []
    caller = threading.Thread(target=lambda: found.append(forking.between_forks(call)))
    caller.start()
    is_begun.wait(60)
    monkeypatch.setattr(forking, "MOST_SECONDS", 0.05)
    child = os.fork()  # goes on after that time
    if child == 0:
        os._exit(0 if forking.between_forks(lambda: 1) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not found
    monkeypatch.setattr(forking, "MOST_SECONDS", 60.0)
    threading.Timer(0.1, end.set).start()
    child = os.fork()  # waits for the end of the call
    if child == 0:
        os._exit(0 if end.is_set() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    caller.join()
    assert found == ["result"]
    assert forking.between_forks(lambda: 2) == 2


LOGGING = """
import os, threading, numpy as np, funcgrad as fg
import logging

# Whoever forks holds the lock of logging; whoever compiles waits for it within an import.
import sys

def hook(event, args):
    if event == "import" and args[0].startswith("llvmlite"):
        is_compiling.set()
        logging.getLogger("of the host").info("%s is imported", args[0])

is_compiling = threading.Event()
sys.addaudithook(hook)
f = fg.jit(lambda x: np.sin(x) * 3.25)
x = np.linspace(0.0, 1.0, 8)
thread = threading.Thread(target=f, args=(x,))
logging._acquireLock()
thread.start()
assert is_compiling.wait(60)
child = os.fork()
if not child:  # where logging has a new lock
    os._exit(0)
logging._releaseLock()
thread.join()
ok = np.allclose(f(x), np.sin(x) * 3.25)
raise SystemExit(os.waitpid(child, 0)[1] != 0 or not ok)
"""


@needs_fork
def test_a_fork_with_a_lock_that_an_import_waits_for_is_no_deadlock() -> None:
    logged = LOGGING
    if sys.version_info >= (3, 13):  # by other names there
        logged = logged.replace("_acquireLock()", "_lock.acquire()")
        logged = logged.replace("_releaseLock()", "_lock.release()")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", logged],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_children_work_while_threads_of_the_parent_do() -> None:
    is_over = threading.Event()
    dims = iter(range(10**9))

    def work() -> None:
        while not is_over.is_set():
            n = next(dims) % 5 + 1
            with fg.debug_nans(), fg.numpy_dtype_promotion("strict"):
                fg.grad(lambda x: np.sin(x * len(x)).sum())(np.ones(n))
            fg.jit(lambda x, k=float(n): np.cos(x * k) + k)(np.ones(n))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()

    def child(queue: Any) -> None:
        f = fg.jit(lambda x: {"y": np.tanh(x) * 2.5})
        queue.put(float(f(np.ones(3))["y"][0]) + float(fg.grad(np.sin)(0.0)))

    context = multiprocessing.get_context("fork")
    try:
        for _ in range(2):
            queue = context.SimpleQueue()
            process = context.Process(target=child, args=(queue,))
            process.start()
            process.join(60)
            assert process.exitcode == 0
            assert queue.get() == np.tanh(1.0) * 2.5 + 1
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_does_not_wait_for_the_batches_of_its_parent() -> None:
    with data.prefetch(iter(lambda: time.sleep(0.01), 1)) as ahead:
        with ahead._shared._changed:  # as the thread might hold it at the fork
            child = os.fork()
        if child == 0:
            code = 1
            try:
                next(ahead)
            except ArgumentError as error:
                code = 0 if "which was forked. Call prefetch in the child" in str(error) else 2
            ahead.close()
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0


# Tasks and threads.


def nan_of(x: float) -> Any:
    return fg.grad(lambda x: np.log(x) * 0)(x)


async def in_steps(context: Any, run: Callable[[], Any]) -> list[Any]:
    """Within a context, call a function again and again, while other tasks do the same."""
    found = []
    with context:
        for _ in range(5):
            await asyncio.sleep(0)
            try:
                found.append(run())
            except Exception as error:
                found.append(type(error))
    return found


def concrete(x: Any) -> bool:
    return isinstance(x, np.ndarray | np.generic | float)


def is_interpreted() -> bool:
    seen: list[bool] = []
    fg.jit(lambda x: [seen.append(concrete(x)), x][1])(1.0)
    return seen[0]


def drift() -> Any:
    return (np.float32(1) + fg.vmap(lambda x: x + np.float32(1))(np.ones(2))).dtype


def spin() -> Any:
    time.sleep(0.002)
    return lax.fori_loop(0, 10, lambda i, c: c + 1, 0)


SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[], Any], Any, Any]] = {
    "debug_nans": (fg.debug_nans, lambda: float(nan_of(0.0)), NonFiniteError, None),
    "disable_jit": (fg.disable_jit, is_interpreted, True, False),
    "promotion": (
        lambda: fg.numpy_dtype_promotion("strict"), drift, DtypePromotionError, np.float64
    ),
    "limits": (lambda: fg.limits(seconds=0.001), spin, TimeLimitError, 10),
}  # fmt: skip


def same(found: Any, expected: Any) -> bool:
    return expected is None or found == expected


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_tasks_have_their_own_settings(name: str) -> None:
    setting, run, within, outside = SETTINGS[name]

    async def main() -> list[list[Any]]:
        contexts = [setting() if i % 2 else contextlib.nullcontext() for i in range(6)]
        return await asyncio.gather(*(in_steps(c, run) for c in contexts))

    for i, found in enumerate(asyncio.run(main())):
        expected = within if i % 2 else outside
        assert all(same(x, expected) for x in found), (i, found)
        assert i % 2 or not any(isinstance(x, type) and issubclass(x, Exception) for x in found)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_threads_have_their_own_settings(name: str) -> None:
    setting, run, within, outside = SETTINGS[name]

    def caught() -> Any:
        try:
            return run()
        except Exception as error:
            return type(error)

    async def main() -> tuple[Any, Any]:
        loop = asyncio.get_running_loop()
        with setting():  # an executor's thread has no context, to_thread passes that of the task
            return await loop.run_in_executor(None, caught), await asyncio.to_thread(caught)

    in_executor, in_thread = asyncio.run(main())
    assert same(in_executor, outside)
    assert same(in_thread, within)
    with setting(), ThreadPoolExecutor(1) as pool:
        assert same(pool.submit(caught).result(), outside)


def test_tasks_inside_of_transformations() -> None:
    """A function that is transformed may run tasks of its own; others see nothing of it."""

    def by_tasks(x: Any) -> Any:
        async def part(k: int) -> Any:
            await asyncio.sleep(0)
            inner = fg.grad(lambda y: y**3 * k)(x)
            await asyncio.sleep(0)
            return inner

        async def main() -> list[Any]:
            return await asyncio.gather(*(part(k) for k in range(3)))

        return sum(asyncio.run(main()))

    assert fg.grad(by_tasks)(2.0) == 36.0
    np.testing.assert_array_equal(fg.vmap(by_tasks)(np.array([1.0, 2.0])), [9.0, 36.0])
    assert fg.jit(fg.grad(by_tasks))(2.0) == 36.0


def test_axis_names_belong_to_their_task() -> None:
    async def mapped(k: float) -> Any:
        await asyncio.sleep(0)
        f = fg.vmap(lambda x: lax.psum(x * k, "i"), axis_name="i")
        await asyncio.sleep(0)
        return f(np.ones(int(k)))[0]

    async def main() -> list[Any]:
        return await asyncio.gather(*(mapped(float(k)) for k in range(1, 5)))

    assert asyncio.run(main()) == [1.0, 4.0, 9.0, 16.0]


def test_a_thread_inside_of_a_transformation_is_outside_of_it() -> None:
    results: list[Any] = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: results.append(np.sin(X).sum() + nothing()))
        thread.start()
        thread.join()
        return x * 2

    def nothing() -> Any:
        return fg.numpy.zeros(()) + fg.grad(lambda y: y * y)(3.0)

    for transformed in (fg.grad(f), fg.jit(f)):
        transformed(1.0)
    assert fg.make_jaxpr(f)(1.0).eqns[0].primitive.name in ("mul", "scale")
    np.testing.assert_array_equal(results, [np.sin(X).sum() + 6.0] * len(results))
    assert len(results) >= 3


def test_a_traced_value_in_another_thread_says_so() -> None:
    caught: list[Any] = []

    def f(x: Any) -> Any:
        def use() -> None:
            try:
                fg.numpy.sin(x)
            except UnexpectedTracerError as error:
                caught.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return x

    fg.jit(f)(1.0)
    assert len(caught) == 1


def test_many_threads_open_and_close_watches() -> None:
    before = len(fg.core.observers._attached)

    def work() -> None:
        for _ in range(200):
            with fg.debug_nans(), fg.numpy_dtype_promotion("strict"):
                pass

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(fg.core.observers._attached) == before
