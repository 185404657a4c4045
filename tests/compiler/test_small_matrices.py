"""Small matrices in compiled programs: both layouts, every width of vectors, stacks of all sizes.

The references are NumPy's and SciPy's functions; how far results may be from them depends on the
condition of the matrices.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import funcgrad as fg
import funcgrad.scipy.linalg
from funcgrad.compiler.abi import FIRST_SLOT, LANES_SLOT, REFUSED, SMALL_WORDS
from funcgrad.compiler.loops.library.small_layouts import InLanes, InRows
from funcgrad.compiler.loops.library.small_matrices import NAMES
from funcgrad.compiler.native import llvm_backend, llvmlite_path
from funcgrad.lowering import MOST_SMALL
from funcgrad.primitives.linalg import LuFactor
from tests.compiler.kernels import assembled

EPS = {"f": 2.0**-23, "d": 2.0**-52, "F": 2.0**-23, "D": 2.0**-52}


def random(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype in "FD" else x).astype(dtype)


def definite(x: np.ndarray) -> np.ndarray:
    n = x.shape[-1]
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(n, dtype=x.dtype)


def triangular(function: Any, lower: bool, trans: int, unit: bool) -> Callable[..., Any]:
    return lambda a, b: function(a, b, lower=lower, trans=trans, unit_diagonal=unit)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "solve": (np.linalg.solve, np.linalg.solve),
    "inv": (lambda a, b: np.linalg.inv(a),) * 2,
    "det": (lambda a, b: np.linalg.det(a),) * 2,
    "slogdet": (lambda a, b: tuple(np.linalg.slogdet(a)),) * 2,
    "cholesky": (lambda a, b: np.linalg.cholesky(definite(a)),) * 2,
    **{
        f"lu_solve {trans}": (
            lambda a, b, t=trans: fg.scipy.linalg.lu_solve(fg.scipy.linalg.lu_factor(a), b, t),
            lambda a, b, t=trans: np.linalg.solve(np.swapaxes(a, -1, -2) if t else a, b),
        )
        for trans in (0, 1)
    },
    **{
        f"triangular {lower:d}{trans}{unit:d}": (
            lambda a, b, o=(lower, trans, unit): triangular(fg.scipy.linalg.solve_triangular, *o)(
                regular(a), b
            ),
            lambda a, b, o=(lower, trans, unit): np.linalg.solve(triangle(regular(a), *o), b),
        )
        for lower, trans, unit in itertools.product((False, True), (0, 1), (False, True))
    },
}


def regular(a: Any) -> Any:
    """A matrix both of whose triangles are well conditioned."""
    n = a.shape[-1]
    return a / (4 * n) + np.eye(n, dtype=a.dtype)


def triangle(a: np.ndarray, lower: bool, trans: int, unit: bool) -> np.ndarray:
    out = np.tril(a) if lower else np.triu(a)
    if unit:
        diagonal = np.arange(a.shape[-1])
        out[..., diagonal, diagonal] = 1
    return np.swapaxes(out, -1, -2) if trans else out


def arrays(x: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in fg.tree.leaves(x)]


def assert_as_numpy(name: str, a: np.ndarray, b: np.ndarray) -> None:
    """Equal up to a few roundings, times the condition of every matrix."""
    compiled, reference = FUNCTIONS[name]
    double = [x.astype("D" if x.dtype.kind == "c" else "d") for x in (a, b)]
    condition = np.linalg.cond(double[0])
    for found, wanted in zip(
        arrays(fg.jit(compiled)(a, b)), arrays(reference(*double)), strict=True
    ):
        assert found.dtype.char in (a.dtype.char, a.real.dtype.char)
        bound = 40 * a.shape[-1] * condition
        extra = (1,) * (wanted.ndim - bound.ndim)
        axes = tuple(range(bound.ndim, wanted.ndim))
        size = np.abs(wanted).max(axes, keepdims=True) + (name == "slogdet")
        with np.errstate(over="ignore"):
            wanted = wanted.astype(found.dtype)  # determinants may be too large for it
        bound = bound.reshape(bound.shape + extra) * size * EPS[a.dtype.char]
        with np.errstate(invalid="ignore"):  # where both are infinite
            is_near = np.abs(found - wanted) <= bound
        is_near |= ~np.isfinite(found) & ~np.isfinite(wanted)
        assert is_near.all(), (name, a.shape, a.dtype)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_numpy(name: str) -> None:
    for dtype, shape, k in (
        ("d", (1, 1), 1),
        ("d", (5, 2, 2), 3),
        ("f", (2, 3, 6, 6), 1),
        ("D", (3, 17, 17), 2),
        ("F", (9, 4, 4), 5),
        ("d", (65, 65), 40),
        ("f", (20, 33, 33), 17),
    ):
        a = random(len(shape) + k, shape, dtype)
        assert_as_numpy(name, a, random(k, (*shape[:-1], k), dtype))


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_sizes_as_numpy(name: str, dtype: str) -> None:
    sizes = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 64, 100, MOST_SMALL, MOST_SMALL + 1]
    for n, count in itertools.product(sizes, (1, 2, 9)):
        for k in (1, 70):
            a = random(n + count, (count, n, n), dtype)
            assert_as_numpy(name, a, random(k, (count, n, k), dtype))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_matrix_has_the_results_that_it_has_in_any_stack(name: str) -> None:
    """To the last bit: alone, with few and with many others, on one thread and on several."""
    function = FUNCTIONS[name][0]
    for dtype, n, k in (("d", 6, 20), ("D", 9, 2), ("f", 24, 1)):
        a, b = random(n, (41, n, n), dtype), random(k, (41, n, k), dtype)
        compiled = fg.jit(function)
        together = arrays(compiled(a, b))
        for part in (slice(0, 40), slice(5, 8), slice(3, 4), 7):
            for whole, found in zip(together, arrays(compiled(a[part], b[part])), strict=True):
                np.testing.assert_array_equal(found, whole[part])
        many = [np.concatenate([x] * 60) for x in (a, b)]
        for threads in (1, 3):
            shared = arrays(fg.jit(function, threads=threads)(*many))
            for whole, found in zip(together, shared, strict=True):
                np.testing.assert_array_equal(found[-41:], whole)
                np.testing.assert_array_equal(found[41:82], whole)


@pytest.mark.parametrize("name", ["solve", "inv", "det", "slogdet", "cholesky"])
@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0)])
def test_nothing(name: str, shape: tuple[int, ...]) -> None:
    function = FUNCTIONS[name][0]
    a, b = np.ones(shape), np.ones((*shape[:-1], 2))
    for found, wanted in zip(arrays(fg.jit(function)(a, b)), arrays(function(a, b)), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)
    a, b = np.eye(4), np.ones((4, 0))
    assert fg.jit(np.linalg.solve)(a, b).shape == (4, 0)


# What fails.


FAILING = {
    "solve": (lambda a: np.linalg.solve(a, a[..., :1]), "Singular matrix"),
    "inv": (np.linalg.inv, "Singular matrix"),
    "cholesky": (np.linalg.cholesky, "Matrix is not positive definite"),
    "triangular": (
        lambda a: fg.scipy.linalg.solve_triangular(a, a, lower=True),
        "Singular matrix|singular matrix: resolution failed at diagonal 1",
    ),
}


@pytest.mark.parametrize("n", [2, 40])
@pytest.mark.parametrize("name", FAILING)
def test_failures_are_those_of_numpy(name: str, n: int) -> None:
    function, text = FAILING[name]
    bad = np.eye(n)
    bad[1, 1] = 0
    for count, place in ((1, 0), (9, 8), (30, 17)):
        stack = np.stack([np.eye(n)] * count)
        stack[place] = bad
        with pytest.raises(np.linalg.LinAlgError, match=text) as compiled:
            fg.jit(function)(stack)
        with pytest.raises(np.linalg.LinAlgError, match=text) as eager:
            function(stack)
        assert str(compiled.value).splitlines()[0] == str(eager.value).splitlines()[0]


def test_determinants_of_singular_matrices() -> None:
    for n, dtype in itertools.product((1, 3, 12, 40), "dD"):
        a = np.stack([np.eye(n, dtype=dtype)] * 9)
        a[4, n // 2, n // 2] = 0
        sign, size = fg.jit(lambda a: tuple(np.linalg.slogdet(a)))(a)
        wanted = np.ones(9)
        wanted[4] = 0
        np.testing.assert_array_equal(sign, wanted)
        np.testing.assert_array_equal(size, np.where(wanted == 1, 0, -np.inf))
        np.testing.assert_array_equal(fg.jit(np.linalg.det)(a), wanted)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("dtype", ["d", "D"])
def test_gradients_of_determinants_are_minors(dtype: str, count: int) -> None:
    """Of regular matrices, and where one, two and all singular values are zero."""
    gradient = fg.jit(lambda a, w: fg.vjp(np.linalg.det, a)[1](w)[0])
    for n in (1, 2, 3, 5, 6):
        for rank in {n, n - 1, max(n - 2, 0), 0}:
            a = random(n, (n, rank), dtype) @ random(rank, (rank, n), dtype)
            wanted = np.array(
                [
                    [
                        (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
                        for j in range(n)
                    ]
                    for i in range(n)
                ]
            )
            stack = np.stack([a] * count)
            found = gradient(stack, np.ones(count, dtype))
            size = np.linalg.norm(a) ** (n - 1) if n > 1 else 1.0
            for x in found:
                np.testing.assert_allclose(x, wanted, rtol=0, atol=1e-13 * size)


def test_determinants_do_not_overflow_on_the_way() -> None:
    for numbers in ([1e200, 1e200, 1e-300, 1e-100], [1e-200, 1e-200, 1e300], [5e-324, 2.0**1000]):
        a = np.diag(numbers)[::-1].copy()
        n = len(numbers)
        sign, size = (-1.0) ** (n * (n - 1) // 2), np.log(numbers).sum()
        for stack in (a, np.stack([a] * 5)):
            found = fg.jit(np.linalg.det)(stack)
            np.testing.assert_allclose(found, sign * np.exp(size), rtol=1e-12)
            found_sign, found_size = fg.jit(lambda a: tuple(np.linalg.slogdet(a)))(stack)
            np.testing.assert_array_equal(found_sign, np.broadcast_to(sign, found_sign.shape))
            np.testing.assert_allclose(found_size, size, rtol=1e-15, atol=1e-13)
    assert fg.jit(np.linalg.det)(np.diag([1e200, 1e200])) == np.inf
    assert fg.jit(np.linalg.det)(np.diag([1e-200, 1e-200])) == 0


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("n", [2, 7])
def test_nan_is_no_failure_and_stays_where_it_is(n: int, count: int) -> None:
    for i, j in ((0, 0), (n - 1, 0), (n - 1, n - 1)):
        a = np.stack([definite(random(3, (n, n), "d"))] * count)
        a[0, i, j] = np.nan
        for name in ("solve", "inv", "det", "slogdet", "cholesky"):
            function = (
                FUNCTIONS[name][0] if name != "cholesky" else lambda a, b: np.linalg.cholesky(a)
            )
            found = arrays(fg.jit(function)(a, a))[-1]
            assert np.isnan(found[0]).any(), name
            assert np.isfinite(found[1:]).all(), name
        # Only the lower triangle is read.
        a[0] = a[-1] if count > 1 else np.eye(n)
        a[0, 0, n - 1] = np.nan
        assert np.isfinite(fg.jit(np.linalg.cholesky)(a)).all()


def test_pivots_of_any_origin() -> None:
    """Rows may be exchanged with earlier ones, too, as by LAPACK."""
    n, pivots = 4, np.array([2, 0, 3, 1], np.int32)
    lu, b = regular(random(0, (n, n), "d")), random(1, (n, 3), "d")
    for trans in (0, 1):
        wanted = scipy.linalg.lu_solve((lu, pivots), b, trans)
        solve = fg.jit(lambda lu, p, b, t=trans: fg.scipy.linalg.lu_solve((lu, p), b, t))
        np.testing.assert_allclose(solve(lu, pivots, b), wanted, rtol=1e-12)
        stacks = [np.stack([x] * 9) for x in (lu, pivots, b)]
        np.testing.assert_allclose(solve(*stacks)[5], wanted, rtol=1e-12)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (9, 7, 3), (9, 3, 7), (40, 90), (90, 40)])
def test_factors_of_matrices_that_are_not_square(shape: tuple[int, ...]) -> None:
    a = random(0, shape, "d")
    packed, pivots, order = fg.jit(LuFactor().bind)(a)
    m, n = shape[-2:]
    k = min(m, n)
    left = np.tril(packed[..., :k], -1) + np.eye(m, k)
    rows = np.take_along_axis(a, order[..., None].astype(np.int64), -2)
    np.testing.assert_allclose(left @ np.triu(packed[..., :k, :]), rows, atol=1e-12)
    if len(shape) == 2:
        np.testing.assert_array_equal(pivots, scipy.linalg.lapack.dgetrf(a)[1])


# Kernels for other processors, run on this one.


SCRATCH = max(layout(NAMES[0], "z", 8).memory()[1] for layout in (InLanes, InRows))


def run(kernel: Any, given: tuple[np.ndarray, ...], **words: int) -> int:
    slots = np.zeros(FIRST_SLOT + 5, np.int64)
    memory = np.zeros(SCRATCH + 64, np.uint8)
    slots[FIRST_SLOT + 4] = memory.ctypes.data + -memory.ctypes.data % 64
    every = dict.fromkeys(SMALL_WORDS, 0) | {"end": len(given[0]), "checked": 1} | words
    every["scratch"] = FIRST_SLOT + 4
    for i, (letter, x) in enumerate(zip("abcd", given, strict=False)):
        slots[FIRST_SLOT + i] = x.ctypes.data
        every |= {f"slot_{letter}": FIRST_SLOT + i, f"stride_{letter}": x.strides[0]}
    args = np.array(list(every.values()), np.int64)
    code: int = kernel(slots.ctypes.data, args.ctypes.data)
    assert slots[LANES_SLOT] == 0  # given back, whatever has happened
    return code


def kernel(layout: Any, name: str, letter: str, lanes: int) -> Any:
    symbol = f"fg_{letter}_{name}_{layout.__name__}{lanes}"
    code = assembled(layout.named(name, letter, lanes), symbol)
    made = llvm_backend.Emission(code.text, llvm_backend.Effort.TILES).result()
    word = ctypes.c_int64
    return ctypes.CFUNCTYPE(word, word, word)(llvmlite_path.load(made, symbol))


@pytest.mark.parametrize(
    ("letter", "lanes"),
    [
        ("d", 4),
        *(pytest.param(x, v, marks=pytest.mark.nightly) for x in "sdcz" for v in (2, 4, 8)),
    ],
)
def test_layouts_agree_on_vectors_of_any_width(letter: str, lanes: int) -> None:
    dtype = dict(zip("sdcz", "fdFD", strict=True))[letter]
    count, n, k = 2 * lanes + 1, 7, 5
    a = definite(random(0, (count, n, n), dtype))
    b = random(1, (count, n, k), dtype)
    packed, pivots, orders = a.copy(), *np.zeros((2, count, n), np.int32)
    results: dict[str, list[list[np.ndarray]]] = {}
    for layout in (InLanes, InRows):
        for name in sorted(NAMES, key=lambda x: x != "lu"):  # its results are needed
            of_matrix = [np.zeros_like(a)]
            per_matrix = [np.zeros(count, dtype), np.zeros(count, a.real.dtype)]
            given, outs, right = {
                "lu": ((a,), [packed, pivots, orders], 0),
                "adjugate": ((a,), of_matrix, n),
                "cholesky": ((a,), of_matrix, 0),
                "inv": ((a,), of_matrix, n),
                "det": ((a,), per_matrix[:1], 0),
                "slogdet": ((a,), per_matrix, 0),
                "factored": ((packed, pivots, b), [np.zeros_like(b)], k),
                "solve": ((a, b), [np.zeros_like(b)], k),
                "triangular": ((a, b), [np.zeros_like(b)], k),
            }[name]
            code = kernel(layout, name, letter, lanes)
            assert run(code, (*given, *outs), m=n, n=n, k=right, lower=1) == 0
            results.setdefault(name, []).append([x.copy() for x in outs])
            if name == "cholesky":
                assert run(code, (-a, *outs), m=n, n=n) == REFUSED
    for name, (first, *others) in results.items():
        for other in others:
            for x, y in zip(first, other, strict=True):
                np.testing.assert_array_equal(x, y, err_msg=name)
    wanted = {
        "cholesky": np.linalg.cholesky(a),
        "inv": np.linalg.inv(a),
        "adjugate": np.linalg.inv(a) * np.linalg.det(a)[:, None, None],
        "solve": np.linalg.solve(a, b),
        "factored": np.linalg.solve(a, b),
        "triangular": np.linalg.solve(np.tril(a), b),
        "det": np.linalg.det(a),
    }
    for name, x in wanted.items():
        bound = 1e5 * EPS[dtype] * np.abs(x).max()
        np.testing.assert_allclose(results[name][0][0], x, atol=bound, rtol=0)
