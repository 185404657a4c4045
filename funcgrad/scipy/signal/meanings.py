"""Meanings of the parameters that functions of signals share, for their docstrings."""

MEANINGS = {
    "axis": "The axis of the samples.",
    "detrend": "As in `stft`.",
    "fs": "Frequency of the samples.",
    "in1": "Array.",
    "mode": "As in `convolve`.",
    "nfft": "Length of transforms.",
    "noverlap": "How many samples neighbours share; half of them by default.",
    "nperseg": "Length of segments, at most 256 by default.",
    "return_onesided": "Whether negative frequencies are left out where ``x`` is real.",
    "scaling": '"density" or "spectrum".',
    "window": "As in `stft`.",
    "x": "Samples.",
}
