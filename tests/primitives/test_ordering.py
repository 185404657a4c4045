"""Orders and places: stability, several keys, nan, messages."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad.core.avals import aval_of
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.primitives.ordering import ArgSort, SearchSorted


def test_equal_elements_keep_their_order_and_nan_comes_last():
    x = np.array([2.0, np.nan, 1.0, 2.0, 1.0])
    np.testing.assert_array_equal(ArgSort(0).bind(x), [2, 4, 0, 3, 1])


def test_the_first_key_decides_first():
    first, second = np.array([1, 0, 1, 0]), np.array([5, 6, 4, 7])
    np.testing.assert_array_equal(ArgSort(0).bind(first, second), [1, 3, 2, 0])


def test_orders_have_no_tangent():
    out, found = ArgSort(0).jvp([np.array([2.0, 1.0])], [np.ones(2)])
    np.testing.assert_array_equal(out, [1, 0])
    assert found is None


def test_lanes_are_searched_separately():
    ordered = np.array([[1.0, 2.0], [3.0, 4.0]])
    values = np.array([[2.0, 5.0], [2.0, 3.5]])
    np.testing.assert_array_equal(SearchSorted("left", 1).bind(ordered, values), [[1, 2], [0, 1]])
    np.testing.assert_array_equal(SearchSorted("right", 1).bind(ordered, values), [[2, 2], [0, 1]])


def test_messages():
    line, matrix = aval_of(np.ones(3)), aval_of(np.ones((2, 3)))
    with pytest.raises(ShapeError, match="all keys must have one shape"):
        ArgSort(0).abstract_eval(line, matrix)
    with pytest.raises(ShapeError, match=r"sorted array must have one axis, got f64\[2,3\]"):
        SearchSorted().abstract_eval(matrix, line)
    with pytest.raises(DtypeError, match="one dtype"):
        SearchSorted().abstract_eval(line, aval_of(np.ones(3, int)))
