"""Waves as functions of time, differentiable in time and in what shapes them."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.errors import ArgumentError
from funcgrad.primitives.quotients import quotient
from funcgrad.scipy.lines import floating

__all__ = ["chirp", "gausspulse", "sawtooth", "square", "sweep_poly"]

_TURN = 2 * np.pi


def chirp(
    t: Any,
    f0: Any,
    t1: Any,
    f1: Any,
    method: str = "linear",
    phi: Any = 0,
    vertex_zero: bool = True,
    *,
    complex: bool = False,
) -> Any:
    """Wave whose frequency goes from ``f0`` at 0 to ``f1`` at ``t1``, as `scipy.signal.chirp`.

    Args:
        f0: Frequency at time 0.
        t1: A time.
        f1: Frequency at that time.
        method: "linear", "quadratic", "logarithmic" or "hyperbolic".
        vertex_zero: Whether the parabola of "quadratic" has its vertex at 0, or at ``t1``.
        complex: Whether the analytic signal is returned.
    Returns: An array like ``t``.
    Raises: ArgumentError: If there is no such method.

    Example:
        >>> from funcgrad.scipy import signal
        >>> print(np.round(signal.chirp(np.array([0.0, 0.25, 0.5]), 1.0, 1.0, 1.0), 12) + 0.0)
        [ 1.  0. -1.]
    """
    t, f0, t1, f1, phi = floating("chirp", t, f0, t1, f1, phi)
    if method in ("linear", "lin", "li"):
        turns = f0 * t + 0.5 * ((f1 - f0) / t1) * t * t
    elif method in ("quadratic", "quad", "q"):
        rate = (f1 - f0) / (t1 * t1)
        if vertex_zero:
            turns = f0 * t + rate * t**3 / 3
        else:
            turns = f1 * t + rate * ((t1 - t) ** 3 - t1**3) / 3
    elif method in ("logarithmic", "log", "lo"):
        turns = f0 * t * quotient("expm1").bind(t / t1 * fnp.log(f1 / f0))
    elif method in ("hyperbolic", "hyp"):
        turns = f0 * t * _logarithm(t * (f1 - f0) / (f1 * t1))
    else:
        raise ArgumentError(
            "chirp: method must be 'linear', 'quadratic', 'logarithmic' or 'hyperbolic', got "
            f"{method!r}."
        )
    phase = _TURN * turns + phi * (np.pi / 180)
    return fnp.exp(1j * phase) if complex else fnp.cos(phase)


def _logarithm(u: Any) -> Any:
    """``-log(abs(1 - u)) / u``, also at 0."""
    is_near = u < 0.5
    apart = fnp.where(is_near, 0.5, u)
    near = quotient("log1p").bind(-fnp.where(is_near, u, 0.5))
    return fnp.where(is_near, near, -fnp.log(fnp.abs(1 - apart)) / apart)


def sweep_poly(t: Any, poly: Any, phi: Any = 0) -> Any:
    """Wave whose frequency is a polynomial of time, as `scipy.signal.sweep_poly`.

    Args: poly: Coefficients, the highest power first; or a `numpy.poly1d`.
    Returns: An array like ``t``.
    Example: fg.scipy.signal.sweep_poly(np.array([0.0, 0.5, 1.0]), np.poly1d([1.0, 2.0]))
        -> array([ 1.        ,  0.70710678, -1.        ])
    """
    coefficients = poly.coeffs if isinstance(poly, np.poly1d) else poly
    t, coefficients, phi = floating("sweep_poly", t, coefficients, phi)
    turns = fnp.polyval(fnp.polyint(coefficients), t)
    return fnp.cos(_TURN * turns + phi * (np.pi / 180))


def _periodic(function: str, t: Any, share: Any) -> tuple[Any, Any, Any, Any]:
    """Time, within a period, the share of its first part, whether it is that, whether it is one."""
    t, share = floating(function, t, share)
    within = fnp.mod(t, _TURN)
    is_valid = (share >= 0) & (share <= 1)
    return within, share, within < share * _TURN, is_valid


def square(t: Any, duty: Any = 0.5) -> Any:
    """Square wave: 1 in the first part of every period of ``2 pi``, -1 in the rest.

    As `scipy.signal.square`.

    Args: duty: Share of the first part; nan is returned where it is not from 0 to 1.
    Returns: An array like ``t``. Its derivative is 0.
    Example: print(fg.scipy.signal.square(np.array([0.0, 2.0, 4.0]))) -> [ 1.  1. -1.]
    """
    within, _, is_first, is_valid = _periodic("square", t, duty)
    one = fnp.ones_like(within)
    return fnp.where(is_valid, fnp.where(is_first, one, -one), np.nan)


def sawtooth(t: Any, width: Any = 1) -> Any:
    """Sawtooth wave: from -1 to 1 and back in every period of ``2 pi``, as `scipy.signal.sawtooth`.

    Args: width: Share of the way up; nan is returned where it is not from 0 to 1.
    Returns: An array like ``t``. At a jump its derivative is that of what follows.
    Example: print(fg.scipy.signal.sawtooth(np.array([0.0, np.pi, 1.5 * np.pi])))
        -> [-1.   0.   0.5]
    """
    within, width, is_rising, is_valid = _periodic("sawtooth", t, width)
    up, down = fnp.where(is_rising, width, 1.0), fnp.where(is_rising, 0.0, 1 - width)
    down = fnp.where(is_rising, 1.0, fnp.where(is_valid, down, 1.0))
    rising = within / (np.pi * up) - 1
    falling = (np.pi * (width + 1) - within) / (np.pi * down)
    return fnp.where(is_valid, fnp.where(is_rising, rising, falling), np.nan)


def gausspulse(
    t: Any,
    fc: Any = 1000,
    bw: Any = 0.5,
    bwr: Any = -6,
    tpr: Any = -60,
    retquad: bool = False,
    retenv: bool = False,
) -> Any:
    """Sine wave with a Gaussian envelope, as `scipy.signal.gausspulse`.

    Args:
        t: Times, or "cutoff" for the time at which the bell has fallen to ``tpr``.
        fc: Frequency.
        bw: Width of the band, as a share of the frequency.
        bwr: Level in dB at which it is measured, negative.
        tpr: Level in dB of the cut-off time, negative.
        retquad: Whether the wave a quarter period later is returned as well.
        retenv: Whether the bell is returned as well.
    Returns: The wave; or a tuple of it and what was asked for.
    Example: print(fg.scipy.signal.gausspulse(0.0, fc=5)) -> 1.0
    """
    is_cutoff = isinstance(t, str)
    if is_cutoff and t != "cutoff":
        raise ArgumentError(f"gausspulse: t must be times or 'cutoff', got {t!r}.")
    t, fc, bw, bwr, tpr = floating("gausspulse", 0.0 if is_cutoff else t, fc, bw, bwr, tpr)
    decibel = np.log(10.0) / 20.0
    rate = fnp.square(np.pi * fc * bw) / (-4.0 * decibel * bwr)
    if is_cutoff:
        return fnp.sqrt(-decibel * tpr / rate)
    bell = fnp.exp(-rate * t * t)
    phase = _TURN * fc * t
    wave = bell * fnp.cos(phase)
    others = (bell * fnp.sin(phase),) if retquad else ()
    found = (wave, *others, *((bell,) if retenv else ()))
    return found if len(found) > 1 else wave
