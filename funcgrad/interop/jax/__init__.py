"""Unmodified programs for JAX on funcgrad: a package that answers to the name ``jax``.

``python -m funcgrad.interop.jax script.py ...`` runs a program so, and `install` makes a process
ready for it, as long as JAX itself was not imported there.
"""

from funcgrad.interop.jax.installing import install
from funcgrad.namespaces import present

__all__ = ["install"]

present(__name__)
