"""Loops over few elements are one kernel, with the results of the executor's loop, bit by bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.compiler.machine import JOINED_WORK

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 24))
LINE = RNG.normal(size=100)
PLACES = RNG.integers(0, 64, 500)


def counts(x: Any) -> Any:
    """A table that is written at one place in each iteration."""
    step = lambda i, c: fnp.at(c)[x[i]].add(1)  # noqa: E731
    return lax.fori_loop(0, x.shape[0], step, fnp.zeros(64, np.int64))


def sweeps(a: Any) -> Any:
    """Loops in loops in loops, which change an array where it is."""
    n = a.shape[0]

    def cell(i: Any, j: Any, a: Any) -> Any:
        near = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
        return fnp.at(a)[i, j].set((near + a[i, j]) / 5)

    def row(i: Any, a: Any) -> Any:
        return lax.fori_loop(1, n - 1, lambda j, a: cell(i, j, a), a)

    return lax.fori_loop(0, 3, lambda _, a: lax.fori_loop(1, n - 1, row, a), a)


def doubled(x: Any) -> Any:
    """Two arrays that take turns, an even and an odd number of times."""
    step = lambda _, c: (c[1] * 0.5 + np.roll(c[0], 1), c[0] - c[1])  # noqa: E731
    return lax.fori_loop(0, 6, step, (x, x + 1)), lax.fori_loop(0, 7, step, (x, x + 1))


def until(x: Any) -> Any:
    """A loop whose length the values decide."""
    more = lambda c: np.sum(np.abs(c[1])) < 1e3  # noqa: E731
    return lax.while_loop(more, lambda c: (c[0] + 1, c[1] * 1.1 + np.roll(c[1], 1) * 0.01), (0, x))


def never(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 0, lambda c: (c[0] + 1, np.cumsum(c[1])), (0, x))


def chosen(x: Any) -> Any:
    """Branches in a loop, and loops in branches."""
    arms = [
        lambda x: np.sort(x),
        lambda x: lax.fori_loop(0, 3, lambda i, x: np.roll(x, 1) * 0.9 + i, x),
        lambda x: np.cumsum(x) / 50,
    ]
    return lax.fori_loop(0, 8, lambda i, x: lax.switch(i % 4 - 1, arms, x), x)


def stacked(x: Any) -> Any:
    """Rows that are read one after the other, and results that are kept."""
    return lax.scan(lambda c, row: (c * 0.5 + row, (np.sum(c), c[::-1])), x[0], x)


def mixed(x: Any) -> Any:
    """Counters, flags and numbers of two precisions."""

    def step(i: Any, c: Any) -> Any:
        a, b, flag = c
        return a + b.astype(a.dtype) * 1e-3, b * 0.5 + 1, flag ^ (a > i)

    wide = x.astype(np.float64)
    return lax.fori_loop(0, 5, step, (wide, x.astype(np.float32), x > 0))


def numbers(x: Any) -> Any:
    """Numbers beside an array: read, only handed on, and overwritten without being read."""

    def step(c: Any, row: Any) -> Any:
        a, b, last, kept = c
        new = a * 0.5 + np.sum(row)
        return (new, b + 1, row[3], np.roll(kept, 1) + b), (a, last)

    def inner(c: Any, row: Any) -> Any:
        found, rest = lax.scan(step, (c[0], 0, c[1], c[2]), x)
        return (found[0] * 1e-3, found[2], found[3]), (rest[1][-1], row[0])

    one = lax.scan(step, (x[0, 0], 0, x[0, 1], x[1]), x)
    return one, lax.scan(inner, (x[0, 0], x[0, 1], x[1]), x[:3])


def decided(x: Any) -> Any:
    """Numbers that branches and loops of unknown length give, within a loop."""

    def step(i: Any, c: Any) -> Any:
        a, n, row = c
        b = lax.cond(a > 0, lambda: a * -0.5, lambda: np.sum(row))
        m, total = lax.while_loop(
            lambda s: s[1] < 3, lambda s: (s[0] + 1, s[1] + np.abs(row[s[0] % 5])), (n, b)
        )
        return total - 3.5, m % 7, np.roll(row, 1) * 0.9

    return lax.fori_loop(0, 9, step, (x[0], 0, x))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "counts": (counts, (PLACES,)),
    "sweeps": (sweeps, (X,)),
    "two arrays that take turns": (doubled, (LINE,)),
    "two arrays, single": (doubled, (LINE.astype(np.float32),)),
    "until": (until, (LINE,)),
    "never": (never, (LINE,)),
    "branches": (chosen, (LINE,)),
    "rows": (stacked, (X,)),
    "rows, complex": (stacked, (X + 1j * X.T,)),
    "mixed": (mixed, (LINE,)),
    "numbers": (numbers, (X,)),
    "numbers, single": (numbers, (X.astype(np.float32),)),
    "numbers that are decided": (decided, (LINE,)),
    "a gradient of numbers": (
        fg.grad(lambda x: sum(np.sum(v) for v in fg.tree.leaves(numbers(x)))),
        (X[:6, :6],),
    ),
    "lanes": (fg.vmap(sweeps), (np.stack([X, X.T]),)),
    "a gradient": (fg.grad(lambda x: np.sum(sweeps(x) ** 2)), (X[:8, :8],)),
    "a gradient of rows": (fg.grad(lambda x: np.sum(stacked(x)[1][1] ** 2)), (X,)),
    "a derivative": (lambda x: fg.jvp(until, (x,), (x * 0.1,)), (LINE,)),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_loop_of_the_executor(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, args = PROGRAMS[name]
    joined = fg.tree.leaves(fg.jit(lambda *xs: f(*xs))(*args))
    monkeypatch.setenv("FUNCGRAD_SKIP_PASSES", "join")
    apart = fg.tree.leaves(fg.jit(lambda *xs: f(*xs))(*args))
    for a, b in zip(joined, apart, strict=True):
        assert a.dtype == b.dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def n_kernels(f: Callable[..., Any], *args: Any) -> int:
    text: str = fg.jit(lambda *xs: f(*xs)).lower(*args).as_text()
    return text.count("\ndef kernel")


def test_a_loop_of_little_work_is_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = n_kernels(counts, PLACES), n_kernels(sweeps, X)
    monkeypatch.setenv("FUNCGRAD_SKIP_PASSES", "join")
    apart = n_kernels(counts, PLACES), n_kernels(sweeps, X)
    assert all(a < b for a, b in zip(joined, apart, strict=True))


def test_loops_of_much_work_and_of_other_steps_are_left_to_the_executor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def heavy(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, x: np.roll(x, 1) * 0.5 + np.sort(x), x)

    def products(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, c: np.tanh(c @ c.T) + np.cumsum(c, axis=0), x)

    many = np.ones(JOINED_WORK)
    before = n_kernels(heavy, many), n_kernels(products, np.eye(50))
    monkeypatch.setenv("FUNCGRAD_SKIP_PASSES", "join")
    assert (n_kernels(heavy, many), n_kernels(products, np.eye(50))) == before


def test_a_loop_of_another_length_is_the_same_kernel() -> None:
    def kernels(n: int) -> str:
        def f(x: Any) -> Any:
            step = lambda i, c: fnp.at(c)[x[i]].add(2.5)  # noqa: E731
            return lax.fori_loop(0, n, step, fnp.zeros(40))

        text: str = fg.jit(f).lower(PLACES % 40).as_text()
        lines = text.partition("\ndef kernel")[2].splitlines()
        return "\n".join(line.partition("#")[0].rstrip() for line in lines)

    assert kernels(50) == kernels(77)


@pytest.mark.parametrize(
    "places",
    [np.arange(20), np.arange(3, 9), np.arange(20)[::-1], 2 * np.arange(9), np.array([1, 2, 4])],
)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
@pytest.mark.parametrize("is_reverse", [False, True])
def test_numbers_that_a_loop_reads_in_turn(places: Any, dtype: str, is_reverse: bool) -> None:
    """Those that count are computed; what is written beside them is read by later iterations."""

    def run(x: Any) -> Any:
        def step(x: Any, i: Any) -> tuple[Any, Any]:
            return fnp.at(fnp.at(x)[i + 1].add(x[i] // 2))[i + 2].add(1), x[i] + i

        return fg.lax.scan(step, x, places.astype(dtype), reverse=is_reverse)

    x = np.arange(5, 30)
    for result, expected in zip(fg.jit(run)(x), run(x), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_numbers_that_begin_in_another_row() -> None:
    def cholesky(a: Any) -> Any:
        n = a.shape[0]
        b = fnp.zeros((n, n))
        for i in range(n):
            for j in range(i + 1):
                s = a[i, j]
                for k in range(j):
                    s -= b[i, k] * b[j, k]
                b[i, j] = np.sqrt(s) if i == j else s / b[j, j]
        return b

    a = X[:10] @ X[:10].T
    np.testing.assert_allclose(fg.jit(cholesky)(a), np.linalg.cholesky(a))


def test_wrong_indices_are_refused_with_the_users_line() -> None:
    def total(x: Any, table: Any) -> Any:
        return lax.fori_loop(0, 500, lambda i, c: fnp.at(c)[x[i]].add(table[x[i]]), table)

    places = PLACES.copy()
    places[321] = 64
    with pytest.raises(fg.errors.OutOfBoundsError, match="64") as caught:
        fg.jit(total)(places, LINE[:64])
    assert "test_join.py" in str(caught.value)


def test_joined_loops_can_be_stopped() -> None:
    def forever(x: Any) -> Any:
        more = lambda c: np.sum(c[1]) >= 0  # noqa: E731
        return lax.while_loop(more, lambda c: (c[0] + 1, np.roll(c[1], 1)), (0, x))[1]

    f = fg.jit(forever)
    with pytest.raises(TimeoutError), fg.limits(seconds=0.3):
        f(np.abs(LINE))


def recurrence(w: Any, h: Any, x: Any) -> Any:
    return lax.scan(lambda h, x: (np.tanh(w @ h) + np.sin(h @ w) * x, None), h, x)[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [5, 8, 13, 16, 24, 50])
def test_functions_of_few_numbers_in_loops_are_vectors(n: int) -> None:
    w, h, x = RNG.normal(size=(n, n)) / n, RNG.normal(size=n), RNG.normal(size=(4, n))
    text = fg.jit(recurrence).lower(w, h, x).as_text()
    computed = re.findall(r"(\w+) = (?:libm_)?(?:tanh|sin)\(", text)
    assert computed
    assert all("_1" in name for name in computed)  # names of lanes
    assert "libm_" not in text
    expected = h
    for row in x:
        expected = np.tanh(w @ expected) + np.sin(expected @ w) * row
    np.testing.assert_allclose(fg.jit(recurrence)(w, h, x), expected, rtol=1e-12, atol=1e-14)


def test_a_row_times_a_small_matrix_is_computed_within_a_loop() -> None:
    def f(w: Any, h: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, h: h @ w, h)

    w, h = RNG.normal(size=(7, 9)), RNG.normal(size=7)
    square = w @ w.T
    text = fg.jit(f).lower(square, h).as_text()
    assert "matrix product" not in text
    expected = h @ square @ square @ square
    np.testing.assert_allclose(fg.jit(f)(square, h), expected, rtol=1e-12)
