"""Sums in parts, products in stacks, both sides of a product, values that are not kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.machine import EVEN_PARTS
from funcgrad.compiler.nest import divide
from funcgrad.compiler.nest.arrange import VERIFY_VARIABLE
from funcgrad.compiler.nest.split import even_parts
from tests.compiler.plans import plan, steps_of

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY_VARIABLE, "1")


# Extremes along rows are those of integers of the same order.


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [1, 7, 64, 160, 1000])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_special_numbers(name: str, n: int, dtype: str) -> None:
    info, middle = np.finfo(dtype), n // 2
    x = RNG.normal(size=(16, n)).astype(dtype)
    rows = [np.inf, -np.inf, info.max, -info.max, info.tiny, -info.tiny, 0.0, -0.0, 1.0, -1.0]
    for row, number in enumerate(rows):
        x[row] = number
    x[6, middle], x[7, middle], x[8, 0], x[9, -1] = -0.0, 0.0, 0.0, -0.0
    x[10, middle], x[11, 0], x[12, -1] = np.nan, -np.nan, np.copysign(np.nan, -1)
    x[13], x[14, :] = np.copysign(np.nan, -1), -np.inf
    function = getattr(np, name)
    found, expected = fg.jit(lambda x: function(x, axis=1))(x), function(x, axis=1)
    np.testing.assert_array_equal(found, expected)
    signs = np.signbit(x).all(1) if name == "max" else np.signbit(x).any(1)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(found)[zeros], signs[zeros])


# Walks that carry sums are divided.


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(np.tanh(x)),
        lambda x: (np.sum(x * x), np.sum(x, 0), np.sum(x, 1), x * 2),
        lambda x: (np.max(x, 0), np.prod(x[:, :3] * 0.1 + 1, 0), np.mean(x) + 1),
        lambda x: np.sum(np.log(np.sum(np.exp(x), 1))) + np.sum(np.pad(x[:, 1:], ((0, 0), (0, 1)))),
    ],
)
@pytest.mark.parametrize("shape", [(24, 30), (31, 5), (36, 1)])
def test_divided_walks(
    function: Callable[..., Any], shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(divide, "MIN_WORK", 16)
    monkeypatch.setattr(divide, "MIN_PART", 1)
    x = RNG.normal(size=shape)
    expected = function(x)
    found = fg.jit(lambda x: function(x))(x)
    for a, b in zip(
        fg.tree_util.tree_leaves(found), fg.tree_util.tree_leaves(expected), strict=True
    ):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, 1e-13, 1e-13)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize(
    ("shape", "by_rows"),
    [((2000, 600), True), ((40, 30_000), False), ((400, 5000), False), ((2003, 600), False)],
)
def test_columns_are_shared_by_rows_where_pieces_of_these_are_short(
    shape: tuple[int, int], by_rows: bool, dtype: str
) -> None:
    x = RNG.normal(size=shape).astype(dtype)
    for function in (lambda x: x.sum(0), lambda x: ((x - 1) ** 2).sum(0)):
        exact = function(x.astype(np.float64))
        np.testing.assert_allclose(fg.jit(function)(x), exact, rtol=1e-5, atol=1e-3)
        first = plan(function, x).split(" iterations")[0].split()[-1]
        assert int(first) == (even_parts(shape[0], 1) if by_rows else shape[1])


@pytest.mark.parametrize("n", [1000, 300_000])
def test_walks_that_read_their_own_sums_are_not_divided(n: int) -> None:
    x = RNG.normal(size=n)

    def f(x: Any) -> Any:
        is_largest = x == np.max(x)
        return np.sum(np.where(is_largest, np.exp(x), 0.0)) / np.sum(is_largest)

    np.testing.assert_allclose(fg.jit(lambda x: f(x))(x), np.exp(np.max(x)), 1e-13)
    slope = fg.jit(fg.grad(lambda x: f(x)))(x)
    assert np.count_nonzero(slope) == 1


def test_results_of_divided_walks_do_not_depend_on_threads() -> None:
    x = RNG.normal(size=(1200, 500)).astype("f")

    def sums(x: Any) -> Any:
        y = np.tanh(x)
        return y, np.sum(y), np.sum(y, 0), np.sum(y * y, 1)

    one, three = (fg.jit(sums, threads=n)(x) for n in (1, 3))
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(one[2], np.sum(np.tanh(x.astype("d")), 0), 1e-5, 1e-4)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4", "u8"])
@pytest.mark.parametrize("mode", [None, "drop"])
def test_scatters_in_parts(mode: str | None, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divide, "MIN_DEPOSITS", 16)
    base = np.abs(RNG.normal(size=7) * 10).astype(dtype)
    limit = 9 if mode else 7
    for shape in ((480,), (12, 40), (450, 1), (479,), (61, 9), (5, 97)):
        places = RNG.integers(-limit, limit, shape)
        updates = np.abs(RNG.normal(size=shape) * 10).astype(dtype)
        inside = (places >= -7) & (places < 7)
        for start in (base, np.zeros_like(base)):
            expected = start.copy()
            np.add.at(expected, places[inside], updates[inside])
            compiled = fg.jit(lambda b, i, u: fg.numpy.at(b)[i].add(u, mode=mode))
            found = compiled(start, places, updates)
            rounding = {"f4": 1e-5, "f8": 1e-13, "c16": 1e-13}.get(dtype, 0)
            np.testing.assert_allclose(found, expected, rounding, rounding)
            one = fg.jit(lambda b, i, u: fg.numpy.at(b)[i].add(u, mode=mode), threads=1)
            np.testing.assert_array_equal(one(start, places, updates), found)
            steps = steps_of(str(compiled.lower(start, places, updates).as_text()))
            n_parts = even_parts(shape[0], 1) or EVEN_PARTS
            assert (f"[{n_parts},7]" in steps) == (shape[0] > 5)


@pytest.mark.parametrize("length", [1, 5, 6, 16, 36, 97, 100, 1024, 2000, 4999, 50_000])
@pytest.mark.parametrize("least", [1, 16, 300])
def test_parts_are_even(length: int, least: int) -> None:
    n = even_parts(length, least)
    if n:
        assert length % n == 0
        assert length // n >= least
    else:
        assert not any(length % k == 0 and length >= k * least for k in range(6, 65))


# Products.


@pytest.mark.parametrize(
    ("labels", "shapes", "n_copies"),
    [
        ("oc,bcn->bon", ((30, 40), (6, 40, 50)), 0),
        ("bon,oc->bcn", ((6, 30, 50), (30, 40)), 0),
        ("bon,bcn->oc", ((6, 30, 500), (6, 40, 500)), 0),
        ("abcn,oc->abon", ((2, 3, 40, 50), (30, 40)), 0),
        ("kij,kl->ijl", ((40, 30, 5), (40, 6)), 0),
        ("abn,ncb->ac", ((30, 7, 40), (40, 20, 7)), 1),  # in another order
    ],
)
def test_stacks_of_products_are_not_copied(
    labels: str, shapes: tuple[tuple[int, ...], ...], n_copies: int
) -> None:
    a, b = (RNG.normal(size=shape) for shape in shapes)

    def product(a: Any, b: Any) -> Any:
        return np.einsum(labels, a, b)

    expected = np.einsum(labels, a, b)
    np.testing.assert_allclose(fg.jit(product)(a, b), expected, 1e-12, 1e-12)
    steps = plan(product, a, b).splitlines()
    large = [step for step in steps if "kernel" in step and " -> f64" in step]
    assert sum(f"b:f64[{','.join(map(str, shapes[1]))}] ->" in s for s in large) <= n_copies
    assert any("matrix product" in step for step in steps)


@pytest.mark.parametrize("shape", [(96_000, 5, 6), (40_000, 1, 30), (100_003, 4, 8)])
def test_long_sums_of_small_products(shape: tuple[int, int, int]) -> None:
    k, m, n = shape
    a, b = RNG.normal(size=(k, m)), RNG.normal(size=(k, n))
    np.testing.assert_allclose(fg.jit(lambda a, b: a.T @ b)(a, b), a.T @ b, 1e-11, 1e-9)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.T @ x,
        lambda x: x @ x.T,
        lambda x: np.einsum("ij,ik,il->jk", x, x, np.ones((30, 2))),
        lambda x: np.einsum("ij,kj->ik", x, x * 2),
        lambda x: np.einsum("aij,akj->aik", x.reshape(3, 10, 40), x.reshape(3, 10, 40)),
    ],
)
def test_both_sides_of_a_product(function: Callable[..., Any]) -> None:
    """The reference is the derivative along a line, by complex steps."""
    x, v = RNG.normal(size=(30, 40)), RNG.normal(size=(30, 40))
    weights = RNG.normal(size=function(x).shape)
    gradient = fg.jit(fg.grad(lambda x: np.sum(function(x) * weights)))
    along = np.imag(np.sum(function(x + 1e-30j * v) * weights)) / 1e-30
    np.testing.assert_allclose(np.sum(gradient(x) * v), along, 1e-11)


# What is not kept, and not copied.


def test_differences_from_means_are_not_kept() -> None:
    x = RNG.normal(size=(40, 50, 60))
    steps = plan(fg.grad(lambda x: np.sum(np.var(x, 1) ** 2)), x).splitlines()
    assert sum("-> " in s and "f64[40,50,60];" in s.split("-> ")[1] for s in steps) == 1


@pytest.mark.parametrize(
    ("function", "n_kernels"),
    [
        (lambda x: (x * 2).reshape(-1), 1),
        (lambda x: np.sum(x, 0).reshape(5, 1, 6), 1),
        (lambda x: (x @ x.T).reshape(2, 2, 2, 2), 0),
        (lambda x: np.sum(x).reshape(1, 1), 1),
    ],
)
def test_reshaped_results_are_not_copied(function: Callable[..., Any], n_kernels: int) -> None:
    x = RNG.normal(size=(4, 30))
    found = fg.jit(function)(x)
    assert found.shape == function(x).shape
    np.testing.assert_allclose(found, function(x), 1e-13)
    assert plan(function, x).count("kernel") == n_kernels


def test_reshaped_results_and_donation() -> None:
    step = fg.jit(lambda x: (x.reshape(-1) * 2).reshape(x.shape), donate_argnums=0)
    x = RNG.normal(size=(30, 40))
    expected = x * 2
    for _ in range(2):
        np.testing.assert_array_equal(step(x.copy()), expected)
    both = fg.jit(
        lambda x: (x * 2, (x * 2).reshape(-1), fg.scipy.linalg.sqrtm((x[:4, :4] * 2).reshape(4, 4)))
    )
    doubled, line, _ = both(x)
    np.testing.assert_array_equal(line, doubled.reshape(-1))


# A matrix of few rows times a vector is sums along rows, which need no call of a product.


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize(
    "shape", [(2, 9), (3, 4000), (12, 40), (16, 2), (17, 5), (9, 2), (4000, 3)]
)
def test_few_rows_or_columns_times_a_vector(shape: tuple[int, int], dtype: str) -> None:
    x, y = RNG.normal(size=shape).astype(dtype), RNG.normal(size=shape[1]).astype(dtype)
    z = RNG.normal(size=shape[0]).astype(dtype)
    calls = [(lambda x, y: x @ y, x, y), (lambda x, y: y @ x.T, x, y)]
    if shape[1] <= 4:
        calls.append((lambda x, z: z @ x, x, z))
    stack, vectors = np.stack([x, -x, x + 1]), np.stack([y, y, -y])
    calls.append((lambda x, y: np.einsum("bij,bj->bi", x, y), stack, vectors))
    for function, *arguments in calls:
        assert "matrix product" not in plan(function, *arguments)
        exact = function(*(a.astype(np.float64) for a in arguments))
        near = 4 * np.finfo(dtype).eps * max(shape)
        np.testing.assert_allclose(fg.jit(function)(*arguments), exact, rtol=near, atol=near)
