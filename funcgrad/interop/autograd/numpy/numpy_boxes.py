"""``autograd.numpy.numpy_boxes``: the class of traced arrays, for ``isinstance``."""

from funcgrad.core.trace import Tracer as ArrayBox

__all__ = ["ArrayBox"]
