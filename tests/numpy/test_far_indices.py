"""Indices of every integer dtype, far beyond the array: positions never wrap around.

What each mode makes of an index is computed here with Python's integers, which have no width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax


def some(names: str, *, first: int) -> list[Any]:
    """Letters, of which the first ones are tried in every run."""
    return [*names[:first], *(pytest.param(c, marks=pytest.mark.nightly) for c in names[first:])]


INTEGERS = some("LbhilBHI", first=2)
N = 300
"""Length of the axis: more than an index of 8 bits can reach."""
TABLE = np.arange(2.0 * N).reshape(N, 2) + 1
LINE = TABLE[:, 0].copy()


def far(dtype: str) -> np.ndarray:
    """Indices inside, at the ends, beyond the ends, at powers of two, and at those of the dtype."""
    info = np.iinfo(dtype)
    powers = [
        s * (1 << k) + d for s in (1, -1) for k in (7, 8, 15, 16, 31, 32, 63) for d in (-1, 3)
    ]
    wanted = [0, 5, -1, N - 1, N, -N, -N - 1, 2 * N, 2**32 + 3, *powers, info.min, info.max]
    return np.array([i for i in wanted if info.min <= i <= info.max], dtype)


def clipped(i: int) -> int:
    return min(max(i, 0), N - 1)


def counted(i: int) -> int:
    """From the end if it is negative."""
    return i + N if i < 0 else i


def is_inside(i: int) -> bool:
    return -N <= i < N


READS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int], int | None]]] = {
    "at clip": (lambda x, i: fnp.at(x)[i].get(mode="clip"), lambda i: clipped(counted(i))),
    "at clip from the start": (
        lambda x, i: fnp.at(x)[i].get(mode="clip", wrap_negative_indices=False),
        clipped,
    ),
    "at fill": (
        lambda x, i: fnp.at(x)[i].get(mode="fill", fill_value=-7),
        lambda i: counted(i) if is_inside(i) else None,
    ),
    "at fill from the start": (
        lambda x, i: fnp.at(x)[i].get(mode="fill", fill_value=-7, wrap_negative_indices=False),
        lambda i: i if 0 <= i < N else None,
    ),
    "at wrap": (lambda x, i: fnp.at(x)[i].get(mode="wrap"), lambda i: i % N),
    "take clip": (lambda x, i: fnp.take(x, i, axis=0, mode="clip"), clipped),
    "take wrap": (lambda x, i: fnp.take(x, i, axis=0, mode="wrap"), lambda i: i % N),
    "take fill": (
        lambda x, i: fnp.take(x, i, axis=0, mode="fill", fill_value=-7),
        lambda i: counted(i) if is_inside(i) else None,
    ),
    "take_along_axis clip": (
        lambda x, i: fnp.take_along_axis(x, i[:, None], 0, mode="clip"),
        clipped,
    ),
    "take_along_axis wrap": (
        lambda x, i: fnp.take_along_axis(x, i[:, None], 0, mode="wrap"),
        lambda i: i % N,
    ),
    "take_along_axis fill": (
        lambda x, i: fnp.take_along_axis(x, i[:, None], 0, mode="fill", fill_value=-7),
        lambda i: counted(i) if is_inside(i) else None,
    ),
    "choose clip": (
        lambda x, i: fnp.choose(i[:, None], [x[0], x[1], x[-1]], mode="clip"),
        lambda i: (0, 1, N - 1)[min(max(i, 0), 2)],
    ),
    "ravel_multi_index clip": (
        lambda x, i: x[fnp.ravel_multi_index((i,), (N,), "clip")],
        clipped,
    ),
    "ravel_multi_index wrap": (
        lambda x, i: x[fnp.ravel_multi_index((i,), (N,), "wrap")],
        lambda i: i % N,
    ),
    "dynamic slice": (
        lambda x, i: fg.vmap(lambda k: lax.dynamic_slice(x, (k, np.int64(0)), (1, 2))[0])(i),
        lambda i: clipped(counted(i)),
    ),
    "dynamic slice in a loop": (
        lambda x, i: lax.map(lambda k: lax.dynamic_slice(x, (k, np.int64(0)), (1, 2))[0], i),
        lambda i: clipped(counted(i)),
    ),
    "clip in a loop": (
        lambda x, i: lax.map(lambda k: fnp.at(x)[k].get(mode="clip"), i),
        lambda i: clipped(counted(i)),
    ),
    "wrap in a loop": (
        lambda x, i: lax.map(lambda k: fnp.at(x)[k].get(mode="wrap"), i),
        lambda i: i % N,
    ),
    "fill in a loop": (
        lambda x, i: lax.map(lambda k: fnp.at(x)[k].get(mode="fill", fill_value=-7), i),
        lambda i: counted(i) if is_inside(i) else None,
    ),
    "switch": (
        lambda x, i: lax.map(
            lambda k: lax.switch(k, [lambda r=r: r for r in (x[0], x[1], x[-1])]), i
        ),
        lambda i: (0, 1, N - 1)[min(max(i, 0), 2)],
    ),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", READS)
def test_reads(name: str, dtype: str) -> None:
    f, place = READS[name]
    index = far(dtype)
    places = [place(int(i)) for i in index]
    expected = np.array([TABLE[p] if p is not None else [-7, -7] for p in places])
    np.testing.assert_array_equal(fg.jit(f)(TABLE, index), expected)
    np.testing.assert_array_equal(f(TABLE, index), expected)


WRITES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int], int | None]]] = {
    f"{how} {mode}{start}": (
        lambda x, i, u, how=how, mode=mode, counts=not start: getattr(fnp.at(x)[i], how)(
            u, mode=mode, wrap_negative_indices=counts
        ),
        {
            "clip": lambda i, counts=not start: clipped(counted(i) if counts else i),
            "drop": lambda i, counts=not start: (
                (counted(i) if is_inside(i) else None) if counts else (i if 0 <= i < N else None)
            ),
            "wrap": lambda i: i % N,
        }[mode],
    )
    for how in ("set", "add", "max")
    for mode in ("clip", "drop", "wrap")
    for start in ("", " from the start")
}  # fmt: skip


def written(x: np.ndarray, places: list[int | None], how: str, updates: np.ndarray) -> np.ndarray:
    out = x.copy()
    for place, update in zip(places, updates, strict=True):
        if place is not None:
            old = out[place]
            out[place] = {"set": update, "add": old + update, "max": max(old, update)}[how]
    return out


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", some("bLhilBHI", first=1))
@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, dtype: str) -> None:
    f, place = WRITES[name]
    index = far(dtype)
    updates = np.arange(float(len(index))) + 1000
    expected = written(LINE, [place(int(i)) for i in index], name.split()[0], updates)
    np.testing.assert_array_equal(fg.jit(f)(LINE, index, updates), expected)
    np.testing.assert_array_equal(f(LINE, index, updates), expected)

    def one_by_one(x: Any, index: Any, updates: Any) -> Any:
        return lax.scan(lambda x, row: (f(x, *row), None), x, (index, updates))[0]

    np.testing.assert_array_equal(fg.jit(one_by_one)(LINE, index, updates), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("mode", ["clip", "drop", "wrap"])
def test_places_that_are_known_when_it_is_compiled(mode: str, dtype: str) -> None:
    """Two places count evenly, whatever they are; the step between them may have 65 bits."""
    read, (write, place) = READS[f"take {mode.replace('drop', 'fill')}"], WRITES[f"set {mode}"]
    info, updates = np.iinfo(dtype), np.array([1.0, 2.0])
    for pair in ((0, info.max), (info.max, 1), (info.min, info.max), (info.max, info.min)):
        index = np.array(pair, dtype)
        expected = written(LINE, [place(int(i)) for i in index], "set", updates)
        got = fg.jit(lambda x, u, index=index: write(x, index, u))(LINE, updates)
        np.testing.assert_array_equal(got, expected)
        places = [read[1](int(i)) for i in index]
        rows = np.array([TABLE[p] if p is not None else [-7, -7] for p in places])
        got = fg.jit(lambda x, index=index: read[0](x, index))(TABLE)
        np.testing.assert_array_equal(got, rows)


@pytest.mark.parametrize("values", some("fdbiF", first=1))
@pytest.mark.parametrize("dtype", some("lLbhiBHI", first=2))
@pytest.mark.parametrize("mode", ["clip", "drop", "wrap"])
def test_one_element_of_each_row(mode: str, dtype: str, values: str) -> None:
    """Rows that are counted share kernels with what reads them, and compare narrow places."""
    _, place = WRITES[f"add {mode}"]
    index = far(dtype)
    rows = np.arange(len(index))
    expected = np.zeros((len(index), N), values)
    for row, i in zip(rows, index, strict=True):
        column = place(int(i))
        if column is not None:
            expected[row, column] = row + 1

    def f(i: Any, u: Any) -> Any:
        return fnp.at(fnp.zeros((len(rows), N), values))[rows, i].add(u, mode=mode)

    updates = (rows + 1).astype(values)
    np.testing.assert_array_equal(fg.jit(f)(index, updates), expected)
    np.testing.assert_array_equal(f(index, updates), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_lanes_segments_and_windows(dtype: str) -> None:
    index = far(dtype)
    inside = [int(i) for i in index]
    rows = np.arange(float(len(index)))
    sums = written(np.zeros(N), [i if 0 <= i < N else None for i in inside], "add", rows)
    f = fg.jit(lambda u, i: fg.ops.segment_sum(u, i, N))
    np.testing.assert_array_equal(f(rows, index), sums)
    sums = written(np.zeros(N), [clipped(i) for i in inside], "add", rows)
    f = fg.jit(lambda u, i: fg.ops.segment_sum(u, i, N, mode="clip"))
    np.testing.assert_array_equal(f(rows, index), sums)

    def replaced(x: Any, i: Any) -> Any:
        return lax.dynamic_update_slice(x, np.array([-1.0]), (i,))

    expected = [written(LINE, [clipped(counted(i))], "set", np.array([-1.0])) for i in inside]
    np.testing.assert_array_equal(fg.jit(fg.vmap(replaced, (None, 0)))(LINE, index), expected)
    got = fg.jit(lambda x, i: lax.map(lambda k: replaced(x, k), i))(LINE, index)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal([replaced(LINE, i) for i in index], expected)

    def walk(i: Any) -> Any:
        """A loop over a few numbers, which becomes one over lanes."""
        table = LINE[:3]
        return lax.fori_loop(0, 2, lambda _, c: c + fnp.at(table)[i].get(mode="clip"), 0.0)

    expected = [2 * LINE[min(max(i + 3 if i < 0 else i, 0), 2)] for i in inside]
    np.testing.assert_array_equal(fg.jit(fg.vmap(walk))(index), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_gradients_read_and_write_at_the_same_places(dtype: str) -> None:
    index = far(dtype)
    places = [clipped(counted(int(i))) for i in index]
    slope = fg.jit(fg.grad(lambda x, i, u: fnp.sum(u * fnp.at(x)[i].get(mode="clip"))))
    updates = np.arange(float(len(index)))
    expected = written(np.zeros(N), places, "add", updates)
    np.testing.assert_array_equal(slope(LINE, index, updates), expected)
    product = fg.grad(lambda u, i: fnp.sum(fnp.at(LINE)[i].mul(u, mode="wrap")))
    counts = np.unique([int(i) % N for i in index], return_inverse=True)
    others = np.array([LINE[int(i) % N] for i in index])
    for k, group in enumerate(counts[1]):
        mates = np.flatnonzero(counts[1] == group)
        others[k] *= np.prod(1 + updates[mates[mates != k]])
    np.testing.assert_allclose(product(1 + updates, index), others, rtol=1e-12)


def test_negative_numbers_count_from_the_end_of_long_axes() -> None:
    """A known index of 8 bits, on an axis that is longer than these count."""
    for x in (LINE, fnp.asarray(LINE)):
        np.testing.assert_array_equal(fnp.take(x, np.array([-1, 2], np.int8)), LINE[[-1, 2]])
        f = fg.jit(lambda x: x[np.array([-1, 2], np.int8)])
        np.testing.assert_array_equal(f(x), LINE[[-1, 2]])
