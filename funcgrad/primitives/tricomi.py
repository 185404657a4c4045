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

from funcgrad.primitives.expressions import (
    Expression,
    Formula,
    apply,
    exp,
    expm1,
    floor,
    log,
    log1p,
    maximum,
    minimum,
    power,
    spread,
    sqrt,
    total,
    where,
)
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


def _pair(a: Expression, b: Expression, x: Expression) -> tuple[Expression, Expression, Expression]:
    """``U(a, b, x)`` and ``U(a + 1, b, x)`` for positive ``a`` and ``x``; the distance of nodes."""
    m = b - a - 1.0
    q = x - b + 1.0
    root = sqrt(q * q + 4.0 * a * x)
    peak = where(q > 0.0, 2.0 * a / (q + root), (root - q) / (2.0 * x))
    height, share, bend = x * peak, peak / (peak + 1.0), 1.0 / (a + 1.0)

    def drop(s: Expression) -> Expression:
        """The logarithm of the integrand over its maximum."""
        u = s - bend * expm1(-s)
        grown = expm1(u)
        return a * u - height * grown + m * log1p(share * grown)

    def end(far: Expression) -> Expression:
        """A place that is far enough, but not much farther, between 0 and one that is too far."""
        near = far * 0.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (near + far)
            is_enough = drop(middle) < -_DROP
            near, far = where(is_enough, near, middle), where(is_enough, middle, far)
        return far

    reach = (_DROP + height + maximum(-m, 0.0) * log1p(peak)) / a
    low = -minimum(reach + 1.0, log1p(reach / bend))
    more = maximum(m, 0.0)
    high = log1p((_DROP + more) / height) + log1p(more / height) + 1.0
    low, high = end(low), end(high)
    width = (high - low) / (len(_NODES) - 1.0)
    a_, m_, height_, share_, bend_ = map(spread, (a, m, height, share, bend))
    s = spread(low) + spread(width) * _NODES
    back = expm1(-s)
    u = s - bend_ * back
    grown = expm1(u)
    ratio = share_ * grown
    terms = exp(a_ * u - height_ * grown + m_ * log1p(ratio)) * (bend_ * (back + 1.0) + 1.0)
    next_terms = terms * (grown + 1.0) / (ratio + 1.0)
    scale = exp(a * log(peak) - height + m * log1p(peak) - apply(lgamma, a)) * width
    return scale * total(terms), scale * total(next_terms) * share / a, width


def tricomi(scipys: Formula, a: Expression, b: Expression, x: Expression) -> Expression:
    """``U(a, b, x)``; SciPy's own where ``x`` is 0 or ``a`` is far from what users have."""
    given = (a, b, x)
    over = a - b + 1.0
    is_turned = (over > 0.0) & (a < _SMALLEST)
    factor = where(is_turned, power(x, 1.0 - b), 1.0)
    a, b = where(is_turned, over, a), where(is_turned, 2.0 - b, b)
    steps = maximum(floor(_SMALLEST - a) + 1.0, 0.0)
    start = a + steps
    value, above, width = _pair(start, b, x)
    for k in range(_STEPS):
        c = start - float(k)
        below = (2.0 * c - b + x) * value - c * (c - b + 1.0) * above
        is_left = steps > float(k)
        value, above = where(is_left, below, value), where(is_left, value, above)
    is_ours = (x > 0.0) & (start < _LARGEST) & (steps < _STEPS + 0.5) & (width < _WIDEST)
    # SciPy takes up to a millisecond for a number, and no time for this one.
    others = [where(is_ours, v, x) for v, x in zip(_QUICK, given, strict=True)]
    return where(is_ours, value * factor, scipys(*others))
