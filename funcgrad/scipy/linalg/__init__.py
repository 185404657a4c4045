"""`scipy.linalg` on arrays and traced values: factorisations, systems, functions of matrices.

SciPy's names, arguments and defaults; stacks of matrices are allowed everywhere. Options about
memory and about checking values (``overwrite_a``, ``check_finite``) are accepted without effect.

This module is a page of names; the work is in the modules that it names.
"""

# ruff: noqa: F401
# ruff: noqa: F403

from typing import TYPE_CHECKING

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.linalg import LinAlgError
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.linalg.eigen import *
from funcgrad.scipy.linalg.factorizing import *
from funcgrad.scipy.linalg.functions import *
from funcgrad.scipy.linalg.meanings import MEANINGS
from funcgrad.scipy.linalg.solving import *
from funcgrad.scipy.linalg.spaces import *
from funcgrad.scipy.linalg.structured import *

if TYPE_CHECKING:
    from scipy.linalg import LinAlgWarning

__all__ = page(vars(), "LinAlgError", "LinAlgWarning")

share(__name__, MEANINGS)
present_results(__name__, fallback="scipy.linalg")
