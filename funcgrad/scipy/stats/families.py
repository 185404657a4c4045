"""SciPy's methods of distributions, made from their formulas.

A distribution is a row of formulas (`family`) of standardised numbers, for its own parameters only:
``log_density``, ``below`` (the distribution function), ``above`` (its complement), their
logarithms, ``quantile`` and ``moments``. This module makes of them `logpdf`, `cdf`, `ppf`, ...
with SciPy's arguments: promotion, ``loc`` and ``scale``, values outside of the support and at its
ends, nan for parameters that are none. Where formulas share steps, they are methods of a class.

Formulas may be wrong, or nan, where a `select` does not take them: derivatives of an arm that was
not taken count as 0.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from funcgrad.base.signatures import explain, in_full, session, with_arguments
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import is_complex
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import broadcast_to, shape_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.meanings import METHODS

Method = Callable[..., Any]
Moments = tuple[Any, Any, Any, Any]
"""Mean, variance, skewness and excess kurtosis."""


def quiet(method: Method) -> Method:
    """A method during which NumPy does not warn: the formulas are evaluated everywhere."""

    @functools.wraps(method)
    def silenced(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return method(*args, **kwargs)

    return silenced


class Standard(NamedTuple):
    """Arguments of a method: a standardised number, parameters, and the way back."""

    y: Any
    parameters: tuple[Any, ...]
    loc: Any
    scale: Any
    shape: tuple[int, ...]


def either(x: Any, y: Any) -> Any:
    """Whether one of two conditions holds; ``None`` never does."""
    if x is None or y is None:
        return y if x is None else x
    return p.bitwise_or.bind(x, y)


def both(x: Any, y: Any) -> Any:
    """Whether two conditions hold; ``None`` always does."""
    if x is None or y is None:
        return y if x is None else x
    return p.bitwise_and.bind(x, y)


_SHAPES = {
    "M": "Number of objects.",
    "N": "Number of objects that are drawn.",
    "a": "First shape parameter, positive.",
    "b": "Second shape parameter, positive.",
    "beta": "Exponent, positive.",
    "c": "Shape parameter, positive.",
    "df": "Degrees of freedom, positive.",
    "dfd": "Degrees of freedom of the denominator, positive.",
    "dfn": "Degrees of freedom of the numerator, positive.",
    "high": "End, exclusive.",
    "kappa": "Concentration, not negative.",
    "loc": "Location, added to the variable; 0 by default.",
    "low": "Least integer.",
    "mu": "Mean, not negative.",
    "n": "Number of trials, an integer from 0 on.",
    "p": "Probability of success, from 0 to 1.",
    "s": "Standard deviation of the logarithm, positive.",
    "scale": "Factor of the variable, positive; 1 by default.",
}
"""Meanings of parameters; classes override them by keywords of their definition."""


class Distribution:
    """A family of distributions of one variable, with SciPy's arguments.

    Parameters come by position or by name: those of the family, then ``loc`` and, for continuous
    ones, ``scale``; all broadcast. Samples are drawn by `funcgrad.random`.
    """

    name = ""
    shapes: tuple[str, ...] = ()
    placed: tuple[str, ...] = ("loc",)

    def __init_subclass__(cls, **meanings: str) -> None:
        names = (*cls.shapes, *cls.placed)
        if cls.name and cls.__doc__:
            cls.__module__ = "funcgrad.scipy.stats"  # where pickle finds the object by its name
            rows = {n: meanings.get(n) or _SHAPES[n] for n in names}
            cls.__doc__ = with_arguments(in_full(cls.__doc__), rows)

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with its parameters fixed.

        Args:
            *args: Shapes, location and scale, in this order.
            **kwargs: The same, by names.
        """
        self._bound("__call__", args, kwargs)
        return Frozen(self, args, kwargs)

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<distribution {self.name}({', '.join((*self.shapes, *self.placed))})>"

    # ----------------------------------------------------------------------------- of a family

    def support_of(self, *parameters: Any) -> tuple[Any, Any]:
        """The ends of the support: floats, or arrays that depend on the parameters."""
        raise NotImplementedError

    def is_valid(self, *parameters: Any) -> Any:
        """Whether the parameters are those of a distribution: by default where all are positive."""
        found = None
        for value in parameters:
            found = both(found, value > 0)
        return found

    def below(self, y: Any, *parameters: Any) -> Any:
        """Probability of numbers up to ``y``."""
        return 1 - self.above(y, *parameters)

    def above(self, y: Any, *parameters: Any) -> Any:
        """Probability of numbers from ``y`` on."""
        return 1 - self.below(y, *parameters)

    def log_below(self, y: Any, *parameters: Any) -> Any:
        """Logarithm of `below`."""
        return f.log_of(self.below(y, *parameters), self.above(y, *parameters))

    def log_above(self, y: Any, *parameters: Any) -> Any:
        """Logarithm of `above`."""
        return f.log_of(self.above(y, *parameters), self.below(y, *parameters))

    def entropy_of(self, *parameters: Any) -> Any:
        """Entropy of the standardised distribution."""
        raise self._absent("entropy")

    def moments(self, *parameters: Any) -> Moments:
        """Mean, variance, skewness and excess kurtosis."""
        raise self._absent("moments")

    # ------------------------------------------------------------------------------- arguments

    def _bound(
        self, method: str, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], Any, Any]:
        """Parameters in order, ``loc`` and ``scale``; ``None`` for those that are not given."""
        names = (*self.shapes, *self.placed)
        if len(args) > len(names):
            raise ArgumentError(
                f"{self.name}.{method} takes the parameters {', '.join(names)}, "
                f"got {len(args)} values."
            )
        found = dict(zip(names, args, strict=False))
        for key, value in kwargs.items():
            if key not in names:
                raise ArgumentError(
                    f"{self.name}.{method} has no parameter {key!r}: it takes {', '.join(names)}."
                )
            if key in found:
                raise ArgumentError(f"{self.name}.{method} got two values for {key!r}.")
            found[key] = value
        missing = [n for n in self.shapes if n not in found]
        if missing:
            raise ArgumentError(f"{self.name}.{method} needs the parameters {', '.join(missing)}.")
        loc, scale = found.get("loc"), found.get("scale")
        loc = None if type(loc) in (int, float) and loc == 0 else loc
        scale = None if type(scale) in (int, float) and scale == 1 else scale
        return tuple(found[n] for n in self.shapes), loc, scale

    def _arguments(
        self, method: str, leading: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Standard]:
        """The arguments of a method in one floating dtype."""
        own, loc, scale = self._bound(method, args, kwargs)
        given = [v for v in (*leading, *own, loc, scale) if v is not None]
        if not given:
            given = [np.float64(0)]
        values = floating(f"{self.name}.{method}", *given)
        if is_complex(aval_of(values[0]).dtype):
            raise DtypeError(f"{self.name}.{method} needs real numbers, got complex ones.")
        shape = np.broadcast_shapes(*map(shape_of, values))
        rest = iter(values)
        first = [next(rest) for _ in leading]
        parameters = tuple(next(rest) for _ in own)
        loc = None if loc is None else next(rest)
        scale = None if scale is None else next(rest)
        like = values[0]
        return first, Standard(like, parameters, loc, scale, shape)

    def _standardized(
        self, method: str, x: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Standard:
        (y,), found = self._arguments(method, [x], args, kwargs)
        y = y if found.loc is None else y - found.loc
        y = y if found.scale is None else y / found.scale
        return found._replace(y=y)

    def _checked(self, out: Any, found: Standard) -> Any:
        """A result in its shape, and nan where the parameters are those of no distribution."""
        valid = self.is_valid(*found.parameters)
        if found.scale is not None:
            valid = both(valid, found.scale > 0)
        if valid is not None:
            out = f.select(valid, out, math.nan)
        return broadcast_to(p.convert(out, aval_of(found.y).dtype), found.shape)

    def _absent(self, method: str) -> ArgumentError:
        return ArgumentError(
            f"funcgrad.scipy.stats.{self.name} has no {method}: it has no closed form. SciPy's own "
            f"takes known values: scipy.stats.{self.name}.{method}."
        )

    # --------------------------------------------------------------------------------- methods

    @quiet
    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Probability of numbers up to ``x``.

        Returns: Probabilities.
        """
        found = self._standardized("cdf", x, args, kwargs)
        return self._probability(found, self.below, 0.0, 1.0)

    @quiet
    def sf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Probability of numbers above ``x``: ``1 - cdf(x)``, accurate where that is small.

        Returns: Probabilities.
        """
        found = self._standardized("sf", x, args, kwargs)
        return self._probability(found, self.above, 1.0, 0.0)

    @quiet
    def logcdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Logarithm of `cdf`.

        Returns: Logarithms of probabilities.
        """
        found = self._standardized("logcdf", x, args, kwargs)
        return self._probability(found, self.log_below, -math.inf, 0.0)

    @quiet
    def logsf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Logarithm of `sf`.

        Returns: Logarithms of probabilities.
        """
        found = self._standardized("logsf", x, args, kwargs)
        return self._probability(found, self.log_above, 0.0, -math.inf)

    def _probability(self, found: Standard, formula: Method, before: float, after: float) -> Any:
        raise NotImplementedError

    @quiet
    def entropy(self, *args: Any, **kwargs: Any) -> Any:
        """Entropy in natural units.

        Returns: Entropies.
        """
        _, found = self._arguments("entropy", [], args, kwargs)
        out = self.entropy_of(*found.parameters)
        return self._checked(out if found.scale is None else out + f.log(found.scale), found)

    @quiet
    def stats(self, *args: Any, moments: str = "mv", **kwargs: Any) -> Any:
        """Moments: mean, variance, skewness, excess kurtosis.

        Args:
            *args: Parameters, in order.
            moments: Which, by the letters ``mvsk``.
            **kwargs: Parameters, by name.
        Returns: One for each letter, in the order ``mvsk``; a single one is no tuple.
        """
        unknown = set(moments) - set("mvsk")
        if unknown or not moments:
            raise ArgumentError(f"{self.name}.stats: moments are some of 'mvsk', got {moments!r}.")
        _, found = self._arguments("stats", [], args, kwargs)
        mean, var, skew, kurtosis = self.moments(*found.parameters)
        if found.scale is not None:
            mean = None if mean is None else mean * found.scale
            var = None if var is None else var * (found.scale * found.scale)
        if found.loc is not None and mean is not None:
            mean = mean + found.loc
        values = {"m": mean, "v": var, "s": skew, "k": kurtosis}
        out = [self._moment(values[c], c, found) for c in "mvsk" if c in moments]
        return tuple(out) if len(out) > 1 else out[0]

    def _moment(self, value: Any, letter: str, found: Standard) -> Any:
        if value is None:
            name = {"m": "mean", "v": "variance", "s": "skewness", "k": "kurtosis"}[letter]
            raise self._absent(f"stats({name})")
        return self._checked(value, found)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """Mean.

        Returns: Means.
        """
        return self.stats(*args, moments="m", **kwargs)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """Variance.

        Returns: Variances.
        """
        return self.stats(*args, moments="v", **kwargs)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        """Standard deviation.

        Returns: Standard deviations.
        """
        return p.sqrt.bind(self.var(*args, **kwargs))

    def moment(self, order: int, *args: Any, **kwargs: Any) -> Any:
        """The mean of a power.

        Args:
            order: The power, up to 4.
            *args: Parameters, in order.
            **kwargs: Parameters, by name.
        Returns: Moments about 0.
        Raises: ArgumentError: If the order is not an integer from 0 to 4.
        """
        if order not in (0, 1, 2, 3, 4):
            raise ArgumentError(f"{self.name}.moment: order must be an int up to 4, got {order!r}.")
        mean = self.stats(*args, moments="m", **kwargs)
        if order == 0:
            return p.ones_like(mean)
        if order == 1:
            return mean
        var = self.stats(*args, moments="v", **kwargs)
        if order == 2:
            return var + mean * mean
        third = self.stats(*args, moments="s", **kwargs) * var * p.sqrt.bind(var)
        if order == 3:
            return third + 3 * mean * var + mean * mean * mean
        fourth = (self.stats(*args, moments="k", **kwargs) + 3) * var * var
        square = mean * mean
        return fourth + 4 * mean * third + 6 * square * var + square * square

    def median(self, *args: Any, **kwargs: Any) -> Any:
        """Median: the quantile of one half.

        Returns: Medians.
        """
        return self.ppf(0.5, *args, **kwargs)

    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """Quantile: the inverse of `cdf`.

        Returns: Quantiles; nan where ``q`` is no probability.
        """
        raise NotImplementedError

    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The inverse of `sf`.

        Returns: Quantiles; nan where ``q`` is no probability.
        """
        raise NotImplementedError

    def interval(self, confidence: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The central interval of a probability.

        Args:
            confidence: Probability of the interval.
            *args: Parameters, in order.
            **kwargs: Parameters, by name.
        Returns: Its ends, beyond which there is the same probability.
        """
        rest = (1 - confidence) / 2
        return self.ppf(rest, *args, **kwargs), self.isf(rest, *args, **kwargs)

    @quiet
    def support(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The interval outside of which the density is 0.

        Returns: Its ends.
        """
        _, found = self._arguments("support", [], args, kwargs)
        ends = self.support_of(*found.parameters)
        low, high = (
            self._placed(
                f.constant(e, found.y) + 0 * found.y
                if isinstance(e, float) and math.isfinite(e)
                else e,
                found,
            )
            for e in ends
        )
        return low, high

    def _placed(self, y: Any, found: Standard) -> Any:
        """A standardised number back in its place."""
        out = y if found.scale is None else y * found.scale
        out = out if found.loc is None else out + found.loc
        return self._checked(out, found)

    def rvs(self, *args: Any, **kwargs: Any) -> Any:
        """Samples are not drawn here.

        Raises: ArgumentError: Always: randomness comes from a key.
        """
        raise ArgumentError(
            f"{self.name}.rvs: random numbers come from explicit keys. Draw them with "
            "funcgrad.random, or, for any distribution, as ppf of funcgrad.random.uniform(key, "
            "shape)."
        )

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Parameters are not fitted here.

        Raises: ArgumentError: Always.
        """
        raise ArgumentError(
            f"{self.name}.fit: minimise -sum(logpdf) with funcgrad.optim.minimize, which has exact "
            f"derivatives, or call scipy.stats.{self.name}.fit on known values."
        )

    def expect(self, *args: Any, **kwargs: Any) -> Any:
        """Expectations are not integrated here.

        Raises: ArgumentError: Always.
        """
        raise ArgumentError(
            f"{self.name}.expect: integrate ppf of a rule on (0, 1), average over samples of "
            f"funcgrad.random, or call scipy.stats.{self.name}.expect on known values."
        )


explain(vars(Distribution), METHODS)


class Frozen:
    """A distribution whose parameters are fixed: its methods take the remaining arguments.

    Args:
        dist: The family.
        args: Parameters by position.
        kwds: Parameters by name.
    """

    def __init__(self, dist: Distribution, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist = dist
        self.args = args
        self.kwds = kwds

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(self.dist, **self.kwds), self.args

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.dist, name)
        if name.startswith("_") or not callable(method):
            return method

        def bound(*args: Any, **kwargs: Any) -> Any:
            return method(*args, *self.args, **self.kwds, **kwargs)

        return bound


class Continuous(Distribution):
    """A family of distributions with a density."""

    placed = ("loc", "scale")

    def log_density(self, y: Any, *parameters: Any) -> Any:
        """Logarithm of the density inside of the support."""
        raise NotImplementedError

    def log_density_at_ends(self, *parameters: Any) -> tuple[Any, Any]:
        """The same at the ends of the support, ``None`` where the formula holds there."""
        return None, None

    def quantile(self, q: Any, *parameters: Any) -> Any:
        """The inverse of `below`."""
        raise self._absent("ppf")

    def quantile_above(self, q: Any, *parameters: Any) -> Any:
        """The inverse of `above`."""
        return self.quantile(1 - q, *parameters)

    @quiet
    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Logarithm of the density.

        Returns: Logarithms, ``-inf`` outside of the support.
        """
        return self._log_density("logpdf", x, args, kwargs)

    @quiet
    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Density.

        Returns: Densities, 0 outside of the support.
        """
        return f.exp(self._log_density("pdf", x, args, kwargs))

    def _log_density(self, method: str, x: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        found = self._standardized(method, x, args, kwargs)
        y = found.y
        out = self.log_density(y, *found.parameters)
        low, high = self.support_of(*found.parameters)
        for end, value in zip(
            (low, high), self.log_density_at_ends(*found.parameters), strict=True
        ):
            if value is not None:
                value = f.constant(value, y) if isinstance(value, float) else value
                out = f.select(y == end, value, out)
        if found.scale is not None:
            out = out - f.log(found.scale)
        outside = None
        if f.is_infinite(low) or f.is_infinite(high):
            outside = p.isinf.bind(y)
        if not f.is_infinite(low):
            outside = either(outside, y < low)
        if not f.is_infinite(high):
            outside = either(outside, y > high)
        return self._checked(f.select(outside, -math.inf, out), found)

    def _probability(self, found: Standard, formula: Method, before: float, after: float) -> Any:
        low, high = self.support_of(*found.parameters)
        out = formula(found.y, *found.parameters)
        out = f.select(found.y <= low, before, out)
        return self._checked(f.select(found.y >= high, after, out), found)

    @quiet
    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """Quantile: the inverse of `cdf`.

        Returns: Quantiles; nan where ``q`` is no probability.
        """
        (q,), found = self._arguments("ppf", [q], args, kwargs)
        return self._inverse(q, found, self.quantile, 0, 1)

    @quiet
    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The inverse of `sf`.

        Returns: Quantiles; nan where ``q`` is no probability.
        """
        (q,), found = self._arguments("isf", [q], args, kwargs)
        return self._inverse(q, found, self.quantile_above, 1, 0)

    def _inverse(
        self, q: Any, found: Standard, formula: Method, at_low: float, at_high: float
    ) -> Any:
        low, high = self.support_of(*found.parameters)
        out = formula(q, *found.parameters)
        out = f.select(q == at_low, low, out)
        out = f.select(q == at_high, high, out)
        out = f.select(both(q >= 0, q <= 1), out, math.nan)
        return self._placed(out, found)

    def nnlf(self, theta: Sequence[Any], x: Any) -> Any:
        """Negative logarithm of the likelihood.

        Args:
            theta: Parameters, in order.
            x: Samples.
        Returns: The sum of ``-logpdf`` over all samples.
        """
        return -self.logpdf(x, *theta).sum()


explain(vars(Continuous), METHODS)


D = TypeVar("D", bound=Distribution)


def family(
    kind: type[D],
    name: str,
    summary: str,
    shows: str,
    shapes: tuple[str, ...] = (),
    meanings: Mapping[str, str] | None = None,
    /,
    **formulas: Method,
) -> D:
    """Make a distribution from a row of formulas.

    Args:
        kind: The class whose methods the formulas override.
        name: Its name in `scipy.stats`.
        summary: The first line of its docstring.
        shows: Its example: the call of a method, and the result.
        shapes: Names of its parameters.
        meanings: Their descriptions, where they are not those of every distribution.
        **formulas: Formulas by the names of methods; they get no ``self``.
    Returns: The only object of a new class.
    """
    example = session(f"fg.scipy.stats.{name}.{shows}").replace("\n", "\n    ")
    members: dict[str, Any] = {
        "__doc__": f"{summary}\n\nExample:\n    {example}\n",
        "name": name,
        "shapes": shapes or kind.shapes,
        **{key: staticmethod(formula) for key, formula in formulas.items()},
    }
    made: type[D] = types.new_class(
        name.title().replace("_", ""),
        (kind,),
        dict(meanings or {}),
        lambda new: new.update(members),
    )
    return made()


_OTHER_SIDE = {
    "below": "above", "above": "below", "log_below": "log_above", "log_above": "log_below",
    "quantile": "quantile_above", "quantile_above": "quantile",
}  # fmt: skip


def mapped(
    base: Continuous,
    inner: Method,
    outer: Method,
    parameters: Method = lambda like, *own: (),
    is_decreasing: bool = False,
) -> dict[str, Method]:
    """Return formulas of a monotone function of a variable whose distribution is known.

    Args:
        base: The distribution of the variable.
        inner: From a number and the parameters, the variable.
        outer: From the variable and the parameters, the number.
        parameters: From a number, for its dtype, and the parameters, those of ``base``.
        is_decreasing: Whether the function is.
    """

    def at(name: str) -> Method:
        formula = getattr(base, _OTHER_SIDE[name] if is_decreasing else name)
        if name.startswith("quantile"):
            return lambda q, *own: outer(formula(q, *parameters(q, *own)), *own)
        return lambda y, *own: formula(inner(y, *own), *parameters(y, *own))

    return {name: at(name) for name in _OTHER_SIDE}


def reflected(base: Continuous) -> dict[str, Method]:
    """Return formulas of the negative of a variable whose distribution is known."""

    def moments(*own: Any) -> Moments:
        mean, var, skew, kurtosis = base.moments(*own)
        return -mean, var, -skew, kurtosis

    return {
        **mapped(base, lambda y, *own: -y, lambda y, *own: -y, lambda like, *own: own, True),
        "support_of": lambda *own: tuple(-end for end in base.support_of(*own)[::-1]),
        "log_density": lambda y, *own: base.log_density(-y, *own),
        "log_density_at_ends": lambda *own: base.log_density_at_ends(*own)[::-1],
        "entropy_of": base.entropy_of,
        "moments": moments,
    }
