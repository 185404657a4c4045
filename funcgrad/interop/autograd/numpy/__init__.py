"""``autograd.numpy``: NumPy's names, those of funcgrad first."""

import numpy as _numpy

import funcgrad.numpy as _ours
from funcgrad.interop.autograd.adopting import adopt as _adopt
from funcgrad.interop.autograd.adopting import rest_of as _rest_of
from funcgrad.interop.autograd.numpy import fft as fft
from funcgrad.interop.autograd.numpy import linalg as linalg
from funcgrad.interop.autograd.numpy import numpy_boxes as numpy_boxes
from funcgrad.interop.autograd.numpy import numpy_jvps as numpy_jvps
from funcgrad.interop.autograd.numpy import numpy_vjps as numpy_vjps
from funcgrad.interop.autograd.numpy import numpy_vspaces as numpy_vspaces
from funcgrad.interop.autograd.numpy import random as random
from funcgrad.interop.autograd.numpy.numpy_wrapper import make_diagonal as make_diagonal
from funcgrad.interop.autograd.numpy.numpy_wrapper import where as where

vars().update(
    {k: v for k, v in _adopt(_ours, _numpy).items() if k not in ("fft", "linalg", "where")}
)
_original_where = where
"""Under this name in autograd, what `where` was before it was wrapped."""
__version__ = _numpy.__version__
__getattr__ = _rest_of(_numpy)
