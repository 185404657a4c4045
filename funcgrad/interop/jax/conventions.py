"""Functions of ``jax.numpy`` whose arguments or results differ from those of NumPy's."""

from __future__ import annotations

import functools
from typing import Any

from funcgrad import numpy
from funcgrad.interop.jax.arrays import Adopted, Array

Array.searchsorted = Adopted(numpy.searchsorted)


@Adopted
@functools.wraps(numpy.bincount)
def bincount(x: Any, *args: Any, **options: Any) -> Any:
    """`numpy.bincount`, which counts negative numbers as 0."""
    given = numpy.asarray(x)
    clipped = numpy.maximum(given, 0) if given.dtype.kind == "i" else given
    return numpy.bincount(clipped, *args, **options)
