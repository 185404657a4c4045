"""Meanings of parameters that functions of `funcgrad.scipy.spatial` share."""

MEANINGS = {
    "metric": (
        "Name of a function of this module, or any function of two vectors, which is called for "
        "each pair."
    ),
    "out": "None.",
    "u": "Vector.",
    "v": "Vector.",
    "w": "Weights of elements, 1 by default.",
}
