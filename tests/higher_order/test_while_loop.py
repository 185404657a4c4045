"""`while_loop` under the transformations; in reverse mode its number of steps is not bounded."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.higher_order.reversal import _Pull
from tests.higher_order import plain as plain_flow
from tests.higher_order.agreement import check

W = np.array([[0.3, -0.4], [0.5, 0.2]])
POINTS = np.array([[0.7, 0.4], [0.2, 1.1], [1.3, 0.6]])


def newton(lax: Any, x: Any) -> Any:
    """Square roots: the number of steps depends on the value."""
    a = 1 + x[0] * x[1]
    return lax.while_loop(
        lambda y: (y * y - a) ** 2 > 1e-28 * (1 + a), lambda y: (y + a / y) / 2, a
    )


def counter(lax: Any, x: Any) -> Any:
    """An integer in the value; a condition without lanes."""
    return lax.while_loop(
        lambda s: s["n"] < 5,
        lambda s: {"n": s["n"] + 1, "y": s["y"] * x[1] + s["n"] * x[0], "z": None},
        {"n": 0, "y": x[0], "z": None},
    )["y"]


def vector(lax: Any, x: Any) -> Any:
    """Shared weights, a condition that reads batched constants."""
    return lax.while_loop(
        lambda y: (y * y).sum() > 0.02 + 0.01 * x[0] ** 2, lambda y: np.sin(W @ y) + 0.01 * x, x
    )


def never(lax: Any, x: Any) -> Any:
    """Lanes without any step."""
    return lax.while_loop(lambda y: y < x[1], lambda y: y * (1.1 + x[0]), x[0]) + x[1] ** 2


def many_steps(lax: Any, x: Any) -> Any:
    """More steps than a few."""
    return lax.while_loop(lambda s: s[0] < 70 + 9 * x[0], _euler(x), (0, x[1]))[1]


def sparse(lax: Any, x: Any) -> Any:
    return lax.while_loop(
        lambda s: s[0] < 70 + 9 * x[0],
        _euler(x),
        (0, x[1]),
        max_checkpoints=3,
        checkpoint_every=4,
    )[1]


def _euler(x: Any) -> Any:
    return lambda s: (s[0] + 1, s[1] + 0.01 * np.sin(s[1] * x[0]))


def nested(lax: Any, x: Any) -> Any:
    """The inner loop ends by what the outer one carries."""

    def body(s: Any) -> Any:
        n, y = s
        y = lax.while_loop(
            lambda v: v < n + x[1], lambda v: v + x[0] * np.sin(v) ** 2 * x[1] + 0.17, y
        )
        return n + 1, y * x[0] - 0.25

    return lax.while_loop(lambda s: s[0] < 3, body, (0, x[0] * 0.5))[1]


def scan_inside(lax: Any, x: Any) -> Any:
    def body(y: Any) -> Any:
        return lax.scan(lambda c, t: (c + t * x[0] * c, None), y, np.array([0.2, 0.3]))[0]

    return lax.while_loop(lambda y: y < 3, body, x[1])


def cond_inside(lax: Any, x: Any) -> Any:
    def body(s: Any) -> Any:
        n, y = s
        return n + 1, lax.cond(y > 1, lambda v: v * x[0] * 0.5, lambda v: v + np.exp(x[1]), y)

    return lax.while_loop(lambda s: s[0] < 4, body, (0, x[0]))[1]


def traced_bound(lax: Any, x: Any) -> Any:
    """fori_loop with a bound that is computed."""
    if lax is fg.lax:
        bound = fg.stop_gradient(np.floor(3 * x[1])).astype(int)
    else:
        bound = np.floor(3 * np.real(x[1]))
    return lax.fori_loop(0, bound, lambda i, v: v * x[0] + i * x[1], x[0] * x[1])


PROGRAMS = [
    newton,
    counter,
    vector,
    never,
    many_steps,
    sparse,
    nested,
    scan_inside,
    cond_inside,
    traced_bound,
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_transformations(program):
    check(program, POINTS)


# Newton's iteration for roots: closed forms.


def root(x: Any) -> Any:
    return fg.lax.while_loop(
        lambda y: abs(y * y - x) > 1e-13 * x, lambda y: (y + x / y) / 2, 1.0 + 0 * x
    )


AREAS = np.array([0.01, 2.0, 150.0])


@pytest.mark.nightly
@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "jit"])
def test_derivatives_of_roots(wrap):
    first, second = fg.grad(root), fg.grad(fg.grad(root))
    for x in AREAS:
        np.testing.assert_allclose(wrap(first)(x), 0.5 / np.sqrt(x), rtol=1e-10)
        np.testing.assert_allclose(wrap(second)(x), -0.25 * x**-1.5, rtol=1e-8)
    np.testing.assert_allclose(wrap(fg.vmap(first))(AREAS), 0.5 / np.sqrt(AREAS), rtol=1e-10)
    np.testing.assert_allclose(wrap(fg.vmap(second))(AREAS), -0.25 * AREAS**-1.5, rtol=1e-8)
    total = fg.grad(lambda xs: fg.vmap(root)(xs).sum())
    np.testing.assert_allclose(wrap(total)(AREAS), 0.5 / np.sqrt(AREAS), rtol=1e-10)


# Lanes that have ended.


def squarings(x: Any, c: Any) -> Any:
    """One more step than wanted would overflow, and its derivative with it."""
    return fg.lax.while_loop(lambda y: y < 1e150, lambda y: y * y * c, x)


STARTS = np.array([1.1, 3.0, 1e149, 1e200])


def _squarings_reference(x: float) -> tuple[float, float, float]:
    """Value and derivatives by x and c: y = x^n c^(n - 1) after log2(n) steps."""
    n = 1
    while x**n < 1e150:
        n *= 2
    return x**n, n * x ** (n - 1) if n > 1 else 1.0, (n - 1) * x**n if n > 1 else 0.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "jit"])
def test_lanes_that_have_ended_stay(wrap):
    starts = STARTS[[0, 1, 3]]
    expected = np.array([_squarings_reference(x) for x in starts])
    values = wrap(fg.vmap(squarings, (0, None)))(starts, 1.0)
    np.testing.assert_allclose(values, expected[:, 0], rtol=1e-10)
    slopes = wrap(fg.vmap(fg.grad(squarings, (0, 1)), (0, None)))(starts, 1.0)
    np.testing.assert_allclose(slopes[0], expected[:, 1], rtol=1e-10)
    np.testing.assert_allclose(slopes[1], expected[:, 2], rtol=1e-10)
    forward = wrap(fg.vmap(fg.jacfwd(squarings), (0, None)))(starts, 1.0)
    np.testing.assert_allclose(forward, expected[:, 1], rtol=1e-10)
    shared = wrap(fg.grad(lambda c: fg.vmap(squarings, (0, None))(starts, c)[1:].sum()))(1.0)
    np.testing.assert_allclose(shared, expected[1:, 2].sum(), rtol=1e-10)


def record(start: Any, x: Any) -> Any:
    """Steps from a number to four, and what they write: elements, rows and windows."""

    def step(state: Any) -> Any:
        i, seen, rows, window = state
        once = seen.at[i].set(i)
        seen = once.at[5 - i].set(seen[i] - once[4])
        rows = rows.at[np.array([0, 1]) + i % 2].set(x * rows[i % 3] + 1, mode="drop")
        window = fg.lax.dynamic_update_slice(window, window[:2] * x + i, (i,))
        return i + 1, seen, rows, window

    made = np.full(6, -1), np.ones((3, 2)), np.linspace(0.0, 1.0, 7)
    return fg.lax.while_loop(lambda state: state[0] < 4, step, (start, *made))[1:]


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        lambda f: fg.jacrev(f, 1),
        pytest.param(lambda f: fg.jacfwd(f, 1), marks=pytest.mark.nightly),
    ],
    ids=["values", "jacrev", "jacfwd"],
)
def test_lanes_that_have_ended_update_nothing(transform: Any) -> None:
    starts, x = np.array([3, 0, 4]), np.array([0.5, 1.5, np.inf])
    of_one = transform(lambda start, x: record(start, x)[1:])
    alone = fg.jit(of_one)  # once for all lanes and both ways
    one_by_one = [alone(*lane) for lane in zip(starts, x, strict=True)]
    for mapped in (fg.vmap(of_one), fg.jit(fg.vmap(of_one))):
        for many, each in zip(mapped(starts, x), zip(*one_by_one, strict=True), strict=True):
            np.testing.assert_allclose(many, np.stack(each))


def test_lanes_that_have_ended_write_no_numbers() -> None:
    starts = np.array([3, 0, 4])
    seen = [record(start, 1.0)[0] for start in starts.tolist()]
    mapped = fg.vmap(lambda start: record(start, 1.0)[0])
    for way in (mapped, fg.jit(mapped)):
        np.testing.assert_array_equal(way(starts), seen)


def test_steps_of_lanes_choose_between_no_whole_arrays() -> None:
    def count(start: Any) -> Any:
        return fg.lax.while_loop(
            lambda state: state[0] < 4,
            lambda state: (state[0] + 1, state[1].at[state[0]].set(state[1][0], mode="drop")),
            (start, np.zeros(6, np.int64)),
        )

    program = str(fg.make_jaxpr(fg.vmap(count))(np.arange(3)))
    assert "while" in program
    assert not re.search(r"i64\[3,6\] = select", program), program


def test_infinite_slopes_of_further_steps_do_not_leak():
    """At the end the step has the slope of sqrt(0), also in shared vectors and matrices."""

    def approach(x: Any, w: Any) -> Any:
        def body(y: Any) -> Any:
            steep = np.sqrt(5 - y) * np.ones((2, 2))
            return y + 1 + 0 * (steep @ w).sum() + 0 * (w / (5 - y)).sum()

        return fg.lax.while_loop(lambda y: y < 5, body, x)

    starts, w = np.array([1.0, 3.0, 5.0]), np.ones(2)
    by_lane = fg.vmap(fg.grad(approach, (0, 1)), (0, None))
    shared = fg.grad(lambda w: fg.vmap(approach, (0, None))(starts, w).sum())
    for wrap in (lambda f: f, fg.jit):
        slopes = wrap(by_lane)(starts, w)
        np.testing.assert_allclose(slopes[0], np.ones(3))
        np.testing.assert_allclose(slopes[1], np.zeros((3, 2)))
        np.testing.assert_allclose(wrap(shared)(w), np.zeros(2))


def test_inner_loops_that_would_never_end():
    """A lane that has ended, and a pull, must not run further steps."""

    def f(x: Any, pace: Any) -> Any:
        def body(y: Any) -> Any:
            return fg.lax.while_loop(lambda z: z < y + 3, lambda z: z + pace * (5 - y), y)

        return fg.lax.while_loop(lambda y: y < 5, body, x)

    starts, paces = np.array([1.0, 9.0]), np.array([1.0, 0.0])
    # One step: x + p (5 - x).
    np.testing.assert_allclose(fg.vmap(f)(starts, paces), [5.0, 9.0])
    np.testing.assert_allclose(fg.grad(f, (0, 1))(1.0, 1.0), [0.0, 4.0])
    slopes = fg.vmap(fg.grad(f, (0, 1)))(starts, paces)
    np.testing.assert_allclose(slopes[0], [0.0, 1.0])
    np.testing.assert_allclose(slopes[1], [4.0, 0.0])


def test_condition_that_holds_for_no_lane():
    f = fg.vmap(lambda x: fg.lax.while_loop(lambda y: y < 0, lambda y: y / 0.0, x))
    np.testing.assert_array_equal(f(AREAS), AREAS)
    np.testing.assert_array_equal(fg.grad(lambda x: f(x).sum())(AREAS), np.ones(3))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [{}, {"checkpoint_every": 7}, {"max_checkpoints": 2}])
def test_checkpoints_change_no_derivative(options):
    def power(x: Any) -> Any:
        return fg.lax.while_loop(
            lambda s: s[0] < 300, lambda s: (s[0] + 1, s[1] * x), (0, 1.0), **options
        )[1]

    np.testing.assert_allclose(fg.grad(power)(1.01), 300 * 1.01**299, rtol=1e-12)
    np.testing.assert_allclose(fg.jit(fg.grad(power))(1.01), 300 * 1.01**299, rtol=1e-12)


PEAK = """
import resource
import numpy as np
import funcgrad as fg

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def f(x, n):  # y' = x sin(y), by Euler's method
    step = lambda i, y: y + 1e-6 * np.sin(y) * x
    return fg.lax.fori_loop(0, n, step, x, max_checkpoints=64)

slope = fg.jit(fg.grad(f))
slope(1.0, 5000)
before = peak()
found = slope(1.0, 1_000_000)
print(found, (peak() - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak differs elsewhere")
def test_a_million_steps_are_reversed_in_little_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PEAK], capture_output=True, text=True, check=True, timeout=300
    )
    found, nbytes = map(float, done.stdout.split())
    # Closed form: tan(y/2) = tan(x/2) exp(x t) at t = 1, differentiated at x = 1.
    x = 1.0
    half = np.tan(x / 2) * np.exp(x)
    exact = 2 * (np.exp(x) / (2 * np.cos(x / 2) ** 2) + half) / (1 + half**2)
    assert found == pytest.approx(exact, rel=1e-5)
    assert nbytes < 64e6


# How the steps are kept.


@pytest.mark.sampled(8)
@pytest.mark.parametrize("every", [1, 2, 5])
@pytest.mark.parametrize("states", [1, 2, 3, 4, 9])
def test_every_step_is_pulled_once_and_in_order(every: int, states: int) -> None:
    """``s' = a s + n`` has slopes that depend on the order and on the number of steps."""

    def f(a: Any, s: Any, n: Any) -> Any:
        return fg.lax.while_loop(
            lambda c: c[0] < n,
            lambda c: (c[0] + 1, a * c[1] * (1 + 0.01 * c[0]) + np.sin(c[1])),
            (np.int64(0), s),
            checkpoint_every=every,
            max_checkpoints=states,
        )[1]

    slopes = fg.jit(fg.grad(f, argnums=(0, 1)))
    for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 23, 37, 64, 101]:
        a, s = 0.4, 0.7
        by_a, by_s = 0.0, 1.0
        for k in range(n):
            slope = a * (1 + 0.01 * k) + np.cos(s)
            by_a, by_s = slope * by_a + s * (1 + 0.01 * k), slope * by_s
            s = a * s * (1 + 0.01 * k) + np.sin(s)
        np.testing.assert_allclose(slopes(a, 0.7, n), (by_a, by_s), rtol=1e-9, atol=1e-300)


def _of_rows(x: Any, n: Any, **options: Any) -> Any:
    """A loop over arrays that have no variables in kernels."""
    turned = np.roll(np.eye(400), 1, axis=0)
    return fg.lax.while_loop(
        lambda c: c[0] < n,
        lambda c: (c[0] + 1, np.sin(c[1]) @ turned * 0.9 + x),
        (0, 0 * x),
        **options,
    )[1].sum()


def test_segments_of_large_arrays_are_those_of_one_tape() -> None:
    x = np.linspace(-1, 1, 400)
    slope = fg.jit(fg.grad(partial(_of_rows, checkpoint_every=3, max_checkpoints=4)))
    for n in (0, 1, 3, 4, 29, 60):
        scanned = fg.grad(
            lambda x, n=n: fg.lax.fori_loop(
                0, n, lambda i, c: np.sin(c) @ np.roll(np.eye(400), 1, axis=0) * 0.9 + x, 0 * x
            ).sum()
        )
        np.testing.assert_allclose(slope(x, n), scanned(x), rtol=1e-12, atol=1e-12)


def test_the_backward_pass_copies_none_of_its_records() -> None:
    """What a pull of few steps touches does not depend on how much it could record."""
    x = np.linspace(-1, 1, 400)
    compiled = fg.jit(fg.grad(_of_rows)).lower(x, 3)
    plan = compiled.as_text().partition("\nplan\n")[2].partition("# kernel 0")[0]
    ranges = [int(count) for count in re.findall(r"kernel \d+: (\d+) iterations", plan)]
    assert max(ranges) <= 400 * 400


@pytest.mark.parametrize("size", [700, 3])
def test_cheap_residuals_of_large_arrays_are_computed_again(size: int) -> None:
    """A step records its state and what is dear; of small arrays, everything."""

    def loop(start: Any, n: Any) -> Any:
        def step(c: Any) -> Any:
            i, x, y = c
            slope = (x * y + 1) * (x - y)
            dear = np.sin(x * 0.3)
            return i + 1, x + 0.1 * slope * dear, y * 0.9 + 0.1 * x * slope

        return fg.lax.while_loop(lambda c: c[0] < n, step, (0, start, start[::-1]))[1:]

    x = np.linspace(-1, 1, size)
    (equation,) = (e for e in fg.make_jaxpr(loop)(x, 5).eqns if e.primitive.name == "while")
    pull = _Pull(equation.primitive, tuple(v.aval.dtype.kind == "f" for v in equation.inputs))
    n_arrays = sum(a.shape == (size,) for a in pull.row_avals)
    assert n_arrays == 4 if size == 700 else n_arrays > 4
    found = fg.jit(fg.grad(lambda x, n: sum(map(np.sum, loop(x, n)))))(x, 5)
    direction = np.cos(np.arange(size))
    low, high = (sum(map(np.sum, loop(x + h * direction, 5))) for h in (-1e-6, 1e-6))
    np.testing.assert_allclose(found @ direction, (high - low) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("wrap", [fg.jit, lambda f: f], ids=["jit", "eager"])
def test_what_a_loop_shows_is_shown_once(wrap: Any) -> None:
    seen: list[float] = []

    def body(c: Any) -> Any:
        fg.debug.callback(lambda v: seen.append(float(v)), c)
        inner = fg.lax.scan(
            lambda v, _: (fg.debug.callback(lambda v: seen.append(-float(v)), v), v)[1:] * 2,
            c,
            None,
            length=1,
        )[0]
        return inner * 2

    slope = wrap(fg.grad(lambda x: fg.lax.while_loop(lambda c: c < 9, body, x)))
    assert slope(2.0) == 8.0
    assert seen == [2.0, -2.0, 4.0, -4.0, 8.0, -8.0]


def test_gradients_of_loops_until_are_native_within_loops() -> None:
    def f(x: Any) -> Any:
        return fg.lax.scan(lambda c, t: (root(c + t), None), x, np.arange(1.0, 6.0))[0]

    slope = fg.jit(fg.grad(f))
    text = slope.lower(2.0).as_text()
    assert "python:" not in text
    assert "numpy:" not in text
    h = 1e-5
    np.testing.assert_allclose(slope(2.0), (f(2.0 + h) - f(2.0 - h)) / (2 * h), rtol=1e-7)


# One argument after the other: a derivative of a derivative in which it had no tangent.


def by_constants(while_loop: Any, x: Any, y: Any, z: Any) -> Any:
    step = lambda s: (s[0] + 1, np.sin(s[1]) * y + z * s[1])  # noqa: E731
    return while_loop(lambda s: s[0] < 3, step, (np.int64(0), x))[1]


def by_carry(while_loop: Any, x: Any, y: Any, z: Any) -> Any:
    step = lambda s: (s[0] + 1, np.sin(s[1]) * s[2], s[2] * 1.5 * s[3], s[3])  # noqa: E731
    return while_loop(lambda s: s[0] < 3, step, (np.int64(0), x, y, z))[1]


def by_both(while_loop: Any, x: Any, y: Any, z: Any) -> Any:
    step = lambda s: (s[0] * s[1] + z, s[1] * np.cos(z))  # noqa: E731
    return sum(while_loop(lambda s: s[1].real > 0.3, step, (x * x, y)))


def backward(f: Any, k: int) -> Any:
    return lambda *a: fg.grad(f, k)(*a)


def forward(f: Any, k: int) -> Any:
    return lambda *a: fg.jvp(lambda v: f(*a[:k], v, *a[k + 1 :]), (a[k],), (1.0,))[1]


def linearized(f: Any, k: int) -> Any:
    return lambda *a: fg.linearize(lambda v: f(*a[:k], v, *a[k + 1 :]), a[k])[1](1.0)


def difference(f: Any, k: int, h: float = 1e-4) -> Any:
    """Of fourth order."""

    def moved(*a: Any) -> Any:
        at = lambda d: f(*a[:k], a[k] + d, *a[k + 1 :])  # noqa: E731
        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

    return moved


WAYS = (backward, forward, linearized)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loop", [by_constants, by_carry, by_both])
def test_derivatives_by_one_argument_after_the_other(loop: Any) -> None:
    def plain(x: Any, y: Any, z: Any) -> Any:
        return loop(plain_flow.while_loop, x, y, z)

    def complex_step(x: Any, y: Any, z: Any) -> Any:
        return plain(x + 1e-30j, y, z).imag * 1e30

    f, point = partial(loop, fg.lax.while_loop), (0.3, 0.8, 0.4)
    second = difference(complex_step, 1)(*point)
    third = difference(difference(complex_step, 1), 2)(*point)
    assert abs(second) > 1e-3
    assert abs(third) > 1e-3
    with fg.disable_jit():
        for first, then in itertools.product(WAYS, WAYS):
            for k, j in ((0, 1), (1, 0)):
                np.testing.assert_allclose(then(first(f, k), j)(*point), second, rtol=1e-7)
        for ways in ((forward, backward, backward), (backward, forward, linearized)):
            for order in itertools.permutations(range(3)):
                g = f
                for way, k in zip(ways, order, strict=True):
                    g = way(g, k)
                np.testing.assert_allclose(g(*point), third, rtol=1e-5)
        rows = [np.full(2, v) for v in point]
        lanes = fg.vmap(forward(backward(f, 0), 1))(*rows)
        np.testing.assert_allclose(lanes, [second] * 2, rtol=1e-7)
