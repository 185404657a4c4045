"""Loops interchanged with their lanes, against loops in Python over each lane and step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.compiler.machine import CACHES

Step = Callable[[Any, Any, Any], tuple[Any, Any]]


def predators(y: Any, x: Any, p: Any) -> tuple[Any, Any]:
    def rates(y: Any) -> Any:
        return np.stack([y[0] * (p[0] - p[1] * y[1]), y[1] * (p[2] * y[0] - p[3])])

    k1 = rates(y)
    k2 = rates(y + 0.01 * k1)
    y = y + 0.01 * (k1 + k2) + 0.001 * x
    return y, y[::-1]


def logistic(y: Any, x: Any, p: Any) -> tuple[Any, Any]:
    y = p[0] * y * (1.0 - y) + 0.01 * np.sin(x[0])
    return y, np.sum(y) * np.ones(3, y.dtype)


def folded(y: Any, x: Any, p: Any) -> tuple[Any, Any]:
    largest = np.max(y * x)
    total = np.cumsum(y)
    y = np.tanh(total / (1 + largest**2)) + p[0] - p[1]
    return y, largest


def nothing_stacked(y: Any, x: Any, p: Any) -> tuple[Any, Any]:
    return np.concatenate([y[1:], y[:1] * p[2]]) + x[0], None


def by_matrix(y: Any, x: Any, p: Any) -> tuple[Any, Any]:
    matrix = np.array([[0.5, -0.25], [0.125, 0.75]], y.dtype)
    return matrix @ y + x, y @ matrix


def by_own_matrix(y: Any, x: Any, p: Any) -> tuple[Any, Any]:
    return np.reshape(p, (2, 2)) @ y * 0.5, np.where(y > x, y, -x)


STEPS = [predators, logistic, folded, nothing_stacked, by_matrix, by_own_matrix]


def by_hand(step: Step, y: Any, xs: Any, p: Any, is_reversed: bool = False) -> tuple[Any, Any]:
    """The loop of one lane."""
    rows = []
    for x in xs[::-1] if is_reversed else xs:
        y, row = step(y, x, p)
        rows.append(row)
    if rows[0] is None:
        return y, np.zeros(0)
    return y, np.stack(rows[::-1] if is_reversed else rows)


def scanned(step: Step, is_reversed: bool = False) -> Callable[..., Any]:
    def run(y: Any, xs: Any, p: Any) -> Any:
        y, rows = fg.lax.scan(lambda y, x: step(y, x, p), y, xs, reverse=is_reversed)
        return y, fnp.zeros(0) if rows is None else rows

    return run


def inputs(n_lanes: int, n_steps: int, dtype: Any, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(0.5, 1.0, (n_lanes, 2)).astype(dtype),
        rng.uniform(0.0, 1.0, (n_lanes, n_steps, 2)).astype(dtype),
        rng.uniform(0.2, 0.9, (n_lanes, 4)).astype(dtype),
    )


def is_interchanged(f: Any, *args: Any) -> bool:
    """Whether no step of the plan runs others."""
    text = fg.jit(f).lower(*args).compile().as_text()
    plan = text[text.index("plan\n") : text.index("# kernel 0")]
    return " times" not in plan


def assert_lanes_equal(found: Any, expected: list[Any], dtype: Any) -> None:
    rtol = 1e-12 if np.dtype(dtype).itemsize >= 8 and np.dtype(dtype).kind == "f" else 2e-5
    for k, part in enumerate(found):
        wanted = np.stack([row[k] for row in expected])
        assert part.dtype == wanted.dtype or not wanted.size
        np.testing.assert_allclose(part, wanted, rtol=rtol, atol=rtol)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize(("n_lanes", "n_steps"), [(17, 2), (64, 5), (65, 3), (300, 4)])
def test_every_lane_is_the_loop_of_that_lane(
    step: Step, n_lanes: int, n_steps: int, dtype: Any
) -> None:
    args = inputs(n_lanes, n_steps, dtype)
    f = fg.vmap(scanned(step))
    assert is_interchanged(f, *args)
    expected = [by_hand(step, *(a[i] for a in args)) for i in range(n_lanes)]
    assert_lanes_equal(fg.jit(f)(*args), expected, dtype)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("axes", [(0, None, 0), (0, 1, None), (0, None, None), (1, 2, 1)])
def test_inputs_are_shared_or_mapped_along_any_axis(step: Step, axes: Any) -> None:
    n_lanes, n_steps = 70, 3
    args = inputs(n_lanes, n_steps, np.float64)
    given = [
        a[0] if axis is None else np.ascontiguousarray(np.moveaxis(a, 0, axis))
        for a, axis in zip(args, axes, strict=True)
    ]
    expected = [
        by_hand(step, *(a[0] if axis is None else a[i] for a, axis in zip(args, axes, strict=True)))
        for i in range(n_lanes)
    ]
    assert_lanes_equal(fg.jit(fg.vmap(scanned(step), in_axes=axes))(*given), expected, np.float64)


@pytest.mark.parametrize("step", [predators, folded])
def test_loops_run_backwards(step: Step) -> None:
    args = inputs(40, 6, np.float64)
    expected = [by_hand(step, *(a[i] for a in args), is_reversed=True) for i in range(40)]
    assert_lanes_equal(fg.jit(fg.vmap(scanned(step, True)))(*args), expected, np.float64)


@pytest.mark.parametrize("n_lanes", [33, 200])
def test_times_and_counters_are_shared(n_lanes: int) -> None:
    def run(y: Any) -> Any:
        def step(carry: Any, t: Any) -> Any:
            y, i, power = carry
            y = y * fnp.cos(t) + i
            return (y, i + 1, power * 0.5), (y, t * power)

        return fg.lax.scan(step, (y, 0, 1.0), np.linspace(0.0, 1.0, 5))

    y0 = np.linspace(0.1, 1.0, 2 * n_lanes).reshape(n_lanes, 2)
    (y, i, power), (rows, times) = fg.jit(fg.vmap(run))(y0)
    state = y0
    for k, t in enumerate(np.linspace(0.0, 1.0, 5)):
        state = state * np.cos(t) + k
        np.testing.assert_allclose(rows[:, k], state, rtol=1e-13)
        np.testing.assert_allclose(times[:, k], t * 0.5**k, rtol=1e-13)
    np.testing.assert_allclose(y, state, rtol=1e-13)
    assert (i == 5).all()
    assert (power == 0.5**5).all()


def test_elements_of_a_recurrence_are_lanes() -> None:
    xs = np.random.default_rng(0).normal(size=(50, 123))

    def smoothed(xs: Any) -> Any:
        return fg.lax.scan(lambda c, x: ((c := 0.9 * c + 0.1 * x), c), np.zeros(123), xs)[1]

    state, rows = np.zeros(123), []
    for x in xs:
        state = 0.9 * state + 0.1 * x
        rows.append(state)
    assert is_interchanged(smoothed, xs)
    np.testing.assert_allclose(fg.jit(smoothed)(xs), np.stack(rows), rtol=1e-13)


@pytest.mark.parametrize(
    "mix",
    [
        lambda c: c + 0.1 * (np.roll(c, 1) - c),
        lambda c: c - np.mean(c),
        lambda c: c[::-1] * 0.5,
        lambda c: c * c[3],
        lambda c: np.cumsum(c) / 10,
    ],
    ids=["neighbours", "mean", "reversed", "one element", "prefix sums"],
)
def test_a_loop_that_mixes_its_elements_stays_as_it_is(mix: Any) -> None:
    def run(c: Any) -> Any:
        return fg.lax.scan(lambda c, _: (mix(c), c), c, None, length=4)

    start = np.linspace(0.0, 1.0, 40)
    state, rows = start, []
    for _ in range(4):
        rows.append(state)
        state = mix(state)
    found, stacked = fg.jit(run)(start)
    np.testing.assert_allclose(found, state, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(stacked, np.stack(rows), rtol=1e-12, atol=1e-14)


def test_complex_and_integer_lanes() -> None:
    def run(z: Any, n: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            z, n = carry
            return (z * z * 0.5 + 0.1j, n * 3 + 1), (abs(z), n // 2)

        return fg.lax.scan(step, (z, n), None, length=6)

    z, n = np.linspace(0, 1, 30) * (1 + 0.5j), np.arange(30)
    (z1, n1), (sizes, halves) = fg.jit(fg.vmap(run))(z, n)
    for k in range(6):
        np.testing.assert_allclose(sizes[:, k], abs(z), rtol=1e-13)
        np.testing.assert_array_equal(halves[:, k], n // 2)
        z, n = z * z * 0.5 + 0.1j, n * 3 + 1
    np.testing.assert_allclose(z1, z, rtol=1e-13)
    np.testing.assert_array_equal(n1, n)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("step", [predators, logistic, by_matrix])
def test_gradients_of_ensembles(step: Step) -> None:
    args = inputs(37, 4, np.float64)

    def loss(y: Any, xs: Any, p: Any) -> Any:
        y, rows = scanned(step)(y, xs, p)
        return fnp.sum(y**2) + fnp.sum(rows)

    found = fg.jit(fg.vmap(fg.grad(loss, argnums=(0, 1, 2))))(*args)
    for i in range(0, 37, 9):
        own = [a[i] for a in args]

        def value(which: int, x: Any, own: list[Any] = own) -> Any:
            y, rows = by_hand(step, *own[:which], x, *own[which + 1 :])
            return np.sum(y**2) + np.sum(rows)

        for which in range(3):
            slopes = np.zeros(own[which].shape)
            for place in np.ndindex(slopes.shape):
                h = np.zeros(slopes.shape)
                h[place] = 1e-6
                slopes[place] = value(which, own[which] + h) - value(which, own[which] - h)
            np.testing.assert_allclose(found[which][i], slopes / 2e-6, rtol=1e-6, atol=1e-8)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    args = inputs(5000, 40, np.float64)
    f = fg.vmap(scanned(predators))
    one, two = (fg.jit(f, threads=k)(*args) for k in (1, 2))
    for x, y in zip(one, two, strict=True):
        np.testing.assert_array_equal(x, y)


SQUARE = np.random.default_rng(1).normal(size=(70, 70))


@pytest.mark.parametrize(
    "step",
    [
        lambda c, i: np.tanh(c.T) * 0.9,
        lambda c, i: np.tanh(c) * 0.9 + 0.01 * np.sum(c, axis=0),
        lambda c, i: np.tanh(c) * 0.9 + 0.01 * np.sum(c, axis=1),
        lambda c, i: np.tanh(c) * 0.9 + 0.01 * np.cumsum(c, axis=1),
        lambda c, i: np.roll(c, 1, axis=0) * 0.9 + np.roll(c, 1, axis=1),
        lambda c, i: fnp.at(c)[:, i].set(c[:, i] * 2 + c[:, 3]),
        lambda c, i: c.reshape(2, -1).T.reshape(c.shape) * 0.5,
    ],
    ids=["transposed", "columns", "rows", "prefixes", "shifted", "one column", "in turn"],
)
def test_lanes_are_rows_or_columns_but_not_both(step: Any) -> None:
    expected = SQUARE
    for i in range(4):
        expected = step(expected, i)
    found = fg.jit(lambda x: fg.lax.fori_loop(0, 4, lambda i, c: step(c, i), x))(SQUARE)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_every_block_of_lanes_begins_with_the_first_numbers(dtype: Any) -> None:
    """Arrays that no cache holds are changed where they are; counters beside them are not."""
    steps, n = 20, CACHES[1][0] // np.dtype(dtype).itemsize
    x = np.random.default_rng(0).integers(0, 2**32, n).astype(dtype)

    def mix(k: Any, h: Any) -> Any:
        return ((h ^ (h >> dtype(15))) * dtype(739982445)) ^ k.astype(dtype)

    expected = x
    for k in range(steps):
        expected = mix(np.int64(k), expected)
    found = fg.jit(lambda x: fg.lax.fori_loop(0, steps, mix, x))(x)
    np.testing.assert_array_equal(found, expected)


def test_lanes_of_many_numbers_stay_as_they_are() -> None:
    """Copies with the lanes last are written number by number."""

    def sweep(x: Any) -> Any:
        def down(c: Any, level: Any) -> tuple[Any, Any]:
            c = 1.0 / (1.0 + level * (1.0 - c))
            return c, c

        return fg.lax.scan(down, fnp.zeros_like(x[0]), x)[1]

    x = np.random.default_rng(0).uniform(size=(5, 64, 64))
    text = fg.jit(sweep).lower(x).as_text()
    assert text.count("\ndef kernel(") <= 2
    expected, c = [], np.zeros((64, 64))
    for level in x:
        expected.append(c := 1.0 / (1.0 + level * (1.0 - c)))
    np.testing.assert_allclose(fg.jit(sweep)(x), expected, rtol=1e-14)


def steps_to_one(x: Any, factor: Any) -> tuple[Any, Any]:
    """How often a number is to be reduced, and what is left of it."""

    def is_large(state: Any) -> Any:
        return (state[0] > 1) & (state[1] < 40)

    return fg.lax.while_loop(is_large, lambda state: (state[0] * factor, state[1] + 1), (x, 0))


def by_lane(x: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rests, counts = np.empty(x.shape, x.dtype), np.empty(x.shape, np.int64)
    for place in np.ndindex(x.shape):
        rest, count = x[place], 0
        while rest > 1 and count < 40:
            rest, count = rest * factors[place], count + 1
        rests[place], counts[place] = rest, count
    return rests, counts


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n_lanes", [3, 17, 64, 1000])
def test_lanes_stop_when_their_condition_does(n_lanes: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 100, n_lanes).astype(dtype)
    factors = rng.uniform(0.5, 1.01, n_lanes).astype(dtype)
    compiled = fg.jit(fg.vmap(steps_to_one))
    for found, expected in zip(compiled(x, factors), by_lane(x, factors), strict=True):
        np.testing.assert_array_equal(found, expected)
    plan = compiled.lower(x, factors).as_text().partition("\nplan\n")[2].partition("\n# kernel")[0]
    assert "  while" not in plan


def test_blocks_of_lanes_that_stop_count_their_steps_together() -> None:
    """So a program of many lanes looks whether to stop, however few steps each of them takes."""
    x = np.ones(1000)
    text = fg.jit(fg.vmap(steps_to_one)).lower(x, x).as_text()
    assert 0 < text.index("t = i64(0)") < text.index("for q in") < text.index("look(slots)")


def test_lanes_of_several_axes_are_those_of_one() -> None:
    rng = np.random.default_rng(0)
    x, factors = rng.uniform(0, 100, 30), rng.uniform(0.5, 1.01, 20)
    inner = fg.vmap(steps_to_one, in_axes=(0, None))
    compiled = fg.jit(fg.vmap(inner, in_axes=(None, 0)))
    grid = np.broadcast_arrays(x, factors[:, None])
    for found, expected in zip(compiled(x, factors), by_lane(*grid), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert "f64[600]" in compiled.lower(x, factors).as_text()

    def far(x: Any, table: Any) -> Any:
        def step(state: Any) -> Any:
            return state[0] * table[state[1] % 2], state[1] + 1

        return fg.lax.while_loop(lambda s: (s[0] > 1) & (s[1] < 40), step, (x, 0))

    # Arrays are not repeated for lanes that share them.
    tables = np.stack([factors, factors], -1)
    apart = fg.jit(fg.vmap(fg.vmap(far, in_axes=(0, None)), in_axes=(None, 0)))
    for found, expected in zip(apart(x, tables), by_lane(*grid), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_derivatives_of_lanes_that_stop() -> None:
    rng = np.random.default_rng(0)
    x, factors = rng.uniform(0, 100, (4, 20)), rng.uniform(0.5, 0.9, (4, 20))
    rest = fg.vmap(fg.vmap(lambda x, factor: steps_to_one(x, factor)[0]))
    found = fg.jit(fg.grad(lambda x: np.sum(rest(x, factors))))(x)
    _, counts = by_lane(x, factors)
    np.testing.assert_allclose(found, factors**counts, rtol=1e-12)
    _, moved = fg.jit(lambda x: fg.jvp(lambda x: rest(x, factors), (x,), (np.ones_like(x),)))(x)
    np.testing.assert_allclose(moved, factors**counts, rtol=1e-12)
