"""Counters of loops: what their bounds decide about indices, remainders and comparisons.

References are Python's loops over NumPy's arrays.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax

N = 7
TABLE = np.random.default_rng(0).normal(size=N)


def looks_at_indices(f: Callable[..., Any], *args: Any) -> bool:
    """Whether a kernel may refuse an index."""
    return "return 1002" in fg.jit(f).lower(*args).as_text()


def summed(place: Callable[..., Any], length: int = N, start: Any = 0) -> Callable[..., Any]:
    """Elements at the places of a counter, added up, each with a weight of its own."""

    def run(x: Any) -> Any:
        return lax.fori_loop(start, start + length, lambda i, s: 0.5 * s + x[place(i)], x[0])

    return run


def expected(place: Callable[..., Any], length: int = N, start: int = 0) -> Any:
    s = TABLE[0]
    for i in range(start, start + length):
        s = 0.5 * s + TABLE[place(i)]
    return s


INSIDE: dict[str, Callable[..., Any]] = {
    "itself": lambda i: i,
    "backwards": lambda i: N - 1 - i,
    "from the end": lambda i: -1 - i,
    "wrapped": lambda i: (i + 3) % N,
    "wrapped twice": lambda i: (i + 3) % N * 2 % N,
    "wrapped below": lambda i: (2 - i) % N,
    "a half": lambda i: i // 2,
    "a shift": lambda i: i >> 1,
    "a mask": lambda i: (i * 5) & 3,
    "clipped": lambda i: np.minimum(i + 4, N - 1),
    "narrow": lambda i: fnp.asarray(i).astype(np.int32),
}


@pytest.mark.parametrize("name", INSIDE)
def test_indices_inside_are_not_looked_at(name: str) -> None:
    f = summed(INSIDE[name])
    np.testing.assert_allclose(fg.jit(f)(TABLE), expected(INSIDE[name]), rtol=1e-14)
    assert not looks_at_indices(f, TABLE)


@pytest.mark.parametrize("place", [lambda i: i + 1, lambda i: i - N - 1, lambda i: 2 * i])
def test_one_index_outside_is_refused(place: Callable[..., Any]) -> None:
    with pytest.raises(IndexError):
        expected(place)
    with pytest.raises(IndexError):
        fg.jit(summed(place))(TABLE)


def test_a_while_loop_bounds_its_counter_where_it_runs() -> None:
    def f(x: Any, n: Any) -> Any:
        def goes_on(state: Any) -> Any:
            return (state[0] < N) & (state[1] < n)

        def step(state: Any) -> Any:
            i, s = state
            return i + 2, s + x[i]

        return lax.while_loop(goes_on, step, (1, 0.0))

    i, s = fg.jit(f)(TABLE, 10.0)
    assert i == 7
    np.testing.assert_allclose(s, TABLE[1] + TABLE[3] + TABLE[5])
    assert not looks_at_indices(f, TABLE, 10.0)


def test_a_while_loop_counts_down() -> None:
    def f(x: Any) -> Any:
        state = (N - 1, x[0])
        return lax.while_loop(
            lambda s: s[0] >= 0, lambda s: (s[0] - 1, 0.5 * s[1] + x[s[0]]), state
        )[1]

    np.testing.assert_allclose(fg.jit(f)(TABLE), expected(lambda i: N - 1 - i))
    assert not looks_at_indices(f, TABLE)


def test_the_condition_is_asked_about_one_number_more() -> None:
    def f(x: Any) -> Any:
        state = (0, 0.0)
        return lax.while_loop(
            lambda s: (s[0] < N) & (x[fnp.minimum(s[0], N - 1)] > -9.0),
            lambda s: (s[0] + 1, s[1] + x[s[0]]),
            state,
        )

    assert fg.jit(f)(TABLE)[0] == N
    stop = fg.jit(lambda x: lax.while_loop(lambda i: (i < N) & (x[i] < 9.0), lambda i: i + 1, 0))
    with pytest.raises(IndexError):
        stop(TABLE)


def test_a_condition_bounds_its_counter_on_the_side_where_it_begins() -> None:
    def before(n: Any) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            holds = lambda i: (i > 0) & (x[fnp.maximum(i - 1, 0)] > -0.5)  # noqa: E731
            return lax.while_loop(holds, lambda i: i - 1, n)

        return run

    def reference(i: int) -> int:
        while i > 0 and TABLE[max(i - 1, 0)] > -0.5:
            i -= 1
        return i

    assert int(fg.jit(before(N))(TABLE)) == reference(N)
    assert not looks_at_indices(before(N), TABLE)
    assert looks_at_indices(before(N + 1), TABLE)
    assert looks_at_indices(before(np.int32(N)), TABLE)


def test_lengths_of_one_array_are_one_number() -> None:
    """A place that a loop has found is that of all that asks again."""

    def root(parents: Any, x: Any) -> Any:
        def halve(state: Any) -> Any:
            parents, x = state
            above = parents[parents[x]]
            return fnp.at(parents)[x].set(above), above

        return lax.while_loop(lambda s: s[0][s[1]] != s[1], halve, (parents, x))

    parents = np.maximum(np.arange(900) - 3, 0)
    found, x = fg.jit(root)(parents, 800)
    assert int(x) == 0
    expected, y = parents.copy(), 800
    while expected[y] != y:
        expected[y] = expected[expected[y]]
        y = expected[y]
    np.testing.assert_array_equal(found, expected)
    text = fg.jit(root).lower(parents, 800).as_text()
    assert len(set(re.findall(r"(?:_m\d+_0|_n0) = (\S+)$", text, re.MULTILINE))) == 1


def test_a_condition_may_ask_about_an_array_behind_the_last_place() -> None:
    places = np.arange(N)

    def run(x: Any) -> Any:
        def holds(state: Any) -> Any:
            i, _ = state
            return (i < N) & (fnp.sum(fnp.where(places < i, x, 0.0)) < 100.0)

        return lax.while_loop(holds, lambda s: (s[0] + 1, s[1] + x[s[0]]), (0, 0.0))

    count, total = fg.jit(run)(np.arange(1.0, N + 1))
    assert (int(count), float(total)) == (N, 28.0)


@pytest.mark.parametrize("name", ["inside", "across"])
def test_parts_of_rows_within_the_core_have_no_edges(name: str) -> None:
    """A fold over indices between two counters, of rows and of a column that is put together."""
    n, places = 30, np.arange(30)
    most = n if name == "inside" else n + 1

    def cell(i: Any, j: Any, table: Any) -> Any:
        below = fnp.concatenate([table[1:n, j % n], table[:1, 0]])
        found = fnp.where((places > i) & (places < j), table[i, :n] + below, 0)
        return fnp.at(table)[i, j % n].set((np.max(found) + i * j) % 17)

    def run(table: Any) -> Any:
        def row(k: Any, table: Any) -> Any:
            i = n - 1 - k
            return lax.fori_loop(i + 1, most, lambda j, t: cell(i, j, t), table)

        return lax.fori_loop(1, n, row, table)

    table = np.random.default_rng(0).integers(0, 9, (n + 1, n))
    expected = table.copy()
    for i in range(n - 2, -1, -1):
        for j in range(i + 1, most):
            below = np.concatenate([expected[1:n, j % n], expected[:1, 0]])
            inner = expected[i, :n] + below
            best = max([0, *inner[i + 1 : j]])
            expected[i, j % n] = (best + i * j) % 17
    np.testing.assert_array_equal(fg.jit(run)(table), expected)
    text = fg.jit(run).lower(table).as_text()
    assert ("_side" in text) == (name == "across")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_counters_that_wrap_have_any_number(dtype: Any) -> None:
    start = dtype(np.iinfo(dtype).max - 2)

    def f(x: Any) -> Any:
        def step(i: Any, _: Any) -> Any:
            return i + dtype(1), (i < 0, i > 0, i)

        return lax.scan(step, start, None, length=6)[1]

    with np.errstate(over="ignore"):
        counted = (np.arange(6) + int(start)).astype(dtype)
    for found, wanted in zip(fg.jit(f)(TABLE), (counted < 0, counted > 0, counted), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_windows_and_writes_inside_are_placed_without_clamps() -> None:
    def f(x: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            window = lax.dynamic_slice(y, (i,), (3,))
            return y.at[i + 1].set(fnp.sum(window))

        return lax.fori_loop(0, N - 2, step, x)

    wanted = TABLE.copy()
    for i in range(N - 2):
        wanted[i + 1] = np.sum(wanted[i : i + 3])
    np.testing.assert_allclose(fg.jit(f)(TABLE), wanted)
    text = fg.jit(f).lower(TABLE).as_text()
    loop = text[text.rindex("def kernel") :]
    assert "minimum(maximum(" not in loop


def random_place(rng: random.Random, depth: int) -> str:
    """An expression of integers over the counters ``i`` and ``j``."""
    if depth == 0:
        return rng.choice(["i", "j", str(rng.randint(-3, 9))])
    a, b = random_place(rng, depth - 1), random_place(rng, depth - 1)
    n = rng.randint(1, 9)
    return rng.choice(
        [
            f"({a} + {b})", f"({a} - {b})", f"({a} * {n})", f"({a} % {n})", f"({a} // {n})",
            f"xnp.minimum({a}, {b})", f"xnp.maximum({a}, {b})", f"xnp.where({a} < {n}, {a}, {b})",
            f"xnp.where({a} >= {b}, {a} - {b}, {a})", f"(-{a})",
        ]
    )  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(24))
def test_random_places_of_two_counters(seed: int) -> None:
    rng = random.Random(seed)
    text = random_place(rng, rng.randint(1, 3))
    place = eval(f"lambda xnp, i, j: {text}")
    first, length, step = rng.randint(-4, 4), rng.randint(1, 5), rng.choice([1, 1, 2, -1])

    def f(x: Any) -> Any:
        def outer(state: Any, _: Any) -> Any:
            i, s = state

            def inner(j: Any, s: Any) -> Any:
                k = place(fnp, i, j)
                return 0.5 * s + x[k], k, k % 5, k < 2

            return (i + step, lax.fori_loop(0, 3, lambda j, s: inner(j, s[0]), s)), None

        start = (x[0], 0, 0, False)
        return lax.scan(outer, (first, start), None, length=length)[0][1]

    def reference() -> Any:
        s: Any = (TABLE[0], 0, 0, False)
        for n in range(length):
            for j in range(3):
                k = place(np, first + n * step, j)
                s = 0.5 * s[0] + TABLE[k], k, k % 5, k < 2
        return s

    try:
        wanted = reference()
    except IndexError:
        with pytest.raises(IndexError):
            fg.jit(f)(TABLE)
        return
    for found, value in zip(fg.jit(f)(TABLE), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-14, err_msg=text)
