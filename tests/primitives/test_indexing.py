"""Gather, scatter and dynamic slices: NumPy's values, conventions for repeated places, messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Linear
from funcgrad.errors import DtypeError, OutOfBoundsError, ShapeError
from funcgrad.primitives.indexing import (
    SCATTERS,
    DynamicSlice,
    DynamicUpdateSlice,
    Gather,
    ScatterAdd,
    ScatterMax,
    ScatterMin,
    ScatterMul,
    ScatterSet,
    take_along_axis,
)

X = np.arange(12.0).reshape(3, 4)


def test_gather_is_numpys_indexing():
    rows, columns = np.array([[0], [2]]), np.array([1, -1, 3])
    np.testing.assert_array_equal(Gather((0, 1)).bind(X, rows, columns), X[rows, columns])
    np.testing.assert_array_equal(Gather((1, 0)).bind(X, columns, rows), X[rows, columns])
    np.testing.assert_array_equal(Gather((1,)).bind(X, columns), X.T[columns])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("clip", [2.0, 0.0, 0.0, 1.0]),
        ("wrap", [0.0, 2.0, 2.0, 1.0]),
        ("fill", [np.nan, 2.0, np.nan, 1.0]),
    ],
)
def test_modes_of_reading(mode, expected):
    x = np.arange(3.0)
    found = Gather((0,), mode).bind(x, np.array([3, -1, -4, 1]))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("clip", [15.0, 9.0, 2.0]), ("wrap", [1.0, 9.0, 16.0]), ("fill", [0.0, 9.0, 4.0])],
)
def test_modes_of_writing(mode, expected):
    out = ScatterAdd((0,), mode).bind(
        np.array([0.0, 1.0, 1.0]), np.array([1.0, 8.0, 3.0, 12.0]), np.array([3, 1, -1, -4])
    )
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("dtype", "fill"), [(np.int32, -(2**31)), (np.uint8, 255), (bool, True), (np.float32, np.nan)]
)
def test_fill_values_are_extreme(dtype, fill):
    out = Gather((0,), "fill").bind(np.zeros(2, dtype), np.array([5]))
    np.testing.assert_array_equal(out, [fill])
    assert out.dtype == dtype


def test_out_of_bounds_names_index_axis_and_length():
    with pytest.raises(OutOfBoundsError) as caught:
        Gather((1,)).bind(X, np.array([[0, 4], [1, 2]]))
    message = str(caught.value)
    assert "index 4 (element [0, 1] of the index array) is out of bounds for axis 1" in message
    assert "f64[3,4], which has length 4" in message
    assert "Valid are -4 to 3" in message
    assert 'mode="clip"' in message


@pytest.mark.parametrize("op", SCATTERS)
def test_writing_out_of_bounds_raises(op):
    with pytest.raises(OutOfBoundsError, match="index -4 is out of bounds for axis 0"):
        SCATTERS[op]((0,)).bind(X, np.ones(4), np.array(-4))


def test_reading_an_empty_axis_raises():
    for mode in ("raise", "clip", "wrap"):
        with pytest.raises(OutOfBoundsError, match="No index is valid"):
            Gather((0,), mode).bind(np.zeros((0, 2)), np.array([0]))


def test_masks_and_floats_are_no_indices():
    with pytest.raises(DtypeError, match=r"must be of integers, got bool\[3\].*flatnonzero"):
        Gather((0,)).abstract_eval(aval_of(X), aval_of(np.ones(3, bool)))


def test_updates_must_have_the_shape_of_the_places():
    with pytest.raises(ShapeError, match=r"places in f64\[3,4\] have shape \(2, 4\).*f64\[4\]"):
        ScatterAdd((0,)).abstract_eval(aval_of(X), aval_of(np.ones(4)), aval_of(np.array([0, 1])))


def test_of_repeated_writes_the_last_stays_and_gets_the_gradient():
    x, updates, index = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0])
    np.testing.assert_array_equal(ScatterSet((0,)).bind(x, updates, index), [3.0, 2.0, 0.0])
    ct = np.array([10.0, 20.0, 30.0])
    holes = Linear(aval_of(x)), Linear(aval_of(updates))
    ct_x, ct_updates, _ = ScatterSet((0,)).transpose(ct, *holes, index)
    np.testing.assert_array_equal(ct_x, [0.0, 0.0, 30.0])
    np.testing.assert_array_equal(ct_updates, [0.0, 20.0, 10.0])


def test_repeated_factors_have_the_product_of_the_others():
    x, updates, index = np.array([2.0, 5.0]), np.array([3.0, 0.0, 7.0]), np.array([0, 0, 1])
    for i, expected in enumerate([[0.0, 0.0], [6.0, 0.0], [0.0, 5.0]]):
        t = np.eye(3)[i]
        _, found = ScatterMul((0,)).jvp([x, updates, index], [None, t, None])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("kind", "top"), [(ScatterMax, 5.0), (ScatterMin, -5.0)])
def test_ties_share_the_tangent_equally(kind, top):
    x, updates, index = np.array([top, 0.0]), np.array([top, top, -top]), np.array([0, 0, 0])
    out, found = kind((0,)).jvp(
        [x, updates, index], [np.array([6.0, 1.0]), np.array([9.0, 0.0, 100.0]), None]
    )
    np.testing.assert_array_equal(out, [top, 0.0])
    np.testing.assert_array_equal(found, [5.0, 1.0])


def test_nan_has_no_tangent_in_extremes():
    out, found = ScatterMax((0,)).jvp(
        [np.zeros(1), np.array([np.nan]), np.array([0])], [np.ones(1), np.ones(1), None]
    )
    assert np.isnan(out[0])
    assert found[0] == 0


def test_long_rows_and_single_elements_agree():
    rng = np.random.default_rng(0)
    x, updates, index = (
        rng.normal(size=(5, 100)),
        rng.normal(size=(40, 100)),
        rng.integers(0, 5, 40),
    )
    expected = x.copy()
    for i, u in zip(index, updates, strict=True):
        expected[i] += u
    np.testing.assert_allclose(ScatterAdd((0,)).bind(x, updates, index), expected, 1e-13)
    np.testing.assert_allclose(
        ScatterAdd((0,)).bind(x[:, :3], updates[:, :3], index), expected[:, :3], 1e-13
    )


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    places=st.lists(st.integers(0, 3), max_size=2),
    mode=st.sampled_from(["raise", "clip", "wrap", "fill"]),
    data=st.data(),
)
def test_reading_and_adding_are_adjoint(shape, places, mode, data):
    axes = tuple(
        data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, len(shape)))]
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    reach = 1 if mode == "raise" else 3
    indices = [rng.integers(-reach * shape[a], reach * shape[a], places) for a in axes]
    gather = Gather(axes, mode, 0 if mode == "fill" else None)
    x = rng.normal(size=shape)
    out = gather.bind(x, *indices)
    ct = rng.normal(size=np.shape(out))
    (ct_x, *_) = gather.transpose(ct, Linear(aval_of(x)), *indices)
    np.testing.assert_allclose(np.sum(ct * out), np.sum(ct_x * x), 1e-12, 1e-12)


def test_take_along_axis_is_numpys():
    order = np.argsort(-X, 1)
    np.testing.assert_array_equal(take_along_axis(X, order, 1), np.take_along_axis(X, order, 1))


@pytest.mark.parametrize(("start", "row"), [(-5, 0), (1, 1), (9, 2)])
def test_starts_of_windows_are_clamped(start, row):
    np.testing.assert_array_equal(DynamicSlice((1, 4)).bind(X, start, 0), X[row : row + 1])
    out = DynamicUpdateSlice().bind(X, np.full((1, 4), -1.0), start, 0)
    assert (out[row] == -1).all()
    assert (out == -1).sum() == 4


def test_windows_must_fit():
    with pytest.raises(ShapeError, match=r"window of shape \(4, 4\) does not fit into f64\[3,4\]"):
        DynamicSlice((4, 4)).abstract_eval(aval_of(X), aval_of(0), aval_of(0))
    with pytest.raises(ShapeError, match="one integer scalar per axis"):
        DynamicSlice((1, 1)).abstract_eval(aval_of(X), aval_of(0))


def test_batched_starts_along_a_full_axis_change_nothing():
    out, dim = DynamicSlice((3, 4)).batch([X, np.array([0, 1]), 0], [None, 0, None])
    assert dim is None
    np.testing.assert_array_equal(out, X)
