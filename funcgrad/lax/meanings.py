"""Meanings of the parameters that functions of `funcgrad.lax` share, for their docstrings."""

MEANINGS = {
    "aggregate_to_topk": "Accepted for JAX's signature.",
    "allow_negative_indices": "Whether negative starts count from the end, for all or each axis.",
    "array": "An array.",
    "axis": "The axis.",
    "axis_index_groups": "Groups of lanes, as lists of their numbers, all of one length: lanes "
    "meet within their group. By default all are in one.",
    "axis_name": "Name of a mapped axis, or a tuple of names.",
    "dimensions": "Axes, as integers.",
    "index": "Integer scalar, clamped into the axis.",
    "index_dtype": "Integer dtype of the result.",
    "k": "How many.",
    "keepdims": "Whether the axis stays, with length 1.",
    "lhs": "Array.",
    "operand": "Array.",
    "padding": "As in `conv_general_dilated`.",
    "precision": "Accepted for JAX's signature.",
    "preferred_element_type": "Dtype in which products are formed and returned.",
    "recall_target": "Accepted for JAX's signature: all are found.",
    "reduction_dimension": "The axis.",
    "reduction_input_size_override": "Accepted for JAX's signature.",
    "rhs": "The kernel.",
    "start_index": "Integer scalar.",
    "start_indices": "One integer per axis, clamped so that the window lies inside.",
    "window_strides": "Distance of windows.",
    "x": "Pytree of arrays.",
}
