"""Lookups in the kernels of what is around them; scatters, searches and calls on several threads.

References are NumPy's indexing and ``ufunc.at``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from tests.compiler.plans import steps_of

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=50)
MATRIX = RNG.normal(size=(20, 30))
POINTS = RNG.normal(size=(12, 3))
PLACES = RNG.integers(0, 20, size=40)
COLUMNS = RNG.integers(0, 30, size=(20, 30))


def steps(f: Callable[..., Any], *args: Any) -> list[str]:
    return steps_of(fg.jit(f).lower(*args).as_text()).splitlines()


def check(f: Callable[..., Any], expected: Any, *args: Any) -> None:
    found = fg.jit(f)(*args)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13, strict=True)


ONE_KERNEL: dict[str, tuple[Callable[..., Any], Any, tuple[Any, ...]]] = {
    "before and after": (
        lambda x, i: np.exp(x[i * 2 % 50]) * 3,
        np.exp(TABLE[PLACES * 2 % 50]) * 3,
        (TABLE, PLACES),
    ),
    "two tables": (
        lambda x, y, i: x[i] - y[i, 3],
        TABLE[PLACES] - MATRIX[PLACES, 3],
        (TABLE, MATRIX, PLACES),
    ),
    "rows": (lambda x, i: x[i] * 2 + 1, MATRIX[PLACES] * 2 + 1, (MATRIX, PLACES)),
    "short rows": (lambda x, i: x[i] * 2 + 1, POINTS[PLACES % 12] * 2 + 1, (POINTS, PLACES % 12)),
    "columns": (lambda x, i: x[:, i] * 2, MATRIX[:, PLACES] * 2, (MATRIX, PLACES)),
    "sums": (lambda x, i: np.sum(x[i] ** 2), np.sum(TABLE[PLACES] ** 2), (TABLE, PLACES)),
    "sums of rows": (
        lambda x, i: np.sum(x[i], axis=1),
        np.sum(MATRIX[PLACES], axis=1),
        (MATRIX, PLACES),
    ),
    "along an axis": (
        lambda x, i: fnp.take_along_axis(x, i, axis=1) + x,
        np.take_along_axis(MATRIX, COLUMNS, axis=1) + MATRIX,
        (MATRIX, COLUMNS),
    ),
    "filled": (
        lambda x, i: x.at[i - 10].get(mode="fill", fill_value=7.0) * 2,
        np.where(PLACES < 5, TABLE[(PLACES + 40) % 50], TABLE[PLACES - 10]) * 2,
        (TABLE, PLACES),
    ),
    "window": (
        lambda x, i: lax.dynamic_slice(x, (i, 9), (4, 5)) * 2 + 1,
        MATRIX[16:20, 9:14] * 2 + 1,
        (MATRIX, np.int32(18)),
    ),
    "diagonal": (lambda x: np.diag(x[:, :20]) * 2, np.diag(MATRIX[:, :20]) * 2, (MATRIX,)),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name: str) -> None:
    f, expected, args = ONE_KERNEL[name]
    check(f, expected, *args)
    # Starts of windows are made valid once for all of them.
    assert len(steps(f, *args)) == (2 if name == "window" else 1)


def test_tables_that_are_computed_are_there_first() -> None:
    permutation = RNG.permutation(50)
    check(lambda x, i: (x * 2)[i] + x * 2, TABLE[permutation] * 2 + TABLE * 2, TABLE, permutation)
    check(lambda x, i: (x[i])[i], TABLE[permutation][permutation], TABLE, permutation)
    softmax = np.exp(MATRIX) / np.sum(np.exp(MATRIX), axis=1, keepdims=True)

    def chosen(x: Any, i: Any) -> Any:
        e = np.exp(x)
        return fnp.take_along_axis(e / np.sum(e, axis=1, keepdims=True), i, axis=1)

    check(chosen, np.take_along_axis(softmax, COLUMNS, axis=1), MATRIX, COLUMNS)


@pytest.mark.parametrize("n", [1, 2, 50])
def test_memory_of_tables_is_not_written_before_it_is_read(n: int) -> None:
    i, x = RNG.permutation(n), RNG.normal(size=n)
    changed, shifted = np.append(3.0, x[1:]), np.append(x[:1], (x[i] * 2)[1:])
    cases: list[tuple[Callable[..., Any], Any]] = [
        (lambda x, i: (x + 1, x[i] * 2), (x + 1, x[i] * 2)),
        (lambda x, i: (x[i] * 2, x + 1), (x[i] * 2, x + 1)),
        (lambda x, i: (x[i] + x, x.at[0].set(3.0)), (x[i] + x, changed)),
        (lambda x, i: (x.at[1:].set((x[i] * 2)[1:]),), (shifted,)),
    ]
    for f, expected in cases:
        found = fg.jit(f, donate_argnums=0)(x.copy(), i)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_coordinates_are_written_out() -> None:
    i, j = RNG.integers(0, 12, size=(2, 40))

    def energy(x: Any, i: Any, j: Any) -> Any:
        return np.sum(np.sum((x[i] - x[j]) ** 2, axis=1))

    d = POINTS[i] - POINTS[j]
    check(energy, np.sum(d**2), POINTS, i, j)
    slope = np.zeros_like(POINTS)
    np.add.at(slope, i, 2 * d)
    np.add.at(slope, j, -2 * d)
    check(fg.grad(energy), slope, POINTS, i, j)
    kernels = fg.jit(lambda x, i, j: np.sum((x[i] - x[j]) ** 2, axis=1))
    assert "3" not in kernels.lower(POINTS, i, j).as_text().split("for i0")[1].split("range")[0]
    check(kernels, np.sum(d**2, axis=1), POINTS, i, j)


def test_lanes_are_strides() -> None:
    def f(x: Any, i: Any) -> Any:
        return x[i] * 2

    check(fg.vmap(f), np.take_along_axis(MATRIX, COLUMNS, 1) * 2, MATRIX, COLUMNS)
    text = fg.jit(fg.vmap(f)).lower(MATRIX, COLUMNS).as_text()
    assert text.count("ptr_i64") == 1  # the columns; lanes have none

    def add(x: Any, u: Any, i: Any) -> Any:
        return x.at[i].add(u)

    expected = MATRIX.copy()
    np.add.at(expected, (np.arange(20)[:, None], COLUMNS), MATRIX * 3)
    check(fg.vmap(add), expected, MATRIX, MATRIX * 3, COLUMNS)


def test_known_places_that_do_not_count_evenly() -> None:
    for places in (
        [3, 1, 4, 1, 5],
        [0, 2, 4],
        [7, 5, 3, 1],
        [-1, -2, -3],
        [2, 2, 2],
        [49],
        [0, 0, 1],
    ):
        i = np.array(places)
        check(lambda x, i=i: x[i] * 2, TABLE[i] * 2, TABLE)
        expected = TABLE.copy()
        np.add.at(expected, i, 1.0)
        check(lambda x, i=i: x.at[i].add(1.0), expected, TABLE)
    with pytest.raises(IndexError):
        fg.jit(lambda x: x[np.array([0, 25, 50])])(TABLE)


# Threads.

COUNT = 300_000
UFUNCS = {"add": np.add, "max": np.maximum, "mul": np.multiply}


def of_places(bins: int) -> dict[str, np.ndarray]:
    """Places in many orders, some of them out of bounds."""
    random = RNG.integers(-bins - 2, bins + 2, size=COUNT)
    return {
        "random": random,
        "ascending": np.sort(random),
        "descending": np.sort(random)[::-1].copy(),
        "ascending but for the last": np.append(np.sort(random)[:-1], 0),
        "all equal": np.full(COUNT, bins - 1),
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bins", [1, 7, 20_000, 40_000])
def test_scatters_do_not_depend_on_threads(bins: int) -> None:
    values = RNG.normal(size=COUNT).astype(np.float32)
    for name, places in of_places(bins).items():
        for kind in ("add", "set", "max", "mul"):

            def f(u: Any, i: Any, kind: str = kind) -> Any:
                return getattr(fnp.ones(bins, u.dtype).at[i], kind)(u, mode="drop")

            found = [fg.jit(f, threads=n)(values, places) for n in (1, 3)]
            valid = (places >= -bins) & (places < bins)
            expected = np.ones(bins, np.float32)
            if kind == "set":
                expected[places[valid]] = values[valid]
            else:
                UFUNCS[kind].at(expected, places[valid], values[valid])
            rounding = 0.0
            if kind == "add" and bins < 1000:  # in parts, not in the order of `np.add.at`
                expected = 1 + np.bincount(places[valid] % bins, values[valid], bins)
                rounding = 5e-3
            np.testing.assert_array_equal(*found, err_msg=f"{name} {kind}")
            np.testing.assert_allclose(found[0], expected, 0, rounding, err_msg=f"{name} {kind}")


def test_rows_and_lanes_do_not_depend_on_threads() -> None:
    rows, places = RNG.normal(size=(9000, 70)), RNG.integers(0, 50, size=9000)
    lanes, columns = RNG.normal(size=(800, 500)), RNG.integers(0, 60, size=(800, 500))
    by_rows = np.zeros((50, 70))
    np.add.at(by_rows, places, rows)
    by_lanes = np.zeros((800, 60))
    np.add.at(by_lanes, (np.arange(800)[:, None], columns), lanes)
    put = fg.vmap(lambda u, i: fnp.zeros(60).at[i].add(u))
    for n in (1, 3):
        found = fg.jit(lambda u, i: fnp.zeros((50, 70)).at[i].add(u), threads=n)(rows, places)
        np.testing.assert_array_equal(found, by_rows)
        np.testing.assert_array_equal(fg.jit(put, threads=n)(lanes, columns), by_lanes)


def test_calls_do_not_depend_on_threads() -> None:
    x = RNG.normal(size=(1501, 12, 12)).astype(np.float32)
    for f in (
        lambda x: np.fft.fft(x, axis=1),
        lambda x: np.argsort(x, axis=1),
        lambda x: np.linalg.inv(x),
        lambda x: fg.grad(lambda a: np.sum(np.linalg.solve(a, x) ** 2))(
            x + 5 * np.eye(12, dtype="f")
        ),
    ):
        one, three = (fg.jit(f, threads=n)(x) for n in (1, 3))
        np.testing.assert_array_equal(one, three)
    singular = np.broadcast_to(np.eye(12), (1500, 12, 12)).copy()
    singular[1490, 3, 3] = 0
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        fg.jit(np.linalg.inv)(singular)


# Searches.


@pytest.mark.sampled(2)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 1000])
def test_searches(n: int, side: str) -> None:
    for ordered in (np.sort(RNG.integers(0, n + 1, size=n)) * 1.0, np.sort(RNG.normal(size=n))):
        if n > 3:
            ordered[-2:] = np.nan
        values = np.concatenate([ordered, RNG.normal(size=700), [np.nan, np.inf, -np.inf, -0.0]])

        def f(a: Any, v: Any) -> Any:
            return fnp.searchsorted(a, v, side=side)

        np.testing.assert_array_equal(
            fg.jit(f)(ordered, values), np.searchsorted(ordered, values, side)
        )
        for value in values[:2]:
            assert fg.jit(f)(ordered, value) == np.searchsorted(ordered, value, side)


# Transforms of single precision.


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(1,), (7,), (512,), (5, 360), (1021,)])
def test_single_precision_of_transforms(shape: tuple[int, ...]) -> None:
    """As near to the exact result as NumPy's inverse transforms are."""
    x = RNG.normal(size=shape).astype(np.float32)
    z = (x + 1j * RNG.normal(size=shape)).astype(np.complex64)
    for f, given in ((np.fft.rfft, x), (np.fft.fft, z), (np.fft.ifft, z)):
        exact = f(given.astype(np.result_type(given, np.float64)))
        error = np.max(np.abs(fg.jit(f)(given) - exact)) / np.max(np.abs(exact))
        assert error <= 4e-7
