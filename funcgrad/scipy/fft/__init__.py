"""`scipy.fft` on arrays and traced values: Fourier, Hankel, cosine and sine transforms.

This package is a page of names; the work is in the modules that it names.
"""
# ruff: noqa: F403, F405

from funcgrad.base.signatures import share
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.fft.cosines import *
from funcgrad.scipy.fft.fourier import *
from funcgrad.scipy.fft.meanings import MEANINGS

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "fht", "fhtoffset",
    "get_workers", "hfft", "hfft2", "hfftn", "idct", "idctn", "idst", "idstn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ifht", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn",
    "next_fast_len", "prev_fast_len", "rfft", "rfft2", "rfftfreq", "rfftn", "set_workers",
]  # fmt: skip

share(__name__, MEANINGS)
present_results(__name__)
