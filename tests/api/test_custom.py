"""Decorators for rules: arguments, pytrees, zeros, and the text of every message."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors
from funcgrad.testing import CustomRuleError, check_custom_rule

X = 1.5
XS = np.array([0.5, 1.0, 1.5])
FILE = Path(__file__).name
Function = Callable[..., Any]


def copy(x: Any) -> Any:
    return x * 1.0


def product(x: Any, y: Any) -> Any:
    return x * y


def with_vjp(fwd: Function, bwd: Function, fun: Function = copy, **options: Any) -> Any:
    f = fg.custom_vjp(fun, **options)
    f.defvjp(fwd, bwd)
    return f


def with_bwd(bwd: Function, fun: Function = copy) -> Any:
    return with_vjp(lambda *args: (fun(*args), args), bwd, fun)


def with_jvp(rule: Function, fun: Function = copy, **options: Any) -> Any:
    f = fg.custom_jvp(fun, **options)
    f.defjvp(rule)
    return f


# What rules get and give.


def test_outside_of_transformations_the_function_just_runs() -> None:
    marker = object()
    calls = []
    for decorator in (fg.custom_jvp, fg.custom_vjp, fg.custom_vmap):
        f = decorator(lambda *args, **kwargs: calls.append((args, kwargs)) or marker)
        assert f("text", key=marker) is marker
    assert calls == [(("text",), {"key": marker})] * 3


def test_pytrees_integers_and_none_cotangents() -> None:
    @fg.custom_vjp
    def f(p: Any, n: Any, q: Any) -> Any:
        return {"s": p["a"] * q[0], "m": (p["b"] * n,), "i": n}

    def bwd(residuals: Any, ct: Any) -> Any:
        p, n, q = residuals
        assert ct["i"].dtype == fg.float0
        return {"a": ct["s"] * q[0], "b": ct["m"][0] * n}, None, (p["a"] * ct["s"], None)

    f.defvjp(lambda p, n, q: (f(p, n, q), (p, n, q)), bwd)

    def loss(p: Any, q: Any) -> Any:
        out = f(p, 3, q)
        return out["s"].sum() + out["m"][0].sum()

    p, q = {"a": XS, "b": 2 * XS}, (3 * XS, XS)
    for wrap in (lambda f: f, fg.jit):
        gradient, (first, second) = wrap(fg.grad(loss, (0, 1)))(p, q)
        np.testing.assert_allclose(gradient["a"], 3 * XS)
        np.testing.assert_allclose(gradient["b"], [3, 3, 3])
        np.testing.assert_allclose(first, XS)
        np.testing.assert_allclose(second, [0, 0, 0])
    tangent = fg.jvp(lambda p: f(p, 3, q), (p,), (p,))[1]
    np.testing.assert_allclose(tangent["s"], 3 * XS * XS)
    assert tangent["i"].dtype == fg.float0


def test_nondiff_arguments_come_first_in_the_rules() -> None:
    @functools.partial(fg.custom_jvp, nondiff_argnums=(0, 2))
    def forward(fn: Any, x: Any, n: int, y: Any = 2.0) -> Any:
        return fn(x) * n * y

    @forward.defjvp
    def rule(fn: Any, n: int, primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        slope = fg.jvp(fn, (x,), (dx,))[1]
        return forward(fn, x, n, y), n * (slope * y + fn(x) * dy)

    @functools.partial(fg.custom_vjp, nondiff_argnames=("fn", "n"))
    def reverse(fn: Any, x: Any, n: int, y: Any = 2.0) -> Any:
        return fn(x) * n * y

    reverse.defvjp(
        lambda fn, x, n, y: (reverse(fn, x, n, y), (x, y)),
        lambda fn, n, xy, ct: (ct * n * xy[1] * fg.grad(fn)(xy[0]), ct * n * fn(xy[0])),
    )
    sin, cos = np.sin(X), np.cos(X)
    for f in (forward, reverse):
        for wrap in (lambda f: f, fg.jit):
            close = functools.partial(np.testing.assert_allclose, rtol=1e-12)
            close(wrap(fg.grad(lambda x: f(np.sin, x, 3)))(X), 6 * cos)  # noqa: B023
            close(wrap(fg.grad(lambda x: f(np.sin, n=3, x=x, y=x)))(X), 3 * (cos * X + sin))  # noqa: B023
            scaled = lambda x: f(lambda z: np.sin(z) * x, x, 3)  # noqa: B023, E731
            close(wrap(fg.grad(scaled))(X), 6 * (cos * X + sin))
            close(wrap(fg.jacfwd(scaled))(X), 6 * (cos * X + sin))


def test_nondiff_arguments_may_be_traced_if_they_are_not_differentiated() -> None:
    f = functools.partial(fg.custom_vjp, nondiff_argnums=1)(product)
    f.defvjp(lambda x, y: (x * y, None), lambda y, _, ct: (ct * y,))
    assert fg.jit(fg.grad(f))(X, 2.0) == 2.0
    np.testing.assert_allclose(fg.vmap(fg.grad(f), (None, 0))(X, XS), XS)


def test_defjvps_sums_what_arguments_contribute() -> None:
    f = fg.custom_jvp(lambda x, y: (x * y, x + y))
    f.defjvps(lambda t, value, x, y: (t * y, t), None)
    assert fg.grad(lambda x: f(x, x)[0] + f(x, 3.0)[1])(X) == X + 1
    assert fg.grad(lambda y: f(X, y)[0])(2.0) == 0


def test_a_function_may_have_rules_for_everything() -> None:
    f = fg.custom_jvp(np.sin)
    f.defjvp(lambda ps, ts: (f(*ps), 2.0 * ts[0]))
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (3.0 * ct,))
    f.def_vmap(lambda size, batched, x: (4.0 * x, True))
    assert fg.jvp(f, (X,), (1.0,))[1] == 2.0
    assert fg.grad(f)(X) == 3.0
    np.testing.assert_allclose(fg.vmap(f)(XS), 4 * XS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_dtypes(dtype: Any) -> None:
    f = fg.custom_jvp(lambda x: x * x)
    f.defjvps(lambda t, value, x: 2 * x * t)
    x = dtype(1.5)
    slope = fg.grad(f, holomorphic=dtype is np.complex128)(x)
    assert slope == 3
    assert slope.dtype == dtype


def test_symbolic_zeros_in_reverse_mode() -> None:
    seen: list[Any] = []
    f = fg.custom_vjp(lambda x, y: (x * y, x + y))

    def fwd(x: Any, y: Any) -> Any:
        seen.append((x.perturbed, y.perturbed))
        return (x.value * y.value, x.value + y.value), y.value

    def bwd(y: Any, cts: Any) -> Any:
        seen.append([type(ct).__name__ for ct in cts])
        return cts[0] * y, None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert fg.grad(lambda x: f(x, 2.0)[0])(X) == 2.0
    assert seen[0] == (True, False)
    assert seen[1][1] == "SymbolicZero"
    np.testing.assert_allclose(fg.vmap(fg.grad(lambda x: f(x, 2.0)[0]))(XS), [2, 2, 2])


def test_bools_of_the_forward_rule_are_asked_by_the_backward_rule() -> None:
    @fg.custom_vjp
    def f(x: Any) -> Any:
        return x * x

    def bwd(residuals: Any, ct: Any) -> Any:
        is_doubled, x = residuals
        assert is_doubled is True
        return (4 * x * ct if is_doubled else 2 * x * ct,)

    f.defvjp(lambda x: (x * x, (True, x)), bwd)
    for g in (fg.grad(f), fg.jit(fg.grad(f)), fg.grad(fg.jit(f))):
        assert g(3.0) == 12.0
    np.testing.assert_array_equal(fg.vmap(fg.grad(f))(np.arange(3.0)), [0.0, 4.0, 8.0])


def test_symbolic_zeros_in_forward_mode() -> None:
    seen: list[Any] = []
    f = fg.custom_jvp(product)

    def rule(primals: Any, tangents: Any) -> Any:
        seen.append(repr(tangents[1]))
        return f(*primals), tangents[0] * primals[1]

    f.defjvp(rule, symbolic_zeros=True)
    assert fg.grad(f)(X, 2.0) == 2.0
    assert seen == ["SymbolicZero(shape=(), dtype=float64)"]


def test_integer_results_have_no_tangent() -> None:
    f = with_jvp(lambda ps, ts: (f(*ps), None), lambda x: np.floor(x).astype(int))
    assert fg.grad(lambda x: f(x) * x)(2.5) == 2.0


def test_forward_rules_are_differentiated_for_higher_orders() -> None:
    # The value that `fwd` returns is x, whose derivative is 1: only the cotangent is scaled.
    f = with_vjp(lambda x: (x, None), lambda _, ct: (7 * ct,))
    assert fg.grad(lambda x: f(x) * x)(X) == 8 * X
    assert fg.grad(fg.grad(lambda x: f(x) * x))(X) == 8


def test_custom_gradient() -> None:
    f = fg.custom_gradient(lambda x, y: (x * y, lambda ct: (2 * ct * y, 3 * ct * x)))
    assert f(X, 5.0) == 7.5
    for wrap in (lambda f: f, fg.jit):
        assert wrap(fg.grad(f, (0, 1)))(X, 5.0) == (10.0, 3 * X)
        assert wrap(fg.jacfwd(f))(X, 5.0) == 10.0
        assert wrap(fg.grad(fg.grad(f), 1))(X, 5.0) == 2.0
        slopes = wrap(fg.vmap(fg.grad(f, (0, 1)), (0, None)))(XS, 5.0)
        np.testing.assert_allclose(slopes[1], 3 * XS)


def test_closure_convert() -> None:
    def f(a: Any, x: Any) -> Any:
        g, values = fg.closure_convert(lambda x: np.sin(a) * x * XS, x)
        return g(x, *values).sum()

    for wrap in (lambda f: f, fg.jit):
        slope = wrap(fg.grad(f))(X, 2.0)
        np.testing.assert_allclose(slope, 2 * np.cos(X) * XS.sum())
        slopes = wrap(fg.vmap(fg.grad(f), (0, None)))(XS, 2.0)
        np.testing.assert_allclose(slopes, 2 * np.cos(XS) * XS.sum())


def test_custom_vmap() -> None:
    seen: list[Any] = []
    f = fg.custom_vmap(product)

    @f.def_vmap
    def rule(size: int, batched: Any, x: Any, y: Any) -> Any:
        seen.append((size, batched))
        return 10 * x * y, True

    for wrap in (lambda f: f, fg.jit):
        np.testing.assert_allclose(wrap(fg.vmap(f))(XS, XS), 10 * XS**2)
        np.testing.assert_allclose(wrap(fg.vmap(f, (0, None)))(XS, 2.0), 20 * XS)
        total = lambda x: fg.vmap(f, (0, None))(x, 2.0).sum()  # noqa: E731
        np.testing.assert_allclose(wrap(fg.grad(total))(XS), [20, 20, 20])
        grid = np.outer(XS, XS)
        np.testing.assert_allclose(wrap(fg.vmap(fg.vmap(f)))(grid, grid), 10 * grid**2)
    assert seen[:2] == [(3, [True, True]), (3, [True, False])]
    shared = fg.custom_vmap(copy)
    shared.def_vmap(lambda size, batched, x: (x.sum(), False))
    np.testing.assert_allclose(fg.vmap(shared)(XS), [3, 3, 3])


def test_repr_and_metadata() -> None:
    f = fg.custom_jvp(copy)
    assert (repr(f), f.__name__) == ("<custom_jvp(copy)>", "copy")


# Messages.

bad_rules: list[tuple[str, type[Exception], Function, list[str]]] = [
    (
        "wrong structure of a cotangent",
        errors.TreeError,
        lambda: fg.grad(with_bwd(lambda _, ct: ({"a": ct},), lambda p: p["a"][0]))({"a": (X, X)}),
        [
            "the backward rule of <lambda> (<lambda>, ",
            "wrong structure for `args[0]['a']`",
            "expected      PyTreeDef((*, *))",
            "got           an array",
            "None may stand for zeros",
        ],
    ),
    (
        "a container instead of an array",
        errors.TreeError,
        lambda: fg.grad(with_bwd(lambda _, ct: ((ct,),)))(X),
        ["for `args[0]`", "expected      an array", "got           PyTreeDef((*,))"],
    ),
    (
        "wrong shape of a cotangent",
        errors.ShapeError,
        lambda: fg.grad(with_bwd(lambda _, ct: (np.ones(3) * ct,)))(X),
        [
            "cotangent of the wrong type for `args[0]`",
            "expected      f64[]",
            "got           f64[3]",
        ],
    ),
    (
        "wrong dtype of a cotangent",
        errors.ShapeError,
        lambda: fg.grad(with_bwd(lambda _, ct: (ct.astype(np.float64),)))(np.float32(X)),
        ["wrong type for `args[0]`", "expected      f32[]", "got           f64[]"],
    ),
    (
        "a cotangent of an integer",
        errors.DtypeError,
        lambda: fg.grad(with_bwd(lambda _, ct: (ct, ct), product))(X, 2),
        ["cotangent for `args[1]`, but i64[] has none", "None or float0[]", "got           f64[]"],
    ),
    (
        "a cotangent that is no array",
        errors.DtypeError,
        lambda: fg.grad(with_bwd(lambda _, ct: ("text",)))(X),
        ["returned a str as `args[0]`", "neither an array nor a number"],
    ),
    (
        "too many cotangents",
        errors.TreeError,
        lambda: fg.grad(with_bwd(lambda _, ct: (ct, ct)))(X),
        ["must return a tuple of 1 cotangent", "it returned 2 of them"],
    ),
    (
        "no tuple of cotangents",
        errors.TreeError,
        lambda: fg.grad(with_bwd(lambda _, ct: ct))(X),
        ["must return a tuple of 1 cotangent", "it returned f64[]"],
    ),
    (
        "a forward rule without residuals",
        errors.ArgumentError,
        lambda: fg.grad(with_vjp(copy, lambda _, ct: (ct,)))(X),
        [f"the forward rule of copy (copy, {FILE}:", "a pair (value, residuals)", "f64[]"],
    ),
    (
        "a forward rule with another value",
        errors.TreeError,
        lambda: fg.grad(fg.jit(with_vjp(lambda x: ((x,), x), lambda _, ct: (ct,))))(X),
        ["with the structure of copy's", "expected      PyTreeDef(*)", "PyTreeDef((*,))"],
    ),
    (
        "a forward rule with another type",
        errors.ShapeError,
        lambda: fg.grad(fg.jit(with_vjp(lambda x: (x + XS, x), lambda _, ct: (ct,))))(X),
        ["must return what copy returns, but `result`", "expected      f64[]", "f64[3]"],
    ),
    (
        "a forward rule with text",
        errors.DtypeError,
        lambda: fg.grad(with_vjp(lambda x: ("text", x), lambda _, ct: (ct,)))(X),
        ["the forward rule of copy", "returned a str as `result`"],
    ),
    (
        "a jvp rule without tangent",
        errors.ArgumentError,
        lambda: fg.grad(with_jvp(lambda ps, ts: ps[0]))(X),
        ["the jvp rule of copy (<lambda>, ", "a pair (value, tangent)", "it returned f64[]"],
    ),
    (
        "wrong structure of a tangent",
        errors.TreeError,
        lambda: fg.grad(with_jvp(lambda ps, ts: (ps[0], ts)))(X),
        ["a tangent of the wrong structure for `result`", "got           PyTreeDef((*,))"],
    ),
    (
        "wrong shape of a tangent",
        errors.ShapeError,
        lambda: fg.jvp(with_jvp(lambda ps, ts: (ps[0], ts[0] * XS)), (X,), (1.0,)),
        ["a tangent of the wrong type for `result`", "expected      f64[]", "f64[3]"],
    ),
    (
        "wrong dtype of a tangent",
        errors.ShapeError,
        lambda: fg.jvp(with_jvp(lambda ps, ts: (ps[0], ts[0].astype("f4"))), (X,), (1.0,)),
        ["a tangent of the wrong type for `result`", "got           f32[]"],
    ),
    (
        "a square of a tangent",
        errors.ArgumentError,
        lambda: fg.grad(with_jvp(lambda ps, ts: (ps[0], ts[0] * ts[0])))(X),
        ["the jvp rule of copy (<lambda>, ", "not linear in the tangents (it applies mul to them)"],
    ),
    (
        "a sine of a tangent",
        errors.ArgumentError,
        lambda: fg.jit(fg.grad(with_jvp(lambda ps, ts: (ps[0], np.sin(ts[0])))))(X),
        ["not linear in the tangents (it applies sin to them)", "must only add up the tangents"],
    ),
    (
        "a compiled square of a tangent",
        errors.ArgumentError,
        lambda: fg.grad(with_jvp(fg.jit(lambda ps, ts: (ps[0], ts[0] * ts[0]))))(X),
        ["not linear in the tangents (it applies mul to them)"],
    ),
    (
        "a constant tangent",
        errors.ArgumentError,
        lambda: fg.grad(with_jvp(lambda ps, ts: (ps[0], np.float64(1.0))))(X),
        ["not linear in the tangents (it returns a constant)"],
    ),
    (
        "a shifted tangent",
        errors.ArgumentError,
        lambda: fg.grad(with_jvp(lambda ps, ts: (ps[0], ts[0] + 1.0)))(X),
        ["not linear in the tangents (it applies add to them)"],
    ),
    (
        "a value made of tangents",
        errors.ArgumentError,
        lambda: fg.grad(with_jvp(lambda ps, ts: (2 * ts[0], ts[0])))(X),
        ["returned a value that depends on the tangents", "Compute it from the primals only"],
    ),
    (
        "a square of a cotangent",
        errors.ArgumentError,
        lambda: fg.jvp(with_bwd(lambda _, ct: (ct * ct,)), (X,), (1.0,)),
        ["the backward rule of copy (<lambda>, ", "not linear in the cotangents (it applies mul"],
    ),
    (
        "a constant cotangent",
        errors.ArgumentError,
        lambda: fg.jvp(with_bwd(lambda _, ct: (np.float64(2.0),)), (X,), (1.0,)),
        ["not linear in the cotangents (it returns a constant)"],
    ),
    (
        "no batching result",
        errors.ArgumentError,
        lambda: fg.vmap(with_vmap(lambda size, batched, x: x))(XS),
        ["the batching rule of copy (<lambda>, ", "a pair (value, out_batched)", "f64[3]"],
    ),
    (
        "wrong structure of out_batched",
        errors.TreeError,
        lambda: fg.vmap(with_vmap(lambda size, batched, x: (x, (True,))))(XS),
        ["out_batched must have the structure of the value", "got           PyTreeDef((*,))"],
    ),
    (
        "no mapped axis",
        errors.TreeError,
        lambda: fg.vmap(with_vmap(lambda size, batched, x: (x[0], True)))(XS),
        ["`result` is f64[], but out_batched says", "axis of length 3 in front"],
    ),
    (
        "custom_gradient without function",
        errors.ArgumentError,
        lambda: fg.grad(fg.custom_gradient(copy))(X),
        ["custom_gradient: copy must return a pair (value, function", "it returned f64[]"],
    ),
]


def with_vmap(rule: Function) -> Any:
    f = fg.custom_vmap(copy)
    f.def_vmap(rule)
    return f


@pytest.mark.parametrize(
    ("error", "run", "parts"), [row[1:] for row in bad_rules], ids=[row[0] for row in bad_rules]
)
def test_messages_about_rules(error: Any, run: Function, parts: list[str]) -> None:
    with pytest.raises(error) as caught:
        run()
    for part in [*parts, FILE if "<lambda>, " in str(caught.value) else ""]:
        assert part in str(caught.value)


bad_uses: list[tuple[type[Exception], Function, list[str]]] = [
    (errors.ArgumentError, lambda: fg.custom_jvp(3), ["custom_jvp needs a function", "got int"]),
    (
        errors.MissingRuleError,
        lambda: fg.grad(fg.custom_jvp(copy))(X),
        [f"copy (copy, {FILE}:", "no differentiation rule: call copy.defjvp(rule)"],
    ),
    (
        errors.MissingRuleError,
        lambda: fg.jit(fg.jacfwd(fg.custom_vjp(copy)))(X),
        ["no differentiation rule: call copy.defvjp(fwd, bwd)"],
    ),
    (
        errors.MissingRuleError,
        lambda: fg.vmap(fg.custom_vmap(copy))(XS),
        ["no batching rule: call copy.def_vmap(rule)"],
    ),
    (
        errors.ArgumentError,
        lambda: fg.custom_jvp(copy, nondiff_argnums=3),
        ["custom_jvp(copy): nondiff_argnums=3 names positional argument 3", "has 1 argument."],
    ),
    (
        errors.ArgumentError,
        lambda: fg.custom_vjp(copy, nondiff_argnums=("x",)),  # type: ignore[arg-type]
        ["custom_vjp(copy): nondiff_argnums must hold ints, got 'x'"],
    ),
    (
        errors.ArgumentError,
        lambda: fg.custom_vjp(copy, nondiff_argnames="y"),
        ["nondiff_argnames='y' names 'y', but the arguments are x"],
    ),
    (
        errors.ArgumentError,
        lambda: fg.grad(
            with_vjp(lambda x, y: (x, y), lambda y, _, ct: (ct,), product, nondiff_argnums=1), 1
        )(X, X),
        [
            "product is differentiated with respect to `args[1]`",
            "which is named in nondiff_argnums",
            "Remove it from there",
            "stop_gradient",
        ],
    ),
    (
        errors.ArgumentError,
        lambda: fg.custom_jvp(product).defjvp(3),  # type: ignore[arg-type]
        ["product.defjvp needs a function, got int"],
    ),
    (
        errors.ArgumentError,
        lambda: fg.custom_vjp(product).defvjp(copy, None),  # type: ignore[arg-type]
        ["product.defvjp needs a function, got NoneType"],
    ),
    (
        errors.ArgumentError,
        lambda: fg.custom_jvp(product, nondiff_argnums=1).defjvps(None),
        ["product.defjvps does not know nondiff_argnums: use product.defjvp"],
    ),
    (
        errors.DtypeError,
        lambda: fg.grad(lambda x: with_bwd(lambda _, ct: (ct, None), product)(x, "s"))(X),
        ["argument `args[1]` of product is a str", "name it in nondiff_argnums", FILE],
    ),
    (
        errors.ArgumentError,
        lambda: fg.grad(lambda x: fg.custom_jvp(product)(x))(X),
        ["product(x", "missing a required argument: 'y'", FILE],
    ),
    (
        errors.ArgumentError,
        lambda: fg.grad(lambda x: fg.custom_jvp(lambda x, *, k: x)(x, k=1))(X),
        ["keyword-only arguments (k)", "make them positional", FILE],
    ),
    (
        errors.ArgumentError,
        lambda: fg.grad(lambda x: fg.custom_jvp(np.sin)(x, where=True))(X),
        ["sin was called with keyword arguments", "pass them by position", FILE],
    ),
]


@pytest.mark.parametrize(("error", "run", "parts"), bad_uses)
def test_messages_about_uses(error: Any, run: Function, parts: list[str]) -> None:
    with pytest.raises(error) as caught:
        run()
    for part in parts:
        assert part in str(caught.value)


def test_defjvps_with_a_wrong_number_of_rules() -> None:
    f = fg.custom_jvp(product)
    f.defjvps(None)
    with pytest.raises(errors.ArgumentError, match="given 1 rules, but product has 2 arguments"):
        fg.grad(f)(X, X)


def test_closure_convert_checks_its_arguments() -> None:
    g, _ = fg.closure_convert(copy, 1.0)
    with pytest.raises(errors.TreeError, match=r"closure_convert\(copy\): the arguments must have"):
        g((1.0, 2.0))


def test_batching_rules_do_not_see_mapped_closures() -> None:
    def outer(a: Any) -> Any:
        f = fg.custom_vmap(lambda x: a * x)
        f.def_vmap(lambda size, batched, x: (x, True))
        return f(a)

    with pytest.raises(errors.ArgumentError, match="closes over a value that is mapped too"):
        fg.vmap(outer)(XS)


def test_leaked_values_in_rules_are_named() -> None:
    kept: list[Any] = []
    fg.grad(lambda x: kept.append(x) or x)(X)
    f = with_bwd(lambda _, ct: (ct * kept[0],))
    with pytest.raises(errors.UnexpectedTracerError, match=r"grad\(<lambda>\).* has returned") as e:
        fg.grad(f)(X)
    assert f"used at       {FILE}" in str(e.value)


# check_custom_rule.


def trig(x: Any, y: Any) -> Any:
    return {"p": np.sin(x) * y[0], "n": 3}


def trig_jvp(primals: Any, tangents: Any) -> Any:
    (x, (a, _)), (dx, (da, _)) = primals, tangents
    return trig(*primals), {"p": np.cos(x) * dx * a + np.sin(x) * da, "n": None}


def trig_fwd(x: Any, y: Any) -> Any:
    return trig(x, y), (x, y)


def trig_bwd(xy: Any, ct: Any) -> Any:
    x, (a, _) = xy
    return ct["p"] * np.cos(x) * a, (ct["p"] * np.sin(x), None)


def checked(
    jvp: Any = None, fwd: Any = trig_fwd, bwd: Any = None, vmap: Any = None, dtype: Any = float
) -> None:
    f = fg.custom_jvp(trig)
    if jvp is not None:
        f.defjvp(jvp)
    if bwd is not None:
        f.defvjp(fwd, bwd)
    if vmap is not None:
        f.def_vmap(vmap)
    check_custom_rule(f, (XS.astype(dtype), (XS.astype(dtype) + 1, np.array([1, 2]))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_right_rules_pass(dtype: Any) -> None:
    checked(trig_jvp, bwd=trig_bwd, dtype=dtype)
    checked(trig_jvp, dtype=dtype)
    checked(bwd=trig_bwd, dtype=dtype)

    def over_axis(size: int, batched: Any, x: Any, y: Any) -> Any:
        return {"p": np.sin(x) * y[0], "n": 3}, {"p": True, "n": False}

    checked(vmap=over_axis, dtype=dtype)
    square = fg.custom_gradient(lambda x: (x * x, lambda ct: 2 * ct * x))
    check_custom_rule(square, (XS.astype(dtype),))
    holomorphic = fg.custom_jvp(lambda x: x * x)
    holomorphic.defjvps(lambda t, value, x: 2 * t * x)
    check_custom_rule(holomorphic, (XS + 1j,))
    scaled = fg.custom_vjp(lambda n, x: n * x, nondiff_argnums=(0,))
    scaled.defvjp(lambda n, x: (n * x, None), lambda n, _, ct: (n * ct,))
    check_custom_rule(scaled, (2, XS.astype(dtype)))


def jvp_without_second(primals: Any, tangents: Any) -> Any:
    value, dots = trig_jvp(primals, (tangents[0], (0 * XS, None)))
    return value, dots


WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    (
        {"jvp": jvp_without_second},
        "jvp",
        "args[1][0]",
        "the jvp rule of trig (jvp_without_second, "
        + FILE
        + ":LINE) disagrees with finite differences of `result['p']` with respect to `args[1][0]`",
    ),
    (
        {"bwd": lambda xy, ct: (ct["p"], trig_bwd(xy, ct)[1])},
        "vjp",
        "args[0]",
        "disagrees with finite differences (by <ct, J v> = <J^T ct, v>) with respect to `args[0]`",
    ),
    (
        {"jvp": trig_jvp, "bwd": lambda xy, ct: ((1 + 1e-7) * trig_bwd(xy, ct)[0], None)},
        "vjp",
        "args[0]",
        "disagrees with the jvp rule (by <ct, J v> = <J^T ct, v>) with respect to `args[0]`",
    ),
    (
        {"jvp": lambda ps, ts: ({"p": XS * ps[0], "n": 3}, trig_jvp(ps, ts)[1])},
        "jvp",
        "result['p']",
        "disagrees with the value of trig in `result['p']`",
    ),
    (
        {"bwd": lambda xy, ct: (abs(trig_bwd(xy, ct)[0]), trig_bwd(xy, ct)[1])},
        "vjp",
        "args[0]",
        "disagrees with itself: it is not linear in the cotangents, as shown by `args[0]`",
    ),
    (
        {"jvp": lambda ps, ts: (trig(*ps), {"p": abs(trig_jvp(ps, ts)[1]["p"]), "n": None})},
        "jvp",
        "result['p']",
        "disagrees with itself: it is not linear in the tangents, as shown by `result['p']`",
    ),
    (
        {"vmap": lambda n, b, x, y: ({"p": x * y[0], "n": 3}, {"p": True, "n": False})},
        "vmap",
        "result['p']",
        "disagrees with a loop over args[0], args[1][0] in `result['p']`",
    ),
]


@pytest.mark.parametrize(("rules", "rule", "path", "text"), WRONG)
def test_wrong_rules_are_named(rules: Any, rule: str, path: str, text: str) -> None:
    with pytest.raises(CustomRuleError) as caught:
        checked(**rules)
    line = jvp_without_second.__code__.co_firstlineno
    assert text.replace("LINE", str(line)) in str(caught.value)
    assert "relative error" in str(caught.value)
    assert (caught.value.rule, caught.value.path) == (rule, path)


def test_check_custom_rule_needs_rules() -> None:
    with pytest.raises(errors.ArgumentError, match="For other functions use check_grads"):
        check_custom_rule(copy, (X,))  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match=r"<custom_jvp\(copy\)> has no rules to check"):
        check_custom_rule(fg.custom_jvp(copy), (X,))


# The derivatives of batching rules.


def tenfold() -> Any:
    """``a * x ** 3``, whose batching rule computes ten times as much, so that its use shows."""
    f = fg.custom_vmap(lambda a, x: a * x**3)

    @f.def_vmap
    def rule(size: int, in_batched: Any, a: Any, x: Any) -> Any:
        return 10.0 * a * x**3, in_batched[0] or in_batched[1]

    return f


P = np.array([0.5, 1.5, -2.0])
A3 = np.array([2.0, 3.0, 4.0])

# Functions of f, and their values where f is k * a * x ** 3: k is 10 where f is mapped.
MAPPED: dict[str, tuple[Any, Any]] = {
    "vmap": (lambda f: fg.vmap(f)(A3, P), 10 * A3 * P**3),
    "vmap of jvp": (
        lambda f: fg.vmap(lambda a, x: fg.jvp(f, (a, x), (1.0, 2.0))[1])(A3, P),
        10 * (P**3 + 2 * 3 * A3 * P**2),
    ),
    "vmap of jvp, shared": (
        lambda f: fg.vmap(lambda x: fg.jvp(lambda x: f(2.0, x), (x,), (1.0,))[1])(P),
        10 * 2 * 3 * P**2,
    ),
    "vmap of tangents": (
        lambda f: fg.vmap(lambda t: fg.jvp(f, (2.0, 3.0), (t, 0.0))[1])(P),
        10 * P * 27,
    ),
    "vmap of grad": (lambda f: fg.vmap(fg.grad(f, 1))(A3, P), 10 * 3 * A3 * P**2),
    "vmap of value_and_grad": (
        lambda f: fg.vmap(fg.value_and_grad(f, (0, 1)))(A3, P)[1][0],
        10 * P**3,
    ),
    "grad of vmap": (
        lambda f: fg.grad(lambda a, x: fg.vmap(f)(a, x).sum(), 1)(A3, P),
        10 * 3 * A3 * P**2,
    ),
    "grad of vmap, shared": (
        lambda f: fg.grad(lambda a: fg.vmap(f, (None, 0))(a, P).sum())(2.0),
        10 * np.sum(P**3),
    ),
    "jvp of vmap": (
        lambda f: fg.jvp(lambda x: fg.vmap(f, (None, 0))(2.0, x), (P,), (A3,))[1],
        10 * 2 * 3 * P**2 * A3,
    ),
    "jacfwd": (lambda f: fg.jacfwd(f, (0, 1))(2.0, 3.0)[1], 10 * 2 * 3 * 9.0),
    "jacrev": (lambda f: fg.jacrev(f, (0, 1))(2.0, 3.0)[0], 10 * 27.0),
    # Mapped twice; the rule is a function like others for the second time.
    "hessian": (lambda f: fg.hessian(f, 1)(2.0, 3.0), 10 * 2 * 6 * 3.0),
    "vmap of grad of grad": (
        lambda f: fg.vmap(fg.grad(fg.grad(f, 1), 1))(A3, P),
        10 * 6 * A3 * P,
    ),
    "vmap of jvp of jvp": (
        lambda f: fg.vmap(
            lambda x: fg.jvp(lambda x: fg.jvp(lambda x: f(2.0, x), (x,), (1.0,))[1], (x,), (1.0,))[
                1
            ]
        )(P),
        10 * 2 * 6 * P,
    ),
    "vmap of linearize": (
        lambda f: fg.vmap(lambda a, x: fg.linearize(f, a, x)[1](1.0, 2.0))(A3, P),
        10 * (P**3 + 2 * 3 * A3 * P**2),
    ),
    "vmap of vjp": (
        lambda f: fg.vmap(lambda a, x: fg.vjp(f, a, x)[1](2.0)[1])(A3, P),
        10 * 2 * 3 * A3 * P**2,
    ),
    "not mapped: grad": (lambda f: fg.grad(f, 1)(2.0, 3.0), 2 * 3 * 9.0),
    "not mapped: jvp": (lambda f: fg.jvp(f, (2.0, 3.0), (1.0, 0.0))[1], 27.0),
    "not mapped: second": (lambda f: fg.grad(fg.grad(f, 1), 1)(2.0, 3.0), 2 * 6 * 3.0),
}


@pytest.mark.parametrize("jit", ["eager", "jit inside", "jit outside", "checkpoint"])
@pytest.mark.parametrize("name", MAPPED)
def test_batching_rules_are_not_bypassed(name: str, jit: str) -> None:
    call, expected = MAPPED[name]
    f = tenfold()
    wrap = {"jit inside": fg.jit, "checkpoint": fg.checkpoint}.get(jit, lambda g: g)
    found = fg.jit(lambda: call(f))() if jit == "jit outside" else call(wrap(f))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_derivatives_with_respect_to_what_is_closed_over_are_those_of_the_function() -> None:
    def outer(c: Any, x: Any) -> Any:
        f = fg.custom_vmap(lambda x: c * x**2)
        f.def_vmap(lambda n, batched, x: (10 * c * x**2, batched[0]))
        return f(x)

    dc, dx = fg.grad(outer, (0, 1))(2.0, 3.0)
    assert (dc, dx) == (9.0, 12.0)
    slopes = fg.vmap(lambda x: fg.grad(lambda x: outer(2.0, x))(x))(P)
    np.testing.assert_allclose(slopes, 10 * 2 * 2 * P)


def test_integers_and_several_results_of_batching_rules() -> None:
    f = fg.custom_vmap(lambda x, n: {"y": x * n, "n": n + 1, "z": np.sum(x)})

    @f.def_vmap
    def rule(size: int, in_batched: Any, x: Any, n: Any) -> Any:
        flags = {"y": True, "n": in_batched[1], "z": in_batched[0]}
        x2 = x if in_batched[0] else x[None]
        y = x2 * (n[:, None] if in_batched[1] else n) * np.ones((size, 1))
        z = np.sum(x2, axis=1)
        return {"y": y, "n": n + 1, "z": z if in_batched[0] else z[0]}, flags

    xs = np.arange(6.0).reshape(3, 2)
    ns = np.array([2, 3, 4])
    value, pull = fg.vjp(lambda x: fg.vmap(f)(x, ns), xs)
    np.testing.assert_array_equal(value["n"], ns + 1)
    (ct,) = pull({"y": np.ones((3, 2)), "n": np.zeros(3, fg.float0), "z": np.full(3, 10.0)})
    np.testing.assert_array_equal(ct, np.repeat(ns[:, None] + 10.0, 2, axis=1))
    jacobian = fg.jacfwd(lambda x: f(x, 5)["y"])(xs[0])
    np.testing.assert_array_equal(jacobian, 5 * np.eye(2))
    pulled = fg.vmap(lambda ct: fg.vjp(lambda x: f(x, 5)["z"], xs[0])[1](ct)[0])(P)
    np.testing.assert_array_equal(pulled, np.repeat(P[:, None], 2, axis=1))


@pytest.mark.parametrize(
    ("value", "flags", "kind", "text"),
    [
        (lambda x: (x, x), (True, True), errors.TreeError, "a value with the structure"),
        (lambda x: [x], [True], errors.TreeError, "a value with the structure"),
        (lambda x: x, [True], errors.TreeError, "out_batched must have the structure"),
        (lambda x: np.stack([x, x], 1), True, errors.ShapeError, "f64[]\n  got           f64[2]"),
        (lambda x: x.astype(np.float32), True, errors.ShapeError, "got           f32[]"),
        (lambda x: x > 0, True, errors.ShapeError, "got           bool[]"),
        (lambda x: x[:1], True, errors.TreeError, "has the mapped axis of length 3"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", ["vmap", "vmap of jvp", "vmap of grad", "jit of vmap"])
def test_results_of_batching_rules_are_checked(
    value: Any, flags: Any, kind: Any, text: str, how: str
) -> None:
    f = fg.custom_vmap(lambda x: x * 2.0)
    f.def_vmap(lambda size, in_batched, x: (value(x), flags))
    calls = {
        "vmap": fg.vmap(f),
        "vmap of jvp": fg.vmap(lambda x: fg.jvp(f, (x,), (x,))),
        "vmap of grad": fg.vmap(fg.grad(f)),
        "jit of vmap": fg.jit(fg.vmap(f)),
    }
    with pytest.raises(kind) as caught:
        calls[how](P)
    assert text in str(caught.value)


def test_python_numbers_from_batching_rules() -> None:
    f = fg.custom_vmap(lambda x: x * 0.0)
    f.def_vmap(lambda size, in_batched, x: (0.0, False))
    np.testing.assert_array_equal(fg.vmap(f)(P.astype(np.float32)), np.zeros(3))
    assert fg.vmap(f)(P.astype(np.float32)).dtype == np.float32


def test_a_missing_batching_rule_is_missed_under_derivatives_too() -> None:
    f = fg.custom_vmap(lambda x: x * 2.0)
    assert fg.grad(f)(1.0) == 2.0
    for call in (fg.vmap(fg.grad(f)), fg.vmap(lambda x: fg.jvp(f, (x,), (x,))), fg.vmap(f)):
        with pytest.raises(errors.MissingRuleError, match="has no batching rule"):
            call(P)
    with pytest.raises(errors.MissingRuleError, match="has no batching rule"):
        fg.jacfwd(f)(P)
