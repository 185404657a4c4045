"""Counterparts of SciPy's modules on traced values.

This module is a page of names; the work is in `funcgrad.scipy.special`.
"""

from funcgrad.scipy import special

__all__ = ["special"]
