"""Cumulative sums and scatters in the kernels of what is around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax, ops
from funcgrad.errors import OutOfBoundsError

N = 1000
RNG = np.random.default_rng(0)
X = RNG.integers(-50, 50, N)
Y = RNG.integers(-50, 50, N)
PLACES = RNG.integers(-300, 300, N).astype(np.int32)
TABLE = RNG.integers(-9, 9, 300)


def n_kernels(program: Callable[..., Any], *arguments: Any) -> int:
    text = fg.jit(program).lower(*arguments).as_text()
    return text.partition("\nplan\n")[2].partition("\n# kernel")[0].count("  kernel ")


def bins(x: Any, places: Any) -> Any:
    return ops.segment_sum(x, places, num_segments=300)


def starts(x: Any) -> Any:
    """Numbers of runs of equal elements."""
    is_first = fnp.concatenate([fnp.ones(1, dtype=bool), x[1:] != x[:-1]])
    return fnp.cumsum(is_first) - 1


PROGRAMS: dict[str, tuple[int, Callable[..., Any], tuple[Any, ...]]] = {
    "sum of an expression": (1, lambda x, y: fnp.cumsum(x * y + 1), (X, Y)),
    "expression of a sum": (1, lambda x: fnp.cumsum(x) * 2 - x, (X,)),
    "kept sum": (2, lambda x, y: (fnp.cumsum(x * y), fnp.cumsum(x * y) + y), (X, Y)),
    "extremes": (1, lambda x: lax.cummax(x * 3) - x, (X,)),
    "from the far end": (1, lambda x: lax.cumsum(x * 3, reverse=True) - x, (X,)),
    "both ends": (
        2,
        lambda x: lax.cumsum(lax.cumsum(x * 3) + 1, reverse=True) - 1,
        (X,),
    ),
    "rows": (1, lambda x: fnp.cumsum(x * 2, 1) + 1, (X.reshape(40, 25),)),
    "columns": (1, lambda x: fnp.cumsum(x * 2, 0) + 1, (X.reshape(40, 25),)),
    "planes": (1, lambda x: fnp.cumsum(x * 2, 1) + 1, (X.reshape(10, 20, 5),)),
    "flags": (1, starts, (X // 30,)),
    "runs": (3, lambda x: bins(x * 2, starts(x)), (X // 30,)),
    "segments": (2, lambda x, y, p: bins(x * y, p + 1), (X, Y, PLACES)),
    "two scatters": (
        3,
        lambda x, p: (bins(x * 2, p * 2), bins(x * x, p * 2)),
        (X, PLACES),
    ),
    "lookup": (2, lambda t, x, p: bins(t[p] * x, p), (TABLE, X, PLACES)),
}
"""Programs with the number of their kernels, of which one may fill an array with zeros."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_need_no_memory(name: str) -> None:
    most, program, arguments = PROGRAMS[name]
    found, wanted = fg.jit(program)(*arguments), program(*arguments)
    for x, y in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True):
        np.testing.assert_array_equal(x, y, strict=True)
    assert n_kernels(program, *arguments) <= most


def test_functions_stay_vectors() -> None:
    x = np.linspace(0.0, 1.0, N)
    program = lambda x: fnp.cumsum(fnp.exp(x))  # noqa: E731
    assert n_kernels(program, x) == 2
    np.testing.assert_allclose(fg.jit(program)(x), np.cumsum(np.exp(x)))


def test_the_order_of_elements_decides() -> None:
    a = np.zeros(300, int)
    found = fg.jit(lambda a, x, y, p: a.at[p % 300].set(x * y))(a, X, Y, PLACES)
    a[PLACES % 300] = X * Y
    np.testing.assert_array_equal(found, a)


def test_lanes_of_scatters_are_apart() -> None:
    x, p = X.reshape(20, 50), PLACES.reshape(20, 50) % 10
    program = fg.vmap(lambda x, p: ops.segment_sum(x * 2, p * 1, num_segments=10))
    np.testing.assert_array_equal(fg.jit(program)(x, p), program(x, p))


def test_an_array_is_not_changed_before_it_is_read() -> None:
    def program(x: Any, p: Any) -> Any:
        return x.at[p].add(x[p] * 2), x.at[p * 1].add(x[::-1][p])

    a, p = X[:300].copy(), PLACES % 300
    first = np.zeros(300, int)
    np.add.at(first, p, a[p] * 2)
    second = np.zeros(300, int)
    np.add.at(second, p, a[::-1][p])
    found = fg.jit(program, donate_argnums=0)(a.copy(), p)
    np.testing.assert_array_equal(found[0], a + first)
    np.testing.assert_array_equal(found[1], a + second)


def test_a_donated_array_is_changed_where_it_is() -> None:
    a = np.zeros(300, int)
    program = fg.jit(lambda a, x, p: a.at[p].add(x * 2), donate_argnums=0)
    found = program(a, X, PLACES % 300)
    wanted = np.zeros(300, int)
    np.add.at(wanted, PLACES % 300, X * 2)
    np.testing.assert_array_equal(found, wanted)
    assert np.shares_memory(found, a)


@pytest.mark.parametrize("wrong", [300, -301])
def test_the_index_of_a_lookup_is_refused(wrong: int) -> None:
    places = PLACES.copy()
    places[500] = wrong
    gradient = fg.jit(fg.grad(lambda t, x, p: fnp.sum(t[p] * t[p] * x)))
    with pytest.raises(OutOfBoundsError, match=str(wrong)):
        gradient(TABLE + 0.0, X + 0.0, places)


def test_loops_run_them() -> None:
    def step(i: Any, c: Any) -> Any:
        counts, x = c
        x = fnp.cumsum(x * 3) % 300
        return counts.at[x * 1].add(x + i), x

    def program(x: Any) -> Any:
        return lax.fori_loop(0, 4, step, (fnp.zeros(300, int), x))

    counts, x = np.zeros(300, int), X[:100]
    found = fg.jit(program)(x)
    for i in range(4):
        x = np.cumsum(x * 3) % 300
        np.add.at(counts, x, x + i)
    np.testing.assert_array_equal(found[0], counts)
    np.testing.assert_array_equal(found[1], x)
