"""Boundary value problems, against SciPy, closed forms and differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.scipy.integrate import solve_bvp
from funcgrad.sparsity import Coloring

X = np.linspace(0.0, 1.0, 21)


def bratu(x: Any, y: Any) -> Any:
    return fg.numpy.stack([y[1], -np.exp(y[0])])


def held(ya: Any, yb: Any) -> Any:
    return fg.numpy.stack([ya[0], yb[0]])


def test_solutions_are_those_of_scipy() -> None:
    options = {"tol": 1e-7, "max_nodes": 2000}
    expected = scipy.integrate.solve_bvp(
        lambda x, y: np.array([y[1], -np.exp(y[0])]), lambda a, b: np.array([a[0], b[0]]),
        X, np.zeros((2, 21)), **options,
    )  # fmt: skip
    found = solve_bvp(bratu, held, X, np.zeros((2, 21)), **options)
    assert found.success
    assert found.status == expected.status
    assert found.message == expected.message
    assert found.p is None
    np.testing.assert_array_equal(found.x, expected.x)
    np.testing.assert_allclose(found.y, expected.y, atol=1e-9)
    np.testing.assert_allclose(found.yp, expected.yp, atol=1e-8)
    np.testing.assert_allclose(found.sol(0.37), expected.sol(0.37), atol=1e-9)


def test_jacobians_are_exact_and_sparse() -> None:
    """Newton's steps of a linear problem are exact: one of them, and no differences."""
    calls = []

    def linear(x: Any, y: Any) -> Any:
        calls.append(fg.numpy.shape(y))
        return fg.numpy.stack([y[1], -4.0 * y[0] + np.sin(x), y[3], y[0] - y[2]])

    def ends(ya: Any, yb: Any) -> Any:
        return fg.numpy.stack([ya[0] - 1.0, yb[1], ya[2], yb[2] - yb[0]])

    x = np.linspace(0.0, 1.0, 101)
    found = solve_bvp(linear, ends, x, np.zeros((4, 101)))
    assert found.success
    assert isinstance(found.sparsity, Coloring)
    assert found.sparsity.pattern.shape == (404, 404)
    assert found.sparsity.n_colors < 20
    assert len(calls) < 12  # traced, not called for each node, column and step


def frequency(mass: Any, mode: str = "p") -> Any:
    """Mathieu's or a string's eigenvalue as an unknown parameter."""

    def fun(x: Any, y: Any, p: Any) -> Any:
        return fg.numpy.stack([y[1], -p[0] * mass * y[0]])

    def bc(ya: Any, yb: Any, p: Any) -> Any:
        return fg.numpy.stack([ya[0], yb[0], ya[1] - 1.0])

    start = np.stack([np.sin(np.pi * X) / np.pi, np.cos(np.pi * X)])
    found = solve_bvp(fun, bc, X, start, p=[9.0], tol=1e-8)
    return found.p[0] if mode == "p" else found.sol(0.25)[0]


@pytest.mark.nightly
def test_unknown_parameters_and_their_derivatives() -> None:
    """A string: the eigenvalue is pi^2 / mass."""
    assert frequency(2.0) == pytest.approx(np.pi**2 / 2, rel=1e-6)
    assert fg.grad(frequency)(2.0) == pytest.approx(-(np.pi**2) / 4, rel=1e-6)
    assert fg.jvp(frequency, (2.0,), (3.0,))[1] == pytest.approx(-3 * np.pi**2 / 4, rel=1e-6)
    assert abs(fg.grad(frequency)(2.0, "y")) < 1e-5


def test_derivatives_go_through_sparse_factors() -> None:
    """The solution of y'' = k^2 y between 0 and 1 is a hyperbolic sine."""
    x = np.linspace(0.0, 1.0, 201)

    def middle(k: Any, end: Any) -> Any:
        found = solve_bvp(
            lambda x, y: fg.numpy.stack([y[1], k**2 * y[0]]),
            lambda ya, yb: fg.numpy.stack([ya[0], yb[0] - end]),
            x, np.zeros((2, 201)), tol=1e-8,
        )  # fmt: skip
        assert isinstance(found.sparsity, Coloring)
        return found.sol(0.5)[0]

    def exact(k: float, end: float) -> float:
        return end * np.sinh(k / 2) / np.sinh(k)

    slopes = fg.grad(middle, (0, 1))(2.0, 1.5)
    step = 1e-5
    by_k = (exact(2.0 + step, 1.5) - exact(2.0 - step, 1.5)) / (2 * step)
    np.testing.assert_allclose(slopes, [by_k, exact(2.0, 1.0)], rtol=1e-7)


def test_singular_terms_are_solved() -> None:
    """Emden's equation y'' + 2 y' / x + y^5 = 0 has the solution (1 + x^2 / 3)^(-1/2)."""
    singular = np.array([[0.0, 0.0], [0.0, -2.0]])
    found = solve_bvp(
        lambda x, y: fg.numpy.stack([y[1], -(y[0] ** 5)]),
        lambda ya, yb: fg.numpy.stack([ya[1], yb[0] - (4 / 3) ** -0.5]),
        X, np.ones((2, 21)), S=singular,
    )  # fmt: skip
    np.testing.assert_allclose(found.y[0], (1 + found.x**2 / 3) ** -0.5, atol=1e-4)


def test_messages() -> None:
    start = np.zeros((2, 21))

    def loaded(load: Any, **options: Any) -> Any:
        return solve_bvp(
            lambda x, y: fg.numpy.stack([y[1], load * y[0]]), held, X, start, **options
        ).y[0, 3]

    with pytest.raises(ArgumentError, match="refined by values, which are traced here"):
        fg.jit(loaded)(1.0)
    with pytest.raises(ArgumentError, match="problems with S have no derivatives"):
        fg.grad(lambda a: loaded(a, S=np.zeros((2, 2))))(1.0)
    with pytest.raises(ArgumentError, match="the mesh x must be known"):
        fg.jit(lambda x: solve_bvp(bratu, held, x, start).y)(X)
    with pytest.raises(ShapeError, match=r"a column for each node, got f64\[21,2\]"):
        solve_bvp(bratu, held, X, start.T)
    with pytest.raises(ShapeError, match=r"must have the shape of y, \(2, 21\), got f64\[21\]"):
        solve_bvp(lambda x, y: y[0], held, X, start)
