"""Stiff differential equations against SciPy's solvers, closed forms and finite differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse

import funcgrad as fg
from funcgrad import errors
from funcgrad.scipy import integrate

METHODS = ["BDF", "Radau"]
MATRIX = np.array([[-100.0, 1.0], [0.0, -0.5]])
RATES = np.array([0.04, 3.0, 1.0])


def van_der_pol(t: Any, y: Any, mu: Any) -> Any:
    return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]


def its_jacobian(t: Any, y: Any, mu: Any) -> Any:
    return np.array([[0.0, 1.0], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]])


def robertson(t: Any, y: Any, k: Any) -> Any:
    """Three reactions whose rates differ by nine orders of magnitude."""
    a, b, c = k[0] * y[0], k[1] * 1e7 * y[1] ** 2, k[2] * 1e4 * y[1] * y[2]
    return [c - a, a - b - c, b]


def linear(t: Any, y: Any) -> Any:
    return MATRIX @ y


def extrapolated(f: Any, x: float, h: float) -> float:
    """Richardson's extrapolation of central differences."""
    row = [(f(x + h / 2**k) - f(x - h / 2**k)) / (h / 2 ** (k - 1)) for k in range(4)]
    for order in (1, 2, 3):
        row = [b + (b - a) / (4**order - 1) for a, b in itertools.pairwise(row)]
    return row[0]


def same_steps(ours: Any, theirs: Any) -> None:
    # Lengths follow the error, a difference of nearly equal numbers.
    np.testing.assert_allclose(ours.t, theirs.t, 1e-5)
    np.testing.assert_allclose(ours.y, theirs.y, 1e-4, 1e-4)
    assert ours.nlu == theirs.nlu
    assert ours.nfev - theirs.nfev in (0, 1)  # a first length is looked for where it is given, too
    assert abs(ours.njev - theirs.njev) <= 1  # the last one of SciPy's may not be needed
    assert ours.message == theirs.message


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", METHODS)
def test_steps_are_those_of_scipy(method: str) -> None:
    """Lengths, orders, and when Jacobians and factors are renewed."""
    options: Any = {"args": (50.0,), "rtol": 1e-5, "atol": 1e-8, "dense_output": True}
    ours = integrate.solve_ivp(van_der_pol, (0, 90), [2.0, 0.0], method, **options)
    theirs = scipy.integrate.solve_ivp(
        van_der_pol, (0, 90), [2.0, 0.0], method, jac=its_jacobian, **options
    )
    assert ours.t.size > 200
    same_steps(ours, theirs)
    times = np.linspace(0.0, 30.0, 40)
    np.testing.assert_allclose(ours.sol(times), theirs.sol(times), 1e-6, 1e-7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("ends", "options"),
    [
        ((0, 5), {}),
        ((0, 5), {"jac": MATRIX}),
        ((0, 5), {"jac": MATRIX.tolist()}),
        ((0, 5), {"jac": scipy.sparse.csc_matrix(MATRIX)}),
        ((0, 5), {"jac": lambda t, y: MATRIX}),
        ((0, 5), {"jac": lambda t, y: scipy.sparse.csr_matrix(MATRIX)}),
        ((0, 5), {"jac": 1.5 * MATRIX}),  # slower, but right
        ((0, 5), {"first_step": 1e-4}),
        ((0, -0.05), {}),
        ((0, -0.05), {"jac": MATRIX}),
        ((0, 1.2), {"atol": np.array([1e-4, 1e-8])}),
    ],
)
@pytest.mark.nightly
def test_options_make_the_steps_of_scipy(method: str, ends: Any, options: Any) -> None:
    ours = integrate.solve_ivp(linear, ends, [1.0, 1.0], method, **options)
    theirs = scipy.integrate.solve_ivp(
        linear, ends, [1.0, 1.0], method, **{"jac": lambda t, y: MATRIX} | options
    )
    same_steps(ours, theirs)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.nightly
def test_longest_step(method: str) -> None:
    found = integrate.solve_ivp(linear, (0, 1), [1.0, 1.0], method, max_step=0.05)
    assert np.diff(found.t).max() <= 0.05 + 1e-12


FITS: dict[str, Any] = {
    "robertson": (
        lambda module, method, k, **options: module.solve_ivp(
            robertson, (0, 1e5), [1.0, 0.0, 0.0], method, np.logspace(-2, 5, 8), args=(k,),
            **options,
        ).y * np.array([[1.0], [1e4], [1.0]]),
        RATES,
        1e-6,
        [-1.61424164, 0.11542303, -0.18531447],
    ),
    "van der pol": (
        lambda module, method, k, **options: module.solve_ivp(
            van_der_pol, (0, 700), [2.0, 0.0], method, np.array([200.0, 500.0, 700.0]),
            args=(k[0],), **options,
        ).y[0],
        np.array([1000.0]),
        1e-2,
        [0.00351420],
    ),
}  # fmt: skip
"""Solutions, where derivatives are taken, absolute tolerances, and extrapolated differences of the
loss by tight solutions of SciPy's, which take minutes."""


def loss_of(name: str, module: Any, method: str, k: Any, rtol: float, **options: Any) -> Any:
    solution, _, ratio, _ = FITS[name]
    found = solution(module, method, k, rtol=rtol, atol=ratio * rtol, **options)
    return ((found - 0.5) ** 2).sum()


@pytest.mark.parametrize("name", list(FITS))
@pytest.mark.nightly
def test_recorded_differences(name: str) -> None:
    at, recorded = FITS[name][1], FITS[name][3]

    def along(x: float) -> float:
        k = np.where(np.arange(at.size) == 0, x, at)
        return float(loss_of(name, scipy.integrate, "Radau", k, 1e-10))

    np.testing.assert_allclose(extrapolated(along, at[0], 0.05 * at[0]), recorded[0], 1e-5)


@pytest.mark.parametrize(
    ("name", "method", "mode", "tolerance"),
    [
        ("robertson", "BDF", "reverse", 2e-7),
        pytest.param("robertson", "Radau", "reverse", 3e-8, marks=pytest.mark.nightly),
        pytest.param("van der pol", "BDF", "reverse", 2e-5, marks=pytest.mark.nightly),
        pytest.param("van der pol", "Radau", "reverse", 5e-6, marks=pytest.mark.nightly),
        pytest.param("robertson", "BDF", "forward", 2e-7, marks=pytest.mark.nightly),
        pytest.param("robertson", "Radau", "forward", 3e-8, marks=pytest.mark.nightly),
    ],
)
def test_gradients_of_stiff_fits(name: str, method: str, mode: str, tolerance: float) -> None:
    _, at, _, recorded = FITS[name]
    transformed = fg.grad if mode == "reverse" else fg.jacfwd
    found = fg.jit(transformed(lambda k: loss_of(name, integrate, method, k, 1e-8)))(at)
    np.testing.assert_allclose(found, recorded, tolerance)


def falling(t0: Any, tf: Any, y0: Any, method: str) -> Any:
    """y' = -t y, at the end: all derivatives are known."""
    times = np.stack([(t0 + tf) / 2, tf])
    return integrate.solve_ivp(
        lambda t, y: -t * y, (t0, tf), [y0], method, times, rtol=1e-9, atol=1e-11
    ).y[0, -1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ends", [(1.0, 2.0), (2.0, 1.0)])
@pytest.mark.nightly
def test_ends_of_the_interval(method: str, ends: Any) -> None:
    """To second order, in both directions of time."""

    def end(p: Any) -> Any:
        return falling(p[0], p[1], p[2], method)

    t0, tf = ends
    value = 1.5 * np.exp((t0**2 - tf**2) / 2)
    at = np.array([t0, tf, 1.5])
    first = np.array([value * t0, -value * tf, value / 1.5])
    np.testing.assert_allclose(fg.jit(fg.grad(end))(at), first, 1e-5)
    second = np.outer(first, first) / value
    second[0, 0] += value
    second[1, 1] -= value
    second[2, 2] = 0.0
    np.testing.assert_allclose(fg.jit(fg.hessian(end))(at), second, 1e-4, 1e-6 * abs(second).max())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.nightly
def test_lanes_have_steps_of_their_own(method: str) -> None:
    def value(mu: Any) -> Any:
        return integrate.solve_ivp(
            van_der_pol, (0, 5), [2.0, 0.0], method, np.array([1.0, 5.0]), args=(mu,), rtol=1e-6
        ).y[0, -1]

    rows = np.array([1.0, 30.0, 1000.0])
    for f in (value, fg.grad(value)):
        expected = [f(mu) for mu in rows]
        np.testing.assert_allclose(fg.vmap(f)(rows), expected, 1e-9)
        np.testing.assert_allclose(fg.jit(fg.vmap(f))(rows), expected, 1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.nightly
def test_dtypes_sizes_and_events(method: str) -> None:
    turn = lambda t, y: 1j * y - 0.1 * y * y  # noqa: E731
    ours = integrate.solve_ivp(turn, (0, 3), [1 + 0j, 0.5], method, rtol=1e-8, atol=1e-10)
    tight = scipy.integrate.solve_ivp(turn, (0, 3), [1 + 0j, 0.5], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(ours.y[:, -1], tight.y[:, -1], 1e-6)
    narrow = integrate.solve_ivp(linear, (0, 1), np.ones(2, np.float32), method, t_eval=[1.0])
    assert narrow.y.dtype == np.float32
    np.testing.assert_allclose(narrow.y[1, 0], np.exp(-0.5), 2e-3)
    for wrap in (lambda f: f, fg.jit):
        still = lambda y: integrate.solve_ivp(  # noqa: E731
            linear, (1.0, 1.0), np.stack([y, y]), method, t_eval=np.array([1.0])
        ).y[0, 0]
        assert wrap(still)(3.0) == 3.0
        assert wrap(fg.grad(still))(3.0) == 1.0

    def half(t: Any, y: Any) -> Any:
        return y[1] - 0.5

    half.terminal = True  # type: ignore[attr-defined]

    def when(y: Any) -> Any:
        found = integrate.solve_ivp(
            linear, (0, 9), np.stack([0.0 * y, y]), method, events=half, rtol=1e-8, atol=1e-10
        )
        assert found.status == 1
        return found.t_events[0][0]

    np.testing.assert_allclose(when(2.0), 2 * np.log(4.0), 1e-6)
    np.testing.assert_allclose(fg.grad(when)(2.0), 1.0, 1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.nightly
def test_failures(method: str) -> None:
    grows = lambda t, y: y * y  # noqa: E731
    found = integrate.solve_ivp(grows, (0, 2), [1.0], method, t_eval=[0.5, 1.5])
    assert found.status == -1
    np.testing.assert_allclose(found.t, [0.5])
    hard = lambda y: integrate.solve_ivp(grows, (0, 2), y, method, t_eval=[0.5, 1.5]).y  # noqa: E731
    assert np.isnan(fg.jit(hard)(np.ones(1))[0]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "LSODA"}, "LSODA is SciPy's own; for stiff equations take 'BDF'"),
        ({"method": "Euler"}, "got 'Euler'. For stiff equations take 'BDF' or 'Radau'"),
        (
            {"method": "BDF", "jac": np.ones(3)},
            "jac must have the shape \\(2, 2\\), got f64\\[3\\]",
        ),
        ({"method": "BDF", "jac": lambda t, y: y}, "jac must have the shape \\(2, 2\\)"),
        ({"method": "BDF", "gradient": "adjoint"}, "explode.*Take gradient='discrete'"),
    ],
)
def test_messages(options: Any, text: str) -> None:
    with pytest.raises(errors.FuncgradError, match=text):
        integrate.solve_ivp(linear, (0, 1), np.ones(2), t_eval=[1.0], **options)
