"""The places of extremes in rows and columns that are looked through in vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg

LENGTHS = (2, 7, 8, 10, 31, 32, 33, 64, 100, 1023, 1024, 1025, 2100)
FUNCTIONS = fg.jit(lambda x: (np.argmax(x, axis=-1), np.argmin(x, axis=-1)))


def rows(length: int, dtype: str) -> np.ndarray:
    """Rows with extremes at all kinds of places, ties, and what is no number."""
    rng = np.random.default_rng(length)
    drawn = rng.normal(size=(16, length)) * 40
    drawn[1] = 0
    drawn[2] = -np.arange(length)
    drawn[3] = np.arange(length)
    drawn[4, [0, length - 1]] = 500
    drawn[5, [length // 2, length - 1]] = -500
    drawn[6] = np.round(drawn[6] / 20)
    if np.dtype(dtype).kind != "f":
        return np.clip(drawn, 0 if dtype == "u1" else -100, 100).astype(dtype)
    drawn[7, length - 1] = np.nan
    drawn[8, [0, length // 2]] = np.nan
    drawn[9, length // 3 :] = -np.nan
    drawn[10] = np.inf
    drawn[11] = -np.inf
    drawn[12, length // 2] = np.inf
    drawn[13, length // 2] = -np.inf
    drawn[14] = np.where(np.arange(length) % 2, 0.0, -0.0)
    drawn[15] = np.where(np.arange(length) % 2, -0.0, 0.0)
    return drawn.astype(dtype)


RARE = [pytest.param(dtype, marks=pytest.mark.nightly) for dtype in ("f8", "i8", "u1")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "i4", *RARE])
def test_rows(dtype: str) -> None:
    for length in LENGTHS:
        x = rows(length, dtype)
        check(FUNCTIONS(x), x)


@pytest.mark.parametrize("dtype", ["f4", *RARE])
def test_columns(dtype: str) -> None:
    columns = fg.jit(lambda x: (np.argmax(x, axis=-2), np.argmin(x, axis=-2)))
    for length in LENGTHS:
        x = rows(length, dtype)
        for count in (3, 16):
            given = np.ascontiguousarray(x[-count:].T)
            check(columns(given), given.T)
    stack = np.stack([given, given[::-1]])
    check(columns(stack), stack.swapaxes(-1, -2))
    flags = given > 0
    check(columns(flags), flags.T)


def test_other_layouts() -> None:
    x = rows(100, "f4")
    check(fg.jit(lambda x: (np.argmax(x.T, 0), np.argmin(x.T, 0)))(x), x)
    skipped = x[:, ::2]
    check(fg.jit(lambda x: (np.argmax(x[:, ::2], 1), np.argmin(x[:, ::2], 1)))(x), skipped)
    stacked = x.reshape(4, 4, 100)
    check(FUNCTIONS(stacked), stacked)
    check(FUNCTIONS(x[8]), x[8])


def test_threads_share_rows_and_columns() -> None:
    x = np.random.default_rng(0).normal(size=(3000, 400)).astype(np.float32)
    for place in (FUNCTIONS, fg.jit(lambda x: (np.argmax(x.T, axis=-1), np.argmin(x.T, axis=-1)))):
        check(place(x), x if place is FUNCTIONS else x.T)
        assert "parts" in place.lower(x).as_text().partition("\nplan\n")[2]


def check(actual: Any, x: np.ndarray) -> None:
    for places, expected in zip(actual, (np.argmax(x, -1), np.argmin(x, -1)), strict=True):
        np.testing.assert_array_equal(places, expected)
