"""Loops and branches in compiled programs: values and derivatives are those without compiling.

The references evaluate the same function one operation at a time in Python loops (`disable_jit`),
which tests of the loops themselves compare with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from tests.compiler.plans import steps_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=3)
A = RNG.normal(size=(3, 3)) * 0.3
XS = RNG.normal(size=(7, 3))
WIDE = RNG.normal(size=40)
WIDES = RNG.normal(size=(7, 40))
B = RNG.normal(size=(40, 40)) * 0.1


def repeat(step: Callable[[Any], Any], n: int) -> Callable[[Any], Any]:
    """A scan of a function of the carry, that stacks sums of the carry."""
    return lambda x: lax.scan(lambda c, _: (step(c), fg.numpy.sum(c)), x, None, length=n)


def inner_scan(c: Any) -> Any:
    return lax.scan(lambda d, e: (d * np.cos(e), d + e), c[0], c)[1]


def inner_while(c: Any) -> Any:
    return 0.1 * lax.while_loop(lambda d: abs(d).sum() < 90.0, lambda d: d * 1.3 + 0.5, c)


def inner_cond(c: Any) -> Any:
    return lax.cond(c.sum() > 0, lambda c: np.sin(c) - 0.1, lambda c: 0.5 * c * c, c)


def inner_switch(c: Any, i: Any) -> Any:
    return lax.switch(i, [np.sin, lambda c: 0.5 * c * c, lambda c: c[::-1]], c), c.sum()


CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "matrix": (repeat(lambda c: np.tanh(A @ c), 9), X),
    "wide matrix": (repeat(lambda c: np.tanh(B @ c), 9), WIDE),
    "walk": (
        lambda xs: lax.scan(lambda c, x: (np.sin(c * x) + x[::-1], c @ x), X, xs, reverse=True),
        XS,
    ),
    "wide walk": (
        lambda xs: lax.scan(lambda c, x: (np.tanh(B @ c + x), c * x), WIDE, xs, reverse=True),
        WIDES,
    ),
    "strides": (
        lambda xs: lax.scan(lambda c, x: (np.sin(c) * x.sum() + x[0], c @ X), X, xs.T[:, ::-1]),
        XS,
    ),
    "exchange": (
        lambda x: lax.scan(lambda c, _: ((c[1], c[0] + 1.0), c[0]), (x[0], x[1]), None, length=5),
        X,
    ),
    "walk in a loop": (repeat(inner_scan, 4), X),
    "wide walk in a loop": (repeat(inner_scan, 4), WIDE),
    "count in a loop": (
        repeat(lambda c: lax.fori_loop(0, 3, lambda i, d: np.sin(d) + i * 0.1, c), 4),
        X,
    ),
    "while in a loop": (repeat(inner_while, 4), X),
    "wide while in a loop": (repeat(inner_while, 4), WIDE),
    "cond in a loop": (repeat(inner_cond, 6), X),
    "wide cond in a loop": (repeat(inner_cond, 6), WIDE),
    "switch in a loop": (lambda x: lax.scan(inner_switch, x, np.arange(-1, 5)), X),
    "wide switch in a loop": (lambda x: lax.scan(inner_switch, x, np.arange(-1, 5)), WIDE),
    "outer arrays walked inside": (
        lambda xs: lax.scan(
            lambda c, _: (lax.scan(lambda d, e: (d * np.cos(e), d @ e), c, xs)[1][:3] * 0.1, c),
            X,
            None,
            length=4,
        ),
        XS,
    ),
    "elements walked inside": (
        lambda xs: lax.scan(
            lambda c, x: (lax.scan(lambda d, e: (d * np.cos(e), d * e), c, x)[0], c), 1.0, xs
        ),
        XS,
    ),
    "cond": (
        lambda x: lax.cond(x[0] > 0, lambda c: (np.sin(c), c[1]), lambda c: (c * c, c[2]), x),
        X,
    ),
    "wide cond": (
        lambda x: lax.cond(x[0] > 0, lambda c: (np.sin(c), c[1]), lambda c: (c * c, c[2]), x),
        WIDE,
    ),
    "while": (lambda x: lax.while_loop(lambda d: abs(d).sum() < 9, lambda d: d * 1.3 + 0.5, x), X),
    "wide while": (
        lambda x: lax.while_loop(lambda d: abs(d).sum() < 900, lambda d: d * 1.3 + 0.5, x),
        WIDE,
    ),
    "while not": (lambda x: lax.while_loop(lambda d: d.sum() > 1e9, lambda d: d * 1.3, x), X),
    "wide while not": (lambda x: lax.while_loop(lambda d: d.sum() > 1e9, np.sin, x), WIDE),
    "prefix": (repeat(lambda c: np.cumsum(c) * 0.3 + np.cumprod(c[::-1]), 5), X),
    "other numbers": (
        lambda x: lax.scan(
            lambda c, i: ((c[0] + i, c[1] * x, ~c[2]), c[0] // 2), (0, x, True), np.arange(6)
        ),
        X,
    ),
    "pieces": (
        repeat(lambda c: np.concatenate([c[1:], c[:1] * c[2]]) + np.stack([c, c]).sum(0) / 9, 5),
        X,
    ),
    "numpy inside": (repeat(lambda c: np.sort(c) * 1.1 - c, 5), X),
    "one step": (lambda xs: lax.scan(lambda c, x: (np.sin(c * x), c @ x), X, xs[:1]), XS),
    "two steps": (lambda xs: lax.scan(lambda c, x: (np.sin(c * x), c @ x), X, xs[:2]), XS),
    "no step": (lambda xs: lax.scan(lambda c, x: (np.sin(c * x), c @ x), X, xs[:0]), XS),
    "lanes": (fg.vmap(repeat(lambda c: np.tanh(A @ c), 9)), XS),
    "lanes of a while": (fg.vmap(inner_while), XS),
    "nothing changes": (
        lambda x: lax.scan(
            lambda c, _: ((c[0], c[1] * c[0]), c[0] + c[1]), (x, x + 1), None, length=4
        ),
        X,
    ),
    "unread": (lambda xs: lax.scan(lambda c, x: (c * 1.1, c), X, xs), XS),
}


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of all floating results."""
    return lambda x: sum(
        fg.numpy.sum(leaf) for leaf in fg.tree_util.tree_leaves(f(x)) if leaf.dtype.kind == "f"
    )


def agree(f: Callable[[Any], Any], x: Any, rtol: float) -> None:
    with fg.disable_jit():
        expected = f(x)
    got = fg.jit(f)(x)
    leaves = zip(fg.tree_util.tree_leaves(got), fg.tree_util.tree_leaves(expected), strict=True)
    for a, b in leaves:
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    f, x = CASES[name]
    agree(f, x, 1e-12)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    f, x = CASES[name]
    agree(fg.grad(total(f)), x, 1e-11)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name: str) -> None:
    f, x = CASES[name]
    agree(lambda x: fg.jvp(fg.grad(total(f)), (x,), (x,))[1], x, 1e-10)


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-6), ("complex64", 1e-5)])
def test_single_precision(dtype: str, rtol: float) -> None:
    agree(repeat(lambda c: np.tanh(c * 2) - c, 5), X.astype(dtype), rtol)


def test_loops_of_few_numbers_are_one_kernel() -> None:
    text = fg.jit(repeat(lambda c: np.tanh(A @ c), 1000)).lower(X).as_text()
    assert text.count("# kernel") == 1
    assert "numpy:" not in text


def test_other_loops_are_tables_of_steps() -> None:
    text = fg.jit(repeat(lambda c: np.tanh(B @ c), 1000)).lower(B).as_text()
    assert "1000 times" in steps_of(text)
    assert "matrix product" in steps_of(text)
    assert "numpy:" not in steps_of(text)


def _halves(x: Any) -> Any:
    """A stage of a transform, whose result is under another shape in memory."""
    n = x.shape[0] // 2
    return np.stack([x[:n] + x[n:], x[:n] - x[n:]], axis=1).reshape(2 * n)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("n", [8, 64, 1024])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_what_is_carried_may_have_another_shape_in_memory(n: int, steps: int) -> None:
    def loop(x: Any) -> Any:
        return lax.fori_loop(0, steps, lambda _, x: _halves(x), x)

    def repeat(x: Any) -> Any:
        start = 0, x
        return lax.while_loop(lambda c: c[0] < steps, lambda c: (c[0] + 1, _halves(c[1])), start)[1]

    def stacked(x: Any) -> Any:
        return lax.scan(lambda c, _: (_halves(c), _halves(c).reshape(2, -1)), x, None, steps)

    def exchanged(x: Any) -> Any:
        both = lambda _, c: (c[1].reshape(2, -1).T.reshape(-1), _halves(c[0]))  # noqa: E731
        return lax.fori_loop(0, steps, both, (x, x + 1))

    x = np.linspace(-1.0, 1.0, n)
    rows = np.stack([x, x * x, 1 - x])
    for f in (loop, repeat, stacked, exchanged):
        for g, argument in (f, x), (fg.vmap(f), rows):
            expected, found = (fg.tree.leaves(h(argument)) for h in (g, fg.jit(g)))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
    slope = fg.grad(lambda x: np.sum(loop(x) ** 2))
    np.testing.assert_allclose(fg.jit(slope)(x), slope(x), rtol=1e-12, atol=1e-12)


def test_a_result_under_another_shape_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_SKIP_PASSES", "join")  # which would make a kernel of all of it

    def f(x: Any) -> Any:
        return lax.scan(lambda x, _: (_halves(x), None), x, None, 9)[0]

    plan = fg.jit(f).lower(np.ones(1 << 12)).as_text().partition("\nplan\n")[2]
    steps, _, _ = plan.partition("\n# kernel")
    assert steps.split("9 times")[1].count("kernel ") == 1
