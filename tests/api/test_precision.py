"""Promotion refused: the first line that promotes is named, and nothing else is refused."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import ArgumentError, DtypePromotionError, ShapeError

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)
T = np.arange(3)


def scaled(x: Any) -> Any:
    y = np.tanh(x)
    return y * np.sqrt(2 / x.size)  # the culprit


def corrected(x: Any, t: Any) -> Any:
    decay = 1 - 0.9**t
    return x / decay  # the culprit


DRIFTING: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "scalar of NumPy": (scaled, (X,), "f32[3] becomes f64 beside f64[], a scalar of NumPy"),
    "array of integers": (corrected, (X, T), "f32[3] becomes f64 beside f64[3]"),
    "array": (lambda x: x + np.ones(3), (X,), "f32[3] becomes f64 beside f64[3]"),
    "integers": (lambda x: x * T, (X,), "f32[3] becomes f64 beside i64[3]"),
    "reflected": (lambda x: np.ones(3) - x, (X,), "f32[3] becomes f64 beside f64[3]"),
    "function": (lambda x: np.hypot(x, np.ones(3)), (X,), "f32[3] becomes f64 beside f64[3]"),
    "choice": (lambda x: np.where(x > 1, x, np.ones(3)), (X,), "f32[3] becomes f64 beside"),
    "stacked": (lambda x: np.stack([x, np.ones(3)]), (X,), "f32[3] becomes f64 beside"),
    "product": (lambda x: np.ones((3, 3)) @ x, (X,), "f32[3] becomes f64 beside f64[3,3]"),
    "complex": (lambda x: x * np.complex128(1j), (X,), "f32[3] becomes c128 beside c128[]"),
    "complex, narrow": (lambda z: z * np.ones(3), (X + 1j * X,), "c64[3] becomes c128 beside"),
}  # fmt: skip
KEEPING: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "Python's numbers": (lambda x: (x * 2.0 - 1) ** 2 / 3, (X,)),
    "float of a scalar": (lambda x: x * float(np.sqrt(2 / x.size)), (X,)),
    "converted": (lambda x, t: x * (1 - 0.9**t).astype(np.float32), (X, T)),
    "comparison": (lambda x: np.where(x > np.ones(3), x, 0.0), (X,)),
    "narrow integers": (lambda x: x * np.ones(3, np.int16), (X,)),
    "its own mean": (lambda x: x - x.mean(), (X,)),
    "standardized": (lambda x: fg.nn.standardize(x, 0, 0.5, 0.25), (X,)),
    "softmax": (lambda x: fg.nn.softmax(x), (X,)),
    "gradient along an axis": (lambda x: fnp.gradient(x, 0.5), (X,)),
    "derivative": (fg.grad(lambda x: (np.sin(x) ** 2 / (1 + x**3)).sum()), (X,)),
    "loop": (lambda x: fg.lax.fori_loop(0, 3, lambda i, c: c + i * 0.1, x), (X,)),
}


@pytest.mark.parametrize("name", DRIFTING)
def test_drift_names_the_first_line(name: str) -> None:
    function, args, problem = DRIFTING[name]
    with pytest.raises(DtypePromotionError, match=re.escape(problem)) as info:
        fg.jit(function, dtype_drift="error")(*args)
    message = str(info.value)
    assert 'which jit(dtype_drift="error") refuses.' in message
    assert "  at            test_precision.py:" in message
    assert ".astype(np." in message
    if function in (scaled, corrected):
        assert "# the culprit" in message


@pytest.mark.parametrize("name", DRIFTING)
def test_strict_refuses_what_drifts(name: str) -> None:
    function, args, problem = DRIFTING[name]
    if function is corrected:  # refused where the integers become floating already
        problem = "i64[3] becomes f64 beside a Python float"
    with (
        fg.numpy_dtype_promotion("strict"),
        pytest.raises(DtypePromotionError, match=re.escape(problem)),
    ):
        fg.jit(function)(*args)


@pytest.mark.parametrize("name", KEEPING)
def test_what_keeps_its_dtype_is_allowed(name: str) -> None:
    function, args = KEEPING[name]
    assert fg.jit(function, dtype_drift="error")(*args).dtype == np.float32


def test_the_message_says_where_the_wide_operand_came_from() -> None:
    with pytest.raises(DtypePromotionError) as info:
        fg.jit(corrected, dtype_drift="error")(X, T)
    at, origin = re.findall(r"(?:at|computed at) +test_precision\.py:(\d+)", str(info.value))
    assert int(at) == int(origin) + 1
    assert "decay = 1 - 0.9**t" in str(info.value)


def test_the_message_shows_the_rewrite_of_a_scalar() -> None:
    with pytest.raises(DtypePromotionError, match=r"float\(np\.sqrt\(n\)\), or math\.sqrt\(n\)"):
        fg.jit(scaled, dtype_drift="error")(X)


def test_is_a_type_error_and_a_value_error() -> None:
    for kind in (TypeError, ValueError, fg.errors.DtypeError):
        with pytest.raises(kind):
            fg.jit(scaled, dtype_drift="error")(X)


def test_strict_refuses_every_mixture() -> None:
    mixtures: list[tuple[Any, tuple[Any, ...]]] = [
        (lambda x, t: x * t, (X, T.astype(np.int16))),
        (lambda t: t * 0.5, (T,)),
        (lambda t, m: t + m, (T, T > 1)),
        (lambda x: x > np.ones(3), (X,)),
        (lambda t: t == T.astype(np.int8), (T,)),
    ]
    with fg.numpy_dtype_promotion("strict"):
        for function, args in mixtures:
            with pytest.raises(DtypePromotionError, match="refuses"):
                fg.jit(function)(*args)
        assert fg.jit(lambda t: t + 1)(T).dtype == T.dtype
        assert fg.jit(lambda t: t / 2)(T).dtype == np.float64
        assert fg.jit(np.sin)(T).dtype == np.float64
        with pytest.raises(DtypePromotionError):
            fnp.add(X, np.ones(3))
        with fg.numpy_dtype_promotion("standard"):
            assert fnp.add(X, np.ones(3)).dtype == np.float64
    assert fnp.add(X, np.ones(3)).dtype == np.float64


def test_a_compiled_function_is_checked_though_it_ran_before() -> None:
    function = fg.jit(scaled)
    for _ in range(3):
        assert function(X).dtype == np.float64
    with fg.numpy_dtype_promotion("strict"):
        for _ in range(2):
            with pytest.raises(DtypePromotionError):
                function(X)
    traces = function.cache_info().traces
    assert function(X).dtype == np.float64
    assert function.cache_info().traces == traces
    inner = fg.jit(lambda x: function(x) + 1)
    assert inner(X).dtype == np.float64
    with fg.numpy_dtype_promotion("strict"), pytest.raises(DtypePromotionError):
        inner(X)


def test_a_compiled_function_inside_a_checked_one_is_checked() -> None:
    function = fg.jit(scaled)
    function(X)
    with pytest.raises(DtypePromotionError, match="the culprit"):
        fg.jit(lambda x: function(x) + 1, dtype_drift="error")(X)


def test_stages_are_checked() -> None:
    function = fg.jit(scaled, dtype_drift="error")
    with pytest.raises(DtypePromotionError):
        function.trace(X)
    with pytest.raises(DtypePromotionError):
        function.eval_shape(X)


def test_eager_transformations_are_checked_in_a_strict_block() -> None:
    with fg.numpy_dtype_promotion("strict"):
        for run in (fg.grad(lambda x: scaled(x).sum()), fg.vmap(scaled)):
            with pytest.raises(DtypePromotionError, match="the culprit"):
                run(X)


def test_other_threads_are_not_concerned() -> None:
    seen: list[Any] = []
    function = fg.jit(scaled)
    function(X)
    with fg.numpy_dtype_promotion("strict"):
        thread = threading.Thread(target=lambda: seen.append(function(X).dtype))
        thread.start()
        thread.join()
    assert seen == [np.float64]


def test_wrong_modes() -> None:
    with (
        pytest.raises(ArgumentError, match=r"""takes "strict" or "standard", got 'drift'"""),
        fg.numpy_dtype_promotion("drift"),
    ):
        pass
    with pytest.raises(ArgumentError, match=r'dtype_drift must be "allow" or "error", got True'):
        fg.jit(scaled, dtype_drift=True)


RANKS = {
    "operator": lambda x, y: x * y,
    "reflected": lambda x, y: y - x,
    "function": lambda x, y: np.arctan2(x, y),
    "under vmap": lambda x, y: fg.vmap(lambda row: row + y)(x[None]),
}


@pytest.mark.parametrize("name", RANKS)
def test_different_ranks_are_refused(name: str) -> None:
    x, y = np.ones((2, 3)), np.ones(3)
    f = fg.jit(RANKS[name])
    expected = f(x, y)
    with (
        fg.numpy_rank_promotion("raise"),
        pytest.raises(ShapeError, match="differ in the number of axes") as caught,
    ):
        f(x, y)
    assert f"test_precision.py:{RANKS[name].__code__.co_firstlineno}" in str(caught.value)
    assert "x[None, :]" in str(caught.value)
    np.testing.assert_array_equal(f(x, y), expected)


def test_ranks_that_the_library_mixes_are_not_refused() -> None:
    with fg.numpy_rank_promotion("raise"):
        f = fg.jit(lambda x: fg.nn.softmax(x * 2.0).mean() + np.var(x, axis=0).sum())
        assert np.isfinite(fg.grad(f)(np.ones((2, 3)))).all()
        fg.jit(lambda x: x + np.ones((1, 3)))(np.ones((2, 3)))
        fg.vmap(lambda x, y: x * y, in_axes=(0, None))(np.ones(3), 2.0)
    with pytest.raises(ArgumentError, match='takes "raise" or "allow"'):
        fg.config.update("jax_numpy_rank_promotion", "warn")
