"""Roots of functions of one number, found by loops that compile, differentiated implicitly.

Where ``f(x, a) = 0``, ``dx/da = -(df/da) / (df/dx)``: derivatives do not depend on how the root was
found (`funcgrad.lax.custom_root`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.differentiation import jvp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.objects import is_traced
from funcgrad.scipy.results import Result, register_result

__all__ = [
    "RootResults", "bisect", "brenth", "brentq", "fixed_point", "newton", "ridder", "root_scalar",
    "toms748",
]  # fmt: skip

Function = Callable[..., Any]

XTOL = 2e-12
RTOL = 8.881784197001252e-16


class RootResults(Result):
    """The result of `root_scalar`, by SciPy's names.

    They are ``root``, ``iterations``, ``function_calls``, ``converged``, ``flag`` and ``method``.

    Example: fg.scipy.optimize.root_scalar(lambda x: x**2 - 2, bracket=(0.0, 2.0)).root
        -> np.float64(1.4142135623731364)
    """

    @property
    def flag(self) -> str:
        """Outcome of the search."""
        converged = self["converged"]
        if is_traced(converged):
            return ""
        return "converged" if np.all(converged) else "convergence error"


register_result(RootResults)


class _Search:
    """A search for the root of a function of one number, or elementwise of an array.

    Args:
        name: How messages call it.
        f: The function.
        args: Further arguments.
        full_output: Whether a pair of the root and `RootResults` is wanted.
        disp: Whether failure is an error, where it is known.
    """

    def __init__(
        self, name: str, f: Function, args: Any, full_output: bool = False, disp: bool = True
    ) -> None:
        self.name = name
        self.args = args if isinstance(args, tuple) else (args,)
        self.function = f
        self.full_output = full_output
        self.disp = disp

    def f(self, x: Any) -> Any:
        """The function, whose values have the dtype of its argument."""
        return fnp.astype(fnp.asarray(as_value(self.function(x, *self.args), self.name)), x.dtype)

    def start(self, *points: Any) -> list[Any]:
        """Points as floating values of one dtype, without derivatives."""
        values = [as_value(x, self.name) for x in points]
        dtype = np.result_type(*(aval_of(x).dtype for x in values), np.float32)
        if all(isinstance(x, int | float) or aval_of(x).dtype.kind in "iub" for x in values):
            dtype = np.dtype(np.float64)
        return [stop_gradient.bind(fnp.astype(fnp.asarray(x), dtype)) for x in values]

    def between(self, method: Any, a: Any, b: Any, xtol: Any, rtol: Any, maxiter: int) -> Any:
        """The root between two points where the signs differ."""
        low, high = self.start(a, b)
        for x in (low, high):
            if x.shape:
                raise ArgumentError(
                    f"{self.name}: the ends of the interval must be numbers, got {aval_of(x)}. Map "
                    "over several by vmap."
                )
        ends = [stop_gradient.bind(self.f(x)) for x in (low, high)]
        if not any(is_traced(y) for y in ends) and ends[0] * ends[1] > 0:
            raise ValueError(f"{self.name}: f(a) and f(b) must have different signs")
        # Neighbouring numbers of the dtype are not told apart.
        rtol = fnp.maximum(rtol, 4 * np.finfo(low.dtype).eps)
        return self.run(low, lambda f, _: method(f, low, high, xtol, rtol, maxiter))

    def run(self, start: Any, method: Any) -> Any:
        """Find the root, and attach its derivatives."""
        root, (count, converged) = lax.custom_root(
            self.f, start, method, lambda g, y: y / g(fnp.ones_like(y)), has_aux=True
        )
        if self.disp and not is_traced(converged) and not np.all(converged):
            raise RuntimeError(f"{self.name}: failed to converge after {int(count)} iterations.")
        if not self.full_output:
            return root
        return root, RootResults(
            root=root,
            iterations=count,
            function_calls=count + 2,
            converged=converged,
            method=self.name,
        )


def _bisection(f: Function, a: Any, b: Any, xtol: Any, rtol: Any, maxiter: int) -> Any:
    rises = f(b) > f(a)

    def goes_on(state: Any) -> Any:
        count, low, high = state
        return (abs(high - low) > xtol + rtol * abs(low)) & (count < maxiter)

    def halve(state: Any) -> Any:
        count, low, high = state
        middle = (low + high) / 2
        value = f(middle)
        is_before = (value < 0) == rises
        is_root = value == 0
        low_, high_ = fnp.where(is_before, middle, low), fnp.where(is_before, high, middle)
        return count + 1, fnp.where(is_root, middle, low_), fnp.where(is_root, middle, high_)

    at_a, at_b = f(a) == 0, f(b) == 0
    low, high = fnp.where(at_b & ~at_a, b, a), fnp.where(at_a, a, b)
    count, low, high = lax.while_loop(goes_on, halve, (np.int64(0), low, high))
    root = fnp.where(low == high, low, (low + high) / 2)
    return root, (count, abs(high - low) <= xtol + rtol * abs(low))


def _brent(f: Function, a: Any, b: Any, xtol: Any, rtol: Any, maxiter: int) -> Any:
    """Brent, Algorithms for Minimization without Derivatives, 1973, chapter 4."""

    def ordered(state: Any) -> Any:
        """Point ``b`` is the best, ``c`` is across the root, ``a`` is the one before."""
        a, fa, b, fb, c, fc, before, step = state
        same = fnp.sign(fb) * fnp.sign(fc) > 0
        c, fc = fnp.where(same, a, c), fnp.where(same, fa, fc)
        before, step = fnp.where(same, b - a, before), fnp.where(same, b - a, step)
        swap = abs(fc) < abs(fb)
        a, fa = fnp.where(swap, b, a), fnp.where(swap, fb, fa)
        b, fb, c, fc = (
            fnp.where(swap, c, b),
            fnp.where(swap, fc, fb),
            fnp.where(swap, b, c),
            fnp.where(swap, fb, fc),
        )
        return a, fa, b, fb, c, fc, before, step

    def allowed(b: Any) -> Any:
        return (xtol + rtol * abs(b)) / 2

    def is_done(state: Any) -> Any:
        _, _, b, fb, c, _, _, _ = state
        return (fb == 0) | (abs(c - b) / 2 < allowed(b))

    def improve(state: Any) -> Any:
        a, fa, b, fb, c, fc, before, step = state
        delta, half = allowed(b), (c - b) / 2

        def safe(x: Any) -> Any:
            return fnp.where(x == 0, fnp.ones_like(x), x)

        secant = -fb * (b - a) / safe(fb - fa)
        da, dc = (fa - fb) / safe(a - b), (fc - fb) / safe(c - b)
        inverse = -fb * (fc * dc - fa * da) / safe(da * dc * (fc - fa))
        found = fnp.where(a == c, secant, inverse)
        is_short = 2 * abs(found) < fnp.minimum(abs(before), 3 * abs(half) - delta)
        is_good = (abs(before) > delta) & (abs(fb) < abs(fa)) & is_short
        before, step = fnp.where(is_good, step, half), fnp.where(is_good, found, half)
        least = fnp.where(half > 0, delta, -delta)
        new = b + fnp.where(abs(step) > delta, step, least)
        return ordered((b, fb, new, f(new), c, fc, before, step))

    fa, fb = f(a), f(b)
    start = ordered((a, fa, b, fb, a, fa, b - a, b - a))
    count, state = lax.while_loop(
        lambda s: ~is_done(s[1]) & (s[0] < maxiter),
        lambda s: (s[0] + 1, improve(s[1])),
        (np.int64(0), start),
    )
    return state[2], (count, is_done(state))


_METHODS = {
    "bisect": _bisection,
    "brentq": _brent,
    "brenth": _brent,
    "toms748": _brent,
    "ridder": _brent,
}

_DOC = """Root between two points where signs differ{how}.

    As `scipy.optimize.{name}`. The search compiles under `jit` and maps under `vmap`. The
    derivative of the root with respect to ``args`` and what ``f`` closes over is that of the
    implicit function theorem.

    Args:
        f: ``f(x, *args)``, a number.
        a: One end of the interval.
        b: The other end.
        args: Further arguments.
        {more}xtol: Absolute tolerance of the root.
        rtol: Relative tolerance of the root.
        maxiter: The most iterations.
        full_output: Whether a pair of the root and `RootResults` is returned.
        disp: Whether failure to converge is an error, where that is known.

    Returns:
        The root.

    Raises:
        ValueError: If both ends are known to have the same sign.
        RuntimeError: If it is known not to have converged.

    Example:
        >>> import funcgrad as fg
        >>> from funcgrad.scipy.optimize import {name}
        >>> root = lambda a: {name}(lambda x, a: x**3 - a, 0.0, 9.0, args=(a,))
        >>> print(f"{{root(8.0):.6f}} {{fg.grad(root)(8.0):.6f}}")
        2.000000 0.083333
    """


def _bracketing(name: str, how: str) -> Function:
    def find(
        f: Function, a: Any, b: Any, args: Any = (), xtol: Any = XTOL, rtol: Any = RTOL,
        maxiter: int = 100, full_output: bool = False, disp: bool = True,
    ) -> Any:  # fmt: skip
        search = _Search(name, f, args, full_output, disp)
        return search.between(_METHODS[name], a, b, xtol, rtol, maxiter)

    find.__name__ = find.__qualname__ = name
    find.__doc__ = _DOC.format(name=name, how=how, more="")
    return find


bisect = _bracketing("bisect", ", by halving")
brentq = _bracketing("brentq", ", by Brent's method")
brenth = _bracketing("brenth", "; it is found by `brentq`'s method")
ridder = _bracketing("ridder", "; it is found by `brentq`'s method")


def toms748(
    f: Function, a: Any, b: Any, args: Any = (), k: int = 1, xtol: Any = XTOL, rtol: Any = RTOL,
    maxiter: int = 100, full_output: bool = False, disp: bool = True,
) -> Any:  # fmt: skip
    return _Search("toms748", f, args, full_output, disp).between(_brent, a, b, xtol, rtol, maxiter)


toms748.__doc__ = _DOC.format(
    name="toms748",
    how="; it is found by `brentq`'s method",
    more="k: Accepted for SciPy's signature.\n        ",
)


def newton(
    func: Function,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: Any = 1.48e-8,
    maxiter: int = 50,
    fprime2: Any = None,
    x1: Any = None,
    rtol: Any = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Root by Newton's method, with exact derivatives, as `scipy.optimize.newton`.

    The derivative of the root is that of the implicit function theorem.

    Args:
        func: ``func(x, *args)``, elementwise of an array.
        tol: Absolute tolerance of the root.
        full_output: Whether a pair of the root and `RootResults` is returned.
    Returns: The root, of the shape of ``x0``.
    Raises: RuntimeError: If it is known not to have converged.

    Example:
        >>> root = lambda a: fg.scipy.optimize.newton(lambda x, a: x**3 - a, 1.5, args=(a,))
        >>> print(f"{root(8.0):.6f} {fg.grad(root)(8.0):.6f}")
        2.000000 0.083333
    """
    search = _Search("newton", func, args, full_output, disp)
    (start,) = search.start(x0)

    def improve(f: Function, start: Any) -> Any:
        start = fnp.asarray(start)

        def step(state: Any) -> Any:
            count, x, _ = state
            value, slope = jvp(f, (x,), (fnp.ones_like(x),))
            change = fnp.where(value == 0, 0.0 * value, value / slope)
            new = fnp.astype(x - change, x.dtype)
            return count + 1, new, fnp.all(abs(change) <= tol + rtol * abs(new))

        count, x, is_done = lax.while_loop(
            lambda s: ~s[2] & (s[0] < maxiter), step, (np.int64(0), start, np.bool_(False))
        )
        return x, (count, is_done)

    return search.run(start, improve)


def root_scalar(
    f: Function,
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: Any = None,
    rtol: Any = None,
    maxiter: int | None = None,
    options: Any = None,
) -> RootResults:
    """Root of a function of one number, as `scipy.optimize.root_scalar`.

    Args:
        f: ``f(x, *args)``.
        args: Further arguments, with respect to which the root is differentiated.
        method: ``"bisect"``, ``"brentq"``, ``"brenth"``, ``"ridder"``, ``"toms748"``, ``"newton"``,
            ``"secant"`` or ``"halley"``; by default `brentq` with a bracket, else `newton`, by
            which the last two are done too.
        bracket: Two points where signs differ.
        xtol: Absolute tolerance.
        options: Further options, of these names.
    Returns: `RootResults`, whose ``root`` is differentiable.
    Raises: ArgumentError: If there is neither a bracket nor a point, or the method is not known.

    Example:
        >>> from funcgrad.scipy.optimize import root_scalar
        >>> print(f"{root_scalar(lambda x: x**3 - 8, bracket=[0.0, 9.0]).root:.6f}")
        2.000000
    """
    if method is None:
        method = "brentq" if bracket is not None else "newton"
    given = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter} | dict(options or {})
    chosen = {name: value for name, value in given.items() if value is not None}
    if method in _METHODS:
        if bracket is None:
            raise ArgumentError(f"root_scalar: {method!r} needs bracket=[a, b].")
        low, high = bracket
        search = _Search(method, f, args, full_output=True, disp=False)
        full = {"xtol": XTOL, "rtol": RTOL, "maxiter": 100} | chosen
        return search.between(_METHODS[method], low, high, **full)[1]
    if method not in ("newton", "secant", "halley"):
        raise ArgumentError(
            f"root_scalar: the method must be one of {', '.join(map(repr, _METHODS))}, 'newton', "
            f"'secant' or 'halley', got {method!r}."
        )
    if x0 is None:
        raise ArgumentError(f"root_scalar: {method!r} needs x0=, where to begin.")
    if "xtol" in chosen:
        chosen["tol"] = chosen.pop("xtol")
    return newton(f, x0, args=args, full_output=True, disp=False, **chosen)[1]


def fixed_point(
    func: Function,
    x0: Any,
    args: Any = (),
    xtol: Any = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
) -> Any:
    """Fixed point ``func(x, *args) == x``, element by element, as `scipy.optimize.fixed_point`.

    Args:
        func: The function.
        args: Further arguments, with respect to which the fixed point is differentiated.
        xtol: Relative tolerance.
        method: ``"del2"``, with Aitken's acceleration, or ``"iteration"``.
    Returns: The fixed point, of the shape of ``x0``.
    Raises: RuntimeError: If it is known not to have converged.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> from funcgrad.scipy.optimize import fixed_point
        >>> dottie = lambda a: fixed_point(lambda x, a: fg.numpy.cos(a * x), 0.5, args=(a,))
        >>> print(f"{dottie(1.0):.6f}")
        0.739085
    """
    search = _Search("fixed_point", func, args)
    (start,) = search.start(x0)
    f = search.f

    def iterate(_: Function, start: Any) -> Any:
        start = fnp.asarray(start)

        def step(state: Any) -> Any:
            count, x, _ = state
            once = f(x)
            new = once
            if method == "del2":
                twice = f(once)
                bend = twice - 2 * once + x
                is_bent = bend != 0
                new = fnp.where(is_bent, x - (once - x) ** 2 / fnp.where(is_bent, bend, 1.0), twice)
            change = fnp.where(x == 0, abs(new), abs((new - x) / fnp.where(x == 0, 1.0, x)))
            return count + 1, fnp.astype(new, x.dtype), fnp.all(change < xtol)

        count, x, is_done = lax.while_loop(
            lambda s: ~s[2] & (s[0] < maxiter), step, (np.int64(0), start, np.bool_(False))
        )
        return x, (count, is_done)

    search.f = lambda x: f(x) - x  # type: ignore[method-assign]
    return search.run(start, iterate)
