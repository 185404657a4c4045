"""``python -m tests.guest SCENARIO``: what a host sees while funcgrad works in its process.

A second thread looks at the state of the process all the time, and so does every callback and
signal handler of a scenario. What differs from before is printed, one line each.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import itertools
import locale
import logging
import os
import platform
import random
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.testing  # not by a thread while another forks

ROOT = Path(__file__).parents[1]
TINY = 5e-324  # a subnormal number
BIG = [0.1, 3.0, 2.0**-53, 1e16]


@cache
def _openblas(path: str) -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """How a loaded library is asked for its number of threads, and told another one."""
    library = ctypes.CDLL(path)
    for prefix, suffix in itertools.product(("scipy_", ""), ("64_", "")):
        names = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
        get, put = (getattr(library, name, None) for name in names)
        if get is not None and put is not None:
            return get, put
    return None


def _blas_threads() -> dict[str, int]:
    """How many threads each loaded OpenBLAS uses: wheels of NumPy and of SciPy have one each."""
    paths: set[str] = set()
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/maps").read_text().splitlines()
        paths = {line.split()[-1] for line in lines if "openblas" in line}
    return {path: found[0]() for path in sorted(paths) if (found := _openblas(path))}


def _blas_of(path: str) -> str:
    return f"threads of BLAS in {Path(path).parent.name}"


def _arithmetic() -> bytes:
    """Bits that tell how subnormals are treated and how sums are rounded.

    Where subnormals count as zeros, a comparison of numbers would not tell them from these.
    """
    a, b, c, d = BIG
    return struct.pack("5d", TINY * 1.0, a * b, 1.0 + c, d + 1.0, -d - 1.0)


@contextlib.contextmanager
def flushed() -> Iterator[None]:
    """This thread takes subnormal numbers for zeros: only where `can_flush`."""
    library = ctypes.CDLL(None)
    state = (ctypes.c_uint32 * 8)()  # C's ``fenv_t``, which ends with the word for vectors
    library.fegetenv(state)
    before = state[7]
    state[7] |= 0x8040
    library.fesetenv(state)
    yield
    state[7] = before
    library.fesetenv(state)


can_flush = sys.platform == "linux" and platform.machine() == "x86_64"


def _classes() -> dict[str, Any]:
    """The contents of classes and modules that others might change."""
    found: dict[str, Any] = {}
    for name in ("numpy", "scipy", "functools", "dataclasses", "threading", "pickle", "copyreg"):
        module = sys.modules.get(name)
        if module is not None:
            found |= {
                f"{name}.{key}": id(value)
                for key, value in vars(module).copy().items()
                if isinstance(value, type) or callable(value)
            }
    dispatcher = sys.modules.get("numba.core.dispatcher")
    if hasattr(dispatcher, "Dispatcher"):
        for kind in dispatcher.Dispatcher.__mro__:
            found |= {
                f"{kind.__name__}.{key}": id(value) for key, value in vars(kind).copy().items()
            }
    return found


def _handlers() -> list[str]:
    numbers = sorted(signal.valid_signals())
    return [repr(signal.getsignal(number)) for number in numbers]


CHECKS: dict[str, Callable[[], Any]] = {
    "sys.meta_path": lambda: list(map(id, sys.meta_path)),
    "sys.path_hooks": lambda: list(map(id, sys.path_hooks)),
    "sys.path": lambda: list(sys.path),
    "collector enabled": gc.isenabled,
    "collector thresholds": gc.get_threshold,
    "collector frozen": gc.get_freeze_count,
    "floating point": _arithmetic,
    "NumPy's error state": np.geterr,
    "NumPy's error call": np.geterrcall,
    "signal handlers": _handlers,
    "warning filters": lambda: list(warnings.filters),
    "showwarning": lambda: id(warnings.showwarning),
    "logging": lambda: (logging.root.level, list(logging.root.handlers), logging.root.disabled),
    "os.environ": lambda: dict(os.environ),
    "recursion limit": sys.getrecursionlimit,
    "excepthook": lambda: (id(sys.excepthook), id(threading.excepthook), id(sys.unraisablehook)),
    "trace and profile": lambda: (sys.gettrace(), sys.getprofile()),
    "switch interval": sys.getswitchinterval,
    "locale": lambda: locale.setlocale(locale.LC_ALL),
    "random numbers": lambda: hash(random.getstate()),
    "streams": lambda: (id(sys.stdout), id(sys.stderr), id(sys.stdin)),
    "working directory": os.getcwd,
}
"""What is the same at every moment, in every thread."""
if hasattr(os, "sched_getaffinity"):
    CHECKS["processors"] = lambda: os.sched_getaffinity(os.getpid())  # of the main thread


def _stand_ins() -> set[str]:
    """Modules that are not what an import system puts there."""
    found = set()
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if module is None or name in ("__main__", "cython_runtime") or name.startswith("_cython_"):
            continue  # the last two are made by every module that Cython has compiled
        if spec is None or (spec.has_location and not getattr(module, "__file__", None)):
            found.add(name)
    return found


class Watch:
    """Compares the state of the process with what it was when the watch began."""

    def __init__(self) -> None:
        gc.collect()
        self.before = {name: check() for name, check in CHECKS.items()}
        self.stand_ins = _stand_ins()
        self.classes = _classes()
        self.blas = _blas_threads()
        self.found: dict[str, str] = {}
        self.looks = 0
        self.lock = threading.RLock()

    @contextlib.contextmanager
    def host_changes(self, name: str) -> Iterator[None]:
        """Let the host itself change something."""
        with self.lock:
            yield
            self.before[name] = CHECKS[name]()

    def look(self) -> None:
        """Note what differs now."""
        for name, check in CHECKS.items():
            with self.lock:
                now = check()
                if now != self.before[name]:
                    self.found.setdefault(name, f"{self.before[name]!r} -> {now!r}"[:300])
        new = _stand_ins() - self.stand_ins
        if new:  # an extension module has no spec for a moment, in every import
            time.sleep(0.002)
            new &= _stand_ins()
        if new:
            self.found.setdefault("sys.modules", f"stand-ins: {sorted(new)}")
        self.looks += 1

    def look_closely(self) -> None:
        """Look at what takes longer, too."""
        self.look()
        now = _classes()
        changed = [key for key, value in self.classes.items() if now.get(key) != value]
        if changed:
            self.found.setdefault("classes of others", str(changed[:5]))
        # A library that is loaded meanwhile begins with as many as NumPy's.
        usual = next(iter(self.blas.values()), 0)
        for path, n_threads in _blas_threads().items():
            if n_threads != self.blas.setdefault(path, usual or n_threads):
                self.found.setdefault(_blas_of(path), f"{self.blas[path]} -> {n_threads}")


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    """Look all the time in a thread of its own, and closely at the end."""
    watch = Watch()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            watch.look_closely()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield watch
    finally:
        is_over.set()
        thread.join()
        watch.look_closely()


X = np.linspace(0.1, 1.0, 7)
SCENARIOS: dict[str, Callable[[Watch], None]] = {}


def scenario(function: Callable[[Watch], None]) -> Callable[[Watch], None]:
    SCENARIOS[function.__name__] = function
    return function


def funcgrad() -> Any:
    return importlib.import_module("funcgrad")


@scenario
def imports(watch: Watch) -> None:
    assert "funcgrad" not in sys.modules
    funcgrad()


@scenario
def first_kernel(watch: Watch) -> None:
    fg = funcgrad()
    fg.jit(lambda x: np.sin(x) * 3 + x.sum())(X)
    fg.grad(lambda x: np.tanh(x).sum())(X)


@scenario
def compilations(watch: Watch) -> None:
    fg = funcgrad()
    for k in range(int(os.environ.get("GUEST_COMPILATIONS", "12"))):
        shape = (k % 4 + 2, 5)
        fg.jit(lambda x, k=k: np.cumsum(np.cos(x * (k + 0.5)), 0) @ x.T + k)(np.ones(shape))
        if not k % 4:
            fg.jit(lambda x: np.linalg.solve(x, x[0]) + np.fft.fft(x[1]).real)(np.eye(k + 3))


@scenario
def stacks_of_matrices(watch: Watch) -> None:
    fg = funcgrad()
    stack = np.random.default_rng(0).normal(size=(20, 60, 60))
    for function in (np.linalg.svd, np.linalg.eigh, np.linalg.qr):
        fg.jit(function)(stack)
    inverse = fg.jit(np.linalg.inv)(np.ones((2, 140, 140)) + np.eye(140))
    np.testing.assert_allclose(inverse[0] @ (np.ones(140) * 141), np.ones(140))


@scenario
def failures(watch: Watch) -> None:
    fg = funcgrad()

    def fail(x: Any) -> Any:
        raise KeyError("of the host")

    def check(x: Any) -> Any:
        return fg.pure_callback(fail, x, x * 2)

    for function in (check, lambda x: np.linalg.cholesky(-np.outer(x, x)), lambda x: x @ x[:3]):
        with contextlib.suppress(Exception):
            fg.jit(function)(X)
    with contextlib.suppress(Exception):
        fg.grad(lambda x: x[10])(X)


@scenario
def interrupts(watch: Watch) -> None:
    fg = funcgrad()
    handled = signal.getsignal(signal.SIGINT)
    assert handled is signal.default_int_handler
    for k in range(6):
        timer = threading.Timer(0.02 * (k + 1), signal.raise_signal, [signal.SIGINT])
        with contextlib.suppress(KeyboardInterrupt):
            timer.start()
            fg.jit(lambda x, k=k: np.exp(x * k) + np.cos(np.cumsum(x)) * np.tanh(x - k))(X)
            time.sleep(60)  # where compiling took less
        timer.join()
    found = fg.jit(lambda x: np.exp(x) + np.cos(np.cumsum(x)))(X)
    np.testing.assert_allclose(found, np.exp(X) + np.cos(np.cumsum(X)))


@scenario
def callbacks(watch: Watch) -> None:
    fg = funcgrad()
    x = X.astype(np.float32)

    def look(x: Any) -> Any:
        watch.look_closely()
        return np.asarray(x)

    like = np.zeros_like(x)

    def step(carry: Any, _: Any) -> Any:
        carry = fg.pure_callback(look, like, carry * np.float32(1.5)) - carry
        return carry, carry

    fg.jit(lambda x: fg.pure_callback(look, like, np.sin(x)) * 2)(x)
    fg.jit(lambda x: fg.lax.scan(step, x, None, length=5))(x)
    fg.jit(fg.grad(lambda x: (fg.debug.callback(look, x), np.sin(x).sum())[1]))(x)


@scenario
def signals(watch: Watch) -> None:
    fg = funcgrad()
    seen: list[int] = []

    def handler(number: int, frame: Any) -> None:
        seen.append(number)
        watch.look_closely()

    with watch.host_changes("signal handlers"):
        before = signal.signal(signal.SIGALRM, handler)
    spin = fg.jit(
        lambda x: fg.lax.fori_loop(
            0, 2_000_000_000, lambda i, x: x * np.float32(0.999) + np.float32(1e-3), x
        )
    )
    for k in range(3):
        signal.setitimer(signal.ITIMER_REAL, 0.3 + 0.2 * k)
        with contextlib.suppress(Exception), fg.limits(seconds=1.0):
            spin(np.float32(0.5))
    assert seen
    with watch.host_changes("signal handlers"):
        signal.signal(signal.SIGALRM, before)


@scenario
def forks(watch: Watch) -> None:
    fg = funcgrad()

    def compute(k: int) -> None:
        found = fg.jit(lambda x: np.sin(x) * k + np.exp(-x))(X)
        np.testing.assert_allclose(found, np.sin(X) * k + np.exp(-X))

    threads = [threading.Thread(target=compute, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for k in range(3):
        child = os.fork()
        if not child:
            os._exit(_status(lambda k=k: compute(k + 10), watch))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == 0, status
    for thread in threads:
        thread.join()


def _status(work: Callable[[], None], watch: Watch) -> int:
    """The exit status of a child."""
    signal.alarm(60)
    watch.lock = threading.RLock()
    with watch.host_changes("random numbers"):
        pass  # Python draws a seed for children
    work()
    watch.look()
    print("".join(f"in a child: {what}: {how}\n" for what, how in watch.found.items()), flush=True)
    return int(bool(watch.found))


@scenario
def small_stacks(watch: Watch) -> None:
    fg = funcgrad()
    rows = np.linspace(0.0, 1.0, 64 * 48).reshape(64, 48)
    works = [
        fg.jit(lambda x: np.fft.fft(x, axis=0).real),
        fg.jit(lambda x: np.sort(x, axis=0) @ x.T),
        fg.jit(lambda x: np.linalg.solve(x[:48] + 50 * np.eye(48), x[0])),
        fg.jit(lambda x: fg.lax.scan(lambda c, row: (c + np.sin(row), c), x[0], x)),
    ]
    expected = [work(rows) for work in works]
    found: list[Any] = []
    threading.stack_size(64 * 1024)
    thread = threading.Thread(target=lambda: found.extend(work(rows) for work in works))
    thread.start()
    thread.join()
    assert threading.stack_size(0) == 64 * 1024
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(a[0]), np.asarray(b[0]))


@cache
def _double() -> Any:
    """A function that the host has compiled and compiles no more.

    While Numba compiles, it changes the warning filters of the process, imports and registers.
    """
    double = importlib.import_module("numba").njit(lambda x: 2 * x)
    double(1.0)
    double.disable_compile()
    return double


@scenario
def numba_of_the_host(watch: Watch) -> None:
    double = _double()
    fg = funcgrad()
    with contextlib.suppress(Exception):
        fg.grad(lambda x: double(x))(1.0)
    fg.jit(lambda x: np.sin(x) + 1)(X)
    assert double(2.0) == 4.0


# Changes on purpose: each is to be seen.
class _Finder:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        return None


@contextlib.contextmanager
def _put(container: Any, key: Any, value: Any) -> Iterator[None]:
    before = container[key]
    container[key] = value
    yield
    container[key] = before


@contextlib.contextmanager
def _with(change: Callable[[], Any], undo: Callable[[], Any]) -> Iterator[None]:
    change()
    yield
    undo()


def _no_module() -> None:
    sys.modules["shutil_of_nobody"] = type(sys)("shutil_of_nobody")


@contextlib.contextmanager
def _one_thread_more(path: str) -> Iterator[None]:
    """Change what every machine notices, whatever number it began with, and load the library."""
    found = _openblas(path)
    assert found is not None
    get, put = found
    n_threads = get()
    put(n_threads + 1)
    yield
    put(n_threads)


@contextlib.contextmanager
def _another_locale() -> Iterator[None]:
    name = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C.UTF-8" if name == "C" else "C")
    yield
    locale.setlocale(locale.LC_CTYPE, name)


_BLAS_OF_WHEELS = sorted(map(str, Path(np.__file__).parents[1].glob("*.libs/*openblas*")))

BROKEN: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "sys.modules": lambda: _with(_no_module, lambda: sys.modules.pop("shutil_of_nobody")),
    "sys.meta_path": lambda: _with(
        lambda: sys.meta_path.append(_Finder()), lambda: sys.meta_path.pop()
    ),
    "sys.path": lambda: _with(lambda: sys.path.append("nowhere"), lambda: sys.path.pop()),
    "sys.path_hooks": lambda: _with(
        lambda: sys.path_hooks.append(_Finder), lambda: sys.path_hooks.pop()
    ),
    "excepthook": lambda: _put(vars(sys), "excepthook", print),
    "showwarning": lambda: _put(vars(warnings), "showwarning", print),
    "working directory": lambda: _with(lambda: os.chdir("/"), lambda: os.chdir(ROOT)),
    "collector enabled": lambda: _with(gc.disable, gc.enable),
    "collector thresholds": lambda: _with(
        lambda: gc.set_threshold(7, 7, 7), lambda: gc.set_threshold(700, 10, 10)
    ),
    "collector frozen": lambda: _with(gc.freeze, gc.unfreeze),
    "warning filters": lambda: _with(
        lambda: warnings.simplefilter("error"), lambda: warnings.filters.pop(0)
    ),
    "logging": lambda: _with(
        lambda: logging.root.setLevel(1), lambda: logging.root.setLevel(logging.WARNING)
    ),
    "os.environ": lambda: _with(
        lambda: os.environ.update(GUEST="1"), lambda: os.environ.pop("GUEST")
    ),
    "recursion limit": lambda: _with(
        lambda: sys.setrecursionlimit(5000), lambda: sys.setrecursionlimit(1000)
    ),
    "switch interval": lambda: _with(
        lambda: sys.setswitchinterval(0.1), lambda: sys.setswitchinterval(0.005)
    ),
    "signal handlers": lambda: _with(
        lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
        lambda: signal.signal(signal.SIGUSR1, signal.SIG_DFL),
    ),
    "classes of others": lambda: _put(vars(np), "sin", np.cos),
    "streams": lambda: _put(vars(sys), "stderr", io.StringIO()),
    "random numbers": lambda: _with(random.random, lambda: None),
    "locale": _another_locale,
    **{_blas_of(path): partial(_one_thread_more, path) for path in _BLAS_OF_WHEELS},
}

if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1:
    BROKEN["processors"] = lambda: _with(
        lambda: os.sched_setaffinity(os.getpid(), {min(os.sched_getaffinity(0))}),
        lambda: None,
    )


def broken(name: str) -> Watch:
    """What is seen of a change that lasts for a moment."""
    with watched() as watch, BROKEN[name]():
        seen = watch.looks  # of which one may be under way: a change can take a while itself
        while watch.looks < seen + 3:
            time.sleep(0.001)
    return watch


def main(name: str) -> int:
    """Print what differs."""
    if name == numba_of_the_host.__name__:
        _double()
    with watched() as watch:
        SCENARIOS[name](watch)
    size = threading.stack_size(0)  # to ask is to set it: no other thread can look
    if size:
        watch.found["stack size of threads"] = f"0 -> {size}"
    for what, how in watch.found.items():
        print(f"{what}: {how}")
    print(f"looks: {min(watch.looks, 3)}")
    return int(bool(watch.found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
