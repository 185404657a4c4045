"""Transformed functions between processes: pickled and copied without what they have compiled."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg

X = np.linspace(0.1, 0.9, 4)


def loss(x: Any, scale: Any = 2.0) -> Any:
    """A documented loss."""
    return scale * np.sum(np.sin(x) ** 2)


def powers(x: Any, n: int = 2) -> Any:
    return np.stack([x**k for k in range(n)])


def total(x: Any) -> Any:
    return np.sum(powers(x))


def double(x: Any) -> Any:
    return 2 * x


@fg.jit
def decorated(x: Any) -> Any:
    return np.cos(x)


@functools.partial(fg.jit, static_argnums=1)
def decorated_static(x: Any, n: int) -> Any:
    return x**n


@fg.grad
def decorated_grad(x: Any) -> Any:
    return np.sum(x**2)


@fg.custom_jvp
def with_jvp(x: Any) -> Any:
    return 3.0 * x


@with_jvp.defjvp
def with_jvp_rule(primals: Any, tangents: Any) -> Any:
    return 3.0 * primals[0], 7.0 * tangents[0]


@fg.custom_gradient
def with_gradient(x: Any) -> Any:
    return 3.0 * x, double


def plain_jvp(x: Any) -> Any:
    return 5.0 * x


made_by_hand = fg.custom_jvp(plain_jvp)
made_by_hand.defjvp(with_jvp_rule)


class Holder:
    @functools.partial(fg.jit, static_argnums=0)
    def method(self, x: Any) -> Any:
        return x + 1.0


MADE: dict[str, Callable[[], Any]] = {
    "jit": lambda: fg.jit(loss),
    "jit with options": lambda: fg.jit(powers, static_argnums=iter((1,)), threads=1),
    "jit with names": lambda: fg.jit(powers, static_argnames=["n"], donate_argnums=[0]),
    "jit of grad": lambda: fg.jit(fg.grad(loss)),
    "jit of a ufunc": lambda: fg.jit(np.sin),
    "grad": lambda: fg.grad(loss),
    "grad with options": lambda: fg.grad(loss, argnums=(0,)),
    "value_and_grad": lambda: fg.value_and_grad(loss),
    "jacfwd": lambda: fg.jacfwd(powers),
    "jacrev": lambda: fg.jacrev(powers),
    "hessian": lambda: fg.hessian(loss),
    "vmap": lambda: fg.vmap(loss, in_axes=(0,), out_axes=0),
    "vmap of jit of grad": lambda: fg.vmap(fg.jit(fg.grad(total))),
    "checkpoint": lambda: fg.checkpoint(loss, prevent_cse=False),
    "checkpoint with a policy": lambda: fg.checkpoint(
        loss, policy=fg.checkpoint_policies.dots_saveable
    ),
    "checkpoint with a budget": lambda: fg.checkpoint(loss, budget="1MB"),
    "checkpoint_sequential": lambda: fg.checkpoint_sequential([np.sin, double, np.cos] * 2),
    "make_jaxpr": lambda: fg.make_jaxpr(loss),
    "vectorize": lambda: fg.numpy.vectorize(loss, signature="(n)->()"),
    "partial": lambda: functools.partial(fg.jit(powers, static_argnames="n"), n=3),
    "decorated": lambda: decorated,
    "decorated with options": lambda: functools.partial(decorated_static, n=2),
    "grad as decorator": lambda: decorated_grad,
    "grad of decorated": lambda: fg.vmap(fg.grad(decorated)),
    "custom_jvp": lambda: with_jvp,
    "custom_jvp of a function": lambda: made_by_hand,
    "custom_gradient": lambda: with_gradient,
    "custom_gradient of a function": lambda: fg.custom_gradient(loss_and_pull),
    "grad of custom_jvp": lambda: fg.vmap(fg.grad(with_jvp)),
    "method": lambda: Holder().method,
    "named_call": lambda: fg.named_call(powers, name="powers"),
    "jit of a named_call": lambda: fg.jit(fg.named_call(powers)),
}


def loss_and_pull(x: Any) -> Any:
    return 3.0 * x, double


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, tuple | list):
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, np.ndarray | np.generic):
        np.testing.assert_array_equal(found, expected)
    else:
        assert str(found) == str(expected)


@pytest.mark.parametrize("name", MADE)
def test_copies_compute_the_same(name: str) -> None:
    f = MADE[name]()
    expected = f(X)
    copies = [pickle.loads(pickle.dumps(f, protocol)) for protocol in (2, 4, 5)]
    for g in [*copies, copy.copy(f), copy.deepcopy(f)]:
        assert_same(g(X), expected)
    assert pickle.dumps(f) == pickle.dumps(MADE[name]())


def test_rules_survive() -> None:
    for f in (with_jvp, made_by_hand):
        assert fg.grad(pickle.loads(pickle.dumps(f)))(1.0) == 7.0
    f = pickle.loads(pickle.dumps(fg.custom_gradient(loss_and_pull)))
    assert fg.grad(f)(1.0) == 2.0


def test_copies_are_not_compiled() -> None:
    f = fg.jit(loss)
    f(X)
    for g in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        assert g is not f
        assert g.cache_info().calls == 0
    assert len(pickle.dumps(f)) < 500


def test_options_survive() -> None:
    f = pickle.loads(pickle.dumps(fg.jit(powers, static_argnums=iter((1,)))))
    np.testing.assert_array_equal(f(X, 3), powers(X, 3))
    plan = pickle.loads(pickle.dumps(fg.checkpoint(loss, budget="1MB"))).plan(X)
    assert plan is not None
    g = pickle.loads(pickle.dumps(fg.grad(loss, argnums=1)))
    np.testing.assert_allclose(g(X, 3.0), loss(X, 1.0))


def test_copies_of_callable_objects_have_their_own_object() -> None:
    f = fg.jit(fg.tree_util.Partial(powers, n=2))
    g = copy.deepcopy(f)
    np.testing.assert_array_equal(g(X), f(X))


def test_decorated_functions_stay_themselves() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated


def test_functions_without_a_name_say_so() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(fg.grad(lambda x: x))


@pytest.mark.parametrize(
    "make", [fg.grad, fg.value_and_grad, fg.jacfwd, fg.jacrev, fg.vmap, fg.checkpoint, fg.jit]
)
def test_they_look_like_the_function(make: Any) -> None:
    f = make(loss)
    assert f.__name__ == "loss"
    assert f.__doc__ == "A documented loss."
    assert f.__module__ == __name__
    assert f.__wrapped__ is loss
    assert list(inspect.signature(f).parameters) == ["x", "scale"]
    assert repr(f) == f"<{make.__name__}(loss)>"


def test_transformations_decorate_methods() -> None:
    class Model:
        scale = 3.0

        @functools.partial(fg.grad, argnums=1)
        def slope(self, x: Any) -> Any:
            return self.scale * x**2

        @functools.partial(fg.vmap, in_axes=(None, 0))
        def each(self, x: Any) -> Any:
            return self.scale * x

    assert Model().slope(2.0) == 12.0
    np.testing.assert_array_equal(Model().each(X), 3.0 * X)


def test_another_process_computes_the_same(tmp_path: Path) -> None:
    names = [n for n in MADE if n != "make_jaxpr"]
    file = tmp_path / "functions"
    file.write_bytes(pickle.dumps([MADE[n]() for n in names]))
    program = (
        "import pickle, sys, numpy as np\n"
        "functions = pickle.load(open(sys.argv[1], 'rb'))\n"
        "x = np.linspace(0.1, 0.9, 4)\n"
        "pickle.dump([f(x) for f in functions], open(sys.argv[1] + '.out', 'wb'))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(
        [sys.executable, "-c", program, str(file)], check=True, timeout=300, env=environment
    )
    results = pickle.loads(Path(f"{file}.out").read_bytes())
    for name, result in zip(names, results, strict=True):
        assert_same(result, MADE[name]()(X))
