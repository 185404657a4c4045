"""Custom rules at every nesting of the transformations, against closed forms.

Every function here is the sine with a derivative that is not its own, so that a transformation
that lost the rule would be noticed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad import lax

X = 0.7
XS = np.linspace(0.1, 1.0, 4)
Function = Callable[..., Any]


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def jvp_rule() -> Function:
    @fg.custom_jvp
    def sine(x: Any) -> Any:
        return np.sin(x)

    @sine.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return sine(x), 2 * np.cos(x) * t

    return sine


def vjp_rule() -> Function:
    @fg.custom_vjp
    def sine(x: Any) -> Any:
        return np.sin(x)

    sine.defvjp(lambda x: (sine(x), np.cos(x)), lambda cos, ct: (2 * cos * ct,))
    return sine


def both_rules() -> Function:
    sine = vjp_rule()
    sine.defjvp(lambda primals, tangents: (sine(*primals), 2 * np.cos(primals[0]) * tangents[0]))
    return sine


def compiled_jvp_rule() -> Function:
    @fg.custom_jvp
    @fg.jit
    def sine(x: Any) -> Any:
        return np.sin(x)

    sine.defjvp(fg.jit(lambda ps, ts: (sine(*ps), 2 * np.cos(ps[0]) * ts[0])))
    return sine


def compiled_vjp_rule() -> Function:
    sine = fg.custom_vjp(fg.jit(np.sin))
    forward = fg.jit(lambda x: (sine(x), np.cos(x)))
    sine.defvjp(forward, fg.jit(lambda cos, ct: (2 * cos * ct,)))
    return sine


def pullback_as_residual() -> Function:
    sine = fg.custom_vjp(np.sin)
    forward = lambda x: (sine(x), fg.vjp(np.sin, x)[1])  # noqa: E731
    sine.defvjp(forward, lambda pull, ct: (2 * pull(ct)[0],))
    return sine


MAKERS = [
    jvp_rule,
    vjp_rule,
    both_rules,
    compiled_jvp_rule,
    compiled_vjp_rule,
    pullback_as_residual,
]


def forward(f: Function) -> Function:
    return lambda x: fg.jvp(f, (x,), (np.ones_like(x),))[1]


def linearized(f: Function) -> Function:
    return lambda x: fg.linearize(f, x)[1](np.ones_like(x))


MODES = [fg.grad, forward, fg.jacfwd, fg.jacrev, linearized]
every_rule = pytest.mark.parametrize("make", MAKERS)
every_mode = pytest.mark.parametrize("mode", MODES)
jitted_or_not = pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "jit"])


@pytest.mark.sampled(12)
@every_rule
@every_mode
@jitted_or_not
def test_first_order(make: Function, mode: Function, wrap: Function) -> None:
    f = make()
    close(wrap(f)(X), np.sin(X))
    close(wrap(mode(f))(X), 2 * np.cos(X))
    close(wrap(mode(fg.jit(f)))(X), 2 * np.cos(X))
    close(wrap(fg.vmap(mode(f)))(XS), 2 * np.cos(XS))
    close(wrap(fg.vmap(f))(XS), np.sin(XS))
    close(wrap(fg.grad(lambda x: fg.vmap(f)(x).sum()))(XS), 2 * np.cos(XS))


@pytest.mark.sampled(24)
@every_rule
@every_mode
@pytest.mark.parametrize("inner", MODES)
@jitted_or_not
def test_second_order(make: Function, mode: Function, inner: Function, wrap: Function) -> None:
    f = make()
    close(wrap(mode(inner(f)))(X), -2 * np.sin(X))
    close(wrap(mode(fg.jit(inner(f))))(X), -2 * np.sin(X))
    close(wrap(fg.vmap(mode(inner(f))))(XS), -2 * np.sin(XS))
    close(wrap(fg.grad(lambda x: fg.vmap(inner(f))(x).sum()))(XS), -2 * np.sin(XS))


@pytest.mark.sampled(2)
@every_rule
def test_third_order_and_dense(make: Function) -> None:
    f = make()
    close(fg.grad(fg.grad(fg.grad(f)))(X), -2 * np.cos(X))
    expected = np.einsum("i,ij,jk->ijk", -2 * np.sin(XS), np.eye(4), np.eye(4))
    close(fg.jacfwd(fg.jacrev(f))(XS), expected)
    close(fg.jacrev(fg.jacfwd(f))(XS), expected)
    close(fg.hessian(lambda x: f(x).sum())(XS), np.diag(-2 * np.sin(XS)))


def repeated(x: float) -> tuple[float, float, float]:
    """Three steps of the function: value, first and second derivative by the rule."""
    value, first, second = x, 1.0, 0.0
    for _ in range(3):
        sin, cos = np.sin(value), np.cos(value)
        value, first, second = sin, 2 * cos * first, 2 * cos * second - 2 * sin * first**2
    return value, first, second


@pytest.mark.sampled(16)
@every_rule
@pytest.mark.parametrize("mode", [fg.grad, forward])
@pytest.mark.parametrize("inner", [fg.grad, fg.jacfwd])
@jitted_or_not
def test_in_the_body_of_a_scan(
    make: Function, mode: Function, inner: Function, wrap: Function
) -> None:
    f = make()

    def loop(x: Any) -> Any:
        return lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]

    firsts, seconds = ([repeated(x)[k] for x in XS] for k in (1, 2))
    close(wrap(loop)(X), repeated(X)[0])
    close(wrap(inner(loop))(X), repeated(X)[1])
    close(wrap(mode(inner(loop)))(X), repeated(X)[2])
    close(wrap(fg.vmap(inner(loop)))(XS), firsts)
    close(wrap(fg.vmap(mode(inner(loop))))(XS), seconds)


@pytest.mark.sampled(2)
@every_rule
@jitted_or_not
def test_in_branches_and_open_loops(make: Function, wrap: Function) -> None:
    f = make()
    branch = lambda x: lax.cond(x > 0.5, f, lambda x: 3 * x, x)  # noqa: E731
    close(wrap(fg.grad(branch))(X), 2 * np.cos(X))
    close(wrap(fg.vmap(fg.grad(branch)))(XS), np.where(XS > 0.5, 2 * np.cos(XS), 3))
    loop = lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]  # noqa: E731
    close(wrap(forward(loop))(X), repeated(X)[1])


OPERATIONS = st.lists(st.sampled_from(["grad", "jvp", "jit", "vmap"]), max_size=5)


@given(st.sampled_from(MAKERS), OPERATIONS)
def test_any_tower_of_transformations(make: Function, tower: list[str]) -> None:
    f, order, axes = make(), 0, 0
    g: Function = f
    for name in tower:
        if name == "jit":
            g = fg.jit(g)
        elif name == "vmap":
            g, axes = fg.vmap(g), axes + 1
        else:
            if axes:
                g = functools.partial(lambda g, x: g(x).sum() if np.ndim(x) else g(x), g)
            slope = fg.grad if name == "grad" or axes else forward
            g, order = slope(g), order + 1
    x = np.linspace(0.1, 1.0, 2**axes).reshape((2,) * axes)
    waves = [np.sin, lambda v: 2 * np.cos(v), lambda v: -2 * np.sin(v), lambda v: -2 * np.cos(v)]
    phase = order if order < 2 else 2 + (order - 2) % 4
    sign = [1, 1, 1, 1, -1, -1][phase]
    close(g(x), sign * waves[[0, 1, 2, 3, 2, 3][phase]](x))


# Values that functions and rules close over.


def scaled_by_jvp(a: Any, x: Any) -> Any:
    @fg.custom_jvp
    def f(x: Any) -> Any:
        return np.sin(a) * x**2

    f.defjvp(lambda ps, ts: (f(*ps), 3 * np.sin(a) * ps[0] * ts[0]))
    return f(x)


def scaled_by_vjp(a: Any, x: Any) -> Any:
    @fg.custom_vjp
    def f(x: Any) -> Any:
        return np.sin(a) * x**2

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (3 * np.sin(a) * x * ct,))
    return f(x)


def scaled_by_compiled_vjp(a: Any, x: Any) -> Any:
    @fg.custom_vjp
    @fg.jit
    def f(x: Any) -> Any:
        return np.sin(a) * x**2

    f.defvjp(fg.jit(lambda x: (f(x), x)), fg.jit(lambda x, ct: (3 * np.sin(a) * x * ct,)))
    return f(x)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("f", [scaled_by_jvp, scaled_by_vjp, scaled_by_compiled_vjp])
@jitted_or_not
def test_closed_over_values(f: Function, wrap: Function) -> None:
    a = 0.3
    close(wrap(fg.grad(f, 1))(a, X), 3 * np.sin(a) * X)
    close(wrap(fg.grad(f, 0))(a, X), np.cos(a) * X**2)
    close(wrap(fg.grad(fg.grad(f, 1), 0))(a, X), 3 * np.cos(a) * X)
    close(wrap(fg.jacfwd(fg.jacfwd(f, 1), 0))(a, X), 3 * np.cos(a) * X)
    close(wrap(fg.jacfwd(fg.grad(f, 0), 1))(a, X), 2 * np.cos(a) * X)
    close(wrap(fg.vmap(fg.grad(f, 1), (0, None)))(XS, X), 3 * np.sin(XS) * X)
    total = lambda a: fg.vmap(fg.grad(lambda x: f(a, x)))(XS).sum()  # noqa: E731
    close(wrap(fg.grad(total))(a), 3 * np.cos(a) * XS.sum())
    loop = lambda a, xs: lax.scan(lambda c, x: (c + f(a, x), None), 0.0, xs)[0]  # noqa: E731
    close(wrap(fg.grad(loop))(a, XS), np.cos(a) * (XS**2).sum())
    close(wrap(fg.grad(loop, 1))(a, XS), 3 * np.sin(a) * XS)


@jitted_or_not
def test_methods_close_over_their_object(wrap: Function) -> None:
    class Layer:
        def __init__(self, weight: Any) -> None:
            self.weight = weight

        @functools.partial(fg.custom_vjp, nondiff_argnums=(0,))
        def call(self, x: Any) -> Any:
            return self.weight * x

        def forward(self, x: Any) -> Any:
            return self.call(x), x

        def backward(self, x: Any, ct: Any) -> Any:
            return (5 * self.weight * ct,)

        call.defvjp(forward, backward)

    close(wrap(fg.grad(lambda x: Layer(2.0).call(x)))(X), 10)
    close(wrap(fg.grad(lambda w: Layer(w).call(X)))(2.0), X)
    close(wrap(fg.grad(lambda w: fg.grad(Layer(w).call)(X)))(2.0), 5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", [fg.grad, forward])
@jitted_or_not
def test_rules_may_hold_loops_and_branches(mode: Function, wrap: Function) -> None:
    def thrice(x: Any, t: Any) -> Any:
        return lax.scan(lambda c, _: (c + t * x * x, None), 0 * t, None, length=3)[0]

    cube = fg.custom_jvp(lambda x: x**3)
    cube.defjvp(lambda ps, ts: (cube(*ps), thrice(ps[0], ts[0])))
    other = fg.custom_vjp(lambda x: x**3)
    other.defvjp(lambda x: (x**3, x), lambda x, ct: (thrice(x, ct),))
    for f in (cube, other):
        close(wrap(mode(f))(X), 3 * X**2)
        close(wrap(fg.vmap(fg.grad(mode(f))))(XS), 6 * XS)
    sign = lambda x, t: lax.cond(x > 0, lambda t: t, lambda t: -t, t)  # noqa: E731
    size = fg.custom_vjp(abs)
    size.defvjp(lambda x: (size(x), x), lambda x, ct: (sign(x, ct),))
    close(wrap(mode(size))(-X), -1)
    close(wrap(fg.vmap(mode(size)))(XS - 0.5), np.sign(XS - 0.5))
