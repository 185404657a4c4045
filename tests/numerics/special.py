"""Special functions: where they are tried, and how far they are from mpmath's values.

The exact functions are those of `tests.scipy.record_special`. A range is a pair of numbers, between
which arguments are drawn (evenly in the logarithm, if both are positive and three decades apart),
or a list of values.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np

from funcgrad.scipy import special
from tests.scipy.record_special import ROWS, exact

N, N_SLOW = 100, 12
SLOW = {
    "ndtri", "ndtri_exp", "gammaincinv", "gammainccinv", "betaincinv", "stdtrit", "fdtri",
    "owens_t", "kolmogorov", "chndtr", "hyperu", "pbdv", "struve", "modstruve",
}  # fmt: skip
"""Their exact values take long."""

DIGITS = 60
STEP = 1e-20
"""Relative changes of arguments, for the condition."""

Range = tuple[float, float] | list[Any]
POSITIVE: Range = (1e-3, 1e3)
SHAPE: Range = (0.05, 200.0)
PROBABILITY: Range = (1e-12, 1.0 - 1e-6)
ORDERS: Range = [0.0, 0.3, 0.5, 1.0, 2.5, 7.0, 20.0]
WHOLE: Range = [0, 1, 2, 5, 12, 30]
INSIDE: Range = (-0.999, 0.999)
PARAMETER: Range = (-20.0, 0.999)

RANGES: dict[str, tuple[Range, ...]] = {
    "erf": ((-6, 6),),
    "erfc": ((-6, 9),),
    "erfcx": ((-5, 50),),
    "erfi": ((-5, 5),),
    "erfinv": (INSIDE,),
    "dawsn": ((-20, 20),),
    "ndtr": ((-12, 8),),
    "log_ndtr": ((-100, 8),),
    "ndtri": (PROBABILITY,),
    "ndtri_exp": ((-1000, -0.01),),
    "voigt_profile": ((-20, 20), (0.05, 5), (0.05, 5)),
    "owens_t": ((-5, 5), (-5, 5)),
    "gamma": ((0.01, 30),),
    "gammaln": ((1e-5, 1e10),),
    "digamma": ((1e-5, 1e10),),
    "poch": ((0.1, 50), (0.1, 30)),
    "beta": (SHAPE, SHAPE),
    "gammainc": (SHAPE, SHAPE),
    "gammaincc": (SHAPE, SHAPE),
    "gammaincinv": ((0.5, 50), PROBABILITY),
    "gammainccinv": ((0.5, 50), PROBABILITY),
    "betainc": (SHAPE, SHAPE, (0.01, 0.99)),
    "betaincc": (SHAPE, SHAPE, (0.01, 0.99)),
    "betaincinv": ((0.5, 20), (0.5, 20), (1e-6, 0.99)),
    "stdtr": ((0.5, 50), (-30, -0.01)),
    "stdtrit": ((0.8, 50), (1e-6, 0.4)),
    "chdtr": ((0.5, 50), (0.01, 60)),
    "chdtrc": ((0.5, 50), (0.01, 60)),
    "chndtr": ((0.5, 20), (1, 20), (0.1, 8)),
    "fdtr": ((0.5, 50), (0.5, 50), (0.01, 20)),
    "fdtrc": ((0.5, 50), (0.5, 50), (0.01, 20)),
    "fdtri": ((1, 30), (1, 30), (0.01, 0.99)),
    "bdtr": ([0.0, 2.0, 5.0, 9.0], [10.0, 20.0, 40.0], (0.05, 0.95)),
    "pdtr": ([0.0, 1.0, 5.0, 20.0], (0.01, 60)),
    "pdtrc": ([0.0, 1.0, 5.0, 20.0], (0.01, 60)),
    "kolmogorov": ((0.3, 4),),
    "zeta": ((1.01, 30), (0.2, 20)),
    "boxcox": (POSITIVE, (0.01, 3)),
    "boxcox1p": ((1e-5, 1e3), (0.01, 3)),
    "inv_boxcox": ((1e-3, 50), (0.01, 3)),
    "lambertw": ((1e-5, 1e10),),
    "expn": (WHOLE[1:], (1e-3, 100)),
    "exp1": ((1e-5, 300),),
    "expi": ((1e-5, 300),),
    "sici": ((0.05, 60),),
    "shichi": ((0.05, 60),),
    "fresnel": ((0.05, 30),),
    "spence": ((0.01, 1.9),),
    "jv": (ORDERS, (0.05, 200)),
    "yv": (ORDERS, (0.05, 200)),
    "iv": (ORDERS, (0.05, 200)),
    "kv": (ORDERS, (0.05, 200)),
    "ive": (ORDERS, (0.05, 1000)),
    "kve": (ORDERS, (0.05, 1000)),
    "spherical_jn": (WHOLE, (0.05, 100)),
    "spherical_yn": (WHOLE, (0.5, 100)),
    "spherical_in": (WHOLE, (0.05, 100)),
    "spherical_kn": (WHOLE, (0.5, 100)),
    "airy": ((-20, 8),),
    "struve": ([0.5, 1.0, 2.5], (0.1, 30)),
    "modstruve": ([0.5, 1.0, 2.5], (0.1, 20)),
    "ber": ((0.1, 10),),
    "ker": ((0.1, 20),),
    "kei": ((0.1, 20),),
    "ellipk": (PARAMETER,),
    "ellipkm1": ((1e-30, 0.99),),
    "ellipe": (PARAMETER,),
    "ellipkinc": ((0.01, 1.5), PARAMETER),
    "ellipeinc": ((0.01, 1.5), PARAMETER),
    "ellipj": ((-3, 3), (0.01, 0.99)),
    "elliprc": (POSITIVE, POSITIVE),
    "elliprd": (POSITIVE, POSITIVE, POSITIVE),
    "elliprf": (POSITIVE, POSITIVE, POSITIVE),
    "elliprg": (POSITIVE, POSITIVE, POSITIVE),
    "elliprj": (POSITIVE, POSITIVE, POSITIVE, POSITIVE),
    "agm": (POSITIVE, POSITIVE),
    "hyp0f1": ((0.3, 20), (-50, 200)),
    "hyp1f1": ((0.3, 5), (0.5, 8), (-30, 30)),
    "hyp2f1": ((0.3, 3), (0.3, 3), (0.5, 6), (-5, 0.9)),
    "hyperu": ((0.3, 3), (0.3, 3), (0.1, 20)),
    "eval_legendre": (WHOLE, INSIDE),
    "eval_chebyt": (WHOLE, INSIDE),
    "eval_chebyu": (WHOLE, INSIDE),
    "eval_hermite": (WHOLE, (-4, 4)),
    "eval_gegenbauer": (WHOLE, (0.3, 3), INSIDE),
    "eval_genlaguerre": (WHOLE, (0.3, 3), (0.01, 20)),
    "eval_jacobi": (WHOLE, (0.3, 3), (0.3, 3), INSIDE),
    "sph_legendre_p": ([2, 5, 9], [0, 1, 2], (0.1, 3)),
    "pbdv": ([0.5, 1.0, 2.5], (-3, 5)),
}
COMPLEX = ("wofz", "loggamma", "hankel1")
"""Functions of complex numbers, of which the recorded rows are tried alone."""


def sample(name: str, dtype: Any) -> list[np.ndarray]:
    """Arguments over the range of a function, as numbers of a dtype; the same ones each time."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    n = N_SLOW if name in SLOW else N
    args = []
    for range_ in RANGES[name]:
        if isinstance(range_, list):
            args.append(random.choice(range_, n))
            continue
        low, high = range_
        if low > 0 and high / low >= 1000:
            drawn = np.exp(random.uniform(math.log(low), math.log(high), n))
        else:
            drawn = random.uniform(low, high, n)
        args.append(drawn)
    return [a if a.dtype.kind == "i" else a.astype(dtype) for a in args]


def parts(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def condition(function: Callable[..., Any], args: list[Any], values: tuple[Any, ...]) -> list[Any]:
    """How many times larger relative changes of the arguments become, for every result."""
    sums = [mpmath.mpf(0)] * len(values)
    for i, x in enumerate(args):
        if isinstance(x, int) or not x:
            continue
        moved = parts(function(*args[:i], x * (1 + mpmath.mpf(STEP)), *args[i + 1 :]))
        for k, (a, b) in enumerate(zip(values, moved, strict=False)):
            sums[k] += abs((b - a) / a) / STEP if a else mpmath.mpf(0)
    return sums


def errors(name: str, dtype: Any) -> Iterator[tuple[float, float, list[Any]]]:
    """Errors in units in the last place, the same over 1 + the condition, and the arguments."""
    function = ROWS[name][0]
    args = sample(name, dtype)
    found = [np.squeeze(part) for part in parts(getattr(special, name)(*args))]
    epsilon = float(np.finfo(dtype).eps)
    for i in range(len(args[0])):
        point = [a[i].item() for a in args]
        numbers = [exact(x) for x in point]
        values = parts(function(*numbers))
        conditions = condition(function, numbers, values)
        for ours, value, factor in zip(found, values, conditions, strict=False):
            value = mpmath.re(value)
            if abs(value) < float(np.finfo(dtype).tiny) or abs(value) > float(np.finfo(dtype).max):
                continue
            # A unit in the last place is between half of and the whole relative epsilon.
            unit = mpmath.ldexp(epsilon, int(mpmath.frexp(value)[1]) - 1)
            error = abs(mpmath.mpf(float(np.real(ours[i]))) - value) / unit
            yield float(error), float(error / (1 + factor)), point
