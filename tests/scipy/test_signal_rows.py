"""`funcgrad.scipy.signal`, function by function: values, derivatives, `vmap` and `jit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import funcgrad as fg
from funcgrad import errors
from funcgrad.scipy import signal
from tests.scipy.rows import (
    Row,
    check_compiled,
    check_derivatives,
    check_mapped,
    check_value,
    each,
    row,
)

RNG = np.random.default_rng(0)
X, Y, Z = RNG.normal(size=24), RNG.normal(size=19), RNG.normal(size=24) * 1j
Z = Z + X[::-1]
LINES = RNG.normal(size=(2, 24))
IMAGE, SMALL = RNG.normal(size=(5, 6)), RNG.normal(size=(3, 2))
B, A = scipy.signal.butter(2, 0.3)
SOS = scipy.signal.butter(3, 0.3, output="sos")
STATE = RNG.normal(size=2)
LEFT, RIGHT = RNG.normal(size=(2, 2)) * 0.3, RNG.normal(size=(2, 1))
SYSTEM = (LEFT, RIGHT, RIGHT.T, np.zeros((1, 1)), 0.5)
TIMES = np.sort(RNG.uniform(0, 8, 20))
SPECTRUM = scipy.signal.stft(X, nperseg=8)[2]

ROWS = [
    row("fftconvolve", X, Y, argnums=(0, 1)),
    row("fftconvolve", Y, X, mode="same", argnums=(0, 1)),
    row("fftconvolve", Z, Y, mode="valid", argnums=1),
    row("fftconvolve", LINES, LINES[:1, :5], axes=1, argnums=(0, 1)),
    row("oaconvolve", IMAGE, SMALL, argnums=(0, 1)),
    row("convolve", X, Y, method="fft", mode="same", argnums=(0, 1)),
    row("correlate", Z, Y, method="fft", argnums=1),
    row("convolve2d", IMAGE, SMALL, boundary="wrap", mode="same", argnums=(0, 1)),
    row("convolve2d", IMAGE, SMALL, boundary="fill", fillvalue=1.5, argnums=(0, 1)),
    row("correlate2d", IMAGE, SMALL, boundary="symm", argnums=(0, 1)),
    row("correlate2d", IMAGE, SMALL, boundary="symm", mode="same", argnums=(0, 1)),
    row("deconvolve", X, np.array([2.0, 0.5, 0.1]), argnums=(0, 1), slow=True),
    row("lfilter", B, A, X, argnums=(0, 1, 2)),
    row("lfilter", B, A, LINES, -1, STATE * np.ones((2, 1)), argnums=(0, 1, 2, 4), slow=True),
    row("lfilter", B, A, Z, argnums=(0, 1), slow=True),
    row("lfilter", B, 2.0 * A, LINES, axis=0, argnums=(0, 1, 2), slow=True),
    row("lfilter_zi", B, A, argnums=(0, 1)),
    row("lfiltic", B, A, STATE, STATE[::-1], argnums=(0, 1, 2, 3)),
    row("sosfilt", SOS, X, argnums=1, slow=True),
    row("sosfilt", SOS, LINES, axis=-1, zi=np.ones((2, 2, 2)), argnums=1, slow=True),
    row("filtfilt", B, A, X, argnums=(0, 1, 2), slow=True),
    row("filtfilt", B, A, LINES, padtype="even", argnums=2, slow=True),
    row("filtfilt", B, A, X, padtype="constant", padlen=3, argnums=2, slow=True),
    row("sosfiltfilt", SOS, X, argnums=1, slow=True),
    row("dlsim", SYSTEM, X, argnums=1, slow=True),
    row("detrend", LINES),
    row("detrend", X, type="constant"),
    row("detrend", X, bp=[5, 12]),
    row("stft", X, nperseg=8),
    row("stft", X, nperseg=7, boundary="even", padded=False, detrend="linear", scaling="psd"),
    row("stft", Z, nperseg=8, return_onesided=False, boundary="constant"),
    row("istft", SPECTRUM),
    row("istft", SPECTRUM, window=np.hanning(10)[1:-1] + 0.1, scaling="psd"),
    row("spectrogram", X, nperseg=8),
    row("spectrogram", X, nperseg=8, mode="magnitude"),
    row("spectrogram", X, nperseg=8, mode="complex"),
    row("welch", X, nperseg=8),
    row("welch", LINES, nperseg=8, average="median", scaling="spectrum"),
    row("welch", LINES.T, nperseg=8, axis=0, nfft=11),
    row("csd", X, Y, nperseg=8, argnums=(0, 1)),
    row("periodogram", X, window="hamming", nfft=20),
    row("coherence", X, X**2, nperseg=8, argnums=(0, 1)),
    row("hilbert", LINES),
    row("hilbert", X, N=27),
    row("hilbert2", IMAGE),
    row("envelope", X, (2, 7)),
    row("envelope", X, (-5, 3), n_out=30, residual="all"),
    row("envelope", Z, (1, 6), n_out=17, squared=True),
    row("resample", X, 15),
    row("resample", Z, 30),
    row("resample", LINES, 36, axis=1, window="hamming"),
    row("resample_poly", X, 3, 2),
    row("resample_poly", LINES, 2, 3, axis=1, padtype="mean"),
    row("resample_poly", X, 2, 3, window=Y, padtype="symmetric"),
    row("upfirdn", B, LINES, 3, 2, argnums=(0, 1)),
    row("upfirdn", Y, X, 2, 3, mode="wrap", argnums=(0, 1)),
    row("decimate", np.tile(X, 3), 3, slow=True),
    row("decimate", X, 3, ftype="fir"),
    row("savgol_filter", X, 7, 2),
    row("savgol_filter", LINES, 6, 3, deriv=1, delta=0.5, mode="mirror"),
    row("medfilt", X, 5),
    row("medfilt2d", IMAGE, 3),
    row("order_filter", IMAGE, np.eye(3), 1),
    row("wiener", IMAGE, 3),
    row("freqz", B, A, 9, argnums=(0, 1)),
    row("freqz", B, A, np.array([0.1, 0.7]), argnums=(0, 1, 2)),
    row("freqz_sos", SOS, np.array([0.1, 0.7]), argnums=1),
    row("freqs", B, A, np.array([0.1, 0.7]), argnums=(0, 1, 2)),
    row("group_delay", (B, A), np.array([0.2, 1.1]), argnums=1),
    row("czt", LINES),
    row("czt", X, 9, np.exp(-0.2j), 1.1, argnums=0),
    row("zoom_fft", X, [0.2, 0.6], 9, fs=3.0),
    row("lombscargle", TIMES, np.cos(TIMES), np.linspace(0.5, 3, 4), argnums=(0, 1, 2)),
    row(
        "lombscargle", TIMES, np.cos(TIMES), np.linspace(0.5, 3, 4), argnums=1, normalize=True,
        floating_mean=True, weights=RNG.uniform(1, 2, 20),
    ),
    row("vectorstrength", TIMES, 1.7, argnums=(0, 1)),
    row("chirp", TIMES, 0.5, 5.0, 1.5, argnums=0),
    row("chirp", TIMES, 0.5, 5.0, 1.5, method="quadratic", phi=30, vertex_zero=False),
    row("chirp", TIMES, 0.5, 5.0, 1.5, method="logarithmic"),
    row("chirp", TIMES[:9], 0.5, 9.0, 1.5, method="hyperbolic"),
    row("sawtooth", TIMES, 0.3),
    row("square", TIMES, 0.3),
    row("gausspulse", TIMES / 9, 2.0, retquad=True, retenv=True),
    row("sweep_poly", TIMES / 9, [0.5, 1.0, 2.0]),
]  # fmt: skip

PIECEWISE = {"medfilt", "medfilt2d", "order_filter", "wiener", "square", "welch"}
"""What chooses elements: a difference of second order may step over a change of choice."""


@each(ROWS)
def test_values(row: Row) -> None:
    check_value(signal, scipy.signal, row)


@each(ROWS)
def test_derivatives(row: Row) -> None:
    check_derivatives(signal, scipy.signal, row, row.name not in PIECEWISE)


@each(ROWS)
def test_vmap(row: Row) -> None:
    check_mapped(signal, scipy.signal, row)


@pytest.mark.sampled(4)
@each(ROWS, fast=4)
def test_compiled(row: Row) -> None:
    check_compiled(signal, row)


def test_filters_carry_on_where_they_were_stopped() -> None:
    whole = scipy.signal.lfilter(B, A, X)
    first, state = signal.lfilter(B, A, X[:10], zi=np.zeros(2))
    second, _ = signal.lfilter(B, A, X[10:], zi=state)
    np.testing.assert_allclose(np.concatenate([first, second]), whole, 1e-12)


def test_sections_are_filters_one_after_the_other() -> None:
    def theirs(sos: Any) -> Any:
        y = X
        for section in sos:
            y = scipy.signal.lfilter(section[:3], section[3:], y)
        return y

    t, h = RNG.normal(size=SOS.shape), 1e-5
    y, slope = fg.jvp(lambda s: signal.sosfilt(s, X), (SOS,), (t,))
    np.testing.assert_allclose(y, theirs(SOS), 1e-12)
    np.testing.assert_allclose(slope, (theirs(SOS + h * t) - theirs(SOS - h * t)) / (2 * h), 1e-6)
    np.testing.assert_allclose(signal.sosfilt_zi(SOS), scipy.signal.sosfilt_zi(SOS), 1e-10)


def test_no_samples() -> None:
    assert signal.lfilter(B, A, X[:0]).shape == (0,)
    assert signal.fftconvolve(X, X[:0]).shape == (0,)
    frequencies, power = signal.welch(X[:0])
    assert frequencies.shape == power.shape == (0,)
    assert [part.shape for part in signal.stft(X[:0])] == [(0,)] * 3
    assert [part.shape for part in signal.spectrogram(LINES[:, :0])] == [(2, 0)] * 3
    assert signal.upfirdn(B, np.zeros((0, 4))).shape == (0, 6)
    assert signal.deconvolve(X[:2], X[:3])[0].shape == (0,)


def test_long_convolutions_go_through_transforms() -> None:
    long = RNG.normal(size=3000)
    assert signal.choose_conv_method(long, long) == "fft"
    assert signal.choose_conv_method(long.astype(int), long.astype(int)) == "direct"
    expected = scipy.signal.convolve(long, long, method="direct")
    np.testing.assert_allclose(signal.convolve(long, long), expected, 1e-8, 1e-8)


def test_designs_are_those_of_scipy() -> None:
    np.testing.assert_array_equal(signal.butter(2, 0.3), (B, A))
    np.testing.assert_array_equal(signal.windows.hann(5), scipy.signal.windows.hann(5))
    assert signal.butter.__name__ == "butter"
    assert "signal.butter" in signal.butter.__doc__


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fg.jit(lambda w: signal.butter(2, w)[0])(0.3), TypeError, "a traced float64"),
        (lambda: signal.lfilter(SMALL, A, X), errors.ShapeError, "b must be a vector"),
        (lambda: signal.lfilter(B, A, X, zi=X), errors.ShapeError, r"zi must have shape \(2,\)"),
        (lambda: signal.sosfilt(SMALL, X), errors.ShapeError, r"\(sections, 6\)"),
        (lambda: signal.filtfilt(B, A, X[:5]), errors.ShapeError, "padlen = 9"),
        (lambda: signal.filtfilt(B, A, X, method="gust"), errors.ArgumentError, "scipy.signal"),
        (lambda: signal.dlsim((B, A, 1.0), X), errors.ArgumentError, "tf2ss"),
        (lambda: signal.stft(X, nperseg=8, noverlap=8), errors.ArgumentError, "noverlap"),
        (lambda: signal.stft(X, nperseg=8, boundary="x"), errors.ArgumentError, "'even', 'odd'"),
        (lambda: signal.welch(X, nperseg=8, nfft=4), errors.ArgumentError, "nfft must be"),
        (lambda: signal.welch(X, nperseg=8, average="x"), errors.ArgumentError, "'median'"),
        (lambda: signal.istft(X), errors.ShapeError, "at least two axes"),
        (lambda: signal.hilbert(Z), errors.ArgumentError, "real samples"),
        (lambda: signal.resample(X, 5, domain="x"), errors.ArgumentError, "'time' or 'freq'"),
        (lambda: signal.resample_poly(X, 0, 1), errors.ArgumentError, "positive integers"),
        (lambda: signal.upfirdn(B, X, mode="x"), errors.ArgumentError, "'symmetric'"),
        (lambda: signal.medfilt(X, 4), errors.ArgumentError, "must be odd"),
        (lambda: signal.savgol_filter(X, 25, 2), errors.ArgumentError, "must not exceed"),
        (lambda: signal.detrend(X, type="x"), errors.ArgumentError, "'linear' or 'constant'"),
        (lambda: signal.whittaker_henderson(X), errors.ArgumentError, "give lamb"),
        (lambda: signal.whittaker_henderson(X, lamb=-1.0), errors.ArgumentError, "negative"),
        (lambda: signal.whittaker_henderson(X, lamb=1, order=0), errors.ArgumentError, "at least"),
        (lambda: signal.whittaker_henderson(X[:2], lamb=1), errors.ShapeError, "more than 2"),
        (lambda: signal.whittaker_henderson(X, lamb=1, weights=B), errors.ShapeError, "weights"),
        (lambda: signal.chirp(X, 1, 2, 3, "x"), errors.ArgumentError, "'hyperbolic'"),
        (lambda: signal.convolve(X, X, method="x"), errors.ArgumentError, "'direct' or 'fft'"),
        (lambda: signal.convolve2d(SMALL, SMALL, boundary="x"), errors.ArgumentError, "'symm'"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
