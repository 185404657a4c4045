"""Counterparts of SciPy's modules on traced values.

This module is a page of names; the work is in the modules that it names.
"""

from funcgrad.scipy import linalg, signal, special

__all__ = ["linalg", "signal", "special"]
