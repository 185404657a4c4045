"""``autograd.numpy.linalg``: ``numpy.linalg``, funcgrad's functions first."""

import numpy.linalg as _theirs

import funcgrad.numpy.linalg as _ours
from funcgrad.interop.autograd.adopting import adopt as _adopt
from funcgrad.interop.autograd.adopting import rest_of as _rest_of

vars().update(_adopt(_ours, _theirs))
_dot = _ours.matmul  # a name of autograd's that programs have taken from here
T = _ours.matrix_transpose
__getattr__ = _rest_of(_theirs)
