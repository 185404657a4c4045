"""Tricomi's confluent hypergeometric function ``U(a, b, x)``, DLMF 13, as one formula.

For positive ``a`` it is an integral of a positive function (DLMF 13.4.4),

    U(a, b, x) = 1 / gamma(a) * integral of exp(-x t) t**(a - 1) (1 + t)**(b - a - 1) over t > 0.

The logarithm of the integrand, as a function of ``log(t)``, has a single maximum at the positive
root ``t0`` of ``x t**2 + (x - b + 1) t - a``. With ``log(t / t0) = s + (1 - exp(-s)) / (a + 1)``
the end at 0 is reached twice exponentially where ``a`` is small (H. Takahasi and M. Mori, "Double
exponential formulas for numerical integration", 1974), and the trapezoidal rule converges
geometrically. All terms are positive, so that nothing cancels.

Kummer's transformation (13.2.40) and the recurrence in ``a`` (13.3.7), downwards, which is stable
for ``U`` (N. M. Temme, "The numerical computation of the confluent hypergeometric function", 1983),
lead from other ``a`` to positive ones.
"""

from __future__ import annotations

import numpy as np

from funcgrad.primitives import expressions as e
from funcgrad.primitives.gamma_functions import lgamma

_NODES = np.arange(160.0)
_DROP = 38.0
"""Terms below ``exp(-38)`` times the maximum are left out."""
_HALVINGS = 7
_STEPS = 24
_QUICK = (0.0, 1.0, 1.0)
_SMALLEST = 1e-12
_LARGEST = 1e4
_WIDEST = 0.28
"""Nodes that are as far apart leave an error of ``exp(-pi**2 / 0.28)``, some units of 1e-15."""


def _pair(
    a: e.Expression, b: e.Expression, x: e.Expression
) -> tuple[e.Expression, e.Expression, e.Expression]:
    """``U(a, b, x)`` and ``U(a + 1, b, x)`` for positive ``a`` and ``x``; the distance of nodes."""
    m = b - a - 1.0
    q = x - b + 1.0
    root = e.sqrt(q * q + 4.0 * a * x)
    peak = e.where(q > 0.0, 2.0 * a / (q + root), (root - q) / (2.0 * x))
    height, share, bend = x * peak, peak / (peak + 1.0), 1.0 / (a + 1.0)

    def drop(s: e.Expression) -> e.Expression:
        """The logarithm of the integrand over its maximum."""
        u = s - bend * e.expm1(-s)
        grown = e.expm1(u)
        return a * u - height * grown + m * e.log1p(share * grown)

    def end(far: e.Expression) -> e.Expression:
        """A place that is far enough, but not much farther, between 0 and one that is too far."""
        near = far * 0.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (near + far)
            is_enough = drop(middle) < -_DROP
            near, far = e.where(is_enough, near, middle), e.where(is_enough, middle, far)
        return far

    reach = (_DROP + height + e.maximum(-m, 0.0) * e.log1p(peak)) / a
    low = -e.minimum(reach + 1.0, e.log1p(reach / bend))
    more = e.maximum(m, 0.0)
    high = e.log1p((_DROP + more) / height) + e.log1p(more / height) + 1.0
    low, high = end(low), end(high)
    width = (high - low) / (len(_NODES) - 1.0)
    a_, m_, height_, share_, bend_ = map(e.spread, (a, m, height, share, bend))
    s = e.spread(low) + e.spread(width) * _NODES
    back = e.expm1(-s)
    u = s - bend_ * back
    grown = e.expm1(u)
    ratio = share_ * grown
    terms = e.exp(a_ * u - height_ * grown + m_ * e.log1p(ratio)) * (bend_ * (back + 1.0) + 1.0)
    next_terms = terms * (grown + 1.0) / (ratio + 1.0)
    scale = e.exp(a * e.log(peak) - height + m * e.log1p(peak) - e.apply(lgamma, a)) * width
    return scale * e.total(terms), scale * e.total(next_terms) * share / a, width


def tricomi(scipys: e.Formula, a: e.Expression, b: e.Expression, x: e.Expression) -> e.Expression:
    """``U(a, b, x)``; SciPy's own where ``x`` is 0 or ``a`` is far from what users have."""
    given = (a, b, x)
    over = a - b + 1.0
    is_reflected = (over > 0.0) & (a < _SMALLEST)
    factor = e.where(is_reflected, e.power(x, 1.0 - b), 1.0)
    a, b = e.where(is_reflected, over, a), e.where(is_reflected, 2.0 - b, b)
    steps = e.maximum(e.floor(_SMALLEST - a) + 1.0, 0.0)
    start = a + steps
    value, above, width = _pair(start, b, x)
    for k in range(_STEPS):
        c = start - float(k)
        below = (2.0 * c - b + x) * value - c * (c - b + 1.0) * above
        is_left = steps > float(k)
        value, above = e.where(is_left, below, value), e.where(is_left, value, above)
    is_ours = (x > 0.0) & (start < _LARGEST) & (steps < _STEPS + 0.5) & (width < _WIDEST)
    # SciPy takes up to a millisecond for a number, and no time for this one.
    others = [e.where(is_ours, v, x) for v, x in zip(_QUICK, given, strict=True)]
    return e.where(is_ours, value * factor, scipys(*others))
