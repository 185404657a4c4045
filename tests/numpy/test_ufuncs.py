"""The methods of ufuncs, and ufuncs from functions, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import ArgumentError
from funcgrad.testing import check_grads

X = np.random.default_rng(1).uniform(0.5, 1.5, (3, 5))
N = np.array([[12, 18, 6], [7, 14, 21]])
NAMES = [
    "add", "multiply", "maximum", "minimum", "subtract", "divide", "power", "logaddexp",
    "logaddexp2", "hypot", "fmax", "fmin", "remainder", "arctan2", "copysign",
]  # fmt: skip
INTEGERS = [
    "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "add", "subtract", "left_shift",
]  # fmt: skip


def check(found, expected):
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, 1e-12)


def traced(function, x):
    return fg.vmap(function)(np.stack([x, x]))[1]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("name", "x"), [*((n, X) for n in NAMES), *((n, N) for n in INTEGERS)])
def test_methods(name, x):
    theirs, ours = getattr(np, name), getattr(fnp, name)
    for axis in (0, 1, -1):
        check(ours.accumulate(x, axis), theirs.accumulate(x, axis))
        check(traced(lambda x, a=axis: theirs.accumulate(x, a), x), theirs.accumulate(x, axis))
        for keepdims in (False, True):
            # Not by NumPy's own `reduce`: of powers and arctan2 it is wrong along contiguous axes.
            expected = theirs.accumulate(x, axis).take([-1], axis)
            expected = expected if keepdims else expected.squeeze(axis)
            check(ours.reduce(x, axis, keepdims=keepdims), expected)
            check(
                traced(lambda x, a=axis, k=keepdims: theirs.reduce(x, a, keepdims=k), x), expected
            )
    if name not in ("power", "arctan2"):
        check(
            traced(lambda x: theirs.reduceat(x, [0, 2, 1], 1), x), theirs.reduceat(x, [0, 2, 1], 1)
        )
    check(traced(lambda x: theirs.outer(x[0], x), x), theirs.outer(x[0], x))
    check(traced(lambda x: theirs.reduce(x[:, :1], 1), x), theirs.reduce(x[:, :1], 1))


def test_options_of_folds():
    check(traced(lambda x: np.hypot.reduce(x, None), X), np.hypot.reduce(X, None))
    check(
        traced(lambda x: np.hypot.reduce(x, 1, where=x > 1), X),
        np.hypot.reduce(X, 1, where=X > 1),
    )
    check(traced(lambda x: np.fmax.reduce(x, 0, initial=9.0), X), np.fmax.reduce(X, 0, initial=9.0))
    check(traced(lambda x: np.hypot.reduce(x[:0], 0), X), np.hypot.reduce(X[:0], 0))
    check(
        traced(lambda x: np.subtract.reduce(x, 0, dtype=np.float32), X),
        np.subtract.reduce(X, 0, dtype=np.float32),
    )


def test_slopes_of_folds():
    check_grads(lambda x: np.divide.reduce(x, 0), (X,), order=2)
    check_grads(lambda x: np.hypot.accumulate(x, 1), (X,), order=2)
    check_grads(lambda x: np.power.reduce(x, 0), (X,), order=2, rtol=1e-3)
    check_grads(lambda x: np.multiply.reduceat(x, [0, 2], 0), (X,), order=2)
    check(fg.jit(lambda x: np.subtract.reduce(x, 1))(X), np.subtract.reduce(X, 1))


def test_ufuncs_from_functions():
    half = fnp.frompyfunc(lambda x, y: x / 2 + y, 2, 1, identity=0)
    line = X[0]
    expected = [line[0]]
    for element in line[1:]:
        expected.append(expected[-1] / 2 + element)
    check(half(line, 1.0), line / 2 + 1.0)
    check(half.accumulate(line), np.array(expected))
    check(half.reduce(X, 1)[0], np.float64(expected[-1]))
    check(half.outer(line, line), line[:, None] / 2 + line)
    check(half.reduceat(line, [0, 3]), np.array([expected[2], line[3] / 2 + line[4]]))
    assert half.reduce(np.zeros(0)) == 0
    assert (half.nin, half.nout, half.nargs, repr(half)) == (2, 1, 3, "<ufunc '<lambda>'>")
    check_grads(lambda x: half.reduce(x) ** 2, (line,), order=2)
    both = fnp.frompyfunc(lambda x: (x + 1, x * 2), 1, 2)(line)
    check(both[1], line * 2)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: np.subtract.reduce(x, (0, 1)), ValueError, "not reorderable"),
        (lambda x: np.divide.reduce(x, 0, where=x > 1), ValueError, "needs initial="),
        (lambda x: np.subtract.reduce(x[:0], 0), ValueError, "no identity"),
        (lambda x: np.add.at(x, 0, 1.0), ArgumentError, "immutable"),
        (lambda x: np.hypot.reduceat(x, [9], 0), IndexError, "0 .. 2"),
        (lambda x: np.hypot.accumulate(x[0, 0]), TypeError, "scalar"),
        (lambda x: fnp.frompyfunc(np.sin, 1, 1).reduce(x), ArgumentError, "has 1 arguments"),
        (lambda x: fnp.frompyfunc(np.sin, 1, 1)(x, x), TypeError, "takes 1 arguments, got 2"),
        (lambda x: fnp.frompyfunc(np.sin, 0, 1), ArgumentError, "at least 1"),
    ],
)
def test_messages(function, error, words):
    with pytest.raises(error, match=words):
        fg.vmap(function)(np.stack([X, X]))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "sin", "logical_and"])
def test_facts_of_ufuncs(name):
    ours, reference = getattr(fnp, name), getattr(np, name)
    for fact in ("nin", "nout", "nargs", "identity"):
        assert getattr(ours, fact) == getattr(reference, fact)


UPDATES = ["add", "subtract", "multiply", "divide", "minimum", "maximum", "power", "sqrt"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", UPDATES)
def test_elements_that_a_ufunc_changes(name):
    theirs, ours = getattr(np, name), getattr(fnp, name)
    places, values = np.array([0, 2, 0]), () if name == "sqrt" else (np.array([0.5, 2.0, 1.5]),)
    expected = X[0].copy()
    theirs.at(expected, places, *values)
    x = X[0].copy()
    copies = (
        ours.at(x, places, *values, inplace=False),
        fg.jit(lambda x, i: ours.at(x, i, *values, inplace=False))(x, places),
    )
    for copy in copies:
        check(copy, expected)
    check(x, X[0])
    assert ours.at(x, places, *values) is None
    check(x, expected)

    def assigned(x):
        y = fnp.array(x)
        ours.at(y, places, *values)
        return y

    check(fg.jit(assigned)(X[0]), expected)
    if name not in ("minimum", "maximum"):
        check_grads(assigned, (X[0],), order=2)


def test_changes_that_cannot_be():
    with pytest.raises(
        ArgumentError, match=r"at\(x, index, value\)` would change a traced .* argument"
    ):
        fg.jit(lambda x: fnp.add.at(x, 0, 1.0))(X[0])


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit])
def test_functions_at_places_one_after_the_other(wrap):
    places, values = np.array([0, 2, 0, -1]), np.array([2.0, 3.0, 0.5, 1.5])
    expected = X[0].copy()
    np.arctan2.at(expected, places, values)
    found = wrap(lambda x, i: fnp.arctan2.at(x, i, values, inplace=False))(X[0], places)
    np.testing.assert_allclose(found, expected)
    halved = fnp.frompyfunc(lambda x, y: x / y, 2, 1)
    expected = X[0].copy()
    np.divide.at(expected, places, values)
    found = wrap(lambda x, i: halved.at(x, i, values, inplace=False))(X[0], places)
    np.testing.assert_allclose(found, expected)
    with pytest.raises(ArgumentError, match="inplace=False"):
        halved.at(X[0], 0, 2.0)
    assert halved == fnp.frompyfunc(halved.function, 2, 1)
    assert halved.nargs == 3


@pytest.mark.parametrize("name", ["add", "subtract", "maximum"])
def test_folds_from_traced_places(name):
    places = np.array([1, 0, 2])
    for axis in (0, 1):
        expected = getattr(np, name).reduceat(X, places, axis)
        found = fg.jit(lambda x, i, a=axis: getattr(fnp, name).reduceat(x, i, a))(X, places)
        np.testing.assert_allclose(found, expected)
