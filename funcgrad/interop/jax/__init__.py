"""Unmodified programs for JAX on funcgrad: a package that answers to the name ``jax``.

``python -m funcgrad.interop.jax script.py ...`` runs a program so. `install` makes a process
ready for it, as long as JAX itself was not imported there, and `uninstall` is the way back.
"""

from typing import TYPE_CHECKING

from funcgrad.base.namespaces import present
from funcgrad.interop.jax.installing import install, uninstall

if TYPE_CHECKING:  # loaded on first use
    from funcgrad.interop.jax import example_libraries

__all__ = ["example_libraries", "install", "uninstall"]

present(__name__)
