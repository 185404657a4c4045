"""Meanings of parameters that functions of `funcgrad.scipy.integrate` share."""

MEANINGS = {
    "a": "Begin.",
    "axis": "Axis of ``y`` that is integrated along.",
    "b": "End.",
    "dx": "The distance.",
    "epsabs": "Absolute tolerance.",
    "epsrel": "Relative tolerance.",
    "gfun": "Begin in ``y``: a number or a function of ``x``.",
    "hfun": "End in ``y``, likewise.",
    "points": "Where the integrand has breaks, known numbers between finite ends.",
    "x": (
        "Where samples are taken: a vector, or an array like ``y``; by default at equal distances."
    ),
    "y": "Samples.",
}
