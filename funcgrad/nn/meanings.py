"""Meanings of the parameters that functions of `funcgrad.nn` share, for their docstrings."""

MEANINGS = {
    "bias": "Whether there is a bias.",
    "dtype": "Dtype of the parameters.",
    "epsilon": "Added to the variance.",
    "kernel_init": "Initial kernel.",
    "key": "A key of random numbers.",
    "out_sharding": "None: there is one device.",
    "predictions": "Array of real numbers.",
    "recurrent_init": "Initial recurrent kernel of every gate, a square matrix.",
    "scale": "Whether there is a scale.",
    "shape": "Lengths of the axes.",
    "targets": "Array that broadcasts to the shape of the predictions, by default zeros.",
    "x": "An array or a number, floating. The function is taken of each element.",
}
