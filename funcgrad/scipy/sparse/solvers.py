"""Solutions of linear systems with sparse matrices, with derivatives of the solution.

``A x = b`` is differentiated as an equation (`funcgrad.lax.custom_linear_solve`): with respect to
``b`` and to the entries of ``A``, by another solution, of the transposed system in reverse mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.differentiation import linear_transpose
from funcgrad.base.pytree import tree_flatten
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.flatten_util import ravel_pytree
from funcgrad.numpy.promotion import as_value
from funcgrad.patterns.arrays import SparseArray
from funcgrad.scipy.sparse.factors import OrderedFactors
from funcgrad.scipy.sparse.operators import aslinearoperator

Apply = Callable[[Any], Any]


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    tol: Any = None,
) -> tuple[Any, Any]:
    """Solution of a positive definite system by conjugate gradients.

    As `scipy.sparse.linalg.cg` and `jax.scipy.sparse.linalg.cg`.

    The matrix must be Hermitian and positive definite.

    Returns: The solution, and 0 or, if it did not converge, the number of iterations.

    Example:
        >>> import numpy as np, scipy.sparse, funcgrad as fg
        >>> A = scipy.sparse.diags_array([2.0, 4.0])
        >>> print(fg.scipy.sparse.linalg.cg(A, np.array([2.0, 2.0]))[0])
        [1.  0.5]
        >>> fg.grad(lambda b: fg.scipy.sparse.linalg.cg(A, b)[0].sum())(np.array([2.0, 2.0]))
        array([0.5 , 0.25])
    """
    return _System("cg", A, b, x0, M, callback).solve(
        _conjugate_gradients, rtol if tol is None else tol, atol, maxiter, symmetric=True
    )


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    tol: Any = None,
) -> tuple[Any, Any]:
    """Solution of a square system by stabilised biconjugate gradients.

    As `scipy.sparse.linalg.bicgstab`.

    Returns: As of `cg`.

    Example:
        >>> from funcgrad.scipy.sparse.linalg import bicgstab
        >>> print(bicgstab(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([3.0, 1.0]))[0].round(6))
        [1. 1.]
    """
    return _System("bicgstab", A, b, x0, M, callback).solve(
        _stabilised, rtol if tol is None else tol, atol, maxiter
    )


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    callback_type: Any = None,
    tol: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """Solution of a square system by generalised minimal residuals, as `scipy.sparse.linalg.gmres`.

    Args:
        restart: Directions that are kept before it starts again; by default 20.
        maxiter: The most restarts; by default ten times the number of unknowns.
        callback_type: Accepted for SciPy's signature.
        solve_method: Accepted for JAX's signature.
    Returns: As of `cg`.

    Example:
        >>> from funcgrad.scipy.sparse.linalg import gmres
        >>> print(gmres(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([3.0, 1.0]))[0].round(6))
        [1. 1.]
    """
    system = _System("gmres", A, b, x0, M, callback)
    n = min(20 if restart is None else restart, max(system.size, 1))

    def method(apply: Apply, precondition: Apply, right: Any, allowed: Any, limit: int) -> Any:
        return _minimal_residuals(apply, precondition, right, allowed, limit, n)

    return system.solve(method, rtol if tol is None else tol, atol, maxiter)


def _is_function(A: Any) -> bool:
    """Whether it is a function of arrays of any shape, or an object that only knows ``@``."""
    if callable(A):
        return not hasattr(A, "shape")
    return hasattr(A, "__matmul__") and not (hasattr(A, "dtype") or hasattr(A, "matvec"))


def _check_like(name: str, x0: Any, b: Any) -> None:
    """Raise if a first guess has not the structure and shapes of the right-hand side."""
    (guess, tree), (right, wanted) = tree_flatten(x0), tree_flatten(b)
    if tree != wanted or list(map(np.shape, guess)) != list(map(np.shape, right)):
        raise ShapeError(f"{name}: x0 must have the structure {wanted} and the shapes of b.")


class _System:
    """A system as a function of vectors."""

    def __init__(self, name: str, A: Any, b: Any, x0: Any, M: Any, callback: Any) -> None:
        if callback is not None:
            raise ArgumentError(
                f"{name}: callback is not called from compiled loops; limit maxiter and call "
                f"{name} again with x0 to see what happens in between."
            )
        is_function = _is_function(A)
        b = b if is_function else as_value(b, name)
        self.right, self.unravel = ravel_pytree(b)
        if self.right.dtype.kind not in "fc":
            self.right = fnp.astype(self.right, np.float64)
        self.size = self.right.shape[0]
        self.apply = self._function(name, A)
        self.precondition = (lambda v: v) if M is None else self._function(name, M)
        if not is_function:
            dtype = np.result_type(self.right.dtype, aslinearoperator(A).dtype)
            self.right = fnp.astype(self.right, dtype)
        dtype = self.right.dtype
        if x0 is not None and is_function:
            _check_like(name, x0, b)
        start = fnp.zeros(self.size, dtype) if x0 is None else ravel_pytree(x0)[0]
        self.start = fnp.astype(start, dtype)
        self.is_function = is_function
        self.shape = None if is_function else np.shape(b)

    def _function(self, name: str, A: Any) -> Apply:
        if _is_function(A):
            apply = A if callable(A) else A.__matmul__
            return lambda v: ravel_pytree(apply(self.unravel(v)))[0]
        operator = aslinearoperator(A)
        if operator.shape != (self.size, self.size):
            raise ShapeError(
                f"{name}: a matrix of shape {operator.shape} and a right-hand side of "
                f"{self.size} numbers make no system of as many equations as unknowns."
            )
        return operator.matvec

    def solve(
        self, method: Any, rtol: Any, atol: Any, maxiter: int | None, symmetric: bool = False
    ) -> tuple[Any, Any]:
        limit = 10 * self.size if maxiter is None else maxiter
        shifted = self.right - self.apply(self.start)
        size = fnp.linalg.norm(lax.stop_gradient(self.right))
        allowed = fnp.maximum(rtol * size, atol)

        def forward(apply: Apply, right: Any) -> Any:
            x, count, is_done = method(apply, self.precondition, right, allowed, limit)
            return x, fnp.where(is_done, 0, count)

        def backward(apply: Apply, right: Any) -> Any:
            precondition = linear_transpose(self.precondition, right)
            allowed = fnp.maximum(rtol * fnp.linalg.norm(right), atol)
            x, count, is_done = method(apply, lambda v: precondition(v)[0], right, allowed, limit)
            return x, fnp.where(is_done, 0, count)

        x, info = lax.custom_linear_solve(
            self.apply, shifted, forward, backward, symmetric=symmetric, has_aux=True
        )
        x = x + self.start
        if self.is_function:
            return self.unravel(x), info
        return fnp.reshape(x, self.shape), info


def _inner(x: Any, y: Any) -> Any:
    return fnp.vdot(x, y)


def _conjugate_gradients(
    apply: Apply, precondition: Apply, right: Any, allowed: Any, limit: int
) -> tuple[Any, Any, Any]:
    z = precondition(right)
    state = (np.int64(0), fnp.zeros_like(right), right, z, _inner(right, z))

    def goes_on(state: Any) -> Any:
        count, _, r, _, _ = state
        return (fnp.linalg.norm(r) > allowed) & (count < limit)

    def step(state: Any) -> Any:
        count, x, r, p, size = state
        image = apply(p)
        length = size / _inner(p, image)
        x, r = x + length * p, r - length * image
        z = precondition(r)
        new = _inner(r, z)
        return count + 1, x, r, z + new / size * p, new

    count, x, r, _, _ = lax.while_loop(goes_on, step, state)
    return x, count, fnp.linalg.norm(r) <= allowed


def _stabilised(
    apply: Apply, precondition: Apply, right: Any, allowed: Any, limit: int
) -> tuple[Any, Any, Any]:
    one = fnp.ones((), right.dtype)
    zeros = fnp.zeros_like(right)
    # Count, solution, residual, direction, its image, three scalars.
    state = (np.int64(0), zeros, right, zeros, zeros, one, one, one)

    def goes_on(state: Any) -> Any:
        is_broken = fnp.isnan(fnp.linalg.norm(state[2]))
        return (fnp.linalg.norm(state[2]) > allowed) & (state[0] < limit) & ~is_broken

    def step(state: Any) -> Any:
        count, x, r, p, v, rho, alpha, omega = state
        new = _inner(right, r)
        p = r + new / rho * (alpha / omega) * (p - omega * v)
        y = precondition(p)
        v = apply(y)
        alpha = new / _inner(right, v)
        s = r - alpha * v
        z = precondition(s)
        t = apply(z)
        size = _inner(t, t)
        omega = _inner(t, s) / fnp.where(size == 0, one, size)
        # With nothing left, the next step, which is not taken, must not divide by zero.
        is_exact = fnp.linalg.norm(s) <= allowed
        omega = fnp.where(is_exact, fnp.zeros_like(omega), omega)
        x = x + alpha * y + omega * z
        r = s - omega * t
        return count + 1, x, r, p, v, new, alpha, omega

    found = lax.while_loop(goes_on, step, state)
    return found[1], found[0], fnp.linalg.norm(found[2]) <= allowed


def _minimal_residuals(
    apply: Apply, precondition: Apply, right: Any, allowed: Any, limit: int, n: int
) -> tuple[Any, Any, Any]:
    size = right.shape[0]

    def cycle(state: Any) -> Any:
        count, x, r = state
        length = fnp.linalg.norm(r)
        basis = lax.dynamic_update_index_in_dim(
            fnp.zeros((n + 1, size), right.dtype), r / length, 0, 0
        )
        table = fnp.zeros((n + 1, n), right.dtype)

        def extend(k: Any, state: Any) -> Any:
            basis, table = state
            v = apply(precondition(lax.dynamic_index_in_dim(basis, k, 0, keepdims=False)))
            # Twice, so that the directions stay orthogonal.
            parts = fnp.conj(basis) @ v
            v = v - parts @ basis
            more = fnp.conj(basis) @ v
            v = v - more @ basis
            rest = fnp.linalg.norm(v)
            is_new = rest > 1e-14 * fnp.linalg.norm(parts)
            v = fnp.where(is_new, v / fnp.where(is_new, rest, 1.0), fnp.zeros_like(v))
            column = parts + more
            own = fnp.where(is_new, rest, 0.0).astype(right.dtype)
            column = lax.dynamic_update_index_in_dim(column, own, k + 1, 0)
            table = lax.dynamic_update_index_in_dim(table, column, k, 1)
            return lax.dynamic_update_index_in_dim(basis, v, k + 1, 0), table

        basis, table = lax.fori_loop(0, n, extend, (basis, table))
        target = fnp.zeros(n + 1, right.dtype)
        target = lax.dynamic_update_index_in_dim(target, length.astype(right.dtype), 0, 0)
        weights = fnp.linalg.lstsq(table, target)[0]
        x = x + precondition(weights @ basis[:n])
        return count + 1, x, right - apply(x)

    def goes_on(state: Any) -> Any:
        return (fnp.linalg.norm(state[2]) > allowed) & (state[0] < limit)

    count, x, r = lax.while_loop(goes_on, cycle, (np.int64(0), fnp.zeros_like(right), right))
    return x, count * n, fnp.linalg.norm(r) <= allowed


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """Solution of a sparse system, by factors, as `scipy.sparse.linalg.spsolve`.

    The factors are SciPy's (SuperLU), also in compiled functions, where those of the last entries
    are kept. Derivatives are those of the solution, with respect to ``b`` and, of a `SparseArray`,
    to its entries; they take the same factors.

    Args:
        A: A square sparse matrix of SciPy's, or a `SparseArray`.
        b: Right-hand side, a vector or a dense matrix of columns.
        permc_spec: How columns are permuted, for SuperLU.
        use_umfpack: Accepted for SciPy's signature.
    Returns: The solution, of the shape of ``b``; nan, with SciPy's warning, if the matrix is
        singular.

    Raises:
        ArgumentError: If the matrix is of another kind.
        ShapeError: If it is not square, or does not fit.

    Example:
        >>> import numpy as np, scipy.sparse, funcgrad as fg
        >>> A = fg.scipy.sparse.SparseArray.of(scipy.sparse.diags_array([2.0, 4.0]))
        >>> fg.grad(lambda A: fg.scipy.sparse.linalg.spsolve(A, np.ones(2)).sum())(A).data
        array([-0.25  , -0.0625])
    """
    b = fnp.asarray(as_value(b, "spsolve"))
    if not isinstance(A, SparseArray) and not scipy.sparse.issparse(A):
        raise ArgumentError(
            f"spsolve: a sparse matrix is needed, got a {type(A).__name__}. For dense ones there "
            "is numpy.linalg.solve."
        )
    n = A.shape[0]
    if A.shape != (n, n) or b.ndim not in (1, 2) or b.shape[0] != n:
        raise ShapeError(
            f"spsolve: a matrix of shape {A.shape} and a right-hand side {aval_of(b)} do not fit."
        )
    dtype = np.result_type(A.dtype, b.dtype, np.float32)
    b = fnp.astype(b, dtype)
    matrix = A if isinstance(A, SparseArray) else SparseArray.of(A)
    data = fnp.astype(matrix.entries, dtype)
    # Solutions of a program and of its derivatives, forwards and backwards, take the same factors.
    factors = OrderedFactors(matrix.pattern, permc_spec)
    return lax.custom_linear_solve(
        lambda x: matrix.with_data(data) @ x,
        b,
        lambda _, right: factors.solve(data, right, "N"),
        lambda _, right: factors.solve(data, right, "T"),
    )


def spsolve_triangular(
    A: Any, b: Any, lower: bool = True, overwrite_A: bool = False,
    overwrite_b: bool = False, unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """Solution of a triangular sparse system, as `scipy.sparse.linalg.spsolve_triangular`.

    Args:
        A: As in `spsolve`; entries beyond the triangle must not be there.
        b: As in `spsolve`.
        lower: Accepted for SciPy's signature: the factors show it.
        overwrite_A: Accepted for SciPy's signature.
        unit_diagonal: Must be False: give the ones of the diagonal as entries.
    Returns: As of `spsolve`.

    Example:
        >>> fg.scipy.sparse.linalg.spsolve_triangular(
        ...     fg.scipy.sparse.csr_array(np.array([[2.0, 0.0], [1.0, 4.0]])), np.array([2.0, 5.0])
        ... )
        array([1., 1.])
    """
    if unit_diagonal:
        raise ArgumentError(
            "spsolve_triangular: with unit_diagonal=True the diagonal would not be read; add an "
            "identity matrix instead."
        )
    return spsolve(A, b, "NATURAL")
