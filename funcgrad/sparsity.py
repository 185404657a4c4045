"""Sparse derivatives in parts: patterns, colourings, compression.

``funcgrad.jacfwd``, ``jacrev`` and ``hessian`` with ``sparse=True`` do all of it. These are for who
wants one of the parts: the pattern of a program, colours for another library, or entries out of
products that are computed elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.api.sparse_derivatives import hessian_sparsity, jacobian_sparsity
from funcgrad.base.namespaces import present
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.patterns.arrays import SparseArray
from funcgrad.patterns.coloring import Coloring, coloring
from funcgrad.patterns.pictures import spy
from funcgrad.patterns.sparsity_pattern import SparsityPattern
from funcgrad.primitives.objects import is_traced


def compress(matrix: Any, colors: Coloring) -> Any:
    """The products of a matrix with the seeds of a colouring.

    Args:
        matrix: A matrix, sparse or dense, of the pattern's shape (m, n).
        colors: The colouring.
    Returns: A vector: the sums of the columns of each colour, one after the other, then those of
        the rows; its length is ``n_columns * m + n_rows * n``.

    Raises:
        ArgumentError: If ``colors`` is no `Coloring`.
        ShapeError: If the matrix has another shape than the pattern.

    Example:
        >>> colors = fg.sparsity.coloring(np.eye(3))
        >>> print(fg.sparsity.compress(np.diag([1.0, 2.0, 3.0]), colors))
        [1. 2. 3.]
    """
    _check_colors(colors, "compress")
    shape = tuple(matrix.shape) if hasattr(matrix, "shape") else aval_of(matrix).shape
    if shape != colors.pattern.shape:
        raise ShapeError(f"compress: {colors} is not of a matrix of shape {shape}.")
    dtype = aval_of(matrix).dtype if not hasattr(matrix, "dtype") else matrix.dtype
    parts = [] if colors.n_colors else [fnp.zeros(0, dtype)]
    if colors.n_columns:
        parts.append((matrix @ colors.column_seeds(dtype).T).T)
    if colors.n_rows:
        parts.append((matrix.T @ colors.row_seeds(dtype).T).T)
    return fnp.concatenate([fnp.reshape(p, (p.size,)) for p in parts])


def decompress(products: Any, colors: Coloring) -> Any:
    """The matrix whose products with the seeds of a colouring are given.

    Args:
        products: As of `compress`, of any shape with as many elements: products with column seeds,
            a row for each, then with row seeds.
        colors: The colouring.
    Returns: SciPy's matrix, or a `funcgrad.scipy.sparse.SparseArray` of traced entries.

    Raises:
        ArgumentError: If ``colors`` is no `Coloring`.
        ShapeError: If there are more or fewer products.

    Example:
        >>> colors = fg.sparsity.coloring(np.eye(2) + np.eye(2, k=1))
        >>> matrix = np.array([[1.0, 2.0], [0.0, 3.0]])
        >>> products = (matrix @ colors.column_seeds().T).T
        >>> print(fg.sparsity.decompress(products, colors).toarray())
        [[1. 2.]
         [0. 3.]]
    """
    _check_colors(colors, "decompress")
    m, n = colors.pattern.shape
    size = colors.n_columns * m + colors.n_rows * n
    if np.size(products) != size:
        raise ShapeError(
            f"decompress: {colors} needs {colors.n_columns} products of {m} elements and "
            f"{colors.n_rows} of {n}, got {aval_of(products)}."
        )
    data = colors.entries(fnp.reshape(products, (size,)))
    matrix = SparseArray(data, colors.pattern.pattern)
    return matrix if is_traced(data) else matrix.to_scipy()


def _check_colors(colors: Any, what: str) -> None:
    if not isinstance(colors, Coloring):
        raise ArgumentError(
            f"{what} needs a Coloring as its second argument, got {type(colors).__name__}. "
            "sparsity.coloring(pattern) makes one."
        )


__all__ = [
    "Coloring", "SparsityPattern", "coloring", "compress", "decompress", "hessian_sparsity",
    "jacobian_sparsity", "spy",
]  # fmt: skip

present(__name__)
