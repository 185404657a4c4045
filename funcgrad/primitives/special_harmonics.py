"""Legendre functions of the sphere, DLMF 14.

They are made of neighbouring orders on the sphere, which is regular at the poles; associated
Legendre functions of any argument by the recurrence of degrees (DLMF 14.10.5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Value
from funcgrad.primitives.elementwise import Smooth, absolute, convert, less, select, sqrt, zero_of
from funcgrad.primitives.families import undefined


def _root_of(product: Value, x: Value) -> Value:
    """The root of an integer, 0 for negative ones, in the dtype of ``x``."""
    number = convert(product, aval_of(x).dtype)
    return sqrt.bind(0.5 * (number + abs(number)))


def _sphere_slope(n: Value, m: Value, theta: Value, y: Value) -> Value:
    above = _root_of((n - m) * (n + m + 1), theta) * sph_legendre_p.bind(n, m + 1, theta)
    below = _root_of((n + m) * (n - m + 1), theta) * sph_legendre_p.bind(n, m - 1, theta)
    return 0.5 * (above - below)


def _evaluate_on_sphere(n: Any, m: Any, theta: Any) -> Any:
    out = load("scipy.special").sph_legendre_p(n, m, theta)
    return np.asarray(out)[0].astype(aval_of(theta).dtype, copy=False)[()]


sph_legendre_p: Smooth = Smooth(
    "sph_legendre_p",
    _evaluate_on_sphere,
    [undefined("sph_legendre_p", "n"), undefined("sph_legendre_p", "m"), _sphere_slope],
    "sph_legendre_p({0}, {1}, {2})",
    kinds="f",
    code_kinds="",
    mixed=True,
)


class AssociatedLegendre(Smooth):
    """The associated Legendre function of integer degree and order.

    Args:
        branch_cut: 2, on the real axis between -1 and 1, or 3, outside of it.
        norm: Whether its square has the integral 1.
    """

    def __init__(self, branch_cut: int, norm: bool) -> None:
        self.branch_cut = branch_cut
        self.norm = norm
        partials = [undefined(self.label, "n"), undefined(self.label, "m"), self._slope]
        code = "assoc_legendre_p({0}, {1}, {2})"
        super().__init__(
            self.label, self._evaluate, partials, code, kinds="fc", code_kinds="", mixed=True
        )

    label = "assoc_legendre_p"

    def _evaluate(self, n: Any, m: Any, z: Any) -> Any:
        function = load("scipy.special").assoc_legendre_p
        out = function(n, m, z, branch_cut=self.branch_cut, norm=self.norm)
        return np.asarray(out)[0].astype(aval_of(z).dtype, copy=False)[()]

    def _slope(self, n: Value, m: Value, z: Value, y: Value) -> Value:
        """``((n + 1) z P(n) - (n - m + 1) P(n + 1)) / (1 - z**2)``."""
        degree, order = convert(n, aval_of(z).dtype), convert(m, aval_of(z).dtype)
        factor = degree - order + 1
        if self.norm:
            inside = (2 * n + 1) * (n + m + 1) * (n - m + 1)
            factor = _root_of(inside, z) / sqrt.bind(2 * degree + 3)
        above = self.bind(n + aval_of(n).dtype.type(1), m, z)
        value = ((degree + 1) * z * y - factor * above) / (1 - z * z)
        # Functions of orders beyond the degree are 0; the recurrence does not know that.
        return select.bind(less.bind(n, absolute.bind(m)), zero_of(value), value)
