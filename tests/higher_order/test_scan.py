"""`scan` under the transformations, against Python loops and complex steps."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.compiler.nest.lower import simplified
from funcgrad.core.program import evaluate
from funcgrad.passes.dce import dce
from tests.higher_order import plain
from tests.higher_order.agreement import check

W = np.array([[0.3, -0.4], [0.5, 0.2]])
TIMES = np.linspace(0.1, 0.9, 4)
POINTS = np.array([[0.7, -0.4], [-0.2, 1.1], [1.3, 0.6]])


def polynomial(lax: Any, x: Any) -> Any:
    """Batched constants, walked arrays without lanes, a carry that becomes batched."""
    return lax.scan(lambda c, t: (c * x[0] + np.sin(t * x[1]), None), 1.0 + 0 * x[0], TIMES)[0]


def recurrent(lax: Any, x: Any) -> Any:
    """A carry that is a vector, shared weights, stacked results."""
    carry, ys = lax.scan(lambda c, t: (np.tanh(W @ c + t * x), c.sum() * t), x, TIMES)
    return np.concatenate([carry, ys])


def backwards(lax: Any, x: Any) -> Any:
    """Reverse, over batched elements, with a tree of results and None among them."""

    def step(c: Any, row: Any) -> Any:
        return {"total": c["total"] * row + 1, "other": c["other"]}, (c["total"], None, {"b": row})

    rows = np.concatenate([x, np.exp(x)])
    carry, (a, _, named) = lax.scan(
        step, {"total": x[1], "other": (x[0], None)}, rows, reverse=True
    )
    return a * named["b"] + carry["total"] + carry["other"][0]


def unused_parts(lax: Any, x: Any) -> Any:
    """Results and carries without derivatives, integers, what does not depend on the carry."""

    def step(c: Any, i: Any) -> Any:
        n, y = c
        return (n + 2 * i, y * x[0] + i), (n, y, x[1] ** 2, 2.0)

    (n, y), (ns, ys, squares, twos) = lax.scan(step, (3, x[1]), np.arange(3))
    return y * n + (ns * ys * squares * twos).sum()


def nested(lax: Any, x: Any) -> Any:
    """A scan in a scan, whose steps read both loops' values."""

    def outer(c: Any, t: Any) -> Any:
        inner = lax.scan(lambda d, s: (d * np.cos(s * x[0]) + t * c, d), c, TIMES[:2])
        return inner[0], inner[1].sum()

    carry, ys = lax.scan(outer, x[1], TIMES[:3])
    return carry + ys.sum()


def while_inside(lax: Any, x: Any) -> Any:
    """The number of inner steps differs from step to step, and from lane to lane."""

    def step(c: Any, t: Any) -> Any:
        c = lax.while_loop(lambda v: v < 2 + t, lambda v: v * 1.5 + 0.1 * x[1] ** 2, c)
        return c * t, c

    carry, ys = lax.scan(step, x[0] ** 2 + 0.3, TIMES)
    return carry + (ys**2).sum()


def cond_inside(lax: Any, x: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        c = lax.cond(c < row, lambda v: v * np.exp(x[0]) + row, lambda v: np.sin(v) * x[1], c)
        return c, c**2

    return lax.scan(step, x[0], np.concatenate([x, x**2]))[1]


def gathering(lax: Any, x: Any) -> Any:
    """The index is the walked element; results are indexed by the carry."""
    rows = np.stack([x, 2 * x + 1, x * x])
    row = rows.__getitem__ if lax is plain else lambda i: fnp.take(rows, i, axis=0)
    order = np.array([2, 0, 1, 2])
    return lax.scan(lambda c, i: (c + row(i) @ x, row(i)[0] * c), x[0], order)[1]


def counted(lax: Any, x: Any) -> Any:
    return lax.fori_loop(1, 5, lambda i, v: v * x[0] / i + x[1], x[1] * x[0])


def mapped(lax: Any, x: Any) -> Any:
    return lax.map(lambda t: np.exp(t * x[0]) * x[1], TIMES)


def mapped_in_batches(lax: Any, x: Any) -> Any:
    return lax.map(lambda t: np.exp(t[0] * x[0]) * x[1] + t[1], (TIMES, TIMES**2), batch_size=3)


PROGRAMS = [
    polynomial,
    recurrent,
    backwards,
    unused_parts,
    nested,
    while_inside,
    cond_inside,
    gathering,
    counted,
    mapped,
    mapped_in_batches,
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_transformations(program):
    check(program, POINTS)


# What is kept for reverse mode.


def stacked_shapes(step: Any, *args: Any) -> list[tuple[int, ...]]:
    """Shapes of what the first loop of a gradient returns besides the carry."""

    def total(*xs: Any) -> Any:
        return fg.lax.scan(step(*xs), 1.0, XS)[0]

    return stacked_by(total, *args)


def stacked_by(total: Any, *args: Any) -> list[tuple[int, ...]]:
    """The same of a function that gives a number."""
    program = fg.make_jaxpr(fg.grad(total))(*args).program
    loop = next(e for e in program.equations if e.primitive.name == "scan")
    return [v.aval.shape for v in loop.outputs[1:]]


XS = np.linspace(0.5, 1.5, 5)


CASES = {
    "walked arrays": (lambda w: lambda c, x: (c + x * w, None), 2.0, []),
    "invariant results": (lambda w: lambda c, x: (c + np.exp(w) * x, None), 2.0, []),
    "invariant matrices": (
        lambda w: lambda c, x: (c + np.sum(np.sin(w @ w)) * x, None),
        np.ones((3, 3)),
        [],
    ),
    "constants and the carry": (lambda w: lambda c, x: (c * w, None), 2.0, [(5,)]),
    "results": (lambda w: lambda c, x: (c * w, c), 2.0, [(5,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_stacked(name):
    step, w, expected = CASES[name]
    assert stacked_shapes(step, w) == expected


def inner(w: Any, c: Any, x: Any) -> Any:
    """A loop and a branch that hand on what they are given."""
    c, w = fg.lax.fori_loop(0, 3, lambda i, s: (s[0] * np.sum(s[1]) + x, s[1]), (c, w))
    return fg.lax.cond(c > 0, lambda c, w: (2.0 * c, w), lambda c, w: (c, w), c, w)


CARRIED_ALONG = {
    "as it is": lambda s, x: ((s[0] + x * np.sum(s[1] ** 2), s[1]), None),
    "by a call": fg.jit(lambda s, x: ((s[0] + x * np.sum(s[1] ** 2), s[1]), None)),
    "by loops and branches": lambda s, x: (inner(s[1], s[0], x), None),
}


@pytest.mark.parametrize("name", CARRIED_ALONG)
def test_what_no_step_changes_is_a_constant(name):
    step, w = CARRIED_ALONG[name], np.array([0.3, -0.2, 0.7])
    total = lambda w: fg.lax.scan(step, (1.0, w), XS)[0][0]  # noqa: E731
    alone = lambda w: fg.lax.scan(lambda c, x: (step((c, w), x)[0][0], None), 1.0, XS)[0]  # noqa: E731
    assert sorted(stacked_by(total, w)) == sorted(stacked_by(alone, w))
    slopes = [(total(w + h) - total(w - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    for derive in (fg.grad, fg.jacfwd, fg.jacrev):
        np.testing.assert_allclose(derive(total)(w), slopes, rtol=1e-6)
    end = lambda w: fg.lax.scan(step, (1.0, w), XS)[0][1]  # noqa: E731
    np.testing.assert_array_equal(fg.jacrev(end)(w), np.eye(3))


def test_ends_of_scanned_arrays_are_no_arrays():
    """A carry that is an element of what is scanned, or of what an inner loop has stacked."""

    def step(s, x):
        last, rows = fg.lax.scan(lambda c, row: (row, c), s[0][0], s[0])
        return (rows, last), None

    f = lambda w: fg.lax.scan(step, (w, w[0]), None, length=2)[0][0]  # noqa: E731
    moved = np.zeros((4, 4))
    moved[[0, 1, 2, 3], [0, 0, 0, 1]] = 1
    w = np.arange(1.0, 5.0)
    np.testing.assert_array_equal(fg.jacrev(f)(w), moved)
    np.testing.assert_array_equal(f(w), moved @ w)


def test_invariant_work_is_done_once():
    program = fg.make_jaxpr(
        lambda w: fg.lax.scan(lambda c, x: (c + x * np.linalg.inv(w).sum(), None), 0.0, XS)
    )(np.eye(3)).program
    (body,) = [
        e.primitive.params()["body"] for e in program.equations if e.primitive.name == "scan"
    ]
    assert {e.primitive.name for e in body.equations} <= {"mul", "add"}


def test_products_of_a_found_loop_are_one_product() -> None:
    def gram(a: Any) -> Any:
        out = fnp.zeros((90, 90))
        for i in range(90):
            out[i:, i] = out[i, i:] = a[:, i] @ a[:, i:]
        return out

    a = np.random.default_rng(0).normal(size=(100, 90))
    shown = fg.make_jaxpr(gram)(a).program
    compiled = simplified(shown)
    kinds = [e.primitive.name for e in compiled.equations]
    assert kinds.index("contract") < kinds.index("scan")
    assert "contract" not in str(next(e for e in compiled.equations if e.primitive.name == "scan"))
    np.testing.assert_allclose(fg.jit(gram)(a), a.T @ a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("used", list(itertools.product((False, True), repeat=5)))
def test_a_loop_computes_what_is_read(used: tuple[bool, ...]) -> None:
    """The third carried value needs the second one, and nothing needs the first one."""

    def loop(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
        def step(carry: Any, x: Any) -> Any:
            a, b, c = carry
            return (np.sin(a + x), b * d, c + b), (a * 2, b - x)

        ends, stacks = fg.lax.scan(step, (a, b, c), XS)
        return [x for x, on in zip((*ends, *stacks), used, strict=True) if on]

    args = 0.1, 0.2, 0.3, 0.4
    program = dce(fg.make_jaxpr(loop)(*args).program)
    needed = [used[0] or used[3], used[1] or used[2] or used[4], used[2]]
    scans = [e.primitive for e in program.equations if e.primitive.name == "scan"]
    assert [s.n_carry for s in scans] == [sum(needed)] * any(used)
    with fg.disable_jit():
        wanted = loop(*args)
    for x, y in zip(evaluate(program, args), wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14)
