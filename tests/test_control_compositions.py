"""Words over transformations, loops and branches, up to length 3: a sample in every run.

Every letter maps a function of a number to another one, so that letters compose freely: a
transformation transforms it, a loop or branch calls it inside. Lanes of `vmap` go different ways
and take different numbers of steps. The reference never uses funcgrad: functions are written a
second time with mpmath, and derivatives are central differences in 60 digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import funcgrad as fg

POINT = 0.7
DIRECTION = 0.6
SCALES = (1.0, 0.5, -1.2)
WEIGHTS = (0.2, 1.1, -0.7)
TIMES = (0.5, -0.3, 0.8)

Function = Callable[[Any], Any]


def base(x: Any) -> Any:
    return np.sin(x) * x + 0.3 * x**3


# The letters, by funcgrad.


def _vmap(f: Function) -> Function:
    return lambda x: np.sum(fg.vmap(f)(np.array(SCALES) * x) * np.array(WEIGHTS))


def _custom_vjp(f: Function) -> Function:
    wrapped = fg.custom_vjp(lambda x: f(x))
    wrapped.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * fg.grad(f)(x),))
    return wrapped


def _scan(f: Function) -> Function:
    def step(c: Any, t: Any) -> Any:
        return 0.4 * c + t * f(c), c * t

    def looped(x: Any) -> Any:
        carry, ys = fg.lax.scan(step, x, np.array(TIMES))
        return carry + ys.sum()

    return looped


def _while(f: Function) -> Function:
    """One, two or three steps."""

    def looped(x: Any) -> Any:
        def body(state: Any) -> Any:
            clock, y = state
            return clock + 0.5 + 0.1 * x * x, 0.3 * clock + 0.5 * f(y)

        return fg.lax.while_loop(lambda state: state[0] < 0.9, body, (x, x))[1]

    return looped


def _cond(f: Function) -> Function:
    return lambda x: fg.lax.cond(x > 0.4, f, lambda v: v * v + np.cos(x), x)


LETTERS: dict[str, Callable[[Function], Function]] = {
    "grad": fg.grad,
    "jvp": lambda f: lambda x: fg.jvp(f, (x,), (DIRECTION,))[1],
    "vmap": _vmap,
    "jit": fg.jit,
    "checkpoint": fg.checkpoint,
    "custom_vjp": _custom_vjp,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}


# The letters, by mpmath.


def _difference(f: Function) -> Function:
    h = mp.mpf(10) ** -12
    return lambda x: (f(x + h) - f(x - h)) / (2 * h)


def _lanes(f: Function) -> Function:
    return lambda x: sum(mp.mpf(w) * f(mp.mpf(s) * x) for s, w in zip(SCALES, WEIGHTS, strict=True))


def _stepped(f: Function) -> Function:
    def looped(x: Any) -> Any:
        total = mp.mpf(0)
        for t in map(mp.mpf, TIMES):
            total += x * t
            x = mp.mpf(0.4) * x + t * f(x)
        return x + total

    return looped


def _repeated(f: Function) -> Function:
    def looped(x: Any) -> Any:
        clock = y = x
        while clock < mp.mpf(0.9):
            clock, y = (
                clock + mp.mpf(0.5) + mp.mpf(0.1) * x * x,
                mp.mpf(0.3) * clock + mp.mpf(0.5) * f(y),
            )
        return y

    return looped


REFERENCES: dict[str, Callable[[Function], Function]] = {
    "grad": _difference,
    "jvp": lambda f: lambda x: mp.mpf(DIRECTION) * _difference(f)(x),
    "vmap": _lanes,
    "scan": _stepped,
    "while": _repeated,
    "cond": lambda f: lambda x: f(x) if x > mp.mpf(0.4) else x * x + mp.cos(x),
}


@cache
def expected(word: tuple[str, ...]) -> float:
    with mp.workdps(60):

        def function(x: Any) -> Any:
            return mp.sin(x) * x + mp.mpf(0.3) * x**3

        for letter in reversed(word):
            function = REFERENCES[letter](function)
        return float(function(mp.mpf(POINT)))


def check(word: tuple[str, ...]) -> None:
    f: Function = base
    for letter in reversed(word):
        f = LETTERS[letter](f)
    reference = expected(tuple(c for c in word if c in REFERENCES))
    np.testing.assert_allclose(f(POINT), reference, rtol=1e-9, atol=1e-9, err_msg=" ".join(word))


def words(first: str, mode: int, is_whole: bool) -> list[tuple[str, ...]]:
    """Of up to three letters: all, or those that one of the modes tries in every run.

    Every mode has its own share of the words of three letters, with every pair of letters at every
    pair of places; together the modes try half of them.
    """
    places = {letter: k for k, letter in enumerate(LETTERS)}

    def is_tried(word: tuple[str, ...]) -> bool:
        share = 4 if "jit" in word else 6  # jit itself is a mode
        return is_whole or len(word) < 3 or sum(places[c] for c in word) % share == mode

    found = [(first, *rest) for n in range(3) for rest in product(LETTERS, repeat=n)]
    return [word for word in found if is_tried(word)]


first_letter = pytest.mark.parametrize("first", LETTERS)
sample_or_all = pytest.mark.parametrize(
    "is_whole", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["sample", "all"]
)


@pytest.mark.sampled(2)
@sample_or_all
@first_letter
def test_interpreted(first, is_whole):
    with fg.disable_jit():
        for word in words(first, 0, is_whole):
            check(word)


@pytest.mark.sampled(4)
@sample_or_all
@first_letter
def test_eager(first, is_whole):
    for word in words(first, 1, is_whole):
        check(word)


@pytest.mark.sampled(12)
@sample_or_all
@pytest.mark.parametrize("first", [c for c in LETTERS if c != "jit"])
def test_compiled(first, is_whole):
    for word in words(first, 2, is_whole):
        if "jit" not in word:
            check(("jit", *word))
