"""The scalar types of the namespace: NumPy's wherever a dtype is meant, conversions when called."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

NAMES = [
    "bool", "bool_", "int8", "int16", "int32", "int64", "int_", "intp", "uint8", "uint16",
    "uint32", "uint64", "uint", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
X = np.array([0.0, 1.0, 2.75])


@pytest.fixture(params=NAMES)
def types(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """The type here and the one of NumPy."""
    return getattr(fnp, request.param), getattr(np, request.param)


def test_converts_traced_values(types: tuple[Any, Any]) -> None:
    ours, original = types
    expected = X.astype(original)
    for got in (fg.jit(ours)(X), fg.vmap(ours)(X), fg.jit(lambda x: ours(list(x)))(X)):
        assert got.dtype == original
        np.testing.assert_array_equal(got, expected)
    scalar = fg.jit(ours)(2.75)
    assert scalar.shape == ()
    assert scalar == original(2.75)


def test_converts_concrete_values_as_numpy(types: tuple[Any, Any]) -> None:
    ours, original = types
    assert type(ours(1)) is type(original(1))
    assert ours() == original()
    np.testing.assert_array_equal(ours([1, 0]), original([1, 0]))
    assert ours([1, 0]).dtype == original


def test_is_a_dtype(types: tuple[Any, Any]) -> None:
    ours, original = types
    dtype = np.dtype(original)
    assert np.dtype(ours) is dtype
    assert ours.dtype is dtype
    assert dtype == ours
    for made in (
        np.zeros(2, ours),
        np.zeros(2, dtype=ours),
        X.astype(ours),
        fnp.zeros(2, ours),
        fnp.asarray(X, ours),
        np.sum(X, dtype=ours),
        fg.jit(lambda x: fnp.sum(x, dtype=ours))(X),
        fg.jit(lambda x: x.astype(ours))(X),
        fg.lax.convert_element_type(X, ours),
        fg.ShapeDtypeStruct((2,), ours),
        fg.jit(lambda x, dtype: x.astype(dtype), static_argnums=1)(X, ours),
    ):
        assert made.dtype == dtype
    assert np.result_type(ours, original) == dtype
    assert np.can_cast(ours, np.complex128)


def test_is_the_same_as_numpy_s_type(types: tuple[Any, Any]) -> None:
    ours, original = types
    assert ours == original
    assert original == ours
    assert {original: 1}[ours] == {ours: 1}[original] == 1
    assert isinstance(original(1), ours)
    assert not isinstance("text", ours)
    assert issubclass(original, ours)
    assert issubclass(ours, ours)
    assert np.issubdtype(ours, original)
    assert np.issubdtype(original, ours)
    assert fnp.issubdtype(np.dtype(original), ours)


def test_is_copied_and_pickled_by_name(types: tuple[Any, Any]) -> None:
    ours, _ = types
    assert copy.deepcopy(ours) is ours
    assert pickle.loads(pickle.dumps(ours)) is ours


def test_different_types_differ() -> None:
    assert fnp.float32 != fnp.float64
    assert fnp.float32 != np.float64
    assert not isinstance(np.float64(1), fnp.float32)
    assert not isinstance(1.0, fnp.float64)
    assert repr(fnp.float32) == "<class 'funcgrad.numpy.float32'>"
    assert issubclass(fnp.float32, np.floating)
    assert fnp.finfo(fnp.float32).eps == np.finfo(np.float32).eps
    assert fnp.iinfo(fnp.int8).max == 127


def test_derivatives_pass_through_floating_conversions() -> None:
    slope = fg.grad(lambda x: fnp.float64(fnp.float32(x) ** 2))(3.0)
    assert slope == 6.0
    assert fg.grad(lambda x: x * fnp.int32(x))(3.5) == 3.0


def test_wrong_calls_are_numpy_s_errors() -> None:
    with pytest.raises(TypeError, match="at most 1 argument"):
        fnp.float32(1, 2)
    with pytest.raises(OverflowError, match="out of bounds for uint8"):
        fnp.uint8(300)


@pytest.mark.parametrize("name", ["float32", "int8", "bool_", "complex64"])
def test_types_equal_dtypes_from_both_sides(name: str) -> None:
    own, numpys = getattr(fnp, name), getattr(np, name)
    others = [np.dtype(numpys), numpys, own, np.dtype(np.float16), np.float16, name, None, 3]
    for other in others:
        expected = numpys == (numpys if other is own else other)
        assert (own == other) is expected
        assert (other == own) is expected
        assert (own != other) is not expected
    assert np.dtype(numpys) in (fnp.uint8, own)
    assert np.dtype(numpys) in [own]
