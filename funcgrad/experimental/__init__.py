"""What JAX calls experimental and programs rely on; each module is loaded on first use."""

from typing import TYPE_CHECKING

from funcgrad.namespaces import present

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad.experimental import ode

__all__ = ["ode"]

present(__name__)
