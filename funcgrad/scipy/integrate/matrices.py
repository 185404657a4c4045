"""The matrices of Newton's iterations for stiff equations: dense, or with few diagonals.

Solvers factor sums of a multiple of the identity and of a Jacobian. What they know of the Jacobian
is its *entries*: all of them, or, where its sparsity pattern fits into a narrow band after Cuthill
and McKee's reordering, those of the pattern, which are as many products as the pattern has colours.
Bands are factored by LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.jacobians import jacfwd
from funcgrad.patterns.arrays import SparseArray
from funcgrad.patterns.coloring import Coloring
from funcgrad.primitives.banded import BandedFactor, FactoredBandedSolve
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.sparse import Pattern
from funcgrad.scipy import linalg

NARROW = 2
"""How many times as many unknowns there are, at least, as diagonals beside the main one: factors of
half as many, in equal numbers above and below, take a fourth of the operations of dense ones."""

Solver = Callable[[Any], Any]


class Dense:
    """Jacobians of any kind, as matrices.

    Args:
        size: Number of unknowns.
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


class Banded(Dense):
    """Jacobians whose pattern fits into a band.

    Args:
        coloring: Of the columns of the pattern.
    """

    def __init__(self, coloring: Coloring) -> None:
        self.pattern = coloring.pattern.pattern
        super().__init__(self.pattern.shape[0])
        self.coloring = coloring
        self.band = _Band(self.pattern)

    @property
    def is_narrow(self) -> bool:
        """Whether the band is worth it."""
        return (self.band.below + self.band.above) * NARROW <= self.size

    def jacobian(self, f: Callable[[Any], Any], y: Any) -> Any:
        found = jacfwd(f, sparse=self.coloring)(y)
        return found.data

    def no_jacobian(self, dtype: Any) -> Any:
        return fnp.zeros(self.pattern.size, dtype)

    def no_factors(self, dtype: Any) -> Any:
        return self.band.no_factors(dtype)

    def factors(self, shift: Any, scale: Any, entries: Any) -> Any:
        return self.band.factors(shift, scale * entries)

    def solve(self, factors: Any, right: Any) -> Any:
        return self.band.solve(factors, right)

    def solver(self, table: np.ndarray, scale: Any, jacobians: Sequence[Any]) -> Solver:
        coupled = _Coupled(self.pattern, self.band, len(jacobians))
        entries = [fnp.ravel(scale * table[:, j : j + 1] * x) for j, x in enumerate(jacobians)]
        return coupled.solver(fnp.concatenate(entries))


class _Band:
    """How the sum of a multiple of the identity and of a sparse matrix is factored in a band.

    Args:
        pattern: Where the sparse matrix has entries.
        order: The order of the unknowns in which the band is narrow; by default it is looked for.
    """

    def __init__(self, pattern: Pattern, order: Any = None) -> None:
        n = pattern.shape[0]
        matrix = pattern.matrix(np.ones(pattern.size, np.bool_))
        if order is None:
            both = scipy.sparse.csr_array(matrix + matrix.T)
            order = scipy.sparse.csgraph.reverse_cuthill_mckee(both, symmetric_mode=True)
        self.pattern = pattern
        self.order = np.asarray(order, np.int64)
        self.place = np.argsort(self.order)
        rows, columns = self.place[pattern.rows], self.place[pattern.indices]
        self.below = int(np.max(rows - columns, initial=0))
        self.above = int(np.max(columns - rows, initial=0))
        self.shape = (n, 2 * self.below + self.above + 1)
        main = self.below + self.above
        # Numbers of the entries, and then of the diagonal, in columns as LAPACK stores them.
        places = columns * self.shape[1] + main + rows - columns
        self.places = np.concatenate([places, np.arange(n) * self.shape[1] + main])

    def no_factors(self, dtype: Any) -> Any:
        return fnp.zeros(self.shape, dtype), fnp.arange(1, self.shape[0] + 1, dtype=np.int32)

    def factors(self, shift: Any, entries: Any) -> Any:
        n, rows = self.shape
        diagonal = fnp.full(n, shift, entries.dtype)
        zeros = fnp.at(fnp.zeros(n * rows, entries.dtype))
        band = zeros[self.places].add(fnp.concatenate([entries, diagonal]), mode="clip")
        found = BandedFactor(self.below, self.above).bind(fnp.reshape(band, self.shape))
        return tuple(found)

    def solve(self, factors: Any, right: Any, is_transposed: bool = False) -> Any:
        ordered = fnp.reshape(fnp.take(right, self.order, mode="clip"), (-1, 1))
        primitive = FactoredBandedSolve(self.below, self.above, is_transposed)
        found = primitive.bind(*factors, fnp.astype(ordered, factors[0].dtype))
        return fnp.take(fnp.ravel(found), self.place, mode="clip")


class _Coupled:
    """A system of several vectors, coupled by Jacobians of one pattern.

    Args:
        pattern: The pattern.
        band: How one of these Jacobians is stored.
        count: The number of vectors.
    """

    def __init__(self, pattern: Pattern, band: _Band, count: int) -> None:
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
        # The vectors in turn, in the order of one.
        order = (number[None] * n + band.order[:, None]).ravel()
        self.band = _Band(self.pattern, order)

    def solver(self, entries: Any) -> Solver:
        """Solutions of the system of the identity and these entries, with all derivatives."""
        data = fnp.take(entries, self.sorted, mode="clip")
        matrix = SparseArray(data, self.pattern)
        factors = self.band.factors(1.0, stop_gradient.bind(data))

        def solve(right: Any) -> Any:
            found = lax.custom_linear_solve(
                lambda x: x + matrix @ x,
                fnp.ravel(right),
                lambda _, b: self.band.solve(factors, b),
                lambda _, b: self.band.solve(factors, b, is_transposed=True),
            )
            return fnp.reshape(found, right.shape)

        return solve
