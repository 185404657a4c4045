"""Transformations towards normal numbers."""

from __future__ import annotations

from typing import Any

from funcgrad.errors import ArgumentError
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.quotients import quotient
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import quiet
from funcgrad.scipy.stats.samples import Axis, Sample, check_policy


@quiet
def boxcox(
    x: Any,
    lmbda: Any = None,
    alpha: Any = None,
    optimizer: Any = None,
    *,
    nan_policy: str = "propagate",
) -> Any:
    """The power transformation of Box and Cox.

    Args:
        x: Positive numbers.
        alpha: Must be None.
        optimizer: Must be None.
        nan_policy: ``"propagate"`` or ``"omit"``, which give nan for nan, or ``"raise"``.
    Returns: ``(x**lmbda - 1) / lmbda``, and ``log(x)`` where that is 0.

    Raises:
        ArgumentError: If there is no exponent: to find it, maximise `boxcox_llf`. If there is nan
            that must not be.
    Example: fg.scipy.stats.boxcox(np.array([1.0, 2.0, 4.0]), 0.5)
        -> array([0.        , 0.82842712, 2.        ])
    """
    if lmbda is None or alpha is not None or optimizer is not None:
        raise ArgumentError(
            "boxcox: give lmbda. To find it, minimise -boxcox_llf with funcgrad.optim.minimize, or "
            "call scipy.stats.boxcox on known values."
        )
    x, exponent = floating("boxcox", x, lmbda)
    check_policy("boxcox", nan_policy, x)
    return _boxcox(f.log(x), exponent)


def _boxcox(logarithm: Any, exponent: Any) -> Any:
    """``(exp(exponent * logarithm) - 1) / exponent``, with its derivatives where that is 0/0."""
    product = exponent * logarithm
    is_near = f.absolute(product) < 1
    safe = f.select(is_near, 1.0, exponent)
    near = logarithm * quotient("expm1").bind(f.select(is_near, product, 0.0))
    return f.select(is_near, near, p.expm1.bind(safe * logarithm) / safe)


@quiet
def boxcox_llf(
    lmb: Any, data: Any, *, axis: Axis = 0, keepdims: bool = False, nan_policy: str = "propagate"
) -> Any:
    """Logarithm of the likelihood of an exponent in `boxcox`.

    Args: data: Samples of positive numbers.
    Returns: Logarithms of likelihoods.
    Example: fg.scipy.stats.boxcox_llf(0.5, np.array([1.0, 2.0, 4.0]))
        -> np.float64(-0.446169990728709)
    """
    sample = Sample("boxcox_llf", data, axis, nan_policy)
    logs = f.log(sample.x)
    exponent = floating("boxcox_llf", lmb, sample.x)[0]
    is_zero = exponent == 0
    safe = f.select(is_zero, 1.0, exponent)
    # The variance of x**lmb / lmb, by logarithms that neither overflow nor cancel.
    scaled = safe * logs
    shift = f.stop_gradient(sample.mean(scaled))
    powers = p.expm1.bind(scaled - shift)
    apart = powers - sample.mean(powers)
    log_var = f.log(sample.mean(apart * apart)) + 2 * shift - 2 * f.log(p.absolute.bind(safe))
    flat = logs - sample.mean(logs)
    log_var = f.select(is_zero, f.log(sample.mean(flat * flat)), log_var)
    out = (exponent - 1) * sample.total(logs) - 0.5 * sample.n * log_var
    return sample.finished(out, keepdims)


def _yeojohnson(x: Any, exponent: Any) -> Any:
    above = _boxcox(f.log1p(f.maximum(x, 0 * x)), exponent)
    below = -_boxcox(f.log1p(f.maximum(-x, 0 * x)), 2 - exponent)
    return f.select(x >= 0, above, below)


@quiet
def yeojohnson(x: Any, lmbda: Any = None, *, nan_policy: str = "propagate") -> Any:
    """The power transformation of Yeo and Johnson, for numbers of both signs.

    Args: nan_policy: ``"propagate"`` or ``"omit"``, which give nan for nan, or ``"raise"``.
    Returns: `boxcox` of ``x + 1`` for positive numbers, and of ``1 - x`` with the exponent
        ``2 - lmbda`` and a minus sign for negative ones.

    Raises:
        ArgumentError: If there is no exponent: to find it, maximise `yeojohnson_llf`. If there is
            nan that must not be.
    Example: fg.scipy.stats.yeojohnson(np.array([-1.0, 2.0, 4.0]), 0.5)
        -> array([-1.21895142,  1.46410162,  2.47213595])
    """
    if lmbda is None:
        raise ArgumentError(
            "yeojohnson: give lmbda. To find it, minimise -yeojohnson_llf with "
            "funcgrad.optim.minimize, or call scipy.stats.yeojohnson on known values."
        )
    x, exponent = floating("yeojohnson", x, lmbda)
    check_policy("yeojohnson", nan_policy, x)
    return _yeojohnson(x, exponent)


@quiet
def yeojohnson_llf(
    lmb: Any, data: Any, *, axis: Axis = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Logarithm of the likelihood of an exponent in `yeojohnson`.

    Returns: Logarithms of likelihoods.
    Example: fg.scipy.stats.yeojohnson_llf(0.5, np.array([-1.0, 2.0, 4.0]))
        -> np.float64(-2.3371629395045677)
    """
    sample = Sample("yeojohnson_llf", data, axis, nan_policy)
    exponent = floating("yeojohnson_llf", lmb, sample.x)[0]
    moved = _yeojohnson(sample.x, exponent)
    apart = moved - sample.mean(moved)
    x = sample.x
    logs = p.sign.bind(x) * f.log1p(p.absolute.bind(x))
    log_var = f.log(sample.mean(apart * apart))
    return sample.finished((exponent - 1) * sample.total(logs) - 0.5 * sample.n * log_var, keepdims)
