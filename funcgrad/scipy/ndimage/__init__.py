"""`scipy.ndimage` on arrays and traced values: filters, splines, morphology, regions.

This package is a page of names; the work is in the modules that it names.
"""

# ruff: noqa: F401
# ruff: noqa: F403

from typing import TYPE_CHECKING, Any

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.ndimage.filters import *
from funcgrad.scipy.ndimage.fourier import *
from funcgrad.scipy.ndimage.interpolation import *
from funcgrad.scipy.ndimage.meanings import MEANINGS
from funcgrad.scipy.ndimage.measurements import *
from funcgrad.scipy.ndimage.ranks import *
from funcgrad.scipy.ndimage.splines import spline_filter, spline_filter1d

if TYPE_CHECKING:  # the names that are added below

    def __getattr__(name: str) -> Any: ...


vars().update(
    host_functions(
        "scipy.ndimage",
        """
        binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss
        binary_opening binary_propagation distance_transform_bf distance_transform_cdt
        distance_transform_edt extrema find_objects generate_binary_structure generic_filter
        generic_filter1d geometric_transform histogram iterate_structure label labeled_comprehension
        maximum_position median minimum_position value_indices vectorized_filter watershed_ift
        """,
    )
)

__all__ = page(vars())

share(__name__, MEANINGS)
present_results(__name__)
