"""Shapes of known images: labels, distances, binary morphology, and filters by any function."""

from __future__ import annotations

from funcgrad.numpy.host_functions import host_functions

__all__ = [
    "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes",
    "binary_hit_or_miss", "binary_opening", "binary_propagation", "distance_transform_bf",
    "distance_transform_cdt", "distance_transform_edt", "extrema", "find_objects",
    "generate_binary_structure", "generic_filter", "generic_filter1d", "geometric_transform",
    "histogram", "iterate_structure", "label", "labeled_comprehension", "maximum_position",
    "median", "minimum_position", "value_indices", "vectorized_filter", "watershed_ift",
]  # fmt: skip

(
    binary_closing, binary_dilation, binary_erosion, binary_fill_holes, binary_hit_or_miss,
    binary_opening, binary_propagation, distance_transform_bf, distance_transform_cdt,
    distance_transform_edt, extrema, find_objects, generate_binary_structure, generic_filter,
    generic_filter1d, geometric_transform, histogram, iterate_structure, label,
    labeled_comprehension, maximum_position, median, minimum_position, value_indices,
    vectorized_filter, watershed_ift,
) = host_functions("scipy.ndimage", *__all__)  # fmt: skip
