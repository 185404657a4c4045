"""`funcgrad.scipy.sparse` against dense matrices and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import funcgrad as fg
from funcgrad import errors
from funcgrad.primitives.sparse import SMALL
from funcgrad.scipy import sparse
from funcgrad.scipy.sparse import linalg

WRAPS = [lambda f: f, fg.jit]
IDS = ["eager", "jit"]
RNG = np.random.default_rng(0)
TALL = [*[0] * 30, *range(10)], [*range(30), *range(10)]
MATRICES: dict[str, Any] = {
    "diagonals": scipy.sparse.diags_array([RNG.normal(size=n) for n in (6, 7)], offsets=[-1, 0]),
    "csr": scipy.sparse.random_array((5, 8), density=0.4, rng=RNG).tocsr(),
    "csc of uneven rows": scipy.sparse.coo_array((np.ones(40), TALL), (30, 40)).tocsc(),
    "matrix": scipy.sparse.random(6, 6, density=0.5, format="csr", rng=RNG),
    "bsr": scipy.sparse.kron(scipy.sparse.eye_array(2), np.ones((2, 2))).tobsr(),
    "integers": scipy.sparse.coo_array(np.arange(6).reshape(2, 3)),
    "empty": scipy.sparse.csr_array((3, 4)),
}
SQUARE = (
    scipy.sparse.random_array((9, 9), density=0.3, rng=RNG) + 4 * scipy.sparse.eye_array(9)
).tocsr()
POSITIVE = (SQUARE @ SQUARE.T).tocsr()
RIGHT = RNG.normal(size=9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wrap", WRAPS, ids=IDS)
@pytest.mark.parametrize("name", MATRICES)
def test_products_as_they_are_written(name: str, wrap: Any) -> None:
    A = MATRICES[name]
    dense = A.toarray()
    rng = np.random.default_rng(1)
    m, n = A.shape
    x, columns, y, rows = (rng.normal(size=s) for s in (n, (n, 3), m, (2, m)))
    close = lambda found, expected: np.testing.assert_allclose(found, expected, 1e-12, 1e-13)  # noqa: E731
    pulled = wrap(fg.grad(lambda x: np.sum(y * np.sin(A @ x))))(x)
    close(pulled, dense.T @ (y * np.cos(dense @ x)))
    if wrap is fg.jit and name not in ("diagonals", "matrix"):
        return  # the layouts have laws of their own
    close(fg.jvp(wrap(lambda x: A @ x), (columns,), (columns,))[1], dense @ columns)
    close(fg.jvp(wrap(lambda x: A.tocsr().dot(x)), (x,), (x,))[0], dense @ x)
    close(wrap(lambda y: y @ A)(y), y @ dense)
    close(fg.jvp(wrap(lambda r: r @ A), (rows,), (rows,))[1], rows @ dense)
    close(fg.jvp(wrap(lambda y: A.T @ y), (y,), (y,))[1], y @ dense)
    close(wrap(fg.vmap(lambda x: A @ x))(columns.T), (dense @ columns).T)


def test_a_large_uneven_matrix_is_left_to_scipy() -> None:
    n = SMALL + 1
    A = scipy.sparse.coo_array((np.ones(n + 2), ([0] * n + [1, 2], [*range(n), 0, 1])), (3, n))
    x = np.linspace(0.0, 1.0, n)
    expected = A.T @ np.cos(A @ x)
    found = fg.jit(fg.grad(lambda x: np.sum(np.sin(A @ x))))(x)
    np.testing.assert_allclose(found, expected, 1e-12)


def test_dtypes_and_shapes() -> None:
    A = MATRICES["csr"].astype(np.float32)
    assert fg.jit(lambda x: A @ x)(np.ones(8, np.float32)).dtype == np.float32
    assert fg.jit(lambda x: A @ x)(np.ones(8)).dtype == np.float64
    assert fg.jit(lambda x: A @ x)(np.ones(8, np.complex64)).dtype == np.complex64
    with pytest.raises(errors.ShapeError, match=r"shape \(5, 8\) and f64\[7\] have no product"):
        fg.jit(lambda x: A @ x)(np.ones(7))
    with pytest.raises(errors.ShapeError, match=r"its transpose and f64\[8\]"):
        fg.jit(lambda x: x @ A)(np.ones(8))


# Matrices with traced entries.


def test_entries_have_derivatives() -> None:
    A = sparse.SparseArray.of(MATRICES["csr"])
    dense, x = A.toarray(), np.random.default_rng(2).normal(size=(8, 2))
    expected = (np.cos(dense @ x) @ x.T)[A.coords]
    for wrap in WRAPS:
        found = wrap(fg.grad(lambda A: np.sum(np.sin(A @ x))))(A)
        np.testing.assert_allclose(found.data, expected, 1e-12)
        several = np.stack([A.data, 2 * A.data])
        mapped = wrap(fg.vmap(lambda d: A.with_data(d) @ x))(several)
        np.testing.assert_allclose(mapped, np.stack([dense @ x, 2 * dense @ x]), 1e-12)


def test_sparse_arrays() -> None:
    theirs = MATRICES["csr"]
    A, dense = sparse.SparseArray.of(theirs), theirs.toarray()
    x = np.ones((8, 2))
    for found, expected in (
        (x.T @ A.T, x.T @ dense.T),
        ((A + 2 * A - A / 2).toarray(), 2.5 * dense),
        ((-A).T.toarray(), -dense.T),
        (A.sum(), dense.sum()),
        (A.sum(0), dense.sum(0)),
        (A.sum(1), dense.sum(1)),
        (A.diagonal(), np.diag(dense)),
        (A.to_scipy().toarray(), dense),
        (A.sampled(np.ones((5, 1)), np.ones((8, 1))).data, np.ones(A.nnz)),
    ):
        np.testing.assert_allclose(found, expected, 1e-12)
    assert A.shape == (5, 8)
    assert A.nnz == theirs.nnz
    assert A.dtype == np.float64
    assert scipy.sparse.issparse(sparse.csr_array(dense))  # nothing is traced: it is SciPy's


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array"])
def test_constructors_of_traced_entries(kind: str) -> None:
    theirs = getattr(scipy.sparse, kind)(MATRICES["csr"])
    coo = theirs.tocoo()
    given = [((coo.data, (coo.row, coo.col)), coo.data)]
    if kind != "coo_array":
        given.append(((theirs.data, theirs.indices, theirs.indptr), theirs.data))
    for arg, data in given:
        made = fg.jit(lambda d, arg=arg: getattr(sparse, kind)((d, *arg[1:]), theirs.shape))(data)
        np.testing.assert_allclose(made.toarray(), theirs.toarray(), 1e-12)
    twice = fg.jit(lambda d: sparse.coo_array((d, ([0, 0], [1, 1])), (2, 2)))(np.ones(2))
    np.testing.assert_allclose(twice.toarray(), [[0, 2], [0, 0]])
    with pytest.raises(errors.ArgumentError, match="which entries of a traced array are zero"):
        fg.jit(lambda d: getattr(sparse, kind)(d))(np.ones((2, 2)))


# Systems.

SOLVERS = [("cg", POSITIVE), ("bicgstab", SQUARE), ("gmres", SQUARE)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "A"), SOLVERS, ids=lambda x: x if isinstance(x, str) else "")
def test_iterative_solvers(name: str, A: Any) -> None:
    solve = getattr(linalg, name)
    dense = A.toarray()
    exact = np.linalg.solve(dense, RIGHT)
    pulled = np.linalg.solve(dense.T, np.cos(exact))
    f = lambda b: solve(A, b, rtol=1e-12)[0]  # noqa: E731
    for wrap in WRAPS:
        np.testing.assert_allclose(wrap(f)(RIGHT), exact, 1e-8, 1e-9)
        found = wrap(fg.grad(lambda b: np.sum(np.sin(f(b)))))(RIGHT)
        np.testing.assert_allclose(found, pulled, 1e-7, 1e-8)
    entries = sparse.SparseArray.of(A)
    found = fg.grad(lambda A: np.sum(np.sin(solve(A, RIGHT, rtol=1e-12)[0])))(entries)
    np.testing.assert_allclose(found.data, -np.outer(pulled, exact)[entries.coords], 1e-6, 1e-7)
    scale = scipy.sparse.diags_array(1 / A.diagonal())
    x, info = solve(A, RIGHT, x0=exact + 1, tol=1e-12, M=scale)
    np.testing.assert_allclose(x, exact, 1e-8, 1e-9)
    short: Any = {"restart": 2} if name == "gmres" else {}
    assert info == 0
    assert solve(A, RIGHT, rtol=1e-12, maxiter=1, **short)[1] > 0
    tree = {"a": RIGHT[:4], "b": RIGHT[4:]}
    half = solve(lambda t: {"a": 2 * t["a"], "b": 2 * t["b"]}, tree)[0]
    np.testing.assert_allclose(half["b"], RIGHT[4:] / 2, 1e-6)


@pytest.mark.parametrize("wrap", WRAPS, ids=IDS)
def test_spsolve(wrap: Any) -> None:
    dense = SQUARE.toarray()
    exact = np.linalg.solve(dense, RIGHT)
    pulled = np.linalg.solve(dense.T, np.ones(9))
    found = wrap(lambda b: linalg.spsolve(SQUARE, b))(RIGHT)
    np.testing.assert_allclose(found, exact, 1e-10)
    found = wrap(fg.grad(lambda b: linalg.spsolve(SQUARE, b).sum()))(RIGHT)
    np.testing.assert_allclose(found, pulled, 1e-10)
    A = sparse.SparseArray.of(SQUARE)
    found = wrap(fg.grad(lambda A: linalg.spsolve(A, RIGHT).sum()))(A)
    np.testing.assert_allclose(found.data, -np.outer(pulled, exact)[A.coords], 1e-9, 1e-12)
    columns = np.stack([RIGHT, RIGHT + 1], 1)
    np.testing.assert_allclose(
        wrap(lambda b: linalg.spsolve(A, b))(columns), np.linalg.solve(dense, columns), 1e-9
    )


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "compiled"])
def test_a_solution_and_its_derivatives_factor_once(
    wrap: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    splu = scipy.sparse.linalg.splu
    monkeypatch.setattr(
        scipy.sparse.linalg, "splu", lambda *a, **k: made.append(1) or splu(*a, **k)
    )

    def total(data: Any) -> Any:
        matrix = sparse.SparseArray.of(SQUARE).with_data(data)
        return fg.numpy.sum(linalg.spsolve(matrix, RIGHT) ** 2)

    slopes = wrap(fg.grad(total))
    data = sparse.SparseArray.of(SQUARE).data
    found = slopes(data)
    assert len(made) == 1
    x = np.linalg.solve(SQUARE.toarray(), RIGHT)
    y = np.linalg.solve(SQUARE.toarray().T, 2 * x)
    rows, columns = sparse.SparseArray.of(SQUARE).coords
    np.testing.assert_allclose(found, -y[rows] * x[columns], rtol=1e-9)
    np.testing.assert_allclose(slopes(2 * data), found / 8, rtol=1e-9)  # other entries, others
    assert len(made) == 2


def test_operators() -> None:
    dense = SQUARE.toarray()
    for A in (SQUARE, dense, sparse.SparseArray.of(SQUARE), linalg.aslinearoperator(SQUARE)):
        operator = linalg.aslinearoperator(A)
        for found, expected in (
            (operator @ RIGHT, dense @ RIGHT),
            (operator.rmatvec(RIGHT), dense.T @ RIGHT),
            (operator.T @ RIGHT, dense.T @ RIGHT),
            (operator.H.rmatvec(RIGHT), dense @ RIGHT),
            ((2 * operator + operator) @ RIGHT, 3 * dense @ RIGHT),
            (operator.matmat(np.ones((9, 2))), dense @ np.ones((9, 2))),
        ):
            np.testing.assert_allclose(found, expected, 1e-12, 1e-13)
    derived = linalg.LinearOperator((9, 9), lambda x: SQUARE @ x)
    np.testing.assert_allclose(derived.rmatvec(RIGHT), dense.T @ RIGHT, 1e-12, 1e-13)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: linalg.cg(SQUARE, np.ones(3)), "no system of as many equations"),
        (lambda: linalg.cg(SQUARE, RIGHT, callback=print), "callback is not called"),
        (lambda: linalg.spsolve(np.eye(2), np.ones(2)), "a sparse matrix is needed"),
        (lambda: linalg.spsolve(SQUARE, np.ones(2)), "do not fit"),
        (lambda: linalg.aslinearoperator(np.ones(2)), "a matrix is needed"),
        (lambda: sparse.SparseArray.of(SQUARE) * np.ones(9), "write A @ x"),
        (fg.jit(lambda: fg.jit(linalg.norm)(np.ones(2))), "norm is SciPy's own"),
    ],
)
def test_messages(call: Any, text: str) -> None:
    with pytest.raises(errors.FuncgradError, match=text):
        call()


@pytest.mark.parametrize("transform", [lambda f: f, fg.jit])
def test_solutions_of_singular_matrices_are_scipys(transform: Any) -> None:
    matrix = scipy.sparse.csc_array(np.diag([1.0, 0.0, 2.0]))
    solve = transform(lambda b: linalg.spsolve(matrix, b))
    with pytest.warns(scipy.sparse.linalg.MatrixRankWarning):
        expected = scipy.sparse.linalg.spsolve(matrix, np.ones(3))
    with pytest.warns(scipy.sparse.linalg.MatrixRankWarning):
        found = solve(np.ones(3))
    np.testing.assert_array_equal(found, expected)
