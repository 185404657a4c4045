"""Memory of compiled programs: the arena, donated arguments, and results that share nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.compiler.runtime import executable

# Many values that live long: operations that no kernel joins keep everything in memory.

BARRIERS = [
    lambda x, y: np.cumsum(x, axis=0) * 0.25,
    lambda x, y: np.cumsum(y[::-1], axis=1) * 0.25,
    lambda x, y: x @ y * 0.125,
    lambda x, y: x.T @ y * 0.125,
    lambda x, y: np.sort(x, axis=0),
    lambda x, y: np.concatenate([y[2:], x[:2]]),
    lambda x, y: x - np.max(y, axis=1, keepdims=True) * 0.5,
    lambda x, y: x[:, ::-1].T + y,
    lambda x, y: np.sin(x) * np.sum(y * x, axis=0) * 0.125,
    lambda x, y: x + np.mean(y),
]


@st.composite
def histories(draw: Any) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Operations on values by number, and which values are results."""
    steps = []
    for k in range(draw(st.integers(5, 40))):
        steps.append(
            (
                draw(st.integers(0, len(BARRIERS) - 1)),
                draw(st.integers(0, k + 1)),
                draw(st.integers(0, k + 1)),
            )
        )
    outputs = draw(st.lists(st.integers(0, len(steps) + 1), min_size=1, max_size=6))
    return steps, outputs


def replay(history: Any, x: Any, y: Any) -> tuple[Any, ...]:
    steps, outputs = history
    values = [x, y]
    for operation, i, j in steps:
        values.append(np.clip(BARRIERS[operation](values[i], values[j]), -4.0, 4.0))
    return tuple(values[i] for i in outputs)


@given(histories(), st.sampled_from(["f4", "f8"]))
def test_values_that_live_long(history: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(5, 5)).astype(dtype) for _ in range(2))
    before = x.copy(), y.copy()
    expected = replay(history, x, y)
    f = fg.jit(lambda x, y: replay(history, x, y))
    results = [f(x, y) for _ in range(2)]
    rtol = 1e-3 if dtype == "f4" else 1e-10  # forty products in a row
    for found in results:
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
    assert_disjoint([*results[0], *results[1], x, y])
    np.testing.assert_array_equal((x, y), before)


def assert_disjoint(arrays: list[np.ndarray]) -> None:
    for a, b in itertools.combinations(arrays, 2):
        assert a is b or not np.shares_memory(a, b)


@given(histories(), st.sampled_from([0, 1, (0, 1)]))
def test_donated_arguments_change_nothing_else(history: Any, donated: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5, 5))
    expected = replay(history, x, y)
    f = fg.jit(lambda x, y: replay(history, x, y), donate_argnums=donated)
    for _ in range(2):
        given_x, given_y = x.copy(), y.copy()
        found = f(given_x, given_y)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
        assert_disjoint(list(found))
        if donated == 0:
            np.testing.assert_array_equal(given_y, y)
        if donated == 1:
            np.testing.assert_array_equal(given_x, x)


# Donation.


def test_swapped_and_shared_donations() -> None:
    x, y = np.arange(6.0), np.arange(6.0) * 10
    swap = fg.jit(lambda a, b: (b + 1, a + 1), donate_argnums=(0, 1))
    for _ in range(3):
        a, b = x.copy(), y.copy()
        p, q = swap(a, b)
        np.testing.assert_array_equal(p, y + 1)
        np.testing.assert_array_equal(q, x + 1)
        assert not np.shares_memory(p, q)
        # One array, given twice, and parts of one array.
        a = x.copy()
        p, q = swap(a, a)
        np.testing.assert_array_equal((p, q), (x + 1, x + 1))
        assert not np.shares_memory(p, q)
        buffer = np.arange(9.0)
        p, q = swap(buffer[:6], buffer[3:])
        np.testing.assert_array_equal(p, np.arange(3.0, 9.0) + 1)
        np.testing.assert_array_equal(q, np.arange(6.0) + 1)
        assert not np.shares_memory(p, q)


def test_a_donated_array_that_another_argument_reads() -> None:
    f = fg.jit(lambda a, b: (a * 2, np.cumsum(b)), donate_argnums=0)
    for _ in range(3):
        a = np.arange(5.0)
        double, total = f(a, a)
        np.testing.assert_array_equal(double, np.arange(5.0) * 2)
        np.testing.assert_array_equal(total, np.cumsum(np.arange(5.0)))
        np.testing.assert_array_equal(a, np.arange(5.0))  # the other argument was not given away
        a = np.arange(5.0)
        double, total = f(a, a[::-1])
        np.testing.assert_array_equal(double, np.arange(5.0) * 2)
        np.testing.assert_array_equal(total, np.cumsum(np.arange(5.0)[::-1]))


def test_donated_arrays_that_cannot_be_written_to() -> None:
    f = fg.jit(lambda x: x + 1.0, donate_argnums=0)
    base = np.arange(12.0)
    read_only = base.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(bytearray(b"x" + base.tobytes()), np.uint8)[1:].view(np.float64)
    for x in (read_only, base[::2], base[::-1], np.broadcast_to(base[3], (4,)), unaligned):
        for _ in range(2):
            before = x.copy()
            found = f(x)
            np.testing.assert_array_equal(found, before + 1.0)
            np.testing.assert_array_equal(x, before)
            assert not np.shares_memory(found, x)
            found += 1.0  # results can be written to


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x[::-1] + 0.0,
        lambda x: np.cumsum(x),
        lambda x: np.roll(x, 1) + x,
        lambda x: x - np.max(x),
        lambda x: x.reshape(2, 3).T.reshape(6) * 2.0,
        lambda x: np.concatenate([x[3:], x[:3]]),
        lambda x: np.outer(x, x) @ x,
        lambda x: np.sort(x),
        lambda x: x,
        lambda x: x / np.sqrt(np.sum(x * x)) + x[0],
        lambda x: (x + 1.0)[::-1] * x,
    ],
)
def test_results_that_read_their_donated_argument_in_another_order(fun: Any) -> None:
    x = np.array([3.0, -1.0, 4.0, 1.5, -9.0, 2.5])
    expected = fun(x)
    f = fg.jit(fun, donate_argnums=0)
    for _ in range(3):
        np.testing.assert_allclose(f(x.copy()), expected, rtol=1e-14)


def test_results_of_earlier_calls_are_never_written_to() -> None:
    f = fg.jit(lambda x: (np.cumsum(x), np.sum(x), x * 2.0, np.sort(x)))
    kept = []
    for k in range(20):
        x = np.arange(4.0) + k
        kept.append((f(x), (np.cumsum(x), np.sum(x), x * 2.0, np.sort(x))))
    for found, expected in kept:
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


# Memory between calls.


def test_executables_keep_a_bounded_amount_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "_idle", [])
    x = np.ones(400_000)
    needed = 2 * x.nbytes
    monkeypatch.setattr(executable, "MAX_IDLE_BYTES", 3 * needed)

    def idle() -> list[int]:
        refs = [ref() for ref in executable._idle]
        return [len(f) * f.arena_bytes for f in refs if f is not None]

    for k in range(12):
        scale = 1.0 + k
        f = fg.jit(lambda x, s=scale: np.sum(np.cumsum(x * s)[::-1] * np.cumsum(np.sin(x))))
        values = [f(x) for _ in range(3)]
        assert values[0] == values[1] == values[2]
        assert sum(idle()) <= executable.MAX_IDLE_BYTES
        assert idle()[-1] > 0, "the last that ran keeps its own"
    assert len([n for n in idle() if n]) > 1
    monkeypatch.setattr(executable, "MAX_IDLE_BYTES", 1)
    g = fg.jit(lambda x: np.sum(np.cumsum(np.cos(x))[::-1] * np.cumsum(np.sin(x))))
    expected = np.sum(np.cumsum(np.cos(x))[::-1] * np.cumsum(np.sin(x)))
    for _ in range(3):
        np.testing.assert_allclose(g(x), expected)
        assert [n > 0 for n in idle()][-1]
        assert sum(n > 0 for n in idle()) == 1


# What NumPy has seen of a value before a part of it is changed.


def written(t: np.ndarray, place: Any, new: Any) -> np.ndarray:
    t = t.copy()
    t[place] = new
    return t


ROW = fg.ShapeDtypeStruct((5,), np.float64)
AT = 1  # where the traced place is

# How a part is changed, and the same in NumPy.
CHANGES: dict[str, tuple[Any, Any]] = {
    "at a known place": (lambda t, i: fnp.at(t)[2].set(7.0), lambda t: written(t, 2, 7.0)),
    "at a traced place": (lambda t, i: fnp.at(t)[i].set(7.0), lambda t: written(t, AT, 7.0)),
    "at traced places": (
        lambda t, i: fnp.at(t)[fnp.stack([i, i + 2])].add(7.0),
        lambda t: written(t, [AT, AT + 2], t[[AT, AT + 2]] + 7.0),
    ),
    "a known window": (
        lambda t, i: fg.lax.dynamic_update_slice(t, np.ones(2), (2,)),
        lambda t: written(t, slice(2, 4), 1.0),
    ),
    "a traced window": (
        lambda t, i: fg.lax.dynamic_update_slice(t, np.ones(2), (i,)),
        lambda t: written(t, slice(AT, AT + 2), 1.0),
    ),
    "an end": (
        lambda t, i: fnp.concatenate([t[:4], t[1:2]]),
        lambda t: np.concatenate([t[:4], t[1:2]]),
    ),
}


def doubled(t: Any) -> Any:
    return fg.pure_callback(lambda a: a * 2.0, ROW, t)


# What calls NumPy, and the result.
CALLS: dict[str, tuple[Any, Any]] = {
    "callback": (doubled, lambda t: t * 2.0),
    "the same array": (lambda t: fg.pure_callback(lambda a: a, ROW, t), lambda t: t),
    "another order": (lambda t: fg.pure_callback(lambda a: a[::-1], ROW, t), lambda t: t[::-1]),
    "sorting": (np.sort, np.sort),
    "of a view": (lambda t: fg.pure_callback(lambda a: a, ROW, t[::-1]), lambda t: t[::-1]),
    "branch": (lambda t: fg.lax.cond(np.sum(t) > 0, lambda t: t, doubled, t), lambda t: t),
    "loop": (lambda t: fg.lax.fori_loop(0, 2, lambda k, t: doubled(t), t), lambda t: t * 4.0),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("is_donated", [False, True])
@pytest.mark.parametrize("is_made", [False, True], ids=["argument", "made"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("call", CALLS)
def test_changes_of_what_numpy_has_seen(
    call: str, change: str, is_made: bool, is_donated: bool
) -> None:
    def f(x: Any, i: Any) -> Any:
        t = np.cumsum(x) if is_made else x
        seen = CALLS[call][0](t)
        return CHANGES[change][0](t, i), seen, np.sort(seen) + 1.0

    x = np.array([0.5, 2.0, -1.0, 3.0, 0.25])
    t = np.cumsum(x) if is_made else x
    seen = CALLS[call][1](t)
    expected = CHANGES[change][1](t), seen, np.sort(seen) + 1.0
    compiled = fg.jit(f, donate_argnums=(0,) if is_donated else ())
    for _ in range(2):
        for found, wanted in zip(compiled(x.copy(), np.int64(AT)), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


def step_of_waves(state: Any) -> Any:
    """Each field changes by neighbours of the other one."""
    x, y = state
    x = x + np.pad(0.25 * (y[1:] - y[:-1]), (1, 0))
    return x, y + np.pad(0.25 * (x[1:] - x[:-1]), (0, 1))


def swapped_and_shifted(state: Any) -> Any:
    """The second one gets elements of the first from other indices: that one stays until then."""
    x, y = state
    return y * 0.5, np.roll(x, 1) * 0.5 + y


@pytest.mark.parametrize(("step", "copies"), [(step_of_waves, 0), (swapped_and_shifted, 1)])
@pytest.mark.parametrize("is_counted", [True, False])
def test_what_a_loop_carries_is_changed_where_it_is(
    step: Any, copies: int, is_counted: bool
) -> None:
    n, size = 20, 1 << 15

    def program(x: Any, y: Any) -> Any:
        if is_counted:
            return lax.fori_loop(0, n, lambda i, state: step(state), (x, y))
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, *step(s[1:])), (0, x, y))[1:]

    x, y = np.random.default_rng(0).normal(size=(2, size))
    compiled = fg.jit(program)
    expected = (x, y)
    for _ in range(n):
        expected = step(expected)
    for found, part in zip(compiled(x, y), expected, strict=True):
        np.testing.assert_allclose(found, part, rtol=1e-12, atol=1e-12)
    memory = compiled.lower(x, y).compile().memory_analysis()
    spares = copies if is_counted else 2 * copies
    assert memory.temp_size_in_bytes < (spares + 1) * x.nbytes
    assert memory.temp_size_in_bytes >= spares * x.nbytes
