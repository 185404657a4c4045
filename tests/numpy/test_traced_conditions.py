"""What NumPy asks of integers and edges is asked of traced ones, when they are computed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

LINE = np.array([0.5, 1.5, 2.5, 9.0])
GRID = np.arange(6.0).reshape(2, 3)
ORDER = np.array([2, 0, 1, 3])

# A function of a module and one argument, arguments that it takes, and ones that it refuses.
Row = tuple[Callable[[Any, Any], Any], list[Any], list[Any]]
CONDITIONS: dict[str, Row] = {
    "digitize": (
        lambda m, b: m.digitize(LINE, b),
        [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, np.nan]],
        [[0.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 1.0, 0.0, 2.0]],
    ),
    "histogram": (
        lambda m, b: m.histogram(LINE, b)[0],
        [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]],
        [[0.0, 2.0, 1.0], [2.0, 1.0, 0.0]],
    ),
    "histogram, its edges": (
        lambda m, b: m.histogram_bin_edges(LINE, b),
        [[0.0, 1.0, 2.0]],
        [[2.0, 1.0, 0.0]],
    ),
    "searchsorted": (
        lambda m, order: m.searchsorted(LINE[[1, 2, 0, 3]], 2.0, sorter=order),
        [ORDER, ORDER.astype(np.uint8)],
        [[2, 0, 1, 4], [2, 0, -1, 3], np.array([2, 0, 1, 2**64 - 1], np.uint64)],
    ),
    "insert": (lambda m, i: m.insert(LINE, i, 7.0), [0, 1, 4, -1, -4], [5, 6, -5, -6, 2**40]),
    "insert several": (
        lambda m, i: m.insert(GRID, i, 7.0, axis=1),
        [[0, 3], [-3, 1]],
        [[0, 4], [4, 5]],
    ),
    "delete": (lambda m, i: m.delete(LINE, i), [0, 3, -1, -4], [4, 5, -5, -6]),
    "delete a column": (lambda m, i: m.delete(GRID, i, axis=1), [0, 2, -3], [3, -4]),
    "ravel_multi_index": (
        lambda m, i: m.ravel_multi_index((i, [0, 1]), (2, 3)),
        [[0, 1], [1, 1]],
        [[0, 2], [-1, 0], [1, 3]],
    ),
    "unravel_index": (
        lambda m, i: m.unravel_index(i, (2, 3)),
        [[0, 5], [[3], [4]], np.uint8([2, 1])],
        [[0, 6], [-1, 0]],
    ),
    "unravel_index by columns": (
        lambda m, i: m.unravel_index(i, (2, 3, 2), "F"),
        [0, 7, 11],
        [12, -1],
    ),
    "ravel_multi_index by columns": (
        lambda m, i: m.ravel_multi_index((1, i), (2, 3), order="F"),
        [0, 2],
        [3, -1, -2],
    ),
}


def first_word(name: str) -> str:
    return re.split("[ ,]", name)[0]


def first_lane(found: Any) -> Any:
    return fg.tree.map(lambda x: x[0], found)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CONDITIONS)
def test_as_numpy(name: str) -> None:
    function, taken, refused = CONDITIONS[name]
    traced = fg.jit(lambda x: function(fnp, x))
    for argument in taken:
        x = np.asarray(argument)
        for found in (
            traced(x),
            first_lane(fg.vmap(lambda x: function(fnp, x))(x[None])),
            first_lane(fg.jit(fg.vmap(lambda x: function(fnp, x)))(x[None])),
        ):
            np.testing.assert_array_equal(found, function(np, x))
    for argument in refused:
        x = np.asarray(argument)
        kind: type[Exception] = ValueError
        if name != "searchsorted":  # NumPy looks at the indices that it comes across
            with pytest.raises((ValueError, IndexError)) as theirs:
                function(np, x)
            kind = IndexError if issubclass(theirs.type, IndexError) else ValueError
        for call in (traced, fg.vmap(traced), fg.jit(fg.vmap(lambda x: function(fnp, x)))):
            with pytest.raises(kind, match=rf"(?s){first_word(name)}.*test_traced_conditions"):
                call(x if call is traced else x[None])
        with pytest.raises(kind):
            fg.jvp(lambda x: function(fnp, x), (x,), (np.zeros(x.shape, fg.float0),))
        if x.size == 1 and name != "searchsorted":
            with pytest.raises(kind, match=rf" {int(x)} "):
                traced(x)


# What a histogram drops is an index out of bounds, too.
@pytest.mark.parametrize("name", [name for name in CONDITIONS if name != "histogram"])
def test_checkify_finds_them(name: str) -> None:
    function, taken, refused = CONDITIONS[name]
    check = fg.checkify.checkify(lambda x: function(fnp, x), errors=fg.checkify.index_checks)
    assert check(np.asarray(taken[0]))[0].get() is None
    assert first_word(name) in check(np.asarray(refused[0]))[0].get()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CONDITIONS)
def test_by_the_rule_of_jax_nothing_is_asked(name: str) -> None:
    function, taken, refused = CONDITIONS[name]
    fg.config.update("out_of_bounds", "clamp")
    try:
        found = fg.jit(lambda x: function(fnp, x))
        np.testing.assert_array_equal(found(np.asarray(taken[0])), function(np, taken[0]))
        found(np.asarray(refused[0]))
    finally:
        fg.config.update("out_of_bounds", "raise")


def test_slopes_pass() -> None:
    """Edges and elements have derivatives beside what is checked."""
    slope = fg.jit(fg.grad(lambda x, i: (fnp.insert(x, i, 2.0) ** 2).sum()))(LINE, 1)
    np.testing.assert_allclose(slope, 2 * LINE)
    slope = fg.jit(fg.grad(lambda b: fnp.histogram(LINE, b)[1] @ np.arange(3.0)))(LINE[:3])
    np.testing.assert_allclose(slope, np.arange(3.0))
