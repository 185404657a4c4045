"""Counterparts of SciPy's modules on traced values; each is loaded on first use.

This module is a page of names; the work is in the modules that it names.
"""

from typing import TYPE_CHECKING

from funcgrad.namespaces import present

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad.scipy import linalg, signal, special, stats
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
    )

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
]

__all__ = ["linalg", "signal", "special", "stats"]

present(__name__)
