"""Meanings of the parameters that functions of `funcgrad.scipy.fft` share, for their docstrings."""

MEANINGS = {
    "axes": "All by default, or as many as ``s``.",
    "axis": "The axis that is transformed.",
    "bias": "Exponent of the power law, a known number.",
    "d": "Distance of samples.",
    "device": '``None`` or ``"cpu"``.',
    "dln": "Logarithm of the ratio of neighbouring distances, a known number.",
    "mu": "Order of the Bessel function, a known number.",
    "n": "Length; longer lines are cut, shorter ones get zeros.",
    "norm": '``"backward"``, ``"ortho"`` or ``"forward"``.',
    "offset": "Logarithm of the shift of the output, a known number.",
    "orthogonalize": (
        'Whether the matrix is orthogonal up to a factor; by default where ``norm`` is ``"ortho"``.'
    ),
    "overwrite_x": "Accepted for SciPy's signature.",
    "s": "Lengths, along the axes.",
    "type": "1, 2, 3 or 4.",
    "workers": "Accepted for SciPy's signature.",
    "x": "Array; of a complex one, real and imaginary parts are transformed.",
    "xp": "Accepted for SciPy's signature; there is one library of arrays.",
}
