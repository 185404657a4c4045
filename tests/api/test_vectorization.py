"""vmap, against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors

A = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("out", [0, 1, -1])
def test_every_axis(axis: int, out: int) -> None:
    f = lambda m: np.sin(m) + m.sum(0)  # noqa: E731
    mapped = fg.vmap(f, in_axes=axis, out_axes=out)(A)
    rows = [f(np.take(A, i, axis)) for i in range(A.shape[axis])]
    np.testing.assert_allclose(mapped, np.stack(rows, out))


def test_in_axes_trees_and_none() -> None:
    f = lambda t, c: t["a"] * t["b"] + c  # noqa: E731
    tree = {"a": A[0], "b": 2.0}
    mapped = fg.vmap(f, in_axes=({"a": 1, "b": None}, None))(tree, 1.0)
    np.testing.assert_allclose(mapped, A[0].T * 2 + 1)


def test_unmapped_results() -> None:
    f = lambda x: (x, np.ones(2))  # noqa: E731
    _, ones = fg.vmap(f)(np.arange(3.0))
    assert ones.shape == (3, 2)
    _, ones = fg.vmap(f, out_axes=(0, None))(np.arange(3.0))
    assert ones.shape == (2,)


def test_axis_size_and_keywords() -> None:
    assert fg.vmap(lambda: 1.0, axis_size=3)().shape == (3,)
    np.testing.assert_allclose(fg.vmap(lambda x, *, y: x * y)(X3, y=X3), X3**2)


X3 = np.arange(3.0)


def test_vmap_of_grad_and_grad_of_vmap() -> None:
    f = lambda w, x: np.tanh(np.dot(w, x))  # noqa: E731
    w, xs = np.array([0.3, -0.2]), np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 1.0]])
    per_example = fg.vmap(fg.grad(f), in_axes=(None, 0))(w, xs)
    expected = (1 - np.tanh(xs @ w) ** 2)[:, None] * xs
    np.testing.assert_allclose(per_example, expected, rtol=1e-14)
    total = fg.grad(lambda v: np.sum(fg.vmap(f, in_axes=(None, 0))(v, xs)))(w)
    np.testing.assert_allclose(total, expected.sum(0), rtol=1e-14)


def test_nested_vmap_is_an_outer_product() -> None:
    outer = fg.vmap(fg.vmap(lambda a, b: a * b, (None, 0)), (0, None))
    np.testing.assert_allclose(outer(X3, X3 + 1), np.outer(X3, X3 + 1))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: fg.vmap(lambda a, b: a)(np.ones(3), {"k": np.ones(4)}),
            errors.ShapeError,
            "args[1]['k']",
        ),
        (lambda: fg.vmap(np.sin)(1.0), errors.ShapeError, "maps axis 0 of `args[0]`"),
        (lambda: fg.vmap(np.sin, in_axes=(0, 0))(X3), errors.ArgumentError, "has 2 entries"),
        (
            lambda: fg.vmap(np.sin, in_axes=None)(X3),
            errors.ArgumentError,
            "axis_size must be given",
        ),
        (lambda: fg.vmap(np.sin, in_axes="a"), errors.ArgumentError, "in_axes must be"),
        (
            lambda: fg.vmap(np.sin, out_axes=None)(X3),
            errors.ArgumentError,
            "depends on a mapped argument",
        ),
    ],
)
def test_messages(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as info:
        call()
    assert text in str(info.value)
