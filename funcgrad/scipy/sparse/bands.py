"""Sparse matrices whose entries lie in a band, after Cuthill and McKee's reordering.

Bands of a few diagonals are factored and solved by loops over rows that carry what they share in
registers; LAPACK, which goes along their columns one by one, takes several times as long, and has
the wider bands. Both exchange rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.base.forking import cached_property
from funcgrad.primitives.banded import BandedFactor, FactoredBandedSolve
from funcgrad.primitives.sparse import Pattern

NARROW = 2
"""How many times as many unknowns there are, at least, as diagonals beside the main one: factors of
half as many, in equal numbers above and below, take a fourth of the operations of dense ones."""

WIDEST = 48
"""Diagonals on each side, in the mean, up to which factors in a band may be the cheaper ones."""

LEAST_FILLED = 0.25
"""The share of a band with entries from which that is so."""

FEW_DIAGONALS = 8
"""Diagonals beside the main one that loops over rows carry in registers."""


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
        self.size = n
        self.below = int(np.max(rows - columns, initial=0))
        self.above = int(np.max(columns - rows, initial=0))
        is_small = self.below + self.above <= FEW_DIAGONALS
        self.factoring = (_ByRows if is_small else _ByColumns)(n, self.below, self.above)

    @cached_property
    def entries(self) -> Any:
        """For each place in storage the number of its entry, and one more where there is none."""
        pattern, found = self.pattern, np.full(self.factoring.shape, self.pattern.size)
        rows, columns = self.place[pattern.rows], self.place[pattern.indices]
        found[self.factoring.places(rows, columns)] = np.arange(pattern.size)
        return found

    @cached_property
    def diagonal(self) -> Any:
        """Flags of the places in storage that are on the main diagonal."""
        found, numbers = np.zeros(self.factoring.shape, np.bool_), np.arange(self.size)
        found[self.factoring.places(numbers, numbers)] = True
        return found

    @property
    def is_narrow(self) -> bool:
        """Whether factors in the band are cheaper than others."""
        count = self.below + self.above
        return count * NARROW <= self.size and count <= 2 * WIDEST

    @property
    def is_filled(self) -> bool:
        """Whether many of its places have entries."""
        return self.pattern.size >= LEAST_FILLED * self.size * (self.below + self.above + 1)

    def no_factors(self, dtype: Any) -> Any:
        """Factors before the first ones are known."""
        return self.factoring.no_factors(dtype)

    def factors(self, shift: Any, entries: Any) -> Any:
        """Factors of ``shift`` times the identity, and the matrix of these entries."""
        zero = fnp.zeros(1, entries.dtype)
        band = fnp.take(fnp.concatenate([entries, zero]), self.entries, mode="clip")
        return self.factoring.factors(band + fnp.where(self.diagonal, shift, zero))

    def solve(self, factors: Any, right: Any, is_transposed: bool = False) -> Any:
        """The solution of the system, or of the transposed one; it is not differentiated."""
        found = self.factoring.solve(factors, right, self.order, is_transposed)
        return fnp.take(found, self.place, mode="clip")

    def accurate(self, shift: Any, entries: Any) -> Callable[[Any, bool], Any]:
        """Solve the system, or its transpose, for right-hand sides: ``(b, is_transposed)``."""
        factors = self.factors(shift, entries)
        return lambda right, is_transposed: self.solve(factors, right, is_transposed)


class _ByColumns:
    """Factors by LAPACK.

    Args:
        size: Number of unknowns.
        below: Number of diagonals below the main one.
        above: Number of those above.
    """

    def __init__(self, size: int, below: int, above: int) -> None:
        self.size, self.below, self.above = size, below, above
        self.shape = (size, 2 * below + above + 1)

    def places(self, rows: Any, columns: Any) -> Any:
        """Return the places of elements of the matrix in the storage."""
        return columns, self.below + self.above + rows - columns

    def no_factors(self, dtype: Any) -> Any:
        return fnp.zeros(self.shape, dtype), fnp.arange(1, self.size + 1, dtype=np.int32)

    def factors(self, band: Any) -> Any:
        return tuple(BandedFactor(self.below, self.above).bind(band))

    def solve(self, factors: Any, right: Any, order: Any, is_transposed: bool) -> Any:
        primitive = FactoredBandedSolve(self.below, self.above, is_transposed)
        ordered = fnp.take(fnp.astype(right, factors[0].dtype), order, mode="clip")
        column = fnp.reshape(ordered, (self.size, 1))
        return fnp.reshape(primitive.bind(*factors, column), (self.size,))


class _ByRows:
    """Factors by loops over rows.

    Before row ``i`` is eliminated, as many rows as there are diagonals below stand beside it, each
    with the elements of the columns from ``i`` on that it has. One of them is the pivot. Factors
    are vectors: of each row the number of its pivot among these, the multiples of it that the
    others lost, the multiple of the last pivot that this one lost, the reciprocal of its element on
    the diagonal, and its elements beyond, divided by that one, so that a solution waits for no more
    than a product and a difference in each row. In the beginning and at the end rows of the
    identity stand beside those of the matrix.

    Args:
        size: Number of unknowns.
        below: Number of diagonals below the main one.
        above: Number of those above.
    """

    def __init__(self, size: int, below: int, above: int) -> None:
        self.size, self.below, self.beyond = size, below, below + above
        self.shape = (size, below + above + 1)

    def places(self, rows: Any, columns: Any) -> Any:
        """Return the places of elements of the matrix in the storage."""
        return rows, self.below + columns - rows

    def no_factors(self, dtype: Any) -> Any:
        zeros = fnp.zeros(self.size, dtype)
        return fnp.zeros(self.size, np.int64), *[zeros] * (2 + self.below + self.beyond)

    def factors(self, band: Any) -> Any:
        below, beyond = self.below, self.beyond
        zero, one = fnp.zeros((), band.dtype), fnp.ones((), band.dtype)
        identity = np.eye(below, beyond + 1, dtype=np.dtype(band.dtype))
        after = np.eye(1, beyond + 1, below, dtype=np.dtype(band.dtype)).repeat(below, 0)

        def eliminate(carried: Any, row: Any) -> Any:
            rows = [*carried, [row[k] for k in range(beyond + 1)]]
            sizes = [_size(r[0]) for r in rows]
            pivot, largest = fnp.zeros((), np.int64), sizes[0]
            for k in range(1, below + 1):
                is_larger = sizes[k] > largest
                pivot = fnp.where(is_larger, k, pivot)
                largest = fnp.where(is_larger, sizes[k], largest)
            chosen, others = _exchanged(rows, pivot)
            inverse = one / chosen[0]
            multiples = [r[0] * inverse for r in others]
            left = [
                [x - m * c for x, c in zip(r[1:], chosen[1:], strict=True)] + [zero]
                for r, m in zip(others, multiples, strict=True)
            ]
            return left, (pivot, *multiples, inverse, *(c * inverse for c in chosen[1:]))

        start = [[identity[r, c] for c in range(beyond + 1)] for r in range(below)]
        rows = fnp.concatenate([band, after])
        pivots, *factors = (x[below:] for x in lax.scan(eliminate, start, rows)[1])
        lost = fnp.zeros(self.size - 1, band.dtype)
        for k, multiple in enumerate(factors[:below]):
            lost = fnp.where(pivots[1:] == k, multiple[:-1], lost)
        return pivots, *factors[:below], fnp.concatenate([[zero], lost]), *factors[below:]

    def solve(self, factors: Any, right: Any, order: Any, is_transposed: bool) -> Any:
        below = self.below
        pivots, multiples, lost = factors[0], factors[1 : below + 1], factors[below + 1]
        inverse, upper = factors[below + 2], factors[below + 3 :]
        right = fnp.astype(right, inverse.dtype)
        if is_transposed:
            return self._lower_transposed(
                pivots, multiples, self._upper_transposed(inverse, upper, right, order)
            )
        return self._upper(inverse, upper, self._lower(pivots, multiples, lost, right, order))

    def _lower(self, pivots: Any, multiples: Any, lost: Any, right: Any, order: Any) -> Any:
        def step(carried: Any, row: Any) -> Any:
            last, factors, others = carried
            pivot, multiple, own, place = row
            new = fnp.take(right, place, mode="clip")
            # A pivot waits for the last one alone, not for the rows to be in their places.
            chosen = _one_of([*others, new], pivot) - multiple * last
            rows = [x - m * last for x, m in zip(others, factors, strict=True)]
            return (chosen, own, _others([*rows, new], pivot)), chosen

        zero = fnp.zeros((), right.dtype)
        start = zero, [zero] * self.below, [right[k] for k in order[: self.below]]
        ahead = np.roll(order, -self.below)  # rows beyond the last one change nothing
        return lax.scan(step, start, (pivots, lost, list(multiples), ahead))[1]

    def _upper(self, inverse: Any, upper: Any, right: Any) -> Any:
        def step(carried: Any, row: Any) -> Any:
            divisor, elements, rest = row
            x = rest * divisor
            for known, u in zip(reversed(carried), reversed(elements), strict=True):
                x = x - u * known
            return [x, *carried[:-1]] if carried else [], x

        start = [fnp.zeros((), right.dtype)] * self.beyond
        return lax.scan(step, start, (inverse, upper, right), reverse=True)[1]

    def _upper_transposed(self, inverse: Any, upper: Any, right: Any, order: Any) -> Any:
        def step(carried: Any, row: Any) -> Any:
            divisor, elements, place = row
            sums = [*carried, fnp.zeros((), right.dtype)]
            x = fnp.take(right, place, mode="clip") - sums[0]
            return [s + u * x for s, u in zip(sums[1:], elements, strict=True)], x * divisor

        start = [fnp.zeros((), right.dtype)] * self.beyond
        return lax.scan(step, start, (inverse, upper, order))[1]

    def _lower_transposed(self, pivots: Any, multiples: Any, right: Any) -> Any:
        def step(carried: Any, row: Any) -> Any:
            pivot, factors, rest = row
            for x, m in zip(reversed(carried), reversed(factors), strict=True):
                rest = rest - m * x
            (first,), others = _exchanged([[x] for x in (rest, *carried)], pivot)
            values = [first, *(x for (x,) in others)]
            return values[:-1], values[-1]

        start = [fnp.zeros((), right.dtype)] * self.below
        last, found = lax.scan(step, start, (pivots, multiples, right), reverse=True)
        first = [fnp.reshape(x, (1,)) for x in last]
        return fnp.concatenate([*first, found[: self.size - self.below]])


def _size(x: Any) -> Any:
    """How large a pivot is, as LAPACK says it."""
    return abs(x) if x.dtype.kind == "f" else abs(x.real) + abs(x.imag)


def _one_of(values: Any, number: Any) -> Any:
    """One of several numbers."""
    chosen = values[0]
    for k, value in enumerate(values[1:], 1):
        chosen = fnp.where(number == k, value, chosen)
    return chosen


def _others(values: Any, number: Any) -> list[Any]:
    """All but the first of several numbers, with that one in the place of one of them."""
    return [fnp.where(number == k, values[0], x) for k, x in enumerate(values[1:], 1)]


def _exchanged(rows: Any, pivot: Any) -> tuple[Any, Any]:
    """One of several rows, and the others, with the first in its place."""
    columns = list(zip(*rows, strict=True))
    others = zip(*(_others(column, pivot) for column in columns), strict=True)
    return [_one_of(column, pivot) for column in columns], list(others)
