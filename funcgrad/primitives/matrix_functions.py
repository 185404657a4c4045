"""Functions of square matrices that are analytic, and Sylvester's equation.

For every analytic ``f`` the derivative of ``f(A)`` in the direction ``E``, Fréchet's, is a block of
``f`` of a matrix twice as large,

    f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]]

(N. J. Higham, "Functions of Matrices", SIAM 2008, theorem 3.6), and so are the derivatives of ``L``
with respect to ``A``. They exist for repeated eigenvalues and for matrices without a basis of
eigenvectors as well. SciPy evaluates everything here, inside compiled programs too, but for
Sylvester's equation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Value
from funcgrad.dtypes import is_complex, real_dtype
from funcgrad.lowering import Array, Form, LapackCall, Ref, Routine
from funcgrad.primitives.elementwise import Convert, add, conj, div, mul, neg, sub
from funcgrad.primitives.families import Recipe, instantiate, shape_of, zeros_like_aval
from funcgrad.primitives.matrices import (
    INT32,
    ByLapack,
    ByMatrix,
    block,
    by_column,
    by_columns,
    check_square,
    matmul,
    matrix_transpose,
    part,
    product,
    scipy_linalg,
)
from funcgrad.primitives.schur import Schur
from funcgrad.primitives.shape import BroadcastTo, Reshape, Transpose


class Sylvester(ByMatrix):
    """``x`` with ``a x + x b = c``; ``a`` is ``(..., m, m)``, ``b`` ``(..., n, n)``."""

    signature = "mm,nn,mn->mn"

    def one(self, *matrices: Any) -> Any:
        a, b, c = matrices
        if np.array_equal(a, b) and c.size:
            return [_solved_by_one_form(a, c)]
        return [scipy_linalg().solve_sylvester(a, b, c) if c.size else c]

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        a, b, c = inputs
        dot, transposition = product(len(a.aval.shape)), Transpose(by_columns(a.aval))

        def adjoint_of(x: Any) -> Any:
            x = recipe(transposition, x)
            return recipe(conj, x) if is_complex(x.aval.dtype) else x

        # With a = u r u^H and b^H = v s v^H: r y + y s^H = u^H c v, and x = u y v^H.
        (r, u, _), (s, v, _) = recipe(Schur(), a), recipe(Schur(), adjoint_of(b))
        y, size = recipe(_Trsyl(), r, s, recipe(dot, recipe(dot, adjoint_of(u), c), v))
        inverse = recipe(Convert(y.aval.dtype), recipe(div, size.aval.dtype.type(1), size))
        column = recipe(Reshape((*size.aval.shape, 1, 1)), inverse)
        wide = recipe(BroadcastTo(y.aval.shape), column)
        x = recipe(dot, recipe(dot, u, y), adjoint_of(v))
        return [recipe(mul, x, wide)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        # a dx + dx b = dc - da x - x db
        (a, b, c), (ta, tb, tc) = primals, tangents
        out = self.bind(a, b, c)
        terms = [] if tc is None else [tc]
        if ta is not None:
            terms.append(neg.bind(matmul(ta, out)))
        if tb is not None:
            terms.append(neg.bind(matmul(out, tb)))
        total = terms[0]
        for term in terms[1:]:
            total = add.bind(total, term)
        return out, self.bind(a, b, total)

    def transpose(self, ct: Any, a: Any, b: Any, c: Any) -> Sequence[Any]:
        return None, None, self.bind(matrix_transpose(a), matrix_transpose(b), ct)


class _Trsyl(ByLapack):
    """``y`` and a number ``k`` with ``r y + y s^H = k c``, for ``r`` and ``s`` as in `Schur`."""

    signature = "mm,nn,mn->mn,"
    kinds = "ar"

    def one(self, *matrices: Any) -> Any:
        (trsyl,) = scipy_linalg().get_lapack_funcs(("trsyl",), matrices)
        return list(trsyl(*matrices, tranb="C")[:2])

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        c = avals[-1]
        *stack, m, n = c.shape
        arrays = (
            *(Array(x.shape, x.dtype) for x in avals),
            *(by_column(x, k) for k, x in enumerate(avals)),
            Array(tuple(stack), real_dtype(c.dtype)),
            Array(tuple(stack), INT32),
        )
        words = "N", "C", 1, m, n, Ref(3), m, Ref(4), n, Ref(5), m, Ref(6), Ref(7)
        return Routine(arrays, (5, 6), (LapackCall("trsyl", c.dtype, words),), len(stack))


def _solved_by_one_form(a: Any, c: Any) -> Any:
    """``x`` with ``a x + x a = c``: both sides have one Schur form."""
    module = scipy_linalg()
    t, z = module.schur(a, "complex" if is_complex(a.dtype) else "real")
    rotated = z.conj().T @ c @ z
    (trsyl,) = module.get_lapack_funcs(("trsyl",), (t, rotated))
    y, scale, _ = trsyl(t, t, rotated)
    return z @ (y / scale) @ z.conj().T


class MatrixFunction(ByMatrix):
    """An analytic function of matrices of floating or complex numbers."""

    function: str
    exponent: float | None = None

    signature = "nn->nn"

    def abstract_eval(self, *avals: ShapedArray) -> Any:
        check_square(self.function, avals[0])
        return super().abstract_eval(*avals)

    def one(self, *matrices: Any) -> Any:
        module, (a,) = scipy_linalg(), matrices
        if self.function != "expm":
            a = a.astype(np.complex128, copy=False)
        if self.function == "power":
            return [module.fractional_matrix_power(a, self.exponent)]
        return [getattr(module, self.function)(a)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a,), (ta,) = primals, tangents
        return self.bind(a), Frechet(self.function, self.exponent).bind(a, ta)


class Frechet(ByMatrix):
    """``L(a, e)``, the derivative of `MatrixFunction` at ``a`` in the direction ``e``."""

    function: str
    exponent: float | None = None

    signature = "nn,nn->nn"

    def one(self, *matrices: Any) -> Any:
        a, e = matrices
        size, length = (float(np.linalg.norm(x, 1)) for x in (a, e))
        if not length:
            return [e]
        # A direction as long as the matrix disturbs the evaluation least.
        factor = (size or 1.0) / length
        n = len(a)
        whole = np.zeros((2 * n, 2 * n), a.dtype)
        whole[:n, :n] = whole[n:, n:] = a
        whole[:n, n:] = e * factor
        (found,) = MatrixFunction(self.function, self.exponent).one(whole)
        return [found[:n, n:] / factor]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """The second derivative is symmetric: in the directions ``e`` and ``da`` as a block too."""
        (a, e), (ta, te) = primals, tangents
        out = self.bind(a, e)
        moved = None if te is None else self.bind(a, te)
        if ta is not None:
            zero = zeros_like_aval(aval_of(a))
            both = self.bind(block(a, e, zero, a), block(ta, zero, zero, ta))
            n = shape_of(a)[-1]
            rotated = part(both, slice(n), slice(n, 2 * n))
            moved = rotated if moved is None else add.bind(moved, rotated)
        return out, instantiate(moved, out)

    def transpose(self, ct: Any, a: Any, e: Any) -> Sequence[Any]:
        return None, self.bind(matrix_transpose(a), ct)


class Sqrtm(ByMatrix):
    """The principal square root of complex matrices."""

    signature = "nn->nn"

    def one(self, *matrices: Any) -> Any:
        (a,) = matrices
        # The Schur form of real matrices is found in a third of the time.
        return [scipy_linalg().sqrtm(a if a.imag.any() else np.ascontiguousarray(a.real))]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        # S S = A:  S dS + dS S = dA
        out = self.bind(*primals)
        return out, Sylvester().bind(out, out, tangents[0])


class Signm(ByMatrix):
    """The sign of matrices: eigenvalues become 1 or -1 by the sign of their real parts."""

    signature = "nn->nn"

    def one(self, *matrices: Any) -> Any:
        return [scipy_linalg().signm(matrices[0])]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """With ``N = S A``: ``N dS + dS N = dA - S dA S``.

        Source: C. Kenney and A. J. Laub, SIAM J. Matrix Anal. Appl. 12 (1991) 273.
        """
        (a,), (ta,) = primals, tangents
        out = self.bind(a)
        size = matmul(out, a)
        return out, Sylvester().bind(size, size, sub.bind(ta, matmul(out, matmul(ta, out))))
