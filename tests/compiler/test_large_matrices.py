"""Factors and triangular systems that are computed in blocks, which threads share.

The references are NumPy's functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.scipy.linalg
from funcgrad.lowering import MOST_SMALL
from tests.compiler.plans import steps_of

TOLERANCE = {"f": 1e-4, "F": 1e-4, "d": 1e-12, "D": 1e-12}


def random(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype in "FD" else x).astype(dtype)


def definite(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x, n = random(shape, dtype), shape[-1]
    return x @ np.conj(np.swapaxes(x, -1, -2)) / n + np.eye(n, dtype=dtype)


def rarely(*dtypes: str) -> list[Any]:
    return [pytest.param(dtype, marks=pytest.mark.nightly) for dtype in dtypes]


@pytest.mark.parametrize("dtype", ["f", *rarely("d", "F", "D")])
def test_cholesky_in_blocks(dtype: str) -> None:
    for shape in ((MOST_SMALL + 1,) * 2, (2, 193, 193)):
        a = definite(shape, dtype)
        # Only the lower triangle is read.
        spoiled = np.where(np.tri(shape[-1], dtype=bool), a, np.nan).astype(dtype)
        found = fg.jit(np.linalg.cholesky)(spoiled)
        assert found.dtype == a.dtype
        np.testing.assert_allclose(found, np.linalg.cholesky(a), atol=TOLERANCE[dtype])
        alone = fg.jit(np.linalg.cholesky, threads=1)(a)
        np.testing.assert_array_equal(alone, found)
        if len(shape) > 2:
            np.testing.assert_array_equal(fg.jit(np.linalg.cholesky)(a[1]), found[1])


def test_cholesky_fails_in_any_block() -> None:
    a = definite((300, 300), "d")
    compiled = fg.jit(np.linalg.cholesky)
    for i in (0, 63, 64, 200, 299):
        bad = a.copy()
        bad[i, i] = -1
        with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
            compiled(bad)
    np.testing.assert_allclose(compiled(a), np.linalg.cholesky(a), atol=1e-12)


def nearly_singular(least: float) -> np.ndarray:
    """The covariance of 300 neighbours, whose least eigenvalue is this, in single precision."""
    x = np.linspace(0, 1, 300)
    return (np.exp(-((x[:, None] - x) ** 2) / 0.02) + least * np.eye(300)).astype("f")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("least", [5e-7, 2e-6, 1e-4])
def test_cholesky_of_nearly_singular_matrices(least: float) -> None:
    """Single precision has lost their small pivots, or finds negative ones."""
    a = nearly_singular(least)
    compiled = fg.jit(np.linalg.cholesky)
    expected = np.linalg.cholesky(a)
    assert np.min(np.diag(expected)) ** 2 < 1e-3
    np.testing.assert_allclose(compiled(a), expected, atol=1e-7)
    stack = np.stack([a, definite((300, 300), "f"), 2 * a])
    for found in (compiled(stack), fg.jit(fg.vmap(np.linalg.cholesky))(stack)):
        np.testing.assert_allclose(found[::2], np.linalg.cholesky(stack[::2]), atol=1e-7)
        np.testing.assert_array_equal(found[1], compiled(stack[1]))
    stack[1] *= -1
    with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
        compiled(stack)
    spoiled = stack[2].copy()
    spoiled[7, 5] = np.nan
    np.testing.assert_array_equal(
        np.isnan(compiled(spoiled)), np.isnan(np.linalg.cholesky(spoiled))
    )


@pytest.mark.parametrize("dtype", ["f", *rarely("D")])
def test_triangular_systems_of_many_right_sides(dtype: str) -> None:
    n = MOST_SMALL + 1
    a = random((n, n), dtype) / n + np.eye(n, dtype=dtype)
    for k in (1, 64, 200, 600):
        b = random((n, k), dtype)
        for lower, trans in ((True, 0), (False, 1), (False, 0)):

            def solve(a: Any, b: Any, lower: bool = lower, trans: int = trans) -> Any:
                return fg.scipy.linalg.solve_triangular(a, b, lower=lower, trans=trans)

            matrix = np.tril(a) if lower else np.triu(a)
            matrix = matrix.T if trans else matrix
            found = fg.jit(solve)(a, b)
            np.testing.assert_allclose(matrix @ found, b, atol=50 * TOLERANCE[dtype])
            np.testing.assert_array_equal(fg.jit(solve, threads=1)(a, b), found)
            stacked = fg.jit(solve)(np.stack([a] * 2), np.stack([b] * 2))
            np.testing.assert_array_equal(stacked[1], found)
    a[70, 70] = 0
    with pytest.raises(np.linalg.LinAlgError, match="resolution failed at diagonal 70"):
        fg.jit(lambda a, b: fg.scipy.linalg.solve_triangular(a, b))(a, b)


@pytest.mark.parametrize("dtype", ["d", *rarely("F")])
def test_factors_and_their_solutions(dtype: str) -> None:
    a = random((200, 200), dtype)
    for k, trans in ((1, 0), (150, 1)):
        b = random((200, k), dtype)

        def solve(a: Any, b: Any, trans: int = trans) -> Any:
            return fg.scipy.linalg.lu_solve(fg.scipy.linalg.lu_factor(a), b, trans)

        found = fg.jit(solve)(a, b)
        bound = 100 * TOLERANCE[dtype] * np.linalg.cond(a)
        np.testing.assert_allclose((a.T if trans else a) @ found, b, atol=bound)
        np.testing.assert_array_equal(fg.jit(solve, threads=1)(a, b), found)


@pytest.mark.parametrize("dtype", ["f", *rarely("d", "F", "D")])
def test_inverses_and_determinants(dtype: str) -> None:
    n = MOST_SMALL + 1
    a = random((2, n, n), dtype) / np.asarray(np.sqrt(n / 2), dtype)
    exact = a.astype(np.complex128 if dtype in "FD" else np.float64)
    bound = 10 * TOLERANCE[dtype]
    inverse = fg.jit(np.linalg.inv)(a)
    assert inverse.dtype == a.dtype
    np.testing.assert_allclose(exact @ inverse, np.broadcast_to(np.eye(n), a.shape), atol=bound)
    np.testing.assert_array_equal(fg.jit(np.linalg.inv, threads=1)(a[1]), inverse[1])
    found = fg.jit(np.linalg.det)(a)
    assert found.dtype == a.dtype
    np.testing.assert_allclose(found, np.linalg.det(exact), rtol=bound)
    for ours, theirs in zip(fg.jit(np.linalg.slogdet)(a), np.linalg.slogdet(exact), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=bound)


def test_determinants_that_are_no_numbers_of_their_own() -> None:
    """Singular matrices, products beyond all numbers, infinities and nan, as NumPy has them."""
    n = MOST_SMALL + 1
    matrices = [np.ones((n, n)), 1e5 * np.eye(n), 1e-5 * np.eye(n), -np.eye(n)]
    for spoiled in (np.inf, np.nan, 0.0):
        matrices.append(np.eye(n))
        matrices[-1][3, 3] = spoiled
    stack = np.stack(matrices)
    with np.errstate(all="ignore"):
        expected = np.linalg.slogdet(stack)
        determinants = np.linalg.det(stack)
    for ours, theirs in zip(fg.jit(np.linalg.slogdet)(stack), expected, strict=True):
        np.testing.assert_allclose(ours, theirs)
    np.testing.assert_allclose(fg.jit(np.linalg.det)(stack), determinants)


def test_inverses_of_singular_matrices() -> None:
    n = MOST_SMALL + 1
    stack = np.stack([np.ones((n, n)), np.eye(n)])
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        fg.jit(np.linalg.inv)(stack)
    slope = fg.jit(fg.grad(lambda a: np.sum(np.linalg.slogdet(a)[1])))(stack)
    assert np.isnan(slope[0]).all()
    np.testing.assert_allclose(slope[1], np.eye(n))


def test_a_determinant_and_its_gradient_need_one_factorization() -> None:
    a = definite((MOST_SMALL + 1,) * 2, "d")
    both = fg.jit(fg.value_and_grad(lambda a: np.linalg.slogdet(a)[1]))
    assert steps_of(both.lower(a).as_text()).count("by getrf") == 1
    value, slope = both(a)
    np.testing.assert_allclose(value, np.linalg.slogdet(a)[1])
    np.testing.assert_allclose(slope, np.linalg.inv(a).T, atol=1e-12)


def singular_and_regular(n: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Matrices and their cofactors.

    Those of ``1 + u v^T`` are ``(1 + v^T u) 1 - v u^T``; those of a product are the product of the
    cofactors.
    """
    u, v = random((2, n), "D" if dtype in "FD" else "d") / np.sqrt(n)
    u /= v @ u
    keep = np.ones((3, n))
    keep[1, 2] = keep[2, 2] = keep[2, n - 1] = 0
    others = np.zeros((3, n))
    others[0], others[1, 2] = 1, 1
    one = np.eye(n)
    matrices, cofactors = [], []
    for factor in (1.0, -1 + 1e-9, -1.0):  # far from singular, near it, there except for rounding
        a = one + factor * np.outer(u, v)
        c = (1 + factor) * one - factor * np.outer(v, u)
        matrices += [a * keep[i] for i in range(3)]
        cofactors += [c * others[i] for i in range(3)]
    matrices += [0 * one, np.eye(n, k=1)]
    cofactors += [0 * one, 0 * one]
    cofactors[-1][n - 1, 0] = (-1) ** (n - 1)
    return np.stack(matrices).astype(dtype), np.stack(cofactors).astype(dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["d", *rarely("f", "F", "D")])
@pytest.mark.parametrize("n", [40, MOST_SMALL + 1])
def test_gradients_of_determinants_of_singular_and_regular_matrices(n: int, dtype: str) -> None:
    stack, expected = singular_and_regular(n, dtype)
    slope = fg.grad(np.linalg.det, holomorphic=dtype in "FD")
    compiled = fg.jit(fg.vmap(slope))(stack)
    assert compiled.dtype == stack.dtype
    bound = 10 * TOLERANCE[dtype]
    for a, known, found in zip(stack, expected, compiled, strict=True):
        np.testing.assert_allclose(slope(a), known, atol=bound)
        np.testing.assert_allclose(found, known, atol=bound)
        np.testing.assert_array_equal(fg.jit(slope)(a), found)
    np.testing.assert_allclose(fg.vmap(slope)(stack), expected, atol=bound)


@pytest.mark.parametrize("n", [40, MOST_SMALL + 1])
def test_gradients_of_determinants_beyond_all_numbers(n: int) -> None:
    """No number: all nan. An element that underflows, or a product of them, spoils no other one."""
    slope = fg.grad(np.linalg.det)
    a = np.eye(n)
    a[2, 3] = np.nan
    small = 1e-310 * np.eye(n)
    wide = np.diag(10.0 ** np.linspace(-150, 150, n))
    for f in (slope, fg.jit(slope)):
        assert np.isnan(f(a)).all()
        np.testing.assert_array_equal(f(small), 0 * small)
        np.testing.assert_allclose(f(wide) @ wide, np.linalg.det(wide) * np.eye(n), rtol=1e-10)


def test_the_gradient_of_a_determinant_takes_singular_values_of_singular_matrices_only() -> None:
    a = random((MOST_SMALL + 1,) * 2, "d")
    steps = steps_of(fg.jit(fg.value_and_grad(np.linalg.det)).lower(a).as_text())
    always, _, rest = steps.partition("branch 0")
    by_inverse, _, by_singular_values = rest.partition("branch 1")
    assert always.count("by getrf") == 1
    assert "svd" not in always + by_inverse
    assert "svd" in by_singular_values
