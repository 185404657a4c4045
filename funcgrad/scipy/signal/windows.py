"""`scipy.signal.windows`: SciPy's own, for known lengths and parameters."""

from __future__ import annotations

from funcgrad.base.namespaces import present
from funcgrad.numpy.host_functions import host_function

__all__ = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "chebwin", "cosine",
    "dpss", "exponential", "flattop", "gaussian", "general_cosine", "general_gaussian",
    "general_hamming", "get_window", "hamming", "hann", "kaiser", "kaiser_bessel_derived",
    "lanczos", "nuttall", "parzen", "taylor", "triang", "tukey",
]  # fmt: skip

barthann = host_function("scipy.signal.windows", "barthann")
bartlett = host_function("scipy.signal.windows", "bartlett")
blackman = host_function("scipy.signal.windows", "blackman")
blackmanharris = host_function("scipy.signal.windows", "blackmanharris")
bohman = host_function("scipy.signal.windows", "bohman")
boxcar = host_function("scipy.signal.windows", "boxcar")
chebwin = host_function("scipy.signal.windows", "chebwin")
cosine = host_function("scipy.signal.windows", "cosine")
dpss = host_function("scipy.signal.windows", "dpss")
exponential = host_function("scipy.signal.windows", "exponential")
flattop = host_function("scipy.signal.windows", "flattop")
gaussian = host_function("scipy.signal.windows", "gaussian")
general_cosine = host_function("scipy.signal.windows", "general_cosine")
general_gaussian = host_function("scipy.signal.windows", "general_gaussian")
general_hamming = host_function("scipy.signal.windows", "general_hamming")
get_window = host_function("scipy.signal.windows", "get_window")
hamming = host_function("scipy.signal.windows", "hamming")
hann = host_function("scipy.signal.windows", "hann")
kaiser = host_function("scipy.signal.windows", "kaiser")
kaiser_bessel_derived = host_function("scipy.signal.windows", "kaiser_bessel_derived")
lanczos = host_function("scipy.signal.windows", "lanczos")
nuttall = host_function("scipy.signal.windows", "nuttall")
parzen = host_function("scipy.signal.windows", "parzen")
taylor = host_function("scipy.signal.windows", "taylor")
triang = host_function("scipy.signal.windows", "triang")
tukey = host_function("scipy.signal.windows", "tukey")

present(__name__)
