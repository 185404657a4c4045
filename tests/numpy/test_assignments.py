"""Programs that assign to elements of what they compute from their arguments, as NumPy does.

Nothing here calls `funcgrad.numpy`: arguments are names of values, which assignments bind anew.
Derivatives are compared with differences of NumPy's values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import ArgumentError

X = np.array([0.3, -0.8, 1.4, 0.6, -1.1])
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


@program
def element(x: Any) -> Any:
    y = 2 * x
    y[0] = 0
    y[2], y[3] = y[3], y[2]
    return y


@program
def slices(x: Any) -> Any:
    y = np.sin(x)
    y[1:3] += x[0]
    y[::2] *= y[-1]
    y[...] = y[::-1]
    return y


@program
def view_of_view(x: Any) -> Any:
    y = np.exp(x)
    w = y[1:][1:3]
    w[0] = 5 * x[0]
    w -= y[:2]
    return y


@program
def views_of_matrices(x: Any) -> Any:
    y = np.outer(x, x)
    y.T[0] = x
    y[:, 1] *= 2
    y[1][2] = 7
    np.diagonal(y).copy()
    y.reshape(-1)[3] = x[1]
    return y


@program
def aliases(x: Any) -> Any:
    y = x + 1
    z = y
    z += x
    a, b = y[:2], y[2:4]
    a[:] = b
    b += a
    return y


@program
def results_into(x: Any) -> Any:
    y = x * 1.5
    np.multiply(y, x, out=y)
    np.sin(x[1:3], out=y[1:3])
    np.copyto(y[3:], x[:2])
    return y


@program
def masks_and_lists(x: Any) -> Any:
    y = x * x
    y[x > 1] = 0
    y[[1, 3]] = x[2]
    np.add.at(y, [0, 0, 1], x[:3])
    np.put(y, [4], [x[0]])
    return y


@program
def methods(x: Any) -> Any:
    y = -x
    y.sort()
    z = np.where(x > 0, x, y)
    z.fill(3.0)
    z[1] = y[0]
    return y * z


@program
def recurrence(x: Any) -> Any:
    y = 2 * x
    for i in range(1, 5):
        y[i] = y[i - 1] * x[i] + y[i]
    return y


@program
def of_a_helper(x: Any) -> Any:
    return helper(x * x)


def helper(y: Any) -> Any:
    y[1:-1] = y[2:] - y[:-2]
    return y


@program
def argument_is_changed_inside(x: Any) -> Any:
    z, tail = x, x[1:]
    x += 1
    x *= x
    tail -= 0.5
    return x * z


def loss(function: Callable[[Any], Any], x: Any) -> Any:
    y = function(x)
    return (y * np.cos(np.arange(y.size).reshape(y.shape))).sum()


def slope(function: Callable[[Any], Any]) -> np.ndarray:
    h = 1e-6
    steps = h * np.eye(len(X))
    return np.array([loss(function, X + e) - loss(function, X - e) for e in steps]) / (2 * h)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_what_is_assigned(name: str) -> None:
    f = partial(loss, PROGRAMS[name])
    wanted, x = slope(PROGRAMS[name]), X.copy()
    close = partial(np.testing.assert_allclose, rtol=1e-7, atol=1e-8)
    close(fg.grad(f)(x), wanted)
    close([fg.jvp(f, (x,), (e,))[1] for e in np.eye(5)], wanted)
    close(fg.linearize(f, x)[1](np.ones(5)), wanted.sum())
    close(fg.vmap(fg.grad(f))(np.stack([x, 0.9 * x]))[0], wanted)
    close(fg.grad(lambda rows: fg.vmap(f)(rows).sum())(np.stack([x, x]))[1], wanted)
    close(fg.vmap(PROGRAMS[name])(np.stack([x, x]))[1], PROGRAMS[name](X.copy()))
    close(fg.jacfwd(f)(x), wanted)
    close(fg.grad(lambda x: lax.cond(x[0] > 0, f, lambda x: 0.0, x))(x), wanted)
    np.testing.assert_array_equal(x, X)


def test_compiled_derivatives() -> None:
    """All programs in one, which compiles faster."""

    def total(x: Any) -> Any:
        return sum(loss(f, x) for f in PROGRAMS.values())

    wanted, x = sum(map(slope, PROGRAMS.values())), X.copy()
    close = partial(np.testing.assert_allclose, rtol=1e-7, atol=1e-8)
    close(fg.jit(fg.grad(total))(x), wanted)
    close(fg.grad(fg.jit(total))(x), wanted)
    close(fg.jit(fg.vmap(fg.grad(fg.checkpoint(total))))(np.stack([x, x]))[1], wanted)
    np.testing.assert_array_equal(x, X)


N = np.arange(1.0, 6.0)
OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "product": lambda t: t * N,
    "reflected": lambda t: N * t,
    "matrix": lambda t: np.eye(5)[::-1] * t - 2.0 * t,
    "exponents": lambda t: N**t,
    "ufunc": lambda t: np.hypot(t, N) + np.arctan2(N, t),
    "of another dtype": lambda t: np.arange(5) * t,
    "function": lambda t: np.exp(-t * N),
    "result of a ufunc": lambda t: np.multiply(N, t) - t,
}
"""New arrays of a traced number and arrays of NumPy."""


def assigned_from(make: Callable[[Any], Any], t: Any) -> Any:
    y = make(t)
    view = y[1:3]
    y[0] = t
    view *= y[2:4]
    y[4] -= t * y[0]
    return (np.sin(y) * np.cos(np.arange(y.size).reshape(y.shape))).sum()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_what_numbers_and_arrays_give_is_assigned_to(name: str) -> None:
    f, t, h = partial(assigned_from, OF_NUMBERS[name]), 0.7, 1e-5
    wanted, wanted2 = (f(t + h) - f(t - h)) / (2 * h), (f(t + h) - 2 * f(t) + f(t - h)) / h**2
    close = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-6)
    close(fg.jit(f)(t), f(t))
    for first in (fg.grad(f), fg.jit(fg.grad(f)), fg.grad(fg.jit(f)), fg.grad(fg.checkpoint(f))):
        close(first(t), wanted)
    close(fg.vmap(fg.grad(f))(np.array([t, 0.2]))[0], wanted)
    close(fg.jvp(f, (t,), (1.0,))[1], wanted)
    for second in (fg.grad(fg.grad(f)), fg.jacfwd(fg.grad(f)), fg.jit(fg.jacfwd(fg.jacfwd(f)))):
        np.testing.assert_allclose(second(t), wanted2, rtol=1e-4, atol=1e-4)
    looped = fg.grad(lambda t: lax.scan(lambda c, _: (c + f(t), None), 0.0, None, length=2)[0])
    close(looped(t), 2 * wanted)
    close(fg.experimental.jet.jet(f, (t,), ([1.0],))[1][0], wanted)
    np.testing.assert_array_equal(N, np.arange(1.0, 6.0))


def test_linear_functions_of_numbers_assign() -> None:
    def spread(t: Any) -> Any:
        y = t * N
        y[0] = 3.0 * t
        return y

    (pulled,) = fg.linear_transpose(spread, 1.0)(np.ones(5))
    assert pulled == 17.0
    empty = fg.jit(fg.grad(lambda t: (t * np.ones(0)).sum() + t))(2.0)
    assert empty == 1.0


class Model:
    """Methods that assign, found through their object."""

    def change(self, y: Any) -> Any:
        y[0] = 1.0
        return y

    def loss(self, x: Any) -> Any:
        return self.change(2 * x).sum()


class Argument:
    """An argument whose methods assign, which no name of the function leads to."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def first_is(self, value: Any) -> Any:
        y = self.x * 2
        y[0] = value
        return y.sum()


fg.tree_util.register_pytree_node(Argument, lambda a: ((a.x,), None), lambda _, xs: Argument(*xs))


@pytest.mark.parametrize(
    "function",
    [
        Model().loss,
        partial(Model.loss, Model()),
        lambda x: fg.jit(Model().loss)(x),
        lambda x: getattr(Model(), "lo" + "ss")(x),
        lambda x: Argument(x).first_is(1.0),
        lambda x: {"change": Model().change}["change"](2 * x).sum(),
        lambda x: eval("m.change(2 * x).sum()", {"m": Model(), "x": x}),
    ],
)
def test_functions_that_assign_are_reached_in_any_way(function: Any) -> None:
    np.testing.assert_array_equal(fg.grad(function)(X), [0, 2, 2, 2, 2])
    np.testing.assert_array_equal(fg.vmap(fg.jit(fg.grad(function)))(X[None])[0], [0, 2, 2, 2, 2])


def test_methods_of_arguments_assign() -> None:
    slopes = fg.grad(lambda a: a.first_is(1.0))(Argument(X)).x
    np.testing.assert_array_equal(slopes, [0, 2, 2, 2, 2])


def sums_of_numbers(x: Any) -> Any:
    total = 0.0
    n = 0
    while n < 3:
        total += np.sum(x) * n
        n += 1
    y = 2 * x
    y += x
    return total / 2 * y


def kept_in_a_list(x: Any) -> Any:
    total, kept = 0.0, []
    for _ in range(3):
        total += x
        kept.append(total)
    return kept[0]


def of_two_values(x: Any) -> Any:
    y = x if len(x) else 2 * x
    y += 1
    return x * y


def of_two_names(x: Any) -> Any:
    y = z = 2 * x
    y += 1
    return y * z


def read_later(x: Any) -> Any:
    y = 2 * x
    z = y[1:]
    y += 1
    return z


def test_sums_change_with_all_their_names() -> None:
    for function in (sums_of_numbers, kept_in_a_list, of_two_values, of_two_names, read_later):
        found = fg.jacobian(lambda x, f=function: f(x.copy()))(X)
        steps = 1e-6 * np.eye(5)
        wanted = [(function(X + e) - function(X - e)) / 2e-6 for e in steps]
        np.testing.assert_allclose(found, np.stack(wanted, 1), rtol=1e-7, atol=1e-8)


def test_steps_of_loops_assign() -> None:
    def step(u: Any, _: Any) -> Any:
        v = 2 * u
        v[0] = u[1]
        return v, v.sum()

    found = lax.scan(step, X, None, length=2)[0]
    np.testing.assert_allclose(found, [2 * X[1], *(4 * X[1:])])


def heat(u: Any) -> Any:
    u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


@pytest.mark.parametrize("transform", [fg.jit, fg.jacobian, lambda f: fg.vmap(f, in_axes=None)])
def test_an_argument_is_not_changed_unless_it_is_given_away(transform: Any) -> None:
    x = X.copy()
    if transform is not fg.jit:
        transform = partial(lambda t, f: lambda x: t(f)(np.stack([x, x])), fg.vmap)
    with pytest.raises(ArgumentError, match="it is an argument, or a part of one") as info:
        transform(heat)(x)
    assert "x = x.copy()" in str(info.value)
    assert "u[1:-1] += 0.1" in str(info.value)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(fg.jit(heat, donate_argnums=0)(x), heat(X.copy()))
