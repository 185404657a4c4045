"""NumPy's functions on arrays, numbers and traced values.

On concrete arrays they give NumPy's results; inside of transformations they are what NumPy's own
functions are redirected to. Importing this package gives traced arrays their operators, methods
and NumPy's protocols (`funcgrad.numpy.dispatch`). This module is a page of names.
"""
# ruff: noqa: F401, F403, F405, I001 -- every import is a re-export, some shadow builtins

import sys as _sys
from types import ModuleType as _Module
from typing import Any as _Any

import numpy as _np

from funcgrad.base.signatures import share as _share
from funcgrad.numpy.meanings import MEANINGS as _MEANINGS
from funcgrad.numpy.scalars import *
from funcgrad.numpy.elementwise import *
from funcgrad.numpy.shaping import *
from funcgrad.numpy.creating import *
from funcgrad.numpy.joining import *
from funcgrad.numpy.rearranging import *
from funcgrad.numpy.inspecting import *
from funcgrad.numpy.indexing import at as at
from funcgrad.numpy.dispatch import (
    divmod as divmod, install as _install, is_function as _is_function, modf as modf,
)  # fmt: skip
from funcgrad.numpy.reducing import *
from funcgrad.numpy.skipping_nan import *
from funcgrad.numpy.moments import *
from funcgrad.numpy.quantiles import *
from funcgrad.numpy.running import *
from funcgrad.numpy.diagonals import *
from funcgrad.numpy.selecting import *
from funcgrad.numpy.taking import *
from funcgrad.numpy.composed import *
from funcgrad.numpy.neighbouring import *
from funcgrad.numpy.sliding import *
from funcgrad.numpy.binning import *
from funcgrad.numpy.contracting import *
from funcgrad.numpy.ordering import *
from funcgrad.numpy.mapping import *
from funcgrad.numpy.padding import *
from funcgrad.numpy.polynomials import *
from funcgrad.numpy.binary import *
from funcgrad.numpy.sets import *
from funcgrad.numpy.placing import *
from funcgrad.numpy.reexported import *
from funcgrad.numpy.ufuncs import *
from funcgrad.numpy.standard import *
from funcgrad.numpy.standard import __array_namespace_info__
from funcgrad.numpy.assigning import install as _install_writable
from funcgrad.numpy.public_functions import public as _public, wrap_module as _wrap_module
from funcgrad.numpy import fft as fft, linalg as linalg, rearranging as _rearranging

_share(__name__, _MEANINGS)

acos = arccos
acosh = arccosh
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
bool = bool_
complex_ = complex128
float_ = float64
int_ = int64
intp = int64
pow = power
uint = uint64


def _table() -> dict[_Any, _Any]:
    """NumPy's function -> ours, for every function here that has the name of one of NumPy's."""
    here = _sys.modules[__name__]
    table: dict[_Any, _Any] = {
        _np.lib.stride_tricks.sliding_window_view: _rearranging.sliding_window_view
    }
    for module, original in ((here, _np), (fft, _np.fft), (linalg, _np.linalg)):
        for name, function in vars(module).items():
            known = getattr(original, name, None)
            if _is_function(known) and _is_function(function) and known is not function:
                table[known] = function
    return table


_functions = _table()
_publics, value_functions = _wrap_module(_sys.modules[__name__])
_of_numpy = {
    known: _publics.get(function) or _public(function) for known, function in _functions.items()
}
_install(_functions, _of_numpy, _sys.modules[__name__])
_install_writable(vars(), _of_numpy, _sys.modules[__name__])

__array_api_version__ = "2024.12"

__all__ = [
    name
    for name, value in vars().copy().items()
    if not name.startswith("_")
    and name != "value_functions"
    and (value in (fft, linalg) if isinstance(value, _Module) else True)
]
