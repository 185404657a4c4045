"""Numba's functions under funcgrad's transformations, and funcgrad's in Numba, SciPy and C.

A function decorated with ``numba.njit`` that is called with traced values runs as the Python
function it was made of: nothing has to be written for that, and this module is loaded when it first
happens. `traceable` gives that function by itself; `cfunc` goes the other way.
"""

from funcgrad.interop.numba.calling import CompiledFunction, cfunc
from funcgrad.interop.numba.tracing import answer as answer
from funcgrad.interop.numba.tracing import traceable
from funcgrad.namespaces import present

__all__ = ["CompiledFunction", "cfunc", "traceable"]

present(__name__)
