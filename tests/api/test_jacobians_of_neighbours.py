"""Dense Jacobians and Hessians that are sparse inside are computed where they are not zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from tests.compiler.plans import steps_of

RNG = np.random.default_rng(0)
LINE, GRID = RNG.uniform(0.5, 1.5, 40), RNG.uniform(0.5, 1.5, (6, 7))
LONG, WIDE = RNG.uniform(0.5, 1.5, 400), RNG.uniform(0.5, 1.5, (20, 21))


def laplacian(u: Any) -> Any:
    v = np.pad(u, 1)
    return 4 * u - v[2:, 1:-1] - v[:-2, 1:-1] - v[1:-1, 2:] - v[1:-1, :-2]


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "elements": (lambda x: x**3 * 2 - x, LINE),
    "neighbours": (lambda x: x[1:] ** 2 * x[:-1], LINE),
    "reversed": (lambda x: (x * x)[::-1] * 3, LINE),
    "reversed, and not": (lambda x: x * x[::-1], LINE),  # diagonals that meet
    "every other": (lambda x: x[1::2] * x[::2] ** 2, LINE),
    "padded": (lambda x: np.pad(x[2:-1] ** 2, (1, 3)) - x[0:-1].sum() * 0, LINE[:-1]),
    "concatenated": (lambda x: np.concatenate([x[3:] * x[:-3], x[:3] ** 2]), LINE),
    "rolled": (lambda x: np.roll(x, 1) * x - np.roll(x, -2), LINE),
    "replaced": (lambda x: fg.numpy.at(x)[3:9].set(x[5:11] ** 2) * x, LINE),
    "stacked": (lambda x: np.stack([x, x * x, np.exp(x)], 1), LINE),
    "by a quotient": (lambda x: x[:-1] / x[1:], LINE),
    "of a grid": (lambda u: laplacian(u) + u**3, GRID),
    "a part of a grid": (lambda u: u[1:-1, 2:] * u[2:, :-2], GRID),
    "transposed": (lambda u: (u * u).T, GRID),
    "a row": (lambda u: u[2] ** 2, GRID),
    "with a mean": (lambda x: x - x.mean(), LINE),  # nothing is zero
    "by a matrix": (lambda x: np.cos(np.ones((3, len(x)), x.dtype) @ (x * x)), LINE),
    "one element": (lambda x: x[:1] ** 2, LINE),
}


def numpy_function(name: str) -> Callable[[np.ndarray], np.ndarray]:
    if name != "replaced":
        return FUNCTIONS[name][0]

    def replaced(x: np.ndarray) -> np.ndarray:
        y = x.copy()
        y[3:9] = x[5:11] ** 2
        return y * x

    return replaced


def complex_step(function: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    columns = []
    for i in range(x.size):
        z = x.astype(complex)
        z.flat[i] += 1e-30j
        columns.append(np.imag(function(z)) / 1e-30)
    columns = np.stack(columns, -1)
    return columns.reshape(*columns.shape[:-1], *x.shape)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians(name: str) -> None:
    function, x = FUNCTIONS[name]
    expected = complex_step(numpy_function(name), x)
    np.testing.assert_allclose(fg.jit(fg.jacfwd(function))(x), expected, 1e-12, 1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_in_reverse(name: str) -> None:
    function, x = FUNCTIONS[name]
    expected = complex_step(numpy_function(name), x)
    np.testing.assert_allclose(fg.jit(fg.jacrev(function))(x), expected, 1e-12, 1e-12)
    single = fg.jit(fg.jacrev(function))(x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, 1e-5, 1e-5)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["neighbours", "rolled", "of a grid", "concatenated"])
def test_hessians(name: str) -> None:
    function, x = FUNCTIONS[name]
    gradient = fg.grad(lambda x: (function(x) ** 2).sum())
    found = fg.jit(fg.hessian(lambda x: (function(x) ** 2).sum()))(x)
    step = 1e-5
    for i in (0, x.size // 2, x.size - 1):
        direction = np.zeros(x.shape)
        direction.flat[i] = step
        slope = (gradient(x + direction) - gradient(x - direction)) / (2 * step)
        part = found[(..., *np.unravel_index(i, x.shape))]
        np.testing.assert_allclose(part, slope, 1e-7, 1e-7)


def test_several_arguments_and_results() -> None:
    def function(x: Any, y: Any) -> Any:
        return {"near": x[1:] * y[:-1], "far": (y[::2] ** 2).astype(np.float32), "sum": x.sum()}

    args = LONG, LONG[::-1] + 0.5
    for transformation in (fg.jacfwd, fg.jacrev):
        found = fg.jit(transformation(function, (0, 1)))(*args)
        near = np.zeros((399, 400)), np.zeros((399, 400))
        counted = np.arange(399)
        near[0][counted, counted + 1] = args[1][:-1]
        near[1][counted, counted] = args[0][1:]
        far = np.zeros((200, 400))
        far[np.arange(200), np.arange(0, 400, 2)] = 2 * args[1][::2]
        np.testing.assert_array_equal(found["near"], near)
        np.testing.assert_array_equal(found["sum"], (np.ones(400), np.zeros(400)))
        np.testing.assert_array_equal(found["far"][0], np.zeros((200, 400)))
        np.testing.assert_allclose(found["far"][1], far, 1e-6)


def test_eagerly_as_compiled() -> None:
    """A large one takes a product for each colour even if nothing is recorded."""
    counted = np.arange(400)
    found = fg.jacfwd(lambda x: np.sin(np.roll(x, 1)) * x)(LONG)
    expected = np.zeros((400, 400))
    expected[counted, counted] = np.sin(np.roll(LONG, 1))
    expected[counted, counted - 1] += np.cos(np.roll(LONG, 1)) * LONG
    np.testing.assert_allclose(found, expected, 1e-15)
    assert found.flags.c_contiguous
    assert found.flags.writeable


def test_lookups_at_known_places() -> None:
    """Also if the places are computed in the program, of constants alone."""
    order = RNG.permutation(40)

    def function(x: Any) -> Any:
        return x[(np.asarray(order) + 1) % 40] ** 2 + fg.numpy.flip(fg.numpy.asarray(x))

    program = str(fg.jit(fg.jacfwd(function)).trace(LINE).program)
    expected = complex_step(lambda x: x[(order + 1) % 40] ** 2 + x[::-1], LINE)
    np.testing.assert_allclose(fg.jit(fg.jacfwd(function))(LINE), expected, 1e-14)
    assert "[40,40]" not in program.split("scatter")[0]


def test_third_derivatives() -> None:
    def function(x: Any) -> Any:
        return (x[1:] ** 2 * x[:-1]).sum()

    found = fg.jit(fg.jacfwd(fg.hessian(function)))(LINE[:12])
    expected = np.zeros((12, 12, 12))
    for i in range(11):
        for place in {(i, i + 1, i + 1), (i + 1, i, i + 1), (i + 1, i + 1, i)}:
            expected[place] = 2.0
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["elements", "neighbours", "rolled", "of a grid", "transposed"])
def test_only_zeros_are_written_everywhere(name: str) -> None:
    """Besides them, no step has as many iterations as the matrix has elements."""
    function, small = FUNCTIONS[name]
    x = LONG if small.ndim == 1 else WIDE
    lowered = fg.jit(fg.jacfwd(function)).lower(x)
    n = x.size * function(x).size
    steps = [s for s in steps_of(str(lowered.as_text())).splitlines() if "kernel" in s]
    large = [s for s in steps if int(s.split(":")[1].split()[0]) * 4 > n]
    assert len(large) <= 1
    assert all(";  ->" in step for step in large)  # it reads nothing
    constants = lowered.compile().memory_analysis().constant_size_in_bytes
    assert constants < n  # there is no identity, which takes eight times as much


def test_what_reads_all_of_it_is_right() -> None:
    x = LINE[:6]
    found = fg.jit(lambda x: np.exp(fg.jacfwd(lambda x: x * x)(x)).sum())(np.tile(x, 7))
    diagonal = 2 * np.tile(x, 7)
    np.testing.assert_allclose(found, np.exp(diagonal).sum() + 42 * 41, 1e-13)


def test_newton_with_a_band() -> None:
    """A routine that needs the matrix gets it."""

    def residual(u: Any) -> Any:
        v = np.pad(u, 1)
        return 2 * u - v[2:] - v[:-2] + 0.1 * u**3 - 0.01

    step = fg.jit(lambda u: u - np.linalg.solve(fg.jacfwd(residual)(u), residual(u)))
    u = np.zeros(50)
    for _ in range(12):
        u = step(u)
    np.testing.assert_allclose(residual(u), 0, atol=1e-12)


def test_zeros_times_infinities_stay_zeros() -> None:
    """The derivative of what an element does not depend on is zero, however steep it is."""

    def function(x: Any) -> Any:
        return np.sqrt(x) * np.pad(x[1:], (0, 1))

    x = LINE.copy()
    x[3] = 0.0
    found = fg.jit(fg.jacfwd(function))(x)
    beside = ~(np.eye(40, dtype=bool) | np.eye(40, k=1, dtype=bool))
    assert not found[beside].any()
    assert found[3, 3] == np.inf
