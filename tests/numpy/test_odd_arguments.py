"""Numbers as arrays, flags, nothing at all: as NumPy, or refused as there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import funcgrad as fg

FLAGS = np.array([True, False, True])
EMPTY = np.zeros(0)
LINE = np.array([1, 2, 3])

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "argsort of a number": (np.argsort, (np.array(5.0),)),
    "argpartition of a number": (lambda x: np.argpartition(x, 0), (np.array(5.0),)),
    "bincount of flags": (lambda x: np.bincount(x, minlength=2), (FLAGS,)),
    "poly of a real matrix": (np.poly, (np.array([[1.0, -2.0], [3.0, 0.0]]),)),
    "poly of integers": (np.poly, (np.array([[1, -2], [3, 0]]),)),
    "polyval of no coefficients": (np.polyval, (EMPTY, LINE)),
    "polyval of none, nan": (np.polyval, (EMPTY, np.array([np.nan, 1.0]))),
    "polymul by nothing": (np.polymul, (LINE, EMPTY)),
    "polymul of nothing": (np.polymul, (EMPTY, EMPTY)),
}


@pytest.mark.parametrize("name", CASES)
def test_of_odd_arguments(name: str) -> None:
    f, args = CASES[name]
    expected = np.asarray(f(*args))
    g = (
        fg.jit(f, static_argnums=())
        if "bincount" not in name
        else fg.jit(lambda x: fg.numpy.bincount(x, length=2))
    )
    found = np.asarray(g(*args))
    np.testing.assert_allclose(found, expected, 1e-13)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sort of a number": (np.sort, (np.array(5.0),)),
    "argsort along an axis that is not there": (lambda x: np.argsort(x, 1), (np.array(5.0),)),
    "ediff1d of flags": (np.ediff1d, (FLAGS,)),
    "isposinf of complex numbers": (np.isposinf, (LINE + 1j,)),
    "isneginf of complex numbers": (np.isneginf, (LINE + 1j,)),
    "interp at complex places": (lambda x: np.interp(x, [0.0, 1.0], [2.0, 5.0]), (LINE + 1j,)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses(name: str) -> None:
    f, args = REFUSED[name]
    with pytest.raises((TypeError, ValueError)):
        f(*args)
    with pytest.raises((TypeError, ValueError)):
        fg.jit(f)(*args)


def test_shapes_that_objects_say():
    matrix = scipy.sparse.csr_matrix((2, 3))
    assert fg.numpy.shape(matrix) == np.shape(matrix) == (2, 3)
    assert fg.numpy.ndim(matrix) == 2
