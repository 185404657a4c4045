"""Sorting moves tangents with values; ties go by the stable order."""

from __future__ import annotations

import numpy as np
import pytest

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
