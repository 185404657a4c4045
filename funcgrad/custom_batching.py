"""Batching rules by the user, under the names of ``jax.custom_batching``."""

from funcgrad.api.custom import custom_vmap, sequential_vmap
from funcgrad.base.namespaces import present

__all__ = ["custom_vmap", "sequential_vmap"]

present(__name__)
