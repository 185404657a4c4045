"""``autograd.numpy.numpy_wrapper``: what autograd's NumPy has and NumPy has not."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp

__all__ = ["make_diagonal", "metadata", "where"]


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Matrices of given diagonals, so that ``numpy.diagonal`` with the same arguments gives ``D``.

    Args:
        D: Diagonals, shape ``(..., n)``.
        offset: How far above the main diagonal they lie; below it if negative.
        axis1: Axis of the rows in the result.
        axis2: Axis of the columns in the result.
    Returns: Array with one axis more than ``D``, zero elsewhere.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd.numpy import make_diagonal
        >>> make_diagonal(np.array([1.0, 2.0]), axis1=-1, axis2=-2)
        array([[1., 0.],
               [0., 2.]])
    """
    n = np.shape(D)[-1]
    size = n + abs(offset)
    padded = [(0, 0)] * (np.ndim(D) - 1) + [(max(offset, 0), max(-offset, 0))]
    # Entry (i, j) of the diagonal is found in the column of its number, in every row.
    by_column = fnp.expand_dims(fnp.pad(D, padded), -2)
    matrices = fnp.where(np.eye(size, k=offset, dtype=bool), by_column, 0)
    return fnp.moveaxis(matrices, (-2, -1), (axis1, axis2))


def metadata(A: Any) -> tuple[tuple[int, ...], int, Any, bool]:
    """Shape, number of axes, dtype, and whether that is complex.

    Args: A: An array.
    """
    return np.shape(A), np.ndim(A), np.result_type(A), bool(np.iscomplexobj(A))


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`numpy.where`, whose arguments may be given by their names.

    As in autograd, it gives Python's numbers and lists where it is given nothing else.

    Args:
        condition: Bools.
        x: Values where they are true.
        y: Values where they are false.
    Returns: The chosen values; without ``x`` and ``y`` the places of what is true.

    Example:
        >>> from funcgrad.interop.autograd import numpy as np
        >>> np.where(condition=[True, False], x=1.0, y=2.0)
        [1.0, 2.0]
    """
    if x is None and y is None:
        return fnp.where(condition)
    found = fnp.where(condition, x, y)
    is_array = any(hasattr(v, "dtype") for v in (condition, x, y))
    return found if is_array else found.tolist()
