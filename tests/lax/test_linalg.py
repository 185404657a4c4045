"""lax.linalg: values by NumPy and SciPy, results as JAX orders them, derivatives, batches."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.linalg as reference

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, MissingRuleError, ShapeError
from funcgrad.lax import linalg
from funcgrad.testing import check_grads
from tests import surface

RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 3)) * 0.4 + np.diag([1.0, 2.5, 4.0])
TALL = RNG.normal(size=(4, 2))
B = RNG.normal(size=(3, 2))
POSITIVE = A @ A.T + np.eye(3)
COMPLEX = POSITIVE + 0.3j * (A - A.T)
PACKED, TAUS = (np.ascontiguousarray(x.T) for x in np.linalg.qr(TALL, "raw"))


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, tolerance, tolerance)


def test_names_are_those_of_jax():
    theirs = json.loads(surface.RECORDED.read_text(encoding="utf-8"))["lax.linalg"]
    kinds = ("Algorithm", "Implementation", "_p")
    functions = {n for n in theirs if not n.endswith(kinds)} - {"qdwh"}
    assert functions <= set(linalg.__all__)
    assert not list(surface.holes({"lax.linalg": {n: theirs[n] for n in functions}}))


@pytest.mark.parametrize("a", [POSITIVE, COMPLEX], ids=["real", "complex"])
def test_hermitian_factorizations(a):
    close(linalg.cholesky(a), np.linalg.cholesky(a))
    unequal = a + np.triu(np.ones((3, 3)), 1)
    close(linalg.cholesky(unequal, symmetrize_input=False), np.linalg.cholesky(a))
    half = (unequal + unequal.conj().T) / 2
    close(linalg.cholesky(unequal), np.linalg.cholesky(half))
    v, w = linalg.eigh(unequal, symmetrize_input=False)
    close(a @ v, v * w)
    v, w = linalg.eigh(unequal)
    close(half @ v, v * w)
    some, few = linalg.eigh(unequal, subset_by_index=(1, 3))
    close(some, v[:, 1:])
    close(few, w[1:])
    _, upper = linalg.eigh(np.triu(a), lower=False, symmetrize_input=False)
    close(upper, np.linalg.eigvalsh(a))


def test_update_of_a_cholesky_factor():
    r = np.linalg.cholesky(POSITIVE).T
    found = linalg.cholesky_update(r, B[:, 0])
    close(found, np.linalg.cholesky(POSITIVE + np.outer(B[:, 0], B[:, 0])).T)
    check_grads(linalg.cholesky_update, (r, B[:, 0]), order=2)


@pytest.mark.parametrize("a", [A, COMPLEX], ids=["real", "complex"])
def test_general_factorizations(a):
    w, u, v = linalg.eig(a)
    close(a @ v, v * w)
    close(u.conj().T @ a, w[:, None] * u.conj().T)
    assert [len(linalg.eig(a, compute_left_eigenvectors=x)) for x in (True, False)] == [3, 2]
    (alone,) = linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    close(np.sort_complex(alone), np.sort_complex(w))
    t, z = linalg.schur(a)
    close(z @ t @ z.conj().T, a)
    close(linalg.schur(a, compute_schur_vectors=False), t)
    packed, pivots, order = linalg.lu(a)
    close(a[order], (np.tril(packed, -1) + np.eye(3)) @ np.triu(packed))
    np.testing.assert_array_equal(linalg.lu_pivots_to_permutation(pivots, 3), order)
    np.testing.assert_array_equal(
        linalg.lu_pivots_to_permutation(pivots, 5), np.concatenate([order, [3, 4]])
    )
    u, s, vh = linalg.svd(a)
    close(u * s @ vh, a)
    close(linalg.svd(a, compute_uv=False), s)
    u, few, vh = linalg.svd(a, full_matrices=False, subset_by_index=(0, 2))
    assert [u.shape, few.shape, vh.shape] == [(3, 2), (2,), (2, 3)]
    close(linalg.svd(a, full_matrices=False, compute_uv=False, subset_by_index=(1, 2)), s[1:2])


@pytest.mark.parametrize("full", [False, True])
def test_qr(full):
    q, r = linalg.qr(TALL, full_matrices=full)
    close(q @ r, TALL)
    assert q.shape == ((4, 4) if full else (4, 2))
    q, r, order = linalg.qr(TALL, pivoting=True, full_matrices=full)
    expected = reference.qr(TALL, pivoting=True, mode="full" if full else "economic")
    for x, y in zip((q, r, order), expected, strict=True):
        close(x, y)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_products_of_reflections(dtype):
    a = (TALL + (1j * TALL[::-1] if dtype == np.complex128 else 0)).astype(dtype)
    h, taus = np.linalg.qr(a, "raw")
    q, _ = np.linalg.qr(a, "complete")
    close(linalg.householder_product(h.T, taus), q[:, :2])
    c = RNG.normal(size=(4, 3)).astype(dtype)
    close(linalg.ormqr(h.T, taus, c), q @ c)
    close(linalg.ormqr(h.T, taus, c, transpose=True), q.conj().T @ c)
    close(linalg.ormqr(h.T, taus, c.T, left=False), c.T @ q)
    close(linalg.ormqr(h.T, taus, c.T, left=False, transpose=True), c.T @ q.conj().T)


def test_reflections_that_change_nothing():
    close(linalg.householder_product(PACKED, 0 * TAUS), np.eye(4, 2))
    check_grads(linalg.householder_product, (PACKED, 0 * TAUS), order=1)


def test_packed_forms():
    packed, taus = linalg.hessenberg(A)
    h, q = reference.hessenberg(A, calc_q=True)
    close(np.triu(packed, -1), h)
    close(linalg.householder_product(packed[1:, :2], taus), q[1:, 1:])
    packed, d, e, taus = linalg.tridiagonal(POSITIVE)
    close(reference.eigvalsh_tridiagonal(d, e), np.linalg.eigvalsh(POSITIVE))
    close(np.diagonal(packed), d)
    _, d, e, _ = linalg.tridiagonal(np.triu(POSITIVE), lower=False)
    close(reference.eigvalsh_tridiagonal(d, e), np.linalg.eigvalsh(POSITIVE))


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("conjugate", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_solve(left, lower, turned, conjugate, unit):
    a, b = COMPLEX, (B if left else B.T).astype(complex)
    kept = np.tril(a) if lower else np.triu(a)
    if unit:
        kept = kept - np.diag(np.diagonal(a)) + np.eye(3)
    kept = kept.conj() if conjugate else kept
    kept = kept.T if turned else kept
    x = linalg.triangular_solve(
        a, b, left_side=left, lower=lower, transpose_a=turned, conjugate_a=conjugate,
        unit_diagonal=unit,
    )  # fmt: skip
    close(kept @ x if left else x @ kept, b)


def test_systems_of_vectors_and_diagonals():
    x = linalg.triangular_solve(POSITIVE, B[:, 0], left_side=True, lower=True)
    close(np.tril(POSITIVE) @ x, B[:, 0])
    dl, d, du = np.array([9.0, 1.0, 0.5]), np.array([4.0, 5.0, 6.0]), np.array([0.3, 0.2, 9.0])
    whole = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
    close(whole @ linalg.tridiagonal_solve(dl, d, du, B), B)
    close(linalg.symmetric_product(B, POSITIVE, alpha=2.0, beta=3.0), 2 * B @ B.T + 3 * POSITIVE)
    found = linalg.symmetric_product(B, A, beta=1.0, symmetrize_output=True)
    close(found, found.T)
    close(np.tril(found), np.tril(B @ B.T + A))


DIFFERENTIABLE = {
    "cholesky": lambda: (linalg.cholesky, (POSITIVE,)),
    "eigh": lambda: (lambda a: linalg.eigh(a)[1], (POSITIVE,)),
    "eig": lambda: (lambda a: linalg.eig(a)[0].real, (A,)),
    "schur": lambda: (lambda a: linalg.schur(a)[0], (A,)),
    "lu": lambda: (lambda a: linalg.lu(a)[0], (A,)),
    "qr": lambda: (lambda a: linalg.qr(a, pivoting=True, full_matrices=False)[:2], (TALL,)),
    "svd": lambda: (lambda a: linalg.svd(a, full_matrices=False)[1], (TALL,)),
    "householder_product": lambda: (linalg.householder_product, (PACKED, TAUS)),
    "ormqr": lambda: (linalg.ormqr, (PACKED, TAUS, np.ones((4, 1)))),
    "triangular_solve": lambda: (lambda a, b: linalg.triangular_solve(a, b), (A, B.T)),
    "tridiagonal_solve": lambda: (linalg.tridiagonal_solve, (0.1 * B[:, 0], A[0] + 4, A[1], B)),
    "symmetric_product": lambda: (linalg.symmetric_product, (B, POSITIVE)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_and_batches(name):
    function, args = DIFFERENTIABLE[name]()
    check_grads(function, args, order=1)
    stacks = [np.stack([x, 1.1 * x]) for x in args]
    mapped = fg.tree.leaves(fg.vmap(function)(*stacks))
    for i in (0, 1):
        for x, y in zip(mapped, fg.tree.leaves(function(*(s[i] for s in stacks))), strict=True):
            close(x[i], y)


@pytest.mark.parametrize("name", ["ormqr", "tridiagonal_solve"])
def test_compiled(name):
    function, args = DIFFERENTIABLE[name]()
    close(fg.jit(function)(*args), function(*args))


def test_perturbed_pivots():
    # Rows 0 and 1 are equal, where the second system is regular, and the third one zero.
    dl, d = (
        np.array([[0, 1.0, 2], [0, 1, 2], [0, 0, 0]]),
        np.array([[1.0, 3, 4], [1, 4, 4], [0] * 3]),
    )
    du, b = np.array([[3.0, 0, 0], [3, 1, 0], [0, 0, 0]]), np.ones((3, 3, 1))

    def solve(*args):
        return linalg.tridiagonal_solve(*args, perturb_singular=True)

    found = solve(dl, d, du, b)
    np.testing.assert_allclose(fg.jit(solve)(dl, d, du, b), found, rtol=1e-10)
    close(found[1], linalg.tridiagonal_solve(dl[1], d[1], du[1], b[1]))
    assert np.isfinite(found).all()
    assert abs(found[[0, 2]]).max() > 1e6
    check_grads(solve, (dl[1], d[1], du[1], b[1]), order=1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: linalg.cholesky(TALL), ShapeError, "needs square matrices, got f64[4,2]"),
        (lambda: linalg.cholesky(np.eye(2, dtype=int)), DtypeError, "needs a float"),
        (lambda: linalg.triangular_solve(A, B.astype(np.float32)), DtypeError, "of one dtype"),
        (lambda: linalg.ormqr(PACKED, np.ones(3), TALL), ShapeError, "up to n factors"),
        (lambda: linalg.eigh(A, subset_by_index=(0, 4)), ArgumentError, "subset_by_index"),
        (lambda: linalg.svd(TALL, subset_by_index=(0, 1)), ArgumentError, "full_matrices"),
        (lambda: linalg.tridiagonal_solve(A[0], A[0], A[1][:2], B), ShapeError, "do not fit"),
        (lambda: linalg.lu_pivots_to_permutation(np.arange(3), 2), ShapeError, "exchanged"),
        (lambda: fg.grad(lambda a: linalg.hessenberg(a)[0].sum())(A), MissingRuleError, "hessen"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error) as info:
        call()
    assert words in str(info.value)
