"""Dropout, by which networks do not rely on single units."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import random
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.staging import located
from funcgrad.numpy.promotion import as_value, to_dtype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.exponentials import floating

Array = Any
ArrayLike = Any


def dropout(key: ArrayLike, x: ArrayLike, rate: ArrayLike) -> Array:
    """Each element is 0 with probability ``rate``, and else divided by ``1 - rate``.

    Args:
        key: A random key; the same key drops the same elements.
        rate: Probability, 0 to 1. It may be traced, such as a schedule's.
    Returns: An array of the type of ``x``, whose expected value is ``x``; zeros for a rate of 1.
    Raises: ArgumentError: If the rate is no probability.

    Source:
        Srivastava and others, JMLR 15 (2014).
    Example: print(fg.nn.dropout(fg.random.key(0), np.ones(6), 0.5)) -> [2. 2. 0. 0. 0. 2.]
    """
    (x,) = floating("nn.dropout", x)
    rate = checked_rate("nn.dropout", rate)
    dtype = aval_of(x).dtype
    share = 1.0 - to_dtype(rate, dtype)
    is_kept = random.bernoulli(key, share, shape_of(x))
    # Nothing is kept where the share is 0, and nothing may be divided by it.
    divisor = p.select.bind(p.greater.bind(share, p.zero_of(share)), share, p.ones_like(share))
    return p.select.bind(is_kept, x / divisor, p.zero_of(x))


def checked_rate(name: str, rate: ArrayLike) -> ArrayLike:
    """A probability, if it is known."""
    value = as_value(rate, name)
    is_scalar = not shape_of(value)
    if not is_scalar or not (is_traced(value) or 0 <= value <= 1):
        raise located(
            ArgumentError, f"{name}: rate must be a probability, 0 to 1, got {_shown(value)}."
        )
    return value


def drops(name: str, rate: ArrayLike, key: ArrayLike | None, how: str) -> bool:
    """Whether anything is dropped, for which a random key is needed.

    Raises: ArgumentError: If the rate is no probability, or there is no key.
    """
    rate = checked_rate(name, rate)
    if not is_traced(rate) and rate == 0:
        return False
    if key is None:
        raise located(ArgumentError, f"{name} needs a random key in training: {how}.")
    return True


def _shown(value: Any) -> Any:
    return aval_of(value) if shape_of(value) or isinstance(value, np.ndarray) else value


__all__ = ["dropout"]
