"""Words of `VjpFunction.with_refs` under the names of ``jax.ad``."""

from funcgrad.api.linear_functions import DidntWant, DontWant, GradRef, GradValue
from funcgrad.base.namespaces import present

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]

present(__name__)
