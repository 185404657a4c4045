"""Meanings of the parameters that functions of samples, and methods of distributions, share."""

MEANINGS = {
    "a": "Samples.",
    "alternative": '``"two-sided"``, ``"less"`` or ``"greater"``.',
    "axis": "The axis of a sample; ``None`` for all axes together.",
    "data": "Samples.",
    "ddof": "What is subtracted from the number of elements in the variance.",
    "dtype": "To which they are converted before.",
    "high": "End of the circle.",
    "inclusive": "Whether the limits themselves count.",
    "keepdims": "Whether the axis stays, with length 1.",
    "limits": "Least and greatest number that counts; ``None`` for no limit.",
    "low": "Its beginning.",
    "nan_policy": '``"propagate"``, ``"omit"`` or ``"raise"``.',
    "samples": "Angles.",
    "weights": "Weights of the elements.",
    "x": "Samples.",
}

METHODS = {
    "x": "Where it is evaluated.",
    "q": "Probability.",
    "k": "Numbers.",
    "*args": "Parameters, in order.",
    "**kwargs": "Parameters, by name.",
}
