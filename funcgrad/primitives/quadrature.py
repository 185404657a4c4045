"""Nodes and weights of integrals that special functions are made of."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def unit_legendre(n: int) -> tuple[Any, Any]:
    """Gauss's rule of ``n`` nodes, an even number, for the interval from 0 to 1.

    By Newton's method for the angles of the zeros of Legendre's polynomial, whose recurrence is
    one of differences in ``1 - cos(angle)``: nodes and weights are as accurate near the ends as
    elsewhere, where `numpy.polynomial.legendre.leggauss` loses four digits.

    Returns: Nodes and weights.
    """
    angle = np.pi * (np.arange(1, n // 2 + 1) - 0.25) / (n + 0.5)
    below = angle
    for _ in range(6):
        share = 2 * np.sin(0.5 * angle) ** 2
        value, step, below = np.ones(n // 2), np.zeros(n // 2), angle
        for k in range(n):
            below, step = value, (k * step - (2 * k + 1) * share * value) / (k + 1)
            value = value + step
        # n (P(n-1) - cos(angle) P(n)) is -sin(angle) times the derivative in the angle.
        angle = angle + value * np.sin(angle) / (n * (share * value - step))
    nodes, weights = np.sin(0.5 * angle) ** 2, np.sin(angle) ** 2 / (n * below) ** 2
    return np.concatenate([nodes, 1 - nodes[::-1]]), np.concatenate([weights, weights[::-1]])
