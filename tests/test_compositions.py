"""Words over {grad, jvp, vmap, jit} up to length 3, on a dozen small programs.

Every run tries a third of the words of three letters on each program, the nightly run all.

Every letter maps a function from vectors to numbers to another one, so that letters compose
freely. The reference never uses funcgrad: the programs are written a second time with mpmath, and
derivatives are central differences in 80 digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import funcgrad as fg

POINT = np.array([0.7, 1.3, -0.4])
DIRECTION = np.array([0.6, -0.3, 0.8])
SCALES = np.array([1.0, 0.5, -1.5])
WEIGHTS = np.array([0.2, 1.1, -0.7])
MATRIX = np.array([[2.0, 0.3, -0.1], [0.4, 1.5, 0.2], [-0.2, 0.1, 1.2]])


@dataclass(frozen=True)
class Sample:
    """A program in plain NumPy and again in mpmath."""

    program: Callable[[Any], Any]
    reference: Callable[[list[Any]], Any]


def _matvec(x: list[Any]) -> list[Any]:
    return [sum(mp.mpf(m) * v for m, v in zip(row, x, strict=True)) for row in MATRIX.tolist()]


def _indexed(x: Any) -> Any:
    return np.sum(x[::-1] * x[np.array([0, 0, 2])]) * x[1] + np.sum(x[None, 1:] ** 2)


def _scatter(x: Any) -> Any:
    y = (x * 2).at[np.array([0, 2])].add(x[1] ** 2)
    return np.sum(y**3)


def _solve_reference(x: list[Any]) -> Any:
    a = mp.matrix(MATRIX.tolist()) + mp.diag([mp.exp(v) for v in x])
    y = mp.lu_solve(a, mp.matrix(x))
    return sum(mp.sin(v) for v in y)


SAMPLES = {
    "tanh_sin": Sample(
        lambda x: np.sum(np.tanh(x) * np.sin(x) + x**2),
        lambda x: sum(mp.tanh(v) * mp.sin(v) + v**2 for v in x),
    ),
    "product": Sample(
        lambda x: np.prod(x) * np.prod(np.exp(x)), lambda x: x[0] * x[1] * x[2] * mp.exp(sum(x))
    ),
    "logsumexp": Sample(
        lambda x: np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x),
        lambda x: mp.log(sum(mp.exp(v) for v in x)),
    ),
    "quadratic": Sample(
        lambda x: x @ MATRIX @ x + np.dot(MATRIX, x)[0] ** 3,
        lambda x: sum(a * b for a, b in zip(x, _matvec(x), strict=True)) + _matvec(x)[0] ** 3,
    ),
    "norm": Sample(
        lambda x: np.linalg.norm(x) ** 3 + np.sqrt(1 + x[0] ** 2),
        lambda x: mp.sqrt(sum(v**2 for v in x)) ** 3 + mp.sqrt(1 + x[0] ** 2),
    ),
    "where": Sample(
        lambda x: np.sum(np.where(x > 0, x**3, np.cos(x))) + np.maximum(x, 0.1).mean(),
        lambda x: (
            sum(v**3 if v > 0 else mp.cos(v) for v in x) + sum(max(v, mp.mpf("0.1")) for v in x) / 3
        ),
    ),
    "cumulative": Sample(
        lambda x: np.sum(np.cumsum(x) ** 3), lambda x: sum(sum(x[: i + 1]) ** 3 for i in range(3))
    ),
    "indexing": Sample(
        _indexed,
        lambda x: (x[2] * x[0] + x[1] * x[0] + x[0] * x[2]) * x[1] + x[1] ** 2 + x[2] ** 2,
    ),
    "scatter": Sample(
        _scatter,
        lambda x: (2 * x[0] + x[1] ** 2) ** 3 + (2 * x[1]) ** 3 + (2 * x[2] + x[1] ** 2) ** 3,
    ),
    "shapes": Sample(
        lambda x: (
            np.sum(
                np.concatenate([x, x[:1] * 2]).reshape(2, 2).T * np.array([[1.0, 2.0], [3.0, 4.0]])
            )
            ** 2
            * x[2]
        ),
        lambda x: (1 * x[0] + 2 * x[2] + 3 * x[1] + 4 * 2 * x[0]) ** 2 * x[2],
    ),
    "special": Sample(
        lambda x: np.sum(np.arctan2(x, 2.0) * np.log1p(x**2)) / (1 + np.exp(-x[0])),
        lambda x: sum(mp.atan2(v, 2) * mp.log(1 + v**2) for v in x) / (1 + mp.exp(-x[0])),
    ),
    "power": Sample(
        lambda x: np.sum((x**2 + 0.5) ** (x + 1.2) - np.power(np.abs(x), 1.5)),
        lambda x: sum((v**2 + mp.mpf(0.5)) ** (v + mp.mpf(1.2)) - abs(v) ** mp.mpf(1.5) for v in x),
    ),
    "einsum": Sample(
        lambda x: np.einsum("i,j,ij,j->", x, x, MATRIX, np.sin(x)),
        lambda x: sum(
            x[i] * x[j] * mp.mpf(MATRIX[i, j]) * mp.sin(x[j]) for i in range(3) for j in range(3)
        ),
    ),
    "solve": Sample(
        lambda x: np.sum(np.sin(np.linalg.solve(MATRIX + np.diag(np.exp(x)), x))),
        _solve_reference,
    ),
}


# The letters, on NumPy functions by funcgrad and on mpmath functions by differences.


def _grad(f: Any) -> Any:
    return lambda x: np.sum(fg.grad(f)(x) * DIRECTION)


def _jvp(f: Any) -> Any:
    return lambda x: fg.jvp(f, (x,), (DIRECTION,))[1]


def _vmap(f: Any) -> Any:
    return lambda x: np.sum(fg.vmap(f)(SCALES[:, None] * x) * WEIGHTS)


LETTERS = {"grad": _grad, "jvp": _jvp, "vmap": _vmap, "jit": fg.jit}


def _directional(f: Any) -> Any:
    h = mp.mpf(10) ** -15
    w = [mp.mpf(v) for v in DIRECTION.tolist()]

    def derivative(x: list[Any]) -> Any:
        high = [v + h * d for v, d in zip(x, w, strict=True)]
        low = [v - h * d for v, d in zip(x, w, strict=True)]
        return (f(high) - f(low)) / (2 * h)

    return derivative


def _mapped(f: Any) -> Any:
    rows = list(zip(SCALES.tolist(), WEIGHTS.tolist(), strict=True))
    return lambda x: sum(mp.mpf(w) * f([mp.mpf(s) * v for v in x]) for s, w in rows)


REFERENCE_LETTERS = {
    "grad": _directional,
    "jvp": _directional,
    "vmap": _mapped,
    "jit": lambda f: f,
}

WORDS = [word for length in (1, 2, 3) for word in product(LETTERS, repeat=length)]


def _expected(sample: Sample, word: tuple[str, ...]) -> float:
    with mp.workdps(80):
        f = sample.reference
        for letter in reversed(word):
            f = REFERENCE_LETTERS[letter](f)
        return float(f([mp.mpf(v) for v in POINT.tolist()]))


def is_tried(name: str, word: tuple[str, ...]) -> bool:
    """Whether every run tries a word on a program: thirds of the words of three letters in turn."""
    places = [*map(list(LETTERS).index, word), list(SAMPLES).index(name)]
    return len(word) < 3 or sum(places) % 3 == 0


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "is_whole", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["sample", "all"]
)
@pytest.mark.parametrize("name", SAMPLES)
def test_words(name: str, is_whole: bool) -> None:
    sample = SAMPLES[name]
    known: dict[tuple[str, ...], float] = {}
    for word in WORDS:
        if not (is_whole or is_tried(name, word)):
            continue
        f: Any = sample.program
        for letter in reversed(word):
            f = LETTERS[letter](f)
        value = f(POINT)
        # jit changes no value and grad agrees with jvp, so few references are needed.
        key = tuple("jvp" if c == "grad" else c for c in word if c != "jit")
        if key not in known:
            known[key] = _expected(sample, key)
        np.testing.assert_allclose(value, known[key], rtol=1e-9, atol=1e-9, err_msg=str(word))


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "jit"])
def test_third_derivative_of_tanh(wrap: Any) -> None:
    """Closed form: with y = tanh x, y''' = (1 - y^2)(6 y^2 - 2)."""
    y = np.tanh(0.3)
    expected = (1 - y**2) * (6 * y**2 - 2)
    third = fg.grad(wrap(fg.grad(wrap(fg.grad(wrap(np.tanh))))))
    assert abs(third(0.3) - expected) < 1e-12
    assert abs(fg.jit(third)(0.3) - expected) < 1e-12
    points = np.array([0.3, -0.2, 1.1])
    ys = np.tanh(points)
    np.testing.assert_allclose(
        fg.vmap(third)(points), (1 - ys**2) * (6 * ys**2 - 2), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        fg.jit(fg.vmap(third))(points), (1 - ys**2) * (6 * ys**2 - 2), rtol=0, atol=1e-12
    )
