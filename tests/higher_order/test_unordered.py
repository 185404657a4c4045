"""Loops whose steps do not wait for each other become operations on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.program import Program, evaluate
from funcgrad.core.typecheck import check_program
from funcgrad.higher_order.reroll import reroll
from funcgrad.higher_order.unordered import unordered
from tests.higher_order import random_loops

RNG = np.random.default_rng(3)
A, B, V = RNG.normal(size=(17, 17)), RNG.normal(size=(17, 21)), RNG.normal(size=40)


def scans(program: Program) -> list[int]:
    """Numbers of values that the loops of a program carry."""
    return [e.primitive.n_carry for e in program.equations if e.primitive.name == "scan"]


def check(function: Callable[..., Any], *args: Any) -> Program:
    """The program without loops that wait, which has the same results and gradients."""
    with fg.reroll_loops(False):
        shown = fg.make_jaxpr(function)(*args).program
    shown = reroll(shown, 6)
    assert scans(shown)
    found = unordered(shown)
    check_program(found)
    wanted = evaluate(shown, args)
    for got in evaluate(found, args), fg.jit(lambda *xs: evaluate(found, xs))(*args):
        for x, y in zip(got, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)

    def loss(program: Program) -> Callable[..., Any]:
        return lambda *xs: np.sum(np.sin(evaluate(program, xs)[0]))

    places = tuple(range(len(args)))
    slopes = fg.grad(loss(shown), places)(*args), fg.jit(fg.grad(loss(found), places))(*args)
    for x, y in zip(*slopes, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)
    return found


def columns(a: Any, b: Any) -> Any:
    b = b.copy()
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += a[i + 1 :, i] @ b[i + 1 :, j]
    return b


def backwards(a: Any, b: Any) -> Any:
    b = b.copy()
    for i in range(b.shape[0] - 1, -1, -1):
        for j in range(b.shape[1]):
            b[i, j] += a[i, :i] @ b[:i, j]
    return b


def elements(v: Any) -> Any:
    out = fnp.zeros(40)
    for i in range(1, 39):
        out[i] = np.sin(v[i - 1]) * v[i + 1]
    return out


def rows(a: Any, b: Any) -> Any:
    b = b.copy()
    for i in range(17):
        b[i] = b[i] * a[i, i] + 1.0
    return b


def blocks(v: Any) -> Any:
    v = v.copy()
    for i in range(10):
        v[4 * i : 4 * i + 4] = np.cumsum(v[4 * i : 4 * i + 4])
    return v


def later(v: Any) -> Any:
    """Each step reads what a later one writes."""
    v = v.copy()
    for i in range(39):
        v[i] = v[i] + 0.5 * v[i + 1]
    return v


def mirrored(v: Any, distance: int = 1) -> Any:
    """Each step reads an element of the reversed array, at a distance from what it writes."""

    def step(i: Any, x: Any) -> Any:
        read = fg.lax.dynamic_index_in_dim(x[::-1], 39 - i - distance, keepdims=False)
        return fg.lax.dynamic_update_index_in_dim(x, np.sin(read), i, 0)

    return fg.lax.fori_loop(1, 39, step, v)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("function", "args"),
    [(elements, (V,)), (rows, (A, B)), (later, (V,)), (mirrored, (V,))],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_maps(function: Any, args: Any) -> None:
    assert scans(check(function, *args)) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", [columns, backwards])
def test_triangles_are_loops_over_rows(function: Any) -> None:
    """Sums of a triangle stay sums of its parts, in one loop that carries nothing."""
    assert scans(check(function, A, B)) == [0]


def test_windows_in_turn_are_results_of_steps() -> None:
    assert scans(check(blocks, V)) == [0]


def earlier(v: Any) -> Any:
    v = v.copy()
    for i in range(1, 40):
        v[i] = v[i] + 0.5 * v[i - 1]
    return v


def one_step(v: Any) -> Any:
    """Only the last step reads what another one has written."""
    v = v.copy()
    for i in range(30):
        v[i] = v[i] + v[max(29 - 3 * i, 31 - i)]
    return v


def overlapping(v: Any) -> Any:
    v = v.copy()
    for i in range(20):
        v[i : i + 3] = np.sin(v[20:23] * i)
    return v


def place_of_data(v: Any) -> Any:
    v = v.copy()
    for i in range(30):
        v[i] = v[i] + v[np.argmin(v)]
    return v


def kept(v: Any) -> Any:
    """Arrays of all steps are results."""
    v, arrays = v.copy(), []
    for i in range(30):
        v[i] = np.sin(v[i])
        arrays.append(v.copy())
    return fnp.stack(arrays)


def previous(v: Any) -> Any:
    old = v = v.copy()
    for i in range(30):
        old = v.copy()
        v[i] = np.sin(v[i])
    return v - 2.0 * old


def mirrored_behind(v: Any) -> Any:
    return mirrored(v, -1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "function", [earlier, one_step, overlapping, place_of_data, kept, previous, mirrored_behind]
)
def test_steps_that_wait(function: Any) -> None:
    assert min(scans(check(function, V))) > 0


def test_a_loop_keeps_what_waits() -> None:
    def both(v: Any) -> Any:
        v, total = v.copy(), 0.0
        for i in range(40):
            total = np.sin(total + v[i])
            v[i] = total
        return v

    assert scans(check(both, V)) == [1]


def test_large_steps_stay_a_loop() -> None:
    """Arrays of all steps would take more memory than operands and results."""

    def loop(v: Any) -> Any:
        out = fnp.zeros(40)
        for i in range(40):
            out[i] = np.sum(np.sin(v[i] + np.arange(10000.0)))
        return out

    assert scans(check(loop, V)) == [0]


def test_endless_loops_are_not_looked_at() -> None:
    def loop(x: Any) -> Any:
        return fg.lax.fori_loop(0, 2_000_000_000, lambda i, x: x.at[i % 40].set(0.5), x)

    program = fg.make_jaxpr(loop)(V).program
    assert unordered(program) is program


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("writer", "seed"),
    [(w, s) for w in (random_loops.Writer, random_loops.Wider) for s in range(0, 24, 4)],
)
def test_random_programs(writer: type[random_loops.Writer], seed: int) -> None:
    rolled = random_loops.traced(seed, writer)[2]
    args = random_loops.arguments(seed)
    found = unordered(rolled)
    check_program(found)
    with np.errstate(all="ignore"):
        for x, y in zip(evaluate(found, args), evaluate(rolled, args), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
