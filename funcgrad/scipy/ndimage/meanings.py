"""Meanings of the parameters that functions of images share, for their docstrings."""

MEANINGS = {
    "axes": "The axes that are filtered; by default all.",
    "axis": "The axis that is filtered.",
    "cval": 'Value outside of the array where ``mode`` is ``"constant"``.',
    "footprint": "Mask of the neighbours that count.",
    "index": (
        "Labels of the regions that are wanted; ``None`` takes all labelled elements together."
    ),
    "input": "Array.",
    "**kwargs": "Further keywords of `gaussian_filter`.",
    "labels": "Labels of the elements; ``None`` takes all elements.",
    "mode": (
        'Values outside of the array: ``"reflect"``, ``"constant"``, ``"nearest"``, '
        '``"mirror"`` or ``"wrap"``.'
    ),
    "n": (
        "Length of the axis before a transform of real numbers; -1 for a transform of complex "
        "numbers."
    ),
    "origin": "By how much windows are shifted, for all axes or for each.",
    "output": "The dtype of the result; that of ``input`` by default.",
    "radius": "Where it ends instead.",
    "sigma": "Standard deviation of the Gaussian, for all axes or for each.",
    "size": "Length of the window, for all axes or for each.",
    "structure": "Known array instead, which is added to neighbours, or taken from them.",
    "truncate": "At how many standard deviations the window ends.",
}
