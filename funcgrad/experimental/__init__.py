"""The experimental parts of JAX that funcgrad has, under the same names.

Each part is loaded on first use. This module is a page of names; the work is in the modules that
it names.
"""

from typing import TYPE_CHECKING

from funcgrad.base.namespaces import present

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad.experimental import checkify, jet, ode

__all__ = ["checkify", "jet", "ode"]

present(__name__)
