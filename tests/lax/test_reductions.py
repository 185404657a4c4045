"""Folds, running folds, places of extremes, sorting and products of lax."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeError
from tests.lax.agreement import FLOATS, NUMBERS, REAL, check, sample

X = (3, 4, 5)
V5 = np.arange(5.0)
FOLDS = {
    "reduce_sum": (lambda x, axes: np.sum(x, axes, dtype=x.dtype), NUMBERS),
    "reduce_prod": (lambda x, axes: np.prod(x, axes, dtype=x.dtype), NUMBERS),
    "reduce_max": (np.max, NUMBERS),
    "reduce_min": (np.min, NUMBERS),
    "reduce_or": (np.any, ("bool",)),
    "reduce_and": (np.all, ("bool",)),
}
RUNNING = {
    "cumsum": (lambda x, axis: np.cumsum(x, axis, dtype=x.dtype), NUMBERS),
    "cumprod": (lambda x, axis: np.cumprod(x, axis, dtype=x.dtype), NUMBERS),
    "cummax": (np.maximum.accumulate, NUMBERS),
    "cummin": (np.minimum.accumulate, NUMBERS),
    "cumlogsumexp": (np.logaddexp.accumulate, FLOATS),
}
LOOSE = {"float32": 2e-5, "complex64": 1e-4, "float64": 1e-12, "complex128": 1e-12}


def rows(table):
    return [(name, dtype) for name, (_, dtypes) in table.items() for dtype in dtypes]


@pytest.mark.parametrize("axes", [(0,), (-1, 0), (0, 1, 2), ()])
@pytest.mark.parametrize(("name", "dtype"), rows(FOLDS))
def test_folds(name, dtype, axes):
    reference = FOLDS[name][0]
    x = sample(dtype, X)
    counted = tuple(axes)
    check(
        lambda a: getattr(lax, name)(a, axes),
        lambda a: reference(a, counted) if counted else a,
        x,
        rtol=LOOSE.get(dtype, 0),
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("name", "dtype"), rows(RUNNING))
def test_running_folds(name, dtype, reverse):
    reference = RUNNING[name][0]

    def expected(a):
        return np.flip(reference(np.flip(a, 1), 1), 1) if reverse else reference(a, 1)

    check(
        lambda a: getattr(lax, name)(a, 1, reverse),
        expected,
        sample(dtype, X),
        rtol=LOOSE.get(dtype, 0),
    )


@pytest.mark.parametrize("dtype", ["bool", *REAL])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name, dtype):
    x = sample(dtype, X)
    check(lambda a: getattr(lax, name)(a, -1), lambda a: getattr(np, name)(a, -1), x)
    check(
        lambda a: getattr(lax, name)(a, 0, np.int32),
        lambda a: getattr(np, name)(a, 0).astype(np.int32),
        x,
    )


@pytest.mark.parametrize(
    ("computation", "reference"),
    [
        (lax.add, np.sum),
        (operator.add, np.sum),
        (lax.mul, np.prod),
        (lax.max, np.max),
        (np.minimum, np.min),
    ],
)
def test_reduce(computation, reference):
    x = sample("float64", X)
    check(
        lambda a: lax.reduce(a, computation(0.5, 0.5), computation, (0, 2)),
        lambda a: computation(computation(0.5, 0.5), reference(a, (0, 2))),
        x,
        rtol=1e-12,
    )


def test_reduce_of_bools():
    x = sample("bool", X)
    check(lambda a: lax.reduce(a, False, lax.bitwise_or, (1,)), lambda a: np.any(a, 1), x)
    check(lambda a: lax.reduce(a, True, lax.bitwise_and, (1,)), lambda a: np.all(a, 1), x)
    with pytest.raises(DtypeError, match=r"lax\.reduce"):
        lax.reduce(np.ones(3), np.float32(0), lax.add, (0,))


def folded(function, x, start, axes):
    """A fold from the left, by Python."""
    kept = [i for i in range(x.ndim) if i not in axes]
    rest = [x.shape[i] for i in kept]
    out = np.full(rest, start, x.dtype)
    count = int(np.prod([x.shape[i] for i in axes]))
    for row in x.transpose([*axes, *kept]).reshape(count, *rest):
        out = function(out, row)
    return out


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("axes", [(0,), (2, 1), (0, 1, 2)])
@pytest.mark.parametrize(
    ("computation", "start", "dtype"),
    [
        (np.logaddexp, -np.inf, "float64"),
        (lambda a, b: a + b + a * b, 0.0, "float64"),  # 1 + a times 1 + b, less 1
        (lambda a, b: a, 0.5, "float32"),
        (lambda a, b: b, 2, "int64"),
        (np.bitwise_xor, 0, "int32"),
        (np.hypot, 0.0, "float64"),
    ],
)
def test_reduce_by_any_associative_function(computation, start, dtype, axes, length):
    x = sample(dtype, (length, 2, 3))
    check(
        lambda a: lax.reduce(a, start, computation, axes),
        lambda a: folded(computation, a, start, axes),
        x,
        rtol=LOOSE.get(dtype, 0),
    )


def test_reduce_of_several_arrays_by_a_function_of_scalars():
    def largest(a, b):
        keep = a[0] >= b[0]
        return lax.cond(keep, lambda: a, lambda: b)

    x, places = sample("float64", (3, 4)), np.arange(12).reshape(3, 4)
    got = fg.jit(lambda x: lax.reduce((x, places), (-np.inf, -1), largest, (1,)))(x)
    np.testing.assert_array_equal(got[0], x.max(1))
    np.testing.assert_array_equal(got[1], x.argmax(1) + np.array([0, 4, 8]))
    slope = fg.grad(lambda x: lax.reduce((x, places), (-np.inf, -1), largest, (1,))[0].sum())(x)
    np.testing.assert_array_equal(slope, x == x.max(1, keepdims=True))


def test_the_derivative_of_a_fold():
    x = sample("float64", (5,))
    slope = fg.jit(fg.grad(lambda x: lax.reduce(x, -np.inf, np.logaddexp, (0,))))(x)
    np.testing.assert_allclose(slope, np.exp(x) / np.exp(x).sum(), rtol=1e-12)


def test_reduce_calls_the_function_a_logarithmic_number_of_times():
    calls = 0

    def count(a, b):
        nonlocal calls
        calls += 1
        return a + b

    assert lax.reduce(np.arange(1000), 0, count, (0,)) == 499500
    assert calls <= 11


REDUCE_ERRORS = {
    "type": (lambda: lax.reduce(V5, 0.0, lambda a, b: a > b, (0,)), ShapeError, "must return f64"),
    "shape": (
        lambda: lax.reduce(V5, 0.0, lambda a, b: np.stack([a, b]), (0,)), ShapeError, "must return"
    ),
    "structure": (lambda: lax.reduce(V5, 0.0, lambda a, b: (a, b), (0,)), TreeError, "structure"),
    "start": (lambda: lax.reduce((V5,), 0.0, lambda a, b: a, (0,)), TreeError, "init_values"),
    "shapes": (
        lambda: lax.reduce((V5, V5[1:]), (0.0, 0.0), lambda a, b: a, (0,)), ShapeError, "one shape"
    ),
    "function": (lambda: lax.reduce(V5, 0.0, 3, (0,)), ArgumentError, "computation"),
}  # fmt: skip


@pytest.mark.parametrize("case", REDUCE_ERRORS)
def test_wrong_folds_are_refused(case):
    call, kind, text = REDUCE_ERRORS[case]
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("dtype", ["bool", *REAL])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sort(dtype, axis):
    check(lambda a: lax.sort(a, axis), lambda a: np.sort(a, axis, kind="stable"), sample(dtype, X))


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_sort_together(dtype):
    keys, others = sample(dtype, (50,)), sample("int64", (50,), seed=1)
    order = np.argsort(keys, kind="stable")
    check(lax.sort_key_val, lambda a, b: (a[order], b[order]), keys, others)
    both = np.lexsort((others, keys))
    check(lambda a, b: lax.sort((a, b), num_keys=2), lambda a, b: (a[both], b[both]), keys, others)
    with pytest.raises(ArgumentError, match="num_keys=3"):
        lax.sort((keys, others), num_keys=3)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("axis", [0, 2])
def test_top_k(dtype, axis):
    x = sample(dtype, X)

    def reference(a):
        order = np.argsort(-a.astype(np.float64), axis, kind="stable")
        places = np.take(order, range(2), axis)
        return np.take_along_axis(a, places, axis), places

    check(lambda a: lax.top_k(a, 2, axis), reference, x)


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_dot_general(dtype):
    x, y = sample(dtype, (2, 3, 4, 5)), sample(dtype, (4, 5, 3, 6), seed=1)
    numbers = (((3,), (1,)), ((2, 1), (0, 2)))
    check(
        lambda a, b: lax.dot_general(a, b, numbers),
        lambda a, b: np.einsum("ijkl,kljm->kjim", a, b),
        x,
        y,
        rtol=LOOSE.get(dtype, 0),
    )


# Every dtype after one that is not above it: complex, floating, longer, signed.
RANKED = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def test_products_of_two_dtypes_have_the_higher():
    for lower, higher in itertools.combinations(RANKED, 2):
        x, y = sample(lower, (2, 3)), sample(higher, (3, 4), seed=1)
        expected = np.matmul(x.astype(higher), y)
        for found in (lax.dot(x, y), lax.dot(y.T, x.T).T):
            assert found.dtype == higher
            np.testing.assert_allclose(found, expected, LOOSE.get(higher, 0))
    x, y = np.arange(3), np.ones((3, 2), np.float32)
    assert fg.jit(lax.dot)(x, y).dtype == np.float32
    np.testing.assert_array_equal(
        fg.grad(lambda y: lax.dot(x, y).sum())(y), [[0, 0], [1, 1], [2, 2]]
    )


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "complex128"])
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((4, 3), (3, 2))])
def test_dot(dtype, shapes):
    x, y = sample(dtype, shapes[0]), sample(dtype, shapes[1], seed=1)
    check(lax.dot, np.dot, x, y, rtol=LOOSE.get(dtype, 0))


def test_batch_matmul_and_element_types():
    x, y = sample("float32", (5, 2, 3)), sample("float32", (5, 3, 4), seed=1)
    check(lax.batch_matmul, np.matmul, x, y, rtol=1e-5)
    check(
        lambda a, b: lax.dot(a[0], b[0], preferred_element_type=np.float64),
        lambda a, b: a[0].astype(np.float64) @ b[0].astype(np.float64),
        x,
        y,
    )


A = np.arange(6.0).reshape(2, 3)
ERRORS = {
    "axis": (lambda: lax.reduce_sum(A, (2,)), ShapeError, "no axis 2"),
    "axis twice": (lambda: lax.reduce_max(A, (0, -2)), ShapeError, "twice"),
    "empty maximum": (lambda: lax.reduce_max(A[:0], (0,)), ShapeError, "length 0"),
    "any of numbers": (lambda: lax.reduce_or(A, (0,)), DtypeError, r"lax\.reduce_or"),
    "all of numbers": (lambda: lax.reduce_and(A, (0,)), DtypeError, r"lax\.reduce_and"),
    "running axis": (lambda: lax.cumsum(A, 2), ShapeError, r"lax\.cumsum"),
    "argmax of complex": (lambda: lax.argmax(A + 0j, 0), DtypeError, r"lax\.argmax"),
    "argmax to float": (lambda: lax.argmax(A, 0, np.float64), DtypeError, r"lax\.argmax"),
    "k too large": (lambda: lax.top_k(A, 4), ShapeError, "4"),
    "dot of shapes": (lambda: lax.dot(A, A), ShapeError, "do not match"),
    "dot of stacks": (lambda: lax.dot(A[None], A), ShapeError, r"lax\.dot"),
    "ranks": (lambda: lax.batch_matmul(A, A[None]), ShapeError, r"lax\.batch_matmul"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_arguments(name):
    call, error, message = ERRORS[name]
    with pytest.raises(error, match=message):
        call()


def test_integers_are_folded_bit_by_bit() -> None:
    x = np.array([[6, 3], [4, 7]], np.uint8)
    assert lax.reduce_and(x, (0,)).tolist() == [4, 3]
    assert fg.jit(lambda x: lax.reduce_or(x, (0, 1)))(x) == 7
    assert lax.reduce(x, np.uint8(8), lax.bitwise_or, (0,)).tolist() == [14, 15]
