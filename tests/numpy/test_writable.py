"""Arrays made inside of transformations: indexed by traced integers, and assigned to.

Every program runs twice, on the same code: with NumPy, where item assignment and views are the
reference, and with `funcgrad.numpy` under every transformation.
"""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors, lax, nn, optim
from funcgrad import random as random_

X = np.array([0.5, -1.25, 2.0, 0.75, -0.5, 1.5])


def slopes(function: Callable[[Any], Any], x: Any) -> Any:
    h = 1e-5
    columns = [(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    return np.stack(columns, -1)


# Programs of NumPy: `np_` is NumPy or funcgrad.numpy, `x` six numbers.


def filled(np_: Any, x: Any) -> Any:
    y = np_.zeros(6)
    y[0] = x[0] * 2
    y[1:] += x[:5]
    y[-1] *= x[2]
    y[::2] -= 1.0
    return y


def row_by_row(np_: Any, x: Any) -> Any:
    m = np_.zeros((2, 3))
    row = m[0]
    row[:] = 1
    row[1:] *= x[1:3]
    for i in range(3):
        m[1, i] = x[i] ** 2
    return m


def through_views(np_: Any, x: Any) -> Any:
    m = np_.ones((2, 3))
    m.T[2] = x[:2]
    m.reshape(-1)[1] += x[3]
    np_.swapaxes(m, 0, 1)[0, 1] = x[4] * x[5]
    m[::-1, None][0, 0, 1:] *= x[0]
    np_.split(m, 3, axis=1)[1][...] -= x[1]
    return m


def through_what_may_be_itself(np_: Any, x: Any) -> Any:
    m = np_.ones(6)
    np_.real(m)[0] = x[0]
    np_.asarray(m)[1] = x[1]
    m[2], m[3] = np.nan, x[3]
    np_.nan_to_num(m, copy=False, nan=3.0)[4] = x[4]
    np_.nan_to_num(m)[5] = x[5]
    return m


def copies_are_apart(np_: Any, x: Any) -> Any:
    m = np_.arange(6.0)
    c = m.copy()
    f = m[[0, 1, 2]]
    t = np_.reshape(m, (2, 3)).T.ravel()
    c[0], f[1], t[2] = x[0], x[1], x[2]
    m[0] = x[3]
    return np_.concatenate([m, c, f, t])


def by_masks_and_lists(np_: Any, x: Any) -> Any:
    y = np_.linspace(0.0, 1.0, 6)
    y[[0, 2, 2]] += x[:3]
    y[np.array([False, True, False, False, True, True])] = x[3:]
    y[y > 10.0] = 0.0
    y[1:3][...] = y[:2] * 2
    return y


def operators_that_assign(np_: Any, x: Any) -> Any:
    y = np_.full((2, 3), 2.0)
    z = y
    y += x[:3]
    y *= 2
    y /= x[3]
    y -= y[0]
    z[0] **= 2
    z[1] += y[1] * x[1]
    return y


def results_can_be_assigned_to(np_: Any, x: Any) -> Any:
    y = np_.exp(np_.arange(4.0) * 0.1) * x[0]
    y[1] = x[1]
    z = np_.sin(x)
    z[2] = y[1] * 3
    w = np_.stack([y[:2], z[:2]])
    w[:, 1] = 0
    return np_.concatenate([y, z, w.ravel()])


def from_arguments(np_: Any, x: Any) -> Any:
    y = np.zeros_like(x)
    y[2:4] = x[2:4] * 2
    z = np.copy(x)
    z[0] = 0.0
    w = x.copy()
    w[1] = y[2]
    return y + z * w


def numpys_functions_in_place(np_: Any, x: Any) -> Any:
    y = np_.zeros((2, 3))
    np.copyto(y, x[:3])
    np.put(y, [0, 4], x[3:5])
    np.fill_diagonal(y, x[5])
    np.add.at(y, (np.array([0, 0]), np.array([1, 1])), x[:2])
    np.multiply(y, x[0], out=y)
    np.add(y[0], 1.0, out=y[1])
    np.putmask(y, np.array([[True, False, False], [False, False, True]]), x[1])
    y.sort(axis=0)
    y[0].fill(x[2])
    return y


def stencil(np_: Any, x: Any) -> Any:
    u = np_.array(x)
    for _ in range(3):
        new = u.copy()
        new[1:-1] = (u[:-2] + u[2:]) / 2
        u = new
    return u


def swapped(np_: Any, x: Any) -> Any:
    y = np_.array([x[0], x[1], 3.0])
    y[0], y[1] = y[1], y[0]
    y[1:] = y[:-1]
    return y


def of_no_axes(np_: Any, x: Any) -> Any:
    total = np_.zeros(())
    for i in range(3):
        total += x[i] * i
    total[()] = total * 2
    return total * x


def empty_and_single(np_: Any, x: Any) -> Any:
    y = np_.zeros((1, 0, 2))
    y[0] = 1.0
    y[..., 0] += x[:0]
    z = np_.zeros(1)
    z[-1:] = x[0]
    return np_.concatenate([y.ravel(), z])


PROGRAMS = {
    f.__name__: f
    for f in (
        filled, row_by_row, through_views, through_what_may_be_itself, copies_are_apart,
        by_masks_and_lists,
        operators_that_assign, results_can_be_assigned_to, from_arguments,
        numpys_functions_in_place, stencil, swapped, of_no_axes, empty_and_single,
    )
}  # fmt: skip
TRANSFORMED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "jit": lambda f: fg.jit(f),
    "vmap": lambda f: lambda x: fg.vmap(f)(np.stack([x, x * 2]))[0],
    "jvp": lambda f: lambda x: fg.jvp(f, (x,), (x,))[0],
    "vjp": lambda f: lambda x: fg.vjp(f, x)[0],
    "linearize": lambda f: lambda x: fg.linearize(f, x)[0],
    "checkpoint": lambda f: fg.checkpoint(f),
    "vmap of vjp": lambda f: lambda x: fg.vmap(lambda v: fg.vjp(f, v)[0])(x[None])[0],
    "map": lambda f: lambda x: lax.map(f, x[None])[0],
    "custom_jvp": lambda f: lambda x: custom(f)(x),
}


def custom(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    g = fg.custom_jvp(lambda x: f(x))
    g.defjvp(lambda primals, tangents: fg.jvp(f, primals, tangents))
    return g


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_numpys(name: str) -> None:
    expected = PROGRAMS[name](np, X)

    def function(x: Any) -> Any:
        return PROGRAMS[name](fnp, x)

    for kind, transform in TRANSFORMED.items():
        got = transform(function)(X)
        assert type(got) in (np.ndarray, np.float64), kind
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13, err_msg=kind)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_programs(name: str) -> None:
    expected = slopes(lambda x: PROGRAMS[name](np, x), X)

    def function(x: Any) -> Any:
        return PROGRAMS[name](fnp, x)

    for jacobian in (fg.jacrev, fg.jacfwd):
        np.testing.assert_allclose(jacobian(function)(X), expected, rtol=1e-7, atol=1e-7)
    second = fg.jacfwd(fg.jacrev(function))(X)
    by_differences = slopes(fg.jacrev(function), X)
    np.testing.assert_allclose(second, by_differences, rtol=1e-6, atol=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_derivatives_of_programs(name: str) -> None:
    expected = slopes(lambda x: PROGRAMS[name](np, x), X)
    got = fg.jit(fg.jacrev(lambda x: PROGRAMS[name](fnp, x)))(X)
    np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-7)


# Random programs of assignments and views.


def random_index(rng: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    index: list[Any] = []
    for n in shape:
        kind = rng.random()
        if kind < 0.3 and n:
            index.append(rng.randrange(-n, n))
        elif kind < 0.6:
            index.append(slice(rng.randrange(-1, n + 1), rng.randrange(0, n + 2)))
        elif kind < 0.75:
            index.append(slice(None, None, rng.choice([-1, 2, -2])))
        elif kind < 0.85:
            index.append(Ellipsis)
            break
        else:
            index.append(slice(None))
        if rng.random() < 0.1:
            index.append(None)
    return tuple(index)


def random_shape(rng: random.Random, size: int) -> tuple[int, ...]:
    for _ in range(10):
        shape = tuple(rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randrange(1, 4)))
        if np.prod(shape) == size:
            return shape
    return (size,)


MOVES = ("index", "reshape", "T", "ravel", "swapaxes", "expand_dims", "copy", "flip", "list")
ASSIGNMENTS = ("=", "+=", "*=", "whole +=", "view +=", "other", "list")


def random_program(seed: int, length: int = 12) -> list[tuple[Any, ...]]:
    """Instructions, made while they run with NumPy, where the shapes are known."""
    rng = random.Random(seed)
    program: list[tuple[Any, ...]] = [("new", (12,)), ("new", (2, 3, 2))]
    arrays: list[Any] = []
    for step in program:
        execute(step, np, arrays, X)
    for _ in range(length):
        k = rng.randrange(len(arrays))
        a = arrays[k]
        step: tuple[Any, ...]
        if rng.random() < 0.4:
            move = rng.choice(MOVES)
            extra: Any = None
            if move == "index":
                extra = random_index(rng, a.shape)
                if not np.ndim(a[extra]) or not isinstance(a[extra], np.ndarray):
                    continue
            elif move == "reshape":
                extra = random_shape(rng, a.size)
            elif move == "list" and (not a.ndim or not a.shape[0]):
                continue
            elif move == "list":
                extra = [rng.randrange(a.shape[0]) for _ in range(2)]
            elif move == "swapaxes" and a.ndim < 2:
                continue
            step = ("move", k, move, extra)
        else:
            how = rng.choice(ASSIGNMENTS)
            index = random_index(rng, a.shape)
            if how == "list":
                if not a.shape[0]:
                    continue
                index = (rng.sample(range(a.shape[0]), min(2, a.shape[0])),)
            step = ("assign", k, how, index, rng.randrange(6), rng.randrange(len(arrays)))
        execute(step, np, arrays, X)
        program.append(step)
    return program


def execute(step: tuple[Any, ...], np_: Any, arrays: list[Any], x: Any) -> None:
    if step[0] == "new":
        arrays.append((np_.arange(12.0) / 10).reshape(step[1]))
        return
    a = arrays[step[1]]
    if step[0] == "move":
        _, _, move, extra = step
        made = {
            "index": lambda: a[extra],
            "reshape": lambda: np_.reshape(a, extra),
            "T": lambda: a.T,
            "ravel": lambda: a.ravel(),
            "swapaxes": lambda: np_.swapaxes(a, 0, -1),
            "expand_dims": lambda: np_.expand_dims(a, 0),
            "copy": lambda: a.copy(),
            "flip": lambda: np_.flip(a),
            "list": lambda: a[extra].copy(),
        }
        arrays.append(made[move]())
        return
    _, _, how, index, i, other = step
    value = x[i] * 0.5 + np_.sum(arrays[other]) * 0.01
    if how in ("=", "list"):
        a[index] = value
    elif how == "+=":
        a[index] += value
    elif how == "*=":
        a[index] *= value
    elif how == "view +=":
        view = a[index]
        if np.ndim(view):
            view += value
    elif how == "whole +=":
        a += value
    else:
        a[index] = (a[index] + a[index] * value) * 0.5


def run(program: list[tuple[Any, ...]], np_: Any, x: Any) -> Any:
    arrays: list[Any] = []
    for step in program:
        execute(step, np_, arrays, x)
    return np_.concatenate([a.ravel() for a in arrays])


@given(st.integers(0, 10**9))
def test_random_programs(seed: int) -> None:
    program = random_program(seed)
    expected = run(program, np, X)
    value, pullback = fg.vjp(lambda x: run(program, fnp, x), X)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
    weights = np.cos(np.arange(expected.size))
    slope = slopes(lambda x: run(program, np, x) @ weights, X)
    np.testing.assert_allclose(pullback(weights)[0], slope, rtol=1e-6, atol=1e-6)
    got = fg.vmap(lambda x: run(program, fnp, x))(np.stack([X, -X]))
    np.testing.assert_allclose(got[1], run(program, np, -X), rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(s, marks=pytest.mark.nightly) for s in range(3, 60))]
)
def test_random_programs_compiled(seed: int) -> None:
    program = random_program(seed)
    weights = np.cos(np.arange(run(program, np, X).size))

    def weighted(x: Any) -> Any:
        return run(program, fnp, x) @ weights

    got, gradient = fg.jit(fg.value_and_grad(weighted))(X)
    np.testing.assert_allclose(got, run(program, np, X) @ weights, rtol=1e-12)
    slope = slopes(lambda x: run(program, np, x) @ weights, X)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6)


# Constants that know of traced integers.

TABLE = np.array([3.0, 1.0, 2.0, 5.0])
LOOKUPS: dict[str, tuple[Callable[[Any], Any], Callable[[int], Any]]] = {
    "asarray": (lambda i: fnp.asarray(TABLE)[i], lambda i: TABLE[i]),
    "array of a list": (lambda i: fnp.array([1.0, 2.0, 4.0, 8.0])[i], lambda i: 2.0**i),
    "results": (lambda i: fnp.cumsum(TABLE)[i], lambda i: np.cumsum(TABLE)[i]),
    "results of results": (lambda i: (fnp.exp(TABLE) * 2)[i], lambda i: np.exp(TABLE[i]) * 2),
    "rows": (lambda i: fnp.eye(4)[i], lambda i: np.eye(4)[i]),
    "arange": (lambda i: fnp.arange(4)[::-1][i], lambda i: 3 - i),
    "several": (lambda i: fnp.split(TABLE, 2)[1][i // 2], lambda i: TABLE[2 + i // 2]),
    "set": (lambda i: fnp.zeros(4).at[i].set(1.0), lambda i: np.eye(4)[i]),
    "set twice": (
        lambda i: fnp.zeros(4).at[0].set(2.0).at[i].add(1.0),
        lambda i: (np.arange(4) == 0) * 2.0 + np.eye(4)[i],
    ),
    "set and looked up": (
        lambda i: fnp.at(TABLE)[0].set(7.0)[i], lambda i: 7.0 if i == 0 else TABLE[i]
    ),
    "at": (lambda i: fnp.at(TABLE)[i].set(0.0), lambda i: TABLE * (np.arange(4) != i)),
    "numpy's functions": (lambda i: np.sqrt(fnp.ones(4) * 4)[i], lambda i: 2.0),
    "numpy's other functions": (lambda i: np.flip(fnp.asarray(TABLE))[i], lambda i: TABLE[3 - i]),
    "assigned": (lambda i: assigned_at(i), lambda i: np.eye(4)[i] * 3),
    "a row of zeros": (lambda i: row_assigned(i), lambda i: np.outer(np.eye(4)[i], np.ones(2))),
}  # fmt: skip


def assigned_at(i: Any) -> Any:
    y = fnp.zeros(4)
    y[i] = 1.0
    y[i] += 2.0
    return y


def row_assigned(i: Any) -> Any:
    y = fnp.zeros((4, 2))
    row = y[i]
    row[0] = 1.0
    row[1:] += 1.0
    return y


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LOOKUPS)
def test_constants_are_indexed_by_traced_integers(name: str) -> None:
    function, reference = LOOKUPS[name]
    expected = np.stack([np.asarray(reference(i)) for i in range(4)])
    np.testing.assert_allclose(fg.vmap(function)(np.arange(4)), expected)
    np.testing.assert_allclose(fg.jit(function)(2), expected[2])
    x = np.float64(2.0)
    slope = fg.grad(lambda s: fg.vmap(lambda i: function(i) * s)(np.arange(4)).sum())(x)
    np.testing.assert_allclose(slope, expected.sum())


def test_outside_of_transformations_everything_is_numpys() -> None:
    for made in (fnp.zeros(3), fnp.asarray(TABLE), fnp.exp(TABLE), fnp.reshape(TABLE, (2, 2))):
        assert type(made) is np.ndarray
    assert fnp.asarray(TABLE) is TABLE


def test_what_leaves_is_numpys() -> None:
    def many(x: Any) -> Any:
        y = fnp.zeros(2)
        return {"array": y, "view": y[1:], "list": [fnp.ones(1)], "traced": fnp.array([x, x])}

    for result in (
        fg.jit(many)(1.0),
        fg.vjp(many, 1.0)[0],
        fg.jvp(many, (1.0,), (1.0,))[0],
        fg.vmap(many)(np.ones(2)),
        fg.linearize(many, 1.0)[0],
        fg.checkpoint(many)(1.0),
        fg.grad(lambda x: (x, many(x)), has_aux=True)(1.0)[1],
        lax.cond(True, many, many, 1.0),
        lax.scan(lambda c, x: (c, many(x)), 0.0, np.ones(2))[1],
    ):
        for leaf in fg.tree.leaves(result):
            assert type(leaf) is np.ndarray


def test_a_closed_over_table_is_not_changed() -> None:
    table = TABLE.copy()
    c = fg.vmap(lambda x: (fnp.array(table).at[0].set(x), fnp.asarray(table) * x))(np.ones(2))
    assert c[0].shape == (2, 4)
    fg.grad(lambda x: fnp.sum(changed_copy(table) * x))(1.0)
    np.testing.assert_array_equal(table, TABLE)


def changed_copy(table: Any) -> Any:
    y = fnp.array(table)
    y[0] = 7.0
    y.sort()
    y.fill(1.0)
    return y


# Loops and branches carry them.


def test_loops_and_branches() -> None:
    def counted(x: Any) -> Any:
        y = fnp.zeros(6)
        y[0] = 1.0

        def body(i: Any, carry: Any) -> Any:
            mine = carry.copy()
            mine[i] = mine[i - 1] * fnp.asarray(x)[i]
            return mine

        return lax.fori_loop(1, 6, body, y)

    def scanned(x: Any) -> Any:
        def step(carry: Any, v: Any) -> Any:
            window = fnp.concatenate([carry[1:], carry[:1]])
            window[-1] = v
            window[0] *= 2
            return window, window[0]

        return lax.scan(step, fnp.ones(2), x)[1]

    def branched(x: Any) -> Any:
        def one(y: Any) -> Any:
            z = fnp.zeros(6)
            z[1:] = y[1:]
            return z

        return lax.cond(x[0] > 0, one, lambda y: y, fnp.ones(6) * x)

    def repeated(x: Any) -> Any:
        state = (fnp.arange(6.0), 0)

        def body(carry: Any) -> Any:
            y = fnp.array(carry[0])
            y[carry[1]] += fnp.asarray(x)[carry[1]]
            return y, carry[1] + 1

        return lax.while_loop(lambda c: c[1] < 4, body, state)[0]

    powers = np.cumprod(np.concatenate([[1.0], X[1:]]))
    ring = []
    carry = np.ones(2)
    for v in X:
        carry = np.array([carry[1] * 2, v])
        ring.append(carry[0])
    for function, expected in (
        (counted, powers),
        (scanned, np.array(ring)),
        (branched, np.concatenate([[0.0], X[1:]])),
        (repeated, np.arange(6.0) + np.where(np.arange(6) < 4, X, 0)),
    ):
        np.testing.assert_allclose(function(X), expected)
        np.testing.assert_allclose(fg.jit(function)(X), expected)
        np.testing.assert_allclose(fg.vmap(function)(X[None])[0], expected)
        np.testing.assert_allclose(
            fg.jacrev(function)(X), slopes(function, X), rtol=1e-7, atol=1e-7
        )


# Whatever takes an array takes them.

doubled = fg.custom_jvp(lambda v: v * 2)
doubled.defjvp(lambda p, t: (p[0] * 2, t[0] * 2))
tripled = fg.custom_vjp(lambda v: v * 3)
tripled.defvjp(lambda v: (v * 3, None), lambda _, ct: (ct * 3,))
KEY = random_.key(0)
TAKERS: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda w: fg.vjp(lambda v: v * 2, w)[1](w)[0],
    "jvp": lambda w: fg.jvp(lambda v: v * v, (w,), (w,))[1],
    "linearize": lambda w: fg.linearize(lambda v: v * v, w)[1](w),
    "linear_transpose": lambda w: fg.linear_transpose(lambda v: v * 2, w)(w)[0],
    "vmap": lambda w: fg.vmap(lambda v: v * 2)(w),
    "jit": lambda w: fg.jit(lambda v, u: v * u)(w, u=w),
    "grad": lambda w: fg.value_and_grad(lambda v: (v * v).sum())(w)[1],
    "hessian": lambda w: fg.hessian(lambda v: (v**3).sum())(w).sum(0),
    "checkpoint": lambda w: fg.checkpoint(lambda v: v * 2)(w),
    "custom_jvp": lambda w: doubled(w),
    "custom_vjp": lambda w: tripled(w),
    "make_jaxpr": lambda w: (fg.make_jaxpr(lambda v: v * 2)(w), w)[1],
    "ravel_pytree": lambda w: fg.flatten_util.ravel_pytree({"a": w})[1](w)["a"],
    "cond": lambda w: lax.cond((w > 0)[0], lambda a: a * 2, lambda a: a, w),
    "switch": lambda w: lax.switch(1, [lambda a: a * 2, lambda a: a], w),
    "scan": lambda w: lax.scan(lambda c, v: (c + v, c * w), w[0], w)[1].sum(0),
    "fori_loop": lambda w: lax.fori_loop(0, 3, lambda i, c: c + fnp.asarray(w)[i], w),
    "while_loop": lambda w: lax.while_loop(
        lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (w, 0)
    )[0],
    "associative_scan": lambda w: lax.associative_scan(fnp.add, w),
    "dynamic_slice": lambda w: lax.dynamic_slice(w, fnp.array([0]), (3,)),
    "dynamic_update_slice": lambda w: lax.dynamic_update_slice(w, w[:1], fnp.array([1])),
    "reduce": lambda w: lax.reduce(w, 0.0, lax.add, (0,)) * w,
    "choice": lambda w: random_.choice(KEY, w, (3,)),
    "uniform": lambda w: random_.uniform(KEY, (3,), minval=w, maxval=w + 1),
    "a key": lambda w: random_.normal(fnp.stack([KEY, KEY])[0], (3,)) * w,
    "softmax": lambda w: nn.softmax(w),
    "one_hot": lambda w: nn.one_hot(fnp.array([0, 1, 2]), 3) @ w,
    "expit": lambda w: fg.scipy.special.expit(w),
    "solve": lambda w: fnp.linalg.solve(fnp.eye(3) * 2, w),
    "norm": lambda w: np.linalg.norm(w) * w,
    "fft": lambda w: fnp.fft.fft(w).real,
    "adam": lambda w: optim.adam(0.1).update(w, optim.adam(0.1).init(w), w)[0],
    "tree.map": lambda w: fg.tree.map(fnp.sin, {"a": w})["a"],
    "segment_sum": lambda w: fg.ops.segment_sum(w, fnp.array([0, 0, 1]), 3) + w,
    "einsum": lambda w: fnp.einsum("i,j->i", w, w),
    "r_": lambda w: fnp.r_[w[:2], w[2]],
    "where": lambda w: np.where(w > 0, w, 0.0),
    "ix_": lambda w: fnp.outer(w, w)[fnp.ix_([0, 1, 2], [1])].ravel(),
    "an index": lambda w: w[fnp.array([2, 0, 1])],
    "a mask": lambda w: fnp.concatenate([w[fnp.array([True, False, True])], w[:1]]),
    "a shape": lambda w: fnp.ones(fnp.array([2, 3])).sum(0) * w,
    "map_values": lambda w: fg.stop_gradient(w) + w,
}


@pytest.mark.parametrize("name", TAKERS)
def test_whatever_takes_an_array_takes_them(name: str) -> None:
    function = TAKERS[name]

    def of_a_copy(x: Any) -> Any:
        w = fnp.zeros(3)
        w[:] = x
        return fnp.sum(function(w) * x)

    x = X[2:5]
    expected = fg.grad(lambda x: fnp.sum(function(x) * x))(x)
    np.testing.assert_allclose(fg.grad(of_a_copy)(x), expected)
    np.testing.assert_allclose(fg.vmap(fg.grad(of_a_copy))(x[None])[0], expected)
    constant = fg.grad(lambda s: fnp.sum(function(fnp.array(x)) * s))(1.0)
    np.testing.assert_allclose(constant, np.sum(function(x)))


def test_they_are_arrays_to_isinstance() -> None:
    def check(x: Any) -> Any:
        y = fnp.zeros(3)
        assert isinstance(y, fg.Array)
        assert isinstance(y, fnp.ndarray)
        assert np.asarray(y).dtype == float
        assert float(y[0]) == 0.0
        assert y.tolist() == [0.0, 0.0, 0.0]
        assert f"{y}" == "[0. 0. 0.]"
        assert 0.0 in y
        with pytest.raises(TypeError, match="unhashable"):
            hash(y)
        return x

    fg.grad(check)(1.0)


def test_closures_of_custom_rules_hold_them() -> None:
    def with_rule(x: Any, y: Any) -> Any:
        inner = fg.custom_vjp(lambda v: fnp.sum(v * y))
        inner.defvjp(lambda v: (fnp.sum(v * y), v), lambda v, ct: (ct * y * 2,))
        return inner(x[:3])

    def assigned(x: Any) -> Any:
        y = fnp.zeros(3)
        y[0] = x[0]
        return with_rule(x, y)

    expected = fg.grad(lambda x: with_rule(x, np.stack([x[0], x[0] * 0, x[0] * 0])))(X)
    np.testing.assert_allclose(fg.grad(assigned)(X), expected)
    np.testing.assert_allclose(fg.jit(fg.grad(assigned))(X), expected)


def test_public_functions_pickle() -> None:
    assert pickle.loads(pickle.dumps(fnp.sin)) is fnp.sin
    assert pickle.loads(pickle.dumps(fnp.zeros)) is fnp.zeros


# Rules of NumPy's about dtypes.


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64, np.complex64, np.bool_])
def test_dtypes_stay(dtype: Any) -> None:
    def assign(np_: Any, x: Any) -> Any:
        y = np_.ones(3, dtype)
        y[0] = 2
        y[1] = x
        y[2:] = np.float32(3.75)
        return y

    got = fg.jit(lambda x: assign(fnp, x))(np.float64(1.5))
    expected = assign(np, 1.5)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(fg.vmap(lambda x: assign(fnp, x))(np.array([1.5]))[0], expected)


IN_PLACE = {
    "+=": lambda y, v: y.__iadd__(v),
    "-=": lambda y, v: y.__isub__(v),
    "*=": lambda y, v: y.__imul__(v),
    "/=": lambda y, v: y.__itruediv__(v),
    "//=": lambda y, v: y.__ifloordiv__(v),
    "**=": lambda y, v: y.__ipow__(v),
    "%=": lambda y, v: y.__imod__(v),
    "&=": lambda y, v: y.__iand__(v),
    "<<=": lambda y, v: y.__ilshift__(v),
}
OPERANDS = [
    2,
    1.5,
    1j,
    True,
    np.float32(2),
    np.float64(2),
    np.int64(2),
    np.int8(2),
    np.arange(1, 4.0),
]


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.complex64, np.bool_])
def test_operators_that_assign_follow_same_kind(dtype: Any) -> None:
    for symbol, change in IN_PLACE.items():
        for value in OPERANDS:
            is_power = symbol == "**=" and np.issubdtype(dtype, np.integer)
            # The operator of NumPy 2.0 squares where the exponent is a float of 2.
            theirs = power_in_place if is_power else change
            expected = outcome(partial(theirs, np.ones(3, dtype), value))
            made = partial(changed_ones, change, dtype, value)
            got = outcome(partial(fg.vmap(made), np.ones(1)))
            if isinstance(expected, type):
                assert isinstance(got, type), (symbol, value)
                assert issubclass(got, TypeError), (symbol, value)
            else:
                assert got.dtype == dtype, (symbol, value)
                np.testing.assert_allclose(got[0], expected, rtol=1e-6, err_msg=f"{symbol} {value}")


def power_in_place(y: Any, value: Any) -> Any:
    return np.power(y, value, out=y)


def changed_ones(change: Callable[..., Any], dtype: Any, value: Any, _: Any) -> Any:
    return change(fnp.ones(3, dtype), value)


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (TypeError, ValueError) as error:
        return type(error)


# What cannot be right.


def assign(y: Any, index: Any = 0, value: Any = 1.0) -> Any:
    y[index] = value
    return y


def into_closed_over(x: Any) -> Any:
    y = fnp.zeros(3)
    fg.grad(lambda v: fnp.sum(assign(y, 0, v)))(x[0])
    return y


def into_branch(x: Any) -> Any:
    y = fnp.zeros(3)
    return lax.cond(x[0] > 0, lambda: assign(y), lambda: y)


def into_loop(x: Any) -> Any:
    y = fnp.zeros(3)
    lax.fori_loop(0, 3, lambda i, c: c + assign(y, i)[0], 0.0)
    return y


def into_numpys(x: Any) -> Any:
    y = np.zeros(3)
    y[0] = x[0]
    return y


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "argument": (lambda x: assign(x), errors.ArgumentError, "x = x.copy()"),
    "view of an argument": (
        lambda x: assign(fnp.reshape(x, (2, 3))), errors.ArgumentError, "x = x.copy()"
    ),
    "asarray": (lambda x: assign(fnp.asarray(TABLE)), errors.ArgumentError, "y = x.copy()"),
    "transformation inside": (into_closed_over, errors.ArgumentError, "the change would leak"),
    "branch": (into_branch, errors.ArgumentError, "the change would leak"),
    "loop": (into_loop, errors.ArgumentError, "the change would leak"),
    "broadcast": (
        lambda x: assign(fnp.broadcast_to(fnp.zeros(3), (2, 3))), errors.ArgumentError, "read-only"
    ),
    "order unknown": (
        lambda x: assign(fnp.ravel(fnp.exp(fnp.reshape(x, (2, 3))))),
        errors.ArgumentError,
        "depends on the order",
    ),
    "shape": (lambda x: assign(fnp.zeros(3), slice(2), x[:3]), errors.ShapeError, "has shape (2,)"),
    "bounds": (lambda x: assign(fnp.zeros(3), 3), IndexError, "3"),
    "dtype": (
        lambda x: assign(fnp.zeros(3), slice(None), x[:3] * 1j), errors.DtypeError, "imaginary"
    ),
    "in place shape": (
        lambda x: fnp.zeros(3).__iadd__(x[:3, None]), errors.ShapeError, "does not broadcast to"
    ),
    "what NumPy shares": (
        lambda x: assign(np.asarray(2 * x)), errors.ArgumentError, "y = np.array(x)"
    ),
    "what NumPy shares of a known array": (
        lambda x: assign(np.asarray(fnp.zeros(3))), errors.ArgumentError, "read-only"
    ),
    "numpy's array": (into_numpys, errors.ConcretizationTypeError, "y = funcgrad.numpy.zeros("),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("transform", ["grad", "jit"])
def test_errors_name_the_line_and_the_rewrite(name: str, transform: str) -> None:
    function, error, text = ERRORS[name]
    if transform == "jit":
        with pytest.raises(error, match=re.escape(text)) as info:
            fg.jit(function)(X)
    else:
        with pytest.raises(error, match=re.escape(text)) as info:
            fg.vjp(function, X)
    if not issubclass(error, IndexError):
        assert "test_writable.py:" in str(info.value)


@pytest.mark.parametrize(
    "name", ["asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require"]
)
def test_what_numpy_would_share_is_read_but_not_written_to(name: str) -> None:
    given = getattr(np, name)

    def read(x: Any) -> Any:
        y = 2 * x
        copy = np.array(y)
        copy[0] = 5.0
        return np.sum(given(y) * copy)

    def write(x: Any) -> Any:
        y = 2 * x
        given(y)[0] = 5.0
        return np.sum(y)

    expected = 10 * X[0] + 4 * np.sum(X[1:] ** 2)
    for transform in (fg.jit, lambda f: lambda x: fg.vjp(f, x)[0]):
        np.testing.assert_allclose(transform(read)(X), expected)
        with pytest.raises(errors.ArgumentError, match="read-only"):
            transform(write)(X)


# Long loops.


def filled_by(n: int) -> Callable[[Any], Any]:
    def fill(x: Any) -> Any:
        y = fnp.zeros(n)
        for i in range(n):
            y[i] = np.sin(x[i])
        return y

    return fill


def work_of(function: Callable[[Any], Any], n: int) -> int:
    """How many elements a compiled program computes or copies."""
    text = fg.jit(function).lower(np.ones(n)).as_text()
    return sum(map(int, re.findall(r": (\d+) iterations?;", text)))


def test_a_loop_of_assignments_takes_work_for_each_element_only() -> None:
    sizes = (20, 40, 80)
    with fg.reroll_loops(False):
        counts = [len(fg.make_jaxpr(filled_by(n))(np.ones(n)).eqns) for n in sizes]
        assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])
        work = [work_of(filled_by(n), n) for n in sizes]
    assert work[2] - work[1] <= 2 * (work[1] - work[0]) + 4
    x = np.arange(40.0)
    np.testing.assert_allclose(fg.jit(filled_by(40))(x), np.sin(x))


def test_reading_a_view_costs_one_cut() -> None:
    def read(x: Any) -> Any:
        y = fnp.zeros(6)
        row = y[2:]
        y[3] = x[0]
        return row + row + row

    names = [e.primitive.name for e in fg.make_jaxpr(read)(X).eqns]
    assert names.count("slice") <= 3  # one of x, one for the view and one after the change


def test_arrays_made_by_their_class():
    def f(x):
        y = fnp.ndarray(3, dtype=np.float32)
        y[1:] = x
        return y

    made = fg.jit(f)(2.0)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, [0, 2, 2])
    with pytest.raises(errors.ArgumentError, match="buffer is not supported"):
        fnp.ndarray(2, np.uint8, buffer=b"12")


OUTS = {
    "positional": lambda xnp, x, y: xnp.sin(x, y),
    "by name": lambda xnp, x, y: xnp.multiply(x, 2.0, out=y),
    "where": lambda xnp, x, y: xnp.add(x, x, where=x > 0.5, out=y),
    "tuple": lambda xnp, x, y: xnp.subtract(x, 1.0, out=(y,)),
    "cumsum": lambda xnp, x, y: xnp.cumsum(x, out=y),
    "clip": lambda xnp, x, y: xnp.clip(x, 0.0, 1.0, out=y),
}


@pytest.mark.parametrize("name", OUTS)
def test_results_are_written_where_out_says(name):
    x = np.array([0.2, 0.7, -1.5])

    def filled(x, xnp=fnp):
        y = xnp.ones(3)
        assert OUTS[name](xnp, x, y) is y
        return y

    expected = filled(x, np)
    np.testing.assert_array_equal(filled(x), expected)
    np.testing.assert_allclose(fg.jit(filled)(x), expected, rtol=1e-15)
    np.testing.assert_allclose(fg.jvp(filled, (x,), (x,))[0], expected, rtol=1e-15)


def test_outputs_that_do_not_fit_are_refused():
    x = np.ones(2)
    for wrong, kind, words in (
        (lambda: fnp.add(x, x, x, x), TypeError, "add takes 2 arrays, and one more for the resu"),
        (lambda: fnp.add(x, x, out=(x, x)), TypeError, "add has 1 results: got 2 arrays"),
        (lambda: fnp.add(x, x, out=np.ones(2, int)), TypeError, "Cannot cast"),
        (lambda: fnp.add(x, x, out=np.ones(3)), ValueError, "could not broadcast"),
        (
            lambda: fg.grad(lambda t: fnp.add(t, t, out=np.ones(2)).sum())(x),
            errors.ArgumentError,
            r"`?add\(\.\.\., out=y\)`? would write traced values into an ndarray",
        ),
        (
            lambda: fg.jit(lambda x: fnp.add(x, x, out=fg.lax.cumsum(x)))(x),
            errors.ArgumentError,
            r"add\(\.\.\., out=y\) would write into an immutable array",
        ),
    ):
        with pytest.raises(kind, match=words):
            wrong()
    quotients, rests = fnp.divmod(np.array([3.5, 1.0]), 2.0, out=(np.zeros(2), None))
    assert (quotients.tolist(), rests.tolist()) == ([1.0, 0.0], [1.5, 1.0])
