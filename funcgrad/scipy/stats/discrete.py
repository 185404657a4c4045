"""Distributions of integers.

Probabilities are differentiable in the parameters; their derivative in the integer counts as 0, and
so do those of quantiles.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.compilation import jit
from funcgrad.api.vectorization import vmap
from funcgrad.base.signatures import explain
from funcgrad.core.avals import aval_of
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.reductions import ReduceAny
from funcgrad.primitives.shape import broadcast_to, shape_of
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import (
    Distribution,
    Method,
    Moments,
    Standard,
    both,
    either,
    family,
    quiet,
)
from funcgrad.scipy.stats.meanings import METHODS

__all__ = ["bernoulli", "betabinom", "binom", "geom", "hypergeom", "nbinom", "poisson", "randint"]

_INF = math.inf
_NEGLIGIBLE = 1e-25
_LOG_NEGLIGIBLE = -700.0


class Discrete(Distribution):
    """A family of distributions of integers."""

    def log_mass(self, k: Any, *parameters: Any) -> Any:
        """Logarithm of the probability of an integer of the support."""
        raise NotImplementedError

    def mass(self, k: Any, *parameters: Any) -> Any:
        """Its probability."""
        return f.exp(self.log_mass(k, *parameters))

    def entropy_of(self, *parameters: Any) -> Any:
        """Entropy: the sum over the integers whose probability is not negligible."""
        low, high = self.support_of(*parameters)
        if f.is_infinite(high):
            own = [f.stop_gradient(v) for v in parameters]
            start = 0 * sum(own[1:], own[0]) + low
            valid = self.is_valid(*own)
            high = _search(self._is_negligible)(start, valid, *own)

        def term(k: Any) -> Any:
            logs = self.log_mass(k, *parameters)
            return f.select(logs < _LOG_NEGLIGIBLE, 0.0, -f.exp(logs) * logs)

        return _summed(term, low, high)

    @quiet
    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Logarithm of the probability of ``k``.

        Returns: Logarithms, ``-inf`` for what is no integer of the support.
        """
        return self._mass(self._standardized("logpmf", k, args, kwargs), self.log_mass, -_INF)

    @quiet
    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Probability of ``k``.

        Returns: Probabilities, 0 for what is no integer of the support.
        """
        return self._mass(self._standardized("pmf", k, args, kwargs), self.mass, 0.0)

    def _mass(self, found: Standard, formula: Method, outside: float) -> Any:
        low, high = self.support_of(*found.parameters)
        y = f.stop_gradient(found.y)
        is_outside = either(y < low, y > high)
        is_outside = either(is_outside, both(p.bitwise_not.bind(p.isnan.bind(y)), f.floor(y) != y))
        is_outside = either(is_outside, p.isinf.bind(y))
        out = f.select(p.isnan.bind(y), math.nan, formula(y, *found.parameters))
        return self._checked(f.select(is_outside, outside, out), found)

    def _probability(self, found: Standard, formula: Method, before: float, after: float) -> Any:
        low, high = self.support_of(*found.parameters)
        y = f.floor(f.stop_gradient(found.y))
        out = f.select(y < low, before, formula(y, *found.parameters))
        return self._checked(f.select(y >= high, after, out), found)

    @quiet
    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The least integer whose `cdf` is not below ``q``.

        Returns: Integers, in a floating dtype; nan where ``q`` is no probability.
        """
        (q,), found = self._arguments("ppf", [q], args, kwargs)
        return self._inverse(q, found, self._is_covered, 0, 1)

    @quiet
    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The least integer whose `sf` is not above ``q``.

        Returns: Integers, in a floating dtype; nan where ``q`` is no probability.
        """
        (q,), found = self._arguments("isf", [q], args, kwargs)
        return self._inverse(q, found, self._is_left, 1, 0)

    def _is_covered(self, k: Any, high: Any, q: Any, *parameters: Any) -> Any:
        return either(self.below(k, *parameters) >= q - _slack(q), k >= high)

    def _is_left(self, k: Any, high: Any, q: Any, *parameters: Any) -> Any:
        return either(self.above(k, *parameters) <= q + _slack(q), k >= high)

    def _is_negligible(self, k: Any, *parameters: Any) -> Any:
        return self.above(k, *parameters) <= _NEGLIGIBLE

    def _inverse(
        self, q: Any, found: Standard, reached: Method, at_low: float, at_high: float
    ) -> Any:
        dtype = aval_of(q).dtype
        q, *own = (broadcast_to(f.stop_gradient(v), found.shape) for v in (q, *found.parameters))
        low, high = (
            broadcast_to(dtype.type(e) if isinstance(e, float) else e, found.shape)
            for e in self.support_of(*own)
        )
        inside = both(q > 0, q < 1)
        valid = self.is_valid(*own)
        searched = inside if valid is None else both(inside, valid)
        out = _search(reached)(low, searched, high, q, *own)
        out = f.select(q == at_low, low - 1, f.select(q == at_high, high, out))
        out = f.select(both(q >= 0, q <= 1), out, math.nan)
        return self._checked(out if found.loc is None else out + found.loc, found)


explain(vars(Discrete), METHODS)


def _slack(q: Any) -> Any:
    """Probabilities that differ by so much are equal: loops are compiled, and round differently.

    They are powers of e, whose relative errors are those of exponents of the size of ``log(q)``.
    """
    eps = float(np.finfo(aval_of(q).dtype).eps)
    return f.minimum(16 * eps * (q - f.xlogy(q, q)), 0.125 * (1 - q))


@lru_cache(maxsize=64)
def _search(reached: Method) -> Any:
    """The least integer from ``low`` on from which ``reached`` holds, as a compiled function.

    It is compiled once for all parameters: evaluated in eager mode, its loops would be traced and
    compiled by every call.

    Args: reached: From an integer and parameters to whether it is large enough.
    Returns: A function of ``low``, of where to search, and of the parameters.
    """
    return jit(lambda low, searched, *own: _least(lambda k: reached(k, *own), low, searched))


def _least(reached: Method, low: Any, searched: Any) -> Any:
    """Double steps until ``reached`` holds, then bisect."""

    def is_left(condition: Any) -> Any:
        open_ = both(condition, searched)
        return ReduceAny(tuple(range(len(shape_of(open_))))).bind(open_)

    def widened(state: Any) -> Any:
        below, step = state
        missed = p.bitwise_not.bind(reached(below + step))
        return f.select(missed, below + step, below), f.select(missed, 2 * step, step)

    below, step = lax.while_loop(
        lambda state: is_left(
            both(p.bitwise_not.bind(reached(state[0] + state[1])), state[1] < 1e300)
        ),
        widened,
        (low - 1, 0 * low + 1),
    )

    def halved(state: Any) -> Any:
        below, above = state
        middle = f.floor(0.5 * (below + above))
        is_there = reached(middle)
        return f.select(is_there, below, middle), f.select(is_there, middle, above)

    def is_wide(state: Any) -> Any:
        below, above = state
        return is_left(both(above - below > 1, f.floor(0.5 * (below + above)) > below))

    return lax.while_loop(is_wide, halved, (below, below + step))[1]


def _summed(term: Method, low: Any, high: Any) -> Any:
    """The sum of ``term(k)`` for all integers ``k`` from ``low`` to ``high``, in ascending order.

    Where the ends are known all terms are computed at once, else one after the other in a loop.
    """
    like = high if isinstance(low, float) else low
    dtype = aval_of(like).dtype
    first = dtype.type(low) if isinstance(low, float) else f.stop_gradient(low)
    last = f.stop_gradient(high)
    if not any(is_traced(v) for v in (first, last)):
        least, most = int(np.min(first, initial=0)), int(np.max(last, initial=0))

        def counted(k: Any) -> Any:
            return f.select(either(k < first, k > last), 0.0, term(k))

        out = vmap(counted)(np.arange(least, most + 1).astype(dtype))
        return fnp.sum(out, axis=0)

    def is_left(state: Any) -> Any:
        return fnp.any(state[0] <= last)

    def step(state: Any) -> Any:
        k, total = state
        return k + 1, total + f.select(either(k < first, k > last), 0.0, term(k))

    start = fnp.min(first, initial=2.0**53)
    total = 0 * term(start)
    return lax.while_loop(is_left, step, (start, total))[1]


def _log_inner(k: Any, rest: Any, q: Any, q_rest: Any) -> Any:
    """Logarithm of a binomial mass of both successes and failures."""
    return f.log_beta_kernel(q, q_rest, k, rest) + f.log((k + rest) / (k * rest))


def _log_ways(k: Any, rest: Any, q: Any, q_rest: Any) -> Any:
    """Logarithm of the binomial mass of ``k`` successes and ``rest`` failures."""
    only = f.select(k == 0, f.xlogy(rest, q_rest), f.xlogy(k, q))
    return f.select(either(k == 0, rest == 0), only, _log_inner(k, rest, q, q_rest))


def _bernoulli_moments(q: Any) -> Moments:
    var = q * (1 - q)
    return q, var, (1 - 2 * q) / f.sqrt(var), 1 / var - 6


bernoulli = family(
    Discrete,
    "bernoulli",
    "Bernoulli distribution: 1 with probability ``p``, else 0.",
    "logpmf(np.array([0, 1]), 0.3) -> array([-0.35667494, -1.2039728 ])",
    ("p",),
    support_of=lambda q: (0.0, 1.0),
    is_valid=lambda q: both(q >= 0, q <= 1),
    log_mass=lambda k, q: f.select(k == 0, f.log1p(-q), f.log(q)),
    mass=lambda k, q: f.select(k == 0, 1 - q, q),
    below=lambda k, q: f.select(k < 0, 0.0, f.select(k < 1, 1 - q, 1.0)),
    above=lambda k, q: f.select(k < 0, 1.0, f.select(k < 1, q, 0.0)),
    log_below=lambda k, q: f.log1p(-q),
    log_above=lambda k, q: f.log(q),
    entropy_of=lambda q: -f.xlogy(q, q) - f.xlog1py(1 - q, -q),
    moments=_bernoulli_moments,
)


def _binom_log_mass(k: Any, n: Any, q: Any) -> Any:
    rest = n - k
    ends = f.select(k == 0, f.xlog1py(n, -q), f.xlogy(n, q))
    certain = f.xlogy(k, q) + f.xlog1py(rest, -q)
    ends = f.select(either(k == 0, rest == 0), ends, certain)
    is_end = either(either(k == 0, rest == 0), either(q == 0, q == 1))
    return f.select(is_end, ends, _log_inner(k, rest, q, 1 - q))


def _binom_moments(n: Any, q: Any) -> Moments:
    var = n * q * (1 - q)
    return n * q, var, (1 - 2 * q) / f.sqrt(var), 1 / var - 6 / n


def _within(k: Any, n: Any, before: float, inside: Any, after: float) -> Any:
    """A probability between 0 and ``n``, and its values outside."""
    return f.select(k >= n, after, f.select(k < 0, before, inside))


binom = family(
    Discrete,
    "binom",
    "Binomial distribution: the number of successes of probability ``p`` in ``n`` trials.",
    "logpmf(np.array([2, 3]), 5, 0.3) -> array([-1.17538535, -2.02268321])",
    ("n", "p"),
    support_of=lambda n, q: (0.0, n),
    is_valid=lambda n, q: both(both(n >= 0, f.floor(n) == n), both(q >= 0, q <= 1)),
    log_mass=_binom_log_mass,
    below=lambda k, n, q: _within(k, n, 0.0, f.betaincc(k + 1, n - k, q), 1.0),
    above=lambda k, n, q: _within(k, n, 1.0, f.betainc(k + 1, n - k, q), 0.0),
    log_below=lambda k, n, q: _within(k, n, -_INF, f.log_betaincc(k + 1, n - k, q), 0.0),
    log_above=lambda k, n, q: _within(k, n, 0.0, f.log_betainc(k + 1, n - k, q), -_INF),
    moments=_binom_moments,
)


def _nbinom_log_mass(k: Any, n: Any, q: Any) -> Any:
    inner = f.log_beta_kernel(q, 1 - q, n, k) - f.log(k)
    inner = f.select(q == 1, -_INF, inner)
    return f.select(k == 0, n * f.log(q), inner)


def _nbinom_moments(n: Any, q: Any) -> Moments:
    rest = 1 - q
    mean = n * rest / q
    return mean, mean / q, (2 - q) / f.sqrt(n * rest), 6 / n + q * q / (n * rest)


nbinom = family(
    Discrete,
    "nbinom",
    "Negative binomial distribution: the number of failures before the ``n``-th success.",
    "logpmf(np.array([2, 3]), 5, 0.3) -> array([-4.02516371, -3.53454079])",
    ("n", "p"),
    {"n": "Number of successes, positive."},
    support_of=lambda n, q: (0.0, _INF),
    is_valid=lambda n, q: both(n > 0, both(q > 0, q <= 1)),
    log_mass=_nbinom_log_mass,
    below=lambda k, n, q: f.select(k < 0, 0.0, f.betainc(n, k + 1, q)),
    above=lambda k, n, q: f.select(k < 0, 1.0, f.betaincc(n, k + 1, q)),
    log_below=lambda k, n, q: f.select(k < 0, -_INF, f.log_betainc(n, k + 1, q)),
    log_above=lambda k, n, q: f.select(k < 0, 0.0, f.log_betaincc(n, k + 1, q)),
    moments=_nbinom_moments,
)


def _geom_moments(q: Any) -> Moments:
    rest = 1 - q
    return 1 / q, rest / (q * q), (2 - q) / f.sqrt(rest), 6 + q * q / rest


geom = family(
    Discrete,
    "geom",
    "Geometric distribution: the number of trials up to the first success.",
    "logpmf(np.array([2, 3]), 0.3) -> array([-1.56064775, -1.91732269])",
    ("p",),
    support_of=lambda q: (1.0, _INF),
    is_valid=lambda q: both(q > 0, q <= 1),
    log_mass=lambda k, q: f.xlog1py(k - 1, -q) + f.log(q),
    below=lambda k, q: f.select(k < 1, 0.0, -f.expm1(k * f.log1p(-q))),
    above=lambda k, q: f.select(k < 1, 1.0, f.exp(k * f.log1p(-q))),
    log_below=lambda k, q: f.log1mexp(k * f.log1p(-q)),
    log_above=lambda k, q: k * f.log1p(-q),
    entropy_of=lambda q: -f.log(q) - f.xlog1py(1 - q, -q) / q,
    moments=_geom_moments,
)


def _poisson_log_mass(k: Any, mu: Any) -> Any:
    inner = f.log_gamma_kernel(mu, k) - f.log(k)
    inner = f.select(mu == 0, -_INF, inner)
    return f.select(k == 0, -mu, inner)


poisson = family(
    Discrete,
    "poisson",
    "Poisson distribution: the number of independent events, ``mu`` on average.",
    "logpmf(np.array([2, 3]), 3.0) -> array([-1.4959226, -1.4959226])",
    ("mu",),
    support_of=lambda mu: (0.0, _INF),
    is_valid=lambda mu: mu >= 0,
    log_mass=_poisson_log_mass,
    below=lambda k, mu: f.select(k < 0, 0.0, f.gammaincc(k + 1, mu)),
    above=lambda k, mu: f.select(k < 0, 1.0, f.gammainc(k + 1, mu)),
    log_below=lambda k, mu: f.select(k < 0, -_INF, f.log_gammaincc(k + 1, mu)),
    log_above=lambda k, mu: f.select(k < 0, 0.0, f.log_gammainc(k + 1, mu)),
    moments=lambda mu: (mu, mu, 1 / f.sqrt(mu), 1 / mu),
)


class Betabinom(Discrete):
    """Beta-binomial distribution: binomial with a probability that has a beta distribution.

    Example: fg.scipy.stats.betabinom.logpmf(np.array([2, 3]), 5, 2.0, 3.0)
        -> array([-1.43508453, -1.65822808])
    """

    name = "betabinom"
    shapes = ("n", "a", "b")

    def support_of(self, n: Any, a: Any, b: Any) -> tuple[Any, Any]:
        return 0.0, n

    def is_valid(self, n: Any, a: Any, b: Any) -> Any:
        return both(both(n >= 0, f.floor(n) == n), both(a > 0, b > 0))

    def log_mass(self, k: Any, n: Any, a: Any, b: Any) -> Any:
        # A binomial mass of the probability that is expected after k of n times, and the densities
        # there before and after, of which nothing cancels.
        total, rest = n + a + b, n - k
        own, other = k + a, n - k + b
        q, q_rest = own / total, other / total
        before = f.log_beta_kernel(q, q_rest, a, b)
        after = f.log_beta_kernel(q, q_rest, own, other)
        return _log_ways(k, rest, q, q_rest) + before - after

    def below(self, k: Any, n: Any, a: Any, b: Any) -> Any:
        return _summed(lambda j: f.select(j <= k, self.mass(j, n, a, b), 0.0), 0.0, n)

    def above(self, k: Any, n: Any, a: Any, b: Any) -> Any:
        return _summed(lambda j: f.select(j > k, self.mass(j, n, a, b), 0.0), 0.0, n)

    def moments(self, n: Any, a: Any, b: Any) -> Moments:
        total, share = a + b, a / (a + b)
        var = n * (total + n) * share * (b / total) / (total + 1)
        skew = 1 / f.sqrt(var) * (total + 2 * n) * (b - a) / ((total + 2) * total)
        square = total * total * (1 + total) / (n * a * b * (total + 2) * (total + 3) * (total + n))
        bracket = (
            total * (total - 1 + 6 * n)
            + 3 * a * b * (n - 2)
            + 6 * n * n
            - 3 * (a * b / total) * n * (6 - n)
            - 18 * (a * b / total) * (n / total) * n
        )
        return n * share, var, skew, square * bracket - 3


class Hypergeom(Discrete, n="Number of marked objects."):
    """Hypergeometric distribution: the number of marked objects among those drawn.

    Example: fg.scipy.stats.hypergeom.logpmf(np.array([1, 2]), 20, 7, 12)
        -> array([-5.44118009, -3.04328481])
    """

    name = "hypergeom"
    shapes = ("M", "n", "N")

    def support_of(self, total: Any, marked: Any, drawn: Any) -> tuple[Any, Any]:
        return f.maximum(0 * total, drawn - (total - marked)), f.minimum(marked, drawn)

    def is_valid(self, total: Any, marked: Any, drawn: Any) -> Any:
        inside = both(both(marked >= 0, marked <= total), both(drawn >= 0, drawn <= total))
        for count in (total, marked, drawn):
            inside = both(inside, f.floor(count) == count)
        return both(total > 0, inside)

    def log_mass(self, k: Any, total: Any, marked: Any, drawn: Any) -> Any:
        # Three binomial masses (C. Loader, "Fast and accurate computation of binomial
        # probabilities", 2000): any probability would do, with this one they are large.
        share, rest = drawn / total, (total - drawn) / total
        among = _log_ways(k, marked - k, share, rest)
        missed = drawn - k
        others = _log_ways(missed, total - marked - missed, share, rest)
        return among + others - _log_ways(drawn, total - drawn, share, rest)

    def below(self, k: Any, total: Any, marked: Any, drawn: Any) -> Any:
        parameters = (total, marked, drawn)
        ends = self.support_of(*parameters)
        return _summed(lambda j: f.select(j <= k, self.mass(j, *parameters), 0.0), *ends)

    def above(self, k: Any, total: Any, marked: Any, drawn: Any) -> Any:
        parameters = (total, marked, drawn)
        ends = self.support_of(*parameters)
        return _summed(lambda j: f.select(j > k, self.mass(j, *parameters), 0.0), *ends)

    def moments(self, total: Any, marked: Any, drawn: Any) -> Moments:
        share = marked / total
        mean = drawn * share
        var = mean * (1 - share) * (total - drawn) / (total - 1)
        rest, left = total - marked, total - drawn
        product = drawn * marked * rest * left
        skew = (rest - marked) * (left - drawn) / (total - 2) * f.sqrt((total - 1) / product)
        bracket = total * (total + 1) - 6 * marked * rest - 6 * drawn * left
        above = (total - 1) * total * total * bracket + 6 * product * (5 * total - 6)
        return mean, var, skew, above / (product * (total - 2) * (total - 3))


def _clipped(probability: Any) -> Any:
    return f.minimum(f.constant(1, probability), f.maximum(0 * probability, probability))


def _randint_moments(low: Any, high: Any) -> Moments:
    span = high - low
    square = span * span
    kurtosis = -1.2 * (square + 1) / (square - 1)
    return 0.5 * (low + high - 1), (square - 1) / 12, 0 * span, kurtosis


randint = family(
    Discrete,
    "randint",
    "Uniform distribution of the integers from ``low`` to ``high - 1``.",
    "logpmf(np.array([2, 3]), 0, 5) -> array([-1.60943791, -1.60943791])",
    ("low", "high"),
    support_of=lambda low, high: (low, high - 1),
    is_valid=lambda low, high: low < high,
    log_mass=lambda k, low, high: -f.log(high - low) + 0 * k,
    mass=lambda k, low, high: 1 / (high - low) + 0 * k,
    below=lambda k, low, high: _clipped((k - low + 1) / (high - low)),
    above=lambda k, low, high: _clipped((high - 1 - k) / (high - low)),
    entropy_of=lambda low, high: f.log(high - low),
    moments=_randint_moments,
)

betabinom, hypergeom = Betabinom(), Hypergeom()
