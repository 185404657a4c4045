"""How a module of autograd's gets its names: ours where there are any, else the original's.

What funcgrad has no function of its own for is NumPy's or SciPy's itself: it takes concrete arrays,
and on traced ones it dispatches to us or says that there is no rule.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from funcgrad import scipy


def adopt(ours: ModuleType | None, theirs: ModuleType) -> dict[str, Any]:
    """The public names of ``ours``, and the functions, types and constants of ``theirs``.

    Args:
        ours: The module of funcgrad whose names have priority, if there is one.
        theirs: The module of NumPy or SciPy.
    """
    public = [name for name in theirs.__all__ if not name.startswith("_")]
    members = {name: getattr(theirs, name) for name in public}
    found = {k: v for k, v in members.items() if not isinstance(v, ModuleType)}
    if ours is None:
        return found
    # Ufuncs dispatch to ours by themselves, and have their methods and `out`. Classes are compared
    # with those of values: `type(x) is np.ndarray`, `x.dtype.type is np.float32`. But `np.int64(x)`
    # takes traced x, as in autograd.
    kept = {name for name, value in found.items() if _is_the_originals(value)}
    # Classes of SciPy are there as far as its release has them.
    named = [name for name in ours.__all__ if name not in kept and hasattr(ours, name)]
    return found | {name: getattr(ours, name) for name in named}


def _is_the_originals(value: Any) -> bool:
    is_kind = isinstance(value, type) and not issubclass(value, np.integer)
    return is_kind or isinstance(value, np.ufunc)


def counterpart(name: str) -> ModuleType | None:
    """The module of `funcgrad.scipy` of a name, if there is one.

    Args: name: Such as ``special``.
    """
    return getattr(scipy, name) if name in scipy.__all__ else None


def rest_of(theirs: ModuleType) -> Callable[[str], Any]:
    """``__getattr__`` of a module: what was not adopted is the original's.

    Args: theirs: The module of NumPy or SciPy.
    """

    def __getattr__(name: str) -> Any:
        return getattr(theirs, name)

    return __getattr__
