"""Meanings of parameters that functions of `funcgrad.scipy.optimize` share."""

MEANINGS = {
    "disp": "Whether failure to converge is an error, where that is known.",
    "fprime": "Accepted for SciPy's signature: the derivative is that of the function.",
    "fprime2": "Accepted for SciPy's signature.",
    "maxiter": "The most iterations.",
    "rtol": "Relative tolerance.",
    "x0": "Where to begin.",
    "x1": "Accepted for SciPy's signature.",
    "xtol": "Tolerance of the result.",
}
