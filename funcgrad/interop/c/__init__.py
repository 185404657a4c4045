"""Compiled functions elsewhere: by address (`cfunc`), as a file of C or Python (`export`)."""

from funcgrad.base.namespaces import present
from funcgrad.interop.c.calling import CompiledFunction, cfunc
from funcgrad.interop.c.files import Exported, export
from funcgrad.interop.c.programs import ExportedModule

__all__ = ["CompiledFunction", "Exported", "ExportedModule", "cfunc", "export"]

present(__name__)
