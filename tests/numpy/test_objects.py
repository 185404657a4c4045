"""``np.array([x, y])`` of traced values, and objects that convert to arrays."""

from __future__ import annotations

import array
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors, lax
from funcgrad.higher_order.remembered import forget_all
from funcgrad.primitives.objects import MAX_NUMBERS, MAX_TAKEN

V = np.array([0.5, -1.0, 2.0])
W = np.array([[1.0, 2.0, -1.0], [3.0, 0.5, 4.0]])


def assert_same(got: Any, expected: Any) -> None:
    assert np.shape(got) == np.shape(expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def changed_in_place(v: Any) -> Any:
    out = np.array([v[0], v[1], 0.0])
    out[1] *= v[2]
    out[2] = v[0]
    return out


def filled(v: Any) -> Any:
    out = np.zeros_like(np.array([v[0], v[1], v[2]]))
    out[1:] = v[:2]
    return out


# Functions of a vector of three, written as for NumPy alone.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "right side": lambda v: np.array([v[1], -np.sin(v[0]), v[2] * 2.0]),
    "with numbers": lambda v: np.array([v[1], 1, 2.5]),
    "nested": lambda v: np.array([[v[0], v[1]], [0.0, v[2]]]),
    "tuples": lambda v: np.array(((v[0], 1.0), (v[1], v[2]))),
    "matrix times vector": lambda v: np.array([[v[0], v[1], 1], [0, 2, v[2]]]) @ v,
    "vector times matrix": lambda v: v @ np.array([[v[0], v[1]], [1, v[2]], [0, 1.0]]),
    "operators": lambda v: (2.0 - np.array([v[0], v[1], v[2]])) / V + v,
    "reflected": lambda v: v * np.array([v[2], v[1], v[0]]) - 1,
    "two of them": lambda v: np.array([v[0], v[1]]) * np.array([v[2], 3.0]),
    "powers": lambda v: np.array([v[0], v[2]]) ** 2 - abs(np.array([v[1], v[1]])),
    "ufuncs": lambda v: np.exp(np.array([v[0], v[1]])) + np.tanh(np.array([v[1], v[2]])),
    "ufuncs of two": lambda v: np.arctan2(np.array([v[0], v[1]]), np.array([v[2], v[2]])),
    "rounding": lambda v: np.rint(np.array([0.4 * v[0], v[1] / 3])) * v[:2],
    "dot": lambda v: np.dot(np.array([v[0], v[1]]), np.array([v[2], v[0]])),
    "matmul": lambda v: np.array([[v[0], v[1]]]) @ np.array([[v[1]], [v[2]]]),
    "sum": lambda v: np.array([v[0], v[1]]).sum() + np.prod(np.array([v[1], v[2]])),
    "norm": lambda v: np.linalg.norm(np.array([v[0], v[1]])),
    "cumsum": lambda v: np.cumsum(np.array([v[0], v[1], v[2]])),
    "rows": lambda v: np.array([v, v**2]),
    "columns": lambda v: np.array([v, v**2]).T,
    "a row and a list": lambda v: np.array([v, [1, 2, 3.0]]),
    "a row and an array": lambda v: np.array([v, V]),
    "rows of a matrix": lambda v: np.array([np.outer(v, v), np.ones((3, 3))]),
    "part of rows": lambda v: np.array([v, v * 2, v * 3])[1:, ::-1],
    "picked": lambda v: np.array([v, v * 2])[[1, 0, 1], [0, 2, 1]],
    "one element": lambda v: np.array([v, v * 2])[1, 2],
    "computed with an element": lambda v: np.sin(np.array([v, v * 2])[1, 2]) + V,
    "elements by operators": lambda v: np.array([v, v * 2]) * 3.0 - 1,
    "repeated": lambda v: np.array([v[0], v[0], v[1], v[0]]),
    "full": lambda v: np.full((2, 3), v[1]) * v,
    "asarray": lambda v: np.asarray(v) ** 2,
    "asarray of a number": lambda v: np.asarray(v[1]) * 2.0,
    "shape": lambda v: np.array([v, v]).reshape(-1)[: np.array([v, v]).shape[0]],
    "changed in place": changed_in_place,
    "filled": filled,
    "stacked with arrays": lambda v: np.concatenate([np.array([v[0]]), v, V]),
    "stack": lambda v: np.stack([np.array([v[0], v[1], 1.0]), v]),
    "where": lambda v: np.where(v > 0, np.array([v[2], v[1], 0.0]), 1.0),
    "einsum": lambda v: np.einsum("ij,j->i", np.array([[v[0], 0, 1], [2, v[1], 0.0]]), v),
    "solve": lambda v: np.linalg.solve(np.stack([np.array([v[0], 1.0]), v[1:]]), v[:2]),
    "cross": lambda v: np.cross(np.array([v[1], 0.0, v[0]]), v),
    "method dot": lambda v: W.dot(v),
    "method dot of a matrix": lambda v: W.T.dot(np.outer(v[:2], v)),
    "vectorize": lambda v: np.vectorize(lambda a: a * a)(v),
    "kron": lambda v: np.kron(np.array([v[0], v[1]]), V),
    "sliding windows": lambda v: np.lib.stride_tricks.sliding_window_view(v, 2),
}  # fmt: skip


def slopes(function: Callable[[Any], Any], v: Any) -> Any:
    """Central differences of a function of a vector, the inputs last."""
    h = 1e-6
    columns = [(function(v + h * e) - function(v - h * e)) / (2 * h) for e in np.eye(v.size)]
    return np.stack(columns, -1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_plain_numpy(name: str) -> None:
    function = PROGRAMS[name]
    expected = np.asarray(function(V))
    assert_same(fg.jit(function)(V), expected)
    assert_same(fg.jvp(function, (V,), (V,))[0], expected)
    assert_same(fg.vjp(function, V)[0], expected)
    assert_same(fg.vmap(function)(np.stack([V, V * 2]))[0], expected)
    assert_same(fg.checkpoint(function)(V), expected)
    assert_same(lax.map(function, V[None])[0], expected)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_their_derivatives(name: str) -> None:
    function = PROGRAMS[name]
    expected = slopes(lambda v: np.asarray(function(v), float), V)
    for transform in (fg.jacrev, fg.jacfwd):
        np.testing.assert_allclose(transform(function)(V), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(fg.jit(fg.jacrev(function))(V), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int64, np.bool_, np.float64])
def test_dtypes_are_those_of_numpy(dtype: Any) -> None:
    x = np.array([1, 0], dtype)
    for function in (
        lambda x: np.array([x[1], x[0]]),
        lambda x: np.array([x[0], 1]),
        lambda x: np.array([x[0], 0.5]),
        lambda x: np.array([x[0], np.float32(3)]),
        lambda x: np.array([x, [1j, 0]]),
    ):
        assert_same(fg.jit(function)(x), function(x))


def test_rows_are_joined_without_taking_them_apart() -> None:
    text = str(fg.make_jaxpr(lambda v: np.array([v, v * v]) @ v)(np.ones(1000)))
    assert "slice" not in text
    assert len(text.splitlines()) < 8


def test_loops_and_branches() -> None:
    def step(state: Any, x: Any) -> Any:
        return np.array([state[1] + x, -state[0]]), np.array([x, state[0]])

    state, rows = np.array([1.0, 2.0]), []
    for x in V:
        state, row = step(state, x)
        rows.append(row)
    for transform in (lambda f: f, fg.jit):
        got = transform(lambda v: lax.scan(step, np.array([v, 2.0]), V))(1.0)
        assert_same(got[0], state)
        assert_same(got[1], np.stack(rows))
    halved = lax.while_loop(
        lambda s: s[0] > 1.0, lambda s: np.array([s[0] / 2, s[1] + 1]), np.array([8.0, 0.0])
    )
    assert_same(halved, np.array([1.0, 3.0]))
    grown = lax.fori_loop(0, 3, lambda i, s: np.array([s[1], s[0] + i]), np.array([0.5, 0.0]))
    assert_same(grown, np.array([1.0, 2.5]))
    chosen = lax.cond(True, lambda x: np.array([x, 1.0]), lambda x: np.array([x, x]), 3.0)
    assert_same(chosen, np.array([3.0, 1.0]))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: fg.jit(np.sum)(np.array([x, x * x])),
        lambda x: fg.vmap(lambda v: v * v)(np.array([x, 2 * x])).sum(),
        lambda x: fg.grad(lambda v: (v**3).sum())(np.array([x, x])).sum(),
        lambda x: fg.jvp(np.sin, (np.array([x]),), (np.array([x]),))[1][0],
        lambda x: fg.vjp(np.sin, np.array([x]))[1](np.array([x]))[0][0],
        lambda x: fg.linearize(np.sin, np.array([x]))[1](np.array([x]))[0],
        lambda x: fg.checkpoint(np.sum)(np.array([x, x * x])),
        lambda x: lax.stop_gradient(np.array([x, x])).sum() * x,
        lambda x: lax.add(np.array([x, x]), np.array([1.0, x]))[1],
        lambda x: fg.flatten_util.ravel_pytree({"a": np.array([x, x])})[0][1],
        lambda x: fnp.at(np.array([x, 0.0]))[1].set(x).sum(),
        lambda x: (lambda a: lax.scan(lambda c, _: (c + a, None), V[:2], None, 2)[0])(
            np.array([x, 2 * x])
        ).sum(),
        lambda x: fg.grad(lambda y: (np.array([x, y]) * y).sum())(x),
        lambda x: fg.nn.softmax(np.array([x, 0.0]))[0],
    ],
    ids=range(14),
)
def test_arguments_and_captured_values(function: Callable[[Any], Any]) -> None:
    value = function(np.float64(0.7))
    got, slope = fg.value_and_grad(function)(0.7)
    np.testing.assert_allclose(got, value, rtol=1e-12)
    if "stop_gradient" not in str(fg.make_jaxpr(function)(0.7)):
        difference = function(np.float64(0.7 + 1e-6)) - function(np.float64(0.7 - 1e-6))
        np.testing.assert_allclose(slope, difference / 2e-6, rtol=1e-7)
    np.testing.assert_allclose(fg.jit(fg.grad(function))(0.7), slope, rtol=1e-12)


def test_extra_results_may_be_anything() -> None:
    words = np.array(["a", None], object)

    def loss(x: Any) -> Any:
        return np.array([x, x]).sum(), (words, np.array([x, 1.0]))

    _, (same, pair) = fg.grad(loss, has_aux=True)(2.0)
    assert same is words
    assert_same(pair, np.array([2.0, 1.0]))


def test_results_of_rules() -> None:
    @fg.custom_vjp
    def pair(x: Any) -> Any:
        return np.array([x, 2 * x])

    pair.defvjp(lambda x: (np.array([x, 2 * x]), x), lambda x, ct: (ct[0] + 2 * ct[1],))
    assert fg.grad(lambda x: pair(x).sum())(1.0) == 3.0

    @fg.custom_jvp
    def rows(v: Any) -> Any:
        return np.array([v[1], v[0]])

    rows.defjvp(lambda p, t: (rows(*p), np.array([t[0][1], t[0][0]])))
    assert_same(fg.jacfwd(rows)(V[:2]), np.eye(2)[::-1])


def test_an_array_of_objects_that_are_numbers_is_an_array() -> None:
    assert_same(fg.jit(lambda x: x * 2)(np.array([1, 2.5], object)), np.array([2.0, 5.0]))
    assert_same(fg.jit(lambda v: np.array([v[:0]]))(V), np.empty((1, 0)))
    for strange in (np.array(["a"], object), np.array([None])):
        with pytest.raises(errors.DtypeError, match="object arrays"):
            fg.jit(lambda x: x)(strange)


def message_of(function: Callable[[Any], Any], x: Any = V, kind: Any = TypeError) -> str:
    with pytest.raises(kind) as caught:
        fg.jit(function)(x)
    assert isinstance(caught.value, errors.FuncgradError)
    text = str(caught.value)
    assert "test_objects.py:" in text
    return text


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda v: np.array([v[0], v[1]], dtype=float), r"np.array\(\[x, y\]\) without a dtype"),
        (lambda v: np.array(v, np.float32), r"np.array\(\[x, y\]\) without a dtype"),
        (lambda v: np.float64(v[0]), r"x.astype\(np.float64\)"),
        (lambda v: np.random.default_rng(0).normal(v), r"funcgrad.random.normal\(key"),
    ],
    ids=range(4),
)
def test_where_numbers_are_needed(function: Callable[[Any], Any], advice: str) -> None:
    text = message_of(function)
    assert text.startswith("NumPy asked for the values")
    assert re.search(advice, text)


def test_an_array_of_floats_is_not_written_into() -> None:
    def write(v: Any) -> Any:
        y = np.zeros(3)
        y[:] = v
        return y

    assert "at(y)[i].set" in message_of(write)


@pytest.mark.parametrize("index", [1, np.array([0, 1])], ids=["number", "array"])
@pytest.mark.parametrize("key", [lambda i: i, lambda i: (i, 0), lambda i: [i, i]], ids="abc")
def test_an_ndarray_is_not_indexed(key: Any, index: Any) -> None:
    text = message_of(lambda i: np.ones((3, 3))[key(i)], index)
    assert "If it is an index into an ndarray, `y[i]`" in text


@pytest.mark.parametrize(
    "function",
    [
        lambda v: scipy.special.expit(np.array([v[0], 1.0])),
        lambda v: np.isnan(np.array([v[0], v[1]])),
        lambda v: np.sin(np.array([v[0], 1.0])),
        lambda v: np.linalg.solve(np.array([[v[0], 1.0], [1.0, v[1]]]), V[:2]),
        lambda v: np.linalg.det(np.array([[v[0], 1.0], [1.0, v[1]]])),
        lambda v: np.maximum(np.array([v[0], v[1]]), 0.0),
        lambda v: np.array([v[0], v[1]]) > 0,
        lambda v: np.sort(np.array([v[0], v[1]])),
        lambda v: np.mean(np.array([v[0], v[1]])),
    ],
    ids=range(9),
)
def test_functions_that_do_not_take_objects(function: Callable[[Any], Any]) -> None:
    text = message_of(function)
    assert "np.array([x, y]), holds them as objects" in text
    assert "Write np.stack([x, y])" in text


def test_scipy_is_told_that_values_are_traced() -> None:
    text = message_of(lambda v: scipy.special.logsumexp(v))
    assert text.startswith("SciPy asked for the values")


def test_what_is_no_number_is_named() -> None:
    text = message_of(lambda v: fnp.sum(np.array([v[0], None])))
    assert "holds a NoneType" in text
    ragged = np.empty(2, object)

    def assigned(v: Any) -> Any:
        ragged[0], ragged[1] = v, 1.0
        return ragged

    with pytest.raises(errors.DtypeError, match=r"this one holds f64\[3\]"):
        fg.jit(assigned)(V)
    ragged[:] = None


def test_long_products_are_refused_and_name_the_rewrite() -> None:
    n = MAX_TAKEN // 10
    assert_same(fg.jit(lambda w: np.ones((n, 10)).dot(w))(np.ones(10)), np.full(n, 10.0))
    text = message_of(lambda w: np.ones((10 * n, 10)).dot(w), np.ones(10))
    assert "X @ x for X.dot(x)" in text
    assert "f64[10] inside jit" in text
    text = message_of(lambda w: np.array([w, w]) * 2.0, np.ones(MAX_TAKEN + 1))
    assert "np.stack([x, y])" in text
    assert "asked for the values" in message_of(np.asarray, np.empty(MAX_NUMBERS + 1))


def test_strides_are_refused() -> None:
    strided = np.lib.stride_tricks.as_strided
    text = message_of(lambda v: strided(v, (2, 2), (4, 4)))
    assert re.search(r"sliding_window_view\(x, length\), reshape, or an index", text)
    with pytest.raises(errors.ArgumentError, match="immutable"):
        fg.jit(lambda v: np.lib.stride_tricks.sliding_window_view(v, 2, writeable=True))(V)


@pytest.mark.parametrize(
    ("window", "axis"), [(2, 0), ((2, 2), None), (3, 1), ((1, 2), (1, 1)), ((2, 1), (1, 0))]
)
def test_sliding_windows(window: Any, axis: Any) -> None:
    view = np.lib.stride_tricks.sliding_window_view
    x = np.arange(12.0).reshape(3, 4)
    for transform in (fg.jit, lambda f: lambda x: fg.vjp(f, x)[0]):
        assert_same(transform(lambda x: view(x, window, axis))(x), view(x, window, axis))
    with pytest.raises(ValueError, match="does not fit"):
        fg.jit(lambda x: view(x, 5, 0))(x)


# Objects that convert to arrays.


class Parameter:
    """As the parameters of neural network libraries."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value


class Column:
    """As the columns of tables: with operators of its own, which it leaves to others."""

    __pandas_priority__ = 3000

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.value, dtype)

    def __mul__(self, other: Any) -> Any:
        if getattr(other, "__pandas_priority__", 0) > self.__pandas_priority__:
            return NotImplemented
        return Column(self.value * np.asarray(other))

    __rmul__ = __mul__


OPERAND = np.array([3.0, 4.0, 0.5])
OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, o: x + o,
    lambda x, o: o + x,
    lambda x, o: o * x,
    lambda x, o: x**o,
    lambda x, o: x @ o,
    lambda x, o: o @ x,
    lambda x, o: x < o,
    lambda x, o: divmod(x, o)[1],
    lambda x, o: np.multiply(o, x),
    lambda x, o: np.where(x > 1, x, o),
    lambda x, o: np.stack([x, o]),
    lambda x, o: fnp.array([o, o]) + x,
    lambda x, o: fnp.array([[o, x], [x, o]]),
    lambda x, o: fnp.sin(o) + x,
    lambda x, o: fnp.sum(o, axis=0) + x,
    lambda x, o: fnp.linalg.solve(np.eye(3), o) + x,
    lambda x, o: fnp.full((3,), o) + x,
    lambda x, o: fnp.zeros_like(o) + x,
    lambda x, o: fnp.result_type(o) == x.dtype,
    lambda x, o: np.clip(x, o, None),
    lambda x, o: np.interp(x, o, x),
    lambda x, o: x.at[:].set(o),
    lambda x, o: lax.add(x, o),
    lambda x, o: lax.sin(o) + x,
    lambda x, o: lax.cumsum(o) + x,
    lambda x, o: lax.reduce(o, 0.0, lax.add, (0,)) + x,
    lambda x, o: lax.select(x > 1, x, o),
    lambda x, o: lax.dynamic_update_slice(x, o, (0,)),
    lambda x, o: lax.scan(lambda c, y: (c + y, y * 2), x[0], o)[1],
    lambda x, o: lax.fori_loop(0, 2, lambda i, c: c * 2, o) + x,
    lambda x, o: lax.cond(x[0] > 0, lambda a: a * 2, lambda a: a, o),
    lambda x, o: lax.associative_scan(np.add, o) + x,
    lambda x, o: fg.vmap(lambda a, b: a * b)(x, o),
    lambda x, o: fg.grad(lambda y: (y**2).sum())(o) + x,
    lambda x, o: fg.jit(lambda y: y * 2)(o) + x,
    lambda x, o: fg.checkpoint(np.sin)(o) + x,
    lambda x, o: fg.device_put(o) + x,
    lambda x, o: fg.nn.relu(o) + x,
    lambda x, o: o,
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [Parameter, Column])
@pytest.mark.parametrize("operation", OPERATIONS, ids=range(len(OPERATIONS)))
def test_objects_are_operands(operation: Callable[[Any, Any], Any], kind: type) -> None:
    expected = fg.jit(lambda x: operation(x, OPERAND))(V)
    assert_same(fg.jit(lambda x: operation(x, kind(OPERAND)))(V), expected)
    assert_same(fg.jvp(lambda x: operation(x, kind(OPERAND)), (V,), (V,))[0], expected)
    # One that holds a traced value.
    if kind is Parameter:
        assert_same(fg.jit(lambda x, y: operation(x, kind(y)))(V, OPERAND), expected)


@pytest.mark.parametrize("kind", [Parameter, Column])
def test_objects_are_indices_and_arguments(kind: type) -> None:
    forget_all()
    assert fg.jit(lambda x: x[kind(np.array(1))])(V) == V[1]
    assert_same(fg.jit(lambda x: x.at[kind(np.array([0, 2]))].set(0.0))(V), np.array([0, -1.0, 0]))
    double = fg.jit(lambda x: x * 2)
    for _ in range(2):
        assert_same(double(kind(V)), V * 2)
        assert_same(double(kind(OPERAND)), OPERAND * 2)
        assert_same(double(V), V * 2)
    assert double.cache_info().misses == 1
    assert_same(fg.grad(lambda x: (x**2).sum())(kind(V)), 2 * V)
    assert_same(fg.jacfwd(np.sin)(kind(V)), np.diag(np.cos(V)))
    assert_same(fg.vmap(np.sin)(kind(V)), np.sin(V))
    assert fg.eval_shape(np.sin, kind(V)).shape == (3,)


@pytest.mark.parametrize(
    "given",
    [range(5), range(0), array.array("d", [1, 2]), memoryview(np.arange(6).reshape(2, 3))],
    ids=["range", "nothing", "array", "memory"],
)
def test_ranges_and_buffers_are_arrays(given: Any) -> None:
    for name in ("array", "asarray", "sum", "sin"):
        found, expected = getattr(fnp, name)(given), getattr(np, name)(given)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(errors.DtypeError, match="sin has dtype"):
        fnp.sin(bytearray(b"ab").decode().encode() + b"")
    with pytest.raises(errors.DtypeError, match="needs arrays or numbers, got a set"):
        fnp.array({1, 2})


@pytest.mark.parametrize("axis", [None, 0, -1, (), (1,), (0, -1), (0, 1, 2)])
def test_sizes(axis: Any) -> None:
    x = np.zeros((2, 3, 5))
    lengths = [x.shape[i] for i in axis] if isinstance(axis, tuple) else [np.size(x, axis)]
    assert fnp.size(x, axis) == np.prod(lengths)
    assert fg.vmap(lambda y: y * fnp.size(y, axis))(x[None])[0].shape == x.shape
