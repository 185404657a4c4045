"""vmap, against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors, lax

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


class Opaque:
    """An object that is no pytree."""

    factor = 3.0


@pytest.mark.parametrize("passed", [np.sin, lambda x: 2 * x, "text", Opaque(), Opaque, object()])
def test_what_is_not_mapped_may_be_anything(passed: Any) -> None:
    seen = []

    def f(x: Any, other: Any) -> Any:
        seen.append(other["o"])
        return x * 2

    for in_axes in ((0, None), (0, {"o": None}), [0, None]):
        np.testing.assert_array_equal(fg.vmap(f, in_axes)(X3, {"o": passed}), 2 * X3)
    nested = fg.vmap(fg.vmap(f, (0, None)), (0, None))(A[0], {"o": passed})
    np.testing.assert_array_equal(nested, 2 * A[0])
    assert all(s is passed for s in seen)
    with pytest.raises(errors.DtypeError, match=r"`args\[1\]\['o'\]` of vmap\(f\).*in_axes=None"):
        fg.vmap(f)(X3, {"o": passed})


def test_functions_as_arguments() -> None:
    apply = lambda f, x: f(x)  # noqa: E731
    np.testing.assert_array_equal(fg.vmap(apply, (None, 0))(np.sin, X3), np.sin(X3))
    slopes = fg.vmap(lambda f, x: fg.grad(f)(x), (None, 0))(np.sin, X3)
    np.testing.assert_allclose(slopes, np.cos(X3), rtol=1e-15)
    jitted = fg.jit(lambda x: fg.vmap(apply, (None, 0))(np.cos, x))
    np.testing.assert_allclose(jitted(X3), np.cos(X3), rtol=1e-14)


LOOPS: dict[str, Any] = {
    "while": lambda x, c: lax.while_loop(
        lambda s: s[0] < x, lambda s: (s[0] + 1, s[1], s[2] * 2), (0.0, c, 1.0)
    )[1],
    "while with a shared end": lambda x, c: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1], s[2] * x), (0, c, 1.0)
    )[1],
    "fori with mapped bounds": lambda x, c: lax.fori_loop(
        0, x.astype(np.int64), lambda i, s: (s[0] + x, s[1]), (0.0, c)
    )[1],
    "fori": lambda x, c: lax.fori_loop(0, 3, lambda i, s: (s[0] + x, s[1]), (0.0, c))[1],
    "scan": lambda x, c: lax.scan(lambda s, y: ((s[0] + x, s[1]), None), (0.0, c), X3)[0][1],
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("carried", [5.0, np.arange(4.0)])
def test_what_a_loop_hands_on_is_not_mapped(name: str, carried: Any) -> None:
    loop = LOOPS[name]
    for f in (loop, fg.jit(loop), lambda x, c: fg.jvp(lambda c: loop(x, c), (c,), (c,))[1]):
        found = fg.vmap(f, (0, None), out_axes=None)(X3, carried)
        np.testing.assert_array_equal(found, carried)
    both = fg.vmap(fg.vmap(loop, (0, None), None), (0, None), None)(np.stack([X3, X3]), carried)
    np.testing.assert_array_equal(both, carried)
    gradient = fg.grad(lambda c: np.sum(fg.vmap(loop, (0, None), None)(X3, c)))(carried)
    np.testing.assert_array_equal(gradient, np.ones_like(carried))


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


def test_arrays_that_are_not_mapped_are_indexed_by_mapped_integers():
    table, places = np.arange(10.0).reshape(5, 2), np.array([3, 0])
    look_up = fg.vmap(lambda t, i: t[i], in_axes=(None, 0))
    np.testing.assert_array_equal(look_up(table, places), table[places])
    nested = fg.vmap(lambda p, i: p["table"][i] @ p["w"], in_axes=(None, 0))
    params = {"table": table, "w": np.array([1.0, -1.0])}
    np.testing.assert_array_equal(nested(params, places), table[places] @ params["w"])
    expected = np.zeros((5, 2))
    expected[places] = 1.0
    np.testing.assert_array_equal(fg.grad(lambda t: look_up(t, places).sum())(table), expected)
    kept, _ = fg.vmap(lambda t, i: (t, i), (None, 0), (None, 0))(table, places)
    assert type(kept) is np.ndarray
    # It is the caller's, and known: Python may look at it, and nobody writes to it.
    chosen = fg.vmap(lambda t, i: i * 2 if t[0, 1] > 0 else i, (None, 0))(table, places)
    np.testing.assert_array_equal(chosen, places * 2)

    def write(t, i):
        t[0] = i
        return t

    with pytest.raises(errors.ArgumentError, match="was not made inside of vmap"):
        fg.vmap(write, (None, 0))(table, places)
