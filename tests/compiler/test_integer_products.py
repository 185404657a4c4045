"""Products of integers: the tiles of floats, which wrap around, with pairs of short ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.compiler.test_products import FEATURES, multiply, shape_of

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
SHORT = ("?", "i1", "u1", "i2")
"""Dtypes of which two integers are a pair."""

PRODUCTS = {
    "ij,jk->ik": ((9, 65), (65, 37)),
    "ji,kj->ik": ((64, 20), (40, 64)),
    "bij,bjk->bki": ((3, 7, 33), (3, 33, 5)),
    "ij,bjk->bik": ((5, 18), (4, 18, 40)),
    "aib,abj->ij": ((3, 11, 20), (3, 20, 9)),
    "bij,bjk->bik": ((20, 3, 4), (20, 4, 2)),
    "ij,j->i": ((50, 40), (40,)),
    "j,jk->k": ((300,), (300, 70)),
}


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Integers of any size, so that sums wrap around."""
    if dtype == "?":
        return rng.random(shape) < 0.1
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("labels", PRODUCTS)
def test_products_are_those_of_numpy(labels: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (integers(rng, shape, dtype) for shape in PRODUCTS[labels])
    found = fg.jit(lambda a, b: fnp.einsum(labels, a, b))(a, b)
    expected = np.einsum(labels, a, b)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    many = fg.jit(fg.vmap(lambda a, b: fnp.einsum(labels, a, b), (0, None)))(np.stack([a, a]), b)
    np.testing.assert_array_equal(many, [expected, expected])


@pytest.mark.parametrize("wide", ["i4", "u4", "i8"])
@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("k", [17, 256, 1025])
def test_pairs_of_terms(k: int, dtype: str, wide: str) -> None:
    """The greatest products, and flags of which 256 are set, which eight bits would not count."""
    lowest = 1 if dtype == "?" else np.iinfo(dtype).min or np.iinfo(dtype).max
    a, b = np.full((10, k), lowest, dtype), np.full((k, 33), lowest, dtype)
    f = fg.jit(lambda a, b: (a.astype(wide) @ b.astype(wide), a @ b))
    for found, expected in zip(f(a, b), (a.astype(wide) @ b.astype(wide), a @ b), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def kinds(f: Any, *args: Any) -> list[str]:
    """What products of a program are of."""
    text = fg.jit(f).lower(*args).as_text()
    rows = [row.strip() for row in text.splitlines() if row.strip().startswith("matrix product")]
    return [row.removeprefix("matrix product ").partition(":")[0] for row in rows]


def test_what_is_of_pairs() -> None:
    a = np.ones((20, 40), np.int8)

    def quantized(a: Any) -> Any:
        x = np.clip(a.astype(np.int64) * 300, -1000, 1000)
        return x @ (x - 7).T

    assert kinds(lambda a: a @ a.T, a) == ["i32 of pairs"]
    assert kinds(lambda a: fnp.matmul(a, a.T, preferred_element_type=np.int64), a) == [
        "i32 of pairs"
    ]
    assert kinds(quantized, a) == ["i32 of pairs"]
    assert kinds(lambda a: a @ a.T, a.astype(np.uint16)) == ["i32"]
    assert kinds(lambda a: a @ a.T, a.astype(np.int32)) == ["i32"]
    assert kinds(lambda a: a.astype(np.int64) @ a.T.astype(np.int64), a.astype(np.int16)) == ["i64"]
    x = quantized(a)
    np.testing.assert_array_equal(fg.jit(quantized)(a), x)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("letter", "ilh")
def test_tiles_of_all_sizes(letter: str, features: str) -> None:
    dtype = "i8" if letter == "l" else "i4"
    rng = np.random.default_rng(0)
    lanes = shape_of(letter, features).lanes
    sizes = [(1, 1, 1), (2, 3, 0), (9, lanes + 1, 257), (5, 4 * lanes - 1, 600), (33, 40, 12)]
    for (m, n, k), trans in itertools.product(sizes, itertools.product((False, True), repeat=2)):
        a, b = integers(rng, (2, m, k), dtype), integers(rng, (2, k, n), dtype)
        stored = [
            np.ascontiguousarray(x.transpose(0, 2, 1)) if t else x
            for x, t in zip((a, b), trans, strict=True)
        ]
        found = multiply(letter, features, *stored, trans, (8, 2))
        if letter == "h":
            a, b = (x.view(np.int16).reshape(*x.shape, 2).astype(np.int32) for x in (a, b))
            expected = sum(a[..., q] @ b[..., q] for q in range(2))
        else:
            expected = a @ b
        np.testing.assert_array_equal(found, expected, err_msg=f"{m} {n} {k}")
