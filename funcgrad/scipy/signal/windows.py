"""`scipy.signal.windows`: SciPy's own, for known lengths and parameters."""

from __future__ import annotations

from funcgrad.base.namespaces import present
from funcgrad.numpy.borrowing import borrow

__all__ = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "chebwin", "cosine",
    "dpss", "exponential", "flattop", "gaussian", "general_cosine", "general_gaussian",
    "general_hamming", "get_window", "hamming", "hann", "kaiser", "kaiser_bessel_derived",
    "lanczos", "nuttall", "parzen", "taylor", "triang", "tukey",
]  # fmt: skip

barthann = borrow("scipy.signal.windows", "barthann")
bartlett = borrow("scipy.signal.windows", "bartlett")
blackman = borrow("scipy.signal.windows", "blackman")
blackmanharris = borrow("scipy.signal.windows", "blackmanharris")
bohman = borrow("scipy.signal.windows", "bohman")
boxcar = borrow("scipy.signal.windows", "boxcar")
chebwin = borrow("scipy.signal.windows", "chebwin")
cosine = borrow("scipy.signal.windows", "cosine")
dpss = borrow("scipy.signal.windows", "dpss")
exponential = borrow("scipy.signal.windows", "exponential")
flattop = borrow("scipy.signal.windows", "flattop")
gaussian = borrow("scipy.signal.windows", "gaussian")
general_cosine = borrow("scipy.signal.windows", "general_cosine")
general_gaussian = borrow("scipy.signal.windows", "general_gaussian")
general_hamming = borrow("scipy.signal.windows", "general_hamming")
get_window = borrow("scipy.signal.windows", "get_window")
hamming = borrow("scipy.signal.windows", "hamming")
hann = borrow("scipy.signal.windows", "hann")
kaiser = borrow("scipy.signal.windows", "kaiser")
kaiser_bessel_derived = borrow("scipy.signal.windows", "kaiser_bessel_derived")
lanczos = borrow("scipy.signal.windows", "lanczos")
nuttall = borrow("scipy.signal.windows", "nuttall")
parzen = borrow("scipy.signal.windows", "parzen")
taylor = borrow("scipy.signal.windows", "taylor")
triang = borrow("scipy.signal.windows", "triang")
tukey = borrow("scipy.signal.windows", "tukey")

present(__name__)
