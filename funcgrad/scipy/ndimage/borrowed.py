"""Shapes of known images: labels, distances, binary morphology, and filters by any function."""

from __future__ import annotations

from funcgrad.numpy.borrowing import borrow

__all__ = [
    "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes",
    "binary_hit_or_miss", "binary_opening", "binary_propagation", "distance_transform_bf",
    "distance_transform_cdt", "distance_transform_edt", "extrema", "find_objects",
    "generate_binary_structure", "generic_filter", "generic_filter1d", "geometric_transform",
    "histogram", "iterate_structure", "label", "labeled_comprehension", "maximum_position",
    "median", "minimum_position", "value_indices", "vectorized_filter", "watershed_ift",
]  # fmt: skip

binary_closing = borrow("scipy.ndimage", "binary_closing")
binary_dilation = borrow("scipy.ndimage", "binary_dilation")
binary_erosion = borrow("scipy.ndimage", "binary_erosion")
binary_fill_holes = borrow("scipy.ndimage", "binary_fill_holes")
binary_hit_or_miss = borrow("scipy.ndimage", "binary_hit_or_miss")
binary_opening = borrow("scipy.ndimage", "binary_opening")
binary_propagation = borrow("scipy.ndimage", "binary_propagation")
distance_transform_bf = borrow("scipy.ndimage", "distance_transform_bf")
distance_transform_cdt = borrow("scipy.ndimage", "distance_transform_cdt")
distance_transform_edt = borrow("scipy.ndimage", "distance_transform_edt")
extrema = borrow("scipy.ndimage", "extrema")
find_objects = borrow("scipy.ndimage", "find_objects")
generate_binary_structure = borrow("scipy.ndimage", "generate_binary_structure")
generic_filter = borrow("scipy.ndimage", "generic_filter")
generic_filter1d = borrow("scipy.ndimage", "generic_filter1d")
geometric_transform = borrow("scipy.ndimage", "geometric_transform")
histogram = borrow("scipy.ndimage", "histogram")
iterate_structure = borrow("scipy.ndimage", "iterate_structure")
label = borrow("scipy.ndimage", "label")
labeled_comprehension = borrow("scipy.ndimage", "labeled_comprehension")
maximum_position = borrow("scipy.ndimage", "maximum_position")
median = borrow("scipy.ndimage", "median")
minimum_position = borrow("scipy.ndimage", "minimum_position")
value_indices = borrow("scipy.ndimage", "value_indices")
vectorized_filter = borrow("scipy.ndimage", "vectorized_filter")
watershed_ift = borrow("scipy.ndimage", "watershed_ift")
