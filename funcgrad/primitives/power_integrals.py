"""Integrals of products of powers, and with them all of their derivatives.

    I(a; x) = integral from 0 to infinity of  (t + x[0])**-a[0] (t + x[1])**-a[1] ...  dt,

    dI/dx[i] = -a[i] I(a + e[i]; x).

They are the derivatives of Carlson's elliptic integrals (DLMF 19.16, 19.18). Nothing is subtracted
if ``x`` is not negative, so that no digits are lost where arguments are equal.

With ``t = exp(v)`` the integrand is analytic in a strip around the real line and decays
exponentially, so that the trapezoidal rule converges exponentially (L. N. Trefethen and
J. A. C. Weideman, The exponentially convergent trapezoidal rule, SIAM Review 56, 2014). Between
singularities at the arguments of complex ``x`` the path is turned to the middle.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from funcgrad.core.primitive import Value
from funcgrad.dtypes import is_complex
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import expressions as e
from funcgrad.primitives.special_rows import Written

_DIGITS = 37.0
"""Logarithm of what is left out, relative to the whole."""

_POINTS = 256
"""Points of the rule for real numbers: enough where ``x`` differs by factors up to ``exp(50)``."""

_COMPLEX_POINTS = 1024
"""The same for complex numbers, whose strip is ``2 pi`` less the angle between them.

Up to angles of 1.9 pi, which only numbers on both sides of the negative axis have, a millionth of
the value is left at most; beyond, more.
"""

_real, _imag, _arctan2, _equal = map(e.function, (p.real, p.imag, p.arctan2, p.equal))
_complex = functools.partial(e.apply, p.Convert(np.dtype(np.complex128)))


@functools.lru_cache(1024)
def power_integral(*halves: int) -> Written:
    """The integral with exponents ``-halves[i] / 2``, of as many arguments.

    At most two of the ``halves`` may be 1, and the others have a sum above 2.
    """

    def partial(i: int, *args: Value) -> Value:
        raised = (*halves[:i], halves[i] + 2, *halves[i + 1 :])
        return power_integral(*raised).bind(*args[:-1]) * (-halves[i] / 2)

    partials = [functools.partial(partial, i) for i in range(len(halves))]
    name = "power_integral_" + "_".join(map(str, halves))
    return Written(name, functools.partial(_formula, halves), *partials, kinds="fc")


def _formula(halves: Sequence[int], *xs: e.Expression) -> e.Expression:
    logs = [e.log(e.absolute(x)) for x in xs]
    roots = [x for x, n in zip(logs, halves, strict=True) if n == 1]
    others = [x for x, n in zip(logs, halves, strict=True) if n > 1]
    scale, low = functools.reduce(e.maximum, others), functools.reduce(e.minimum, others)
    # Below one root the integrand falls like a root, between two it stays.
    if len(roots) == 2:
        low = e.minimum(low, e.maximum(*roots))
    if roots:
        low = e.minimum(low, e.maximum(functools.reduce(e.minimum, roots), low - _DIGITS))
    begin = low - _DIGITS
    end = scale + _DIGITS / (sum(n for n in halves if n > 1) / 2 - 1)
    diverges = end - begin > 3e3
    begin = e.where(diverges, end, begin)
    n_points = _COMPLEX_POINTS if is_complex(xs[0].dtype) else _POINTS
    step = (end - begin) / (n_points - 1)
    t = e.exp(e.spread(begin - scale) + e.spread(step) * np.arange(float(n_points)))
    degree = 1 - sum(halves) / 2
    if is_complex(xs[0].dtype):
        angles = [_arctan2(_imag(x), _real(x)) for x in xs]
        middle = (functools.reduce(e.maximum, angles) + functools.reduce(e.minimum, angles)) / 2
        unit = _complex(scale) + _complex(middle) * 1j
        value = e.total(_complex(t) * _product(halves, _complex(t), [x / e.exp(unit) for x in xs]))
        return e.where(diverges, math.inf, _complex(step) * e.exp(unit * degree) * value)
    value = e.total(t * _product(halves, t, [x / e.exp(scale) for x in xs]))
    return e.where(diverges, math.inf, step * e.exp(scale * degree) * value)


def _product(halves: Sequence[int], t: e.Expression, xs: Sequence[e.Expression]) -> e.Expression:
    """The integrand, of numbers from which a factor was taken."""
    found = t * 0.0 + 1.0
    for n, x in zip(halves, xs, strict=True):
        y = 1.0 / (t + e.spread(x))
        if n % 2:
            found = found * e.sqrt(y)
        for _ in range(n // 2):
            found = found * y
    return found
