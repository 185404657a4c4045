"""Meanings of the parameters that functions of matrices share, for their docstrings."""

MEANINGS = {
    "A": (
        "Matrix, ``(m, n)``, or a stack, ``(..., m, n)``; square where the function is about "
        "square ones."
    ),
    "a": (
        "Matrix, ``(m, n)``, or a stack, ``(..., m, n)``; square where the function is about "
        "square ones."
    ),
    "atol": "Allowed difference; of ``pinvh``, singular values below it count as zero.",
    "B": "Second matrix.",
    "b": "A vector ``(n,)``, or right-hand sides ``(..., n, k)``.",
    "d": "The diagonal.",
    "eigvals_only": "Whether eigenvalues alone are returned.",
    "lower": "Whether the lower triangle is read, or returned.",
    "output": (
        '``"real"`` or ``"complex"``: of real matrices, whether pairs of complex eigenvalues '
        "stay blocks of two rows."
    ),
    "overwrite_a": "Without effect.",
    "overwrite_ab": "Without effect.",
    "overwrite_b": "Without effect.",
    "q": "The matrix on the right-hand side, ``(..., n, n)``.",
    "rcond": "Singular values up to this part of the greatest count as zero.",
    "return_rank": "Whether the rank is returned as well.",
    "rtol": (
        "Allowed relative difference; of ``pinvh``, singular values below this multiple of the "
        "greatest count as zero."
    ),
    "s": "Rates of survival.",
    "select": (
        'Which eigenvalues: ``"a"`` all, ``"v"`` those in an interval, ``"i"`` a range of indices.'
    ),
    "select_range": "The interval or the range of indices.",
    "sort": (
        'Which eigenvalues come first: ``"lhp"``, ``"rhp"``, ``"iuc"``, ``"ouc"`` or a function '
        "of them."
    ),
    "subset_by_index": "The numbers of the first and the last eigenvalue to be returned.",
    "type": "With ``b``, the equation: 1 ``a v = w b v``, 2 ``a b v = w v``, 3 ``b a v = w v``.",
}
