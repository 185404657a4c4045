"""Compiled functions in C's hands: by address (`cfunc`), and as a file of C (`export`)."""

from funcgrad.base.namespaces import present
from funcgrad.interop.c.calling import CompiledFunction, cfunc
from funcgrad.interop.c.files import Exported, export

__all__ = ["CompiledFunction", "Exported", "cfunc", "export"]

present(__name__)
