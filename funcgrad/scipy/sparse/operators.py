"""Linear operators: anything that multiplies vectors, by one interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import funcgrad.numpy.values as fnp
from funcgrad.api.differentiation import linear_transpose
from funcgrad.api.vectorization import vmap
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.numpy.promotion import as_value
from funcgrad.numpy.sparse_products import product
from funcgrad.patterns.arrays import SparseArray


class LinearOperator:
    """Matrix that is given by its products, as `scipy.sparse.linalg.LinearOperator`.

    What is not given is derived: products with matrices column by column, those with the adjoint by
    transposition.

    Args:
        matvec: From ``x`` to ``A @ x``.
        rmatvec: From ``x`` to ``A.conj().T @ x``.
        matmat: From ``X`` to ``A @ X``.
        dtype: Of the products; by default float64.
        rmatmat: From ``X`` to ``A.conj().T @ X``.

    Example:
        >>> A = fg.scipy.sparse.linalg.LinearOperator((2, 2), lambda x: 2.0 * x)
        >>> print(A @ np.array([1.0, 2.0]), A.rmatvec(np.ones(2)))
        [2. 4.] [2. 2.]
    """

    ndim = 2
    __array_ufunc__ = None  # so that ndarrays leave products with it to its own methods

    def __init__(
        self,
        shape: tuple[int, int],
        matvec: Callable[[Any], Any],
        rmatvec: Callable[[Any], Any] | None = None,
        matmat: Callable[[Any], Any] | None = None,
        dtype: Any = None,
        rmatmat: Callable[[Any], Any] | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = np.dtype(np.float64 if dtype is None else dtype)
        self._matvec = matvec
        self._rmatvec = rmatvec
        self._matmat = matmat
        self._rmatmat = rmatmat

    def matvec(self, x: Any) -> Any:
        """``A @ x`` of a vector."""
        return self._matvec(as_value(x, "matvec"))

    def rmatvec(self, x: Any) -> Any:
        """``A.conj().T @ x`` of a vector."""
        x = fnp.asarray(as_value(x, "rmatvec"))
        if self._rmatvec is not None:
            return self._rmatvec(x)
        dtype = np.result_type(self.dtype, x.dtype)
        transposed = linear_transpose(self._matvec, np.zeros(self.shape[1], dtype))
        return fnp.conj(transposed(fnp.conj(fnp.astype(x, dtype)))[0])

    def matmat(self, x: Any) -> Any:
        """``A @ X`` of a matrix."""
        if self._matmat is not None:
            return self._matmat(x)
        return vmap(self.matvec, in_axes=1, out_axes=1)(x)

    def rmatmat(self, x: Any) -> Any:
        """``A.conj().T @ X`` of a matrix."""
        if self._rmatmat is not None:
            return self._rmatmat(x)
        return vmap(self.rmatvec, in_axes=1, out_axes=1)(x)

    def __matmul__(self, x: Any) -> Any:
        return self.matvec(x) if np.ndim(x) == 1 else self.matmat(x)

    def dot(self, x: Any) -> Any:
        """``A @ x``."""
        return self @ x

    def __call__(self, x: Any) -> Any:
        return self @ x

    def __mul__(self, factor: Any) -> LinearOperator:
        return LinearOperator(
            self.shape,
            lambda x: factor * self.matvec(x),
            lambda x: fnp.conj(factor) * self.rmatvec(x),
            dtype=self.dtype,
        )

    __rmul__ = __mul__

    def __add__(self, other: Any) -> LinearOperator:
        other = aslinearoperator(other)
        return LinearOperator(
            self.shape,
            lambda x: self.matvec(x) + other.matvec(x),
            lambda x: self.rmatvec(x) + other.rmatvec(x),
            dtype=np.result_type(self.dtype, other.dtype),
        )

    @property
    def H(self) -> LinearOperator:
        """The adjoint."""
        return LinearOperator(
            self.shape[::-1], self.rmatvec, self.matvec, self.rmatmat, self.dtype, self.matmat
        )

    @property
    def T(self) -> LinearOperator:
        """The transpose."""
        return LinearOperator(
            self.shape[::-1],
            lambda x: fnp.conj(self.rmatvec(fnp.conj(x))),
            lambda x: fnp.conj(self.matvec(fnp.conj(x))),
            dtype=self.dtype,
        )


def aslinearoperator(A: Any) -> LinearOperator:
    """Matrix of any kind as an operator, as `scipy.sparse.linalg.aslinearoperator`.

    Args:
        A: A `LinearOperator`, a dense or sparse matrix, a `SparseArray`, or what has ``shape`` and
            ``matvec``.
    Returns: The operator.
    Raises: ArgumentError: If it is none of these.
    Example: print(fg.scipy.sparse.linalg.aslinearoperator(2 * np.eye(2)).matvec(np.ones(2)))
        -> [2. 2.]
    """
    if isinstance(A, LinearOperator):
        return A
    if scipy.sparse.issparse(A):
        return LinearOperator(
            A.shape,
            lambda x: product(A, x),
            lambda x: fnp.conj(product(A, fnp.conj(x), is_transposed=True)),
            lambda x: product(A, x),
            A.dtype,
        )
    if isinstance(A, SparseArray):
        return LinearOperator(A.shape, A.dot, lambda x: fnp.conj(fnp.conj(x) @ A), A.dot, A.dtype)
    if hasattr(A, "matvec") and hasattr(A, "shape"):
        dtype = getattr(A, "dtype", None)
        return LinearOperator(A.shape, A.matvec, getattr(A, "rmatvec", None), dtype=dtype)
    matrix = as_value(A, "aslinearoperator")
    if np.ndim(matrix) != 2:
        raise ArgumentError(f"aslinearoperator: a matrix is needed, got {aval_of(matrix)}.")
    return LinearOperator(
        matrix.shape,
        lambda x: matrix @ x,
        lambda x: fnp.conj(fnp.transpose(matrix)) @ x,
        lambda x: matrix @ x,
        matrix.dtype,
    )
