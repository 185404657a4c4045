"""Columns that are shifted, and of which a mask asks for a part: they are read where they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

N = 30

SHIFTS: dict[str, Callable[[Any, Any], Any]] = {
    "padded": lambda x, xp: xp.pad(x[1:], (0, 1)),
    "rolled": lambda x, xp: xp.roll(x, -1),
    "late": lambda x, xp: xp.pad(x[:-2], (2, 0)),
    "of both": lambda x, xp: xp.maximum(xp.concatenate([x[2:], x[:2]]), x),
}


def step(k: Any, x: Any, a: Any, shift: Callable[[Any, Any], Any], xp: Any) -> Any:
    return xp.where(xp.arange(N) < k, shift(a[:, k], xp) * x, a[0]) - x


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("name", SHIFTS)
def test_a_part_of_a_shifted_column(name: str, dtype: str) -> None:
    shift, a = SHIFTS[name], np.random.default_rng(0).integers(-2, 3, (N, N)).astype(dtype)

    def program(a: Any) -> Any:
        return fg.lax.fori_loop(0, N, lambda k, x: step(k, x, a, shift, fnp), a[1])

    expected = a[1]
    for k in range(N):
        expected = step(k, expected, a, shift, np)
    found = fg.jit(program)(a)
    np.testing.assert_array_equal(found, expected)
    # The loop, what counts its iterations, one kernel, and a column that is read in two ways.
    text = str(fg.jit(program).lower(a).as_text())
    assert len({*re.findall(r"\b(k\d+)_", text)}) == 3 + (name == "of both")


def test_splits_of_a_table() -> None:
    """The order in which a chain of matrices is multiplied takes the fewest multiplications."""
    sizes = np.random.default_rng(0).integers(1, 20, N + 1)

    def program(sizes: Any) -> Any:
        places = fnp.arange(N)

        def row(n: Any, table: Any) -> Any:
            i = N - 1 - n

            def cell(j: Any, table: Any) -> Any:
                below = fnp.concatenate([table[1:, j], table[:1, j]])
                costs = table[i] + below + sizes[i] * sizes[1:] * sizes[j + 1]
                costs = fnp.where((places >= i) & (places < j), costs, 1 << 40)
                return table.at[i, j].set(fnp.min(costs))

            return fg.lax.fori_loop(i + 1, N, cell, table)

        return fg.lax.fori_loop(1, N, row, fnp.zeros((N, N), sizes.dtype))

    expected = np.zeros((N, N), sizes.dtype)
    for i in range(N - 2, -1, -1):
        for j in range(i + 1, N):
            k = np.arange(i, j)
            costs = expected[i, k] + expected[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
            expected[i, j] = costs.min()
    np.testing.assert_array_equal(fg.jit(program)(sizes), expected)
