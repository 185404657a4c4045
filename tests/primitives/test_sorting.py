"""Sorting moves tangents with values; ties go by the stable order."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.avals import aval_of
from funcgrad.errors import ShapeError
from funcgrad.primitives.sorting import Sort, TopK, sort_together


def test_tangents_move_with_their_values():
    out, found = Sort(0).jvp([np.array([3.0, 1.0, 2.0])], [np.array([30.0, 10.0, 20.0])])
    np.testing.assert_array_equal(out, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found, [10.0, 20.0, 30.0])


def test_ties_keep_the_order_of_their_tangents():
    _, found = Sort(0).jvp([np.array([1.0, 0.0, 1.0, 0.0])], [np.array([1.0, 2.0, 3.0, 4.0])])
    np.testing.assert_array_equal(found, [2.0, 4.0, 1.0, 3.0])


def test_top_k_is_descending_and_stable_and_begins_with_nan():
    values, places = TopK(4).bind(np.array([1.0, 3.0, np.nan, 3.0, 0.0]))
    np.testing.assert_array_equal(values, [np.nan, 3.0, 3.0, 1.0])
    np.testing.assert_array_equal(places, [2, 1, 3, 0])


def chosen(row, k):
    """The places of the greatest elements, from the definition."""
    is_nan = np.isnan(row) if row.dtype.kind == "f" else np.zeros(row.shape, bool)
    keys = [
        (not n, 0 if n else -v.item(), i) for i, (v, n) in enumerate(zip(row, is_nan, strict=True))
    ]
    return [i for *_, i in sorted(keys)[:k]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", "?bBhHiIqQfd")
@pytest.mark.parametrize("kind", ["ties", "ascending", "descending", "nan"])
def test_few_of_many_elements_are_those_of_the_definition(dtype, kind):
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 90, (3, 133)).astype(dtype)
    if kind == "nan":
        x[0] = x.dtype.type(np.nan if dtype in "fd" else 1)
        x[1, rng.integers(0, 133, 20)] = x[0, 0]
    elif kind != "ties":
        x = np.sort(x)[:, :: 1 if kind == "ascending" else -1]
    for k in (1, 3, 33):
        expected = np.array([chosen(row, k) for row in x])
        for top_k in (TopK(k).bind, fg.jit(TopK(k).bind)):
            values, places = top_k(x)
            np.testing.assert_array_equal(places, expected)
            np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1))
            assert (values.dtype, places.dtype) == (x.dtype, np.int64)


def test_top_k_of_unsigned_integers():
    values, places = TopK(2).bind(np.array([[0, 255, 7], [1, 1, 0]], np.uint8))
    np.testing.assert_array_equal(values, [[255, 7], [1, 1]])
    np.testing.assert_array_equal(places, [[1, 2], [0, 1]])


def test_operands_are_sorted_together():
    keys = np.array([1, 0, 1]), np.array([2.0, 5.0, 1.0])
    a, b, c = sort_together([*keys, np.array([10, 20, 30])], 0, num_keys=2)
    np.testing.assert_array_equal(a, [0, 1, 1])
    np.testing.assert_array_equal(b, [5.0, 1.0, 2.0])
    np.testing.assert_array_equal(c, [20, 30, 10])


def test_messages():
    with pytest.raises(ShapeError, match=r"top_k: k=4 must be between 0 and .* of f64\[3\]"):
        TopK(4).abstract_eval(aval_of(np.ones(3)))
    with pytest.raises(ShapeError, match=r"sort: f64\[3\] has no axis 1"):
        Sort(1).abstract_eval(aval_of(np.ones(3)))
