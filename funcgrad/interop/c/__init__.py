"""Compiled functions in C's hands: by address (`cfunc`)."""

from funcgrad.interop.c.calling import CompiledFunction, cfunc
from funcgrad.namespaces import present

__all__ = ["CompiledFunction", "cfunc"]

present(__name__)
