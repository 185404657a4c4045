"""Sums: rounding errors do not grow with the length, whatever the layout of what is summed."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.compiler.plans import plan

LENGTH = 3 * 10**6

# How many roundings of the result a sum may be away from the exact one.
ROUNDINGS = {
    ("f4", "contiguous"): 1.0,
    ("f4", "strided"): 1.0,
    ("f4", "columns"): 1.0,
    ("f8", "contiguous"): 2.0,
    ("f8", "strided"): 64.0,  # one variable takes the additions of a block
    ("f8", "columns"): 512.0,
}
SUMS: dict[str, Any] = {
    "contiguous": (lambda x: np.sum(x * 1, keepdims=True), lambda x: [x]),
    "strided": (lambda x: np.sum(x[::-1], keepdims=True), lambda x: [x]),
    "columns": (lambda x: np.sum(x.reshape(-1, 3), axis=0), lambda x: x.reshape(-1, 3).T),
}


def numbers(kind: str, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    drawn = {
        "equal": lambda: np.full(LENGTH, 0.1),
        "shifted": lambda: 1e5 + rng.normal(size=LENGTH),
        "scattered": lambda: np.exp(3 * rng.normal(size=LENGTH)),
    }
    return np.asarray(drawn[kind](), dtype)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("layout", SUMS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", ["equal", "shifted", "scattered"])
def test_long_sums(kind: str, dtype: str, layout: str) -> None:
    x = numbers(kind, dtype)
    fun, parts = SUMS[layout]
    eps = np.finfo(dtype).eps
    for total, part in zip(fg.jit(fun)(x), parts(x), strict=True):
        exact = math.fsum(part.tolist())
        assert abs(float(total) - exact) <= ROUNDINGS[dtype, layout] * eps * abs(exact)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_means_of_ten_million(dtype: str) -> None:
    x = np.full(10**7, 0.1, dtype)
    for fun in (np.mean, lambda x: np.sum(x) / x.size, lambda x: np.mean(x[::-1].reshape(10, -1))):
        mean = float(fg.jit(fun)(x))
        assert abs(mean - float(x[0])) <= 64 * np.finfo(dtype).eps * float(x[0])
    assert fg.jit(np.var)(x) <= np.finfo(dtype).eps ** 2


@pytest.mark.parametrize("places", [(0, 1), (0, -1), (511, 512), (5, 100_000)])
def test_terms_that_cancel_leave_the_small_ones(places: tuple[int, int]) -> None:
    x = np.ones(200_000)
    x[places[0]], x[places[1]] = 1e14, -1e14
    for fun in (np.sum, lambda x: np.sum(x * 1.0), lambda x: x @ np.ones_like(x)):
        assert abs(fg.jit(fun)(x) - 199_998.0) <= 512 * 0.02  # a block loses what 1e14 rounds off


def test_infinities_and_overflow() -> None:
    rows = np.array([[1e308, 1e308], [np.inf, 1.0], [-np.inf, np.inf], [np.nan, 1.0], [-0.0, 0.0]])
    wide = np.repeat(rows, 400, axis=1)
    with np.errstate(all="ignore"):
        narrow = (wide * 2e-270).astype("f4")
        for x, axis in itertools.product((wide, narrow), (0, 1, None)):
            f = fg.jit(lambda x, axis=axis: np.sum(x, axis=axis))
            np.testing.assert_array_equal(f(x), np.sum(x, axis=axis))


# Layouts: views inside a program are read in place, in every direction.


def views(x: Any) -> Any:
    """Views of an array of shape (4, 3, 5), and some without elements."""
    return [
        x,
        np.transpose(x, (2, 0, 1)),
        np.transpose(x, (1, 0, 2)),
        x[::-1, :, ::-1],
        x[::2, 1:, ::-2],
        np.broadcast_to(x[:, :1, :], (4, 3, 5)),
        np.broadcast_to(x[0], (2, 3, 5)),
        x[:, None, 1],
        np.reshape(np.transpose(x, (1, 0, 2))[:, ::-1], (2, 6, 5)),
        x[:0],
        x[:, :0],
        x[..., :0],
    ]


FOLDS = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": lambda x, **how: np.any(x > 1.0, **how),
    "argmax": np.argmax,
    "cumsum": np.cumsum,
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("is_odd", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("code", "fdi")
@pytest.mark.parametrize("fold", FOLDS)
def test_every_axis_of_every_view(fold: str, code: str, is_odd: bool) -> None:
    """Every run tries each pair of a view and axes in one of the two floating types."""
    fun = FOLDS[fold]
    turn = "fdi".index(code) + is_odd
    x = (np.random.default_rng(0).normal(size=(4, 3, 5)) * 2).astype(code)
    axes: list[Any] = [None, *range(3)]
    if fold not in ("argmax", "cumsum"):
        axes += [(0, 1), (0, 2), (1, 2), (-1, 0), (0, 1, 2), ()]

    def every(x: Any) -> list[Any]:
        return [
            fun(view, axis=axis)
            for (i, view), (j, axis) in itertools.product(enumerate(views(x)), enumerate(axes))
            if (i + j + turn) % 2 == 0 and has_value(view, axis, fold)
        ]

    with np.errstate(all="ignore"):
        expected = every(x)
    for found, reference in zip(fg.jit(every)(x), expected, strict=True):
        assert np.asarray(found).dtype == reference.dtype
        rtol = 1e-5 if reference.dtype == np.float32 else 1e-13
        np.testing.assert_allclose(found, reference, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_sums_of_one_known_number(dtype: str) -> None:
    def slope(s: Any, y: Any, z: Any) -> Any:
        return fg.vjp(lambda s: fnp.sum((s + y) * 3 + z, axis=0), s)[1](fnp.ones_like(z))[0]

    args = np.ones((), dtype), np.ones((100, 7), dtype), np.ones(7, dtype)
    assert fg.jit(slope)(*args) == 2100
    assert "kernel 0: 1 iterations;  ->" in plan(slope, *args)


def has_value(view: Any, axis: Any, fold: str) -> bool:
    """Whether NumPy gives a fold without a warning: means and extrema of nothing have none."""
    if fold not in ("max", "min", "argmax", "mean"):
        return True
    axes = range(3) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return all(view.shape[a] for a in axes)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "shape", [(1, 7), (3, 5), (4, 6), (9, 4, 6), (6, 1), (0, 3), (11, 0)], ids=str
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i4"])
def test_running_sums_of_several_lines_at_a_time(shape: tuple[int, ...], dtype: str) -> None:
    """Four lines run together; what is left of them runs alone."""
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    for axis in range(len(shape)):
        f = fg.jit(lambda x, axis=axis: fnp.cumsum(x, axis=axis))
        np.testing.assert_array_equal(f(x), np.cumsum(x, axis=axis))
        back = fg.jit(lambda x, axis=axis: fg.lax.cumsum(x, axis, reverse=True))
        expected = np.flip(np.cumsum(np.flip(x, axis), axis=axis), axis)
        np.testing.assert_array_equal(back(x), expected)
        other = x.swapaxes(0, -1)  # lines that do not lie beside each other
        np.testing.assert_array_equal(f(other), np.cumsum(other, axis=axis))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n_rows", [4, 7, 90])
@pytest.mark.parametrize("length", [33, 64, 100])
def test_rows_that_are_folded_at_a_time(length: int, n_rows: int, dtype: str) -> None:
    """Rows of a loop's body, groups of them and what is left, and sums over all of them."""
    rng = np.random.default_rng(length * n_rows)
    a, v = rng.normal(size=(n_rows, length)).astype(dtype), rng.normal(size=length).astype(dtype)

    def product(v: Any, _: Any) -> tuple[Any, Any]:
        w = a @ v
        return v + 1, (w, np.sum(w * w), np.max(a - v, axis=1))

    _, (w, total, most) = fg.jit(lambda v: fg.lax.scan(product, v, None, length=3))(v)
    steps = [v, v + 1, v + 1 + 1]
    exact = [a.astype("f8") @ x.astype("f8") for x in steps]
    scale = np.max([np.abs(a).astype("f8") @ np.abs(x) for x in steps])
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(w, exact, atol=4 * eps * scale, rtol=0)
    np.testing.assert_allclose(total, np.sum(np.square(exact), axis=1), rtol=16 * eps)
    np.testing.assert_array_equal(most, [np.max(a - x, axis=1) for x in steps])


JAMMED: dict[str, Any] = {
    "once more": (lambda a, x: fnp.sum(a * x, axis=1) + x[0], "i0_last"),
    "alone": (lambda a, x: fnp.sum(fnp.sum(a * x, axis=1) ** 2), "i0_whole"),
}


@pytest.mark.parametrize("name", JAMMED)
def test_any_number_of_rows_is_left_of_those_that_are_folded_at_once(name: str) -> None:
    function, sign = JAMMED[name]
    compiled, x = fg.jit(function), np.arange(40.0)
    for rows in range(5, 9):
        a = np.arange(rows * 40.0).reshape(rows, 40)
        assert np.array_equal(compiled(a, x), function(a, x)), rows
    assert sign in compiled.lower(np.ones((1000, 40)), x).as_text()


def test_sums_of_masked_rows_are_taken_along_the_rows() -> None:
    """Products of parts with changing bounds are computed where they are summed."""

    def program(a: Any, b: Any) -> Any:
        b = b.copy()
        for i in range(b.shape[0]):
            for j in range(b.shape[1]):
                b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
        return b

    a, b = np.random.default_rng(0).normal(size=(2, 40, 40))
    b = b[:, :36]
    compiled = fg.jit(program).lower(a, b).compile()
    np.testing.assert_allclose(compiled(a, b), program(a, b), rtol=1e-12)
    plan = compiled.as_text().partition("\nplan\n")[2].partition("\n\n")[0]
    assert plan.count("\n    kernel ") == 2


@pytest.mark.parametrize("fold", [np.sum, np.max, lambda x, axis: x @ np.ones(x.shape[-1], "f4")])
def test_short_rows_from_memory_are_read_one_after_the_other(fold: Any) -> None:
    """Four rows at once are for those that are near, or long; results are the same."""

    def fun(x: Any) -> Any:
        return fold(x, axis=-1)

    x = np.random.default_rng(0).normal(size=(1 << 14, 160)).astype("f4")
    many, few, long = x, x[: 1 << 11], x.reshape(-1, 1280)
    texts = [str(fg.jit(fun).lower(a).as_text()) for a in (many, few, long)]
    assert ["_next3 = " in text for text in texts] == [False, True, True]
    np.testing.assert_array_equal(fg.jit(fun)(many)[: len(few)], fg.jit(fun)(few))
