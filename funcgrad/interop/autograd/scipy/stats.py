"""``autograd.scipy.stats``: distributions under SciPy's names, funcgrad's functions first."""

import sys as _sys

import scipy.stats as _theirs

from funcgrad.interop.autograd.adopting import adopt as _adopt
from funcgrad.interop.autograd.adopting import counterpart as _counterpart
from funcgrad.interop.autograd.adopting import rest_of as _rest_of

vars().update(_adopt(_counterpart("stats"), _theirs))
__getattr__ = _rest_of(_theirs)

# autograd has a module for each distribution: `import autograd.scipy.stats.norm as norm`.
for _name in ("beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"):
    _sys.modules[f"{__name__}.{_name}"] = vars()[_name]
