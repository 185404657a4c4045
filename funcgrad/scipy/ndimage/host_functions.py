"""Shapes of known images: labels, distances, binary morphology, and filters by any function."""

from __future__ import annotations

from funcgrad.numpy.host_functions import host_function

__all__ = [
    "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes",
    "binary_hit_or_miss", "binary_opening", "binary_propagation", "distance_transform_bf",
    "distance_transform_cdt", "distance_transform_edt", "extrema", "find_objects",
    "generate_binary_structure", "generic_filter", "generic_filter1d", "geometric_transform",
    "histogram", "iterate_structure", "label", "labeled_comprehension", "maximum_position",
    "median", "minimum_position", "value_indices", "vectorized_filter", "watershed_ift",
]  # fmt: skip

binary_closing = host_function("scipy.ndimage", "binary_closing")
binary_dilation = host_function("scipy.ndimage", "binary_dilation")
binary_erosion = host_function("scipy.ndimage", "binary_erosion")
binary_fill_holes = host_function("scipy.ndimage", "binary_fill_holes")
binary_hit_or_miss = host_function("scipy.ndimage", "binary_hit_or_miss")
binary_opening = host_function("scipy.ndimage", "binary_opening")
binary_propagation = host_function("scipy.ndimage", "binary_propagation")
distance_transform_bf = host_function("scipy.ndimage", "distance_transform_bf")
distance_transform_cdt = host_function("scipy.ndimage", "distance_transform_cdt")
distance_transform_edt = host_function("scipy.ndimage", "distance_transform_edt")
extrema = host_function("scipy.ndimage", "extrema")
find_objects = host_function("scipy.ndimage", "find_objects")
generate_binary_structure = host_function("scipy.ndimage", "generate_binary_structure")
generic_filter = host_function("scipy.ndimage", "generic_filter")
generic_filter1d = host_function("scipy.ndimage", "generic_filter1d")
geometric_transform = host_function("scipy.ndimage", "geometric_transform")
histogram = host_function("scipy.ndimage", "histogram")
iterate_structure = host_function("scipy.ndimage", "iterate_structure")
label = host_function("scipy.ndimage", "label")
labeled_comprehension = host_function("scipy.ndimage", "labeled_comprehension")
maximum_position = host_function("scipy.ndimage", "maximum_position")
median = host_function("scipy.ndimage", "median")
minimum_position = host_function("scipy.ndimage", "minimum_position")
value_indices = host_function("scipy.ndimage", "value_indices")
vectorized_filter = host_function("scipy.ndimage", "vectorized_filter")
watershed_ift = host_function("scipy.ndimage", "watershed_ift")
