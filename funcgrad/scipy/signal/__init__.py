"""`scipy.signal` on arrays and traced values: filters, spectra, resampling, waves.

This package is a page of names; the work is in the modules that it names.
"""

# ruff: noqa: F403, F405

from typing import TYPE_CHECKING

from scipy.signal import (
    CZT,
    BadCoefficients,
    ShortTimeFFT,
    StateSpace,
    TransferFunction,
    ZerosPolesGain,
    ZoomFFT,
    dlti,
    lti,
)

from funcgrad.base.signatures import share
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.signal.host_functions import *
from funcgrad.scipy.signal.meanings import MEANINGS
from funcgrad.scipy.signal.recurrences import *
from funcgrad.scipy.signal.resampling import *
from funcgrad.scipy.signal.responses import *
from funcgrad.scipy.signal.sliding import *
from funcgrad.scipy.signal.smoothing import *
from funcgrad.scipy.signal.spectra import *
from funcgrad.scipy.signal.waveforms import *

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad.scipy.signal import windows

__all__ = [
    "CZT", "BadCoefficients", "ShortTimeFFT", "StateSpace", "TransferFunction", "ZerosPolesGain",
    "ZoomFFT", "abcd_normalize", "argrelextrema", "argrelmax", "argrelmin", "band_stop_obj",
    "bessel", "besselap", "bilinear", "bilinear_zpk", "bode", "buttap", "butter", "buttord",
    "cheb1ap", "cheb1ord", "cheb2ap", "cheb2ord", "cheby1", "cheby2", "check_COLA", "check_NOLA",
    "chirp", "choose_conv_method", "closest_STFT_dual_window", "coherence", "cont2discrete",
    "convolve", "convolve2d", "correlate", "correlate2d", "correlation_lags", "csd", "cspline1d",
    "cspline1d_eval", "cspline2d", "czt", "czt_points", "dbode", "decimate", "deconvolve",
    "detrend", "dfreqresp", "dimpulse", "dlsim", "dlti", "dstep", "ellip", "ellipap", "ellipord",
    "envelope", "fftconvolve", "filtfilt", "find_peaks", "find_peaks_cwt", "findfreqs", "firls",
    "firwin", "firwin2", "firwin_2d", "freqresp", "freqs", "freqs_zpk", "freqz", "freqz_sos",
    "freqz_zpk", "gammatone", "gauss_spline", "gausspulse", "get_window", "group_delay", "hilbert",
    "hilbert2", "iircomb", "iirdesign", "iirfilter", "iirnotch", "iirpeak", "impulse", "invres",
    "invresz", "istft", "kaiser_atten", "kaiser_beta", "kaiserord", "lfilter", "lfilter_zi",
    "lfiltic", "lombscargle", "lp2bp", "lp2bp_zpk", "lp2bs", "lp2bs_zpk", "lp2hp", "lp2hp_zpk",
    "lp2lp", "lp2lp_zpk", "lsim", "lti", "max_len_seq", "medfilt", "medfilt2d", "minimum_phase",
    "normalize", "oaconvolve", "order_filter", "peak_prominences", "peak_widths", "periodogram",
    "place_poles", "qspline1d", "qspline1d_eval", "qspline2d", "remez", "resample", "resample_poly",
    "residue", "residuez", "savgol_coeffs", "savgol_filter", "sawtooth", "sepfir2d", "sos2tf",
    "sos2zpk", "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz", "spectrogram", "spline_filter",
    "square", "ss2tf", "ss2zpk", "step", "stft", "sweep_poly", "symiirorder1", "symiirorder2",
    "tf2sos", "tf2ss", "tf2zpk", "unique_roots", "unit_impulse", "upfirdn", "vectorstrength",
    "welch", "whittaker_henderson", "wiener", "windows", "zoom_fft", "zpk2sos", "zpk2ss", "zpk2tf",
]  # fmt: skip

share(__name__, MEANINGS)
present_results(__name__)
