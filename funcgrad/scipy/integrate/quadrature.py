"""Integrals of functions: fixed and adaptive rules, differentiable under the integral sign.

Adaptive rules halve the interval with the largest error until the sum of errors is small enough
(Piessens and others, QUADPACK, 1983). Which intervals come of it is found without derivatives; then
the rule is evaluated on them once more, and derivatives are those of this sum: the same rule
applied to the derivative of the integrand, plus what the ends of the interval contribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.vectorization import vmap
from funcgrad.base.signatures import signature_of
from funcgrad.core.avals import ShapedArray
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.closures import run_lifted, tracers_in
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.objects import is_traced
from funcgrad.transforms.stage import stage

__all__ = ["dblquad", "fixed_quad", "nquad", "quad", "quad_vec", "tplquad"]

_NODES = [
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452,
    0.930157491355708226001207180059508, 0.865063366688984510732096688423493,
    0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784,
    0.294392862701460198131126603103866, 0.148874338981631210884826001129720,
]  # fmt: skip
_WEIGHTS = [
    0.011694638867371874278064396062192, 0.032558162307964727478818972459390,
    0.054755896574351996031381300244580, 0.075039674810919952767043140916190,
    0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109585166, 0.134709217311473325928054001771707,
    0.142775938577060080797094273138717, 0.147739104901338491374841515972068,
]  # fmt: skip
_MIDDLE = 0.149445554002916905664936468389821
NODES = np.array([*[-x for x in _NODES], 0.0, *_NODES[::-1]])
KRONROD = np.array([*_WEIGHTS, _MIDDLE, *_WEIGHTS[::-1]])
"""Kronrod's rule of 21 nodes, of which every other one is a node of Gauss's rule of 10."""
GAUSS = np.zeros(21)
GAUSS[1::2] = np.polynomial.legendre.leggauss(10)[1]

_NUMBER = ShapedArray((), np.dtype(np.float64))


def fixed_quad(
    func: Callable[..., Any], a: Any, b: Any, args: tuple[Any, ...] = (), n: int = 5
) -> tuple[Any, None]:
    """Integral by the Gauss-Legendre rule of ``n`` nodes, as `scipy.integrate.fixed_quad`.

    Args:
        func: ``func(x, *args)`` of a vector, with values along the last axis.
        n: Number of nodes.
    Returns: The integral, and ``None``.
    Example: print(f"{fg.scipy.integrate.fixed_quad(lambda x: x**3, 0.0, 2.0)[0]:.6f}") -> 4.000000
    """
    nodes, weights = np.polynomial.legendre.leggauss(n)
    half = (b - a) / 2
    return half * fnp.sum(weights * func(half * (nodes + 1) + a, *args), axis=-1), None


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = 0,
    epsabs: Any = 1.49e-8,
    epsrel: Any = 1.49e-8,
    limit: int = 50,
    points: Any = None,
    weight: Any = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: Any = 50,
    limlst: Any = 50,
    complex_func: bool = False,
) -> Any:
    """Integral of a function by adaptive quadrature, as `scipy.integrate.quad`.

    Derivatives with respect to ``a``, ``b``, ``args`` and what ``func`` closes over are integrals
    of the derivative by the same intervals; they are as exact as these allow.

    Args:
        func: ``func(x, *args)`` of a number.
        a: Begin, possibly ``-inf``.
        b: End, possibly ``inf``. Infinite ends must be known, finite ones may be traced.
        full_output: Whether a dict with the number of intervals is returned, too.
        limit: The most intervals.
        weight: Must be ``None``: write the weight into the function.
        wvar: Accepted for SciPy's signature.
        wopts: Accepted for SciPy's signature.
        maxp1: Accepted for SciPy's signature.
        limlst: Accepted for SciPy's signature.
        complex_func: Accepted for SciPy's signature: values may always be complex.
    Returns: The integral and an estimate of its error.
    Raises: ArgumentError: If there is a ``weight``.

    Example:
        >>> from funcgrad.scipy.integrate import quad
        >>> moment = lambda s: quad(lambda x: x * fg.numpy.exp(-s * x), 0, np.inf)[0]
        >>> print(f"{moment(2.0):.8f} {fg.grad(moment)(2.0):.8f}")
        0.25000000 -0.25000000
    """
    args = args if isinstance(args, tuple) else (args,)
    options = {
        "epsabs": epsabs,
        "epsrel": epsrel,
        "limit": limit,
        "points": points,
        "weight": weight,
    }
    value, error, count, evaluations = _integral(lambda x: func(x, *args), a, b, options)
    if full_output:
        return value, error, {"last": count, "neval": evaluations}
    return value, error


def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: Any = 1e-200,
    epsrel: Any = 1e-8,
    norm: str = "2",
    cache_size: float = 100e6,
    limit: int = 200,
    workers: Any = 1,
    points: Any = None,
    quadrature: Any = None,
    full_output: bool = False,
    *,
    args: Any = (),
) -> Any:
    """Integral of a function whose values are arrays, as `scipy.integrate.quad_vec`.

    Args:
        f: ``f(x, *args)`` of a number.
        a: As in `quad`.
        b: As in `quad`.
        epsabs: Absolute tolerance of the norm.
        epsrel: Relative tolerance of the norm.
        norm: ``"2"`` or ``"max"``.
        cache_size: Accepted for SciPy's signature.
        limit: The most intervals. They are all evaluated where values are traced.
        workers: Accepted for SciPy's signature.
        quadrature: Accepted for SciPy's signature: it is Kronrod's rule of 21 nodes.
        full_output: Whether a dict with the number of intervals is returned, too.
    Returns: The integral and an estimate of its error.

    Example:
        >>> powers = np.arange(3.0)
        >>> print(fg.scipy.integrate.quad_vec(lambda x: x**powers, 0.0, 1.0)[0].round(6))
        [1.       0.5      0.333333]
    """
    if norm not in ("2", "max"):
        raise ArgumentError(f"quad_vec: norm must be '2' or 'max', got {norm!r}.")
    args = args if isinstance(args, tuple) else (args,)
    value, error, count, evaluations = _adaptive(
        lambda x: f(x, *args), a, b, epsabs, epsrel, limit, points, norm
    )
    if full_output:
        return value, error, {"intervals": count, "neval": evaluations}
    return value, error


def dblquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: tuple[Any, ...] = (),
    epsabs: Any = 1.49e-8,
    epsrel: Any = 1.49e-8,
) -> tuple[Any, Any]:
    """Integral of ``func(y, x)``, as `scipy.integrate.dblquad`.

    Args:
        func: ``func(y, x, *args)``.
        a: Begin in ``x``.
        b: End in ``x``.
    Returns: The integral and an estimate of its error.

    Example:
        >>> from funcgrad.scipy.integrate import dblquad
        >>> print(f"{dblquad(lambda y, x: x * y, 0.0, 1.0, 0.0, lambda x: x)[0]:.6f}")
        0.125000
    """

    def range_in_y(x: Any, *_: Any) -> list[Any]:
        return [end(x) if callable(end) else end for end in (gfun, hfun)]

    options = {"epsabs": epsabs, "epsrel": epsrel}
    return nquad(func, [range_in_y, [a, b]], args, options)


def tplquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: tuple[Any, ...] = (),
    epsabs: Any = 1.49e-8,
    epsrel: Any = 1.49e-8,
) -> tuple[Any, Any]:
    """Integral of ``func(z, y, x)``, as `scipy.integrate.tplquad`.

    Args:
        func: ``func(z, y, x, *args)``.
        a: Begin in ``x``.
        b: End in ``x``.
        qfun: Begin in ``z``: a number or a function of ``x`` and ``y``.
        rfun: End in ``z``, likewise.
    Returns: The integral and an estimate of its error.

    Example:
        >>> fg.scipy.integrate.tplquad(lambda z, y, x: 1.0, 0.0, 1.0, 0.0, lambda x: x, 0.0, 2.0)[0]
        np.float64(1.0000000000000002)
    """

    def range_in_z(y: Any, x: Any, *_: Any) -> list[Any]:
        return [end(x, y) if callable(end) else end for end in (qfun, rfun)]

    def range_in_y(x: Any, *_: Any) -> list[Any]:
        return [end(x) if callable(end) else end for end in (gfun, hfun)]

    options = {"epsabs": epsabs, "epsrel": epsrel}
    return nquad(func, [range_in_z, range_in_y, [a, b]], args, options)


def nquad(
    func: Callable[..., Any],
    ranges: Sequence[Any],
    args: Any = None,
    opts: Any = None,
    full_output: bool = False,
) -> Any:
    """Integrals over several variables, one within the other, as `scipy.integrate.nquad`.

    Args:
        func: ``func(x0, ..., xn, *args)``.
        ranges: For every variable, innermost first, a pair of ends, or a function of the variables
            after it, and ``args``, that gives them.
        opts: Options of `quad`, a dict for all or one for each variable.
        full_output: Whether an empty dict is returned, too.
    Returns: The integral and an estimate of the error of the outermost one.

    Example:
        >>> from funcgrad.scipy.integrate import nquad
        >>> print(f"{nquad(lambda x, y: x + y, [[0.0, 1.0], [0.0, 2.0]])[0]:.6f}")
        3.000000
    """
    rest = () if args is None else tuple(args) if isinstance(args, tuple | list) else (args,)
    n = len(ranges)
    options = opts if isinstance(opts, list | tuple) else [opts or {}] * n
    _, dtype = _type_of(lambda *xs: func(*xs, *rest), n)

    def over(level: int, *outer: Any, is_search: bool = False) -> Any:
        ends = ranges[level]
        low, high = ends(*outer, *rest) if callable(ends) else ends
        given = options[level]
        given = given(*outer, *rest) if callable(given) else given

        def inner(x: Any, is_search: bool = is_search) -> Any:
            if level:
                return over(level - 1, x, *outer, is_search=is_search)[0]
            return func(x, *outer, *rest)

        # Where intervals are looked for, integrals inside need no second evaluation.
        nested = _Nested(partial(inner, is_search=True), dtype, is_search)
        return _integral(inner, low, high, given, nested)

    found = over(n - 1)[:2]
    return (*found, {}) if full_output else found


class _Nested(NamedTuple):
    """An integrand that is an integral itself.

    Args:
        search: The integrand without derivatives.
        dtype: Of its values, which are numbers.
        is_search: Whether the integral is needed without derivatives.
    """

    search: Callable[[Any], Any]
    dtype: np.dtype[Any]
    is_search: bool


def _integral(
    f: Callable[[Any], Any], a: Any, b: Any, options: dict[str, Any], nested: _Nested | None = None
) -> tuple[Any, Any, Any, Any]:
    """Integrate as `_adaptive`, with options of `quad`."""
    given = signature_of(quad).bind(f, a, b, **options)
    given.apply_defaults()
    if given.arguments["weight"] is not None:
        raise ArgumentError("quad: write the weight into the function, and leave out weight=.")
    chosen = {name: given.arguments[name] for name in ("epsabs", "epsrel", "limit", "points")}
    return _adaptive(f, a, b, **chosen, nested=nested)


def _type_of(f: Callable[..., Any], count: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape of the values of a function of scalars, and their dtype promoted with float64."""
    program, _ = stage(lambda *xs: [f(*xs)], [_NUMBER] * count, "quad")
    (aval,) = program.out_avals
    return aval.shape, np.result_type(aval.dtype, np.float64)


def _adaptive(
    f: Callable[[Any], Any],
    a: Any,
    b: Any,
    epsabs: Any,
    epsrel: Any,
    limit: int,
    points: Any,
    norm: str = "2",
    nested: _Nested | None = None,
) -> tuple[Any, Any, Any, Any]:
    """The integral, its error, and numbers of intervals and of evaluations."""
    integrand, breaks = _on_unit_interval(f, a, b, points)
    searched = integrand
    if nested is not None:
        searched, _ = _on_unit_interval(nested.search, a, b, points)
    first = len(breaks) - 1
    limit = max(limit, first)

    def of_intervals(g: Callable[[Any], Any], low: Any, high: Any) -> tuple[Any, Any]:
        """Integrals over intervals, and norms of their errors."""
        half = (high - low) / 2
        places = low[:, None] + half[:, None] * (NODES + 1)
        values = vmap(vmap(g))(places)
        shape = (len(low), *(1,) * (values.ndim - 2))
        scale = fnp.reshape(half, shape)
        integral = scale * fnp.tensordot(values, KRONROD, axes=([1], [0]))
        if values.ndim > 2:
            integral = fnp.einsum("ij...,j->i...", values, KRONROD) * scale
        return integral, (values, scale)

    def errors(integral: Any, parts: Any) -> Any:
        values, scale = parts
        gauss = scale * fnp.einsum("ij...,j->i...", values, GAUSS)
        width = 2 * scale
        mean = integral / fnp.where(width == 0, 1.0, width)
        spread = scale * fnp.einsum("ij...,j->i...", abs(values - mean[:, None]), KRONROD)
        gap, spread = _norms(integral - gauss, norm), _norms(spread, norm)
        ratio = fnp.minimum(1.0, (200 * gap / fnp.where(spread == 0, 1.0, spread)) ** 1.5)
        return fnp.where(spread > 0, spread * ratio, gap)

    captured = tracers_in(f, a, b)

    def find(*fixed: Any) -> list[Any]:
        def search() -> list[Any]:
            shape, dtype = _type_of(searched, 1) if nested is None else ((), nested.dtype)
            rest = np.zeros(limit - first)
            state = (
                np.int64(first),
                np.int64(first),
                fnp.concatenate([breaks[:-1], rest]),
                fnp.concatenate([breaks[1:], rest]),
                np.zeros((limit, *shape), dtype),
                np.zeros(limit),
            )

            def goes_on(state: Any) -> Any:
                count, waiting, _, _, value, error = state
                size = _norms(fnp.sum(value, axis=0)[None], norm)[0]
                allowed = fnp.maximum(epsabs, epsrel * size)
                return (waiting > 0) | ((count < limit) & (fnp.sum(error) > allowed))

            def evaluate(state: Any) -> Any:
                """One of the intervals that wait, which are the last ones, or half of the worst.

                The integrand stands here once: integrals inside of integrals are long.
                """
                count, waiting, low, high, value, error = state
                halves = waiting == 0
                place = fnp.where(halves, fnp.argmax(error), count - waiting)
                begin, end = fnp.take(low, place), fnp.take(high, place)
                middle = fnp.where(halves, (begin + end) / 2, end)
                last = fnp.where(halves, count, place)
                low = _with_row(low, fnp.where(halves, middle, begin), last)
                high = _with_row(_with_row(high, end, last), middle, place)
                new, parts = of_intervals(searched, begin[None], middle[None])
                return (
                    count + halves,
                    fnp.where(halves, 1, waiting - 1),
                    low,
                    high,
                    _with_row(value, new[0], place),
                    _with_row(error, errors(new, parts)[0], place),
                )

            count, _, low, high, value, error = lax.while_loop(goes_on, evaluate, state)
            return [count, low, high, fnp.sum(value, axis=0), fnp.sum(error)]

        return run_lifted(captured, fixed, search)

    count, low, high, found, error = find(*(stop_gradient.bind(x) for x in captured))
    is_known = not is_traced(count) and not is_traced(found)
    if (is_known and not captured) or (nested is not None and nested.is_search):
        value = found
    elif nested is not None and is_traced(count):

        def add(i: Any, total: Any) -> Any:
            parts, _ = of_intervals(integrand, fnp.take(low, i)[None], fnp.take(high, i)[None])
            return total + parts[0]

        value = lax.fori_loop(0, count, add, np.zeros((), nested.dtype))
    elif is_traced(count):
        # Unused places repeat the first interval, and are left out of the sum.
        is_used = np.arange(limit) < count
        low, high = fnp.where(is_used, low, low[0]), fnp.where(is_used, high, high[0])
        parts, _ = of_intervals(integrand, low, high)
        parts = fnp.where(fnp.reshape(is_used, (limit, *(1,) * (parts.ndim - 1))), parts, 0.0)
        value = fnp.sum(parts, axis=0)
    else:
        parts, _ = of_intervals(integrand, low[: int(count)], high[: int(count)])
        value = fnp.sum(parts, axis=0)
    return value, error, count, (2 * count - first) * 21


def _with_row(array: Any, row: Any, place: Any) -> Any:
    """An array with another row at a place."""
    return lax.dynamic_update_index_in_dim(array, row, place, 0)


def _norms(values: Any, norm: str) -> Any:
    """The norm of every element along the first axis."""
    flat = fnp.reshape(abs(values), (values.shape[0], math.prod(values.shape[1:])))
    if norm == "max":
        return fnp.max(flat, axis=1)
    return flat[:, 0] if flat.shape[1] == 1 else fnp.sqrt(fnp.sum(flat * flat, axis=1))


def _on_unit_interval(
    f: Callable[[Any], Any], a: Any, b: Any, points: Any
) -> tuple[Callable[[Any], Any], Any]:
    """The integrand of a variable from 0 to 1, and where its first intervals end."""
    a, b = as_value(a, "quad"), as_value(b, "quad")
    is_infinite = [not is_traced(x) and bool(np.isinf(x)) for x in (a, b)]
    if not any(is_infinite):
        inner = np.sort(np.ravel(np.asarray([] if points is None else points, np.float64)))
        width = b - a

        def inside(u: Any) -> Any:
            return f(a + width * u) * width

        places = (inner - stop_gradient.bind(a)) / stop_gradient.bind(width) if inner.size else []
        return inside, fnp.concatenate([np.zeros(1), places, np.ones(1)])
    if all(is_infinite):
        sign = 0.0 if a == b else 1.0 if b > a else -1.0

        def on_line(u: Any) -> Any:
            x = (1 - u) / u
            return sign * (f(x) + f(-x)) / (u * u)

        return on_line, np.array([0.0, 1.0])
    finite, end = (a, b) if is_infinite[1] else (b, a)
    way = 1.0 if end > 0 else -1.0
    sign = way if is_infinite[1] else -way

    def on_ray(u: Any) -> Any:
        return sign * f(finite + way * (1 - u) / u) / (u * u)

    return on_ray, np.array([0.0, 1.0])
