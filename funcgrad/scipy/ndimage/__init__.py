"""`scipy.ndimage` on arrays and traced values: filters, splines, morphology, regions.

This package is a page of names; the work is in the modules that it names.
"""
# ruff: noqa: F403, F405

from funcgrad.base.signatures import share
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.ndimage.filters import *
from funcgrad.scipy.ndimage.fourier import *
from funcgrad.scipy.ndimage.host_functions import *
from funcgrad.scipy.ndimage.interpolation import *
from funcgrad.scipy.ndimage.meanings import MEANINGS
from funcgrad.scipy.ndimage.measurements import *
from funcgrad.scipy.ndimage.ranks import *
from funcgrad.scipy.ndimage.splines import spline_filter, spline_filter1d

__all__ = [
    "affine_transform", "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes",
    "binary_hit_or_miss", "binary_opening", "binary_propagation", "black_tophat", "center_of_mass",
    "convolve", "convolve1d", "correlate", "correlate1d", "distance_transform_bf",
    "distance_transform_cdt", "distance_transform_edt", "extrema", "find_objects",
    "fourier_ellipsoid", "fourier_gaussian", "fourier_shift", "fourier_uniform", "gaussian_filter",
    "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace",
    "generate_binary_structure", "generic_filter", "generic_filter1d", "generic_gradient_magnitude",
    "generic_laplace", "geometric_transform", "grey_closing", "grey_dilation", "grey_erosion",
    "grey_opening", "histogram", "iterate_structure", "label", "labeled_comprehension", "laplace",
    "map_coordinates", "maximum", "maximum_filter", "maximum_filter1d", "maximum_position", "mean",
    "median", "median_filter", "minimum", "minimum_filter", "minimum_filter1d", "minimum_position",
    "morphological_gradient", "morphological_laplace", "percentile_filter", "prewitt",
    "rank_filter", "rotate", "shift", "sobel", "spline_filter", "spline_filter1d",
    "standard_deviation", "sum", "sum_labels", "uniform_filter", "uniform_filter1d",
    "value_indices", "variance", "vectorized_filter", "watershed_ift", "white_tophat", "zoom",
]  # fmt: skip

share(__name__, MEANINGS)
present_results(__name__)
