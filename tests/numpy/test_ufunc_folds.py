"""Folds of ufuncs under every combination of their keywords, against NumPy.

A sample of the product runs always, all of it with the slow tests. Where NumPy raises, so must we.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.testing import check_grads

UFUNCS = [
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "maximum",
    "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "hypot", "copysign", "heaviside",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "logical_and",
    "logical_or", "logical_xor", "gcd", "less", "equal",
]  # fmt: skip
ARRAYS = {
    "f8": np.array([[0.5, -1.5], [2.0, 0.25], [-3.0, 1.0]]),
    "f4": np.array([[0.5, -1.5], [2.0, 0.25], [-3.0, 1.0]], np.float32),
    "i8": np.array([[4, -6], [3, 2], [-8, 12]]),
    "?": np.array([[True, False], [True, True], [False, False]]),
    "one": np.array([[-3.0, 2.0]]),
    "none": np.ones((0, 2)),
    "nothing": np.ones((0, 0)),
    "scalar": np.float64(2.0),
}
MASKS = [True, np.array([[True, False], [False, False], [True, True]]), np.array([True, False])]


def calls(x: Any) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Methods with their arguments."""
    axes, starts = (0, -1, None, (0, 1), (0,), ()), ({}, {"initial": 3}, {"initial": None})
    others = ({}, {"keepdims": True}, {"dtype": np.float64})
    for axis, start, other, mask in itertools.product(axes, starts, others, MASKS):
        options = {"axis": axis, **start, **other}
        yield "reduce", (x,), options if mask is True else {**options, "where": mask}
    for axis in (0, -1, 2):
        yield "accumulate", (x,), {"axis": axis}
        for indices in ([0, 2, 1], [1], [], [-1]):
            yield "reduceat", (x, indices), {"axis": axis}
    for y in (x, 2, np.arange(2)):
        yield "outer", (x, y), {}


def outcome(function: Any, *args: Any, **options: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            return np.asarray(function(*args, **options))
        except (TypeError, ValueError, IndexError):
            return "refused"


def differs(name: str, kind: str, method: str, options: dict[str, Any]) -> bool:
    """Where we differ on purpose, or for a reason that is not that of folds."""
    if name in ("gcd", "left_shift", "right_shift") and kind == "?":
        return True  # NumPy computes with int8
    return "dtype" in options and name.startswith(("logical", "less", "equal", "bitwise", "gcd"))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rate", [100, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", UFUNCS)
def test_folds(name: str, rate: int) -> None:
    theirs, ours = getattr(np, name), getattr(fnp, name)
    for kind, x in ARRAYS.items():
        for method, args, options in calls(x):
            label = f"{name}.{method} of {kind} with {args[1:]} {options}"
            if zlib.crc32(label.encode()) % rate or differs(name, kind, method, options):
                continue
            expected = outcome(getattr(theirs, method), *args, **options)
            found = outcome(getattr(ours, method), *args, **options)
            if isinstance(found, str) or isinstance(expected, str):
                assert isinstance(found, str) == isinstance(expected, str), label
                continue
            assert found.shape == expected.shape, label
            is_half = expected.dtype == np.float16  # of bools; we have no half precision
            assert is_half or found.dtype == expected.dtype, label
            bound = 1e-2 if is_half else 1e-6 if found.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(found, expected, bound, bound, err_msg=label)


X = np.array([[1.5, 2.0, 0.5], [3.0, 1.0, 2.5]])
MASK = np.array([[True, False, True], [False, True, True]])
FOLDED = [
    ("subtract", 10.0, [10 - 1.5 - 0.5, 10 - 1.0 - 2.5]),
    ("divide", 30.0, [30 / 1.5 / 0.5, 30 / 1.0 / 2.5]),
]


@pytest.mark.parametrize(("name", "initial", "expected"), FOLDED)
def test_a_start_is_the_first_operand(name: str, initial: Any, expected: Any) -> None:
    def f(x: Any, m: Any) -> Any:
        return getattr(np, name).reduce(x, axis=1, where=m, initial=initial)

    np.testing.assert_allclose(f(X, MASK), expected, 1e-14)
    np.testing.assert_allclose(fg.jit(f)(X, MASK), expected, 1e-14)
    np.testing.assert_allclose(fg.vmap(f)(X[None], MASK[None])[0], expected, 1e-14)
    check_grads(lambda x: f(x, MASK), (X,), order=2)


def test_a_function_with_an_identity_starts_once() -> None:
    def fold(x: Any, m: Any, **start: Any) -> Any:
        add = fnp.frompyfunc(lambda a, b: a + b, nin=2, nout=1, identity=0)
        return add.reduce(x, axis=1, where=m, **start)

    for start, extra in (({}, 0.0), ({"initial": 1.0}, 1.0)):
        expected = np.where(MASK, X, 0).sum(1) + extra
        for wrap in (lambda f: f, fg.jit):
            f = wrap(lambda x, m, s=start: fold(x, m, **s))
            np.testing.assert_allclose(f(X, MASK), expected, 1e-15)
        found = fg.vmap(lambda x, m, s=start: fold(x[None], m[None], **s)[0])(X, MASK)
        np.testing.assert_allclose(found, expected, 1e-15)


def test_elements_that_are_masked_have_no_slope() -> None:
    def f(x: Any) -> Any:
        return np.divide.reduce(x, axis=1, where=MASK, initial=2.0).sum()

    slope = fg.grad(f)(np.where(MASK, X, 0.0))
    assert np.isfinite(slope).all()
    assert (slope[~MASK] == 0).all()


def test_nothing_to_start_with() -> None:
    text = "needs initial=, as it has no identity"
    with pytest.raises(ValueError, match=text):
        fg.jit(lambda x: np.add.reduce(x, where=MASK, initial=None))(X)
    with pytest.raises(ValueError, match="zero-size array to a reduction that has no identity"):
        fg.jit(lambda x: np.add.reduce(x, initial=None))(X[:0])
    with pytest.raises(TypeError, match=r"would compare f64\[2,3\] with bool"):
        fg.jit(lambda x: np.less.reduce(x))(X)
