"""`scipy.signal.windows`: SciPy's own, for known lengths and parameters."""

from __future__ import annotations

from funcgrad.base.namespaces import present
from funcgrad.numpy.host_functions import host_functions

__all__ = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "chebwin", "cosine",
    "dpss", "exponential", "flattop", "gaussian", "general_cosine", "general_gaussian",
    "general_hamming", "get_window", "hamming", "hann", "kaiser", "kaiser_bessel_derived",
    "lanczos", "nuttall", "parzen", "taylor", "triang", "tukey",
]  # fmt: skip

(
    barthann, bartlett, blackman, blackmanharris, bohman, boxcar, chebwin, cosine, dpss,
    exponential, flattop, gaussian, general_cosine, general_gaussian, general_hamming, get_window,
    hamming, hann, kaiser, kaiser_bessel_derived, lanczos, nuttall, parzen, taylor, triang, tukey,
) = host_functions("scipy.signal.windows", " ".join(__all__)).values()  # fmt: skip

present(__name__)
