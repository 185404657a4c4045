"""Meanings of the parameters that functions of images share, for their docstrings."""

MEANINGS = {
    "axes": "The axes that are filtered; by default all.",
    "axis": "The axis that is filtered.",
    "cval": 'Value outside of the array where ``mode`` is ``"constant"``.',
    "index": (
        "Labels of the regions that are wanted; ``None`` takes all labelled elements together."
    ),
    "input": "Array.",
    "labels": "Labels of the elements; ``None`` takes all elements.",
    "mode": (
        'Values outside of the array: ``"reflect"``, ``"constant"``, ``"nearest"``, ``"mirror"`` '
        'or ``"wrap"``.'
    ),
    "n": (
        "Length of the axis before a transform of real numbers; -1 for a transform of complex "
        "numbers."
    ),
    "origin": "By how much the window is moved.",
    "output": "``None`` or a dtype; results are new arrays.",
    "size": "Length of the window, for all axes or for each.",
}
