"""Distances of special functions from mpmath's values.

Exact functions and ranges of arguments are those of `tests.scipy.record_special`.
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

MEASURED = tuple(name for name, row in ROWS.items() if row.ranges)
"""All but the functions of complex numbers, of which the recorded rows are tried alone."""


def sample(name: str, dtype: Any) -> list[np.ndarray]:
    """Arguments over the range of a function, as numbers of a dtype; the same ones each time."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    n = N_SLOW if name in SLOW else N
    args = []
    for range_ in ROWS[name].ranges:
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
    function = ROWS[name].exact
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
