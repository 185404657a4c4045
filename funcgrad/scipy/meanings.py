"""Meanings of the parameters that functions of `funcgrad.scipy` share, for their docstrings."""

MEANINGS = {
    "args": "Further arguments.",
    "balanced": "Without effect.",
    "check_finite": "Without effect.",
    "debug": "Accepted for JAX's signature.",
    "driver": "Without effect.",
    "keepdims": "Whether the axis stays, with length 1.",
    "lapack_driver": "Without effect.",
    "lwork": "Without effect.",
    "overwrite_a": "Without effect: arguments are never changed.",
    "overwrite_a_band": "Without effect: arguments are never changed.",
    "overwrite_ab": "Without effect: arguments are never changed.",
    "overwrite_b": "Without effect: arguments are never changed.",
    "precision": "Accepted for JAX's signature.",
}
