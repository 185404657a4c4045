"""Traced distances, diagonals and numbers of turns, where shapes do not depend on them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import ArgumentError, ShapeError, TracerIntegerConversionError

A = np.arange(6.0).reshape(2, 3) + 1
B = np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 1
SQUARES = np.arange(18.0).reshape(3, 2, 3)

# Functions of a module, NumPy or funcgrad.numpy, and of an integer.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "eye": lambda m, k: m.eye(3, 4, k),
    "eye of ints": lambda m, k: m.eye(3, k=k, dtype=np.int32),
    "tri": lambda m, k: m.tri(3, 4, k),
    "tri of a length": lambda m, k: m.tri(np.int64(3), k=k, dtype=np.float32),
    "tril": lambda m, k: m.tril(A, k),
    "triu": lambda m, k: m.triu(A, k=k),
    "triu of a stack": lambda m, k: m.triu(B, k),
    "trace": lambda m, k: m.trace(A, k),
    "trace of a stack": lambda m, k: m.trace(B, k, 2, 0),
    "linalg.trace": lambda m, k: m.linalg.trace(B, offset=k),
    "roll": lambda m, k: m.roll(A, k),
    "roll of an axis": lambda m, k: m.roll(B, k, -2),
    "roll of axes": lambda m, k: m.roll(A, k, (0, 1)),
    "roll of one axis twice": lambda m, k: m.roll(A, k, (1, 1)),
    "roll by several": lambda m, k: m.roll(A, (k, 2), axis=(1, 0)),
    "roll of one axis by several": lambda m, k: m.roll(A, (k, 1), axis=1),
    "roll of nothing": lambda m, k: m.roll(np.ones((0, 3)), k, 0),
    "roll of bools": lambda m, k: m.roll(A > 2, k),
    "rot90": lambda m, k: m.rot90(np.arange(9).reshape(3, 3), k),
    "rot90 of axes": lambda m, k: m.rot90(SQUARES, k, (0, 2)),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("k", [-7, -1, 0, 2, 5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_numpy(name: str, k: int) -> None:
    function = FUNCTIONS[name]
    expected = np.asarray(function(np, k))
    traced = fg.jit(lambda k: function(fnp, k))
    for kind in (int, np.int64, np.int8, np.uint16)[: 4 if k >= 0 else 3]:
        got = traced(kind(k))
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    lanes = fg.vmap(lambda k: function(fnp, k))(np.array([k, 1]))
    np.testing.assert_array_equal(lanes[0], expected)
    np.testing.assert_array_equal(lanes[1], function(np, 1))


@pytest.mark.parametrize("name", ["tril", "triu", "trace", "roll", "rot90"])
def test_derivatives(name: str) -> None:
    x = np.arange(9.0).reshape(3, 3)
    weights = np.cos(np.arange(9.0)).reshape(3, 3)
    function = getattr(np, name)

    def weighted(x: Any, k: Any) -> Any:
        return (function(x, k) * weights).sum()

    # Linear in x: the slopes are the values at unit vectors.
    expected = [weighted(e.reshape(3, 3), 1) for e in np.eye(9)]
    slope = fg.jit(fg.grad(weighted))(x, 1)
    np.testing.assert_allclose(slope.ravel(), expected)


def test_an_array_of_distances() -> None:
    got = fg.jit(lambda k: fnp.roll(A, k, (0, 1)))(np.array([1, -1]))
    np.testing.assert_array_equal(got, np.roll(A, (1, -1), (0, 1)))
    got = fg.jit(lambda k: fnp.roll(A, k, 1))(np.array([1, 4]))
    np.testing.assert_array_equal(got, np.roll(A, (1, 4), 1))


# Functions whose results have shapes, or are as many, as the integer says.
SHAPED: dict[str, Callable[[Any, Any], Any]] = {
    "eye": lambda m, k: m.eye(k),
    "identity": lambda m, k: m.identity(k),
    "tri": lambda m, k: m.tri(k),
    "diag": lambda m, k: m.diag(A[0], k),
    "diag of a matrix": lambda m, k: m.diag(A, k),
    "diagonal": lambda m, k: m.diagonal(A, k),
    "linalg.diagonal": lambda m, k: m.linalg.diagonal(A, offset=k),
    "diagflat": lambda m, k: m.diagflat(A, k),
    "vander": lambda m, k: m.vander(A[0], k),
    "zeros": lambda m, k: m.zeros((2, k)),
    "full": lambda m, k: m.full(k, 1.0),
    "arange": lambda m, k: m.arange(k),
    "linspace": lambda m, k: m.linspace(0, 1, k),
    "indices": lambda m, k: m.indices((k, 2)),
    "triu_indices": lambda m, k: m.triu_indices(k),
    "tril_indices_from": lambda m, k: m.tril_indices_from(A, k),
    "diag_indices": lambda m, k: m.diag_indices(k),
    "mask_indices": lambda m, k: m.mask_indices(k, np.triu),
    "hamming": lambda m, k: m.hamming(k),
    "pad": lambda m, k: m.pad(A, k),
    "tile": lambda m, k: m.tile(A, k),
    "resize": lambda m, k: m.resize(A, (k, 3)),
    "reshape": lambda m, k: m.reshape(A, (k, 6)),
    "broadcast_to": lambda m, k: m.broadcast_to(A[0], (k, 3)),
    "diff": lambda m, k: m.diff(A, k),
    "bincount": lambda m, k: m.bincount(np.array([1, 2]), minlength=k),
    "split": lambda m, k: m.split(A, k),
    "array_split": lambda m, k: m.array_split(A, k),
    "tensordot": lambda m, k: m.tensordot(A, A.T, k),
    "fft.fft": lambda m, k: m.fft.fft(A, k),
    "fft.rfftfreq": lambda m, k: m.fft.rfftfreq(k),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SHAPED)
def test_shapes_do_not_depend_on_traced_values(name: str) -> None:
    text = rf"(?s)m\.{name.split(' ')[0]}: the shape depends on a traced .*Shapes do not depend on"
    for transform in (fg.jit, fg.vmap):
        with pytest.raises(TracerIntegerConversionError, match=text):
            transform(lambda k: SHAPED[name](fnp, k))(
                np.array([1])[() if transform is fg.vmap else 0]
            )


def test_shapes_do_not_depend_on_them_where_there_is_no_source() -> None:
    for call in ("eye(k)", "diag(A, k)", "diagonal(A, k)", "reshape(A, k)", "fft.fft(A, k)"):
        function = eval(f"lambda k: fnp.{call}", {"fnp": fnp, "A": A})
        name = re.split(r"[.(]", call)[-2]
        with pytest.raises(TracerIntegerConversionError, match=f"^{name}: the shape depends on"):
            fg.jit(function)(1)


def test_parts_are_at_least_one() -> None:
    for k in (0, -1):
        with pytest.raises(ValueError, match=f"must be positive, got {k}"):
            fg.jit(lambda x, k=k: np.array_split(x, k))(A)
        with pytest.raises(ValueError, match=f"has no {k} equal parts"):
            fg.jit(lambda x, k=k: np.split(x, k))(A)
    got = fg.jit(lambda x: np.array_split(x, 2.0, 1))(A)
    for part, expected in zip(got, np.array_split(A, 2, 1), strict=True):
        np.testing.assert_array_equal(part, expected)


def test_what_is_no_integer() -> None:
    for function in (lambda k: fnp.eye(3, k=k), lambda k: fnp.roll(A, k), lambda k: fnp.tril(A, k)):
        with pytest.raises(ArgumentError, match=r"(?s)integer.*\.astype\(int\)"):
            fg.jit(function)(1.0)
    with pytest.raises(ShapeError, match=r"f64\[2,3\] would depend on a value"):
        fg.jit(lambda k: fnp.rot90(A, k))(1)
