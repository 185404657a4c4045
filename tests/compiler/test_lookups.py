"""Reading and writing at computed places in compiled programs.

Standing alone, every form is compared with the primitive's evaluation by NumPy, which tests of the
primitives compare with NumPy's indexing; in loops, with the same program run one operation at a
time. Nothing may be left to NumPy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import OutOfBoundsError
from funcgrad.primitives.indexing import (
    MODES,
    SCATTERS,
    DynamicSlice,
    DynamicUpdateSlice,
    Gather,
    ScatterAdd,
    ScatterMax,
    ScatterMul,
    ScatterSet,
)
from funcgrad.primitives.objects import unwrapped
from funcgrad.primitives.reductions import ArgMax, ArgMin
from tests.compiler.plans import steps_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4, 3))
LINE = RNG.normal(size=1000)
TABLE = RNG.normal(size=(50, 3))
FEW = RNG.normal(size=(4, 3))
WIDE = RNG.normal(size=40)
DTYPES = "?bhilBHILfdFD"
INDEX_DTYPES = "bhilBHIL"


def native(f: Callable[..., Any], *args: Any) -> list[Any]:
    """The results of a compiled call in which NumPy evaluates nothing."""
    compiled = fg.jit(f)
    results = fg.tree_util.tree_leaves(compiled(*args))
    assert "\n  numpy:" not in compiled.lower(*args).as_text()
    return list(map(np.asarray, results))


def equal(f: Callable[..., Any], *args: Any) -> None:
    """A compiled primitive gives what it gives without compiling."""
    (got,) = native(f, *args)
    expected = np.asarray(f(*args))
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)


def agree(f: Callable[..., Any], *args: Any, rtol: float = 1e-12) -> None:
    """A compiled function gives what its program gives operation by operation."""
    with fg.disable_jit("stepwise"):
        expected = fg.tree_util.tree_leaves(fg.jit(f)(*args))
    for a, b in zip(native(f, *args), expected, strict=True):
        assert (a.dtype, a.shape) == (np.asarray(b).dtype, np.shape(b))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def indices(mode: str, n: int, shape: Any, dtype: Any = np.int64) -> np.ndarray:
    """Random indices of an axis; out of bounds where the mode says what that means."""
    extent = n if mode == "raise" else n + 4
    low = 0 if np.dtype(dtype).kind == "u" else -extent
    return RNG.integers(low, extent, size=shape).astype(dtype)


def numbers(shape: Any, dtype: Any) -> np.ndarray:
    x = RNG.integers(0, 5, size=shape) - 1.5
    return (x + 1j * x[::-1]).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


# Lookups and scatters on their own.


@pytest.mark.sampled(8)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (2, 0), (0, 1, 2), ()])
def test_lookup(axes: tuple[int, ...], mode: str) -> None:
    shapes = [(6, 1), (7,), ()]
    index = [indices(mode, X.shape[a], s) for a, s in zip(axes, shapes, strict=False)]
    gather = Gather(axes, mode)
    equal(gather.bind, X, *index)
    equal(lambda x, *i: gather.bind(x.transpose(2, 0, 1)[::-1], *i), X.transpose(1, 2, 0), *index)
    equal(lambda x, *i: gather.bind(x, *(j[..., ::-1] if np.ndim(j) else j for j in i)), X, *index)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (2, 0), (0, 1, 2), ()])
@pytest.mark.parametrize("kind", SCATTERS)
def test_scatter(kind: str, axes: tuple[int, ...], mode: str) -> None:
    shapes = [(6, 1), (7,), ()]
    index = [indices(mode, X.shape[a], s) for a, s in zip(axes, shapes, strict=False)]
    updates = RNG.normal(size=Gather(axes, mode).bind(X, *index).shape)
    scatter = SCATTERS[kind](axes, mode)
    equal(scatter.bind, X, updates, *index)
    equal(lambda x, u, *i: scatter.bind(x, u.T, *i), X, updates.T.copy(), *index)
    equal(lambda u, *i: scatter.bind(np.full(X.shape, 2.0), u, *i), updates, *index)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_values(dtype: str, mode: str) -> None:
    x, u = numbers((5, 3), dtype), numbers((9, 3), dtype)
    index = indices(mode, 5, 9)
    equal(Gather((0,), mode).bind, x, index)
    for kind, scatter in SCATTERS.items():
        if kind in ("set", "add", "mul") or np.dtype(dtype).kind != "c":
            equal(scatter((0,), mode).bind, x, u, index)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", INDEX_DTYPES)
def test_dtypes_of_indices(dtype: str, mode: str) -> None:
    index = indices(mode, 5, 9, dtype)
    equal(Gather((0,), mode).bind, X, index)
    equal(ScatterAdd((0,), mode).bind, X, RNG.normal(size=(9, 4, 3)), index)
    equal(lambda x, i: Gather((0,), mode).bind(x, i[3]), X, index)


def test_indices_that_no_int64_holds_wrap_as_in_numpy() -> None:
    index = np.array([2**64 - 1, 2**63, 3], np.uint64)
    for mode in ("fill", "clip", "wrap"):
        equal(Gather((0,), mode).bind, X, index)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", ["u1", "?", "i4", "f8"])
@pytest.mark.parametrize("index_dtype", ["u1", "i2", "i8"])
@pytest.mark.parametrize("n", [2, 3, 8, 13])
def test_elements_of_short_tables_are_chosen(n: int, index_dtype: str, dtype: str) -> None:
    rng = np.random.default_rng(n)
    table = (9 * rng.normal(size=n)).astype(dtype)
    low = 0 if index_dtype == "u1" else -n
    index = rng.integers(low, n, (7, 150)).astype(index_dtype)
    lookup = fg.jit(lambda table, index: table[index])
    np.testing.assert_array_equal(lookup(table, index), table[index])
    turned = fg.jit(lambda table, index: table[::-1][(index % n).T])
    np.testing.assert_array_equal(turned(table, index), table[::-1][(index % n).T])
    index[5, 60] = n
    with pytest.raises(IndexError, match=rf"index {n} \(element \[5, 60\]"):
        lookup(table, index)


def test_long_axes_and_blocks() -> None:
    index = RNG.integers(-1000, 1000, size=(3, 1700))
    for mode in MODES:
        equal(Gather((0,), mode).bind, LINE, index)
        equal(ScatterAdd((0,), mode).bind, LINE, RNG.normal(size=(3, 1700)), index)
    equal(
        Gather((0, 1)).bind, RNG.normal(size=(600, 700)), index[:, :600] % 600, index[0, :600] % 7
    )


@pytest.mark.parametrize("fill", [0, -2.5, np.nan, np.inf])
def test_fill_values(fill: float) -> None:
    equal(Gather((0,), "fill", fill).bind, X, np.array([0, 5, -6, -5]))
    equal(Gather((0,), "fill", 7).bind, X.astype(np.int8), np.array([0, 5, -6, -5]))


@pytest.mark.parametrize("mode", MODES)
def test_empty_arrays(mode: str) -> None:
    none = np.zeros(0, int)
    equal(Gather((0,), mode).bind, X, none)
    equal(ScatterMul((0,), mode).bind, X, np.zeros((0, 4, 3)), none)
    equal(Gather((0,), mode).bind, np.zeros((5, 0)), np.array([1, 2]))
    equal(ScatterAdd((0,), mode).bind, np.zeros((5, 0)), np.zeros((2, 0)), np.array([1, 2]))


def test_nothing_to_read() -> None:
    equal(Gather((0,), "fill").bind, np.zeros((0, 3)), np.array([1, -1, 0]))
    equal(ScatterAdd((0,), "fill").bind, np.zeros((0, 3)), np.ones((2, 3)), np.array([1, 2]))
    assert fg.jit(Gather((0,), "clip").bind)(np.zeros((0, 3)), np.zeros(0, int)).shape == (0, 3)


def test_of_equal_places_the_last_update_stays_and_all_are_added() -> None:
    index = np.array([3, 1, 3, 3, 1])
    updates = np.arange(5.0)
    equal(ScatterSet((0,)).bind, np.zeros(5), updates, index)
    equal(ScatterAdd((0,)).bind, np.zeros(5), updates, index)
    np.testing.assert_array_equal(
        fg.jit(ScatterSet((0,)).bind)(np.zeros(5), updates, index), [0, 4, 0, 3, 0]
    )


def test_nan_stays_extreme() -> None:
    x = np.array([1.0, np.nan, 3.0])
    for kind in ("max", "min"):
        equal(SCATTERS[kind]((0,)).bind, x, np.array([np.nan, 5.0, -1.0]), np.array([0, 1, 2]))


def test_known_places_are_views() -> None:
    for mode in MODES:
        equal(lambda x, m=mode: Gather((1, 0), m).bind(x, np.int64(-1), np.int64(2)), X)
        equal(lambda x, m=mode: ScatterSet((1,), m).bind(x, x[:, 0] * 2, np.int64(-1)), X)
        equal(lambda x, m=mode: ScatterAdd((1,), m).bind(x, x[:, 0] * 2, np.int64(-1)), X)
    for mode in MODES[1:]:
        equal(lambda x, m=mode: Gather((0,), m).bind(x, np.int64(9)), X)
        equal(lambda x, m=mode: ScatterSet((0,), m).bind(x, x[0] * 2, np.int64(9)), X)
    kernels = fg.jit(lambda x: Gather((0,)).bind(x, np.int64(1)) + 1).lower(X).as_text()
    assert kernels.count("# kernel") == 1


def test_donated_arrays() -> None:
    f = fg.jit(lambda x, u, i: ScatterAdd((0,)).bind(x, u, i) * 2, donate_argnums=0)
    index = np.array([1, 1, 4])
    expected = ScatterAdd((0,)).impl(X, X[:3], index) * 2
    np.testing.assert_array_equal(f(X.copy(), X[:3].copy(), index), expected)


# Windows.


@pytest.mark.sampled(8)
@pytest.mark.parametrize("starts", [(0, 0, 0), (1, 2, 0), (-7, 9, 1), (2**62, -(2**62), 0)])
@pytest.mark.parametrize("dtype", "dFb?")
def test_windows(starts: tuple[int, ...], dtype: str) -> None:
    x = numbers(X.shape, dtype)
    s = [np.int64(i) for i in starts]
    window, replace = DynamicSlice((2, 2, 3)), DynamicUpdateSlice()
    equal(lambda *s: window.bind(x, *s), *s)
    equal(lambda x, *s: window.bind(x.T[::-1], *s), x.T.copy(), *s)
    equal(lambda *s: replace.bind(x, x[3:, 1:3], *s), *s)
    equal(lambda x, *s: replace.bind(x, x.T[1:3, ::2, :3], *s), x, *s)
    equal(lambda x: window.bind(x, *s), x)
    equal(lambda x: replace.bind(x, x[3:, 1:3], *s), x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", INDEX_DTYPES)
def test_dtypes_of_starts(dtype: str) -> None:
    for start in (0, 2, np.iinfo(dtype).max, np.iinfo(dtype).min):
        s = np.dtype(dtype).type(start)
        equal(DynamicSlice((3,)).bind, LINE, s)
        equal(DynamicUpdateSlice().bind, LINE, LINE[:3] * 2, s)


def test_empty_windows() -> None:
    equal(DynamicSlice((0, 4, 3)).bind, X, np.int64(2), np.int64(0), np.int64(0))
    equal(DynamicUpdateSlice().bind, X, X[:0], np.int64(2), np.int64(0), np.int64(0))
    equal(DynamicSlice(()).bind, np.array(3.0))


# Places of extremes.


@pytest.mark.sampled(4)
@pytest.mark.parametrize("extreme", [ArgMax, ArgMin])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_places_of_extremes(axis: int, extreme: Any) -> None:
    rounded = np.round(X * 2)
    with_nan = rounded.copy()
    with_nan[1, 2, 0] = with_nan[2, 2, 0] = with_nan[1, 1, 2] = np.nan
    for x in (rounded, with_nan, -rounded.astype("f"), rounded > 0, rounded.astype("b")):
        equal(extreme(axis).bind, x)
        equal(lambda x: extreme(axis).bind(x.T[:, ::-1]), x.T.copy())
    for x in (rounded.astype("u8"), rounded.astype("u1"), np.where(rounded > 0, np.inf, -np.inf)):
        equal(extreme(axis).bind, x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extreme", [ArgMax, ArgMin])
def test_places_of_extremes_of_long_lines(extreme: Any) -> None:
    x = RNG.normal(size=3000)
    for place in (0, 511, 512, 2999):
        for value in (9.0, -9.0, np.nan):
            y = x.copy()
            y[place] = y[min(place + 7, 2999)] = value
            equal(extreme(0).bind, y)
    equal(extreme(0).bind, np.zeros(3000))
    equal(extreme(0).bind, np.array([-0.0, 0.0]))
    equal(extreme(1).bind, RNG.normal(size=(3, 1)))
    equal(extreme(1).bind, np.zeros((0, 4)))
    equal(extreme(1).bind, np.asfortranarray(RNG.normal(size=(30, 1100))).copy())
    equal(extreme(0).bind, RNG.normal(size=(1100, 30)))


# Loops.

SMALL: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elements": (lambda x: lax.fori_loop(0, 1000, lambda i, c: c * 0.9 + x[i], 0.0), (LINE,)),
    "from the end": (
        lambda x: lax.fori_loop(0, 1000, lambda i, c: c * 0.9 + x[-1 - i], 0.0),
        (LINE,),
    ),
    "rows": (lambda x: lax.fori_loop(0, 50, lambda i, c: c * 0.9 + x[i], np.zeros(3)), (TABLE,)),
    "elements of a view": (
        lambda x: lax.fori_loop(0, 20, lambda i, c: c * 0.9 + x[::-2, 1][i], 0.0),
        (TABLE,),
    ),
    "in a loop": (
        lambda x: lax.fori_loop(
            0, 5, lambda i, c: lax.fori_loop(0, 3, lambda j, d: d * 0.5 + x[i * 3 + j, j], c), 0.0
        ),
        (TABLE,),
    ),
    "walked arrays": (
        lambda x, i: lax.scan(
            lambda c, xi: (
                lax.scan(lambda d, e: (d * 0.5 + xi[0][e], d), c, xi[1])[0],
                xi[0][xi[1]],
            ),
            0.0,
            (x, i),
        ),
        (RNG.normal(size=(6, 40)), RNG.integers(0, 40, size=(6, 3))),
    ),
    "condition": (
        lambda x: lax.while_loop(
            lambda c: x[c[0]] < 2.0, lambda c: (c[0] + 1, c[1] + x[c[0]]), (0, 0.0)
        ),
        (LINE,),
    ),
    "branches": (
        lambda x: lax.fori_loop(
            0, 9, lambda i, c: lax.cond(i > 3, lambda: x[i] + c, lambda: x[2 * i] * c), 1.0
        ),
        (LINE,),
    ),
    "windows": (
        lambda x, s: lax.scan(
            lambda c, s: (
                np.sin(c) + 0.1,
                (
                    lax.dynamic_slice(c, (s[0], s[1]), (2, 2)),
                    lax.dynamic_slice(TABLE, (s[0] * 9, s[1]), (3, 2)),
                    lax.dynamic_update_slice(c, c[:2, 1:], (s[0], s[1])),
                ),
            ),
            x,
            s,
        ),
        (FEW, RNG.integers(-3, 7, size=(30, 2))),
    ),
    "moved windows": (
        lambda x, s: lax.scan(
            lambda c, s: (
                np.sin(
                    lax.dynamic_update_slice(
                        c, lax.dynamic_slice(c, (s[1], s[0]), (2, 2)), tuple(s)
                    )
                ),
                c,
            ),
            x,
            s,
        ),
        (FEW, RNG.integers(-3, 7, size=(30, 2))),
    ),
    "extremes": (
        lambda x: lax.scan(
            lambda c, _: (np.sin(c * 3) + 0.1, (np.argmax(c, 0), np.argmin(c, 1), np.argmax(c))),
            x,
            None,
            length=20,
        ),
        (FEW,),
    ),
}

LARGE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "set": (
        lambda x: lax.fori_loop(1, 39, lambda i, c: c.at[i].set(c[i - 1] * 0.5 + c[i + 1]), x),
        (WIDE,),
    ),
    "add": (
        lambda x: lax.fori_loop(
            1, 39, lambda i, c: c.at[np.stack([i * 0, i, i])].add(c[i - 1] * 0.01), x
        ),
        (WIDE,),
    ),
    "windows": (
        lambda x: lax.fori_loop(
            1,
            39,
            lambda i, c: lax.dynamic_update_slice(
                c, lax.dynamic_slice(c, (i - 1,), (20,)) * 0.5, (i,)
            ),
            x,
        ),
        (WIDE,),
    ),
    "extremes": (
        lambda x: lax.scan(
            lambda c, _: (c.at[np.argmax(c)].mul(0.5), np.argmin(c)), x, None, length=30
        ),
        (WIDE,),
    ),
    "while": (
        lambda x: lax.while_loop(
            lambda c: c[0][np.argmax(c[0])] > 0.1,
            lambda c: (c[0].at[np.argmax(c[0])].add(-0.05), c[1] + 1),
            (x, 0),
        ),
        (WIDE,),
    ),
    "branch": (lambda x, k: lax.cond(k > 3, lambda: x[k], lambda: x[k + 1] * 2), (WIDE, 5)),
    "lanes": (
        fg.vmap(lambda x, n: lax.fori_loop(0, 9, lambda i, c: c * 0.9 + x[i * n], 0.0)),
        (RNG.normal(size=(3, 30)), np.arange(3)),
    ),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SMALL)
def test_loops_over_few_numbers(name: str) -> None:
    f, args = SMALL[name]
    agree(f, *args)
    plan = steps_of(fg.jit(f).lower(*args).as_text())
    assert "times" not in plan
    assert "while" not in plan


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LARGE)
def test_loops_over_arrays(name: str) -> None:
    f, args = LARGE[name]
    agree(f, *args)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", MODES)
def test_modes_in_loops(mode: str) -> None:
    i, j = indices(mode, 50, (30, 2)), indices(mode, 3, (30, 2), np.int16)

    def read_memory(x: Any, i: Any, j: Any) -> Any:
        both, first = Gather((0, 1), mode), Gather((0,), mode)
        return lax.scan(
            lambda c, ij: (c * 0.5 + both.bind(x, *ij), first.bind(x, ij[0])), np.zeros(2), (i, j)
        )

    agree(read_memory, TABLE, i, j)
    k, m = indices(mode, 4, (30, 2, 1)), indices(mode, 3, (30, 3))

    def read_variables(x: Any, k: Any, m: Any) -> Any:
        def step(c: Any, km: Any) -> Any:
            k, m = km
            read = Gather((0,), mode).bind(c, k), Gather((1,), mode).bind(c, m)
            # A contraction: of sums that are formed in another order, it keeps the last digits.
            return c * 0.5 + np.sin(Gather((1, 0), mode).bind(c, m, k)).sum() / 16, read

        return lax.scan(step, x, (k, m))

    if mode == "fill":
        k, m = k % 4, m % 3  # else there is nothing but nan soon
        k[20:] = 9
    agree(read_variables, FEW, k, m)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("kind", SCATTERS)
@pytest.mark.parametrize("mode", MODES)
def test_scatters_in_loops_over_few_numbers(mode: str, kind: str) -> None:
    k, m, u = indices(mode, 4, (30, 2, 1)), indices(mode, 3, (30, 3)), RNG.normal(size=(30, 2, 3))

    def run(x: Any, k: Any, m: Any, u: Any) -> Any:
        def step(c: Any, kmu: Any) -> Any:
            k, m, u = kmu
            c = SCATTERS[kind]((0, 1), mode).bind(c, u, k, m)
            c = np.tanh(SCATTERS[kind]((0,), mode).bind(c, u[:, None], k))
            c = SCATTERS[kind]((1,), mode).bind(c, np.concatenate([u, u]).T, m)
            return c, c

        return lax.scan(step, x, (k, m, u))

    agree(run, FEW, k, m, u)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 2, 3), (3, 1, 0, 2)])
@pytest.mark.parametrize("kind", SCATTERS)
def test_many_axes_in_loops_over_few_numbers(kind: str, axes: tuple[int, ...]) -> None:
    x = RNG.normal(size=(2, 1, 3, 2))
    places = [RNG.integers(0, x.shape[axis], (20, 2, 3)) for axis in axes]
    rest = [n for axis, n in enumerate(x.shape) if axis not in axes]
    updates = RNG.normal(size=(20, 2, 3, *rest))

    def run(x: Any, updates: Any, *places: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            u, *at = row
            c = np.tanh(SCATTERS[kind](axes, "raise").bind(c, u, *at))
            return c, Gather(axes).bind(c, *at)

        return lax.scan(step, x, (updates, *places))

    agree(run, x, updates, *places)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_in_loops_over_few_numbers(dtype: str) -> None:
    x, u, i = numbers(4, dtype), numbers(9, dtype), indices("fill", 4, 9)

    def run(x: Any, u: Any, i: Any) -> Any:
        def step(c: Any, ui: Any) -> Any:
            c = SCATTERS["add"]((0,), "fill").bind(c, ui[0], ui[1])
            read = Gather((0,), "fill").bind(c, ui[1]), Gather((0,), "wrap").bind(u, ui[1])
            return SCATTERS["mul"]((0,), "clip").bind(c, ui[0], ui[1]), read

        return lax.scan(step, x, (u, i))

    agree(run, x, u, i, rtol=1e-5 if dtype in "fF" else 1e-12)


DERIVATIVES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "elements": (lambda x: lax.fori_loop(0, 10, lambda i, c: np.sin(c) + x[i] * c, 1.0), LINE[:20]),
    "set": (
        lambda x: lax.fori_loop(
            1, 39, lambda i, c: c.at[i].set(np.sin(c[i - 1]) * c[i + 1]), x
        ).sum(),
        WIDE,
    ),
    "few": (
        lambda x: lax.fori_loop(1, 9, lambda i, c: c.at[i % 4].mul(np.sin(c[i % 3])), x).sum(),
        WIDE[:4],
    ),
    "windows": (
        lambda x: lax.scan(
            lambda c, i: (
                lax.dynamic_update_slice(c, lax.dynamic_slice(c, (i,), (2,)) * 0.5, (i + 1,)),
                c.max(),
            ),
            x,
            np.arange(5),
        )[1].sum(),
        WIDE[:6],
    ),
    "repeated": (
        lambda x: lax.scan(lambda c, i: (c * x[i].sum(), c), 1.0, np.array([0, 3, 3, 9, -1]))[0],
        TABLE[:10],
    ),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_loops(name: str) -> None:
    f, x = DERIVATIVES[name]
    agree(fg.grad(f), x, rtol=1e-10)
    agree(fg.jacfwd(fg.grad(f)), x, rtol=1e-9)
    step = 1e-6 * RNG.normal(size=x.shape)
    difference = fg.jit(f)(x + step) - fg.jit(f)(x - step)
    np.testing.assert_allclose((fg.jit(fg.grad(f))(x) * step).sum(), difference / 2, rtol=1e-4)


# Indices out of bounds.


def message(f: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(OutOfBoundsError) as caught:
        f(*args)
    return str(caught.value)


BOTH = Gather((0, 1))
FAR = np.arange(3000).reshape(3, 1000) % 1000
FAR[1:, 901] = 1005
WRONG: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scalar": (Gather((0,)).bind, (X, 5)),
    "known": (lambda x: Gather((0,)).bind(x, np.int64(7)), (X,)),
    "first array": (BOTH.bind, (X, np.array([[0], [1], [-6]]), np.array([0, 4]))),
    "second array": (BOTH.bind, (X, np.array([[0], [1]]), np.array([0, 1, -5, 9]))),
    "far": (Gather((0,)).bind, (LINE, FAR)),
    "unsigned": (Gather((0,)).bind, (X, np.array([1, 200], np.uint8))),
    "scatter": (ScatterMax((1,)).bind, (X, np.ones((2, 5, 3)), np.array([0, 4]))),
    "turned": (
        lambda x, i: Gather((0,)).bind(x, np.transpose(i, (2, 1, 0))),
        (X, np.where(np.arange(24) == 17, 9, 0).reshape(2, 3, 4)),
    ),
    "empty axis": (Gather((0,)).bind, (np.zeros((0, 3)), np.array([0]))),
    "no row": (Gather((0,)).bind, (np.zeros((5, 0)), np.array([0, 5]))),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_indices_are_reported_as_without_compiling(name: str) -> None:
    f, args = WRONG[name]
    got = message(fg.jit(f), *args).split("\n")
    assert got[0] == message(f, *args)
    assert "test_lookups.py:" in got[1] or name != "known"


def read_five(x: Any, i: Any) -> Any:
    return Gather((0,)).bind(x, i + 5)


def test_wrong_indices_name_the_line() -> None:
    assert "return Gather((0,)).bind(x, i + 5)" in message(fg.jit(read_five), X, 3)


@pytest.mark.parametrize("c", [np.zeros(3), np.zeros(40)], ids=["few", "many"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_wrong_indices_in_loops(c: Any, is_nested: bool) -> None:
    @fg.jit
    def run(x: Any, c: Any, n: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            if is_nested:
                return lax.fori_loop(0, 2, lambda j, d: d + read_five(x, i * 100 + j), c)
            return c + read_five(x, i * 100)

        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(*s)), (0, c))[1]

    expected = run(LINE, c, 9)
    for _ in range(3):
        text = message(run, LINE, c, 12)
        assert "index 1005 is out of bounds for axis 0 of f64[1000], which has length 1000" in text
        assert "return Gather((0,)).bind(x, i + 5)" in text
        np.testing.assert_array_equal(run(LINE, c, 9), expected)


def test_wrong_indices_beside_numpy() -> None:
    f = fg.jit(lambda x, i: Gather((0,)).bind(unwrapped(np.sort(x)), i))
    for _ in range(2):
        assert "index 1000 is out of bounds" in message(f, LINE, 1000)
        assert f(LINE, 0) == LINE.min()


def test_calls_of_many_threads_report_their_own_index() -> None:
    f = fg.jit(lambda x, i: Gather((0,)).bind(x, i))
    found: dict[int, set[str]] = {}

    def call(k: int) -> None:
        found[k] = {message(f, LINE, 1000 + k).split(" is out")[0] for _ in range(200)}

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: {f"index {1000 + k}"} for k in range(4)}


# Arrays that are changed where they are.

WIDE2 = RNG.normal(size=40)
PLACE = np.array([3, 9, 3])


def relaxed(c: Any, i: Any) -> Any:
    """A step of Gauss and Seidel's method: an element from its neighbours."""
    return c.at[i].set(0.3 * c[i - 1] * c[i + 1] + np.tanh(c[i]))


def smoothed(c: Any, i: Any) -> Any:
    """An element from a window."""
    window = lax.dynamic_slice(c, (i,), (4,))
    return lax.dynamic_update_slice(c, window.sum(keepdims=True), (i,))


IN_PLACE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "old values are kept": (
        lambda x: lax.scan(lambda c, i: (c.at[i].set(c[i] * 0.5), c), x, np.arange(7)),
        (WIDE,),
    ),
    "old values are read later": (
        lambda x: lax.fori_loop(
            0,
            7,
            lambda i, c: (c[0].at[i].add(1.0), np.sin(c[0]) + c[1] * c[0].at[i].add(1.0)),
            (x, x),
        ),
        (WIDE,),
    ),
    "exchange": (
        lambda x, y: lax.fori_loop(
            0, 7, lambda i, c: (c[1].at[i].set(c[0][i + 1]), c[0].at[i].mul(2.0)), (x, y)
        ),
        (WIDE, WIDE2),
    ),
    "chain": (
        lambda x: lax.fori_loop(
            1, 7, lambda i, c: c.at[i].set(c[i - 1]).at[i + 1].add(c[i]).at[PLACE].mul(c[:3]), x
        ),
        (WIDE,),
    ),
    "updates are views of the array": (
        lambda x: lax.fori_loop(
            0, 7, lambda i, c: lax.dynamic_update_slice(c, c[::-1][:20], (i,)) * 0.9, x
        ),
        (WIDE,),
    ),
    "itself": (
        lambda x: lax.fori_loop(0, 7, lambda i, c: lax.dynamic_update_slice(c, c[5:25], (i,)), x),
        (WIDE,),
    ),
    "while": (
        lambda x: lax.while_loop(
            lambda c: c[0][c[1]] < 1.0,
            lambda c: (c[0].at[c[1]].set(c[0][c[1] + 1]), c[1] + 1),
            (x, 0),
        ),
        (WIDE,),
    ),
    "never": (
        lambda x: lax.while_loop(lambda c: c[0] > 99, lambda c: c.at[c.argmax()].set(0), x),
        (WIDE,),
    ),
    "in a loop": (
        lambda x: lax.fori_loop(
            0,
            4,
            lambda i, c: lax.fori_loop(0, 3, lambda j, d: d.at[i + j].add(d[j]), c).at[i].set(c[3]),
            x,
        ),
        (WIDE,),
    ),
    "in a branch": (
        lambda x: lax.fori_loop(
            0,
            9,
            lambda i, c: lax.cond(i % 2 == 0, lambda: c.at[i].set(1.0), lambda: c.at[i].add(c[0])),
            x,
        ),
        (WIDE,),
    ),
    "known places": (
        lambda x: lax.fori_loop(0, 9, lambda i, c: c.at[3].set(c[4] + i).at[:4].set(c[4:8]), x),
        (WIDE,),
    ),
    "the argument stays": (lambda x: (x.at[PLACE].add(1.0), x.at[PLACE].set(2.0), x * 2), (WIDE,)),
    "one after the other": (
        lambda x: (
            (y := x * 2),
            (z := y.at[PLACE].add(1.0)),
            z.at[PLACE[:1]].set(5.0).at[0].set(y[1]),
        )[2],
        (WIDE,),
    ),
    "stored and changed": (
        lambda x: ((y := np.sin(x)), y.at[PLACE].add(1.0), np.cumsum(y.at[PLACE].add(2.0) * 2)[:3])[
            1:
        ],
        (WIDE,),
    ),
    "sums of updates of zeros": (
        lambda x: (
            (zeros := fg.numpy.zeros(40)),
            x + zeros.at[PLACE].add(x[:3]).at[PLACE + 1].add(x[3:6]),
            zeros.at[PLACE].add(x[:3]) + x * 2 + zeros.at[PLACE].add(x[:3]),
            x + lax.dynamic_update_slice(zeros, x[:5], (np.argmax(x),)),
            x + lax.dynamic_update_slice(zeros.at[PLACE].add(x[7:10]), x[:39], (np.argmax(x),)),
            x + lax.dynamic_update_slice(zeros, x[:39], (np.argmax(x),)).at[PLACE].add(x[5:8]),
            x + zeros.at[PLACE].set(x[:3]),
        )[1:],
        (WIDE,),
    ),
    "two lookups": (
        fg.grad(
            lambda x: lax.fori_loop(
                1,
                30,
                lambda i, c: (
                    np.sin(c) + x[i - 1] * x[i + 1] + lax.dynamic_slice(x, (i,), (3,)).sum()
                ),
                0.0,
            )
        ),
        (WIDE,),
    ),
    "recurrences": (
        fg.value_and_grad(lambda x: lax.fori_loop(1, 39, lambda i, c: relaxed(c, i), x).sum()),
        (WIDE,),
    ),
    "read, changed, and read as it was": (
        fg.value_and_grad(
            lambda x: lax.fori_loop(
                1, 39, lambda i, c: c.at[i].set(np.sin(c[i - 1])) + c[i - 1] * c[0], x
            ).sum()
        ),
        (WIDE / 10,),
    ),
    "rows": (
        fg.grad(
            lambda x: lax.scan(
                lambda c, i: (np.tanh(c * x[i]), None), np.ones(3), np.arange(-9, 9)
            )[0].sum()
        ),
        (TABLE,),
    ),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", IN_PLACE)
def test_changes_in_place_change_nothing_else(name: str) -> None:
    f, args = IN_PLACE[name]
    before = [x.copy() for x in args]
    agree(f, *args)
    for x, old in zip(args, before, strict=True):
        np.testing.assert_array_equal(x, old)


def test_loops_that_change_few_elements_do_not_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_SKIP_PASSES", "join")  # whose loops are single steps

    def plan(f: Callable[..., Any]) -> list[str]:
        steps = steps_of(fg.jit(f).lower(LINE).as_text())
        return [line for line in steps.splitlines() if line.startswith("    ")]

    def of_cotangent(step: Callable[..., Any]) -> str:
        reverse = fg.grad(lambda x: lax.fori_loop(1, 99, lambda i, c: step(c, i), x).sum())
        rest = steps_of(fg.jit(reverse).lower(LINE).as_text()).split("times")[2]
        return "\n".join(line for line in rest.splitlines() if line.startswith("    "))

    changing = plan(lambda x: lax.fori_loop(0, 99, lambda i, c: c.at[i].set(c[i + 1] * 2), x))
    reverse = fg.grad(lambda x: lax.fori_loop(0, 99, lambda i, c: np.sin(c) + x[i], 0.0))
    for inside in changing, plan(reverse):
        assert inside
        assert not any("1000 iterations" in line for line in inside)
    assert "1000 iterations" not in of_cotangent(relaxed)
    assert "1000 iterations" not in of_cotangent(smoothed)


def test_donated_arrays_are_changed_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUNCGRAD_SKIP_PASSES", raising=False)  # the pass is what is asked for
    f = fg.jit(lambda x, u: x.at[PLACE].add(u), donate_argnums=0)
    x = WIDE.copy()
    expected = ScatterAdd((0,)).impl(x, np.ones(3), PLACE)
    result = f(x, np.ones(3))
    np.testing.assert_array_equal(result, expected)
    assert "40 iterations" not in f.lower(WIDE.copy(), np.ones(3)).as_text()
    g = fg.jit(lambda x: (x.at[PLACE].add(x[:3]), x.at[PLACE].set(x[5:8])), donate_argnums=0)
    added, replaced = g(WIDE.copy())
    np.testing.assert_array_equal(added, ScatterAdd((0,)).impl(WIDE, WIDE[:3], PLACE))
    np.testing.assert_array_equal(replaced, ScatterSet((0,)).impl(WIDE, WIDE[5:8], PLACE))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int32"])
@pytest.mark.parametrize("mode", MODES)
def test_one_element_of_each_row(mode: str, dtype: str) -> None:
    """Taken into an array of one scalar by comparing places."""
    index = np.array([0, -1, 2, 8, -9, 3, 5])
    if mode != "raise":
        index[1:4] = 20, -20, 9
    rows = np.arange(7)
    u = (10 * np.random.default_rng(0).normal(size=(7, 2))).astype(dtype)

    def taken(scatter: Any, start: int, shape: tuple[int, ...], u: Any, *places: Any) -> None:
        def function(u: Any, i: Any) -> Any:
            chosen = [i if x is None else x for x in places]
            axes = tuple(range(len(chosen)))
            return scatter(axes, mode).bind(np.full(shape, start, dtype), u, *chosen)

        compiled = fg.jit(function)
        for own in (index, index.astype(np.int8), index[:1].repeat(7)):
            i = own[:6].reshape(2, 3) if len(places) == 3 else own
            np.testing.assert_array_equal(compiled(u, i), function(u, i))

    for scatter in (ScatterAdd, ScatterMul, ScatterSet):
        taken(scatter, 2, (7, 9), u[:, 0], rows, None)
    taken(ScatterAdd, 0, (7, 9, 2), u, rows, None)
    taken(ScatterAdd, 0, (7, 9), u[:, 0], rows[::-1], None)
    taken(ScatterAdd, 0, (9, 7), u[:, 0], None, rows)
    taken(ScatterAdd, 0, (8, 9), u[:, 0], rows, None)
    taken(ScatterSet, 1, (2, 3, 9), u[:6, 0].reshape(2, 3), rows[:2, None], rows[None, :3], None)


def test_wrong_places_of_rows_are_refused() -> None:
    scatter = ScatterAdd((0, 1), "raise")
    compiled = fg.jit(lambda u, i: scatter.bind(np.zeros((3, 4)), u, np.arange(3), i))
    np.testing.assert_array_equal(compiled(np.ones(3), np.array([3, -4, 1])).argmax(1), [3, 0, 1])
    with pytest.raises(OutOfBoundsError):
        compiled(np.ones(3), np.array([3, 4, 1]))


def test_the_gradient_of_a_cross_entropy_is_one_kernel() -> None:
    """Rows that are counted are known when the program is compiled, also with negative ones."""

    def loss(x: Any, labels: Any) -> Any:
        x = x - np.max(x, axis=1, keepdims=True)
        rows = fg.numpy.arange(50)
        return np.sum(np.log(np.sum(np.exp(x), axis=1)) - x[rows, labels])

    labels = np.arange(50) % 12
    x = np.random.default_rng(0).normal(size=(50, 12))
    slope = fg.jit(fg.grad(loss))
    steps = steps_of(slope.lower(x, labels).as_text())
    assert [line.split(":")[0] for line in steps.splitlines()] == ["  kernel 0"]
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True) - np.eye(12)[labels]
    np.testing.assert_allclose(slope(x, labels), expected, atol=1e-14)
