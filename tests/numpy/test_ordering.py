from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import ConcretizationTypeError

INTEGERS = arrays.arrays(
    np.int64, arrays.array_shapes(max_dims=2, max_side=6), elements=st.integers(-3, 3)
)
FLOATS = arrays.arrays(
    np.float64,
    arrays.array_shapes(max_dims=2, max_side=6),
    elements=st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0, np.nan]),
)


def sample(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@given(INTEGERS | FLOATS, st.sampled_from([-1, 0, None]))
def test_sort_and_argsort(x, axis):
    np.testing.assert_array_equal(fnp.sort(x, axis), np.sort(x, axis))
    np.testing.assert_array_equal(fnp.argsort(x, axis), np.argsort(x, axis))
    np.testing.assert_array_equal(
        fnp.argsort(x, axis, stable=True), np.argsort(x, axis, stable=True)
    )
    np.testing.assert_array_equal(
        fnp.argsort(x, axis, kind="stable"), np.argsort(x, axis, kind="stable")
    )


@given(INTEGERS | FLOATS)
def test_partition(x):
    k = x.shape[-1] // 2
    ours, theirs = fnp.partition(x, k), np.partition(x, k)
    np.testing.assert_array_equal(ours[..., k], theirs[..., k])
    places = fnp.argpartition(x, k)
    np.testing.assert_array_equal(np.take_along_axis(x, places, -1)[..., k], theirs[..., k])


def test_partition_checks_kth():
    with pytest.raises(ValueError, match="out of bounds"):
        fnp.partition(np.ones(3), 3)


def test_gradient_of_sort():
    x = sample((3, 4))
    weights = sample((3, 4), 1)
    for axis in (0, 1):
        out = fg.grad(lambda v, axis=axis: (np.sort(v, axis) * weights).sum())(x)
        order = np.argsort(x, axis)
        expected = np.empty_like(x)
        np.put_along_axis(expected, order, weights, axis)
        np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(fg.vmap(np.sort)(x), np.sort(x))
    np.testing.assert_array_equal(fg.jit(np.sort)(x), np.sort(x))


@given(st.lists(arrays.arrays(np.int64, 7, elements=st.integers(0, 2)), min_size=1, max_size=3))
def test_lexsort(keys):
    np.testing.assert_array_equal(fnp.lexsort(keys), np.lexsort(keys))
    np.testing.assert_array_equal(fnp.lexsort(np.stack(keys)), np.lexsort(np.stack(keys)))


@given(INTEGERS, st.sampled_from(["left", "right"]))
def test_searchsorted(x, side):
    ordered = np.sort(x, axis=None)
    v = np.arange(-4.0, 4.0, 0.5).reshape(2, 8)
    np.testing.assert_array_equal(
        fnp.searchsorted(ordered, v, side), np.searchsorted(ordered, v, side)
    )


def test_searchsorted_variants():
    x = np.array([3.0, 1.0, 2.0])
    assert fnp.searchsorted(x, 2.5, sorter=np.argsort(x)) == 2
    np.testing.assert_array_equal(
        fg.vmap(lambda v: np.searchsorted(np.sort(x), v))(np.array([0.0, 1.5, 9.0])), [0, 1, 3]
    )
    with pytest.raises(ValueError, match="side"):
        fnp.searchsorted(x, 1.0, "middle")
    with pytest.raises(ValueError, match="one axis"):
        fnp.searchsorted(np.ones((2, 2)), 1.0)


def test_sort_complex():
    x = np.array([3, 1, 2])
    out = fnp.sort_complex(x)
    np.testing.assert_array_equal(out, np.sort_complex(x))
    assert out.dtype == np.complex128


@given(INTEGERS)
def test_nonzero(x):
    for ours, theirs in zip(fnp.nonzero(x), np.nonzero(x), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(fnp.argwhere(x), np.argwhere(x))
    np.testing.assert_array_equal(fnp.flatnonzero(x), np.flatnonzero(x))


@given(INTEGERS, st.integers(0, 8))
def test_nonzero_of_fixed_size(x, size):
    found = np.argwhere(x)[:size]
    expected = np.full((size, x.ndim), -7)
    expected[: len(found)] = found
    np.testing.assert_array_equal(fnp.argwhere(x, size=size, fill_value=-7), expected)
    flat = np.full(size, 0)
    flat[: len(found)] = np.flatnonzero(x)[:size]
    np.testing.assert_array_equal(fnp.flatnonzero(x, size=size), flat)


def test_places_that_are_filled_by_nan():
    x = np.array([0, 3, 4])
    for find in (fnp.flatnonzero, fnp.argwhere, lambda x, **o: fnp.where(x, **o)[0]):
        found = fg.jit(lambda x, find=find: find(x, size=4, fill_value=np.nan))(x)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found.ravel(), [1.0, 2.0, np.nan, np.nan])
    found = fnp.nonzero(x, size=3, fill_value=np.float64(0.5))
    np.testing.assert_array_equal(found, [[1.0, 2.0, 0.5]])


def test_shape_that_depends_on_traced_values():
    for function in (np.nonzero, np.flatnonzero, np.unique, np.argwhere):
        with pytest.raises(ConcretizationTypeError, match="size="):
            fg.jit(function)(np.ones(3))
    out = fg.jit(lambda v: fnp.nonzero(v, size=2))(np.array([0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(out[0], [1, 2])


@given(INTEGERS | FLOATS, st.booleans())
def test_unique(x, equal_nan):
    theirs = np.unique(x, True, True, True, equal_nan=equal_nan)
    ours = fnp.unique(x, True, True, True, equal_nan=equal_nan)
    sized = fnp.unique(x, True, True, True, equal_nan=equal_nan, size=len(theirs[0]))
    for a, b, c in zip(ours, theirs, sized, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(c, b)


def test_unique_of_fixed_size():
    x = np.array([5, 2, 5, 9])
    np.testing.assert_array_equal(fnp.unique(x, size=5), [2, 5, 9, 2, 2])
    np.testing.assert_array_equal(fnp.unique(x, size=5, fill_value=-1), [2, 5, 9, -1, -1])
    values, counts = fg.jit(lambda v: fnp.unique(v, return_counts=True, size=2))(x)
    np.testing.assert_array_equal(values, [2, 5])
    np.testing.assert_array_equal(counts, [1, 2])


ROWS = np.random.default_rng(0).integers(0, 2, (4, 3, 2))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "x", [ROWS, ROWS[0], ROWS > 0, ROWS + 1j, np.array([[1.0, np.nan], [1.0, np.nan], [0.0, 2.0]])]
)
def test_unique_slices_of_fixed_size(x, axis):
    if axis >= x.ndim:
        return
    values, *others = np.unique(x, True, True, True, axis=axis)
    n = values.shape[axis]

    def function(x):
        return fnp.unique(x, True, True, True, axis=axis, size=n + 1, fill_value=0)

    for found in (function(x), fg.jit(function)(x)):
        kept, rest = np.split(found[0], [n], axis)
        np.testing.assert_array_equal(kept, values)
        assert not np.any(rest)
        for one, other in zip(found[1:], others, strict=True):
            np.testing.assert_array_equal(one[: other.size], other.ravel())
    if x.dtype == float:
        slopes = fg.grad(lambda x: fnp.sum(fnp.unique(x, axis=axis)))(x)
        np.testing.assert_array_equal(slopes, np.ones(x.shape))


def test_gradient_through_unique():
    x = np.array([5.0, 2.0, 5.0, 9.0])
    out = fg.grad(lambda v: (np.unique(v) * np.array([1.0, 2.0, 3.0])).sum())(x)
    np.testing.assert_array_equal(out, [2.0, 1.0, 0.0, 3.0])
