"""NumPy's functions on arrays, numbers and traced values.

On concrete arrays they give NumPy's results; inside of transformations they are what NumPy's own
functions are redirected to. Importing this package gives traced arrays their operators, methods
and NumPy's protocols (`funcgrad.numpy.dispatch`). This module is a page of names.
"""
# ruff: noqa: F401, F403, I001 -- every import is a re-export, some shadow builtins

import sys as _sys
from types import ModuleType as _Module
from typing import Any as _Any

import numpy as _np
from numpy import (
    complexfloating, dtype, e, euler_gamma, floating, generic, inexact, inf, integer, nan, newaxis,
    number, pi, signedinteger, unsignedinteger,
)  # fmt: skip
from numpy.exceptions import ComplexWarning

from funcgrad.numpy.scalars import (
    bool_, bool_ as bool, complex64, complex128, complex128 as complex_, float32, float64,
    float64 as float_, int8, int16, int32, int64, int64 as int_, int64 as intp, uint8, uint16,
    uint32, uint64, uint64 as uint,
)  # fmt: skip

from funcgrad.numpy.elementwise import (
    abs, absolute, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, bitwise_and,
    bitwise_invert, bitwise_not, bitwise_or, bitwise_xor, cbrt, ceil, conj, conjugate, copysign,
    cos, cosh, deg2rad, degrees, divide, equal, exp, exp2, expm1, fabs, float_power, floor,
    floor_divide, fmax, fmin, fmod, greater, greater_equal, heaviside, hypot, invert, isfinite,
    isinf, isnan, left_shift, less, less_equal, log, log10, log1p, log2, logaddexp, logaddexp2,
    logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply,
    negative, nextafter, not_equal, positive, power, rad2deg, radians, reciprocal, remainder,
    right_shift, rint, sign, signbit, sin, sinh, sqrt, square, subtract, tan, tanh, true_divide,
    trunc,
)  # fmt: skip
from funcgrad.numpy.shaping import (
    append, arange, array, array_split, asarray, astype, atleast_1d, atleast_2d, atleast_3d,
    broadcast_arrays, broadcast_to, column_stack, concat, concatenate, dstack, empty,
    empty_like, expand_dims, eye, flip, fliplr, flipud, full, full_like, hsplit, hstack,
    identity, linspace, matrix_transpose, meshgrid, moveaxis, ones, ones_like, permute_dims,
    ravel, reshape, roll, rollaxis, rot90, split, squeeze, stack, swapaxes, tile, transpose, tri,
    tril, triu, unstack, vsplit, vstack, zeros, zeros_like,
)  # fmt: skip
from funcgrad.numpy.inspecting import (
    allclose, angle, array_equal, array_equiv, broadcast_shapes, can_cast, copy, imag, isclose,
    iscomplex, iscomplexobj, isreal, isrealobj, isscalar, issubdtype, ndarray, ndim, promote_types,
    real, result_type, shape, size,
)  # fmt: skip
from funcgrad.numpy.elementwise import (
    arccos as acos, arccosh as acosh, arcsin as asin, arcsinh as asinh, arctan as atan,
    arctan2 as atan2, arctanh as atanh, left_shift as bitwise_left_shift, power as pow,
    right_shift as bitwise_right_shift,
)  # fmt: skip
from funcgrad.numpy.indexing import at
from funcgrad.numpy.dispatch import divmod, install as _install, is_function as _is_function, modf
from funcgrad.numpy.reducing import *
from funcgrad.numpy.diagonals import *
from funcgrad.numpy.selecting import *
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
from funcgrad.numpy.public_functions import public as _public, publish as _publish
from funcgrad.numpy import fft, linalg, shaping as _shaping


def _table() -> dict[_Any, _Any]:
    """NumPy's function -> ours, for every function here that has the name of one of NumPy's."""
    here = _sys.modules[__name__]
    table: dict[_Any, _Any] = {
        _np.lib.stride_tricks.sliding_window_view: _shaping.sliding_window_view
    }
    for module, original in (
        (here, _np),
        (fft, _np.fft),
        (linalg, _np.linalg),
    ):
        for name, function in vars(module).items():
            known = getattr(original, name, None)
            if _is_function(known) and _is_function(function) and known is not function:
                table[known] = function
    return table


_functions = _table()
_publics, value_functions = _publish(_sys.modules[__name__])
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
