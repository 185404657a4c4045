"""`funcgrad.scipy.integrate` against SciPy, closed forms and finite differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import funcgrad as fg
from funcgrad import errors
from funcgrad.scipy import integrate
from funcgrad.testing import check_grads

WRAPS = [lambda f: f, fg.jit]
IDS = ["eager", "jit"]
START = np.array([2.0, 0.0])
TIMES = np.linspace(0.0, 6.0, 9)


def van_der_pol(t: Any, y: Any, mu: Any) -> Any:
    return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]


def ball(t: Any, y: Any, g: Any) -> Any:
    return [y[1], -g]


def ground(t: Any, y: Any, g: Any) -> Any:
    return y[0]


ground.terminal = True  # type: ignore[attr-defined]
ground.direction = -1  # type: ignore[attr-defined]


def top(t: Any, y: Any, g: Any) -> Any:
    return y[1]


# Samples.


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
@pytest.mark.parametrize(
    "name", ["trapezoid", "simpson", "cumulative_trapezoid", "cumulative_simpson"]
)
def test_samples(name: str, n: int) -> None:
    rng = np.random.default_rng(n)
    y, x = rng.normal(size=(2, n)), np.sort(rng.uniform(size=n))
    ours, theirs = getattr(integrate, name), getattr(scipy.integrate, name)
    extra: list[dict[str, Any]] = [{}] if name.startswith(("t", "s")) else [{}, {"initial": 0}]
    for more in extra:
        for options in ({}, {"x": x}, {"dx": 0.3}):
            found = ours(y, **options, **more)
            np.testing.assert_allclose(found, theirs(y, **options, **more), 1e-12, 1e-13)
            along = ours(y.T, axis=0, **options, **more)
            np.testing.assert_allclose(along, theirs(y.T, axis=0, **options, **more), 1e-12, 1e-13)
    check_grads(lambda y, x: ours(y, x=x), (y, x), order=2)
    assert ours(y.astype(np.float32)).dtype == np.float32


def test_romberg() -> None:
    y = np.random.default_rng(0).normal(size=(2, 9))
    np.testing.assert_allclose(integrate.romb(y, 0.1), scipy.integrate.romb(y, 0.1), 1e-13)
    with pytest.raises(errors.ArgumentError, match="2\\*\\*k \\+ 1, got 4"):
        integrate.romb(np.ones(4))


# Functions.

INTEGRALS: list[Any] = [
    (lambda x: np.exp(-x * x), -np.inf, np.inf, np.sqrt(np.pi)),
    (lambda x: np.exp(x), -np.inf, 1.0, np.e),
    (lambda x: np.exp(x), 1.0, -np.inf, -np.e),
    (lambda x: np.sin(50 * x) * x, 0.0, 3.0, (np.sin(150) - 150 * np.cos(150)) / 2500),
    (lambda x: 1 / np.sqrt(x), 0.0, 1.0, 2.0),
    (lambda x: np.cos(x), 2.0, 0.0, -np.sin(2.0)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("f", "a", "b", "expected"), INTEGRALS)
def test_quad(f: Any, a: float, b: float, expected: float) -> None:
    value, error = integrate.quad(f, a, b)
    assert abs(value - expected) < 1e-7
    assert abs(value - expected) <= max(error, 1e-13)


@pytest.mark.parametrize("wrap", WRAPS, ids=IDS)
def test_quad_is_differentiated_under_the_integral_and_at_its_ends(wrap: Any) -> None:
    def damped(s: Any, a: Any, b: Any) -> Any:
        return integrate.quad(lambda x: np.exp(-s * x), a, b)[0]

    def exact(s: float, a: float, b: float) -> list[float]:
        at_a, at_b = np.exp(-s * a), np.exp(-s * b)
        by_s = -(at_a - at_b) / s**2 + (-a * at_a + b * at_b) / s
        return [by_s, -at_a, at_b]

    found = wrap(fg.grad(damped, (0, 1, 2)))(1.2, 0.5, 2.0)
    np.testing.assert_allclose(found, exact(1.2, 0.5, 2.0), 1e-10)


def test_other_quadratures() -> None:
    powers = np.arange(3.0)
    found = integrate.quad_vec(lambda x: x**powers, 0.0, 2.0)[0]
    np.testing.assert_allclose(found, 2 ** (powers + 1) / (powers + 1), 1e-12)
    np.testing.assert_allclose(integrate.fixed_quad(np.cos, 0.0, 1.0)[0], np.sin(1), 1e-9)
    box = integrate.dblquad(lambda y, x: x * y * y, 0.0, 1.0, 0.0, lambda x: x)[0]
    np.testing.assert_allclose(box, 1 / 15, 1e-10)
    with pytest.raises(errors.ArgumentError, match="write the weight into the function"):
        integrate.quad(np.cos, 0, 1, weight="cos", wvar=1)


def test_integrals_within_integrals_look_for_intervals_once() -> None:
    """Traces of the integrand add up over the levels, and are not multiplied."""
    calls = 0

    def f(y: Any, x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x * y * y

    for kind in (1.0, 1j):
        calls = 0
        found, error = integrate.dblquad(lambda y, x: kind * f(y, x), 0.0, 1.0, 0.0, lambda x: x)  # noqa: B023
        assert abs(found - kind / 15) < 1e-12
        assert error < 1e-8
        assert calls <= 4


@pytest.mark.parametrize("wrap", WRAPS, ids=IDS)
@pytest.mark.nightly
def test_integrals_within_integrals_have_derivatives(wrap: Any) -> None:
    def box(s: Any) -> Any:
        return integrate.tplquad(
            lambda z, y, x: s * x * y * z + abs(x - 0.3) * s**2,
            0.0, 1.0, 0.0, lambda x: s * x, 0.0, lambda x, y: x + y, epsabs=1e-10,
        )[0]  # fmt: skip

    def exact(s: float) -> Any:
        value, _ = scipy.integrate.tplquad(
            lambda z, y, x: s * x * y * z + abs(x - 0.3) * s**2,
            0.0, 1.0, 0.0, lambda x: s * x, 0.0, lambda x, y: x + y, epsabs=1e-12,
        )  # fmt: skip
        return value

    np.testing.assert_allclose(wrap(box)(1.1), exact(1.1), 1e-8)
    slope = (exact(1.1 + 1e-4) - exact(1.1 - 1e-4)) / 2e-4
    np.testing.assert_allclose(wrap(fg.grad(box))(1.1), slope, 1e-6)


# Differential equations.


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_explicit_methods_make_the_steps_of_scipy(method: str) -> None:
    options = {"args": (1.3,), "rtol": 1e-6, "atol": 1e-9}
    ours = integrate.solve_ivp(van_der_pol, (0, 6), START, method, **options)
    theirs = scipy.integrate.solve_ivp(van_der_pol, (0, 6), START, method, **options)
    # Lengths follow the error, a difference of nearly equal numbers.
    np.testing.assert_allclose(ours.t, theirs.t, 1e-6)
    np.testing.assert_allclose(ours.y, theirs.y, 1e-5, 1e-6)
    assert ours.success
    assert ours.status == 0
    assert ours.message == theirs.message
    times = np.linspace(0, 6, 20)
    ours = integrate.solve_ivp(
        van_der_pol, (0, 6), START, method, times, dense_output=True, **options
    )
    theirs = scipy.integrate.solve_ivp(
        van_der_pol, (0, 6), START, method, times, dense_output=True, **options
    )
    np.testing.assert_allclose(ours.y, theirs.y, 1e-7, 1e-8)
    np.testing.assert_allclose(ours.sol(times), theirs.sol(times), 1e-7, 1e-8)


def stiff(t: Any, y: Any, k: Any) -> Any:
    return [-k * (y[0] - np.cos(t)), y[0] - y[1]]


@pytest.mark.nightly
def test_radau_solves_stiff_equations_in_few_steps() -> None:
    options: Any = {"args": (1e4,), "rtol": 1e-7, "atol": 1e-9}
    ours = integrate.solve_ivp(stiff, (0, 3), [0.0, 1.0], "Radau", **options)
    tight = scipy.integrate.solve_ivp(
        stiff, (0, 3), [0.0, 1.0], "Radau", args=(1e4,), rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(ours.y[:, -1], tight.y[:, -1], 1e-6)
    assert ours.t.size < 150

    def end(k: Any) -> Any:
        found = integrate.solve_ivp(
            stiff, (0, 3), [0.0, 1.0], "Radau", np.array([3.0]), args=(k,), rtol=1e-8, atol=1e-10
        )
        return found.y[0, -1]

    # Far behind the boundary layer y = (k^2 cos t + k sin t) / (k^2 + 1).
    slope = (-(30.0**2) * np.sin(3) + 2 * 30 * np.cos(3) + np.sin(3)) / (30.0**2 + 1) ** 2
    np.testing.assert_allclose(fg.grad(end)(30.0), slope, 1e-4)


def fit(method: str, rtol: float, atol: float, **options: Any) -> Any:
    data = np.cos(np.outer([1.0, 2.0], TIMES))

    def loss(mu: Any, y0: Any) -> Any:
        found = integrate.solve_ivp(
            van_der_pol, (0, 6), y0, method, TIMES, args=(mu,), rtol=rtol, atol=atol, **options
        )
        return np.sum((found.y - data) ** 2)

    return loss


def extrapolated(f: Any, x: float, h: float) -> float:
    """Richardson's extrapolation of central differences."""
    row = [(f(x + h / 2**k) - f(x - h / 2**k)) / (h / 2 ** (k - 1)) for k in range(4)]
    for order in (1, 2, 3):
        row = [b + (b - a) / (4**order - 1) for a, b in itertools.pairwise(row)]
    return row[0]


@pytest.mark.parametrize(
    ("method", "gradient"),
    [
        ("RK45", "discrete"),
        pytest.param("RK45", "adjoint", marks=pytest.mark.nightly),
        pytest.param("DOP853", "discrete", marks=pytest.mark.nightly),
    ],
)
def test_gradient_of_a_fit(method: str, gradient: str) -> None:
    """Against differences of SciPy's solutions, to 1e-7."""

    def loss(mu: float, y0: Any) -> float:
        found = scipy.integrate.solve_ivp(
            van_der_pol, (0, 6), y0, "DOP853", TIMES, args=(mu,), rtol=1e-12, atol=1e-13
        )
        return float(np.sum((found.y - np.cos(np.outer([1.0, 2.0], TIMES))) ** 2))

    ours = fit(method, 1e-11, 1e-12, gradient=gradient)
    by_mu, by_start = fg.jit(fg.grad(ours, (0, 1)))(1.1, START)
    np.testing.assert_allclose(by_mu, extrapolated(lambda m: loss(m, START), 1.1, 2e-2), 1e-7)
    expected = extrapolated(lambda x: loss(1.1, np.array([x, 0.0])), 2.0, 2e-2)
    np.testing.assert_allclose(by_start[0], expected, 1e-7)


def test_steps_are_constants_in_derivatives() -> None:
    """The derivative of a loose solution is that of its own steps: the product of their factors."""
    f = lambda k: integrate.solve_ivp(  # noqa: E731
        lambda t, y: k * y, (0.0, 1.0), [1.0], "RK23", np.array([1.0]), rtol=1e-2, atol=1e-3
    ).y[0, 0]
    steps = np.diff(
        integrate.solve_ivp(
            lambda t, y: -2.0 * y, (0.0, 1.0), [1.0], "RK23", rtol=1e-2, atol=1e-3
        ).t
    )
    z = -2.0 * steps
    factors = 1 + z + z**2 / 2 + z**3 / 6
    expected = np.prod(factors) * np.sum(steps * (1 + z + z**2 / 2) / factors)
    for derivative in (fg.grad(f), fg.jit(fg.grad(f)), lambda k: fg.jvp(f, (k,), (1.0,))[1]):
        np.testing.assert_allclose(derivative(-2.0), expected, 1e-12)


@pytest.mark.parametrize(
    ("ends", "order"),
    [
        ((1.0, 2.0), 1),
        pytest.param((2.0, 1.0), 1, marks=pytest.mark.nightly),
        pytest.param((2.0, 1.0), 2, marks=pytest.mark.nightly),
    ],
)
def test_ends_of_the_interval(ends: Any, order: int) -> None:
    """y' = -t y: all derivatives are known, in both directions of time."""

    def end(t0: Any, tf: Any, y0: Any) -> Any:
        times = np.stack([(t0 + tf) / 2, tf])
        return integrate.solve_ivp(
            lambda t, y: -t * y, (t0, tf), [y0], "RK45", times, rtol=1e-10, atol=1e-12
        ).y[0, -1]

    t0, tf = ends
    value = 1.5 * np.exp((t0**2 - tf**2) / 2)
    expected = [value * t0, -value * tf, value / 1.5]
    if order == 1:
        np.testing.assert_allclose(fg.jit(fg.grad(end, (0, 1, 2)))(t0, tf, 1.5), expected, 1e-7)
        return
    second = fg.jit(fg.grad(fg.grad(end, 0), 2))(t0, tf, 1.5)
    np.testing.assert_allclose(second, value * t0 / 1.5, 1e-7)


def test_dtypes_maps_and_pytrees() -> None:
    def end(y0: Any) -> Any:
        return integrate.solve_ivp(lambda t, y: -y, (0, 1), y0, t_eval=[0.5, 1.0]).y[:, -1]

    assert end(np.ones(2, np.float32)).dtype == np.float32
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(fg.vmap(end)(rows), np.stack([end(r) for r in rows]), 1e-3)
    found = integrate.solve_ivp(lambda t, y: 1j * y, (0, 1), [1.0 + 0j], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.y[0, -1], np.exp(1j), 1e-8)
    result = fg.jit(lambda y: integrate.solve_ivp(lambda t, y: -y, (0, 1), y, t_eval=[1.0]))(
        np.ones(1)
    )
    assert result.status == 0
    assert result["y"].shape == (1, 1)


def test_events() -> None:
    options: Any = {"events": [ground, top], "dense_output": True}
    ours = integrate.solve_ivp(ball, (0, 100), [0.0, 10.0], args=(9.81,), **options)
    theirs = scipy.integrate.solve_ivp(ball, (0, 100), [0.0, 10.0], args=(9.81,), **options)
    np.testing.assert_allclose(ours.t, theirs.t, 1e-6)
    np.testing.assert_allclose(ours.y, theirs.y, 1e-6, 1e-6)
    for found, expected in zip(ours.t_events, theirs.t_events, strict=True):
        np.testing.assert_allclose(found, expected, 1e-12)
    assert ours.status == 1
    assert ours.message == theirs.message

    def landing(g: Any) -> Any:
        found = integrate.solve_ivp(ball, (0, 100), [0.0, 10.0], events=ground, args=(g,))
        return found.t_events[0][0]

    np.testing.assert_allclose(fg.grad(landing)(9.81), -20 / 9.81**2, 1e-12)


def test_failures() -> None:
    grows = lambda t, y: y * y  # noqa: E731
    ours = integrate.solve_ivp(grows, (0, 2), [1.0], t_eval=[0.5, 1.5])
    assert ours.status == -1
    assert not ours.success
    assert "too short" in ours.message
    np.testing.assert_allclose(ours.t, [0.5])
    traced = fg.jit(lambda y: integrate.solve_ivp(grows, (0, 2), y, t_eval=[0.5, 1.5]))(np.ones(1))
    assert traced.status == -1
    assert np.isnan(traced.y[0, 1])
    assert np.isfinite(traced.y[0, 0])
    few = lambda y: integrate.solve_ivp(grows, (0, 0.9), y, t_eval=[0.9], max_steps=2).y.sum()  # noqa: E731
    assert np.isnan(fg.jit(fg.grad(few))(np.ones(1))[0])
    assert np.isfinite(fg.grad(few)(np.ones(1))[0])  # where numbers are known there is room


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda y: integrate.solve_ivp(ball, (0, 1), y, "Euler", args=(1.0,)), "'BDF', got 'Eu"),
        (lambda y: integrate.solve_ivp(ball, (0, 1), y, args=1.0), "must be a tuple"),
        (lambda y: integrate.solve_ivp(ball, (0, 1), y[None], args=(1.0,)), "must be a vector"),
        (lambda y: integrate.solve_ivp(lambda t, y: y[:1], (0, 1), y), "shape of y0, \\(2,\\)"),
        (lambda y: integrate.solve_ivp(ball, (0, 1), y, t_eval=[1, 0], args=(1.0,)), "sorted"),
        (lambda y: integrate.solve_ivp(ball, (0, 1), y, t_eval=[2], args=(1.0,)), "not within"),
        (fg.jit(lambda y: integrate.solve_ivp(ball, (0, 1), y, args=(1.0,)).y), "Pass t_eval="),
        (
            lambda y: integrate.solve_ivp(ball, (0, 1), y, args=(1.0,), gradient="no"),
            "'discrete' or 'adjoint'",
        ),
        (fg.jit(lambda y: integrate.newton_cotes(y, 1)), "newton_cotes is SciPy's own"),
    ],
)
def test_messages(call: Any, text: str) -> None:
    with pytest.raises(errors.FuncgradError, match=text):
        call(np.ones(2))


def test_odeint() -> None:
    slope = lambda y, t, k: [-k * y[0], y[0]]  # noqa: E731
    ours = integrate.odeint(slope, [1.0, 0.0], TIMES, args=(0.5,))
    theirs = scipy.integrate.odeint(slope, [1.0, 0.0], TIMES, args=(0.5,))
    np.testing.assert_allclose(ours, theirs, 1e-6)
    end = lambda k: integrate.odeint(  # noqa: E731
        slope, [1.0, 0.0], np.array([0.0, 2.0]), (k,), method="RK45"
    )[-1, 0]
    np.testing.assert_allclose(fg.grad(end)(0.5), -2 * np.exp(-1), 1e-6)
