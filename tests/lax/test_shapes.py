"""Functions of lax that move, repeat, make and select elements."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import ArgumentError, DtypeError, OutOfBoundsError, ShapeError
from tests.lax.agreement import NUMBERS, assert_same, check, sample

DTYPES = ("bool", "int8", "uint64", "float32", "complex128")
X = (2, 3, 4)

# name -> (function of an array of shape (2, 3, 4), reference)
MOVES = {
    "broadcast": (
        lambda x: lax.broadcast(x, (5, 1)),
        lambda x: np.broadcast_to(x, (5, 1, *x.shape)),
    ),
    "broadcast_in_dim": (
        lambda x: lax.broadcast_in_dim(x, (2, 5, 3, 4), (0, 2, 3)),
        lambda x: np.broadcast_to(x[:, None], (2, 5, 3, 4)),
    ),
    "broadcast_in_dim of length 1": (
        lambda x: lax.broadcast_in_dim(x[:1], (6, 3, 4), (0, 1, 2)),
        lambda x: np.broadcast_to(x[:1], (6, 3, 4)),
    ),
    "broadcast_to_rank": (lambda x: lax.broadcast_to_rank(x, 5), lambda x: x[None, None]),
    "reshape": (lambda x: lax.reshape(x, (4, 6)), lambda x: x.reshape(4, 6)),
    "reshape in an order": (
        lambda x: lax.reshape(x, (4, 6), (2, 0, 1)),
        lambda x: x.transpose(2, 0, 1).reshape(4, 6),
    ),
    "collapse": (lambda x: lax.collapse(x, 0, 2), lambda x: x.reshape(6, 4)),
    "collapse all": (lambda x: lax.collapse(x, 1), lambda x: x.reshape(2, 12)),
    "squeeze": (lambda x: lax.squeeze(x[:, :1], (1,)), lambda x: x[:, 0]),
    "expand_dims": (
        lambda x: lax.expand_dims(x, (0, -1)),
        lambda x: np.expand_dims(x, (0, -1)),
    ),
    "transpose": (lambda x: lax.transpose(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "rev": (lambda x: lax.rev(x, (0, 2)), lambda x: np.flip(x, (0, 2))),
    "concatenate": (
        lambda x: lax.concatenate([x, x[:, :1]], 1),
        lambda x: np.concatenate([x, x[:, :1]], 1),
    ),
    "stack": (lambda x: lax.stack([x, x], 1), lambda x: np.stack([x, x], 1)),
    "unstack": (lambda x: lax.unstack(x, 1), lambda x: tuple(np.moveaxis(x, 1, 0))),
    "split": (lambda x: lax.split(x, (1, 3), 2), lambda x: np.split(x, [1], 2)),
    "tile": (lambda x: lax.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    "full_like": (
        lambda x: lax.full_like(x, 1, shape=(2,)),
        lambda x: np.full((2,), 1, x.dtype),
    ),
    "slice": (
        lambda x: lax.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 3)),
        lambda x: x[0:2, 1:3, 0:4:3],
    ),
    "slice_in_dim": (lambda x: lax.slice_in_dim(x, -3, -1, 1, 2), lambda x: x[:, :, -3:-1]),
    "slice_in_dim, strided": (
        lambda x: lax.slice_in_dim(x, None, None, 2, 1),
        lambda x: x[:, ::2],
    ),
    "index_in_dim": (lambda x: lax.index_in_dim(x, -1, 1), lambda x: x[:, -1:]),
    "index_in_dim without axis": (
        lambda x: lax.index_in_dim(x, 1, 2, keepdims=False),
        lambda x: x[:, :, 1],
    ),
    "dynamic_slice": (
        lambda x: lax.dynamic_slice(x, (0, 2, 1), (2, 2, 2)),
        lambda x: x[:, 1:, 1:3],  # clamped
    ),
    "dynamic_slice from the end": (
        lambda x: lax.dynamic_slice(x, (0, -2, -3), (1, 2, 2)),
        lambda x: x[:1, 1:, 1:3],
    ),
    "dynamic_slice_in_dim": (
        lambda x: lax.dynamic_slice_in_dim(x, np.int32(1), 2, 1),
        lambda x: x[:, 1:3],
    ),
    "dynamic_index_in_dim": (
        lambda x: lax.dynamic_index_in_dim(x, 7, 2, keepdims=False),
        lambda x: x[:, :, 3],
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MOVES)
def test_moves(name, dtype):
    function, reference = MOVES[name]
    check(function, reference, sample(dtype, X))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize(
    "config", [[(1, 2, 0), (0, 0, 1)], [(-1, 1, 2), (2, -1, 0)], [(0, 0, 0), (-1, -1, 1)]]
)
def test_pad(dtype, config):
    x, fill = sample(dtype, (3, 3)), np.dtype(dtype).type(5)
    gaps = [gap for _, _, gap in config]

    def reference(a, value):
        spread = np.full([n + (n - 1) * gap for n, gap in zip(a.shape, gaps, strict=True)], value)
        spread[tuple(slice(None, None, gap + 1) for gap in gaps)] = a
        outer = [(max(low, 0), max(high, 0)) for low, high, _ in config]
        wide = np.pad(spread, outer, constant_values=value)
        return wide[tuple(slice(max(-low, 0), min(high, 0) or None) for low, high, _ in config)]

    check(lambda a, value: lax.pad(a, value, config), reference, x, fill)
    check(lambda a: lax.pad(a, 5, config), lambda a: reference(a, fill), x)


def updated(x, part, *starts):
    out = x.copy()
    out[tuple(slice(s, s + n) for s, n in zip(starts, part.shape, strict=True))] = part
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_updates(dtype):
    x, part = sample(dtype, X), sample(dtype, (1, 2, 2), seed=1)
    check(
        lambda a, b: lax.dynamic_update_slice(a, b, (1, -2, 9)),
        lambda a, b: updated(a, b, 1, 1, 2),
        x,
        part,
    )
    rows = sample(dtype, (2, 2, 4), seed=2)
    check(
        lambda a, b: lax.dynamic_update_slice_in_dim(a, b, np.int8(1), 1),
        lambda a, b: updated(a, b, 0, 1, 0),
        x,
        rows,
    )
    for shape in ((2, 4), (2, 1, 4)):
        check(
            lambda a, b: lax.dynamic_update_index_in_dim(a, b, 2, 1),
            lambda a, b: updated(a, b.reshape(2, 1, 4), 0, 2, 0),
            x,
            sample(dtype, shape, seed=3),
        )


def test_traced_starts():
    x = sample("float64", (6, 2))
    windows = fg.vmap(lambda i: lax.dynamic_slice(x, (i, 0), (2, 2)))(np.arange(-2, 8))
    starts = [4, 5, 0, 1, 2, 3, 4, 5, 6, 7]
    expected = [x[min(s, 4) : min(s, 4) + 2] for s in starts]
    np.testing.assert_array_equal(windows, expected)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_creation(dtype):
    assert_same(lax.iota(dtype, 4), np.arange(4, dtype=dtype))
    rows = np.broadcast_to(np.arange(3, dtype=dtype)[:, None], (3, 2))
    assert_same(lax.broadcasted_iota(dtype, (3, 2), 0), rows)
    assert_same(lax.full((2, 1), 3, dtype), np.full((2, 1), 3, dtype))
    assert_same(lax.full((2,), np.dtype(dtype).type(3)), np.full((2,), 3, dtype))
    assert_same(lax.empty((2,), dtype), np.zeros((2,), dtype))
    assert_same(lax.full_like(np.ones((2, 2), dtype), 4), np.full((2, 2), 4, dtype))
    assert_same(lax.full_like(np.ones(2), 4, dtype=dtype), np.full(2, 4, dtype))


def test_broadcast_shapes():
    assert lax.broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    with pytest.raises(ShapeError, match=r"lax\.broadcast_shapes"):
        lax.broadcast_shapes((3,), (4,))


A = np.arange(6.0).reshape(2, 3)
SHAPE_ERRORS = {
    "broadcast": lambda: lax.broadcast(A, (-1,)),
    "broadcast_in_dim": lambda: lax.broadcast_in_dim(A, (3, 2), (1, 0)),
    "broadcast_to_rank": lambda: lax.broadcast_to_rank(A, 1),
    "reshape": lambda: lax.reshape(A, (-1,)),
    "squeeze": lambda: lax.squeeze(A, (0,)),
    "expand_dims": lambda: lax.expand_dims(A, (0, 0)),
    "transpose": lambda: lax.transpose(A, (0,)),
    "rev": lambda: lax.rev(A, (2,)),
    "pad": lambda: lax.pad(A, 0.0, [(0, 0, -1), (0, 0, 0)]),
    "split": lambda: lax.split(A, (1, 1), 1),
    "tile": lambda: lax.tile(A, (2,)),
    "slice": lambda: lax.slice(A, (0,), (1,)),
    "dynamic_slice": lambda: lax.dynamic_slice(A, (0,), (1, 1)),
    "full": lambda: lax.full((2,), A),
    "broadcast_to": lambda: lax.broadcast_in_dim(A, (4, 3), (0, 1)),
}


@pytest.mark.parametrize("name", SHAPE_ERRORS)
def test_shapes_must_fit(name):
    with pytest.raises(ShapeError, match=name):
        SHAPE_ERRORS[name]()


ERRORS = {
    "concatenate of nothing": (lambda: lax.concatenate([], 0), ArgumentError),
    "concatenate of ranks": (lambda: lax.concatenate([A, A[0]], 0), ShapeError),
    "concatenate of dtypes": (lambda: lax.concatenate([A, A.astype("f4")], 0), DtypeError),
    "pad of dtypes": (lambda: lax.pad(A, np.float32(0), [(0, 0, 0)] * 2), DtypeError),
    "pad with an array": (lambda: lax.pad(A, A, [(0, 0, 0)] * 2), ShapeError),
    "slice out of bounds": (lambda: lax.slice(A, (0, 0), (2, 4)), ShapeError),
    "index out of bounds": (lambda: lax.index_in_dim(A, 2), OutOfBoundsError),
    "update of dtypes": (lambda: lax.dynamic_update_slice(A, A.astype("f4"), (0, 0)), DtypeError),
    "update too large": (lambda: lax.dynamic_update_slice(A, np.ones((3, 1)), (0, 0)), ShapeError),
    "slice too large": (lambda: lax.dynamic_slice(A, (0, 0), (3, 1)), ShapeError),
    "floating start": (lambda: lax.dynamic_slice(A, (0.0, 0), (1, 1)), DtypeError),
    "iota of bools": (lambda: lax.iota(bool, 2), DtypeError),
    "list": (lambda: lax.reshape([1, 2], (2, 1)), ArgumentError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_arguments(name):
    call, error = ERRORS[name]
    with pytest.raises(error):
        call()
