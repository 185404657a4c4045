"""Every function of scipy.linalg in one table: values by SciPy, derivatives, batches, compiled.

Derivatives of the primitives are the business of their laws; here one order shows that functions
hand them on, and that what is made of several primitives is put together right.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.linalg as reference

import funcgrad as fg
from funcgrad.scipy import linalg
from funcgrad.testing import check_grads

RNG = np.random.default_rng(7)
GENERAL = RNG.normal(size=(3, 3)) * 0.4 + np.diag([1.0, 2.5, 4.0])
OTHER = RNG.normal(size=(3, 3)) * 0.3 + np.diag([2.0, 1.0, 3.0])
TALL = RNG.normal(size=(4, 2))
WIDE = TALL.T.copy()
TURNING = GENERAL + np.array([[0.0, 3.0, 0.0], [-3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
INDEFINITE = TURNING - np.diag([0.0, 0.0, 7.0])  # the sign of a positive one is constant
HERMITIAN = GENERAL + GENERAL.T
POSITIVE = GENERAL @ GENERAL.T + np.eye(3)
WEIGHT = POSITIVE[:2, :2]
VECTOR = np.array([1.0, -2.0, 0.5])
BAND = np.array([[0.0, 0.3, -0.4], [4.0, 5.0, 6.0], [0.7, 0.2, 0.0]])
RIGHT = RNG.normal(size=(3, 2))


@dataclass(frozen=True)
class Row:
    """A function, arguments, and what is compared.

    Args:
        name: Of the function.
        args: Arrays; the first ones that are floating are differentiated.
        options: Keywords, the same for both libraries.
        observe: What is compared of the result, by default all of it.
        own: What is compared of ours, if results are differently typed.
        wrap: How arguments are brought into the function's form.
        grads: How many of the arguments have derivatives.
        stacks: Whether a leading axis counts matrices.
        label: Distinguishes rows of one function.
        complexes: Whether complex arguments are tried.
    """

    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    observe: Callable[..., Any]
    wrap: Callable[..., tuple[Any, ...]]
    grads: int
    stacks: bool
    complexes: bool

    def call(self, module: Any, *args: Any) -> list[Any]:
        out = getattr(module, self.name)(*self.wrap(*args), **self.options)
        return leaves(self.observe(out))

    def __str__(self) -> str:
        return "-".join([self.name, *map(str, self.options.values())])


def leaves(out: Any) -> list[Any]:
    """The arrays of nested tuples, without what is None."""
    if isinstance(out, tuple | list):
        return [x for part in out for x in leaves(part)]
    return [] if out is None else [out]


def row(
    name: str,
    *args: Any,
    observe: Callable[..., Any] = lambda out: out,
    wrap: Callable[..., tuple[Any, ...]] = lambda *args: args,
    grads: int | None = None,
    stacks: bool = True,
    complexes: bool = True,
    **options: Any,
) -> Row:
    count = len(args) if grads is None else grads
    return Row(name, args, options, observe, wrap, count, stacks, complexes)


def columns(*places: int) -> Callable[[Any], Any]:
    """Results with vectors at these places made projections, which have no phases."""

    def observe(out: Any) -> Any:
        def projected(v: Any) -> Any:
            weights = np.arange(1.0, 1.0 + v.shape[-1]).astype(v.dtype)
            return (v * weights) @ np.conj(v).swapaxes(-1, -2)

        return [projected(x) if i in places else x for i, x in enumerate(out)]

    return observe


def projection(x: Any) -> Any:
    return x @ np.conj(x).swapaxes(-1, -2)


def paired(c: Any, r: Any, b: Any) -> Any:
    return (c, r), b


FIRST_TWO: dict[str, Any] = {"select": "i", "select_range": (0, 1)}
CONTROL = (GENERAL, RIGHT, POSITIVE, WEIGHT)
MODES = ("full", "same", "valid")

ROWS = [
    row("expm", GENERAL),
    row("expm_frechet", GENERAL, OTHER),
    row("expm_cond", GENERAL, complexes=False),
    row("logm", GENERAL),
    row("sqrtm", GENERAL),
    row("fractional_matrix_power", GENERAL, wrap=lambda a: (a, 0.3)),
    row("fractional_matrix_power", GENERAL, wrap=lambda a: (a, -2)),
    row("funm", GENERAL, wrap=lambda a: (a, np.sin)),
    row("signm", INDEFINITE),
    *(row(name, GENERAL) for name in ("sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")),
    row("polar", GENERAL),
    row("polar", WIDE, side="left"),
    row("polar", TALL),
    row("schur", GENERAL, complexes=False),
    row("schur", TURNING, complexes=False),
    row("schur", GENERAL, output="complex", observe=columns(0, 1), grads=0),
    row("schur", HERMITIAN, sort="lhp", complexes=False),
    row("hessenberg", GENERAL, calc_q=True),
    row("lu", GENERAL),
    row("lu", TALL, permute_l=True),
    row("lu", WIDE, p_indices=True),
    row("ldl", HERMITIAN, complexes=False),
    row("ldl", HERMITIAN, lower=False, complexes=False),
    row("qz", GENERAL, OTHER, grads=0),
    row("ordqz", GENERAL, OTHER, grads=0, complexes=False),
    row("qr", GENERAL, pivoting=True),
    row("qr", TALL, mode="economic"),
    row("qr", TALL, mode="r", grads=0),
    row("qr", TALL, mode="raw", grads=0),
    row("rq", GENERAL),
    row("rq", WIDE, mode="economic"),
    row("rq", TALL),
    row("rq", WIDE, mode="r", grads=0),
    row("qr_multiply", TALL, RIGHT[:2], mode="left"),
    row("qr_multiply", TALL, np.ones((3, 4)), pivoting=True),
    row("cossin", np.linalg.qr(RNG.normal(size=(4, 4)))[0], p=2, q=1, grads=0, complexes=False),
    row("matrix_balance", GENERAL * np.array([1.0, 100.0, 0.01])),
    row("matrix_balance", GENERAL * np.array([1.0, 100.0, 0.01]), separate=True),
    row("eig", GENERAL, observe=columns(1)),
    row("eig", TURNING, left=True, observe=columns(1, 2), complexes=False),
    row("eig", GENERAL, POSITIVE, left=True, observe=columns(1, 2), complexes=False),
    row("eigvals", GENERAL, POSITIVE, complexes=False),
    row("eigh", HERMITIAN, POSITIVE, observe=columns(1)),
    row("eigh", HERMITIAN, POSITIVE, type=2, observe=columns(1)),
    row("eigh", HERMITIAN, POSITIVE, type=3, lower=False, observe=columns(1)),
    row("eigh", HERMITIAN, subset_by_index=[1, 2], observe=columns(1)),
    row("eigvalsh", HERMITIAN, subset_by_value=[0.0, 6.0], stacks=False),
    row("eigh_tridiagonal", VECTOR, VECTOR[1:], observe=columns(1), complexes=False),
    row("eigvalsh_tridiagonal", VECTOR, VECTOR[1:], complexes=False, **FIRST_TWO),
    row("eig_banded", BAND[1:], lower=True, observe=columns(1), complexes=False),
    row("eigvals_banded", BAND[:2], complexes=False),
    row("solve", POSITIVE, RIGHT, assume_a="sym", complexes=False),
    row("solve_banded", BAND, RIGHT, wrap=lambda ab, b: ((1, 1), ab, b)),
    row("solveh_banded", BAND[1:], RIGHT, lower=True, complexes=False),
    row("solveh_banded", BAND[:2], RIGHT, complexes=False),
    row("cholesky_banded", BAND[1:], lower=True, observe=lambda c: c[..., :2], complexes=False),
    row("cho_solve_banded", BAND[1:], RIGHT, wrap=lambda c, b: ((c, True), b), complexes=False),
    row("cho_solve_banded", BAND[:2], RIGHT, wrap=lambda c, b: ((c, False), b), complexes=False),
    row("solve_toeplitz", VECTOR + 5, VECTOR, RIGHT, wrap=paired, stacks=False),
    row("matmul_toeplitz", VECTOR, VECTOR[1:], RIGHT[:2], wrap=paired, stacks=False),
    row("solve_circulant", VECTOR, RIGHT, stacks=False),
    row("solve_circulant", np.ones(3), VECTOR, singular="lstsq", stacks=False, grads=0),
    row("solve_sylvester", GENERAL, OTHER, POSITIVE),
    row("solve_continuous_lyapunov", GENERAL, POSITIVE),
    row("solve_discrete_lyapunov", GENERAL, POSITIVE),
    row("solve_discrete_lyapunov", GENERAL, POSITIVE, method="bilinear"),
    row("solve_continuous_are", *CONTROL, grads=2, complexes=False),
    row("solve_discrete_are", *CONTROL, grads=2, complexes=False),
    row("solve_continuous_are", *CONTROL, np.diag(VECTOR), 0.1 * RIGHT, grads=2, complexes=False),
    row("lstsq", TALL, np.ones(4), observe=lambda out: [out[0], out[1], out[3]], stacks=False),
    row("pinv", TALL, atol=0.1, return_rank=True),
    row("pinvh", HERMITIAN, complexes=False),
    row("null_space", WIDE, observe=projection, stacks=False),
    row("orth", TALL, observe=projection, stacks=False),
    row("subspace_angles", TALL, TALL[::-1] + 0.1, stacks=False),
    row("orthogonal_procrustes", GENERAL, OTHER),
    row("norm", TALL, stacks=False),
    row("inv", POSITIVE, assume_a="pos", complexes=False),
    row("svdvals", TALL),
    row("block_diag", TALL, RIGHT),
    row("toeplitz", VECTOR, VECTOR),
    row("hankel", VECTOR, VECTOR[:2]),
    row("hankel", VECTOR),
    row("circulant", VECTOR),
    row("companion", VECTOR),
    row("fiedler", VECTOR, complexes=False),
    *(row("fiedler_companion", RNG.normal(size=n)) for n in (2, 3, 4, 5, 6)),
    row("leslie", VECTOR, VECTOR[:2]),
    *(row("convolution_matrix", VECTOR, wrap=lambda a: (a, 4), mode=m) for m in MODES),
    row("convolution_matrix", VECTOR, wrap=lambda a: (a, 2), mode="same"),
    row("khatri_rao", TALL, RIGHT),
    row("diagsvd", VECTOR, wrap=lambda s: (s, 3, 4), stacks=False),
    row("issymmetric", POSITIVE, grads=0, complexes=False),
]  # fmt: skip
each_row = pytest.mark.parametrize("case", ROWS, ids=str)


def scipys(case: Row, *args: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.call(reference, *args)


def compare(found: list[Any], expected: list[Any], rtol: float) -> None:
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape
        scale = float(np.max(np.abs(y), initial=0))
        np.testing.assert_allclose(x, y, rtol, rtol * scale)


@each_row
def test_values(case):
    compare(case.call(linalg, *case.args), scipys(case, *case.args), 1e-11)


@pytest.mark.sampled(4)
@each_row
def test_single_precision(case):
    args = [np.asarray(a, np.float32) for a in case.args]
    for x in case.call(linalg, *args):
        assert np.asarray(x).dtype.char in "fF?ilq", np.asarray(x).dtype
    if case.complexes:
        turned = [a + 0.1j * np.cos(np.arange(a.size)).reshape(a.shape) for a in case.args]
        if case.name in ("eigh", "eigvalsh", "eigh_tridiagonal"):
            turned = [(a + np.conj(a.T)) / 2 for a in turned]
        compare(case.call(linalg, *turned), scipys(case, *turned), 1e-10)


def inexact(outs: list[Any]) -> list[Any]:
    return [x for x in outs if np.dtype(x.dtype).kind in "fc"]


OF_ONE_PRIMITIVE = (
    "expm", "expm_frechet", "expm_cond", "logm", "sqrtm", "fractional_matrix_power", "signm",
    "schur", "hessenberg", "ldl", "solve_sylvester", "solve_banded", "solveh_banded",
    "cholesky_banded", "eigh_tridiagonal", "pinv", "sinm", "sinhm", "tanhm",
)  # fmt: skip
"""Their derivatives are those of a law, so that the nightly run will do (or of a neighbour)."""
DIFFERENTIABLE = [
    pytest.param(c, id=str(c), marks=[pytest.mark.nightly] if c.name in OF_ONE_PRIMITIVE else [])
    for c in ROWS
    if c.grads
]


@pytest.mark.parametrize("case", DIFFERENTIABLE)
def test_derivatives(case):
    def function(*args: Any) -> Any:
        outs = inexact(case.call(linalg, *args, *case.args[case.grads :]))
        return [part for x in outs for part in (x.real, x.imag)]

    check_grads(function, case.args[: case.grads], order=1, rtol=1e-5, atol=1e-5)


HERMITIAN_ONLY = ("eigh", "pinvh", "solve_continuous_are", "solve_discrete_are", "ldl", "inv")
COMPLEX = [
    c for c in ROWS if c.grads and (c.complexes or c.name in HERMITIAN_ONLY) and c.name != "schur"
]


@pytest.mark.nightly
@pytest.mark.parametrize("case", COMPLEX, ids=str)
def test_complex_derivatives(case):
    """Forward against differences, reverse against forward."""
    rng = np.random.default_rng(11)

    def imaginary(a: Any) -> Any:
        z = rng.normal(size=a.shape)
        is_paired = case.name in HERMITIAN_ONLY and a.ndim == 2 and len(a) == a.shape[1]
        return 1j * (z - z.T if is_paired else z)

    def function(*args: Any) -> list[Any]:
        return inexact(case.call(linalg, *args))

    args = [a + 0.2 * imaginary(a) for a in case.args]
    tangents = [a * rng.normal() + imaginary(a) for a in case.args]
    outs, moved = fg.jvp(function, tuple(args), tuple(tangents))
    step = 1e-6
    ends = [
        function(*(a + s * t for a, t in zip(args, tangents, strict=True))) for s in (step, -step)
    ]
    compare(moved, [(x - y) / (2 * step) for x, y in zip(*ends, strict=True)], 1e-5)
    weights = [rng.normal(size=x.shape).astype(x.dtype) for x in outs]
    turned = fg.vjp(function, *args)[1](weights)
    forward = sum(np.sum(w * x) for w, x in zip(weights, moved, strict=True))
    backward = sum(np.sum(g * t) for g, t in zip(turned, tangents, strict=True))
    np.testing.assert_allclose(np.real(backward), np.real(forward), 1e-8, 1e-8)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", [c for c in ROWS if c.stacks], ids=str)
def test_stacks_and_maps(case):
    stacks = [np.stack([a, 1.1 * a]) for a in case.args]
    expected = [case.call(linalg, *(x[i] for x in stacks)) for i in (0, 1)]
    together = [np.stack(pair) for pair in zip(*expected, strict=True)]
    mapped = fg.vmap(lambda *args: case.call(linalg, *args))(*stacks)
    compare(mapped, together, 1e-11)
    if case.name not in ("cossin", "block_diag"):
        compare(case.call(linalg, *stacks), together, 1e-11)


DATA_DEPENDENT = ("null_space", "orth", "subspace_angles", "eigvalsh")
COMPILED = [c for c in ROWS if c.name not in DATA_DEPENDENT]
SAMPLE = ("expm", "schur", "solve_banded", "lu", "hankel", "matmul_toeplitz")


def compiled(case: Row) -> None:
    found = fg.jit(lambda *args: case.call(linalg, *args))(*case.args)
    compare(found, case.call(linalg, *case.args), 1e-10)


@pytest.mark.parametrize("name", SAMPLE)
def test_compiled(name):
    compiled(next(c for c in COMPILED if c.name == name))


@pytest.mark.nightly
@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_all_compiled(case):
    compiled(case)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_banded_systems_compile_to_calls_of_lapack(dtype):
    band, right = BAND.astype(dtype), RIGHT.astype(dtype)
    solve = fg.jit(lambda ab, b: linalg.solve_banded((1, 1), ab, b))
    compare([solve(band, right)], [reference.solve_banded((1, 1), band, right)], 1e-6)
    text = solve.lower(band, right).as_text()
    assert "gbsv of LAPACK" in text
    assert "numpy:" not in text
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        solve(0 * band, right)
    half = fg.jit(lambda ab, b: linalg.solveh_banded(ab, b, lower=True))
    compare([half(band[1:], right)], [reference.solveh_banded(band[1:], right, lower=True)], 1e-6)
    with pytest.raises(np.linalg.LinAlgError, match="1th leading minor"):
        half(-band[1:], right)


EMPTY = [
    "expm", "logm", "sqrtm", "signm", "cosm", "tanhm", "schur", "hessenberg", "lu", "ldl", "polar",
    "matrix_balance", "eig", "eigh", "inv", "pinvh", "det",
]  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_no_rows(name):
    for x in leaves(getattr(linalg, name)(np.zeros((0, 0)))):
        assert np.asarray(x).size == 0 or name == "det"


@pytest.mark.parametrize("name", ["sqrtm", "logm", "funm"])
def test_equal_eigenvalues(name):
    """At ``4``, the identity, every direction is multiplied by the derivative of the function."""
    extra = [lambda x: x**3] if name == "funm" else []
    slope = {"sqrtm": 0.25, "logm": 0.25, "funm": 48.0}[name]
    _, moved = fg.jvp(lambda a: getattr(linalg, name)(a, *extra).real, (4 * np.eye(3),), (OTHER,))
    np.testing.assert_allclose(moved, slope * OTHER, 1e-12)


def test_polar_factor_of_equal_singular_values():
    """At the identity the unitary factor follows the anti-symmetric part of the direction."""
    _, moved = fg.jvp(lambda a: linalg.polar(a)[0], (np.eye(3),), (OTHER,))
    np.testing.assert_allclose(moved, (OTHER - OTHER.T) / 2, atol=1e-14)


def test_logarithm_of_a_defective_matrix():
    jordan = np.array([[2.0, 1.0], [0.0, 2.0]])
    check_grads(lambda a: linalg.logm(a).real, (jordan,), order=2)


def test_function_of_a_matrix_that_closes_over_a_traced_value():
    slope = fg.grad(lambda t: linalg.funm(GENERAL, lambda x: x**2 * t).real.sum())(3.0)
    np.testing.assert_allclose(slope, (GENERAL @ GENERAL).sum(), 1e-12)


@pytest.mark.parametrize("discrete", [False, True])
def test_riccati_with_a_matrix_before_the_unknown(discrete):
    a, b, q, r, e, s = GENERAL, RIGHT, POSITIVE, WEIGHT, OTHER, 0.1 * RIGHT
    if discrete:
        x = linalg.solve_discrete_are(a, b, q, r, e, s)
        g = b.T @ x @ a + s.T
        left = a.T @ x @ a - e.T @ x @ e - g.T @ np.linalg.solve(r + b.T @ x @ b, g) + q
    else:
        x = linalg.solve_continuous_are(a, b, q, r, e, s)
        g = b.T @ x @ e + s.T
        left = e.T @ x @ a + a.T @ x @ e - g.T @ np.linalg.solve(r, g) + q
    np.testing.assert_allclose(left, 0, atol=1e-8 * np.max(np.abs(x)))


def test_pairs_of_eigenvalues_made_real():
    w, v = np.linalg.eig(TURNING)
    compare(leaves(linalg.cdf2rdf(w, v)), leaves(reference.cdf2rdf(w, v)), 1e-14)
    t, z = linalg.rsf2csf(*linalg.schur(TURNING))
    np.testing.assert_allclose(z @ t @ z.conj().T, TURNING, atol=1e-13)
    assert not np.tril(t, -1).any()


@pytest.mark.parametrize("name", ["dft", "hadamard", "helmert", "hilbert", "invhilbert", "pascal"])
def test_constant_matrices_are_those_of_scipy(name):
    compare([getattr(linalg, name)(4)], [getattr(reference, name)(4)], 0)


def test_symmetry():
    assert linalg.issymmetric(POSITIVE) is True
    assert linalg.issymmetric(GENERAL) is False
    assert linalg.issymmetric(POSITIVE + 1e-9 * GENERAL, atol=1e-6)
    assert linalg.ishermitian(POSITIVE + 1j * (GENERAL - GENERAL.T))
    assert not linalg.issymmetric(POSITIVE + 1j * (GENERAL - GENERAL.T))
    assert linalg.bandwidth(np.triu(GENERAL)) == (0, 2)


def test_the_gradient_of_the_exponential_is_native():
    """And that of a stack with different numbers of squarings, also twice."""
    stack = np.stack([GENERAL * 0.01, GENERAL, GENERAL * 30])
    weights = np.arange(stack.size).reshape(stack.shape) / stack.size

    def loss(a):
        return (weights * linalg.expm(a * 0.1)).sum()

    gradient = fg.jit(fg.grad(loss))
    assert "python" not in gradient.lower(stack).as_text().partition("\nplan\n")[2]
    expected = [
        0.1 * reference.expm_frechet(a.T * 0.1, w, compute_expm=False)
        for a, w in zip(stack, weights, strict=True)
    ]
    np.testing.assert_allclose(gradient(stack), expected, rtol=1e-9, atol=1e-9)
    check_grads(lambda a: linalg.expm(a * 0.1), (GENERAL,), order=2)


def test_qr_multiply_takes_vectors():
    for mode, c in (("left", np.ones(2)), ("right", np.ones(4))):
        expected = reference.qr_multiply(TALL, c, mode)
        for got, wanted in zip(linalg.qr_multiply(TALL, c, mode), expected, strict=True):
            np.testing.assert_allclose(got, wanted)
