"""`scipy.cluster` on arrays and traced values: vector quantisation."""

from typing import TYPE_CHECKING

from funcgrad.numpy.public_functions import present_results

if TYPE_CHECKING:  # it is loaded on first use
    from funcgrad.scipy.cluster import vq

__all__ = ["vq"]

present_results(__name__)
