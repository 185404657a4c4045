"""Compiled functions in C's hands: by address (`cfunc`)."""

from funcgrad.base.namespaces import present
from funcgrad.interop.c.calling import CompiledFunction, cfunc

__all__ = ["CompiledFunction", "cfunc"]

present(__name__)
