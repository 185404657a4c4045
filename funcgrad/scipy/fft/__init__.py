"""`scipy.fft` on arrays and traced values: Fourier, Hankel, cosine and sine transforms.

This package is a page of names; the work is in the modules that it names.
"""

# ruff: noqa: F403

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.fft.cosines import *
from funcgrad.scipy.fft.fourier import *
from funcgrad.scipy.fft.meanings import MEANINGS

__all__ = page(vars())

share(__name__, MEANINGS)
present_results(__name__)
