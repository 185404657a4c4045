"""Meanings of the parameters that functions of samples, and methods of distributions, share."""

MEANINGS = {
    "a": "Samples.",
    "alternative": '``"two-sided"``, ``"less"`` or ``"greater"``.',
    "axis": "The axis of a sample; ``None`` for all axes together.",
    "bias": "Whether it is that of the sample; else an estimate of that of the distribution.",
    "data": "Samples.",
    "ddof": (
        "What is subtracted from the number of elements in the variance, or from the degrees of "
        "freedom."
    ),
    "dtype": "To which they are converted before.",
    "f_exp": "Expected frequencies, by default equal ones.",
    "f_obs": "Frequencies.",
    "high": "End of the circle.",
    "inclusive": "Whether the limits themselves count.",
    "limits": "Least and greatest number that counts; ``None`` for no limit.",
    "lmb": "The exponent.",
    "lmbda": "The exponent.",
    "low": "Its beginning.",
    "nan_policy": '``"propagate"``, ``"omit"`` or ``"raise"``.',
    "proportiontocut": "Which share of a sample is left out.",
    "samples": "Angles.",
    "scale": (
        'By which it is divided; ``"normal"`` makes it the standard deviation of normal numbers.'
    ),
    "u_values": "Numbers.",
    "u_weights": "Weights of the first, by default equal ones.",
    "v_values": "Others.",
    "v_weights": "Weights of the second, by default equal ones.",
    "weights": "Weights of the elements.",
    "x": "Samples.",
    "y": "Others, as many.",
}

METHODS = {
    "x": "Where it is evaluated.",
    "q": "Probability.",
    "k": "Numbers.",
    "*args": "Parameters, in order.",
    "**kwargs": "Parameters, by name.",
}
