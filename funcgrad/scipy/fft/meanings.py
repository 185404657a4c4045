"""Meanings of the parameters that functions of `funcgrad.scipy.fft` share, for their docstrings."""

MEANINGS = {
    "bias": "Exponent of the power law, a known number.",
    "d": "Distance of samples.",
    "device": '``None`` or ``"cpu"``.',
    "dln": "Logarithm of the ratio of neighbouring distances, a known number.",
    "mu": "Order of the Bessel function, a known number.",
    "offset": "Logarithm of the shift of the output, a known number.",
    "xp": "Accepted for SciPy's signature; there is one library of arrays.",
}
