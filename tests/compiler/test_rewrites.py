"""Rewrites of compiled code: what they may change, and what they must not, at extreme numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg

WHOLE = (-9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
HALVES = (-2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
SHARES = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8)


def extremes(dtype: Any) -> np.ndarray:
    """Numbers of both signs whose powers are at the ends of the range, zeros, infinities, NaN."""
    info = np.finfo(dtype)
    positive = [0.0, np.inf, info.max, info.tiny, info.max / 3, info.tiny * 3, 0.7, 1.0, 3.0]
    if dtype == np.float64:
        positive += [5e-324, 1e-310, 3.3e-309]
    # Whose powers are near the ends of the range.
    low, high = np.log2(info.tiny), np.log2(info.max)
    shares = [end * shift / n for n in SHARES for end in (low, high) for shift in (0.99, 1, 1.01)]
    positive += [2.0**share for share in shares if low <= share < high]
    return np.array([s * float(x) for x in positive for s in (1, -1)] + [np.nan], dtype)


def assert_same(found: Any, expected: Any, ulps: int) -> None:
    """Equal to some units in the last place; in single precision subnormal numbers are zeros."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    if found.dtype == np.float32:
        small = np.abs(expected) < np.finfo(np.float32).tiny * 1.0001
        is_flushed = small & ((found == 0) | (np.abs(found) <= np.finfo(np.float32).tiny))
        expected = np.where(is_flushed, found, expected)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    finite = np.isfinite(expected) & (np.abs(expected) < np.finfo(found.dtype).max * (1 - 1e-6))
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(found[special], expected[special])
    error = np.abs(found - expected)[finite] / np.spacing(np.abs(expected[finite]))
    assert np.max(error, initial=0) <= ulps
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_powers_are_numpys_at_all_magnitudes(dtype: Any) -> None:
    x = extremes(dtype)
    if dtype == np.float32:
        x = x[~((x != 0) & (np.abs(x) < np.finfo(dtype).tiny))]

    def powers(x: Any) -> list[Any]:
        return [x**n for n in (*WHOLE, *HALVES)]

    def by_function(x: Any) -> list[Any]:
        return [np.power(x, n) for n in HALVES]

    with np.errstate(all="ignore"):
        for found, expected in zip(fg.jit(powers)(x), powers(x), strict=True):
            assert_same(found, expected, 6)
        # Some versions of NumPy take roots here for a scalar exponent of 1/2.
        expected = [np.power(x, np.full_like(x, n)) for n in HALVES]
        for one, other in zip(fg.jit(by_function)(x), expected, strict=True):
            assert_same(one, other, 6)


def test_powers_in_loops_over_few_numbers() -> None:
    for dtype in (np.float64, np.float32):
        x = np.array([0.5, 2.0, -1.0], dtype)

        def total(x: Any) -> Any:
            return fg.lax.fori_loop(0, 2, lambda i, y: y + x**-1.5 + x**-2.5, x * 0)

        found = fg.jit(total)(x)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(found, 2 * (x**-1.5 + x**-2.5), 1e-6)


def test_a_root_of_a_subnormal_number_does_not_overflow() -> None:
    for f in (lambda x: x**-0.5, lambda x: np.power(x, -0.5), fg.lax.rsqrt):
        assert fg.jit(f)(1e-310) == pytest.approx(1e155, rel=1e-14)
        assert fg.jit(fg.vmap(f))(np.full(3, 1e-310))[0] == pytest.approx(1e155, rel=1e-14)


DIVISORS = (3.0, 1e-310, 1e308, 5e-324, 7, 0.1, 2.0**-1030, 2.0**1023, -0.0, np.inf)


def test_quotients_by_constants_are_quotients() -> None:
    x = extremes(np.float64)

    def quotients(x: Any) -> list[Any]:
        return [q for c in DIVISORS for q in (x / c, c / x, x / c * c)] + [np.reciprocal(x)]

    with np.errstate(all="ignore"):
        for found, expected in zip(fg.jit(quotients)(x), quotients(x), strict=True):
            assert_same(found, expected, 0)


def test_products_are_not_distributed() -> None:
    """A sum of products is no product with a sum, which may overflow, or cancel, before it."""
    a, b = np.full((32, 32), 1e-300), np.full((32, 32), 1e308)
    for f in (
        lambda a, b, c: a @ b + a @ c,
        lambda a, b, c: b @ a + c @ a,
        lambda a, b, c: a @ b + (c.T @ a.T).T,
        lambda a, b, c: np.einsum("ij,jk->ik", a, b) + np.einsum("ij,kj->ik", a, c),
        lambda a, b, c: a @ b + a @ c + a @ b,
    ):
        expected = f(a, b, b)
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(fg.jit(f)(a, b, b), expected, 1e-13)
        np.testing.assert_allclose(
            fg.jit(fg.vmap(f))(a[None], b[None], b[None])[0], expected, 1e-13
        )


def test_cotangents_of_both_sides_are_not_added_before_the_product() -> None:
    x, ct = np.full((32, 32), 1e-300), np.full((32, 32), 1e308)
    gradient = fg.vjp(lambda x: x.T @ x, x)[1](ct)[0]
    assert np.isfinite(gradient).all()
    compiled = fg.jit(lambda x, ct: fg.vjp(lambda x: x.T @ x, x)[1](ct)[0])(x, ct)
    np.testing.assert_allclose(compiled, gradient, 1e-13)


@pytest.mark.parametrize("n", [1, 4, 1000])
def test_products_and_sums_of_a_program_are_rounded_twice(n: int) -> None:
    a, b, c = (np.full(n, x) for x in (1 + 2.0**-30, 1 - 2.0**-30, -1.0))
    assert np.all(fg.jit(lambda a, b, c: a * b + c)(a, b, c) == 0)
    assert np.all(fg.jit(fg.grad(lambda a, b, c: np.sum(a * b * c + c)))(a, b, c) == -b)


def test_zeros_of_both_signs_are_different_constants() -> None:
    x = np.array([-0.0, 1.0])
    found = fg.jit(lambda x: (x + 0.0, x + -0.0, x * 0.0, x * -0.0))(x)
    expected = (x + 0.0, x + -0.0, x * 0.0, x * -0.0)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_zeros_of_an_identity_times_infinity_are_nan() -> None:
    one, x, v = np.eye(64), np.ones((64, 64)), np.ones(64)
    x[3, 5], v[3], v[7] = np.inf, -np.inf, np.nan
    functions = (
        lambda x, v: one * x,
        lambda x, v: one @ x,
        lambda x, v: np.diag(v) @ x,
        lambda x, v: np.sum(one * v, 0),
        lambda x, v: (one * 2.0) * v + one,
        lambda x, v: np.maximum(one, 0) * v,
    )
    with np.errstate(invalid="ignore"):
        found = fg.jit(lambda x, v: [f(x, v) for f in functions])(x, v)
        for f, y in zip(functions, found, strict=True):
            np.testing.assert_array_equal(y, f(x, v))
