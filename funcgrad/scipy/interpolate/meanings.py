"""Meanings of parameters that functions of `funcgrad.scipy.interpolate` share."""

MEANINGS = {
    "axis": "Axis of the values.",
    "der": "Order of the derivative, or several.",
    "extrapolate": (
        'Whether the outermost polynomials hold beyond the ends, ``"periodic"``, or False for '
        "nan there."
    ),
    "k": "Degree.",
    "rng": "Accepted for SciPy's signature.",
    "x": "Places, in ascending order.",
    "xi": "Places of values, all different.",
    "y": "Values along an axis.",
    "yi": "Values along an axis.",
}
