from __future__ import annotations

import math
import re

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError
from funcgrad.numpy import linalg

RNG = np.random.default_rng(0)


def sample(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 2
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return np.asarray(x).astype(dtype)


def definite(shape, dtype=np.float64):
    x = sample(shape, dtype)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1], dtype=dtype)


def check(ours, theirs):
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            check(a, b)
        return
    assert np.shape(ours) == np.shape(theirs)
    if np.asarray(theirs).dtype.kind in "fc":
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    single = np.asarray(theirs).dtype in (np.float32, np.complex64)
    tolerance = 2e-4 if single else 1e-9
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


SQUARE, STACK = sample((4, 4)), sample((2, 3, 3))
TALL, WIDE = sample((5, 3)), sample((2, 3, 5))
VECTOR = sample((4,))

CASES = [
    ("solve", (SQUARE, VECTOR), {}),
    ("solve", (SQUARE, sample((4, 2))), {}),
    ("solve", (SQUARE, sample((3, 2, 4, 5))), {}),
    ("solve", (STACK, sample((3, 2))), {}),
    ("solve", (STACK, sample((5, 1, 3, 2))), {}),
    ("solve", (STACK, sample((3,))), {}),
    ("solve", (np.array([[2, 1], [1, 3]]), [1, 2]), {}),
    ("inv", (STACK,), {}),
    ("pinv", (TALL,), {}),
    ("pinv", (WIDE,), {}),
    ("pinv", (np.ones((3, 3)),), {"rcond": 1e-3}),
    ("lstsq", (TALL, sample((5,))), {}),
    ("lstsq", (TALL, sample((5, 2))), {}),
    ("lstsq", (TALL.T, sample((3, 2))), {}),
    ("lstsq", (np.ones((4, 2)), sample((4,))), {}),
    ("matrix_rank", (TALL,), {}),
    ("matrix_rank", (np.ones((2, 3, 3)),), {}),
    ("matrix_rank", (np.zeros(3),), {}),
    ("matrix_rank", (np.diag([3.0, 1.0, 0.1]),), {"tol": 0.5}),
    ("matrix_rank", (np.diag([3.0, 1.0, 0.1]),), {"rtol": 0.1}),
    ("tensorsolve", (sample((2, 3, 6)), sample((2, 3))), {}),
    ("tensorsolve", (sample((2, 6, 3)), sample((2, 3))), {"axes": (1,)}),
    ("tensorinv", (sample((4, 6, 8, 3)),), {}),
    ("det", (STACK,), {}),
    ("det", (np.array([[2, 1], [1, 3]]),), {}),
    ("slogdet", (STACK,), {}),
    ("slogdet", (sample((3, 3), np.complex128),), {}),
    ("cholesky", (definite((2, 3, 3)),), {}),
    ("cholesky", (definite((3, 3), np.complex128),), {"upper": True}),
    ("qr", (TALL,), {}),
    ("qr", (TALL,), {"mode": "complete"}),
    ("qr", (WIDE,), {"mode": "r"}),
    ("svd", (TALL,), {}),
    ("svd", (WIDE,), {"full_matrices": False}),
    ("svd", (WIDE,), {"compute_uv": False}),
    ("svdvals", (WIDE,), {}),
    ("eigh", (SQUARE,), {}),
    ("eigh", (SQUARE,), {"UPLO": "U"}),
    ("eigvalsh", (STACK,), {"UPLO": "U"}),
    ("eig", (sample((3, 3), np.complex128),), {}),
    ("eigvals", (sample((3, 3), np.complex128),), {}),
    ("matrix_power", (STACK, 0), {}),
    ("matrix_power", (STACK, 5), {}),
    ("matrix_power", (STACK, -3), {}),
    ("matrix_power", (np.array([[1, 1], [1, 0]]), 10), {}),
    ("multi_dot", ([sample((2, 9)), sample((9, 3)), sample((3, 7)), sample((7, 4))],), {}),
    ("multi_dot", ([sample((9,)), sample((9, 3)), sample((3,))],), {}),
    ("multi_dot", ([sample((2, 9)), sample((9,))],), {}),
    ("cross", (TALL, TALL[::-1]), {}),
    ("outer", (VECTOR, TALL[:, 0]), {}),
    ("diagonal", (WIDE,), {"offset": 1}),
    ("trace", (WIDE,), {"offset": -1}),
    ("matrix_norm", (WIDE,), {}),
    ("matrix_norm", (WIDE,), {"ord": "nuc", "keepdims": True}),
    ("vector_norm", (WIDE,), {}),
    ("vector_norm", (WIDE,), {"axis": (0, 2), "ord": 3, "keepdims": True}),
    ("vector_norm", (WIDE,), {"axis": 1, "ord": np.inf}),
    ("matmul", (STACK, STACK), {}),
    ("vecdot", (TALL, TALL), {}),
    ("tensordot", (TALL, TALL), {"axes": ([0], [0])}),
    ("matrix_transpose", (STACK,), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_values(name, args, kwargs):
    check(getattr(linalg, name)(*args, **kwargs), getattr(np.linalg, name)(*args, **kwargs))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
@pytest.mark.parametrize(
    "name", ["inv", "det", "slogdet", "pinv", "svdvals", "norm", "matrix_norm"]
)
def test_dtypes(name, dtype):
    x = definite((3, 3), dtype)
    check(getattr(linalg, name)(x), getattr(np.linalg, name)(x))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64])
@pytest.mark.parametrize("order", [None, 2, 1, 0, 3, 0.5, -1, -2, np.inf, -np.inf])
def test_vector_norms(order, dtype, keepdims):
    x = sample((3, 4), dtype)
    x = np.where(x == 0, 1, x).astype(dtype)
    for axis in (0, -1):
        check(linalg.norm(x, order, axis, keepdims), np.linalg.norm(x, order, axis, keepdims))


@pytest.mark.parametrize("order", [None, "fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_matrix_norms(order, dtype):
    x = sample((3, 4, 5), dtype)
    check(linalg.norm(x[0], order), np.linalg.norm(x[0], order))
    for axis in ((0, 1), (2, 0), (-1, -2)):
        for keepdims in (False, True):
            check(linalg.norm(x, order, axis, keepdims), np.linalg.norm(x, order, axis, keepdims))


@pytest.mark.parametrize("order", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro"])
def test_cond(order):
    check(linalg.cond(STACK, order), np.linalg.cond(STACK, order))


def test_norm_at_zero_has_derivative_zero():
    for order in (None, 2, 3):
        out = fg.grad(lambda x, order=order: np.linalg.norm(x, order))(np.zeros(3))
        np.testing.assert_array_equal(out, np.zeros(3))
    np.testing.assert_array_equal(fg.grad(np.linalg.norm)(np.zeros((2, 2))), np.zeros((2, 2)))


def test_decompositions_by_name():
    w, v = linalg.eig(SQUARE)
    np.testing.assert_allclose(SQUARE @ v, v * w, atol=1e-9)
    assert w.dtype == np.complex128
    assert linalg.svd(SQUARE).S.shape == (4,)
    assert linalg.qr(SQUARE).R.shape == (4, 4)
    assert linalg.eigh(SQUARE).eigenvalues.shape == (4,)
    assert linalg.slogdet(SQUARE).sign in (-1.0, 1.0)


SMOOTH = [
    ("solve a", lambda a: linalg.solve(a, VECTOR), SQUARE),
    ("solve b", lambda b: linalg.solve(SQUARE, b), sample((2, 4, 3))),
    ("solve stack", lambda a: linalg.solve(a, sample((3, 2))), STACK),
    ("inv", linalg.inv, STACK),
    ("pinv tall", linalg.pinv, TALL),
    ("pinv wide", linalg.pinv, TALL.T),
    ("pinv of equal values", linalg.pinv, np.eye(3)[:, :2]),
    ("lstsq", lambda a: linalg.lstsq(a, sample((5,)))[:2], TALL),
    ("det", linalg.det, STACK),
    ("slogdet", lambda a: linalg.slogdet(a)[1], STACK),
    ("cholesky", lambda a: linalg.cholesky(a @ a.T + np.eye(4)), SQUARE),
    ("upper", lambda a: linalg.cholesky(a @ a.T + np.eye(4), upper=True), SQUARE),
    ("qr", lambda a: linalg.qr(a), TALL),
    ("svd", lambda a: linalg.svd(a, full_matrices=False)[1], WIDE),
    ("eigh", lambda a: linalg.eigh(a + a.T)[0], SQUARE),
    ("eigh of upper", lambda a: linalg.eigh(a, "U")[0], SQUARE),
    ("matrix_power", lambda a: linalg.matrix_power(a, -2), STACK),
    ("multi_dot", lambda a: linalg.multi_dot([a, a.T, a]), TALL),
    ("cond", linalg.cond, SQUARE),
    ("cond 1", lambda a: linalg.cond(a, 1), SQUARE),
    ("tensorsolve", lambda a: linalg.tensorsolve(a, np.ones((2, 3))), sample((2, 3, 6))),
    ("norm", lambda x: linalg.norm(x, axis=0), TALL),
    ("norm 3", lambda x: linalg.norm(x, 3, axis=0), TALL),
    ("norm 1", lambda x: linalg.norm(x, 1), TALL),
    ("norm inf", lambda x: linalg.norm(x, np.inf), TALL),
    ("norm 2", lambda x: linalg.norm(x, 2), TALL),
    ("norm nuc", lambda x: linalg.norm(x, "nuc"), TALL),
    ("trace", linalg.trace, WIDE),
]


@pytest.mark.parametrize(("function", "x"), [c[1:] for c in SMOOTH], ids=[c[0] for c in SMOOTH])
def test_gradients(function, x):
    fg.testing.check_grads(function, (x,), order=2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("function", "x"), [c[1:] for c in SMOOTH], ids=[c[0] for c in SMOOTH])
def test_compilation_and_batching(function, x):
    for a, b in zip(_leaves(fg.jit(function)(x)), _leaves(function(x)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    rows = np.stack([x, x * 1.1])
    out = _leaves(fg.vmap(function)(rows))
    expected = [_leaves(function(r)) for r in rows]
    for i, a in enumerate(out):
        np.testing.assert_allclose(a, np.stack([v[i] for v in expected]), rtol=1e-8, atol=1e-8)


def _leaves(x):
    return list(x) if isinstance(x, tuple) else [x]


def test_gradient_of_complex_pinv():
    x = sample((4, 2), np.complex128)
    fg.testing.check_grads(linalg.pinv, (x,), order=1)


def test_numpy_names_on_traced_arrays():
    out = fg.jit(lambda a: np.trace(np.linalg.solve(a, np.linalg.inv(a))))(SQUARE)
    np.testing.assert_allclose(out, np.trace(np.linalg.solve(SQUARE, np.linalg.inv(SQUARE))))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: linalg.inv(TALL), np.linalg.LinAlgError),
        (lambda: linalg.det(VECTOR), np.linalg.LinAlgError),
        (lambda: linalg.solve(SQUARE, sample((3,))), ValueError),
        (lambda: linalg.inv(np.zeros((2, 2))), np.linalg.LinAlgError),
        (lambda: linalg.qr(TALL, "thin"), ArgumentError),
        (lambda: linalg.slogdet(SQUARE, method="svd"), ArgumentError),
        (lambda: linalg.svd(TALL, subset_by_index=(0, 1)), ArgumentError),
        (lambda: linalg.eigh(SQUARE, "X"), ValueError),
        (lambda: linalg.norm(TALL, "nonsense"), ValueError),
        (lambda: linalg.norm(VECTOR, "fro"), ValueError),
        (lambda: linalg.norm(STACK, 2), ValueError),
        (lambda: linalg.pinv(TALL, np.array([1.0, 2.0])), ArgumentError),
        (lambda: linalg.outer(TALL, VECTOR), ValueError),
        (lambda: linalg.multi_dot([TALL]), ValueError),
        (lambda: linalg.matrix_power(TALL, 2), np.linalg.LinAlgError),
        (lambda: linalg.tensorsolve(TALL, VECTOR), np.linalg.LinAlgError),
    ],
)
def test_refusals(call, error):
    with pytest.raises(error):
        call()


LONG = 2000


@pytest.mark.parametrize("shape", [(LONG, 2), (2, LONG), (3, LONG, 2)], ids=str)
@pytest.mark.parametrize(
    "function",
    [
        linalg.pinv,
        lambda a: linalg.lstsq(a, np.ones(a.shape[0]))[0] if a.ndim == 2 else a,
        linalg.svdvals,
        lambda a: linalg.svd(a, full_matrices=False)[0],
        lambda a: linalg.norm(a, 2, (-2, -1)),
        lambda a: linalg.norm(a, "nuc", (-2, -1)),
    ],
    ids=["pinv", "lstsq", "svdvals", "svd", "norm", "nuclear"],
)
def test_derivatives_of_long_matrices_make_no_square_ones(function, shape):
    """No value of the program has the size of the square of the long side."""

    def loss(a):
        return np.sum(np.square(function(a)))

    def curvature(a):
        return fg.grad(lambda a: np.sum(fg.grad(loss)(a) * a))(a)

    a = np.random.default_rng(0).normal(size=shape)
    for derivative in (fg.grad(loss), lambda a: fg.jvp(loss, (a,), (a,))[1], curvature):
        shapes = re.findall(r"\[([\d,]+)\]", str(fg.make_jaxpr(derivative)(a)))
        sizes = [math.prod(map(int, s.split(","))) for s in shapes]
        assert max(sizes) <= 4 * a.size


@pytest.mark.parametrize("shape", [(5, 2), (2, 5), (4, 4), (3, 5, 2)], ids=str)
@pytest.mark.parametrize("dtype", [float, complex])
def test_derivative_of_pinv_against_differences(shape, dtype):
    rng = np.random.default_rng(1)
    a, t = (
        rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is complex else 0)
        for _ in "at"
    )
    expected = (np.linalg.pinv(a + 1e-6 * t) - np.linalg.pinv(a - 1e-6 * t)) / 2e-6
    np.testing.assert_allclose(fg.jvp(linalg.pinv, (a,), (t,))[1], expected, 1e-6, 1e-7)
    if dtype is float:
        w = rng.normal(size=expected.shape)
        gradient = fg.grad(lambda a: np.sum(w * linalg.pinv(a)))(a)
        np.testing.assert_allclose(np.sum(gradient * t), np.sum(w * expected), 1e-5)


def test_keywords_of_jax():
    rng = np.random.default_rng(5)
    a = rng.normal(size=(3, 3))
    unequal = a @ a.T + np.eye(3) + np.triu(np.ones((3, 3)), 1)
    half = (unequal + unequal.T) / 2
    close = np.testing.assert_allclose
    close(linalg.cholesky(a=unequal, symmetrize_input=True), np.linalg.cholesky(half))
    close(linalg.cholesky(unequal), np.linalg.cholesky(unequal))
    close(linalg.eigvalsh(unequal, symmetrize_input=True), np.linalg.eigvalsh(half))
    close(linalg.eigh(unequal, None, symmetrize_input=True)[0], np.linalg.eigvalsh(half))
    close(linalg.slogdet(unequal, method="qr")[1], np.linalg.slogdet(unequal)[1])
    close(linalg.multi_dot([a, a, a], precision="highest"), a @ a @ a)
    close(linalg.lstsq(a, a[0], numpy_resid=True)[0], np.linalg.lstsq(a, a[0])[0])
    u, s, vh = np.linalg.svd(a[:, :2], full_matrices=False)
    found = linalg.svd(a[:, :2], full_matrices=False, subset_by_index=(1, 2))
    for x, y in zip(found, (u[:, 1:], s[1:], vh[1:]), strict=True):
        close(abs(x), abs(y))
    close(
        linalg.svd(a[:, :2], compute_uv=False, full_matrices=False, subset_by_index=(0, 1)), s[:1]
    )
    for x, y in zip(linalg.qr(a[:, :2], "raw"), np.linalg.qr(a[:, :2], "raw"), strict=True):
        close(x, y)


def test_phases_of_equal_singular_values_turn_against_each_other():
    """The unitary factor does not depend on the choice of vectors: ``d(U V^H) = (E - E^T) / 2``."""
    direction = np.random.default_rng(6).normal(size=(3, 3))

    def factor(a):
        u, _, vh = linalg.svd(a)
        return u @ vh

    _, moved = fg.jvp(factor, (np.eye(3),), (direction,))
    np.testing.assert_allclose(moved, (direction - direction.T) / 2, atol=1e-14)
