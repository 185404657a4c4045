"""Rows that are divided where a condition on their index turns, or in steps: same bits."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad import lax
from funcgrad import numpy as fnp
from funcgrad.compiler.nest.arrange import SKIP_VARIABLE, VERIFY_VARIABLE

Program = Callable[..., Any]
Mask = Callable[[Any], Any]

COMPARISONS = (
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip


def compiled(program: Program, args: tuple[Any, ...], skipped: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SKIP_VARIABLE, skipped)
        patch.setenv(VERIFY_VARIABLE, "1")
        return fg.jit(lambda *args: program(*args))(*args)


def assert_same_bits(program: Program, *args: Any) -> None:
    """With and without the pass."""
    found, expected = (compiled(program, args, skipped) for skipped in ("", "unswitch"))
    pairs = zip(fg.tree.leaves(found), fg.tree.leaves(expected), strict=True)
    for x, y in ((np.asarray(x), np.asarray(y)) for x, y in pairs):
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes()


def is_divided(program: Program, *args: Any) -> bool:
    """Whether a kernel of a program has bounds of its own for parts of rows."""
    return bool(re.search("part(_end)? = ", fg.jit(program).lower(*args).as_text()))


@st.composite
def masks(draw: Any, n: int) -> Mask:
    """Conditions on the index along an axis of length ``n``, of a counter."""

    def side() -> Mask:
        compare, step = draw(st.sampled_from(COMPARISONS)), draw(st.sampled_from((1, -1)))
        first = draw(st.integers(-n, n))
        dtype = draw(st.sampled_from((np.int64, np.int32, np.int16)))
        index = (first + step * np.arange(n)).astype(dtype)
        shift, is_left = draw(st.integers(-3, 3)), draw(st.booleans())
        if compare in (operator.eq, operator.ne) and draw(st.booleans()):
            return lambda k: compare(index % (k + shift), 0)
        return lambda k: compare(index, k + shift) if is_left else compare(k + shift, index)

    sides = [side() for _ in range(draw(st.integers(1, 3)))]
    words = [draw(st.sampled_from((operator.and_, operator.or_))) for _ in sides[1:]]
    is_negated = draw(st.booleans())

    def mask(k: Any) -> Any:
        found = sides[0](k)
        for word, other in zip(words, sides[1:], strict=True):
            found = word(found, other(k))
        return ~found if is_negated else found

    return mask


def updates(mask: Mask, x: Any, counts: Any) -> Any:
    """Arrays of which each step changes what the mask selects."""

    def step(x: Any, k: Any) -> tuple[Any, Any]:
        return fnp.where(mask(k), x + x * x - 1, x), ()

    return lax.scan(step, x, counts)[0]


def replacements(mask: Mask, x: Any, counts: Any) -> Any:
    def step(x: Any, k: Any) -> tuple[Any, Any]:
        return fnp.where(mask(k), fnp.sin(x) * fnp.exp(x * 0.5), 0.25), ()

    return lax.scan(step, x, counts)[0]


def sums(mask: Mask, x: Any, counts: Any) -> Any:
    return lax.map(lambda k: fnp.sum(fnp.where(mask(k), x * x, 0), axis=-1), counts)


def sums_of_columns(mask: Mask, x: Any, counts: Any) -> Any:
    return lax.map(lambda k: fnp.sum(fnp.where(mask(k), x * x, 0), axis=0), counts)


def sums_of_rest(mask: Mask, x: Any, counts: Any) -> Any:
    return lax.map(lambda k: fnp.sum(fnp.where(mask(k), fnp.exp(x), 0) + x), counts)


def products(mask: Mask, x: Any, counts: Any) -> Any:
    return lax.map(lambda k: fnp.prod(fnp.where(mask(k), x * 0.5, 1), axis=-1), counts)


def extremes(mask: Mask, x: Any, counts: Any) -> Any:
    def one(k: Any) -> Any:
        whole = (x * 8).astype(np.int64)
        return (
            fnp.max(fnp.where(mask(k), whole, 3), axis=-1),
            fnp.min(fnp.where(mask(k), x, np.inf), axis=-1),
        )

    return lax.map(one, counts)


def normalised(mask: Mask, x: Any, counts: Any) -> Any:
    """Two passes over a row, of which the second reads a number of the first."""

    def one(k: Any) -> Any:
        weights = fnp.where(mask(k), fnp.exp(x), 0)
        return weights / (1 + fnp.sum(weights, axis=-1, keepdims=True))

    return lax.map(one, counts)


def along_both(mask: Mask, x: Any, counts: Any) -> Any:
    def step(x: Any, k: Any) -> tuple[Any, Any]:
        rows = np.arange(x.shape[0]) < k
        return fnp.where(rows[:, None] & mask(k), x - x[0] * x[:, :1], x), ()

    return lax.scan(step, x, counts)[0]


def rows_in_place(mask: Mask, x: Any, counts: Any) -> Any:
    """Some rows change by a vector that is the same for all of them."""

    def step(x: Any, k: Any) -> tuple[Any, Any]:
        rows = operator.gt if x.shape[0] % 2 else operator.le
        row = fnp.where(mask(k), fnp.cos(x[0]), 0.5)
        return fnp.where(rows(np.arange(x.shape[0]), k)[:, None], x - row * 0.5, x), ()

    return lax.scan(step, x, counts)[0]


def lookups(mask: Mask, x: Any, counts: Any) -> Any:
    places = np.arange(x.shape[-1])[::-1]
    return lax.map(lambda k: fnp.where(mask(k), x[:, (places + k) % x.shape[-1]] * x, 0.0), counts)


PROGRAMS = (
    updates, replacements, sums, sums_of_columns, sums_of_rest, products, extremes, normalised,
    along_both, rows_in_place, lookups,
)  # fmt: skip


@given(st.data())
def test_bits_are_those_of_whole_rows(data: st.DataObject) -> None:
    n = data.draw(st.sampled_from((1, 2, 17, 40, 70, 131, 600)))
    mask, program = data.draw(masks(n)), data.draw(st.sampled_from(PROGRAMS))
    dtype = data.draw(st.sampled_from((np.float64, np.float32)))
    counts = np.array(data.draw(st.lists(st.integers(-n - 2, 2 * n + 2), max_size=4)), np.int64)
    seed = data.draw(st.integers(0, 99))
    x = np.random.default_rng(seed).normal(size=(data.draw(st.sampled_from((1, 3, 20))), n))
    x.flat[:: data.draw(st.sampled_from((7, 1000)))] = data.draw(
        st.sampled_from((0.0, -0.0, np.inf, np.nan))
    )
    how = data.draw(st.sampled_from(("plain", "gradient", "mapped")))

    def value(x: Any, counts: Any) -> Any:
        return program(mask, x, counts)

    def total(x: Any, counts: Any) -> Any:
        parts = fg.tree.leaves(value(x, counts))
        return sum(fnp.sum(part) for part in parts if part.dtype.kind == "f")

    with np.errstate(all="ignore"):
        if how == "gradient":
            assert_same_bits(fg.grad(total), x.astype(dtype), counts)
        elif how == "mapped":
            both = np.stack([x, x + 1]).astype(dtype), np.stack([counts, counts[::-1]])
            assert_same_bits(fg.vmap(value), *both)
        else:
            assert_same_bits(value, x.astype(dtype), counts)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("k", [-(2**63), -5, 0, 1, 99, 100, 101, 2**63 - 1])
@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("step", [1, -1])
def test_bounds_far_from_the_array(k: int, compare: Any, step: int) -> None:
    x, index = np.linspace(-2.0, 2.0, 100), step * np.arange(100)
    expected = np.where(compare(index, k), np.exp(x) * np.sin(x), x)
    found = fg.jit(
        lambda x, k: fnp.where(compare(fnp.asarray(index), k), fnp.exp(x) * fnp.sin(x), x)
    )(x, np.int64(k))
    np.testing.assert_allclose(found, expected, 1e-14, 1e-15)


def test_numbers_at_the_end_of_their_range() -> None:
    """Distances from them are no integers of 64 bits."""
    x, index = np.linspace(1.0, 2.0, 100), np.iinfo(np.int64).max - np.arange(100)
    for k in (index[40], index[0], -(2**63)):
        found = fg.jit(lambda x, k: fnp.where(index > k, fnp.exp(x) * fnp.sin(x), x))(x, k)
        np.testing.assert_allclose(found, np.where(index > k, np.exp(x) * np.sin(x), x), 1e-14)


def test_steps_change_what_their_masks_select() -> None:
    """In place: nothing is left of a step outside of its bounds."""
    index = np.arange(300)

    def steps(x: Any) -> Any:
        return lax.fori_loop(0, 300, lambda k, x: fnp.where(index < k, fnp.sin(x) + 0.5 * x, x), x)

    x = np.linspace(0.0, 1.0, 300 * 300).reshape(300, 300)
    assert is_divided(steps, x)
    assert_same_bits(steps, x)
    expected = x.copy()
    for k in range(300):
        expected[:, :k] = np.sin(expected[:, :k]) + 0.5 * expected[:, :k]
    np.testing.assert_allclose(fg.jit(steps)(x), expected, 1e-9)


def test_indices_outside_are_refused_as_before() -> None:
    """A lookup that looks at its indices does so in all of the row, whatever is selected."""
    index, x = np.arange(200), np.linspace(0.0, 1.0, 200)

    def program(x: Any, places: Any, k: Any) -> Any:
        return fnp.where(index < k, x[places] * fnp.sin(x), x)

    places = index.copy()
    places[150] = 200
    with pytest.raises(IndexError):
        fg.jit(program)(x, places, 100)
    assert_same_bits(program, x, index, 100)


def test_short_rows_are_left_alone() -> None:
    index = np.arange(16)

    def program(x: Any, k: Any) -> Any:
        return fnp.where(index < k, fnp.sin(x), x)

    assert not is_divided(program, np.ones((4, 16)), 3)


def test_derivatives_of_steps_are_bounded_too() -> None:
    """Backward steps compute masks again, which bound what they read of residuals."""
    index = np.arange(150)

    def total(x: Any) -> Any:
        def step(k: Any, x: Any) -> Any:
            return fnp.where((index >= k - 9) & (index < k + 9), fnp.sin(x) * x, x)

        return fnp.sum(lax.fori_loop(0, 150, step, x))

    x = np.linspace(0.5, 1.5, 8 * 150).reshape(8, 150)
    assert is_divided(total, x)
    assert fg.jit(fg.grad(total)).lower(x).as_text().count("part_end = ") > 2
    assert_same_bits(fg.value_and_grad(total), x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [40, 300])
def test_small_arrays_are_changed_in_place(n: int) -> None:
    index = np.arange(n)

    def factor(a: Any) -> Any:
        def step(k: Any, a: Any) -> Any:
            below = (index > k)[:, None] & (index >= k)[None, :]
            return fnp.where(below, a - (a[:, k] / a[k, k])[:, None] * a[k], a)

        return lax.fori_loop(0, n, step, a)

    a = np.random.default_rng(0).normal(size=(n, n)) / n + 2 * np.eye(n)
    assert_same_bits(factor, a)
    expected = a.copy()
    for k in range(n):
        rows = expected[k + 1 :, k] / expected[k, k]
        expected[k + 1 :, k:] -= rows[:, None] * expected[k, k:]
    np.testing.assert_allclose(fg.jit(factor)(a), expected, 1e-10, 1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("first", [0, -70, 31])
def test_multiples_are_gone_over_in_steps(first: int, step: int) -> None:
    """Whatever divides the index: nothing is computed between its multiples."""
    index = first + step * np.arange(300)
    divisors = np.array([*range(-12, 13), 299, 1000, 2**63 - 1, -(2**63)])

    def halved(x: Any, k: Any) -> tuple[Any, Any]:
        return fnp.where((index >= k - 9) & (index % k == 0), 0.5 * x, x), ()

    def struck(x: Any, k: Any) -> tuple[Any, Any]:
        return x & ((index < k) | (index % k != 0)), ()

    for rule, x in ((halved, np.linspace(1.0, 2.0, 300)), (struck, np.arange(300) % 8 > 1)):
        program = fg.jit(lambda x, rule=rule: lax.scan(rule, x, divisors)[0])
        assert "_turn in" in program.lower(x).as_text()
        with np.errstate(all="ignore"):
            expected = x
            for k in divisors:
                expected = np.asarray(rule(expected, k)[0])
            np.testing.assert_array_equal(program(x), expected)


def test_few_multiples_are_left_to_one_thread() -> None:
    """The work is that of the elements that are computed, not of all."""
    index = np.arange(50_000)

    def struck(x: Any, k: Any) -> Any:
        return lax.fori_loop(2, k, lambda i, x: x & ((index < i * i) | (index % i != 0)), x)

    program = fg.jit(struck, threads=4).lower(index > 1, np.int64(200))
    assert "_turn in" in program.as_text()
    assert "parts" not in program.as_text()


def test_others_than_multiples_are_computed() -> None:
    """Where something happens between multiples, or to the sum of a row, rows stay whole."""
    index, x = np.arange(300), np.linspace(1.0, 2.0, 300)
    for program in (
        lambda x, k: fnp.where(index % k != 0, fnp.sin(x), x),
        lambda x, k: fnp.sum(fnp.where(index % k == 0, x, 0.0)),
    ):
        assert "_turn in" not in fg.jit(program).lower(x, np.int64(3)).as_text()
        assert_same_bits(program, x, np.int64(3))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_extremes_take_a_number_outside_of_the_bounds_once(dtype: Any) -> None:
    def f(x: Any, k: Any) -> tuple[Any, ...]:
        i = np.arange(x.shape[-1])
        return (
            fnp.max(fnp.where(i > k, 3 * x + 1, 5), -1),
            fnp.min(fnp.where(i[::-1] > k, x * x - x, 5)),
            fnp.any(fnp.where(i < k, 3 * x > 9, True), -1),
            fnp.all(fnp.where(i < k, x > 9, False), -1),
        )

    compiled = fg.jit(f)
    for n in (1, 2, 15, 16, 17, 64, 100, 300):
        x = np.random.default_rng(n).integers(-20, 20, (3, n)).astype(dtype)
        for k in {-2, -1, 0, 1, n // 2, n - 1, n, n + 3}:
            for found, expected in zip(compiled(x, k), f(x, k), strict=True):
                np.testing.assert_array_equal(found, expected)
    text = fg.jit(lambda x, k: fnp.max(fnp.where(np.arange(100) > k, x, 5))).lower(x[0, :100], 3)
    assert "minimum(0 + 1, part)" in text.as_text()


def changed_rows(is_kept: bool) -> Program:
    """Rows change, in one step after the other, where a number of theirs is above the step's."""

    def program(x: Any, numbers: Any) -> Any:
        def step(k: Any, x: Any) -> Any:
            rows = (numbers > k)[:, None]
            return fnp.where(rows, *((x, 0.5 * x) if is_kept else (0.5 * x, x)))

        return lax.fori_loop(0, 60, step, x)

    return program


@pytest.mark.parametrize("is_kept", [True, False])
def test_rows_of_which_nothing_is_computed_take_a_branch(is_kept: bool) -> None:
    program, numbers = changed_rows(is_kept), np.random.default_rng(1).permutation(60)
    x = np.random.default_rng(0).normal(size=(60, 40))
    assert_same_bits(program, x, numbers)
    text = fg.jit(program).lower(x, numbers).as_text()
    assert re.search(r"if (logical_not\()?(k\d+_)?[vx]\d", text)
    assert "part_end" not in text


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("counter", [np.arange(60), 59 - np.arange(60), np.arange(60) + 20])
def test_loops_over_rows_have_the_bounds_of_what_their_numbers_are_compared_with(
    counter: np.ndarray, is_kept: bool
) -> None:
    x = np.random.default_rng(0).normal(size=(60, 40))
    program = changed_rows(is_kept)
    assert_same_bits(lambda x: program(x, counter), x)
    text = fg.jit(lambda x: program(x, counter)).lower(x).as_text()
    assert "i0_part" in text
    assert not re.search(r"if (logical_not\()?(k\d+_)?[vx]\d", text)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(9, 40), (60, 61), (11, 300)])
def test_rows_that_change_by_the_same_vector_are_computed_several_at_once(
    shape: tuple[int, int], dtype: Any
) -> None:
    def program(x: Any, column: Any, row: Any) -> Any:
        def step(k: Any, x: Any) -> Any:
            masks = np.arange(shape[0]) > k, np.arange(shape[1]) >= k
            return fnp.where(masks[0][:, None] & masks[1], x - column[:, None] * row, x)

        return lax.fori_loop(0, 50, step, x)

    rng = np.random.default_rng(0)
    args = [rng.normal(size=size).astype(dtype) for size in (shape, shape[0], shape[1])]
    assert_same_bits(program, *args)
    assert "i0_whole" in fg.jit(program).lower(*args).as_text()


@pytest.mark.parametrize("is_column", [True, False])
@pytest.mark.parametrize("k", [-1, 3])
def test_elements_of_a_row_that_stay_are_not_written(k: int, is_column: bool) -> None:
    places = np.arange(60)

    def step(i: Any, x: Any) -> Any:
        row = x[:, k] if is_column else x[k]
        new = fnp.where(places < i, 0.5 * row + 1.0, row)
        return x.at[:, k].set(new) if is_column else x.at[k].set(new)

    def program(x: Any) -> Any:
        return lax.fori_loop(0, 60, step, x)

    x = np.random.default_rng(0).normal(size=(60, 60))
    assert_same_bits(program, x)
    expected = x.copy()
    row = expected[:, k] if is_column else expected[k]
    for i in range(60):
        row[:i] = 0.5 * row[:i] + 1.0
    np.testing.assert_array_equal(fg.jit(program)(x), expected)


def test_elements_of_another_row_are_written() -> None:
    places = np.arange(60)

    def step(i: Any, x: Any) -> Any:
        return x.at[:, i].set(fnp.where(places < i, 0.5 * x[:, i], x[:, (i + 3) % 60]))

    assert_same_bits(lambda x: lax.fori_loop(0, 60, step, x), np.arange(3600.0).reshape(60, 60))
