"""A function and its NumPy reference, compared eagerly and under transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg

Function = Callable[..., Any]

RTOL = {"float32": 2e-6, "complex64": 4e-6, "float64": 1e-13, "complex128": 2e-13}
FLOATS = ("float32", "float64")
INEXACT = (*FLOATS, "complex64", "complex128")
SIGNED = ("int8", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint64")
REAL = (*INTEGERS, *FLOATS)
NUMBERS = (*INTEGERS, *INEXACT)


def sample(dtype: str, shape: tuple[int, ...] = (2, 3), seed: int = 0, low=-2.0, high=3.0) -> Any:
    """Numbers of ``low .. high``; integers of a larger range, unsigned ones not negative."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        return rng.integers(-9 if kind == "i" else 0, 10, shape).astype(dtype)
    values = rng.uniform(low, high, shape)
    if kind == "c":
        values = values + 1j * rng.uniform(low, high, shape)
    return values.astype(dtype)


def assert_same(actual: Any, expected: Any, rtol: float | None = None) -> None:
    """Equal structure, shape, dtype, and values up to rounding."""
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e, rtol)
        return
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    tolerance = RTOL.get(str(expected.dtype), 0.0) if rtol is None else rtol
    np.testing.assert_allclose(actual, expected, tolerance, tolerance)


def check(function: Function, reference: Function, *args: Any, rtol: float | None = None) -> None:
    """``function`` gives what ``reference`` gives: eagerly, abstractly, under jvp and vmap."""
    expected = reference(*args)
    assert_same(function(*args), expected, rtol)
    _check_types(fg.eval_shape(function, *args), expected)
    _check_jvp(function, args, expected, rtol)
    if all(np.ndim(a) for a in args):
        stacked = fg.vmap(function)(*[np.stack([a, a]) for a in args])
        for lane in (0, 1):
            assert_same(fg.tree.map(lambda x, i=lane: np.asarray(x)[i], stacked), expected, rtol)


def _check_types(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        for a, e in zip(actual, expected, strict=True):
            _check_types(a, e)
    else:
        assert (actual.shape, actual.dtype) == (np.shape(expected), np.asarray(expected).dtype)


def _check_jvp(function: Function, args: Any, expected: Any, rtol: float | None) -> None:
    """The primal result under differentiation in all inexact arguments."""
    moving = [i for i, a in enumerate(args) if np.asarray(a).dtype.kind in "fc"]
    if not moving:
        return

    def of_moving(*values: Any) -> Any:
        full = list(args)
        for i, value in zip(moving, values, strict=True):
            full[i] = value
        return function(*full)

    point = tuple(args[i] for i in moving)
    primal, tangent = fg.jvp(of_moving, point, tuple(np.ones_like(x) for x in point))
    assert_same(primal, expected, rtol)
    for value, slope in zip(fg.tree.leaves(primal), fg.tree.leaves(tangent), strict=True):
        assert np.shape(slope) == np.shape(value)
