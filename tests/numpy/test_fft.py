from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import DtypeError
from funcgrad.numpy import fft

NORMS = (None, "backward", "ortho", "forward")
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4, 5))
COMPLEX = REAL + 1j * RNG.normal(size=REAL.shape)


def check(ours, theirs):
    assert np.shape(ours) == np.shape(theirs)
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    single = np.asarray(theirs).dtype in (np.float32, np.complex64)
    tolerance = 2e-5 if single else 1e-12
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def operand(name, dtype):
    takes_real = name in ("rfft", "rfft2", "rfftn", "ihfft")
    x = REAL if takes_real or np.dtype(dtype).kind in "if" else COMPLEX
    return (x * 5).astype(dtype) if not (takes_real and np.dtype(dtype).kind == "c") else x


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis(name, norm, dtype):
    x = operand(name, dtype)
    for n in (None, 3, 4, 8, 1):
        for axis in (-1, 0):
            args = (x, n, axis, norm)
            check(getattr(fft, name)(*args), getattr(np.fft, name)(*args))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_axes(name, norm):
    x = operand(name, np.complex128)
    for s, axes in (
        (None, None),
        (None, (0, 1)),
        ((2, 7), (0, 2)),
        ((3, -1), (2, 1)),
        (None, (1,)),
    ):
        check(getattr(fft, name)(x, s, axes, norm), getattr(np.fft, name)(x, s, axes, norm))


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_two_axes(name):
    x = operand(name, np.complex128)
    check(getattr(fft, name)(x), getattr(np.fft, name)(x))
    check(getattr(fft, name)(x, (6, 6)), getattr(np.fft, name)(x, (6, 6)))


def test_repeated_axes():
    check(fft.fftn(COMPLEX, axes=(1, 1)), np.fft.fftn(COMPLEX, axes=(1, 1)))


@pytest.mark.parametrize("axes", [None, 0, (0, -1)])
def test_shifts(axes):
    check(fft.fftshift(REAL, axes), np.fft.fftshift(REAL, axes))
    check(fft.ifftshift(REAL, axes), np.fft.ifftshift(REAL, axes))
    check(fft.fftfreq(5, 0.1), np.fft.fftfreq(5, 0.1))
    check(fft.rfftfreq(5), np.fft.rfftfreq(5))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_gradients(name, norm):
    for n in (None, 3, 7):
        fg.testing.check_grads(
            lambda x, n=n: getattr(fft, name)(x, n, norm=norm), (REAL[0],), order=1
        )


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_gradients_of_several_axes(name):
    fg.testing.check_grads(lambda x: getattr(fft, name)(x, (3, 4), (0, 1)), (REAL,), order=1)


def test_complex_gradient_compilation_and_batching():
    fg.testing.check_grads(lambda x: fft.ifft(fft.fft(x) ** 2), (COMPLEX[0],), order=2)
    check(fg.jit(lambda x: np.fft.irfft(np.fft.rfft(x), 5))(REAL), REAL)
    check(fg.vmap(fft.fft2)(REAL), np.fft.fft2(REAL))
    check(
        fg.vmap(fft.rfftn, in_axes=1)(REAL), np.stack([np.fft.rfftn(REAL[:, i]) for i in range(4)])
    )


def test_refusals():
    with pytest.raises(DtypeError, match="rfft"):
        fft.rfft(COMPLEX)
    with pytest.raises(ValueError, match="norm"):
        fft.fft(REAL, norm="nonsense")
    with pytest.raises(ValueError, match="data points"):
        fft.fft(REAL, 0)
    with pytest.raises(ValueError, match="lengths"):
        fft.fftn(REAL, (2, 2), (0,))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (-1, 1), (0, 1, 0), (0, 1, 1)])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize(
    "name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"]
)
def test_axes_may_repeat(name, axes, norm):
    """NumPy transforms such an axis again and again."""
    x = np.random.default_rng(0).normal(size=(4, 6))
    expected = getattr(np.fft, name)(x, axes=axes, norm=norm)
    ours = getattr(fg.numpy.fft, name)
    for f in (ours, fg.jit(lambda x: ours(x, axes=axes, norm=norm))):
        found = f(x, axes=axes, norm=norm) if f is ours else f(x)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, 1e-10, 1e-12)
