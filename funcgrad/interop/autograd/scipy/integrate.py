"""``autograd.scipy.integrate``: SciPy's names, funcgrad's functions first."""

import scipy.integrate as _theirs

from funcgrad.interop.autograd.adopting import adopt as _adopt
from funcgrad.interop.autograd.adopting import counterpart as _counterpart
from funcgrad.interop.autograd.adopting import rest_of as _rest_of

vars().update(_adopt(_counterpart("integrate"), _theirs))
__getattr__ = _rest_of(_theirs)
