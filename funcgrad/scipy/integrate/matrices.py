"""The matrices of Newton's iterations for stiff equations: dense, or sparse.

Solvers factor sums of a multiple of the identity and of a Jacobian. What they know of the Jacobian
is its *entries*: all of them, or those of its sparsity pattern, which are as many products as the
pattern has colours. Where that fits into a narrow band after Cuthill and McKee's reordering, it is
factored there. Other sparse matrices are eliminated in an order that keeps factors sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.jacobians import jacfwd
from funcgrad.patterns.arrays import SparseArray
from funcgrad.patterns.coloring import Coloring
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.sparse import Pattern
from funcgrad.scipy import linalg
from funcgrad.scipy.sparse.bands import Band
from funcgrad.scipy.sparse.factors import ShiftedFactors

Solver = Callable[[Any], Any]


class Dense:
    """Jacobians of any kind, as matrices.

    Args: size: Number of unknowns.
    """

    coloring: Coloring | None = None

    def __init__(self, size: int) -> None:
        self.size = size

    def jacobian(self, f: Callable[[Any], Any], y: Any) -> Any:
        """The entries of the derivative of a function."""
        return jacfwd(f, holomorphic=y.dtype.kind == "c")(y)

    def no_jacobian(self, dtype: Any) -> Any:
        """Entries before the first ones are known."""
        return fnp.zeros((self.size, self.size), dtype)

    def no_factors(self, dtype: Any) -> Any:
        """Factors before the first ones are known."""
        return fnp.zeros((self.size, self.size), dtype), fnp.arange(self.size, dtype=np.int32)

    def factors(self, shift: Any, scale: Any, entries: Any) -> Any:
        """Factors of ``shift * identity + scale * jacobian``."""
        return linalg.lu_factor(shift * fnp.eye(self.size, dtype=entries.dtype) + scale * entries)

    def solve(self, factors: Any, right: Any) -> Any:
        """The solution of the system with these factors; it is not differentiated."""
        return linalg.lu_solve(factors, right)

    def solver(self, table: np.ndarray, scale: Any, jacobians: Sequence[Any]) -> Solver:
        """Solutions, with all derivatives, of systems that couple several vectors.

        The matrix has the blocks ``identity[i, j] + scale * table[i, j] * jacobians[j]``.
        """
        k, n = len(jacobians), self.size
        blocks = table[:, None, :, None] * fnp.stack(jacobians, 1)[None]
        matrix = fnp.eye(k * n, dtype=blocks.dtype) + scale * fnp.reshape(blocks, (k * n, k * n))
        factors = linalg.lu_factor(matrix)
        return lambda right: fnp.reshape(
            linalg.lu_solve(factors, fnp.reshape(right, (k * n,))), right.shape
        )


class Sparse(Dense):
    """Jacobians of a sparse pattern.

    Args: coloring: Of the columns of the pattern.
    """

    def __init__(self, coloring: Coloring) -> None:
        self.pattern = coloring.pattern.pattern
        super().__init__(self.pattern.shape[0])
        self.coloring = coloring
        band = Band(self.pattern)
        is_banded = band.is_narrow and band.is_filled
        self.shifted = band if is_banded else ShiftedFactors(self.pattern)

    def jacobian(self, f: Callable[[Any], Any], y: Any) -> Any:
        found = jacfwd(f, sparse=self.coloring)(y)
        return found.data

    def no_jacobian(self, dtype: Any) -> Any:
        return fnp.zeros(self.pattern.size, dtype)

    def no_factors(self, dtype: Any) -> Any:
        return self.shifted.no_factors(dtype)

    def factors(self, shift: Any, scale: Any, entries: Any) -> Any:
        return self.shifted.factors(shift, scale * entries)

    def solve(self, factors: Any, right: Any) -> Any:
        return self.shifted.solve(factors, right)

    def solver(self, table: np.ndarray, scale: Any, jacobians: Sequence[Any]) -> Solver:
        coupled = _Coupled(self.pattern, self.shifted, len(jacobians))
        entries = [fnp.ravel(scale * table[:, j : j + 1] * x) for j, x in enumerate(jacobians)]
        return coupled.solver(fnp.concatenate(entries))


class _Coupled:
    """A system of several vectors, coupled by Jacobians of one pattern.

    Args:
        pattern: The pattern.
        shifted: How one of these Jacobians is factored.
        count: The number of vectors.
    """

    def __init__(self, pattern: Pattern, shifted: Band | ShiftedFactors, count: int) -> None:
        n = pattern.shape[0]
        self.count, self.size = count, n
        # Blocks column by column: entries (i, row; j, column) for all j, i.
        number = np.arange(count)
        rows = number[None, :, None] * n + pattern.rows + 0 * number[:, None, None]
        columns = number[:, None, None] * n + pattern.indices + 0 * number[None, :, None]
        keys = (rows * (count * n) + columns).ravel()
        self.sorted = np.argsort(keys)
        found = np.divmod(keys[self.sorted], count * n)
        lengths = np.bincount(found[0], minlength=count * n)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        self.pattern = Pattern(indptr, found[1], (count * n, count * n))
        if isinstance(shifted, Band):
            # The vectors in turn, in the order of one.
            order = (number[None] * n + shifted.order[:, None]).ravel()
            self.shifted: Band | ShiftedFactors = Band(self.pattern, order)
        else:
            self.shifted = ShiftedFactors(self.pattern)

    def solver(self, entries: Any) -> Solver:
        """Solutions of the system of the identity and these entries, with all derivatives."""
        data = fnp.take(entries, self.sorted, mode="clip")
        matrix = SparseArray(data, self.pattern)
        fixed = stop_gradient.bind(data)
        solve_fixed = self.shifted.accurate(1.0, fixed)

        def solve(right: Any) -> Any:
            found = lax.custom_linear_solve(
                lambda x: x + matrix @ x,
                fnp.ravel(right),
                lambda _, b: solve_fixed(b, False),
                lambda _, b: solve_fixed(b, True),
            )
            return fnp.reshape(found, right.shape)

        return solve
