"""Sparse matrices whose entries are values like any other: traced, differentiated, mapped."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import register_pytree_node
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value, to_dtype
from funcgrad.primitives.sparse import Pattern, SampledProduct, SparseProduct, scipy_sparse


class SparseArray:
    """A sparse matrix of entries at constant places; a pytree with the entries as its leaf.

    It multiplies vectors and matrices, from both sides, and has what else is simple. Places are in
    the order of rows; each is there once.

    Args:
        data: The entries, a vector.
        pattern: Their places.

    Example:
        >>> import numpy as np, scipy.sparse, funcgrad as fg
        >>> A = fg.scipy.sparse.SparseArray.of(scipy.sparse.eye_array(2) * 3.0)
        >>> print(A @ np.array([1.0, 2.0]))
        [3. 6.]
        >>> fg.grad(lambda A: (A @ np.array([1.0, 2.0])).sum())(A).data
        array([1., 2.])
    """

    ndim = 2
    __array_ufunc__ = None  # so that ndarrays leave products with it to its own methods

    def __init__(self, data: Any, pattern: Pattern) -> None:
        self.data = data
        self.pattern = pattern

    @classmethod
    def of(cls, matrix: Any) -> SparseArray:
        """The entries of a matrix of SciPy's, or of a dense one that is known."""
        rows = scipy_sparse().csr_array(matrix)
        rows.sum_duplicates()
        return cls(rows.data, Pattern(rows.indptr, rows.indices, rows.shape))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.pattern.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the entries."""
        return self.data.dtype if hasattr(self.data, "dtype") else aval_of(self.data).dtype

    @property
    def entries(self) -> Any:
        """The data of one matrix.

        Raises: ShapeError: If there are those of several, as a mapped function returns them.
        """
        if np.ndim(self.data) > 1:
            raise ShapeError(
                f"{self!r} is a batch of matrices, with data of shape {np.shape(self.data)}, as "
                "vmap returns it. Map what you do with them, too: fg.vmap(lambda A: A @ x)(batch)."
            )
        return self.data

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.pattern.size

    @property
    def indices(self) -> Any:
        """For each entry its column."""
        return self.pattern.indices

    @property
    def indptr(self) -> Any:
        """For each row its first entry, and the number of all."""
        return self.pattern.indptr

    @property
    def coords(self) -> tuple[Any, Any]:
        """Rows and columns of the entries."""
        return self.pattern.rows, self.pattern.indices

    @property
    def T(self) -> SparseArray:
        """The transpose."""
        pattern, order = self.pattern.transposed
        return SparseArray(fnp.take(self.entries, order), pattern)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.dtype}, {self.pattern}>"

    def with_data(self, data: Any) -> SparseArray:
        """Other entries at the same places."""
        return SparseArray(data, self.pattern)

    def _product(self, x: Any, is_transposed: bool) -> Any:
        x = as_value(x, "matmul")
        rows = self.shape[0] if is_transposed else self.shape[1]
        if np.ndim(x) not in (1, 2) or np.shape(x)[0] != rows:
            raise ShapeError(
                f"matmul: a sparse matrix of shape {self.shape} and {aval_of(x)} have no product."
            )
        dtype = np.result_type(self.dtype, aval_of(x).dtype)
        operands = (to_dtype(v, dtype) for v in (self.entries, x))
        return SparseProduct(self.pattern, is_transposed).bind(*operands)

    def __matmul__(self, x: Any) -> Any:
        return self._product(x, False)

    def __rmatmul__(self, x: Any) -> Any:
        x = as_value(x, "matmul")
        if np.ndim(x) != 2:
            return self._product(x, True)
        return fnp.transpose(self._product(fnp.transpose(x), True))

    def dot(self, x: Any) -> Any:
        """``A @ x``."""
        return self @ x

    def __mul__(self, factor: Any) -> SparseArray:
        if np.ndim(as_value(factor)) != 0:
            raise ArgumentError(
                "a SparseArray times an array: write A @ x for the product of matrices, or scale "
                "rows by A.with_data(A.data * scale[A.coords[0]])."
            )
        return self.with_data(self.data * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> SparseArray:
        return self * (1 / divisor)

    def __neg__(self) -> SparseArray:
        return self.with_data(-self.data)

    def __add__(self, other: Any) -> SparseArray:
        other = other if isinstance(other, SparseArray) else SparseArray.of(other)
        if other.shape != self.shape:
            raise ShapeError(f"sparse matrices of shapes {self.shape} and {other.shape} differ.")
        return from_places(
            fnp.concatenate([self.entries, other.entries]),
            np.concatenate([self.coords[0], other.coords[0]]),
            np.concatenate([self.coords[1], other.coords[1]]),
            self.shape,
        )

    def __sub__(self, other: Any) -> SparseArray:
        return self + -(other if isinstance(other, SparseArray) else SparseArray.of(other))

    def sum(self, axis: int | None = None) -> Any:
        """The sum of all entries, or of columns (axis 0) or rows (axis 1)."""
        if axis is None:
            return fnp.sum(self.entries)
        n = self.shape[0 if axis % 2 == 0 else 1]
        return self._product(np.ones(n, self.dtype), is_transposed=axis % 2 == 0)

    def diagonal(self) -> Any:
        """The diagonal, as a vector."""
        n = min(self.shape)
        is_on = self.coords[0] == self.coords[1]
        zeros = fnp.zeros(n, self.dtype)
        places = self.coords[0][is_on]
        return fnp.at(zeros)[places].set(fnp.take(self.entries, np.flatnonzero(is_on)))

    def toarray(self) -> Any:
        """The dense matrix."""
        zeros = fnp.zeros(self.shape, self.dtype)
        return fnp.at(zeros)[self.coords].add(self.entries)

    todense = toarray

    def sampled(self, a: Any, b: Any) -> SparseArray:
        """The entries of ``a @ b.T`` at these places, without the others."""
        return self.with_data(SampledProduct(self.pattern).bind(a, b))

    def to_scipy(self) -> Any:
        """SciPy's matrix, of entries that are known."""
        if isinstance(self.data, Tracer):
            raise ArgumentError(
                "SparseArray.to_scipy: the entries are traced, and SciPy needs concrete ones. "
                "Call it outside of the transformed function."
            )
        return self.pattern.matrix(self.entries)


register_pytree_node(
    SparseArray,
    lambda a: ([a.data], a.pattern),
    lambda pattern, data: SparseArray(data[0], pattern),
)


def from_places(data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> SparseArray:
    """A matrix of entries at places in any order; those of one place are added."""
    rows, columns = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
    m, n = shape
    if rows.size and (rows.min() < 0 or rows.max() >= m or columns.min() < 0 or columns.max() >= n):
        raise ArgumentError(f"sparse: there are indices outside of a matrix of shape {shape}.")
    places, order = np.unique(rows * n + columns, return_inverse=True)
    if len(places) == len(rows):
        entries = fnp.take(data, np.argsort(order))
    else:
        entries = fnp.at(fnp.zeros(len(places), aval_of(data).dtype))[order].add(data)
    found = np.divmod(places, max(n, 1))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(found[0], minlength=m))])
    return SparseArray(entries, Pattern(indptr, found[1], (m, n)))
