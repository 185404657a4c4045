"""Halves of derivatives, linear functions with given transposes, and functions mapped in a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors
from funcgrad.custom_batching import sequential_vmap
from funcgrad.custom_derivatives import linear_call

X = np.linspace(0.1, 1.0, 5)


@pytest.mark.parametrize("jitted", [True, False])
def test_passes_are_those_of_vjp_and_may_be_repeated(jitted):
    def f(w: Any, x: Any, p: Any) -> Any:
        return np.sin(w["a"] * x) + p**2, {"seen": x}

    fwd, bwd = fg.fwd_and_bwd(f, argnums=(0, 2), has_aux=True, jitted=jitted)
    for scale in (1.0, 2.0):
        y, kept, aux = fwd({"a": scale}, X, 3.0)
        by_w, by_p = bwd(kept, np.ones(5))
        np.testing.assert_allclose(y, np.sin(scale * X) + 9.0)
        np.testing.assert_array_equal(aux["seen"], X)
        np.testing.assert_allclose(by_w["a"], (X * np.cos(scale * X)).sum())
        assert by_p == 30.0
    if jitted:
        assert fwd.cache_info().traces == bwd.cache_info().traces == 1


def test_one_argument_has_one_cotangent():
    fwd, bwd = fg.fwd_and_bwd(lambda x, n: x**n, argnums=0, jitted=False)
    _, kept = fwd(2.0, 3)
    assert bwd(kept, 1.0) == 12.0
    with pytest.raises(errors.ArgumentError, match="fwd_and_bwd"):
        fg.fwd_and_bwd(3.0, 0)


def divided(x: Any, by: Any) -> Any:
    """A quotient whose transpose multiplies by three times too much, to be seen."""
    return linear_call(
        lambda r, v: {"out": v / r["by"]}, lambda r, ct: 3 * ct["out"] / r["by"], {"by": by}, x
    )["out"]


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit])
def test_a_linear_function_has_the_transpose_that_is_given(wrap):
    np.testing.assert_allclose(wrap(divided)(X, 2.0), X / 2)
    push = wrap(lambda x, t: fg.jvp(divided, (x, 2.0), (t, 0.0))[1])
    np.testing.assert_allclose(push(X, X), X / 2)
    assert wrap(fg.grad(divided))(1.0, 2.0) == 1.5
    assert wrap(fg.grad(divided, argnums=1))(3.0, 2.0) == -0.75  # by the residuals: the true one
    mapped = fg.vmap(fg.grad(divided), in_axes=(0, None))
    np.testing.assert_allclose(wrap(mapped)(X, 2.0), 1.5)
    (back,) = fg.linear_transpose(lambda x: divided(x, 2.0), X)(X)
    np.testing.assert_allclose(back, 1.5 * X)


def test_a_transpose_of_another_structure_is_refused():
    def wrong(x: Any) -> Any:
        return linear_call(lambda _, v: v, lambda _, ct: (ct, ct), (), x)

    with pytest.raises(errors.TreeError, match="linear_call: the transpose must return"):
        fg.grad(wrong)(1.0)


def test_functions_that_are_mapped_in_a_loop():
    seen: list[Any] = []

    @sequential_vmap
    def f(p: Any, y: Any) -> Any:
        fg.debug.callback(lambda v: seen.append(v.shape), p["x"])
        return {"sum": p["x"] + y, "same": y}

    out = fg.vmap(f, in_axes=({"x": 0, "unused": None}, None))({"x": X, "unused": 1.0}, 2.0)
    np.testing.assert_allclose(out["sum"], X + 2)
    np.testing.assert_allclose(out["same"], np.full(5, 2.0))
    assert seen == [()] * 5
    seen.clear()
    assert f({"x": 1.0}, 2.0)["sum"] == 3.0
    gradient = fg.grad(lambda x: fg.vmap(lambda v: f({"x": v}, v)["sum"])(x).sum())(X)
    np.testing.assert_allclose(gradient, np.full(5, 2.0))


@pytest.mark.parametrize("call", [lambda f: f(2.0, n="3"), lambda f: f(2.0, "3")])
@pytest.mark.parametrize("names", ["n", ("n",)])
def test_checkpoints_of_named_static_arguments(call, names):
    def power(x: Any, n: str) -> Any:
        return x ** int(n)

    kept = fg.checkpoint(power, static_argnames=names)
    assert call(kept) == 8.0
    assert call(fg.grad(kept)) == 12.0


def test_types_of_values():
    types = [fg.typeof(x) for x in (np.ones((2, 3), np.float32), 1.0, np.int8(1))]
    assert [str(t) for t in types] == ["f32[2,3]", "~f64[]", "i8[]"]
    assert fg.eval_shape(lambda x: np.zeros(fg.typeof(x).shape), X).shape == (5,)
    with pytest.raises(errors.DtypeError):
        fg.typeof("text")


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_segments_that_do_not_exist_are_dropped_or_clipped(name):
    reduce = getattr(fg.ops, f"segment_{name}")
    data, ids = np.array([2.0, 3.0, 5.0, 7.0]), np.array([-1, 0, 1, 9])
    fold = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[name]
    for mode in (None, "drop", fg.lax.GatherScatterMode.FILL_OR_DROP):
        np.testing.assert_array_equal(reduce(data, ids, 2, mode=mode), [3.0, 5.0])
    for mode in ("clip", fg.lax.GatherScatterMode.CLIP):
        expected = [fold(data[:2]), fold(data[2:])]
        np.testing.assert_array_equal(reduce(data, ids, 2, mode=mode), expected)
    assert reduce(data[:0], ids[:0], 0, mode="clip").shape == (0,)
    with pytest.raises(errors.ArgumentError):
        reduce(data, ids, 2, mode="wrap_around")
