"""``autograd.builtins``: containers are Python's own, and traced arrays count as arrays."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from funcgrad.core.trace import Tracer

__all__ = ["dict", "isinstance", "list", "tuple", "type"]

tuple = builtins.tuple
list = builtins.list
dict = builtins.dict


def type(x: Any) -> Any:
    """The class of a value; that of the value behind a traced one.

    Args:
        x: Anything.

    Example:
        >>> from funcgrad.interop.autograd import grad
        >>> from funcgrad.interop.autograd.builtins import type
        >>> def f(x):
        ...     print(type(x).__name__)
        ...     return x ** 2
        >>> float(grad(f)(3.0))
        float64
        6.0
    """
    if not builtins.isinstance(x, Tracer):
        return builtins.type(x)
    return np.ndarray if x.ndim else x.dtype.type


def isinstance(x: Any, A: Any) -> bool:
    """``isinstance`` of a value, or of the value behind a traced one.

    Args:
        x: Anything.
        A: A class, or a tuple of classes.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd.builtins import isinstance
        >>> isinstance(np.ones(2), np.ndarray)
        True
    """
    return builtins.isinstance(x, A) or issubclass(type(x), A)
