"""Calls of jitted functions with lists and tuples of numbers alone, by one native function."""

from __future__ import annotations

import collections
import gc
import signal
import sys
import threading

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.api import calls
from funcgrad.api.number_calls import NumberCall, is_usable
from funcgrad.base.tree_code import MISS
from tests.alarms import signal_within

pytestmark = pytest.mark.skipif(not is_usable(), reason="objects are laid out in another way")


@pytest.fixture
def made(monkeypatch):
    """The native calls that are made."""
    found = []

    def recorded(*args):
        found.append(NumberCall(*args))
        return found[-1]

    monkeypatch.setattr(calls, "NumberCall", recorded)
    return found


def leaves(tree):
    return [x for part in tree for x in leaves(part)] if type(tree) in (list, tuple) else [tree]


def doubled(tree):
    if type(tree) in (list, tuple):
        return type(tree)(doubled(part) for part in tree)
    return tree * 2.0 + 1.0


NUMBERS = [0.5 * k for k in range(12)]
TREES = {
    "list": (NUMBERS,),
    "tuple": (tuple(NUMBERS),),
    "arguments": tuple(NUMBERS),
    "nested": ([[0.0, 1.0, [2.0]], (3.0, [4.0, (5.0, 6.0)]), [], ((),), 7.0], 8.0, [9.0]),
    "long": (NUMBERS * 50,),
    "deep": ([[[[[[[[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]]]]]]]]],),
}


@pytest.mark.parametrize("kind", [float, np.float64])
@pytest.mark.parametrize("name", TREES)
def test_trees_are_taken_apart_and_made(made, name, kind):
    def convert(tree):
        return type(tree)(map(convert, tree)) if type(tree) in (list, tuple) else kind(tree)

    arguments = convert(TREES[name])
    step = fg.jit(lambda *args: doubled(args))
    for _ in range(3):
        out = step(*arguments)
        assert out == doubled(arguments)
        assert all(type(x) is np.float64 for x in leaves(out))
        again = step(*arguments)
        assert again is not out
    assert len(made) == (name != "long")  # more than lie on the stack
    assert step.cache_info().traces == 1


def test_results_are_fed_back(made):
    step = fg.jit(lambda rows: [[x + 1.0 for x in row] for row in rows])
    rows = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    for k in range(20):
        rows = step(rows)
        assert rows == [[j + k + 1.0 for j in range(4)], [j + k + 5.0 for j in range(4)]]
    assert len(made) == 2  # of Python's floats, and of those that NumPy has


def test_one_result(made):
    total = fg.jit(lambda *args: sum(args))
    for _ in range(3):
        out = total(*NUMBERS)
        assert (out, type(out)) == (sum(NUMBERS), np.float64)
    assert len(made) == 1


def test_arguments_that_are_returned_or_returned_twice():
    same = fg.jit(lambda xs: (xs, xs[::-1], xs[0]))
    for _ in range(3):
        assert same(NUMBERS) == (NUMBERS, NUMBERS[::-1], NUMBERS[0])


Pair = collections.namedtuple("Pair", "x y")


class Rows(list):
    pass


def test_other_arguments_are_noticed():
    xs = list(NUMBERS)
    total = fg.jit(lambda xs: sum(leaves(xs)))
    for _ in range(3):
        assert total(xs) == sum(xs)
    traces = total.cache_info().traces
    xs[3] = 100.0  # the same list, with another number in it
    assert total(xs) == sum(xs)
    assert total.cache_info().traces == traces
    others = [
        [*NUMBERS, 1.0],
        NUMBERS[:-1],
        [*NUMBERS[:-1], 3],
        [*NUMBERS[:-1], np.float32(0.25)],
        [*NUMBERS[:-1], np.float64(0.25)],
        [*NUMBERS[:-1], np.array(0.25)],
        [*NUMBERS[:-1], True],
        [*NUMBERS[:-1], [0.25]],
        tuple(NUMBERS),
    ]
    for other in others:
        for _ in range(2):
            assert total(other) == pytest.approx(sum(map(float, leaves(other))))
    assert total(NUMBERS) == sum(NUMBERS)
    first = fg.jit(lambda xs: xs[0])
    assert first(NUMBERS) == first(NUMBERS) == 0.0
    assert first(Rows(NUMBERS)) == 0.0
    with pytest.raises(TypeError):
        first("not numbers")
    with pytest.raises(TypeError):
        first()
    assert fg.grad(first)(NUMBERS)[0] == 1.0
    assert first(NUMBERS) == 0.0


def test_other_containers_take_the_general_way(made):
    def by_name(tree):
        return {"a": tree["a"] * 2.0, "rest": [x * 2.0 for x in tree["rest"]]}

    for function, tree in (
        (by_name, {"a": 1.0, "rest": NUMBERS}),
        (lambda p: Pair(p.x * 2.0, [v * 2.0 for v in p.y]), Pair(1.0, NUMBERS)),
        (lambda p: [p[0], None, *[v * 2.0 for v in p]], NUMBERS),
    ):
        step = fg.jit(function)
        for _ in range(3):
            assert step(tree) == function(tree)
    assert made == []


def test_results_that_are_no_numbers_take_the_general_way(made):
    step = fg.jit(lambda xs: (sum(xs), np.stack(xs), xs[0] > 1.0))
    for _ in range(3):
        total, stacked, is_large = step(NUMBERS)
        assert (total, is_large) == (sum(NUMBERS), False)
        np.testing.assert_array_equal(stacked, NUMBERS)
    assert made == []


def test_numbers_are_kept_as_they_are():
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e308, -1e-308]
    same = fg.jit(lambda xs: [x * 1.0 for x in xs])
    for _ in range(3):
        np.testing.assert_array_equal(same(odd), odd)
        assert np.signbit(same(odd)[1])


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no such signals")
def test_a_signal_ends_a_program(made):
    def run(xs):
        n = (xs[0] * 1e12).astype(np.int64)
        return [fg.lax.fori_loop(0, n, lambda i, c: np.cos(c), x) for x in xs]

    step = fg.jit(run)
    short = [0.0, *NUMBERS[1:]]
    for _ in range(3):
        assert step(short) == short
    assert len(made) == 1

    def stop(number, frame):
        raise InterruptedError("enough")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        within = signal_within(0.1, signal.SIGALRM)
        with pytest.raises(InterruptedError, match="enough"), within:
            step([1.0, *NUMBERS[1:]])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert step(short) == short


@pytest.mark.usefixtures("small_heap")
def test_nothing_is_lost_or_kept():
    step = fg.jit(lambda xs: ([x + 1.0 for x in xs], xs[0]))
    xs = list(NUMBERS)
    for _ in range(3):
        step(xs)

    def work():
        for _ in range(2000):
            step(xs)

    work()
    gc.collect()
    counts = [sys.getrefcount(x) for x in (*xs, xs, MISS)]
    before = sys.getallocatedblocks()
    work()
    gc.collect()
    assert sys.getallocatedblocks() - before < 1000
    assert counts == [sys.getrefcount(x) for x in (*xs, xs, MISS)]


def test_threads_call_at_once():
    step = fg.jit(lambda xs: [fg.lax.fori_loop(0, 200, lambda i, c, x=x: c + x, x) for x in xs])
    step(NUMBERS), step(NUMBERS)
    wrong = []

    def work(k):
        xs = [x + k for x in NUMBERS]
        for _ in range(100):
            if step(xs) != [201.0 * x for x in xs]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_variables_around_are_looked_at():
    factor = [2.0]
    step = fg.jit(lambda xs: [x * factor[0] for x in xs])
    for _ in range(3):
        assert step(NUMBERS) == [x * 2.0 for x in NUMBERS]
