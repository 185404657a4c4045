"""Systems of equations: general, triangular, banded, of a structure, and matrix equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.base.dialect import fails_as_nan
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import (
    elementwise,
    fft,
    joining,
    linalg,
    ordering,
    rearranging,
    reducing,
    selecting,
    shaping,
)
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives import banded
from funcgrad.primitives import linalg as primitives
from funcgrad.primitives import shape as s
from funcgrad.primitives.elementwise import real
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.matrices import adjoint, identity_like
from funcgrad.primitives.matrix_functions import Sylvester
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.pencils import ContinuousRiccati, DiscreteRiccati, stein
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.linalg import operands
from funcgrad.scipy.linalg.factorizing import cho_factor

__all__ = [
    "cho_solve", "cho_solve_banded", "cholesky_banded", "lu_solve", "matmul_toeplitz", "solve",
    "solve_banded", "solve_circulant", "solve_continuous_are", "solve_continuous_lyapunov",
    "solve_discrete_are", "solve_discrete_lyapunov", "solve_lyapunov", "solve_sylvester",
    "solve_toeplitz", "solve_triangular", "solveh_banded",
]  # fmt: skip

_TRANSPOSITIONS: dict[Any, int] = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def _system(function: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Matrix and right-hand sides with equal stacks, and whether ``b`` was a vector."""
    a, b = linalg.floating(a, b, function=function)
    is_vector = len(shape_of(b)) == 1
    column = s.reshape(b, (*shape_of(b), 1)) if is_vector else b
    square = len(shape_of(a)) >= 2 and shape_of(a)[-1] == shape_of(a)[-2]
    if not square or len(shape_of(column)) < 2 or shape_of(column)[-2] != shape_of(a)[-1]:
        raise ShapeError(f"{function}: {aval_of(b)} is no right-hand side for {aval_of(a)}.")
    stack = np.broadcast_shapes(shape_of(a)[:-2], shape_of(column)[:-2])
    a = s.broadcast_to(a, (*stack, *shape_of(a)[-2:]))
    return a, s.broadcast_to(column, (*stack, *shape_of(column)[-2:])), is_vector


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    debug: Any = None,
) -> Any:
    """Solve ``a x = b`` for triangular ``a``; the other triangle is not read.

    Args:
        trans: Which system: 0 or "N" for ``a``, 1 or "T" for its transpose, 2 or "C" for its
            conjugate transpose.
        lower: Whether ``a`` is lower triangular.
        unit_diagonal: Whether the diagonal is taken to be 1 and not read.
    Returns: The solutions, of the shape of ``b`` (stacks broadcast).

    Raises:
        ArgumentError: If ``trans`` is none of these.
        ShapeError: If ``a`` is not square or ``b`` does not fit.

    Example:
        >>> a = np.array([[2.0, 0.0], [1.0, 1.0]])
        >>> print(fg.scipy.linalg.solve_triangular(a, np.array([2.0, 3.0]), lower=True))
        [1. 2.]
    """
    if trans not in _TRANSPOSITIONS:
        raise ArgumentError(f"solve_triangular: trans must be 0, 1, 2, N, T or C, got {trans!r}.")
    a, b, is_vector = _system("solve_triangular", a, b)
    kind = _TRANSPOSITIONS[trans]
    a = elementwise.conj(a) if kind == 2 else a
    solve = primitives.TriangularSolve(lower, kind > 0, unit_diagonal, not fails_as_nan())
    return operands.as_answer(solve.bind(a, b), is_vector)


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Solve ``a x = b`` with the result of `cho_factor`.

    Args: c_and_lower: The factor, and whether it is the lower one.
    Returns: The solutions, of the shape of ``b``.

    Example:
        >>> factor = fg.scipy.linalg.cho_factor(np.diag([4.0, 1.0]))
        >>> print(fg.scipy.linalg.cho_solve(factor, np.array([4.0, 3.0])))
        [1. 3.]
    """
    c, lower = c_and_lower
    c, b, is_vector = _system("cho_solve", c, b)
    half = solve_triangular(c, b, trans=0 if lower else 2, lower=lower)
    return operands.as_answer(
        solve_triangular(c, half, trans=2 if lower else 0, lower=lower), is_vector
    )


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: Any,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve ``a x = b`` with the result of `lu_factor`.

    Args:
        lu_and_piv: The factors of ``a``, square, and its exchanges of rows.
        trans: 1 for the transpose of ``a`` in its place, 2 for its conjugate transpose.
    Returns: The solutions, of the shape of ``b``.
    Raises: ArgumentError: If ``trans`` is none of these.

    Example:
        >>> factors = fg.scipy.linalg.lu_factor(np.array([[1.0, 2.0], [2.0, 2.0]]))
        >>> print(fg.scipy.linalg.lu_solve(factors, np.array([3.0, 4.0])))
        [1. 1.]
    """
    packed, pivots = lu_and_piv
    if trans not in (0, 1, 2):
        raise ArgumentError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}.")
    a, b, is_vector = _system("lu_solve", packed, b)
    order = primitives.Permutation().bind(as_value(pivots, "lu_solve"))
    by_upper = primitives.TriangularSolve(False, trans > 0, is_checked=not fails_as_nan())
    if trans == 0:
        x = primitives.TriangularSolve(True, unit_diagonal=True).bind(a, _rows(b, order))
        return operands.as_answer(by_upper.bind(a, x), is_vector)
    a = elementwise.conj(a) if trans == 2 else a
    x = by_upper.bind(a, b)
    x = primitives.TriangularSolve(True, True, True).bind(a, x)
    return operands.as_answer(_rows(x, ordering.argsort(order)), is_vector)


def _rows(b: Any, order: Any) -> Any:
    """The rows of every matrix in another order."""
    stack = shape_of(b)[:-2]
    order = s.broadcast_to(order, (*stack, shape_of(order)[-1]))
    return take_along_axis(b, s.reshape(order, (*shape_of(order), 1)), len(stack))


_STRUCTURES = {
    None: "general", "gen": "general", "sym": "general", "her": "general", "pos": "positive",
    "general": "general", "symmetric": "general", "hermitian": "general",
    "positive definite": "positive", "upper triangular": "upper", "lower triangular": "lower",
    "diagonal": "general", "tridiagonal": "general", "banded": "general",
}  # fmt: skip


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
    *,
    debug: bool = False,
) -> Any:
    """Solve ``a x = b``.

    Args:
        assume_a: "pos" or "positive definite" matrices are solved by `cho_solve`, "upper
            triangular" and "lower triangular" ones by substitution; "general" ("gen"), "symmetric"
            ("sym"), "hermitian" ("her"), "diagonal", "tridiagonal" and "banded" ones alike, as
            are those of which nothing is said.
        transposed: Whether the transpose of ``a`` takes its place.
    Returns: The solutions, of the shape of ``b``.
    Raises: ArgumentError: If ``assume_a`` is none of these.
    Example: print(fg.scipy.linalg.solve(np.diag([4.0, 2.0]), np.ones(2), assume_a="pos"))
        -> [0.25 0.5 ]
    """
    if assume_a not in _STRUCTURES:
        known = ", ".join(repr(name) for name in _STRUCTURES)
        raise ArgumentError(f"solve: assume_a must be one of {known}, got {assume_a!r}.")
    structure = _STRUCTURES[assume_a]
    if structure in ("upper", "lower"):
        return solve_triangular(a, b, int(transposed), structure == "lower")
    if transposed:
        a, lower = linalg.matrix_transpose(a), not lower
    return cho_solve(cho_factor(a, lower), b) if structure == "positive" else linalg.solve(a, b)


def solve_banded(
    l_and_u: tuple[int, int],
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solution of linear equations with a banded matrix.

    As `scipy.linalg.solve_banded`: systems of matrices that are given by their diagonals.

    Args:
        l_and_u: Numbers of diagonals below and above the main one.
        ab: The diagonals as rows, ``(..., l + u + 1, n)``: ``ab[u + i - j, j] = a[i, j]``.
    Returns: The solutions, of the shape of ``b``.

    Example:
        >>> ab = np.array([[0.0, 1.0], [2.0, 2.0]])
        >>> print(fg.scipy.linalg.solve_banded((0, 1), ab, np.array([4.0, 2.0])))
        [1.5 1. ]
    """
    below, above = (int(i) for i in l_and_u)
    ab, b, is_vector = _band_system("solve_banded", ab, b, below + above + 1)
    return operands.as_answer(banded.BandedSolve(below, above).bind(ab, b), is_vector)


def _band_system(function: str, ab: Any, b: Any, rows: int | None) -> tuple[Any, Any, bool]:
    ab, b = linalg.floating(ab, b, function=function)
    ab = linalg.matrix(ab, function)
    b, is_vector = operands.as_columns(b, function)
    if rows not in (None, shape_of(ab)[-2]) or shape_of(b)[-2] != shape_of(ab)[-1]:
        raise ShapeError(
            f"{function}: {aval_of(ab)} must have the diagonals as rows, and {aval_of(b)} as many "
            "rows as it has columns."
        )
    ab, b = operands.stacked([ab, b], [2, 2])
    return ab, b, is_vector


def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solution of linear equations with a banded Hermitian positive definite matrix.

    As `scipy.linalg.solveh_banded`: positive definite systems, given by half of the diagonals.

    Args:
        ab: Diagonals as rows, ``(..., u + 1, n)``, the main one first if ``lower``, else last.
        lower: Whether the diagonals are those below the main one.
    Returns: The solutions, of the shape of ``b``.
    Example: fg.scipy.linalg.solveh_banded(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([3.0, 4.0]))
        -> array([1., 1.])
    """
    ab, b, is_vector = _band_system("solveh_banded", ab, b, None)
    return operands.as_answer(banded.PositiveBandedSolve(bool(lower)).bind(ab, b), is_vector)


def cholesky_banded(
    ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Any:
    """Cholesky factor of a banded positive definite matrix.

    As `scipy.linalg.cholesky_banded`; derivatives are computed with whole matrices.

    Args:
        ab: Half of the diagonals as rows, ``(..., u + 1, n)``, as in `solveh_banded`.
        lower: Whether the diagonals are those below the main one.
    Returns: The factors, in the same form.
    Example: fg.scipy.linalg.cholesky_banded(np.array([[0.0, 2.0], [4.0, 5.0]]))
        -> array([[0., 1.],
                  [2., 2.]])
    """
    return banded.BandedCholesky(bool(lower)).bind(linalg.matrix(ab, "cholesky_banded"))


def cho_solve_banded(
    cb_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Solution of linear equations from `cholesky_banded`.

    As `scipy.linalg.cho_solve_banded`: a system whose factor `cholesky_banded` gave.

    Args: cb_and_lower: The factor, and whether it is the lower one.
    Returns: The solutions, of the shape of ``b``.

    Example:
        >>> fg.scipy.linalg.cho_solve_banded(
        ...     (fg.scipy.linalg.cholesky_banded(np.array([[0.0, 1.0], [2.0, 3.0]])), False),
        ...     np.array([1.0, 2.0]),
        ... )
        array([0.2, 0.6])
    """
    cb, lower = cb_and_lower
    cb, b, is_vector = _band_system("cho_solve_banded", cb, b, None)
    count = shape_of(cb)[-2] - 1
    factor = banded.BandedSolve(count, 0) if lower else banded.BandedSolve(0, count)
    transposed = banded.band_transpose(elementwise.conj(cb), factor.below, factor.above)
    other = banded.BandedSolve(factor.above, factor.below)
    first, second = ((factor, cb), (other, transposed))[:: 1 if lower else -1]
    return operands.as_answer(second[0].bind(second[1], first[0].bind(first[1], b)), is_vector)


def _column_and_row(c_or_cr: Any, function: str) -> tuple[Any, Any]:
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    c = shaping.ravel(as_value(c, function))
    return c, elementwise.conj(c) if r is None else shaping.ravel(as_value(r, function))


def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """Solution of linear equations with a Toeplitz matrix.

    As `scipy.linalg.solve_toeplitz`; SciPy evaluates it, in compiled programs too.

    Args:
        c_or_cr: The first column, ``(n,)``, or a pair of it and the first row, of which the first
            element is not read; ``conj(c)`` by default.
        b: Right-hand sides, ``(n,)`` or ``(n, ...)``.
    Returns: The solutions, of the shape of ``b``.
    Example: print(fg.scipy.linalg.solve_toeplitz(np.array([2.0, 1.0]), np.array([3.0, 3.0])))
        -> [1. 1.]
    """
    c, r = _column_and_row(c_or_cr, "solve_toeplitz")
    c, r, b = linalg.floating(c, r, b, function="solve_toeplitz")
    n = shape_of(c)[0]
    if shape_of(r) != (n,) or not shape_of(b) or shape_of(b)[0] != n:
        raise ShapeError(
            f"solve_toeplitz: {aval_of(c)}, {aval_of(r)} and {aval_of(b)} are no square system."
        )
    wide = s.reshape(b, (n, aval_of(b).size // max(n, 1)))
    return s.reshape(banded.ToeplitzSolve().bind(c, r, wide), shape_of(b))


def matmul_toeplitz(
    c_or_cr: Any, x: Any, check_finite: bool = False, workers: int | None = None
) -> Any:
    """Product of a Toeplitz matrix and a matrix.

    As `scipy.linalg.matmul_toeplitz`, by Fourier transforms.

    Args:
        c_or_cr: The first column, ``(m,)``, or a pair of it and the first row, ``(n,)``.
        x: A vector ``(n,)`` or matrix ``(n, k)``.
        workers: Without effect.
    Returns: The products, ``(m,)`` or ``(m, k)``.
    Example: fg.scipy.linalg.matmul_toeplitz(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
        -> array([3., 3.])
    """
    c, r = _column_and_row(c_or_cr, "matmul_toeplitz")
    c, r, x = linalg.floating(c, r, x, function="matmul_toeplitz")
    x, is_vector = operands.as_columns(x, "matmul_toeplitz")
    m, n = shape_of(c)[0], shape_of(r)[0]
    if shape_of(x)[0] != n:
        raise ShapeError(f"matmul_toeplitz: {aval_of(x)} does not fit a row of {n} elements.")
    line = s.reshape(joining.concatenate([c, rearranging.flip(r[1:], 0)]), (m + max(n, 1) - 1, 1))
    size = m + max(n, 1) - 1
    if not size or not aval_of(x).size:
        return operands.as_answer(np.zeros((m, shape_of(x)[1]), aval_of(x).dtype), is_vector)
    if operands.is_complex_value(x):
        out = fft.ifft(fft.fft(line, axis=0) * fft.fft(x, size, 0), axis=0)
    else:
        out = fft.irfft(fft.rfft(line, axis=0) * fft.rfft(x, size, 0), size, 0)
    return operands.as_answer(out[:m], is_vector)


def solve_circulant(
    c: Any,
    b: Any,
    singular: str = "raise",
    tol: float | None = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Any:
    """Solution of linear equations with a circulant matrix.

    As `scipy.linalg.solve_circulant`, by Fourier transforms.

    Args:
        c: First columns, along ``caxis``.
        b: Right-hand sides, along ``baxis``.
        singular: "raise" raises for matrices near to singular ones, where their values are known;
            "lstsq" gives the shortest solution.
        tol: Transformed elements up to this size count as zero.
        caxis: See there.
        baxis: See there.
        outaxis: Axis of the result along which solutions are.
    Returns: The solutions.
    Raises: LinAlgError: If a matrix is near to a singular one.
    Example: fg.scipy.linalg.solve_circulant(np.array([2.0, 1.0]), np.array([3.0, 3.0]))
        -> array([1., 1.])
    """
    operands.choice("solve_circulant", "singular", singular, ("raise", "lstsq"))
    c, b = (shaping.atleast_1d(x) for x in linalg.floating(c, b, function="solve_circulant"))
    c, b = shaping.moveaxis(c, caxis, -1), shaping.moveaxis(b, baxis, -1)
    n = shape_of(c)[-1]
    if n != shape_of(b)[-1]:
        raise ValueError(f"solve_circulant: {aval_of(c)} and {aval_of(b)} differ in length.")
    if not n:
        return shaping.moveaxis(b, -1, outaxis)
    values = fft.fft(c)
    sizes = elementwise.abs(values)
    if tol is None:
        least = reducing.max(sizes, -1, keepdims=True) * n * np.finfo(aval_of(sizes).dtype).eps
    else:
        least = tol
    is_zero = sizes <= least
    if singular == "raise" and not is_traced(is_zero) and np.any(is_zero):
        raise linalg.LinAlgError("near singular circulant matrix.")
    if singular == "lstsq":
        one = aval_of(values).dtype.type(1)
        quotients = fft.fft(b) / selecting.where(is_zero, one, values)
        quotients = selecting.where(is_zero, one * 0, quotients)
    else:
        quotients = fft.fft(b) / values
    x = fft.ifft(quotients)
    x = x if operands.is_complex_value(c) else real.bind(x)
    return shaping.moveaxis(x, -1, outaxis)


def solve_sylvester(a: Any, b: Any, q: Any, *, method: str = "schur", tol: float = 1e-8) -> Any:
    """Solution of Sylvester's equation.

    As `scipy.linalg.solve_sylvester`: ``x`` with ``a x + x b = q``.

    SciPy evaluates it, in compiled programs too.

    Args:
        b: Matrices, ``(..., n, n)``.
        q: Matrices, ``(..., m, n)``.
        method: Accepted for JAX's signature: there is one method.
        tol: Likewise.
    Returns: The solutions, ``(..., m, n)``.

    Example:
        >>> one = np.eye(1)
        >>> print(fg.scipy.linalg.solve_sylvester(one, 2 * one, 6 * one))
        [[2.]]
    """
    a, b, q = operands.matrices("solve_sylvester", a, b, q)
    return Sylvester().bind(a, b, q)


def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """Solution of the continuous Lyapunov equation.

    As `scipy.linalg.solve_continuous_lyapunov`: ``x`` with ``a x + x a^H = q``.

    Example: fg.scipy.linalg.solve_continuous_lyapunov(-np.eye(2), -np.eye(2))
        -> array([[0.5, 0. ],
                  [0. , 0.5]])
    """
    a, q = operands.matrices("solve_continuous_lyapunov", a, q)
    return Sylvester().bind(a, adjoint(a), q)


solve_lyapunov = solve_continuous_lyapunov


def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """Solution of the discrete Lyapunov equation.

    As `scipy.linalg.solve_discrete_lyapunov`: ``x`` with ``a x a^H - x + q = 0``.

    Args: method: "direct" solves for all elements at once; "bilinear" by way of a continuous
            equation, if ``a`` has not the eigenvalue -1. By default the first for less than ten
            rows.
    Returns: The solutions.
    Example: fg.scipy.linalg.solve_discrete_lyapunov(0.5 * np.eye(2), np.eye(2))
        -> array([[1.33333333, 0.        ],
                  [0.        , 1.33333333]])
    """
    operands.choice("solve_discrete_lyapunov", "method", method, (None, "direct", "bilinear"))
    a, q = operands.matrices("solve_discrete_lyapunov", a, q)
    operands.square(a, "solve_discrete_lyapunov")
    *stack, n, _ = shape_of(a)
    if method == "bilinear" or (method is None and n >= 10):
        return stein(a, q)
    product = a[..., :, None, :, None] * elementwise.conj(a)[..., None, :, None, :]
    whole = s.reshape(product, (*stack, n * n, n * n))
    x = linalg.solve(identity_like(whole) - whole, s.reshape(q, (*stack, n * n, 1)))
    return s.reshape(x, (*stack, n, n))


def solve_continuous_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """Solution of the continuous algebraic Riccati equation.

    As `scipy.linalg.solve_continuous_are`: the continuous-time algebraic Riccati equation.

    The stabilising ``x`` with ``e^H x a + a^H x e - g^H r^-1 g + q = 0``, where
    ``g = b^H x e + s^H``. SciPy evaluates it, in compiled programs too.

    Args:
        b: Matrices, ``(..., n, m)``.
        q: Hermitian matrices, ``(..., n, n)``.
        r: Regular Hermitian matrices, ``(..., m, m)``.
        e: Regular matrices, ``(..., n, n)``; the identity by default.
        s: Matrices, ``(..., n, m)``; zero by default.
    Returns: The solutions.
    Raises: LinAlgError: If there is no stabilising solution.

    Example:
        >>> one = np.eye(1)
        >>> print(fg.scipy.linalg.solve_continuous_are(0 * one, one, one, one))
        [[1.]]
    """
    return ContinuousRiccati().bind(*_riccati("solve_continuous_are", a, b, q, r, e, s))


def solve_discrete_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """Solution of the discrete algebraic Riccati equation.

    As `scipy.linalg.solve_discrete_are`: the discrete-time algebraic Riccati equation.

    The stabilising ``x`` with ``a^H x a - e^H x e - g^H (r + b^H x b)^-1 g + q = 0``, where
    ``g = b^H x a + s^H``; arguments as in `solve_continuous_are`. SciPy evaluates it, in compiled
    programs too.

    Args:
        b: Second matrix, for example of a generalised eigenvalue problem.
        r: Weight of the input, a positive definite matrix.
        e: The elements next to the diagonal.
    Example: fg.scipy.linalg.solve_discrete_are(np.eye(1), np.eye(1), np.eye(1), np.eye(1))
        -> array([[1.61803399]])
    """
    return DiscreteRiccati().bind(*_riccati("solve_discrete_are", a, b, q, r, e, s))


def _riccati(function: str, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> list[Any]:
    """The equation for ``e = 1``, for which ``e^-H`` and ``e^-1`` come to either side."""
    a, b, q, r = operands.matrices(function, a, b, q, r)
    if s is None:
        s = np.zeros((), aval_of(b).dtype) * np.ones(shape_of(b), aval_of(b).dtype)
    if e is None:
        return operands.matrices(function, a, b, q, r, s)
    a, b, q, r, s, e = operands.matrices(function, a, b, q, r, s, e)
    transposed = adjoint(e)
    a = adjoint(linalg.solve(transposed, adjoint(a)))
    q = linalg.solve(transposed, adjoint(linalg.solve(transposed, adjoint(q))))
    return [a, b, q, r, linalg.solve(transposed, s)]
