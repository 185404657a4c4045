"""Stiff equations whose Jacobians fit into a band, against SciPy's solvers and dense factors."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.sparse.linalg

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order import jit
from funcgrad.scipy import integrate
from funcgrad.scipy.integrate.matrices import Dense, Sparse
from funcgrad.scipy.sparse import SparseArray, bands
from funcgrad.scipy.sparse.factors import OrderedFactors, ShiftedFactors
from funcgrad.sparsity import Coloring, coloring

N = 40
RATES = np.array([1.0, 3.0, 0.02])
START = np.concatenate([1 + np.sin(2 * np.pi * np.arange(1, N + 1) / (N + 1)), np.full(N, 3.0)])
METHODS = ["BDF", "Radau"]


def brusselator(t: Any, y: Any, rates: Any) -> Any:
    """Two species one after the other: a narrow band only in another order."""
    u, v = y[:N], y[N:]
    a, b, alpha = rates[0], rates[1], rates[2]
    scale = alpha * (N + 1) ** 2
    left = np.concatenate([np.ones(1), u, np.ones(1)])
    right = np.concatenate([3 * np.ones(1), v, 3 * np.ones(1)])
    du = a + u * u * v - (b + 1) * u + scale * (left[2:] - 2 * u + left[:-2])
    dv = b * u - u * u * v + scale * (right[2:] - 2 * v + right[:-2])
    return np.concatenate([du, dv])


def end(rates: Any, method: str, start: Any = START, **options: Any) -> Any:
    options = {"rtol": 1e-6, "atol": 1e-8} | options
    return integrate.solve_ivp(
        brusselator, (0.0, 0.5), start, method, np.array([0.25, 0.5]), args=(rates,), **options
    )


@pytest.mark.nightly
@pytest.mark.parametrize("method", METHODS)
def test_steps_are_those_of_scipy_and_of_dense_factors(method: str) -> None:
    found = end(RATES, method)
    assert isinstance(found.sparsity, Coloring)
    assert found.sparsity.n_colors <= 5
    dense = end(RATES, method, jac=lambda t, y, rates: fg.jacfwd(brusselator, 1)(t, y, rates))
    assert "sparsity" not in dense
    assert (found.nfev, found.njev, found.nlu) == (dense.nfev, dense.njev, dense.nlu)
    np.testing.assert_allclose(found.y, dense.y, rtol=1e-9)
    theirs = scipy.integrate.solve_ivp(
        brusselator, (0.0, 0.5), START, method, found.t, args=(RATES,), rtol=1e-6, atol=1e-8,
        jac_sparsity=found.sparsity.pattern.matrix,
    )  # fmt: skip
    np.testing.assert_allclose(found.y, theirs.y, rtol=1e-5)


def test_the_same_function_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For other parameters and values, with derivatives, too; not for other known places."""
    programs = []
    original = jit.compile_program

    def compile_program(program: Any, *options: Any) -> Any:
        programs.append(program)
        return original(program, *options)

    monkeypatch.setattr(jit, "compile_program", compile_program)
    mean = lambda rates: end(rates, "BDF").y.mean()  # noqa: E731
    counts = []
    for scale in (1.0, 1.1, 1.2):
        found = end(scale * RATES, "BDF", scale * START).y, fg.grad(mean)(scale * RATES)
        counts.append(len(programs))
    assert counts[0] == counts[1] == counts[2] > 0
    programs.clear()
    expected = fg.jit(lambda r, y: end(r, "BDF", y).y)(1.2 * RATES, 1.2 * START)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)

    def coupled(t: Any, y: Any, weights: Any) -> Any:
        return weights @ y - y

    band = 0.1 * np.eye(80, k=1)
    for weights in (band, 2 * band, band.T):
        found = integrate.solve_ivp(
            coupled, (0.0, 1.0), np.ones(80), "BDF", [1.0], args=(weights,), rtol=1e-8
        )
        assert found.sparsity.pattern.nnz == 159
        exact = scipy.linalg.expm(weights - np.eye(80)) @ np.ones(80)
        np.testing.assert_allclose(found.y[:, 0], exact, rtol=1e-5)


def loss(rates: Any, start: Any, method: str) -> Any:
    found = end(rates, method, start, rtol=1e-9, atol=1e-11, max_steps=400)
    assert isinstance(found.sparsity, Coloring)  # it is known under jit, too
    return np.sum(found.y[:, -1] ** 2)


@lru_cache
def gradients(method: str) -> tuple[Any, Any]:
    return fg.jit(fg.grad(loss, (0, 1)), static_argnums=2)(RATES, START, method)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", METHODS)
def test_gradients_with_respect_to_parameters_and_the_first_value(method: str) -> None:
    by_rates, by_start = gradients(method)

    def theirs(rates: Any, start: Any) -> float:
        found = scipy.integrate.solve_ivp(
            brusselator, (0.0, 0.5), start, "Radau", args=(rates,), rtol=1e-10, atol=1e-12
        )
        return float(np.sum(found.y[:, -1] ** 2))

    step = 1e-4
    change = step * RATES
    slope = (theirs(RATES + change, START) - theirs(RATES - change, START)) / (2 * step)
    np.testing.assert_allclose(by_rates @ RATES, slope, rtol=1e-5)
    wave = np.cos(np.arange(2 * N))
    slope = (theirs(RATES, START + step * wave) - theirs(RATES, START - step * wave)) / (2 * step)
    np.testing.assert_allclose(by_start @ wave, slope, rtol=1e-4)


def by_diffusion(alpha: Any, method: str, is_dense: bool = False) -> Any:
    """One value at the end; what is stacked stands for an array."""
    rates = fg.numpy.stack([1.0, 3.0, alpha])
    jac = (lambda t, y, r: fg.jacfwd(brusselator, 1)(t, y, r)) if is_dense else None
    return end(rates, method, jac=jac, max_steps=100).y[N // 3, -1]


@pytest.mark.nightly
@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", METHODS)
def test_forward_mode(method: str) -> None:
    """Along one rate, which is stacked with others: what is stacked stands for an array."""
    f = lambda alpha: loss(fg.numpy.stack([1.0, 3.0, alpha]), START, method)  # noqa: E731
    forward = fg.jit(lambda alpha: fg.jvp(f, (alpha,), (1.0,))[1])
    np.testing.assert_allclose(forward(0.02), gradients(method)[0][2], rtol=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("method", METHODS)
def test_second_derivatives(method: str) -> None:
    second = fg.jit(fg.grad(fg.grad(by_diffusion)), static_argnums=(1, 2))
    expected = second(0.02, method, True)
    np.testing.assert_allclose(second(0.02, method, False), expected, rtol=1e-6)


def test_patterns_of_the_user_are_used_and_checked() -> None:
    pattern = fg.jacfwd(brusselator, 1)(0.0, START, RATES) != 0
    found = end(RATES, "BDF", jac_sparsity=pattern)
    assert found.sparsity.pattern.nnz == pattern.sum()
    pattern[3, 4] = False
    with pytest.raises(ArgumentError, match=r"`sparse` misses an entry\. In row 3"):
        end(RATES, "BDF", jac_sparsity=pattern)
    with pytest.raises(ShapeError, match=r"has the shape \(3, 3\)"):
        end(RATES, "BDF", jac_sparsity=np.eye(3))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("slope", "start", "method"),
    [
        (lambda t, y: -y + 0.1 * (np.mean(y) - y), np.ones(80), "BDF"),
        (lambda t, y: -y, np.ones(10), "BDF"),
        (lambda t, y: -y, np.ones(80, complex), "BDF"),
        (lambda t, y: -y, np.ones(80), "RK45"),
    ],
    ids=["no band", "small", "complex", "explicit"],
)
def test_what_fits_into_no_band_is_dense(slope: Any, start: Any, method: str) -> None:
    """As are small systems, complex ones, and explicit methods."""
    found = integrate.solve_ivp(slope, (0, 1), start, method)
    assert "sparsity" not in found
    np.testing.assert_allclose(found.y[:, -1], np.exp(-1), rtol=1e-2)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("way", ["rows", "columns", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_bands_solve_what_dense_factors_solve(
    dtype: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with exchanges of rows, transposed, and of coupled vectors."""
    if way == "columns":
        monkeypatch.setattr(bands, "FEW_DIAGONALS", -1)
    elif way == "sparse":
        monkeypatch.setattr(bands, "WIDEST", -1)
    rng = np.random.default_rng(0)
    size = 24
    order = rng.permutation(size)
    shape = np.eye(size) + np.eye(size, k=1) + np.eye(size, k=-2)
    shape = shape[np.ix_(order, order)]
    matrix = (shape * rng.normal(size=(size, size))).astype(dtype)
    banded, dense = Sparse(coloring(shape)), Dense(size)
    assert isinstance(banded.shifted, ShiftedFactors if way == "sparse" else bands.Band)
    entries = matrix[banded.pattern.rows, banded.pattern.indices]
    right = rng.normal(size=size).astype(dtype)
    accuracy = 1e-3 if dtype == np.float32 else 1e-9
    factors = banded.factors(0.1, -1.5, entries)
    expected = np.linalg.solve(0.1 * np.eye(size) - 1.5 * matrix, right)
    found = banded.solve(factors, right)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, accuracy, accuracy)
    np.testing.assert_allclose(dense.solve(dense.factors(0.1, -1.5, matrix), right), expected,
                               accuracy, accuracy)  # fmt: skip
    found = banded.shifted.solve(factors, right, is_transposed=True)
    expected = np.linalg.solve(0.1 * np.eye(size) - 1.5 * matrix.T, right)
    np.testing.assert_allclose(found, expected, accuracy, accuracy)
    table = np.array([[1.0, 0.3], [-0.2, 0.7]]).astype(np.finfo(dtype).dtype)
    rights = rng.normal(size=(2, size)).astype(dtype)
    found = banded.solver(table, -0.3, [entries, 2 * entries])(rights)
    other = dense.solver(table, -0.3, [matrix, 2 * matrix])(rights)
    np.testing.assert_allclose(found, other, accuracy, accuracy)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("below", "above"), [(0, 0), (1, 0), (0, 2), (1, 1), (2, 3), (4, 4)])
def test_bands_of_few_diagonals(below: int, above: int) -> None:
    """Compiled, with every row exchanged that can be."""
    rng = np.random.default_rng(below)
    size = 12
    matrix = np.triu(np.tril(rng.normal(size=(size, size)), above), -below)
    matrix += (0.01 if below else 3.0) * np.eye(size)
    band = bands.Band(SparseArray.of(matrix != 0).pattern, np.arange(size))
    entries = matrix[band.pattern.rows, band.pattern.indices]
    right = rng.normal(size=size)
    for is_transposed in (False, True):
        solve = fg.jit(lambda e, b: band.solve(band.factors(0.0, e), b, is_transposed))  # noqa: B023
        expected = np.linalg.solve(matrix.T if is_transposed else matrix, right)
        np.testing.assert_allclose(solve(entries, right), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(
        [np.shape(x) for x in band.no_factors(float)],
        [np.shape(x) for x in band.factors(1.0, entries)],
    )


@pytest.mark.nightly
@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", METHODS)
def test_patterns_without_a_band_have_sparse_factors(method: str) -> None:
    """A graph whose neighbours are anywhere, with the gradient of its end."""
    n = 450
    rng = np.random.default_rng(0)
    places = [rng.permutation(n) for _ in range(3)]

    def flow(t: Any, y: Any, rate: Any) -> Any:
        return rate * sum(y[p] - y for p in places) - y**3

    def at_end(rate: Any, **options: Any) -> Any:
        start = np.linspace(0.0, 2.0, n)
        return integrate.solve_ivp(
            flow, (0.0, 0.5), start, method, np.array([0.5]), args=(rate,), rtol=1e-6, atol=1e-9,
            **options,
        )  # fmt: skip

    found = at_end(3.0)
    assert isinstance(found.sparsity, Coloring)
    pattern = scipy.sparse.lil_array((n, n))
    pattern[np.arange(n), np.arange(n)] = 1.0
    for p in places:
        pattern[np.arange(n), p] = 1.0
    expected = scipy.integrate.solve_ivp(
        flow, (0.0, 0.5), np.linspace(0.0, 2.0, n), method, np.array([0.5]), args=(3.0,),
        rtol=1e-6, atol=1e-9, jac_sparsity=pattern,
    )  # fmt: skip
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-5)
    value = fg.jit(fg.value_and_grad(lambda rate: at_end(rate).y.std()))
    step = 1e-3
    difference = (at_end(3.0 + step).y.std() - at_end(3.0 - step).y.std()) / (2 * step)
    assert value(3.0)[1] == pytest.approx(difference, rel=1e-3)


def test_columns_are_ordered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """SuperLU finds an order for the first matrix, and later ones are factored in it."""
    specs = []
    original = scipy.sparse.linalg.splu

    def splu(matrix: Any, permc_spec: str, **options: Any) -> Any:
        specs.append(permc_spec)
        return original(matrix, permc_spec=permc_spec, **options)

    monkeypatch.setattr(scipy.sparse.linalg, "splu", splu)
    rng = np.random.default_rng(0)
    matrix = SparseArray.of(
        (rng.uniform(size=(30, 30)) < 0.1) * rng.normal(size=(30, 30)) + np.eye(30)
    )
    factors = OrderedFactors(matrix.pattern)
    right = rng.normal(size=(30, 2))
    for scale in (1.0, 2.0, 2.0, 3.0):
        solve = factors(scale * matrix.data)
        for way, dense in (("N", matrix.toarray()), ("T", matrix.toarray().T)):
            np.testing.assert_allclose(solve(right, way), np.linalg.solve(scale * dense, right))
    assert specs == ["COLAMD", "NATURAL", "NATURAL"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 3, 40, 150])
def test_elimination_without_exchanges(n: int, dtype: Any) -> None:
    """Of patterns that are not symmetric, eagerly and compiled, one by one and mapped."""
    rng = np.random.default_rng(n)
    shape = (rng.uniform(size=(n, n)) < 3 / n) | np.eye(n, dtype=bool)
    factors = ShiftedFactors(SparseArray.of(shape).pattern)
    entries = rng.uniform(-0.2, 0.2, (2, shape.sum())).astype(dtype)
    right = rng.normal(size=(2, n)).astype(dtype)
    accuracy = 1e-12 if dtype == np.float64 else 1e-5
    for is_transposed in (False, True):

        def solve(entries: Any, right: Any) -> Any:
            return factors.solve(factors.factors(1.0, entries), right, is_transposed)  # noqa: B023

        dense = np.zeros((2, n, n))
        dense[:, shape] = entries
        dense += np.eye(n)
        expected = np.linalg.solve(dense.mT if is_transposed else dense, right[..., None])[..., 0]
        for found in (
            np.stack([solve(e, b) for e, b in zip(entries, right, strict=True)]),
            fg.jit(fg.vmap(solve))(entries, right),
        ):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, accuracy, accuracy)


def test_small_pivots_are_exchanged_where_solutions_must_be_exact() -> None:
    """Derivatives have one solution, whose factors no iteration corrects."""
    shape = np.ones((2, 2)) > 0
    factors = ShiftedFactors(SparseArray.of(shape).pattern)
    matrix = np.array([[1e-18, 1.0], [1.0, 1e-18]])

    @fg.jit
    def solve(entries: Any, right: Any) -> Any:
        plain = factors.solve(factors.factors(0.0, entries), right)
        return plain, *(factors.accurate(0.0, entries)(right, way) for way in (False, True))

    plain, *exact = solve(matrix.ravel(), np.array([1.0, 3.0]))
    assert not np.allclose(matrix @ plain, [1.0, 3.0])
    for found, a in zip(exact, (matrix, matrix.T), strict=True):
        np.testing.assert_allclose(a @ found, [1.0, 3.0], rtol=1e-12)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_singular_matrices_have_no_solution(dtype: Any, transposed: bool) -> None:
    """As those of SciPy's `spsolve`, they are nan."""
    factors = ShiftedFactors(SparseArray.of(np.ones((3, 3))).pattern)
    right = np.ones(3, dtype)

    def solve(entries: Any) -> Any:
        return factors.solve(factors.factors(0.0, entries), right, transposed)

    for entries in np.ones((3, 3)), np.diag([1.0, 0.0, 2.0]), np.zeros((3, 3)):
        dense = scipy.sparse.csc_array(entries.astype(dtype))
        with pytest.warns(scipy.sparse.linalg.MatrixRankWarning):
            assert np.isnan(scipy.sparse.linalg.spsolve(dense, right)).all()
        for way in solve, fg.jit(solve):
            assert np.isnan(way(entries.ravel().astype(dtype))).all()
