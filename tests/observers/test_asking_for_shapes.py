"""Messages where a shape, or SciPy, asks for the value of a traced array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.integrate as si
import scipy.sparse.linalg
from scipy.integrate import solve_ivp

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import (
    ConcretizationTypeError,
    ShapeError,
    TracerArrayConversionError,
    TracerIntegerConversionError,
)

LENGTHS: dict[str, Any] = {
    "np.arange": lambda n: np.arange(n),
    "np.arange of two": lambda n: np.arange(0, n),
    "np.zeros": lambda n: np.zeros(n),
    "np.empty": lambda n: np.empty(n),
    "np.full": lambda n: np.full(n, 1.0),
    "np.ones": lambda n: np.ones((n, 2)),
    "np.eye": lambda n: np.eye(n),
    "np.tri": lambda n: np.tri(n),
    "np.linspace": lambda n: np.linspace(0.0, 1.0, n),
    "fnp.arange": lambda n: fnp.arange(n),
    "fnp.zeros": lambda n: fnp.zeros(n),
    "fnp.linspace": lambda n: fnp.linspace(0.0, 1.0, n),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_are_called_shapes(name: str) -> None:
    function = LENGTHS[name]
    calls: list[Any] = [
        lambda: fg.jit(function)(3),
        lambda: fg.vmap(function)(np.arange(3)),
        lambda: fg.grad(lambda x: np.sum(function(x)))(3.0),
        lambda: fg.lax.fori_loop(0, 2, lambda i, c: c + np.sum(function(i)), 0.0),
    ]
    for call in calls:
        if call is calls[2] and name.endswith(("arange", "arange of two", "tri", "fnp.linspace")):
            continue  # floats are taken, or asked for as floats
        with pytest.raises(TracerIntegerConversionError) as caught:
            call()
        text = str(caught.value)
        assert text.startswith(f"{name.split()[0]}: the shape depends on a traced ")
        assert "test_asking_for_shapes.py" in text
        assert "pass the value as a static argument, jit(f, static_argnums=...)" in text


def test_other_conditions_are_conditions() -> None:
    with pytest.raises(ConcretizationTypeError, match="need a concrete bool"):
        fg.jit(lambda n: np.zeros(3) if n > 1 else np.ones(3))(3)


def test_repeat_says_whose_function_takes_a_length() -> None:
    text = (
        r"`repeats` is a traced i64(.|\n)*funcgrad.numpy.repeat\(x, repeats, total_repeat_length=n"
    )
    with pytest.raises(ConcretizationTypeError, match=text):
        fg.jit(lambda x, n: np.repeat(x, n))(np.ones(3), np.ones(3, int))


INTEGRALS: dict[str, Any] = {
    "si.solve_ivp": lambda k: si.solve_ivp(lambda t, y: -k * y, (0, 1.0), [1.0]).y[0, -1],
    "scipy.integrate.solve_ivp": lambda k: scipy.integrate.solve_ivp(
        lambda t, y: -k * y, (0, 1.0), [1.0]
    ).y[0, -1],
    "solve_ivp": lambda k: solve_ivp(lambda t, y: -k * y, (0, 1.0), [1.0]).y[0, -1],
}


@pytest.mark.parametrize("name", INTEGRALS)
@pytest.mark.parametrize("wrap", [fg.grad, fg.jit])
def test_integrators_name_their_counterpart(wrap: Any, name: str) -> None:
    with pytest.raises(TracerArrayConversionError) as caught:
        wrap(INTEGRALS[name])(1.0)
    text = str(caught.value)
    assert f"Write funcgrad.scipy.integrate.solve_ivp instead of {name}." in text


MATRIX = np.diag([1.0, 2.0, 4.0])
POINT = np.ones(3)
PRODUCTS: dict[str, Any] = {
    "jvp": lambda v: fg.jvp(lambda x: MATRIX @ x, (POINT,), (v,))[1],
    "vjp": lambda v: fg.vjp(lambda x: MATRIX @ x, POINT)[1](v)[0],
    "linearize": lambda v: fg.linearize(lambda x: MATRIX @ x, POINT)[1](v),
    "jit": fg.jit(lambda v: fg.jvp(lambda x: MATRIX @ x, (POINT,), (v,))[1]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_linear_operators_of_scipy_may_try_integers(name: str) -> None:
    operator = scipy.sparse.linalg.LinearOperator((3, 3), matvec=PRODUCTS[name])
    assert operator.dtype == np.float64
    np.testing.assert_array_equal(operator @ POINT, MATRIX @ POINT)
    solution, info = scipy.sparse.linalg.cg(operator, POINT)
    assert info == 0
    np.testing.assert_allclose(solution, 1 / np.diag(MATRIX), 1e-8)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "?"])
@pytest.mark.parametrize("precision", ["f4", "f8", "c16"])
def test_directions_of_integers_have_the_dtype_of_the_point(precision: str, dtype: str) -> None:
    x, v = np.ones(2, precision), np.array([1, 0], dtype)
    expected = np.cos(x) * v.astype(precision)
    for found in (
        fg.jvp(np.sin, (x,), (v,))[1],
        fg.vjp(np.sin, x)[1](v)[0],
        fg.linearize(np.sin, x)[1](v),
    ):
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, expected, 1e-6)


def test_directions_of_another_precision_are_refused() -> None:
    x = np.ones(2)
    with pytest.raises(ShapeError, match=r"primal, f64\[2\], but is f32\[2\]"):
        fg.jvp(np.sin, (x,), (x.astype("f4"),))
    with pytest.raises(ShapeError, match=r"primal, f64\[2\], but is i64\[3\]"):
        fg.jvp(np.sin, (x,), (np.arange(3),))
