"""Ctrl-C, and limits of time and memory: what runs is stopped, what was there is unharmed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.errors import ArgumentError, MemoryLimitError, TimeLimitError

# Every one runs for minutes if nobody stops it; `n` is what a call that ends at once is given.
LONG: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "counted loop of numbers": (
        lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 0.999 + 1.0, x),
        lambda n: (1.0, n),
    ),
    "loop until": (
        lambda x, n: lax.while_loop(lambda c: c < n, lambda c: c + 1.0, x),
        lambda n: (0.0, float(n)),
    ),
    "loop in a loop": (
        lambda x, n: lax.fori_loop(
            0, n, lambda i, c: lax.fori_loop(0, 100, lambda j, d: d * 0.9 + 1.0, c), x
        ),
        lambda n: (1.0, n),
    ),
    "loop of arrays": (
        lambda x, n: lax.fori_loop(0, n, lambda i, c: np.sin(c) * 0.999 + 1.0, x),
        lambda n: (np.ones(300), n),
    ),
    "loop of solutions": (
        lambda x, n: lax.fori_loop(0, n, lambda i, c: np.linalg.solve(c @ c.T + np.eye(8), c), x),
        lambda n: (np.ones((8, 8)), n),
    ),
    "lanes": (
        lambda x, n: fg.vmap(lambda y: lax.fori_loop(0, n, lambda i, c: c * 0.999 + y, y))(x),
        lambda n: (np.ones(2000), n),
    ),
    "gradient of a loop until": (
        lambda x, n: fg.grad(
            lambda y: lax.while_loop(
                lambda c: c[1] < n,
                lambda c: (np.sin(c[0]) * y, c[1] + 1),
                (y, 0),
                max_checkpoints=4,
            )[0]
        )(x),
        lambda n: (1.0, n),
    ),
}
ENDLESS, SHORT = 10**12, 10


@pytest.mark.parametrize("name", LONG)
def test_programs_end_at_the_limit_and_work_afterwards(name: str) -> None:
    function, arguments = LONG[name]
    jitted = fg.jit(function)
    expected = jitted(*arguments(SHORT))
    start = time.thread_time()
    with (
        pytest.raises(TimeLimitError, match=r"limit of 0\.05 seconds") as caught,
        fg.limits(seconds=0.05),
    ):
        jitted(*arguments(ENDLESS))
    assert time.thread_time() - start < 2
    assert isinstance(caught.value, TimeoutError)
    assert "test_limits.py" in str(caught.value)
    np.testing.assert_array_equal(jitted(*arguments(SHORT)), expected)
    with fg.limits(seconds=60):
        np.testing.assert_array_equal(jitted(*arguments(SHORT)), expected)


def test_large_steps_end_between_their_parts() -> None:
    a, v = np.ones((2000, 2000)), np.ones(20_000)

    def table(x: Any, y: Any) -> Any:
        return np.sum(np.sin(np.cos(np.exp(-np.tan(x[:, None] * y[None, :])))))

    # A step, and a tenth of it.
    steps = [
        (lambda a: a @ a @ a @ a @ a @ a @ a @ a @ a @ a @ a, (a,), lambda a: a @ a, (a,)),
        (table, (v, v), table, (v[::10], v)),
    ]
    for step, args, tenth, some in steps:
        limited, part = (fg.jit(f).lower(*x).compile() for f, x in ((step, args), (tenth, some)))
        start = time.process_time()
        part(*some)
        of_tenth = time.process_time() - start
        with pytest.raises(TimeLimitError), fg.limits(seconds=0.05):
            limited(*args)
        assert time.process_time() - start < 4 * of_tenth


def test_a_limit_ends_with_its_block() -> None:
    f = fg.jit(LONG["counted loop of numbers"][0])
    expected = f(1.0, 3_000_000)
    with fg.limits(seconds=1):  # more than a busy machine pauses a process
        f(1.0, 0)
    time.sleep(1)
    assert f(1.0, 3_000_000) == expected  # long enough to look at the clock


def test_limits_are_of_their_context_and_the_stricter_one_holds() -> None:
    f = fg.jit(LONG["counted loop of numbers"][0])
    stricter = pytest.raises(TimeLimitError, match=r"limit of 0\.02")
    with stricter, fg.limits(seconds=100), fg.limits(seconds=0.02):
        f(1.0, ENDLESS)
    with stricter, fg.limits(seconds=0.02), fg.limits(seconds=100, memory="1GB"):
        f(1.0, ENDLESS)
    results: list[Any] = []
    with fg.limits(seconds=0.001):
        time.sleep(0.01)
        other = threading.Thread(target=lambda: results.append(f(1.0, SHORT)))
        other.start()
        other.join()
        with pytest.raises(TimeLimitError):
            f(1.0, SHORT)
    assert results == [f(1.0, SHORT)]


@pytest.mark.parametrize("is_disabled", [False, True])
@pytest.mark.parametrize("name", ["counted loop of numbers", "loop until"])
def test_loops_of_python_end(name: str, is_disabled: bool) -> None:
    function, arguments = LONG[name]
    with (
        pytest.raises(TimeLimitError, match=r"\n  at +test_limits\.py:\d+ .*loop") as caught,
        fg.limits(seconds=0.05),
        fg.disable_jit(is_disabled),
    ):
        function(*arguments(ENDLESS))
    assert str(caught.value).startswith("the limit of 0.05 seconds has passed in ")


def test_time_that_passes_before_a_program_starts_is_of_its_line() -> None:
    """As when compiling took it all."""
    f = fg.jit(LONG["loop until"][0])
    f(0.0, 1.0)
    for function in (f, LONG["loop until"][0]):
        with fg.limits(seconds=1e-4):
            time.sleep(0.001)
            with pytest.raises(TimeLimitError) as caught:
                function(0.0, 1.0)
        assert "at            test_limits.py:" in str(caught.value)


def test_memory_is_known_before_anything_is_computed() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        fg.debug.callback(seen.append, x[0])
        return fnp.sort(fnp.outer(x, x), axis=0)

    jitted = fg.jit(f)
    with pytest.raises(MemoryLimitError) as caught, fg.limits(memory="1MB"):
        jitted(np.ones(1000))
    text = str(caught.value)
    assert text.startswith("f needs ")
    assert "more than the limit of 1.0 MB; nothing has been computed" in text
    assert "f64[1000,1000]" in text
    assert not seen
    assert isinstance(caught.value, MemoryError)
    with fg.limits(memory="40MB"):
        assert jitted(np.ones(1000)).shape == (1000, 1000)
    assert len(seen) == 1


def test_wrong_limits_are_named() -> None:
    for wrong in ({"seconds": 0}, {"seconds": -1.0}, {"seconds": "1"}, {"seconds": float("nan")}):
        with pytest.raises(ArgumentError, match="limits: seconds must be a positive number"):
            fg.limits(**wrong).__enter__()  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="limits: memory is a number of bytes"):
        fg.limits(memory="much").__enter__()
    with fg.limits():
        assert fg.jit(lambda x: x + 1)(1) == 2


INTERRUPTED = """
import signal, sys, threading, time
sys.path.insert(0, {root!r})
import numpy as np
import funcgrad as fg
from tests.alarms import signal_within
from tests.api.test_limits import LONG, ENDLESS, SHORT

class Alarm(Exception):
    pass

def ring(*_):
    raise Alarm("rung")

signal.signal(signal.SIGALRM, ring)
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored in what runs tests
other = fg.jit(LONG["counted loop of numbers"][0])
found = []
def work():
    with fg.limits(seconds=1.5):
        try:
            other(1.0, ENDLESS)
        except TimeoutError:
            found.append("other thread ended by its limit")
beside = threading.Thread(target=work)
beside.start()
for name, (function, arguments) in LONG.items():
    jitted = fg.jit(function)
    expected = jitted(*arguments(SHORT))
    for kind, number in ((KeyboardInterrupt, signal.SIGINT), (Alarm, signal.SIGALRM)):
        start = time.thread_time()
        try:
            with signal_within(0.05, number):
                jitted(*arguments(ENDLESS))
        except kind as error:
            if name == "counted loop of numbers":
                assert "while a compiled program ran" in error.__notes__[0], error.__notes__
            assert time.thread_time() - start < 2, name
        assert np.array_equal(jitted(*arguments(SHORT)), expected), name
def add_endless(x):
    return x * 2 + fg.lax.fori_loop(0, ENDLESS, lambda i, c: c * 0.5, 1.0)

donor = fg.jit(add_endless, donate_argnums=0)
try:
    with signal_within(1.0, signal.SIGINT):
        donor(np.ones(100_000))
except KeyboardInterrupt as error:
    assert "donated arguments" in error.__notes__[1]
beside.join()
print(found)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs signals of Unix")
def test_signals_reach_python_and_leave_everything_as_it_was() -> None:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = INTERRUPTED.format(root=root)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "['other thread ended by its limit']\n", done.stderr
