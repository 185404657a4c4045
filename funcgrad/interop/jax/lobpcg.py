"""The largest eigenvalues of a symmetric matrix: ``jax.experimental.sparse.linalg``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.errors import ShapeError

__all__ = ["lobpcg_standard"]


def lobpcg_standard(
    A: Any | Callable[[Any], Any], X: Any, m: int = 100, tol: float | None = None
) -> tuple[Any, Any, Any]:
    """The ``k`` largest eigenvalues of a positive semidefinite matrix, and eigenvectors.

    Knyazev's locally optimal method without a preconditioner: Rayleigh and Ritz's values of the
    space of the vectors, of their residuals and of their last steps. Householder's orthogonal
    basis of these exists wherever they depend on each other, so that nothing has to be locked.

    Args:
        A: Matrix of shape (n, n), or its product with matrices of shape (n, k).
        X: Where to begin, of shape (n, k) with ``5 k < n``.
        m: Steps, at most.
        tol: Of the residuals, over ``10 n`` and the size of the product; by default the
            precision of the dtype.

    Returns:
        The eigenvalues in descending order, orthonormal eigenvectors as columns, and the number
        of steps.
    Raises: ShapeError: If shapes or dtypes do not fit.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.jax.lobpcg import lobpcg_standard
        >>> start = np.random.default_rng(0).normal(size=(20, 2))
        >>> values, vectors, steps = lobpcg_standard(np.diag(np.arange(1.0, 21.0)), start)
        >>> print(values.round(6))
        [20. 19.]
    """
    X = fnp.asarray(X)
    n, k = X.shape
    product = A if callable(A) else fnp.asarray(A).__matmul__
    if not callable(A) and np.shape(A) != (n, n):
        raise ShapeError(f"lobpcg_standard: A must be ({n}, {n}), got {np.shape(A)}.")
    if not k or 5 * k >= n:
        raise ShapeError(
            f"lobpcg_standard needs a search dim > 0 and search dim * 5 < matrix dim, got {k} and "
            f"{n}."
        )
    if product(X).dtype != X.dtype:
        raise ShapeError(f"lobpcg_standard: A, X must have same dtypes, got X of {X.dtype}.")
    eps = np.finfo(X.dtype).eps
    tol = float(eps) if tol is None else tol

    def best(basis: Any) -> tuple[Any, Any]:
        """The largest values in a space, and coefficients of vectors."""
        small = basis.T @ product(basis)
        values, vectors = fnp.linalg.eigh((small + small.T) / 2)
        return values[::-1][:k], vectors[:, ::-1][:, :k]

    def residuals(theta: Any, x: Any) -> tuple[Any, Any]:
        """Remainder of the equations, and how many of them hold."""
        image = product(x)
        rest = image - x * theta
        size = abs(theta) + fnp.linalg.norm(image, axis=0)
        error = fnp.linalg.norm(rest, axis=0) / (10 * n * fnp.maximum(size, eps * eps))
        return rest, fnp.sum(error < tol)

    def goes_on(state: Any) -> Any:
        count, _, _, _, _, found = state
        return (count < m) & (found < k)

    def step(state: Any) -> Any:
        count, _, x, last, rest, _ = state
        scale = fnp.maximum(fnp.linalg.norm(rest, axis=0), eps * eps)
        basis, _ = fnp.linalg.qr(fnp.concatenate([x, last, rest / scale], axis=1))
        theta, parts = best(basis)
        new, moved = basis @ parts, basis[:, k:] @ parts[k:]
        return (count + 1, theta, new, moved, *residuals(theta, new))

    start, _ = fnp.linalg.qr(X)
    theta, parts = best(start)
    x = start @ parts
    state = (np.int32(0), theta, x, fnp.zeros_like(x), *residuals(theta, x))
    count, theta, x, *_ = lax.while_loop(goes_on, step, state)
    return theta, x, count
