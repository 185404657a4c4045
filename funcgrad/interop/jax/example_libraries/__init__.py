"""The libraries of ``jax.example_libraries``, which only programs for JAX need.

New programs use `funcgrad.optim` and `funcgrad.nn`. Functions have the arguments of the originals.
"""

from funcgrad.base.namespaces import present
from funcgrad.interop.jax.example_libraries import optimizers, stax

__all__ = ["optimizers", "stax"]

present(__name__)
