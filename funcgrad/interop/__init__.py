"""Neighbours of funcgrad: their programs under it, and its functions in their hands.

Each part is loaded on first use. This module is a page of names; the work is in the modules that
it names.
"""

from typing import TYPE_CHECKING

from funcgrad.base.namespaces import present

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad.interop import autograd, c, jax, numba, nutpie, samplers, scipy

__all__ = ["autograd", "c", "jax", "numba", "nutpie", "samplers", "scipy"]

present(__name__)
