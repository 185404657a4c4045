"""Numbers with the attributes of arrays, and the functions that are handed them."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.base.scalars import SCALAR_NUMBERS, plain_number, scalar_number
from funcgrad.custom_batching import custom_vmap

NUMBERS = [3, -2, 2.5, 1 + 2j]
RANK = {int: 0, float: 1, complex: 2}
X = np.array([1.0, 2.0], np.float32)
BINARY = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor,
)  # fmt: skip


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except (TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("number", NUMBERS)
def test_arithmetic_is_python_s_and_closed(number: Any) -> None:
    x = scalar_number(number)
    for function in (operator.neg, operator.pos, abs, operator.invert):
        want, got = outcome(function, number), outcome(function, x)
        assert got == want
        assert isinstance(want, type) or type(got) in SCALAR_NUMBERS
    for function in BINARY:
        for other in (2, 0.5, 1j):
            for pair in ((number, other), (other, number)):
                given = [x if v is number else v for v in pair]
                want, got = outcome(function, *pair), outcome(function, *given)
                assert got == want, (function, pair)
                asks_other = pair[1] is number and RANK[type(other)] > RANK[type(number)]
                if not isinstance(want, type) and not asks_other:
                    assert type(got) in SCALAR_NUMBERS
                    assert plain_number(got) == want
                    assert type(plain_number(got)) is type(want)


@pytest.mark.parametrize("number", NUMBERS)
def test_is_a_number_of_python(number: Any) -> None:
    x = scalar_number(number)
    assert isinstance(x, type(number))
    assert (x == number, hash(x) == hash(number), f"{x}") == (True, True, f"{number}")
    assert pickle.loads(pickle.dumps(x)) == copy.deepcopy(x) == number
    assert type(plain_number(x)) is type(number)
    assert {number: 1}[x] == 1
    with pytest.raises(AttributeError):
        _ = x.nothing
    assert math.isclose(abs(x), abs(number))


@pytest.mark.parametrize("number", NUMBERS)
def test_has_the_attributes_of_an_array(number: Any) -> None:
    x, reference = scalar_number(number), np.asarray(number)[()]
    for name in ("dtype", "shape", "ndim", "size", "real", "imag", "T"):
        assert getattr(x, name) == getattr(reference, name)
    assert x.astype(np.complex64) == np.complex64(number)
    assert x.sum() == x.reshape(1)[0] == number
    assert np.asarray(x).dtype == reference.dtype


@pytest.mark.parametrize("number", [3, 2.5, 1 + 2j])
def test_takes_the_dtype_of_arrays(number: Any) -> None:
    x = scalar_number(number)
    expected = X * number
    results = {
        "array * x": X * x,
        "x * array": x * X,
        "scalar * x": X[1] * x,
        "np.multiply": np.multiply(x, X),
        "fnp.multiply": fnp.multiply(X, x),
        "lax.mul": fg.lax.mul(X.astype(expected.dtype), x),
        "closed over": fg.jit(lambda a: a * x)(X),
        "argument": fg.jit(lambda a, b: a * b)(X, x),
        "mapped": fg.vmap(lambda a: x * a)(X),
        "np.where": np.where(X > 0, X, x),
        "fnp.where": fnp.where(X > 0, X, x),
    }
    for name, got in results.items():
        assert got.dtype == expected.dtype, name
    jitted = fg.jit(lambda a, b: a * b)
    for _ in range(3):  # the path that is remembered, too
        assert jitted(X, x).dtype == expected.dtype
        assert jitted(X, np.asarray(number)).dtype != expected.dtype


def test_bools_and_others() -> None:
    assert type(scalar_number(True)) is np.bool_
    assert scalar_number(X) is X
    assert plain_number(None) is None


def doubled(seen: list[Any]) -> Any:
    """A function that treats its argument as an array."""

    def function(x: Any) -> Any:
        seen.append((x.dtype, x.shape, (x * 2 + 1).dtype))
        return x.astype(x.dtype) * fnp.ones(x.shape, x.dtype) * 2 if x.shape else x * 2

    return function


def wrappers() -> dict[str, Any]:
    def jvp_rule(seen: list[Any]) -> Any:
        f = fg.custom_jvp(doubled(seen))
        f.defjvp(lambda primals, tangents: (f(*primals), doubled(seen)(primals[0]) * tangents[0]))
        return f

    def vjp_rule(seen: list[Any]) -> Any:
        f = fg.custom_vjp(doubled(seen))
        f.defvjp(lambda x: (f(x), x), lambda res, ct: (doubled(seen)(res) * ct,))
        return f

    def vmap_rule(seen: list[Any]) -> Any:
        f = custom_vmap(doubled(seen))
        f.def_vmap(lambda size, mapped, x: (doubled(seen)(x), mapped[0]))
        return f

    def gradient_rule(seen: list[Any]) -> Any:
        return fg.custom_gradient(lambda x: (doubled(seen)(x), lambda ct: (ct * 2,)))

    return {
        "checkpoint": lambda seen: fg.checkpoint(doubled(seen)),
        "checkpoint_sequential": lambda seen: fg.checkpoint_sequential([doubled(seen)]),
        "custom_jvp": jvp_rule,
        "custom_vjp": vjp_rule,
        "custom_vmap": vmap_rule,
        "custom_gradient": gradient_rule,
    }


TRANSFORMATIONS: dict[str, Any] = {
    "eager": lambda f: f,
    "grad": fg.grad,
    "jvp": lambda f: lambda x: fg.jvp(f, (x,), (x,)),
    "not mapped": lambda f: lambda x: fg.vmap(lambda a, b: f(a) * b, (None, 0))(x, X),
    "mapped": lambda f: lambda x: fg.vmap(f)(np.full(2, x)),
    "jit": fg.jit,
    "grad of grad": lambda f: fg.grad(lambda x: fg.grad(f)(x) * x),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("wrapper", wrappers())
def test_functions_with_rules_get_values_with_a_dtype(wrapper: str, transformation: str) -> None:
    seen: list[Any] = []
    got = TRANSFORMATIONS[transformation](wrappers()[wrapper](seen))(1.5)
    assert seen
    assert all(dtype == np.float64 and after == np.float64 for dtype, _, after in seen)
    for leaf in fg.tree.leaves(got):
        assert type(leaf) not in SCALAR_NUMBERS


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [2, 2.5, 1j, True])
@pytest.mark.parametrize("wrap", [fg.checkpoint, fg.custom_jvp, fg.custom_vjp, custom_vmap])
def test_dtypes_agree_with_compiled_calls(wrap: Any, number: Any) -> None:
    for function in (lambda a, x: a * x, lambda a, x: (a + 1) * x, lambda a, x: {"y": a * a}):
        wrapped = wrap(function)
        eager, compiled = wrapped(number, X), fg.jit(wrapped)(number, X)
        for a, b in zip(fg.tree.leaves(eager), fg.tree.leaves(compiled), strict=True):
            assert np.asarray(a).dtype == b.dtype
            np.testing.assert_allclose(a, b)


def test_static_arguments_are_handed_over_as_they_are() -> None:
    seen: list[type] = []

    def function(x: Any, n: Any) -> Any:
        seen.append(type(n))
        return x * n

    f = fg.custom_jvp(function, nondiff_argnums=(1,))
    f.defjvp(lambda n, primals, tangents: (f(primals[0], n), tangents[0] * n))
    f(1.5, 2)
    fg.checkpoint(function, static_argnums=1)(1.5, 2)
    assert seen == [int, int]


def test_the_guess_of_a_solver_has_a_dtype() -> None:
    def solve(f: Any, guess: Any) -> Any:
        assert guess.dtype == np.float64
        return guess.astype(guess.dtype) + 1.0

    root = fg.lax.custom_root(lambda x: x - 2.0, 1.0, solve, lambda g, y: y / g(1.0))
    assert root == 2.0


def test_python_s_conditions_work_eagerly() -> None:
    f = fg.checkpoint(lambda x, n: sum((x for _ in range(n)), 0.0) if x > 0 else -x)
    assert f(1.5, 3) == 4.5
    assert type(f(1.5, 3)) is float


def test_powers_with_a_modulus() -> None:
    found = []
    power = fg.custom_jvp(lambda n: found.append(pow(n, 5, 7)) or n)
    power.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    power(3)
    assert found == [pow(3, 5, 7)]
