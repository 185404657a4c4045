"""Random programs: native code computes what NumPy computes, whatever shares a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import funcgrad as fg
from tests.fuzz.language import Program
from tests.fuzz.properties import quiet
from tests.fuzz.writing import programs


def assert_close(found: Any, expected: Any, rtol: float, scale: float) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * scale)
    else:
        np.testing.assert_array_equal(found, expected)


def assert_separate(results: Any, args: list[np.ndarray]) -> None:
    """No result shares memory with an argument or with another result."""
    arrays = [x for x in results if isinstance(x, np.ndarray)]
    for k, array in enumerate(arrays):
        for other in [*args, *arrays[:k]]:
            assert not np.shares_memory(array, other)


def check_values(program: Program, rtol: float) -> None:
    with np.errstate(all="ignore"):
        expected = expected_of(program)
    before = [a.copy() for a in program.values]
    f = fg.jit(program.function)
    for _ in range(2):  # the general path, and that of repeated calls
        found = f(*program.values)
        for x, y in zip(found, expected, strict=True):
            assert_close(x, y, rtol, program.scale)
        assert_separate(found, program.values)
        for x, y in zip(program.values, before, strict=True):
            np.testing.assert_array_equal(x, y)


@given(programs("f8"))
def test_double(program: Program) -> None:
    check_values(program, 1e-11)


@given(programs("f4"))
def test_single(program: Program) -> None:
    check_values(program, 1e-5)


def check_gradients(program: Program, rtol: float) -> None:
    def loss(*args: Any) -> Any:
        return sum(np.sum(np.sin(x)) for x in program.function(*args))

    argnums = tuple(range(len(program.values)))
    expected = fg.grad(loss, argnums)(*program.values)
    scale = program.scale * max(1.0, *(float(np.max(np.abs(g), initial=0.0)) for g in expected))
    for derived in (fg.jit(fg.grad(loss, argnums)), fg.grad(fg.jit(loss), argnums)):
        found = derived(*program.values)
        for x, y in zip(found, expected, strict=True):
            assert_close(x, y, rtol, scale)


@given(programs("f8", is_smooth=True))
def test_gradients(program: Program) -> None:
    check_gradients(program, 1e-10)


def check_batches(program: Program, rtol: float) -> None:
    expected = expected_of(program)
    stacked = [np.stack([a, a * 0.5]) for a in program.values]
    found = fg.jit(fg.vmap(program.function))(*stacked)
    for x, y in zip(found, expected, strict=True):
        assert_close(x[0], y, rtol, program.scale)


@given(programs("f8", is_smooth=True))
def test_batches(program: Program) -> None:
    check_batches(program, 1e-11)


# Programs as bodies of loops and branches.


def expected_of(program: Program) -> tuple[Any, ...]:
    """What NumPy computes; of empty slices without its warning."""
    with quiet():
        return program.function(*program.values)


def check_steps(program: Program, rtol: float) -> None:
    """The body of a loop that scans over its arguments."""
    expected = expected_of(program)
    stacked = tuple(np.stack([a[::-1] if a.ndim else a, a, a]) for a in program.values)
    f = fg.jit(lambda *args: fg.lax.map(lambda row: program.function(*row), args))
    for _ in range(2):
        for x, y in zip(f(*stacked), expected, strict=True):
            assert_close(x[1], y, rtol, program.scale)


def check_carried(program: Program, rtol: float) -> None:
    """The body of a loop that carries its arguments along."""
    expected = expected_of(program)
    body = lambda carry, _: (carry, program.function(*carry))  # noqa: E731
    found = fg.jit(lambda *args: fg.lax.scan(body, args, None, 2)[1])(*program.values)
    for x, y in zip(found, expected, strict=True):
        assert_close(x[0], y, rtol, program.scale)
        assert_close(x[1], y, rtol, program.scale)


def check_branches(program: Program, rtol: float) -> None:
    def nothing(*args: Any) -> Any:
        return tuple(x ^ x if x.dtype.kind == "b" else x * 0 for x in program.function(*args))

    expected = expected_of(program)
    f = fg.jit(lambda p, *args: fg.lax.cond(p, program.function, nothing, *args))
    for x, y in zip(f(True, *program.values), expected, strict=True):
        assert_close(x, y, rtol, program.scale)
    for x, y in zip(f(False, *program.values), expected, strict=True):
        assert_close(x, np.zeros_like(y), rtol, program.scale)


def check_steps_back(program: Program, rtol: float) -> None:
    """The derivative of a loop."""

    def loss(*args: Any) -> Any:
        return sum(np.sum(np.sin(x)) for x in program.function(*args))

    argnums = tuple(range(len(program.values)))
    expected = fg.grad(loss, argnums)(*program.values)
    scale = program.scale * max(1.0, *(float(np.max(np.abs(g), initial=0.0)) for g in expected))
    stacked = tuple(np.stack([a, a * 0.5]) for a in program.values)
    total = lambda *args: np.sum(fg.lax.map(lambda row: loss(*row), args))  # noqa: E731
    for x, y in zip(fg.jit(fg.grad(total, argnums))(*stacked), expected, strict=True):
        assert_close(x[0], y, rtol, scale)


IN_LOOPS = [check_steps, check_carried, check_branches]


@pytest.mark.parametrize("check", IN_LOOPS)
@given(programs("f8"))
def test_bodies(check: Any, program: Program) -> None:
    check(program, 1e-11)


@given(programs("f8", is_smooth=True))
def test_derivatives_of_loops(program: Program) -> None:
    check_steps_back(program, 1e-10)


@pytest.mark.parametrize("n", [40, 300])
def test_long_chains_are_computed_along_rows_and_then_transposed(
    n: int,
) -> None:
    """A Hessian is the transpose of what its tangents give; only its last step walks across.

    By unit vectors that the program is given, all of it is computed, zeros too.
    """

    def valley(x: Any) -> Any:
        return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()

    x = np.linspace(0.0, 1.0, n)
    diagonal = np.zeros(n)
    diagonal[:-1] += 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
    diagonal[1:] += 200.0
    side = np.diag(-400.0 * x[:-1], 1)

    def product(x: Any, v: Any) -> Any:
        return fg.jvp(fg.grad(valley), (x,), (v,))[1]

    hessian = fg.jit(lambda x: fg.vmap(product, (None, 0), 1)(x, np.eye(n)))
    np.testing.assert_allclose(
        hessian(x), np.diag(diagonal) + side + side.T, rtol=1e-14, atol=1e-12
    )
    text = hessian.lower(x).as_text()
    crossed = [kernel for kernel in text.split("\n# kernel")[1:] if "t_end = minimum" in kernel]
    assert len(crossed) == 1
    assert "select" not in crossed[0]  # it copies
