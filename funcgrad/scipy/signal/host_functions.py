"""Designs, representations and searches that SciPy computes of known values."""

from __future__ import annotations

from funcgrad.numpy.host_functions import host_functions

__all__ = [
    "abcd_normalize", "argrelextrema", "argrelmax", "argrelmin", "band_stop_obj", "bessel",
    "besselap", "bilinear", "bilinear_zpk", "bode", "buttap", "butter", "buttord", "cheb1ap",
    "cheb1ord", "cheb2ap", "cheb2ord", "cheby1", "cheby2", "check_COLA", "check_NOLA",
    "closest_STFT_dual_window", "cont2discrete", "correlation_lags", "cspline1d", "cspline1d_eval",
    "cspline2d", "czt_points", "dbode", "dfreqresp", "dimpulse", "dstep", "ellip", "ellipap",
    "ellipord", "find_peaks", "find_peaks_cwt", "findfreqs", "firls", "firwin", "firwin2",
    "firwin_2d", "freqresp", "gammatone", "gauss_spline", "get_window", "iircomb", "iirdesign",
    "iirfilter", "iirnotch", "iirpeak", "impulse", "invres", "invresz", "kaiser_atten",
    "kaiser_beta", "kaiserord", "lp2bp", "lp2bp_zpk", "lp2bs", "lp2bs_zpk", "lp2hp", "lp2hp_zpk",
    "lp2lp", "lp2lp_zpk", "lsim", "max_len_seq", "minimum_phase", "normalize", "peak_prominences",
    "peak_widths", "place_poles", "qspline1d", "qspline1d_eval", "qspline2d", "remez", "residue",
    "residuez", "savgol_coeffs", "sepfir2d", "sos2tf", "sos2zpk", "spline_filter", "ss2tf",
    "ss2zpk", "step", "symiirorder1", "symiirorder2", "tf2sos", "tf2ss", "tf2zpk", "unique_roots",
    "unit_impulse", "zpk2sos", "zpk2ss", "zpk2tf",
]  # fmt: skip

(
    abcd_normalize, argrelextrema, argrelmax, argrelmin, band_stop_obj, bessel, besselap, bilinear,
    bilinear_zpk, bode, buttap, butter, buttord, cheb1ap, cheb1ord, cheb2ap, cheb2ord, cheby1,
    cheby2, check_COLA, check_NOLA, closest_STFT_dual_window, cont2discrete, correlation_lags,
    cspline1d, cspline1d_eval, cspline2d, czt_points, dbode, dfreqresp, dimpulse, dstep, ellip,
    ellipap, ellipord, find_peaks, find_peaks_cwt, findfreqs, firls, firwin, firwin2, firwin_2d,
    freqresp, gammatone, gauss_spline, get_window, iircomb, iirdesign, iirfilter, iirnotch, iirpeak,
    impulse, invres, invresz, kaiser_atten, kaiser_beta, kaiserord, lp2bp, lp2bp_zpk, lp2bs,
    lp2bs_zpk, lp2hp, lp2hp_zpk, lp2lp, lp2lp_zpk, lsim, max_len_seq, minimum_phase, normalize,
    peak_prominences, peak_widths, place_poles, qspline1d, qspline1d_eval, qspline2d, remez,
    residue, residuez, savgol_coeffs, sepfir2d, sos2tf, sos2zpk, spline_filter, ss2tf, ss2zpk, step,
    symiirorder1, symiirorder2, tf2sos, tf2ss, tf2zpk, unique_roots, unit_impulse, zpk2sos, zpk2ss,
    zpk2tf,
) = host_functions("scipy.signal", *__all__)  # fmt: skip
