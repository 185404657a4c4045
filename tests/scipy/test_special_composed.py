"""Functions of scipy.special that are composed of others: values, derivatives, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as reference

import funcgrad as fg
from funcgrad.errors import ArgumentError, MissingRuleError
from funcgrad.scipy import special
from funcgrad.testing import check_grads

X = np.array([0.3, 0.9, 1.7])
Z = X + 1j * np.array([0.4, -0.2, 0.5])
N = np.array([0, 1, 4])


@dataclass(frozen=True)
class Row:
    """A function of one argument, given the namespace it is taken from."""

    name: str
    use: Callable[[Any, Any], Any]
    at: Any
    order: int = 2
    rtol: float = 1e-13


ROWS = [
    *(
        Row(f"spherical_{kind}n", lambda s, x, k=kind: getattr(s, f"spherical_{k}n")(N, x), at)
        for kind in "jyik"
        for at in (X, Z)
    ),
    *(
        Row(
            f"spherical_{kind}n derivative",
            lambda s, x, k=kind: getattr(s, f"spherical_{k}n")(N, x, derivative=True),
            X,
        )
        for kind in "jyik"
    ),
    *(
        Row(f"{name} {n}", lambda s, x, name=name, n=n: getattr(s, name)(1.5, x, n), at)
        for name in ("jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp")
        for n, at in ((0, X), (1, X), (3, Z))
        if name[0] != "h" or at is Z
    ),
    Row("kelvin", lambda s, x: s.kelvin(x), X),
    Row("modfresnelp", lambda s, x: s.modfresnelp(x), X, rtol=1e-12),
    Row("modfresnelm", lambda s, x: s.modfresnelm(x), X, rtol=1e-12),
    Row("diric", lambda s, x: s.diric(x, 5), X),
    Row("diric", lambda s, x: s.diric(x, 4), np.array([-0.3, 2.0, 7.0])),
    Row("assoc_laguerre", lambda s, x: s.assoc_laguerre(x, 3, 1.5), X),
    Row("sinc", lambda s, x: s.sinc(x), X),
    Row("softplus", lambda s, x: s.softplus(x), np.array([-800.0, 0.5, 800.0])),
    Row("log_ndtr", lambda s, x: s.log_ndtr(x), np.array([-30.0, 0.5, 3.0])),
    Row("lambertw", lambda s, x: s.lambertw(x), X),
    Row("lambertw", lambda s, x: s.lambertw(x, N), Z),
    Row("lambertw", lambda s, x: s.lambertw(x, -1), -X / 10),
    Row("loggamma", lambda s, x: s.loggamma(x), Z - 2),
    Row("digamma", lambda s, x: s.digamma(x), Z - 2),
    Row("gamma", lambda s, x: s.gamma(x), Z),
    Row("ndtr", lambda s, x: s.ndtr(x), Z),
    Row("factorial complex", lambda s, x: s.factorial(x, extend="complex"), Z),
    Row("factorial2 complex", lambda s, x: s.factorial2(x, extend="complex"), X),
    Row("factorialk complex", lambda s, x: s.factorialk(x, 3, extend="complex"), X),
    Row("perm", lambda s, x: s.perm(x + 3, x), X),
    Row("legendre_p", lambda s, x: s.legendre_p(N, x / 2, diff_n=2), X),
    Row("legendre_p_all", lambda s, x: s.legendre_p_all(3, x / 2, diff_n=1), X),
    Row("assoc_legendre_p", lambda s, x: s.assoc_legendre_p(N, -1, x / 2, diff_n=1), X),
    Row("assoc_legendre_p", lambda s, x: s.assoc_legendre_p(N, 1, x, norm=True, diff_n=1), Z),
    Row("assoc_legendre_p", lambda s, x: s.assoc_legendre_p(N, 2, 2 + x, branch_cut=3), Z),
    Row("assoc_legendre_p_all", lambda s, x: s.assoc_legendre_p_all(3, 2, x / 2, diff_n=1), X),
    Row("sph_legendre_p", lambda s, x: s.sph_legendre_p(N, N // 2, x, diff_n=2), X),
    Row("sph_legendre_p_all", lambda s, x: s.sph_legendre_p_all(3, 2, x), X),
    Row("sph_harm_y", lambda s, x: s.sph_harm_y(N, -(N // 2), x, 0.3), X),
    Row("sph_harm_y", lambda s, x: s.sph_harm_y(2, 1, 0.3, x), X),
    Row("sph_harm_y_all", lambda s, x: s.sph_harm_y_all(2, 2, x, 0.4), X),
]


def parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_values_and_derivatives(row: Row) -> None:
    found = parts(row.use(special, row.at))
    for ours, theirs in zip(found, parts(row.use(reference, row.at)), strict=True):
        assert np.shape(ours) == np.shape(theirs)
        np.testing.assert_allclose(ours, theirs, row.rtol, 1e-14)
    lanes = parts(fg.vmap(lambda x: row.use(special, x[None]))(row.at[:, None][:, 0]))
    assert all(len(lane) == len(row.at) for lane in lanes)
    check_grads(lambda x: row.use(special, x), (row.at,), order=row.order)


@pytest.mark.parametrize("name", ["jvp", "spherical_jn", "sph_harm_y", "lambertw", "modfresnelp"])
def test_compiled(name: str) -> None:
    row = next(row for row in ROWS if row.name.startswith(name))
    for ours, theirs in zip(
        parts(fg.jit(lambda x: row.use(special, x))(row.at)),
        parts(row.use(special, row.at)),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, 1e-13, 1e-14)


@pytest.mark.parametrize("diff_n", [0, 1, 2])
def test_derivatives_of_spherical_harmonics(diff_n: int) -> None:
    for name, degree in (("sph_harm_y", N), ("sph_harm_y_all", 3)):
        order = 1 if name.endswith("all") else np.array([0, -1, 2])
        found = getattr(special, name)(degree, order, X, 0.5 * X, diff_n=diff_n)
        expected = getattr(reference, name)(degree, order, X, 0.5 * X, diff_n=diff_n)
        for ours, theirs in zip(parts(found), parts(expected), strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-12, 1e-13)
    # At a pole the derivative is that along the meridian.
    slope = fg.jvp(lambda t: special.sph_harm_y(1, 1, t, 0.0), (0.0,), (1.0,))[1]
    np.testing.assert_allclose(slope, -np.sqrt(3 / (8 * np.pi)), 1e-14)


def test_jaxs_family_of_bessel_functions() -> None:
    found = special.bessel_jn(X, v=4)
    np.testing.assert_allclose(found, reference.jv(np.arange(5)[:, None], X), 1e-13)
    assert special.bessel_jn(np.float32(0.5), v=2).dtype == np.float32
    check_grads(lambda x: special.bessel_jn(x, v=3), (X,), order=2)


def test_factorials() -> None:
    n = np.arange(-3, 12)
    np.testing.assert_allclose(special.factorial2(n), reference.factorial2(n), 1e-13)
    for k in (1, 3, 4):
        np.testing.assert_allclose(
            special.factorialk(n, k), reference.factorialk(n, k, False), 1e-13
        )
    np.testing.assert_allclose(special.perm(n, 3), reference.perm(n, 3), 1e-14)
    np.testing.assert_allclose(special.stirling2(8, n[3:]), reference.stirling2(8, n[3:]), 1e-13)
    assert special.factorial2(7, exact=True) == 105
    assert special.stirling2(30, 12, exact=True) == reference.stirling2(30, 12, exact=True)


def test_modified_fresnel_integrals_of_negative_numbers() -> None:
    with mpmath.workdps(30):
        end = mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-1j * mpmath.pi / 4)
        expected = complex(end + mpmath.quad(lambda t: mpmath.exp(-1j * t * t), [-1.5, 0]))
    np.testing.assert_allclose(special.modfresnelm(-1.5)[0], expected, 1e-13)


def test_zeta_of_complex_numbers() -> None:
    with mpmath.workdps(30):
        expected = [complex(mpmath.zeta(z)) for z in Z]
    np.testing.assert_allclose(special.zeta(Z), expected, 1e-13)


def test_trigamma_of_complex_numbers() -> None:
    z = np.array([0.3 + 0.2j, -4.7 + 0.3j, 30 - 20j, -0.5 - 3j])
    with mpmath.workdps(30):
        expected = [complex(mpmath.psi(1, v)) for v in z]
    found = fg.jvp(special.digamma, (z,), (np.ones_like(z),))[1]
    np.testing.assert_allclose(found, expected, 2e-14)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: special.jvp(1, 0.5, -1), "jvp: the number n of derivatives is negative: -1"),
        (lambda: special.bessel_jn(0.5, v=-1), "bessel_jn: the order v is negative: -1"),
        (lambda: special.diric(0.5, 0), "diric: n must be a positive integer, got 0"),
        (lambda: special.lambertw(0.5, 0.5), "lambertw: the branch k must be an integer"),
        (lambda: special.factorial(3, extend="x"), "factorial: extend must be 'zero' or 'complex'"),
        (lambda: special.factorialk(3, 0), "factorialk: the step k must be a positive integer"),
        (lambda: special.legendre_p(0.5, 0.5), "legendre_p: the argument n counts, got ~f64"),
        (lambda: special.legendre_p_all(-1, 0.5), "the argument n is negative: -1"),
        (lambda: special.assoc_legendre_p(1, 0, 0.5, branch_cut=4), "branch_cut must be 2 or 3"),
        (lambda: special.sph_harm_y(1, 0, 0.5, 0.5, diff_n=3), "derivatives up to diff_n=2"),
    ],
)
def test_wrong_arguments_are_named(call: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call()


def test_orders_have_no_derivative() -> None:
    with pytest.raises(MissingRuleError, match=r"jv has no derivative .* argument v"):
        fg.grad(special.jv)(1.5, 0.5)
    with pytest.raises(MissingRuleError, match=r"_stirling2_inexact has no derivative"):
        fg.grad(special.stirling2)(5.0, 2.0)
