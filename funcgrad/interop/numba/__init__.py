"""Numba's functions under funcgrad's transformations, and funcgrad's in Numba, SciPy and C.

`traceable` gives the function of traced values that a function decorated with ``numba.njit`` was
made of, and changes nothing of Numba's. `install` lets Numba's functions take traced values
themselves, in the whole process, until `uninstall`. `cfunc`, of `interop.c`, goes the
other way.
"""

from funcgrad.base.namespaces import present
from funcgrad.interop.c.calling import CompiledFunction, cfunc
from funcgrad.interop.numba.installing import install, uninstall
from funcgrad.interop.numba.tracing import traceable

__all__ = ["CompiledFunction", "cfunc", "install", "traceable", "uninstall"]

present(__name__)
