"""Checks in traced and compiled functions, where JAX keeps them: see `funcgrad.checkify`."""

# ruff: noqa: F403
from funcgrad.base.namespaces import present
from funcgrad.checkify import *
from funcgrad.checkify import __all__ as __all__

present(__name__)
