"""Meanings of the parameters that samplers share, for their docstrings."""

MEANINGS = {
    "dtype": "float64 by default, or float32.",
    "key": "A key.",
    "out_sharding": "Must be None.",
    "shape": "Shape of the result.",
    "a": "Shape parameter, positive, a scalar or an array that broadcasts to ``shape``.",
    "scale": "A scalar or an array that broadcasts to ``shape``.",
}
