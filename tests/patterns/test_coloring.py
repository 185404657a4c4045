"""Colourings: verified on random matrices, and as few colours as theory allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.patterns import coloring as module
from funcgrad.patterns.coloring import KINDS, ORDERS, Coloring, coloring
from funcgrad.sparsity import (
    SparsityPattern,
    compress,
    decompress,
    hessian_sparsity,
    jacobian_sparsity,
    spy,
)


def matrix(name: str, n: int = 60) -> Any:
    rng = np.random.default_rng(3)
    if name == "arrow":
        found = np.eye(n)
        found[0], found[:, 0] = 1, 1
        return found
    if name == "dense row":
        found = np.eye(n)
        found[3] = 1
        return found
    if name == "band":
        return scipy.sparse.diags_array([1.0] * 5, offsets=range(-2, 3), shape=(n, n)).toarray()
    if name == "tall":
        return rng.uniform(size=(2 * n, n)) < 0.05
    return rng.uniform(size=(n, n)) < 0.05


def with_values(pattern: SparsityPattern, is_symmetric: bool) -> Any:
    values = pattern.matrix.astype(np.float64)
    values.data = np.random.default_rng(0).uniform(0.5, 1.5, values.nnz)
    return (values + values.T).tocsr() if is_symmetric else values


@pytest.mark.parametrize("order", [None, *ORDERS])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["arrow", "dense row", "band", "tall", "random"])
def test_entries_come_back_from_their_products(name: str, kind: str, order: Any) -> None:
    given = matrix(name)
    if kind in ("symmetric", "acyclic"):
        given = given[: given.shape[1]]
        given = (given != 0) | (given != 0).T
    pattern = SparsityPattern.of(given)
    values = with_values(pattern, kind in ("symmetric", "acyclic"))
    colors = coloring(pattern, kind, order)
    found = decompress(compress(values, colors), colors)
    np.testing.assert_allclose(found.toarray(), values.toarray(), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [("arrow", "columns", 60), ("arrow", "both", 3), ("arrow", "symmetric", 2),
     ("dense row", "columns", 60), ("dense row", "rows", 2), ("dense row", "both", 2),
     ("band", "columns", 5), ("band", "rows", 5), ("arrow", "acyclic", 2), ("band", "acyclic", 3)],
)  # fmt: skip
def test_as_few_colours_as_possible(name: str, kind: str, count: int) -> None:
    assert coloring(matrix(name), kind).n_colors == count


def test_diagonals_are_coloured_without_their_entries() -> None:
    struct = fg.ShapeDtypeStruct((10**7,), np.float64)
    pattern = jacobian_sparsity(lambda x: x[2:] - x[1:-1] * x[:-2])(struct)
    colors = coloring(pattern)
    assert colors.n_colors == 3
    assert "matrix" not in vars(pattern)


def test_periods_are_verified() -> None:
    def grid(u: Any) -> Any:
        p = np.pad(u.reshape(12, 13), 1)
        return (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - u.reshape(12, 13)).ravel()

    pattern = jacobian_sparsity(grid)(np.ones(156))
    period = module._period(pattern)
    assert period is not None
    assert 5 <= period <= 9
    assert len(Coloring(pattern, np.arange(156) % period).sources) == pattern.nnz


def test_large_graphs_are_coloured_by_a_compiled_loop_in_the_same_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = scipy.sparse.random_array((400, 300), density=0.02, rng=np.random.default_rng(0))
    expected = [coloring(given, order=order).column_colors for order in ORDERS]
    monkeypatch.setattr(module, "FEW", 0)
    found = [coloring(given, order=order).column_colors for order in ORDERS]
    np.testing.assert_array_equal(found, expected)


def test_wrong_colours_are_found() -> None:
    pattern = SparsityPattern.of(np.eye(3) + np.eye(3, k=1))
    wrong = Coloring(pattern, np.array([0, 0, 1]))
    with pytest.raises(ArgumentError, match="entry in row 0 and column 0 cannot be told"):
        _ = wrong.sources


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="`kind` must be one of columns, rows, both"):
        coloring(np.eye(2), "diagonals")
    with pytest.raises(ArgumentError, match="`order` must be one of natural, largest_first"):
        coloring(np.eye(2), order="random")
    with pytest.raises(ArgumentError, match="is not symmetric"):
        coloring(np.eye(2, k=1), "symmetric")
    with pytest.raises(ArgumentError, match="a sparsity pattern is a matrix"):
        SparsityPattern.of(np.ones(3))
    with pytest.raises(ShapeError, match=r"needs 1 products of 2 elements .* got f64\[3\]"):
        decompress(np.ones(3), coloring(np.eye(2)))
    with pytest.raises(ShapeError, match=r"is not of a matrix of shape \(3, 3\)"):
        compress(np.eye(3), coloring(np.eye(2)))
    for function in (compress, decompress):
        with pytest.raises(ArgumentError, match=r"needs a Coloring .* got ndarray"):
            function(np.eye(2), np.eye(2))
    for function in (jacobian_sparsity, hessian_sparsity):
        with pytest.raises(ArgumentError, match="needs a function as its first argument, got int"):
            function(3)


def test_patterns_without_entries_have_no_products() -> None:
    nothing = coloring(np.zeros((3, 2)))
    assert compress(np.zeros((3, 2)), nothing).shape == (0,)
    assert decompress(np.zeros(0), nothing).shape == (3, 2)


def test_decompression_is_differentiable() -> None:
    colors = coloring(np.eye(3) + np.eye(3, k=1))
    products = np.arange(6.0).reshape(2, 3)
    slope = fg.grad(lambda p: (decompress(p, colors).data ** 2).sum())(products)
    expected = np.zeros(6)
    expected[colors.sources] = 2 * products.ravel()[colors.sources]
    np.testing.assert_allclose(slope.ravel(), expected)


def test_pictures() -> None:
    pattern = hessian_sparsity(lambda x: np.sum(x[1:] * x[:-1]))(np.ones(6))
    for drawn in (pattern, coloring(pattern, "symmetric"), coloring(pattern, "rows")):
        (axes,) = spy(drawn).axes
        assert len(axes.collections[0].get_offsets()) == pattern.nnz


def test_dense_symmetric_matrices_take_a_colour_for_each_column() -> None:
    matrix = np.ones((200, 200), bool)
    matrix[:, [3, 70]] = matrix[[3, 70]] = False
    colors = coloring(matrix, "symmetric")
    assert colors.n_colors == 198
    assert len(colors.sources) == 198**2  # which verifies it


def test_large_arrows_are_coloured_in_linear_time() -> None:
    """Paths through the hub are not walked one by one: there are a billion of them."""
    n = 30_000
    hub = scipy.sparse.csr_array((np.ones(n, bool), (np.zeros(n, int), np.arange(n))), (n, n))
    arrow = hub + hub.T + scipy.sparse.eye_array(n, dtype=bool)
    assert coloring(arrow, "symmetric").n_colors == 2


def path(n: int) -> Any:
    return scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))


def test_entries_follow_from_each_other() -> None:
    """Trees need two colours, and no acyclic colouring has more than a star colouring."""
    assert coloring(path(50), "acyclic").n_colors == 2
    assert coloring(path(50), "symmetric").n_colors == 3
    for name in ("arrow", "band", "random"):
        given = (matrix(name) != 0) | (matrix(name) != 0).T
        fewest = coloring(given, "acyclic").n_colors
        assert fewest <= coloring(given, "symmetric").n_colors


def test_acyclic_colourings_give_hessians_and_their_derivatives() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x[1:] * x[:-1])) + np.sum(x**3)

    x = np.linspace(0.1, 1.0, 30)
    colors = coloring(hessian_sparsity(f)(x), "acyclic")
    assert colors.n_colors == 2
    dense = np.asarray(fg.hessian(f)(x))
    np.testing.assert_allclose(fg.hessian(f, sparse=colors)(x).toarray(), dense, atol=1e-12)
    weights = np.arange(30.0)

    def along(x: Any, sparse: Any) -> Any:
        return weights @ (fg.hessian(f, sparse=sparse)(x) @ weights)

    found = fg.jit(fg.grad(lambda x: along(x, colors)))(x)
    np.testing.assert_allclose(found, fg.grad(lambda x: along(x, False))(x), rtol=1e-9)


@pytest.mark.parametrize("wrong", [[0, 1, 0, 1], [0, 0, 1, 2]])
def test_cycles_in_two_colours_are_found(wrong: list[int]) -> None:
    ring = path(4).toarray()
    ring[0, 3] = ring[3, 0] = 1
    pattern = SparsityPattern.of(ring)
    with pytest.raises(ArgumentError, match=r"no acyclic colouring of .* there is a cycle"):
        _ = Coloring(pattern, np.array(wrong), None, True, is_acyclic=True).sources


def test_what_has_no_entries_has_no_colour() -> None:
    for kind in KINDS:
        colors = coloring(np.zeros((5, 5)), kind)
        assert colors.n_colors == 0
        assert len(colors.sources) == 0
        assert decompress(np.zeros(0), colors).shape == (5, 5)


def test_dense_blocks_share_their_colours() -> None:
    """Also of half of all elements, and rows that are longer than a fourth of the columns."""
    blocks = np.kron(np.eye(2), np.ones((300, 300)))
    assert coloring(blocks, "symmetric").n_colors == 300
    assert coloring(np.kron(np.eye(4), np.ones((300, 300)))).n_colors == 300
    assert coloring(np.kron(np.eye(500), np.ones((2, 2))), "symmetric").n_colors == 2


def test_parts_with_all_edges_take_as_many_colours_as_vertices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found without an order, however their columns are mixed."""
    order = np.random.default_rng(0).permutation(1500)  # more rows than graphs have edges for
    blocks = np.kron(np.eye(3), np.ones((500, 500)))[order][:, order]
    rows = np.eye(1500)[order]
    rows[:300, order[300:600]] = 1  # which joins two parts
    expected = coloring(rows).n_colors, coloring(blocks, "symmetric").n_colors
    monkeypatch.setattr("funcgrad.patterns.coloring.FEW", 1 << 10)
    monkeypatch.setattr("funcgrad.patterns.coloring.FEW_STEPS", 1 << 10)
    assert (coloring(rows).n_colors, coloring(blocks, "symmetric").n_colors) == expected
    monkeypatch.setattr("funcgrad.patterns.coloring._ordered", None)
    for kind in ("columns", "both", "symmetric"):
        colors = coloring(blocks, kind, "natural")
        assert colors.n_colors == 500
        assert len(colors.sources) == 3 * 500**2  # which verifies it


def test_the_union_that_errors_ask_for() -> None:
    pattern = SparsityPattern.of(np.eye(4, k=1))
    with pytest.raises(ArgumentError, match=r"pattern \| pattern.T"):
        coloring(pattern, "symmetric")
    both = pattern | pattern.T
    np.testing.assert_array_equal(both.toarray(), (np.eye(4, k=1) + np.eye(4, k=-1)) != 0)
    assert coloring(both, "symmetric").n_colors == 3
    with pytest.raises(ShapeError, match="have no union"):
        pattern | np.eye(3)


def has_star(colors, width):
    """Whether the last vertex of a band has another colour than its neighbours, and no path of four
    vertices through it has two colours: by definition."""
    n = len(colors)
    near = [[w for w in range(n) if w != v and abs(v - w) <= width] for v in range(n)]
    if any(colors[w] == colors[n - 1] for w in near[n - 1]):
        return False
    paths = ((a, b, c, d) for b in range(n) for a in near[b] for c in near[b] for d in near[c])
    return not any(
        len({a, b, c, d}) == 4 and n - 1 in (a, b, c, d)
        for a, b, c, d in paths
        if colors[a] == colors[c] and colors[b] == colors[d]
    )


@pytest.mark.parametrize("width", [6, 9])
def test_stars_save_nothing_in_wide_bands(width):
    n = 4 * width
    band = abs(np.subtract.outer(np.arange(n), np.arange(n))) <= width
    colors = coloring(SparsityPattern.of(band), "symmetric")
    assert colors.n_colors == 2 * width + 1
    assert len(colors.sources) == band.sum()


def longest_band(width, n_colors, most):
    """Vertices of the longest band with so many colours: all beginnings, up to names of colours.

    Paths of four vertices are within ``3 width + 1`` consecutive ones, so no more are kept of each.
    """
    known, n = {()}, 0
    while known and n < most:
        longer = set()
        for colors in known:
            for color in range(min(n_colors, max(colors, default=-1) + 2)):
                if has_star((*colors, color), width):
                    kept = (*colors, color)[-3 * width :]
                    names = {c: i for i, c in enumerate(dict.fromkeys(kept))}
                    longer.add(tuple(names[c] for c in kept))
        known, n = longer, n + bool(longer)
    return n


@pytest.mark.parametrize(
    "width",
    [
        1,
        2,
        3,
        pytest.param(4, marks=pytest.mark.nightly),
        pytest.param(5, marks=pytest.mark.nightly),
    ],
)
def test_stars_of_bands_need_as_many_colours_as_columns(width):
    assert longest_band(width, 2 * width, 10 * width) == 3 * width
    n = 3 * width + 1
    band = abs(np.subtract.outer(np.arange(n), np.arange(n))) <= width
    assert coloring(band, "symmetric").n_colors == 2 * width + 1


@pytest.mark.parametrize("order", ["blocks first", "blocks last", "mixed"])
def test_blocks_that_all_depend_on_a_few_take_few_colours(order: str) -> None:
    """The Hessian of bundle adjustment: cameras meet all points, and neither meets its own kind."""
    cameras, points = 4, 200
    n = 2 * cameras + 3 * points
    dense = np.zeros((n, n), bool)
    for first, size, count in ((0, 2, cameras), (2 * cameras, 3, points)):
        for k in range(count):
            block = slice(first + size * k, first + size * (k + 1))
            dense[block, block] = True
    dense[: 2 * cameras, 2 * cameras :] = dense[2 * cameras :, : 2 * cameras] = True
    place = {
        "blocks first": np.roll(np.arange(n), -2 * cameras),
        "blocks last": np.arange(n),
        "mixed": np.random.default_rng(0).permutation(n),
    }[order]
    colors = coloring(dense[np.ix_(place, place)], "symmetric")
    assert colors.n_colors == 2 * cameras + 3
    assert (colors.sources >= 0).all()


def test_pairs_take_two_colours() -> None:
    """A chain of pairs is on the diagonals of a band, of which rows are left out."""

    def f(x: Any) -> Any:
        return np.sum((x[1::2] - x[::2] ** 2) ** 2)

    assert coloring(hessian_sparsity(f)(np.ones(500)), "symmetric").n_colors == 2


def graphs() -> Any:
    rng = np.random.default_rng(5)
    for n, share in ((1, 1.0), (30, 0.1), (60, 0.3), (400, 0.01)):
        found = rng.uniform(size=(n, n)) < share
        yield found | found.T | np.eye(n, dtype=bool)
    yield (found | found.T) & ~np.eye(n, dtype=bool)
    yield matrix("arrow") != 0
    yield matrix("band") != 0
    yield np.ones((70, 70), bool)  # more colours than compiled sets have room for


@pytest.mark.parametrize(
    "order", ["natural", pytest.param("smallest_last", marks=pytest.mark.nightly)]
)
def test_compiled_stars_are_those_of_python(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for graph in map(scipy.sparse.csr_array, graphs()):
        found = []
        for few in (graph.nnz, 0):
            monkeypatch.setattr(module, "FEW_STEPS", few)
            found.append(module._star(graph, module._ordered(graph, order)))
        np.testing.assert_array_equal(*found)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("number", range(8))
def test_substitution_finds_the_entries(number: int) -> None:
    pattern = SparsityPattern.of(scipy.sparse.csr_array([*graphs()][number]))
    values = with_values(pattern, True)
    colors = coloring(pattern, "acyclic", "natural")
    assert colors.substitution.is_complete
    assert (colors.sources >= 0).all()
    products = values.toarray() @ colors.column_seeds().T
    found = colors.entries(products.T.ravel())
    np.testing.assert_allclose(np.asarray(found), values.data, atol=1e-9)


def test_substitution_finds_cycles() -> None:
    ring = path(4).toarray()
    ring[0, 3] = ring[3, 0] = 1
    wrong = Coloring(SparsityPattern.of(ring), np.array([0, 1, 0, 1]), None, True, is_acyclic=True)
    with pytest.raises(ArgumentError, match="there is a cycle"):
        _ = wrong.sources
