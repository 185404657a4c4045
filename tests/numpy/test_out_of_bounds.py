"""Traced indices out of bounds raise as in NumPy: compiled, mapped, in loops and in gradients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.compiler.abi import REFUSED
from funcgrad.errors import ArgumentError, OutOfBoundsError

RNG = np.random.default_rng(0)
LINE = RNG.normal(size=5)
TABLE = RNG.normal(size=(5, 40))
ROWS = np.arange(3)


def assigned(x: Any, i: Any) -> Any:
    y = x.copy()
    y[i] = 7.0
    return y


def raised_in_place(x: Any, i: Any) -> Any:
    y = fnp.array(x)
    np.add.at(y, i, 2 * y[0])  # derivatives depend on the indices
    return y


ACCESSES: dict[str, Callable[[Any, Any], Any]] = {
    "x[i]": lambda x, i: x[i],
    "take": lambda x, i: np.take(x, i, axis=0),
    "take_along_axis": lambda x, i: np.take_along_axis(
        x, np.reshape(i, (-1, *(1,) * (x.ndim - 1))), 0
    ),
    "computed": lambda x, i: (2.0 * x)[2 * i - i] + 1.0,
    "several axes": lambda x, i: np.reshape(x, (len(x), -1))[i, -1],
    "assignment": assigned,
    "in-place addition": raised_in_place,
    "put": lambda x, i: fnp.put(x, i, [1.0], inplace=False),
}
"""Of the first axis, at an array of indices."""

WAYS: dict[str, Callable[[Callable[..., Any]], Callable[[Any, Any], Any]]] = {
    "jit": fg.jit,
    "vmap": lambda f: fg.vmap(f, (None, 0)),
    "jit vmap": lambda f: fg.jit(fg.vmap(f, (None, 0))),
    "jit vmap over both": lambda f: fg.jit(
        lambda x, i: fg.vmap(f)(np.broadcast_to(x, (len(i), *x.shape)), i)
    ),
    "jit grad": lambda f: fg.jit(fg.grad(lambda x, i: np.sum(f(x, i)))),
    "jit grad of squares": lambda f: fg.jit(fg.grad(lambda x, i: np.sum(f(x, i) ** 2))),
    "jvp": lambda f: lambda x, i: fg.jit(lambda x: fg.jvp(lambda x: f(x, i), (x,), (x,)))(x),
    "jit jvp": lambda f: fg.jit(lambda x, i: fg.jvp(lambda x: f(x, i), (x,), (x,))[1]),
    "map": lambda f: fg.jit(lambda x, i: lax.map(lambda j: f(x, j), i)),
    "fori_loop": lambda f: fg.jit(
        lambda x, i: lax.fori_loop(0, len(i), lambda k, c: c + np.sum(f(x, i[k])), 0.0)
    ),
    "grad of a loop": lambda f: fg.jit(
        fg.grad(
            lambda x, i: lax.fori_loop(0, len(i), lambda k, c: c + np.sum(f(x, i[k]) ** 2), 0.0)
        )
    ),
    "while_loop": lambda f: fg.jit(
        lambda x, i: lax.while_loop(
            lambda s: s[0] < len(i), lambda s: (s[0] + 1, s[1] + np.sum(f(x, i[s[0]]))), (0, 0.0)
        )
    ),
    "cond": lambda f: fg.jit(
        lambda x, i: lax.cond(i[0, 0] == 0, lambda: np.sum(f(x, i)), lambda: 0.0)
    ),
    "checkpoint": lambda f: fg.jit(fg.grad(fg.checkpoint(lambda x, i: np.sum(f(x, i) ** 2)))),
    "loop that Python runs": lambda f: fg.jit(
        lambda x, i: lax.map(lambda j: np.sum(f(x, j)) + fg.scipy.linalg.signm(np.eye(2)).sum(), i)
    ),
}
ARRAYS = {"line": LINE, "table": TABLE}
ALWAYS = {("x[i]", way) for way in WAYS} | {(name, "jit") for name in ACCESSES}


def some(name: str, way: str, x: str) -> Any:
    is_often = (name, way) in ALWAYS and (x == "line" or way in ("jit", "map"))
    marks = () if is_often else pytest.mark.nightly
    return pytest.param(name, way, ARRAYS[x], marks=marks, id=f"{name}, {way}, {x}")


INSIDE = np.array([[0, -1], [4, -5], [2, 2]])


@pytest.mark.parametrize(
    ("name", "way", "x"), [some(n, w, x) for n in ACCESSES for w in WAYS for x in ARRAYS]
)
def test_indices_out_of_bounds_raise(name: str, way: str, x: np.ndarray) -> None:
    f = WAYS[way](ACCESSES[name])
    length = x.size if name == "put" else 5
    f(x, INSIDE)
    for wrong in (length, -length - 1, 2**40, -(2**40)):
        index = INSIDE.copy()
        index[1, 1] = wrong
        with pytest.raises(OutOfBoundsError) as caught:
            f(x, index)
        text = str(caught.value)
        assert re.match(rf"index {wrong} .*is out of bounds for axis \d of f64\[", text)
        assert f"which has length {length}. Valid are {-length} to {length - 1};" in text
        # The line of the access, where it is compiled or run by Python in a loop.
        assert "test_out_of_bounds.py:" in text or way == "vmap"


@pytest.mark.parametrize("name", ACCESSES)
def test_results_are_those_of_numpy(name: str) -> None:
    for index in (*INSIDE, np.array(3), np.array(-5)):
        if name in ("assignment", "in-place addition", "put") and not index.shape:
            continue
        f = ACCESSES[name]
        np.testing.assert_array_equal(fg.jit(f)(TABLE, index), f(TABLE, index))
        if name in ("x[i]", "computed"):
            assert fg.jit(f)(LINE, index).shape == f(LINE, index).shape


def test_the_text() -> None:
    f = fg.jit(lambda x, i: np.exp(x)[:, i])
    with pytest.raises(OutOfBoundsError) as caught:
        f(TABLE, np.array([[0, 1], [40, -3]]))
    first, place = str(caught.value).split("\n")
    assert first == (
        "index 40 (element [1, 0] of the index array) is out of bounds for axis 1 of f64[5,40], "
        "which has length 40. Valid are -40 to 39; to clip, wrap or drop such indices pass "
        'mode="clip", "wrap" or "fill", as in x.at[i].get(mode="clip").'
    )
    assert place.strip().endswith("f = fg.jit(lambda x, i: np.exp(x)[:, i])")
    with pytest.raises(IndexError, match=r"^index 9 is out of bounds for axis 0 of f64\[5\]"):
        fg.jit(lambda x, i: x[i])(LINE, 9)


@pytest.mark.parametrize(
    "values", ["d", *(pytest.param(v, marks=pytest.mark.nightly) for v in "fbF?")]
)
@pytest.mark.parametrize(
    "dtype", ["b", "L", *(pytest.param(t, marks=pytest.mark.nightly) for t in "hilBHI")]
)
def test_every_dtype(dtype: str, values: str) -> None:
    x, info = LINE.astype(values), np.iinfo(dtype)
    f = fg.jit(lambda x, i: x[i])
    g = fg.jit(assigned)
    for i in (5, 100, info.max, -6, info.min):
        if info.min <= i and i != 0:
            index = np.array([1, i, 0], dtype)
            with pytest.raises(OutOfBoundsError, match="out of bounds for axis 0"):
                f(x, index)
            with pytest.raises(OutOfBoundsError, match="out of bounds for axis 0"):
                g(x, index)
    index = np.array([4, 0, 4], dtype)
    np.testing.assert_array_equal(f(x, index), x[index])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (5, 0)])
def test_arrays_without_elements(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    for f in (fg.jit(lambda x, i: x[i]), fg.jit(assigned), fg.vmap(lambda x, i: x[i], (None, 0))):
        assert f(x, np.zeros(0, int)).size == 0
        with pytest.raises(OutOfBoundsError, match=f"which has length {shape[0]}"):
            f(x, np.array([1, 5]))


def test_many_threads_find_one_index() -> None:
    index = RNG.integers(0, 1000, 2_000_000)
    x = RNG.normal(size=1000)
    f = fg.jit(lambda x, i: x[i] * 2, threads=4)
    np.testing.assert_array_equal(f(x, index), x[index] * 2)
    index[1_234_567] = 1000
    with pytest.raises(OutOfBoundsError, match=r"index 1000 \(element \[1234567\]"):
        f(x, index)


# What is not looked at.


AT: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "get": (lambda x, i: x.at[i].get(), lambda x, i: x[np.clip(i, 0, 4)]),
    "clip": (lambda x, i: x.at[i].get(mode="clip"), lambda x, i: x[np.clip(i, 0, 4)]),
    "fill": (
        lambda x, i: x.at[i].get(mode="fill", fill_value=-1.0),
        lambda x, i: np.where(i < 5, x[i % 5], -1.0),
    ),
    "set": (
        lambda x, i: x.at[i].set(9.0),
        lambda x, i: np.where(np.isin(np.arange(5), i), 9.0, x),
    ),
}


@pytest.mark.parametrize("name", AT)
def test_functional_updates_keep_the_modes_of_jax(name: str) -> None:
    f, expected = AT[name]
    index = np.array([1, 7, 3])
    np.testing.assert_array_equal(fg.jit(f)(LINE, index), expected(LINE, index))
    assert f"return {REFUSED}" not in fg.jit(f).lower(LINE, index).as_text()


PROVED: dict[str, Callable[[Any, Any], Any]] = {
    "clipped": lambda x, i: x[np.clip(i, 0, 4)],
    "clipped from below": lambda x, i: x[np.minimum(np.maximum(i, -4) - 1, 4)],
    "remainders": lambda x, i: x[(3 * i) % 5],
    "extremes": lambda x, i: x[np.argmax(x + i[:, None], axis=1)],
    "places of values": lambda x, i: x[np.minimum(np.searchsorted(np.sort(x), i), 4)],
    "counted": lambda x, i: x[fnp.arange(5)],
    "bytes": lambda x, i: fnp.arange(256.0)[i.astype(np.uint8)],
    "flags": lambda x, i: x[(i > 2).astype(int)],
    "chosen": lambda x, i: x[np.where(i > 2, 4, np.clip(i, 0, 3))],
}


@pytest.mark.parametrize("name", PROVED)
def test_indices_that_lie_inside_are_not_looked_at(name: str) -> None:
    f = fg.jit(PROVED[name])
    index = np.array([3, -9, 200, 1])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(f(LINE, index), PROVED[name](LINE, index))
    assert f"return {REFUSED}" not in f.lower(LINE, index).as_text()


UNPROVED: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "one side": (lambda x, i: x[np.minimum(i, 4)], -6),
    "one too long": (lambda x, i: x[np.clip(i, 0, 5)], 5),
    "overflow": (lambda x, i: x[np.maximum(i, 2**62) * 2 - 2**62 - 2**62], 2**62 + 3),
    "remainders by what may be large": (lambda x, i: x[7 % np.maximum(i, 1)], 9),
    "one arm": (lambda x, i: x[np.where(i > 2, i, 0)], 5),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_bounds_that_prove_nothing(name: str) -> None:
    function, wrong = UNPROVED[name]
    f = fg.jit(function)
    with pytest.raises(OutOfBoundsError), np.errstate(all="ignore"):
        f(LINE, np.array([wrong]))


# Code that not all lanes run.


def walked(x: Any, start: Any, end: int) -> Any:
    return lax.while_loop(
        lambda s: s[0] < end, lambda s: (s[0] + 1, s[1] + x[s[0]] ** 2), (start, 0.0)
    )[1]


def test_lanes_that_have_ended_read_nothing() -> None:
    starts = np.array([0, 2, 5])
    tails = np.array([np.sum(LINE[s:] ** 2) for s in starts])
    lanes = fg.vmap(lambda x, s: walked(x, s, 5), (None, 0))
    np.testing.assert_allclose(lanes(LINE, starts), tails)
    np.testing.assert_allclose(fg.jit(lanes)(LINE, starts), tails)
    slopes = np.array([np.where(np.arange(5) >= s, 2 * LINE, 0.0) for s in starts])
    slope = fg.grad(lambda x, s: walked(x, s, 5))
    np.testing.assert_allclose(fg.jit(fg.vmap(slope, (None, 0)))(LINE, starts), slopes)
    total = fg.jit(fg.grad(lambda x: lanes(x, starts).sum()))
    np.testing.assert_allclose(total(LINE), slopes.sum(axis=0))
    too_far = fg.jit(fg.vmap(lambda x, s: walked(x, s, 6), (None, 0)))
    with pytest.raises(OutOfBoundsError, match="index 5 "):
        too_far(LINE, starts)


BRANCHES: dict[str, Callable[[Any], Callable[[Any, Any], Any]]] = {
    "vmap": lambda f: fg.vmap(f, (None, 0)),
    "jit vmap": lambda f: fg.jit(fg.vmap(f, (None, 0))),
    "map": lambda f: fg.jit(lambda x, i: lax.map(lambda j: f(x, j), i)),
    "vmap of a loop": lambda f: fg.jit(
        lambda x, i: fg.vmap(lambda j: lax.map(lambda k: f(x, k), j[None])[0])(i)
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", BRANCHES)
def test_branches_that_are_not_taken_read_nothing(way: str) -> None:
    def f(x: Any, i: Any) -> Any:
        return lax.cond(i < 5, lambda: x[i] ** 2, lambda: -1.0)

    def g(x: Any, i: Any) -> Any:
        return lax.cond(i < 5, lambda: assigned(x, i).sum(), lambda: -1.0)

    index = np.array([0, 5, 2, 2**40])
    taken = index < 5
    square = LINE[np.where(taken, index, 0)] ** 2
    np.testing.assert_allclose(BRANCHES[way](f)(LINE, index), np.where(taken, square, -1.0))
    sums = [assigned(LINE, i).sum() if i < 5 else -1.0 for i in index]
    np.testing.assert_allclose(BRANCHES[way](g)(LINE, index), sums)
    slope = fg.grad(lambda x, i: BRANCHES[way](f)(x, i).sum())
    expected = np.zeros(5)
    np.add.at(expected, index[taken], 2 * LINE[index[taken]])
    np.testing.assert_allclose(slope(LINE, index), expected)
    np.testing.assert_array_equal(BRANCHES[way](f)(LINE, index + 5), -np.ones(4))
    with pytest.raises(OutOfBoundsError, match="index -9 "):
        BRANCHES[way](f)(LINE, np.array([0, -9, 7, 8]))


# The rule.


def test_one_setting_gives_the_rule_of_jax() -> None:
    f = fg.jit(lambda x, i: x[i])
    g = fg.jit(assigned)
    along = fg.jit(lambda x, i: np.take_along_axis(x, i, 0))
    index = np.array([1, 9, -9])
    with pytest.raises(OutOfBoundsError):
        f(LINE, index)
    assert fg.config.out_of_bounds == "raise"
    try:
        fg.config.update("out_of_bounds", "clamp")
        assert fg.config.read("out_of_bounds") == fg.config.values["out_of_bounds"] == "clamp"
        np.testing.assert_array_equal(f(LINE, index), LINE[[1, 4, 0]])
        np.testing.assert_array_equal(along(LINE, index), LINE[[1, 4, 0]])
        np.testing.assert_array_equal(
            fg.vmap(lambda i: fnp.asarray(LINE)[i])(index), LINE[[1, 4, 0]]
        )
        np.testing.assert_array_equal(g(LINE, index), assigned(LINE, 1))
        assert f"return {REFUSED}" not in f.lower(LINE, index).as_text()
        with pytest.raises(OutOfBoundsError):  # what is known raises in JAX's programs, too
            fg.jit(lambda x: x[9])(LINE)
    finally:
        fg.config.update("out_of_bounds", "raise")
    for function in (f, g, along):
        with pytest.raises(OutOfBoundsError):
            function(LINE, index)
    with pytest.raises(ArgumentError, match='out_of_bounds is "raise" or "clamp", not \'drop\''):
        fg.config.update("out_of_bounds", "drop")
