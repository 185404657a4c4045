"""Inverses, norms, and the spaces that matrices span."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import real_dtype
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import elementwise, linalg, rearranging, reducing, selecting
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import linalg as primitives
from funcgrad.primitives.matrices import adjoint, hermitian_of_lower, part
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.pencils import NullSpace
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.linalg import operands
from funcgrad.scipy.linalg.solving import solve

__all__ = [
    "det", "inv", "lstsq", "norm", "null_space", "orth", "orthogonal_procrustes", "pinv", "pinvh",
    "subspace_angles",
]  # fmt: skip


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Determinant of matrices, as `numpy.linalg.det`.

    Example: fg.scipy.linalg.det(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> np.float64(5.000000000000001)
    """
    return linalg.det(a)


def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    """Norm of vectors or matrices, as `numpy.linalg.norm`.

    Args:
        ord: Which norm.
        axis: The axis of a vector norm, or the pair of axes of a matrix norm.
    Example: fg.scipy.linalg.norm(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> np.float64(3.872983346207417)
    """
    return linalg.norm(a, ord, axis, keepdims)


def _tolerances(x: Any, atol: float | None, rtol: float | None, function: str) -> list[float]:
    if is_traced(atol) or is_traced(rtol):
        raise ArgumentError(f"{function}: tolerances must be known numbers.")
    eps = float(np.finfo(aval_of(x).dtype).eps) * max(shape_of(x)[-2:])
    found = [0.0 if atol is None else float(atol), eps if rtol is None else float(rtol)]
    if min(found) < 0:
        raise ValueError(f"{function}: tolerances must be positive.")
    return found


def pinv(
    a: Any,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Pseudo-inverse of matrices.

    As `scipy.linalg.pinv`: the Moore-Penrose inverse; derivatives are those at constant rank.

    Args:
        atol: Singular values up to ``atol + rtol * largest`` count as zero.
        rtol: By default ``max(m, n)`` times the rounding error.
    Returns: The inverses, ``(..., n, m)``, and if asked for the ranks.
    Example: fg.scipy.linalg.pinv(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[ 0.6, -0.2],
                  [-0.2,  0.4]])
    """
    x = linalg.matrix(a, "pinv")
    atol, rtol = _tolerances(x, atol, rtol, "pinv")
    out = primitives.Pinv(rtol, atol).bind(x)
    return (out, _rank(x, atol, rtol)) if return_rank else out


def pinvh(
    a: Any,
    atol: float | None = None,
    rtol: float | None = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Pseudo-inverse of a Hermitian matrix.

    As `scipy.linalg.pinvh`: `pinv` of Hermitian matrices, of which one triangle is read.

    Example: fg.scipy.linalg.pinvh(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[ 0.6, -0.2],
                  [-0.2,  0.4]])
    """
    x = operands.square(a, "pinvh")
    whole = hermitian_of_lower(x if lower else adjoint(x))
    return pinv(whole, atol=atol, rtol=rtol, return_rank=return_rank)


def _rank(x: Any, atol: float, rtol: float) -> Any:
    values = primitives.SingularValues().bind(x)
    if not shape_of(values)[-1]:
        return np.zeros(shape_of(values)[:-1], np.int64)
    dtype = aval_of(values).dtype
    bound = values[..., :1] * dtype.type(rtol) + dtype.type(atol)
    return reducing.sum(p.greater.bind(values, bound), -1)


def _known_rank(x: Any, rcond: Any, function: str) -> int:
    """The rank of one matrix, as a number: results have shapes that follow from it."""
    if len(shape_of(x)) != 2:
        raise ShapeError(
            f"{function} takes one matrix, since ranks may differ in a stack, got {aval_of(x)}."
        )
    return int(_rank(x, 0.0, _tolerances(x, None, rcond, function)[1]))


def null_space(
    A: Any,
    rcond: float | None = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Orthonormal basis of the null space of a matrix.

    As `scipy.linalg.null_space`: orthonormal columns that ``A`` makes zero.

    The rank must be known, as it is in eager code, derivatives included. Derivatives are those at
    constant rank, and turn the columns not among themselves.

    Args: A: A matrix, ``(m, n)``.
    Returns: The columns, ``(n, k)``.
    Example: print(abs(fg.scipy.linalg.null_space(np.array([[1.0, 0.0]]))))
        -> [[0.]
            [1.]]
    """
    x = linalg.matrix(A, "null_space")
    rank = _known_rank(x, rcond, "null_space")
    return NullSpace(shape_of(x)[-1] - rank).bind(x)


def orth(A: Any, rcond: float | None = None) -> Any:
    """Orthonormal basis of the range of a matrix.

    As `scipy.linalg.orth`: orthonormal columns that span those of ``A``, of known rank.

    Example: np.abs(fg.scipy.linalg.orth(np.array([[3.0, 3.0], [4.0, 4.0]])))
        -> array([[0.6],
                  [0.8]])
    """
    x = linalg.matrix(A, "orth")
    rank = _known_rank(x, rcond, "orth")
    u, _, _ = linalg.svd(x, full_matrices=False)
    return part(u, slice(None), slice(rank))


def subspace_angles(A: Any, B: Any) -> Any:
    """Angles between two subspaces.

    As `scipy.linalg.subspace_angles`: between the spaces of columns, descending.

    Args:
        A: A matrix, ``(m, n)``, of known rank.
        B: A matrix, ``(m, k)``, likewise.
    Returns: The angles, in radians.
    Example: fg.scipy.linalg.subspace_angles(np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]]))
        -> array([0.78539816])
    """
    a, b = operands.matrices("subspace_angles", A, B)
    if shape_of(a)[-2] != shape_of(b)[-2]:
        raise ValueError(f"subspace_angles: {aval_of(a)} and {aval_of(b)} differ in rows.")
    a, b = orth(a), orth(b)
    inner = linalg.matmul(adjoint(a), b)
    cosines = rearranging.flip(linalg.svdvals(inner), -1)
    if shape_of(a)[-1] >= shape_of(b)[-1]:
        outside = b - linalg.matmul(a, inner)
    else:
        outside = a - linalg.matmul(b, adjoint(inner))
    # Small angles from their sines, large ones from their cosines: each where its slope is not.
    is_small = cosines * cosines >= 0.5
    half = aval_of(cosines).dtype.type(0.5)
    sines = linalg.svdvals(outside)
    from_sines = elementwise.arcsin(selecting.where(is_small, sines, half))
    from_cosines = elementwise.arccos(selecting.where(is_small, half, cosines))
    return selecting.where(is_small, from_sines, from_cosines)


def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """Orthogonal matrix that maps one matrix as closely as possible to another.

    As `scipy.linalg.orthogonal_procrustes`: the unitary ``R`` with the least ``|A R - B|``.

    Args: B: Matrices of the same shape.
    Returns: ``R``, and the sum of the singular values of ``A^H B``.

    Example:
        >>> fg.scipy.linalg.orthogonal_procrustes(np.eye(2), np.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
        array([[ 0.,  1.],
               [-1.,  0.]])
    """
    a, b = operands.matrices("orthogonal_procrustes", A, B)
    operands.check_equal_shapes("orthogonal_procrustes", a, b)
    u, values, vh = linalg.svd(linalg.matmul(adjoint(a), b))
    return linalg.matmul(u, vh), reducing.sum(values, -1)


def lstsq(
    a: Any,
    b: Any,
    cond: float | None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: str | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Least-squares solution of linear equations.

    As `scipy.linalg.lstsq`: the shortest ``x`` that minimises ``|a x - b|``.

    Derivatives are those at constant rank.

    Args:
        b: A vector ``(m,)`` or matrices ``(..., m, k)``.
        cond: Singular values up to this part of the largest count as zero.
    Returns: Solution; sums of squared residuals (empty if ``m <= n``, or if the rank is known to be
        deficient); rank; singular values.

    Example:
        >>> fg.scipy.linalg.lstsq(
        ...     np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0, 5.0])
        ... )[0]
        array([1., 2.])
    """
    a, b = linalg.floating(a, b, function="lstsq")
    a = linalg.matrix(a, "lstsq")
    b, is_vector = operands.as_columns(b, "lstsq")
    a, b = operands.stacked([a, b], [2, 2])
    m, n = shape_of(a)[-2:]
    if shape_of(b)[-2] != m:
        raise ValueError(f"lstsq: {aval_of(b)} is no right-hand side of equations {aval_of(a)}.")
    if is_traced(cond):
        raise ArgumentError("lstsq: cond must be a known number.")
    rtol = float(np.finfo(aval_of(a).dtype).eps if cond is None else cond)
    x = linalg.matmul(primitives.Pinv(rtol).bind(a), b)
    rank = _rank(a, 0.0, rtol)
    values = primitives.SingularValues().bind(a)
    is_deficient = not is_traced(rank) and np.any(rank < n)
    if m <= n or is_deficient:
        rest: Any = np.empty(0, real_dtype(aval_of(x).dtype))
    else:
        sizes = elementwise.abs(b - linalg.matmul(a, x))
        rest = reducing.sum(sizes * sizes, -2)
        rest = rest[..., 0] if is_vector else rest
    return operands.as_answer(x, is_vector), rest, rank, values


def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Any:
    """Inverse of matrices, as `scipy.linalg.inv`.

    Args: assume_a: Structure, as in `solve`: of positive definite and triangular matrices one
            triangle is read.
    Returns: The inverses.
    Example: fg.scipy.linalg.inv(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[ 0.6, -0.2],
                  [-0.2,  0.4]])
    """
    if assume_a is None:
        return linalg.inv(a)
    x = operands.square(a, "inv")
    unit = np.eye(shape_of(x)[-1], dtype=aval_of(x).dtype)
    return solve(x, unit, lower, assume_a=assume_a)
