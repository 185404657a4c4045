"""Rules and linear functions of the user's whose loops, branches and compiled calls hold values and
tangents at once: each of them is told apart, and what is not linear is refused.

Derivatives are compared with complex steps of the same programs in plain Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import ArgumentError
from tests.fuzz.language import FUNCGRAD, PLAIN

X = np.array([0.3, 0.5, 0.7])
Y = np.array([0.2, -0.4, 1.1])
V = np.array([1.0, -0.5, 0.25])
Function = Callable[..., Any]


def scan(m: Any, x: Any) -> Any:
    carry, ys = m.scan(lambda c, a: (c * 0.5 + a, np.sin(c) * a), x[0], x)
    return ys * carry


def reversed_and_nested(m: Any, x: Any) -> Any:
    def step(c: Any, a: Any) -> Any:
        inner, _ = m.scan(lambda d, b: (d * np.sin(b) + c, d), a, x)
        return c + inner * a, inner

    carry, ys = m.scan(step, x[0], x, reverse=True)
    return np.cos(ys) * carry


def unused_tangent(m: Any, x: Any) -> Any:
    """A carried value whose tangent starts at zero."""
    (a, b), _ = m.scan(lambda s, v: ((s[0] * 0.5, s[1] * s[0] + v), v), (2.0, x[1]), x)
    return np.sin(b) * a * x


def fori_loop(m: Any, x: Any) -> Any:
    return np.sin(m.fori_loop(0, 3, lambda i, c: np.sin(c) * c + i, x))


def while_loop(m: Any, x: Any) -> Any:
    end = m.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, np.sin(s[1]) * s[1]), (np.int64(0), x)
    )
    return np.sin(end[1]) * end[0]


def while_by_value(m: Any, x: Any) -> Any:
    """A loop whose length depends on values that have tangents."""
    end = m.while_loop(lambda s: s[1].real < 2.0, lambda s: (s[0] * s[1], s[1] * 1.5), (x, x[0]))
    return end[0] * end[1]


def cond(m: Any, x: Any) -> Any:
    return np.sin(m.cond(x[0].real > 0, lambda x: np.sin(x), lambda x: x * x, x))


def switch(m: Any, x: Any) -> Any:
    branches = [lambda x: x * x, lambda x: np.exp(x) * x[0], lambda x: x]
    return np.sin(m.switch(1, branches, x)) * x


def jit(m: Any, x: Any) -> Any:
    return np.sin(m.jit(lambda x: np.sin(x) * x)(x))


def jit_of_scan(m: Any, x: Any) -> Any:
    return np.cos(m.jit(functools.partial(scan, m))(x)) * x


def checkpoint(m: Any, x: Any) -> Any:
    return np.sin(m.checkpoint(lambda x: np.sin(x) * x)(x))


def checkpoint_of_while(m: Any, x: Any) -> Any:
    return np.sin(m.checkpoint(functools.partial(while_loop, m))(x)) * x


def map_(m: Any, x: Any) -> Any:
    return np.sin(m.map(lambda a: np.sin(a) * a, x))


def vmap_of_scan(m: Any, x: Any) -> Any:
    rows = m.vmap(lambda r: scan(m, r))(np.stack([x, x * 2]))
    return np.sin(rows) * x


def rule_in_loop_in_rule(m: Any, x: Any) -> Any:
    ruled = m.custom_jvp(functools.partial(scan, m))
    return np.sin(m.fori_loop(0, 2, lambda i, c: ruled(c) * 0.5 + c, x)) * x


def backward_rule(m: Any, x: Any) -> Any:
    return np.sin(m.custom_vjp(functools.partial(scan, m))(x)) * x


PROGRAMS: list[Function] = [
    scan, reversed_and_nested, unused_tangent, fori_loop, while_loop, while_by_value, cond, switch,
    jit, jit_of_scan, checkpoint, checkpoint_of_while, map_, vmap_of_scan, rule_in_loop_in_rule,
    backward_rule,
]  # fmt: skip


def total(program: Function, m: Any, x: Any) -> Any:
    """A number, by a rule that calls `jvp` of all of the program."""
    return np.sum(m.custom_jvp(lambda x: np.sum(program(m, x) * 0.5) * x)(x))


def slope(program: Function, x: np.ndarray, h: float = 1e-30) -> np.ndarray:
    """The gradient, by complex steps."""
    steps = [x + 1j * h * e for e in np.eye(len(x))]
    return np.array([total(program, PLAIN, s).imag / h for s in steps])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", PROGRAMS)
def test_rules_that_hold_loops_have_transposes(program: Function) -> None:
    f = functools.partial(total, program, FUNCGRAD)
    expected = slope(program, X)
    with fg.disable_jit():
        np.testing.assert_allclose(fg.grad(f)(X), expected, rtol=1e-12)
        np.testing.assert_allclose(fg.jvp(f, (X,), (V,))[1], expected @ V, rtol=1e-12)
        rows = fg.vmap(fg.grad(f))(np.stack([X, Y + 0.5]))
        np.testing.assert_allclose(rows, [expected, slope(program, Y + 0.5)], rtol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_second_derivatives_of_rules_that_hold_loops(program: Function) -> None:
    f = functools.partial(total, program, FUNCGRAD)
    h = 1e-5
    expected = (slope(program, X + h * V) - slope(program, X - h * V)) / (2 * h)
    with fg.disable_jit():
        moved = fg.jvp(fg.grad(f), (X,), (V,))[1]
        np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=1e-6)
        twice = fg.grad(lambda x: np.sum(fg.grad(f)(x) * V))(X)
        np.testing.assert_allclose(twice, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(p, marks=[] if p is reversed_and_nested else pytest.mark.nightly)
        for p in PROGRAMS
    ],
)
def test_compiled_rules_that_hold_loops(program: Function) -> None:
    f = functools.partial(total, program, FUNCGRAD)
    expected = slope(program, X)
    np.testing.assert_allclose(fg.jit(fg.grad(f))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(fg.grad(f)(X), expected, rtol=1e-12)


# Backward rules that compute values anew, in forward mode.


def test_backward_rules_that_hold_loops_can_be_pushed() -> None:
    def f(m: Any, x: Any) -> Any:
        def step(c: Any, a: Any) -> Any:
            return c * np.sin(a), c * a

        _, ys = m.scan(step, x[0] + 1.0, x)
        return np.sum(ys)

    ruled = fg.custom_vjp(functools.partial(f, FUNCGRAD))

    def backward(x: Any, ct: Any) -> Any:
        # Values and cotangents go through one loop, backward: c_k is the product of all before.
        starts = lax.scan(lambda c, a: (c * np.sin(a), c), x[0] + 1.0, x)[1]

        def back(s: Any, row: Any) -> Any:
            known, later = s
            a, c = row
            return (known + 1.0, ct * a + later * np.sin(a)), ct * c + later * c * np.cos(a)

        (_, first), slopes = lax.scan(back, (0.0, 0.0 * ct), (x, starts), reverse=True)
        return (slopes + first * np.array([1.0, 0.0, 0.0]),)

    ruled.defvjp(lambda x: (f(FUNCGRAD, x), x), backward)
    h = 1e-30
    expected = f(PLAIN, X + 1j * h * V).imag / h
    with fg.disable_jit():
        np.testing.assert_allclose(fg.jvp(ruled, (X,), (V,))[1], expected, rtol=1e-12)


# Functions that are linear in what they are given, and know other values.

LINEAR: dict[str, Function] = {
    "scan": lambda m, v: m.scan(
        lambda c, a: ((c[0] * 0.5, c[1] * c[0] + a), c[1] * np.sin(c[0])), (2.0, v[0]), v
    ),
    "while_loop": lambda m, v: m.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * s[0] + v, s[2] * 0.5), (np.int64(0), v, 2.0)
    )[1],
    "fori_loop": lambda m, v: m.fori_loop(
        0, 3, lambda i, c: (c[0] * 0.5, c[1] * c[0] + i * v), (2.0, v)
    )[1],
    "cond": lambda m, v: (lambda t: t[0] * t[1])(
        m.cond(True, lambda v: (2.0, v * 3), lambda v: (3.0, v), v)
    ),
    "jit": lambda m, v: (lambda t: t[0] * t[1])(m.jit(lambda v: (np.sin(2.0), v * 3))(v)),
    "checkpoint": lambda m, v: (lambda t: t[0] * t[1])(
        m.checkpoint(lambda v: (np.sin(2.0), v[::-1] * 3))(v)
    ),
}


def leaves_of(tree: Any) -> list[Any]:
    return [x for part in tree for x in leaves_of(part)] if type(tree) is tuple else [tree]


@pytest.mark.parametrize("name", LINEAR)
def test_linear_functions_that_know_other_values(name: str) -> None:
    f = LINEAR[name]
    columns = [np.concatenate([np.ravel(x) for x in leaves_of(f(PLAIN, e))]) for e in np.eye(3)]
    constant = np.concatenate([np.ravel(x) for x in leaves_of(f(PLAIN, np.zeros(3)))])
    with fg.disable_jit():
        out = f(FUNCGRAD, X)
        cts = fg.tree.map(lambda x: np.cos(x + 1.0), out)
        found = fg.linear_transpose(functools.partial(f, FUNCGRAD), X)(cts)[0]
    flat = np.concatenate([np.ravel(x) for x in leaves_of(cts)])
    np.testing.assert_allclose(found, [(c - constant) @ flat for c in columns], rtol=1e-12)


# What is not linear.

NONLINEAR: dict[str, Function] = {
    "scan": lambda t: lax.scan(lambda c, a: (c * a, c), 1.0 * t[0], t)[0],
    "scan of what is known first": lambda t: lax.scan(
        lambda c, a: ((c[0] + a, c[1] * c[0]), a), (0.0, 1.0), t
    )[0][1],
    "while_loop": lambda t: lax.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * s[1]), (0, t[0])
    )[1],
    "cond": lambda t: lax.cond(True, lambda t: t[0] * t[1], lambda t: t[0], t),
    "jit": lambda t: fg.jit(lambda t: t[0] * t[1])(t),
    "jit of scan": lambda t: fg.jit(lambda t: lax.scan(lambda c, a: (c * a, c), t[0], t)[0])(t),
    "checkpoint": lambda t: fg.checkpoint(lambda t: t[0] * t[1])(t),
    "vmap of scan": lambda t: fg.vmap(
        lambda a: lax.scan(lambda c, b: (c * b, c), a, t)[0]
    )(t)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", NONLINEAR)
def test_what_is_not_linear_inside_is_refused(name: str) -> None:
    f = NONLINEAR[name]
    ruled = fg.custom_jvp(lambda x: np.sum(x))
    ruled.defjvp(lambda primals, tangents: (np.sum(primals[0]), f(tangents[0])))
    said = r"the jvp rule of .* not linear in the tangents \(it applies mul to them\)"
    with fg.disable_jit():
        with pytest.raises(ArgumentError, match=said):
            fg.grad(ruled)(X)
        with pytest.raises(
            ArgumentError, match="linear in its arguments, and this one applies mul"
        ):
            fg.linear_transpose(f, X)


def test_loops_that_end_by_tangents_are_refused() -> None:
    def f(t: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 1.0, lambda s: s * 2.0, t)[0]

    ruled = fg.custom_jvp(lambda x: np.sum(x))
    ruled.defjvp(lambda primals, tangents: (np.sum(primals[0]), f(tangents[0])))
    with fg.disable_jit(), pytest.raises(ArgumentError, match="it applies while to them"):
        fg.grad(ruled)(X)


def test_values_made_of_tangents_inside_are_refused() -> None:
    ruled = fg.custom_jvp(lambda x: np.sum(x))
    both = fg.jit(lambda x, t: (np.sum(x) + t[0], np.sum(t)))
    ruled.defjvp(lambda primals, tangents: both(*primals, *tangents))
    with pytest.raises(ArgumentError, match="returned a value that depends on the tangents"):
        fg.grad(ruled)(X)


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit, fg.checkpoint])
def test_a_rule_may_apply_its_function_to_tangents(wrap: Any) -> None:
    """What is linear is its own derivative; nothing is told apart, and the rule ends."""

    @fg.custom_jvp
    def triple(x: Any) -> Any:
        return 3 * x

    triple.defjvp(lambda primals, tangents: (triple(primals[0]), triple(tangents[0])))
    x = np.arange(3.0)
    f = wrap(lambda x: (triple(x) ** 2).sum())
    np.testing.assert_array_equal(fg.grad(f)(x), 18 * x)
    np.testing.assert_array_equal(fg.hessian(f)(x), 18 * np.eye(3))
    np.testing.assert_array_equal(fg.jit(fg.vmap(fg.grad(f)))(x[None])[0], 18 * x)
