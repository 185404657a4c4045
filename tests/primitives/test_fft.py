"""Fourier transforms against their matrices."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Linear
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.primitives.fft import Fft, Irfft, Rfft


def matrix(n):
    return np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_transforms_are_their_matrices(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n) + 1j * rng.normal(size=n)
    np.testing.assert_allclose(Fft((0,)).bind(x), matrix(n) @ x, 1e-12, 1e-12)
    np.testing.assert_allclose(Fft((0,), True).bind(x), np.conj(matrix(n)) @ x / n, 1e-12, 1e-12)
    np.testing.assert_allclose(
        Rfft(0).bind(x.real), (matrix(n) @ x.real)[: n // 2 + 1], 1e-12, 1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_real_transforms_invert_each_other(n):
    x = np.random.default_rng(n).normal(size=(2, n))
    np.testing.assert_allclose(Irfft(1, n).bind(Rfft(1).bind(x)), x, 1e-12, 1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_transposes_are_transposed_matrices(n):
    """Over the reals: parts of complex numbers are separate coordinates."""
    k = n // 2 + 1
    columns = np.stack([Irfft(0, n).bind(z) for z in [*np.eye(k), *(1j * np.eye(k))]], -1)
    rows = [Irfft(0, n).transpose(ct, Linear(aval_of(np.ones(k, complex))))[0] for ct in np.eye(n)]
    # <ct, z> = Re(ct z) = Re ct Re z - Im ct Im z
    found = np.array([np.concatenate([r.real, -r.imag]) for r in rows])
    np.testing.assert_allclose(found, columns, 1e-12, 1e-12)


def test_single_precision_stays():
    assert Fft((0,)).bind(np.ones(3, np.complex64)).dtype == np.complex64
    assert Rfft(0).bind(np.ones(3, np.float32)).dtype == np.complex64
    assert Irfft(0, 3).bind(np.ones(2, np.complex64)).dtype == np.float32


def test_messages():
    with pytest.raises(DtypeError, match=r"fft needs a complex array, got f64\[3\]"):
        Fft((0,)).abstract_eval(aval_of(np.ones(3)))
    with pytest.raises(ShapeError, match=r"rfft: f64\[0\] has no elements along an axis 0"):
        Rfft(0).abstract_eval(aval_of(np.ones(0)))
    with pytest.raises(ShapeError, match="a real array of length 6 has 4 frequencies"):
        Irfft(0, 6).abstract_eval(aval_of(np.ones(3, complex)))
