"""Images resized and moved, with JAX's names and filters.

This package is a page of names; the work is in the module that it names.
"""

from funcgrad.base.namespaces import present
from funcgrad.image.scaling import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

present(__name__)
