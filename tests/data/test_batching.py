"""Batches, what is prepared ahead, and splits."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import data
from funcgrad.errors import ArgumentError, ShapeError

SIZES = [(10, 4), (12, 4), (3, 4), (0, 4), (5, 1)]


def examples(count: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(2.0 * count).reshape(count, 2), "y": np.arange(count)}


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize(("count", "size"), SIZES)
def test_batches_visit_every_example_once(count, size, seed, drop_last):
    made = data.batches(examples(count), size, seed=seed, drop_last=drop_last)
    found = list(made)
    assert len(made) == len(found) == (count // size if drop_last else -(-count // size))
    rows = np.concatenate([b["y"] for b in found]) if found else np.zeros(0, int)
    assert len(set(rows.tolist())) == len(rows) == (count - count % size if drop_last else count)
    for b in found:
        np.testing.assert_array_equal(b["x"][:, 0], 2 * b["y"])
    assert all(len(b["y"]) == size for b in found[:-1])
    if seed is None:
        np.testing.assert_array_equal(rows, np.arange(len(rows)))


def order(**arguments) -> list[int]:
    return np.concatenate(list(data.batches(np.arange(100), 7, **arguments))).tolist()


def test_order_comes_from_the_seed_alone():
    assert order(seed=1) == order(seed=1) == order(seed=fg.random.key(1)) == order(seed=np.uint8(1))
    assert order(seed=1) != order(seed=2) != list(range(100))
    assert order(seed=1, shuffle=False) == order() == list(range(100))
    assert order(seed=-1) == order(seed=fg.random.key(-1))
    made = data.batches(np.arange(9), 4, seed=5)
    assert [b.tolist() for b in made] == [b.tolist() for b in made]
    assert order(seed=1)[:5] == [19, 76, 54, 90, 30]  # as jax.random.permutation


def test_batches_of_one_array_without_shuffling_are_views():
    x = np.arange(6)
    assert all(np.shares_memory(b, x) for b in data.batches(x, 4))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: data.batches((), 2), ArgumentError, "data.batches needs at least one array"),
        (lambda: data.batches(np.ones(3), 0), ArgumentError, "size must be at least 1, got 0"),
        (lambda: data.batches(np.ones(3), 2, shuffle=True), ArgumentError, "needs a seed"),
        (lambda: data.batches(np.ones(3), 2, seed=0.5), ArgumentError, "an integer or a key"),
        (lambda: data.batches(np.ones(3), 2, seed=np.ones(2)), ArgumentError, "or a key"),
        (lambda: data.batches([1, 2, 3], 2), ShapeError, r"arrays\[0\] has no axis of examples"),
        (
            lambda: data.batches({"x": np.ones(3), "y": np.ones(4)}, 2),
            ShapeError,
            r"arrays\['y'\] has 4 examples, but arrays\['x'\] has 3",
        ),
        (
            lambda: fg.jit(lambda x: data.batches(x, 2))(np.ones(3)),
            ArgumentError,
            "arrays is traced",
        ),
        (
            lambda: data.train_test_split(np.ones(3), 0.0, seed=0),
            ArgumentError,
            "leaves one of them empty",
        ),
        (lambda: data.train_test_split(np.ones(3), 3, seed=0), ArgumentError, "one of them empty"),
        (lambda: data.train_test_split(np.ones(1), 0.5, seed=0), ArgumentError, "of 1 leaves one"),
        (
            lambda: data.train_test_split(np.ones(3), 1, seed=0, stratify=np.ones(2)),
            ShapeError,
            "one label for each of 3 examples",
        ),
        (lambda: data.prefetch([], 0), ArgumentError, "n must be at least 1"),
    ],
)
def test_mistakes_are_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize(
    ("test_size", "tests"), [(0.25, 26), (0.2, 21), (10, 10), (np.int64(1), 1)]
)
def test_splits_have_the_size_and_lose_nothing(test_size, tests):
    train, test = data.train_test_split(examples(101), test_size, seed=4)
    assert len(test["y"]) == tests
    assert sorted([*train["y"], *test["y"]]) == list(range(101))
    np.testing.assert_array_equal(test["x"][:, 0], 2 * test["y"])
    again = data.train_test_split(examples(101), test_size, seed=4)
    np.testing.assert_array_equal(test["y"], again[1]["y"])
    other = data.train_test_split(examples(101), test_size, seed=5)[1]
    assert test["y"].tolist() != other["y"].tolist()


def test_a_share_is_exact_where_floating_point_is_not():
    assert len(data.train_test_split(np.arange(100), 0.07, seed=0)[1]) == 7


@pytest.mark.parametrize("test_size", [0.2, 0.33, 0.5, 7, 90])
def test_stratified_splits_keep_the_shares(test_size):
    labels = np.random.default_rng(0).choice(["a", "b", "c", "rare"], 97, p=[0.5, 0.3, 0.19, 0.01])
    train, test = data.train_test_split(labels, test_size, seed=0, stratify=labels)
    expected = -(-97 * test_size // 1) if test_size < 1 else test_size
    assert len(test) == expected
    assert len(train) + len(test) == 97
    for kind in "abc":
        share = (labels == kind).sum() * len(test) / 97
        assert abs((test == kind).sum() - share) < 1


def test_stratified_splits_differ_by_seed_and_are_mixed():
    labels = np.repeat([0, 1], 50)
    first, second = (
        data.train_test_split(np.arange(100), 0.5, seed=s, stratify=labels)[1] for s in (0, 1)
    )
    assert set(first) != set(second)
    assert first.tolist() != sorted(first)


# Prefetching.


def workers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "funcgrad.data.prefetch"]


def wait_until(condition) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen in ten seconds")


def test_prefetch_gives_the_elements_in_order_and_ends():
    assert list(data.prefetch(range(100), 3)) == list(range(100))
    assert list(data.prefetch([])) == []
    wait_until(lambda: not workers())


def test_prefetch_works_ahead_but_not_further():
    made = []
    with data.prefetch((made.append(i) or i for i in range(100)), 3) as ahead:
        wait_until(lambda: len(made) == 4)  # three are ready, one waits for room
        time.sleep(0.02)
        assert len(made) == 4
        assert next(ahead) == 0
        wait_until(lambda: len(made) == 5)
    assert not workers()
    assert list(ahead) == []


def test_errors_come_through_after_the_elements_before_them():
    def broken():
        yield 1
        yield 2
        raise KeyError("row 3")

    ahead = data.prefetch(broken())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(KeyError, match="row 3"):
        next(ahead)
    assert list(ahead) == []


def test_closing_closes_the_generator_in_its_thread():
    ended_in = []

    def numbers():
        try:
            while True:
                yield 0
        finally:
            ended_in.append(threading.current_thread().name)

    with data.prefetch(numbers()) as ahead:
        next(ahead)
    assert ended_in == ["funcgrad.data.prefetch"]
    ahead.close()  # a second time is harmless


@pytest.mark.usefixtures("small_heap")
def test_what_is_dropped_is_closed():
    ahead = data.prefetch(iter(int, 1))
    assert next(ahead) == 0
    del ahead
    gc.collect()
    wait_until(lambda: not workers())


def test_the_thread_sees_the_settings_around_it():
    with fg.debug_infs(), data.prefetch(fg.jit(np.log)(x) for x in (1.0, 0.0)) as ahead:
        assert next(ahead) == 0.0
        with pytest.raises(FloatingPointError):
            next(ahead)


def test_the_process_ends_while_elements_wait():
    code = "from funcgrad import data\nahead = data.prefetch(iter(int, 1))\nprint(next(ahead))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
