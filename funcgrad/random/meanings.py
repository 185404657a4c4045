"""Meanings of the parameters that samplers share, for their docstrings."""

MEANINGS = {
    "a": "Shape parameter, positive, a scalar or an array that broadcasts to ``shape``.",
    "df": "Degrees of freedom, positive, a scalar or an array that broadcasts to ``shape``.",
    "dtype": "float64 by default, or float32.",
    "impl": "The generator, as of `key`.",
    "key": "A key.",
    "mode": "As in `gumbel`.",
    "out_sharding": "Must be None.",
    "p": "Probability, a floating scalar or an array that broadcasts to ``shape``.",
    "scale": "A scalar or an array that broadcasts to ``shape``.",
    "shape": "Shape of the result.",
}
