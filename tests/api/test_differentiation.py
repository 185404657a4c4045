"""grad, vjp, jvp, linearize and the dense derivatives, against closed forms and NumPy."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad import errors

X = np.array([0.5, -1.25, 2.0])


class Pair(NamedTuple):
    left: Any
    right: Any


def test_grad_of_plain_numpy() -> None:
    assert fg.grad(np.tanh)(0.3) == pytest.approx(1 - np.tanh(0.3) ** 2, abs=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradient_has_the_dtype_of_its_argument(dtype: Any) -> None:
    x = X.astype(dtype)
    gradient = fg.grad(lambda v: np.sum(np.sin(v) * v))(x)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, np.cos(x) * x + np.sin(x), rtol=2e-6)


def test_argnums_tuple_and_negative() -> None:
    f = lambda a, b, c: a * b**2 * c**3  # noqa: E731
    assert fg.grad(f, argnums=(0, 2))(2.0, 3.0, 1.0) == (9.0, 54.0)
    assert fg.grad(f, argnums=-1)(2.0, 3.0, 1.0) == 54.0


def test_pytrees_in_and_out() -> None:
    tree = {"p": Pair(X, [2.0, None]), "q": (np.float64(3.0),)}
    gradient = fg.grad(lambda t: np.sum(t["p"].left ** 2) * t["p"].right[0] + t["q"][0])(tree)
    np.testing.assert_allclose(gradient["p"].left, 4 * X)
    assert gradient["p"].right == [np.sum(X**2), None]
    assert gradient["q"] == (1.0,)


def test_has_aux_passes_values_of_outer_transformations_on() -> None:
    def outer(x: Any) -> Any:
        slope, aux = fg.grad(lambda y: (y**2 * x, {"xy": x * y}), has_aux=True)(3.0)
        return slope + aux["xy"]

    assert fg.grad(outer)(2.0) == 9.0
    (value, extra), slope = fg.value_and_grad(lambda x: (x**2, "tag"), has_aux=True)(2.0)
    assert (value, extra, slope) == (4.0, "tag", 4.0)


def test_gradients_are_independent_writable_arrays() -> None:
    x, y = X.copy(), X.copy()
    gx, gy = fg.grad(lambda a, b: np.sum(a + b), argnums=(0, 1))(x, y)
    gx += 1
    np.testing.assert_array_equal(gy, np.ones(3))
    np.testing.assert_array_equal(x, X)


def test_unused_argument_has_a_zero_gradient() -> None:
    np.testing.assert_array_equal(fg.grad(lambda a, b: b**2)(X, 2.0), np.zeros(3))


def test_integer_arguments() -> None:
    gradient = fg.grad(lambda n, x: x * n, argnums=(0, 1), allow_int=True)(3, 2.0)
    assert gradient[0].dtype == fg.float0
    assert gradient[1] == 3.0


def test_vjp_may_be_pulled_several_times() -> None:
    value, pull = fg.vjp(lambda a, b: (a * b, a + b), X, 2.0)
    np.testing.assert_allclose(value[0], 2 * X)
    for scale in (1.0, 3.0):
        ct_a, ct_b = pull((scale * np.ones(3), np.zeros(3)))
        np.testing.assert_allclose(ct_a, np.full(3, 2 * scale))
        assert ct_b == pytest.approx(scale * np.sum(X))


def test_jvp_and_linearize_agree() -> None:
    f = lambda x: np.exp(x) * np.sin(x[::-1])  # noqa: E731
    v = np.array([1.0, -2.0, 0.5])
    value, tangent = fg.jvp(f, (X,), (v,))
    value2, push = fg.linearize(f, X)
    np.testing.assert_allclose(value, value2)
    np.testing.assert_allclose(push(v), tangent, rtol=1e-14)
    np.testing.assert_allclose(
        tangent, np.exp(X) * (v * np.sin(X[::-1]) + np.cos(X[::-1]) * v[::-1]), rtol=1e-14
    )


def test_linear_transpose() -> None:
    a = np.arange(6.0).reshape(2, 3)
    transposed = fg.linear_transpose(lambda x: a @ x, fg.ShapeDtypeStruct((3,), np.float64))
    np.testing.assert_allclose(transposed(np.array([1.0, 2.0]))[0], a.T @ [1.0, 2.0])


@pytest.mark.parametrize("jacobian", [fg.jacfwd, fg.jacrev])
def test_jacobians_of_trees(jacobian: Any) -> None:
    def f(t: Any) -> Any:
        return {"s": np.sum(t["a"]) * t["b"], "v": t["a"] ** 2}

    j = jacobian(f)({"a": X, "b": 2.0})
    np.testing.assert_allclose(j["s"]["a"], np.full(3, 2.0))
    assert j["s"]["b"] == pytest.approx(np.sum(X))
    np.testing.assert_allclose(j["v"]["a"], np.diag(2 * X))
    np.testing.assert_allclose(j["v"]["b"], np.zeros(3))


def test_hessian_and_third_order() -> None:
    np.testing.assert_allclose(
        fg.hessian(lambda x: np.sum(x**3) + x[0] * x[1])(X),
        np.diag(6 * X) + np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]),
    )
    third = fg.jacfwd(fg.hessian(lambda x: np.sum(x**3)))(X)
    np.testing.assert_allclose(third, 6 * np.einsum("ij,jk->ijk", np.eye(3), np.eye(3)))


def test_real_functions_of_complex_arguments() -> None:
    """The cotangent convention: d/dx - i d/dy, as vjp gives."""
    z = np.array([1 + 2j, 3 - 1j])
    square = lambda z: np.sum(np.abs(z) ** 2)  # noqa: E731
    np.testing.assert_allclose(fg.grad(square)(z), 2 * np.conj(z), rtol=1e-15)
    np.testing.assert_allclose(fg.jit(fg.grad(square))(z), 2 * np.conj(z), rtol=1e-15)
    value, slope = fg.value_and_grad(lambda z: np.imag(z**2))(1 + 2j)
    assert (value, slope) == (4.0, -2j * (1 + 2j))
    rows = fg.jacrev(lambda z: np.real(z) * np.array([1.0, 2.0]))(1 + 2j)
    np.testing.assert_array_equal(rows, [1, 2])


def test_complex_results_need_holomorphic_functions() -> None:
    with pytest.raises(
        errors.DtypeError, match=r"needs real results, got c128.*jacfwd if the arguments"
    ):
        fg.jacrev(lambda x: x * (1 + 2j))(np.array([1.0]))
    with pytest.raises(errors.DtypeError, match="returns a real floating-point scalar"):
        fg.grad(lambda z: z * z)(1 + 2j)
    with pytest.raises(errors.DtypeError, match=r"not holomorphic\. Pass real and imaginary"):
        fg.jacfwd(np.abs)(1 + 2j)
    got = fg.jacfwd(lambda x: x * (1 + 2j))(np.array([1.0]))
    np.testing.assert_array_equal(got, [[1 + 2j]])


def test_holomorphic() -> None:
    z = 0.3 + 0.4j
    assert fg.grad(np.sin, holomorphic=True)(z) == pytest.approx(np.cos(z), abs=1e-15)


def test_no_perturbation_confusion() -> None:
    inner = lambda x: fg.grad(lambda y: x * y**2)(x)  # noqa: E731
    assert fg.grad(inner)(3.0) == 12.0
    assert fg.jvp(lambda x: x * fg.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,))[1] == 1


def test_stop_gradient() -> None:
    assert fg.grad(lambda x: x * fg.stop_gradient(x) ** 2)(3.0) == 9.0


def test_weak_python_scalars_do_not_promote() -> None:
    x = np.float32(2.0)
    assert fg.grad(lambda v: v * 2.5 + 1)(x).dtype == np.float32
    assert fg.value_and_grad(lambda s: np.sum(s * 2 * X.astype(np.float32)))(1.0)[0].dtype == (
        np.float32
    )


def test_threads_trace_independently() -> None:
    results: dict[int, float] = {}

    def work(i: int) -> None:
        results[i] = sum(float(fg.grad(fg.grad(lambda x: x ** (i + 2)))(1.0)) for _ in range(20))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {i: 20 * (i + 2) * (i + 1) for i in range(4)}


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=5))
def test_gradient_of_a_polynomial(coefficients: list[float]) -> None:
    polynomial = np.polynomial.Polynomial(coefficients)
    f = lambda x: sum(c * x**k for k, c in enumerate(coefficients)) + 0.0 * x  # noqa: E731
    assert fg.grad(f)(0.7) == pytest.approx(polynomial.deriv()(0.7), abs=1e-12)


# Messages: what, where, what now.


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: fg.grad(np.sin)(3), errors.DtypeError, "cannot differentiate argument `args[0]`"),
        (
            lambda: fg.grad(lambda t: np.sum(t["w"]))({"w": np.arange(3)}),
            errors.DtypeError,
            "`args[0]['w']`, i64[3]: integers and bools have no derivative",
        ),
        (
            lambda: fg.grad(lambda x: x * 2)(X),
            errors.ShapeError,
            "needs a function that returns a scalar, but it returned f64[3]",
        ),
        (lambda: fg.grad(lambda x: (x, x))(1.0), errors.ShapeError, "returns one scalar"),
        (
            lambda: fg.grad(np.sin)(1j),
            errors.DtypeError,
            "returned c128[]; set holomorphic=True or take a real part",
        ),
        (lambda: fg.grad(lambda x: x * 1j)(1.0), errors.DtypeError, "real floating-point scalar"),
        (lambda: fg.grad(np.sin, argnums=1)(1.0), errors.ArgumentError, "positional argument 1"),
        (lambda: fg.grad(3.0), errors.ArgumentError, "grad needs a function"),
        (
            lambda: fg.grad(lambda x: x, has_aux=True)(1.0),
            errors.ArgumentError,
            "must return a pair",
        ),
        (
            lambda: fg.grad(lambda x: np.sum(x))(np.ones(2, np.float16)),
            errors.DtypeError,
            "argument `args[0]` of grad(<lambda>) has dtype float16",
        ),
        (
            lambda: fg.jvp(np.sin, (X,), (np.ones(2),)),
            errors.ShapeError,
            "tangent `tangents[0]` must have the type of its primal, f64[3], but is f64[2]",
        ),
        (
            lambda: fg.vjp(np.sin, X)[1](np.ones(2)),
            errors.ShapeError,
            "must have the type of the function's result, f64[3], but is f64[2]",
        ),
        (
            lambda: fg.vjp(np.sin, X)[1]((np.ones(3),)),
            errors.TreeError,
            "must have the structure of the function's result",
        ),
    ],
)
def test_messages(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as info:
        call()
    assert text in str(info.value)


def test_leaked_tracer() -> None:
    leaked = []

    def f(x: Any) -> Any:
        leaked.append(x)
        return x * 2

    fg.grad(f)(1.0)
    with pytest.raises(errors.UnexpectedTracerError) as info:
        _ = leaked[0] + 1
    text = str(info.value)
    assert "a traced f64[] has escaped: it was used, but grad(f), which made it, has returned" in (
        text.replace("~", "")
    )
    assert "test_differentiation.py" in text
    assert "has_aux" in text
