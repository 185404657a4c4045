"""Meanings of the parameters that functions of matrices share, for their docstrings."""

MEANINGS = {
    "A": "Matrix, or a stack of matrices.",
    "a": "Matrix, or a stack of matrices.",
    "b": "A vector ``(n,)``, or right-hand sides ``(..., n, k)``.",
    "check_finite": "Without effect.",
    "lapack_driver": "Without effect.",
    "lower": "Whether the lower triangle is read, or returned.",
    "lwork": "Without effect.",
    "overwrite_a": "Without effect.",
    "overwrite_ab": "Without effect.",
    "overwrite_b": "Without effect.",
    "s": "Rates of survival.",
    "atol": "Allowed difference; of ``pinvh``, singular values below it count as zero.",
    "rtol": (
        "Allowed relative difference; of ``pinvh``, singular values below this multiple "
        "of the greatest count as zero."
    ),
}
