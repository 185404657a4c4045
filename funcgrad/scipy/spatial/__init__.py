"""`scipy.spatial` on arrays and traced values: distances and rotations.

Each module is loaded on first use.
"""

from typing import TYPE_CHECKING

from funcgrad.base.signatures import share
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.spatial.meanings import MEANINGS

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad.scipy.spatial import distance, transform

__all__ = ["distance", "transform"]

share(__name__, MEANINGS)
present_results(__name__)
