"""``autograd.numpy.numpy_vspaces``: the vector spaces of arrays."""

from funcgrad.interop.autograd.vector_spaces import VSpace

__all__ = ["ArrayVSpace", "ComplexArrayVSpace"]

ArrayVSpace = ComplexArrayVSpace = VSpace
