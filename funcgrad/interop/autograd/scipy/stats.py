"""``autograd.scipy.stats``: distributions under SciPy's names, funcgrad's functions first."""

import sys as _sys
from typing import Any as _Any

import scipy.stats as _theirs

from funcgrad.interop.autograd.adopting import adopt as _adopt
from funcgrad.interop.autograd.adopting import counterpart as _counterpart
from funcgrad.interop.autograd.adopting import rest_of as _rest_of
from funcgrad.interop.autograd.extend import primitive as _primitive


class _Family:
    """A distribution of funcgrad's that draws samples by SciPy, of concrete parameters."""

    def __init__(self, ours: _Any, theirs: _Any) -> None:
        self._ours = ours
        self._theirs = theirs
        self.rvs = _primitive(theirs.rvs)

    def __call__(self, *args: _Any, **kwargs: _Any) -> _Any:
        return self._ours(*args, **kwargs)

    def __getattr__(self, name: str) -> _Any:
        return getattr(self._ours, name)

    def __repr__(self) -> str:
        return repr(self._ours)


for _name, _found in _adopt(_counterpart("stats"), _theirs).items():
    _has_rvs = hasattr(_found, "rvs") and _found is not getattr(_theirs, _name)
    vars()[_name] = _Family(_found, getattr(_theirs, _name)) if _has_rvs else _found
__getattr__ = _rest_of(_theirs)

# autograd has a module for each distribution: `import autograd.scipy.stats.norm as norm`.
for _name in ("beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"):
    _sys.modules[f"{__name__}.{_name}"] = vars()[_name]
