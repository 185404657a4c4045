"""Chains of operations at special values: compiled code against NumPy.

A chain is one to three functions, products, sums, picks or scatters of arrays of special values:
zeros of both signs, infinities, NaN, subnormal numbers, extremes, halves, and integers that fill
the mantissa. NumPy evaluates it in several ways: after a step that is not correctly rounded, its
value and the neighbours within some units in the last place go on, and in single precision so does
the value with subnormal numbers flushed (arithmetic flushes them, formulas of functions need not).
The compiled result has to lie among what these give. So a last digit decides about nothing, while
NaN, infinities, zeros and their signs have to be NumPy's wherever no last digit decides about them.

``python -m tests.fuzz.special_values --chains 100000`` runs as many as asked for.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.special

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.fuzz.properties import quiet
from tests.heap import small_heap

ULPS = 8
"""How far a function of ours and one of NumPy may be apart, in units in the last place."""

MANY_ULPS = 24
"""The same of functions that are composed of several."""

TOGETHER = 12
"""Chains that are compiled as one program."""

CHAOTIC = 0.01
"""Relative spread of what NumPy gives for neighbours from which on digits mean nothing."""

SHAPES = ((48, 8), (48, 8), (17, 33), (2, 3), (1, 5), (1, 1))
DTYPES = ("f8", "f4")
VALUES = ("x", "y")


def special_values(dtype: Any) -> np.ndarray:
    """The special values of a precision, with both signs."""
    info = np.finfo(dtype)
    whole = 2.0 ** (info.nmant + 1)
    tiny, most, eps = float(info.tiny), float(info.max), float(info.eps)
    beside_one = (1 - eps / 2, 1.0, 1 + eps)
    small = (0.0, float(info.smallest_subnormal), tiny * 0.37, tiny, tiny * 1.5, eps / 4, 1e-5)
    plain = (0.5, 0.7, *beside_one, 1.5, 2.5, 3.0, 20.0)
    large = (float(np.log(info.max)), whole - 1, whole, 2.0**70, most**0.5, most / 3, most, np.inf)
    return np.array([s * x for x in (*small, *plain, *large) for s in (1, -1)] + [np.nan], dtype)


def calm_values(dtype: Any) -> np.ndarray:
    """Numbers whose sums and products are numbers."""
    return np.array([0.0, -0.0, 1e-5, 0.5, -0.7, 1.0, -1.0, 1.5, 2.5, 3.0, -3.0, 20.0], dtype)


# What chains call beside NumPy's functions: of NumPy's arrays, and of ours.


def _set(x: Any, p: Any) -> Any:
    x = x.copy()
    x[..., p] = x[..., : len(p)] * 0.5
    return x


def _at(ufunc: Any) -> Callable[..., Any]:
    def placed(x: Any, y: Any, p: Any) -> Any:
        x = x.copy()
        ufunc.at(x, (..., p), y[..., : len(p)])
        return x

    return placed


def _kept(x: Any, q: Any) -> Any:
    n = x.shape[-1]
    inside = (q >= -n) & (q < n)
    return np.where(inside, x[..., np.where(inside, q, 0)], x.dtype.type(np.nan))


# SciPy's own formulas overflow before the values do.


def _expit(x: Any) -> Any:
    return (1 / (1 + np.exp(-x.astype(np.longdouble)))).astype(x.dtype)


def _i0(x: Any) -> Any:
    scaled = scipy.special.i0e(x.astype(np.float64))
    return (scaled * np.exp(np.abs(x.astype(np.longdouble)))).astype(x.dtype)


PLAIN = SimpleNamespace(
    filled=_kept,
    wrapped=lambda x, q: x[..., q % x.shape[-1]],  # NumPy's own counts up in steps of the length
    put=_set,
    added=_at(np.add),
    most=_at(np.maximum),
    least=_at(np.minimum),
    select=lambda x, y: np.where(np.isnan(x) | (y > 0), y, x),
    expit=_expit,
    i0=_i0,
    entr=scipy.special.entr,
    log_expit=scipy.special.log_expit,
    xlogy=scipy.special.xlogy,
    xlog1py=scipy.special.xlog1py,
)
OURS = SimpleNamespace(
    filled=lambda x, q: fnp.take(x, q, -1, mode="fill", fill_value=np.nan),
    wrapped=lambda x, q: np.take(x, q, -1, mode="wrap"),
    put=lambda x, p: x.at[..., p].set(x[..., : len(p)] * 0.5),
    added=lambda x, y, p: x.at[..., p].add(y[..., : len(p)]),
    most=lambda x, y, p: x.at[..., p].max(y[..., : len(p)]),
    least=lambda x, y, p: x.at[..., p].min(y[..., : len(p)]),
    select=PLAIN.select,
    expit=fg.scipy.special.expit,
    i0=np.i0,
    entr=fg.scipy.special.entr,
    log_expit=fg.scipy.special.log_expit,
    xlogy=fg.scipy.special.xlogy,
    xlog1py=fg.scipy.special.xlog1py,
)


# Operations.


@dataclass(frozen=True)
class Operation:
    """An operation of a chain.

    Attributes:
        text: Its text over ``{0}`` and ``{1}``, with ``{c}`` for a constant.
        ulps: How far two good ways to compute it are apart; 0 where all give the same bits.
        terms: Of sums, the text of what is added up along the last axis, in any order.
        constants: What ``{c}`` may be.
    """

    text: str
    ulps: int = 0
    terms: str = ""
    constants: tuple[str, ...] = ()

    @cached_property
    def arity(self) -> int:
        return 2 if "{1}" in self.text else 1

    @cached_property
    def reads_signs(self) -> bool:
        return re.search("copysign|signbit|angle|arctan2", self.text) is not None

    @cached_property
    def cancels(self) -> bool:
        return re.search(" [-+] |diff|gradient|unwrap", self.text) is not None

    @cached_property
    def is_rest(self) -> bool:
        return re.search("fmod|remainder|divmod", self.text) is not None

    @cached_property
    def adds(self) -> bool:
        return re.search("diff|gradient|unwrap|interp", self.text) is not None

    @cached_property
    def is_extreme(self) -> bool:
        return re.search("max|min|most|least|clip|sort|ptp", self.text) is not None


CONSTANTS = (
    *("0.0", "-0.0", "1e-310", "3e-39", "0.1", "0.5", "1.0", "-1.0", "2.0", "3.0", "1e30"),
    *("1e300", "np.inf", "-np.inf", "np.nan", "7", "0", "1", "-2"),
)
EXPONENTS = (
    *("-9", "-5", "-4", "-3", "-2", "-1", "0", "1", "2", "3", "4", "5", "7", "8", "11", "40"),
    *("-3.0", "-2.5", "-2.0", "-1.5", "-1.0", "-0.5", "-0.25", "-0.0", "0.25", "1/3", "0.5"),
    *("1.0", "1.5", "2.0", "2.5", "3.0", "10.5", "np.inf", "-np.inf", "np.nan"),
)
EXACT = """
    -{0}; +{0}; abs({0}); np.sqrt({0}); np.square({0}); np.reciprocal({0}); np.floor({0})
    np.ceil({0}); np.trunc({0}); np.rint({0}); np.sign({0}); np.nan_to_num({0}); np.spacing({0} / 2)
    np.signbit({0}) * {0}; np.isfinite({0}) * {0}; np.where({0} == {0}, {0}, 2.5)
    np.frexp({0})[0]; np.frexp({0})[1] * {0}; np.modf({0})[0]; np.modf({0})[1]
    np.clip({0}, -1.5, 1e30); {0} * {0} * {0}; {0} - {0}; {0} / {0}; np.nextafter({0}, 0.5)
    np.round({0}, 2); np.round({0}, -1); np.deg2rad({0}); np.rad2deg({0}); np.fabs({0})
    np.roll({0}, 3, -1); {0}[..., ::-1]; np.flip({0}, 0); np.diff({0}, prepend=0.5)
    np.maximum.accumulate({0}, -1); np.minimum.accumulate({0}, 0); np.sort({0}, -1)
    np.max({0}, -1, keepdims=True); np.min({0}, 0, keepdims=True); np.ldexp({0}, 3)
    np.nanmax({0}, -1, keepdims=True, initial=-1.0); np.ldexp({0}, -40)
    np.ptp({0}, 0, keepdims=True)
    np.take({0}, p, -1); np.take({0}, q, -1, mode='clip'); m.wrapped({0}, q)
    m.filled({0}, q); m.put({0}, p); np.take_along_axis({0}, np.argsort({0}, -1), -1)
    {0} * np.argmax({0}, -1, keepdims=True); {0} * np.argmin({0}, 0, keepdims=True)
    {0} * np.searchsorted(np.array([-np.inf, -1.0, 0.0, 1.0, np.inf]), {0})
    {0} * np.sum({0} != 0, -1, keepdims=True); np.tril({0})
"""
EXACT_WITH_CONSTANTS = """
    {0} + {c}; {0} - {c}; {c} - {0}; {0} * {c}; {0} / {c}; {c} / {0}; np.maximum({0}, {c})
    np.minimum({c}, {0}); np.copysign({0}, {c}); np.copysign({c}, {0}); np.fmax({0}, {c})
    np.where({0} < {c}, {0}, {c}); np.heaviside({0}, {c}); {0} * {c} + {c}; {0} // {c}
    np.fmod({0}, {c}); np.remainder({0}, {c}); np.nextafter({0}, {c}); np.maximum({0}, {c}) * {0}
"""
EXACT_OF_TWO = """
    {0} + {1}; {0} - {1}; {0} * {1}; {0} / {1}; np.maximum({0}, {1}); np.minimum({0}, {1})
    np.fmax({0}, {1}); np.fmin({0}, {1}); np.copysign({0}, {1}); np.nextafter({0}, {1})
    np.where({0} < {1}, {0}, {1}); np.where({0} >= {1}, {1}, {0}); m.select({0}, {1})
    np.where({0} != {1}, {1}, {0}); np.heaviside({0}, {1}); ({0} + {1}) * ({0} - {1})
    {0} * {1} + {0}; {0} * {1} - {1} * {0}; {0} / {1} * {1}; {0} + {1} - {0}; {0} // {1}
    np.fmod({0}, {1}); np.remainder({0}, {1}); m.most({0}, {1}, p); m.least({0}, {1}, p)
    np.concatenate([{0}, {1}], -1); np.divmod({0}, {1})[1]; np.where({1} != 0, {0}, {1})
    ({0} < {1}) * {0}; np.logical_xor({0}, {1}) * {1}; np.isclose({0}, {1}) * {1}
"""
FUNCTIONS = (
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "exp", "exp2"),
    *("expm1", "log", "log2", "log10", "log1p", "arcsinh", "arccosh", "arctanh", "cbrt"),
)
ROUNDED_WITH_CONSTANTS = """
    np.hypot({0}, {c}); np.arctan2({0}, {c}); np.arctan2({c}, {0}); {c} ** {0}; np.power({c}, {0})
"""
ROUNDED_OF_TWO = """
    np.hypot({0}, {1}); np.arctan2({0}, {1}); {0} ** {1}
    abs({0}) ** {1}; np.float_power(abs({0}), {1})
"""
COMPOSED = """
    np.sinc({0}); m.i0({0}); m.expit({0}); m.entr({0}); m.log_expit({0}); m.xlogy({0}, {1})
    m.xlog1py({0}, {1}); np.angle({0}); np.unwrap({0}, axis=-1); np.interp({0}, [0.0, 1.0], [3, 5])
    np.gradient({0}, axis=-1) if {0}.shape[-1] > 1 else {0}
"""
_BOTH = "np.stack(np.broadcast_arrays({0}, {1}, {0} * 0 + 4), -1)"
SUMS = (
    Operation("np.logaddexp({0}, {1})", ULPS, _BOTH),
    Operation("np.logaddexp2({0}, {1})", ULPS, _BOTH),
    Operation("np.sum({0}, -1, keepdims=True)", 1, "{0}[..., None, :]"),
    Operation("np.sum({0}, 0, keepdims=True)", 1, "np.moveaxis({0}, 0, -1)[None]"),
    Operation("np.sum({0} * {1}, -1, keepdims=True)", 1, "({0} * {1})[..., None, :]"),
    Operation("np.mean({0}, -1, keepdims=True)", 1, "{0}[..., None, :]"),
    Operation("np.cumsum({0}, -1)", 1, "np.tile({0}[..., None, :], ({0}.shape[-1], 1))"),
    Operation("{0} @ {1}.T", 1, "{0}[..., :, None, :] * {1}"),
    Operation("{0}.T @ {1}", 1, "{0}.T[..., :, None, :] * {1}.T"),
    Operation("({0} @ {1}[0])[:, None]", 1, "({0} * {1}[0])[..., None, :]"),
    Operation("{0} @ {1}.T + {0} @ {1}[::-1].T", 1,
              "np.concatenate([{0}[..., :, None, :] * {1}, {0}[..., :, None, :] * {1}[::-1]], -1)"),
    Operation("m.added({0}, {1}, p)", 1,
              "np.concatenate([{0}, {1}], -1)[..., None, :].repeat({0}.shape[-1], -2)"),
)  # fmt: skip


def _listed(text: str, ulps: int = 0, constants: tuple[str, ...] = ()) -> tuple[Operation, ...]:
    parts = [x.strip() for x in re.split(r";|\n", text) if x.strip()]
    return tuple(Operation(x, ulps, constants=constants) for x in parts)


OPERATIONS: tuple[tuple[Operation, ...], ...] = (
    _listed(EXACT),
    _listed(EXACT_WITH_CONSTANTS, 0, CONSTANTS),
    _listed(EXACT_OF_TWO),
    tuple(Operation(f"np.{name}({{0}})", ULPS) for name in FUNCTIONS),
    _listed(ROUNDED_WITH_CONSTANTS, ULPS, CONSTANTS),
    _listed(ROUNDED_OF_TWO, ULPS),
    _listed("{0} ** ({c}); np.power({0}, np.full_like({0}, {c}))", ULPS, EXPONENTS),
    _listed(COMPOSED, MANY_ULPS),
    SUMS,
)
"""Kinds of operations, each of which is drawn as often as every other."""


# Chains.


@dataclass(frozen=True)
class Step:
    """An operation, its text with names of values, and what these are."""

    operation: Operation
    constant: str
    reads: tuple[str, ...]

    def text(self, template: str) -> str:
        return template.format(*self.reads, c=self.constant)


@dataclass(frozen=True)
class Chain:
    """Steps, of which the k-th makes ``v{k}``; the last one is the result."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "; ".join(
            f"v{k} = {step.text(step.operation.text)}" for k, step in enumerate(self.steps)
        )

    @cached_property
    def codes(self) -> list[Any]:
        return [compile(s.text(s.operation.text), str(self), "eval") for s in self.steps]

    @cached_property
    def terms(self) -> list[Any]:
        texts = [step.text(step.operation.terms) for step in self.steps]
        return [compile(text, str(self), "eval") if text else None for text in texts]

    def __call__(self, m: Any, x: Any, y: Any, p: Any, q: Any) -> Any:
        names = {"np": np, "m": m, "x": x, "y": y, "p": p, "q": q}
        for k, code in enumerate(self.codes):
            names[f"v{k}"] = eval(code, names)
        return names[f"v{len(self.codes) - 1}"]

    def shorter(self) -> Iterator[Chain]:
        """Chains without one of the steps, whose result is one of its operands, or ``x``."""
        for k, step in enumerate(self.steps[:-1]):
            for other in dict.fromkeys((step.reads[0], "x", "y")):
                names = {f"v{k}": other}
                names |= {f"v{i}": f"v{i - 1}" for i in range(k + 1, len(self.steps))}
                rest = [
                    replace(s, reads=tuple(names.get(name, name) for name in s.reads))
                    for s in (*self.steps[:k], *self.steps[k + 1 :])
                ]
                yield Chain(tuple(rest))
        if len(self.steps) > 1:
            yield Chain(self.steps[:-1])


def drawn_chain(rng: random.Random) -> Chain:
    """A chain, of which every step reads the one before."""
    steps: list[Step] = []
    for k in range(rng.choice((1, 2, 2, 3))):
        operation = rng.choice(rng.choice(OPERATIONS))
        constant = rng.choice(operation.constants or ("",))
        last = f"v{k - 1}" if k else rng.choice(VALUES)
        names = [last, rng.choice((*VALUES, *(f"v{i}" for i in range(k))))]
        rng.shuffle(names)
        if last not in names[: operation.arity]:
            names.reverse()
        steps.append(Step(operation, constant, tuple(names[: operation.arity])))
    return Chain(tuple(steps))


@dataclass(frozen=True)
class Arguments:
    """The arguments of a program: values, places, and places beyond the ends."""

    x: np.ndarray
    y: np.ndarray
    p: np.ndarray
    q: np.ndarray

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.x, self.y, self.p, self.q))


def drawn_arguments(rng: np.random.Generator, dtype: str, shape: tuple[int, int]) -> Arguments:
    """Rows of special values, and rows of calm ones with a special one at most."""

    def values() -> np.ndarray:
        special = special_values(np.dtype(dtype).type)
        calm = rng.choice(calm_values(dtype), shape)
        x = rng.choice(special, shape)
        x[::2] = calm[::2]
        x[::4, :1] = rng.choice(special, x[::4, :1].shape)
        return x

    n = shape[1]
    beyond = np.array([-(2**40), -n - 1, -n, -1, 0, n - 1, n, 2**32 + 1])
    places = rng.integers(-n, n, n)
    return Arguments(values(), values(), places, rng.choice(beyond, n))


# What NumPy gives, in several ways.

Names = dict[str, Any]


class Flushing(np.ndarray):
    """An array whose arithmetic takes subnormal numbers for zeros, and makes none."""

    beyond = 0.0
    """How far above the least normal number results count as subnormal, relative to that."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kw: Any) -> Any:
        kind = type(self)
        target = kw.pop("out", (None,))[0]
        plain = [np.asarray(x) if isinstance(x, Flushing) else x for x in inputs]
        found = getattr(ufunc, method)(*plain, **kw)
        if target is None and getattr(found, "dtype", None) == np.float64:
            return found.view(kind)  # a conversion keeps them
        given = [_flushed(x) for x in inputs]
        if ufunc is np.heaviside:
            return ufunc(given[0], plain[1], **kw).view(kind)  # the second one is selected
        if ufunc in (np.remainder, np.floor_divide, np.divmod):
            found = _divided(*given)
            found = found if ufunc is np.divmod else found[ufunc is np.remainder]
        else:
            found = getattr(ufunc, method)(*given, **kw)
        if isinstance(found, tuple):
            return tuple(_flushed(x, kind.beyond).view(kind) for x in found)
        if target is not None:
            np.asarray(target)[...] = _flushed(found, kind.beyond)
            return target
        return found if found is None else _flushed(found, kind.beyond).view(kind)

    def __array_function__(self, function: Any, types: Any, args: Any, kw: Any) -> Any:
        if function in (np.argmax, np.argmin):  # which compare
            return function(_flushed(args[0]), *args[1:], **kw)
        return super().__array_function__(function, types, args, kw)


class FlushingBeside(Flushing):
    """The same, where what was rounded up to the least normal number was subnormal before."""

    beyond = 1e-5


def _divided(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient and remainder as NumPy computes them, whose own remainders are flushed, too."""
    quotient, rest = np.divmod(x, y)
    is_whole = (_flushed(np.fmod(x, y)) == 0) & (rest != 0)
    quotient = np.where(is_whole, np.rint(np.divide(x, y)), quotient)
    return quotient, np.where(is_whole, np.copysign(np.zeros_like(rest), y), rest)


def _flushed(v: Any, beyond: float = 0.0) -> Any:
    """An array with zeros for what is subnormal in single precision.

    Args:
        v: The array; other dtypes stay.
        beyond: How far above the least normal number, relative to that.
    """
    if isinstance(v, int | float):  # which takes the precision of the array beside it
        is_small = isinstance(v, float) and abs(v) < np.finfo(np.float32).tiny
        return math.copysign(0.0, v) if is_small else v
    v = np.asarray(v)
    if v.dtype != np.float32:
        return v
    is_small = np.abs(v) < np.finfo(np.float32).tiny * np.float32(1 + beyond)
    return np.where(is_small, np.copysign(np.float32(0), v), v)


_RANDOM = np.random.default_rng(5).uniform(-1, 1, (2, 1 << 16))
"""For every element its own distance, twice: equal numbers need not be rounded alike."""


def _beside(v: np.ndarray, ulps: int) -> Iterator[np.ndarray]:
    """Neighbours of numbers other than zero, up to some units in the last place away."""
    is_number = np.isfinite(v) & (v != 0)
    size = np.abs(np.spacing(v))
    for share in (1, -1, 1 / ulps, -1 / ulps, *(row[: v.size].reshape(v.shape) for row in _RANDOM)):
        moved = v + (size * np.rint(np.multiply(share, ulps))).astype(v.dtype)
        yield np.where(is_number, moved, v)
    info = np.finfo(v.dtype)  # neighbours that are equal
    fraction, exponent = np.frexp(np.where(is_number, v, 0))
    coarse = np.rint(np.ldexp(fraction, info.nmant - 3))  # to 16 units
    tied = np.ldexp(coarse, exponent - (info.nmant - 3)).astype(v.dtype)
    yield np.where(is_number & (np.abs(tied - v) <= ulps * size), tied, v)
    yield np.where(np.isinf(v), np.copysign(info.max, v), v)
    whole = np.rint(v)  # which powers treat in another way than their neighbours
    yield np.where(is_number & (np.abs(v - whole) <= ulps * size), whole, v)


def ways(chain: Chain, args: Arguments) -> Iterator[np.ndarray]:
    """What NumPy gives for a chain and all neighbours of the values on the way."""
    x, y, p, q = args
    every: list[Names] = [{"np": np, "m": PLAIN, "x": x, "y": y, "p": p, "q": q}]
    for k, step in enumerate(chain.steps):
        every = [
            {**names, f"v{k}": v}
            for names in every
            for v in _ways_of_step(chain, k, step.operation, names)
        ]
    last = f"v{len(chain.steps) - 1}"
    for names in every:
        yield np.asarray(names[last])


def _ways_of_step(chain: Chain, k: int, operation: Operation, names: Names) -> Iterator[Any]:
    """Different values of a step, in single precision with subnormal numbers and without them."""
    seen = set()
    for kind in KINDS if names["x"].dtype == np.float32 else KINDS[:1]:
        given = {name: _viewed(x, kind) for name, x in names.items()}
        v = np.asarray(eval(chain.codes[k], given))
        for way in (v, *_others(chain, k, operation, given, v)):
            bits = way.tobytes()
            if bits not in seen:
                seen.add(bits)
                yield way


KINDS = (np.ndarray, Flushing, FlushingBeside)


def _viewed(x: Any, kind: type[np.ndarray]) -> Any:
    return x.view(kind) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x


def _others(
    chain: Chain, k: int, operation: Operation, names: Names, v: np.ndarray
) -> Iterator[np.ndarray]:
    """What else a step may give."""
    if v.dtype.kind != "f":
        return
    flushes = isinstance(names["x"], Flushing)
    if flushes:  # some functions of NumPy make plain arrays of these
        yield _flushed(v, FlushingBeside.beyond)
    if chain.terms[k] is not None:
        # In a wider range, where products of numbers stay numbers.
        wide = {name: _wide(value) for name, value in names.items()}
        yield from _other_sums(v, np.asarray(eval(chain.terms[k], wide)))
    elif operation.ulps:
        yield from _beside(v, operation.ulps)
    if operation.is_rest and any(step.operation.ulps for step in chain.steps[:k]):
        step = chain.steps[k]
        x, y = (
            np.asarray(names[name], v.dtype) if name else v.dtype.type(eval(step.constant))
            for name in (*step.reads, "")[:2]
        )
        is_chaotic = np.abs(x) * np.finfo(v.dtype).eps * MANY_ULPS > np.abs(y)
        yield np.where(is_chaotic, v * v.dtype.type(0.5), v)
    if operation.cancels and any(step.operation.ulps for step in chain.steps[:k]):
        # What is left of two numbers may be a rounding error of one of them, or nothing.
        size = np.abs(np.asarray(names[chain.steps[k].reads[0]], v.dtype))
        largest = np.max(size, where=np.isfinite(size), initial=0)
        is_left = np.abs(v) < 64 * np.finfo(v.dtype).eps * largest
        yield np.where(is_left, v.dtype.type(0), v)
    # What the page on numbers leaves open: signs of NaN, of sums that are zero, and of the larger
    # and the smaller one of two zeros.
    if np.isnan(v).any() and any(step.operation.reads_signs for step in chain.steps[k + 1 :]):
        yield np.where(np.isnan(v), -v, v)
    if operation.is_extreme or operation.adds or operation.terms:
        is_zero = np.asarray(_flushed(v, FlushingBeside.beyond) if flushes else v) == 0
        for zero in (0.0, -0.0):
            yield np.where(is_zero, v.dtype.type(zero), v)


def _wide(v: Any) -> Any:
    is_float = isinstance(v, np.ndarray) and v.dtype.kind == "f"
    return np.asarray(v).astype(np.longdouble) if is_float else v


def _other_sums(v: np.ndarray, terms: np.ndarray) -> Iterator[np.ndarray]:
    """What sums in another order may be; anything where one of them may overflow."""
    info = np.finfo(v.dtype)
    total = np.where(np.isfinite(terms), np.abs(terms), 0).sum(-1)
    error = total * (terms.shape[-1] * info.eps) + terms.shape[-1] * info.tiny * (info.bits == 32)
    may_overflow = (total > info.max / 2).reshape(v.shape)
    error = np.where(may_overflow, 0, error.reshape(v.shape))
    for part in (1, -1, 0.6, -0.3, *(row[: v.size].reshape(v.shape) for row in _RANDOM)):
        yield (v + (part * error).astype(v.dtype)).astype(v.dtype)
    yield np.where(np.abs(v) <= error, v.dtype.type(0), v)
    for end in (np.inf, -np.inf):
        yield np.where(error > 0, np.nextafter(v, v.dtype.type(end)), v)
    if may_overflow.any():
        for other in (0.0, 1.0, -2.5, np.inf, -np.inf, np.nan):
            yield np.where(may_overflow, other, v).astype(v.dtype)


def wrong(found: np.ndarray, every: Sequence[np.ndarray], ulps: int) -> np.ndarray:
    """Where a result is not among what NumPy gives, within some units in the last place."""
    stack = np.stack(every)
    if found.dtype.kind != "f":
        return np.asarray(~(stack == found).any(0))
    nan = np.isnan(stack)
    low, high = (f(np.where(nan, sign * np.inf, stack), 0)
                 for f, sign in ((np.min, 1), (np.max, -1)))  # fmt: skip
    is_nan = np.isnan(found)
    largest = np.maximum(np.abs(low), np.abs(high))
    spread = np.where(np.isfinite(high - low), high - low, np.inf)
    slack = spread + ulps * np.spacing(np.where(np.isfinite(largest), largest, np.inf))
    slack = np.where(np.isnan(slack), np.inf, slack)
    is_exact = (low == high) & (np.isinf(low) | (low == 0))
    is_close = np.where(is_exact, found == low, (found >= low - slack) & (found <= high + slack))
    is_close |= (low != high) & (spread > CHAOTIC * largest) & ~is_nan
    signs = np.signbit(stack)
    has_sign = np.where(
        signs.all(0), np.signbit(found), np.where(~signs.any(0), ~np.signbit(found), True)
    )
    is_close &= (found != 0) | has_sign | (largest != 0)
    # At the edge of a domain there is no telling on which side neighbours are.
    return np.where(nan.any(0), nan.all(0) & ~is_nan, is_nan | ~is_close)


@dataclass(frozen=True)
class Failure:
    """A chain whose compiled result is not NumPy's."""

    chain: Chain
    dtype: str
    message: str

    def __str__(self) -> str:
        return f"{self.dtype} {self.chain}\n    {self.message}"


def problem(chain: Chain, args: Arguments, every: Sequence[np.ndarray], found: Any) -> str:
    """What is wrong with a result, if anything."""
    expected, found = every[0], np.asarray(found)
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
    ulps = max(step.operation.ulps for step in chain.steps)
    bad = wrong(found, every, ulps)
    if found.dtype == np.float32:
        bad &= wrong(np.asarray(_flushed(found, FlushingBeside.beyond)), every, ulps)
    if not bad.any():
        return ""
    k = tuple(int(i[0]) for i in np.nonzero(bad))
    others = sorted({float(v[k]) for v in every}, key=str)
    where = ""
    if found.shape == args.x.shape:
        where = f" at x = {args.x[k]!r}, y = {args.y[k]!r}"
    return f"{found[k]!r} instead of one of {others}{where}, {bad.sum()} of {bad.size}, {k}"


def _ways_if_defined(chain: Chain, args: Arguments) -> list[np.ndarray]:
    """What NumPy gives, if anything: shapes have to fit, and dtypes to be there."""
    try:
        return list(ways(chain, args))
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError):
        return []


def failures(chains: Sequence[Chain], args: Arguments) -> list[Failure]:
    """The chains of a program that do not give what NumPy gives."""
    expected = {chain: every for chain in chains if (every := _ways_if_defined(chain, args))}
    dtype = args.x.dtype.str[1:]

    def program(x: Any, y: Any, p: Any, q: Any) -> list[Any]:
        return [chain(OURS, x, y, p, q) for chain in expected]

    try:
        results = fg.jit(program)(*args)
    except Exception as error:  # any error is a finding
        if len(expected) > 1:
            return [bad for chain in expected for bad in failures([chain], args)]
        return [Failure(chain, dtype, f"{type(error).__name__}: {error}") for chain in expected]
    messages = [
        problem(chain, args, every, found)
        for (chain, every), found in zip(expected.items(), results, strict=True)
    ]
    return [Failure(c, dtype, text) for c, text in zip(expected, messages, strict=True) if text]


def reduced(failure: Failure, args: Arguments) -> Failure:
    """A failure of as few steps as possible."""
    for chain in failure.chain.shorter():
        found = failures([chain], args)
        if found:
            return reduced(found[0], args)
    return failure


def run_program(number: int) -> list[Failure]:
    """The failures among the chains of the program of a number."""
    rng = random.Random(number)
    dtype, shape = rng.choice(DTYPES), rng.choice(SHAPES)
    args = drawn_arguments(np.random.default_rng(number), dtype, shape)
    chains = [drawn_chain(rng) for _ in range(TOGETHER)]
    with quiet():
        return [reduced(failure, args) for failure in failures(chains, args)]


def run(first: int, programs: Iterable[int], jobs: int = 1) -> Iterator[tuple[int, Failure]]:
    """The failures among the programs of some numbers, each kind once."""
    seen: set[tuple[str, ...]] = set()

    def new(number: int, found: Sequence[Failure]) -> Iterator[tuple[int, Failure]]:
        for failure in found:
            key = tuple(step.operation.text for step in failure.chain.steps)
            if key not in seen:
                seen.add(key)
                yield number, failure

    if jobs == 1:
        for number in programs:
            yield from new(number, run_program(number))
        return
    numbers = list(programs)
    with (
        small_heap(),
        ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=100) as pool,
    ):
        for number, found in zip(numbers, pool.map(run_program, numbers), strict=True):
            yield from new(number, found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.special_values")
    parser.add_argument("--chains", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    args = parser.parse_args()
    count = -(-args.chains // TOGETHER)
    start, n_found = time.monotonic(), 0
    for number, failure in run(0, range(args.seed, args.seed + count), args.jobs):
        n_found += 1
        print(f"program {number}: {failure}", flush=True)
    seconds = time.monotonic() - start
    print(f"{count * TOGETHER} chains in {seconds:.0f} s, {n_found} kinds of failures")
    return bool(n_found)


if __name__ == "__main__":
    sys.exit(main())
