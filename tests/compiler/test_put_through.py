"""Rows of carried arrays are written where they belong, whatever the kernel reads of the array."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.core.program import evaluate

N = 24


def table(seed: int = 0, n: int = N) -> np.ndarray:
    """Three indices for every step, of which some are equal, and some count from the end."""
    rng = np.random.default_rng(seed)
    found = rng.integers(-n, n, (7, 3))
    found[1] = found[1, 0]
    found[2] = found[2, 0], found[2, 0] - n if found[2, 0] >= 0 else found[2, 0] + n, 3
    return found


def rotate_rows(a: Any, i: Any, k: Any) -> Any:
    one, two = 0.6 * a[i[0]] - 0.8 * a[i[1]], 0.8 * a[i[0]] + 0.6 * a[i[1]]
    return a.at[i[0]].set(one).at[i[1]].set(two)


def rotate_columns(a: Any, i: Any, k: Any) -> Any:
    one, two = 0.6 * a[:, i[0]] - 0.8 * a[:, i[1]], 0.8 * a[:, i[0]] + 0.6 * a[:, i[1]]
    return a.at[:, i[0]].set(one).at[:, i[1]].set(two)


def apart(a: Any, i: Any, k: Any) -> Any:
    one, two = a[i[0]] * 0.5 + k, a[i[1]] * 0.25
    return a.at[i[1]].set(one).at[i[0]].set(two)


def one_by_one(a: Any, i: Any, k: Any) -> Any:
    a = a.at[i[0]].set(a[i[1]] * 0.5 + 1.0)
    return a.at[i[1]].set(a[i[0]] - a[i[2]])


def neighbours(a: Any, i: Any, k: Any) -> Any:
    return a.at[i[0], 1:-1].set(0.5 * (a[i[1], :-2] + a[i[0], 2:]))


def inner(a: Any, i: Any, k: Any) -> Any:
    return a.at[i[0], 1:-1].set(0.5 * (a[i[1], 1:-1] - a[i[0], 1:-1]))


def backward(a: Any, i: Any, k: Any) -> Any:
    return a.at[i[0]].set(0.5 * a[i[1], ::-1] + 0.1 * a[i[0]])


def crossed(a: Any, i: Any, k: Any) -> Any:
    return a.at[:, i[0]].set(0.5 * a[i[1]] + a[:, i[0]])


def masked(a: Any, i: Any, k: Any) -> Any:
    return a.at[i[0]].set(fnp.where(fnp.arange(N) > k, a[i[1]] * 0.3, a[i[0]]))


def read_later(a: Any, i: Any, k: Any) -> Any:
    row = a[i[0]] * 0.7 + 0.1
    return a.at[i[0]].set(row) * (1.0 + 0.01 * fnp.sum(a[i[1]]))


def read_between(a: Any, i: Any, k: Any) -> Any:
    row = a[i[0]] * 0.7
    total = fnp.sum(a, axis=0)
    a = a.at[i[0]].set(row)
    return a.at[i[1]].set(0.1 * total)


def in_blocks(a: Any, i: Any, k: Any) -> Any:
    block = lax.dynamic_slice(a, (i[0], 0), (3, N))
    return lax.dynamic_update_slice(a, fnp.sin(block), (i[0], 0))


def shifted_blocks(a: Any, i: Any, k: Any) -> Any:
    block = lax.dynamic_slice(a, (i[1], 0), (3, N))
    return lax.dynamic_update_slice(a, fnp.sin(block), (i[0], 0))


STEPS = (
    rotate_rows, rotate_columns, apart, one_by_one, neighbours, inner, backward, crossed, masked,
    read_later, read_between, in_blocks, shifted_blocks,
)  # fmt: skip


def swept(*steps: Callable[..., Any]) -> Callable[..., Any]:
    """A loop whose iterations take some steps one after the other."""

    def run(a: Any, indices: Any) -> Any:
        def body(k: Any, a: Any) -> Any:
            for step in steps:
                a = step(a, indices[k], k)
            return a

        return lax.fori_loop(0, len(indices), body, a)

    return run


def check(run: Callable[..., Any], indices: np.ndarray) -> None:
    a = np.random.default_rng(1).normal(size=(N, N))
    program = fg.make_jaxpr(run)(a, indices).program
    with fg.disable_jit():
        (want,) = evaluate(program, [a, indices])
    given = a.copy()
    np.testing.assert_allclose(fg.jit(run)(given, indices), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(given, a)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_step_changes_what_it_changes_without_a_compiler(step: Callable[..., Any]) -> None:
    for seed in range(2):
        check(swept(step), table(seed))


MOVED = {
    rotate_rows: True,
    rotate_columns: True,
    inner: True,
    in_blocks: True,
    shifted_blocks: False,
    neighbours: False,
    backward: False,
    crossed: False,
}


@pytest.mark.parametrize("step", MOVED, ids=lambda step: step.__name__)
def test_rows_are_written_at_once_where_elements_are_read_before(step: Callable[..., Any]) -> None:
    text = fg.jit(swept(step)).lower(np.ones((N, N)), table()).as_text()
    assert ("_place = offset(" in text) == MOVED[step]


def test_an_index_beyond_the_end_is_refused_before_anything_is_written() -> None:
    indices = table()
    indices[4, 1] = N
    with pytest.raises(IndexError, match=f"index {N} is out of bounds"):
        fg.jit(swept(rotate_rows))(np.ones((N, N)), indices)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(60))
def test_random_steps(seed: int) -> None:
    rng = random.Random(seed)
    check(swept(*rng.choices(STEPS, k=rng.randint(1, 4))), table(seed))
