"""Counterparts of SciPy's modules on traced values; each is loaded on first use.

This module is a page of names; the work is in the modules that it names.
"""

from typing import TYPE_CHECKING

from funcgrad.base.namespaces import present
from funcgrad.base.signatures import share
from funcgrad.scipy.meanings import MEANINGS

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad.scipy import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
    "sparse", "spatial", "special", "stats",
]  # fmt: skip

share(__name__, MEANINGS)
present(__name__)
