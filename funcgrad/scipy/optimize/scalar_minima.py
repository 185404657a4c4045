"""Minima of functions of one number.

Outside of transformations SciPy's methods run. Inside, Brent's search does, as a loop that compiles
(Brent, Algorithms for Minimization without Derivatives, 1973, chapter 5), and the minimum is
differentiated implicitly: through ``f'(x) = 0``, or as a constant at the bound where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.optimize

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.differentiation import grad
from funcgrad.errors import ArgumentError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.scipy.optimize.systems import is_known
from funcgrad.scipy.results import Result

Function = Callable[..., Any]

GOLDEN = 1.618034
SHORT = 0.3819660
FARTHEST = 110.0


def minimize_scalar(
    fun: Function,
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: Any = None,
    tol: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Local minimum of a function of one number, as `scipy.optimize.minimize_scalar`.

    Args:
        fun: ``fun(x, *args)``, a real number.
        bracket: Two numbers from where a valley is looked for, or three of which the one in the
            middle has the lowest value.
        bounds: Two numbers between which the minimum is.
        method: ``"brent"``, ``"bounded"``; outside of transformations ``"golden"`` or a function.
        tol: Relative tolerance; with bounds an absolute one.
        options: Of SciPy's method; ``xtol`` or ``xatol``, and ``maxiter``, inside of
            transformations.
    Returns: A result with the fields ``x``, ``fun``, ``nit``, ``nfev`` and ``success``. With
        derivatives with respect to ``args``, the bounds and what ``fun`` closes over.
    Raises: ArgumentError: If another method is wanted for traced values, or the bracket has neither
            two nor three numbers.

    Example:
        >>> from funcgrad.scipy.optimize import minimize_scalar
        >>> lowest = lambda a: minimize_scalar(lambda x: (x * x - a) ** 2, bounds=(0.0, 5.0)).x
        >>> print(f"{fg.jit(lowest)(9.0):.5f} {fg.grad(lowest)(9.0):.5f}")
        3.00000 0.16667
    """
    args = args if isinstance(args, tuple) else (args,)
    if is_known(lambda x: fun(x, *args), bracket, bounds, args):
        return scipy.optimize.minimize_scalar(fun, bracket, bounds, args, method, tol, options)
    name = ("brent" if bounds is None else "bounded") if method is None else method
    if name not in ("brent", "bounded") or (name == "bounded") != (bounds is not None):
        raise ArgumentError(
            f"minimize_scalar: with traced values there is 'brent', and 'bounded' with bounds, got "
            f"method={method!r}. Call it outside of the transformed function."
        )
    given = dict(options or {})
    limit = given.get("maxiter", 500)
    points = _points("minimize_scalar", bounds if bounds is not None else bracket)

    def cost(x: Any) -> Any:
        found = fnp.asarray(as_value(fun(x, *args), "minimize_scalar"))
        return fnp.astype(fnp.reshape(found, ()), x.dtype)

    eps = float(np.finfo(points[0].dtype).eps)
    if bounds is None:
        xtol = given.get("xtol", 1.48e-8 if tol is None else tol)
        tolerances = fnp.maximum(xtol, eps**0.5), 1e-11

        def search(start: Any) -> Any:
            a, x, b, calls = _valley(cost, points)
            return _descend(cost, fnp.minimum(a, b), fnp.maximum(a, b), x, tolerances, limit, calls)

        residual = grad(cost)
    else:
        if len(points) != 2:
            raise ArgumentError(f"minimize_scalar: bounds must be two numbers, got {bounds!r}.")
        low, high = points
        fixed_low, fixed_high = (stop_gradient.bind(x) for x in points)
        xatol = given.get("xatol", 1e-5 if tol is None else tol)

        def search(start: Any) -> Any:
            x = fixed_low + (3 - 5**0.5) / 2 * (fixed_high - fixed_low)
            tolerances = eps**0.5, xatol / 3
            return _descend(cost, fixed_low, fixed_high, x, tolerances, limit, np.int64(0))

        def residual(x: Any) -> Any:
            """How far Newton's step leads that ends at the bounds."""
            slope = grad(cost)
            bend = abs(stop_gradient.bind(grad(slope)(x)))
            bend = fnp.where(bend > 0, bend, 1.0)
            return x - fnp.clip(x - slope(x) / bend, low, high)

    def solve(_: Function, start: Any) -> Any:
        x, count, calls, tolerance = search(start)
        # Slopes show differences that values of the function lose to rounding.
        slope, bend = grad(cost)(x), grad(grad(cost))(x)
        step = slope / fnp.where(bend > 0, bend, 1.0)
        is_near = (bend > 0) & (abs(step) <= 4 * tolerance)
        x = fnp.where(is_near, x - step, x)
        if bounds is not None:
            x = fnp.clip(x, fixed_low, fixed_high)
        return x, (count, calls, count < limit)

    start = stop_gradient.bind(points[0])
    x, (count, calls, converged) = lax.custom_root(
        residual, start, solve, lambda g, y: y / g(fnp.ones_like(y)), has_aux=True
    )
    return Result(x=x, success=converged, fun=cost(x), nit=count, nfev=calls)


def _points(name: str, points: Any) -> list[Any]:
    """The numbers of a bracket or of bounds, as floating values of one dtype."""
    points = (0.0, 1.0) if points is None else tuple(points)
    if len(points) not in (2, 3):
        raise ArgumentError(f"{name}: a bracket must be two or three numbers, got {points!r}.")
    values = [fnp.asarray(as_value(x, name)) for x in points]
    dtype = np.result_type(*(x.dtype for x in values))
    dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
    return [fnp.reshape(fnp.astype(x, dtype), ()) for x in values]


def _valley(f: Function, points: list[Any]) -> tuple[Any, Any, Any, Any]:
    """Three points of which the one in the middle is lowest, going down by growing steps.

    Press and others, Numerical Recipes, section 10.1.
    """
    points = [stop_gradient.bind(x) for x in points]
    if len(points) == 3:
        return (*points, np.int64(0))
    a, b = points
    is_up = f(a) < f(b)
    a, b = fnp.where(is_up, b, a), fnp.where(is_up, a, b)
    c = b + GOLDEN * (b - a)

    def grow(state: Any) -> Any:
        count, calls, (a, b, c), (fa, fb, fc), _ = state
        left, right = (b - a) * (fb - fc), (b - c) * (fb - fa)
        twice = fnp.where(abs(right - left) < 1e-21, 2e-21, 2 * (right - left))
        lowest = b - ((b - c) * right - (b - a) * left) / twice
        limit = b + FARTHEST * (c - b)
        is_inside = (lowest - c) * (b - lowest) > 0
        is_far = ~is_inside & ((lowest - limit) * (limit - c) >= 0)
        is_beyond = ~is_inside & ~is_far & ((lowest - limit) * (c - lowest) > 0)
        further = c + GOLDEN * (c - b)
        x = fnp.where(is_far, limit, fnp.where(is_inside | is_beyond, lowest, further))
        fx = f(x)
        is_found, is_end = is_inside & (fx < fc), is_inside & (fx > fb)
        falls = is_beyond & (fx < fc)
        again = (is_inside & ~is_found & ~is_end) | falls
        y = fnp.where(falls, x + GOLDEN * (x - c), further)
        fy = lax.cond(again, lambda: f(y), lambda: fx)
        shifted = _chosen(falls, (c, x, y), (b, c, fnp.where(again, y, x)))
        values = _chosen(falls, (fc, fx, fy), (fb, fc, fy))
        shifted = _chosen(is_found, (b, x, c), _chosen(is_end, (a, b, x), shifted))
        values = _chosen(is_found, (fb, fx, fc), _chosen(is_end, (fa, fb, fx), values))
        return count + 1, calls + 1 + again, shifted, values, is_found | is_end

    state = (np.int64(0), np.int64(3), (a, b, c), (f(a), f(b), f(c)), np.bool_(False))
    _, calls, (a, b, c), _, _ = lax.while_loop(
        lambda s: (s[3][2] < s[3][1]) & ~s[4] & (s[0] < 1000), grow, state
    )
    return a, b, c, calls


def _chosen(condition: Any, new: tuple[Any, ...], old: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(fnp.where(condition, x, y) for x, y in zip(new, old, strict=True))


def _descend(
    f: Function, a: Any, b: Any, x: Any, tolerances: tuple[Any, Any], limit: Any, calls: Any
) -> tuple[Any, Any, Any, Any]:
    """Brent's search between two points: parabolas, or shares of the longer side."""
    relative, absolute = tolerances

    def close(x: Any) -> Any:
        return relative * abs(x) + absolute

    def goes_on(state: Any) -> Any:
        count, (a, b), (x, _, _), *_ = state
        return (abs(x - (a + b) / 2) > 2 * close(x) - (b - a) / 2) & (count < limit)

    def step(state: Any) -> Any:
        count, (a, b), (x, w, v), (fx, fw, fv), last, before = state
        middle, tol = (a + b) / 2, close(x)
        r, q = (x - w) * (fx - fv), (x - v) * (fx - fw)
        p, q = (x - v) * q - (x - w) * r, 2 * (q - r)
        p, q = fnp.where(q > 0, -p, p), abs(q)
        fits = (abs(p) < abs(q * before / 2)) & (p > q * (a - x)) & (p < q * (b - x))
        fits = fits & (abs(before) > tol)
        way = p / fnp.where(fits, q, 1.0)
        is_at_end = (x + way - a < 2 * tol) | (b - x - way < 2 * tol)
        way = fnp.where(is_at_end, fnp.where(middle >= x, tol, -tol), way)
        side = fnp.where(x >= middle, a - x, b - x)
        way = fnp.where(fits, way, SHORT * side)
        before = fnp.where(fits, last, side)
        u = x + fnp.where(way >= 0, 1.0, -1.0) * fnp.maximum(abs(way), tol)
        u = fnp.astype(u, x.dtype)
        fu = f(u)
        is_lower, is_right = fu <= fx, u >= x
        moves_a = is_lower == is_right
        end = fnp.where(is_lower, x, u)
        ends = fnp.where(moves_a, end, a), fnp.where(moves_a, b, end)
        is_second = (fu <= fw) | (w == x)
        is_third = (fu <= fv) | (v == x) | (v == w)
        higher = _chosen(
            is_second,
            (x, u, w, fx, fu, fw),
            _chosen(is_third, (x, w, u, fx, fw, fu), (x, w, v, fx, fw, fv)),
        )
        x, w, v, fx, fw, fv = _chosen(is_lower, (u, x, w, fu, fx, fw), higher)
        return count + 1, ends, (x, w, v), (fx, fw, fv), fnp.astype(way, x.dtype), before

    fx = f(x)
    zero = fnp.zeros_like(x)
    state = (np.int64(0), (a, b), (x, x, x), (fx, fx, fx), zero, zero)
    count, _, (x, _, _), *_ = lax.while_loop(goes_on, step, state)
    return x, count, calls + 1 + count, close(x)


def brent(
    func: Function,
    args: Any = (),
    brack: Any = None,
    tol: Any = 1.48e-8,
    full_output: Any = 0,
    maxiter: int = 500,
) -> Any:
    """Minimum of a function of one number, from a bracket, as `scipy.optimize.brent`.

    Args:
        func: ``func(x, *args)``, a real number.
        brack: As in `minimize_scalar`.
        tol: Relative tolerance.
        full_output: Whether the result has the minimal value and the numbers of iterations and
            of calls as well.
    Returns: The minimum, or a tuple of four.

    Example:
        >>> from funcgrad.scipy.optimize import brent
        >>> print(f"{fg.grad(lambda a: brent(lambda x: (x - a**2) ** 2))(3.0):.5f}")
        6.00000
    """
    options = {"xtol": tol, "maxiter": maxiter}
    found = minimize_scalar(func, brack, None, args, "brent", None, options)
    return (found.x, found.fun, found.nit, found.nfev) if full_output else found.x


def fminbound(
    func: Function,
    x1: Any,
    x2: Any,
    args: Any = (),
    xtol: Any = 1e-5,
    maxfun: int = 500,
    full_output: Any = 0,
    disp: Any = 1,
) -> Any:
    """Minimum of a function of one number between bounds, as `scipy.optimize.fminbound`.

    Args:
        func: ``func(x, *args)``, a real number.
        x1: The lower bound.
        x2: The upper bound.
        xtol: Absolute tolerance.
        maxfun: The most calls.
        full_output: Whether the result has the minimal value, a number that is 0 for success, and
            the number of calls as well.
        disp: Accepted for SciPy's signature.
    Returns: The minimum, or a tuple of four.
    Example: print(f"{fg.scipy.optimize.fminbound(np.cos, 0.0, 6.0):.4f}") -> 3.1416
    """
    options = {"xatol": xtol, "maxiter": maxfun}
    found = minimize_scalar(func, None, (x1, x2), args, "bounded", None, options)
    if not full_output:
        return found.x
    return found.x, found.fun, fnp.where(found.success, 0, 1), found.nfev
