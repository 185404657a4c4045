"""Checkpointing under the names of ``jax.ad_checkpoint``."""

from funcgrad import checkpoint_policies
from funcgrad.api.checkpointing import (
    checkpoint,
    checkpoint_name,
    print_saved_residuals,
    remat,
    saved_residuals,
)
from funcgrad.base.namespaces import present

__all__ = [
    "checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat",
    "saved_residuals",
]  # fmt: skip

present(__name__)
