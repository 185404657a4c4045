"""Integers and bits in kernels: as NumPy's, bit by bit, for every dtype and its extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from tests.compiler.plans import steps_of

INTEGERS = "bhilBHIL"
ALL = "bhilBHILfdFD"
RANDOM = np.random.default_rng(0)


def extremes(dtype: str) -> np.ndarray:
    """Numbers at which something may overflow, and others."""
    info = np.iinfo(dtype)
    drawn = RANDOM.integers(info.min, info.max, 24, dtype, endpoint=True)
    few = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 6, 12]
    return np.concatenate([np.array(few, dtype), drawn])


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    x = extremes(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


def check(f: Callable[..., Any], *args: Any, expected: Any = None) -> None:
    """Compiled results are those of NumPy, of vectors and of few numbers."""
    expected = np.asarray(f(*args) if expected is None else expected)
    compiled = fg.jit(f)
    found = compiled(*args)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()
    assert "numpy:" not in steps_of(compiled.lower(*args).as_text()).lower()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_one_integer(dtype: str) -> None:
    x = extremes(dtype)
    with np.errstate(all="ignore"):
        check(np.abs, x)
        check(np.sign, x)
        check(np.bitwise_count, x)
    check(fg.nn.relu, x, expected=np.maximum(x, 0))
    bits = 8 * x.itemsize
    leading = [bits - (int(v) % (1 << bits)).bit_length() for v in x]
    check(lax.clz, x, expected=np.array(leading, dtype))
    check(
        lax.population_count,
        x,
        expected=np.array([bin(int(v) % (1 << bits)).count("1") for v in x], dtype),
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_greatest_common_divisors(dtype: str) -> None:
    x, y = pairs(dtype)
    check(fnp.gcd, x, y, expected=np.gcd(x, y))
    check(fnp.gcd, x[:3], y[5:8], expected=np.gcd(x[:3], y[5:8]))
    check(lambda x: fnp.gcd(x, x.dtype.type(12)), x, expected=np.gcd(x, x.dtype.type(12)))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_wrap_around(dtype: str) -> None:
    x, y = pairs(dtype)
    y = np.where(y < 0, ~y, y)
    check(lambda x, y: x**y, x, y)
    check(lambda x, y: x**y, x[:2], y[4:6])
    for n in (0, 1, 2, 3, 7, 8, 9, 31, 64):
        check(lambda x, n=n: x**n, x)


@hypothesis.given(
    st.sampled_from(INTEGERS), st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=40)
)
def test_any_integers(dtype: str, bits: list[int]) -> None:
    x = np.array(bits, np.uint64).astype(dtype)
    y = x[::-1].copy()
    exponent = np.where(y < 0, ~y, y)
    np.testing.assert_array_equal(fg.jit(fnp.gcd)(x, y), np.gcd(x, y))
    np.testing.assert_array_equal(fg.jit(lambda x, n: x**n)(x, exponent), x**exponent)
    np.testing.assert_array_equal(fg.jit(np.bitwise_count)(x), np.bitwise_count(x))


def refused(f: Callable[..., Any], *args: Any) -> None:
    with pytest.raises(ValueError, match="negative integer powers are not allowed") as raised:
        fg.jit(f)(*args)
    assert "test_integers.py" in str(raised.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", "bhil")
def test_negative_powers_are_refused_everywhere(dtype: str) -> None:
    x, n = np.arange(5, dtype=dtype), np.array([1, 2, -1, 0, 3], dtype)
    refused(lambda x, n: x**n, x, n)
    refused(lambda x: x ** x.dtype.type(-1), x)
    refused(fg.vmap(lambda x, n: x**n), x, n)

    def powers(x: Any, n: Any) -> Any:
        return lax.scan(lambda c, k: (c + c**k, c), x, n)

    np.testing.assert_array_equal(fg.jit(powers)(x[1], abs(n))[1], powers(x[1], abs(n))[1])
    refused(powers, x[1], n)
    refused(lambda x: fg.vmap(powers, (0, None))(x, n), np.arange(400, dtype=dtype))
    refused(
        lambda x: lax.while_loop(lambda c: c[0] > -3, lambda c: (c[0] - 1, c[1] ** c[0]), (x, x)),
        x[2],
    )
    # What has no elements has no negative ones.
    assert fg.jit(lambda x, n: x**n)(x[:0], n[:0]).shape == (0,)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("to", ALL)
@pytest.mark.parametrize("dtype", ALL)
def test_bit_casts_of_all_widths(dtype: str, to: str) -> None:
    own, wanted = np.dtype(dtype), np.dtype(to)
    x = RANDOM.integers(0, 256, (2, 3, 48), np.uint8).view(own)
    if own.itemsize < wanted.itemsize:
        x = x.reshape(2, 3, -1, wanted.itemsize // own.itemsize)
    shape = x.shape
    if own.itemsize > wanted.itemsize:
        shape = (*shape, own.itemsize // wanted.itemsize)
    elif own.itemsize < wanted.itemsize:
        shape = shape[:-1]
    expected = x.view(wanted).reshape(shape)
    check(lambda x: lax.bitcast_convert_type(x, wanted), x, expected=expected)
    if own.itemsize <= wanted.itemsize:
        constant = fg.jit(lambda: lax.bitcast_convert_type(x[0, 0], wanted))()
        assert constant.tobytes() == expected[0, 0].tobytes()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("equation", "one", "other"),
    [
        ("ij,jk->ik", (7, 5), (5, 9)),
        ("ij,jk->ki", (40, 30), (30, 50)),
        ("ij,kj->ik", (40, 30), (50, 30)),
        ("bij,bjk->bik", (3, 7, 5), (3, 5, 9)),
        ("ij,j->i", (30, 40), (40,)),
        ("ij,ij->", (7, 30), (7, 30)),
        ("ij,jk->ik", (7, 0), (0, 9)),
        ("i,j->ij", (3,), (4,)),
    ],
)
def test_contractions_of_integers(
    equation: str, one: tuple[int, ...], other: tuple[int, ...], dtype: str
) -> None:
    info = np.iinfo(dtype)
    x, y = (RANDOM.integers(info.min, info.max, s, dtype, endpoint=True) for s in (one, other))
    check(lambda x, y: np.einsum(equation, x, y), x, y)
    check(lambda x, y: np.einsum(equation, x, y), x[..., ::-1], y[::-1])


def test_contractions_of_bools() -> None:
    x, y = RANDOM.random((30, 40)) < 0.1, RANDOM.random((40, 20)) < 0.1
    check(lambda x, y: x @ y, x, y)
    check(lambda x, y: x @ y, x[0], y)
    check(lambda x, y: x @ y, x[0], y[:, 0])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_convolutions_of_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    x, y = (RANDOM.integers(info.min, info.max, n, dtype, endpoint=True) for n in (30, 5))
    for mode in ("full", "same", "valid"):
        check(lambda x, y, mode=mode: np.convolve(x, y, mode), x, y)
