"""Printing and calling from within programs, under JAX's names of `jax.debug`.

This module is a page of names; the work is in `funcgrad.api.debugging` and `funcgrad.api.logged`.
"""

from funcgrad.api.debugging import debug_callback as callback
from funcgrad.api.debugging import debug_print as print
from funcgrad.api.logged import debug_log as log
from funcgrad.base.namespaces import present

__all__ = ["callback", "log", "print"]

present(__name__)
