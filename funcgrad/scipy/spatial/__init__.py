"""`scipy.spatial` on arrays and traced values: distances and rotations.

Each module is loaded on first use.
"""

from typing import TYPE_CHECKING

from funcgrad.numpy.public_functions import present_results

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad.scipy.spatial import distance, transform

__all__ = ["distance", "transform"]

present_results(__name__)
