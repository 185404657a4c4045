"""Elements in the order of columns: ``order="F"``."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp

SHAPES = [((2, 3, 4), (4, 6)), ((2, 3), (-1,)), ((6,), (2, -1)), ((), (1, 1)), ((0, 3), (3, 0))]
CALLS = {
    "fnp.reshape": lambda a, shape: fnp.reshape(a, shape, order="F"),
    "np.reshape": lambda a, shape: np.reshape(a, shape, order="F"),
    "method": lambda a, shape: a.reshape(shape, order="F"),
    "fnp.ravel": lambda a, shape: fnp.ravel(a, "F"),
    "ravel": lambda a, shape: a.ravel(order="F"),
    "flatten": lambda a, shape: a.flatten("F"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_columns_count_fastest(shape, name):
    before, after = shape
    x = np.arange(float(np.prod(before))).reshape(before)
    expected = x.reshape(after if "reshape" in name or name == "method" else -1, order="F")

    def call(a):
        return CALLS[name](a, after)

    y, pull = fg.vjp(call, x)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(fg.vmap(call)(np.stack([x, x + 1]))[1], expected + 1)
    # The transpose of a permutation is its inverse.
    np.testing.assert_array_equal(pull(expected)[0], x)


def test_orders_of_memory_are_refused():
    with pytest.raises(TypeError, match="order='A' is that of an array's memory"):
        fg.jit(lambda a: a.reshape(2, order="A"))(np.ones(2))
