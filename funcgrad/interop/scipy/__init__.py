"""SciPy's own functions under funcgrad's transformations.

SciPy's ufuncs take traced values anyway, and `funcgrad.scipy` has counterparts of most other names.
`install` lets SciPy's functions, classes and distributions that have one take traced values
themselves, in the whole process, until `uninstall`.
"""

from funcgrad.base.namespaces import present
from funcgrad.interop.scipy.installing import install, uninstall

__all__ = ["install", "uninstall"]

present(__name__)
