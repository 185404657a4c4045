"""Names for annotations.

``Array`` is what transformed functions see: ndarrays, NumPy's scalars and traced values.
``ArrayLike`` is what functions take where they take arrays, ``DTypeLike`` what names a dtype.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from funcgrad.api.arrays import Array
from funcgrad.base.namespaces import present

__all__ = ["Array", "ArrayLike", "DTypeLike", "Shape", "SupportsDType"]


class SupportsDType(Protocol):
    """Objects with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""


Shape = tuple[int, ...]
ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype[Any] | SupportsDType


present(__name__)
