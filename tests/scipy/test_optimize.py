"""`funcgrad.scipy.optimize` against SciPy and the implicit function theorem by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import funcgrad as fg
from funcgrad import errors
from funcgrad.scipy import optimize

WRAPS = [lambda f: f, fg.jit]
IDS = ["eager", "jit"]
BRACKETING = ["bisect", "brentq", "brenth", "ridder", "toms748"]
TIMES = np.linspace(0.0, 1.0, 5)
SAMPLES = 2 * np.exp(-TIMES) + 0.1 * np.sin(9 * TIMES)


def cube(x: Any, a: Any) -> Any:
    return x**3 - a


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", BRACKETING)
def test_bracketing(name: str) -> None:
    find = getattr(optimize, name)
    root = lambda a: find(cube, 0.0, 9.0, args=(a,))  # noqa: E731
    for wrap in WRAPS:
        np.testing.assert_allclose(wrap(root)(8.0), 2.0, 1e-12)
        np.testing.assert_allclose(wrap(fg.grad(root))(8.0), 1 / 12, 1e-11)
    np.testing.assert_allclose(fg.grad(fg.grad(root))(8.0), -1 / 144, 1e-10)
    np.testing.assert_allclose(fg.jvp(root, (8.0,), (1.0,))[1], 1 / 12, 1e-11)
    np.testing.assert_allclose(fg.vmap(root)(np.array([1.0, 8.0, 27.0])), [1, 2, 3], 1e-11)
    hard = lambda x: np.exp(5 * x) * (x - 0.3) ** 3 - 1e-4  # noqa: E731
    expected = scipy.optimize.brentq(hard, -1, 2)
    np.testing.assert_allclose(find(hard, -1, 2), expected, 1e-9)
    assert find(lambda x: x, 0, 1) == 0
    assert find(lambda x: x - 1, 0, 1) == 1
    with pytest.raises(
        ValueError, match=f"{name}: f\\(a\\) and f\\(b\\) must have different signs"
    ):
        find(cube, 0.0, 1.0, args=(8.0,))
    with pytest.raises(RuntimeError, match="failed to converge after 2 iterations"):
        find(cube, 0.0, 9.0, args=(8.0,), maxiter=2)
    assert find(np.cos, np.float32(1), np.float32(2)).dtype == np.float32


def test_newton_and_fixed_points() -> None:
    roots = lambda a: optimize.newton(lambda x: x * x - a, np.ones(2))  # noqa: E731
    a = np.array([4.0, 9.0])
    dottie = lambda a: optimize.fixed_point(lambda x: np.cos(a * x), 0.5)  # noqa: E731
    x = scipy.optimize.brentq(lambda x: np.cos(1.2 * x) - x, 0, 1)
    for wrap in WRAPS:
        np.testing.assert_allclose(wrap(roots)(a), [2, 3], 1e-12)
        np.testing.assert_allclose(wrap(fg.jacrev(roots))(a), np.diag([1 / 4, 1 / 6]), 1e-12)
        np.testing.assert_allclose(wrap(dottie)(1.2), x, 1e-10)
        slope = -x * np.sin(1.2 * x) / (1 + 1.2 * np.sin(1.2 * x))
        np.testing.assert_allclose(wrap(fg.grad(dottie))(1.2), slope, 1e-10)
    with pytest.raises(RuntimeError, match="newton: failed to converge"):
        optimize.newton(lambda x: x * x + 1, 0.3, maxiter=5)


def test_root_scalar() -> None:
    for options in ({"bracket": (0, 9)}, {"x0": 1.0}, {"bracket": (0, 9), "method": "ridder"}):
        found = optimize.root_scalar(cube, args=(8.0,), **options)
        np.testing.assert_allclose(found.root, 2.0, 1e-10)
        assert found.converged
        assert found.flag == "converged"


def circle(x: Any, r: Any) -> Any:
    return np.stack([x[0] ** 2 + x[1] ** 2 - r**2, x[0] - x[1]])


@pytest.mark.parametrize("wrap", WRAPS, ids=IDS)
def test_systems(wrap: Any) -> None:
    start = np.array([1.0, 0.5])
    corner = lambda r: optimize.root(circle, start, args=(r,)).x  # noqa: E731
    corner_too = lambda r: optimize.fsolve(circle, start, args=(r,))  # noqa: E731
    for f in (corner, corner_too):
        np.testing.assert_allclose(wrap(f)(2.0), np.sqrt([2, 2]), 1e-8)
        np.testing.assert_allclose(wrap(fg.jacfwd(f))(2.0), np.sqrt([0.5, 0.5]), 1e-8)
        np.testing.assert_allclose(wrap(fg.jacrev(f))(2.0), np.sqrt([0.5, 0.5]), 1e-8)


def fit(y: Any) -> Any:
    return optimize.least_squares(lambda p: p[0] * np.exp(p[1] * TIMES) - y, [1.0, 0.0]).x


def test_least_squares() -> None:
    a, b = scipy.optimize.curve_fit(lambda t, a, b: a * np.exp(b * t), TIMES, SAMPLES)[0]
    shape = np.exp(b * TIMES)
    rest = a * shape - SAMPLES
    slopes = np.stack([shape, a * TIMES * shape], 1)
    bend = np.array(
        [[0, rest @ (TIMES * shape)], [rest @ (TIMES * shape), rest @ (a * TIMES**2 * shape)]]
    )
    expected = np.linalg.solve(slopes.T @ slopes + bend, slopes.T)
    for wrap in WRAPS:
        np.testing.assert_allclose(wrap(fit)(SAMPLES), [a, b], 1e-6)
        np.testing.assert_allclose(wrap(fg.jacrev(fit))(SAMPLES), expected, 1e-5)
    found = optimize.curve_fit(lambda t, a, b: a * np.exp(b * t), TIMES, SAMPLES)
    np.testing.assert_allclose(found[0], [a, b], 1e-7)


def test_minimize() -> None:
    start = np.array([-1.2, 1.0])
    np.testing.assert_allclose(optimize.minimize(optimize.rosen, start).x, [1, 1], 1e-5)
    compiled = fg.jit(lambda x: optimize.minimize(optimize.rosen, x, method="BFGS"))(start)
    np.testing.assert_allclose(compiled.x, [1, 1], 1e-5)
    assert compiled.success
    assert compiled.nfev >= compiled.nit > 0

    def lowest(a: Any) -> Any:
        found = optimize.minimize(
            lambda x, a: np.sum((x - a) ** 4 + (x - 1) ** 2), np.zeros(2), (a,), tol=1e-9
        )
        return found.x[0]

    # 4 (x - a)^3 + 2 (x - 1) = 0.
    x = scipy.optimize.brentq(lambda x: 4 * (x - 3) ** 3 + 2 * (x - 1), 0, 3, xtol=1e-14)
    slope = 12 * (x - 3) ** 2 / (12 * (x - 3) ** 2 + 2)
    for wrap in WRAPS:
        np.testing.assert_allclose(wrap(fg.grad(lowest))(3.0), slope, 1e-7)


def hill(x: Any, a: Any) -> Any:
    return (x - a) ** 4 + (x - a) ** 2 * np.cos(x)


MINIMA: list[dict[str, Any]] = [
    {},
    {"bracket": (1.0, 2.0)},
    {"bracket": (-1000, 4, 1000.0)},
    {"bounds": (0.0, 5.0)},
    {"bounds": (-3.0, 1.0)},
]


@pytest.mark.parametrize(
    "options",
    [pytest.param(x, marks=[] if i == 3 else pytest.mark.nightly) for i, x in enumerate(MINIMA)],
)
def test_minima_of_functions_of_a_number(options: Any) -> None:
    """SciPy's search in as many iterations, and differences of SciPy's minima."""

    def lowest(a: Any) -> Any:
        return optimize.minimize_scalar(hill, args=(a,), **options)

    theirs = scipy.optimize.minimize_scalar(hill, args=(2.3,), **options)
    assert lowest(2.3).x == theirs.x
    found = fg.jit(lowest)(2.3)
    assert found.success
    assert abs(found.nit - theirs.nit) <= 1  # with bounds SciPy counts the first point
    np.testing.assert_allclose(found.x, theirs.x, 0, 2e-6)
    np.testing.assert_allclose(found.fun, theirs.fun, 1e-4)
    tight = {"options": {"xatol": 1e-10}} if "bounds" in options else {}
    ends = [
        scipy.optimize.minimize_scalar(hill, args=(2.3 + h,), **options, **tight).x
        for h in (1e-4, -1e-4)
    ]
    slope = fg.jit(fg.grad(lambda a: lowest(a).x))(2.3)
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-4, 1e-4, 1e-6)


@pytest.mark.nightly
def test_minima_at_bounds_mapped_and_twice_differentiated() -> None:
    for low, expected in ((1.0, 1.0), (-1.0, 0.0)):
        found = fg.grad(lambda b: optimize.fminbound(lambda x: x * x, b, 3.0))(low)
        np.testing.assert_allclose(found, expected, 1e-9)
    rows = np.array([1.0, 4.0, 9.0])
    root = lambda a: optimize.brent(lambda x: (x * x - a) ** 2, brack=(0.5, 1.0))  # noqa: E731
    np.testing.assert_allclose(fg.vmap(root)(rows), np.sqrt(rows), 1e-7)
    second = fg.vmap(fg.grad(fg.grad(root)))(rows)
    np.testing.assert_allclose(second, -(rows**-1.5) / 4, 1e-5)
    x, value, _, calls = fg.jit(lambda a: optimize.brent(hill, (a,), full_output=1))(2.3)
    np.testing.assert_allclose(value, hill(x, 2.3), 1e-14)  # compiled, it rounds differently
    assert calls < 30


def test_rosenbrock() -> None:
    x, p = np.array([0.3, 0.7, -1.0]), np.array([1.0, 2.0, 3.0])
    for name, args in (
        ("rosen", (x,)),
        ("rosen_der", (x,)),
        ("rosen_hess", (x,)),
        ("rosen_hess_prod", (x, p)),
    ):
        found = getattr(optimize, name)(*args)
        np.testing.assert_allclose(found, getattr(scipy.optimize, name)(*args), 1e-12)
    np.testing.assert_allclose(fg.grad(optimize.rosen)(x), scipy.optimize.rosen_der(x), 1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: optimize.minimize(optimize.rosen, x, method="Powell").x, "there is BFGS"),
        (lambda x: optimize.minimize_scalar(abs, x, method="golden").x, "there is 'brent'"),
        (lambda x: optimize.minimize_scalar(abs, (x[0],)).x, "two or three numbers"),
        (lambda x: optimize.minimize(optimize.rosen, x, bounds=[(0, 1)] * 2).x, "there is BFGS"),
        (
            lambda x: optimize.least_squares(lambda p: p - x, x, loss="cauchy").x,
            "bounds and losses",
        ),
        (lambda x: optimize.curve_fit(cube, x, x), "Write least_squares"),
        (lambda x: optimize.nnls(np.eye(2), x), "nnls is SciPy's own function"),
        (lambda x: optimize.brentq(cube, x, 1.0, args=(0.5,)), "must be numbers"),
        (lambda x: optimize.root_scalar(cube, args=(x[0],)), "needs x0="),
        (lambda x: optimize.root_scalar(cube, args=(1.0,), method="no"), "must be one of"),
    ],
)
def test_messages(call: Any, text: str) -> None:
    with pytest.raises(errors.FuncgradError, match=text):
        fg.jit(call)(np.ones(2))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("n", [1, 3, 400])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_solvers_keep_the_dtype(n: int, dtype: Any) -> None:
    """Few unknowns are solved for densely, many by the pattern of their Jacobian."""
    goal = np.linspace(0.5, 1.0, n, dtype=dtype)

    def far(x: Any) -> Any:
        return np.concatenate([x - np.sin(x[::-1]) - goal, 2 * (x - goal)])

    solvers = {
        "least_squares": lambda x: optimize.least_squares(far, x).x,
        "root": lambda x: optimize.root(lambda x: x**3 + x - goal, x).x,
        "BFGS": lambda x: optimize.minimize(lambda x: np.sum((x - goal) ** 2), x, method="BFGS").x,
    }
    for name, solve in solvers.items():
        found = fg.jit(solve)(np.ones(n, dtype))
        assert found.dtype == dtype, name
        np.testing.assert_allclose(found, solve(np.ones(n)), rtol=1e-4, err_msg=name)
