"""What is stored, streamed or computed again, by what it costs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import funcgrad as fg

RNG = np.random.default_rng(0)


def text_of(function: Any, *args: Any) -> str:
    """The kernels and the plan of a program."""
    return str(fg.jit(function).lower(*args).as_text())


def test_a_long_formula_that_many_neighbours_read_is_computed_once() -> None:
    def formula(x: Any) -> Any:
        y = x
        for k in range(8):
            y = (y + x) * (x - k)
        return y

    def windows(x: Any) -> Any:
        y = formula(x)
        return sum(y[k : len(y) - 6 + k] * (k + 1.5) for k in range(7))

    x = RNG.normal(size=100_000)
    code = text_of(windows, x)
    assert code.count("\ndef kernel") == 2
    assert code.partition("\ndef kernel")[2].count(" - c") < 8 * 3  # in a core and at its end
    expected = formula(x)
    expected = sum(expected[k : len(x) - 6 + k] * (k + 1.5) for k in range(7))
    np.testing.assert_allclose(fg.jit(windows)(x), expected, rtol=1e-12)


def test_a_cheap_difference_is_computed_by_its_neighbours() -> None:
    def curvature(x: Any) -> Any:
        d = x[1:] - x[:-1]
        return d[1:] - d[:-1]

    for n in (10, 1_000_000):
        assert text_of(curvature, np.ones(n)).count("\ndef kernel") == 1


def test_a_part_of_what_is_stored_is_not_stored_again() -> None:
    """The results of a step are carried; what the next field reads of them is a view."""

    def step(_: Any, fields: Any) -> Any:
        e, h = fields
        e = e.at[:, 1:].add(h[:, 1:] - h[:, :-1])
        h = h.at[:, :-1].add(e[:, 1:] - e[:, :-1])
        return e, h

    def run(e: Any, h: Any) -> Any:
        return fg.lax.fori_loop(0, 3, step, (e, h))

    e, h = RNG.normal(size=(2, 300, 310))
    bodies = text_of(run, e, h).split("\n# kernel")
    assert max(body.count("store(") for body in bodies) <= 3  # inside, at edges, at the end
    found = fg.jit(run)(e, h)
    for _ in range(3):
        e[:, 1:] += h[:, 1:] - h[:, :-1]
        h[:, :-1] += e[:, 1:] - e[:, :-1]
    np.testing.assert_allclose(found[0], e, rtol=1e-12)
    np.testing.assert_allclose(found[1], h, rtol=1e-12)


def test_rows_that_are_gone_through_again_keep_what_takes_long() -> None:
    """Stages of a row: a mean of each value decides about the next one."""

    def stages(x: Any) -> Any:
        for _ in range(5):
            y = x
            for _ in range(6):
                y = y * x + 0.1
            x = 0.5 + y - np.mean(y, 1, keepdims=True)
        return x

    x = RNG.uniform(-0.5, 0.5, size=(40, 600))
    code = text_of(stages, x)
    assert code.count("\ndef kernel") == 1
    assert code.count(" * x") + code.count(" * v") < 5 * 6 * 3  # not once more in every stage
    np.testing.assert_allclose(fg.jit(stages)(x), stages(x), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_coordinates_are_written_out_beside_a_long_formula_of_distances(dtype: str) -> None:
    def forces(x: Any) -> Any:
        apart = x[:, None, :] - x[None, :, :]
        apart = apart - 3 * np.round(apart / 3)
        squares = np.sum(apart * apart, -1) + 0.5
        pull = squares
        for k in range(16):
            pull = pull * squares + k
        return np.sum((1 / pull)[:, :, None] * apart, 1)

    x = RNG.normal(size=(70, 3)).astype(dtype)
    code = text_of(forces, x)
    assert "load_apart(" in code  # vectors of pairs, not of three coordinates
    tolerance = 1e-4 if dtype == "f4" else 1e-10
    np.testing.assert_allclose(fg.jit(forces)(x), forces(x), tolerance, tolerance)


def test_kernels_that_read_the_same_array_are_one() -> None:
    def differences(x: Any) -> Any:
        return np.diff(x, axis=0, append=0.0), np.diff(x, axis=1, prepend=1.0) * 2

    def halves(x: Any) -> Any:
        n = x.shape[1] // 2
        return np.exp(x[:, :n]), np.sin(x[:, n:])

    cases = itertools.product(((differences, 1), (halves, 2)), ((300, 400), (4, 6)))
    for (function, n_kernels), shape in cases:
        x = RNG.normal(size=shape)
        assert text_of(function, x).count("\ndef kernel") == n_kernels
        for found, expected in zip(fg.jit(function)(x), function(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_many_operations_on_numbers_of_short_rows_are_computed_in_vectors(dtype: str) -> None:
    def products(a: Any, v: Any, y: Any) -> Any:
        z = a @ v
        for _ in range(10):
            z = np.maximum(z * y, z - y)
        return z

    def scaled(a: Any, v: Any, y: Any) -> Any:
        return a @ v * y

    rows = RNG.normal(size=(500, 50)).astype(dtype), RNG.normal(size=(500, 700)).astype(dtype)
    for function, a, n_kernels in (
        (products, rows[0], 2),
        (scaled, rows[0], 1),
        (products, rows[1], 1),
    ):
        v, y = (RNG.normal(size=n).astype(dtype) for n in a.shape[::-1])
        assert text_of(function, a, v, y).count("\ndef kernel") == n_kernels
        tolerance = 1e-4 if dtype == "f4" else 1e-12
        np.testing.assert_allclose(
            fg.jit(function)(a, v, y), function(a, v, y), tolerance, tolerance * 100
        )
