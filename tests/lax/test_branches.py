"""`cond` and `switch`: what they accept, return, and refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors, lax

X = np.arange(3.0)


def keyed(x: Any) -> Any:
    return {"k": x}


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("holds", [True, 2, -0.5, np.bool_(True), np.uint8(3), 1j, np.nan])
def test_predicates(wrap, holds):
    f = wrap(lambda p, x: lax.cond(p, lambda v: v + 1, lambda v: v - 1, x))
    assert f(holds, 5.0) == 6.0
    assert f(type(holds)(0), 5.0) == 4.0


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "jit"])
def test_indices_are_clipped(wrap):
    f = wrap(lambda i, x: lax.switch(i, [lambda v: v, lambda v: 2 * v, lambda v: 3 * v], x))
    indices = [-(2**40), -1, 0, 1, 2, 3, 2**40]
    assert [f(i, 1.0) for i in indices] == [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0]
    assert f(np.uint8(255), 1.0) == 3.0
    mapped = wrap(fg.vmap(f, (0, None)))(np.array(indices), 1.0)
    np.testing.assert_array_equal(mapped, [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0])


def test_one_branch():
    assert lax.switch(7, [lambda v: 2 * v], 4.0) == 8.0


def test_structures_of_operands_and_results():
    def f(p: Any, tree: Any, y: Any) -> Any:
        return lax.cond(
            p,
            lambda t, y: {"a": t["x"] * y, "b": (None, [t["n"]])},
            lambda t, y: {"a": t["x"] + y, "b": (None, [t["n"] + 1])},
            tree,
            y,
        )

    tree = {"x": X, "n": np.int32(4)}
    for wrap in (lambda g: g, fg.jit):
        for p, a, n in ((True, 2 * X, 4), (False, X + 2, 5)):
            result = wrap(f)(p, tree, 2.0)
            np.testing.assert_array_equal(result["a"], a)
            assert result["b"] == (None, [n])
            assert result["b"][1][0].dtype == np.int32
    with fg.disable_jit():
        np.testing.assert_array_equal(f(False, tree, 2.0)["a"], X + 2)


def test_no_operands_and_operands_by_name():
    assert lax.cond(True, lambda: 1, lambda: 2) == 1
    assert lax.cond(False, lambda v: v, lambda v: -v, operand=3.0) == -3.0
    assert lax.cond(True, lambda none: 1.0 if none is None else 0.0, lambda _: 2.0, operand=None)
    assert lax.switch(1, [lambda v: v, lambda v: -v], operand=3.0) == -3.0
    np.testing.assert_array_equal(lax.cond(True, lambda: X, lambda: -X), X)


def test_python_numbers_take_the_types_of_other_branches():
    assert lax.cond(True, lambda: 1, lambda: 2.5).dtype == np.float64
    assert lax.cond(True, lambda: 2, lambda: np.float32(1)).dtype == np.float32
    assert lax.cond(False, lambda: 1.0, lambda: 1j).dtype == np.complex128
    assert lax.switch(0, [lambda: 1, lambda: np.int8(2), lambda: 3]).dtype == np.int8


def test_closures_over_tracers():
    def f(x: Any, y: Any) -> Any:
        return lax.cond(x < y, lambda: x * y, lambda: x - y)

    for wrap in (lambda g: g, fg.jit):
        assert wrap(fg.grad(f, (0, 1)))(2.0, 3.0) == (3.0, 2.0)
        assert wrap(fg.grad(f, (0, 1)))(3.0, 2.0) == (1.0, -1.0)
        lanes = wrap(fg.vmap(fg.grad(f, (0, 1)), (0, None)))(np.array([1.0, 5.0]), 2.0)
        np.testing.assert_array_equal(lanes[0], [2.0, 1.0])
        np.testing.assert_array_equal(lanes[1], [1.0, -1.0])


def test_branches_without_derivatives():
    def f(x: Any) -> Any:
        return lax.cond(x > 0, lambda v: (np.floor(v).astype(int), 3.0), lambda v: (0, v * v), x)[1]

    assert fg.grad(f)(1.0) == 0.0
    assert fg.grad(f)(-1.0) == -2.0
    np.testing.assert_array_equal(fg.vmap(fg.grad(f))(np.array([1.0, -1.0])), [0.0, -2.0])
    np.testing.assert_array_equal(fg.vmap(fg.jacfwd(f))(np.array([1.0, -1.0])), [0.0, -2.0])


MISTAKES = {
    "structures": (
        lambda: lax.cond(True, keyed, lambda x: {"j": x}, 1.0),
        errors.TreeError,
        "cond(keyed, <lambda>): branches must return equal structures.",
        "  false_fun     PyTreeDef({'j': *})\n  true_fun      PyTreeDef({'k': *})",
    ),
    "structures of later branches": (
        lambda: lax.switch(0, [keyed, keyed, lambda x: x], 1.0),
        errors.TreeError,
        "switch(keyed, keyed, <lambda>): branches must return equal structures.",
        "  branches[1]   PyTreeDef({'k': *})\n  branches[2]   PyTreeDef(*)",
    ),
    "shapes": (
        lambda: lax.cond(True, keyed, lambda x: {"k": x[None]}, X),
        errors.ShapeError,
        "cond(keyed, <lambda>): branches must return equal types.",
        "  `result['k']`: f64[1,3] from false_fun, f64[3] from true_fun\nConvert them (.astype",
    ),
    "dtypes": (
        lambda: lax.switch(0, [keyed, lambda x: {"k": x.astype(int)}], X),
        errors.ShapeError,
        "branches must return equal types.",
        "  `result['k']`: f64[3] from branches[0], i64[3] from branches[1]\nConvert them",
    ),
    "predicate with axes": (
        lambda: lax.cond(X > 1, keyed, keyed, 1.0),
        errors.ShapeError,
        "cond(keyed, keyed): `pred` must be a scalar, got bool[3].",
        "\nReduce it with .any() or .all(), choose element by element with numpy.where, or map",
    ),
    "predicate that is text": (
        lambda: lax.cond("yes", keyed, keyed, 1.0),
        errors.DtypeError,
        "`pred` is a str, which is neither an array nor a number.",
        "\nPass numbers",
    ),
    "operand twice": (
        lambda: lax.cond(True, keyed, keyed, 1.0, operand=2.0),
        errors.ArgumentError,
        "pass operands by position, or one by name, not both.",
        "",
    ),
    "text among operands": (
        lambda: lax.cond(True, keyed, keyed, {"u": "s"}),
        errors.DtypeError,
        "`operands[0]['u']` is a str",
        "\nPass numbers, arrays or pytrees of them, and close over anything else.",
    ),
    "text among results": (
        lambda: lax.cond(True, lambda: {"k": "a"}, lambda: 2.0),
        errors.DtypeError,
        "`result['k']` is a str",
        "\nReturn numbers, arrays or pytrees of them.",
    ),
    "values instead of functions": (
        lambda: lax.cond(True, np.sin, 2.0, 1.0),
        errors.ArgumentError,
        "cond(sin, float): `false_fun` must be a function, got 2.0.",
        "\nWrap values in a function: lambda *args: value.",
    ),
    "float index": (
        lambda: lax.switch(1.0, [keyed, keyed], 1.0),
        errors.DtypeError,
        "`index` must be an integer, got ~f64[].",
        "\nConvert it with .astype(int), or use cond for a bool.",
    ),
    "bool index": (
        lambda: lax.switch(np.bool_(True), [keyed, keyed], 1.0),
        errors.DtypeError,
        "`index` must be an integer, got bool[].",
        "or use cond for a bool.",
    ),
    "index with axes": (
        lambda: lax.switch(np.arange(2), [keyed, keyed], 1.0),
        errors.ShapeError,
        "`index` must be a scalar, got i64[2].",
        "\nMap the function with vmap to choose for every element.",
    ),
    "no branches": (
        lambda: lax.switch(0, [], 1.0),
        errors.ArgumentError,
        "switch: there must be at least one branch.",
        "",
    ),
    "branch that is a value": (
        lambda: lax.switch(0, [keyed, 3], 1.0),
        errors.ArgumentError,
        "switch(keyed, int): `branches[1]` must be a function, got an int.",
        "\nWrap values",
    ),
    "one function": (
        lambda: lax.switch(0, keyed, 1.0),
        errors.ArgumentError,
        "switch: `branches` must be a list of functions, got a function.",
        "",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    run, kind, problem, cure = MISTAKES[name]
    with pytest.raises(kind) as caught:
        run()
    text = str(caught.value)
    assert problem in text
    assert "\n  at            test_branches.py:" in text
    assert cure in text
    assert text.strip() == text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(16))
def test_whether_a_lane_wants_an_arm_is_one_byte_but_the_index_has_eight(seed):
    """Memory of bools is used again for bools, with what other values left behind them."""
    c, w = np.random.default_rng(seed).normal(size=(2, 2, 5, 5))

    def f(c: Any, w: Any) -> Any:
        def step(c: Any, _: None) -> Any:
            v = fg.lax.cond(c[0, 0] > w[0, 0], lambda p, q: q, lambda p, q: p, c, w)
            k = fg.numpy.ones((5, 5)) * 0.3
            return v * 0.9, fg.lax.cond(k[0, 0] > v[0, 0], lambda p, q: q, lambda p, q: p, k, v)[0]

        return fg.lax.scan(step, c, None, length=4)[1]

    with fg.disable_jit():
        expected = fg.vmap(f)(c, w)
    np.testing.assert_array_equal(fg.jit(fg.vmap(f))(c, w), expected)
