"""Sparse Jacobians and Hessians against dense ones, in every transformation."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import funcgrad as fg
from funcgrad.api import sparse_derivatives
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TracerBoolConversionError
from funcgrad.patterns import linear_programs
from funcgrad.scipy.sparse import SparseArray
from funcgrad.sparsity import SparsityPattern, coloring, jacobian_sparsity

X = np.random.default_rng(0).uniform(0.5, 1.5, 12)


def neighbours(x: Any) -> Any:
    return np.sin(x[1:] - x[:-1]) * x[1:]


def with_mean(x: Any) -> Any:
    return np.concatenate([neighbours(x), np.mean(x**2)[None]])


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def with_hub(x: Any) -> Any:
    return np.sum(np.cos(x[0] * x[1:])) + x[3] ** 3


@pytest.fixture(autouse=True, params=["evaluated", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """First calls are evaluated by NumPy, or compiled as later ones."""
    if request.param == "compiled":
        monkeypatch.setattr(sparse_derivatives, "MOST_WORK", -1)


@pytest.mark.parametrize("transformation", [fg.jacfwd, fg.jacrev, fg.jacobian])
@pytest.mark.parametrize("function", [neighbours, with_mean, lambda x: 2.0 * np.ones(3)])
def test_jacobians(transformation: Any, function: Any) -> None:
    found = transformation(function, sparse=True)(X)
    assert isinstance(found, scipy.sparse.csr_array)
    np.testing.assert_allclose(found.toarray(), fg.jacfwd(function)(X), rtol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", [rosenbrock, with_hub, np.sum])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hessians(function: Any, dtype: Any) -> None:
    x = X.astype(dtype)
    found = fg.hessian(function, sparse=True)(x)
    assert found.dtype == dtype
    expected = fg.hessian(function)(x)
    np.testing.assert_allclose(
        found.toarray(), expected, rtol=1e-4 if dtype == np.float32 else 1e-9
    )


@pytest.mark.parametrize("function", [rosenbrock, with_hub])
def test_the_second_call_compiles(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    make = sparse_derivatives.Jitted._compile

    def noted(self: Any, entry: Any, call: Any) -> Any:
        compiled.append(entry.staged.program.name)
        assert entry.staged.is_rerolled
        return make(self, entry, call)

    monkeypatch.setattr(sparse_derivatives.Jitted, "_compile", noted)
    at_once = sparse_derivatives.MOST_WORK < 0
    factor = 3.0 + at_once  # programs of equal functions are shared
    hessian, x = fg.hessian(lambda x: factor * function(x), sparse=True), 2.0 * X
    first = hessian(x)
    assert len(compiled) == at_once
    second = hessian(x)
    assert len(compiled) == 1
    np.testing.assert_array_equal(first.indices, second.indices)
    np.testing.assert_allclose(first.data, second.data, rtol=1e-12)
    assert first.data.flags.writeable
    assert first.data.base is None


def test_loops_of_derivatives_are_found_before_they_are_compiled() -> None:
    found: list[bool] = []
    factor = 5.0 + (sparse_derivatives.MOST_WORK < 0)  # programs of equal functions are shared

    def entry_of(self: Any, call: Any, count: bool) -> Any:
        entry = take(self, call, count)
        found.append(entry.staged.is_rerolled)
        return entry

    take = sparse_derivatives._FromSecondCall._entry
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sparse_derivatives._FromSecondCall, "_entry", entry_of)
        fg.hessian(lambda x: factor * rosenbrock(x), sparse=True)(X)
        assert found == [False]
        hessian = fg.hessian(lambda x: -factor * rosenbrock(x), sparse=True)
        within = fg.jit(lambda x: hessian(x).data)(X)
        assert found == [False, True]
    np.testing.assert_allclose(within, hessian(X).data, rtol=1e-12)


def test_loops_are_compiled_at_once() -> None:
    steps: list[int] = []

    def f(x: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            return np.sin(state) * x, steps.append(0)

        return fg.lax.scan(step, x, None, length=100)[0]

    found = fg.jacfwd(f, sparse=True)(X)
    np.testing.assert_allclose(found.toarray(), fg.jacfwd(f)(X), rtol=1e-9)
    assert len(steps) < 10


def test_few_dense_rows_are_pulled_beside_dense_columns() -> None:
    def arrow(x: Any) -> Any:
        return np.concatenate([np.sum(x**2)[None], x[0] * x[1:] ** 2])

    colors = coloring(jacobian_sparsity(arrow)(X), "both")
    assert (colors.n_columns, colors.n_rows) == (2, 1)
    found = fg.jacrev(arrow, sparse=True)(X)
    np.testing.assert_allclose(found.toarray(), fg.jacrev(arrow)(X))


def test_trees_of_arguments_and_results() -> None:
    def function(p: Any, scale: Any) -> Any:
        return {"a": p["u"][1:] * p["v"] * scale, "b": (p["u"] ** 2).reshape(1, 5)}

    p = {"u": X[:5], "v": X[5:9]}
    dense = fg.jacfwd(function, (0, 1))(p, 2.0)
    for transformation in (fg.jacfwd, fg.jacrev):
        found = transformation(function, (0, 1), sparse=True)(p, 2.0)
        for key, rows in dense.items():
            for own, other in zip(found[key], rows, strict=True):
                for leaf, expected in zip(fg.tree.leaves(own), fg.tree.leaves(other), strict=True):
                    np.testing.assert_allclose(leaf.toarray().ravel(), np.ravel(expected))


def test_extra_results_and_named_arguments() -> None:
    def function(x: Any, *, power: Any) -> Any:
        return x**power, {"sum": np.sum(x)}

    found, extra = fg.jacfwd(function, has_aux=True, sparse=True)(X, power=3)
    np.testing.assert_allclose(found.toarray(), np.diag(3 * X**2))
    np.testing.assert_allclose(extra["sum"], np.sum(X))
    found, extra = fg.hessian(lambda x: (np.sum(x**3), x), has_aux=True, sparse=True)(X)
    np.testing.assert_allclose(found.toarray(), np.diag(6 * X))
    np.testing.assert_array_equal(extra, X)


def test_in_transformations() -> None:
    def total(x: Any) -> Any:
        found = fg.jacfwd(neighbours, sparse=True)(x)
        assert isinstance(found, SparseArray)
        return np.sum(found.data**2)

    expected = lambda x: np.sum(fg.jacfwd(neighbours)(x) ** 2)  # noqa: E731
    np.testing.assert_allclose(fg.jit(total)(X), expected(X))
    np.testing.assert_allclose(fg.grad(total)(X), fg.grad(expected)(X))
    np.testing.assert_allclose(fg.jit(fg.grad(fg.checkpoint(total)))(X), fg.grad(expected)(X))
    mapped = fg.vmap(fg.jacrev(neighbours, sparse=True))(np.stack([X, 2 * X]))
    assert mapped.data.shape == (2, mapped.pattern.size)
    np.testing.assert_allclose(mapped.data[1], fg.jacrev(neighbours, sparse=True)(2 * X).data)
    steps = fg.lax.scan(lambda c, t: (c + total(t * X), None), 0.0, np.array([1.0, 2.0]))[0]
    np.testing.assert_allclose(steps, expected(X) + expected(2 * X))


def test_derivatives_of_linear_functions_are_constants() -> None:
    jacobian = fg.jacfwd(lambda x, y: 3.0 * np.diff(x, 2) + y[:10], sparse=True)
    program = fg.jit(lambda x, y: jacobian(x, y).data).trace(X, X)
    assert len(str(program).splitlines()) < 8
    first = jacobian(X, X)
    expected = 3.0 * np.diff(np.eye(12), 2, 0)
    np.testing.assert_allclose(first.toarray(), expected)
    first.data[:] = 0.0  # each call returns arrays of its own
    np.testing.assert_allclose(jacobian(X, X).toarray(), expected)
    square = lambda x: np.sum(np.diff(x) ** 2)  # noqa: E731
    total = lambda x: np.sum(fg.hessian(square, sparse=True)(x).data * x[0])  # noqa: E731
    np.testing.assert_allclose(fg.grad(total)(X), [2.0 * 11 * 2 - 2.0 * 22, *[0.0] * 11])


def test_constants_that_are_large_inside_take_memory_for_some_seeds_at_a_time() -> None:
    n = 160

    def f(v: Any) -> Any:
        x, y = v[::2], v[1::2]
        return np.sum(((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2) * np.triu(np.ones((n, n)), 1))

    x = np.arange(2.0 * n)
    tracemalloc.start()
    try:
        found = fg.hessian(f, sparse=True)(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    of_each = 2 * (n * np.eye(n) - np.ones((n, n)))
    np.testing.assert_allclose(found.toarray(), np.kron(of_each, np.eye(2)), atol=1e-9)
    assert peak < 0.6 * 8 * 2 * n * n * n


@pytest.mark.parametrize("shape", [(5, 40), (40, 5)])
def test_constants_by_some_seeds_at_a_time(shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_programs, "AT_ONCE", 80)
    matrix = np.random.default_rng(0).normal(size=shape)
    found = fg.jacobian(lambda x: matrix @ x, sparse=True)(np.ones(shape[1]))
    np.testing.assert_allclose(found.toarray(), matrix)


def test_what_a_linear_function_prints_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(x: Any) -> Any:
        fg.debug.print("first {}", x[0])
        return 2.0 * x

    np.testing.assert_allclose(fg.jacfwd(loud, sparse=True)(X).toarray(), 2.0 * np.eye(12))
    assert "first" in capsys.readouterr().out


def test_places_of_results_are_their_own() -> None:
    jacobian = fg.jacfwd(lambda x: x**2, sparse=True)
    x = np.array([1.0, 0.0, 2.0])
    ways = (
        lambda m: m, copy.copy, lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.T,
        scipy.sparse.csr_matrix,
    )  # fmt: skip
    for way in ways:
        found = way(jacobian(x))
        found.eliminate_zeros()
        assert found.nnz == 2
    assert jacobian(x).indices is jacobian(x).indices
    with pytest.raises(ValueError, match="read-only"):
        jacobian(x).indices[0] = 1
    np.testing.assert_allclose(jacobian(x).toarray(), np.diag(2 * x))
    assert jacobian(x).indices.dtype == np.int32


@pytest.mark.sampled(2)
@pytest.mark.parametrize("transformation", [fg.jacfwd, fg.jacrev])
def test_holomorphic_functions(transformation: Any) -> None:
    z = X + 0.3j
    for function in (neighbours, with_mean):
        expected = transformation(function, holomorphic=True)(z)
        found = transformation(function, holomorphic=True, sparse=True)(z)
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-15)
    power = lambda x: np.sum(x[1:] ** 2 * x[:-1])  # noqa: E731
    expected = fg.hessian(power, holomorphic=True)(z)
    narrow = fg.hessian(power, holomorphic=True, sparse=True)(z.astype(np.complex64))
    assert narrow.dtype == np.complex64
    np.testing.assert_allclose(narrow.toarray(), expected, rtol=1e-5)
    with pytest.raises(ArgumentError, match=r"misses an entry.*derivative -?0\.\d*[+-]0\.\d*j"):
        transformation(neighbours, holomorphic=True, sparse=np.eye(11, 12))(z)


def test_batches_of_matrices_are_mapped_over() -> None:
    """What vmap returns is no matrix: what it is used for is mapped, too."""
    xs = np.stack([X, 2 * X])
    batch = fg.vmap(fg.jacfwd(neighbours, sparse=True))(xs)
    each = [fg.jacfwd(neighbours)(x) for x in xs]
    np.testing.assert_allclose(fg.vmap(lambda a: a.toarray())(batch), each)
    np.testing.assert_allclose(
        fg.vmap(lambda a, x: a @ x)(batch, xs), [a @ x for a, x in zip(each, xs, strict=True)]
    )
    uses = (
        lambda: batch @ X, lambda: np.ones(11) @ batch, lambda: batch.toarray(), lambda: batch.T,
        lambda: batch + batch, lambda: batch.sum(), lambda: batch.sum(0), lambda: batch.to_scipy(),
        lambda: batch.diagonal(),
    )  # fmt: skip
    for use in uses:
        with pytest.raises(ShapeError, match=r"batch of matrices, with data of shape \(2, \d+\)"):
            use()


def test_types_of_matrices() -> None:
    found = fg.eval_shape(fg.jacfwd(neighbours, sparse=True), X)
    assert (found.shape, found.dtype, found.data.shape) == ((11, 12), np.float64, (found.nnz,))
    assert "float64" in repr(found)


@pytest.mark.parametrize("kind", ["pattern", "colours"])
def test_patterns_of_matrices_are_checked_however_they_are_given(kind: str) -> None:
    """Those of programs are not: nothing is missing."""
    of = fg.sparsity.SparsityPattern.of if kind == "pattern" else fg.sparsity.coloring
    with pytest.raises(ArgumentError, match=r"misses an entry\. In row 0 .* column\(s\) 1\."):
        fg.jacfwd(neighbours, sparse=of(np.eye(11, 12)))(X)
    whole = fg.sparsity.jacobian_sparsity(neighbours)(X)
    assert [p.is_of_program for p in (whole, whole.T)] == [True, True]
    for given in (of(whole.matrix), of(whole)):
        found = fg.jacrev(neighbours, sparse=given)(X)
        np.testing.assert_allclose(found.toarray(), fg.jacrev(neighbours)(X))


def wide(x: Any) -> Any:
    return fg.jacrev(with_mean, sparse=True)(x).data


def curved(x: Any) -> Any:
    return fg.hessian(rosenbrock, sparse=True)(x).data


def linear(x: Any) -> Any:
    return fg.jacfwd(np.diff, sparse=True)(x).data * x[0]


WORDS: dict[str, Any] = {
    "jit": fg.jit,
    "grad": lambda f: fg.grad(lambda x: np.sum(f(x) ** 2)),
    "jvp": lambda f: lambda x: fg.jvp(f, (x,), (np.ones_like(X),))[1],
    "vmap": lambda f: lambda x: fg.vmap(lambda s: f(s * x))(np.array([1.0, 2.0])).ravel(),
    "checkpoint": fg.checkpoint,
    "scan": lambda f: (
        lambda x: fg.lax.scan(lambda c, s: (c, f(s * c)), x, np.array([1.0, 2.0]))[1].ravel()
    ),
    "cond": lambda f: lambda x: fg.lax.cond(x[0] > 0, f, lambda x: 0 * f(x), x),
    "sparse": lambda f: lambda x: fg.jacfwd(f, sparse=True)(x) @ np.ones_like(X),
}


def of_dense(function: Any) -> Any:
    """The same entries out of dense derivatives, at places of a sparse one."""
    of_matrix, dense = {
        wide: (fg.jacrev(with_mean, sparse=True), fg.jacrev(with_mean)),
        curved: (fg.hessian(rosenbrock, sparse=True), fg.hessian(rosenbrock)),
        linear: (fg.jacfwd(np.diff, sparse=True), lambda x: fg.jacfwd(np.diff)(x) * x[0]),
    }[function]
    places = of_matrix(X).tocoo()
    return lambda x: dense(x)[places.row, places.col]


@pytest.mark.sampled(48)
@pytest.mark.parametrize("function", [wide, curved, linear])
@pytest.mark.parametrize(
    "word",
    [
        *WORDS, "jit grad", "grad jit", "jit vmap", "vmap grad", "grad vmap", "grad checkpoint",
        "grad scan", "scan grad", "jit cond", "jvp grad", "jit scan vmap", "grad cond",
        "sparse grad",
    ],
)  # fmt: skip
def test_compositions(function: Any, word: str) -> None:
    found, expected = function, of_dense(function)
    for part in reversed(word.split()):
        found, expected = WORDS[part](found), WORDS[part](expected)
    np.testing.assert_allclose(found(X), expected(X), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("transformation", [fg.jacfwd, fg.jacrev, fg.hessian])
def test_nothing_has_no_entries(transformation: Any) -> None:
    function = np.sum if transformation is fg.hessian else np.sin
    found = transformation(function, sparse=True)(np.zeros(0))
    assert found.shape == (0, 0)
    if transformation is not fg.hessian:
        assert transformation(lambda x: np.sin(x[:0]), sparse=True)(X).shape == (0, 12)
        assert transformation(lambda x: np.sin(x), sparse=True)(2.0).shape == (1, 1)


def test_arguments_are_chosen() -> None:
    product = lambda x, y: x**2 * y  # noqa: E731
    second = fg.jacrev(product, argnums=-1, sparse=True)(X, 2 * X)
    np.testing.assert_allclose(second.toarray(), np.diag(X**2))
    both = fg.jacfwd(product, argnums=(1, 0), sparse=True)(X, 2 * X)
    np.testing.assert_allclose(both[0].toarray(), np.diag(X**2))
    np.testing.assert_allclose(both[1].toarray(), np.diag(4 * X**2))
    total = lambda x, _, y: np.sum(product(x[:9], y) + y[0] * y**3)  # noqa: E731
    for argnums in ((0, 2), (2, 0)):
        blocks = fg.hessian(total, argnums=argnums, sparse=True)(X, 1.0, 2 * X[:9])
        expected = fg.hessian(total, argnums=argnums)(X, 1.0, 2 * X[:9])
        for i, j in np.ndindex(2, 2):
            np.testing.assert_allclose(blocks[i][j].toarray(), expected[i][j])
    mixed = fg.jacfwd(product, argnums=(0, 1), sparse=True)(X.astype(np.float32), X)
    np.testing.assert_allclose(mixed[1].toarray(), np.diag(X**2), rtol=1e-6)


def test_newton_steps_in_a_loop_that_carries_a_sparse_matrix() -> None:
    jacobian = fg.jacfwd(lambda x: x**2 + np.roll(x, 1), sparse=True)

    def step(_: Any, state: Any) -> Any:
        x, _ = state
        matrix = jacobian(x)
        return x - 0.01 * (matrix @ x), matrix

    x, matrix = fg.jit(lambda x: fg.lax.fori_loop(0, 3, step, (x, jacobian(x))))(X)
    assert matrix.shape == (12, 12)
    assert np.isfinite(x).all()


def test_patterns_that_are_given() -> None:
    dense = fg.jacfwd(neighbours)(X)
    pattern = jacobian_sparsity(neighbours)(X)
    for given in (dense != 0, scipy.sparse.csr_array(dense), pattern, coloring(pattern, "rows")):
        found = fg.jacfwd(neighbours, sparse=given)(X)
        np.testing.assert_allclose(found.toarray(), dense)


def test_a_pattern_that_misses_an_entry_is_found() -> None:
    given = np.eye(11, 12) + np.eye(11, 12, k=1)
    given[4, 5] = 0
    with pytest.raises(ArgumentError, match=r"In row 4 .* may also depend on column\(s\) 5"):
        fg.jacfwd(neighbours, sparse=given)(X)


def test_sizes_that_do_not_match() -> None:
    with pytest.raises(ShapeError, match=r"has the shape \(12, 12\), but .* 11 rows .* 12 columns"):
        fg.jacfwd(neighbours, sparse=np.eye(12))(X)


def test_what_has_no_sparse_derivative() -> None:
    with pytest.raises(TracerBoolConversionError, match=r"inside jacfwd\(on_values\)"):
        fg.jacfwd(on_values, sparse=True)(X)
    with pytest.raises(DtypeError, match=r"needs complex results, got f64\[12\]. Leave out `holo"):
        fg.jacfwd(abs, holomorphic=True, sparse=True)(X + 1j)
    with pytest.raises(DtypeError, match="needs real floating-point results, got c128"):
        fg.jacfwd(lambda x: x * 1j, sparse=True)(X)
    with pytest.raises(DtypeError, match=r"cannot differentiate argument `args\[0\]`"):
        fg.jacrev(neighbours, sparse=True)(np.arange(4))
    with pytest.raises(ArgumentError, match="is not sparse: its pattern has about"):
        fg.jacfwd(lambda x: x * np.sum(x), sparse=True)(np.ones(10**4))


def on_values(x: Any) -> Any:
    return x * x if x[0] > 0 else x


def test_a_new_size_compiles_nothing() -> None:
    jacobian = fg.jit(lambda x: fg.jacfwd(neighbours, sparse=True)(x).data)
    jacobian(X)
    before = jacobian.cache_info().kernels_compiled
    jacobian(np.concatenate([X, X]))
    assert jacobian.cache_info().kernels_compiled == before


def test_memory_is_linear_in_entries() -> None:
    x = np.linspace(0.0, 1.0, 10**5)
    found = fg.jacfwd(neighbours, sparse=True)(x)
    assert found.nnz == 2 * (10**5 - 1)
    np.testing.assert_allclose(
        found @ np.ones(10**5), fg.jvp(neighbours, (x,), (np.ones(10**5),))[1]
    )


def test_pickled() -> None:
    found = pickle.loads(pickle.dumps(fg.jacfwd(neighbours, sparse=True)))
    np.testing.assert_allclose(found(X).toarray(), fg.jacfwd(neighbours)(X))


def test_patterns_print_as_types() -> None:
    pattern = SparsityPattern.of(np.eye(3))
    assert repr(pattern) == "<SparsityPattern 3x3 with 3 entries>"
    assert repr(coloring(pattern)) == "<Coloring of 3x3 with 3 entries: 1 column>"
    assert pattern.T.shape == (3, 3)


def test_memory_is_linear_in_the_number_of_entries() -> None:
    """Patterns, colours and entries, at places that are listed one by one."""

    def peak(n: int) -> int:
        x = np.linspace(0.0, 1.0, n)
        place = np.random.default_rng(0).permutation(n)

        def f(x: Any) -> Any:
            return np.sum(np.sin(x) * x[place])

        tracemalloc.start()
        try:
            assert fg.hessian(f, sparse=True)(x).nnz <= 3 * n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1000)  # code that is loaded on first use
    small, large = peak(2_000), peak(8_000)
    assert 2_000 * 8 < small < large < 4.5 * small


def test_loops_that_are_found_again_do_not_make_patterns_dense() -> None:
    """A loop of Python that reads at indices from a table."""
    n = 60
    place = np.random.default_rng(0).permutation(n)

    def f(x: Any) -> Any:
        return np.stack([np.sin(x[place[i]]) * x[i] ** 2 for i in range(n)])

    pattern = jacobian_sparsity(f)(np.ones(n))
    expected = (np.eye(n) + np.eye(n)[place]) != 0
    np.testing.assert_array_equal(pattern.toarray(), expected)
    x = np.linspace(0.5, 1.5, n)
    np.testing.assert_allclose(
        fg.jacfwd(f, sparse=True)(x).toarray(), fg.jacfwd(f)(x), rtol=1e-12, atol=1e-12
    )


def test_what_is_contracted_from_seeds_alone_is_known_when_a_function_is_traced() -> None:
    weights = np.triu(np.tri(40, k=2)) + 1.0 * np.eye(40)

    def f(x: Any) -> Any:
        return np.sum((weights @ x) ** 4) + np.sum(x[:-1] ** 2 * x[1:])

    x = np.linspace(0.5, 1.5, 40)
    hessian = fg.hessian(f, sparse=True)
    np.testing.assert_allclose(hessian(x).toarray(), fg.hessian(f)(x), rtol=1e-10, atol=1e-10)
    program = str(fg.make_jaxpr(lambda x: hessian(x).data)(x))
    # Of all colours the product with the transpose alone: seeds have been through the matrix.
    assert "ij,ai->aj" in program
    assert "ij,aj->ai" not in program
    scaled = lambda x, s: np.sum((s * weights @ x) ** 4)  # noqa: E731
    np.testing.assert_allclose(
        fg.hessian(scaled, sparse=True)(x, 2.0).toarray(),
        fg.hessian(scaled)(x, 2.0),
        rtol=1e-10,
        atol=1e-10,
    )


@pytest.mark.parametrize("sparse", [None, "yes", 3, np.ones(12)])
def test_patterns_that_are_no_matrices(sparse: Any) -> None:
    with pytest.raises(ArgumentError, match=r"jacfwd\(neighbours\): `sparse` is True, False"):
        fg.jacfwd(neighbours, sparse=sparse)(X)


def test_patterns_of_hessians_are_symmetric() -> None:
    with pytest.raises(ArgumentError, match=r"hessian\(rosenbrock\): the pattern .* not symmetric"):
        fg.hessian(rosenbrock, sparse=np.triu(np.ones((12, 12))))(X)
