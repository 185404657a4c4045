"""Printing and calling from within programs, under JAX's names of `jax.debug`.

This module is a page of names; the work is in `funcgrad.api.debugging`.
"""

from funcgrad.api.debugging import debug_callback as callback
from funcgrad.api.debugging import debug_print as print
from funcgrad.namespaces import present

__all__ = ["callback", "print"]

present(__name__)
