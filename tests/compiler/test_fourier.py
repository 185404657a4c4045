"""Fourier transforms in code of our own: every radix, layout and step, beside NumPy's doubles."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.primitives import fft
from tests.compiler.plans import steps_of

RNG = np.random.default_rng(0)
OWN = "transform: "
ERRORS = {"F": 3e-7, "D": 2e-15}


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def check(function: Any, x: np.ndarray, dtype: str) -> None:
    compiled = fg.jit(lambda x: function(x))
    given = x.astype(dtype)
    before = given.copy()
    assert OWN in steps_of(str(compiled.lower(given).as_text()))
    found, expected = compiled(given), function(x)
    assert found.dtype.char in (dtype, dtype.lower(), dtype.upper())
    np.testing.assert_allclose(found, expected, 0, ERRORS[dtype.upper()] * np.abs(expected).max())
    np.testing.assert_array_equal(given, before)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("dtype", "FD")
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((17, 512), 1),  # rows, the last of which are transformed twice
        ((512, 17), 0),  # columns
        ((2, 240, 33), 1),  # columns in blocks
        ((60, 60, 5), 1),  # too few beside each other: in another order
        ((31, 300), 1),  # blocks of elements that overlap
        ((16384,), 0),  # columns, and then rows
        ((3, 8100), 1),
        ((1, 3 * 5 * 1024), 1),
        ((2, 6561), 1),
        ((17, 509), 1),  # as convolutions
        ((5, 3 * 17 * 31, 2), 1),
        ((10_007,), 0),
    ],
)
@pytest.mark.parametrize("is_inverse", [False, True])
def test_transforms(shape: tuple[int, ...], axis: int, dtype: str, is_inverse: bool) -> None:
    function = np.fft.ifft if is_inverse else np.fft.fft
    check(lambda x: function(x, axis=axis), numbers(*shape), dtype)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("shape", [(7, 2002), (3, 100), (2, 2197), (9000, 1), (40, 7), (1, 1)])
@pytest.mark.parametrize("dtype", "FD")
def test_few_and_short_transforms(shape: tuple[int, ...], dtype: str) -> None:
    for axis in (0, 1):
        check(lambda x, axis=axis: np.fft.fft(x, axis=axis), numbers(*shape), dtype)
        check(lambda x, axis=axis: np.fft.rfft(x, axis=axis), RNG.normal(size=shape), dtype.lower())


def test_no_transforms() -> None:
    found = fg.jit(lambda x: np.fft.fft(x))(np.ones((0, 512), complex))
    assert found.shape == (0, 512)


LENGTHS = (*range(1, 40), 49, 121, 143, 169, 200, 209, 1001)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("dtype", "lengths"),
    [
        ("F", LENGTHS[::4]),
        ("D", LENGTHS[2::4]),
        *(pytest.param(x, LENGTHS, marks=pytest.mark.nightly) for x in "FD"),
    ],
)
def test_every_length(dtype: str, lengths: tuple[int, ...]) -> None:
    """Products of all radices, and convolutions; every run tries half of them in one precision."""
    transform = fg.jit(lambda x: np.fft.fft(x))
    for n in lengths:
        x = numbers(n)
        found, expected = transform(x.astype(dtype)), np.fft.fft(x)
        bound = 3 * ERRORS[dtype] * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, 0, bound, err_msg=str(n))


VIEWS: dict[str, Any] = {
    "one": lambda x: x[0, 0],
    "stack": lambda x: x,
    "transposed": lambda x: np.asfortranarray(x[0]),
    "part": lambda x: x[:, ::2][::-1],
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("view", VIEWS)
def test_transforms_of_views(view: str) -> None:
    for dtype, function in itertools.product(
        "fdFD",
        (
            lambda x: fg.numpy.fft.fft(x, axis=0),
            lambda x: fg.numpy.fft.ifft(x),
            lambda x: fg.numpy.fft.fftn(x),
        ),
    ):
        x = VIEWS[view](numbers(2, 3, 3, 5).astype(dtype.upper()))
        check(function, x if dtype in "FD" else x.real, dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [4, 5, 9, 64, 75])
def test_spectra_along_other_axes(n: int) -> None:
    x = RNG.normal(size=(3, n, 2))
    check(lambda x: np.fft.rfft(x, axis=1), x, "d")
    spectrum = np.fft.rfft(x, axis=1) + 0.3j
    check(lambda z: np.fft.irfft(z, n, axis=1), spectrum, "D")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("shape", [(20, 900), (32768,), (3, 8192)])
def test_transforms_of_real_numbers(shape: tuple[int, ...], dtype: str) -> None:
    x = RNG.normal(size=shape)
    check(np.fft.rfft, x, dtype)
    spectrum = np.fft.rfft(x) + 0.3j  # imaginary parts that count for nothing at both ends
    check(lambda z: np.fft.irfft(z, shape[-1]), spectrum, dtype.upper())


def test_two_axes_and_their_derivative() -> None:
    x, mask = RNG.normal(size=(96, 120)), RNG.uniform(size=(96, 120))

    def smooth(x: Any) -> Any:
        return np.real(np.fft.ifft2(np.fft.fft2(x) * mask.astype(x.dtype)))

    check(smooth, x, "f")
    slope = fg.jit(fg.grad(lambda x: np.sum(smooth(x) ** 2)))(x)
    # The filter is its own transpose up to the symmetric part of the mask.
    again = np.real(np.fft.fft2(np.fft.ifft2(2 * smooth(x)) * mask))
    np.testing.assert_allclose(slope, again, 1e-12, 1e-12)


def test_in_loops_and_lanes() -> None:
    x = numbers(20, 512)

    def turned(x: Any) -> Any:
        return fg.lax.fori_loop(0, 3, lambda i, z: np.fft.fft(z) / 512**0.5, x)

    expected = x
    for _ in range(3):
        expected = np.fft.fft(expected) / 512**0.5
    np.testing.assert_allclose(fg.jit(turned)(x), expected, 1e-12, 1e-12)
    lanes = fg.jit(fg.vmap(np.fft.fft, 1, 1))(x)
    np.testing.assert_allclose(lanes, np.fft.fft(x, axis=0), 1e-12, 1e-12)


def test_results_do_not_depend_on_threads() -> None:
    x = numbers(64, 2048)
    one, three = (fg.jit(lambda x: np.fft.fft(x), threads=n)(x) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_impulses_and_waves() -> None:
    """An impulse gives one wave, and a wave one impulse, wherever they are."""
    n, k = 2 * 3 * 4 * 5 * 8, np.arange(960)
    transform = fg.jit(lambda x: np.fft.fft(x, axis=0))
    places = np.arange(0, n, 53)
    waves = np.exp(-2j * np.pi * np.outer(k, places) / n)
    np.testing.assert_allclose(transform(np.eye(n, dtype=complex)[:, places]), waves, atol=1e-13)
    impulses = np.eye(n)[:, places] * n
    np.testing.assert_allclose(transform(np.conj(waves)), impulses, atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 14, 17, 30, 32, 34, 2048, 2049, 4095])
def test_lengths(n: int) -> None:
    left = n
    for p in (2, 3, 5, 7, 11, 13):
        while left % p == 0:
            left //= p
    assert fft._is_smooth(n) == (left == 1)
    high, low = fft._two_parts(n)
    assert high * low == n
    assert high <= low
