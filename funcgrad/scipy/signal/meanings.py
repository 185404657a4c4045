"""Meanings of the parameters that functions of signals share, for their docstrings."""

MEANINGS = {
    "a": "Coefficients of the denominator.",
    "average": '``"mean"`` or ``"median"`` of segments.',
    "axis": "The axis along which samples are a line.",
    "b": "Coefficients of the numerator.",
    "cval": 'What stands beyond the ends in mode ``"constant"``.',
    "detrend": "As in `stft`.",
    "fillvalue": "What ``in1`` is filled with beyond its ends.",
    "fs": "Frequency of the samples.",
    "in1": "Array.",
    "in2": "Array of as many axes.",
    "k": "Gain.",
    "mode": "As in `convolve`.",
    "nfft": "Length of transforms; zeros are added to segments.",
    "noverlap": "How many samples neighbours share; half of them by default.",
    "nperseg": "Length of segments, at most 256 by default.",
    "p": "Poles.",
    "phi": "Phase in degrees.",
    "plot": "Called with both results.",
    "return_onesided": "Whether negative frequencies are left out where ``x`` is real.",
    "scaling": '``"density"`` (``"psd"``) or ``"spectrum"``.',
    "sos": (
        "Sections, ``(sections, 6)``: three coefficients of the numerator and three of the "
        "denominator."
    ),
    "t": "Times.",
    "whole": "Whether frequencies go around the whole circle.",
    "window": "As in `stft`.",
    "worN": "How many frequencies, or which.",
    "x": "Samples.",
    "y": "Samples.",
    "z": "Zeros.",
}
