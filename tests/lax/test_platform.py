"""Names for accelerators on a CPU; bits that are counted or folded."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import DtypeError
from funcgrad.testing import check_grads

X = np.random.default_rng(5).normal(size=(3, 6))


def test_exact_extremes():
    for function, sign in ((lax.approx_max_k, -1), (lax.approx_min_k, 1)):
        for axis in (0, 1):
            values, places = function(X, 2, axis, recall_target=0.5)
            expected = np.take(np.argsort(sign * X, axis), [0, 1], axis)
            np.testing.assert_array_equal(places, expected)
            np.testing.assert_array_equal(values, np.take_along_axis(X, expected, axis))
            mapped = fg.vmap(lambda x, f=function, a=axis: f(x, 2, a)[1])(np.stack([X, X]))
            np.testing.assert_array_equal(mapped[1], expected)
        check_grads(lambda x, f=function: f(x, 3)[0] ** 2, (X,), order=2)


def test_platforms():
    branches = {"cpu": lambda x: x + 1, "tpu": lambda x: x - 1}
    assert fg.grad(lambda x: lax.platform_dependent(x, **branches) ** 2)(2.0) == 6.0
    assert lax.platform_dependent(2.0, cuda=lambda x: 0, default=lambda x: 5 * x) == 10.0
    with pytest.raises(
        NotImplementedError, match=r"needs `cpu=` or `default=`, got functions for cuda"
    ):
        lax.platform_dependent(2.0, cuda=lambda x: 0)
    tree = {"a": X, "b": (1.0, None)}
    out = fg.jit(lax.optimization_barrier)(tree)
    np.testing.assert_array_equal(out["a"], X)
    check_grads(lambda x: lax.optimization_barrier(x) ** 2, (X,), order=2)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.int64, np.uint64])
def test_leading_zeros(dtype):
    info = np.iinfo(dtype)
    values = [0, 1, 2, 100, info.max, info.min]
    expected = [info.bits - int(v).bit_length() if v >= 0 else 0 for v in values]
    found = lax.clz(np.array(values, dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(fg.vmap(lax.clz)(np.array(values, dtype)), expected)
    assert lax.clz(np.zeros((0, 2), dtype)).shape == (0, 2)


def test_folded_bits():
    n = np.random.default_rng(2).integers(-99, 99, (3, 5))
    for x in (n, n > 0, n.astype(np.uint8)):
        for axes in ((0,), (1,), (0, 1)):
            expected = np.bitwise_xor.reduce(x, axes)
            found = lax.reduce_xor(x, axes)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        fg.vmap(lambda x: lax.reduce_xor(x, (0,)))(n), np.bitwise_xor.reduce(n, 1)
    )
    for function in (lax.clz, lambda x: lax.reduce_xor(x, (0,))):
        with pytest.raises(DtypeError, match="needs a dtype of kind"):
            function(X)
