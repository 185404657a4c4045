"""Branches and loops that change a part of an array, or leave it as it is, do so where it is.

References are NumPy's arrays of integers, copied for each step, so that results are equal.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from tests.compiler.plans import steps_of
from tests.test_length import calls

STEPS = 7
Body = Callable[..., Any]

# Changes of two arrays at a place: what each does in NumPy, and in a program.


def set_one(a: Any, b: Any, i: Any) -> Any:
    a, b = a.copy(), b.copy()
    a[i] = 2 * a[i] + b[i]
    return a, b


def add_two(a: Any, b: Any, i: Any) -> Any:
    a, b = a.copy(), b.copy()
    a[i] += 3
    a[i + 1] -= 5
    b[i] = a[i]
    return a, b


def set_rest(a: Any, b: Any, i: Any) -> Any:
    a, b = a.copy(), b.copy()
    a[2:] = b[:-2] + a[1:-1]
    return a, b


CHANGES: dict[str, tuple[Body, Body]] = {
    "nothing": (lambda a, b, i: (a, b), lambda a, b, i: (a, b)),
    "one": (set_one, lambda a, b, i: (a.at[i].set(2 * a[i] + b[i]), b)),
    "two": (
        add_two,
        lambda a, b, i: ((c := a.at[i].add(3).at[i + 1].add(-5)), b.at[i].set(c[i])),
    ),
    "rest": (set_rest, lambda a, b, i: (a.at[2:].set(b[:-2] + a[1:-1]), b)),
    "all": (lambda a, b, i: (3 - a, b ^ 5), lambda a, b, i: (3 - a, b ^ 5)),
    "some": (
        lambda a, b, i: (np.where(a > b, a - b, a), b),
        lambda a, b, i: (fnp.where(a > b, a - b, a), b),
    ),
    "neighbours": (
        lambda a, b, i: (np.roll(a, 1) - a, np.roll(b, i) & 255),
        lambda a, b, i: (fnp.roll(a, 1) - a, fnp.roll(b, i) & 255),
    ),
    "each other": (lambda a, b, i: (b, a), lambda a, b, i: (b, a)),
    "twice": (lambda a, b, i: (a, a), lambda a, b, i: (a, a)),
    "total": (
        lambda a, b, i: (a + np.sum(a) % 7, np.where(np.arange(len(b)) == i, np.sum(b) % 9, b)),
        lambda a, b, i: (a + fnp.sum(a) % 7, b.at[i].set(fnp.sum(b) % 9)),
    ),
}


def arguments(n: int, seed: int, n_bodies: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-9, 9, (2, n))
    return a, b, rng.integers(0, n_bodies, STEPS), rng.integers(0, n - 1, STEPS)


def expected(names: list[str], a: Any, b: Any, which: Any, places: Any) -> Any:
    for k, i in zip(which, places, strict=True):
        a, b = CHANGES[names[k]][0](a, b, i)
    return a, b


def scanned(names: list[str], a: Any, b: Any, which: Any, places: Any) -> Any:
    bodies = [CHANGES[name][1] for name in names]

    def step(state: Any, xs: Any) -> Any:
        return lax.switch(xs[0], bodies, *state, xs[1]), None

    return lax.scan(step, (a, b), (which, places))[0]


def nested(names: list[str], a: Any, b: Any, which: Any, places: Any) -> Any:
    """The first two bodies inside of a branch, in a loop of unknown length."""
    first, *others = (CHANGES[name][1] for name in names)

    def choose(k: Any, a: Any, b: Any, i: Any) -> Any:
        return lax.cond(k == 0, first, lambda *x: lax.switch(k - 1, others, *x), a, b, i)

    def step(state: Any) -> Any:
        t, a, b = state
        return t + 1, *choose(which[t], a, b, places[t])

    return lax.while_loop(lambda state: state[0] < STEPS, step, (0, a, b))[1:]


def written_out(names: list[str], a: Any, b: Any, which: Any, places: Any) -> Any:
    bodies = [CHANGES[name][1] for name in names]
    for t in range(STEPS):
        a, b = lax.switch(which[t], bodies, a, b, places[t])
    return a, b


def loops_inside(names: list[str], a: Any, b: Any, which: Any, places: Any) -> Any:
    """The first body in a loop of its own, which begins with what the step has made."""
    bodies = [CHANGES[name][1] for name in names]

    def step(state: Any, xs: Any) -> Any:
        k, i = xs
        count = fnp.where(k == 0, 1, 0)
        a, b = lax.fori_loop(0, 1, lambda _, s: lax.cond(k == 0, bodies[0], kept, *s, i), state)
        a, b = lax.fori_loop(
            0, 1 - count, lambda _, s: lax.switch(k - 1, bodies[1:], *s, i), (a, b)
        )
        return (a, b), None

    def kept(a: Any, b: Any, i: Any) -> Any:
        return a, b

    return lax.scan(step, (a, b), (which, places))[0]


PROGRAMS = {f.__name__: f for f in (scanned, nested, written_out, loops_inside)}


def check(program: str, names: list[str], n: int, seed: int) -> None:
    given = arguments(n, seed, len(names))
    wanted = expected(names, *given)
    for donate in ((), (0, 1)):
        f = fg.jit(lambda *args: PROGRAMS[program](names, *args), donate_argnums=donate)
        found = f(*(x.copy() for x in given))
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=f"{program} {names} {donate}")


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "nothing"])
def test_one_change_or_nothing(name: str) -> None:
    check("scanned", ["nothing", name], 300, 1)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("seed", range(12))
def test_random_branches(program: str, seed: int) -> None:
    rng = random.Random(seed)
    names = rng.sample(sorted(CHANGES), 3)
    check(program, names, rng.choice([40, 300, 9000]), seed)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_loops_in_loops_begin_where_their_start_is(name: str, length: int) -> None:
    numpys, change = CHANGES[name]
    a, b, _, places = arguments(300, 2, 1)

    def f(a: Any, b: Any, places: Any) -> Any:
        def step(state: Any, i: Any) -> Any:
            a, b = state
            a = a.at[i].set(7)
            return lax.fori_loop(0, length, lambda t, s: change(*s, i), (a, b)), a[i]

        return lax.scan(step, (a, b), places)

    (x, y), read = fg.jit(f)(a, b, places)
    for k, i in enumerate(places):
        a = a.copy()
        a[i] = 7
        assert read[k] == 7
        for _ in range(length):
            a, b = numpys(a, b, i)
    np.testing.assert_array_equal(x, a)
    np.testing.assert_array_equal(y, b)


@pytest.mark.parametrize("n", [5, 40, 200, 300])
def test_insertions_into_sorted_numbers_copy_none_of_them(n: int) -> None:
    def sort(x: Any) -> Any:
        def insert(i: Any, x: Any) -> Any:
            new = x[i]

            def is_before(state: Any) -> Any:
                x, j = state
                return (j > 0) & (x[np.maximum(j - 1, 0)] > new)

            def shift(state: Any) -> Any:
                x, j = state
                return x.at[j].set(x[j - 1]), j - 1

            x, j = lax.while_loop(is_before, shift, (x, i))
            return x.at[j].set(new)

        return lax.fori_loop(1, n, insert, x)

    x = np.random.default_rng(0).normal(size=n)
    compiled = fg.jit(sort)
    np.testing.assert_array_equal(compiled(x), np.sort(x))
    loop = next(k for k in compiled.lower(x).as_text().split("def kernel") if "while " in k)
    assert n < 16 or "lanes(" not in loop


def test_a_step_takes_no_work_for_all_elements() -> None:
    def f(a: Any, flags: Any, places: Any) -> Any:
        def step(a: Any, xs: Any) -> Any:
            return lax.cond(
                xs[0], lambda a, i: a.at[i].set(2 * a[i]), lambda a, i: a, a, xs[1]
            ), None

        return lax.scan(step, a, (flags, places))[0]

    given = np.arange(9000.0), np.ones(STEPS, bool), np.arange(STEPS)
    np.testing.assert_array_equal(
        fg.jit(f)(*given), np.where(np.arange(9000) < STEPS, 2.0, 1.0) * given[0]
    )
    steps = steps_of(fg.jit(f).lower(*given).as_text())
    assert steps.count("9000 iterations") == 1  # the argument is copied, once


def test_products_are_computed_where_assembled_arrays_have_them() -> None:
    def f(a: Any, b: Any, c: Any) -> Any:
        return fnp.concatenate([a @ b, c @ b, fnp.zeros((3, b.shape[1]))])

    def of_itself(x: Any, b: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, x: fnp.at(x)[10:50].set(x[:40] @ b), x)

    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(size=n) for n in ((70, 40), (40, 33), (50, 40)))
    np.testing.assert_allclose(fg.jit(f)(a, b, c), f(a, b, c), rtol=1e-12)
    steps = steps_of(fg.jit(f).lower(a, b, c).as_text())
    assert steps.count("iterations") == 1  # that of the zeros
    x, square = rng.normal(size=(90, 40)), rng.normal(size=(40, 40))
    expected = of_itself(x, square)
    for donated in ((), (0,)):
        found = fg.jit(of_itself, donate_argnums=donated)(x.copy(), square)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_branches_in_branches_are_searched_once() -> None:
    def nested(depth: int) -> Body:
        if not depth:
            return lambda i, xs: [fnp.at(x)[i].set(1.0) for x in xs]
        inner = nested(depth - 1)
        return lambda i, xs: lax.cond(i > depth, lambda ys: inner(i, ys), lambda ys: ys, xs)

    def planned(depth: int) -> int:
        given = np.int64(3), [np.zeros(500) for _ in range(6)]
        return calls(lambda: fg.jit(nested(depth)).lower(*given).as_text())

    planned(4)  # what is done once
    low, middle, high = map(planned, (2, 3, 4))
    assert high - middle <= 1.3 * (middle - low)
