"""Designs, representations and searches that SciPy computes of known values."""

from __future__ import annotations

import scipy.signal

from funcgrad.numpy.host_functions import host_function

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

abcd_normalize = host_function("scipy.signal", "abcd_normalize")
argrelextrema = host_function("scipy.signal", "argrelextrema")
argrelmax = host_function("scipy.signal", "argrelmax")
argrelmin = host_function("scipy.signal", "argrelmin")
band_stop_obj = host_function("scipy.signal", "band_stop_obj")
bessel = host_function("scipy.signal", "bessel")
besselap = host_function("scipy.signal", "besselap")
bilinear = host_function("scipy.signal", "bilinear")
bilinear_zpk = host_function("scipy.signal", "bilinear_zpk")
bode = host_function("scipy.signal", "bode")
buttap = host_function("scipy.signal", "buttap")
butter = host_function("scipy.signal", "butter")
buttord = host_function("scipy.signal", "buttord")
cheb1ap = host_function("scipy.signal", "cheb1ap")
cheb1ord = host_function("scipy.signal", "cheb1ord")
cheb2ap = host_function("scipy.signal", "cheb2ap")
cheb2ord = host_function("scipy.signal", "cheb2ord")
cheby1 = host_function("scipy.signal", "cheby1")
cheby2 = host_function("scipy.signal", "cheby2")
check_COLA = host_function("scipy.signal", "check_COLA")
check_NOLA = host_function("scipy.signal", "check_NOLA")
closest_STFT_dual_window = host_function("scipy.signal", "closest_STFT_dual_window")
cont2discrete = host_function("scipy.signal", "cont2discrete")
correlation_lags = host_function("scipy.signal", "correlation_lags")
cspline1d = host_function("scipy.signal", "cspline1d")
cspline1d_eval = host_function("scipy.signal", "cspline1d_eval")
cspline2d = host_function("scipy.signal", "cspline2d")
czt_points = host_function("scipy.signal", "czt_points")
dbode = host_function("scipy.signal", "dbode")
dfreqresp = host_function("scipy.signal", "dfreqresp")
dimpulse = host_function("scipy.signal", "dimpulse")
dstep = host_function("scipy.signal", "dstep")
ellip = host_function("scipy.signal", "ellip")
ellipap = host_function("scipy.signal", "ellipap")
ellipord = host_function("scipy.signal", "ellipord")
find_peaks = host_function("scipy.signal", "find_peaks")
find_peaks_cwt = host_function("scipy.signal", "find_peaks_cwt")
findfreqs = host_function("scipy.signal", "findfreqs")
firls = host_function("scipy.signal", "firls")
firwin = host_function("scipy.signal", "firwin")
firwin2 = host_function("scipy.signal", "firwin2")
firwin_2d = host_function("scipy.signal", "firwin_2d")
freqresp = host_function("scipy.signal", "freqresp")
gammatone = host_function("scipy.signal", "gammatone")
gauss_spline = host_function("scipy.signal", "gauss_spline")
get_window = host_function("scipy.signal", "get_window")
iircomb = host_function("scipy.signal", "iircomb")
iirdesign = host_function("scipy.signal", "iirdesign")
iirfilter = host_function("scipy.signal", "iirfilter")
iirnotch = host_function("scipy.signal", "iirnotch")
iirpeak = host_function("scipy.signal", "iirpeak")
impulse = host_function("scipy.signal", "impulse")
invres = host_function("scipy.signal", "invres")
invresz = host_function("scipy.signal", "invresz")
kaiser_atten = host_function("scipy.signal", "kaiser_atten")
kaiser_beta = host_function("scipy.signal", "kaiser_beta")
kaiserord = host_function("scipy.signal", "kaiserord")
lp2bp = host_function("scipy.signal", "lp2bp")
lp2bp_zpk = host_function("scipy.signal", "lp2bp_zpk")
lp2bs = host_function("scipy.signal", "lp2bs")
lp2bs_zpk = host_function("scipy.signal", "lp2bs_zpk")
lp2hp = host_function("scipy.signal", "lp2hp")
lp2hp_zpk = host_function("scipy.signal", "lp2hp_zpk")
lp2lp = host_function("scipy.signal", "lp2lp")
lp2lp_zpk = host_function("scipy.signal", "lp2lp_zpk")
lsim = host_function("scipy.signal", "lsim")
max_len_seq = host_function("scipy.signal", "max_len_seq")
minimum_phase = host_function("scipy.signal", "minimum_phase")
normalize = host_function("scipy.signal", "normalize")
peak_prominences = host_function("scipy.signal", "peak_prominences")
peak_widths = host_function("scipy.signal", "peak_widths")
place_poles = host_function("scipy.signal", "place_poles")
qspline1d = host_function("scipy.signal", "qspline1d")
qspline1d_eval = host_function("scipy.signal", "qspline1d_eval")
qspline2d = host_function("scipy.signal", "qspline2d")
remez = host_function("scipy.signal", "remez")
residue = host_function("scipy.signal", "residue")
residuez = host_function("scipy.signal", "residuez")
savgol_coeffs = host_function("scipy.signal", "savgol_coeffs")
sepfir2d = host_function("scipy.signal", "sepfir2d")
sos2tf = host_function("scipy.signal", "sos2tf")
sos2zpk = host_function("scipy.signal", "sos2zpk")
spline_filter = host_function("scipy.signal", "spline_filter")
ss2tf = host_function("scipy.signal", "ss2tf")
ss2zpk = host_function("scipy.signal", "ss2zpk")
step = host_function("scipy.signal", "step")
symiirorder1 = host_function("scipy.signal", "symiirorder1")
symiirorder2 = host_function("scipy.signal", "symiirorder2")
tf2sos = host_function("scipy.signal", "tf2sos")
tf2ss = host_function("scipy.signal", "tf2ss")
tf2zpk = host_function("scipy.signal", "tf2zpk")
unique_roots = host_function("scipy.signal", "unique_roots")
unit_impulse = host_function("scipy.signal", "unit_impulse")
zpk2sos = host_function("scipy.signal", "zpk2sos")
zpk2ss = host_function("scipy.signal", "zpk2ss")
zpk2tf = host_function("scipy.signal", "zpk2tf")
