"""``autograd.numpy.random``: NumPy's own generators, whose numbers are constants."""

import numpy.random as _theirs

from funcgrad.interop.autograd.adopting import adopt as _adopt
from funcgrad.interop.autograd.adopting import rest_of as _rest_of

vars().update(_adopt(None, _theirs))
__getattr__ = _rest_of(_theirs)
