"""Steps of a compiled program that Python runs: within native loops and branches as well."""

from __future__ import annotations

import contextvars
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import TimeLimitError
from funcgrad.scipy.linalg import solve_toeplitz

NUMBER = fg.ShapeDtypeStruct((), np.float64)
RANDOM = np.random.default_rng(0)
MATRIX = RANDOM.standard_normal((3, 3))
FIRST = np.array([1.0, 0.3, -0.1])


def called(function: Any, *args: Any) -> Any:
    return fg.pure_callback(function, NUMBER, *args)


def filtered(c: Any) -> Any:
    return solve_toeplitz(FIRST[: len(c)], c[0] if len(c) else c[:, 0:0].sum(1))


def nested(x: Any) -> Any:
    def outer(c: Any, _: Any) -> Any:
        c = lax.fori_loop(0, 3, lambda i, c: c * 0.5 + filtered(c.T + i), c)
        return lax.cond(c[0, 0] > 0, lambda c: c + filtered(c), lambda c: c - 1, c), c[::-1]

    return lax.scan(outer, x, length=4)


LOOPS = {
    "scan": lambda x: lax.scan(lambda c, y: (filtered(c) * c + y, filtered(c)), x, np.ones(4)),
    "while": lambda x: lax.while_loop(
        lambda c: (filtered(c) ** 2).sum() < 50, lambda c: c + filtered(c), x
    ),
    "branch": lambda x: lax.switch(1, [lambda x: x[0], filtered], x),
    "nested": nested,
    "lanes": fg.vmap(lambda x: lax.fori_loop(0, 3, lambda i, c: c + filtered(c)[::-1], x)),
    "complex": lambda x: lax.fori_loop(0, 3, lambda i, c: c + filtered(c), x + 0j),
    "no elements": lambda x: lax.fori_loop(0, 3, lambda i, c: c + filtered(c), x[:0, :0]),
}


@pytest.mark.parametrize("name", LOOPS)
def test_results_are_those_of_numpy(name: str) -> None:
    x = np.stack([MATRIX, -MATRIX, MATRIX.T]) if name == "lanes" else MATRIX
    with fg.disable_jit():
        expected = LOOPS[name](x)
    compiled = fg.jit(LOOPS[name])
    for _ in range(2):
        found = compiled(x)
        for a, b in zip(
            fg.tree_util.tree_leaves(found), fg.tree_util.tree_leaves(expected), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert "python:" not in compiled.lower(x).as_text().partition("\nplan\n")[2]


def test_effects_come_in_order_whether_results_are_read_or_not() -> None:
    log: list[tuple[int, int, float]] = []

    def inner(i: Any, j: Any, c: Any) -> Any:
        fg.debug.callback(lambda *v: log.append(tuple(map(float, v))), i, j, c)
        return c + 1

    def f(x: Any) -> Any:
        lax.fori_loop(0, 2, lambda i, c: lax.fori_loop(0, 2, lambda j, c: inner(i, j, c), c), x)
        return x * 2

    assert fg.jit(f)(0.0) == 0.0
    assert log == [(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)]


def test_what_is_changed_in_place_was_seen_as_it_was() -> None:
    def step(c: Any, i: Any) -> Any:
        before = called(np.sum, c)
        c = c.at[i].set(before + 1)
        return c, called(np.sum, c[::2])

    x = np.arange(5.0)
    with fg.disable_jit():
        expected = lax.scan(step, fg.numpy.asarray(x), np.arange(5))
    found = fg.jit(lambda x: lax.scan(step, x, np.arange(5)))(x)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


class Unusual(BaseException):
    pass


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, Unusual, StopIteration])
def test_errors_leave_loops_with_their_traceback(kind: type[BaseException]) -> None:
    def grown(c: Any) -> Any:
        if c > limit:
            raise kind("too large")
        return c + 1

    f = fg.jit(lambda x: lax.while_loop(lambda c: c < 9, lambda c: nest(c), x))

    def nest(c: Any) -> Any:
        return lax.cond(c >= 0, lambda c: called(grown, c), lambda c: c, c)

    limit = 4
    with pytest.raises(kind, match="too large") as raised:
        f(0.0)
    assert raised.traceback[-1].name == "grown"
    limit = 9
    assert f(0.0) == 9.0


def test_signals_between_and_within_calls() -> None:
    def interrupted(c: Any) -> Any:
        if c == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return c + 1

    f = fg.jit(lambda x: lax.while_loop(lambda c: c >= 0, lambda c: called(interrupted, c), x))
    # It may be ignored in what runs tests.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), fg.limits(seconds=60):
            f(0.0)
    finally:
        signal.signal(signal.SIGINT, before)
    for seconds in (0.05, 0.5, 5.0):  # a busy machine may pause for longer before the loop begins
        with pytest.raises(TimeLimitError) as caught, fg.limits(seconds=seconds):
            f(5.0)
        if "after pure_callback" in str(caught.value):
            break
    assert "after pure_callback" in str(caught.value)


def test_a_call_may_call_the_same_function() -> None:
    @fg.jit
    def factorial(n: Any) -> Any:
        return lax.cond(n > 1, lambda n: n * called(factorial, n - 1), lambda n: n * 0 + 1, n)

    assert factorial(5.0) == 120.0


@pytest.mark.parametrize("is_alone", [True, False])
def test_the_error_state_is_the_callers_in_callbacks_alone(is_alone: bool) -> None:
    """NumPy reports nothing of what the library has it evaluate."""
    states = []

    def seen(c: Any) -> Any:
        states.append(np.geterr()["divide"])
        return c

    def step(i: Any, c: Any) -> Any:
        c = c if is_alone else c + solve_toeplitz(np.ones(1), c[None])[0]
        return called(seen, c)

    with np.errstate(divide="raise"), np.errstate(over="call"):
        before = np.geterr()
        assert fg.jit(lambda x: lax.fori_loop(0, 3, step, x))(0.0) is not None
        assert np.geterr() == before
    assert states == ["raise"] * 3


def test_threads_and_contexts() -> None:
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("variable")
    f = fg.jit(lambda x: lax.fori_loop(0, 200, lambda i, c: c + called(lambda c: seen(c), c), x))

    def seen(c: Any) -> Any:
        states.add(np.geterr()["over"])
        return variable.get()

    states: set[str] = set()
    results: dict[int, float] = {}

    def run(k: int) -> None:
        variable.set(float(k))
        with np.errstate(over="call"):
            results[k] = float(f(0.0))

    size = threading.stack_size(256 * 1024)
    try:
        threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
    finally:
        threading.stack_size(size)
    for thread in threads:
        thread.join()
    assert results == {k: 200.0 * k for k in range(4)}
    assert states == {"call"}
