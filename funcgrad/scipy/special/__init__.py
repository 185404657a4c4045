"""`scipy.special` on arrays, numbers and traced values: SciPy's names, arguments and promotion.

A table of ufuncs, whose rows are public as they stand; functions composed of them, and functions
that make constants, have files of their own. The primitives, with the derivatives, are in
`funcgrad.primitives.special` and its neighbours.
"""

# ruff: noqa: F401

# ruff: noqa: F403

from typing import TYPE_CHECKING, Any

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.composed import sinc
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.exponentials import log_softmax, logsumexp, softmax
from funcgrad.scipy.special.combinatorics import *
from funcgrad.scipy.special.composed import *
from funcgrad.scipy.special.constants import *
from funcgrad.scipy.special.harmonics import *
from funcgrad.scipy.special.meanings import MEANINGS
from funcgrad.scipy.special.orders import *
from funcgrad.scipy.special.polynomials import *
from funcgrad.scipy.special.ufuncs import *

if TYPE_CHECKING:  # names of tables, and of SciPy's

    def __getattr__(name: str) -> Any: ...


__all__ = page(vars(), "SpecialFunctionError", "SpecialFunctionWarning")

share(__name__, MEANINGS)
present_results(__name__, fallback="scipy.special")
