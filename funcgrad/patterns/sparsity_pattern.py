"""Sparsity patterns of Jacobians and Hessians."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.base.forking import cached_property
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.patterns.dependence import Found
from funcgrad.patterns.index_sets import FREE, Dimension, Relation, TooLargeError, strides_of
from funcgrad.primitives.sparse import Pattern, scipy_sparse


class SparsityPattern:
    """Places where a matrix may have entries: others are zero, whatever the values.

    Made by `funcgrad.sparsity.jacobian_sparsity` and `hessian_sparsity`, or `of` a matrix. Patterns
    of programs are kept as affine index sets, and listed when their entries are asked for.

    Args:
        shape: Numbers of rows and columns.
        relations: Index sets of consecutive rows, each with the number of its rows.
        matrix: A sparse matrix instead.
        is_symmetric: Whether entries are mirrored at the diagonal; only then can they be anywhere.

    Example:
        >>> pattern = fg.sparsity.jacobian_sparsity(np.diff)(np.ones(4))
        >>> pattern
        <SparsityPattern 3x4 with 6 entries>
        >>> print(pattern.toarray().astype(int))
        [[1 1 0 0]
         [0 1 1 0]
         [0 0 1 1]]
    """

    def __init__(
        self,
        shape: tuple[int, int],
        relations: Sequence[tuple[Found, int]] = (),
        matrix: Any = None,
        is_symmetric: bool = False,
    ) -> None:
        self.shape = shape
        self.relations = tuple(relations)
        self.is_symmetric = is_symmetric
        self._given = matrix
        self._transpose: SparsityPattern | None = None

    @classmethod
    def of(cls, matrix: Any) -> SparsityPattern:
        """The pattern of the entries of a matrix: SciPy's, or a dense one of numbers or bools.

        Args: matrix: The matrix. Entries of a sparse one count even if they are zero.
        """
        if isinstance(matrix, SparsityPattern):
            return matrix
        if not scipy_sparse().issparse(matrix):
            matrix = np.asarray(matrix) != 0
        if matrix.ndim != 2:
            raise ArgumentError(
                f"a sparsity pattern is a matrix, got an array of shape {matrix.shape}. Rows are "
                "the elements of the result, columns those of the argument, both in row-major "
                "order: reshape it."
            )
        found = scipy_sparse().csr_array(matrix)
        entries = np.ones(len(found.indices), np.bool_)
        found = scipy_sparse().csr_array((entries, found.indices, found.indptr), found.shape)
        return cls(found.shape, (), found)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<SparsityPattern {m}x{n} with {self.nnz} entries>"

    def __or__(self, other: Any) -> SparsityPattern:
        """The places of either pattern."""
        other = SparsityPattern.of(other)
        if other.shape != self.shape:
            raise ShapeError(f"patterns of shapes {self.shape} and {other.shape} have no union.")
        return SparsityPattern.of(self.matrix + other.matrix)

    __ror__ = __or__

    @cached_property
    def matrix(self) -> Any:
        """SciPy's matrix of bools, with True at all entries.

        Raises: ArgumentError: If it has too many for a sparse matrix.
        """
        found = self._given
        if self._transpose is not None:
            return self._transpose.matrix.T.tocsr()
        if found is None:
            found = self._of_relations()
            if self.is_symmetric and found.nnz < self.shape[0] * self.shape[1]:
                # Second derivatives are symmetric: what is zero is so on both sides.
                found = found.multiply(found.T).tocsr()
        found.sum_duplicates()
        return found

    def _of_relations(self) -> Any:
        blocks = []
        for relation, n in self.relations:
            if relation is None:
                blocks.append(scipy_sparse().csr_array((n, self.shape[1]), dtype=np.bool_))
                continue
            try:
                blocks.append(relation.matrix)
            except TooLargeError:
                m, k = self.shape
                raise ArgumentError(
                    f"the derivative, {m}x{k}, is not sparse: its pattern has about "
                    f"{relation.bound:.1e} entries. Compute it densely (sparse=False), or use "
                    "products: jvp, vjp."
                ) from None
        return scipy_sparse().vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]

    @cached_property
    def pattern(self) -> Pattern:
        """The same for a `funcgrad.scipy.sparse.SparseArray`."""
        return Pattern(self.matrix.indptr, self.matrix.indices, self.shape)

    @property
    def places(self) -> tuple[Any, Any]:
        """Rows and columns of the entries of a matrix small enough to be dense, in their order.

        Affine index sets need no library for that.
        """
        if self._transpose is not None:
            columns, rows = self._transpose.places
            return rows, columns
        m, n = self.shape
        is_there = np.zeros((m, n), np.bool_)
        start = 0
        for relation, count in self.relations:
            if relation is not None:
                relation.mark(is_there[start : start + count])
            start += count
        rows, columns = np.nonzero(is_there)
        return rows, columns

    @property
    def is_of_program(self) -> bool:
        """Whether it was read from a program, so that no entry is missing."""
        if self._transpose is not None:
            return self._transpose.is_of_program
        return self._given is None

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(self.matrix.nnz)

    @property
    def bound(self) -> int:
        """The most entries that there can be, without listing them."""
        if self._transpose is not None:
            return self._transpose.bound
        if self._given is not None:
            return int(self._given.nnz)
        return sum(0 if r is None else r.bound for r, _ in self.relations)

    @property
    def T(self) -> SparsityPattern:
        """The pattern of the transpose."""
        found = SparsityPattern(self.shape[::-1])
        found._transpose = self
        return found

    def toarray(self) -> Any:
        """A dense matrix of bools."""
        return self.matrix.toarray()

    @cached_property
    def lines(self) -> list[Line] | None:
        """The diagonals that there are: ranges of rows, and by how much columns are ahead of rows.

        ``None`` where index sets are no diagonals, or not affine, or too many.
        """
        if self._transpose is not None:
            lines = self._transpose.lines
            return lines and [(a + ahead, b + ahead, -ahead) for a, b, ahead in lines]
        if not self.relations:
            return None
        found: list[Line] = []
        start = 0
        for relation, n in self.relations:
            if relation is not None:
                own = _lines(relation, start)
                if own is None:
                    return None
                found += own
            start += n
        joined = _joined(found)
        return joined if len(joined) <= MOST_LINES else None

    def offsets(self) -> list[int] | None:
        """Distances of the columns that share a row, if entries are on diagonals."""
        lines = self.lines
        if lines is None:
            return None
        pairs = ((p, q) for i, p in enumerate(lines) for q in lines[:i] if _overlap(p, q))
        return sorted({abs(p[2] - q[2]) for p, q in pairs} - {0})


MOST_LINES = 256
"""Diagonals of which distances are formed in pairs."""

Line = tuple[int, int, int]


def _joined(lines: Sequence[Line]) -> list[Line]:
    """The same diagonals, of which those that continue each other are one."""
    found: list[Line] = []
    for first, last, ahead in sorted(lines, key=lambda line: (line[2], line[0])):
        if found and found[-1][2] == ahead and first <= found[-1][1]:
            first, last = found[-1][0], max(last, found.pop()[1])
        found.append((first, last, ahead))
    return found


def _overlap(p: Line, q: Line) -> bool:
    return p[0] < q[1] and q[0] < p[1]


def _lines(relation: Relation, start: int) -> list[Line] | None:
    """The diagonals of a relation whose first row is given."""
    if relation.extra is not None:
        return None
    strides = strides_of(relation.shape)
    found = []
    for piece in relation.pieces:
        row = start + sum(a * s for a, s in zip(piece.starts, strides, strict=True))
        last = row
        ahead = [piece.column - row]
        for d in piece.dims:
            if d.axis == FREE:
                ahead = list(_spread(ahead, d))
                if len(ahead) > MOST_LINES:
                    return None
            elif d.step * strides[d.axis] != d.stride:
                return None
            else:
                last += d.reach * strides[d.axis]
        found += [(row, last + 1, a) for a in ahead]
    return found


def _spread(ahead: Sequence[int], dim: Dimension) -> Iterator[int]:
    if dim.size <= MOST_LINES:
        yield from (a + dim.stride * k for a in ahead for k in range(dim.size))
    else:
        yield from (0 for _ in range(MOST_LINES + 1))
