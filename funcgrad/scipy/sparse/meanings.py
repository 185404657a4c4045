"""Meanings of parameters that functions of `funcgrad.scipy.sparse` share."""

MEANINGS = {
    "A": "A matrix, dense or sparse, an operator, or a linear function of what ``b`` is.",
    "arg1": "``(data, (row, col))``, ``(data, indices, indptr)``, or, if it is known, a matrix.",
    "atol": "Absolute tolerance of the residual.",
    "b": "Right-hand side, a vector or, if ``A`` is a function, any pytree.",
    "callback": "Must be ``None``.",
    "copy": "Accepted for SciPy's signature.",
    "dtype": "Of the entries.",
    "M": "What approximates the inverse of ``A``, of the same kinds.",
    "maxiter": "The most iterations; by default ten times the number of unknowns.",
    "rtol": "Relative tolerance of the residual.",
    "shape": "Numbers of rows and columns.",
    "tol": "JAX's name for ``rtol``.",
    "x0": "Where to begin; by default zeros.",
}
