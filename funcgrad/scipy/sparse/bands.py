"""Sparse matrices whose entries lie in a band, after Cuthill and McKee's reordering."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

import funcgrad.numpy.values as fnp
from funcgrad.primitives.banded import BandedFactor, FactoredBandedSolve
from funcgrad.primitives.sparse import Pattern

NARROW = 2
"""How many times as many unknowns there are, at least, as diagonals beside the main one: factors of
half as many, in equal numbers above and below, take a fourth of the operations of dense ones."""


class Band:
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

    @property
    def is_narrow(self) -> bool:
        """Whether factors in the band are cheaper than dense ones."""
        return (self.below + self.above) * NARROW <= self.shape[0]

    def no_factors(self, dtype: Any) -> Any:
        """Factors before the first ones are known."""
        return fnp.zeros(self.shape, dtype), fnp.arange(1, self.shape[0] + 1, dtype=np.int32)

    def factors(self, shift: Any, entries: Any) -> Any:
        """Factors of ``shift`` times the identity, and the matrix of these entries."""
        n, rows = self.shape
        diagonal = fnp.full(n, shift, entries.dtype)
        zeros = fnp.at(fnp.zeros(n * rows, entries.dtype))
        band = zeros[self.places].add(fnp.concatenate([entries, diagonal]), mode="clip")
        found = BandedFactor(self.below, self.above).bind(fnp.reshape(band, self.shape))
        return tuple(found)

    def solve(self, factors: Any, right: Any, is_transposed: bool = False) -> Any:
        """The solution of the system, or of the transposed one; it is not differentiated."""
        ordered = fnp.reshape(fnp.take(right, self.order, mode="clip"), (-1, 1))
        primitive = FactoredBandedSolve(self.below, self.above, is_transposed)
        found = primitive.bind(*factors, fnp.astype(ordered, factors[0].dtype))
        return fnp.take(fnp.ravel(found), self.place, mode="clip")
