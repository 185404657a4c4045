"""Solvers of large systems find out that Jacobians are sparse, and say so."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.primitives.sparse import Pattern
from funcgrad.scipy.optimize import least_squares, minimize, root
from funcgrad.scipy.sparse.factors import Eliminated
from funcgrad.sparsity import Coloring

N = 300
START = np.linspace(0.2, 1.1, N)


def chain(x: Any) -> Any:
    return np.concatenate([x[1:] - 0.3 * x[:-1] ** 2 - 0.2, 0.5 * (x - 0.5)])


def cubic(x: Any, a: Any = 1.0) -> Any:
    return x**3 + a * x + 0.1 * np.roll(x, 1) - 2.0


def far_apart(x: Any) -> Any:
    """A grid whose band is too wide for LAPACK."""
    return np.concatenate([x - 1.0, x[: N // 2] * x[N // 2 :] - 1.0, x[::3] * x[1::3] - 1.0])


@pytest.mark.parametrize("function", [chain, far_apart])
def test_sparse_least_squares(function: Any) -> None:
    found = least_squares(function, START, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    assert found.success
    assert isinstance(found.sparsity, Coloring)
    assert scipy.sparse.issparse(found.jac)
    expected = scipy.optimize.least_squares(
        function, START, fg.jacfwd(function), xtol=1e-12, ftol=1e-12, gtol=1e-12
    )
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    np.testing.assert_allclose(found.cost, expected.cost, rtol=1e-9, atol=1e-20)
    np.testing.assert_allclose(found.grad, found.jac.T @ found.fun)
    assert found.optimality == np.max(abs(found.grad))


def test_bounds_and_losses_are_scipys() -> None:
    start = np.minimum(START, 0.7)
    found = least_squares(chain, start, bounds=(0.0, 0.8), tr_solver="lsmr", max_nfev=3)
    assert scipy.sparse.issparse(found.jac)
    assert isinstance(found.sparsity, Coloring)
    found = least_squares(chain, start, bounds=(0.0, 0.8), max_nfev=5)
    expected = scipy.optimize.least_squares(
        chain, start, fg.jacfwd(chain), bounds=(0.0, 0.8), max_nfev=5
    )
    np.testing.assert_allclose(found.cost, expected.cost, rtol=1e-6)


def test_a_pattern_of_the_user_is_used_and_checked() -> None:
    pattern = fg.jacfwd(chain)(START) != 0
    found = least_squares(chain, START, jac_sparsity=pattern)
    assert found.sparsity.pattern.nnz == pattern.sum()
    pattern[3, 4] = False
    with pytest.raises(ArgumentError, match=r"`sparse` misses an entry\. In row 3"):
        least_squares(chain, START, jac_sparsity=pattern)


def test_small_and_dense_problems_are_as_before() -> None:
    assert "sparsity" not in least_squares(chain, START[:20])
    assert "sparsity" not in root(lambda x: x - np.mean(x) - 1 + x**2, START, method="lm")


def test_the_most_evaluations() -> None:
    found = least_squares(chain, START, max_nfev=2)
    assert not found.success
    assert found.nfev == 2
    assert found.message == "The maximum number of function evaluations is exceeded."


def test_sparse_roots() -> None:
    found = root(cubic, START)
    assert found.success
    assert isinstance(found.sparsity, Coloring)
    assert found.message == "Newton's method with sparse factors has converged"
    np.testing.assert_allclose(cubic(found.x), 0, atol=1e-12)


def test_roots_that_are_not_found() -> None:
    singular = root(lambda x: np.concatenate([x[1:] ** 2, x[:1] * 0 + 1.0]), START)
    assert not singular.success
    assert "singular" in singular.message
    none = root(lambda x: x**2 + 1.0, START)
    assert not none.success


def test_roots_are_differentiated_by_sparse_factors() -> None:
    def total(a: Any) -> Any:
        return np.sum(root(cubic, START, args=(a,)).x ** 2)

    x = root(cubic, START).x
    # Of the linear equation (J + d/da) = 0, densely.
    slope = np.linalg.solve(fg.jacfwd(cubic)(x), -x)
    np.testing.assert_allclose(fg.grad(total)(1.0), np.sum(2 * x * slope), rtol=1e-9)
    np.testing.assert_allclose(fg.jit(fg.grad(total))(1.0), np.sum(2 * x * slope), rtol=1e-9)


def test_least_squares_are_differentiated_by_sparse_factors() -> None:
    def fitted(a: Any) -> Any:
        return np.sum(least_squares(lambda x: np.concatenate([a * x - 1.0, x[1:] * x[:-1] - 1.0]),
                                    START, xtol=1e-12).x)  # fmt: skip

    step = 1e-4
    expected = (fitted(1.5 + step) - fitted(1.5 - step)) / (2 * step)
    np.testing.assert_allclose(fg.grad(fitted)(1.5), expected, rtol=1e-5)


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def products(x: Any) -> Any:
    return x[1:] * x[:-1]


@pytest.mark.parametrize("is_constrained", [False, True])
def test_trust_regions_get_sparse_matrices(is_constrained: bool) -> None:
    constraints = [scipy.optimize.NonlinearConstraint(products, 0.0, 0.5)] if is_constrained else []
    options = {"maxiter": 8}  # further on rounding errors grow to any size
    start = np.full(N, 0.5)
    found = minimize(
        rosenbrock, start, method="trust-constr", constraints=constraints, options=options
    )
    assert isinstance(found.sparsity, Coloring)
    assert found.sparsity.pattern.nnz == 3 * N - 2
    counted = np.arange(N - 1)

    def slopes(x: Any) -> Any:
        matrix = np.zeros((N - 1, N))
        matrix[counted, counted], matrix[counted, counted + 1] = x[1:], x[:-1]
        return scipy.sparse.csr_array(matrix)

    def curvature(x: Any, weights: Any) -> Any:
        return scipy.sparse.diags_array([weights, weights], offsets=[1, -1], shape=(N, N)).tocsr()

    by_hand = scipy.optimize.NonlinearConstraint(products, 0.0, 0.5, slopes, curvature)
    expected = scipy.optimize.minimize(
        scipy.optimize.rosen, start, method="trust-constr", jac=scipy.optimize.rosen_der,
        hess=lambda x: scipy.sparse.csr_array(scipy.optimize.rosen_hess(x)),
        constraints=[by_hand] if is_constrained else [], options=options,
    )  # fmt: skip
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)
    assert found.nit == expected.nit
    if is_constrained:
        assert scipy.sparse.issparse(found.jac[0])


def test_trust_regions_of_small_problems_are_as_before() -> None:
    found = minimize(rosenbrock, np.full(4, 0.5), method="trust-constr")
    assert "sparsity" not in found
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("function", "most_work"), [(chain, 1e10), (far_apart, 1e10), (far_apart, 0)]
)
def test_traced_least_squares_are_sparse(
    function: Any, most_work: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a band, by elimination, and by conjugate gradients where factors would be filled."""
    factors = importlib.import_module("funcgrad.scipy.sparse.factors")
    monkeypatch.setattr(factors, "MOST_WORK", most_work)
    solve = fg.jit(lambda start: least_squares(function, start, xtol=1e-12))
    found = solve(START)
    assert found.success
    assert isinstance(found.sparsity, Coloring)
    assert found.jac.shape == (len(found.fun), N)
    expected = least_squares(function, START, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    np.testing.assert_allclose(found.grad, 0, atol=1e-8)
    text = str(solve.trace(START).program)
    assert f"[{len(found.fun)},{N}]" not in text  # nothing has the size of the dense Jacobian


def grid(n: int, shift: float) -> Any:
    """Laplace's operator on a square, and a diagonal."""
    line = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    units = scipy.sparse.eye_array(n)
    laplacian = scipy.sparse.kron(line, units) + scipy.sparse.kron(units, line)
    found = scipy.sparse.csc_array(laplacian + shift * scipy.sparse.eye_array(n * n))
    found.sort_indices()
    return found


def pattern_of(matrix: Any) -> Pattern:
    return Pattern(matrix.indptr, matrix.indices, matrix.shape)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factors_of_positive_matrices_are_ordered_once(dtype: Any) -> None:
    first, second = grid(12, 0.1).astype(dtype), grid(12, 3.0).astype(dtype)
    factors = Eliminated.of(pattern_of(first))
    assert factors is not None
    right = np.random.default_rng(0).uniform(size=144).astype(dtype)
    for matrix in (first, second, first):
        found = factors.solve(matrix.data, right)
        assert found.dtype == dtype
        np.testing.assert_allclose(
            matrix @ found, right, atol=1e-12 if dtype == np.float64 else 1e-5
        )


def test_matrices_whose_factors_would_be_filled_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("funcgrad.scipy.sparse.factors"), "MOST_WORK", 100)
    assert Eliminated.of(pattern_of(grid(12, 0.1))) is None


def test_least_squares_by_factors() -> None:
    found = least_squares(far_apart, START)
    expected = scipy.optimize.least_squares(far_apart, START)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("work", [0.0, 1e10])
def test_least_squares_by_factors_and_by_products(
    few: int, work: float, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps by conjugate gradients, by factors, or, where these would be filled, by products."""
    steps = importlib.import_module("funcgrad.scipy.optimize.sparse_steps")
    monkeypatch.setattr(steps, "FEW_PRODUCTS", few)
    monkeypatch.setattr(importlib.import_module("funcgrad.scipy.sparse.factors"), "MOST_WORK", work)
    places = np.random.default_rng(0).integers(0, N, (3, 400))

    def scattered(x: Any) -> Any:
        i, j, k = places
        return np.concatenate([x[i] - np.sin(x[j]) * x[k] - 0.1, 0.5 * (x - 0.3)])

    found = least_squares(scattered, START.astype(dtype))
    assert found.success
    assert found.x.dtype == dtype
    assert isinstance(found.sparsity, Coloring)
    # Newton's step of the whole Hessian from there is short.
    x = found.x.astype(np.float64)

    def cost(x: Any) -> Any:
        return np.sum(scattered(x) ** 2) / 2

    move = np.linalg.solve(fg.hessian(cost)(x), -fg.grad(cost)(x))
    assert np.linalg.norm(move) < (1e-4 if dtype == np.float64 else 1e-2)


def test_rows_with_many_entries_are_not_multiplied_out() -> None:
    """One residual that depends on all unknowns makes ``J^T J`` dense."""

    def total(x: Any) -> Any:
        return np.concatenate([x - 0.5, np.diff(x), np.sum(x)[None] - 3.0])

    start = np.linspace(0.0, 1.0, 3000)
    found = least_squares(total, start)
    assert (found.sparsity.n_columns, found.sparsity.n_rows) == (2, 1)
    matrix = found.jac
    move = scipy.sparse.linalg.lsqr(matrix, -total(start), atol=1e-14, btol=1e-14)[0]
    np.testing.assert_allclose(found.x, start + move, atol=1e-6)


def test_colours_are_those_of_an_earlier_result() -> None:
    first = least_squares(chain, START)
    second = least_squares(lambda x: chain(x) + 0.1, START)
    assert first.sparsity is second.sparsity
    assert least_squares(far_apart, START).sparsity is not first.sparsity


@pytest.mark.parametrize("function", [chain, far_apart])
def test_a_step_that_rounding_leaves_without_a_factor_is_damped(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("funcgrad.scipy.optimize.sparse_steps")
    usual, calls = module._NormalEquations._solve, []

    def once(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            raise RuntimeError("the matrix is not positive definite")
        return usual(*args)

    monkeypatch.setattr(module._NormalEquations, "_solve", once)
    found = least_squares(function, START)
    assert found.success
    assert len(calls) > 1


def test_functions_that_are_not_finite_say_so() -> None:
    with pytest.raises(ArgumentError, match="residuals are not finite at the first point"):
        least_squares(lambda x: chain(x) + np.log(x[0] - 1.0), START)
    found = root(lambda x: np.log(x - 2.0) + np.roll(x, 1), START)
    assert not found.success
    assert found.message == "the residual is not finite"


@pytest.mark.parametrize("n", [8, N])
def test_shapes_that_do_not_fit(n: int) -> None:
    """Of few unknowns, which SciPy solves for, and of many that have sparse Jacobians."""
    x = np.linspace(0.2, 1.1, n)
    for wrong in (lambda x: x[1:], lambda x: np.append(x, x[0]), lambda x: x[0]):
        with pytest.raises(ShapeError, match=rf"root: <lambda> returned .* for {n} unknowns\. A"):
            root(wrong, x)
    with pytest.raises(ShapeError, match=r"`x0` must be a vector, got f64\[2,\d+\]"):
        least_squares(lambda x: x.ravel(), x.reshape(2, -1))
    with pytest.raises(ShapeError, match=r"<lambda> must return a vector of residuals, got f64\[2"):
        least_squares(lambda x: x.reshape(2, -1), x)
    found = root(lambda x: x**3 - 8.0, x.reshape(2, -1) + 1.0)
    np.testing.assert_allclose(found.x, np.full(n, 2.0))
