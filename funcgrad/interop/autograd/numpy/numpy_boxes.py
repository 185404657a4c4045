"""``autograd.numpy.numpy_boxes``: the class of traced arrays, for ``isinstance``."""

from funcgrad.interop.autograd.boxes import Box

__all__ = ["ArrayBox"]


class ArrayBox(Box):
    """The class of traced arrays, and of what stands for one: a part by a mask, a copy."""
