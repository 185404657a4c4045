"""Counterparts of SciPy's modules on traced values; each is loaded on first use.

This module is a page of names; the work is in the modules that it names.
"""

from typing import TYPE_CHECKING

from funcgrad.base.namespaces import present

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

present(__name__)
