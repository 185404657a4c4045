"""`associative_scan` against folds in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors, lax
from tests.higher_order import plain
from tests.higher_order.agreement import check

X = np.array([1.0, 3.0, -2.0, 5.0, 0.5, 4.0, -1.0])


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums_of_any_length(n, reverse):
    x = X[:n]
    expected = np.cumsum(x[::-1])[::-1] if reverse else np.cumsum(x)
    for wrap in (lambda f: f, fg.jit):
        result = wrap(lambda v: lax.associative_scan(np.add, v, reverse=reverse))(x)
        np.testing.assert_allclose(result, expected, rtol=1e-14)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_axes(axis):
    x = np.arange(1.0, 13).reshape(3, 4)
    result = lax.associative_scan(np.multiply, x, axis=axis)
    np.testing.assert_allclose(result, np.cumprod(x, axis))


@pytest.mark.parametrize("reverse", [False, True])
def test_order_of_arguments(reverse):
    """Products of matrices do not commute: earlier ones come first, seen from the start."""
    matrices = np.random.default_rng(0).normal(size=(6, 2, 2))
    result = lax.associative_scan(np.matmul, matrices, reverse=reverse)
    expected = plain.associative_scan(np.matmul, matrices, reverse=reverse)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_integers_keep_their_type():
    x = np.array([3, 1, 2, 9, 4], np.int16)
    result = lax.associative_scan(np.maximum, x)
    np.testing.assert_array_equal(result, np.maximum.accumulate(x))
    assert result.dtype == np.int16


def affine(first: Any, second: Any) -> Any:
    """Compositions of ``v -> a v + b``."""
    return {"a": first["a"] * second["a"], "b": second["a"] * first["b"] + second["b"]}


def test_transformations():
    """A linear recurrence, by compositions of its steps."""

    def recurrence(control: Any, x: Any) -> Any:
        steps = np.arange(1.0, 6.0)
        elems = {"a": np.sin(steps * x[0]), "b": np.cos(steps * x[1]) * x[0]}
        return control.associative_scan(affine, elems)["b"]

    check(recurrence, [[0.7, -0.4], [0.2, 1.1], [1.3, 0.6]])


def test_functions_that_branch():
    """The larger number, found by a choice under vmap."""

    def larger(a: Any, b: Any) -> Any:
        choose = fg.vmap(lambda p, q: lax.cond(p > q, lambda: p, lambda: q))
        return choose(a, b)

    np.testing.assert_array_equal(lax.associative_scan(larger, X), np.maximum.accumulate(X))
    slopes = fg.jit(fg.jacrev(lambda x: lax.associative_scan(larger, x)))(X)
    winners = [int(np.argmax(X[: i + 1])) for i in range(len(X))]
    np.testing.assert_array_equal(slopes, np.eye(len(X))[winners])


MISTAKES = {
    "nothing": (
        lambda: lax.associative_scan(np.add, None),
        errors.ArgumentError,
        "associative_scan(add): elems has no arrays.",
        "",
    ),
    "axis": (
        lambda: lax.associative_scan(np.add, {"a": X}, axis=1),
        errors.ShapeError,
        "associative_scan(add): `elems['a']` is f64[7], which has no axis 1.",
        "",
    ),
    "axis that is no integer": (
        lambda: lax.associative_scan(np.add, X, axis=None),
        errors.ArgumentError,
        "`axis` must be an integer, got None.",
        "",
    ),
    "lengths": (
        lambda: lax.associative_scan(lambda a, b: a, {"a": X, "b": np.ones(4)}),
        errors.ShapeError,
        "lengths along axis 0 differ: `elems['a']` has 7, `elems['b']` has 4.",
        "",
    ),
    "structure": (
        lambda: lax.associative_scan(lambda a, b: (a, b), X),
        errors.TreeError,
        "associative_scan(<lambda>): the function must keep the structure.",
        "  elems         PyTreeDef(*)\n  returned      PyTreeDef((*, *))",
    ),
    "shape": (
        lambda: lax.associative_scan(lambda a, b: {"k": (a["k"] + b["k"]).sum()}, {"k": X}),
        errors.ShapeError,
        "the function must keep the types of its arguments, which are stacked along axis 0.",
        "  `result['k']`: f64[] from f64[3]\nConvert the elements before (.astype), and reduce no",
    ),
    "dtype": (
        lambda: lax.associative_scan(lambda a, b: a > b, X),
        errors.ShapeError,
        "the function must keep the types of its arguments",
        "  `result`: bool[3] from f64[3]\nConvert",
    ),
    "text": (
        lambda: lax.associative_scan(lambda a, b: "x", X),
        errors.DtypeError,
        "`result` is a str",
        "\nReturn numbers",
    ),
    "no function": (
        lambda: lax.associative_scan(3, X),
        errors.ArgumentError,
        "associative_scan(int): `fn` must be a function, got an int.",
        "\nWrap",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    run, kind, problem, cure = MISTAKES[name]
    with pytest.raises(kind) as caught:
        run()
    text = str(caught.value)
    assert problem in text
    assert "\n  at            test_prefix.py:" in text
    assert cure in text
    assert text.strip() == text
