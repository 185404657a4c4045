"""Mistakes raise what programs written for NumPy or JAX catch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors, lax, tree_util

X = np.ones(3)
F32 = np.ones(3, np.float32)


@fg.custom_vjp
def with_bad_cotangent(x: Any) -> Any:
    return x * 2.0


with_bad_cotangent.defvjp(lambda x: (x * 2.0, x), lambda res, ct: ((ct, ct),))


@fg.custom_jvp
def with_bad_tangent(x: Any) -> Any:
    return x * 2.0


with_bad_tangent.defjvp(lambda primals, tangents: (primals[0], (tangents[0], 0.0)))

# What JAX 0.10, or NumPy 2, raises for the same mistake.
MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "carry structure": (lambda: lax.scan(lambda c, _: ((c, c), None), 0.0, X), TypeError),
    "carry type": (lambda: lax.scan(lambda c, x: (c[:1], x), X, X), TypeError),
    "while carry": (lambda: lax.while_loop(lambda c: c[0] < 1, lambda c: c[:1], X), TypeError),
    "while condition": (lambda: lax.while_loop(lambda c: c, lambda c: c, X), TypeError),
    "fori carry": (lambda: lax.fori_loop(0, 2, lambda i, c: (c, c), 0.0), TypeError),
    "scan lengths": (lambda: lax.scan(lambda c, x: (c, x), 0.0, (X, X[:2])), ValueError),
    "branch structures": (
        lambda: lax.cond(True, lambda x: x, lambda x: (x, x), 1.0),
        TypeError,
    ),
    "branch types": (lambda: lax.cond(True, lambda x: x, lambda x: x[:1], X), TypeError),
    "predicate shape": (lambda: lax.cond(X > 0, lambda: 0.0, lambda: 1.0), TypeError),
    "no branches": (lambda: lax.switch(0, [], 1.0), ValueError),
    "cotangent tree": (lambda: fg.grad(with_bad_cotangent)(1.0), TypeError),
    "tangent tree": (lambda: fg.jvp(with_bad_tangent, (1.0,), (1.0,)), TypeError),
    "pull structure": (lambda: fg.vjp(lambda x: x, 1.0)[1]((1.0, 1.0)), ValueError),
    "pull shape": (lambda: fg.vjp(lambda x: x, X)[1](X[:1]), ValueError),
    "tangent shape": (lambda: fg.jvp(lambda x: x, (X,), (X[:1],)), ValueError),
    "tangent dtype": (lambda: fg.jvp(lambda x: x, (X,), (F32,)), TypeError),
    "argnums": (lambda: fg.grad(lambda x: x, argnums=3)(1.0), TypeError),
    "argnums of jacobians": (lambda: fg.jacrev(lambda x: x, argnums=3)(1.0), ValueError),
    "integers": (lambda: fg.grad(lambda x: x * 1.0)(1), TypeError),
    "no scalar": (lambda: fg.grad(lambda x: x)(X), TypeError),
    "complex result": (lambda: fg.grad(lambda x: x * 1j)(1.0), TypeError),
    "no function": (lambda: fg.grad(1.0), TypeError),
    "in_axes entries": (lambda: fg.vmap(lambda x: x, in_axes=(0, 0))(X), ValueError),
    "in_axes kind": (lambda: fg.vmap(lambda x: x, in_axes="0"), TypeError),
    "in_axes leaf": (lambda: fg.vmap(lambda x: x, in_axes=(0.5,)), TypeError),
    "in_axes tree": (lambda: fg.vmap(lambda x: x, in_axes=((0, 0),))(X), ValueError),
    "in_axes range": (lambda: fg.vmap(lambda x: x, in_axes=3)(X), ValueError),
    "out_axes range": (lambda: fg.vmap(lambda x: x, out_axes=3)(X), ValueError),
    "out_axes of mapped": (lambda: fg.vmap(lambda x: x, out_axes=None)(X), ValueError),
    "lengths": (lambda: fg.vmap(lambda x, y: x + y)(X, X[:2]), ValueError),
    "no mapped argument": (lambda: fg.vmap(lambda x: x, in_axes=None)(X), ValueError),
    "static position": (lambda: fg.jit(lambda x: x, static_argnums=3)(1.0), ValueError),
    "static name": (lambda: fg.jit(lambda x: x, static_argnames="y")(1.0), ValueError),
    "unhashable static": (lambda: fg.jit(lambda x: x, static_argnums=0)([]), ValueError),
    "opaque argument": (lambda: fg.jit(lambda x: x)(object()), TypeError),
    "string argument": (lambda: fg.jit(lambda x: x)("a"), TypeError),
    "opaque result": (lambda: fg.jit(lambda x: object())(1.0), TypeError),
    "map structures": (
        lambda: tree_util.tree_map(lambda a, b: a, (1, 2), (1, 2, 3)),
        ValueError,
    ),
    "registered twice": (
        lambda: tree_util.register_pytree_node(dict, lambda d: ((), None), lambda a, c: {}),
        ValueError,
    ),
    "broadcast": (lambda: fg.jit(lambda x: x + X[:2])(X), TypeError),
    "broadcast as in NumPy": (lambda: fg.jit(lambda x: x + X[:2])(X), ValueError),
    "broadcast of lax": (lambda: lax.add(X, X[:2]), TypeError),
    "dtypes of lax": (lambda: lax.bitwise_and(X, X), TypeError),
    "random dtype": (
        lambda: fg.random.normal(fg.random.key(0), (2,), np.int64),
        ValueError,
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_what_jax_raises(mistake: str) -> None:
    call, kind = MISTAKES[mistake]
    with pytest.raises(kind):
        call()


@pytest.mark.parametrize("kind", ["TreeError", "DtypeError", "ShapeError", "ArgumentError"])
def test_wrong_arguments_are_both_wrong_types_and_wrong_values(kind: str) -> None:
    error = getattr(errors, kind)
    assert issubclass(error, TypeError)
    assert issubclass(error, ValueError)
    assert issubclass(error, errors.FuncgradError)
