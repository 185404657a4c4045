"""Integrals of products of powers, against mpmath, and where they do not converge."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import funcgrad as fg
from funcgrad.primitives.power_integrals import power_integral


def exact(halves: tuple[int, ...], xs: np.ndarray) -> complex:
    """The integral along the real line, or half-way between the arguments."""
    with mp.workdps(25):
        angles = np.angle(xs)
        unit = mp.exp(1j * (angles.max() + angles.min()) / 2)

        def integrand(v: mp.mpf) -> mp.mpc:
            t = unit * mp.exp(v)
            powers = (
                (t + mp.mpmathify(x)) ** (-mp.mpf(n) / 2) for x, n in zip(xs, halves, strict=True)
            )
            return t * mp.fprod(powers)

        ends = np.log(np.abs(xs[xs != 0]))
        return complex(mp.quad(integrand, np.linspace(ends.min() - 80, ends.max() + 80, 60)))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("halves", [(3, 1, 3), (5, 3, 7), (3, 1, 1, 2), (5, 3, 1, 6), (13, 1, 3)])
def test_of_real_numbers(halves: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    function = power_integral(*halves).bind
    for size in (0.5, 5.0, 20.0):
        xs = np.exp(rng.uniform(-size, size, len(halves)))
        expected = exact(halves, xs).real
        np.testing.assert_allclose([function(*xs), fg.jit(function)(*xs)], expected, 1e-13)
    single = xs.astype(np.float32)
    assert function(*single).dtype == np.float32


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "xs", [(1j, -1j, 1j), (1 + 2j, 3 - 1j, 1 + 1j), (-1 + 0.1j, 0.5, -1 + 0.2j), (1j, 0, 1j)]
)
def test_of_complex_numbers(xs: tuple[complex, ...]) -> None:
    given = np.array(xs)
    function = power_integral(3, 1, 3).bind
    expected = exact((3, 1, 3), given)
    np.testing.assert_allclose([function(*given), fg.jit(function)(*given)], expected, 1e-12)


def test_zeros() -> None:
    zero, one = np.float64(0), np.float64(1)
    assert power_integral(3, 1, 3).bind(one, zero, one) == pytest.approx(3 * np.pi / 8, rel=1e-14)
    assert power_integral(3, 1, 3).bind(zero, one, one) == np.inf
    assert power_integral(3, 1, 1, 2).bind(one, zero, zero, one) == np.inf


def test_derivatives_are_integrals_of_the_family() -> None:
    xs = np.array([1.0, 0.5, 2.0])
    slopes = fg.grad(lambda xs: power_integral(3, 1, 3).bind(*xs))(xs)
    expected = [
        -1.5 * power_integral(5, 1, 3).bind(*xs),
        -0.5 * power_integral(3, 3, 3).bind(*xs),
        -1.5 * power_integral(3, 1, 5).bind(*xs),
    ]
    np.testing.assert_allclose(slopes, expected, 1e-14)
