"""Products of matrices: tiles on every inner loop, their sharing among threads, and what waits."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.compiler.abi import FIRST_SLOT, LANES_SLOT, TILE_WORDS
from funcgrad.compiler.loops.language import NamedFunction
from funcgrad.compiler.loops.library.panels import BlockCopy, Copies, MirrorCopy, PanelCopy
from funcgrad.compiler.loops.library.tiles import (
    DEPTH,
    Shape,
    TileLines,
    TileRows,
    Tiles,
    inner_shape,
)
from funcgrad.compiler.native import llvm_backend, llvmlite_path
from funcgrad.compiler.runtime.matmul import stay_near
from funcgrad.compiler.runtime.threads import is_available
from tests.compiler.kernels import assembled

pytestmark = pytest.mark.skipif(not is_available(), reason="products are calls of BLAS here")

LETTERS = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
FEATURES = {"512 bits": "+avx512f,+avx", "256 bits": "+avx", "neon": "+neon", "128 bits": "+sse2"}
TOLERANCE = {np.float32: 1e-4, np.float64: 1e-12, np.complex64: 1e-4, np.complex128: 1e-12}

_NUMBERS = itertools.count()

Kernel = Callable[[int, int], int]


@cache
def compiled(program: NamedFunction) -> int:
    """The address of native code for any processor, run on this one."""
    symbol = f"fg_tiles_{next(_NUMBERS)}"
    code = assembled(program, symbol)
    made = llvm_backend.Emission(code.text, llvm_backend.Effort.TILES).result()
    return llvmlite_path.load(made, symbol)


def kernel(letter: str, features: str) -> Kernel:
    """The step of a product."""
    word, code = ctypes.c_int64, Tiles.named(letter, shape_of(letter, features).lanes)
    return ctypes.CFUNCTYPE(word, ctypes.c_void_p, ctypes.c_void_p)(compiled(code))


def shape_of(letter: str, features: str) -> Shape:
    itemsize = 8 if letter in "dzl" else 4
    return inner_shape(itemsize, FEATURES[features])


def inner_of(letter: str, features: str, m: int, n: int) -> tuple[int, tuple[int, ...]]:
    """Rows and vectors of matrices with so many rows and columns."""
    shape = shape_of(letter, features)
    strips = -(-n * (2 if letter in "cz" else 1) // shape.lanes)
    return shape.fitted(m, strips)[:2]


def multiply(
    letter: str,
    features: str,
    a: Any,
    b: Any,
    trans: tuple[bool, bool],
    tile: tuple[int, int],
    inner: tuple[int, tuple[int, ...]] | None = None,
    copies: Copies | None = None,
    is_mirrored: bool = False,
    is_by_lines: bool = False,
) -> Any:
    """Stacks of matrices, multiplied tile by tile, the last tile first.

    Args:
        letter: BLAS's type.
        features: Those of the processor.
        a: The first matrices.
        b: The second ones.
        trans: Which of them are transposed.
        tile: Rows of a tile, and panels.
        inner: The rows and the vectors of inner loops.
        copies: What is copied; by default, panels of the second matrices.
        is_mirrored: Whether half of the tiles are copies.
        is_by_lines: Whether second matrices are read along their rows.
    """
    shape = shape_of(letter, features)
    batch, m, k = a.shape if not trans[0] else a.transpose(0, 2, 1).shape
    n = b.shape[1 if trans[1] else 2]
    out = np.full((batch, m, n), np.nan if a.dtype.kind in "fc" else 1, a.dtype)
    unit, itemsize = (2 if a.dtype.kind == "c" else 1), a.itemsize
    rows, vectors = inner or inner_of(letter, features, shape.rows, n)
    if copies is None:
        copies = Copies.COLUMNS if trans[1] and unit == 1 else Copies.ROWS
    strips = -(-unit * n // shape.lanes)
    panel = min(vectors[0], max(strips, 1))
    tile = tile[0], tile[1] * panel
    tiles = -(-m // tile[0]), max(-(-strips // tile[1]), 1)
    block = -(-tile[0] // 2 // rows) * rows  # two blocks, the second one not whole
    lane = DEPTH * (tile[1] * shape.lanes + block) * a.real.itemsize
    scratch = np.full(lane, 255, np.uint8)  # NaN
    slots = np.zeros(FIRST_SLOT + 4, np.int64)
    arrays = (a, b, out, scratch)
    slots[FIRST_SLOT:] = [x.ctypes.data for x in arrays]
    steps = [x.strides[:0:-1] if t else x.strides[1:] for x, t in zip((a, b), trans, strict=True)]
    of_type = letter, shape.lanes
    words = dict.fromkeys(TILE_WORDS, 0) | {
        "rows": m,
        "strips": strips,
        "columns": unit * n,
        "terms": k,
        "blocks": max(-(-unit * k // DEPTH), 1),
        "groups": tiles[0],
        "strip_groups": tiles[1],
        "tile_rows": tile[0],
        "block_rows": block,
        "tile_strips": tile[1],
        "panel": panel,
        "inner_rows": rows,
        "lane": lane,
        "row_a": steps[0][0],
        "term_a": steps[0][1],
        "term_b": steps[1][0],
        "column_b": steps[1][1],
        "row_c": n * itemsize,
        **{f"slot_{x}": FIRST_SLOT + i for i, x in enumerate("abc")},
        **{f"stride_{x}": array.strides[0] for x, array in zip("abc", arrays, strict=False)},
        "scratch": FIRST_SLOT + 3,
    }
    for i, v in enumerate(vectors):
        words |= {f"vectors_{i}": v, f"code_{i}": compiled(TileRows.named(*of_type, (rows, v)))}
    if copies is not Copies.NONE:
        words["panel_code"] = compiled(PanelCopy.named(*of_type, copies))
        if unit == 1 and trans[0]:
            words["block_code"] = compiled(BlockCopy.named(*of_type, rows))
    if is_mirrored:
        words["mirror_code"] = compiled(MirrorCopy.named(*of_type))
    if is_by_lines:
        words["lines_code"] = compiled(TileLines.named(*of_type, rows))
    run = kernel(letter, features)
    for first in reversed(range(batch * tiles[0] * tiles[1])):
        words |= {"begin": first, "end": first + 1}
        args = np.array([words[name] for name in TILE_WORDS], np.int64)
        assert run(slots.ctypes.data, args.ctypes.data) == 0
        assert slots[LANES_SLOT] == 0
    return out


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype().dtype.kind == "c" else x).astype(dtype)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("letter", [letter for letter in LETTERS if letter in "sd"])
def test_half_of_a_symmetric_product_is_the_other_half(letter: str, features: str) -> None:
    shape = shape_of(letter, features)
    rng = np.random.default_rng(0)
    for n, k in ((1, 1), (7, 3), (50, 9), (130, 300)):
        a = random(rng, (2, n, k), LETTERS[letter])
        for trans in ((False, True), (True, False)):
            x = np.ascontiguousarray(a.transpose(0, 2, 1)) if trans[0] else a
            inner = inner_of(letter, features, shape.rows, n)
            size = inner[1][0] * shape.lanes
            given = letter, features, x, x, trans, (size, 1)
            whole, half = multiply(*given), multiply(*given, inner, is_mirrored=True)
            np.testing.assert_array_equal(half, whole)
            np.testing.assert_array_equal(half, half.transpose(0, 2, 1))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("letter", [letter for letter in LETTERS if letter in "sd"])
def test_what_is_read_where_it_is_is_multiplied_as_copies_are(letter: str, features: str) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in ((1, 1, 1), (2, 700, 5), (5, 33, 300), (8, 515, 2 * DEPTH + 3), (24, 40, 9)):
        b = random(rng, (2, k, n), LETTERS[letter])
        for is_trans in (False, True):
            a = random(rng, (2, k, m) if is_trans else (2, m, k), LETTERS[letter])
            given = letter, features, a, b, (is_trans, False), (m, 2)
            expected = multiply(*given)
            inner = inner_of(letter, features, m, n)
            for copies in (Copies.NONE, Copies.ROWS):
                np.testing.assert_array_equal(multiply(*given, inner, copies), expected)
            if m <= inner[0]:
                along = multiply(*given, inner, Copies.NONE, is_by_lines=True)
                np.testing.assert_array_equal(along, expected)


def test_few_numbers_of_rows_have_inner_loops() -> None:
    """Little is computed in vain; what columns there are makes no other program."""
    shape = inner_shape(4, "+avx512f")
    assert [shape.fitted(m, 8) for m in (0, 1, 3, 7, 8, 9, 100)] == [
        (1, (8, 4, 2, 1), 8),
        (1, (8, 4, 2, 1), 8),
        (4, (6, 3, 2, 1), 6),
        (8, (3, 2, 1), 3),
        (8, (3, 2, 1), 3),
        (6, (4, 2, 1), 4),
        (8, (3, 2, 1), 3),
    ]


def test_rows_that_share_sets_of_a_cache_are_copied() -> None:
    """Those of power-of-two matrices lie a multiple of a way's bytes, or of its half, apart."""
    assert stay_near(DEPTH, 4 * 500)
    assert not stay_near(DEPTH, 4 * 512)
    assert stay_near(8, 4 * 512)
    args = np.ones((20, 300), "f4"), np.ones((300, 512), "f4")
    np.testing.assert_array_equal(fg.jit(lambda x, y: x @ y)(*args), np.full((20, 512), 300, "f4"))


@pytest.mark.parametrize(
    ("features", "rows", "widths"),
    [
        ("+avx512f", 8, {1: 8, 2: 8, 4: 6, 6: 4, 8: 3}),
        ("+avx,+avx2", 6, {1: 8, 2: 6, 4: 3, 6: 2}),
        ("+sse2", 6, {1: 8, 2: 6, 4: 3, 6: 2}),
        ("+neon", 8, {1: 8, 2: 8, 4: 6, 6: 4, 8: 3}),
    ],
)
def test_inner_loops_fit_into_registers(features: str, rows: int, widths: dict[int, int]) -> None:
    shape = inner_shape(4, features)
    assert shape.rows == rows
    assert {n: shape.width(n) for n in shape.counts} == widths
    for n, v in widths.items():
        assert n * v + min(n, v) + 1 <= shape.registers  # sums and operands


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("subscripts", ["j,bjk->bk", "bjk,j->bk", "bjk,j->kb"])
@pytest.mark.parametrize("shape", [(1000, 7, 2), (40, 7, 16), (3, 100, 50), (300, 20, 1)])
def test_a_vector_times_a_matrix_that_lies_apart_copies_nothing(
    subscripts: str, shape: tuple[int, int, int], dtype: str
) -> None:
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=shape).astype(dtype), rng.normal(size=shape[1]).astype(dtype)
    args = (v, x) if subscripts.startswith("j") else (x, v)
    f = fg.jit(lambda *args: fnp.einsum(subscripts, *args))
    np.testing.assert_allclose(f(*args), np.einsum(subscripts, *args), rtol=2e-4, atol=1e-4)
    memory = f.lower(*args).compile().memory_analysis()
    out = 2 * shape[0] * shape[2] * x.itemsize
    assert memory.peak_memory_in_bytes <= x.nbytes + v.nbytes + out + 4096


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(17, 1), (100, 3), (40, 16), (40, 17), (5, 4)])
def test_a_vector_times_a_narrow_constant(shape: Any, order: Any, dtype: str) -> None:
    rng = np.random.default_rng(sum(shape))
    matrix = np.asarray(rng.standard_normal(shape), dtype, order)
    x, y = (rng.standard_normal(n).astype(dtype) for n in shape)
    rtol = 1e-5 if dtype == "f4" else 1e-13
    for f, arg in (
        (lambda v: matrix @ v, y),
        (lambda v: v @ matrix.T, y),
        (lambda v: v @ matrix, x),
        (lambda v: matrix.T @ v, x),
        (lambda v: matrix[::-1] @ v + matrix[:, ::-1] @ v, y),
        (lambda v: matrix.T[:, 3:] @ v[3:], x),
    ):
        scale = np.abs(matrix).sum() * rtol
        np.testing.assert_allclose(fg.jit(f)(arg), f(arg), rtol=rtol, atol=scale)
        gradient = fg.jit(fg.grad(lambda v, f=f: fnp.sum(f(v) ** 2)))(arg)
        expected = fg.grad(lambda v, f=f: fnp.sum(f(v) ** 2))(arg)
        np.testing.assert_allclose(gradient, expected, rtol=10 * rtol, atol=10 * scale)


def test_a_narrow_constant_is_laid_out_once() -> None:
    """Along its long side, for the function and for its derivative, in vectors, without tiles."""
    matrix, y = np.arange(300.0).reshape(100, 3), np.ones(100)
    f = fg.jit(fg.value_and_grad(lambda w: fnp.sum((matrix @ w - y) ** 2)))
    text = f.lower(np.ones(3)).compile().as_text()
    assert "matrix product" not in text
    assert "f64[100,3]" not in text[text.index("plan") :]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(100, 3), (3, 100), (70, 16), (17, 1), (900, 4)])
def test_products_with_narrow_constants_are_those_of_a_batch(
    shape: tuple[int, int], dtype: str
) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=shape).astype(dtype)
    for f, n in ((lambda x: matrix @ x, shape[1]), (lambda x: x @ matrix, shape[0])):
        xs = rng.normal(size=(9, n)).astype(dtype)
        found = [fg.jit(f)(x) for x in xs]
        for count in (9, 2):
            many = fg.jit(fg.vmap(f))(xs[:count])
            np.testing.assert_array_equal(found[:count], many)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_few_rows_need_no_copies(dtype: str) -> None:
    x, w = np.ones((3, 700), dtype), np.ones((700, 900), dtype)
    compiled = fg.jit(lambda x, w: np.tanh(x @ w) + 1).lower(x, w).compile()
    memory = compiled.memory_analysis()
    needed = x.nbytes + w.nbytes + 2 * 3 * 900 * x.itemsize
    assert memory.peak_memory_in_bytes <= needed + 4096


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_few_rows_read_a_large_matrix_along_its_rows(dtype: str, threads: int) -> None:
    """Their bits are those of a batch, also where columns do not fill vectors."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(600, 1301)).astype(dtype)
    x = rng.normal(size=(40, 600)).astype(dtype)
    f = fg.jit(lambda x, w: x @ w, threads=threads)
    whole = f(x, w)
    for m in (2, 3, 4, 5):
        np.testing.assert_array_equal(f(x[:m], w), whole[:m])
        np.testing.assert_allclose(whole[:m], x[:m] @ w, 1e-3, 1e-3)
        np.testing.assert_array_equal(f(x[:m, :256], w[:256]), f(x[:, :256], w[:256])[:m])


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("n", [127, 128, 200])
def test_products_with_the_own_transpose(n: int, dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(2, n, 33)).astype(dtype)
    rows = fg.jit(lambda x: x @ np.swapaxes(x, 1, 2))(x)
    columns = fg.jit(lambda x: np.swapaxes(x, 1, 2) @ x)(np.swapaxes(x, 1, 2).copy())
    other = fg.jit(lambda x, y: x @ np.swapaxes(y, 1, 2))(x, x.copy())
    np.testing.assert_array_equal(rows, other)
    np.testing.assert_array_equal(columns, other)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("letter", LETTERS)
def test_tiles_of_all_sizes(letter: str, features: str) -> None:
    dtype = LETTERS[letter]
    rng = np.random.default_rng(0)
    grain = shape_of(letter, features).lanes // (2 if letter in "cz" else 1)
    sizes = [(1, 1, 1), (2, 3, 0), (8, grain, 256), (9, grain + 1, 257), (5, 4 * grain - 1, 600)]
    sizes += [tuple(int(x) for x in rng.integers(1, 60, 3)) for _ in range(25)]
    for (m, n, k), trans in itertools.product(sizes, itertools.product((False, True), repeat=2)):
        batch = int(rng.integers(1, 3))
        a, b = random(rng, (batch, m, k), dtype), random(rng, (batch, k, n), dtype)
        stored = [
            np.ascontiguousarray(x.transpose(0, 2, 1)) if t else x
            for x, t in zip((a, b), trans, strict=True)
        ]
        tile = int(rng.choice([4, 8, 24, 64])), int(rng.choice([1, 2, 4]))
        found = multiply(letter, features, *stored, trans, tile)
        wide = np.result_type(dtype, np.float64)
        expected = a.astype(wide) @ b.astype(wide)
        scale = TOLERANCE[dtype] * max(k, 1) ** 0.5
        np.testing.assert_allclose(found, expected, atol=scale, rtol=0, err_msg=f"{m} {n} {k}")


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(1, 5), (3, 50), (40, 700), (130, 3)])
def test_a_product_with_its_adjoint_has_a_real_diagonal(dtype: Any, shape: Any) -> None:
    x = random(np.random.default_rng(0), shape, dtype)
    found = fg.jit(lambda x: x @ np.conj(x).T)(x)
    assert (np.diag(found).imag == 0).all()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", LETTERS.values())
def test_an_element_does_not_know_its_tile(dtype: Any) -> None:
    """Of several blocks of terms, at the edge of a tile and within."""
    rng = np.random.default_rng(0)
    a, b = random(rng, (24, 700), dtype), random(rng, (700, 64), dtype)
    f = fg.jit(lambda a, b: a @ b)
    whole = f(a, b)
    for m, n in ((17, 64), (24, 61), (10, 3)):
        np.testing.assert_array_equal(f(a[:m], b[:, :n]), whole[:m, :n])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", LETTERS.values())
@pytest.mark.parametrize("threads", [1, 3])
def test_sizes_of_zero_and_one(dtype: Any, threads: int) -> None:
    f = fg.jit(lambda a, b: (a @ b, fnp.swapaxes(b, 1, 2) @ fnp.swapaxes(a, 1, 2)), threads=threads)
    rng = np.random.default_rng(0)
    for batch, m, n, k in itertools.product((0, 1, 3), (0, 1, 5), (0, 1, 7), (0, 1, 4)):
        a, b = random(rng, (batch, m, k), dtype), random(rng, (batch, k, n), dtype)
        product = a @ b
        tolerance = 20 * np.finfo(dtype).eps
        for found, expected in zip(f(a, b), (product, product.swapaxes(1, 2)), strict=True):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_what_fills_up_a_tile_reaches_no_result() -> None:
    # The neighbours of the operands in memory are infinite.
    x = np.full((70, 70), np.inf)
    x[:37, :37] = 1.0
    f = fg.jit(lambda x: (x[:37, :37] @ x[:37, :37], x[:37, :37].T @ x[:37, :37]))
    for product in f(x):
        np.testing.assert_array_equal(product, np.full((37, 37), 37.0))


PRODUCTS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "matrices": ("ij,jk->ik", (300, 500), (500, 700)),
    "transposed": ("ji,kj->ik", (500, 300), (700, 500)),
    "one column": ("ij,j->i", (1500, 1500), (1500,)),
    "one column, transposed": ("ji,j->i", (1500, 1501), (1500,)),
    "one row": ("j,jk->k", (1500,), (1500, 1500)),
    "one row, transposed": ("j,kj->k", (1500,), (1501, 1500)),
    "few columns": ("ij,jk->ik", (100_000, 20), (20, 7)),
    "a stack": ("bij,bjk->bik", (40, 70, 80), (40, 80, 90)),
    "no sum": ("i,j->ij", (2000,), (2000,)),
    "a long sum": ("ij,jk->ik", (10, 200_000), (200_000, 12)),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", LETTERS.values())
@pytest.mark.parametrize("name", PRODUCTS)
def test_results_do_not_depend_on_the_number_of_threads(name: str, dtype: Any) -> None:
    labels, *shapes = PRODUCTS[name]
    rng = np.random.default_rng(0)
    a, b = (random(rng, shape, dtype) for shape in shapes)
    results = [
        fg.jit(lambda a, b: fnp.einsum(labels, a, b), threads=n)(a, b) for n in (1, 2, 3, 70)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    wide = np.result_type(dtype, np.float64)
    expected = np.einsum(labels, a.astype(wide), b.astype(wide), optimize=True)
    bound = 20 * np.finfo(dtype).eps * np.sqrt(shapes[0][-1]) * 10
    np.testing.assert_allclose(results[0], expected, atol=bound, rtol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", LETTERS.values())
@pytest.mark.parametrize("name", PRODUCTS)
def test_blas_where_there_is_no_pool(
    name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funcgrad.compiler.runtime.blas.is_available", lambda: False)
    labels, *shapes = PRODUCTS[name]
    rng = np.random.default_rng(0)
    a, b = (random(rng, tuple(-(-n // 10) for n in shape), dtype) for shape in shapes)
    found = fg.jit(lambda a, b: fnp.einsum(labels, a, b))(a, b)
    wide = np.result_type(dtype, np.float64)
    expected = np.einsum(labels, a.astype(wide), b.astype(wide), optimize=True)
    np.testing.assert_allclose(found, expected, atol=1e4 * np.finfo(dtype).eps)


def plan(f: Callable[..., Any], *args: Any) -> list[str]:
    """The lines of a plan on products."""
    text = fg.jit(f, threads=4).lower(*args).as_text()
    rows = [line.strip() for line in text.splitlines()]
    return [row.partition(";")[0] for row in rows if row.startswith("matrix product")]


def test_only_large_products_are_shared() -> None:
    def line(f: Callable[..., Any], size: int) -> str:
        (found,) = plan(f, np.ones((size, size), np.float32))
        return found

    def repeated(x: Any) -> Any:
        return fg.lax.fori_loop(0, 10, lambda i, c: fnp.tanh(c @ c), x)

    for f in (lambda x: x @ x, repeated):
        assert "parts" not in line(f, 96)
        assert line(f, 128).endswith("parts")


def test_in_many_programs_at_once() -> None:
    rng = np.random.default_rng(0)
    a, b = random(rng, (400, 300), np.float32), random(rng, (300, 500), np.float32)
    f = fg.jit(lambda a, b: fnp.tanh(a @ b) @ b.T, threads=3)
    expected = f(a, b)
    results: list[bool] = []

    def work() -> None:
        results.extend(np.array_equal(f(a, b), expected) for _ in range(30))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 150
    assert all(results)


def fresh(program: str) -> None:
    """Run a program in a process of its own."""
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=True,
        timeout=300,
        env={**os.environ, "FUNCGRAD_NUM_THREADS": "2"},
    )


def test_blas_and_its_threads_are_not_loaded() -> None:
    fresh(
        """
        import numpy as np, funcgrad as fg
        x = np.ones((512, 512), np.float32)
        assert fg.jit(lambda x: x @ x)(x)[0, 0] == 512
        assert "scipy_openblas-" not in open("/proc/self/maps").read()
        """
    )


def test_nobody_spins_between_calls() -> None:
    # In a process of its own, where the threads of NumPy's BLAS do nothing.
    fresh(
        """
        import time
        import numpy as np, funcgrad as fg
        x = np.ones((600, 600), np.float32)
        f = fg.jit(lambda x: np.tanh(x @ x) + 1, threads=2)
        f(x)
        idle, seconds = 0.0, 0.02
        for _ in range(10):
            f(x)
            before = time.process_time()
            time.sleep(seconds)
            idle += time.process_time() - before
        assert idle < 10 * seconds / 4, idle
        """
    )


def test_vectors_times_multiples_of_large_matrices_store_none() -> None:
    """Both sides of a computed matrix: sums read what it is computed from."""

    def loss(a: Any, b: Any, x: Any) -> Any:
        return np.sum(np.sin((1.5 * a + b) @ x) * 2)

    rng = np.random.default_rng(0)
    a, b, x = rng.normal(size=(300, 400)), rng.normal(size=(300, 400)), rng.normal(size=400)
    gradient = fg.jit(fg.grad(loss, 2))
    memory = gradient.lower(a, b, x).compile().memory_analysis()
    assert memory.temp_size_in_bytes < a.nbytes / 4
    expected = 2 * np.cos((1.5 * a + b) @ x) @ (1.5 * a + b)
    np.testing.assert_allclose(gradient(a, b, x), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinities")
def test_who_waits_leaves_the_processor_to_the_one_that_works() -> None:
    # Both threads share one processor: it is of no use to spin until the other one has finished.
    fresh(
        """
        import os, time
        import numpy as np, funcgrad as fg
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        x = np.ones((500, 500), np.float32)
        one, two = (fg.jit(lambda x: x @ x, threads=n) for n in (1, 2))
        def seconds(f):
            f(x)
            start = time.process_time()
            for _ in range(10):
                f(x)
            return time.process_time() - start
        ratios = sorted(seconds(two) / seconds(one) for _ in range(5))
        assert ratios[2] < 1.5, ratios
        """
    )
