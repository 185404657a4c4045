"""Linear algebra: factors rebuild their matrix, conventions at equal eigenvalues, messages."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg

import funcgrad as fg
from funcgrad.core.avals import aval_of
from funcgrad.errors import DtypeError, MissingRuleError, ShapeError
from funcgrad.primitives.linalg import (
    Cholesky,
    Cofactors,
    Det,
    Eig,
    Eigh,
    Eigvalsh,
    FactoredSolve,
    Inv,
    LuFactor,
    Qr,
    SingularValues,
    Slogdet,
    Solve,
    Svd,
    TriangularSolve,
)

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(x.swapaxes(-1, -2))


def close(found, expected, scale=100.0):
    eps = np.finfo(np.asarray(expected).dtype).eps
    np.testing.assert_allclose(found, expected, scale * eps, scale * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3), (0, 3), (3, 0)])
def test_lu_factors_rebuild_the_permuted_matrix(dtype, shape):
    a = random(shape, dtype)
    packed, pivots, permutation = LuFactor().bind(a)
    k = min(shape[-2:])
    left = np.tril(packed[..., :k], -1) + np.eye(shape[-2], k, dtype=dtype)
    right = np.triu(packed[..., :k, :])
    close(left @ right, np.take_along_axis(a, permutation[..., None], -2))
    assert pivots.dtype == permutation.dtype == np.int32
    if a.ndim == 2 and k and shape[0] == shape[1]:
        np.testing.assert_array_equal(pivots, scipy.linalg.lu_factor(a)[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_factored_solve_solves(dtype, transposed):
    a, b = random((2, 3, 3), dtype), random((2, 3, 2), dtype, 1)
    lu, pivots, _ = LuFactor().bind(a)
    x = FactoredSolve(transposed).bind(a, lu, pivots, b)
    close((a.swapaxes(-1, -2) if transposed else a) @ x, b, 1000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("stack", [(), (2,)])
def test_triangular_solve_reads_one_triangle(dtype, n, stack):
    a = random((*stack, n, n), dtype) / n + 2 * np.eye(n, dtype=dtype)
    b = random((*stack, n, 2), dtype, 1)
    garbage = np.triu(np.full((n, n), np.nan), 1).astype(dtype)
    close(np.tril(a) @ TriangularSolve(True).bind(np.tril(a) + garbage, b), b, 1000)
    unit = np.triu(a, 1) + np.eye(n, dtype=dtype)
    close(unit @ TriangularSolve(False, False, True).bind(a, b), b, 1000)


def test_inverses_of_triangles_are_triangles():
    a = np.tril(random((6, 4, 4)))  # pivots would come from below the diagonal
    eye = np.broadcast_to(np.eye(4), a.shape)
    assert not np.triu(TriangularSolve(True).bind(a, eye), 1).any()
    upper = a.swapaxes(-1, -2)
    assert not np.tril(TriangularSolve(False).bind(upper, eye), -1).any()
    assert not np.tril(TriangularSolve(True, True).bind(a, eye), -1).any()


def test_a_batch_of_right_sides_is_one_system():
    a, b = random((3, 3)), random((5, 3, 2), seed=1)
    out, dim = Solve().batch([a, b], [None, 0])
    assert dim == 0
    close(out, np.linalg.solve(a, b), 1000)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_equal_eigenvalues_have_finite_derivatives(dtype):
    """``V f(w) V^H`` does not depend on the choice of V: with f(w) = w its derivative is dA."""
    a = np.diag([1.0, 1.0, 2.0]).astype(dtype)
    t = random((3, 3), dtype)
    t = t + adjoint(t)
    (w, v), (dw, dv) = Eigh().jvp([a], [t])
    assert np.isfinite(dv).all()
    # A perturbation inside of the space of equal eigenvalues splits them: only its trace is smooth.
    total = dv @ np.diag(w) @ adjoint(v)
    rebuilt = total + adjoint(total) + v @ np.diag(dw) @ adjoint(v)
    outside = ~np.isin(np.arange(9).reshape(3, 3), [1, 3])
    close(rebuilt[outside], t[outside], 1000)
    close(dw[:2].sum(), np.trace(t[:2, :2]).real, 1000)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_functions_of_spaces_are_differentiated_through_equal_eigenvalues(dtype):
    """The projector on the upper eigenspace is smooth, whatever happens below."""
    a = np.diag([1.0, 1.0, 2.0]).astype(dtype)
    t = random((3, 3), dtype)
    t = t + adjoint(t)
    (_, v), (_, dv) = Eigh().jvp([a], [t])
    top, d_top = v[:, 2:], dv[:, 2:]
    found = d_top @ adjoint(top) + top @ adjoint(d_top)
    expected = np.zeros((3, 3), dtype)  # first-order perturbation theory, gap 1
    expected[:2, 2], expected[2, :2] = t[:2, 2], t[2, :2]
    close(found, expected, 1000)


def test_equal_and_zero_singular_values_have_finite_derivatives():
    for a in (np.eye(3), np.diag([1.0, 0.0, 0.0]), np.zeros((3, 2)), np.ones((2, 3))):
        outs, dots = Svd().jvp([a], [random(a.shape)])
        assert all(np.isfinite(x).all() for x in (*outs, *dots))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_cofactors_are_signed_minors(n):
    a = np.arange(n * n, dtype=float).reshape(n, n)  # singular from n = 3 on
    minors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)]
        for i in range(n)
    ]
    np.testing.assert_allclose(Cofactors().bind(a), minors, 1e-11, 1e-11)


def test_gradient_of_the_determinant_of_zero():
    out, found = Det().jvp([np.zeros((1, 1))], [np.ones((1, 1))])
    assert (out, found) == (0, 1)
    assert Det().jvp([np.zeros((3, 3))], [np.ones((3, 3))])[1] == 0


def test_sign_and_logarithm_of_a_complex_determinant():
    a, t = random((3, 3), np.complex128), random((3, 3), np.complex128, 1)
    (sign, size), (d_sign, d_size) = Slogdet().jvp([a], [t])
    det, d_det = Det().jvp([a], [t])
    close(d_sign * np.exp(size) + sign * np.exp(size) * d_size, d_det, 1e4)
    close(sign * np.exp(size), det)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors_keep_length_and_phase(dtype):
    a, t = random((4, 4), dtype), random((4, 4), dtype, 1)
    (w, v), (dw, dv) = Eig().jvp([a], [t])
    # A v = v w, differentiated; |v| = 1; the largest component stays real.
    close(a @ dv + t @ v, dv * w + v * dw, 2000)
    close(np.real(np.sum(np.conj(v) * dv, 0)), np.zeros(4, dw.real.dtype), 1000)
    largest = np.argmax(np.abs(v), 0)
    close(dv[largest, range(4)].imag, np.zeros(4, dw.real.dtype), 1000)


def test_only_the_lower_triangle_receives_a_gradient():
    a = np.array([[4.0, np.nan], [1.0, 3.0]])
    t = np.array([[0.0, 1.0], [0.0, 0.0]])
    for primitive in (Cholesky(), Eigvalsh()):
        out, found = primitive.jvp([np.where(np.isnan(a), 1.0, a)], [t])
        assert (found == 0).all()
        assert np.isfinite(out).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_factors_stay_factors_along_the_tangent(dtype, shape):
    a, t = random(shape, dtype), random(shape, dtype, 1)
    (q, r), (dq, dr) = Qr().jvp([a], [t])
    close(dq @ r + q @ dr, t, 1000)
    turning = adjoint(q) @ dq
    close(turning + adjoint(turning), np.zeros_like(turning), 1000)
    (u, s, vh), (du, ds, dvh) = Svd().jvp([a], [t])
    close((du * s) @ vh + (u * ds) @ vh + (u * s) @ dvh, t, 2000)


@pytest.mark.parametrize("primitive", [Solve(), Inv(), Cholesky()], ids=lambda p: p.name)
def test_singular_matrices_raise_as_in_numpy(primitive):
    args = [np.zeros((2, 2)), np.ones((2, 1))][: 2 if primitive == Solve() else 1]
    with pytest.raises(np.linalg.LinAlgError):
        primitive.bind(*args)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("n", [3, 40, 300])
@pytest.mark.parametrize("code", "fdFD")
def test_factors_of_indefinite_matrices_are_nan_if_asked(n, code):
    """Also where the pivot that is not positive is the last one, and 0."""
    rng, factor = np.random.default_rng(n), Cholesky(nan_if_indefinite=True)
    low = np.tril(rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if code in "FD" else 0))
    low[np.arange(n), np.arange(n)] = 1 + rng.random(n)
    good = (np.tril(low, -1) / n + np.diag(np.diag(low))).astype(code)
    good = good @ good.conj().T
    singular, negative, early = np.diag(np.r_[np.ones(n - 1), 0.0]), good.copy(), good.copy()
    negative[-1, -1], early[0, 0] = -1, -1
    matrices = np.stack([good, singular.astype(code), negative, early])
    for find in (factor.bind, fg.jit(factor.bind)):
        found = find(matrices)
        np.testing.assert_allclose(found[0] @ found[0].conj().T, good, atol=1e-4 * n)
        assert np.isnan(found[1:][:, np.tri(n, dtype=bool)]).all()
        assert (found[:, ~np.tri(n, dtype=bool)] == 0).all()


def test_factored_solve_of_a_singular_matrix_raises():
    a = np.ones((2, 2))
    lu, pivots, _ = LuFactor().bind(a)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        FactoredSolve().bind(a, lu, pivots, np.ones((2, 1)))


def test_messages():
    line, wide = aval_of(np.ones(3)), aval_of(np.ones((2, 3)))
    with pytest.raises(
        ShapeError, match=r"det needs a matrix or a stack of matrices, got f64\[3\]"
    ):
        Det().abstract_eval(line)
    with pytest.raises(ShapeError, match=r"inv needs square matrices .* got f64\[2,3\]"):
        Inv().abstract_eval(wide)
    with pytest.raises(DtypeError, match=r"svd needs a float or complex matrix, got i64\[2,2\]"):
        Svd().abstract_eval(aval_of(np.ones((2, 2), int)))
    with pytest.raises(ShapeError, match=r"solve: for matrices f64\[3,3\] the right-hand sides"):
        Solve().abstract_eval(aval_of(np.ones((3, 3))), line)


@pytest.mark.parametrize(
    ("primitive", "text"), [(Qr(True), "completion of Q"), (Svd(True), "completion of U")]
)
def test_completed_factors_have_no_derivative(primitive, text):
    a = np.ones((3, 2))
    with pytest.raises(MissingRuleError, match=rf"f64\[3,2\] with full matrices.*{text}"):
        primitive.jvp([a], [a])


def test_singular_values_are_numpys():
    a = random((2, 3, 4))
    close(SingularValues().bind(a), np.linalg.svd(a, compute_uv=False))


def test_scipy_is_imported_at_first_use():
    code = "import sys; import funcgrad.primitives.linalg; assert 'scipy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
