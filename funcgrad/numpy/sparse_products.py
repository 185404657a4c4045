"""Products of SciPy's sparse matrices with traced values: what ``A @ x`` and ``x @ A`` reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.errors import ShapeError
from funcgrad.numpy.promotion import as_value, to_dtype
from funcgrad.primitives.shape import Transpose, shape_of
from funcgrad.primitives.sparse import Constants, MatrixProduct


def product(matrix: Any, x: Any, is_transposed: bool = False) -> Any:
    """``A @ x``, or ``A.T @ x``, for a constant sparse matrix.

    Args:
        matrix: A matrix or array of `scipy.sparse`, of two axes.
        x: Vector or matrix.
        is_transposed: Whether the matrix is transposed.
    Returns: The dense product, in the dtype that both promote to.
    Raises: ShapeError: If shapes do not fit.
    """
    x = as_value(x, "matmul")
    m, n = matrix.shape if matrix.ndim == 2 else (1, *matrix.shape)
    rows = m if is_transposed else n
    if matrix.ndim != 2 or len(shape_of(x)) not in (1, 2) or shape_of(x)[0] != rows:
        side = "its transpose and" if is_transposed else "and"
        raise ShapeError(
            f"matmul: a sparse matrix of shape {matrix.shape} {side} {aval_of(x)} have no product."
        )
    dtype = np.result_type(matrix.dtype, aval_of(x).dtype)
    same = matrix if matrix.dtype == dtype else matrix.astype(dtype)
    return MatrixProduct(Constants(same), is_transposed).bind(to_dtype(x, dtype))


def product_from_left(x: Any, matrix: Any) -> Any:
    """``x @ A``."""
    x = as_value(x, "matmul")
    if len(shape_of(x)) != 2:
        return product(matrix, x, is_transposed=True)
    out = product(matrix, Transpose((1, 0)).bind(x), is_transposed=True)
    return Transpose((1, 0)).bind(out)
