"""Constructors of sparse matrices: SciPy's where all is known, else a `SparseArray`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import tree_leaves
from funcgrad.errors import ArgumentError
from funcgrad.patterns.arrays import SparseArray, from_places
from funcgrad.primitives.objects import is_traced


def _made(kind: str, arg1: Any, shape: Any, dtype: Any) -> Any:
    """A matrix of SciPy's, or, if it has traced entries, a `SparseArray`."""
    if isinstance(arg1, SparseArray):
        return arg1
    if not any(is_traced(x) for x in tree_leaves(arg1)):
        return getattr(scipy.sparse, kind)(arg1, shape=shape, dtype=dtype)
    if not isinstance(arg1, tuple) or len(arg1) not in (2, 3):
        raise ArgumentError(
            f"{kind}: which entries of a traced array are zero is not known. Give the entries and "
            "their places: (data, (row, col)), or (data, indices, indptr)."
        )
    data, places = arg1[0], arg1[1:]
    if any(is_traced(x) for x in tree_leaves(places)):
        raise ArgumentError(f"{kind}: places must be known; only entries may be traced.")
    if dtype is not None:
        data = fnp.astype(data, dtype)
    if len(places) == 1:
        rows, columns = (np.asarray(x) for x in places[0])
    else:
        major = np.repeat(np.arange(len(places[1]) - 1), np.diff(places[1]))
        minor = np.asarray(places[0])
        rows, columns = (minor, major) if kind == "csc_array" else (major, minor)
    if shape is None:
        shape = tuple(int(x.max(initial=-1)) + 1 for x in (rows, columns))
    return from_places(data, rows, columns, tuple(shape))


def csr_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
    """Sparse array of compressed rows.

    As `scipy.sparse.csr_array`; with traced entries it gives a `SparseArray`.

    Returns: SciPy's matrix if everything is known, else a `SparseArray`.
    Raises: ArgumentError: If places are traced.

    Example:
        >>> def first(d):
        ...     A = fg.scipy.sparse.csr_array((d, ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
        ...     return (A @ np.array([1.0, 2.0]))[0]
        >>> fg.grad(first)(np.ones(3))
        array([1., 2., 0.])
    """
    return _made("csr_array", arg1, shape, dtype)


def csc_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
    """Sparse array of compressed columns.

    As `csr_array`, with ``(data, indices, indptr)`` in the order of columns.

    Returns: As of `csr_array`.
    Example: fg.scipy.sparse.csc_array(np.array([[1.0, 0.0], [0.0, 2.0]])).toarray()
        -> array([[1., 0.],
                  [0., 2.]])
    """
    return _made("csc_array", arg1, shape, dtype)


def coo_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
    """Sparse array of entries with rows and columns.

    As `csr_array`, of ``(data, (row, col))``; entries of one place are added.

    Returns: As of `csr_array`.
    Example: fg.scipy.sparse.coo_array(np.array([[1.0, 0.0], [0.0, 2.0]])).toarray()
        -> array([[1., 0.],
                  [0., 2.]])
    """
    return _made("coo_array", arg1, shape, dtype)
