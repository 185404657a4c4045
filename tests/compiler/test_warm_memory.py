"""Large results get the memory of large results that are gone, and nothing else does."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.runtime import warm_memory

N = 1 << 17
"""Numbers of a large array: a mebibyte of float64."""

ADDED = fg.jit(lambda x, c: x + c)


@pytest.fixture(autouse=True, scope="module")
def without_garbage() -> None:
    """Begin without what tests of other files have left."""
    gc.collect()


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Begin and end with nothing kept."""
    warm_memory.drop_kept()
    yield
    warm_memory.drop_kept()


def address(x: np.ndarray) -> int:
    return int(x.ctypes.data)


def test_a_large_result_gets_the_memory_of_one_that_is_gone() -> None:
    x = np.arange(float(N))
    found = {address(ADDED(x, float(c))) for c in range(10)}
    assert len(found) == 1
    assert warm_memory.kept_bytes() == x.nbytes
    y = ADDED(x, 1.0)
    assert warm_memory.kept_bytes() == 0
    np.testing.assert_array_equal(y, x + 1.0)


def test_it_is_an_array_like_any_other() -> None:
    y = ADDED(np.zeros(N), 1.0)
    assert y.base is None
    assert y.flags.owndata
    assert y.flags.carray
    y.resize(2 * N, refcheck=False)
    assert y[N - 1] == 1.0
    del y
    before = warm_memory.kept_bytes()
    z = np.empty(N)
    assert warm_memory.kept_bytes() == before, "NumPy's own arrays come from elsewhere"
    del z
    assert warm_memory.kept_bytes() == before


def test_a_view_keeps_the_memory_of_a_result() -> None:
    x = np.arange(float(N))
    part = ADDED(x, 1.0)[5:9]
    for c in range(4):
        ADDED(x, float(c))
    np.testing.assert_array_equal(part, [6.0, 7.0, 8.0, 9.0])


def test_results_that_live_share_no_memory() -> None:
    x = np.arange(float(N))
    kept = [ADDED(x, float(c)) for c in range(6)]
    del kept[1::2]
    kept += [ADDED(x, float(c)) for c in (1, 3, 5)]
    for y, c in zip(kept, (0, 2, 4, 1, 3, 5), strict=True):
        np.testing.assert_array_equal(y, x + c)


def test_small_results_are_not_kept() -> None:
    x = np.zeros(warm_memory.LEAST_BYTES // 8 - 1)
    fg.jit(lambda x: x + 1.0)(x)
    assert warm_memory.kept_bytes() == 0


@pytest.mark.parametrize(("n", "size"), [(4, 100 << 20), (100, 1 << 20), (1, 300 << 20)])
def test_what_is_kept_is_bounded(n: int, size: int) -> None:
    make = warm_memory.maker()
    assert make is not None
    arrays = [make((size,), np.uint8) for _ in range(n)]
    places = [address(x) for x in arrays]
    while arrays:
        del arrays[0]
    most = min(n, warm_memory.MOST_ARRAYS, warm_memory.MOST_BYTES // size)
    assert warm_memory.kept_bytes() == most * size
    found = [make((size,), np.uint8) for _ in range(most)]
    assert [address(x) for x in found] == places[::-1][:most], "the oldest are gone"


def test_clearing_the_caches_gives_it_back() -> None:
    ADDED(np.zeros(N), 1.0)
    assert warm_memory.kept_bytes() > 0
    fg.clear_caches()
    assert warm_memory.kept_bytes() == 0


def test_calls_that_go_through_numpy_and_converted_arguments() -> None:
    x = np.arange(float(N))
    f = fg.jit(lambda x: np.fft.fft(x).real + x)
    expected = np.fft.fft(x).real + x
    for given in (x, x.astype(np.float32).astype(float)[::1], np.repeat(x, 2)[::2]):
        np.testing.assert_allclose(f(given), expected, rtol=1e-9, atol=1e-6 * N)


def test_threads_get_memory_of_their_own() -> None:
    x = np.arange(float(N))
    wrong: list[float] = []

    def work(k: int) -> None:
        for i in range(30):
            c = float(100 * k + i)
            y = ADDED(x, c)
            if y[0] != c or y[-1] != x[-1] + c:
                wrong.append(c)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_has_memory_of_its_own() -> None:
    x = np.arange(float(N))
    ADDED(x, 1.0)
    child = os.fork()
    if child == 0:
        right = all(np.array_equal(ADDED(x, float(c)), x + c) for c in range(3))
        os._exit(0 if right else 1)
    y = ADDED(x, 7.0)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(y, x + 7.0)


def test_nobody_waits_for_a_table_in_use() -> None:
    made = warm_memory.handler()
    assert made is not None
    x = np.arange(float(N))
    y = ADDED(x, 1.0)
    made.table[0] = 1
    try:
        z = ADDED(x, 2.0)
        del y
        np.testing.assert_array_equal(z, x + 2.0)
        del z
        warm_memory.drop_kept()
        assert warm_memory.kept_bytes() == 0
    finally:
        made.table[0] = 0


def test_without_a_place_for_handlers_arrays_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_memory, "array_interface", lambda: 0)
    for cached in (warm_memory.handler, warm_memory.maker):
        cached.cache_clear()
    try:
        assert warm_memory.maker() is None
        f = fg.jit(lambda x: x - 3.0)
        np.testing.assert_array_equal(f(np.zeros(N)), np.full(N, -3.0))
    finally:
        for cached in (warm_memory.handler, warm_memory.maker):
            cached.cache_clear()


def test_results_may_outlive_the_interpreter() -> None:
    program = """
import sys
import numpy as np, funcgrad as fg
f = fg.jit(lambda x: x + 1.0)
sys.kept = [f(np.zeros(1 << 17)) for _ in range(3)]
kept = f(np.zeros(1 << 17))
"""
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(root)},
        check=True,
        timeout=120,
    )
