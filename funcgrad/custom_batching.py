"""Batching rules by the user, under the names of ``jax.custom_batching``."""

from funcgrad.api.custom import custom_vmap

__all__ = ["custom_vmap"]
