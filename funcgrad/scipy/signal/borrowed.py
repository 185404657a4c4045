"""Designs, representations and searches that SciPy computes of known values."""

from __future__ import annotations

import scipy.signal

from funcgrad.numpy.borrowing import borrow

__all__ = [
    "CZT",
    "BadCoefficients",
    "ShortTimeFFT",
    "StateSpace",
    "TransferFunction",
    "ZerosPolesGain",
    "ZoomFFT",
    "abcd_normalize",
    "argrelextrema",
    "argrelmax",
    "argrelmin",
    "band_stop_obj",
    "bessel",
    "besselap",
    "bilinear",
    "bilinear_zpk",
    "bode",
    "buttap",
    "butter",
    "buttord",
    "cheb1ap",
    "cheb1ord",
    "cheb2ap",
    "cheb2ord",
    "cheby1",
    "cheby2",
    "check_COLA",
    "check_NOLA",
    "closest_STFT_dual_window",
    "cont2discrete",
    "correlation_lags",
    "cspline1d",
    "cspline1d_eval",
    "cspline2d",
    "czt_points",
    "dbode",
    "dfreqresp",
    "dimpulse",
    "dlti",
    "dstep",
    "ellip",
    "ellipap",
    "ellipord",
    "find_peaks",
    "find_peaks_cwt",
    "findfreqs",
    "firls",
    "firwin",
    "firwin2",
    "firwin_2d",
    "freqresp",
    "gammatone",
    "gauss_spline",
    "get_window",
    "iircomb",
    "iirdesign",
    "iirfilter",
    "iirnotch",
    "iirpeak",
    "impulse",
    "invres",
    "invresz",
    "kaiser_atten",
    "kaiser_beta",
    "kaiserord",
    "lp2bp",
    "lp2bp_zpk",
    "lp2bs",
    "lp2bs_zpk",
    "lp2hp",
    "lp2hp_zpk",
    "lp2lp",
    "lp2lp_zpk",
    "lsim",
    "lti",
    "max_len_seq",
    "minimum_phase",
    "normalize",
    "peak_prominences",
    "peak_widths",
    "place_poles",
    "qspline1d",
    "qspline1d_eval",
    "qspline2d",
    "remez",
    "residue",
    "residuez",
    "savgol_coeffs",
    "sepfir2d",
    "sos2tf",
    "sos2zpk",
    "spline_filter",
    "ss2tf",
    "ss2zpk",
    "step",
    "symiirorder1",
    "symiirorder2",
    "tf2sos",
    "tf2ss",
    "tf2zpk",
    "unique_roots",
    "unit_impulse",
    "zpk2sos",
    "zpk2ss",
    "zpk2tf",
]  # fmt: skip

BadCoefficients = scipy.signal.BadCoefficients
CZT = scipy.signal.CZT
ShortTimeFFT = scipy.signal.ShortTimeFFT
StateSpace = scipy.signal.StateSpace
TransferFunction = scipy.signal.TransferFunction
ZerosPolesGain = scipy.signal.ZerosPolesGain
ZoomFFT = scipy.signal.ZoomFFT
dlti = scipy.signal.dlti
lti = scipy.signal.lti

abcd_normalize = borrow("scipy.signal", "abcd_normalize")
argrelextrema = borrow("scipy.signal", "argrelextrema")
argrelmax = borrow("scipy.signal", "argrelmax")
argrelmin = borrow("scipy.signal", "argrelmin")
band_stop_obj = borrow("scipy.signal", "band_stop_obj")
bessel = borrow("scipy.signal", "bessel")
besselap = borrow("scipy.signal", "besselap")
bilinear = borrow("scipy.signal", "bilinear")
bilinear_zpk = borrow("scipy.signal", "bilinear_zpk")
bode = borrow("scipy.signal", "bode")
buttap = borrow("scipy.signal", "buttap")
butter = borrow("scipy.signal", "butter")
buttord = borrow("scipy.signal", "buttord")
cheb1ap = borrow("scipy.signal", "cheb1ap")
cheb1ord = borrow("scipy.signal", "cheb1ord")
cheb2ap = borrow("scipy.signal", "cheb2ap")
cheb2ord = borrow("scipy.signal", "cheb2ord")
cheby1 = borrow("scipy.signal", "cheby1")
cheby2 = borrow("scipy.signal", "cheby2")
check_COLA = borrow("scipy.signal", "check_COLA")
check_NOLA = borrow("scipy.signal", "check_NOLA")
closest_STFT_dual_window = borrow("scipy.signal", "closest_STFT_dual_window")
cont2discrete = borrow("scipy.signal", "cont2discrete")
correlation_lags = borrow("scipy.signal", "correlation_lags")
cspline1d = borrow("scipy.signal", "cspline1d")
cspline1d_eval = borrow("scipy.signal", "cspline1d_eval")
cspline2d = borrow("scipy.signal", "cspline2d")
czt_points = borrow("scipy.signal", "czt_points")
dbode = borrow("scipy.signal", "dbode")
dfreqresp = borrow("scipy.signal", "dfreqresp")
dimpulse = borrow("scipy.signal", "dimpulse")
dstep = borrow("scipy.signal", "dstep")
ellip = borrow("scipy.signal", "ellip")
ellipap = borrow("scipy.signal", "ellipap")
ellipord = borrow("scipy.signal", "ellipord")
find_peaks = borrow("scipy.signal", "find_peaks")
find_peaks_cwt = borrow("scipy.signal", "find_peaks_cwt")
findfreqs = borrow("scipy.signal", "findfreqs")
firls = borrow("scipy.signal", "firls")
firwin = borrow("scipy.signal", "firwin")
firwin2 = borrow("scipy.signal", "firwin2")
firwin_2d = borrow("scipy.signal", "firwin_2d")
freqresp = borrow("scipy.signal", "freqresp")
gammatone = borrow("scipy.signal", "gammatone")
gauss_spline = borrow("scipy.signal", "gauss_spline")
get_window = borrow("scipy.signal", "get_window")
iircomb = borrow("scipy.signal", "iircomb")
iirdesign = borrow("scipy.signal", "iirdesign")
iirfilter = borrow("scipy.signal", "iirfilter")
iirnotch = borrow("scipy.signal", "iirnotch")
iirpeak = borrow("scipy.signal", "iirpeak")
impulse = borrow("scipy.signal", "impulse")
invres = borrow("scipy.signal", "invres")
invresz = borrow("scipy.signal", "invresz")
kaiser_atten = borrow("scipy.signal", "kaiser_atten")
kaiser_beta = borrow("scipy.signal", "kaiser_beta")
kaiserord = borrow("scipy.signal", "kaiserord")
lp2bp = borrow("scipy.signal", "lp2bp")
lp2bp_zpk = borrow("scipy.signal", "lp2bp_zpk")
lp2bs = borrow("scipy.signal", "lp2bs")
lp2bs_zpk = borrow("scipy.signal", "lp2bs_zpk")
lp2hp = borrow("scipy.signal", "lp2hp")
lp2hp_zpk = borrow("scipy.signal", "lp2hp_zpk")
lp2lp = borrow("scipy.signal", "lp2lp")
lp2lp_zpk = borrow("scipy.signal", "lp2lp_zpk")
lsim = borrow("scipy.signal", "lsim")
max_len_seq = borrow("scipy.signal", "max_len_seq")
minimum_phase = borrow("scipy.signal", "minimum_phase")
normalize = borrow("scipy.signal", "normalize")
peak_prominences = borrow("scipy.signal", "peak_prominences")
peak_widths = borrow("scipy.signal", "peak_widths")
place_poles = borrow("scipy.signal", "place_poles")
qspline1d = borrow("scipy.signal", "qspline1d")
qspline1d_eval = borrow("scipy.signal", "qspline1d_eval")
qspline2d = borrow("scipy.signal", "qspline2d")
remez = borrow("scipy.signal", "remez")
residue = borrow("scipy.signal", "residue")
residuez = borrow("scipy.signal", "residuez")
savgol_coeffs = borrow("scipy.signal", "savgol_coeffs")
sepfir2d = borrow("scipy.signal", "sepfir2d")
sos2tf = borrow("scipy.signal", "sos2tf")
sos2zpk = borrow("scipy.signal", "sos2zpk")
spline_filter = borrow("scipy.signal", "spline_filter")
ss2tf = borrow("scipy.signal", "ss2tf")
ss2zpk = borrow("scipy.signal", "ss2zpk")
step = borrow("scipy.signal", "step")
symiirorder1 = borrow("scipy.signal", "symiirorder1")
symiirorder2 = borrow("scipy.signal", "symiirorder2")
tf2sos = borrow("scipy.signal", "tf2sos")
tf2ss = borrow("scipy.signal", "tf2ss")
tf2zpk = borrow("scipy.signal", "tf2zpk")
unique_roots = borrow("scipy.signal", "unique_roots")
unit_impulse = borrow("scipy.signal", "unit_impulse")
zpk2sos = borrow("scipy.signal", "zpk2sos")
zpk2ss = borrow("scipy.signal", "zpk2ss")
zpk2tf = borrow("scipy.signal", "zpk2tf")
