"""Operators, ufuncs, functions and methods on traced arrays against NumPy on plain ones."""

from __future__ import annotations

import copy
import math
import operator
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import recfunctions

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import ArgumentError, ConcretizationTypeError, DtypeError, MissingRuleError

A = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]])
P = np.array([[1.5, 2.0, 0.5], [3.0, 0.25, 1.0]])
V = np.array([2.0, -1.0, 0.5])
N = np.array([5, -3, 2, 7])


def traced(function: Any, *args: Any) -> Any:
    """The result of a function all of whose operations are seen by a transformation.

    Integers have no tangents, so that it is `vmap` over an axis of length 1 that follows them.
    """
    out = fg.vmap(function)(*[np.asarray(a)[None] for a in args])
    return tuple(o[0] for o in out) if isinstance(out, tuple) else out[0]


def differentiated(function: Any, *args: Any) -> Any:
    """As `traced`, under forward differentiation."""
    return fg.jvp(function, args, tuple(np.ones_like(a) for a in args))[0]


def assert_same(got: Any, expected: Any) -> None:
    assert np.result_type(got) == np.result_type(expected)
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


# Operators.

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
DIVISION = [operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor]
OTHERS = [2, 0.5, np.float64(3.0), np.float32(0.1), V, np.array([1, 2, 3]), [1.0, 2.0, 3.0], True]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("op", ARITHMETIC + DIVISION + COMPARISONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [P, P.astype(np.float32)], ids=["f64", "f32"])
def test_operators_on_both_sides(x: np.ndarray, op: Any, other: Any) -> None:
    for follow in (traced, differentiated):
        assert_same(follow(lambda x: op(x, other), x), op(x, other))
        assert_same(follow(lambda x: op(other, x), x), op(other, x))


@pytest.mark.parametrize("other", [3, np.int64(2), np.array([1, 2, 3, 4]), True], ids=repr)
@pytest.mark.parametrize("op", ARITHMETIC + DIVISION + COMPARISONS + BITS, ids=lambda f: f.__name__)
def test_operators_of_integers(op: Any, other: Any) -> None:
    x = np.where(N == 0, 1, N)
    assert_same(traced(lambda x: op(x, other), x), op(x, other))
    assert_same(traced(lambda x: op(other, x), x), op(other, x))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32])
def test_integers_keep_their_dtype_beside_python_integers(dtype: Any) -> None:
    x = np.array([1, 2, 3], dtype)
    for function in (lambda x: x + 1, lambda x: 2 * x, lambda x: x << 1, lambda x: 9 >> x):
        assert_same(traced(function, x), function(x))


def test_complex_operators() -> None:
    z = np.array([1 + 2j, -0.5j, 3])
    for function in (lambda z: z + 1, lambda z: 2.0 * z, lambda z: 1j - z, lambda z: z / (1 + 1j)):
        assert_same(differentiated(function, z), function(z))
    assert_same(differentiated(lambda x: x * 1j, V), V * 1j)


@pytest.mark.parametrize("n", [0, 1, 2, 3, -1, -2, 0.5, 2.0, 3.0, -1.5], ids=repr)
def test_powers(n: Any) -> None:
    assert_same(differentiated(lambda x: x**n, P), P**n)
    assert_same(differentiated(lambda x: np.power(x, n), P), np.power(P, n))
    assert_same(differentiated(lambda x: n**x, P), n**P) if n > 0 else None
    slope = fg.jvp(lambda x: x**n, (P,), (np.ones_like(P),))[1]
    np.testing.assert_allclose(slope, n * P ** (n - 1.0))


def test_integral_powers_have_exact_slopes_at_zero() -> None:
    assert fg.grad(lambda x: x**2)(0.0) == 0.0
    assert fg.grad(lambda x: x**1)(0.0) == 1.0
    assert fg.grad(lambda x: x**2.0)(-3.0) == -6.0


def test_unary_operators() -> None:
    for function in (operator.neg, operator.pos, abs):
        assert_same(differentiated(function, A), function(A))
    assert_same(traced(operator.invert, N), ~N)
    assert_same(traced(lambda x: round(x, 1), A), np.round(A, 1))


def test_divmod_and_modf() -> None:
    for got, expected in zip(traced(lambda x: divmod(x, 0.4), A), divmod(A, 0.4), strict=True):
        assert_same(got, expected)
    for got, expected in zip(traced(lambda x: divmod(7, x), N), divmod(7, N), strict=True):
        assert_same(got, expected)
    x = np.array([1.5, -2.25, np.inf, -0.5])
    for got, expected in zip(traced(np.modf, x), np.modf(x), strict=True):
        assert_same(got, expected)


def test_matmul_operator() -> None:
    assert_same(differentiated(lambda a: a @ V, A), A @ V)
    assert_same(differentiated(lambda v: A @ v, V), A @ V)
    assert_same(differentiated(lambda a: np.matmul(a, a.T), A), A @ A.T)


def test_python_scalars_stay_weak() -> None:
    """A traced Python float beside a float32 array gives float32, as an untraced one does."""
    x = np.ones(2, np.float32)
    assert fg.jvp(lambda s: (s * 2 + 1) * x, (3.0,), (1.0,))[0].dtype == np.float32
    assert fg.jvp(lambda s: np.sin(s) * x, (3.0,), (1.0,))[0].dtype == np.float64


def test_foreign_operands_are_refused_by_python() -> None:
    for function in (lambda x: x + "a", lambda x: None * x, lambda x: x @ object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            differentiated(function, V)


@given(
    st.floats(-1e3, 1e3),
    st.floats(-1e3, 1e3).filter(lambda y: abs(y) > 1e-3),
    st.sampled_from(ARITHMETIC),
)
def test_derivatives_of_operators(x: float, y: float, op: Any) -> None:
    dx, dy = fg.grad(op, argnums=(0, 1))(x, y)
    expected = {
        operator.add: (1, 1),
        operator.sub: (1, -1),
        operator.mul: (y, x),
        operator.truediv: (1 / y, -x / y**2),
    }[op]
    assert math.isclose(dx, expected[0], rel_tol=1e-12)
    assert math.isclose(dy, expected[1], rel_tol=1e-12)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_singular_derivatives_of_python_floats_are_infinite() -> None:
    assert fg.grad(np.log)(0.0) == np.inf
    assert fg.grad(np.sqrt)(0.0) == np.inf


def test_inplace_operators_change_all_names_and_no_array_of_the_caller() -> None:
    def function(x: Any) -> Any:
        y, z = x, x + 0
        y += 1
        y *= 2
        return y * x - z

    wanted, before = function(V.copy()), V.copy()
    np.testing.assert_array_equal(differentiated(function, V), wanted)
    np.testing.assert_array_equal(V, before)


# Ufuncs.

UNARY = """
    negative positive absolute fabs sign square sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin
    cos tan arctan sinh cosh tanh arcsinh deg2rad rad2deg degrees radians floor ceil trunc rint
    isnan isinf isfinite signbit logical_not reciprocal conjugate
"""
BINARY = """
    add subtract multiply divide floor_divide remainder fmod power float_power maximum minimum
    fmax fmin arctan2 hypot copysign nextafter logaddexp logaddexp2 heaviside equal not_equal less
    less_equal greater greater_equal logical_and logical_or logical_xor
"""


@pytest.mark.parametrize("name", UNARY.split())
def test_unary_ufuncs(name: str) -> None:
    ufunc = getattr(np, name)
    assert_same(traced(ufunc, P), ufunc(P))
    assert_same(differentiated(ufunc, P), ufunc(P))
    assert_same(differentiated(getattr(fnp, name), P), ufunc(P))
    assert_same(differentiated(ufunc, 0.75), ufunc(0.75))


@pytest.mark.parametrize("name", BINARY.split())
def test_binary_ufuncs(name: str) -> None:
    ufunc = getattr(np, name)
    for x, y in ((P, V), (P, P[::-1]), (P, 2.0), (0.5, P), (P, np.array([1, 2, 3]))):
        assert_same(fg.jvp(lambda x, y=y: ufunc(x, y), (x,), (np.ones_like(x),))[0], ufunc(x, y))
        if np.asarray(y).dtype.kind == "f":
            assert_same(differentiated(lambda y, x=x: ufunc(x, y), y), ufunc(x, y))
            assert_same(differentiated(ufunc, x, y), ufunc(x, y))


@pytest.mark.parametrize("name", ["expit", "erf", "gammaln", "digamma", "ndtr", "i0", "exprel"])
def test_scipy_ufuncs(name: str) -> None:
    ufunc = getattr(scipy.special, name)
    assert_same(differentiated(ufunc, P), ufunc(P))


@pytest.mark.parametrize("f", [np.positive, fnp.positive, lambda x: +x])
def test_flags_have_no_positive(f: Any) -> None:
    for transform in (fg.jit, fg.vmap):
        with pytest.raises(DtypeError, match="positive is not defined for bool"):
            transform(f)(np.array([True, False]))


def test_scipy_ufunc_of_two_arguments() -> None:
    assert_same(
        differentiated(lambda x: scipy.special.xlogy(2.0, x), P), scipy.special.xlogy(2.0, P)
    )


def test_ndarray_and_numpy_scalar_on_the_left() -> None:
    assert_same(differentiated(lambda x: A * x, V), A * V)
    assert_same(differentiated(lambda x: np.float64(2.0) / x, V), 2.0 / V)
    assert isinstance(fg.eval_shape(lambda x: x > A, V), object)


def test_ufunc_dtype() -> None:
    assert_same(
        differentiated(lambda x: np.add(x, 1, dtype=np.float32), V), np.add(V, 1, dtype=np.float32)
    )


def test_ufunc_layout_and_empty_out_are_accepted() -> None:
    assert_same(differentiated(lambda x: np.exp(x, out=None, order="C", where=True), V), np.exp(V))


@pytest.mark.parametrize("axis", [0, 1, None, -1])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
def test_reduce(name: str, axis: Any) -> None:
    ufunc = getattr(np, name)
    assert_same(differentiated(lambda x: ufunc.reduce(x, axis=axis), A), ufunc.reduce(A, axis=axis))


def test_reduce_has_axis_zero_by_default_and_other_options() -> None:
    assert_same(differentiated(np.add.reduce, A), np.add.reduce(A))
    for kwargs in ({"keepdims": True}, {"initial": 2.0}, {"where": A > 0}, {"dtype": np.float32}):
        expected = np.add.reduce(A, axis=1, **kwargs)
        got = differentiated(lambda x, kw=kwargs: np.add.reduce(x, axis=1, **kw), A)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_reduce_of_truth_values() -> None:
    for ufunc in (np.logical_and, np.logical_or):
        assert_same(traced(lambda x, u=ufunc: u.reduce(x > 0, axis=0), A), ufunc.reduce(A > 0))


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logaddexp"])
def test_accumulate(name: str, axis: int) -> None:
    ufunc = getattr(np, name)
    assert_same(differentiated(lambda x: ufunc.accumulate(x, axis), A), ufunc.accumulate(A, axis))


def test_outer() -> None:
    assert_same(differentiated(lambda x: np.multiply.outer(x, V), A), np.multiply.outer(A, V))
    assert_same(differentiated(lambda x: np.subtract.outer(V, x), A), np.subtract.outer(V, A))


def raised(error: type[Exception], function: Any, *args: Any) -> str:
    with pytest.raises(error) as info:
        fg.make_jaxpr(function)(*(args or (V,)))
    return str(info.value)


def test_out_is_refused_with_the_rewrite() -> None:
    message = raised(ArgumentError, lambda x: np.add(x, 1, out=np.zeros(3)))
    assert "traced arrays are immutable" in message
    assert "test_dispatch.py" in message
    assert "y = np.add(...)" in message
    assert "y = np.sum(...)" in raised(ArgumentError, lambda x: np.sum(x, out=np.zeros(())))


def test_where_of_a_call_names_np_where() -> None:
    message = raised(ArgumentError, lambda x: np.sin(x, where=np.array([True, False, True])))
    assert "np.where(mask, np.sin(...), other)" in message


def test_ufunc_at_is_refused_with_the_rewrite() -> None:
    assert "x.at[index].add(value)" in raised(TypeError, lambda x: np.add.at(x, 0, 1.0))


def test_unknown_ufuncs_functions_and_methods_are_named() -> None:
    for function, name in (
        (scipy.special._ufuncs._cosine_cdf, "ufunc _cosine_cdf"),
        (lambda x: np.divmod.outer(x, x), "np.divmod.outer"),
        (lambda x: recfunctions.merge_arrays((x, x)), "np.lib.recfunctions.merge_arrays"),
    ):
        message = raised(MissingRuleError, function)
        assert name in message
        assert "test_dispatch.py" in message
        assert "funcgrad.numpy" in message


# NumPy's functions and methods.

METHODS: list[Any] = [
    lambda x: x.sum(),
    lambda x: x.sum(0),
    lambda x: x.sum(axis=1, keepdims=True),
    lambda x: x.prod(1),
    lambda x: x.mean(0),
    lambda x: x.var(),
    lambda x: x.std(1, ddof=1),
    lambda x: x.max(0),
    lambda x: x.min(),
    lambda x: x.cumsum(1),
    lambda x: x.cumprod(0),
    lambda x: x.dot(V),
    lambda x: x.conj(),
    lambda x: x.conjugate(),
    lambda x: x.clip(-1, 1),
    lambda x: x.round(1),
    lambda x: x.diagonal(),
    lambda x: np.trace(x),
    lambda x: x.repeat(2, axis=1),
    lambda x: x.take([0, 1], 1),
    lambda x: x.T,
    lambda x: x.mT,
    lambda x: x.real,
    lambda x: x.imag,
    lambda x: x.ravel(),
    lambda x: x.flatten(),
    lambda x: x.reshape(3, 2),
    lambda x: x.reshape((3, -1)),
    lambda x: x.reshape(-1),
    lambda x: x.transpose(),
    lambda x: x.transpose(1, 0),
    lambda x: x.transpose((1, 0)),
    lambda x: x.swapaxes(0, 1),
    lambda x: x[None].squeeze(0),
    lambda x: x.astype(np.float32),
    lambda x: x.astype("float32", copy=False),
    lambda x: x.copy(),
    lambda x: copy.deepcopy(x),
    lambda x: x.argmax(1),
    lambda x: x.argmin(),
    lambda x: x.argsort(),
    lambda x: (x > 0).any(0),
    lambda x: (x > 0).all(),
    lambda x: np.stack([row * 2 for row in x]),
    lambda x: np.where(x > 0, x, 0.0),
    lambda x: np.concatenate([x, A], axis=1),
    lambda x: np.sum(x, axis=0) + np.mean(x, 0),
    lambda x: np.dot(x, V),
    lambda x: np.einsum("ij,j->i", x, V),
    lambda x: np.sort(x, axis=0),
    lambda x: np.linalg.norm(x),
    lambda x: np.linalg.inv(x @ x.T),
    lambda x: np.fft.fft(x).real,
    lambda x: np.zeros_like(x),
    lambda x: np.isclose(x, 1.5),
    lambda x: np.angle(x + 1j),
    lambda x: np.diff(x),
    lambda x: np.sort(x[0]).searchsorted(np.array([0.6])),
]


@pytest.mark.parametrize("function", METHODS, ids=range(len(METHODS)))
def test_functions_and_methods(function: Any) -> None:
    expected = function(A)
    for follow in (traced, differentiated):
        got = follow(function, A)
        assert np.shape(got) == np.shape(expected)
        assert np.result_type(got) == np.result_type(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-12)


SQUARE = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0], [2.0, 4.0, -3.5]])
CHOICES = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("method", "function"),
    [
        (lambda x: x.trace(), np.trace),
        (lambda x: x.trace(1, dtype=np.float32), lambda x: np.trace(x, 1, dtype=np.float32)),
        (lambda x: x.ptp(), np.ptp),
        (lambda x: x.ptp(1), lambda x: np.ptp(x, 1)),
        (lambda x: x.compress([True, False, True], 0), lambda x: x[[0, 2]]),
        (lambda x: x.compress([False, True]), lambda x: x.ravel()[1:2]),
        (lambda x: x.compress(x[0] > -9, 1, size=2), lambda x: x[:, :2]),
        (lambda x: x.reshape(-1, out_sharding=None), lambda x: x.ravel()),
        (lambda x: x.argpartition(1, 0)[1], lambda x: np.argsort(x, 0)[1]),
        (lambda x: (x[:, 0] > 1.6).choose([x[0], x[1]]), lambda x: np.array([1.5, 0.25, -1.0])),
        (lambda x: x.transpose(np.int64(1), np.int64(0)), np.transpose),
        (lambda x: x.transpose(np.array([1, 0])), np.transpose),
        (lambda x: x[0].transpose(np.int64(0)), lambda x: x[0]),
        (lambda x: x[0].transpose(0), lambda x: x[0]),
        (lambda x: x.flat[4], lambda x: x[1, 1]),
        (lambda x: np.stack(list(x.flat)), np.ravel),
        (lambda x: x.to_device(x.device), lambda x: x),
        (lambda x: x.swapaxes(np.int64(0), np.int32(1)), np.transpose),
        (lambda x: x.reshape(np.int64(9)), np.ravel),
        (lambda x: x.reshape((np.int32(1), np.int64(-1))), lambda x: x.reshape(1, 9)),
        (lambda x: x.sum(np.int64(0)), lambda x: x.sum(0)),
        (lambda x: x.mean(axis=(np.int32(0),)), lambda x: x.mean(0)),
        (lambda x: x.cumsum(np.int64(1)), lambda x: x.cumsum(1)),
        (lambda x: x.argmax(np.int8(1)), lambda x: x.argmax(1)),
        (lambda x: x.repeat(np.int64(2), np.int64(0)), lambda x: x.repeat(2, 0)),
        (lambda x: x.round(np.int64(0)), np.rint),
        (lambda x: x.diagonal(np.int64(1)), lambda x: x.diagonal(1)),
        (lambda x: x.take(np.int64(1), np.int64(0)), lambda x: x[1]),
        (lambda x: x.squeeze(), lambda x: x),
        (lambda x: x.std(ddof=np.int64(1)), lambda x: x.std(ddof=1)),
        (lambda x: np.moveaxis(x, np.int64(0), np.int64(1)), np.transpose),
        (lambda x: np.roll(x, np.int64(1), np.int64(0)), lambda x: np.roll(x, 1, 0)),
        (lambda x: np.expand_dims(x, np.int64(0)), lambda x: x[None]),
        (lambda x: np.split(x, np.int64(3))[1], lambda x: x[1:2]),
        (lambda x: np.tile(x, np.int64(2)), lambda x: np.tile(x, 2)),
        (lambda x: np.broadcast_to(x, (np.int64(2), 3, 3)), lambda x: np.stack([x, x])),
        (lambda x: np.diff(x, np.int64(1)), np.diff),
        (lambda x: np.pad(x, np.int64(1)), lambda x: np.pad(x, 1)),
        (lambda x: np.vander(x[0], np.int64(2)), lambda x: np.vander(x[0], 2)),
        (lambda x: np.rot90(x, np.int64(1)), np.rot90),
        (lambda x: np.resize(x, np.int64(4)), lambda x: np.resize(x, 4)),
        (lambda x: np.tril(x, np.int64(1)), lambda x: np.tril(x, 1)),
        (lambda x: np.linspace(x[0], x[1], np.int64(3)), lambda x: np.linspace(x[0], x[1], 3)),
        (lambda x: np.full_like(x, np.int64(2), shape=np.int64(3)), lambda x: np.full(3, 2.0)),
        (lambda x: np.linalg.matrix_power(x, np.int64(2)), lambda x: x @ x),
        (lambda x: abs(np.fft.fft(x, np.int64(4), np.int64(1))), lambda x: abs(np.fft.fft(x, 4))),
        (lambda x: np.flip(x, np.int64(1)), lambda x: x[:, ::-1]),
        (lambda x: np.sort(x, np.int64(0)), lambda x: np.sort(x, 0)),
        (lambda x: np.partition(x, np.int64(1))[:, 1], lambda x: np.sort(x)[:, 1]),
        (lambda x: np.quantile(x, np.float64(0.5), np.int64(0)), lambda x: np.median(x, 0)),
        (lambda x: np.tensordot(x, x, np.int64(1)), lambda x: x @ x),
        (lambda x: np.gradient(x, np.float64(2), axis=np.int64(0)), lambda x: np.gradient(x, 2)[0]),
        (lambda x: np.unstack(x, axis=np.int64(1))[0], lambda x: x[:, 0]),
        (lambda x: np.concatenate([x, x], np.int64(1)), lambda x: np.hstack([x, x])),
        (lambda x: np.stack([x, x], np.int64(1)), lambda x: np.stack([x, x], 1)),
        (lambda x: np.insert(x, np.int64(1), 5.0, np.int64(0)), lambda x: np.insert(x, 1, 5.0, 0)),
        (lambda x: np.delete(x, np.int64(1), np.int64(0)), lambda x: np.delete(x, 1, 0)),
        (lambda x: np.sum(x, where=np.bool_(True)), np.sum),
        (lambda x: np.var(x, keepdims=np.bool_(True)), lambda x: np.var(x, keepdims=True)),
    ],
    ids=range(59),
)  # fmt: skip
def test_methods_and_numpy_numbers_as_arguments(method: Any, function: Any) -> None:
    if "unstack" in method.__code__.co_names and not hasattr(np, "unstack"):
        pytest.skip("it came with NumPy 2.1")
    expected = function(SQUARE)
    for follow in (traced, differentiated):
        got = follow(method, SQUARE)
        assert np.result_type(got) == np.result_type(expected)
        np.testing.assert_array_equal(np.asarray(got), expected)


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        (np.array([1 + 2j, 3 - 1j]), np.float64),
        (np.array([[1 + 2j, 3 - 1j]], np.complex64), np.float32),
        (np.arange(8.0).reshape(2, 4), np.complex128),
        (np.arange(4, dtype=np.float32), np.complex64),
        (V, np.int64),
        (V, np.uint8),
        (np.arange(6, dtype=np.float32).reshape(3, 2), np.float64),
        (np.arange(16, dtype=np.uint8), np.int32),
        (np.array([True, False]), np.uint8),
        (np.array(3.0), np.int64),
        (V, np.float64),
        (V, None),
        (V, np.ndarray),
        (np.empty((0, 2)), np.complex128),
    ],
    ids=range(14),
)
def test_views(x: Any, dtype: Any) -> None:
    expected = x.view() if dtype is None else x.view(dtype)
    got = fg.jit(lambda x: x.view() if dtype is None else x.view(dtype))(x)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    stacked = fg.vmap(lambda x: x.view(dtype))(np.stack([x, x]))
    np.testing.assert_array_equal(stacked[1], expected)


def test_complex_views_keep_derivatives() -> None:
    def energy(x: Any) -> Any:
        z = x.view(np.complex128)
        return ((z * z).view(np.float64) * np.arange(4.0)).sum()

    x = np.array([1.0, 2.0, -0.5, 3.0])
    # z * z is a^2 - b^2 and 2ab, weighted by 0, 1 and 2, 3.
    expected = [2 * x[1], 2 * x[0], 4 * x[2] + 6 * x[3], -4 * x[3] + 6 * x[2]]
    np.testing.assert_allclose(fg.grad(energy)(x), expected)
    np.testing.assert_allclose(fg.jit(fg.grad(energy))(x), expected)


@pytest.mark.parametrize(("x", "dtype"), [(V, np.complex128), (np.array(1.0), np.float32)])
def test_views_that_do_not_fit(x: Any, dtype: Any) -> None:
    with pytest.raises(ValueError, match="does not hold a whole number"):
        fg.jit(lambda x: x.view(dtype))(x)


def test_complex_parts() -> None:
    z = np.array([1 + 2j, 3 - 4j])
    assert_same(differentiated(lambda z: z.real * z.imag, z), z.real * z.imag)
    assert_same(differentiated(lambda z: np.real(z) - np.imag(z), z), z.real - z.imag)


def test_questions_are_answered_while_tracing() -> None:
    def function(x: Any) -> Any:
        assert np.shape(x) == x.shape == (2, 3)
        assert np.ndim(x) == 2
        assert np.size(x) == x.size == 6
        assert np.size(x, 0) == len(x) == 2
        assert not np.iscomplexobj(x)
        assert np.isrealobj(x)
        assert np.result_type(x, np.float32) == np.float64
        assert fnp.result_type(x, 1.0) == np.float64
        assert isinstance(x, fnp.ndarray)
        assert not isinstance(1.0, fnp.ndarray)
        assert x.__array_namespace__() is fnp
        assert not fnp.isscalar(x)
        return x

    fg.make_jaxpr(function)(A)


def test_whole_array_comparisons() -> None:
    assert traced(lambda x: fnp.array_equal(x, A), A)
    assert traced(lambda x: fnp.allclose(x, A + 1e-12), A)
    assert not traced(lambda x: fnp.array_equiv(x, A[:1]), A)
    assert fnp.array_equal(np.ones(2), np.ones(3)) is False


def test_unpacking_and_membership() -> None:
    def function(x: Any) -> Any:
        a, b = x
        first, *_ = a
        return a * b + first

    assert_same(differentiated(function, A), A[0] * A[1] + A[0, 0])
    assert fg.grad(lambda x: x[0] if 2.0 in x else x[1])(V)[0] == 1.0
    with pytest.raises(TypeError, match="has no axes"):
        differentiated(iter, 1.0)


def test_methods_that_would_lose_the_derivative_are_refused() -> None:
    with pytest.raises(ConcretizationTypeError, match="needs a concrete value"):
        fg.grad(lambda x: x * x.item())(3.0)
    message = raised(ConcretizationTypeError, lambda x: x[0].item())
    assert "x.item() needs a concrete value" in message
    assert "x.tolist()" in raised(ConcretizationTypeError, lambda x: x.tolist())


def test_assignment_is_refused_with_the_rewrite() -> None:
    def function(x: Any) -> Any:
        x[0] = 1.0  # the line that the message shows
        return x

    message = raised(TypeError, function)
    assert "traced f64[3]" in message
    assert "x[0] = 1.0  # the line that the message shows" in message
    assert "x = x.at[index].set(value)" in message


@pytest.mark.parametrize(("name", "rewrite"), [("sort", "np.sort(x)"), ("fill", "np.full_like")])
def test_methods_in_place_are_refused_with_the_rewrite(name: str, rewrite: str) -> None:
    message = raised(TypeError, lambda x: getattr(x, name)(1))
    assert f"x.{name}(...)" in message
    assert rewrite in message


def test_writing_into_an_ndarray_is_refused() -> None:
    def function(x: Any) -> Any:
        y = np.zeros(3)
        y[0] = x[0]
        return y

    with pytest.raises(ConcretizationTypeError, match=r"at\(y\)\[i\]\.set"):
        fg.make_jaxpr(function)(V)


def test_every_function_has_numpy_s_name_and_serves_numpy_s_own() -> None:
    for name in ("tanh", "sum", "concatenate", "reshape", "where", "isclose", "real"):
        assert callable(getattr(fnp, name))
    assert fnp.pi == np.pi
    assert fnp.newaxis is None
    assert fnp.float32 == np.float32


HEIGHTS = [0.0, 1.0, 3.0, -3.0, np.pi, -np.pi, 4.0, -4.0, 12.0, -7.5]


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit, fg.vmap])
def test_complex_logaddexp_is_a_principal_value(wrap: Any) -> None:
    """Its imaginary part is in (-pi, pi], as that of the logarithm of the sum."""
    x = np.repeat(np.array(HEIGHTS), len(HEIGHTS)) * 1j + 0.3
    y = np.tile(np.array(HEIGHTS), len(HEIGHTS)) * 1j - 0.2
    found = wrap(fnp.logaddexp)(x, y)
    assert np.all(np.abs(found.imag) <= np.pi + 1e-15)
    np.testing.assert_allclose(np.exp(found), np.exp(x) + np.exp(y), 1e-12)
    plain = np.log(np.exp(x) + np.exp(y))
    is_far = np.abs(plain.imag) < np.pi - 1e-9
    np.testing.assert_allclose(found[is_far], plain[is_far], 1e-12)


def test_derivatives_of_complex_logaddexp() -> None:
    x, y = 0.3 + 4j, -0.2 + 3.5j
    _, pull = fg.vjp(fnp.logaddexp, x, y)
    sum_of_both = np.exp(x) + np.exp(y)
    for got, term in zip(pull(1 + 0j), (x, y), strict=True):
        np.testing.assert_allclose(got, np.exp(term) / sum_of_both, 1e-12)
