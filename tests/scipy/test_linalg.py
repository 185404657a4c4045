"""scipy.linalg against SciPy, matrix by matrix, and its derivatives and batches."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
import scipy.linalg as reference

import funcgrad as fg
from funcgrad.errors import (
    ArgumentError,
    ConcretizationTypeError,
    MissingRuleError,
    ShapeError,
)
from funcgrad.scipy import linalg
from funcgrad.testing import check_grads
from tests import surface

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def positive(n, dtype=np.float64):
    a = random((n, n), dtype)
    return (a @ np.conj(a.T) + n * np.eye(n)).astype(dtype)


def close(found, expected):
    assert found.dtype == expected.dtype
    eps = np.finfo(expected.dtype).eps
    np.testing.assert_allclose(found, expected, 1000 * eps, 1000 * eps)


NAMES = [name for name in linalg.__all__ if inspect.isfunction(getattr(linalg, name))]
JAX = json.loads(surface.RECORDED.read_text(encoding="utf-8"))["scipy.linalg"]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_have_the_names_and_defaults_of_scipy(name):
    ours = inspect.signature(getattr(linalg, name)).parameters
    theirs = inspect.signature(getattr(reference, name)).parameters
    if any(q.kind in (q.VAR_POSITIONAL, q.VAR_KEYWORD) for q in ours.values()):
        return
    assert set(ours) <= set(theirs) | set(JAX.get(name) or ())
    for parameter in set(ours) & set(theirs) - {"blocksize"}:
        default = theirs[parameter].default
        if type(default) is object:  # SciPy notices whether a deprecated argument is given
            continue
        assert ours[parameter].default == default, parameter


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("unit", [False, True])
def test_solve_triangular(dtype, lower, trans, unit):
    a, b = random((4, 4), dtype) + 3 * np.eye(4, dtype=dtype), random((4, 2), dtype, 1)
    found = linalg.solve_triangular(a, b, trans, lower, unit)
    close(found, reference.solve_triangular(a, b, trans, lower, unit))
    close(linalg.solve_triangular(a, b[:, 0], trans, lower, unit), found[:, 0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_factors_and_solutions(dtype, lower):
    a, b = positive(4, dtype), random(4, dtype, 1)
    close(linalg.cholesky(a, lower), reference.cholesky(a, lower))
    triangle = np.tril(a) if lower else np.triu(a)
    close(linalg.cholesky(triangle, lower), reference.cholesky(a, lower))
    factor = linalg.cho_factor(a, lower)
    assert factor[1] is lower
    close(linalg.cho_solve(factor, b), reference.cho_solve(reference.cho_factor(a, lower), b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_factors_and_solutions(dtype, trans):
    a, b = random((5, 5), dtype), random((5, 2), dtype, 1)
    ours, theirs = linalg.lu_factor(a), reference.lu_factor(a)
    close(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])
    close(linalg.lu_solve(ours, b, trans), reference.lu_solve(theirs, b, trans))
    close(linalg.lu_solve(ours, b[:, 0], trans), reference.lu_solve(theirs, b[:, 0], trans))


@pytest.mark.parametrize("structure", [None, "gen", "sym", "her", "pos", "positive definite"])
@pytest.mark.parametrize("transposed", [False, True])
def test_solve(structure, transposed):
    a, b = positive(4), random((4, 2), seed=1)
    found = linalg.solve(a, b, assume_a=structure, transposed=transposed)
    close(found, reference.solve(a, b, assume_a=structure, transposed=transposed))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_solve_of_triangles(lower, transposed):
    a, b = random((4, 4)) + 3 * np.eye(4), random(4, seed=1)
    structure = "lower triangular" if lower else "upper triangular"
    matrix = (np.tril if lower else np.triu)(a)
    expected = np.linalg.solve(matrix.T if transposed else matrix, b)
    close(linalg.solve(a, b, assume_a=structure, transposed=transposed), expected)
    expected = np.linalg.solve(positive(4), b)
    triangle = (np.tril if lower else np.triu)(positive(4))
    close(linalg.solve(triangle, b, lower, assume_a="pos"), expected)
    turned = linalg.solve(triangle, b, lower, assume_a="pos", transposed=True)
    close(turned, expected)


def test_eigh_reads_one_triangle():
    a = positive(4)
    w, v = linalg.eigh(np.triu(a), lower=False)
    close(w, reference.eigvalsh(a))
    close(v * w @ v.T, a)
    close(linalg.eigvalsh(np.tril(a)), w)
    close(linalg.eigh(np.tril(a), eigvals_only=True), w)


def test_factorizations_rebuild_their_matrix():
    a = random((5, 3))
    for mode in ("full", "economic"):
        q, r = linalg.qr(a, mode=mode)
        assert [q.shape, r.shape] == [x.shape for x in reference.qr(a, mode=mode)]
        close(q @ r, a)
    (r,) = linalg.qr(a, mode="r")
    close(np.abs(r), np.abs(reference.qr(a, mode="r")[0]))
    u, values, vh = linalg.svd(a, full_matrices=False)
    close(u * values @ vh, a)
    close(linalg.svd(a, compute_uv=False), reference.svdvals(a))
    close(linalg.svdvals(a), reference.svdvals(a))


def test_inverse_and_determinant():
    a = random((3, 3))
    close(linalg.inv(a), reference.inv(a))
    close(np.asarray(linalg.det(a)), np.asarray(reference.det(a)))


@pytest.mark.parametrize(
    "blocks", [(), (1.0,), ([1, 2], [[3], [4]]), (np.ones((2, 0)), np.eye(2)), (np.eye(2), 2.0)]
)
def test_block_diag(blocks):
    found, expected = linalg.block_diag(*blocks), reference.block_diag(*blocks)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_toeplitz():
    c, r = random(3, np.complex128), random(4, np.complex128, 1)
    np.testing.assert_array_equal(linalg.toeplitz(c), reference.toeplitz(c))
    np.testing.assert_array_equal(linalg.toeplitz(c, r), reference.toeplitz(c, r))


def slid(c, r):
    """A matrix that is constant along diagonals, by its definition."""
    return np.array(
        [[c[i - j] if i >= j else r[j - i] for j in range(len(r))] for i in range(len(c))]
    )


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.int32])
@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ((2, 3), None),
        ((2, 3), (4,)),
        ((3,), (2, 4)),
        ((5, 1, 3), (2, 3)),
        ((1,), (1, 1)),
        ((), None),
    ],
)
def test_stacks_of_toeplitz_matrices(columns, rows, dtype):
    factor = 1j if dtype is np.complex128 else 1
    c = (factor * (np.arange(np.prod(columns)) + 1)).astype(dtype).reshape(columns)
    r = None if rows is None else (np.arange(np.prod(rows)) - 20).reshape(rows).astype(dtype)
    cs, rs = np.atleast_1d(c), np.conj(np.atleast_1d(c)) if r is None else r
    lead = np.broadcast_shapes(cs.shape[:-1], rs.shape[:-1])
    cs, rs = np.broadcast_to(cs, (*lead, cs.shape[-1])), np.broadcast_to(rs, (*lead, rs.shape[-1]))
    expected = np.empty((*lead, cs.shape[-1], rs.shape[-1]), dtype)
    for place in np.ndindex(lead):
        expected[place] = slid(cs[place], rs[place])
    for transform in (lambda f: f, fg.jit):
        got = transform(lambda c: linalg.toeplitz(c, r))(c)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)


SYMMETRIC = positive(3)
FUNCTIONS = {
    "solve_triangular": lambda a: linalg.solve_triangular(a, a[0], trans=1, lower=True),
    "cholesky": linalg.cholesky,
    "cho_solve": lambda a: linalg.cho_solve(linalg.cho_factor(a), a[0]),
    "lu_solve": lambda a: linalg.lu_solve(linalg.lu_factor(a), a[0]),
    "lu_solve transposed": lambda a: linalg.lu_solve(linalg.lu_factor(a), a[0], trans=1),
    "lu_factor": lambda a: linalg.lu_factor(a)[0],
    "solve": lambda a: linalg.solve(a, a[0], assume_a="pos"),
    "eigh": lambda a: linalg.eigh(a)[1] ** 2,
    "qr": lambda a: linalg.qr(a)[1],
    "block_diag": lambda a: linalg.block_diag(a, a[0], 2.0) ** 2,
    "toeplitz": lambda a: linalg.toeplitz(a[0], a[1]) ** 2,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    check_grads(FUNCTIONS[name], (SYMMETRIC,), order=2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches_and_compiled(name):
    function, stack = FUNCTIONS[name], np.stack([SYMMETRIC, SYMMETRIC[::-1, ::-1] + np.eye(3)])
    expected = np.stack([function(a) for a in stack])
    np.testing.assert_allclose(fg.jit(fg.vmap(function))(stack), expected, 1e-12, 1e-12)


def test_stacks_of_systems():
    a = np.stack([SYMMETRIC, SYMMETRIC + np.eye(3)])
    b = random((3, 2), seed=1)
    expected = np.linalg.solve(a, b)
    close(linalg.lu_solve(linalg.lu_factor(a), b), expected)
    close(linalg.cho_solve(linalg.cho_factor(a), b), expected)
    one = linalg.lu_factor(SYMMETRIC)
    close(linalg.lu_solve(one, np.stack([b, 2 * b])), np.linalg.solve(SYMMETRIC, [b, 2 * b]))


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda: linalg.solve_triangular(SYMMETRIC, np.ones(3), trans=3), ArgumentError, "trans"),
        (lambda: linalg.solve_triangular(SYMMETRIC, np.ones(4)), ShapeError, "right-hand side"),
        (lambda: linalg.lu_solve((SYMMETRIC, [0, 1, 2]), np.ones(3), 3), ArgumentError, "trans"),
        (lambda: linalg.solve(SYMMETRIC, np.ones(3), assume_a="x"), ArgumentError, "assume_a"),
        (lambda: linalg.qr(SYMMETRIC, mode="thin"), ArgumentError, "economic"),
        (lambda: linalg.schur(SYMMETRIC, "x"), ArgumentError, "output must be one of 'real'"),
        (lambda: linalg.expm(np.ones((2, 3))), np.linalg.LinAlgError, "expm needs square"),
        (lambda: linalg.expm_frechet(np.eye(2), np.eye(3)), ShapeError, "of one shape"),
        (lambda: fg.jit(linalg.orth)(SYMMETRIC), ConcretizationTypeError, "concrete"),
        (
            lambda: fg.jit(lambda x: linalg.hilbert(x))(3),
            ConcretizationTypeError,
            "scipy.linalg.hilbert is SciPy's own function and needs known values",
        ),
        (lambda: linalg.solve_banded((1, 1), SYMMETRIC, np.ones(2)), ShapeError, "diagonals"),
        (lambda: linalg.solve_toeplitz(np.ones(3), np.ones(2)), ShapeError, "square system"),
        (lambda: linalg.solve_circulant(np.ones(2), np.ones(2)), np.linalg.LinAlgError, "near"),
        (lambda: linalg.eig(SYMMETRIC, homogeneous_eigvals=True), ArgumentError, "qz"),
        (lambda: linalg.eigh(SYMMETRIC, subset_by_index=[0, 3]), ValueError, "3 eigenvalues"),
        (lambda: fg.grad(lambda a: linalg.qz(a, a)[0].sum())(SYMMETRIC), MissingRuleError, "schur"),
        (lambda: fg.jit(linalg.cdf2rdf)(np.ones(1), np.eye(1)), ArgumentError, "cdf2rdf"),
    ],
)
def test_messages(function, error, words):
    with pytest.raises(error) as info:
        function()
    assert words in str(info.value)
