"""Formulas that compiled programs use in the place of loops of SciPy and NumPy, beside mpmath."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.primitives.polynomials import shortened
from funcgrad.scipy import linalg, special

RNG = np.random.default_rng(0)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 0.5, 1.5, -0.5, 3, 8])
EXTREME = np.array([1e-300, -1e-300, 1e308, -1e308])


def spread(low: float, high: float, n: int = 30) -> np.ndarray:
    return np.exp(RNG.uniform(np.log(low), np.log(high), n))


def both(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, -x])


def scaled_erfc(x: Any) -> Any:
    if x < 40:
        return mp.exp(x * x) * mp.erfc(x)
    terms = [(-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(12)]
    return mp.fsum(terms) / (mp.sqrt(mp.pi) * x)


def log_normal(x: Any) -> Any:
    half = mp.erfc(abs(x) / mp.sqrt(2)) / 2
    return mp.log(half) if x < 0 else mp.log1p(-half)


def quantile(p: Any) -> Any:
    """By Newton's method on the logarithm, in the left half."""
    tail, side = (p, -1) if p < 0.5 else (1 - p, 1)
    x = mp.mpf(-scipy.special.ndtri(float(tail)))
    for _ in range(8):
        left = mp.erfc(x / mp.sqrt(2)) / 2
        x += mp.log(left / tail) * left * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
    return side * x


BESSEL = both(np.concatenate([spread(1e-10, 700), [7.99, 8.0, 8.01]]))
SIDES = both(RNG.uniform(0, 10, 30))
NEAR_ZEROS = np.concatenate([z + both(spread(1e-12, 0.1, 10)) for z in (1, 2)])
TAILS = spread(1e-300, 0.5)
NEAR_ONE = 1 - spread(1e-15, 0.1)
POSITIVE = spread(1e-300, 1e300)
NEAR_NOTHING = -spread(1e-30, 0.1)
CASES: dict[str, tuple[Callable[[Any], Any], Sequence[np.ndarray]]] = {
    "i0": (lambda x: mp.besseli(0, x), [BESSEL]),
    "i1": (lambda x: mp.besseli(1, x), [BESSEL]),
    "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), [BESSEL * 10]),
    "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), [BESSEL * 10]),
    "erfcx": (scaled_erfc, [both(spread(1e-10, 26)), spread(26, 1e8)]),
    "log_ndtr": (log_normal, [both(spread(1e-10, 37))]),
    "ndtri": (quantile, [RNG.random(30), TAILS, NEAR_ONE]),
    "erfinv": (mp.erfinv, [SIDES / 10, NEAR_ONE]),
    "erfcinv": (lambda x: -quantile(x / 2) / mp.sqrt(2), [2 * RNG.random(30), TAILS]),
    "spence": (
        lambda x: mp.polylog(2, 1 - x).real,
        [spread(1e-300, 1e10), 1 + both(spread(1e-10, 1)), np.array([0.5, 2.0])],
    ),
    "ndtr": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, [SIDES]),
    "logit": (
        lambda p: mp.log(p / (1 - p)),
        [TAILS, RNG.random(30), 0.5 + both(spread(1e-7, 0.4)), NEAR_ONE],
    ),
    "digamma": (mp.digamma, [POSITIVE, SIDES, NEAR_NOTHING, np.array([1.46163214])]),
    "gamma": (mp.gamma, [spread(1e-300, 171), SIDES, 16 * SIDES, NEAR_NOTHING]),
    "gammaln": (
        lambda x: mp.log(abs(mp.gamma(x))) if x < 1e9 else mp.loggamma(x),
        [POSITIVE, SIDES, NEAR_ZEROS, NEAR_NOTHING],
    ),
}
# Left of 0 there are zeros near which the absolute error is what is small.
LEAST = {"digamma": 1.0, "gammaln": 1.0}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_formulas_are_accurate(name: str, dtype: Any) -> None:
    reference, points = CASES[name]
    with np.errstate(all="ignore"):
        x = np.concatenate(points).astype(dtype)
        x = x[np.isfinite(getattr(scipy.special, name)(x)) & (x != 0)]
    with mp.workdps(40):
        exact = np.array([float(reference(mp.mpf(float(v)))) for v in x])
    info = np.finfo(dtype)
    is_normal = (np.abs(exact) > info.tiny) & (np.abs(exact) < info.max) & (np.abs(x) > info.tiny)
    found = fg.jit(getattr(special, name))(x)
    assert found.dtype == dtype
    size = np.where(x < 0, np.maximum(np.abs(exact), LEAST.get(name, 0)), np.abs(exact))
    errors = np.abs(found - exact)[is_normal] / size[is_normal]
    assert errors.max() < (5e-14 if dtype == np.float64 else 7e-8)


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=20),
    st.sampled_from([(-1.0, 1.0), (-0.5, 1.0), (0.0, 1.0)]),
)
def test_polynomials_of_short_numbers_are_as_exact_as_these(
    coefficients: list[float], ends: tuple[float, float]
) -> None:
    centre, half = sum(ends) / 2, (ends[1] - ends[0]) / 2
    series = np.polynomial.Chebyshev([40.0, *coefficients], ends)
    exact = series.convert(kind=np.polynomial.Polynomial, domain=(-1, 1))
    short = shortened(tuple(exact.coef[::-1]), *ends)
    assert len(short) <= len(exact.coef)
    with mp.workdps(40):
        for x in centre + half * np.cos(np.linspace(0, np.pi, 40)):
            powers = [mp.mpf(x) ** k for k in range(len(exact.coef))]
            error = mp.fdot(short[::-1], powers) / mp.fdot(exact.coef, powers) - 1
            assert abs(error) < 2**-27


@pytest.mark.parametrize("shape", [(), (1,), (50,), (4, 9), (0, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_elements_of_repeated_formulas_end_by_themselves(shape: Any, dtype: Any) -> None:
    def slope(a: Any, b: Any, x: Any) -> Any:
        return fg.grad(lambda a: fnp.sum(special.betainc(a, b, x)))(a)

    a, b = (np.exp(RNG.uniform(-2, 6, shape)).astype(dtype) for _ in range(2))
    x = RNG.uniform(0, 1, shape).astype(dtype)
    exact = slope(*(v.astype(np.float64) for v in (a, b, x)))
    rtol = 1e-12 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(fg.jit(slope)(a, b, x), exact, rtol=rtol, atol=1e-30)
    text = fg.jit(slope).lower(a, b, x).compile().as_text()
    # The loop is inside a kernel, around a block of elements, and none of the plan.
    assert "  while" not in text.partition("\nplan\n")[2].partition("\n# kernel")[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*CASES, "entr"])
def test_special_values_are_those_of_scipy(name: str) -> None:
    x = np.concatenate([SPECIAL, EXTREME])
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(x)
    np.testing.assert_allclose(fg.jit(getattr(special, name))(x), expected, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_slopes_of_digamma(order: int) -> None:
    def slope(x: Any) -> Any:
        return special.digamma(x)

    for _ in range(order):
        slope = fg.grad(slope)
    x = np.concatenate([spread(1e-5, 1e5), -RNG.uniform(0, 10, 30)])
    with mp.workdps(40):
        exact = np.array([float(mp.polygamma(order, mp.mpf(v))) for v in x])
    is_right = x > 0 if order > 1 else np.ones(x.shape, bool)
    found = fg.jit(fg.vmap(slope))(x)
    np.testing.assert_allclose(found[is_right], exact[is_right], rtol=5e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_betaln(dtype: Any) -> None:
    a, b = (RNG.permutation(spread(1e-6, 1e6, 200)).astype(dtype) for _ in range(2))
    with mp.workdps(40):
        pairs = zip(a.astype(float), b.astype(float), strict=True)
        exact = np.array([float(mp.log(mp.beta(*map(mp.mpf, x)))) for x in pairs])
    found = fg.jit(special.betaln)(a, b)
    errors = np.abs(found - exact) / np.maximum(np.abs(exact), 1)
    assert errors.max() < (1e-14 if dtype == np.float64 else 7e-8)


def test_special_values_of_betaln() -> None:
    numbers = np.array([-3, -2.5, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 40, np.inf, np.nan])
    a, b = np.meshgrid(numbers, numbers)
    for part in (numbers > 0, numbers == numbers, numbers != 0):
        x, y = a[part][:, part], b[part][:, part]
        expected = scipy.special.betaln(x, y)
        np.testing.assert_allclose(fg.jit(special.betaln)(x, y), expected, 1e-13, 1e-13)


def exact_zeta(s: Any, q: Any) -> Any:
    """By Euler and Maclaurin's formula, so far out that all digits are right."""
    s, z = mp.mpf(float(s)), mp.mpf(float(q)) + 60
    total = mp.fsum((z - k) ** -s for k in range(60, 0, -1))
    total += z ** (1 - s) / (s - 1) + z**-s / 2
    term = s / z ** (s + 1)
    for j in range(1, 40):
        total += mp.bernoulli(2 * j) / mp.factorial(2 * j) * term
        term *= (s + 2 * j - 1) * (s + 2 * j) / z**2
    return total


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_zeta(dtype: Any) -> None:
    s = np.concatenate([1 + spread(1e-6, 1, 40), spread(2, 300, 160)])
    q = np.concatenate([spread(1e-3, 1e3, 100), spread(0.1, 30, 100)])
    s, q = s.astype(dtype), RNG.permutation(q).astype(dtype)
    with mp.workdps(50):
        exact = np.array([float(exact_zeta(*point)) for point in zip(s, q, strict=True)])
    info = np.finfo(dtype)
    is_normal = (exact > info.tiny) & (exact < info.max)
    with np.errstate(all="ignore"):
        found = fg.jit(special.zeta)(s, q)
    assert found.dtype == dtype
    rtol = 5e-15 if dtype == np.float64 else 7e-8
    np.testing.assert_allclose(found[is_normal], exact[is_normal], rtol=rtol)
    orders = np.array([1, 2, 3, 7], dtype)[:, None]
    expected = special.polygamma(orders, q)
    assert is_normal.sum() > 100
    np.testing.assert_allclose(fg.jit(special.polygamma)(orders, q), expected, rtol=20 * info.eps)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_values_of_zeta(dtype: Any) -> None:
    s = np.array([1, 1.0001, 2, 3, 2.5, 0.5, 0, -1, -np.inf, np.nan, 200, 1e10], dtype)[:, None]
    extremes = [1e-300, 1e-160, 1e200] if dtype == np.float64 else [1e-30, 1e30]
    q = np.array([1, 0.5, *extremes, np.inf, np.nan], dtype)
    poles = np.array([0.0, -0.0, -1, -1.5, -2.5, -np.inf, np.nan, 2], dtype)
    zeta, polygamma = fg.jit(special.zeta), fg.jit(special.polygamma)
    n = np.array([0, 1, 2, 3], dtype)[:, None]
    for points in (q, poles, q[:0], *q[:, None], *poles[:, None]):
        with np.errstate(all="ignore"):
            expected, slopes = special.zeta(s, points), special.polygamma(n, points)
        rtol = 1e-13 if dtype == np.float64 else 1e-6
        np.testing.assert_allclose(zeta(s, points), expected, rtol=rtol)
        np.testing.assert_allclose(polygamma(n, points), slopes, rtol=rtol)
    np.testing.assert_array_equal(zeta(np.full(3, np.inf), np.array([0.5, 1, 2])), [np.inf, 1, 0])
    trigamma = fg.jit(functools.partial(special.polygamma, 1))
    np.testing.assert_array_equal(trigamma(np.array([-np.inf, -2, -0.0])), np.inf)


def test_zeta_in_loops_and_under_maps() -> None:
    x = np.array([2.0, -0.5, 3.0, -1.5, 0.25])

    def total(x: Any) -> Any:
        return fg.lax.scan(lambda c, q: (c + special.zeta(3.0, q), special.zeta(2.0, q)), 0.0, x)

    for f in (total, fg.vmap(total, in_axes=1)):
        points = x if f is total else x[:, None] + np.array([0.0, 0.125])
        for found, expected in zip(fg.jit(f)(points), f(points), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
    slope = fg.grad(lambda q: special.zeta(2.5, q))
    second = fg.grad(slope)
    np.testing.assert_allclose(fg.jit(second)(0.75), 2.5 * 3.5 * special.zeta(4.5, 0.75), 1e-14)
    np.testing.assert_allclose(
        fg.jit(fg.vmap(slope))(x[:1]), -2.5 * special.zeta(3.5, x[:1]), 1e-14
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["rel_entr", "kl_div"])
def test_divergences(name: str, dtype: Any) -> None:
    x = spread(1e-2, 1e2, 300).astype(dtype)
    widths = np.repeat([1e-3, 0.1, 0.5, 0.8, 3.0, 30.0], 50)
    y = (x * np.exp(widths * RNG.uniform(-1, 1, 300))).astype(dtype)
    x, y = x[x != y], y[x != y]

    def exact(x: Any, y: Any) -> Any:
        return x * mp.log(x / y) - ((x - y) if name == "kl_div" else 0)

    with mp.workdps(40):
        points = [(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
        expected = np.array([float(exact(a, b)) for a, b in points])
    found = fg.jit(getattr(special, name))
    assert found(x, y).dtype == dtype
    np.testing.assert_allclose(found(x, y), expected, rtol=5 * np.finfo(dtype).eps)
    edges = np.array([0.0, -0.0, 1, -1, 2, 0.7, 1e30, 1e-30, np.inf, -np.inf, np.nan], dtype)
    with np.errstate(all="ignore"):
        wanted = getattr(scipy.special, name)(edges[:, None], edges)
    np.testing.assert_allclose(found(edges[:, None], edges), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["erfc", "ndtr"])
def test_small_numbers_of_single_precision(name: str) -> None:
    x = np.linspace(8.0, 14.5, 2000).astype(np.float32)
    x = x if name == "erfc" else -x
    expected = getattr(scipy.special, name)(x.astype(float))
    step = np.spacing(expected.astype(np.float32)).astype(float)
    assert (np.abs(fg.jit(getattr(special, name))(x) - expected) <= 0.6 * step).all()


def test_logit_of_subnormal_numbers_of_single_precision() -> None:
    p = np.array([1e-45, 1e-40, 1e-38], np.float32)
    expected = scipy.special.logit(p.astype(float))
    np.testing.assert_allclose(fg.jit(special.logit)(p), expected, rtol=7e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_slope_of_log_ndtr(dtype: Any) -> None:
    x = np.concatenate([RNG.uniform(-30, 12, 60), both(spread(1e-10, 1, 10))]).astype(dtype)
    with mp.workdps(40):
        exact = [mp.npdf(v) * 2 / mp.erfc(-v / mp.sqrt(2)) for v in map(mp.mpf, map(float, x))]
    slope = fg.jit(fg.grad(lambda x: fnp.sum(special.log_ndtr(x))))
    rtol = 5e-14 if dtype == np.float64 else 7e-8
    np.testing.assert_allclose(slope(x), np.array(exact, float), rtol=rtol)


def test_slopes_of_bessel_functions_at_zero() -> None:
    for order, expected in enumerate([1.0, 0.0, 0.5, 0.0, 0.375]):
        f: Any = special.i0
        for _ in range(order):
            f = fg.grad(f)
        np.testing.assert_allclose(fg.jit(f)(0.0), expected, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_exponentials_of_complex_numbers_are_those_of_numpy(dtype: Any) -> None:
    parts = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 88.9, 709.9, -709.9, 1e-30, 3, 1e4]
    z = np.array([complex(a, b) for a in parts for b in parts]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = np.exp(z)
    found = fg.jit(fnp.exp)(z)
    for part in (np.real, np.imag):
        rtol = 1e-13 if dtype == np.complex128 else 2e-6
        np.testing.assert_allclose(part(found), part(expected), rtol=rtol)
    assert found.dtype == dtype


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("n", [-9, -8, -5, -3, -1, 0, 1, 4, 5, 7, 8, 9])
def test_integer_powers(dtype: Any, n: int) -> None:
    x = RNG.normal(size=500)
    x = (x + 1j * RNG.normal(size=500) if dtype == np.complex128 else x).astype(dtype)
    exact = x.astype(np.clongdouble if dtype == np.complex128 else np.longdouble) ** n
    found = fg.jit(lambda x: x**n)(x)
    assert found.dtype == dtype
    assert (np.abs(found - exact) <= 8 * np.finfo(dtype).eps * np.abs(exact)).all()
    if dtype != np.complex128:
        edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1], dtype)
        with np.errstate(all="ignore"):
            expected = edges ** dtype(n)
        np.testing.assert_array_equal(fg.jit(lambda x: x**n)(edges), expected)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 300.0])
def test_exponentials_of_traced_matrices(dtype: Any, size: float) -> None:
    for shape in ((1, 1), (3, 5, 5), (2, 0, 0)):
        # Neither of them grows.
        a = RNG.normal(size=shape) * size
        turned = np.swapaxes(a, -1, -2)
        a = (1j * (a + turned) if dtype == np.complex128 else a - turned).astype(dtype)
        wide = np.complex128 if dtype == np.complex128 else np.float64
        expected = scipy.linalg.expm(a.astype(wide))
        found = fg.jit(linalg.expm)(a)
        assert (found.dtype, found.shape) == (dtype, shape)
        rtol = (1e-5 if dtype == np.float32 else 1e-13) * max(size, 3)
        np.testing.assert_allclose(found, expected, atol=rtol)


def test_exponentials_of_matrices_in_loops_run_natively() -> None:
    steps = RNG.normal(size=(6, 3, 3))

    def product(steps: Any) -> Any:
        return fg.lax.scan(lambda x, a: (x @ linalg.expm(a), None), np.eye(3), steps)[0]

    plan = fg.jit(product).lower(steps).compile().as_text()
    assert "numpy:" not in plan
    expected = functools.reduce(np.matmul, map(scipy.linalg.expm, steps))
    np.testing.assert_allclose(fg.jit(product)(steps), expected, rtol=1e-12)
    tangent = RNG.normal(size=steps.shape)
    found = fg.jit(lambda x, t: fg.jvp(product, (x,), (t,))[1])(steps, tangent)
    ahead, behind = (product(steps + h * tangent) for h in (1e-6, -1e-6))
    np.testing.assert_allclose(found, (ahead - behind) / 2e-6, rtol=1e-6)
