"""The stages of compilation under the names of ``jax.stages``, for annotations.

``jit(f)`` is a `Wrapped`, its ``trace(x)`` a `Traced`, ``lower()`` of that a `Lowered`, and
``compile()`` of that a `Compiled`.
"""

from funcgrad.api.compilation import Compiled, Lowered, Traced
from funcgrad.api.compilation import Jitted as Wrapped
from funcgrad.base.namespaces import present

__all__ = ["Compiled", "Lowered", "Traced", "Wrapped"]

present(__name__)
