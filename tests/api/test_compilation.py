"""jit: values, caching, static and donated arguments, stages, threads."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors, tree_util

X = np.linspace(-1.0, 2.0, 7)


def test_value_and_types() -> None:
    f = fg.jit(lambda x, y: {"s": np.sin(x) * y, "n": x.sum()})
    out = f(X, 2.0)
    np.testing.assert_allclose(out["s"], np.sin(X) * 2.0, rtol=1e-14)
    assert type(out["s"]) is np.ndarray
    assert out["n"] == pytest.approx(X.sum())


def test_traces_once_per_type() -> None:
    calls = []

    @fg.jit
    def f(x: Any) -> Any:
        calls.append(x)
        return x + 1

    for x in (X, X + 1, X.astype(np.float32), X):
        np.testing.assert_allclose(f(x), x + 1)
    assert len(calls) == 2
    info = f.cache_info()
    assert (info.calls, info.hits, info.traces) == (4, 2, 2)
    assert info.reasons == ["first call", "args[0]: f64[7] -> f32[7]"]
    f.clear_cache()
    assert f.cache_info().traces == 0


def test_a_new_batch_size_compiles_no_kernel() -> None:
    w = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    f = fg.jit(fg.value_and_grad(lambda v, x: np.mean(np.tanh(x @ v) ** 2)))
    f(w, np.ones((8, 4), np.float32))
    before = f.cache_info().kernels_compiled + f.cache_info().kernels_loaded
    f(w, np.ones((9, 4), np.float32))
    f(w, np.ones((64, 4), np.float32))
    assert f.cache_info().kernels_compiled + f.cache_info().kernels_loaded == before


def test_static_arguments() -> None:
    f = fg.jit(lambda x, n, mode: x**n if mode == "power" else x, static_argnums=(1, 2))
    assert f(3.0, 2, "power") == 9.0
    assert f(3.0, 3, "power") == 27.0
    g = fg.jit(lambda x, flag=True: x if flag else -x, static_argnames="flag")
    assert g(1.0, flag=False) == -1.0
    assert g(1.0) == 1.0


def test_decorator_factory_and_partial() -> None:
    @fg.jit(static_argnums=0)
    def repeat(n: int, x: Any) -> Any:
        for _ in range(n):
            x = x * 2
        return x

    assert repeat(3, 1.0) == 8.0
    assert repeat.__name__ == "repeat"

    @functools.partial(fg.jit, static_argnames=("n",))
    def scale(x: Any, n: int) -> Any:
        return x * n

    assert scale(2.0, n=3) == 6.0
    assert fg.jit(functools.partial(scale, n=4))(2.0) == 8.0


def test_methods() -> None:
    class Model:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @fg.jit(static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x * self.factor

    assert Model(3.0)(2.0) == 6.0
    assert Model(4.0)(2.0) == 8.0
    assert fg.grad(Model(5.0))(1.0) == 5.0


class Options:
    """An object that is no pytree."""

    lr = 0.1


@pytest.mark.parametrize(
    ("place", "static"),
    [
        (0, "make it static, static_argnums=0"),
        (1, "make it static, static_argnums=1"),
        (2, "make it static, static_argnums=2"),
        ("name", "make it static, static_argnames='name'"),
    ],
)
@pytest.mark.parametrize("how", ["call", "trace", "lower", "eval_shape", "grad", "vmap", "jit"])
def test_opaque_arguments_are_refused_everywhere(place: Any, static: str, how: str) -> None:
    def f(*args: Any, **kwargs: Any) -> Any:
        return sum(x for x in args if not isinstance(x, Options)) * 1.0

    jitted = fg.jit(f)
    args: list[Any] = [X.sum(), X.sum(), X.sum()]
    kwargs = {}
    if isinstance(place, int):
        args[place] = Options()
    else:
        kwargs[place] = Options()
    traced = 1 if place == 0 else 0
    calls = {
        "call": lambda: jitted(*args, **kwargs),
        "trace": lambda: jitted.trace(*args, **kwargs),
        "lower": lambda: jitted.lower(*args, **kwargs),
        "eval_shape": lambda: jitted.eval_shape(*args, **kwargs),
        "grad": lambda: fg.grad(jitted, argnums=traced)(*args, **kwargs),
        "vmap": lambda: fg.vmap(lambda x: jitted(*args, x, **kwargs))(X),
        "jit": lambda: fg.jit(lambda x: jitted(*args, x, **kwargs))(X),
    }
    path = f"args[{place}]" if isinstance(place, int) else f"kwargs['{place}']"
    for _ in range(2):
        with pytest.raises(errors.DtypeError) as caught:
            calls[how]()
        message = str(caught.value)
        start = f"argument `{path}` of jit(f) is a Options, which is neither an array nor a number"
        assert message.startswith(start)
        assert static in message
        assert "tree_util.register_dataclass or register_pytree_node_class" in message


def test_opaque_objects_in_containers_and_functions_are_refused() -> None:
    with pytest.raises(errors.DtypeError, match=r"make `args\[1\]` static, static_argnums=1"):
        fg.jit(lambda x, o: x)(1.0, {"o": Options()})
    with pytest.raises(
        errors.DtypeError, match=r"`args\[0\]` .* is a function, .* static_argnums=0\."
    ):
        fg.jit(lambda g, x: g(x))(lambda x: x, 1.0)
    with pytest.raises(errors.DtypeError, match=r"in_axes=None, or register its class"):
        fg.vmap(lambda o, x: x)(Options(), X)


def test_paths_count_static_arguments_too() -> None:
    f = fg.jit(lambda n, x, y: y if y else x, static_argnums=0)
    with pytest.raises(errors.TracerBoolConversionError, match=r"argument `args\[2\]`"):
        f(3, 1.0, 2.0)
    with pytest.raises(errors.DtypeError, match=r"`args\[2\]`"):
        f(3, 1.0, Options())
    g = fg.jit(lambda n, x: x, static_argnums=0)
    g(1, 1.0)
    g(1, 1)
    assert "args[1]: float -> int" in g.cache_info().reasons[-1]


def test_a_step_with_a_changing_object_is_not_baked_in() -> None:
    step = fg.jit(lambda o, p, g: p - o.lr * g)
    with pytest.raises(errors.DtypeError, match="static_argnums=0"):
        step(Options(), 1.0, 1.0)
    tree_util.register_pytree_node(
        Options, lambda o: ((o.lr,), None), lambda _, c: _with_rate(c[0])
    )
    assert step(_with_rate(0.5), 1.0, 1.0) == 0.5
    assert step(_with_rate(0.25), 1.0, 1.0) == 0.75


def _with_rate(lr: Any) -> Options:
    found = Options()
    found.lr = lr
    return found


def test_inputs_are_never_changed_and_outputs_share_no_memory() -> None:
    f = fg.jit(lambda x: (x, x[::-1], x.reshape(7, 1), x + 0))
    x = X.copy()
    outs = f(x)
    for i, out in enumerate(outs):
        assert not np.shares_memory(out, x)
        for other in outs[:i]:
            assert not np.shares_memory(out, other)
        out[...] = -5.0
    np.testing.assert_array_equal(x, X)


def test_outputs_of_successive_calls_are_independent() -> None:
    f = fg.jit(lambda x: x * 2)
    big = np.ones(1 << 19)
    first = f(big)
    second = f(big + 1)
    np.testing.assert_array_equal(first, 2 * big)
    assert not np.shares_memory(first, second)


def test_donation_reuses_memory() -> None:
    f = fg.jit(lambda x: x * 2 + 1, donate_argnums=0)
    x = np.ones(1 << 18)
    out = f(x)
    assert np.shares_memory(out, x)
    np.testing.assert_array_equal(out, np.full(1 << 18, 3.0))


def test_non_contiguous_inputs() -> None:
    a = np.arange(24.0).reshape(4, 6)
    f = fg.jit(lambda m: m * 2 + m.sum(0))
    for view in (
        a.T,
        a[::2, ::-1],
        a[:, ::3],
        np.asfortranarray(a),
        np.broadcast_to(X[:3], (2, 3)),
    ):
        np.testing.assert_allclose(f(view), view * 2 + view.sum(0))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (1, 1), ()])
def test_odd_shapes(shape: tuple[int, ...]) -> None:
    f = fg.jit(lambda x: (np.exp(x) * 2, x.sum(), x @ x.T if x.ndim == 2 else x))
    x = np.full(shape, 0.5)
    got = f(x)
    np.testing.assert_allclose(got[0], np.exp(x) * 2, rtol=1e-15)
    np.testing.assert_allclose(got[1], x.sum())
    np.testing.assert_allclose(got[2], x @ x.T if x.ndim == 2 else x)


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]
)
def test_dtypes(dtype: str) -> None:
    x = np.array([0, 1, 3, 2, 100]).astype(dtype)
    f = lambda v: (v + v, v * v, v == v[::-1], np.where(v > 1, v, v[:1]) if dtype[0] != "c" else v)  # noqa: E731
    for got, expected in zip(fg.jit(f)(x), f(x), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_closed_over_tracers_of_outer_transformations() -> None:
    assert fg.grad(lambda x: fg.jit(lambda y: x * y)(3.0))(2.0) == 3.0
    assert fg.jit(lambda x: fg.jit(lambda y: x * y)(3.0))(2.0) == 6.0
    inner = fg.jit(lambda y: y * y)
    np.testing.assert_allclose(fg.vmap(lambda x: inner(x) + x)(X), X * X + X)


def test_nested_jit_under_grad_traces_once() -> None:
    count = []

    @fg.jit
    def inner(x: Any) -> Any:
        count.append(1)
        return np.sin(x)

    f = fg.jit(lambda x: inner(inner(inner(x))))
    for _ in range(3):
        assert fg.grad(f)(0.3) == pytest.approx(
            np.cos(0.3) * np.cos(np.sin(0.3)) * np.cos(np.sin(np.sin(0.3)))
        )
    assert len(count) <= 2


def test_several_threads() -> None:
    f = fg.jit(lambda x: np.sum(np.sin(x) ** 2) + x[0])
    errors_: list[Any] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal(50 + seed % 3)
        for _ in range(50):
            if not np.isclose(f(x), np.sum(np.sin(x) ** 2) + x[0], rtol=1e-12):
                errors_.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors_


def test_stages() -> None:
    f = fg.jit(lambda x: np.sin(x) * 2)
    traced = f.trace(X)
    assert "sin" in traced.as_text()
    assert "test_compilation.py" in traced.as_text()
    lowered = traced.lower()
    assert "def kernel" in lowered.as_text()
    compiled = lowered.compile()
    np.testing.assert_allclose(compiled(X), np.sin(X) * 2, rtol=1e-14)
    with pytest.raises(errors.ArgumentError, match=r"takes f64\[7\] as `args\[0\]`, got f64\[3\]"):
        compiled(X[:3])
    assert f.eval_shape(X) == fg.ShapeDtypeStruct((7,), np.float64)


def test_disable_jit_shows_concrete_values() -> None:
    seen = []
    f = fg.jit(lambda x: seen.append(type(x)) or x + 1)
    with fg.disable_jit():
        f(X)
    assert seen == [np.ndarray]


def test_make_jaxpr_and_eval_shape() -> None:
    jaxpr = fg.make_jaxpr(lambda x: np.sin(x) * 2)(X)
    assert [e.primitive.name for e in jaxpr.eqns] == ["sin", "mul"]
    np.testing.assert_allclose(jaxpr.eval(X)[0], np.sin(X) * 2)
    shape = fg.eval_shape(lambda a, b: a @ b, np.ones((2, 3)), np.ones((3, 4)))
    assert shape == fg.ShapeDtypeStruct((2, 4), np.float64)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: fg.jit(lambda x: 1.0 if x > 0 else x)(1.0),
            errors.TracerBoolConversionError,
            "is a traced bool[] inside jit(<lambda>)",
        ),
        (
            lambda: fg.jit(lambda x: float(x))(1.0),
            errors.ConcretizationTypeError,
            "argument `args[0]` of <lambda>",
        ),
        (
            lambda: fg.jit(lambda n: np.zeros(3)[n])(1),
            errors.FuncgradError,
            "traced",
        ),
        (
            lambda: fg.jit(lambda x: [1, 2][x])(1),
            errors.TracerIntegerConversionError,
            "must be a concrete integer",
        ),
        (lambda: fg.jit(lambda x: x)("text"), errors.DtypeError, "argument `args[0]`"),
        (
            lambda: fg.jit(lambda x, y: x, static_argnums=1)(1.0, [2]),
            errors.ArgumentError,
            "static argument args[1] of jit(<lambda>) must be hashable",
        ),
        (lambda: fg.jit(3), errors.ArgumentError, "jit needs a function"),
    ],
)
def test_messages(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as info:
        call()
    assert text in str(info.value)


def test_writing_into_an_ndarray_shows_the_rewrite() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(3)
        y[0] = x
        return y

    with pytest.raises(errors.FuncgradError, match=r"\.at\(y\)\[i\]\.set"):
        fg.jit(f)(1.0)


def test_leak_from_jit() -> None:
    leaked: list[Any] = []
    fg.jit(lambda x: leaked.append(x) or x)(1.0)
    with pytest.raises(errors.UnexpectedTracerError, match="which made it, has returned"):
        leaked[0] + 1


# Zeros of dtype float0.

NOTHING = np.zeros(3, fg.float0)


def is_nothing(x: Any, shape: tuple[int, ...]) -> bool:
    return type(x) is np.ndarray and x.dtype == fg.float0 and x.shape == shape


def test_float0_passes_through() -> None:
    f = fg.jit(lambda x, zero, n: {"z": zero, "y": (x * 2, zero), "n": n})
    for _ in range(3):
        out = f(X, NOTHING, 4)
        assert is_nothing(out["z"], (3,))
        assert is_nothing(out["y"][1], (3,))
        np.testing.assert_array_equal(out["y"][0], 2 * X)
        out = f(X, n=4, zero=NOTHING[:2])
        assert is_nothing(out["z"], (2,))
    assert f.cache_info().traces == 2


def test_float0_in_all_stages() -> None:
    f = fg.jit(lambda x, zero: (zero, x + zero.shape[0]), static_argnums=())
    types = fg.ShapeDtypeStruct((3,), fg.float0), fg.ShapeDtypeStruct((7,), np.float64)
    assert f.eval_shape(X, NOTHING) == types
    assert fg.eval_shape(f, X, NOTHING) == types
    assert f.trace(X, NOTHING).out_info == types
    compiled = f.lower(X, NOTHING).compile()
    zero, y = compiled(X, NOTHING)
    assert is_nothing(zero, (3,))
    np.testing.assert_array_equal(y, X + 3)
    with pytest.raises(errors.ArgumentError, match="takes arguments of structure"):
        compiled(X, NOTHING[:2])
    assert "f64[7]" in str(fg.make_jaxpr(f)(X, NOTHING))


def test_derivatives_of_integers_in_compiled_functions() -> None:
    def f(x: Any, n: Any) -> Any:
        return np.sum(x * n)

    n = np.arange(7)
    dx, dn = fg.jit(fg.grad(f, argnums=(0, 1), allow_int=True))(X, n)
    np.testing.assert_array_equal(dx, n)
    assert is_nothing(dn, (7,))
    zero = np.zeros(7, fg.float0)
    push = fg.jit(lambda x, t, n, z: fg.jvp(f, (x, n), (t, z))[1])
    assert push(X, X, n, zero) == pytest.approx(float(np.sum(X * n)))
    pulled = fg.jit(lambda x, n: fg.vjp(f, x, n)[1](1.0))(X, n)
    assert is_nothing(pulled[1], (7,))
    mapped = fg.vmap(fg.jit(fg.grad(f, argnums=1, allow_int=True)))(X, n)
    assert is_nothing(mapped, (7,))
    assert fg.grad(lambda x: np.sum(fg.jit(lambda z, x: x * 2)(zero, x)))(1.0) == 2.0
    assert fg.grad(fg.checkpoint(lambda x, z: 2 * x))(1.0, zero) == 2.0
    donated = fg.jit(lambda z, x: (z, x + 1), donate_argnums=(0, 1))
    assert is_nothing(donated(zero, X.copy())[0], (7,))


def test_reasons_are_bounded() -> None:
    f = fg.jit(lambda x, mode: x + 1, static_argnums=1)
    assert repr(f.cache_info()).endswith("reasons=[])")
    for i in range(120):
        f(1.0, (i, "x" * 1000))
    info = f.cache_info()
    assert info.traces == 120
    assert len(info.reasons) == 50
    assert all(len(reason) <= 300 for reason in info.reasons)
    text = repr(info)
    assert len(text) < 1500
    assert "misses=120, traces=120" in text
    assert "reasons=[... 117 earlier, " in text
    g = fg.jit(lambda tree: tree)
    for i in range(2):
        g({f"a long name of a parameter number {k}": np.ones(i + 1) for k in range(300)})
    assert len(g.cache_info().reasons[-1]) <= 300
