"""Roots of unity, as Fourier transforms multiply by them."""

from __future__ import annotations

import math

import numpy as np


def roots_of_unity(n: int, count: int) -> np.ndarray:
    """The first powers of ``exp(-2 pi i / n)``, each as exact as one product of two of them.

    Args:
        n: The order of the root.
        count: How many powers.
    """
    few = math.isqrt(count) + 1
    near = np.exp(-2j * np.pi * np.arange(few) / n)
    far = np.exp(-2j * np.pi * (np.arange(-(-count // few)) * few) / n)
    return np.multiply.outer(far, near).reshape(-1)[:count]
