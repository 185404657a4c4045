"""Where a Jacobian or a Hessian may have entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from funcgrad.errors import ArgumentError
from funcgrad.forking import cached_property
from funcgrad.patterns.dependence import Found
from funcgrad.patterns.index_sets import FREE, Dimension, Relation, TooLargeError, strides_of
from funcgrad.primitives.sparse import Pattern


class SparsityPattern:
    """Where a matrix may have entries: others are zero, whatever the values.

    Made by `funcgrad.sparsity.jacobian_sparsity` and `hessian_sparsity`, or `of` a matrix. Patterns
    of programs are kept as affine index sets, and listed when their entries are asked for.

    Args:
        shape: Numbers of rows and columns.
        relations: Index sets of consecutive rows, each with the number of its rows.
        matrix: A sparse matrix instead.
        is_symmetric: Whether entries are mirrored at the diagonal; only then can they be anywhere.

    Example:
        >>> import numpy as np, funcgrad as fg
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

    @classmethod
    def of(cls, matrix: Any) -> SparsityPattern:
        """The pattern of the entries of a matrix: SciPy's, or a dense one of numbers or bools.

        Args:
            matrix: The matrix. Entries of a sparse one count even if they are zero.
        """
        if isinstance(matrix, SparsityPattern):
            return matrix
        if not scipy.sparse.issparse(matrix):
            matrix = np.asarray(matrix) != 0
        if matrix.ndim != 2:
            raise ArgumentError(
                f"a sparsity pattern is a matrix, got an array of shape {matrix.shape}. Rows are "
                "the elements of the result, columns those of the argument, both in row-major "
                "order: reshape it."
            )
        found = scipy.sparse.csr_array(matrix)
        entries = np.ones(len(found.indices), np.bool_)
        found = scipy.sparse.csr_array((entries, found.indices, found.indptr), found.shape)
        return cls(found.shape, (), found)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<SparsityPattern {m}x{n} with {self.nnz} entries>"

    @cached_property
    def matrix(self) -> Any:
        """SciPy's matrix of bools, with True at all entries.

        Raises:
            ArgumentError: If it has too many for a sparse matrix.
        """
        found = self._given
        if found is None:
            found = self._of_relations()
            if self.is_symmetric:
                # Second derivatives are symmetric: what is zero is so on both sides.
                found = found.multiply(found.T).tocsr()
        found.sum_duplicates()
        return found

    def _of_relations(self) -> Any:
        blocks = []
        for relation, n in self.relations:
            if relation is None:
                blocks.append(scipy.sparse.csr_array((n, self.shape[1]), dtype=np.bool_))
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
        return scipy.sparse.vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]

    @cached_property
    def pattern(self) -> Pattern:
        """The same for a `funcgrad.scipy.sparse.SparseArray`."""
        return Pattern(self.matrix.indptr, self.matrix.indices, self.shape)

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(self.matrix.nnz)

    @property
    def bound(self) -> int:
        """The most entries that there can be, without listing them."""
        if self._given is not None:
            return int(self._given.nnz)
        return sum(0 if r is None else r.bound for r, _ in self.relations)

    @property
    def T(self) -> SparsityPattern:
        """The pattern of the transpose."""
        return SparsityPattern(self.shape[::-1], (), self.matrix.T.tocsr())

    def toarray(self) -> Any:
        """A dense matrix of bools."""
        return self.matrix.toarray()

    def offsets(self) -> list[int] | None:
        """Distances of the columns that share a row, where these follow from affine index sets.

        ``None`` where they do not: where sets are no diagonals, or not affine.
        """
        lines: list[tuple[int, int, int]] = []
        start = 0
        for relation, n in self.relations:
            if relation is not None:
                found = _lines(relation, start)
                if found is None:
                    return None
                lines += found
            start += n
        if not self.relations or len(lines) > MOST_LINES:
            return None
        pairs = ((p, q) for i, p in enumerate(lines) for q in lines[:i] if _overlap(p, q))
        return sorted({abs(p[2] - q[2]) for p, q in pairs} - {0})


MOST_LINES = 256
"""Diagonals of which distances are formed in pairs."""


def _overlap(p: tuple[int, int, int], q: tuple[int, int, int]) -> bool:
    return p[0] < q[1] and q[0] < p[1]


def _lines(relation: Relation, start: int) -> list[tuple[int, int, int]] | None:
    """Diagonals of a matrix: ranges of rows, and by how much columns are ahead of rows."""
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
