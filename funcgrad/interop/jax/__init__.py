"""Unmodified programs for JAX on funcgrad: a package that answers to the name ``jax``.

``python -m funcgrad.interop.jax script.py ...`` runs a program so. `install` makes a process
ready for it, as long as JAX itself was not imported there, and `uninstall` is the way back.
"""

from funcgrad.base.namespaces import present
from funcgrad.interop.jax.installing import install, uninstall

__all__ = ["install", "uninstall"]

present(__name__)
