"""Functions of matrices that are analytic, such as the exponential.

Derivatives are Fréchet's, exact for repeated eigenvalues and for matrices without a basis of
eigenvectors. SciPy evaluates them, in compiled programs too, except the exponential of traced
matrices: that consists of operations that compile. `sqrtm`, `logm`, `funm` and fractional
powers are complex for real matrices as well, because whether they happen to be real depends on
values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.api.custom import custom_jvp
from funcgrad.api.differentiation import jvp
from funcgrad.api.linear_calls import linear_call
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import real_dtype
from funcgrad.errors import ArgumentError
from funcgrad.lax.loops import while_loop
from funcgrad.numpy import linalg, selecting
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import linalg as primitives
from funcgrad.primitives import shape as s
from funcgrad.primitives.matrices import as_column, as_row, identity_like, matrix_transpose
from funcgrad.primitives.matrix_functions import Frechet, MatrixFunction, Signm, Sqrtm
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.linalg.operands import (
    as_complex,
    check_equal_shapes,
    is_complex_value,
    matrices,
    square,
)

__all__ = [
    "coshm", "cosm", "expm", "expm_cond", "expm_frechet", "fractional_matrix_power", "funm", "logm",
    "signm", "sinhm", "sinm", "sqrtm", "tanhm", "tanm",
]  # fmt: skip


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Any:
    """Exponential of matrices.

    As `scipy.linalg.expm`.

    Args:
        upper_triangular: Accepted for JAX's signature; the structure is seen from the values.
        max_squarings: Accepted for JAX's signature; there are as many as are needed.
    Returns: The exponentials, in the dtype of ``A``, if floating or complex.
    Raises: LinAlgError: If the matrices are not square.

    Example:
        >>> a = np.array([[0.0, 1.0], [0.0, 0.0]])
        >>> print(fg.scipy.linalg.expm(a))
        [[1. 1.]
         [0. 1.]]
        >>> print(fg.grad(lambda a: fg.scipy.linalg.expm(a).sum())(a))
        [[1.5        1.        ]
         [2.16666667 1.5       ]]
    """
    a = square(A, "expm")
    return _expm(a) if is_traced(a) and a.size else MatrixFunction("expm").bind(a)


@custom_jvp
def _expm(a: Any) -> Any:
    """The exponential of traced matrices.

    Backwards, its derivative is that of the transposed matrix forwards: nothing of the squarings,
    whose number depends on values, has to be kept.
    """
    return _scaled_and_squared(a)


@_expm.defjvp
def _expm_rule(primals: Any, tangents: Any) -> Any:
    (a,), (ta,) = primals, tangents
    return _expm(a), linear_call(_expm_moved, _expm_moved_back, a, ta)


def _expm_moved(a: Any, e: Any) -> Any:
    """The derivative of the exponential in a direction."""
    return jvp(_scaled_and_squared, (a,), (e,))[1]


def _expm_moved_back(a: Any, ct: Any) -> Any:
    return _expm_moved(matrix_transpose(a), ct)


# Numerators of Padé's approximants of degrees 7 and 13, and the norms up to which they are accurate
# to single and to double precision.
_PADE = {
    32: (
        (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
        3.925724783138660,
    ),
    64: (
        (
            64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
            129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
            40840800.0, 960960.0, 16380.0, 182.0, 1.0,
        ),
        5.371920351148152,
    ),
}  # fmt: skip


def _scaled_and_squared(a: Any) -> Any:
    """The exponential by scaling and squaring, of operations that compile and have derivatives.

    Source: N. J. Higham, "The scaling and squaring method for the matrix exponential revisited",
    SIAM J. Matrix Anal. Appl. 26 (2005).
    """
    real = real_dtype(a.dtype)
    coefficients, most = _PADE[8 * real.itemsize]
    norm = p.stop_gradient.bind(fnp.max(fnp.sum(fnp.abs(a), -2), -1))
    halvings = fnp.ceil(fnp.log2(fnp.maximum(norm / real.type(most), real.type(1))))
    halvings = fnp.where(fnp.isfinite(norm), halvings, real.type(0))[..., None, None]
    a = a * fnp.exp2(-halvings).astype(real)
    even, odd = _pade(a, coefficients)
    odd = a @ odd
    found = linalg.solve(even - odd, even + odd)
    most_halvings = fnp.max(halvings)

    def square_again(state: Any) -> Any:
        i, x = state
        return i + 1, fnp.where(i < halvings, x @ x, x)

    start = (real.type(0), found)
    return while_loop(lambda state: state[0] < most_halvings, square_again, start)[1]


def _pade(a: Any, coefficients: Sequence[float]) -> tuple[Any, Any]:
    """The even part of the numerator, and the odd one divided by the matrix."""
    unit = identity_like(a)
    square_ = a @ a
    powers = [unit, square_]
    while len(powers) < min(4, len(coefficients) // 2):
        powers.append(powers[-1] @ square_)
    n = len(powers)

    def combined(own: Sequence[float], of: Sequence[Any]) -> Any:
        terms = [x * a.dtype.type(c) for c, x in zip(own, of, strict=False)]
        return functools.reduce(p.add.bind, terms)

    def part(first: int) -> Any:
        own = coefficients[first::2]
        low = combined(own[:n], powers)
        # Further powers are products with the greatest of these.
        return low + powers[-1] @ combined(own[n:], powers[1:]) if own[n:] else low

    return part(0), part(1)


def expm_frechet(
    A: Any, E: Any, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """Exponential of a matrix and its derivative in a direction.

    As `scipy.linalg.expm_frechet`.

    Args:
        E: Directions, of the same shape.
        method: Accepted without effect.
        compute_expm: Whether the exponential is returned as well.
    Returns: The exponential and the derivative, or the derivative alone.
    Example: print(fg.scipy.linalg.expm_frechet(np.zeros((1, 1)), np.ones((1, 1))))
        -> (array([[1.]]), array([[1.]]))
    """
    a, e = matrices("expm_frechet", A, E)
    square(a, "expm_frechet")
    check_equal_shapes("expm_frechet", a, e)
    moved = Frechet("expm").bind(a, e)
    return (MatrixFunction("expm").bind(a), moved) if compute_expm else moved


def expm_cond(A: Any, check_finite: bool = True) -> Any:
    """Condition number of the exponential of a matrix.

    As `scipy.linalg.expm_cond`: the relative condition of the exponential, Frobenius norms.

    It takes a matrix with n^4 elements.

    Example: fg.scipy.linalg.expm_cond(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> np.float64(3.851050735432057)
    """
    a = square(A, "expm_cond")
    *stack, n, _ = shape_of(a)
    units = np.eye(n * n, dtype=aval_of(a).dtype).reshape(n * n, *(1,) * len(stack), n, n)
    wide = (n * n, *stack, n, n)
    moved = Frechet("expm").bind(s.broadcast_to(a, wide), s.broadcast_to(units, wide))
    kronecker = s.moveaxis_from_front(s.reshape(moved, (n * n, *stack, n * n)), len(stack) + 1)
    size = linalg.norm(a, "fro", (-2, -1)) / linalg.norm(expm(a), "fro", (-2, -1))
    return linalg.norm(kronecker, 2, (-2, -1)) * size


def logm(A: Any) -> Any:
    """Logarithm of a matrix.

    As `scipy.linalg.logm`: the principal logarithm of matrices, complex for real ones too.

    Example: print(fg.scipy.linalg.logm(np.eye(2)).real)
        -> [[0. 0.]
            [0. 0.]]
    """
    return MatrixFunction("logm").bind(as_complex(square(A, "logm")))


def sqrtm(A: Any, *, blocksize: Any = None) -> Any:
    """Principal square root of a matrix.

    As `scipy.linalg.sqrtm`: the principal square root, complex for real matrices too.

    Args: blocksize: Accepted without effect.
    Returns: The roots.

    Example:
        >>> root = lambda a: fg.scipy.linalg.sqrtm(a).real
        >>> print(root(4 * np.eye(2)))
        [[2. 0.]
         [0. 2.]]
        >>> print(fg.grad(lambda a: root(a).sum())(4 * np.eye(2)))
        [[0.25 0.25]
         [0.25 0.25]]
    """
    return Sqrtm().bind(as_complex(square(A, "sqrtm")))


def fractional_matrix_power(A: Any, t: Any) -> Any:
    """Power of a matrix, of any real exponent.

    As `scipy.linalg.fractional_matrix_power`; powers that are no integers are complex.

    Args: t: The exponent, a known number.
    Returns: The powers.
    Raises: ArgumentError: If ``t`` is traced.
    Example: fg.scipy.linalg.fractional_matrix_power(np.diag([4.0, 9.0]), 0.5)
        -> array([[2.+0.j, 0.+0.j],
                  [0.+0.j, 3.+0.j]])
    """
    if is_traced(t) or np.ndim(t):
        raise ArgumentError(
            "fractional_matrix_power: t must be one known number; for a traced one write "
            "expm(t * logm(A))."
        )
    a = square(A, "fractional_matrix_power")
    if isinstance(t, Integral) or float(t).is_integer():
        return linalg.matrix_power(a, int(t))
    return MatrixFunction("power", float(t)).bind(as_complex(a))


def signm(A: Any) -> Any:
    """Sign function of a matrix.

    As `scipy.linalg.signm`: eigenvalues become 1 or -1 by the sign of their real parts.

    Example: fg.scipy.linalg.signm(np.array([[2.0, 1.0], [1.0, 3.0]])).round(6)
        -> array([[1., 0.],
                  [0., 1.]])
    """
    return Signm().bind(square(A, "signm"))


def _of_both(a: Any, sign: int, factor: complex) -> Any:
    """Half the sum or the difference of ``exp(factor a)`` and its reciprocal."""
    forth, back = (expm(a * aval_of(a).dtype.type(f)) for f in (factor, -factor))
    return (forth + sign * back) * aval_of(a).dtype.type(0.5 if factor == 1 or sign > 0 else -0.5j)


def cosm(A: Any) -> Any:
    """Cosine of a matrix.

    As `scipy.linalg.cosm`.

    Example: fg.scipy.linalg.cosm(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[-0.10978369, -0.48135511],
                  [-0.48135511, -0.5911388 ]])
    """
    a = square(A, "cosm")
    if is_complex_value(a):
        return _of_both(a, 1, 1j)
    return p.real.bind(expm(as_complex(a) * aval_of(as_complex(a)).dtype.type(1j)))


def sinm(A: Any) -> Any:
    """Sine of a matrix.

    As `scipy.linalg.sinm`.

    Example: fg.scipy.linalg.sinm(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[ 0.58398492, -0.64436512],
                  [-0.64436512, -0.0603802 ]])
    """
    a = square(A, "sinm")
    if is_complex_value(a):
        return _of_both(a, -1, 1j)
    return p.imag.bind(expm(as_complex(a) * aval_of(as_complex(a)).dtype.type(1j)))


def tanm(A: Any) -> Any:
    """Tangent of a matrix.

    As `scipy.linalg.tanm`.

    Example: fg.scipy.linalg.tanm(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[ 3.9290383 , -2.10931434],
                  [-2.10931434,  1.81972396]])
    """
    return linalg.solve(cosm(A), sinm(A))


def coshm(A: Any) -> Any:
    """Hyperbolic cosine of a matrix.

    As `scipy.linalg.coshm`.

    Example: fg.scipy.linalg.coshm(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[ 6.68530531,  7.39182823],
                  [ 7.39182823, 14.07713354]])
    """
    return _of_both(square(A, "coshm"), 1, 1)


def sinhm(A: Any) -> Any:
    """Hyperbolic sine of a matrix.

    As `scipy.linalg.sinhm`.

    Example: fg.scipy.linalg.sinhm(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[ 6.49620179,  7.49211545],
                  [ 7.49211545, 13.98831724]])
    """
    return _of_both(square(A, "sinhm"), -1, 1)


def tanhm(A: Any) -> Any:
    """Hyperbolic tangent of a matrix.

    As `scipy.linalg.tanhm`.

    Example: fg.scipy.linalg.tanhm(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[0.91377574, 0.05240002],
                  [0.05240002, 0.96617576]])
    """
    return linalg.solve(coshm(A), sinhm(A))


def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """Function of a matrix, given one of numbers.

    As `scipy.linalg.funm`: a function of matrices, given for numbers. The result is complex.

    The matrices need a basis of eigenvectors. The first derivative with respect to ``A`` is right
    for equal eigenvalues too, if ``func`` is analytic there.

    Args:
        func: Function of complex numbers, which is called with arrays of them.
        disp: Whether the result alone is returned.
    Returns: The function of the matrices; if not ``disp`` also an estimate of its relative error:
        the rounding error times the condition of the basis.
    Example: print(fg.scipy.linalg.funm(np.diag([1.0, 3.0]), lambda x: x * x).real)
        -> [[1. 0.]
            [0. 9.]]
    """

    @custom_jvp
    def value(a: Any) -> Any:
        w, v = linalg.eig(a)
        return _in_basis(v, as_row(func(w)) * identity_like(v))

    @value.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (a,), (ta,) = primals, tangents
        w, v = linalg.eig(a)
        inner = linalg.solve(v, linalg.matmul(as_complex(ta), v))
        return value(a), _in_basis(v, _slopes(w, func) * inner)

    a = square(A, "funm")
    out = value(as_complex(a))
    if disp:
        return out
    eps = np.finfo(real_dtype(aval_of(out).dtype)).eps
    return out, eps * linalg.cond(linalg.eig(a)[1])


def _in_basis(v: Any, x: Any) -> Any:
    """``v x v^-1``."""
    transposed = linalg.matrix_transpose(linalg.matmul(v, x))
    return linalg.matrix_transpose(linalg.solve(linalg.matrix_transpose(v), transposed))


def _slopes(w: Any, func: Callable[[Any], Any]) -> Any:
    """``(f(w_j) - f(w_i)) / (w_j - w_i)``, and the derivative where both are equal."""
    inverse = primitives.inverse_gaps(w)
    values = func(w)
    quotients = (as_row(values) - as_column(values)) * inverse
    middle = (as_row(w) + as_column(w)) * aval_of(w).dtype.type(0.5)
    _, slopes = jvp(func, (middle,), (np.ones(shape_of(middle), aval_of(w).dtype),))
    return selecting.where(inverse == 0, slopes, quotients)
