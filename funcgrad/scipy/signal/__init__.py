"""`scipy.signal` on arrays and traced values: filters, spectra, resampling, waves.

This package is a page of names; the work is in the modules that it names.
"""

# ruff: noqa: F401

# ruff: noqa: F403

from typing import TYPE_CHECKING, Any

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

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.public_functions import present_results
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

    def __getattr__(name: str) -> Any: ...


vars().update(
    host_functions(
        "scipy.signal",
        """
        abcd_normalize argrelextrema argrelmax argrelmin band_stop_obj bessel besselap bilinear
        bilinear_zpk bode buttap butter buttord cheb1ap cheb1ord cheb2ap cheb2ord cheby1 cheby2
        check_COLA check_NOLA closest_STFT_dual_window cont2discrete correlation_lags cspline1d
        cspline1d_eval cspline2d czt_points dbode dfreqresp dimpulse dstep ellip ellipap ellipord
        find_peaks find_peaks_cwt findfreqs firls firwin firwin2 firwin_2d freqresp gammatone
        gauss_spline get_window iircomb iirdesign iirfilter iirnotch iirpeak impulse invres invresz
        kaiser_atten kaiser_beta kaiserord lp2bp lp2bp_zpk lp2bs lp2bs_zpk lp2hp lp2hp_zpk lp2lp
        lp2lp_zpk lsim max_len_seq minimum_phase normalize peak_prominences peak_widths place_poles
        qspline1d qspline1d_eval qspline2d remez residue residuez savgol_coeffs sepfir2d sos2tf
        sos2zpk spline_filter ss2tf ss2zpk step symiirorder1 symiirorder2 tf2sos tf2ss tf2zpk
        unique_roots unit_impulse zpk2sos zpk2ss zpk2tf
        """,
    )
)

__all__ = page(vars(), "windows")

share(__name__, MEANINGS)
present_results(__name__)
