"""Meanings of parameters that functions of `funcgrad.scipy.special` share."""

MEANINGS = {
    "branch_cut": "2 for the functions of ``abs(z) < 1``, 3 for those outside.",
    "diff_n": "How many derivatives are computed as well.",
    "exact": (
        "Whether the result is Python's or NumPy's integers; only of numbers that are not traced."
    ),
    "N": "Number of things.",
    "norm": "Whether they are normalised: their squares have the integral 1.",
    "phi": "Azimuths.",
    "theta": "Polar angles.",
}
