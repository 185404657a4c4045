"""Reductions of segments against loops over the segments."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import ops
from funcgrad.errors import ConcretizationTypeError, DtypeError, ShapeError
from funcgrad.testing import check_grads

IDS = np.array([2, 0, 2, -1, 4, 5, 0])
DATA = np.random.default_rng(0).normal(size=(7, 3))
REDUCTIONS = {
    "segment_sum": (np.sum, 0.0),
    "segment_prod": (np.prod, 1.0),
    "segment_max": (np.max, -np.inf),
    "segment_min": (np.min, np.inf),
}


def expected(name, data, count=5):
    reduction, empty = REDUCTIONS[name]
    rows = [data[i == IDS] for i in range(count)]
    return np.stack([reduction(r, 0) if len(r) else np.full(data.shape[1:], empty) for r in rows])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("transform", [lambda f: f, fg.jit])
def test_agrees_with_a_loop(name, transform):
    function = transform(lambda x, ids: getattr(ops, name)(x, ids, 5))
    np.testing.assert_allclose(function(DATA, IDS), expected(name, DATA))
    np.testing.assert_allclose(function(DATA[:, 0], IDS), expected(name, DATA[:, 0]))
    assert function(DATA.astype(np.float32), IDS).dtype == np.float32


@pytest.mark.parametrize("name", REDUCTIONS)
def test_derivatives_and_batches(name):
    ids = np.array([2, 0, 2, 1, 1, 3, 0])
    check_grads(lambda x: getattr(ops, name)(x, ids), (DATA,), order=2)
    found = fg.vmap(lambda x: getattr(ops, name)(x, IDS, 5), in_axes=1, out_axes=1)(DATA)
    np.testing.assert_allclose(found, expected(name, DATA))


@pytest.mark.parametrize("name", ["segment_max", "segment_min"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_empty_segments_of_integers(name, dtype):
    found = getattr(ops, name)(np.array([3, 5], dtype), np.array([2, 2]))
    limits = np.iinfo(dtype)
    assert found.dtype == dtype
    empty, full = (limits.min, 5) if name == "segment_max" else (limits.max, 3)
    assert found.tolist() == [empty, empty, full]


def test_messages():
    with pytest.raises(ConcretizationTypeError, match="num_segments="):
        fg.jit(ops.segment_sum)(DATA, IDS)
    with pytest.raises(ShapeError, match="one segment number for every row"):
        ops.segment_sum(DATA, IDS[:3], 5)
    with pytest.raises(DtypeError, match="integers"):
        ops.segment_sum(DATA, IDS.astype(float), 5)
