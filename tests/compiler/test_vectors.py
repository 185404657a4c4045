"""Kernels in vectors: rows of every length, where the last vector is whole, partial or missing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

LENGTHS = (1, 15, 16, 17, 63, 64, 65, 127, 300, 511, 513)
DTYPES = ("float32", "float64", "int32", "int8", "bool")


def rows(length: int, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(length)
    if dtype == "bool":
        return rng.random((3, length)) > 0.1
    if dtype.startswith("int"):
        return rng.integers(-3, 4, (3, length)).astype(dtype)
    return rng.uniform(0.7, 1.3, (3, length)).astype(dtype)


@pytest.mark.parametrize("name", ["sum", "max", "prod"])
def test_folds_take_each_element_of_few_edges_once(name: str) -> None:
    """Rows so long that elements at the edges are rare, which the core does not need to ask for."""
    x = 1 + (np.arange(3 * 600).reshape(3, 600) % 100 == 0)

    def f(x: np.ndarray) -> np.ndarray:
        return getattr(np.pad(x, ((0, 0), (1, 2)), constant_values=3), name)(axis=1)

    np.testing.assert_array_equal(fg.jit(f)(x), f(x))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "any", "all"])
def test_folds(name: str, dtype: str) -> None:
    along, across = (fg.jit(lambda x, a=a: getattr(fnp, name)(x, axis=a)) for a in (1, 0))
    for length in LENGTHS:
        x = rows(length, dtype)
        for axis, fold in ((1, along), (0, across)):
            found, expected = fold(x), getattr(np, name)(x, axis=axis)
            assert found.dtype == expected.dtype
            if x.dtype.kind == "f":
                exact = getattr(np, name)(x.astype("f8"), axis=axis)
                np.testing.assert_allclose(found, exact, rtol=length * np.finfo(dtype).eps)
            else:
                np.testing.assert_array_equal(found, expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_columns_of_short_rows_are_folded_in_vectors(dtype: str) -> None:
    """Whole vectors, halves of a register, single elements: none waits for a masked store."""
    compiled = fg.jit(lambda x: fnp.sum(2 * x, axis=0))
    for length in (16, 17, 19, 24, 31, 32, 33, 45, 64, 100, 255):
        x = rows(length, "int32").astype(dtype)
        np.testing.assert_array_equal(compiled(x), np.sum(2 * x, axis=0))
    assert "in cold(whole" in compiled.lower(rows(100, "int32").astype(dtype)).as_text()


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16"])
@pytest.mark.parametrize("name", ["any", "all", "sum", "prod", "max", "min"])
def test_folds_to_bool(name: str, dtype: str) -> None:
    """The sum of bools is their disjunction: of two as of one."""

    def fold(np: Any, x: Any) -> Any:
        keywords = {"dtype": bool} if name in ("sum", "prod") else {}
        return getattr(np, name)(x != 0, axis=-1, **keywords)

    compiled = fg.jit(lambda x: fold(fnp, x))
    rng = np.random.default_rng(0)
    for length in (1, 2, 3, 6, 8, 9, 31, 33, 64, 100, 256, 2048):
        for share in (0.0, 0.05, 0.5, 0.95, 1.0):
            x = (rng.random((5, length)) < share).astype(dtype)
            np.testing.assert_array_equal(compiled(x), fold(np, x))
            np.testing.assert_array_equal(compiled(x[0]), fold(np, x[0]))


@pytest.mark.parametrize("place", [0, 20, 64, 69])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_pass_nan_on(name: str, place: int) -> None:
    x = rows(70, "float32")
    x[1, place] = np.nan
    x[2] = np.inf if name == "min" else -np.inf
    found = fg.jit(lambda x: getattr(fnp, name)(x, axis=1))(x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, getattr(np, name)(x, axis=1))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "function",
    [
        lambda np, x: x + np.asarray(1, x.dtype),
        lambda np, x: np.where(x > 1, np.sin(x), np.exp(x)),
        lambda np, x: np.tan(x * 1e9),
        lambda np, x: np.fmod(x, np.asarray(0.3, x.dtype)),
        lambda np, x: np.concatenate([x[1:], x[:1] * 2]),
    ],
    ids=["light", "heavy", "rare arguments", "libm", "pieces"],
)
def test_points(function: Callable[[Any, Any], Any]) -> None:
    compiled = fg.jit(lambda x: function(fnp, x))
    for length in LENGTHS:
        x = rows(length, "float64")[0]
        around = np.full(length + 200, 7.0)
        around[100:-100] = x
        np.testing.assert_allclose(compiled(x), function(np, x), rtol=1e-14)
        np.testing.assert_allclose(compiled(around[100:-100]), function(np, x), rtol=1e-14)


def test_columns_do_not_depend_on_threads() -> None:
    x = np.random.default_rng(0).standard_normal((300, 2100)).astype("float32")
    for fold in (lambda x: fnp.sum(fnp.exp(x), axis=0), lambda x: fnp.max(x, axis=0)):
        one, two = (fg.jit(fold, threads=n)(x) for n in (1, 2))
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("dtype", "longest"), [("float32", 32), ("float64", 16)])
def test_rows_of_one_vector_stay_in_registers(dtype: str, longest: int) -> None:
    """Read once, for all passes: also what is not finite, signs of zeros, rows alone."""

    def softmax(x: Any) -> Any:
        y = np.exp(x - np.max(x, axis=1, keepdims=True))
        return y / np.sum(y, axis=1, keepdims=True)

    def several(x: Any) -> Any:
        return softmax(x), np.prod(x, axis=1), np.min(x + x, axis=1)

    compiled = fg.jit(several)
    rng = np.random.default_rng(0)
    for length in (9, 16, longest):
        x = rng.normal(size=(20, length)).astype(dtype)
        x[3, 2], x[4, 5], x[5], x[6], x[7, 1] = np.nan, np.inf, -np.inf, -0.0, -np.inf
        text = fg.jit(softmax).lower(x).as_text().split("# kernel 0")[-1]
        assert text.count(" in range(") == 1 == text.count("load(")
        found = compiled(x)
        with np.errstate(all="ignore"):
            for ours, theirs in zip(found, several(x), strict=True):
                bound = 100 * float(np.finfo(dtype).eps)
                np.testing.assert_allclose(ours, theirs, rtol=bound)
        for some, every in zip(compiled(x[8:11]), found, strict=True):
            np.testing.assert_array_equal(some, every[8:11])
    longer = fg.jit(softmax).lower(np.ones((20, longest + 1), dtype)).as_text()
    assert "for m in range(" in longer


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_the_last_vector_of_a_row_ends_with_it(dtype: str) -> None:
    """It computes again what the one before has computed, where nothing has changed since."""
    rows, n_steps = 9, 3

    def smooth(x: Any) -> Any:
        return x[:, 1:-1] * 2 + x[:, 2:] - x[:, :-2]

    def steps(x: Any) -> Any:
        return fg.lax.fori_loop(0, n_steps, lambda _, y: y.at[:, 1:-1].set(smooth(y)), x)

    for n in (31, 34, 35, 50, 65, 66, 67, 98, 131, 300):
        x = np.arange(rows * n).reshape(rows, n).astype(dtype)
        compiled = fg.jit(smooth)
        np.testing.assert_array_equal(compiled(x), smooth(x))
        text = compiled.lower(x).as_text()
        if n - 2 >= 64 // x.itemsize:
            assert "lanes(minimum(" in text
            assert "first_lanes(" not in text
            assert "some_lanes(" not in text
        expected = x.copy()
        for _ in range(n_steps):
            expected[:, 1:-1] = smooth(expected)
        np.testing.assert_array_equal(fg.jit(steps)(x), expected)


def test_a_row_that_is_changed_in_place_is_computed_once() -> None:
    def steps(x: Any) -> Any:
        return fg.lax.fori_loop(0, 3, lambda _, y: y.at[:, 1:].add(y[:, 1:] * 2), x)

    compiled = fg.jit(steps)
    for n in (20, 34, 67):
        x = np.ones((9, n), np.float32)
        found = compiled(x)
        np.testing.assert_array_equal(found[:, 1:], 27)
        np.testing.assert_array_equal(found[:, 0], 1)


COMPLEX: dict[str, Callable[[Any, Any, Any], Any]] = {
    "products and sums": lambda np, x, y: x * y + x - 2j * y,
    "quotients": lambda np, x, y: x / y,
    "parts": lambda np, x, y: abs(x) + y.real * x.imag,
    "conjugates": lambda np, x, y: np.conj(x) * y.real,
    "choices": lambda np, x, y: np.where(x.real > 0, x, y),
    "comparisons": lambda np, x, y: (x == y) | (x != np.conj(x)),
    "signs": lambda np, x, y: np.sign(x),
    "functions": lambda np, x, y: np.exp(1j * x.real) * np.sqrt(y),
    "sums of rows": lambda np, x, y: (x * y).sum(axis=1),
    "sums of columns": lambda np, x, y: (x * y).sum(axis=0),
    "sums of all": lambda np, x, y: (x + y).sum(),
    "products of rows": lambda np, x, y: np.prod(x / abs(x), axis=1),
    "normalised rows": lambda np, x, y: x - x.mean(axis=1, keepdims=True),
    "edges": lambda np, x, y: np.pad(x * 2, ((0, 0), (1, 2))) + 1j,
    "backwards": lambda np, x, y: x[:, ::-1] * y,
    "across": lambda np, x, y: x.T * 2 + y.T,
    "every other": lambda np, x, y: x[:, ::2] + y[:, ::2],
}  # fmt: skip


@pytest.mark.sampled(24)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_are_pairs_of_vectors(name: str, dtype: str) -> None:
    rng = np.random.default_rng(len(name))
    f = fg.jit(partial(COMPLEX[name], np))
    for length in (1, 3, 8, 15, 16, 17, 33, 64, 100, 257, 1000):
        parts = rng.normal(size=(2, 2, 5, length))
        x, y = (parts[0] + 1j * parts[1]).astype(dtype)
        found, expected = f(x, y), COMPLEX[name](np, x, y)
        assert found.dtype == expected.dtype
        bound = 100 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(found, expected, rtol=bound, atol=bound * length)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_loops_over_complex_numbers_are_written_in_vectors(dtype: str) -> None:
    x = np.ones((4, 300), dtype)
    for f in (lambda x: x * x + 1, lambda x: (x * x).sum(axis=1), lambda x: np.pad(x, 1) * 2):
        assert "lanes(" in fg.jit(f).lower(x).as_text()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("shape", [(5, 201), (3, 17), (40, 64), (1, 9)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_element_that_repeats_at_an_edge_is_in_all_lanes(shape: Any, dtype: Any) -> None:
    def sums(x: Any) -> Any:
        right = np.concatenate([x[:, 1:], x[:, -1:]], 1)
        above = np.concatenate([x[:1] * 2, x[:-1]], 0)
        corner = np.pad(x[:, :2], ((0, 0), (0, shape[1] - 2)), mode="edge")
        return np.sum(np.tanh(right * above) + corner, 1)

    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    text = fg.jit(sums).lower(x).as_text()
    assert "lanes(" in text
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(fg.jit(sums)(x), sums(x), rtol=tolerance, atol=tolerance)
    gradient = fg.jit(fg.grad(lambda x: np.sum(sums(x) ** 2)))(x)
    direction = np.random.default_rng(1).normal(size=shape)
    ends = (np.sum(sums(x + s * direction) ** 2) for s in (1e-6, -1e-6))
    if dtype == np.float64:
        slope = np.subtract(*ends) / 2e-6
        np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-5)
