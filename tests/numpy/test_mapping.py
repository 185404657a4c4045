"""Functions of lines and elements, applied to all of an array, against NumPy's loops."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import ArgumentError, ShapeError

X = np.random.default_rng(0).normal(size=(2, 3, 4))
LINES = {
    "scalar": np.sum,
    "line": lambda line: line[::-1] * line[0],
    "matrix": lambda line: np.outer(line, line[:2]),
    "constant": lambda line: np.arange(2.0),
}


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", LINES)
def test_apply_along_axis(name, axis):
    expected = np.apply_along_axis(LINES[name], axis, X)
    np.testing.assert_allclose(fnp.apply_along_axis(LINES[name], axis, X), expected)
    found = fg.jit(lambda x: np.apply_along_axis(LINES[name], axis, x))(X)
    np.testing.assert_allclose(found, expected)


def test_apply_along_axis_passes_arguments_on():
    found = fnp.apply_along_axis(lambda v, a, b=0: v.sum() * a + b, 1, X, 2.0, b=1.0)
    np.testing.assert_allclose(found, X.sum(1) * 2 + 1)


def test_gradient_through_lines():
    def of_lines(x):
        return np.apply_along_axis(lambda v: np.dot(v, v), 0, x).sum()

    np.testing.assert_allclose(fg.grad(of_lines)(X), 2 * X)
    scaled = fg.grad(lambda a: fnp.apply_along_axis(lambda v: a * v, 2, X).sum())
    np.testing.assert_allclose(scaled(2.0), X.sum())


@pytest.mark.parametrize("axes", [0, (0, -1), [1, 2]])
def test_apply_over_axes(axes):
    expected = np.apply_over_axes(np.sum, X, axes)
    np.testing.assert_allclose(fnp.apply_over_axes(np.sum, X, axes), expected)
    np.testing.assert_allclose(fg.jit(lambda x: np.apply_over_axes(np.sum, x, axes))(X), expected)
    kept = fnp.apply_over_axes(lambda x, axis: np.flip(x, axis), X, axes)
    assert kept.shape == X.shape


def test_apply_over_axes_checks_results():
    with pytest.raises(ShapeError, match="number of axes"):
        fnp.apply_over_axes(lambda x, axis: 0.0 * x[0, 0, 0], X, 0)


def test_vectorize_broadcasts_elements():
    def choose(a, b):
        return np.where(a > b, a - b, a + b), a * b

    first, second = X[0], X[1, :1]
    found = fnp.vectorize(choose)(first, second)
    for ours, theirs in zip(found, np.vectorize(choose)(first, second), strict=True):
        np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize(
    ("signature", "function", "shapes"),
    [
        ("(n),(n)->()", np.dot, [(2, 3, 4), (4,)]),
        ("(m, n), (n) -> (m)", np.dot, [(5, 1, 3, 4), (2, 4)]),
        ("(n),()->(n)", lambda x, a: x * a, [(3, 4), (2, 1)]),
        ("(n)->(),(n)", lambda x: (x.sum(), 2 * x), [(3, 4)]),
    ],
)
def test_vectorize_with_core_axes(signature, function, shapes):
    args = [np.random.default_rng(1).normal(size=shape) for shape in shapes]
    found = fg.jit(fnp.vectorize(function, signature=signature))(*args)
    expected = np.vectorize(function, signature=signature)(*args)
    for ours, theirs in zip(
        *[x if isinstance(x, tuple) else (x,) for x in (found, expected)], strict=True
    ):
        np.testing.assert_allclose(ours, theirs)


def test_vectorize_leaves_out_arguments():
    function = fnp.vectorize(lambda x, kind, scale=1: x * len(kind) * scale, excluded={1})
    np.testing.assert_allclose(function(X, "abc", scale=2), 6 * X)
    np.testing.assert_allclose(fg.grad(lambda x: function(x, "ab").sum())(X), np.full(X.shape, 2.0))


@pytest.mark.parametrize(
    ("signature", "args", "error", "words"),
    [
        ("(n", (X,), ArgumentError, "no signature"),
        ("(n)->()", (X, X), ArgumentError, "2 are mapped"),
        ("(n),(n)->()", (X, X[..., :2]), ShapeError, "'n' has lengths 4, 2"),
        ("(m,n)->()", (X[0, 0],), ShapeError, "lacks core axes"),
        ("(n),(n)->(n)", (X, X), ShapeError, r"a result has shape \(\), .* are \(n=4\)"),
        ("(n),(n)->(),()", (X, X), ArgumentError, "has 2 results, but the function returned 1"),
        ("(n),(n)->(),(k)", (X, X), ArgumentError, "has 2 results"),
    ],
)
def test_vectorize_messages(signature, args, error, words):
    with pytest.raises(error, match=words):
        fnp.vectorize(np.dot, signature=signature)(*args)


@pytest.mark.parametrize(
    ("signature", "function", "words"),
    [
        (None, lambda x: np.stack([x, x]), r"a result has shape \(2,\), .* are \(\)"),
        ("(n)->()", lambda x: x, r"shape \(4,\), .* are \(\)"),
        ("(n)->(n)", lambda x: x[1:], r"shape \(3,\), .* are \(n=4\)"),
        ("(n)->(n,n)", lambda x: x, r"are \(n=4, n=4\)"),
        ("(n)->(m,m)", lambda x: x[:, None] * x[:2], r"shape \(4, 2\)"),
        ("(n)->(m),(m)", lambda x: (x, x[1:]), r"shape \(3,\), .* are \(m=4\)"),
    ],
)
def test_vectorize_checks_core_axes_of_results(signature, function, words):
    for wrap in (lambda f: f, fg.jit):
        with pytest.raises(ShapeError, match=words):
            wrap(fnp.vectorize(function, signature=signature))(X)


def test_vectorize_with_new_core_axes():
    outer = fnp.vectorize(lambda x: (x[:2], x[:2] * x[0]), signature="(n)->(k),(k)")
    assert [out.shape for out in outer(X)] == [(2, 3, 2), (2, 3, 2)]
