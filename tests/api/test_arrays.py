"""JAX's names about arrays and devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError

X = np.arange(3.0)


def test_arrays_and_traced_values_are_arrays() -> None:
    seen = []
    fg.grad(lambda x: seen.append(isinstance(x, fg.Array)) or x.sum())(X)
    fg.jit(lambda x: seen.append(isinstance(x, fg.Array)) or x)(X)
    assert seen == [True, True]
    assert isinstance(np.float64(1), fg.Array)
    assert not isinstance(1.0, fg.Array)
    with pytest.raises(TypeError, match=r"for annotations; make arrays with numpy\.array"):
        fg.Array(3)


def _jvp(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: fg.jvp(f, (x,), (x,))


def _scan(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: fg.lax.scan(lambda c, _: (f(c), None), x, None, length=2)


@pytest.mark.parametrize("transform", [fg.grad, fg.jit, fg.vmap, _jvp, _scan, fg.jacfwd])
@pytest.mark.parametrize("x", [3.0, np.float32(3), 2 * np.ones(1), np.zeros(0), 1j, 3, True])
def test_checks_of_types_see_traced_values(transform: Any, x: Any) -> None:
    if transform in (fg.grad, fg.jacfwd) and np.result_type(x).kind != "f":
        pytest.skip("only floating values have real derivatives")
    x = np.stack([x, x]) if transform is fg.vmap else x
    x = np.float64(x) if transform is _jvp and np.result_type(x).kind in "bi" else x
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append((isinstance(x, fg.Array), isinstance(x, fg.typing.ArrayLike)))
        seen.append((np.ndim(x) == x.ndim, np.shape(x) == x.shape, np.result_type(x) == x.dtype))
        return np.sum(x) if transform is fg.grad else x

    transform(f)(x)
    assert seen
    assert all(all(row) for row in seen)


@pytest.mark.parametrize("x", [3.0, 3, True, 1j, np.float32(1), np.ones(2), np.zeros((0, 3))])
def test_numbers_and_arrays_are_array_like(x: Any) -> None:
    assert isinstance(x, fg.typing.ArrayLike)
    assert not isinstance("text", fg.typing.ArrayLike)
    assert not isinstance([x], fg.typing.ArrayLike)


def test_arrays_stay_where_they_are() -> None:
    tree = {"x": X, "n": 2}
    assert fg.block_until_ready(tree) is tree
    put = fg.device_put(tree)
    assert put["x"] is X
    assert put["n"].dtype == np.int64
    assert fg.device_get(tree)["x"] is X
    np.testing.assert_array_equal(fg.jit(fg.device_put)(X), X)
    np.testing.assert_array_equal(fg.grad(lambda x: fg.device_put(x).sum())(X), np.ones(3))


def test_mistakes() -> None:
    with pytest.raises(ArgumentError, match=r"there is one device, the CPU, .* got device='gpu'"):
        fg.device_put(X, "gpu")
    with pytest.raises(DtypeError):
        fg.device_put(["text"])


def test_names_of_modules() -> None:
    assert fg.custom_batching.custom_vmap is fg.custom_vmap
    assert fg.custom_derivatives.closure_convert is fg.closure_convert
    with fg.named_scope("layer"):
        assert fg.jit(np.sin)(0.0) == 0.0


def scopes_of(f, *args):
    return [equation.source.scope for equation in fg.make_jaxpr(f)(*args).eqns]


def in_layers(x):
    with fg.named_scope("outer"):
        x = 2 * x
        with fg.named_scope("inner"):
            x = np.sin(x)
    return x + 1


def test_scopes_nest_and_belong_to_the_operations_of_their_program():
    assert scopes_of(in_layers, 1.0) == [("outer",), ("outer", "inner"), ()]

    @fg.named_scope("decorated")
    def outside(x):
        return fg.jit(in_layers)(x)

    (call,) = fg.make_jaxpr(outside)(1.0).eqns
    assert call.source.scope == ("decorated",)
    inner = [equation.source.scope for equation in call.primitive.program.equations]
    assert inner == [("outer",), ("outer", "inner"), ()]


def test_the_backward_pass_of_an_operation_is_in_its_scope():
    assert scopes_of(fg.grad(in_layers), 1.0)[-2:] == [("outer", "inner"), ("outer",)]


def test_scopes_end_with_their_block_and_are_texts():
    with pytest.raises(ZeroDivisionError), fg.named_scope("broken"):
        1 / 0  # noqa: B018
    assert scopes_of(np.sin, 1.0) == [()]
    with pytest.raises(ArgumentError, match="named_scope needs a text"), fg.named_scope(3):
        pass
