"""Sparse factors of matrices of one pattern, which are ordered once.

Where to begin so that factors stay sparse follows from the pattern alone, and takes a fifth to a
half of the time of a factorization. So the order of the first one serves for all others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.compilation import jit
from funcgrad.api.debugging import pure_callback
from funcgrad.api.staging import ShapeDtypeStruct
from funcgrad.base.forking import cached_property
from funcgrad.patterns.arrays import SparseArray
from funcgrad.primitives.elimination import FactoredSparseSolve, SparseFactor, Tables
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.sparse import Pattern
from funcgrad.scipy.sparse.elimination import elimination_table

Solve = Callable[[Any, str], Any]
"""The solution of the system ("N"), or of the transposed one ("T"), for a right-hand side."""

MOST_WORK = 1e10
"""Multiplications of a factorization up to which steps of solvers wait for it."""


class OrderedFactors:
    """Factors of matrices of a pattern; those of the last entries of each dtype are kept.

    Args:
        pattern: Of the matrices.
        permc_spec: How columns are ordered, for SuperLU. By default it depends on whether the
            pattern is symmetric.
        options: Further options of `scipy.sparse.linalg.splu`.
    """

    def __init__(self, pattern: Pattern, permc_spec: str | None = None, **options: Any) -> None:
        self.pattern = pattern
        self.permc_spec = permc_spec
        self.options = options
        self.order: Any = None
        self.known: dict[Any, tuple[Any, Solve]] = {}

    def __call__(self, data: Any) -> Solve:
        """Solutions with the matrix of these entries.

        Raises: RuntimeError: If it is singular.
        """
        known = self.known.get(data.dtype)
        if known is not None and np.array_equal(known[0], data):
            return known[1]
        solve = self._solve(data)
        # Entries are copied: their memory belongs to the program that asks.
        self.known[data.dtype] = np.array(data), solve
        return solve

    def _solve(self, data: Any) -> Solve:
        if self.order is None:
            return self._first(data)
        matrix = scipy.sparse.csc_array(
            (data[self.numbers], self.indices, self.indptr), self.pattern.shape
        )
        factors = scipy.sparse.linalg.splu(matrix, permc_spec="NATURAL", **self.options)

        def solve(right: Any, way: str) -> Any:
            if way == "T":
                return factors.solve(right[self.order], way)
            found = np.empty_like(right, np.result_type(right, data))
            found[self.order] = factors.solve(right, way)
            return found

        return solve

    def _first(self, data: Any) -> Solve:
        """Factors in the order that SuperLU finds, which is kept."""
        pattern = self.pattern
        spec = self.permc_spec
        if spec is None:
            places = pattern.matrix(np.ones(pattern.size, np.bool_))
            spec = "COLAMD" if (places != places.T).nnz else "MMD_AT_PLUS_A"
        matrix = pattern.matrix(data).tocsc()
        factors = scipy.sparse.linalg.splu(matrix, permc_spec=spec, **self.options)
        order = np.argsort(factors.perm_c)
        numbered = pattern.matrix(np.arange(1, pattern.size + 1)).tocsc()[:, order]
        numbered.sort_indices()
        self.numbers = numbered.data - 1
        self.indices, self.indptr = numbered.indices, numbered.indptr
        self.order = order  # last: other threads ask whether it is there
        return lambda right, way: factors.solve(right, way)

    def solve(self, data: Any, right: Any, way: str, warns: bool = True) -> Any:
        """A solution, of entries and a right-hand side that may be traced.

        As SciPy's it is nan, with a warning if that is wanted, where the matrix is singular.
        """

        def by_scipy(right: Any, data: Any) -> Any:
            right = np.asarray(right)
            try:
                return self(np.asarray(data))(right, way)
            except RuntimeError:
                if warns:
                    singular = scipy.sparse.linalg.MatrixRankWarning("Matrix is exactly singular")
                    warnings.warn(singular, stacklevel=2)
                return np.full_like(right, np.nan)

        if not is_traced(right) and not is_traced(data):
            return by_scipy(right, data)
        like = ShapeDtypeStruct(right.shape, right.dtype)
        return pure_callback(by_scipy, like, right, data, vmap_method="sequential")


class ShiftedFactors:
    """Factors of the sum of a multiple of the identity and of a sparse matrix.

    Real matrices are factored in compiled code without exchanges of rows, complex ones by SuperLU
    when the first solution is asked for. Those of a singular matrix have no solution: nan, which
    solvers of stiff equations take for a step that is too long.

    Args: pattern: Where the sparse matrix has entries.
    """

    def __init__(self, pattern: Pattern) -> None:
        n = pattern.shape[0]
        keys = pattern.rows.astype(np.int64) * n + pattern.indices
        diagonal = np.arange(n) * (n + 1)
        places = np.unique(np.concatenate([keys, diagonal]))
        indptr = np.searchsorted(places, np.arange(n + 1) * n)
        self.size = len(places)
        self.entries = np.full(self.size, pattern.size)
        self.entries[np.searchsorted(places, keys)] = np.arange(pattern.size)
        self.diagonal = np.zeros(self.size, np.bool_)
        self.diagonal[np.searchsorted(places, diagonal)] = True
        self.pattern = Pattern(indptr, places % n, pattern.shape)
        self.exchanging = OrderedFactors(self.pattern)

    @cached_property
    def table(self) -> Any:
        """How it is eliminated without exchanges of rows."""
        return elimination_table(self.pattern)

    @cached_property
    def factoring(self) -> SparseFactor:
        """The elimination."""
        return SparseFactor(self.pattern.shape[0], Tables(self.table).n_factors)

    def no_factors(self, dtype: Any) -> Any:
        """Factors before the first ones are known."""
        return fnp.zeros(self.factoring.count if _is_real(dtype) else self.size, dtype)

    def matrix(self, shift: Any, entries: Any) -> Any:
        """The entries of ``shift`` times the identity, and the matrix of these entries."""
        zero = fnp.zeros(1, entries.dtype)
        found = fnp.take(fnp.concatenate([entries, zero]), self.entries, mode="clip")
        return found + fnp.where(self.diagonal, shift, zero)

    def factors(self, shift: Any, entries: Any) -> Any:
        """Factors of ``shift`` times the identity, and the matrix of these entries."""
        found = self.matrix(shift, entries)
        return self.factoring.bind(self.table, found) if _is_real(found.dtype) else found

    def solve(self, factors: Any, right: Any, is_transposed: bool = False) -> Any:
        """The solution of the system, or of the transposed one; it is not differentiated."""
        right = fnp.astype(right, factors.dtype)
        if _is_real(factors.dtype):
            return FactoredSparseSolve(is_transposed).bind(self.table, factors, right)
        return self.exchanged(factors, right, is_transposed)

    def accurate(self, shift: Any, entries: Any) -> Callable[[Any, bool], Any]:
        """Solve the system, or its transpose, for right-hand sides: ``(b, is_transposed)``.

        Without exchanges of rows factors may be of no use: where the residual of a right-hand side
        is large, they are SuperLU's.
        """
        data = self.matrix(shift, entries)
        if not _is_real(data.dtype):
            return lambda right, is_transposed: self.exchanged(data, right, is_transposed)
        factors = self.factoring.bind(self.table, data)
        matrix = SparseArray(data, self.pattern)
        tolerance = float(np.finfo(data.dtype).eps) ** 0.5

        def solve(right: Any, is_transposed: bool) -> Any:
            right = fnp.astype(right, data.dtype)
            found = self.solve(factors, right, is_transposed)
            rest = right - (matrix.T @ found if is_transposed else matrix @ found)
            is_good = fnp.max(abs(rest)) <= tolerance * fnp.max(abs(right))
            return lax.cond(
                is_good, lambda: found, lambda: self.exchanged(data, right, is_transposed)
            )

        return solve

    def exchanged(self, data: Any, right: Any, is_transposed: bool) -> Any:
        """The solution with the matrix of these entries, by factors with exchanges of rows."""
        return self.exchanging.solve(data, right, "T" if is_transposed else "N", warns=False)


def _is_real(dtype: Any) -> bool:
    return np.dtype(dtype).kind == "f"


class Eliminated:
    """Factors without exchanges of rows, which positive definite matrices do not need.

    Args:
        pattern: Of the matrices, all entries of both triangles with the diagonal.
        table: How matrices are eliminated.
    """

    def __init__(self, pattern: Pattern, table: Any) -> None:
        factoring = SparseFactor(pattern.shape[0], Tables(table).n_factors)
        self.table = table
        self.solution = jit(
            lambda table, data, right: FactoredSparseSolve().bind(
                table, factoring.bind(table, data), right
            )
        )

    @classmethod
    def of(cls, pattern: Pattern) -> Eliminated | None:
        """Return those of a pattern; ``None`` if factors would be filled too much."""
        table = elimination_table(pattern, MOST_WORK)
        return None if table is None else cls(pattern, table)

    def solve(self, data: Any, right: Any) -> Any:
        """The solution, of entries and a right-hand side that may be traced."""
        return self.solution(self.table, data, right)
