"""Counterparts of SciPy's modules on traced values; each is loaded on first use.

This module is a page of names; the work is in the modules that it names.
"""

from typing import TYPE_CHECKING

from funcgrad.namespaces import present

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad.scipy import integrate, interpolate, linalg, optimize, signal, sparse, special

__all__ = ["integrate", "interpolate", "linalg", "optimize", "signal", "sparse", "special"]

present(__name__)
