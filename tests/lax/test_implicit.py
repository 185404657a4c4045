"""custom_root and custom_linear_solve, against closed forms and NumPy's inverses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors, lax

Function = Callable[..., Any]
AS = np.linspace(0.5, 2.0, 4)
B = np.array([1.0, 2.0, 3.0])
RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 3)) + 4 * np.eye(3)
FILE = Path(__file__).name


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


def newton(f: Function, x: Any) -> Any:
    for _ in range(20):
        x = x - f(x) / fg.grad(f)(x)
    return x


def newton_loop(f: Function, x: Any) -> Any:
    step = lambda s: (s[0] + 1, s[1] - f(s[1]) / fg.grad(f)(s[1]))  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 20, step, (0, x))[1]


def divide(g: Function, y: Any) -> Any:
    return y / g(1.0)


def forward(f: Function) -> Function:
    return lambda x: fg.jvp(f, (x,), (np.ones_like(x),))[1]


jitted_or_not = pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "jit"])
MODES = [fg.grad, forward, fg.jacfwd, fg.jacrev]


@pytest.mark.sampled(8)
@jitted_or_not
@pytest.mark.parametrize("solver", [newton, newton_loop])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inner", [fg.grad, forward])
def test_scalar_root(wrap: Function, solver: Function, mode: Function, inner: Function) -> None:
    def cube_root(a: Any) -> Any:
        return lax.custom_root(lambda x: x * x * x - a, 1.0, solver, divide)

    close(wrap(cube_root)(2.0), 2 ** (1 / 3))
    close(wrap(fg.vmap(cube_root))(AS), AS ** (1 / 3))
    close(wrap(mode(cube_root))(2.0), 2 ** (-2 / 3) / 3)
    close(wrap(mode(inner(cube_root)))(2.0), -2 / 9 * 2 ** (-5 / 3))
    close(wrap(fg.vmap(mode(inner(cube_root))))(AS), -2 / 9 * AS ** (-5 / 3))
    twice = lambda a: lax.scan(lambda c, _: (cube_root(c), None), a, None, length=2)[0]  # noqa: E731
    close(wrap(mode(twice))(2.0), 2 ** (1 / 9 - 1) / 9)


def test_the_initial_guess_and_the_solver_have_no_derivative() -> None:
    def root(a: Any, guess: Any, steps: Any) -> Any:
        solve = lambda f, x: newton(f, x) + 0 * steps  # noqa: E731
        return lax.custom_root(lambda x: x * x - a, guess, solve, divide)

    close(fg.grad(root, (0, 1, 2))(4.0, 1.0, 3.0), (0.25, 0.0, 0.0))


def vector_root(a: Any, b: Any) -> Any:
    def f(p: Any) -> Any:
        return {"x": a @ p["x"] + p["x"] ** 3 - b}

    def solve(f: Function, p: Any) -> Any:
        g, x = lambda x: f({"x": x})["x"], p["x"]
        for _ in range(30):
            x = x - np.linalg.solve(fg.jacobian(g)(x), g(x))
        return {"x": x}, {"steps": 30, "residual": g(x)}

    def tangent_solve(g: Function, y: Any) -> Any:
        slope = fg.jacobian(lambda x: g({"x": x})["x"])(y["x"])
        return {"x": np.linalg.solve(slope, y["x"])}

    root, aux = lax.custom_root(f, {"x": np.zeros(3)}, solve, tangent_solve, has_aux=True)
    assert set(aux) == {"steps", "residual"}
    return root["x"]


@pytest.mark.sampled(4)
@jitted_or_not
@pytest.mark.parametrize("mode", [fg.jacfwd, fg.jacrev])
@pytest.mark.parametrize("outer", [fg.jacfwd, fg.jacrev])
def test_vector_root(wrap: Function, mode: Function, outer: Function) -> None:
    x = vector_root(A, B)
    close(A @ x + x**3, B)
    inverse = np.linalg.inv(A + np.diag(3 * x**2))
    close(wrap(mode(vector_root, 1))(A, B), inverse)
    close(wrap(mode(vector_root, 0))(A, B), -np.einsum("ij,k->ijk", inverse, x))
    # d(J^-1) = -J^-1 diag(6 x dx) J^-1, where dx = J^-1 db.
    second = -np.einsum("im,m,mk,mj->ijk", inverse, 6 * x, inverse, inverse)
    close(wrap(outer(mode(vector_root, 1), 1))(A, B), second)


def conjugate_gradients(matvec: Function, b: Any) -> Any:
    def step(state: Any) -> Any:
        i, x, r, p, rs = state
        q = matvec(p)
        alpha = rs / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        return i + 1, x, r, r + (r @ r) / rs * p, r @ r

    goes_on = lambda s: (s[0] < 10) & (s[4] > 1e-26)  # noqa: E731
    return lax.while_loop(goes_on, step, (0, np.zeros_like(b), b, b, b @ b))[1]


def direct(matvec: Function, b: Any) -> Any:
    return np.linalg.solve(fg.jacobian(matvec)(np.zeros_like(b)), b)


def by_conjugate_gradients(m: Any, b: Any) -> Any:
    return lax.custom_linear_solve(lambda x: m @ x, b, conjugate_gradients, symmetric=True)


def by_matrix(m: Any, b: Any) -> Any:
    return lax.custom_linear_solve(lambda x: m @ x, b, direct, direct)


def with_aux(m: Any, b: Any) -> Any:
    solve = lambda f, b: (direct(f, b), {"n": 3, "b": b})  # noqa: E731
    out, aux = lax.custom_linear_solve(lambda x: m @ x, b, solve, solve, has_aux=True)
    assert set(aux) == {"n", "b"}
    return out


def of_pytrees(m: Any, b: Any) -> Any:
    def matvec(x: Any) -> Any:
        y = m @ np.concatenate([x["head"], x["tail"]])
        return {"head": y[:1], "tail": y[1:]}

    def solve(f: Function, b: Any) -> Any:
        def flat(x: Any) -> Any:
            y = f({"head": x[:1], "tail": x[1:]})
            return np.concatenate([y["head"], y["tail"]])

        x = direct(flat, np.concatenate([b["head"], b["tail"]]))
        return {"head": x[:1], "tail": x[1:]}

    out = lax.custom_linear_solve(matvec, {"head": b[:1], "tail": b[1:]}, solve, solve)
    return np.concatenate([out["head"], out["tail"]])


SYSTEMS = [(by_conjugate_gradients, A @ A.T), (by_matrix, A), (with_aux, A), (of_pytrees, A)]


@pytest.mark.sampled(8)
@jitted_or_not
@pytest.mark.parametrize(("solution", "m"), SYSTEMS)
@pytest.mark.parametrize("mode", [fg.jacfwd, fg.jacrev])
def test_linear_solve(wrap: Function, solution: Function, m: Any, mode: Function) -> None:
    inverse = np.linalg.inv(m)
    x = inverse @ B
    close(wrap(solution)(m, B), x)
    close(wrap(fg.vmap(solution, (None, 0)))(m, np.stack([B, 2 * B])), [x, 2 * x])
    close(wrap(fg.vmap(solution, (0, None)))(np.stack([m, 2 * m]), B), [x, x / 2])
    close(wrap(mode(solution, 1))(m, B), inverse)
    close(wrap(mode(solution, 0))(m, B), -np.einsum("ij,k->ijk", inverse, x))
    total = fg.grad(lambda m: solution(m, B).sum())
    slope = -np.outer(inverse.sum(0), x)
    close(wrap(fg.vmap(total))(np.stack([m, 2 * m])), [slope, slope / 4])
    twice = lambda b: lax.scan(lambda c, _: (solution(m, c), None), b, None, length=2)[0]  # noqa: E731
    close(wrap(mode(twice))(B), inverse @ inverse)


@pytest.mark.sampled(8)
@jitted_or_not
@pytest.mark.parametrize(("solution", "m"), SYSTEMS)
@pytest.mark.parametrize("outer", [fg.jacfwd, fg.jacrev])
@pytest.mark.parametrize("mode", [fg.jacfwd, fg.jacrev])
def test_linear_solve_second_order(
    wrap: Function, solution: Function, m: Any, mode: Function, outer: Function
) -> None:
    inverse = np.linalg.inv(m)
    x = inverse @ B
    mixed = -np.einsum("ij,kl->iljk", inverse, inverse)
    close(wrap(outer(mode(solution, 1), 0))(m, B), mixed)
    second = np.einsum("ij,kl,m->ijklm", inverse, inverse, x) + np.einsum(
        "il,mj,k->ijklm", inverse, inverse, x
    )
    close(wrap(outer(mode(solution, 0), 0))(m, B), second)


def test_forward_mode_needs_no_transposed_solver() -> None:
    f = lambda a: lax.custom_linear_solve(lambda x: a * x, 1.0, lambda g, b: b / g(1.0))  # noqa: E731
    close(fg.jacfwd(f)(2.0), -0.25)
    with pytest.raises(errors.MissingRuleError, match="pass transpose_solve, or symmetric=True"):
        fg.grad(f)(2.0)


def shift(x: Any) -> Any:
    return x - 1.0


MISTAKES: list[tuple[type[Exception], Function, list[str]]] = [
    (
        errors.TreeError,
        lambda: lax.custom_root(shift, 1.0, lambda f, x: (x,), divide),
        ["custom_root(shift): solve must return the structure of initial_guess", FILE],
    ),
    (
        errors.ShapeError,
        lambda: lax.custom_root(lambda x: x * B, 1.0, lambda f, x: f(x), divide),
        ["f must return the types", "expected      f64[] like `initial_guess`", "f64[3]", FILE],
    ),
    (
        errors.DtypeError,
        lambda: lax.custom_root(shift, {"n": 1}, lambda f, x: x, divide),
        ["`initial_guess['n']` is i64[], but unknowns must be floating", FILE],
    ),
    (
        errors.ArgumentError,
        lambda: lax.custom_root(shift, 1.0, lambda f, x: x, divide, has_aux=True),
        ["with has_aux=True, solve must return a pair (solution, aux)", "a float", FILE],
    ),
    (
        errors.TreeError,
        lambda: fg.grad(lambda a: lax.custom_root(lambda x: x - a, 1.0, newton, lambda g, y: [y]))(
            2.0
        ),
        ["tangent_solve must return the structure of initial_guess", FILE],
    ),
    (
        errors.ArgumentError,
        lambda: fg.grad(
            lambda a: lax.custom_root(lambda x: x - a, 1.0, newton, lambda g, y: y * y)
        )(2.0),
        ["tangent_solve of custom_root(<lambda>) is not linear in the tangents", "mul", FILE],
    ),
    (
        errors.TreeError,
        lambda: fg.jit(lambda b: lax.custom_linear_solve(lambda x: x, b, lambda f, b: [b]))(B),
        ["custom_linear_solve(<lambda>): solve must return the structure of b", FILE],
    ),
    (
        errors.ShapeError,
        lambda: lax.custom_linear_solve(np.sum, B, direct),
        ["custom_linear_solve(sum): matvec must return the types of b", "f64[3] like `b`", FILE],
    ),
]


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit, fg.grad])
def test_structures_that_no_solver_looked_at(wrap: Any) -> None:
    """Also where the solver does not call the function."""
    cases: list[tuple[Any, Function, str]] = [
        (
            errors.TreeError,
            lambda x: lax.custom_root(lambda y: (y, y - x), x, lambda f, y: y, divide),
            "f must return the structure of initial_guess",
        ),
        (
            errors.ShapeError,
            lambda x: lax.custom_root(lambda y: (y - x) * B, x, lambda f, y: y, divide),
            "f must return the types of initial_guess",
        ),
        (
            errors.TreeError,
            lambda x: lax.custom_linear_solve(lambda y: [y], x, lambda f, b: b, symmetric=True),
            "matvec must return the structure of b",
        ),
    ]
    for error, run, text in cases:
        with pytest.raises(error, match=text):
            wrap(run)(1.0)


@pytest.mark.parametrize(("error", "run", "parts"), MISTAKES)
def test_messages(error: Any, run: Function, parts: list[str]) -> None:
    with pytest.raises(error) as caught:
        run()
    for part in parts:
        assert part in str(caught.value)


def test_variables_that_are_given_another_value_after_the_call() -> None:
    """A function is what it was when it was passed, like everything else that is passed."""

    def solved(d: Any) -> Any:
        scale = d * 2

        def matvec(x: Any) -> Any:
            return scale * x

        x = lax.custom_linear_solve(matvec, B, divide_all, symmetric=True)
        scale = scale - x
        return x, scale

    def divide_all(f: Function, b: Any) -> Any:
        return b / f(np.ones(3))

    d = np.array([1.0, 2.0, 4.0])
    x = B / (2 * d)
    for wrap in (lambda f: f, fg.jit):
        close(wrap(solved)(d), (x, 2 * d - x))
        slopes = wrap(fg.grad(lambda d: solved(d)[0].sum()))(d)
        close(slopes, -x / d)

    def root(a: Any) -> Any:
        power = a + 1
        return lax.custom_root(lambda x: x**2 - power, a, newton, divide)

    close(fg.jit(fg.grad(root))(3.0), 0.25)
    close(fg.grad(root)(3.0), 0.25)
