"""Loops whose iterations have arrays of different lengths become scans, and keep their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.typecheck import check_program
from funcgrad.higher_order.bounded import Bounded, Moved
from funcgrad.primitives.contraction import Contract
from funcgrad.primitives.reductions import ReduceAll, ReduceMax, ReduceMin, ReduceProd
from funcgrad.primitives.shape import ReduceSum
from tests.higher_order import random_loops
from tests.higher_order.test_reroll import assert_same_bits, lengths, unrolled

RNG = np.random.default_rng(11)


def solve_triangular(a: Any, b: Any) -> list[Any]:
    x = fnp.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return [x]


def solve_from_below(a: Any, b: Any) -> list[Any]:
    x = fnp.zeros_like(b)
    for i in range(len(b) - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return [x]


def covariances(a: Any, b: Any) -> list[Any]:
    n = len(b)
    out = fnp.zeros((n, n))
    for i in range(n):
        out[i:n, i] = out[i, i:n] = a[:, i] @ a[:, i:n] / (n - 1.0)
    return [out]


def toeplitz(a: Any, b: Any) -> list[Any]:
    y = fnp.empty_like(b)
    alpha, beta = -b[0], 1.0
    y[0] = -b[0]
    for k in range(1, len(b)):
        beta *= 1.0 - alpha * alpha
        alpha = -(b[k] + np.dot(np.flip(b[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return [y]


def eliminate(a: Any, b: Any) -> list[Any]:
    a = a.copy()
    for k in range(len(b) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return [a]


def folds(a: Any, b: Any) -> list[Any]:
    total, product, least, greatest = 0.0, 1.0, 0.0, 0.0
    for i in range(len(b)):
        total = total + np.sum(a[i, : i + 1]) + np.sin(a[: i + 1, i] * b[: i + 1]).sum()
        product = product * (1.0 + 0.01 * np.prod(b[i:]))
        least = least + np.min(a[i:, i])
        greatest = greatest + np.max(a[: i + 1, : i + 1]) + a[: i + 1, : i + 1].sum()
    return [total, product, least, greatest]


def rank_update(a: Any, b: Any) -> list[Any]:
    c = 1.0 * a
    for i in range(len(b)):
        c[i, : i + 1] *= 1.2
        for k in range(6):
            c[i, : i + 1] += 1.5 * a[i, k] * a[: i + 1, k]
    return [c]


def triangular_product(a: Any, b: Any) -> list[Any]:
    out = 2.0 * a
    for i in range(len(b)):
        for j in range(40):
            out[i, j] += np.dot(a[i + 1 :, i], out[i + 1 :, j])
    return [out]


def every_other(a: Any, b: Any) -> list[Any]:
    out = fnp.zeros_like(b)
    for i in range(len(b)):
        out[i] = b[:i:2].sum() + np.sum(a[i, : i + 1][::-1] * b[: i + 1])
        out[:i] = out[:i] + fnp.full(i, b[i])
    return [out]


ROWS = np.concatenate([[0], np.cumsum(RNG.poisson(2.0, 64))])
COLUMNS = RNG.integers(0, 40, ROWS[-1]).astype(np.uint32)


def sparse_product(a: Any, b: Any) -> list[Any]:
    values, out = a.ravel(), fnp.zeros_like(b)
    for i in range(len(b)):
        columns = COLUMNS[ROWS[i] : ROWS[i + 1]]
        out[i] = values[ROWS[i] : ROWS[i + 1]] @ b[columns] + np.sin(b[i]) * b[columns].sum()
    return [out]


def packed_triangle(a: Any, b: Any) -> list[Any]:
    values, out = a.ravel(), fnp.zeros_like(b)
    for i in range(len(b)):
        first = i * (i + 1) // 2
        out[i] = values[first : first + i + 1] @ b[: i + 1] + np.max(values[first : first + i + 1])
    return [out]


def sliding(a: Any, b: Any) -> list[Any]:
    x, total = a.ravel(), 0.0
    for i in range(len(b)):
        total = total + np.sum(x[i : 2 * i + 1] * b[: i + 1]) * x[i]
    return [total]


PROGRAMS = [
    solve_triangular,
    solve_from_below,
    covariances,
    toeplitz,
    eliminate,
    folds,
    rank_update,
    triangular_product,
    every_other,
    sparse_product,
    packed_triangle,
    sliding,
]
OF_PROGRAMS = pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)


def arguments(n: int) -> tuple[Any, Any]:
    matrix = RNG.uniform(0.5, 1.0, size=(n, n)) / n + 3.0 * np.eye(n)
    return matrix, np.arange(n, 0, -1.0) / (8.0 * n)


@pytest.mark.sampled(8)
@OF_PROGRAMS
def test_loops_keep_their_bits(function: Any) -> None:
    args = arguments(44)
    assert lengths(function, *args), "no loop was found"
    assert_same_bits(function, *args)


def test_inner_loops_may_read_many_elements_of_a_row() -> None:
    def symmetric_product(a: Any) -> list[Any]:
        c, part = 0.5 * a, fnp.empty(40)
        for i in range(12):
            for j in range(40):
                c[:i, j] += 0.3 * a[i, j] * a[i, :i]
                part[j] = a[:i, j] @ a[i, :i]
            c[i, :40] += a[i, :40] * a[i, i] + part
        return [c]

    matrix, _ = arguments(40)
    assert len(fg.make_jaxpr(symmetric_product)(matrix).eqns) < 10
    assert_same_bits(symmetric_product, matrix)


@pytest.mark.sampled(4)
@OF_PROGRAMS
def test_the_number_of_operations_does_not_depend_on_that_of_steps(function: Any) -> None:
    short, long = (len(fg.make_jaxpr(function)(*arguments(n)).eqns) for n in (48, 64))
    assert short == long


@pytest.mark.sampled(12)
@OF_PROGRAMS
def test_derivatives(function: Any) -> None:
    args = arguments(40)
    with fg.reroll_loops(False):
        plain = fg.make_jaxpr(function)(*args)
    rolled = fg.make_jaxpr(function)(*args)
    check_program(rolled.program)

    def loss(program: Any) -> Callable[..., Any]:
        return lambda *xs: sum(np.sum(np.cos(y)) for y in program.eval(*xs))

    with fg.disable_jit():
        wanted = fg.grad(loss(plain), (0, 1))(*args)
    got = fg.jit(fg.grad(loss(rolled), (0, 1)))(*args)
    for x, y in zip(got, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)
    directions = [RNG.normal(size=np.shape(x)) for x in args]
    _, dot = fg.jit(lambda xs, ts: fg.jvp(loss(rolled), xs, ts))(args, tuple(directions))
    slopes = sum(np.sum(x * t) for x, t in zip(wanted, directions, strict=True))
    np.testing.assert_allclose(dot, slopes, rtol=1e-8, atol=1e-10)


def test_lanes() -> None:
    matrix, vector = arguments(40)
    many = np.stack([vector, 2.0 * vector, vector[::-1]])
    got = fg.jit(fg.vmap(lambda b: solve_triangular(matrix, b)[0]))(many)
    wanted = [np.linalg.solve(np.tril(matrix), b) for b in many]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_what_lies_outside_of_parts_is_no_part_of_derivatives() -> None:
    def f(x: Any, c: Any) -> Any:
        total = 0.0
        for i in range(1, 60):
            total = total + np.sum(c / x[:i] + np.log(x[:i]))
        return total

    x = np.linspace(1.0, 2.0, 60)
    x[59] = 0.0
    assert lengths(f, x, 1.5)
    counts = np.arange(59, -1, -1.0)
    with np.errstate(all="ignore"):
        dx, dc = fg.jit(fg.grad(f, (0, 1)))(x, 1.5)
        wanted = np.where(counts > 0, counts * (-1.5 / x**2 + 1 / x), 0.0)
        total = np.sum(counts[:-1] / x[:-1])
    np.testing.assert_allclose(dx, wanted, rtol=1e-12)
    np.testing.assert_allclose(dc, total, rtol=1e-12)


def test_what_has_no_rule_stays_unrolled() -> None:
    def growing(x: Any) -> list[Any]:
        y = x[:1]
        for i in range(1, 80):
            y = np.concatenate([np.sin(y), x[i : i + 1] * y[:1], y[1:]])[: i + 1]
        return [y]

    def ordered(x: Any) -> list[Any]:
        total = 0.0
        for i in range(1, 80):
            total = total + np.sort(x[:i])[0] * x[i] + np.sin(x[i]) + np.cos(x[i])
        return [total]

    x = RNG.normal(size=90)
    for function in (growing, ordered):
        assert not lengths(function, x)
        assert_same_bits(function, x)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", range(1000, 1060, 10))
def test_random_programs_keep_their_bits(first: int) -> None:
    found = random_loops.compared(10, first)
    assert found.wrong == []
    assert found.rolled > 5


# Loops within loops, whose numbers of steps are those of the counter around them.


def factors(a: Any) -> list[Any]:
    a = a.copy()
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, len(a)):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return [a]


def root(a: Any) -> list[Any]:
    a = a.copy()
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, len(a)):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return [a]


def orthogonal(a: Any) -> list[Any]:
    a, q, r = a.copy(), fnp.zeros_like(a), fnp.zeros_like(a)
    for k in range(len(a)):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, len(a)):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return [q, r]


def brackets(a: Any) -> list[Any]:
    n = len(a)
    t = a.copy()
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            t[i, j] = t[i, j] + 0.1 * t[i, j - 1]
            for k in range(i + 1, j):
                t[i, j] = np.maximum(t[i, j], 0.5 * t[i, k] * t[k + 1, j])
    return [t]


def bubbles(a: Any) -> list[Any]:
    v, total = a[0].copy(), 0.0
    for i in range(len(v) - 1):
        for j in range(len(v) - 1 - i):
            low, high = np.minimum(v[j], v[j + 1]), np.maximum(v[j], v[j + 1])
            v[j], v[j + 1] = low, high
            total = total + (i + 1) * j * v[j]
    return [v, total]


def tables(a: Any) -> list[Any]:
    places = np.random.default_rng(5).permutation(len(a)).tolist()
    v = a[0].copy()
    for i in range(len(v)):
        view = a[i][1:]
        for j in range(2, 2 + i // 2):
            v[places[j - 2]] += view[j - 2] * v[i] + 0.125 * places[i]
            v[i], v[j - 2] = v[j - 2], v[i]
    return [v]


TRIANGLES = [factors, root, orthogonal, brackets, bubbles, tables]
OF_TRIANGLES = pytest.mark.parametrize("function", TRIANGLES, ids=lambda f: f.__name__)


def square(n: int) -> Any:
    matrix = np.random.default_rng(n).uniform(0.5, 1.0, size=(n, n))
    return matrix @ matrix.T / n + np.eye(n)


@pytest.mark.sampled(8)
@OF_TRIANGLES
def test_triangles_keep_their_bits(function: Any) -> None:
    program = fg.make_jaxpr(function)(square(18))
    wanted = unrolled(function, square(18))
    with fg.disable_jit():
        assert random_loops.bits(program.eval(square(18))) == random_loops.bits(wanted)
    for got, x in zip(fg.jit(program.eval)(square(18)), wanted, strict=True):
        np.testing.assert_allclose(got, x, rtol=1e-12, atol=1e-14)


@pytest.mark.sampled(6)
@OF_TRIANGLES
def test_the_number_of_operations_does_not_depend_on_the_size_of_triangles(function: Any) -> None:
    short, long = (fg.make_jaxpr(function)(square(n)).eqns for n in (20, 26))
    assert len(short) == len(long) < 40


@pytest.mark.nightly
@OF_TRIANGLES
def test_derivatives_of_triangles(function: Any) -> None:
    x = square(16)
    with fg.reroll_loops(False):
        plain = fg.make_jaxpr(function)(x)
    rolled = fg.make_jaxpr(function)(x)
    check_program(rolled.program)

    def loss(program: Any) -> Callable[..., Any]:
        return lambda x: sum(np.sum(np.cos(y)) for y in program.eval(x))

    with fg.disable_jit():
        wanted = fg.grad(loss(plain))(x)
        np.testing.assert_allclose(fg.grad(loss(rolled))(x), wanted, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(fg.jit(fg.grad(loss(rolled)))(x), wanted, rtol=1e-9, atol=1e-11)
    lanes = fg.jit(fg.vmap(fg.grad(loss(rolled))))(np.stack([x, x.T + 0.1]))
    np.testing.assert_allclose(lanes[0], wanted, rtol=1e-9, atol=1e-11)
    direction = RNG.normal(size=x.shape)
    _, dot = fg.jit(lambda x, t: fg.jvp(loss(rolled), (x,), (t,)))(x, direction)
    np.testing.assert_allclose(dot, np.sum(wanted * direction), rtol=1e-8, atol=1e-10)


# The operation.


def part(array: Any, axis: int, begin: int, end: int) -> Any:
    return array[tuple(slice(begin, end) if i == axis else slice(None) for i in range(array.ndim))]


@given(st.data())
def test_folds_of_parts(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(2, 20)))
    fold = data.draw(st.sampled_from([ReduceSum, ReduceProd, ReduceMax, ReduceMin]))
    axes = data.draw(st.sampled_from([(1,), (0, 1), (0,)]))
    begin = data.draw(st.integers(0, shape[1] - 1))
    end = data.draw(st.integers(begin + 1, shape[1]))
    x = np.random.default_rng(0).normal(size=shape)
    operation = Bounded(fold(axes), ((None, 0),), ((None, 0),), () if 1 in axes else (0,))
    wanted = fold(axes).impl(part(x, 1, begin, end))
    if 1 not in axes:
        wanted = np.concatenate([np.zeros(begin), wanted, np.zeros(shape[1] - end)])
        got = operation.bind(x, begin, end)
        inside = slice(begin, end)
        np.testing.assert_array_equal(got, wanted)
        compiled = fg.jit(operation.bind)(x, begin, end)
        np.testing.assert_allclose(compiled[inside], wanted[inside], rtol=1e-13)
        return
    np.testing.assert_array_equal(operation.bind(x, begin, end), wanted)
    np.testing.assert_allclose(fg.jit(operation.bind)(x, begin, end), wanted, rtol=1e-13)

    def loss(x: Any) -> Any:
        return np.sum(np.sin(operation.bind(x, begin, end)))

    def of_part(x: Any) -> Any:
        return np.sum(np.sin(fold(axes).bind(part(x, 1, begin, end))))

    np.testing.assert_allclose(fg.grad(loss)(x), fg.grad(of_part)(x), rtol=1e-12, atol=1e-12)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_products_of_parts(n: int, first: int, second: int, has_rows: bool) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(3, 9)), rng.normal(size=9)
    first, second = min(first, 9 - n), min(second, 9 - n)
    fold = Contract("ij", "j", "i")
    operation = Bounded(fold, ((None, 0), (1,)), ((None, 0), (0,)), (None,))
    bounds = (first, first + n, second, second + n)
    wanted = fold.impl(x[:, first : first + n], y[second : second + n])
    np.testing.assert_array_equal(operation.bind(x, y, *bounds), wanted)
    compiled = fg.jit(operation.bind)(x, y, *bounds)
    np.testing.assert_allclose(compiled, wanted, rtol=1e-12, atol=1e-14)
    rows = np.stack([bounds, np.roll(bounds, 2)])
    lanes = fg.vmap(lambda b: operation.bind(x, y, b[0], b[1], b[2], b[3]))(rows)
    swapped = fold.impl(x[:, second : second + n], y[first : first + n])
    np.testing.assert_allclose(lanes, [wanted, swapped], rtol=1e-12, atol=1e-14)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("by", [-9, -2, 0, 3, 5])
def test_moved_elements(axis: int, by: int) -> None:
    x, move = np.arange(1.0, 31).reshape(6, 5), Moved(axis).bind
    wanted = move(x, by)
    kept = [slice(max(-by, 0), max(x.shape[axis] - by, 0)), slice(None)][:: 1 - 2 * axis]
    assert_array_equal(wanted[tuple(kept)], part(x, axis, max(by, 0), max(x.shape[axis] + by, 0)))
    assert np.count_nonzero(wanted) == wanted[tuple(kept)].size
    both = fg.jit(lambda x, by: (move(x, by), fg.linear_transpose(lambda y: move(y, by), x)(x)[0]))
    for got, expected in zip(both(x, by), (wanted, move(x, -by)), strict=True):
        assert_array_equal(got, expected)
    lanes = fg.vmap(lambda by: move(x, by))(np.array([by, -by]))
    assert_array_equal(lanes, [wanted, move(x, -by)])


def test_cotangents_of_rows_are_rows() -> None:
    gradient = fg.grad(lambda a, b: np.sum(solve_triangular(a, b)[0]))
    loops = [e for e in fg.make_jaxpr(gradient)(*arguments(44)).eqns if "scan" in e.primitive.name]
    for loop in loops:
        assert max(x.ndim for x in loop.primitive.body.out_avals) == 1


def test_products_of_parts_leave_loops_of_cotangents() -> None:
    gradient = fg.grad(lambda a, b: np.sum(covariances(a, b)[0] ** 2))
    text = str(fg.make_jaxpr(gradient)(*arguments(70)))
    assert "bounded" not in text.partition("reverse=True")[2]


def test_conditions_of_parts() -> None:
    x = np.array([False, True, True, False])
    operation = Bounded(ReduceAll((0,)), ((0,),), ((0,),), ())
    assert operation.bind(x, 1, 3)
    assert fg.jit(operation.bind)(x, 1, 3)
    assert not fg.jit(operation.bind)(x, 1, 4)


def test_programs_say_what_was_found() -> None:
    assert "bounded" in str(fg.make_jaxpr(solve_triangular)(*arguments(44)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("side", ["low", "high"])
@pytest.mark.parametrize("labels", [("ij", "i", "j"), ("ji", "i", "j"), ("ij", "j", "i")])
def test_large_products_are_cut_to_the_length_of_parts(side: str, labels: Any) -> None:
    size = 300
    rng = np.random.default_rng(2)
    x, y = rng.uniform(size=(size, size)), rng.uniform(size=size)
    axis = labels[0].index("j")
    parts = tuple(0 if i == axis else None for i in range(2))
    vector, result = (0,) if labels[1] == "j" else (None,), (0,) if labels[2] == "j" else (None,)
    fold = Contract(*labels)
    operation = Bounded(fold, (parts, vector), (parts, vector), result, (side,))

    def loss(x: Any, y: Any, begin: Any, end: Any) -> Any:
        return np.sum(operation.bind(x, y, begin, end) ** 2)

    compiled = fg.jit(lambda *xs: [operation.bind(*xs), *fg.grad(loss, (0, 1))(*xs)])
    for n in (0, 1, 37, 38, 76, 299, 300):
        begin, end = (0, n) if side == "low" else (size - n, size)
        inside = (np.arange(size) >= begin) & (np.arange(size) < end)
        whole = np.where(inside[:, None] if axis == 0 else inside, x, 0.0)
        wanted = np.einsum(f"{labels[0]},{labels[1]}->{labels[2]}", whole, y)
        pulled = np.einsum(f"{labels[2]},{labels[1]}->{labels[0]}", 2 * wanted, y)
        got = compiled(x, y, begin, end)
        np.testing.assert_allclose(got[0], wanted, rtol=1e-12)
        np.testing.assert_allclose(got[1], np.where(whole != 0, pulled, 0.0), rtol=1e-12)
        wanted_y = np.einsum(f"{labels[0]},{labels[2]}->{labels[1]}", whole, 2 * wanted)
        np.testing.assert_allclose(got[2], wanted_y, rtol=1e-12)
