"""What comes before and after a reshape is computed in one index space."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.nest.arrange import SKIP_VARIABLE, VERIFY_VARIABLE
from funcgrad.compiler.nest.layout import Value, View, factored, of_source, whole
from funcgrad.compiler.nest.refine import common_refinement


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY_VARIABLE, "1")


def steps_of(compiled: Any, *args: Any) -> list[str]:
    """The lines of the plan that are steps."""
    plan = compiled.lower(*args).as_text().partition("\nplan\n")[2].partition("\n\n")[0]
    return [line for line in plan.splitlines() if not line.lstrip().startswith("#")]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((2, 6, 3, 5), (12, 15), (2, 6, 3, 5)),
        ((12, 15), (2, 6, 3, 5), (2, 6, 3, 5)),
        ((4, 6), (8, 3), (4, 2, 3)),
        ((8, 3), (2, 12), (2, 4, 3)),
        ((4, 6), (6, 4), None),
        ((4, 1, 6), (4, 6, 1), (4, 6)),
        ((1, 1), (), ()),
        ((0, 3), (3, 0), None),
    ],
)
def test_refinements_of_both_shapes(a: Any, b: Any, expected: Any) -> None:
    assert common_refinement(a, b) == expected


@pytest.mark.parametrize(
    ("shape", "seen", "lengths"),
    [
        ((4, 6), lambda x: x.reshape(-1), [(4, 6)]),
        ((4, 6), lambda x: x.reshape(-1)[::-1], [(4, 6)]),
        ((4, 6), lambda x: x.reshape(-1)[::3], [(4, 2)]),
        ((4, 6), lambda x: x.reshape(-1)[1::2], [(4, 3)]),
        ((4, 6), lambda x: x.reshape(-1)[::-2], [(4, 3)]),
        ((4, 6), lambda x: x.reshape(-1)[::-2].reshape(2, 6), None),
        ((4, 6), lambda x: x.reshape(-1)[6:18], [(2, 6)]),
        ((4, 6), lambda x: x.reshape(-1)[3:15], None),
        ((4, 6), lambda x: x.reshape(-1)[::5], None),
        ((4, 6), lambda x: x[::-1, 1:5].T, [(4,), (4,)]),
        ((2, 3, 4, 5), lambda x: x.reshape(6, 20)[:, None], [(2, 3), (1,), (4, 5)]),
        ((2, 3, 4, 5), lambda x: x.transpose(2, 3, 0, 1), [(4,), (5,), (2,), (3,)]),
        ((3, 0, 4), lambda x: x.reshape(0, 12), None),
        ((6,), lambda x: x[:0], [(0,)]),
        ((5,), lambda x: x[2], []),
    ],
)
def test_axes_of_views(shape: Any, seen: Any, lengths: Any) -> None:
    """Each walks along one axis of the array, and all of them meet the elements of the view."""
    array = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    part = seen(array)
    place = int(part.reshape(-1)[0]) if part.size else 0
    view = View(Value(shape, part.dtype), part.shape, tuple(s // 8 for s in part.strides), place)
    found = factored(view)
    assert (found and found[0]) == lengths
    if found is None:
        return
    space = sum(found[0], ())
    same = whole(view.value).reindexed(found[1], space)
    for index in np.ndindex(space):
        element = same.offset + sum(map(operator.mul, index, same.strides))
        assert element == part.reshape(space)[index]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 40))
ROWS = RNG.normal(size=(6, 4, 40))
ROW = RNG.normal(size=160)


def grouped(x: Any) -> Any:
    """Groups of channels are normalised, channels are scaled."""
    y = x.reshape(6, 2, -1)
    y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-3)
    return y.reshape(6, 4, -1) * np.arange(1.0, 5.0)[:, None]


CHAINS: dict[str, tuple[Any, Any]] = {
    "tile": (lambda x: np.tile(x, (2, 3)) * 2, X),
    "tile along one axis": (lambda x: np.sin(np.tile(x, 3)), X),
    "repeated rows": (lambda x: np.repeat(x, 3, axis=0) * np.repeat(x, 3, axis=0), X),
    "repeated elements": (lambda x: np.exp(np.repeat(x, 3, axis=1)), X),
    "other operands": (lambda x: np.tile(x, (1, 4)) * ROW + ROW, X),
    "every pair": (lambda x: np.sin((x[:, None] * x[None]).reshape(36, 40)), X),
    "split": (lambda x: np.exp(np.exp(x).reshape(6, 5, 32)), ROWS.reshape(6, 160)),
    "neither splits": (lambda x: np.exp(np.exp(x).reshape(12, 80)), ROWS),
    "axes of length 1": (lambda x: np.exp(np.exp(x)[:, None].reshape(6, 40, 1)), X),
    "a sum of rows": (lambda x: np.sum(np.tile(x, (1, 3)), 1), X),
    "a sum of columns": (lambda x: np.sum(np.tile(x, (2, 3)) ** 2, 0), X),
    "groups": (grouped, ROWS),
    "coordinates": (lambda x: (x[::4] - x[1::4] ** 2) * x[2::4] + np.sin(x[3::4]), ROW),
    "wavelets": (lambda x: np.tanh(x[::2] + x[1::2]) * (x[::2] - x[1::2]), ROW),
    "colours of a grid": (lambda x: np.sin(x[::2, ::2]) * x[1::2, ::2] * x[::2, 1::2], X),
    "other steps": (lambda x: np.sum(x[1::2] ** 2) + np.sin(x[3::8]), ROW),
    "inside": (lambda x: np.sin(x[2:-2:2]) * x[3:-1:2], ROW),
    "a reversed part": (lambda x: np.sin(x[::-2]) * x[::2], ROW),
    "no whole number": (lambda x: np.sin(x[::2]) * x[::2] + x[1] * x[3::2].sum(), ROW[1:]),
}
STEPS = {
    "tile": 1, "tile along one axis": 1, "repeated rows": 2, "repeated elements": 1,
    "other operands": 1, "every pair": 3, "split": 1, "neither splits": 1, "axes of length 1": 1,
    "a sum of rows": 2, "a sum of columns": 2, "groups": 2, "coordinates": 1, "wavelets": 1,
    "colours of a grid": 2, "other steps": 6, "inside": 2, "a reversed part": 2,
    "no whole number": 9,
}  # fmt: skip
"""Of the gradient: what is as large as a repeated array is stored by none."""


@pytest.mark.parametrize(
    ("shape", "seen", "is_possible"),
    [
        ((20, 30), lambda x: x.reshape(-1)[: 20 * 20 : 21], False),
        ((20, 30), lambda x: x.reshape(-1)[::31], True),
        ((20, 30), lambda x: x.reshape(-1)[-1:-590:-31], True),
        ((20, 30), lambda x: x.reshape(-1)[29::29], False),
        ((20, 30), lambda x: x.reshape(4, 5, 30)[1::2, 3, ::-7], True),
        ((4, 30, 5), lambda x: x.reshape(-1)[1::156], True),
        ((4, 30, 5), lambda x: x.reshape(-1)[3::156], False),  # the third is in another row
        ((4, 30, 5), lambda x: x.reshape(-1)[7], True),
        ((4, 30, 5), lambda x: x[:0], True),
    ],
)
def test_views_of_copies_as_views_of_their_source(shape: Any, seen: Any, is_possible: bool) -> None:
    copied = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    part = seen(copied)
    place = int(part.reshape(-1)[0]) if part.size else 0
    view = View(Value(shape, part.dtype), part.shape, tuple(s // 8 for s in part.strides), place)
    value = Value(shape[::-1], part.dtype)
    source = whole(value).permuted(range(len(shape))[::-1])
    found = of_source(view, source)
    assert (found is not None) == is_possible
    if found is None:
        return
    assert isinstance(found, View)
    elements = np.ascontiguousarray(copied.T).reshape(-1)
    for index in np.ndindex(part.shape):
        at = found.offset + sum(map(operator.mul, index, found.strides))
        assert elements[at] == part[index]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.diag(x.T.reshape(-1)[:1600].reshape(40, 40)),
        lambda x: x.T.reshape(10, 5, 40)[2, :, 7] + 1,
        lambda x: x.T.reshape(-1)[1003] * 2,
    ],
    ids=["diagonal", "column", "element"],
)
def test_few_elements_of_a_copy_are_read_where_they_come_from(function: Any) -> None:
    x = np.random.default_rng(1).standard_normal((40, 50))
    compiled = fg.jit(function)
    assert len(steps_of(compiled, x)) == 1
    np.testing.assert_array_equal(compiled(x), function(x))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", CHAINS)
def test_values_and_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, x = CHAINS[name]
    np.testing.assert_allclose(fg.jit(function)(x), function(x), rtol=1e-12)
    weights = RNG.normal(size=function(x).shape)
    gradient = fg.jit(fg.grad(lambda x: np.sum(weights * function(x))))
    assert len(steps_of(gradient, x)) <= STEPS[name]
    direction, size = RNG.normal(size=x.shape), 1e-6
    ends = (np.sum(weights * function(x + s * direction)) for s in (size, -size))
    slope = np.subtract(*ends) / (2 * size)
    np.testing.assert_allclose(np.sum(gradient(x) * direction), slope, rtol=1e-6)
    monkeypatch.setenv(SKIP_VARIABLE, "refine")
    fg.clear_caches()
    apart = fg.jit(fg.grad(lambda x: np.sum(weights * function(x))))
    np.testing.assert_allclose(gradient(x), apart(x), rtol=1e-12)


def test_results_have_their_own_shapes() -> None:
    """Also those that are computed in another one, and those whose memory was given."""
    compiled = fg.jit(lambda x: (np.tile(x, (2, 3)) + 1, np.tile(x, (2, 3)).sum(0)))
    for found, expected in zip(
        compiled(X), (np.tile(X, (2, 3)) + 1, np.tile(X, (2, 3)).sum(0)), strict=True
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    given = fg.jit(lambda x: np.exp(np.exp(x).reshape(12, 20)).reshape(6, 40), donate_argnums=0)
    mine = X.copy()
    out = given(mine)
    assert np.shares_memory(out, mine)
    np.testing.assert_allclose(out, np.exp(np.exp(X)), rtol=1e-14)


def test_what_lies_between_elements_is_not_stored() -> None:
    """Sums of arrays with zeros in between are folded as they are computed."""
    compiled = fg.jit(lambda x: np.sum(np.square(np.exp(fg.lax.pad(x, 0.5, [(1, 0, 1)])) + 1)))
    x = np.append(ROW, 1.0)[:160]
    padded = np.full(320, 0.5)
    padded[1::2] = x
    assert len(steps_of(compiled, x)) == 1
    np.testing.assert_allclose(compiled(x), np.sum((np.exp(padded) + 1) ** 2), rtol=1e-13)
    energy = CHAINS["coordinates"][0]
    slope = fg.grad(lambda x: np.sum(energy(x)))
    norm = fg.jit(lambda x: np.sum(slope(x) ** 2))
    assert len(steps_of(norm, ROW)) == 1
    np.testing.assert_allclose(norm(ROW), np.sum(slope(ROW) ** 2), rtol=1e-13)


def test_in_loops_and_under_vmap() -> None:
    def body(c: Any, _: Any) -> Any:
        wide = np.tile(c, (2, 1)).reshape(2, 6, 40)
        return np.sin(wide.reshape(12, 40)).reshape(2, 6, 40).sum(0) * 0.5, c[0, 0]

    def looped(x: Any) -> Any:
        return fg.lax.scan(body, x, None, length=3)[0]

    expected = X
    for _ in range(3):
        expected = np.sin(expected)
    np.testing.assert_allclose(fg.jit(looped)(X), expected, rtol=1e-13)
    mapped = fg.jit(fg.vmap(lambda r: np.sin(np.tile(r, 3)).reshape(3, -1).sum(0)))
    np.testing.assert_allclose(mapped(X), 3 * np.sin(X), rtol=1e-13)


def test_folds_of_one_element_are_views() -> None:
    functions = {
        "sum": lambda x: np.sum(x[:, None], 1) * 2,
        "max": lambda x: np.max(x[:, :, None], 2) * 2,
        "prod": lambda x: np.prod(x[None], 0) * 2,
        "some axes": lambda x: np.sum(x[None], (0, 2)) * 2,
    }
    for function in functions.values():
        compiled = fg.jit(function)
        np.testing.assert_allclose(compiled(X), function(X), rtol=1e-14)
        assert len(steps_of(compiled, X)) == 1
    counted = fg.jit(lambda x: np.sum(x[None] > 0, 0))(X)
    assert counted.dtype == np.int64
    np.testing.assert_array_equal(counted, X > 0)
